"""Compute the raw signals of passages: lexical, dense, token and conversational."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, replace
from commonplace.models.contract import Similarities
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import within
from commonplace.ranking.bm25 import Statistics, TermRows
from commonplace.ranking.calibration import BY_EMBEDDER, STRANGER, literal_share
from commonplace.ranking.late_interaction import find_matches, weighted_share
from commonplace.search.request import PreparedQuery
from commonplace.types import EMBEDDED_KIND_OF, GRAPH_KINDS, KINDS, Embedding, TokenEntry

LEXICAL, DENSE, LATE = "lexical", "dense", "late"
COVERAGE, WORDS, TIME = "coverage", "words", "time"


@dataclass(frozen=True, slots=True)
class Spaces:
    """The vector spaces of a store, one for each of its embedders.

    Attributes:
        stamps: of the embedders; the code of a space is its index here.
        codes: the code of the space of each kind of owner.
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
        crowding: its mean cosine with the `NEAREST` most similar of the `POOL` best by `dense` in its own space, the
            first `ANSWERING` left out, −1–1; 0 where the embedder is not in `CROWDING`.
        late: late-interaction coverage of the query, 0–1; later tokens of the passage count less.
        literal: the share of the query that the passage holds literally, by tokens or terms, weighted by IDF, 0–1.
        coverage: late-interaction coverage weighted by the tokens' general weights, not by their IDF here, 0–1.
        words: the share of the query that BM25 found, 0–1.
        spaces: codes of the passages' embedders, places in `PreparedQuery.embedders`, the last of them for one that has
            no vector yet; uint8, shape (n,).
        lengths: number of tokens of the passage; int64.
        asks: whether it asks something; bool.
        speakers: the speaker that it begins with, a value of `SPEAKERS`, else 0; int8.
    """

    numbers: NDArray[np.int64]
    owners: NDArray[np.int64]
    lexical: NDArray[np.float32]
    dense: NDArray[np.float32]
    crowding: NDArray[np.float32]
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

    def select(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> Candidates:
        """Return the candidates where `keep` (bool, shape (n,)) is true, or those at its places."""
        return Candidates(*(getattr(self, name)[keep] for name in self.__slots__))

    @classmethod
    def of_all(cls, parts: Sequence[Candidates]) -> Candidates:
        """Return candidates one after the other: by number ascending in each part only."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


_KIND_CODES: Final[Mapping[str, int]] = {kind: code for code, kind in enumerate((*KINDS, *GRAPH_KINDS))}


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Token ids and vectors of n passages, by number ascending.

    Attributes:
        token_ids: one passage after the other; uint16, shape (sum of lengths,).
        vectors: int8, shape (n, d), d being the most dimensions of any space.
        spaces, kinds: codes of their spaces, and of the kinds of their owners; uint8, shape (n,).
        times: of memories with a date of their own, seconds since the epoch, else NaN; float64, shape (n,).
        sessions: "" where there is none; object, shape (n,).
    """

    numbers: NDArray[np.int64]
    owners: NDArray[np.int64]
    lengths: NDArray[np.int64]
    token_ids: NDArray[np.uint16]
    vectors: NDArray[np.int8]
    spaces: NDArray[np.uint8]
    kinds: NDArray[np.uint8]
    times: NDArray[np.float64]
    sessions: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.numbers)

    def select(self, keep: NDArray[np.bool_]) -> TokenRows:
        """Return the rows where `keep` (bool, shape (n,)) is true."""
        return self if keep.all() else self.take(np.flatnonzero(keep))

    def of_kinds(self, kinds: Collection[str]) -> NDArray[np.bool_]:
        """Return whether each row is of one of some kinds, bool, shape (n,)."""
        return np.isin(self.kinds, [_KIND_CODES[kind] for kind in kinds])

    def holding(self, token_ids: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """Return whether each row holds one of the tokens, bool, shape (n,)."""
        is_held, ends = np.zeros(len(self), dtype=np.bool_), np.cumsum(self.lengths)
        for token in token_ids:
            is_held[np.searchsorted(ends, np.flatnonzero(self.token_ids == token), side="right")] = True
        return is_held

    def take(self, order: NDArray[np.intp]) -> TokenRows:
        """Return the rows at these indexes, in that order; int64, shape (m,)."""
        lengths = self.lengths[order]
        shifts = (np.cumsum(self.lengths) - self.lengths)[order] - (np.cumsum(lengths) - lengths)
        tokens = self.token_ids[np.arange(lengths.sum()) + np.repeat(shifts, lengths)]
        names = ("numbers", "owners", "vectors", "spaces", "kinds", "times", "sessions")
        return TokenRows(lengths=lengths, token_ids=tokens, **{name: getattr(self, name)[order] for name in names})


def token_rows(entries: list[TokenEntry], spaces: Spaces) -> TokenRows:
    """Return the entries, given by number ascending, as arrays."""
    vectors = b"".join(entry.vector.ljust(spaces.dimensions, b"\0") for entry in entries)
    times = [nan if entry.at is None or entry.kind != "memory" else entry.at for entry in entries]
    return TokenRows(
        numbers=np.array([entry.number for entry in entries], dtype=np.int64),
        owners=np.array([entry.owner_number for entry in entries], dtype=np.int64),
        lengths=np.array([len(entry.token_ids) // 2 for entry in entries], dtype=np.int64),
        token_ids=np.frombuffer(b"".join(entry.token_ids for entry in entries), dtype="<u2"),
        vectors=np.frombuffer(vectors, dtype=np.int8).reshape(-1, spaces.dimensions),
        spaces=np.array([spaces.codes[entry.kind] for entry in entries], dtype=np.uint8),
        kinds=np.array([_KIND_CODES[entry.kind] for entry in entries], dtype=np.uint8),
        times=np.array(times, dtype=np.float64),
        sessions=np.array([entry.session for entry in entries], dtype=np.object_),
    )


def concatenate(first: TokenRows, second: TokenRows) -> TokenRows:
    """Return the rows of both, which share no number, by number ascending."""
    if not len(first) or not len(second):
        return first if len(first) else second
    both = TokenRows(*(np.concatenate((getattr(first, name), getattr(second, name))) for name in first.__slots__))
    return both if first.numbers[-1] < second.numbers[0] else both.take(np.argsort(both.numbers))


def cosines(stored: TokenRows, queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each row with the query's vector of its space.

    Args:
        queries: one vector a space, of unit length or zero; float32, shape (s, d).
    """
    rows = stored.vectors.astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    products = (rows @ queries.T)[np.arange(len(rows)), stored.spaces]
    result: NDArray[np.float32] = np.divide(products, norms, out=np.zeros(len(rows), np.float32), where=norms > 0)
    return result


