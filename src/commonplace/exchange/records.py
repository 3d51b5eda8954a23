"""Items of an import and their rules: validate, redact, compare with what is stored, write.

Episodes come first, then entities, then facts: an item may refer only to earlier ones or to the store.

An entity or a fact grows with later episodes. Where the store already holds all of an imported one, the stored state is
the same or newer, and stays.

Vectors and texts are computed anew from the maps.

An issue is imported with its events and the record that undoes its change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from commonplace.dates.time import seconds
from commonplace.errors import UsageError
from commonplace.exchange.codec import refuse_other_entries, time_of
from commonplace.graph.entities import merged_into
from commonplace.graph.episodes import FactInput
from commonplace.graph.facts import assertion_of, fact_of
from commonplace.graph.names import KEY, normal
from commonplace.graph.redact import GraphCleaner, refuse_many_names, refuse_odd_detail
from commonplace.graph.runtime import Texts
from commonplace.ingest.passages import Destination, PassageMaker
from commonplace.ingest.read import normalise
from commonplace.knowledge.maps import AgentContext, KnowledgeMap, checked_maps, checked_name, record_of
from commonplace.ledger.erase import cleaned, rewrite
from commonplace.memory.validate import (
    as_given,
    fraction,
    reject_invalid,
    reject_invalid_id,
    short_text,
    validate_memory,
    without_secrets,
)
from commonplace.redaction import Secret, cleaned_json, find_secrets, redact
from commonplace.retention import MAX_STRENGTH, RECENT_USES
from commonplace.types import KINDS, Chunk, Filter, Kind, Link, MemoryRecord, Owner, StoredMemory
from commonplace.types.graph import Alias, Entity, Episode, Happening, Mention, Relation
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord, KnowledgeWrite, StoredKnowledge
from commonplace.types.ledger import Issue, IssueEvent, IssueSelection, Reversal

if TYPE_CHECKING:
    from commonplace.store.contract import Store
    from commonplace.store.graph_contract import (
        GraphChange,
        GraphReading,
        KnowledgeChange,
        KnowledgeReading,
        LedgerChange,
        LedgerReading,
    )

MAX_PER_FACT: Final = 65_536
"""Characters of the sentence that says a fact; one that was given has at most 1,000."""


@dataclass(frozen=True, slots=True)
class EpisodeItem:
    """An episode; `secrets` are the kinds of those that were replaced in it."""

    place: str
    episode: Episode
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityItem:
    """An entity with its names, where it is mentioned, and what happened to it."""

    place: str
    entity: Entity
    aliases: tuple[Alias, ...] = ()
    mentions: tuple[Mention, ...] = ()
    happenings: tuple[Happening, ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationItem:
    """A fact with where it is said, and what happened to it."""

    place: str
    relation: Relation
    mentions: tuple[Mention, ...] = ()
    happenings: tuple[Happening, ...] = ()
    secrets: tuple[str, ...] = ()


GraphItem = EpisodeItem | EntityItem | RelationItem


@dataclass(slots=True)
class GraphIntake:
    """Checks the parts of one graph, in their order, and replaces the secrets in them.

    Attributes:
        max_bytes: the most bytes of UTF-8 that the content of an episode may have.

    Raises:
        UsageError: of every method: a value is of the wrong kind, too large or out of its range.
    """

    max_bytes: int
    _kinds: list[str] = field(default_factory=list)
    _cleaner: GraphCleaner = field(init=False)

    def __post_init__(self) -> None:
        self._cleaner = GraphCleaner(self._text, partial(_cleaned, self._text), self._find)

    def episode(self, place: str, episode: Episode) -> EpisodeItem:
        """Return an episode that may be stored."""
        reject_invalid_id(episode.id)
        if not episode.memory or episode.content:
            reject_invalid(episode.content, max_bytes=self.max_bytes)
        _refuse_long(episode, "name", "source_description", "group")
        _refuse_odd_times(episode, "reference_time", "created_at")
        fraction("trust", episode.trust)
        return EpisodeItem(place, self._cleaner.episode(episode), self._found())

    def entity(
        self,
        place: str,
        entity: Entity,
        aliases: Iterable[Alias],
        mentions: Iterable[Mention],
        happenings: Iterable[Happening],
    ) -> EntityItem:
        """Return an entity that may be stored."""
        reject_invalid_id(entity.id)
        _refuse_long(entity, "name", "type", "group")
        _refuse_odd_times(entity, "created_at", "valid_from", "valid_to", "expired_at")
        fraction("trust", entity.trust)
        if not entity.name.strip() or not entity.type.strip():
            raise UsageError("the entity has no name, or no type", remedy="give both")
        _readable("attributes", _refuse_odd_merged, entity)
        clean = self._cleaner.entity(entity)
        names = tuple(aliases)
        refuse_many_names(names)
        for alias in names:
            _refuse_long(alias, "name", "normal")
            _refuse_odd_times(alias, "created_at")
        return EntityItem(
            place,
            clean,
            self._cleaner.aliases(clean, names),
            self._mentions(mentions),
            self._happenings(happenings),
            self._found(),
        )

    def relation(
        self, place: str, relation: Relation, mentions: Iterable[Mention], happenings: Iterable[Happening]
    ) -> RelationItem:
        """Return a fact that may be stored."""
        for id_ in (relation.id, relation.source, relation.target):
            reject_invalid_id(id_)
        _refuse_long(relation, "type", "group", "dispute")
        _refuse_odd_times(relation, "created_at", "valid_from", "valid_to", "stated_to", "expired_at", "disputed_at")
        fraction("trust", relation.trust)
        fraction("confidence", relation.confidence)
        if not relation.type.strip() or len(relation.fact) > MAX_PER_FACT:
            raise UsageError(
                f"the fact has no type, or {len(relation.fact):,} characters",
                remedy=f"give its type, and a sentence of at most {MAX_PER_FACT:,} characters",
            )
        _readable("attributes", fact_of, relation)
        return RelationItem(
            place,
            self._cleaner.relation(relation),
            self._mentions(mentions),
            self._happenings(happenings),
            self._found(),
        )

    def _mentions(self, mentions: Iterable[Mention]) -> tuple[Mention, ...]:
        given = tuple(mentions)
        for each in given:
            reject_invalid_id(each.episode)
            _refuse_long(each, "name")
            if not 0 <= each.start <= each.end:
                raise UsageError(f"a mention is of the characters {each.start}-{each.end}", remedy="count from 0")
        return self._cleaner.mentions(given)

    def _happenings(self, happenings: Iterable[Happening]) -> tuple[Happening, ...]:
        given = tuple(happenings)
        for each in given:
            _refuse_odd_times(each, "at")
            _refuse_long(each, "what", "reason")
            _readable("detail", refuse_odd_detail, each)
        return self._cleaner.happenings(given)

    def _text(self, text: str) -> str:
        redacted = redact(text)
        self._kinds += redacted.kinds
        return redacted.text

    def _find(self, text: str) -> tuple[Secret, ...]:
        secrets = find_secrets(text)
        self._kinds += (each.kind for each in secrets)
        return secrets

    def _found(self) -> tuple[str, ...]:
        """Return the kinds of secrets that were replaced since the last time."""
        kinds, self._kinds[:] = tuple(self._kinds), []
        return kinds


def _cleaned(clean: Callable[[str], str], value: Any) -> Any:
    return cleaned_json(value, clean)


def _refuse_odd_merged(entity: Entity) -> None:
    if not all(isinstance(each, str) for each in merged_into(entity)):
        raise TypeError("what was merged into it is named otherwise than by ids")


def _refuse_long(what: object, *names: str) -> None:
    for name in names:
        short_text(name, getattr(what, name))


def _refuse_odd_times(what: object, *names: str) -> None:
    for name in names:
        value = getattr(what, name)
        if value is not None:
            seconds(name, value)


def _readable(name: str, read: Callable[[Any], Any], what: object) -> Any:
    """Return what is read from a JSON text that follows rules of ours.

    Raises:
        UsageError: it does not follow them.
    """
    try:
        return read(what)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise UsageError(f"{name} cannot be read: {error!s:.80}", remedy="export again") from error


Outcome = Literal["added", "unchanged", "conflict"]


def outcome_of(graph: GraphReading, item: GraphItem) -> Outcome:
    """Compare a part of a graph with what is there under its id."""
    if isinstance(item, EpisodeItem):
        known = graph.episodes([item.episode.id]).get(item.episode.id)
        if known is None:
            return "added"
        # A version of a memory that says what the one before it said is the same episode.
        same = replace(known, created_at=item.episode.created_at, version=item.episode.version)
        return "unchanged" if same == item.episode else "conflict"
    if isinstance(item, EntityItem):
        return _outcome_of_entity(graph, item)
    return _outcome_of_relation(graph, item)


def is_said(graph: GraphReading, fact: FactInput) -> bool:
    """Return whether things of these names are in a fact of this type that somebody gave in the same words."""
    ends = normal(fact.source), normal(fact.target)
    named = graph.named(ends)
    sources, targets = ([each.id for each in named.get(end, ())] for end in ends)
    return any(
        evidence is not None and not evidence.episode and evidence.text == fact.fact
        for one, other in (*product(sources, targets), *product(targets, sources))
        for relation in graph.facts(one, fact.type, other)
        for evidence in map(assertion_of, graph.happenings("relation", relation.id))
    )


def missing(graph: GraphReading, item: GraphItem) -> str:
    """Return what a part of a graph names that is not there, in words; "" where all is there."""
    entities, episodes = needs(item)
    known, told = graph.entities(entities), graph.episodes(episodes)
    gone = [f"entity {id_!r:.80}" for id_ in entities if id_ not in known]
    gone += [f"episode {id_!r:.80}" for id_ in episodes if id_ not in told]
    return gone[0] if gone else ""


def needs(item: GraphItem) -> tuple[list[str], list[str]]:
    """Return the ids of the entities and of the episodes that a part of a graph names, each once."""
    if isinstance(item, EpisodeItem):
        return [], []
    episodes = list(dict.fromkeys(mention.episode for mention in item.mentions))
    if isinstance(item, EntityItem):
        return [item.entity.merged_into] if item.entity.merged_into else [], episodes
    return list(dict.fromkeys((item.relation.source, item.relation.target))), episodes


def text_of(item: GraphItem) -> tuple[Entity, Sequence[Alias]] | Relation | None:
    """Return what the text of a part of a graph is made of; None where it has none."""
    if isinstance(item, RelationItem):
        return item.relation
    if isinstance(item, EpisodeItem) or item.entity.merged_into:
        return None
    return item.entity, [alias for alias in item.aliases if not alias.normal.startswith(KEY)]


def write(graph: GraphChange, item: GraphItem, texts: Texts, *, is_replacing: bool) -> None:
    """Write a part of a graph, unless it is there already, or something else is that is to stay.

    What it names may be gone since it was looked at: then it is left out.
    """
    outcome = outcome_of(graph, item)
    if outcome == "unchanged" or (outcome == "conflict" and not is_replacing) or missing(graph, item):
        return
    if isinstance(item, EpisodeItem):
        if outcome == "conflict":
            graph.drop_mentions(graph.mentioned([item.episode.id]).get(item.episode.id, []))
        graph.put_episode(item.episode)
    elif isinstance(item, EntityItem):
        graph.erase_entities([item.entity.id])
        source = text_of(item)
        graph.put_entity(item.entity, texts.of_entity(*source) if isinstance(source, tuple) else ())
        for alias in item.aliases:
            graph.put_alias(alias)
        _write_rest(graph, item.mentions, item.happenings)
    else:
        graph.erase_relations([item.relation.id])
        graph.put_relation(item.relation, texts.of_relation(item.relation))
        _write_rest(graph, item.mentions, item.happenings)


def _write_rest(graph: GraphChange, mentions: Sequence[Mention], happenings: Sequence[Happening]) -> None:
    graph.put_mentions(mentions)
    for happening in happenings:
        graph.put_happening(happening)


def _outcome_of_entity(graph: GraphReading, item: EntityItem) -> Outcome:
    id_ = item.entity.id
    known = graph.entities([id_]).get(id_)
    if known is None:
        return "added"
    happened = set(map(_with_plain_detail, item.happenings))
    names = {alias.normal for alias in graph.aliases([id_]).get(id_, ())}
    is_known = (
        (bool(happened) or _plain(known) == _plain(item.entity))
        and happened <= set(map(_with_plain_detail, graph.happenings("entity", id_)))
        and names.issuperset(alias.normal for alias in item.aliases)
        and set(item.mentions) <= set(graph.mentions("entity", [id_]).get(id_, ()))
    )
    return "unchanged" if is_known else "conflict"


def _outcome_of_relation(graph: GraphReading, item: RelationItem) -> Outcome:
    """Compare what is said of a fact, for the rest follows from that, and from what its entities are now."""
    id_ = item.relation.id
    known = graph.relations([id_]).get(id_)
    if known is None:
        return "added"
    said = set(map(assertion_of, item.happenings)) - {None}
    is_known = (
        (bool(said) or _plain(known) == _plain(item.relation))
        and said <= set(map(assertion_of, graph.happenings("relation", id_)))
        and set(item.mentions) <= set(graph.mentions("relation", [id_]).get(id_, ()))
    )
    return "unchanged" if is_known else "conflict"


def _with_plain_detail(happening: Happening) -> Happening:
    return replace(happening, detail=_as_compared(happening.detail))


def _plain(what: Entity | Relation) -> Entity | Relation:
    return replace(what, attributes=_as_compared(what.attributes))


def _as_compared(text: str) -> str:
    """Return a JSON object in the one form in which two of them are compared."""
    return json.dumps(json.loads(text), sort_keys=True)


_RECORD = ("agent", "metadata")
_CONTEXT = ("name", "last_cursor", "metadata", "updated_at")


@dataclass(frozen=True, slots=True)
class KnowledgeItem:
    """A map of an agent's knowledge; `secrets` are the kinds of those that were replaced in it."""

    place: str
    id: str
    agent: str
    map: KnowledgeMap
    created_at: float
    updated_at: float
    deleted_at: float | None
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextItem:
    """The context of an agent."""

    place: str
    context: ContextRecord
    secrets: tuple[str, ...] = ()


