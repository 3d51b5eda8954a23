"""What every index promises, run on the fast parts and on the exact reference, and the two compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.reference_store.index import ExactDenseIndex, ExactLexicalIndex, vectors_of

from commonplace.index.chunks import label
from commonplace.index.contract import LexicalIndex, Scope, Scored, Vectors
from commonplace.index.generations import Generation, Index
from commonplace.index.lexical import MAX_TERMS
from commonplace.ranking.bm25 import code_of, pack
from commonplace.text.tokens import analyse
from commonplace.types import Embedding, Head, IndexEntry

DIMENSIONS = 40


@dataclass(frozen=True)
class Dense:
    """The dense part of a generation, and what gives the vectors of the entries that it was made of."""

    generation: Generation
    vectors: Vectors

    def search(self, query: np.ndarray, where: Scope, limit: int) -> Scored:
        return self.generation.dense.search(query, where, limit, self.vectors)


@dataclass(frozen=True)
class Parts:
    lexical: LexicalIndex
    dense: Dense


def parts(generation: Generation, entries: Sequence[IndexEntry]) -> Parts:
    return Parts(generation.lexical, Dense(generation, vectors_of(entries)))


def score(index: LexicalIndex, terms: Sequence[str], numbers: Collection[int], scope: Scope) -> dict[int, float]:
    """Return the scores of those of the given passages that a search finds."""
    found = index.search(terms, scope, 1_000_000)
    scores = zip(found.numbers.tolist(), found.scores.tolist(), strict=True)
    return {number: each for number, each in scores if number in numbers}


Build = Callable[[Sequence[IndexEntry]], Parts]


def entry(number: int, text: str = "", **values: object) -> IndexEntry:
    fields: dict[str, object] = {
        "number": number,
        "owner_number": number * 10,
        "namespace": "default",
        "kind": "artifact",
        "type": "code",
        "phase": "",
        "tags": (),
        "title": "",
        "path": "",
        "heading": "",
        "summary": "",
        "text": text,
        "token_ids": b"",
        "vector": bytes(DIMENSIONS),
    }
    return IndexEntry(**{**fields, **values})  # type: ignore[arg-type]


def vector(*values: int) -> bytes:
    return np.array([*values, *[0] * (DIMENSIONS - len(values))], dtype=np.int8).tobytes()


def direction(*values: float) -> np.ndarray:
    made = np.array([*values, *[0.0] * (DIMENSIONS - len(values))], dtype=np.float32)
    return made / np.linalg.norm(made)


def scope(
    namespace: str = "default",
    owners: Sequence[int] | None = None,
    dead: Sequence[int] | None = None,
    passed_over: Sequence[int] | None = None,
) -> Scope:
    sets = [None if each is None else np.array(each, dtype=np.int64) for each in (owners, dead, passed_over)]
    return Scope(namespace, *sets)


LEAVING_OUT = pytest.mark.parametrize(
    ("dead", "passed_over"),
    [
        ([], []),
        (range(0, 400, 3), None),
        (None, [0, 10, 30, 50, 999]),
        (range(100, 250), [10, 20]),
        (range(1, 291), [300]),
        (range(1, 301), None),
    ],
)


def varied(count: int) -> list[IndexEntry]:
    """Passages of one length and seven owners that hold "word" 1–7 times, with vectors in a plane."""
    return [
        entry(
            n,
            "word " * (1 + n * 5 % 7) + "other " * (9 - n * 5 % 7),
            owner_number=n % 7 * 10,
            vector=vector(n * 37 % 101 - 50, n * 53 % 97 - 48),
        )
        for n in range(1, count + 1)
    ]


def is_left_out(each: IndexEntry, dead: Sequence[int] | None, passed_over: Sequence[int] | None) -> bool:
    return each.number in (dead or ()) or each.owner_number in (passed_over or ())


@pytest.fixture(params=["fast", "exact"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    def make(entries: Sequence[IndexEntry]) -> Parts:
        return (exact if request.param == "exact" else partial(fast, tmp_path / "index"))(entries)

    return make


def exact(entries: Sequence[IndexEntry]) -> Parts:
    return parts(Generation({}, ExactLexicalIndex(entries), ExactDenseIndex(entries)), entries)


def fast(directory: Path, entries: Sequence[IndexEntry]) -> Parts:
    index = Index(directory, store_id="store", embedding=Embedding("test", "1", DIMENSIONS))
    assert index.claim(0)
    index.update(entries, [], heads={"n": Head(1)}, rebuild=True)
    index.release()
    return parts(index.reader(), entries)


def found(index: LexicalIndex, query: str, where: Scope | None = None, limit: int = 10) -> list[int]:
    return index.search(analyse(query), where or scope(), limit).numbers.tolist()


def nearest(index: Dense, query: np.ndarray, where: Scope | None = None, limit: int = 10) -> list[int]:
    return index.search(query, where or scope(), limit).numbers.tolist()


class TestLexical:
    def test_the_languages_of_a_namespace_are_those_of_its_own_passages(self, build: Build) -> None:
        """A query is stemmed in each of them; English is always one."""
        index = build(
            [
                entry(1, "the reset button is on the left"),
                entry(2, "Der Knopf ist auf der linken Seite"),
                entry(3, "Кнопка слева", namespace="b"),
            ]
        ).lexical
        assert index.languages("default") == {"german"}
        assert index.languages("b") == {"russian"}
        assert index.languages("c") == frozenset()

    def test_passages_are_found_by_terms_spelled_almost_alike_within_scope(self, build: Build) -> None:
        index = build(
            [
                entry(1, "session"),
                entry(2, "lesson", title="sessions"),
                entry(3, "session", namespace="b"),
                entry(4, "possession"),
                entry(5, "seccion"),
            ]
        ).lexical
        assert sorted(index.similar("sesion", 1, scope(), 10)) == [1, 2]
        assert sorted(index.similar("sesion", 2, scope(), 10)) == [1, 2, 5]
        assert index.similar("sesion", 1, scope("b"), 10) == [3]
        assert len(index.similar("sesion", 1, scope(), 1)) == 1
        assert not index.similar("sesion", 1, scope("c"), 10)

    def test_a_passage_with_any_term_is_found_and_the_one_with_more_comes_first(self, build: Build) -> None:
        """Keyword search that demands every word finds nothing for a natural question."""
        index = build([entry(1, "the reset button"), entry(2, "connection reset by peer"), entry(3, "unrelated")])
        assert found(index.lexical, "connection reset") == [2, 1]

    def test_an_identifier_is_found_by_its_words(self, build: Build) -> None:
        """People ask in words for what is written as a name in code."""
        index = build([entry(1, "raise ConnectionResetError(peer)"), entry(2, "raise ValueError(peer)")])
        assert found(index.lexical, "connection reset") == [1]

    @pytest.mark.parametrize("query", ["猫", "了", "有猫"])
    def test_han_text_is_found_by_pairs_and_by_single_characters(self, build: Build, query: str) -> None:
        """A pair index alone cannot answer a query of one character."""
        index = build([entry(1, "我有猫了"), entry(2, "天气很好")])
        assert found(index.lexical, query) == [1]

    @pytest.mark.parametrize(
        "values",
        [
            {"title": "Billing"},
            {"heading": "Billing"},
            {"path": "src/billing.py"},
            {"tags": ("billing",)},
            {"summary": "On billing"},
        ],
    )
    def test_every_field_can_find(self, build: Build, values: dict[str, object]) -> None:
        """Title, heading, path, tags and summary describe a passage whose own text may lack the word."""
        index = build([entry(1, "some text", **values), entry(2, "some text")])
        assert found(index.lexical, "billing") == [1]

    def test_only_the_fields_of_the_scope_are_read(self, build: Build) -> None:
        """A search by titles must not find what the text says."""
        index = build([entry(1, "on billing", title="Money"), entry(2, "some text", title="Billing")])
        titles = replace(scope(), fields=("title", "tags"))
        assert found(index.lexical, "billing", titles) == [2]
        assert score(index.lexical, analyse("billing"), [1, 2], titles).keys() == {2}

    def test_equal_scores_are_ordered_by_number_and_cut_there(self, build: Build) -> None:
        """The same request must give the same hits in the same order."""
        index = build([entry(number, "same words here") for number in (5, 3, 9, 1, 7)])
        assert found(index.lexical, "words", limit=3) == [1, 3, 5]

    def test_another_namespace_is_never_returned(self, build: Build) -> None:
        """A namespace is a border between owners."""
        index = build([entry(1, "secret plan", namespace="a"), entry(2, "secret plan", namespace="b")])
        assert found(index.lexical, "secret", scope("a")) == [1]
        assert found(index.lexical, "secret", scope("c")) == []
        assert score(index.lexical, analyse("secret"), [1, 2], scope("b")).keys() == {2}

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            (scope(owners=[20, 30, 99]), [2, 3]),
            (scope(owners=[40]), [4]),
            (replace(scope(), kinds=("memory",)), [2]),
            (replace(scope(), kinds=("memory", "artifact")), [1, 2, 3, 4]),
            (scope(owners=[]), []),
        ],
    )
    def test_filters_apply_before_the_limit_and_leave_scores_alone(
        self, build: Build, where: Scope, expected: list[int]
    ) -> None:
        """A search for ten gives ten where ten exist, and a filter is no evidence of relevance."""
        index = build(
            [
                entry(1, "word"),
                entry(2, "word", kind="memory"),
                entry(3, "word word"),
                entry(4, "word", title="Word"),
            ]
        )
        hits = index.lexical.search(["word"], where, 10)
        assert sorted(hits.numbers.tolist()) == expected
        everywhere = score(index.lexical, ["word"], [1, 2, 3, 4], scope())
        assert hits.scores.tolist() == pytest.approx([everywhere[number] for number in hits.numbers.tolist()], rel=1e-5)

    def test_a_path_filter_of_thousands_of_owners_finds_what_a_small_one_finds(self, build: Build) -> None:
        """Large projects have directories with more files than a query can name one by one."""
        index = build([entry(n, "word " * (1 + n % 7) + "other " * 5) for n in range(1, 4_001)])
        few, many = [10 * n for n in range(5, 2_000, 100)], [10 * n for n in range(4_000, 6_500)]
        small = index.lexical.search(["word"], scope(owners=few), 50)
        large = index.lexical.search(["word"], scope(owners=few + many[1:]), 50)
        assert small.numbers.tolist() == large.numbers.tolist()
        assert sorted(small.numbers.tolist()) == [owner // 10 for owner in few]

    @LEAVING_OUT
    def test_what_is_left_out_takes_no_place_among_the_best(
        self, build: Build, dead: Sequence[int] | None, passed_over: Sequence[int] | None
    ) -> None:
        """A store that changed since the index was made, or one long document, must not shorten the answer."""
        entries = varied(300)
        index, where = build(entries), scope(dead=dead, passed_over=passed_over)
        hits = found(index.lexical, "word", where, limit=20)
        assert score(index.lexical, ["word"], range(1, 301), where).keys() == {
            each.number for each in entries if not is_left_out(each, dead, passed_over)
        }
        rest = [each for each in entries if not is_left_out(each, dead, passed_over)]
        assert hits == found(build(rest).lexical, "word", limit=20)
        assert len(hits) == min(20, len(rest))

    def test_what_is_left_out_may_be_most_of_what_matches(self, build: Build) -> None:
        """The best thousand may all be gone, and the answer is what stands behind them."""
        index = build([entry(n, "word " * (9 if n <= 1_900 else 1) + "other " * 5) for n in range(1, 2_001)])
        where = scope(dead=range(1, 1_801), passed_over=range(18_010, 19_001, 10))
        assert found(index.lexical, "word", where, limit=50) == list(range(1_901, 1_951))

    def test_score_speaks_of_matching_passages_only_and_agrees_with_search(self, build: Build) -> None:
        """Stage two scores the dense candidates with it: they must stand on the same scale."""
        index = build([entry(1, "red apple"), entry(2, "green apple pie"), entry(3, "blue sky")])
        scores = score(index.lexical, ["appl", "red"], [1, 2, 3, 99], scope())
        hits = index.lexical.search(["appl", "red"], scope(), 10)
        assert scores == pytest.approx(dict(zip(hits.numbers.tolist(), hits.scores.tolist(), strict=True)), rel=1e-5)

    def test_statistics_count_the_passages_of_one_namespace_without_dead_ones(self, build: Build) -> None:
        """Another tenant's words, and what was deleted, must not make a word common."""
        index = build(
            [
                entry(1, "red apple", title="Fruit"),
                entry(2, "green apple pie apple"),
                entry(3, "apple apple apple", title="Apple", namespace="other"),
                entry(4, "red apple tart"),
            ]
        )
        terms = ["appl", "fruit", "unknown"]
        statistics = index.lexical.statistics(terms, scope(dead=[3, 4, 99], owners=[]))
        assert (statistics.documents, statistics.lengths.tolist()) == (2, [1, 6, 0, 0])
        assert statistics.frequencies == {"appl": (0, 2, 0, 0), "fruit": (1, 0, 0, 0), "unknown": (0, 0, 0, 0)}
        assert index.lexical.statistics(terms, scope("nobody")).documents == 0

    def test_every_namespace_has_its_entries_listed(self, build: Build) -> None:
        """Whoever forgets asks whether a word is left anywhere."""
        index = build([entry(1, "red apple", title="Apple"), entry(2, "green apple", namespace="other")])
        assert index.lexical.listed(["appl", "green", "unknown"], []) == {"appl": 3, "green": 1, "unknown": 0}

    def test_rows_are_the_term_counts_of_passages_in_their_order(self, build: Build) -> None:
        """What has no row is not here."""
        index = build([entry(1, "red apple"), entry(2, "")])
        rows = index.lexical.rows(np.array([3, 2, 1]))
        expected = [b"", pack({}), pack({"content": ["red", "appl"]})]
        assert [row[: len(each)] for row, each in zip(rows, expected, strict=True)] == expected

    def test_a_query_of_a_thousand_words_is_cut_to_its_rarest(self, build: Build) -> None:
        """A pasted page must neither fail nor take seconds; its rare words tell most."""
        words = [f"q{first}{second}q" for first in "bcdfghjklm" for second in "bcdfghjklm"]
        index = build([entry(number, f"common {word}") for number, word in enumerate(words, 1)])
        assert len(found(index.lexical, " ".join(["common", *words, *words]), limit=200)) == MAX_TERMS

    @pytest.mark.parametrize("terms", [[], ["nowhere"], ["\ud800"], ["x" * 100_000]])
    def test_a_query_without_known_terms_finds_nothing(self, build: Build, terms: list[str]) -> None:
        """ "Nothing" is an answer, not an error."""
        index = build([entry(1, "text")])
        assert found(index.lexical, " ".join(terms)) == []
        assert score(index.lexical, analyse(" ".join(terms)), [1], scope()) == {}