CROWDING: Final[Mapping[str, float]] = {"minilm": 0.3}
"""Weight, by embedder, of a candidate's crowding, which is taken from its cosine.

Short sentences that say little are near to everything ("hubs") and rank before the answer to a question in other words.
Their nearness to the other candidates betrays them (the locally scaled cosine, Conneau et al. 2018). For documents
embedded by the static table, the correction costs as much as it gains."""
NEAREST: Final = 10
POOL: Final = 100
ANSWERING: Final = 10
"""Number of best candidates by cosine that crowd nothing: all may be about the question, as memories of one subject."""


def crowding(stored: TokenRows, dense: NDArray[np.float32], embedders: Sequence[str]) -> NDArray[np.float32]:
    """Return the crowding of each row, as `Candidates` has it; `STRANGER` stands for missing neighbours.

    Args:
        dense: cosines with the query, float32, shape (n,).
        embedders: of each space, "" for none.
    """
    result = np.zeros(len(stored), dtype=np.float32)
    for space, embedder in enumerate(embedders):
        members = np.flatnonzero((stored.spaces == space) & stored.vectors.any(axis=1))
        if embedder not in CROWDING or not len(members):
            continue
        best = np.argsort(-dense[members], kind="stable")[ANSWERING:POOL]
        rows = stored.vectors[members].astype(np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        cosines = rows @ rows[best].T / np.outer(norms, norms[best])
        cosines[best, np.arange(len(best))] = -1.0
        padded = np.hstack([cosines, np.full((len(members), max(0, NEAREST + 1 - len(best))), STRANGER)])
        result[members] = -np.partition(-padded, NEAREST - 1, axis=1)[:, :NEAREST].mean(axis=1)
    return result


USER, ASSISTANT = 1, 2
SPEAKERS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("user", "human"), USER),
    **dict.fromkeys(("assistant", "ai", "agent", "bot"), ASSISTANT),
}
"""Speaker by the word before the colon with which a turn begins."""
MAX_QUERY_TOKENS = 32
"""Maximum number of tokens of a query that late interaction reads: the rarest."""
STOP_WORD = np.float32(0.3)
"""Weight in late interaction of a token of a stop word, where others have their word's IDF: about that of a word that
three in four passages hold."""
FADING = 16.0
"""Decay by position in late interaction: a token with p others before it in its passage counts (1 + p / 16)^−½ of what
the first one does, because a passage begins with what it is about. From 4 to 16, all values do about equally well; the
largest loses least on passages whose beginnings say nothing (docs/benchmarks.md)."""
LITERAL = 0.999
"""Least similarity at which a token counts as the same token."""
_QUESTION_MARKS = "? ？"


