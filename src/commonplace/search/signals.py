"""Recall candidates from index and delta and compute their raw signals: lexical, dense, token and conversational."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.index.contract import LexicalStatistics, Scope, Scored
from commonplace.ranking.arrays import distinct, union, within
from commonplace.ranking.bm25 import rarity
from commonplace.ranking.calibration import BY_EMBEDDER, literal_share
from commonplace.ranking.late import find_matches, inverse_document_frequency, weighted_share
from commonplace.search.request import MAX_STAGE1_LIMIT, PreparedQuery, Request
from commonplace.text.tokens import fields_of
from commonplace.types import EMBEDDED_KIND_OF, Embedding, TokenEntry

if TYPE_CHECKING:
    from commonplace.index.generations import Generation
    from commonplace.models.contract import Similarities
    from commonplace.store.contract import Store

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


WEIGHTS = {LEXICAL: 0.6, DENSE: 1.0, LATE: 0.85, TIME: 2.0, SPEAKER: 0.5}
"""Weights of the signals in the two-stage method, standardised but for the time's fit, 0–1, and the fitting speaker, 0
or 1, which are plain bonuses.

Those of words and tokens count as far as the words may decide; see `COVERED`."""

DENSE_WEIGHTS: Mapping[str, float] = {"minilm": 1.25}
"""Of embedders whose vectors tell more than words do; any other one has the weight above."""

COVERED = (0.42, 0.72)
"""How far words and late interaction decide beside meaning, by how much of the question the best passage covers
(`Candidates.coverage`): not at all up to the first, wholly from the second on.

Who asks in other words than the answer's shares only chance matches with anything, and standardising would make as much
of these as of real ones. Judged by `scripts/ranking/cross_validate.py`, as are all constants of the fusion."""

RARE = (1.10, 1.85)
"""The same by the best passage's BM25 divided by ln(1 + passages): the rarity that it holds, of the highest that there
is. A long question is never covered, but two rare words of it are no chance. The larger of both counts."""

MEANT = (0.10, 0.25)
"""How far meaning decides where words do, by the best cosine: not at all up to the first, wholly from the second on.

Cosines of unrelated texts reach the second by chance alone. Who asks for an identifier gets what holds it, not what its
letters resemble; where words are no help, the best cosine decides however faint."""

COMPARABLE = frozenset({"minilm", "static"})
"""Embedders whose cosines of unrelated texts have nearly the same mean and deviation: .03–.18 and .09–.11 for questions
and passages of everyday, medquad, cosqa-dev, longmemeval-dev. Those of another one are standardised by themselves."""

TIME_LOG_ODDS = 1.0
"""What a memory that is of the asked time gains in log-odds of relevance; a round guess."""

FADING = 16.0
"""In late interaction a token with p others before it in its passage counts (1 + p / 16)^−½ of what the first one does.

What a passage is about stands at its beginning: a title, a heading, the name of a function, the first sentence. From 4
to 16 all do about equally well, and the largest of them loses least on passages that were turned, whose beginnings say
nothing (docs/benchmarks.md)."""

NEIGHBOUR_SHARES = (0.5, 0.25)
"""What a turn of a conversation receives of the mean value of those one step and two steps away: half at each step."""

ANSWER_SHARE = 0.25
"""What a turn receives besides of the value of the turn before it, where that asks something: an answer seldom repeats
what it was asked. Less of one that is longer than `SHORT_TURN`, which asks by the way. A round guess: it gains on short
turns, which nothing was fitted on, and loses a little on long ones."""

SHORT_TURN = 60
"""A turn of so many tokens receives all of that, a longer one the less, the longer it is."""

FLOOR = 0.3
"""Where the caller names no least score: what lies below it is held back, a probability of 0.009. Of the questions that
something answers one in two hundred loses for it what would be among five hits."""

FIRST_FLOOR = 0.5
"""Likewise of the best hit, a probability of 0.02: where it lies below, the question is about something else, and
everything is held back. That takes all from one in a hundred of the questions that something answers, from some more in
stores of a few texts."""


USER, ASSISTANT = 1, 2
SPEAKERS: Final[Mapping[str, int]] = {
    "user": USER,
    "human": USER,
    "assistant": ASSISTANT,
    "ai": ASSISTANT,
    "agent": ASSISTANT,
    "bot": ASSISTANT,
}
"""Who speaks, by the word before the colon that a turn begins with."""

_OF_USER = re.compile(r"\b(?:i|i'm|i've|i'd|me|my|mine|myself|we|our|us)\b", re.IGNORECASE)
_OF_ASSISTANT = re.compile(
    r"\byou(?:'d|'ve| had| have)? (?:also |just |once |previously |earlier )?(?:said|told|mentioned|suggested|gave"
    r"|given|recommended|wrote|written|explained|listed|described|provided|proposed|advised|shared|showed|shown)\b"
    r"|\bdid you (?:say|tell|mention|suggest|give|recommend|write|explain|list|describe|provide|propose|advise)\b",
    re.IGNORECASE,
)
_TO_ASSISTANT = re.compile(r"\byour?\b", re.IGNORECASE)


def speaker_asked_for(question: str) -> int:
    """Return whose words a question is about: what the assistant said, what the user told of themselves, 0 for neither.

    Of a question with both "I" and "you" nobody knows, unless it says that the assistant said something.
    """
    if _OF_ASSISTANT.search(question):
        return ASSISTANT
    return USER if _OF_USER.search(question) and not _TO_ASSISTANT.search(question) else 0


def next_to(store: Store, namespace: str, numbers: Sequence[int]) -> dict[int, set[int]]:
    """Return for each passage in a session the passages next to it, as far as they follow from asking for `numbers`."""
    beside: dict[int, set[int]] = defaultdict(set)
    for number, neighbour in store.neighbours(namespace, numbers):
        beside[number].add(neighbour)
        beside[neighbour].add(number)
    return beside


def steps(beside: dict[int, set[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs that are one step apart and those that are two, int64, shape (n, 2), each in both directions."""
    one = [(number, other) for number, others in beside.items() for other in others]
    two = {
        (number, far)
        for number, others in beside.items()
        for other in others
        for far in beside[other]
        if far != number and far not in others
    }
    return _pairs(sorted(one)), _pairs(sorted(two))