class TestDense:
    def test_the_smallest_angle_comes_first(self, build: Build) -> None:
        """Cosine ignores how long a vector is."""
        index = build([entry(1, vector=vector(3, 4)), entry(2, vector=vector(100)), entry(3, vector=vector(-5))])
        hits = index.dense.search(direction(1), scope(), 10)
        assert hits.numbers.tolist() == [2, 1, 3]
        assert hits.scores.tolist() == pytest.approx([1.0, 0.6, -1.0])

    def test_equal_cosines_are_ordered_by_number(self, build: Build) -> None:
        """The same request must give the same hits in the same order."""
        index = build([entry(number, vector=vector(1)) for number in (4, 2, 8, 6)])
        assert nearest(index.dense, direction(1), limit=3) == [2, 4, 6]

    def test_a_zero_vector_matches_nothing_and_is_matched_by_nothing(self, build: Build) -> None:
        """A text without known words says nothing about any direction."""
        index = build([entry(1), entry(2, vector=vector(-1))])
        assert nearest(index.dense, direction(1)) == [2]
        assert nearest(index.dense, np.zeros(DIMENSIONS, dtype=np.float32)) == []

    def test_namespace_and_owners_restrict_the_search(self, build: Build) -> None:
        """Filters apply before truncation, or a search for ten gives fewer than there are."""
        index = build([entry(n, vector=vector(n), namespace="ab"[n % 2]) for n in range(1, 7)])
        assert nearest(index.dense, direction(1), scope("a")) == [2, 4, 6]
        assert nearest(index.dense, direction(1), scope("a", owners=[10, 40, 60])) == [4, 6]
        assert nearest(index.dense, direction(1), scope("a", owners=[])) == []
        assert nearest(index.dense, direction(1), scope("c")) == []

    @LEAVING_OUT
    def test_what_is_left_out_takes_no_place_among_the_best(
        self, build: Build, dead: Sequence[int] | None, passed_over: Sequence[int] | None
    ) -> None:
        """A store that changed since the index was made, or one long document, must not shorten the answer."""
        entries = varied(300)
        hits = build(entries).dense.search(direction(1, 0.3), scope(dead=dead, passed_over=passed_over), 20)
        rest = [each for each in entries if not is_left_out(each, dead, passed_over)]
        expected = build(rest).dense.search(direction(1, 0.3), scope(), 20)
        assert hits.numbers.tolist() == expected.numbers.tolist()
        assert hits.scores.tolist() == expected.scores.tolist()
        assert len(hits.numbers) == min(20, len(rest))


