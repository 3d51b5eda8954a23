"""Delete what an engine is told to forget, here or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.engine.runtime import Service
from commonplace.errors import UsageError
from commonplace.memory.validate import reject_invalid_id, series
from commonplace.store.memories import MemoryChange
from commonplace.types import Selection, StoredMemory

if TYPE_CHECKING:
    from commonplace.erasure.receipt import ForgetReceipt
    from commonplace.erasure.resume import ErasureRuntime
    from commonplace.erasure.select import Wanted
    from commonplace.graph.graphiti.backend import Left


class ErasureApi(Service):
    """Deletes what is named, with every copy of it in the store. Safe for threads."""

    def forget_namespace(self, name: str, *, dry_run: bool) -> ForgetReceipt:
        from commonplace.erasure.erase import forget_namespace

        receipt = forget_namespace(self.erasure_runtime(), name, dry_run=dry_run)
        if not dry_run and name == self._namespace and self._runtime.has_ultra:
            self._runtime.ultra.erase([memory.owner.id for memory in self._runtime.ultra.all(Selection())])
        return receipt

    def receipts(self) -> list[ForgetReceipt]:
        from commonplace.erasure.receipt import RECEIPT, receipt_of
        from commonplace.exchange.archive import STORE_SPACE

        notes = [*self._store.notes(self._namespace, RECEIPT), *self._store.notes(STORE_SPACE, RECEIPT)]
        found = [receipt for note in notes if (receipt := receipt_of(note)).namespace == self._namespace]
        return sorted(found, key=lambda receipt: (receipt.at, receipt.id))

    def forget(self, wanted: Wanted, *, dry_run: bool) -> ForgetReceipt:
        """Forget what is wanted: in another process where this one is to stay small, for every text is looked at."""
        in_process = self._in_process(wanted)
        if self._runtime.worker is None or in_process:
            return self.forget_here(wanted, in_process, dry_run=dry_run)
        here = partial(self.forget_here, wanted, dry_run=dry_run)
        receipt = self._runtime.worker.run("forget", here, wanted=wanted, dry_run=dry_run)
        if not dry_run:
            self._runtime.forget_caches()
        return receipt

    def forget_here(self, wanted: Wanted, in_process: Sequence[StoredMemory] = (), *, dry_run: bool) -> ForgetReceipt:
        from commonplace.erasure.erase import forget

        if not dry_run:
            self._runtime.before()
            if wanted.archived_by is not None:
                self._let_graph_know(wanted.archived_by)
        receipt = forget(self.erasure_runtime(), self._namespace, wanted, in_process=in_process, dry_run=dry_run)
        if not dry_run:
            if in_process:
                self._runtime.ultra.erase([memory.owner.id for memory in in_process])
            self._runtime.after()
        return receipt

    def _let_graph_know(self, by: float) -> None:
        """Let the graph take live memories in that it knew by sources alone which were archived long ago and go now."""
        from commonplace.erasure.select import archived_by

        feed = self._runtime.feed
        going = set() if feed is None else set(archived_by(self._store, self._namespace, by))
        if feed is None or not going:
            return
        live = [
            each for each in self._store.memories(self._namespace, Selection(order="id")) if each.expired_at is None
        ]
        made = [each.owner.id for each in live if not going.isdisjoint(each.record.derived_from)]
        if made:
            with self._store.change_memories(self._namespace) as change:
                feed.follow(change, made)

    def wanted(self, given: Mapping[str, object]) -> Wanted:
        """Return what is to be forgotten, by the one name that has a value."""
        from commonplace.erasure.select import Wanted

        named = {name: value for name, value in given.items() if value is not None}
        if len(named) != 1:
            *others, last = named or ["nothing"]
            many = f"{', '.join(others)} and {last} cannot be combined"
            what = many if others else "nothing was selected"
            raise UsageError(what, remedy=f"give exactly one of {', '.join(given)}")
        [(name, value)] = named.items()
        if name == "id":
            ids = [value] if isinstance(value, str) else list(series("id", value))  # type: ignore[arg-type]
            for each in ids:
                reject_invalid_id(each)
            if not ids:
                raise UsageError("the list of ids is empty", remedy="name what is to be forgotten")
            return Wanted(ids=tuple(dict.fromkeys(ids)))
        if name == "path":
            return Wanted(path=self._stored_path(value))
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{name} is {value!r:.80}", remedy="give a text that is not empty")
        chosen: dict[str, Any] = {name: value}
        return Wanted(**chosen)

    def _stored_path(self, path: object) -> str:
        """Return the path under which an artifact is stored, given as such or as people name a file."""
        if not isinstance(path, str | Path) or not str(path).strip():
            raise UsageError(f"path is {path!r:.80}", remedy="name an indexed file")
        written = Path(path).as_posix()
        stored = {owner.path for _, owner in self._store.artifacts(self._namespace)}
        if written in stored:
            return written
        absolute = Path(path).expanduser().absolute()
        if self._runtime.project is not None and absolute.is_relative_to(self._runtime.project):
            return absolute.relative_to(self._runtime.project).as_posix()
        return absolute.as_posix()

    def _in_process(self, wanted: Wanted) -> list[StoredMemory]:
        """Return the memories of this process that are to be forgotten."""
        if not self._runtime.has_ultra or any(
            each is not None for each in (wanted.path, wanted.archived_by, wanted.agent)
        ):
            return []
        from commonplace.erasure.select import selection

        return self._runtime.ultra.all(selection(wanted))

    def erasure_runtime(self) -> ErasureRuntime:
        from commonplace.erasure.resume import ErasureRuntime

        return ErasureRuntime(
            directory=self._runtime.directory,
            store=self._store,
            index=self._runtime.index,
            clock=self._runtime.now,
            is_served=self._runtime.is_served,
            pages=self._runtime.journal,
            forget_caches=self._runtime.forget_caches,
            progress=self._runtime.progress,
            follow=None if self._runtime.feed is None else self._runtime.feed.follow,
            ground=lambda: self._runtime.graph_runtime(True),
            untell=self._untell(),
            leave=None if self._settings.graph.backend == "local" else self._leave,
        )

    def _untell(self) -> Callable[[MemoryChange, str, str], None] | None:
        """Return what takes note that Graphiti is to delete an episode too, where it is told of them."""
        if self._settings.graph.backend == "local":
            return None
        from commonplace.graph.graphiti.outbox import Outbox

        return Outbox(self._store, self._namespace, self._runtime.now).deleted

    def _leave(self, name: str, known: Set[str], is_rehearsal: bool) -> Left:
        """Take a namespace away from Graphiti; return what is to be told of it, and what is left there."""
        from commonplace.engine.graphiti import leave

        return leave(self._store, name, self._settings.graph, known, is_rehearsal=is_rehearsal)
