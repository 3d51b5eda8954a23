"""Candidates of one search with their raw signals, as parallel arrays. It knows arrays, not where they are read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.types import TokenEntry

LEXICAL, DENSE, LATE, NEIGHBOURS = "lexical", "dense", "late", "neighbours"
COVERAGE, WORDS = "coverage", "words"
TIME, RETENTION = "time", "retention"


@dataclass(frozen=True, slots=True)
class Candidates:
    """n candidate passages, by number ascending.

    Attributes:
        numbers, owners: int64, shape (n,).
        lexical: BM25, 0 where no term matches; float32, shape (n,), like all that follow.
        dense: cosine of query and passage, −1–1.
        late: late-interaction coverage of the query, where a token counts the less, the farther from the passage's
            beginning it stands, 0–1.
        literal: the share of the query that the passage holds literally, by tokens or by terms, by IDF, 0–1.
        coverage: late-interaction coverage by what the tokens weigh in any text, not by their IDF here, 0–1.
        words: the share of the query that BM25 found, 0–1.
    """

    numbers: NDArray[np.int64]
    owners: NDArray[np.int64]
    lexical: NDArray[np.float32]
    dense: NDArray[np.float32]
    late: NDArray[np.float32]
    literal: NDArray[np.float32]
    coverage: NDArray[np.float32]
    words: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def size_bytes(self) -> int:
        """Bytes of the arrays."""
        floats = (self.lexical, self.dense, self.late, self.literal, self.coverage, self.words)
        return sum(array.nbytes for array in (self.numbers, self.owners, *floats))

    def select(self, keep: NDArray[np.bool_]) -> Candidates:
        """Return the candidates where `keep` (bool, shape (n,)) is true."""
        return Candidates(
            self.numbers[keep],
            self.owners[keep],
            self.lexical[keep],
            self.dense[keep],
            self.late[keep],
            self.literal[keep],
            self.coverage[keep],
            self.words[keep],
        )


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Token ids and vectors of n passages, by number ascending.

    Attributes:
        token_ids: one passage after the other; uint16, shape (sum of lengths,).
        vectors: int8, shape (n, d).
    """

    numbers: NDArray[np.int64]
    owners: NDArray[np.int64]
    lengths: NDArray[np.int64]
    token_ids: NDArray[np.uint16]
    vectors: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.numbers)

    def select(self, keep: NDArray[np.bool_]) -> TokenRows:
        """Return the rows where `keep` (bool, shape (n,)) is true."""
        if keep.all():
            return self
        return TokenRows(
            self.numbers[keep],
            self.owners[keep],
            self.lengths[keep],
            self.token_ids[np.repeat(keep, self.lengths)],
            self.vectors[keep],
        )

    def ascending(self) -> TokenRows:
        """Return the rows by number ascending."""
        return self.take(np.argsort(self.numbers))

    def take(self, order: NDArray[np.intp]) -> TokenRows:
        """Return the rows in that order, int64, shape (m,), each at most once."""
        lengths = self.lengths[order]
        shifts = (np.cumsum(self.lengths) - self.lengths)[order] - (np.cumsum(lengths) - lengths)
        places = np.arange(len(self.token_ids)) + np.repeat(shifts, lengths)
        return TokenRows(self.numbers[order], self.owners[order], lengths, self.token_ids[places], self.vectors[order])


def token_rows(entries: list[TokenEntry], dimensions: int) -> TokenRows:
    """Return the entries, given by number ascending, as arrays."""
    return TokenRows(
        numbers=np.array([entry.number for entry in entries], dtype=np.int64),
        owners=np.array([entry.owner_number for entry in entries], dtype=np.int64),
        lengths=np.array([len(entry.token_ids) // 2 for entry in entries], dtype=np.int64),
        token_ids=np.frombuffer(b"".join(entry.token_ids for entry in entries), dtype="<u2"),
        vectors=np.frombuffer(b"".join(entry.vector for entry in entries), dtype=np.int8).reshape(-1, dimensions),
    )


def concatenate(first: TokenRows, second: TokenRows) -> TokenRows:
    """Return the rows of both, which share no number, by number ascending."""
    if not len(first):
        return second
    if not len(second):
        return first
    both = TokenRows(
        np.concatenate((first.numbers, second.numbers)),
        np.concatenate((first.owners, second.owners)),
        np.concatenate((first.lengths, second.lengths)),
        np.concatenate((first.token_ids, second.token_ids)),
        np.concatenate((first.vectors, second.vectors)),
    )
    return both if first.numbers[-1] < second.numbers[0] else both.ascending()


def cosines(vectors: NDArray[np.int8], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each row of `vectors`, int8, shape (n, d), with `query`, float32, unit length or zero."""
    rows = vectors.astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    result: NDArray[np.float32] = np.divide(rows @ query, norms, out=np.zeros(len(rows), np.float32), where=norms > 0)
    return result
