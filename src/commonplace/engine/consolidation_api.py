"""The calls of an engine that consolidate memories. What agents do and how it is undone is in `consolidation`."""

from __future__ import annotations

import getpass
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.engine.runtime import Workings
from commonplace.engine.search_api import Finding
from commonplace.errors import CommonplaceError
from commonplace.memory.validate import boolean, int_in, one_of, path_value, reject_invalid_id, short_text
from commonplace.models.contract import TokenizedText
from commonplace.models.registry import for_kind
from commonplace.types import Selection
from commonplace.types.ledger import AGENTS

if TYPE_CHECKING:
    from commonplace.consolidation.runner import ConsolidationRun, ConsolidationStatus, RunReport
    from commonplace.consolidation.runtime import ConfidenceConfig, ConsolidationRuntime
    from commonplace.consolidation.undo import Undone
    from commonplace.health.report import Health
    from commonplace.ledger.bd import BdLedger
    from commonplace.ledger.ledger import Ledger


class Ledgering(Workings):
    """The part of `Engine` that keeps the list of what consolidation did or proposes."""

    @cached_property
    def ledger(self) -> Ledger | BdLedger:
        """The issues of this namespace, in the store or, where the settings say so, in beads.

        Raises:
            UsageError: the settings name beads, and there is no program or no database of it.
        """
        if self.settings.ledger.backend == "bd":
            from commonplace.ledger.bd import open_bd

            return open_bd(self.settings.ledger.bd, (self.project or Path.cwd()).absolute())
        from commonplace.ledger.ledger import Ledger

        return Ledger(self._store, self.namespace, self._now, _person())


