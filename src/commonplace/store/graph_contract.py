"""The store contract of graph, knowledge and ledger.

The texts by which entities and facts are found are owners with passages, in two reserved namespaces that belong to the
graph's own (`texts_of`): searches in that one never return them, and the index follows them like all others.

A knowledge item is an owner of the kind "knowledge" with a `KnowledgeRecord`. A deleted one is past: not listed,
counted or indexed, but readable by number and `as_of` until it is erased. An owner of that kind without a record is a
document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from commonplace.types import NewPassage
from commonplace.types.graph import (
    Alias,
    Edge,
    Entity,
    Episode,
    GraphCounts,
    GraphFilter,
    Happening,
    Mention,
    Relation,
    Subject,
)
from commonplace.types.knowledge import AgentCounts, ContextRecord, KnowledgeWrite, StoredKnowledge
from commonplace.types.ledger import Issue, IssueEvent, IssueSelection, Reversal, RunChanges

_RESERVED = "\x1f"


def texts_of(namespace: str, kind: Subject) -> str:
    """Return the namespace that holds the texts of a namespace's entities or relations; no user can name it."""
    return f"{_RESERVED}{kind}{_RESERVED}{namespace}"


def namespace_of(texts: str) -> str:
    """Return the namespace whose texts a reserved one holds; any other is its own."""
    return texts.split(_RESERVED, 2)[2] if is_reserved(texts) else texts


def is_reserved(namespace: str) -> bool:
    """Tell whether a namespace holds the texts of a graph, and so belongs to another one."""
    return namespace.startswith(_RESERVED)


class GraphReading(Protocol):
    """The graph of one namespace, as it is when each call is made.

    What is not there is absent from answers, and so is what an answer by id would have nothing for. Ids and names are
    ordered by code points. Which facts a filter means is told by `graph_rules`; of episodes its `known_at` alone
    counts, of entities `with_past` too.

    Raises:
        UsageError: a time of a filter is not a number.
    """

    def episodes(self, ids: Sequence[str]) -> dict[str, Episode]:
        """Return episodes by id."""
        ...

    def reference_times(self, episodes: Sequence[str]) -> dict[str, float]:
        """Return when episodes were said or happened, by id; their words, of which there may be many, are not read."""
        ...

    def episodes_of_memory(self, memory: str) -> list[Episode]:
        """Return the episodes that a memory is, by version, ties by id."""
        ...

    def list_episodes(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Episode]:
        """Return the episodes of some groups, known by then, newest reference time first, ties by id."""
        ...

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        """Return entities by id, those that were merged into others too."""
        ...

    def named(self, normals: Sequence[str], *, limit: int | None = None) -> dict[str, list[Entity]]:
        """Return the live entities that have one of these normal names, by name, each list by id.

        Args:
            limit: how many of each name at most; what it costs does not grow with those beyond.
        """
        ...

    def list_entities(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Entity]:
        """Return the entities of some types and groups, live at `known_at` or now, by name, ties by id.

        With `with_past`, where no time is given, those that were merged into others are listed too. An entity is of a
        group where it was named first in it or any episode of the group mentions it.
        """
        ...

    def aliases(self, ids: Sequence[str]) -> dict[str, list[Alias]]:
        """Return the names of entities, oldest first, ties by normal name."""
        ...

    def relations(self, ids: Sequence[str]) -> dict[str, Relation]:
        """Return relations by id."""
        ...

    def relations_of(
        self, entities: Sequence[str], wanted: GraphFilter, *, limit: int | None = None
    ) -> dict[str, list[Relation]]:
        """Return the relations that start or end at each entity: newest knowledge first, ties by id.

        A relation of an entity with itself comes once.

        Args:
            limit: how many of each entity at most; what it costs does not grow with those beyond, nor, where only what
                holds is meant, with those that have ended.
        """
        ...

    def facts(self, source: str, type_: str, target: str | None = None) -> list[Relation]:
        """Return all relations of one source and type, to one target where it is given, oldest first, ties by id.

        Those that have ended or were retracted are among them. What it costs does not grow with the other relations of
        source and target.
        """
        ...

    def edges_of(
        self,
        entities: Sequence[str],
        wanted: GraphFilter,
        *,
        limit: int | None = None,
        among: Collection[str] | None = None,
    ) -> dict[str, list[Edge]]:
        """Return of what `relations_of` returns as much as it takes to follow it, in the same order.

        Args:
            limit: how many of each entity at most, those counted that do not lead to one `among` these.
            among: only edges whose other end is one of these; None: all.
        """
        ...

    def list_relations(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Relation]:
        """Return relations, newest knowledge first, ties by id."""
        ...

    def disputed(self) -> list[Relation]:
        """Return the relations that are disputed, by dispute, then oldest first, ties by id."""
        ...

    def mentions(self, kind: Subject, ids: Sequence[str]) -> dict[str, list[Mention]]:
        """Return where entities or relations are mentioned, by id; lists by episode, then place."""
        ...

    def mentioned(self, episodes: Sequence[str]) -> dict[str, list[Mention]]:
        """Return what episodes mention, by episode; lists by place, then subject."""
        ...

    def happenings(self, kind: Subject, id_: str) -> list[Happening]:
        """Return what happened to an entity or relation, in the order in which it was recorded."""
        ...

    def pairs(self, wanted: GraphFilter) -> Iterator[tuple[str, str, str]]:
        """Yield (relation, source, target) of every relation that is meant, in no order.

        Some thousands at a time are of one state; inside a snapshot of the store, all are.
        """
        ...

    def counts(self) -> GraphCounts:
        """Return how much there is: relations that have ended or were retracted count."""
        ...


