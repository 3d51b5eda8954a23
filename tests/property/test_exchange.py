"""Whatever may be stored comes back from an export as it was, and a damaged export changes nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.reference_store.store import MemoryStore
from tests.unit.exchange.imports import dump, import_file, import_given, read

from commonplace.errors import CommonplaceError, UsageError
from commonplace.exchange.codec import decode_line, encode_line
from commonplace.exchange.items import Item, LinkItem, MemoryItem, OwnerItem, checked_version
from commonplace.exchange.read import read_export
from commonplace.store.store import Store
from commonplace.types import KINDS, ORIGINS, TIERS, Chunk, FileStamp, Link, MemoryRecord, Owner, StoredMemory

letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from(
    "\U0001f600\x01\r\u2028\x85\"\\{}' "
)
texts = st.text(letters, max_size=12)
names = st.text(letters, min_size=1, max_size=6).filter(str.strip)
labels = st.lists(names.map(lambda text: " ".join(text.split())), max_size=3).map(tuple)
ids = st.sampled_from(["a", "b", "é\x01", "\U0001f600", "0b8ff5a4-6a4d-4c5e-9d3c-0123456789ab"])
# SQLite keeps no sign of zero.
times = st.floats(-6e10, 2.5e11).map(lambda time: time + 0.0)
shares = st.floats(0.0, 1.0)
counts = st.integers(0, 2**63 - 1)
values: st.SearchStrategy[object] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(letters, max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(letters, max_size=3), inner, max_size=2),
    max_leaves=4,
)
records = st.builds(
    MemoryRecord,
    content=st.text(letters, min_size=1, max_size=40),
    tier=st.sampled_from(TIERS[1:]),
    category=names,
    entities=labels,
    source=texts,
    origin=st.sampled_from(ORIGINS),
    trust=shares,
    metadata=st.dictionaries(st.text(max_size=4), values, max_size=3).map(lambda doc: encode_line(doc).decode("ascii")),
    born_at=times,
    last_used=times,
    use_count=counts,
    strength=st.floats(0.0, 2.0),
    uses=st.lists(times, max_size=3).map(tuple),
    review_count=counts,
    derived_from=labels,
    is_forced=st.just(True),
    promoted_at=st.none() | times,
    vault_path=st.sampled_from(["", "vault/é\ue000.md"]),
)
owner_texts = {"title": texts, "summary": texts, "type": texts, "phase": texts, "root": texts}
placed = {"session": st.sampled_from(["", "s"]), "position": st.integers(-(2**63), 2**63 - 1)}
memory_owners = st.builds(
    Owner, id=ids, kind=st.just("memory"), tags=labels, at=st.none() | times, references=labels, **owner_texts, **placed
)
owners = st.builds(
    Owner,
    id=ids,
    kind=st.sampled_from(KINDS),
    tags=st.lists(texts, max_size=2).map(tuple),
    references=st.lists(texts, max_size=2).map(tuple),
    path=texts,
    at=st.none() | times | st.sampled_from([float("inf"), float("-inf")]),
    stamp=st.none() | st.builds(FileStamp, texts, counts, st.integers(-(2**63), 2**63 - 1), texts),
    **owner_texts,
    **placed,
)
lines = st.integers(1, 2**63 - 1)
chunks = st.tuples(texts, lines, lines, texts).map(lambda c: Chunk(c[0], min(c[1:3]), max(c[1:3]), c[3]))


@st.composite
def memories(draw: st.DrawFn) -> MemoryItem:
    """A memory with its versions: what intake makes of anything that is given."""
    owner, versions = draw(memory_owners), []
    for number in range(draw(st.integers(1, 3)), 0, -1):
        created_at, expired_at = sorted((draw(times), draw(times)))
        is_live = number == 1 and draw(st.booleans())
        record = replace(
            draw(records), version=4 - number, status="archived" if number == 1 and not is_live else "active"
        )
        try:
            until = None if is_live else expired_at
            version = checked_version(
                StoredMemory(0, replace(owner, tags=draw(labels)), record, created_at, until), 1000
            )
        except UsageError:
            assume(False)
        versions.append(version)
    return MemoryItem(tuple(versions))


@st.composite
def spaces(draw: st.DrawFn) -> list[Item]:
    """Everything that a namespace may hold, in the order of an export."""
    found = sorted(draw(st.lists(memories(), max_size=3, unique_by=lambda item: item.key)), key=lambda item: item.key)
    ends = [item.key for item in found]
    keys = draw(st.sets(st.tuples(st.sampled_from(ends), st.sampled_from(ends), names), max_size=3)) if ends else set()
    links = [LinkItem(Link(*key, draw(shares), draw(times))) for key in sorted(keys) if key[0] != key[1]]
    others = draw(st.lists(owners, max_size=3, unique_by=lambda owner: (owner.kind, owner.path or owner.id)))
    apart = {(owner.kind, owner.id): owner for owner in others if owner.kind != "memory" or owner.id not in ends}
    by_key = sorted(apart.values(), key=lambda owner: (KINDS.index(owner.kind), owner.id))
    return [*found, *links, *(OwnerItem(each, tuple(draw(st.lists(chunks, max_size=2)))) for each in by_key)]


def plain(item: object) -> object:
    """Return an item without the place where it stood."""
    assert isinstance(item, Item)
    return replace(item, place="")


@contextmanager
def two_stores() -> Iterator[tuple[Store, Store, Path]]:
    """The reference and a store on disk, and where files may go."""
    with tempfile.TemporaryDirectory() as directory:
        first, second = MemoryStore(), Store.create(Path(directory, "store.db"))
        try:
            yield first, second, Path(directory, "e.jsonl")
        finally:
            first.close()
            second.close()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spaces())
def test_export_and_import_lose_nothing(items: list[Item]) -> None:
    with two_stores() as (first, second, path):
        import_given(first, items)
        exported = dump(first)
        assert [plain(item) for item in read(exported, path)] == [plain(item) for item in items]
        import_file(second, path)
        assert dump(second) == exported
        change = second.change()
        import_file(second, path)
        assert (second.change(), dump(second), second.check()) == (change, exported, [])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spaces(), st.data())
def test_a_damaged_export_is_refused_or_the_same(items: list[Item], data: st.DataObject) -> None:
    """It may be the same: a changed letter can leave a number as it was."""
    with two_stores() as (first, second, path):
        import_given(first, items)
        exported = dump(first)
        damaged = bytearray(exported.encode("ascii"))
        at = data.draw(st.integers(0, len(damaged) - 1))
        if data.draw(st.booleans()):
            del damaged[at:]
        else:
            damaged[at] ^= data.draw(st.integers(1, 255))
        path.write_bytes(damaged)
        try:
            import_file(second, path, skip_problems=True)
        except CommonplaceError:
            assert (second.change(), second.namespaces()) == (0, [])
        else:
            assert dump(second) == exported


@settings(deadline=None)
@given(st.binary(max_size=80) | st.text(st.sampled_from('{}[]":,0aeu\\\n'), max_size=80).map(str.encode))
def test_what_is_no_export_is_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "e.jsonl")
        path.write_bytes(data)
        with pytest.raises(UsageError):
            list(read_export(path, max_bytes=1000))


@given(st.dictionaries(st.text(max_size=3), texts | times | st.none() | st.booleans() | counts, max_size=4))
def test_a_line_is_one_line_of_ascii(entries: dict[str, object]) -> None:
    line = encode_line(entries)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert decode_line(line).keys() == entries.keys()
