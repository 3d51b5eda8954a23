"""Raw signals of candidates: of words, vectors and tokens. It reads index and rows beside it, and ranks nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.ranking.arrays import distinct, within
from commonplace.ranking.bm25 import rarity
from commonplace.ranking.calibration import BY_EMBEDDER, literal_share
from commonplace.ranking.late import find_matches, inverse_document_frequency, weighted_share
from commonplace.search.candidates import Candidates, Spaces, TokenRows, concatenate, cosines, token_rows
from commonplace.search.constants import FADING
from commonplace.search.conversation import SPEAKERS
from commonplace.search.recall import first_places
from commonplace.text.analysis import fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commonplace.index.contract import LexicalStatistics, Scope, Scored
    from commonplace.index.directory import Generation
    from commonplace.models.contract import Similarities
    from commonplace.search.request import PreparedQuery, Request
    from commonplace.store.contract import Store
    from commonplace.types import TokenEntry

MAX_QUERY_TOKENS = 32
"""Late interaction reads at most so many tokens of a query, the rarest."""

MAX_TAIL_CANDIDATES = 200
"""A longer tail is cut to its best by BM25 and its best by dense and late score, so many of each."""

MAX_READ = 50
"""The texts of so many candidates are read for words of scripts that the token model does not know."""

LITERAL = 0.999
"""A similarity from here on is the token itself."""

_QUESTION_MARKS = "? ？"


class TokenModel(Protocol):
    """What a search needs of the static model, besides the embedder that makes the vectors."""

    def tokenize(self, text: str) -> NDArray[np.uint16]:
        """Return the token ids of a text, uint16, shape (n,)."""
        ...

    def similarities(self, token_ids: NDArray[np.uint16]) -> Similarities:
        """Return how similar each token is to each of the given ones."""
        ...

    def weights(self, token_ids: NDArray[np.uint16]) -> NDArray[np.float32]:
        """Return how much each token tells in any text, float32, shape (n,), not negative."""
        ...


class Shares(NamedTuple):
    """How much of the query each of n rows covers, float32, shape (n,), 0–1; see `Candidates`."""

    late: NDArray[np.float32]
    literal: NDArray[np.float32]
    coverage: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """The query's tokens as late interaction sees them.

    Attributes:
        idf: over the passages here; float32, shape (q,).
        weights: what each tells in any text; float32, shape (q,).
        passages: how many there are in the namespace.
        question_marks: the tokens that end a question; uint16, shape (m,).
        speakers: who speaks in a passage, by the two tokens that it begins with.
    """

    similarities: Similarities
    idf: NDArray[np.float32]
    weights: NDArray[np.float32]
    passages: int
    question_marks: NDArray[np.uint16]
    speakers: Mapping[tuple[int, ...], int]

    def shares(self, rows: TokenRows) -> Shares:
        """Return how much of the query each row covers."""
        columns = self.similarities.columns.take(rows.token_ids)
        matches = find_matches(self.similarities.cosines, columns, rows.lengths)
        best = matches.best()
        return Shares(
            late=weighted_share(matches.best(FADING), self.idf),
            literal=weighted_share((best >= LITERAL).astype(np.float32), self.idf),
            coverage=weighted_share(best, self.weights),
        )


def weigh_tokens(
    query: PreparedQuery, generation: Generation, scope: Scope, rows: TokenRows, model: TokenModel
) -> TokenWeights:
    """Return the rarest tokens of the query with their IDF over the index and the rows that it does not hold."""
    documents, frequencies = generation.dense.token_frequencies(query.token_ids)
    if len(rows) and len(query.token_ids):
        frequencies = frequencies + _holding(rows, query.token_ids)
    frequencies = _with_languages(frequencies, query, generation)
    idf = inverse_document_frequency(documents + len(rows), frequencies)
    kept = np.sort(np.argsort(-idf, kind="stable")[:MAX_QUERY_TOKENS])
    token_ids = query.token_ids[kept]
    passages = generation.dense.passages(scope) + len(rows)
    marks, speakers = _punctuation(model)
    return TokenWeights(model.similarities(token_ids), idf[kept], model.weights(token_ids), passages, marks, speakers)


@dataclass(frozen=True, slots=True)
class ScoredTail:
    """Rows that the index does not hold, of the tail and of the past, with what BM25 says of them.

    Attributes:
        lexical: BM25, float32, shape (n,).
        statistics: of the index and these rows together.
    """

    rows: TokenRows
    lexical: NDArray[np.float32]
    statistics: LexicalStatistics

    def select(self, keep: NDArray[np.bool_]) -> ScoredTail:
        """Return the rows where `keep` (bool, shape (n,)) is true."""
        return ScoredTail(self.rows.select(keep), self.lexical[keep], self.statistics)

    def worth_ranking(self, query: PreparedQuery, tokens: TokenWeights, request: Request) -> NDArray[np.bool_]:
        """Return which rows are worth ranking, bool, shape (n,): the best by words and by meaning, of enough owners."""
        if len(self.rows) <= MAX_TAIL_CANDIDATES:
            return np.ones(len(self.rows), dtype=np.bool_)
        meaning = tokens.shares(self.rows).late + cosines(self.rows, query.vectors)
        keep = np.zeros(len(self.rows), dtype=np.bool_)
        for values in (self.lexical, meaning):
            order = np.argsort(-values, kind="stable")
            keep[order[:MAX_TAIL_CANDIDATES]] = True
            keep[order[first_places(self.rows.owners[order], request.per_owner, request.limit)]] = True
        return keep


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads candidates' signals from one state of store, index and tail.

    Attributes:
        entries: what was read of the index's passages so far, by number.
    """

    store: Store
    generation: Generation
    scope: Scope
    query: PreparedQuery
    tokens: TokenWeights
    spaces: Spaces
    entries: dict[int, TokenEntry] = field(default_factory=dict)

    def owners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the owner number of each passage of the index, int64, shape (n,), −1 for one that is gone."""
        self._read(numbers)
        found = (self.entries.get(number) for number in numbers.tolist())
        return np.array([-1 if entry is None else entry.owner_number for entry in found], dtype=np.int64)

    def candidates(self, recalled: NDArray[np.int64], lexical: Scored | None, tail: ScoredTail) -> Candidates:
        """Return all signals of the recalled passages and of the tail's rows.

        Args:
            recalled: numbers of passages in the index, int64, ascending, each once.
            lexical: scores that the lexical recall already found.
        """
        self._read(recalled)
        entries = [self.entries[number] for number in recalled.tolist() if number in self.entries]
        held = token_rows(entries, self.spaces)
        rows = concatenate(held, tail.rows)
        shares = self.tokens.shares(rows)
        bm25 = np.empty(len(rows), dtype=np.float32)
        bm25[np.searchsorted(rows.numbers, held.numbers)] = self._lexical(held, lexical)
        bm25[np.searchsorted(rows.numbers, tail.rows.numbers)] = tail.lexical
        words = literal_share(bm25, total_rarity(self.query.words, tail.statistics))
        return Candidates(
            numbers=rows.numbers,
            owners=rows.owners,
            lexical=bm25,
            dense=cosines(rows, self.query.vectors),
            late=shares.late,
            literal=np.maximum(shares.literal, words),
            coverage=shares.coverage,
            words=words,
            spaces=np.where(rows.vectors.any(axis=1), rows.spaces, np.uint8(len(self.spaces.stamps))),
            lengths=rows.lengths,
            asks=rows.holding(self.tokens.question_marks),
            speakers=_speakers(rows, self.tokens.speakers),
        )

    def rows_of(self, numbers: NDArray[np.int64], beside: TokenRows) -> TokenRows:
        """Return tokens and vectors of passages whose signals were read, in the order that is given.

        Args:
            beside: rows that the index does not hold.
        """
        missing = numbers[~within(numbers, beside.numbers)]
        self._read(missing)
        entries = [self.entries[number] for number in sorted(missing.tolist())]
        rows = concatenate(token_rows(entries, self.spaces), beside.select(within(beside.numbers, np.sort(numbers))))
        return rows.take(np.searchsorted(rows.numbers, numbers))

    def with_unspaced_words(self, candidates: Candidates, statistics: LexicalStatistics) -> Candidates:
        """Return the candidates with the unspaced part of the query judged by terms alone.

        The terms of the best candidates by BM25 are read again; what the token model says counts for the rest.
        """
        unspaced = self.query.unspaced
        if unspaced <= 0.0:
            return candidates
        share = np.zeros(len(candidates), dtype=np.float32)
        places = np.flatnonzero(candidates.lexical > 0)
        places = places[np.argsort(-candidates.lexical[places], kind="stable")[:MAX_READ]]
        entries = self.store.entries(self.scope.namespace, candidates.numbers[places].tolist())
        whole = total_rarity(self.query.words, statistics) or 1.0
        for place in places.tolist():
            entry = entries.get(int(candidates.numbers[place]))
            held = {term for terms in fields_of(entry).values() for term in terms} if entry else set()
            share[place] = (
                total_rarity([word for word in self.query.words if not held.isdisjoint(word)], statistics) / whole
            )
        rest, ours = np.float32(1.0 - unspaced), [name in BY_EMBEDDER for name in self.query.embedders]
        return replace(
            candidates,
            late=rest * candidates.late + np.float32(unspaced) * share,
            literal=rest * candidates.literal + np.float32(unspaced) * share,
            coverage=rest * candidates.coverage + np.float32(unspaced) * share,
            words=rest * candidates.words + np.float32(unspaced) * share,
            # Another embedder than ours may well know the script.
            dense=np.where(np.array(ours)[candidates.spaces], rest, np.float32(1.0)) * candidates.dense,
        )

    def _read(self, numbers: NDArray[np.int64]) -> None:
        missing = [number for number in numbers.tolist() if number not in self.entries]
        if missing:
            self.entries.update(self.store.tokens(self.scope.namespace, missing))

    def _lexical(self, rows: TokenRows, found: Scored | None) -> NDArray[np.float32]:
        known = {} if found is None else dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))
        missing = [number for number in rows.numbers.tolist() if number not in known]
        if missing and self.query.terms:
            known.update(self.generation.lexical.score(self.query.terms, missing, self.scope))
        return np.array([known.get(number, 0.0) for number in rows.numbers.tolist()], dtype=np.float32)


def total_rarity(words: Sequence[Sequence[str]], statistics: LexicalStatistics) -> float:
    """Return the sum of the words' IDF, each by its term that is held most often; one said twice counts twice."""
    documents, held = statistics.documents, statistics.frequencies
    return sum(min(rarity(term, documents, held) for term in word) for word in words)