def knowledge_lines(knowledge: KnowledgeReading) -> Iterator[dict[str, Any]]:
    """Yield the lines of all items, deleted ones too, by agent in the order in which they came; then of contexts."""
    items = [*knowledge.items(), *knowledge.items(deleted=True)]
    for item in sorted(items, key=lambda item: (item.record.agent, item.number)):
        yield {
            "type": "knowledge",
            "id": item.owner.id,
            "created_at": item.created_at,
            "updated_at": item.updated_at,
            "deleted_at": item.deleted_at,
            "record": item.record,
        }
    for context in knowledge.contexts():
        yield {"type": "context", "context": context}


def knowledge_item(place: str, entries: Mapping[str, Any]) -> KnowledgeItem:
    """Return the item that stands in a line.

    Raises:
        UsageError: a value is of the wrong kind, or the map cannot be kept.
    """
    record, id_, deleted_at = _object("record", entries["record"], _RECORD), entries["id"], entries["deleted_at"]
    reject_invalid_id(id_)
    agent = checked_name(record["agent"])
    checked = checked_maps(agent, [record["metadata"]])
    if not checked.maps[0].content:
        raise UsageError("the map holds no text", remedy="leave it out")
    created_at, updated_at = (seconds(name, time_of(name, entries[name])) for name in ("created_at", "updated_at"))
    if deleted_at is not None:
        deleted_at = seconds("deleted_at", time_of("deleted_at", deleted_at))
        if deleted_at < created_at:
            raise UsageError(f"deleted_at is {deleted_at}, before created_at, {created_at}", remedy="give a later time")
    return KnowledgeItem(place, id_, agent, checked.maps[0], created_at, updated_at, deleted_at, checked.secrets)


