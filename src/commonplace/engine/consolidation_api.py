"""Run consolidation and health checks over an engine's memories; open its ledger."""

from __future__ import annotations

import getpass
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import replace
from commonplace.engine.runtime import Service, made_once
from commonplace.errors import CommonplaceError
from commonplace.models.contract import TokenizedText
from commonplace.models.registry import for_kind
from commonplace.types import Kind, Selection

if TYPE_CHECKING:
    from commonplace.consolidation.runner import RunOptions, RunReport
    from commonplace.consolidation.runtime import ConsolidationRuntime
    from commonplace.engine.engine import Engine
    from commonplace.health.examine import Health
    from commonplace.health.golden import GoldenQuery
    from commonplace.ledger.ledger import Ledger
    from commonplace.types.ledger import Verdict


def _person() -> str:
    """Return the name of the machine's user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"  # in a container a user may have a number and no name


_log = logging.getLogger(__name__)


class ConsolidationApi(Service):
    """Consolidates memories, and keeps the ledger of it. Safe for threads."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine._runtime)
        self._search = engine.search

    def consolidate(self, options: RunOptions, golden: Path | None) -> RunReport:
        from commonplace.consolidation.runner import run
        from commonplace.consolidation.undo import undo
        from commonplace.health.golden import asked, lost

        queries = self.golden_queries(golden)
        self._runtime.backlog.drain(self._runtime.progress)  # what has no vector would seem like nothing
        before = asked(queries, self._found)
        try:
            report = run(self, options)
        except KeyboardInterrupt as stopped:
            if self._store.ledger(self._namespace).reversals(run=options.run):
                stopped.add_note(f"undo what was done by then: commonplace consolidate undo {options.run}")
            raise
        gone = lost(before, asked(queries, self._found)) if report.applied and not options.dry_run else ()
        if not gone:
            return report
        undo(self.consolidation_runtime(), options.run)
        return replace(report, lost=gone)

    def health(self, golden: Path | None) -> Health:
        from commonplace.consolidation.vault import Vault
        from commonplace.erasure.resume import memories_of_notes
        from commonplace.health.examine import HealthRuntime, examine
        from commonplace.health.golden import asked

        queries = self.golden_queries(golden)
        examined = HealthRuntime(
            store=self._store,
            namespace=self._namespace,
            project=self._runtime.project,
            retention=self._runtime.retention,
            now=self._runtime.now(),
            notes=memories_of_notes(self._runtime.directory, Vault(self._runtime.directory, self._namespace).folder),
            issues=self.ledger.counts(),
            tokens=self._runtime.tokens,
        )
        return examine(examined, asked(queries, self._found))

    def consolidation_runtime(self) -> ConsolidationRuntime:
        from commonplace.consolidation.runtime import ConfidenceConfig, ConsolidationRuntime, scale_of
        from commonplace.consolidation.vault import NoVault, Vault
        from commonplace.ledger.ledger import actor_of
        from commonplace.memory.content import writes_of

        chosen = self._settings.consolidation
        return ConsolidationRuntime(
            store=self._store,
            namespace=self._namespace,
            directory=self._runtime.directory,
            vault=(NoVault if self._store.is_on_server else Vault)(self._runtime.directory, self._namespace),
            retention=self._runtime.retention,
            confidence=ConfidenceConfig(chosen.auto_threshold, chosen.log_threshold),
            now=self._runtime.now,
            sleep=self._wait,
            write_of=lambda owner, record: writes_of(self._runtime.destination(), [(owner, record)])[0],
            stamp=lambda: self._runtime.destination().embedder.stamp,
            calibrated=scale_of(self._runtime.embedder.stamp.name),
            likeness=self._likeness,
            actor=actor_of("consolidation"),
            issues=self.ledger,
            external=None if self._settings.ledger.backend == "store" else self.ledger,
            after=self._runtime.after,
            progress=self._runtime.progress or (lambda *_: None),
            max_bytes=self._settings.memory.max_bytes,
        )

    def _likeness(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return pairwise similarities of texts; the identity matrix if the embedder fails."""
        from commonplace.consolidation.runtime import scale_of

        embedder = for_kind(self._runtime.destination().embedder, "memory")
        try:
            vectors = embedder.embed([TokenizedText(text, self._runtime.tokens.tokenize(text)) for text in texts])
        except CommonplaceError as error:
            _log.warning("sentences could not be compared, and all are kept: %s", error)
            return np.eye(len(texts), dtype=np.float32)
        return scale_of(embedder.stamp.name)(vectors @ vectors.T)

    def golden_queries(self, file: Path | None = None) -> list[GoldenQuery]:
        from commonplace.health.golden import kept, read_golden

        queries = [] if file is None else read_golden(file)
        self._runtime.before()
        return queries + kept(self._store.ledger(self._namespace))

    def mark(self, query: str, id_: str, verdict: Verdict) -> GoldenQuery:
        from commonplace.health.golden import mark
        from commonplace.ledger.rules import Doer

        self._runtime.before()
        with self._store.change_memories(self._namespace) as change:
            return mark(change, query, id_, verdict, Doer(_person(), self._runtime.now()))

    def _found(self, golden: GoldenQuery) -> tuple[set[str], set[str]]:
        """Return what the first hits of a query are, and which of them are shown where some must not be."""
        from commonplace.health.golden import LOOKED_AT

        kinds: Sequence[Kind] | None = ("memory",) if golden.issue else None

        def names(min_score: float | None) -> set[str]:
            """Return the ids of memories and of their sources, and the paths."""
            hits = self._search(golden.query, LOOKED_AT, kinds, min_score=min_score).hits
            found = {name for hit in hits for name in (hit.owner_id, hit.path) if name}
            memories = self._store.memories(self._namespace, Selection(ids=tuple(found))) if found else []
            return found.union(*(memory.record.derived_from for memory in memories))

        return names(0.0), names(None) if golden.irrelevant else set()

    def _wait(self, seconds: float) -> None:
        if self._runtime.progress is not None:
            self._runtime.progress("waiting for the rate limit", 0, 0)
        time.sleep(seconds)

    @made_once
    def ledger(self) -> Ledger:
        if self._settings.ledger.backend == "bd":
            from commonplace.ledger.bd import open_bd

            return open_bd(self._settings.ledger.bd, (self._runtime.project or Path.cwd()).absolute())
        from commonplace.ledger.ledger import Ledger

        return Ledger(self._store, self._namespace, self._runtime.now, _person())
