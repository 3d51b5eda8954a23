"""Build owners and passages from the rows of the statements about them."""

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
    """Build an owner from the columns of `owners` after the number: those of the owner, then its stamp's or NULLs."""
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
_BATCH_SIZE: Final = 500


def plain_owners(store: Store, namespace: str, filter_: Filter) -> Iterator[tuple[int, Owner]]:
    """Yield (number, owner), ascending, of owners that pass a filter and are neither memories nor knowledge items."""
    numbers = store.matching_owners(namespace, filter_)
    for begin in range(0, len(numbers), _BATCH_SIZE):
        batch = numbers[begin : begin + _BATCH_SIZE]
        recorded = {*store.memory_records(namespace, batch), *store.knowledge(namespace).of_numbers(batch)}
        yield from sorted(
            (number, owner) for number, owner in store.owners(namespace, batch).items() if number not in recorded
        )


def cut_owners(store: Store, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[int, Owner, tuple[Chunk, ...]]]:
    """Yield (number, owner, chunks) of the owners that exist, in the order of `numbers`."""
    for begin in range(0, len(numbers), _BATCH_SIZE):
        batch = numbers[begin : begin + _BATCH_SIZE]
        owners, chunks = store.owners(namespace, batch), defaultdict[int, list[Chunk]](list)
        passages = store.passages(namespace, store.passages_of(namespace, batch))
        for passage in sorted(passages.values(), key=lambda passage: passage.ordinal):
            chunks[passage.owner_number].append(passage.chunk)
        yield from ((number, owners[number], tuple(chunks[number])) for number in batch if number in owners)
