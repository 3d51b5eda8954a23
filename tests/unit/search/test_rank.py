"""The order of candidates: no signal drags down what all others are sure of, and a receipt adds up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.search.notebook import Notebook, notebook

from commonplace.ranking.calibration import confidence as confidence_of
from commonplace.search.explain import explain
from commonplace.search.rank import (
    ANSWER_SHARE,
    DENSE_WEIGHTS,
    MAX_CHAIN,
    NEIGHBOUR_SHARES,
    WEIGHTS,
    Ranking,
    RankingContext,
    fuse,
    order,
    placed,
    speaker_asked_for,
)
from commonplace.search.request import PreparedQuery, Request
from commonplace.search.signals import Candidates
from commonplace.search.time import AskedTimes, DatedOwners
from commonplace.types import RULE, SUPERSEDES, Filter, Link

REQUEST = Request("a question", "n", 10, "two-stage", Filter(), 0.0, 100)
SIGNALS = ("lexical", "dense", "crowding", "late", "literal", "coverage", "words")


def candidates(**signals: Any) -> Candidates:
    """Return candidates 1, 2, … with these signals, 0 for the others, of ten tokens each unless it says otherwise."""
    count = len(next(iter(signals.values())))
    given: dict[str, Any] = {name: np.zeros(count, np.float32) for name in SIGNALS}
    given |= {"lengths": np.full(count, 10), "asks": np.zeros(count, np.bool_)}
    given |= {"speakers": np.zeros(count, np.int8), "spaces": np.zeros(count, np.uint8)}
    given |= {name: np.array(values, dtype=given[name].dtype) for name, values in signals.items()}
    numbers = np.arange(1, count + 1)
    return Candidates(numbers, numbers, **given)


def ranked(found: Candidates, *embedders: str, unspaced: float = 0.0, **context: Any) -> Ranking:
    """Return the candidates in the order of a question whose vectors those embedders made, else `minilm`."""
    query = PreparedQuery(
        ("question",),
        (("question",),),
        np.empty(0, np.uint16),
        np.empty((1, 0), np.float32),
        unspaced,
        embedders=embedders or ("minilm",),
    )
    return order(REQUEST, query, found, RankingContext(passages=100, **context))


def first(ranking: Ranking) -> int:
    """Return the number of the candidate that stands first."""
    return int(ranking.candidates.numbers[ranking.values.argmax()])


@given(
    st.lists(st.tuples(*[st.floats(0, 1, width=32)] * 3), min_size=1, max_size=8),
    st.sampled_from(["minilm", "static", "openai:some", ""]),
)
def test_what_is_first_by_every_signal_stays_first(others: list[tuple[float, ...]], embedder: str) -> None:
    best = tuple(max(values) + 0.25 for values in zip(*others, strict=True))
    lexical, dense, late = zip(best, *others, strict=True)
    assert first(ranked(candidates(lexical=lexical, dense=dense, late=late, coverage=lexical), embedder)) == 1


@pytest.mark.parametrize(("embedder", "best"), [("minilm", 2), ("static", 1)])
def test_what_is_near_to_everything_stands_behind_what_is_near_to_the_question_alone(embedder: str, best: int) -> None:
    """A chatty sentence is a hub; of the static table's vectors the correction takes as much as it gives."""
    found = candidates(dense=[0.36, 0.33, 0.10, 0.08], crowding=[0.40, 0.15, 0.2, 0.2], late=[0.1] * 4)
    ranking = ranked(found, embedder)
    assert first(ranking) == best
    assert ranking.signals["dense"].tolist() == found.dense.tolist()


