"""The dependencies that graph operations share: store, embedder, types and clock."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.graph.facts import OWN, fact_of
from commonplace.graph.kinds import Kinds
from commonplace.ingest.passages import Destination, passage_id
from commonplace.models.contract import TokenizedText
from commonplace.models.registry import for_kind
from commonplace.ranking.arrays import quantise
from commonplace.store.graph import GraphReading
from commonplace.store.memories import MemoryChange
from commonplace.types import GRAPH_KINDS, Chunk, NewPassage, Owner
from commonplace.types.graph import Alias, Entity, Relation

MAX_NAMES: Final = 12
"""Number of names of an entity in its search text. An exact lookup matches any of its names."""
MAX_CHARACTERS: Final = 2_000
"""Length, in characters, to which the search text of an entity or a fact is cut."""


def made_id() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class GraphRuntime:
    """Store, embedder, types and clock of the graph of one namespace; `now` returns seconds since the epoch."""

    texts: Texts
    kinds: Kinds
    now: Callable[[], float]

    @property
    def destination(self) -> Destination:
        return self.texts.destination

    @property
    def namespace(self) -> str:
        return self.destination.namespace

    @property
    def graph(self) -> GraphReading:
        return self.destination.store.graph(self.namespace)

    def change(self) -> AbstractContextManager[MemoryChange]:
        """Begin a write transaction."""
        destination = self.destination
        return destination.store.change_memories(destination.namespace, made_by=destination.embedder.stamp)


@dataclass(slots=True)
class Texts:
    """Makes the passages by which entities and facts are searched, embedding each text once. Safe for threads."""

    destination: Destination
    _made: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._made)

    def prepare(self, texts: Iterable[str]) -> None:
        """Embed texts in one batch, before the transaction that writes them begins."""
        missing = [text for text in dict.fromkeys(text[:MAX_CHARACTERS] for text in texts) if text not in self._made]
        if not missing:
            return
        tokenized = [TokenizedText(text, self.destination.tokenize(text)) for text in missing]
        if self.destination.defers("entity"):
            vectors = [b""] * len(missing)
        else:
            quantised = quantise(for_kind(self.destination.embedder, "entity").embed(tokenized))
            vectors = [row.tobytes() for row in quantised]
        for text, tokens, vector in zip(missing, tokenized, vectors, strict=True):
            self._made[text] = (tokens.token_ids.astype("<u2", copy=False).tobytes(), vector)

    def of_entity(self, entity: Entity, names: Sequence[Alias]) -> tuple[NewPassage, ...]:
        return self._passages(Owner(entity.id, "entity"), names_text(entity.name, [alias.name for alias in names]))

    def of_relation(self, relation: Relation) -> tuple[NewPassage, ...]:
        text = fact_text(relation.fact, relation.type, fact_of(relation).aspect)
        return self._passages(Owner(relation.id, "relation"), text)

    def _passages(self, owner: Owner, text: str) -> tuple[NewPassage, ...]:
        truncated = text[:MAX_CHARACTERS]
        self.prepare([truncated])
        token_ids, vector = self._made[truncated]
        id_ = passage_id(self.destination.namespace, owner, 0)
        return (NewPassage(id_, Chunk(truncated, 1, 1 + truncated.count("\n")), token_ids, vector),)


def fact_text(fact: str, type_: str, aspect: str = "") -> str:
    """Return the search text of a fact: the sentence that states it, then its type and aspect in words.

    So "where does she live" finds "moved to Munich", and a query about the editor finds "switched to Helix".
    """
    words = [] if aspect and type_ == "RELATED_TO" else [type_.replace("_", " ").lower()]
    return "\n".join((fact, " ".join([*words, aspect]).strip()))


def names_text(name: str, names: Sequence[str]) -> str:
    return ", ".join(list(dict.fromkeys((name, *names)))[:MAX_NAMES])


def merged_into(entity: Entity) -> list[str]:
    """Return the ids of the entities merged directly into this one, oldest merge first."""
    ids: list[str] = json.loads(entity.attributes).get(OWN, {}).get("merged", [])
    return ids


def with_merged(entity: Entity, merged: Sequence[str]) -> Entity:
    attributes = json.loads(entity.attributes)
    attributes.pop(OWN, None)
    if merged:
        attributes[OWN] = {"merged": list(merged)}
    return replace(entity, attributes=json.dumps(attributes, sort_keys=True))


def all_merged(graph: GraphReading, entity: Entity) -> list[Entity]:
    """Return this entity and all entities merged into it, directly or through others."""
    family = [entity]
    for member in family:
        family += graph.entities(merged_into(member)).values()
    return family


def subjects_of(graph: GraphReading, episodes: Sequence[str]) -> tuple[dict[str, None], dict[str, None]]:
    """Return the ids of the entities and of the facts that episodes mention, in the order of the episodes."""
    mentions = [mention for rows in graph.mentioned(episodes).values() for mention in rows]
    entities, facts = (dict.fromkeys(row.subject for row in mentions if row.kind == kind) for kind in GRAPH_KINDS)
    return entities, facts


def roots(graph: GraphReading, ids: Iterable[str]) -> dict[str, str]:
    """Return, by id, the entity that each id stands for now: itself, or the end of its chain of merges."""
    root_ids: dict[str, str] = {}
    for id_ in dict.fromkeys(ids):
        root, seen = id_, set[str]()
        while root not in seen:
            seen.add(root)
            entity = graph.entities([root]).get(root)
            if entity is not None and entity.merged_into:
                root = entity.merged_into
        root_ids[id_] = root
    return root_ids
