"""Run agents one after the other and tell what came of it. It knows no rule of any agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from commonplace.consolidation.base import failure_of
from commonplace.consolidation.results import DecayResult, MergeResult
from commonplace.consolidation.runs import remember
from commonplace.errors import UsageError
from commonplace.ledger.tending import process_is_gone, tend
from commonplace.types.ledger import AGENTS, Agent

if TYPE_CHECKING:
    from commonplace.consolidation.base import ConsolidationAgent, Failure
    from commonplace.consolidation.confidence import ConfidenceConfig
    from commonplace.consolidation.ground import Book, Ground
    from commonplace.consolidation.results import Result

_NAMED: Final = ("memory_id", "memory_ids", "source_ids", "from_memory_id", "to_memory_id")

_PLACES: Final[dict[Agent, str]] = {
    "decay": "decay:DecayAnalyzer",
    "cluster": "cluster:ClusterDetector",
    "merge": "merge:SemanticMerge",
    "promote": "promote:LTMPromoter",
    "relations": "relate:RelationshipDiscovery",
}


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run of agents came to.

    Attributes:
        run: the UUID under which what it applied can be undone.
        results: by agent, in the order in which they ran.
        skipped: how many items came to nothing.
        applied: how many changes were made, each of which can be undone.
        lost: the golden queries that the run lost, for which everything that it had applied was undone again.
    """

    run: str
    dry_run: bool
    results: Mapping[Agent, tuple[Result, ...]]
    errors: tuple[Failure, ...] = ()
    skipped: int = 0
    applied: int = 0
    lost: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, whose results are those of the contract."""
        told: dict[str, Any] = {
            "dry_run": self.dry_run,
            "results": {agent: [each.model_dump() for each in found] for agent, found in self.results.items()},
            "errors": [{"agent": each.agent, "item": each.item, "error": each.error} for each in self.errors],
            "skipped": self.skipped,
            "applied": self.applied,
            "run": self.run,
        }
        return {**told, "lost": list(self.lost)} if self.lost else told


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a run was asked for; see `Engine.consolidate`."""

    agents: tuple[Agent, ...] = AGENTS
    dry_run: bool = False
    rate_limit: int = 100
    confidence: ConfidenceConfig | None = None
    run: str = field(default_factory=lambda: str(uuid4()))


def agents_of(given: Sequence[str] | None) -> tuple[Agent, ...]:
    """Return agents by their names, in the order in which they run; None is all of them.

    Raises:
        UsageError: there is no such agent.
    """
    if given is None:
        return AGENTS
    if isinstance(given, str):
        given = [given]
    for name in given:
        if name not in AGENTS:
            raise UsageError(
                f"the agent is {name!r:.80}", remedy=f"give one of {', '.join(AGENTS)}", parameters=("agents",)
            )
    return tuple(name for name in AGENTS if name in given)


def agent_of(name: Agent, book: Book, wanted: Wanted) -> ConsolidationAgent[Any]:
    """Return an agent, ready to run."""
    module, _, attribute = _PLACES[name].partition(":")
    made = getattr(import_module(f"commonplace.consolidation.{module}"), attribute)
    agent: ConsolidationAgent[Any] = made(wanted.dry_run, wanted.rate_limit, wanted.confidence, book=book)
    agent.run_id = wanted.run
    return agent


@dataclass(frozen=True, slots=True)
class _Rehearsed:
    """A book without the memories that agents before would have archived."""

    ground: Ground
    gone: frozenset[str]

    def consolidation_ground(self) -> Ground:
        return replace(self.ground, gone=self.gone)


def run(book: Book, wanted: Wanted) -> RunReport:
    """Run agents in their order; the failure of an item, or of a whole agent's scan, does not stop the others."""
    ground = book.consolidation_ground()
    begun_at = ground.now()
    if not wanted.dry_run:
        _tend(ground, wanted.rate_limit)
    results: dict[Agent, tuple[Result, ...]] = {}
    errors: list[Failure] = []
    skipped = 0
    gone: set[str] = set()
    for name in wanted.agents:
        agent = agent_of(name, _Rehearsed(ground, frozenset(gone)) if wanted.dry_run else book, wanted)
        try:
            found = agent.rehearse(results.get("cluster", ())) if wanted.dry_run else agent.run()
        except Exception as error:
            errors.append(failure_of(name, "", error))
            found = []
        if wanted.dry_run:
            gone.update(_archived(found))
        results[name] = tuple(found)
        errors += agent.failures
        skipped += agent.skipped
    applied = len(ground.store.ledger(ground.namespace).reversals(run=wanted.run))
    report = RunReport(wanted.run, wanted.dry_run, results, tuple(errors), skipped, applied)
    remember(ground, report, begun_at, wanted.agents)
    return report


def memories_of(result: Result) -> list[str]:
    """Return the ids of the memories that a result is about, without one that it makes."""
    named = result.model_dump(include=set(_NAMED))
    return [id_ for value in named.values() for id_ in ([value] if isinstance(value, str) else value)]


def _archived(results: Sequence[Result]) -> Iterator[str]:
    """Yield the memories that a run would archive, so that agents after it would not find them any more."""
    for each in results:
        is_merge = isinstance(each, MergeResult) and each.success
        if is_merge or (isinstance(each, DecayResult) and each.action == "gc"):
            yield from memories_of(each)


def _tend(ground: Ground, rate_limit: int) -> None:
    """Release claims that lapsed, open blocked issues again, and raise the urgency of old ones."""
    if ground.elsewhere is None:
        tend(ground.pace(rate_limit), ground.actor, is_gone=process_is_gone)


def process(book: Book, issue: str, wanted: Wanted) -> RunReport:
    """Do what an issue proposes, by the agent whose it is.

    Raises:
        NotFoundError: there is no such issue, it is not open, or a memory of it is not there any more.
        UsageError: it is of no agent, or asks for nothing that an agent does.
    """
    ground = book.consolidation_ground()
    found = ground.issues.get(issue)
    name = next((each for each in AGENTS if each == found.agent), None)
    if name is None:
        raise UsageError(
            f"issue {issue!r:.80} is of no agent of consolidation",
            remedy="name one that `commonplace ledger list --agent` shows",
        )
    begun_at = ground.now()
    result = agent_of(name, book, wanted).process_issue(issue)
    applied = len(ground.store.ledger(ground.namespace).reversals(run=wanted.run))
    report = RunReport(wanted.run, wanted.dry_run, {name: (result,)}, applied=applied)
    remember(ground, report, begun_at, (name,))
    return report