def _person() -> str:
    """Return who asks, by the name that the machine knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"  # in a container a user may have a number and no name


_log = logging.getLogger(__name__)

MOST_A_MINUTE = 1_000_000


class Consolidating(Ledgering, Finding):
    """The part of `Engine` that is about consolidation."""

    def consolidate(
        self,
        agents: Sequence[str] | None = None,
        dry_run: bool = False,
        *,
        rate_limit: int | None = None,
        confidence: ConfidenceConfig | None = None,
        golden: str | Path | None = None,
    ) -> RunReport:
        """Run agents over the memories of this namespace: decay, cluster, merge, promote, relations, in this order.

        What they are sure of they do, the rest they propose as issues of the ledger; `undo_consolidation` takes back
        what an issue or the whole run changed.

        Args:
            agents: which; None is all.
            dry_run: take the same way, and stop before anything is written.
            rate_limit: the most operations a minute over all processes, which a run waits for; 0 is without limit, None
                the setting consolidation.rate_limit.
            confidence: when to act; None is what the settings say.
            golden: a file of golden queries, JSON lines with `query` and `relevant`, a list of ids or paths. Where one
                does not find any more what it found before the run, all that the run applied is undone again.

        Raises:
            UsageError: there is no such agent, or a number is out of its range.
            KeyboardInterrupt: it was stopped; a note on it tells how to undo what was done by then.
        """
        from commonplace.consolidation.runner import Wanted, agents_of, run
        from commonplace.consolidation.undo import undo
        from commonplace.health.report import asked, lost, read_golden

        wanted = Wanted(agents_of(agents), boolean("dry_run", dry_run), self._rate(rate_limit), confidence)
        queries = [] if golden is None else read_golden(path_value("golden", golden))
        self._before()
        self._backlog.drain(self._progress)  # what has no vector would seem like nothing
        before = asked(queries, self._found)
        try:
            report = run(self, wanted)
        except KeyboardInterrupt as stopped:
            ground = self.consolidation_ground()
            if ground.store.ledger(ground.namespace).reversals(run=wanted.run):
                stopped.add_note(f"undo what was done by then: commonplace consolidate undo {wanted.run}")
            raise
        gone = lost(before, asked(queries, self._found)) if report.applied and not dry_run else ()
        if not gone:
            return report
        undo(self.consolidation_ground(), wanted.run)
        return replace(report, lost=gone)

    def process_issue(self, issue: str, dry_run: bool = False, *, rate_limit: int | None = None) -> RunReport:
        """Do what an issue of an agent proposes, whatever the confidence, and close it.

        Where that fails the issue is blocked with the error, and the memories are as they were.

        Raises:
            NotFoundError: there is no such issue, it is not open, or a memory of it is not there any more.
            UsageError: it is of no agent, or asks for nothing that an agent does.
        """
        from commonplace.consolidation.runner import Wanted, process

        reject_invalid_id(issue)
        self._before()
        return process(self, issue, Wanted(dry_run=boolean("dry_run", dry_run), rate_limit=self._rate(rate_limit)))

    def undo_consolidation(self, id: str) -> Undone:  # noqa: A002 - the name of the field
        """Undo what an issue changed, or everything that still stands of a run, in one transaction.

        Raises:
            NotFoundError: there is no such issue or run, or nothing of it stands.
            UsageError: a later change rests on it, or a memory of it was changed by others since.
        """
        from commonplace.consolidation.undo import undo

        short_text("id", id)
        self._before()
        return undo(self.consolidation_ground(), id)

    def unmerge(self, id: str) -> Undone:  # noqa: A002 - the name of the field
        """Undo the merge that made a memory: its sources are exactly what they were.

        Raises:
            NotFoundError: no merge that stands made it.
            UsageError: a later change rests on it, or a memory of it was changed by others since.
        """
        from commonplace.consolidation.undo import undo_merge

        reject_invalid_id(id)
        self._before()
        return undo_merge(self.consolidation_ground(), id)

    def consolidation_status(self, agent: str | None = None, *, rate_limit: int | None = None) -> ConsolidationStatus:
        """Say how many issues of the agents wait, are in progress and are blocked, and what the rate limit leaves.

        Raises:
            UsageError: there is no such agent.
        """
        from commonplace.consolidation.runner import status_of

        if agent is not None:
            one_of("agent", agent, AGENTS)
        return status_of(self.consolidation_ground(), agent, self._rate(rate_limit))

    def consolidation_runs(self, limit: int = 20) -> list[ConsolidationRun]:
        """Return the last runs that changed, proposed or failed at anything, the latest first.

        `undo_consolidation` takes back what stands of one. Dry runs write nothing, so they are not among them.

        Args:
            limit: how many at most, 1–1000.

        Raises:
            UsageError: the limit is out of its range.
        """
        from commonplace.consolidation.runner import KEPT, latest

        int_in("limit", limit, 1, KEPT)
        self._before()
        return latest(self.consolidation_ground(), limit)

    def health(self, golden: str | Path | None = None) -> Health:
        """Examine the memories of this namespace: counts, and what a person may want to look at. It changes nothing.

        Args:
            golden: a file of golden queries, as for `consolidate`, that are asked too.

        Raises:
            NotFoundError: there is no such file.
            UsageError: it holds no golden queries.
        """
        from commonplace.consolidation.vault import Vault
        from commonplace.erasure.steps import memories_of_notes
        from commonplace.health.examine import HealthRuntime, examine
        from commonplace.health.report import asked, read_golden

        queries = [] if golden is None else read_golden(path_value("golden", golden))
        self._before()
        examined = HealthRuntime(
            store=self._store,
            namespace=self.namespace,
            project=self.project,
            fading=self._fading,
            now=self._now(),
            notes=memories_of_notes(self.directory, Vault(self.directory, self.namespace).folder),
            issues=self.ledger.counts(),
        )
        return examine(examined, asked(queries, self._found))

    def consolidation_ground(self) -> ConsolidationRuntime:
        """Return what agents of consolidation stand on, for those who write one of their own."""
        from commonplace.consolidation.runtime import ConfidenceConfig, ConsolidationRuntime
        from commonplace.consolidation.vault import Vault
        from commonplace.ledger.ledger import actor_of
        from commonplace.models.calibration import scale_of

        chosen = self.settings.consolidation
        return ConsolidationRuntime(
            store=self._store,
            namespace=self.namespace,
            directory=self.directory,
            vault=Vault(self.directory, self.namespace),
            fading=self._fading,
            confidence=ConfidenceConfig(chosen.auto_threshold, chosen.log_threshold),
            now=self._now,
            sleep=self._wait,
            write_of=self._keeper.write_of,
            stamp=lambda: self._destination().embedder.stamp,
            calibrated=scale_of(self._embedder.stamp.name),
            likeness=self._likeness,
            actor=actor_of("consolidation"),
            issues=self.ledger,
            elsewhere=None if self.settings.ledger.backend == "store" else self.ledger,
            after=self._after,
            progress=self._tell_progress,
            rate_limit=chosen.rate_limit,
        )

    def _likeness(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return how similar texts are to each other; where the embedder fails, each is like itself alone."""
        import numpy as np

        from commonplace.models.calibration import scale_of

        embedder = for_kind(self._destination().embedder, "memory")
        try:
            vectors = embedder.embed([TokenizedText(text, self._tokens.tokenize(text)) for text in texts])
        except CommonplaceError as error:
            _log.warning("sentences could not be compared, and all are kept: %s", error)
            return np.eye(len(texts), dtype=np.float32)
        return scale_of(embedder.stamp.name)(vectors @ vectors.T)

    def _found(self, query: str) -> set[str]:
        """Return what the first hits of a query are: ids of memories and of their sources, and paths."""
        from commonplace.health.report import LOOKED_AT

        hits = self.search(query, limit=LOOKED_AT, min_score=0.0).hits
        found = {name for hit in hits for name in (hit.owner_id, hit.path) if name}
        memories = self._store.memories(self.namespace, Selection(ids=tuple(found))) if found else []
        return found.union(*(memory.record.derived_from for memory in memories))

    def _wait(self, seconds: float) -> None:
        self._tell_progress("waiting for the rate limit", 0, 0)
        time.sleep(seconds)

    def _tell_progress(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)

    def _rate(self, given: int | None) -> int:
        if given is None:
            return self.settings.consolidation.rate_limit
        return int_in("rate_limit", given, 0, MOST_A_MINUTE)