def test_chance_matches_of_words_do_not_outrank_what_is_meant() -> None:
    """Who asks in other words shares none with the answer; a common word in another text must not decide."""
    found = candidates(
        dense=[0.30, 0.12, 0.10, 0.08],
        lexical=[0, 1.5, 0, 0],
        late=[0.1, 0.3, 0.1, 0.1],
        coverage=[0.2, 0.39, 0.1, 0.1],
    )
    ranking = ranked(found)
    assert first(ranking) == 1
    assert ranking.weights["lexical"].tolist() == ranking.weights["late"].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    "sure",
    [{"coverage": [0.1, 0.8, 0, 0], "lexical": [0, 4, 0, 0]}, {"coverage": [0.1, 0.4, 0, 0], "lexical": [0, 9, 0, 0]}],
    ids=["most of a short question", "rare words of a long one"],
)
def test_words_decide_where_they_are_no_chance(sure: dict[str, list[float]]) -> None:
    """Either of two signs is enough: 4 < 1.1 · ln 101 < 1.85 · ln 101 < 9."""
    ranking = ranked(candidates(**{"dense": [0.30, 0.29, 0.1, 0.1], "late": [0.1, 0.9, 0.1, 0.1], **sure}))
    assert ranking.weights["lexical"] == pytest.approx([WEIGHTS["lexical"]] * 4)
    assert ranking.weights["late"] == pytest.approx([WEIGHTS["late"]] * 4)
    assert first(ranking) == 2


def test_words_decide_in_part_between() -> None:
    """0.48 lies a fifth of the way from 0.42 to 0.72."""
    ranking = ranked(candidates(dense=[0.3, 0.2], coverage=[0.48, 0.1]))
    assert ranking.weights["late"] == pytest.approx([WEIGHTS["late"] / 5] * 2)


def test_chance_resemblance_does_not_outrank_what_holds_the_identifier() -> None:
    """All cosines are faint, so which is the largest of them means nothing where a word decides."""
    found = candidates(
        dense=[0.01, 0.06, 0.05, 0.02], lexical=[14.0, 5.0, 5.0, 5.0], late=[0.82, 0.81, 0.81, 0.8], coverage=[1.0] * 4
    )
    ranking = ranked(found)
    assert first(ranking) == 1
    assert ranking.weights["dense"].tolist() == [0.0] * 4


def test_without_a_vector_words_decide_alone() -> None:
    ranking = ranked(candidates(lexical=[0.1, 0.2], coverage=[0.01, 0.02]), "")
    assert first(ranking) == 2
    assert ranking.weights["dense"].tolist() == [0.0, 0.0]
    assert ranking.weights["lexical"] == pytest.approx([WEIGHTS["lexical"]] * 2)


def test_words_decide_what_is_asked_in_a_script_without_spaces() -> None:
    """The vector of a Chinese question says nothing, so two characters of it that match must not be shut out."""
    found = candidates(lexical=[0.1, 0.2], coverage=[0.01, 0.02])
    assert first(ranked(found, unspaced=1.0)) == 2
    assert ranked(found, unspaced=0.5).weights["lexical"] == pytest.approx([WEIGHTS["lexical"] / 2] * 2)


def test_candidates_of_two_embedders_are_weighed_each_by_its_own() -> None:
    """Two memories and two files: the best of either is as good where nobody knows how the cosines compare."""
    ranking = ranked(candidates(dense=[0.3, 0.9, 0.1, 0.5], spaces=[0, 1, 0, 1]), "minilm", "openai:some")
    assert ranking.parts["dense"].tolist() == pytest.approx([1.0, 1.0, -1.0, -1.0])
    weights = [DENSE_WEIGHTS["minilm"], WEIGHTS["dense"]]
    assert ranking.weights["dense"].tolist() == pytest.approx(weights * 2)


def test_a_single_neighbour_and_a_question_lend_what_is_worked_out() -> None:
    """Of three turns the first is found and asks; its value is its weighted deviation, √2 · the weight of meaning."""
    found = candidates(dense=[0.9, 0.1, 0.1], asks=[True, False, False], lengths=[10, 10, 120])
    ranking = ranked(found, "openai:some", beside={1: {2}, 2: {1, 3}, 3: {2}})
    own = WEIGHTS["dense"] * 2**0.5
    step, two = NEIGHBOUR_SHARES
    # The second turn stands between two, one of which has nothing to lend; the third, of 120 tokens, receives half.
    expected = [0.0, (step / 2 + ANSWER_SHARE) * own, two * own / 2]
    assert ranking.signals["neighbours"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("What did I buy for my sister?", 1),
        ("Which restaurant did you recommend to me?", 2),
        ("I'm looking back at our talk. You mentioned two books: which?", 2),
        ("Can you suggest something for my dinner?", 0),
        ("What does Anna want?", 0),
    ],
)
def test_a_question_tells_whose_words_it_is_about(question: str, speaker: int) -> None:
    assert speaker_asked_for(question) == speaker