def corpus(seed: int, count: int) -> list[IndexEntry]:
    """Passages of 20–120 words of a Zipf vocabulary with random vectors and metadata."""
    random_ = random.Random(seed)
    words = [f"w{random_.choice('bcdfgh')}{number}x" for number in range(800)]
    weights = [1 / rank for rank in range(1, 801)]
    vectors = np.random.default_rng(seed).integers(-127, 128, (count, DIMENSIONS), dtype=np.int8)
    return [
        entry(
            number,
            " ".join(random_.choices(words, weights, k=random_.randint(20, 120))),
            title=" ".join(random_.choices(words, weights, k=3)),
            summary=" ".join(random_.choices(words, weights, k=8)),
            tags=tuple(random_.choices(words[:10], k=2)),
            namespace=random_.choice(["default", "default", "other"]),
            vector=vectors[number - 1].tobytes(),
            token_ids=np.array(random_.choices(range(500), k=50), dtype="<u2").tobytes(),
        )
        for number in range(1, count + 1)
    ]


def test_a_word_that_was_made_to_have_the_code_of_a_kind_passes_no_filter_for_it(build: Build) -> None:
    """Words and labels are told apart by more than the number that stands for them."""
    forged = "dpkdtttpgdkkktpdkfdgtmkmtbpfpttgmggkkbpd"
    assert code_of(forged) == code_of(label("memory"))
    index = build([entry(1, f"apple {forged}", kind="artifact"), entry(2, "apple", kind="memory")]).lexical
    assert found(index, "apple", Scope("default", kinds=("memory",))) == [2]
    assert found(index, "apple", Scope("default", kinds=("artifact",))) == [1]
    assert found(index, forged) == [1]
    assert index.statistics([forged], scope()).frequencies == {forged: (0, 1, 0, 0)}


