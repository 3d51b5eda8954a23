"""What operations on a graph share: store, embedder, types and clock."""

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
from commonplace.types import Chunk, NewPassage, Owner
from commonplace.types.graph import Alias, Entity, Relation

MAX_NAMES: Final = 12
"""By so many of its names an entity is found by words and meaning; by all of them where one is given exactly."""
MAX_CHARACTERS: Final = 2_000
"""So much of a fact is searched."""


def made_id() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class GraphRuntime:
    """Where a graph is kept and what it is made with.

    Attributes:
        texts: makes the texts of what is written, with the destination.
        now: the time, seconds since the epoch.
    """

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
    """Makes the texts by which entities and facts are found, embedding each text once. Safe for threads."""

    destination: Destination
    _made: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._made)

    def prepare(self, texts: Iterable[str]) -> None:
        """Embed texts at once, before a transaction begins in which they will be written."""
        new = [text for text in dict.fromkeys(text[:MAX_CHARACTERS] for text in texts) if text not in self._made]
        if not new:
            return
        tokenized = [TokenizedText(text, self.destination.tokenize(text)) for text in new]
        if self.destination.defers("entity"):
            vectors = [b""] * len(new)
        else:
            found = quantise(for_kind(self.destination.embedder, "entity").embed(tokenized))
            vectors = [row.tobytes() for row in found]
        for text, each, vector in zip(new, tokenized, vectors, strict=True):
            self._made[text] = (each.token_ids.astype("<u2", copy=False).tobytes(), vector)

    def of_entity(self, entity: Entity, names: Sequence[Alias]) -> tuple[NewPassage, ...]:
        return self._passages(Owner(entity.id, "entity"), names_text(entity.name, [alias.name for alias in names]))

    def of_relation(self, relation: Relation) -> tuple[NewPassage, ...]:
        """Return the text of a fact; see `fact_text`."""
        text = fact_text(relation.fact, relation.type, fact_of(relation).aspect)
        return self._passages(Owner(relation.id, "relation"), text)

    def _passages(self, owner: Owner, text: str) -> tuple[NewPassage, ...]:
        kept = text[:MAX_CHARACTERS]
        self.prepare([kept])
        token_ids, vector = self._made[kept]
        id_ = passage_id(self.destination.namespace, owner, 0)
        return (NewPassage(id_, Chunk(kept, 1, 1 + kept.count("\n")), token_ids, vector),)


def fact_text(fact: str, type_: str, aspect: str = "") -> str:
    """Return the text by which a fact is found: the sentence that says it, and its type and aspect in words.

    Who "moved to Munich" is asked for by where she lives, who "switched to Helix" by the editor.
    """
    words = [] if aspect and type_ == "RELATED_TO" else [type_.replace("_", " ").lower()]
    return "\n".join((fact, " ".join([*words, aspect]).strip()))


def names_text(name: str, names: Sequence[str]) -> str:
    return ", ".join(list(dict.fromkeys((name, *names)))[:MAX_NAMES])


def merged_into(entity: Entity) -> list[str]:
    """Return the ids of the entities that were merged into one, oldest first; not those merged into these."""
    found: list[str] = json.loads(entity.attributes).get(OWN, {}).get("merged", [])
    return found


def with_merged(entity: Entity, merged: Sequence[str]) -> Entity:
    attributes = json.loads(entity.attributes)
    attributes.pop(OWN, None)
    if merged:
        attributes[OWN] = {"merged": list(merged)}
    return replace(entity, attributes=json.dumps(attributes, sort_keys=True))


def all_merged(graph: GraphReading, entity: Entity) -> list[Entity]:
    """Return all entities that are one now: this one, those merged into it, those merged into these."""
    found = [entity]
    for each in found:
        found += graph.entities(merged_into(each)).values()
    return found


def roots(graph: GraphReading, ids: Iterable[str]) -> dict[str, str]:
    """Return what entities are now: themselves, or what they were merged into."""
    found: dict[str, str] = {}
    for id_ in dict.fromkeys(ids):
        root, seen = id_, set[str]()
        while root not in seen:
            seen.add(root)
            entity = graph.entities([root]).get(root)
            if entity is not None and entity.merged_into:
                root = entity.merged_into
        found[id_] = root
    return found