def _punctuation(model: TokenModel) -> tuple[NDArray[np.uint16], Mapping[tuple[int, ...], int]]:
    """Return the tokens that end a question, and those that a turn of each speaker begins with."""
    beginnings = {tuple(model.tokenize(f"{word}:").tolist()): speaker for word, speaker in SPEAKERS.items()}
    return model.tokenize(_QUESTION_MARKS), beginnings


def _speakers(rows: TokenRows, beginnings: Mapping[tuple[int, ...], int]) -> NDArray[np.int8]:
    """Return who speaks in each row, int8, shape (n,), 0 where it does not tell."""
    first, speakers = rows.beginnings(2), np.zeros(len(rows), dtype=np.int8)
    for tokens, speaker in beginnings.items():
        if len(tokens) == first.shape[1]:
            speakers[(first == tokens).all(axis=1)] = speaker
    return speakers


def _with_languages(frequencies: NDArray[np.int64], query: PreparedQuery, generation: Generation) -> NDArray[np.int64]:
    """Return how many passages hold each token, where code holds the name of its programming language.

    Who asks for a Python function is not answered best by the one that says "Python".
    """
    if not query.programming:
        return frequencies
    in_tags = generation.lexical.statistics([term for term, _ in query.programming]).frequencies["tags"]
    written = [
        max((in_tags[term] for term, id_ in query.programming if id_ == token), default=0)
        for token in query.token_ids.tolist()
    ]
    return np.maximum(frequencies, np.array(written, dtype=np.int64))


def _holding(rows: TokenRows, token_ids: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Return for each token how many rows hold it, int64, shape (q,)."""
    passage = np.repeat(np.arange(len(rows)), rows.lengths)
    return np.array([len(distinct(passage[rows.token_ids == token])) for token in token_ids], dtype=np.int64)
