"""Run consolidation and health checks over an engine's memories."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.consolidation.runtime import ConfidenceConfig, ConsolidationRuntime, scale_of
from commonplace.consolidation.vault import Vault
from commonplace.dataclasses import replace
from commonplace.engine.runtime import EngineApi
from commonplace.erasure.copies import memories_of_notes
from commonplace.errors import CommonplaceError
from commonplace.health import golden
from commonplace.health.examine import Health, examine
from commonplace.health.golden import GoldenQuery
from commonplace.ledger.ledger import actor_of
from commonplace.memory.admission import writes_of
from commonplace.memory.validate import path_value
from commonplace.models.contract import TokenizedText
from commonplace.models.registry import for_kind
from commonplace.types import Kind, Selection

if TYPE_CHECKING:
    from commonplace.consolidation.runner import RunOptions, RunReport
    from commonplace.engine.engine import Engine

_log = logging.getLogger(__name__)


class ConsolidationApi(EngineApi):
    """Consolidates memories. Safe for threads."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine._runtime)
        self._engine = engine

    def consolidate(self, options: RunOptions, file: str | Path | None) -> RunReport:
        from commonplace.consolidation.runner import run
        from commonplace.consolidation.undo import undo

        queries = self.golden_queries(file)
        self._runtime.backlog.drain(self._runtime.progress)  # a memory without a vector would be like no other
        before = golden.ask_all(queries, self._names_found)
        try:
            report = run(self, options)
        except KeyboardInterrupt as stopped:
            if self._store.ledger(self._namespace).reversals(run=options.run):
                stopped.add_note(f"undo what was done by then: commonplace consolidate undo {options.run}")
            raise
        if options.dry_run or not report.applied:
            return report
        if lost_queries := golden.find_lost(before, golden.ask_all(queries, self._names_found)):
            undo(self.consolidation_runtime(), options.run)
        return replace(report, lost=lost_queries) if lost_queries else report

    def health(self, file: str | Path | None) -> Health:
        queries, runtime = self.golden_queries(file), self._runtime
        return examine(
            self._store,
            self._namespace,
            golden.ask_all(queries, self._names_found),
            project=runtime.project,
            retention=runtime.retention,
            now=runtime.now(),
            notes=memories_of_notes(runtime.directory, Vault(runtime.directory, self._namespace).folder),
            issues=self._engine.ledger.counts(),
        )

    def consolidation_runtime(self) -> ConsolidationRuntime:
        runtime, ledger, settings = self._runtime, self._engine.ledger, self._settings.consolidation
        return ConsolidationRuntime(
            store=self._store,
            namespace=self._namespace,
            directory=runtime.directory,
            vault=None if self._store.is_on_server else Vault(runtime.directory, self._namespace),
            retention=runtime.retention,
            confidence=ConfidenceConfig(settings.auto_threshold, settings.log_threshold),
            now=runtime.now,
            sleep=self._wait,
            write_of=lambda owner, record: writes_of(runtime.destination(), [(owner, record)])[0],
            stamp=lambda: runtime.destination().embedder.stamp,
            calibrated=scale_of(runtime.embedder.stamp.name),
            likeness=self._likeness,
            actor=actor_of("consolidation"),
            issues=ledger,
            external=None if self._settings.ledger.backend == "store" else ledger,
            after=runtime.after_write,
            progress=runtime.progress or (lambda *_: None),
            max_bytes=self._settings.memory.max_bytes,
        )

    def _likeness(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return pairwise similarities of texts; the identity matrix if the embedder fails."""
        embedder = for_kind(self._runtime.destination().embedder, "memory")
        try:
            vectors = embedder.embed([TokenizedText(text, self._runtime.tokens.tokenize(text)) for text in texts])
        except CommonplaceError as error:
            _log.warning("sentences could not be compared, and all are kept: %s", error)
            return np.eye(len(texts), dtype=np.float32)
        return scale_of(embedder.stamp.name)(vectors @ vectors.T)

    def golden_queries(self, file: str | Path | None = None) -> list[GoldenQuery]:
        queries = [] if file is None else golden.read_golden(path_value("golden", file))
        self._runtime.before_call()
        return queries + golden.stored_queries(self._store.ledger(self._namespace))

    def _names_found(self, query: GoldenQuery) -> tuple[set[str], set[str]]:
        """Return ids and paths of a query's first hits, and those above the floor if it names irrelevant memories."""
        kinds: Sequence[Kind] | None = ("memory",) if query.issue else None

        def names(min_score: float | None) -> set[str]:
            hits = self._engine.search(query.query, golden.MAX_HITS, kinds, min_score=min_score).hits
            names_found = {name for hit in hits for name in (hit.owner_id, hit.path) if name}
            memories = self._store.memories(self._namespace, Selection(ids=tuple(names_found))) if names_found else []
            return names_found.union(*(memory.record.derived_from for memory in memories))

        return names(0.0), names(None) if query.irrelevant else set()

    def _wait(self, seconds: float) -> None:
        if self._runtime.progress is not None:
            self._runtime.progress("waiting for the rate limit", 0, 0)
        time.sleep(seconds)