def test_fast_and_exact_lexical_index_agree(tmp_path: Path) -> None:
    """The reference is the definition of the score, and of which passages are the best."""
    entries = corpus(1, 600)
    quick, exact = fast(tmp_path, entries).lexical, ExactLexicalIndex(entries)
    for seed in range(20):
        query = random.Random(seed).choice(entries).text.split()[:5]
        terms = analyse(" ".join(query))
        found, counted = (index.statistics(terms, scope()) for index in (quick, exact))
        assert (found.documents, found.lengths.tolist()) == (counted.documents, counted.lengths.tolist())
        assert found.frequencies == counted.frequencies
        scores, expected = (score(index, terms, range(1, 601), scope()) for index in (quick, exact))
        assert scores == pytest.approx(expected, rel=1e-6)
        hits, best = (index.search(terms, scope(), 50) for index in (quick, exact))
        assert hits.numbers.tolist() == best.numbers.tolist()


def test_fast_and_exact_dense_index_agree(tmp_path: Path) -> None:
    """Where all passages are scored exactly, nothing but the order of additions may differ."""
    entries = corpus(2, 400)
    for seed in range(20):
        query = direction(*np.random.default_rng(seed).normal(size=DIMENSIONS).tolist())
        hits, expected = (made.dense.search(query, scope(), 20) for made in (fast(tmp_path, entries), exact(entries)))
        assert hits.numbers.tolist() == expected.numbers.tolist()
        np.testing.assert_allclose(hits.scores, expected.scores, rtol=1e-5)