def context_item(place: str, entries: Mapping[str, Any]) -> ContextItem:
    """Return the context that stands in a line.

    Raises:
        UsageError: a value is of the wrong kind.
    """
    given = _object("context", entries["context"], _CONTEXT)
    updated_at = seconds("updated_at", time_of("updated_at", given["updated_at"]))
    context = AgentContext(checked_name(given["name"]), given["last_cursor"], given["metadata"])
    return ContextItem(place, record_of(context, updated_at))


def outcome_of_item(item: KnowledgeItem, known: StoredKnowledge | None) -> Outcome:
    """Compare what two items of one id hold; whether one was deleted since does not count."""
    if known is None:
        return "added"
    is_same = (known.record.agent, known.record.metadata) == (item.agent, item.map.metadata)
    return "unchanged" if is_same else "conflict"


def outcome_of_context(item: ContextItem, known: ContextRecord | None) -> Outcome:
    """Compare two contexts of one name."""
    if known is None:
        return "added"
    return "unchanged" if replace(known, updated_at=item.context.updated_at) == item.context else "conflict"


def items_by_id(knowledge: KnowledgeReading) -> dict[str, StoredKnowledge]:
    """Return the items of a namespace by id; of several with one id the live one."""
    return {item.owner.id: item for item in (*knowledge.items(deleted=True), *knowledge.items())}