def answers(beside: dict[int, set[int]], asking: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs of a passage and one of `asking` right before it; int64, shape (n, 2)."""
    return _pairs(
        sorted((other, number) for number in asking.tolist() for other in beside.get(number, ()) if other > number)
    )


def _pairs(values: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64).reshape(-1, 2)


ROUNDS, GROWTH = 4, 4
"""A stage that one long text fills is asked again without it, so often at most, for so many times more each time."""


def recall(
    search: Callable[[Scope, int], Scored],
    owners_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    scope: Scope,
    request: Request,
) -> Scored:
    """Return the best passages of one part of the index, of as many owners as there are to be hits.

    The first round is the stage as it was asked for. Only where its passages are of too few owners, further rounds add
    the best passages of others. Where the request bounds the stage, these take the place of what one owner has most of.

    Args:
        search: returns at most so many passages of a scope, best first.
        owners_of: returns the owner number of each passage, −1 for one that is gone.
    """
    kept: list[Scored] = []
    of_kept: list[NDArray[np.int64]] = []
    owners = np.empty(0, dtype=np.int64)
    size = request.stage1_limit
    for _ in range(ROUNDS):
        found = search(scope, size)
        if not kept and len(found.numbers) < size:
            return found
        belonging = owners_of(found.numbers)
        places = first_places(belonging, request.per_owner, len(belonging)) if kept else np.arange(len(belonging))
        kept.append(Scored(found.numbers[places], found.scores[places]))
        of_kept.append(belonging[places])
        fresh = distinct(belonging[belonging >= 0])
        owners = union(owners, fresh)
        if len(found.numbers) < size or len(owners) >= request.limit or not len(fresh):
            break
        scope = replace(scope, passed_over=owners)
        size = min(size * GROWTH, MAX_STAGE1_LIMIT)
    numbers, scores = (np.concatenate([getattr(each, name) for each in kept]) for name in ("numbers", "scores"))
    if request.is_bounded and len(numbers) > request.stage1_limit:
        first = first_places(np.concatenate(of_kept), 1, request.limit)
        others = np.setdiff1d(np.arange(len(numbers)), first)
        places = np.sort(np.concatenate((first, others))[: request.stage1_limit])
        numbers, scores = numbers[places], scores[places]
    return Scored(numbers, scores)


def best_of_both(
    found: Scored, rows: TokenRows, values: NDArray[np.float32], limit: int
) -> tuple[Scored, NDArray[np.bool_]]:
    """Return the best of what the index and rows beside it hold, at most `limit` together.

    Args:
        values: of the rows, by the measure of `found`; float32, shape (n,).

    Returns:
        What of it the index holds, and whether each row is among it: bool, shape (n,).
    """
    scores = np.concatenate((found.scores, values))
    kept = np.zeros(len(scores), dtype=np.bool_)
    kept[np.lexsort((np.concatenate((found.numbers, rows.numbers)), -scores))[:limit]] = True
    inside = kept[: len(found.numbers)]
    return Scored(found.numbers[inside], found.scores[inside]), kept[len(found.numbers) :]


def first_places(owners: NDArray[np.int64], count: int, most: int) -> NDArray[np.intp]:
    """Return the places, ascending, of the first `count` occurrences of each of the first `most` owners."""
    seen: Counter[int] = Counter()
    places = []
    for place, owner in enumerate(owners.tolist()):
        if seen[owner] < count and (seen[owner] or len(seen) <= most):
            seen[owner] += 1
            places.append(place)
    return np.array(places, dtype=np.intp)


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
