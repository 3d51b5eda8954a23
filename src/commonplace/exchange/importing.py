"""Take items into a store: all are looked at before any is written, and what is there already stays as it is.

Import something twice, or again after a crash in the middle, and nothing happens twice. It knows no file and no format.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from commonplace.errors import UsageError
from commonplace.exchange.comparing import Known
from commonplace.exchange.graph_comparing import Outcome, needs
from commonplace.exchange.graph_items import EntityItem, EpisodeItem, GraphItem, RelationItem
from commonplace.exchange.items import FactItem, Item, LinkItem, MemoryItem, OwnerItem, Problem, Remark, Source
from commonplace.exchange.knowledge_items import ContextItem, KnowledgeItem
from commonplace.exchange.ledger_items import IssueItem
from commonplace.exchange.writing import Into, Writer
from commonplace.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from commonplace.types import Progress

OnConflict = Literal["refuse", "skip", "replace"]
ON_CONFLICT: Final[tuple[OnConflict, ...]] = ("refuse", "skip", "replace")

MOST_NAMED: Final = 10
"""A message that refuses an import names so many items, a report all."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What an import does with what it does not simply add.

    Attributes:
        on_conflict: with an item that is there with other content.
        skip_problems: leave out what cannot be kept, in place of refusing all.
        is_dry_run: stop before the first write.
    """

    on_conflict: OnConflict = "refuse"
    skip_problems: bool = False
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the items of one sort; `unchanged` were there already, `skipped` with other content."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or in a dry run would do.

    Attributes:
        format: of what was imported.
        owners: artifacts and documents.
        knowledge, contexts: of agents.
        issues: of the ledger.
        episodes, entities, relations: of the graph.
        conflicts: names of what was there with other content, and was skipped or replaced.
        problems: what was left out because it cannot be kept.
        notices: one sentence each, for people.
    """

    format: str
    memories: Counts
    links: Counts
    owners: Counts
    knowledge: Counts
    contexts: Counts
    issues: Counts
    episodes: Counts
    entities: Counts
    relations: Counts
    conflicts: tuple[str, ...]
    problems: tuple[Problem, ...]
    is_dry_run: bool
    seconds: float
    notices: tuple[str, ...] = ()


def import_items(source: Source, into: Into, rules: Rules, *, progress: Progress | None = None) -> ImportReport:
    """Take in everything that a source holds, or nothing of it; see `Engine.import_`.

    Raises:
        UsageError: something cannot be kept, or is there with other content, and the rules do not say to go on.
            Nothing was written.
    """
    begun = time.perf_counter()
    survey = _surveyed(source, Known(into.store, into.namespace), rules)
    told: list[str] = []
    if not rules.is_dry_run:
        writer = Writer(into, is_replacing=rules.on_conflict == "replace")
        for number, item in enumerate(source.items()):
            if isinstance(item, Item) and number not in survey.left_out:
                writer.add(item)
            if progress and number % 256 == 0:
                progress("Importing", number, survey.items)
        writer.flush()
        told = [f"{notice} ({count:,} of the memories)" for notice, count in writer.notices.items()]
        if progress:
            progress("Importing", survey.items, survey.items)
    return _report(source.format, survey, rules, time.perf_counter() - begun, told)


def refuse_unfit(source: Source, rules: Rules) -> None:
    """Refuse what no store takes in, before one is made for it.

    Raises:
        UsageError: something cannot be kept, and the rules do not say to go on.
    """
    _surveyed(source, Known(SqliteStore.in_memory(), ""), rules)


@dataclass(slots=True)
class _Survey:
    """Looks at every item, against the others and against the store, and writes nothing.

    Attributes:
        left_out: numbers of the items, in their order, that cannot be kept.
        outcomes: by sort of item and outcome.
        namesakes: how many new entities have a name that another one has here.
    """

    known: Known
    items: int = 0
    problems: list[Problem] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    left_out: set[int] = field(default_factory=set)
    outcomes: Counter[tuple[type[Item], Outcome]] = field(default_factory=Counter)
    secrets: Counter[str] = field(default_factory=Counter)
    namesakes: int = 0
    _names: set[tuple[str, ...]] = field(default_factory=set)

    def look_at(self, items: Iterator[Item | Problem | Remark]) -> None:
        """Look at all items; links come last, when it is known which memories there are."""
        links: list[tuple[int, LinkItem]] = []
        for number, item in enumerate(items):
            self.items += 1
            if isinstance(item, Problem):
                self.problems.append(item)
            elif isinstance(item, Remark):
                self.remarks.append(item)
            elif isinstance(item, LinkItem):
                links.append((number, item))
            else:
                self._take(number, item)
        for number, link in links:
            self._take(number, link)

    def _take(self, number: int, item: Item) -> None:
        try:
            self._refuse_alone(item)
            outcome = self.known.outcome(item)
        except UsageError as error:
            self.left_out.add(number)
            self.problems.append(Problem(item.place, name_of(item), str(error)))
            return
        self._names.update(_keys(item))
        self.outcomes[type(item), outcome] += 1
        if isinstance(item, EntityItem) and outcome == "added":
            self.namesakes += self.known.has_namesake(item.entity)
        if outcome == "conflict":
            self.conflicts.append(name_of(item))
        self.secrets.update(set(_secrets(item)))

    def _refuse_alone(self, item: Item) -> None:
        """Refuse an item that comes twice, or that lacks what it needs of the others."""
        if not self._names.isdisjoint(_keys(item)):
            raise UsageError("it comes twice", remedy="give each once, the versions of a memory one after the other")
        if isinstance(item, LinkItem):
            for end in (item.link.source, item.link.target):
                if ("memory", end) not in self._names and not self.known.has_memory(end):
                    raise UsageError(f"there is no memory {end!r:.80}", remedy="import it too")
        elif isinstance(item, GraphItem):
            entities, episodes = needs(item)
            self._refuse_missing("entity", entities, self.known.has_entity)
            self._refuse_missing("episode", episodes, self.known.has_episode)

    def _refuse_missing(self, kind: str, ids: Sequence[str], is_here: Callable[[str], bool]) -> None:
        for id_ in ids:
            if (kind, id_) not in self._names and not is_here(id_):
                raise UsageError(f"there is no {kind} {id_!r:.80}", remedy="import it too, before this one")