def writes_of_items(destination: Destination, items: Sequence[KnowledgeItem]) -> list[KnowledgeWrite]:
    """Return items ready to be written, all embedded at once."""
    maker = PassageMaker(destination)
    owners = [Owner(item.id, "knowledge") for item in items]
    texts = [normalise(item.map.content) for item in items]
    made = maker.complete([maker.prepare(owner, text, "text") for owner, text in zip(owners, texts, strict=True)])
    embedder = str(destination.embedder.stamp.of("knowledge"))
    return [
        KnowledgeWrite(
            write.owner,
            write.passages,
            KnowledgeRecord(item.agent, item.map.content, item.map.metadata, item.map.digest, embedder),
        )
        for item, write in zip(items, made, strict=True)
    ]


def put_item(
    change: KnowledgeChange, item: KnowledgeItem, write: KnowledgeWrite, known: StoredKnowledge | None
) -> None:
    """Write an item, in the place of the one that is known."""
    if known is not None:
        change.erase([known.number])
    change.put(write, created_at=item.created_at, updated_at=item.updated_at, deleted_at=item.deleted_at)


def _object(what: str, given: object, names: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} is {given!r:.80}", remedy="give an object")
    refuse_other_entries(what, given, names, names)
    return given


_PRIORITIES: Final = range(5)
_VAULT: Final = "vault"