@dataclass(slots=True)
class Phrasing:
    """One phrasing of a query, and the signals that it gives passages."""

    text: str
    query: PreparedQuery
    model: StaticEmbedder
    _tokens: tuple[Similarities, NDArray[np.float32], NDArray[np.float32]] | None = None
    """The query's rarest tokens: their similarities, the IDF of their words, and their general weights."""

    def shares(self, rows: TokenRows, statistics: Statistics) -> tuple[NDArray[np.float32], ...]:
        """Return `late`, `literal` and `coverage` of each row, as `Candidates` has them.

        They use the query's rarest tokens with the IDF of their words, not of the pieces: "##s" ends rare words and
        common ones. Of a word's terms, the one that most passages hold counts: the name of a programming language,
        which is among the tags, is not rare where everything is written in it.

        Args:
            statistics: of the passages, the same on every call: the first call's IDF is kept.
        """
        if self._tokens is None:
            rarities = (map(min, (map(statistics.rarity, terms) for terms in words)) for words in self.query.spelled)
            idf = np.array([max(word_rarities, default=STOP_WORD) for word_rarities in rarities], dtype=np.float32)
            rarest = np.sort(np.argsort(-idf, kind="stable")[:MAX_QUERY_TOKENS])
            token_ids = self.query.token_ids[rarest]
            self._tokens = self.model.similarities(token_ids), idf[rarest], self.model.weights(token_ids)
        similarities, idf, weights = self._tokens
        matches = find_matches(similarities.cosines, similarities.columns.take(rows.token_ids), rows.lengths)
        best = matches.best()
        literal = weighted_share((best >= LITERAL).astype(np.float32), idf)
        return weighted_share(matches.best(FADING), idf), literal, weighted_share(best, weights)

    def candidates(
        self,
        rows: TokenRows,
        bm25: NDArray[np.float32],
        statistics: Statistics,
        terms_of: Callable[[NDArray[np.int64]], Sequence[bytes]],
    ) -> Candidates:
        """Return all signals of passages.

        Args:
            terms_of: returns the term counts of passages.
        """
        query, tokenize = self.query, self.model.tokenize
        late, literal, coverage = self.shares(rows, statistics)
        words = literal_share(bm25, total_rarity(query.words, statistics))
        dense = cosines(rows, query.vectors)
        speakers, begins = np.zeros(len(rows), dtype=np.int8), np.cumsum(rows.lengths) - rows.lengths
        begins[rows.lengths < 2] = 0  # rows too short to begin with "user:" are left out below
        for name, speaker in SPEAKERS.items():
            tokens = tokenize(f"{name}:")
            if len(tokens) == 2 and len(rows.token_ids) > 1:
                is_named = (rows.token_ids[begins] == tokens[0]) & (rows.token_ids[begins + 1] == tokens[1])
                speakers[is_named & (rows.lengths > 1)] = speaker
        result = Candidates(
            numbers=rows.numbers,
            owners=rows.owners,
            lexical=bm25,
            dense=dense,
            crowding=crowding(rows, dense, query.embedders),
            late=late,
            literal=np.maximum(literal, words),
            coverage=coverage,
            words=words,
            spaces=np.where(rows.vectors.any(axis=1), rows.spaces, np.uint8(len(query.embedders) - 1)),
            lengths=rows.lengths,
            asks=rows.holding(tokenize(_QUESTION_MARKS)),
            speakers=speakers,
        )
        if query.unspaced <= 0.0:
            return result
        # The part of the query without spaces is judged by terms alone, the rest by the tokens.
        matches, share = TermRows(terms_of(rows.numbers)).find(query.terms), np.zeros(len(rows), dtype=np.float32)
        total = total_rarity(query.words, statistics) or 1.0
        for word in query.words:
            mask = np.zeros(len(rows), dtype=np.bool_)
            mask[matches.rows[within(matches.terms, np.array(sorted(map(matches.words.index, word)), np.int64))]] = True
            share += mask * np.float32(total_rarity([word], statistics) / total)
        spaced, by_terms = np.float32(1.0 - query.unspaced), np.float32(query.unspaced) * share
        # An embedder that is not ours may well know the script.
        is_ours = np.array([name in BY_EMBEDDER for name in query.embedders])[result.spaces]
        return replace(
            result,
            dense=np.where(is_ours, spaced, np.float32(1.0)) * dense,
            **{name: spaced * getattr(result, name) + by_terms for name in ("late", "literal", "coverage", "words")},
        )


def total_rarity(words: Sequence[Sequence[str]], statistics: Statistics) -> float:
    """Return the sum of the words' IDF, each by its most frequent term; a word said twice counts twice."""
    return sum(min(map(statistics.rarity, word)) for word in words)