class GraphChange(GraphReading, Protocol):
    """The graph of one namespace inside one write transaction; it reads its own writes.

    Whatever is written or deleted takes a change number, that of all that is done in the transaction. What cannot be
    written is refused before anything of it is. Ids are not followed: a relation may be written before its ends, and
    what is erased may be named by others; `Store.check` tells where an id leads nowhere.

    Raises:
        StoreError: it is used after its block has ended, or a vector is not of the store's embedder.
        UsageError: a number does not fit a store.
    """

    def put_episode(self, episode: Episode) -> None:
        """Write an episode in the place of the one with its id."""
        ...

    def put_entity(self, entity: Entity, passages: Sequence[NewPassage] | None = None) -> None:
        """Write an entity in the place of the one with its id.

        Args:
            passages: the texts by which it is found; none makes it unfindable by words; None leaves them as they are.
                They belong to an owner of the kind "entity" with its id, its name as title, its type, its group as a
                tag, and its `created_at`, as they are now.
        """
        ...

    def put_relation(self, relation: Relation, passages: Sequence[NewPassage] | None = None) -> None:
        """Write a relation in the place of the one with its id.

        Args:
            passages: as for an entity; the owner has the kind "relation", no title, and `valid_from` as its time.
        """
        ...

    def put_alias(self, alias: Alias) -> None:
        """Give an entity a name, in the place of one with the same normal form."""
        ...

    def drop_alias(self, entity: str, normal: str) -> None:
        """Take a name from an entity."""
        ...

    def put_mentions(self, mentions: Sequence[Mention]) -> None:
        """Record mentions; one that is there already stays once."""
        ...

    def drop_mentions(self, mentions: Sequence[Mention]) -> None:
        """Delete mentions."""
        ...

    def put_happening(self, happening: Happening) -> None:
        """Add to what happened."""
        ...

    def erase_episodes(self, ids: Sequence[str]) -> int:
        """Delete episodes with their mentions; return how many there were."""
        ...

    def erase_entities(self, ids: Sequence[str]) -> int:
        """Delete entities with their names, texts, mentions and what happened to them; return how many there were."""
        ...

    def erase_relations(self, ids: Sequence[str]) -> int:
        """Delete relations with their texts, mentions and what happened to them; return how many there were."""
        ...

    def erase_happenings(self, kind: Subject, id_: str) -> None:
        """Delete what happened to an entity or relation."""
        ...

    def drop_loose_ends(self) -> int:
        """Delete what hangs on nothing: names, mentions, happenings and texts of what is gone; return how many went.

        Mentions in episodes that are gone are among them; relations with an end that is no entity are not.
        """
        ...


class KnowledgeReading(Protocol):
    """The knowledge of one namespace, as it is when each call is made."""

    def items(self, agent: str | None = None, *, deleted: bool = False) -> list[StoredKnowledge]:
        """Return the items of an agent, or of all, by number.

        Args:
            deleted: those that were deleted, in place of the others.
        """
        ...

    def of_numbers(self, numbers: Sequence[int]) -> dict[int, StoredKnowledge]:
        """Return items by their owners' numbers, deleted or not; others are absent."""
        ...

    def agents(self) -> list[AgentCounts]:
        """Return the agents that have items, deleted ones too, by name."""
        ...

    def context(self, name: str) -> ContextRecord | None:
        """Return the context of an agent."""
        ...

    def contexts(self) -> list[ContextRecord]:
        """Return all contexts, by name."""
        ...