@dataclass(frozen=True, slots=True)
class IssueItem:
    """An issue with its history; `secrets` are the kinds of those that were replaced in it.

    Attributes:
        issue: None where another program keeps it.
    """

    place: str
    id: str
    issue: Issue | None
    events: tuple[IssueEvent, ...]
    reversal: Reversal | None
    secrets: tuple[str, ...] = ()


def ledger_lines(ledger: LedgerReading) -> Iterator[dict[str, Any]]:
    """Yield the lines of all issues, by creation, ties by id; then of those that another program keeps, by id."""
    events: dict[str, list[IssueEvent]] = {}
    for event in ledger.events():
        events.setdefault(event.issue, []).append(event)
    reversals = {reversal.issue: reversal for reversal in ledger.reversals()}
    issues: dict[str, Issue | None] = {issue.id: issue for issue in ledger.issues(IssueSelection())}
    elsewhere = sorted((events.keys() | reversals.keys()) - issues.keys())
    for id_, issue in (issues | dict.fromkeys(elsewhere)).items():
        yield {
            "type": "issue",
            "id": id_,
            "issue": issue,
            "events": events.get(id_, []),
            "reversal": reversals.get(id_),
        }


def issue_item(
    place: str, id_: str, issue: Issue | None, events: tuple[IssueEvent, ...], reversal: Reversal | None
) -> IssueItem:
    """Return an issue that may be stored.

    Raises:
        UsageError: a value is of the wrong kind or out of its range.
    """
    if issue is not None:
        _refuse_odd_issue(issue, id_)
    for event in events:
        _refuse_odd_times(event, "at")
    if reversal is not None:
        for each in reversal.memory_ids:
            reject_invalid_id(each)
        _refuse_odd_times(reversal, "at", "undone_at")
        _refuse_odd_steps(_parsed("steps", reversal.steps, list))
    kinds: list[str] = []

    def clean(text: str) -> str:
        redacted = redact(text)
        kinds.extend(redacted.kinds)
        return redacted.text

    kept = issue
    if issue is not None:
        kept = cleaned(issue, clean, lambda value: cleaned_json(value, clean))
        kept = replace(kept, labels=tuple(map(clean, issue.labels)))
    told = tuple(replace(event, why=clean(event.why)) for event in events)
    return IssueItem(place, id_, kept, told, reversal, tuple(kinds))


def outcome_of_issue(item: IssueItem, ledger: LedgerReading) -> Outcome:
    """Compare what two issues of one id say, with all that was done on them."""
    here = (ledger.issue(item.id), tuple(ledger.events(item.id)), _unnumbered(ledger.reversal(item.id)))
    if here == (None, (), None):
        return "added"
    return "unchanged" if here == (item.issue, item.events, _unnumbered(item.reversal)) else "conflict"


def put_issues(ledger: LedgerChange, items: Sequence[IssueItem], *, is_replacing: bool) -> None:
    """Write issues that are not here, or in the place of those that are; what undoes their changes keeps its order."""
    written = [item for item in items if _is_wanted(outcome_of_issue(item, ledger), is_replacing=is_replacing)]
    for item in written:
        rewrite(ledger, item.id, item.issue, item.events)
        ledger.drop_reversal(item.id)
    undoing = [item.reversal for item in written if item.reversal is not None]
    numbers = [reversal.number for reversal in (*ledger.reversals(), *undoing)]
    is_free = len(set(numbers)) == len(numbers)
    for reversal in sorted(undoing, key=lambda reversal: reversal.number):
        ledger.put_reversal(reversal if is_free else replace(reversal, number=0))