def _surveyed(source: Source, known: Known, rules: Rules) -> _Survey:
    survey = _Survey(known)
    survey.look_at(source.items())
    _refuse(survey, rules)
    return survey


def name_of(item: Item) -> str:
    """Return what an item is called in messages."""
    if isinstance(item, LinkItem):
        return f"link from {item.link.source!r:.80} to {item.link.target!r:.80} ({item.link.type!r:.80})"
    if isinstance(item, GraphItem | FactItem):
        return "{} {!r:.80}".format(*_key_of_part(item))
    if isinstance(item, KnowledgeItem):
        return f"knowledge {item.id!r:.80} of agent {item.agent!r:.80}"
    if isinstance(item, ContextItem):
        return f"the context of agent {item.context.name!r:.80}"
    if isinstance(item, IssueItem):
        return f"issue {item.id!r:.80}"
    owner = item.owner if isinstance(item, OwnerItem) else item.latest.owner
    return f"{owner.kind} {owner.id!r:.80}"


def _keys(item: Item) -> list[tuple[str, ...]]:
    """Return what no two items of an import may have in common."""
    if isinstance(item, LinkItem):
        return [("link", item.link.source, item.link.target, item.link.type)]
    if isinstance(item, MemoryItem):
        return [("memory", item.id)]
    if isinstance(item, GraphItem | FactItem):
        return [_key_of_part(item)]
    if isinstance(item, KnowledgeItem):
        return [("knowledge", item.id)]
    if isinstance(item, ContextItem | IssueItem):
        return [("issue", item.id) if isinstance(item, IssueItem) else ("context", item.context.name)]
    owner = item.owner
    return [(owner.kind, owner.id), *([("path", owner.kind, owner.path)] if owner.path else [])]


def _key_of_part(item: GraphItem | FactItem) -> tuple[str, str]:
    if isinstance(item, FactItem):
        return "fact", item.fact.fact
    if isinstance(item, EpisodeItem):
        return "episode", item.episode.id
    return ("entity", item.entity.id) if isinstance(item, EntityItem) else ("relation", item.relation.id)


def _secrets(item: Item) -> Sequence[str]:
    if isinstance(item, MemoryItem):
        return [kind for version in item.versions for kind in version.secrets]
    return () if isinstance(item, LinkItem) else item.secrets


def _refuse(survey: _Survey, rules: Rules) -> None:
    if survey.problems and not rules.skip_problems:
        raise UsageError(
            f"{_items(survey.problems)} cannot be kept, nothing was imported: {_some(survey.problems)}",
            remedy="correct them, or import the others with skip_problems=True (--skip-problems)",
        )
    if survey.conflicts and rules.on_conflict == "refuse":
        raise UsageError(
            f"{_items(survey.conflicts)} {'is' if len(survey.conflicts) == 1 else 'are'} here with other content,"
            f" nothing was imported: {_some(survey.conflicts)}",
            remedy="keep what is here with on_conflict='skip' (--on-conflict skip), or replace it with 'replace'",
        )


def _items(counted: Sequence[object]) -> str:
    return f"{len(counted):,} item{'' if len(counted) == 1 else 's'}"


def _some(named: Sequence[object]) -> str:
    more = [f"and {len(named) - MOST_NAMED:,} more"] if len(named) > MOST_NAMED else []
    return "; ".join([*map(str, named[:MOST_NAMED]), *more])


def _report(format_: str, survey: _Survey, rules: Rules, seconds: float, told: Sequence[str]) -> ImportReport:
    def counts(*sorts: type[Item]) -> Counts:
        found = {outcome: sum(survey.outcomes[sort, outcome] for sort in sorts) for outcome in ("added", "unchanged")}
        conflicts = sum(survey.outcomes[sort, "conflict"] for sort in sorts)
        is_replacing = rules.on_conflict == "replace"
        return Counts(**found, replaced=conflicts * is_replacing, skipped=conflicts * (not is_replacing))

    notices = [
        f"what looks like a secret was replaced in {count:,} items: {kind}" for kind, count in survey.secrets.items()
    ]
    if survey.namesakes:
        notices.append(
            f"{survey.namesakes:,} new entities have a name that another one has here; where both are one,"
            " `commonplace graph merge` joins them"
        )
    return ImportReport(
        format=format_,
        memories=counts(MemoryItem),
        links=counts(LinkItem),
        owners=counts(OwnerItem),
        knowledge=counts(KnowledgeItem),
        contexts=counts(ContextItem),
        issues=counts(IssueItem),
        episodes=counts(EpisodeItem),
        entities=counts(EntityItem),
        relations=counts(RelationItem, FactItem),
        conflicts=tuple(survey.conflicts),
        problems=tuple(survey.problems),
        is_dry_run=rules.is_dry_run,
        seconds=seconds,
        notices=(*notices, *told, *map(str, survey.remarks)),
    )