def test_candidates_by_sign_bits_hold_what_is_truly_near(tmp_path: Path) -> None:
    """Beyond the exactly scored sizes the sign bits choose; neighbours of a passage must survive that."""
    made = np.random.default_rng(3)
    vectors = made.normal(size=(5_000, DIMENSIONS)) * 30
    near = np.arange(0, 5_000, 500)
    vectors[near] = vectors[0] + made.normal(size=(len(near), DIMENSIONS)) * 8
    table = np.clip(vectors, -127, 127).astype(np.int8)
    index = fast(tmp_path, [entry(number, vector=row.tobytes()) for number, row in enumerate(table, 1)]).dense
    assert set(nearest(index, direction(*vectors[0].tolist()), limit=len(near))) == set((near + 1).tolist())


def test_candidates_by_sign_bits_are_none_of_what_is_left_out(tmp_path: Path) -> None:
    """Passages that cannot be returned must not crowd out those that can before the exact scores are known."""
    made = np.random.default_rng(4).normal(size=(4_000, DIMENSIONS)) * 10
    made[:3_700, 0] += 60
    table = np.clip(made, -127, 127).astype(np.int8)
    index = fast(tmp_path, [entry(number, vector=row.tobytes()) for number, row in enumerate(table, 1)]).dense
    where = scope(dead=range(1, 1_001), passed_over=range(10_010, 37_001, 10))
    hits = index.search(direction(1), where, 100)
    rest = [entry(number, vector=row.tobytes()) for number, row in enumerate(table, 1) if number > 3_700]
    expected = exact(rest).dense.search(direction(1), scope(), 100)
    assert hits.numbers.tolist() == expected.numbers.tolist()


def test_what_the_store_has_no_vector_of_is_not_found(tmp_path: Path) -> None:
    """It may have deleted a passage, or given it another number, since the index was written."""
    entries = corpus(3, 20)
    gone = parts(fast(tmp_path, entries).dense.generation, entries[:5]).dense
    query = direction(1, 2)
    assert set(nearest(gone, query)) == {each.number for each in entries[:5] if each.namespace == "default"}
    assert nearest(Dense(gone.generation, lambda _, numbers: dict.fromkeys(numbers, b"")), query) == []
