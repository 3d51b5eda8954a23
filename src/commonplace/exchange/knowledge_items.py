"""Agents' knowledge and contexts in an export: their lines, what an import takes in of them, and how that is written.

Vectors and texts are made anew of the maps. It knows no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from commonplace.errors import UsageError
from commonplace.exchange.graph_comparing import Outcome
from commonplace.exchange.lines import refuse_other_entries, time_of
from commonplace.ingest.passages import PassageMaker
from commonplace.ingest.reading import normalise
from commonplace.knowledge.contexts import AgentContext, record_of
from commonplace.knowledge.maps import KnowledgeMap, checked_maps, checked_name
from commonplace.memories.intake import refuse_unfit_id
from commonplace.memories.times import seconds
from commonplace.types import Owner
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord, KnowledgeWrite

if TYPE_CHECKING:
    from commonplace.ingest.passages import Destination
    from commonplace.store.knowledge_contract import KnowledgeChange, KnowledgeReading
    from commonplace.types.knowledge import StoredKnowledge

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
    refuse_unfit_id(id_)
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
