"""Owners and their passages: what the statements about them give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from commonplace.store.rows import Row, form_of, unlisted
from commonplace.store.statements import Statements
from commonplace.types import Chunk, FileStamp, Filter, IndexEntry, Owner, Passage

if TYPE_CHECKING:
    from commonplace.store.store import Store

_OWNER = form_of(Owner)
_STAMP = form_of(FileStamp)
_CHUNK = form_of(Chunk)
_WIDTH = len(_OWNER.columns)
SQL: Final = Statements("owners")


def build_owner(row: Row) -> Owner:
    """Build an owner from the columns of `owners`, but for the number: its own, and those of a stamp or NULLs."""
    stamp = None if row[_WIDTH] is None else _STAMP.build(row[_WIDTH:])
    values = [*_OWNER.decode(row[:_WIDTH]), stamp]
    return Owner(*values)


def build_passage(row: Row) -> Passage:
    """Build a passage from the columns of `passages`."""
    number, id_, owner, ordinal, *chunk = row
    return Passage(number, id_, owner, ordinal, _CHUNK.build(chunk))


def build_entry(row: Row) -> IndexEntry:
    """Build an index entry from the columns of `entries`."""
    values = list(row)
    values[6] = unlisted(row[6])
    return IndexEntry(*values)


PASSAGE_WIDTH: Final = 4 + len(_CHUNK.columns)
_OWNERS_A_READ: Final = 500


def plain_owners(store: Store, namespace: str, wanted: Filter) -> Iterator[tuple[int, Owner]]:
    """Yield (number, owner), ascending, of what passes a filter and has no record: no memory, no item of knowledge."""
    numbers = store.matching_owners(namespace, wanted)
    for begin in range(0, len(numbers), _OWNERS_A_READ):
        some = numbers[begin : begin + _OWNERS_A_READ]
        known = {*store.memory_records(namespace, some), *store.knowledge(namespace).of_numbers(some)}
        yield from sorted(
            (number, owner) for number, owner in store.owners(namespace, some).items() if number not in known
        )


def cut_owners(store: Store, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[int, Owner, tuple[Chunk, ...]]]:
    """Yield (number, owner, what it was cut into) of those of some numbers that exist, in their order."""
    for begin in range(0, len(numbers), _OWNERS_A_READ):
        some = numbers[begin : begin + _OWNERS_A_READ]
        owners, chunks = store.owners(namespace, some), defaultdict[int, list[Chunk]](list)
        passages = store.passages(namespace, store.passages_of(namespace, some))
        for passage in sorted(passages.values(), key=lambda passage: passage.ordinal):
            chunks[passage.owner_number].append(passage.chunk)
        yield from ((number, owners[number], tuple(chunks[number])) for number in some if number in owners)