def test_who_spoke_counts_where_the_question_says_i(tmp_path: Path) -> None:
    """Of two turns alike the user's stands first; it is read off the word before the colon, and shown."""
    book = notebook("sqlite", tmp_path)
    book.remember("agent", "assistant: bought a red bicycle in Ghent", at=1.0)
    book.remember("user", "user: bought a red bicycle in Ghent", at=1.0)
    book.remember("Eve", "Eve: bought a red bicycle in Ghent", at=1.0)
    book.remember("none", "")
    hits = book.search("what did I buy in Ghent", min_score=0.0).hits
    assert hits[0].owner_id == "user"
    assert {hit.owner_id: hit.signals["speaker"] for hit in hits} == {"user": 1.0, "agent": 0.0, "Eve": 0.0}


@pytest.mark.parametrize(
    ("asked", "confidence"),
    [
        (AskedTimes(is_all=True, is_alone=True), "sure"),
        (AskedTimes(is_alone=True), "weak"),
    ],
)
def test_a_time_alone_makes_sure_only_where_all_of_it_is_asked_for(asked: AskedTimes, confidence: str) -> None:
    """What was stored in winter says little about what is done every winter, but is all that one may ask for."""
    dated = DatedOwners(np.array([1]), np.ones(1, np.float32), np.zeros(1, np.int64))
    ranking = ranked(candidates(dense=[0.1, 0.1]), dated=dated, asked=asked)
    assert first(ranking) == 1
    assert confidence_of(1 / (1 + math.exp(-ranking.odds[0]))) == confidence
    assert len(ranking.odds) == (1 if asked.is_all else 2)


def test_the_parts_times_their_weights_add_up_to_the_value() -> None:
    """A receipt that does not add up explains nothing."""
    found = candidates(lexical=[3, 0, 9], dense=[0.2, 0.5, 0.4], late=[0.4, 0.5, 0.1], coverage=[0.2, 0, 0.5])
    ranking = ranked(found, beside={1: {2}, 2: {1}}, retention=np.array([0.1, 0.9, 0.3], np.float32))
    assert set(ranking.parts) == set(ranking.weights) == {"lexical", "dense", "late", "neighbours", "retention"}
    assert ranking.values == pytest.approx(fuse(ranking.parts, ranking.weights))


@pytest.fixture
def rows(tmp_path: Path) -> Notebook:
    """Give a notebook with one long memory that fills every stage, and sixty short ones."""
    book = notebook("sqlite", tmp_path)
    book.remember("minutes", "\n\n".join(f"# Day {day}\n\nThe valve was open again. " * 40 for day in range(20)))
    for number in range(60):
        book.remember(
            f"m{number:02}", f"Engineer {number} opened {'the valve' if number % 3 else 'a door'} number {number}."
        )
    book.project()
    return book


@pytest.mark.parametrize("stage1_limit", [5, 20, 100])
@pytest.mark.parametrize("method", ["two-stage", "bm25", "semantic"])
@pytest.mark.parametrize("also", [(), ("engineer at the valve", "did I open a door")], ids=["once", "in three ways"])
def test_the_first_hits_do_not_depend_on_the_limit(
    rows: Notebook, also: tuple[str, ...], method: str, stage1_limit: int
) -> None:
    """Who asks for a hundred to look at ten must see the same ten; and gets as many as there are."""
    asked = {"method": method, "stage1_limit": stage1_limit, "min_score": 0.0, "also": also}
    few, more, all_ = (rows.found("who opened the valve", limit=limit, **asked) for limit in (10, 50, 1000))
    assert more[:10] == few
    assert all_[:10] == few
    assert len(few) == len(set(few)) == 10
    assert len(more) >= (40 if method == "bm25" else 50)
    if method == "two-stage":
        ranked = rows.search("who opened the valve", limit=50, **asked).trace.candidates
        fused = [sum(share.standardised * share.weight for share in each.signals.values()) for each in ranked]
        assert fused == pytest.approx([each.signals["fused"].value for each in ranked], abs=1e-4)
        assert fused == sorted(fused, reverse=True)


