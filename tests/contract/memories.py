"""Small memories for the contract of stores, and everything that can be read of a namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.contract.stores import UUID, passage

from commonplace.store.schema import numbers_after
from commonplace.store.store import Store
from commonplace.types import KINDS, Filter, MemoryRecord, MemoryWrite, Owner, Selection, StoredMemory

FULL_MEMORY_OWNER = Owner(
    UUID,
    "memory",
    title="Title",
    summary="What it is",
    tags=("b", "a", "b"),
    type="code",
    phase="construction",
    references=("docs/a.md", "b"),
    root="src",
    session="s",
    position=7,
    at=1.5,
)

FULL_RECORD = MemoryRecord(
    content="We chose Postgres",
    tier="long",
    status="promoted",
    category="decision",
    entities=("Postgres", "billing", "Postgres"),
    source="standup",
    origin="user",
    trust=0.25,
    metadata='{"a":1}',
    version=3,
    born_at=-1.5,
    last_used=1e12,
    use_count=4,
    strength=2.5,
    uses=(1.5, -2.0, 1e12),
    review_count=2,
    derived_from=("x", UUID),
    is_forced=True,
    promoted_at=9.0,
    vault_path="vault/a.md",
)


def written(
    id_: str,
    *texts: str,
    session: str = "",
    position: int | None = None,
    at: float | None = None,
    tags: tuple[str, ...] = (),
    digest: str = "",
    bands: tuple[int, ...] = (),
    dates: tuple[tuple[float, float], ...] = (),
    **fields: Any,
) -> MemoryWrite:
    """Return a version; with a position it is placed there, and other fields are the record's."""
    owner = Owner(id_, "memory", session=session, position=position or 0, at=at, tags=tags)
    record = MemoryRecord(**{"content": " ".join(texts), **fields})
    return MemoryWrite(owner, tuple(map(passage, texts)), record, digest, bands, dates, position is not None)


def add(store: Store, *writes: MemoryWrite, name: str = "n", at: float = 10.0, until: float | None = None) -> list[int]:
    """Add versions in one change and return their numbers."""
    with store.change_memories(name) as change:
        return [change.add(write, created_at=at, expired_at=until) for write in writes]


def expire(store: Store, id_: str, at: float, *, name: str = "n") -> None:
    """Make the live version of a memory past, its record as it was."""
    with store.change_memories(name) as change:
        found = change.find(id_)
        assert found is not None
        change.expire(found.number, found.record, at)


def update(store: Store, write: MemoryWrite, at: float, *, name: str = "n") -> int:
    """Replace the live version of a memory by another one."""
    with store.change_memories(name) as change:
        found = change.find(write.owner.id)
        assert found is not None
        change.expire(found.number, found.record, at)
        return change.add(write, created_at=at)


def latest(store: Store, id_: str, *, name: str = "n") -> StoredMemory:
    """Return the latest version of a memory that is there."""
    found = store.memory(name, id_)
    assert found is not None
    return found


TIMES = (0.0, 5.0, 15.0, 25.0, 35.0)


def everything(store: Store, name: str, ids: Sequence[str] = (), sessions: Sequence[str] = ()) -> dict[str, object]:
    """Return every answer of every method about one namespace, of the first numbers of several, and of these ids.

    Questions about a time are asked for `TIMES`. Notes, which are asked for by kind, are not among the answers.
    """
    starts = [numbers_after(space) for space in range(1, 9)]
    numbers = [start + number for start in starts for number in range(1, 99)]
    owners, passages = store.owners(name, numbers), store.passages(name, numbers)
    # What names no number in its answers is asked for all at once, and for each that is there alone.
    asked = [numbers, *([number] for number in sorted({*owners, *passages}))]
    return {
        "artifacts": store.artifacts(name),
        "owners": owners,
        "with_owners": store.passages_with_owners(name, numbers),
        "passages": passages,
        "passages_of": [store.passages_of(name, each) for each in asked],
        "tokens": store.tokens(name, numbers),
        "entries": store.entries(name, numbers),
        "neighbours": [store.neighbours(name, each) for each in asked],
        "places": [store.places(name, kind, ids) for kind in KINDS],
        "owner_numbers": [store.owner_numbers(name, kind, ids) for kind in KINDS],
        "last_position": [store.last_position(name, session) for session in sessions],
        "matching": store.matching_owners(name, Filter()),
        "matching_past": [store.matching_owners(name, Filter(as_of=time)) for time in TIMES],
        "counts": store.counts(name),
        "tail": store.tail(name, 0),
        "followed": list(store.entries_since(name, 0, 99)),
        "memory": [store.memory(name, id_) for id_ in ids],
        "memories": store.memories(name, Selection()),
        "count_memories": store.count_memories(name, Selection()),
        "versions": [store.versions(name, id_) for id_ in ids],
        "records": store.memory_records(name, numbers),
        "statements": store.statements(name, numbers),
        "links": store.links(name),
        "dated": store.dated(name, float("-inf"), float("inf")),
        "past": [store.past(name, time) for time in TIMES],
        "happened": [store.matching_owners(name, Filter(valid_at=time)) for time in TIMES],
        "happened_past": [store.matching_owners(name, Filter(valid_at=time, as_of=15.0)) for time in TIMES],
        "past_happened": [store.past(name, as_of, time) for as_of in (None, 15.0) for time in TIMES],
        "due": store.due(name),
        "blocks": store.blocks(name),
        "pages": store.pages(name),
    }