def _is_wanted(outcome: Outcome, *, is_replacing: bool) -> bool:
    return outcome == "added" or (outcome == "conflict" and is_replacing)


def _unnumbered(reversal: Reversal | None) -> Reversal | None:
    return None if reversal is None else replace(reversal, number=0)


def _refuse_odd_issue(issue: Issue, id_: str) -> None:
    for each in issue.memory_ids:
        reject_invalid_id(each)
    if issue.id != id_:
        raise UsageError(f"the line of issue {id_!r:.80} holds issue {issue.id!r:.80}", remedy="give one id")
    if issue.priority not in _PRIORITIES or issue.retries < 0:
        raise UsageError(
            f"priority is {issue.priority}, retries is {issue.retries}", remedy="give 0 to 4, and 0 or more"
        )
    _refuse_odd_times(issue, "created_at", "updated_at", "closed_at", "retry_at", "claimed_at", "escalated_at")
    for name, sort in (("dependencies", list), ("comments", list), ("rest", dict)):
        _parsed(name, getattr(issue, name), sort)


def _parsed(name: str, text: str, sort: type) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is {text!r:.80}", remedy="give JSON as text") from error
    if not isinstance(found, sort):
        raise UsageError(f"{name} is {text!r:.80}", remedy="give " + ("an array" if sort is list else "an object"))
    return found


def _refuse_odd_steps(steps: list[Any]) -> None:
    """Refuse steps that would reach beyond the vault when they are taken."""
    for step in steps:
        path = step.get("path") if isinstance(step, dict) else None
        if path is None:
            continue
        parts = PurePosixPath(path).parts if isinstance(path, str) else ()
        if parts[:1] != (_VAULT,) or ".." in parts or "\0" in str(path) or "\\" in str(path):
            raise UsageError(f"a step has the path {path!r:.80}", remedy=f"give a path below {_VAULT}/")


VAULT: Final = "vault"


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a memory; `secrets` are the kinds of those that were replaced in it."""

    owner: Owner
    record: MemoryRecord
    created_at: float
    expired_at: float | None
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory with its versions, oldest first; only the last one may be live."""

    place: str
    versions: tuple[Version, ...]

    @property
    def id(self) -> str:
        """Its id, which all versions have."""
        return self.versions[0].owner.id

    @property
    def latest(self) -> Version:
        """The last version."""
        return self.versions[-1]


@dataclass(frozen=True, slots=True)
class LinkItem:
    """A link between two memories."""

    place: str
    link: Link


@dataclass(frozen=True, slots=True)
class FactItem:
    """A fact between two things that are given by their names; `secrets` are the kinds of those replaced in it."""

    place: str
    fact: FactInput
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerItem:
    """An artifact or a document with what it was cut into."""

    place: str
    owner: Owner
    chunks: tuple[Chunk, ...]
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that cannot be kept.

    Attributes:
        place: the line, and the file where there are several.
        name: what it is about, as far as that can be told.
        reason: the value, the limit and what to do.
    """

    place: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place} ({self.name}): {self.reason}" if self.name else f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that somebody may want to know of what is imported, and that nothing is lost by.

    Attributes:
        place: as that of a problem.
    """

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


