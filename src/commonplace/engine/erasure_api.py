"""Delete what an engine is asked to forget, here or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.engine.runtime import EngineApi
from commonplace.erasure.select import EraseRequest, archived_by, selection
from commonplace.errors import UsageError
from commonplace.memory.validate import reject_invalid_id, series
from commonplace.store.memories import MemoryChange
from commonplace.types import Selection, StoredMemory

if TYPE_CHECKING:
    from commonplace.erasure.copies import ErasureRuntime
    from commonplace.erasure.receipt import ForgetReceipt
    from commonplace.graph.graphiti.backend import Removal


class ErasureApi(EngineApi):
    """Deletes what a caller names, with every copy of it in the store. Safe for threads."""

    def forget(self, request: EraseRequest, *, dry_run: bool) -> ForgetReceipt:
        """Forget what is selected, in another process if this one must stay small: every text is scanned."""
        runtime, in_process = self._runtime, list[StoredMemory]()
        if runtime.has_ultra and request.path is None and request.archived_by is None and request.agent is None:
            in_process = runtime.ultra.all(selection(request))
        if runtime.worker is None or in_process:
            return self.erase(request, in_process, dry_run=dry_run)
        in_this_process = partial(self.erase, request, dry_run=dry_run)
        receipt = runtime.worker.run("forget", in_this_process, request=request, dry_run=dry_run)
        if not dry_run:
            runtime.forget_caches()
        return receipt

    def erase(self, request: EraseRequest, in_process: Sequence[StoredMemory] = (), *, dry_run: bool) -> ForgetReceipt:
        from commonplace.erasure.erase import forget

        store, namespace, feed = self._store, self._namespace, self._runtime.feed
        if not dry_run:
            self._runtime.before_call()
        if not dry_run and request.archived_by is not None and feed is not None:
            # Live memories that the graph knew only through sources that go now are added to the graph themselves.
            leaving_ids = set(archived_by(store, namespace, request.archived_by))
            memories = store.memories(namespace, Selection(order="id")) if leaving_ids else []
            live = [stored for stored in memories if stored.expired_at is None]
            orphan_ids = [stored.owner.id for stored in live if not leaving_ids.isdisjoint(stored.record.derived_from)]
            if orphan_ids:
                with store.change_memories(namespace) as change:
                    feed.follow(change, orphan_ids)
        receipt = forget(self.erasure_runtime(), namespace, request, in_process=in_process, dry_run=dry_run)
        if not dry_run:
            if in_process:
                self._runtime.ultra.erase([memory.owner.id for memory in in_process])
            self._runtime.after_write()
        return receipt

    def read_request(self, filters: Mapping[str, object]) -> EraseRequest:
        """Return the selection of what to forget, from the one name that has a value."""
        selectors = {name: value for name, value in filters.items() if value is not None}
        if len(selectors) != 1:
            *other_names, last = selectors or ["nothing"]
            many = f"{', '.join(other_names)} and {last} cannot be combined"
            message = many if other_names else "nothing was selected"
            raise UsageError(message, remedy=f"give exactly one of {', '.join(filters)}")
        [(name, value)] = selectors.items()
        if name == "id":
            ids = [value] if isinstance(value, str) else list(series("id", value))  # type: ignore[arg-type]
            for id_ in ids:
                reject_invalid_id(id_)
            if not ids:
                raise UsageError("the list of ids is empty", remedy="name what is to be forgotten")
            return EraseRequest(ids=tuple(dict.fromkeys(ids)))
        if name == "path":
            if not isinstance(value, str | Path) or not str(value).strip():
                raise UsageError(f"path is {value!r:.80}", remedy="name an indexed file")
            path, project = Path(value).as_posix(), self._runtime.project
            if path not in {owner.path for _, owner in self._store.artifacts(self._namespace)}:
                # It is not a stored path, so take it as one that a person wrote.
                absolute = Path(value).expanduser().absolute()
                is_below = project is not None and absolute.is_relative_to(project)
                path = (absolute.relative_to(project) if project and is_below else absolute).as_posix()
            return EraseRequest(path=path)
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{name} is {value!r:.80}", remedy="give a text that is not empty")
        selector: dict[str, Any] = {name: value}
        return EraseRequest(**selector)

    def erasure_runtime(self) -> ErasureRuntime:
        from commonplace.erasure.copies import ErasureRuntime

        runtime, graph = self._runtime, self._settings.graph
        delete_outside: Callable[[MemoryChange, str, str], None] | None = None
        leave: Callable[[str, Set[str], bool], Removal] | None = None
        if graph.backend != "local":  # what was sent to Graphiti is deleted there too
            from commonplace.engine.graph_api import leave_graphiti
            from commonplace.graph.graphiti.outbox import Outbox

            delete_outside = Outbox(self._store, self._namespace, runtime.now).deleted
            leave = partial(leave_graphiti, self._store, graph)
        return ErasureRuntime(
            directory=runtime.directory,
            store=self._store,
            index=runtime.index,
            clock=runtime.now,
            is_served=runtime.is_served,
            pages=runtime.journal,
            forget_caches=runtime.forget_caches,
            progress=runtime.progress,
            follow=None if runtime.feed is None else runtime.feed.follow,
            graph=lambda: runtime.graph_runtime(True),
            delete_outside=delete_outside,
            leave=leave,
        )