@pytest.mark.parametrize("method", ["two-stage", "bm25", "semantic"])
@pytest.mark.parametrize("is_projected", [True, False], ids=["indexed", "half of it not indexed yet"])
@pytest.mark.parametrize("bound", [1, 30])
def test_a_bounded_stage_brings_no_more_candidates_than_that(
    rows: Notebook, bound: int, is_projected: bool, method: str
) -> None:
    """Who asks for one candidate measures with it; passages that the index lacks must not come in beside it."""
    for number in range(60, 120):
        rows.remember(f"m{number}", f"Engineer {number} opened the valve number {number}.")
    if is_projected:
        rows.project()
    asked = {"method": method, "stage1_limit": bound, "is_bounded": True, "min_score": 0.0}
    found = rows.search("who opened the valve number 7", limit=50, **asked)
    counts = {stage.name: stage.candidates for stage in found.stages}
    recalls = {"two-stage": ("lexical", "dense"), "bm25": ("lexical",), "semantic": ("dense",)}[method]
    assert all(counts[name] <= bound for name in recalls)
    assert 1 <= counts["signals"] <= bound * len(recalls)
    assert len(found.hits) <= counts["signals"]


def test_what_is_not_indexed_and_holds_no_word_is_not_in_a_bounded_stage_by_words(rows: Notebook) -> None:
    """The stage would be filled with it wherever the words are rare."""
    rows.project()
    rows.remember("walrus", "A walrus sleeps on the quay.")
    for number in range(3):
        rows.remember(f"new {number}", f"Engineer {number} went home.")
    asked = {"method": "bm25", "stage1_limit": 12, "is_bounded": True, "min_score": 0.0}
    found = rows.search("walrus", **asked)
    assert [hit.owner_id for hit in found.hits] == ["walrus"]
    assert {stage.name: stage.candidates for stage in found.stages}["signals"] == 1


def test_a_long_text_does_not_fill_a_bounded_stage(rows: Notebook) -> None:
    """The best passage of each text comes first into it, or one changelog would be all that is found."""
    asked = {"method": "bm25", "stage1_limit": 12, "is_bounded": True, "min_score": 0.0}
    assert len(rows.found("who opened the valve again", limit=10, **asked)) == 10


# The newer of two memories about the same subject stands first: exact orders and values, worked out by hand.


def test_newer_competitors_come_right_before_the_first_that_they_overtake() -> None:
    """Of 3 both 5 and 1 are newer, 5 the newest; 1 is newer than 0 too, but has its place already."""
    assert placed([3, 0, 2, 1, 5], {3: (5, 1), 0: (1,)}) == [
        (5, 3),
        (1, 3),
        (3, None),
        (0, None),
        (2, None),
    ]


def test_what_stands_first_already_is_not_moved() -> None:
    assert placed([1, 0], {0: (1,)}) == [(1, None), (0, None)]
    assert placed([0, 1, 2], {0: (1,), 1: (2,)}) == [(2, 0), (1, 0), (0, None)], "what is newest of a chain is first"
    assert placed([0, 1], {0: (1,), 1: (0,)}) == [(1, 0), (0, None)], "a ring has an end"
    chain = {place: (place + 1,) for place in range(MAX_CHAIN + 1)}
    crowd = [(place, place - 1 if place else None) for place in reversed(range(MAX_CHAIN + 2))]
    assert placed(list(range(MAX_CHAIN + 2)), chain) == crowd, "notes of one form do not crowd out what is asked for"
    assert {before for _, before in placed(list(range(MAX_CHAIN + 1)), chain)} == {0, None}
    assert placed([0], {0: (7,)}) == [(0, None)], "one that is no candidate has no place"