Item = (
    MemoryItem
    | LinkItem
    | FactItem
    | OwnerItem
    | KnowledgeItem
    | ContextItem
    | IssueItem
    | EpisodeItem
    | EntityItem
    | RelationItem
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder to import.

    Attributes:
        format: its name.
        items: reads it from the start, each time it is called. What is wrong with one item is a `Problem` among them,
            what is to be told is a `Remark`; a file that is damaged as a whole raises.
    """

    format: str
    items: Callable[[], Iterator[Item | Problem | Remark]]


def version_of(
    owner: Owner, record: MemoryRecord, created_at: float, expired_at: float | None, *, max_bytes: int
) -> Version:
    """Return a version of a memory that may be stored: what `remember` would refuse is refused here.

    Raises:
        UsageError: a value is of the wrong kind, empty, too large or out of its range.
    """
    _refuse_odd_owner(owner)
    _refuse_odd_record(record)
    for name, time in (
        ("created_at", created_at),
        ("expired_at", expired_at),
        ("born_at", record.born_at),
        ("last_used", record.last_used),
        ("promoted_at", record.promoted_at),
        *(("uses", use) for use in record.uses),
    ):
        if time is not None:
            seconds(name, time)
    if expired_at is None and record.status == "archived":
        raise UsageError("status is 'archived', but expired_at is empty", remedy="give the time when it was archived")
    if expired_at is not None and expired_at < created_at:
        raise UsageError(f"expired_at is {expired_at}, before created_at, {created_at}", remedy="give a later time")
    given = validate_memory(as_given(owner, record), max_bytes=max_bytes, force=record.is_forced)
    if given.tier == "ultra":
        raise UsageError("tier is 'ultra', which is never stored", remedy="give short, medium or long")
    new = without_secrets(given)
    kept = replace(
        record,
        content=new.content,
        category=new.category,
        entities=new.entities,
        source=new.source,
        metadata=new.metadata,
        derived_from=new.derived_from,
    )
    clean, secrets = _without_secrets(replace(owner, tags=new.tags))
    return Version(clean, kept, created_at, expired_at, (*new.notices, *secrets))


def owner_item(place: str, owner: Owner, chunks: tuple[Chunk, ...]) -> OwnerItem:
    """Return an owner that may be stored.

    Raises:
        UsageError: it has no id, or a passage's lines are none.
    """
    if not owner.id:
        raise UsageError("the id is ''", remedy="give each owner an id of its own")
    secrets: list[str] = []
    clean, kinds = _without_secrets(owner)
    secrets += kinds
    pieces = []
    for chunk in chunks:
        if not 1 <= chunk.start_line <= chunk.end_line:
            raise UsageError(f"a passage has the lines {chunk.start_line}-{chunk.end_line}", remedy="count from 1")
        text, heading = redact(chunk.text), redact(chunk.heading)
        secrets += (*text.kinds, *heading.kinds)
        pieces.append(replace(chunk, text=text.text, heading=heading.text))
    return OwnerItem(place, clean, tuple(pieces), tuple(secrets))


def _without_secrets(owner: Owner) -> tuple[Owner, tuple[str, ...]]:
    title, summary = redact(owner.title), redact(owner.summary)
    return replace(owner, title=title.text, summary=summary.text), (*title.kinds, *summary.kinds)


def _refuse_odd_owner(owner: Owner) -> None:
    if owner.kind != "memory":
        raise UsageError(f"the kind of a memory is {owner.kind!r}", remedy="give it as an owner")
    if owner.path or owner.stamp is not None:
        raise UsageError(f"a memory has the path {owner.path!r:.80}", remedy="a memory is of no file: leave it out")


def _refuse_odd_record(record: MemoryRecord) -> None:
    for name, number, low in (
        ("version", record.version, 1),
        ("use_count", record.use_count, 0),
        ("review_count", record.review_count, 0),
    ):
        if number < low:
            raise UsageError(f"{name} is {number}", remedy=f"give a whole number from {low}")
    if not 0.0 <= record.strength <= MAX_STRENGTH:
        raise UsageError(f"strength is {record.strength}", remedy=f"give a number from 0 to {MAX_STRENGTH:g}")
    if len(record.uses) > RECENT_USES:
        raise UsageError(f"uses holds {len(record.uses)} times, the limit is {RECENT_USES}", remedy="give the latest")
    parts = PurePosixPath(record.vault_path).parts
    if record.vault_path and (parts[:1] != (VAULT,) or ".." in parts or "\0" in record.vault_path):
        raise UsageError(f"vault_path is {record.vault_path!r:.80}", remedy=f"give a path below {VAULT}/, or none")


_AT_ONCE = 500


def item_outcome(item: MemoryItem, known: StoredMemory | None) -> Outcome:
    """Compare what two memories of one id say: the words and what was said about them, not how they were used since."""
    if known is None:
        return "added"
    same = _said(item.latest.owner, item.latest.record) == _said(known.owner, known.record)
    return "unchanged" if same else "conflict"


class Known:
    """What a namespace holds, as far as items are compared with it."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    def has_memory(self, id_: str) -> bool:
        """Return whether there is a memory of that id, live or archived."""
        return self._store.memory(self._namespace, id_) is not None

    def has_entity(self, id_: str) -> bool:
        """Return whether there is an entity of that id, be it merged into another."""
        return id_ in self._graph.entities([id_])

    def has_episode(self, id_: str) -> bool:
        """Return whether there is an episode of that id."""
        return id_ in self._graph.episodes([id_])

    def has_namesake(self, entity: Entity) -> bool:
        """Return whether another live entity has the name of a live one."""
        form = normal(entity.name)
        return entity.expired_at is None and any(
            each.id != entity.id for each in self._graph.named([form]).get(form, ())
        )

    def outcome(self, item: Item) -> Outcome:
        """Return what an item is to the store.

        Raises:
            UsageError: it cannot be kept beside what is there.
        """
        if isinstance(item, MemoryItem):
            return self._outcome_of_memory(item)
        if isinstance(item, LinkItem):
            link = item.link
            known = self._links.get((link.source, link.target, link.type))
            return "added" if known is None else "unchanged" if known.strength == link.strength else "conflict"
        if isinstance(item, FactItem):
            return "unchanged" if is_said(self._graph, item.fact) else "added"
        if isinstance(item, KnowledgeItem):
            return self._outcome_of_knowledge(item)
        if isinstance(item, ContextItem | IssueItem):
            return self._outcome_of_agents(item)
        return self._outcome_of_owner(item) if isinstance(item, OwnerItem) else self._outcome_of_part(item)

    def _outcome_of_part(self, item: GraphItem) -> Outcome:
        return outcome_of(self._graph, item)

    def _outcome_of_memory(self, item: MemoryItem) -> Outcome:
        known = self._store.memory(self._namespace, item.id)
        if known is None and self._store.places(self._namespace, "memory", [item.id]):
            raise UsageError(f"a document of the kind memory has the id {item.id!r:.80}", remedy="give it another one")
        return item_outcome(item, known)

    def _outcome_of_agents(self, item: ContextItem | IssueItem) -> Outcome:
        if isinstance(item, IssueItem):
            return outcome_of_issue(item, self._store.ledger(self._namespace))
        return outcome_of_context(item, self._store.knowledge(self._namespace).context(item.context.name))

    def _outcome_of_knowledge(self, item: KnowledgeItem) -> Outcome:
        known = self._knowledge.get(item.id)
        if known is None and self._store.places(self._namespace, "knowledge", [item.id]):
            raise UsageError(f"a document of the kind knowledge has the id {item.id!r:.80}", remedy="forget that one")
        return outcome_of_item(item, known)

    def _outcome_of_owner(self, item: OwnerItem) -> Outcome:
        owner = item.owner
        if owner.kind == "memory" and self.has_memory(owner.id):
            raise UsageError(f"a memory has the id {owner.id!r:.80}", remedy="give the document another one")
        by_id = self._numbers.get((owner.kind, "id", owner.id))
        by_path = self._numbers.get((owner.kind, "path", owner.path)) if owner.path else None
        if by_id is None and by_path is None:
            return "added"
        if by_id is None or by_path not in (None, by_id):
            return "conflict"
        same = self._store.owners(self._namespace, [by_id]).get(by_id) == owner and self._chunks(by_id) == item.chunks
        return "unchanged" if same else "conflict"

    def _chunks(self, number: int) -> tuple[Chunk, ...]:
        found = self._store.passages(self._namespace, self._store.passages_of(self._namespace, [number]))
        return tuple(passage.chunk for passage in sorted(found.values(), key=lambda passage: passage.ordinal))

    @cached_property
    def _knowledge(self) -> dict[str, StoredKnowledge]:
        return items_by_id(self._store.knowledge(self._namespace))

    @cached_property
    def _graph(self) -> GraphReading:
        return self._store.graph(self._namespace)

    @cached_property
    def _links(self) -> dict[tuple[str, str, str], Link]:
        return {(link.source, link.target, link.type): link for link in self._store.links(self._namespace)}

    @cached_property
    def _numbers(self) -> dict[tuple[Kind, str, str], int]:
        """Owner numbers by kind and id, and by kind and path."""
        found: dict[tuple[Kind, str, str], int] = {}
        numbers = self._store.matching_owners(self._namespace, Filter(kinds=KINDS))
        for begin in range(0, len(numbers), _AT_ONCE):
            for number, owner in self._store.owners(self._namespace, numbers[begin : begin + _AT_ONCE]).items():
                found[owner.kind, "id", owner.id] = number
                if owner.path:
                    found[owner.kind, "path", owner.path] = number
        return found


def _said(owner: Owner, record: MemoryRecord) -> tuple[object, ...]:
    about = (record.category, record.entities, record.source, record.origin, record.derived_from)
    metadata = json.dumps(json.loads(record.metadata), sort_keys=True)
    return (record.content, metadata, *about, owner.tags, owner.session, owner.at, owner.title, owner.summary)
