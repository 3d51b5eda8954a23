"""Candidates of one search with their raw signals, as parallel arrays. It knows arrays, not where they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from commonplace.types import EMBEDDED_KIND_OF, Embedding, TokenEntry

LEXICAL, DENSE, LATE, NEIGHBOURS = "lexical", "dense", "late", "neighbours"
COVERAGE, WORDS = "coverage", "words"
TIME, SPEAKER, RETENTION, BEHIND, PHRASINGS = "time", "speaker", "retention", "behind", "phrasings"


@dataclass(frozen=True, slots=True)
class Spaces:
    """The vector spaces of a store: one for each of its embedders.

    Attributes:
        stamps: of the embedders; a space's code is its place here.
        codes: of each kind of owner.
        dimensions: of the longest vectors; shorter ones are filled with zeros.
    """

    stamps: tuple[Embedding, ...]
    codes: Mapping[str, int]
    dimensions: int

    @classmethod
    def of(cls, embedding: Embedding) -> Spaces:
        """Return the spaces of a store with that stamp."""
        stamps = embedding.spaces
        codes = {kind: stamps.index(embedding.of(kind)) for kind in EMBEDDED_KIND_OF}
        return cls(stamps, codes, max(stamp.dimensions for stamp in stamps))


@dataclass(frozen=True, slots=True)
class Candidates:
    """n candidate passages, by number ascending.

    Attributes:
        numbers, owners: int64, shape (n,).
        lexical: BM25, 0 where no term matches; float32, shape (n,), like all that follow.
        dense: cosine of query and passage in the passage's own space, −1–1; 0 where it has no vector yet.
        late: late-interaction coverage of the query, where a token counts the less, the farther from the passage's
            beginning it stands, 0–1.
        literal: the share of the query that the passage holds literally, by tokens or by terms, by IDF, 0–1.
        coverage: late-interaction coverage by what the tokens weigh in any text, not by their IDF here, 0–1.
        words: the share of the query that BM25 found, 0–1.
        spaces: codes of the passages' embedders, places in `PreparedQuery.embedders`, the last of them for one that has
            no vector yet; uint8, shape (n,).
        lengths: how many tokens the passage has; int64.
        asks: whether it asks something; bool.
        speakers: who speaks in it, 0 where it does not begin with that, else as `conversation.SPEAKERS` has them; int8.
    """

    numbers: NDArray[np.int64]
    owners: NDArray[np.int64]
    lexical: NDArray[np.float32]
    dense: NDArray[np.float32]
    late: NDArray[np.float32]
    literal: NDArray[np.float32]
    coverage: NDArray[np.float32]
    words: NDArray[np.float32]
    spaces: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    asks: NDArray[np.bool_]
    speakers: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def size_bytes(self) -> int:
        """Bytes of the arrays."""
        floats = (self.lexical, self.dense, self.late, self.literal, self.coverage, self.words)
        numbers = (self.numbers, self.owners, self.spaces, self.lengths, self.asks, self.speakers)
        return sum(array.nbytes for array in (*numbers, *floats))

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
            self.spaces[keep],
            self.lengths[keep],
            self.asks[keep],
            self.speakers[keep],
        )

    def followed_by(self, others: Candidates) -> Candidates:
        """Return these candidates and, behind them, others: by number ascending in either part only."""
        both = (np.concatenate((getattr(self, each.name), getattr(others, each.name))) for each in fields(self))
        return Candidates(*both)


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Token ids and vectors of n passages, by number ascending.

    Attributes:
        token_ids: one passage after the other; uint16, shape (sum of lengths,).
        vectors: int8, shape (n, d), d being the most dimensions of any space.
        spaces: uint8, shape (n,).
    """

    numbers: NDArray[np.int64]
    owners: NDArray[np.int64]
    lengths: NDArray[np.int64]
    token_ids: NDArray[np.uint16]
    vectors: NDArray[np.int8]
    spaces: NDArray[np.uint8]

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
            self.spaces[keep],
        )

    def holding(self, token_ids: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """Return whether each row holds one of the tokens, bool, shape (n,)."""
        held, ends = np.zeros(len(self), dtype=np.bool_), np.cumsum(self.lengths)
        for token in token_ids:
            held[np.searchsorted(ends, np.flatnonzero(self.token_ids == token), side="right")] = True
        return held

    def beginnings(self, count: int) -> NDArray[np.uint16]:
        """Return the first tokens of each row, uint16, shape (n, count), 0 where it has fewer."""
        places = (np.cumsum(self.lengths) - self.lengths)[:, np.newaxis] + np.arange(count)
        has = np.arange(count) < self.lengths[:, np.newaxis]
        found = np.zeros((len(self), count), dtype=np.uint16)
        found[has] = self.token_ids[places[has]]
        return found

    def ascending(self) -> TokenRows:
        """Return the rows by number ascending."""
        return self.take(np.argsort(self.numbers))

    def take(self, order: NDArray[np.intp]) -> TokenRows:
        """Return the rows in that order, int64, shape (m,), each at most once."""
        lengths = self.lengths[order]
        shifts = (np.cumsum(self.lengths) - self.lengths)[order] - (np.cumsum(lengths) - lengths)
        places = np.arange(len(self.token_ids)) + np.repeat(shifts, lengths)
        return TokenRows(
            self.numbers[order],
            self.owners[order],
            lengths,
            self.token_ids[places],
            self.vectors[order],
            self.spaces[order],
        )


def token_rows(entries: list[TokenEntry], spaces: Spaces) -> TokenRows:
    """Return the entries, given by number ascending, as arrays."""
    dimensions = spaces.dimensions
    return TokenRows(
        numbers=np.array([entry.number for entry in entries], dtype=np.int64),
        owners=np.array([entry.owner_number for entry in entries], dtype=np.int64),
        lengths=np.array([len(entry.token_ids) // 2 for entry in entries], dtype=np.int64),
        token_ids=np.frombuffer(b"".join(entry.token_ids for entry in entries), dtype="<u2"),
        vectors=np.frombuffer(
            b"".join(
                entry.vector if len(entry.vector) == dimensions else entry.vector.ljust(dimensions, b"\0")
                for entry in entries
            ),
            dtype=np.int8,
        ).reshape(-1, dimensions),
        spaces=np.array([spaces.codes[entry.kind] for entry in entries], dtype=np.uint8),
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
        np.concatenate((first.spaces, second.spaces)),
    )
    return both if first.numbers[-1] < second.numbers[0] else both.ascending()


def cosines(held: TokenRows, queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each row with the query's vector of its space.

    Args:
        queries: one vector a space, of unit length or zero; float32, shape (s, d).
    """
    rows = held.vectors.astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    products = (rows @ queries.T)[np.arange(len(rows)), held.spaces]
    result: NDArray[np.float32] = np.divide(products, norms, out=np.zeros(len(rows), np.float32), where=norms > 0)
    return result