@given(st.permutations(range(8)), st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 9), unique=True)))
def test_every_candidate_is_placed_once(order: list[int], newer: dict[int, list[int]]) -> None:
    """Nothing is hidden and nothing is doubled, whatever competes with what."""
    others = {place: [each for each in found if each != place] for place, found in newer.items()}
    assert sorted(place for place, _ in placed(order, others)) == sorted(order)


@pytest.fixture
def book(book: Notebook) -> Notebook:
    """Give a notebook of things about several subjects, of which one changed."""
    book.remember("dose", "The dose of the blood pressure tablet is ten milligrams.", at=1_000.0)
    book.remember("cat", "Our cat is called Moth and sleeps on the radiator.", at=1_500.0)
    book.remember("later", "The dose of the blood pressure tablet is now twenty milligrams.", at=2_000.0)
    book.remember("bike", "My bike stands in the locked cage behind the station.", at=2_500.0)
    book.remember("rent", "Rent is due on the first of the month.", at=3_000.0)
    book.judge()
    return book


@pytest.mark.parametrize("also", [(), ("how much of the blood pressure tablet to take",)], ids=["once", "in two ways"])
@pytest.mark.parametrize("is_indexed", [False, True])
def test_the_newer_fact_stands_first_and_the_older_is_marked(
    book: Notebook, is_indexed: bool, also: tuple[str, ...]
) -> None:
    """Nothing is hidden: the older one follows, and names the newer."""
    if is_indexed:
        book.project()
    result = book.search("what is the dose of the ten milligrams tablet", also=also)
    assert [hit.owner_id for hit in result.hits[:2]] == ["later", "dose"]
    newer, older = result.hits[:2]
    assert (newer.superseded_by, older.superseded_by) == (None, "later")
    assert result.trace.moved == {newer.id: older.id}
    assert older.score >= newer.score, "no score is lifted or lowered for it"
    assert ', later may have replaced it"' in result.to_text()
    told = explain(book.store, result, newer.id), explain(book.store, result, older.id)
    assert [(each.stands_before, each.superseded_by) for each in told] == [(older.id, None), ("", "later")]


def test_a_newer_fact_below_the_floor_comes_along(book: Notebook) -> None:
    everything = book.search("what is the dose of the ten milligrams tablet", min_score=0.0).hits
    scores = {hit.owner_id: hit.score for hit in everything}
    assert scores["dose"] > scores["later"]
    between = (scores["dose"] + scores["later"]) / 2
    assert book.found("what is the dose of the ten milligrams tablet", min_score=between) == ["later", "dose"]


def test_who_asks_for_a_time_is_not_told_of_another(book: Notebook) -> None:
    """What was so in January is not overtaken by what was so in March."""
    asked = book.search("what was the dose of the tablet on 1 January 1970", now=1e6)
    assert [hit.superseded_by for hit in asked.hits] == [None] * len(asked.hits)


def test_a_memory_without_a_date_of_its_own_is_as_new_as_it_was_stored(book: Notebook) -> None:
    book.clock = 5_000.0
    book.remember("undated", "The dose of the blood pressure tablet is thirty milligrams now.")
    book.judge()
    found = book.search("what is the dose of the ten milligrams tablet").hits
    assert [hit.owner_id for hit in found[:3]] == ["undated", "later", "dose"]
    assert [hit.superseded_by for hit in found[:3]] == [None, "undated", "undated"]


def test_what_holds_the_number_that_is_asked_for_is_not_overtaken_by_a_rule(book: Notebook) -> None:
    """Order 20418 was placed, 20419 later: about the first only the first tells. What a person links is followed."""
    book.remember("first", "Order 20418 of the bike shop was placed.", at=4_000.0)
    book.remember("second", "Order 20419 of the bike shop was placed.", at=5_000.0)
    told = {}
    for origin in (RULE, ""):
        with book.store.change_memories(book.namespace) as change:
            change.link(Link("second", "first", SUPERSEDES, 0.9, 1.0, origin))
        for query in ("order 20418 of the bike shop", "order of the bike shop"):
            hits = {hit.owner_id: hit.superseded_by for hit in book.search(query).hits}
            told[origin, query] = hits["first"]
    assert [*told.values()] == [None, "second", "second", "second"]
