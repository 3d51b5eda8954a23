"""The engine: everything a library, the command line or a server asks of one store."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from commonplace.engine.consolidation_api import Consolidating, Ledgering
from commonplace.engine.context_api import Informing
from commonplace.engine.erasure_api import Forgetting
from commonplace.engine.exchange_api import Exchanging, Mirroring
from commonplace.engine.graph_api import Graphing
from commonplace.engine.index_api import Indexing
from commonplace.engine.knowledge_api import Knowing
from commonplace.engine.memory_api import Reading, Relating, Remembering
from commonplace.engine.specialist_api import Specialising
from commonplace.engine.upgrade import Upgrading
from commonplace.types import Selection

if TYPE_CHECKING:
    from commonplace.engine.maintenance import DoctorReport, IndexStatus


class Engine(
    Consolidating,
    Graphing,
    Indexing,
    Knowing,
    Ledgering,
    Specialising,
    Informing,
    Reading,
    Remembering,
    Relating,
    Mirroring,
    Forgetting,
    Exchanging,
    Upgrading,
):
    """One store, seen from one namespace. Safe to call from several threads; made by `commonplace.open`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def index_status(self) -> IndexStatus:
        """Say what the store holds, what the index holds of it, and how large both are."""
        return self._upkeep.status(self.namespace)

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces of this store, sorted."""
        return [name for name in self._store.namespaces() if name]  # the notes of the store as a whole have none

    def move_memories(self, to: Engine) -> int:
        """Move every memory of this namespace, with its versions, links and use, into another store; return how many.

        They are forgotten here when they are there: whoever is stopped in between calls it again. One that somebody
        changes meanwhile stays here as well. What they say goes into the other store's graph.

        Raises:
            StoreBusyError: another process held one of the stores for too long.
            UsageError: something else has the id of one of them there. Nothing was moved.
        """
        from commonplace.engine.exchange_api import source_of_import
        from commonplace.exchange.import_ import Rules
        from commonplace.store.drafts import draft

        def versions() -> dict[str, int]:
            return {each.owner.id: each.number for each in self._store.memories(self.namespace, Selection())}

        before = versions()
        if not before:
            return 0
        with draft(self.directory, to.directory / "moved") as base:
            path = base.with_name(f"{base.name}.jsonl")
            self.export(path, kinds=["memory"])
            to._take_in(source_of_import(path, "auto", to.settings, to._now()), Rules(), has_graph=False)
        ids = [id_ for id_, number in versions().items() if before.get(id_) == number]
        if ids:
            self.forget(ids)
        return len(ids)

    def export_index(self) -> dict[str, Any]:
        """Return the artifacts of this namespace in the form of the auto-retrieval contract's artifact index."""
        return self._upkeep.export(self.namespace)

    def doctor(self, *, mend: bool = True, secrets: bool = False) -> DoctorReport:
        """Check store, index and model data, and mend what can be mended: a faulty index is rebuilt.

        Args:
            secrets: also look for secrets in all that is stored, in every namespace, and in the Markdown pages; with
                `mend` they are replaced by placeholders, and no file of the store holds them any more. A run that was
                ended before it was through is done again, also where this is not asked for.
        """
        from commonplace.engine.open import open_engine
        from commonplace.engine.secrets import PART, Secrets, was_cut_short

        def sync(namespace: str) -> None:
            if self._follows or self._store.blocks(namespace):
                beside = open_engine(
                    self.directory, namespace, self._embedder, settings=self.settings, clock=self._clock
                )
                with beside:
                    beside.sync()

        is_wanted = secrets or (mend and was_cut_short(self._store))
        found = Secrets(self._place(), self._destination, sync).examine(mend=mend) if is_wanted else []
        report = self._upkeep.examine(mend=mend, pages=self._mirror)
        checked = (*report.checked, "embedder", *([PART] if is_wanted else []))
        of_embedder = self._examine_embedder(mend=mend)
        return replace(report, checked=checked, findings=(*report.findings, *of_embedder, *found))
