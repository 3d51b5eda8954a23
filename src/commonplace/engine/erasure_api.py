"""The calls of an engine that forget. It parses and passes on; what goes and how it is proved is in `forgetting`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.engine.runtime import Workings
from commonplace.errors import UsageError
from commonplace.memory.validate import reject_invalid_id, series
from commonplace.retention import DAY_S
from commonplace.store.contract import MemoryChange
from commonplace.text.tokens import clear_cache
from commonplace.types import Selection, StoredMemory

if TYPE_CHECKING:
    from commonplace.erasure.receipt import ForgetReceipt
    from commonplace.erasure.select import Wanted
    from commonplace.erasure.steps import ErasureRuntime

MOST_DAYS = 36_500.0


class Forgetting(Workings):
    """The part of `Engine` that forgets."""

    def forget(
        self,
        id: str | Sequence[str] | None = None,  # noqa: A002 - the name of the field
        *,
        tag: str | None = None,
        source: str | None = None,
        session: str | None = None,
        path: str | Path | None = None,
        agent: str | None = None,
        dry_run: bool = False,
    ) -> ForgetReceipt:
        """Delete memories, an artifact, or an agent's knowledge, with every copy in the store, and prove it.

        Every version goes, live or archived, with passages, vectors, links, Markdown and log lines, and so do memories
        that carry its words on: those that were derived from it, and archived ones that it was merged from; others that
        were merged with it are active again. With an
        episode goes what only it supported of the graph, with an entity every fact about it. Then every file of the
        store is searched for the words. What another process still holds open is listed as waiting, and finished by
        `doctor`. Nothing brings it back but a backup.

        Args:
            id: of a memory, an artifact, a document or an item of knowledge, an episode, an entity or a fact of
                the graph, or a list of such; each must be there.
            tag, source, session: of memories, and of documents that are no files.
            path: of an indexed file; the file itself stays, and is indexed again unless it is ignored.
            agent: whose knowledge goes, what was deleted of it and the agent's context with it.
            dry_run: tell what would go, and change nothing.

        Raises:
            NotFoundError: nothing matches. Nothing was changed.
            StoreBusyError: another process held the store, or was forgetting, for too long.
            UsageError: not exactly one of `id`, `tag`, `source`, `session`, `path`, `agent` is given, or one is empty.
        """
        wanted = self._wanted(id, {"tag": tag, "source": source, "session": session, "path": path, "agent": agent})
        return self._forget(wanted, dry_run=dry_run)

    def forget_namespace(self, name: str, *, confirm: str, dry_run: bool = False) -> ForgetReceipt:
        """Delete a namespace with all it holds, and prove that nothing of it is left; as `forget` does.

        Args:
            name: any namespace of this store.
            confirm: the same name once more.

        Raises:
            NotFoundError: there is no namespace of that name.
            UsageError: the two names differ. Nothing was changed.
        """
        from commonplace.erasure.erase import forget_namespace

        if name != confirm:
            raise UsageError(
                f"the namespace is {name!r} and what confirms it is {confirm!r}; nothing was forgotten",
                remedy="give its exact name twice",
            )
        receipt = forget_namespace(self._place(), name, dry_run=dry_run)
        if not dry_run and name == self.namespace and self._has_ultra:
            self._ultra.erase([memory.owner.id for memory in self._ultra.all(Selection())])
        return receipt

    def gc(self, older_than_days: float | None = None, *, dry_run: bool = False) -> ForgetReceipt:
        """Forget what was archived, or deleted of agents' knowledge, long ago, in one run with one receipt.

        What is live never goes. What was derived from an archived memory stays. Where nothing is old enough the
        receipt has no id, and none is kept.

        Args:
            older_than_days: how long ago it was archived, 0–36,500; None is the setting memory.gc_after, 30.

        Raises:
            UsageError: the number of days is out of its range.
        """
        from commonplace.erasure.select import Wanted

        days = self.settings.memory.gc_after if older_than_days is None else older_than_days
        if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= MOST_DAYS:
            raise UsageError(f"older_than_days is {days!r}", remedy=f"give a number from 0 to {MOST_DAYS:,.0f}")
        return self._forget(Wanted(archived_by=self._now() - days * DAY_S), dry_run=dry_run)

    def receipts(self) -> list[ForgetReceipt]:
        """Return the receipts of what was forgotten in this namespace, oldest first."""
        from commonplace.erasure.receipt import RECEIPT, STORE_SPACE, receipt_of

        notes = [*self._store.notes(self.namespace, RECEIPT), *self._store.notes(STORE_SPACE, RECEIPT)]
        found = [receipt for note in notes if (receipt := receipt_of(note)).namespace == self.namespace]
        return sorted(found, key=lambda receipt: (receipt.at, receipt.id))

    def _forget(self, wanted: Wanted, *, dry_run: bool) -> ForgetReceipt:
        """Forget what is wanted: in another process where this one is to stay small, for every text is looked at."""
        in_process = self._in_process(wanted)
        if self._worker is None or in_process:
            return self._forget_here(wanted, in_process, dry_run=dry_run)
        here = partial(self._forget_here, wanted, dry_run=dry_run)
        receipt = self._worker.run("forget", here, wanted=wanted, dry_run=dry_run)
        if not dry_run:
            self._forget_caches()
        return receipt

    def _forget_here(self, wanted: Wanted, in_process: Sequence[StoredMemory] = (), *, dry_run: bool) -> ForgetReceipt:
        from commonplace.erasure.erase import forget

        if not dry_run:
            self._before()
            if wanted.archived_by is not None:
                self._let_graph_know(wanted.archived_by)
        receipt = forget(self._place(), self.namespace, wanted, in_process=in_process, dry_run=dry_run)
        if not dry_run:
            if in_process:
                self._ultra.erase([memory.owner.id for memory in in_process])
            self._after()
        return receipt

    def _let_graph_know(self, by: float) -> None:
        """Let the graph take live memories in that it knew by sources alone which were archived long ago and go now."""
        from commonplace.erasure.select import archived_by

        feed = self._feed
        going = set() if feed is None else set(archived_by(self._store, self.namespace, by))
        if feed is None or not going:
            return
        live = [each for each in self._store.memories(self.namespace, Selection(order="id")) if each.expired_at is None]
        made = [each.owner.id for each in live if not going.isdisjoint(each.record.derived_from)]
        if made:
            with self._store.change_memories(self.namespace) as change:
                feed.follow(change, made)

    def _wanted(self, id_: str | Sequence[str] | None, named: dict[str, str | Path | None]) -> Wanted:
        from commonplace.erasure.select import Wanted

        given = {name: value for name, value in {"id": id_, **named}.items() if value is not None}
        if len(given) != 1:
            *others, last = given or ["nothing"]
            many = f"{', '.join(others)} and {last} are given to forget by, of which only one can be"
            what = many if others else f"{last} is given to forget by"
            raise UsageError(what, remedy=f"give exactly one of id, {', '.join(named)}")
        [(name, value)] = given.items()
        if name == "id":
            ids = [value] if isinstance(value, str) else list(series("id", value))  # type: ignore[arg-type]
            for each in ids:
                reject_invalid_id(each)
            if not ids:
                raise UsageError("the list of ids is empty", remedy="name what is to be forgotten")
            return Wanted(ids=tuple(dict.fromkeys(ids)))
        if name == "path":
            return Wanted(path=self._stored_path(value))  # type: ignore[arg-type] # one of the two that a path may be
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{name} is {value!r:.80}", remedy="give a text that is not empty")
        return Wanted(
            tag=value if name == "tag" else None,
            source=value if name == "source" else None,
            session=value if name == "session" else None,
            agent=value if name == "agent" else None,
        )

    def _stored_path(self, path: str | Path) -> str:
        """Return the path under which an artifact is stored, given as such or as people name a file."""
        if not isinstance(path, str | Path) or not str(path).strip():
            raise UsageError(f"path is {path!r:.80}", remedy="name an indexed file")
        written = Path(path).as_posix()
        stored = {owner.path for _, owner in self._store.artifacts(self.namespace)}
        if written in stored:
            return written
        absolute = Path(path).expanduser().absolute()
        if self.project is not None and absolute.is_relative_to(self.project):
            return absolute.relative_to(self.project).as_posix()
        return absolute.as_posix()

    def _in_process(self, wanted: Wanted) -> list[StoredMemory]:
        """Return the memories of this process that are to be forgotten."""
        if not self._has_ultra or any(each is not None for each in (wanted.path, wanted.archived_by, wanted.agent)):
            return []
        return self._ultra.all(
            Selection(
                ids=wanted.ids,
                tags=() if wanted.tag is None else (wanted.tag,),
                sources=() if wanted.source is None else (wanted.source,),
                sessions=() if wanted.session is None else (wanted.session,),
            )
        )

    def _place(self) -> ErasureRuntime:
        from commonplace.erasure.steps import ErasureRuntime

        return ErasureRuntime(
            directory=self.directory,
            store=self._store,
            index=self._index,
            clock=self._now,
            pages=self._mirror,
            forget_caches=self._forget_caches,
            progress=self._progress,
            follow=None if self._feed is None else self._feed.follow,
            ground=lambda: self._graph_ground(True),
            untell=self._untell(),
            leave=None if self.settings.graph.backend == "local" else self._leave,
        )

    def _untell(self) -> Callable[[MemoryChange, str, str], None] | None:
        """Return what takes note that Graphiti is to delete an episode too, where it is told of them."""
        if self.settings.graph.backend == "local":
            return None
        from commonplace.graph.graphiti.outbox import Outbox

        return Outbox(self._store, self.namespace, self._now).deleted

    def _leave(self, name: str, episodes: int, is_rehearsal: bool) -> tuple[Sequence[str], Sequence[str]]:
        """Take a namespace away from Graphiti; return what is to be told of it, and what is left there."""
        from commonplace.engine.graphiti import leave

        left = leave(self._store, name, self.settings.graph, episodes, is_rehearsal=is_rehearsal)
        return left.notices, left.outside

    def _forget_caches(self) -> None:
        """Drop what this process keeps of questions, answers and words."""
        # What is under way goes on with the old one, and lets it go. The keeper is made anew with it.
        self._searcher = self._searcher_of(self._store, self._index)
        self._tokens.release()
        clear_cache()