class KnowledgeChange(KnowledgeReading, Protocol):
    """The knowledge of one namespace inside one write transaction; it reads its own writes.

    What comes, goes or is deleted takes a change number; a context takes none. What cannot be written is refused before
    anything of it is.

    Raises:
        StoreError: it is used after its block has ended, or a vector is not of the store's embedder.
        UsageError: a number does not fit a store, or an owner is of another kind or of a file.
    """

    def put(
        self, write: KnowledgeWrite, *, created_at: float, updated_at: float, deleted_at: float | None = None
    ) -> int:
        """Write an item in the place of the live owner of that kind with its id, and return its number.

        With `deleted_at` it is past from the start and takes nobody's place.
        """
        ...

    def expire(self, numbers: Sequence[int], at: float) -> int:
        """Delete live items softly, from `at` on; return how many there were."""
        ...

    def erase(self, numbers: Sequence[int]) -> int:
        """Delete items, live or past, with all that hangs on them; return how many there were."""
        ...

    def put_context(self, context: ContextRecord) -> None:
        """Write a context in the place of the one with its name."""
        ...

    def drop_context(self, name: str) -> bool:
        """Delete a context; return whether there was one."""
        ...


class LedgerReading(Protocol):
    """The ledger of one namespace, as it is when each call is made."""

    def issue(self, id_: str) -> Issue | None:
        """Return an issue."""
        ...

    def issues(self, selection: IssueSelection) -> list[Issue]:
        """Return the issues that a selection chooses, by creation, ties by id."""
        ...

    def bodies(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, its notes, dependencies, comments and rest) of every issue, by id.

        It reads less than `issues` does, where those texts alone are looked through.
        """
        ...

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many issues there are by (agent, status)."""
        ...

    def unfinished(self, agent: str, memory_ids: Sequence[str]) -> Issue | None:
        """Return the first unfinished issue of an agent about exactly this set of memories."""
        ...

    def named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        """Return the ids of the memories that issues of an agent with one of these statuses name."""
        ...

    def events(self, issue: str | None = None) -> list[IssueEvent]:
        """Return the events on an issue, or on all, in the order in which they were written."""
        ...

    def reversal(self, issue: str) -> Reversal | None:
        """Return what undoes the change of an issue."""
        ...

    def reversals(self, *, run: str | None = None, memory_ids: Sequence[str] = (), after: int = 0) -> list[Reversal]:
        """Return reversals by number: of a run, of memories (any of them), and with a higher number than `after`."""
        ...

    def runs(self) -> list[RunChanges]:
        """Return what each run changed, the latest first, ties by run."""
        ...

    def operations_since(self, at: float) -> list[tuple[float, int]]:
        """Return (time, how many) of the operations of the whole store at or after a time, by time.

        They are of no namespace: a rate limits all that work on a store.
        """
        ...


class LedgerChange(LedgerReading, Protocol):
    """The ledger of one namespace inside one write transaction; it reads its own writes. It takes no change number.

    Raises:
        StoreError: it is used after its block has ended.
        UsageError: a number or a text does not fit a store.
    """

    def put_issue(self, issue: Issue) -> None:
        """Write an issue in the place of the one with its id."""
        ...

    def drop_issue(self, id_: str) -> bool:
        """Delete an issue with its events and what undoes it; return whether there was one.

        Events and what undoes a change go also where the issue itself is kept by another program.
        """
        ...

    def add_event(self, event: IssueEvent) -> None:
        """Write an event after all others."""
        ...

    def put_reversal(self, reversal: Reversal) -> None:
        """Write what undoes the change of an issue, in the place of what the issue had.

        One without a number gets the next; one with a number keeps it.
        """
        ...

    def drop_reversal(self, issue: str) -> bool:
        """Delete what undoes the change of an issue; return whether there was any."""
        ...

    def add_operations(self, at: float, count: int, *, keep_since: float) -> None:
        """Count operations at a time, and forget those before `keep_since`."""
        ...
