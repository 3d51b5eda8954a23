"""The score means the same in a handful of memories as in a large store, and copies do not change it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.search.notebook import Notebook

from commonplace.errors import MissingExtraError
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.registry import AbsentEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.calibration import calibration_of, probabilities, scores
from commonplace.search.rank import FLOOR
from commonplace.search.request import prepare
from commonplace.search.signals import ANSWERING, TokenRows, crowding
from commonplace.types import Embedding

NOTES = {
    "postgres": "We chose Postgres for billing",
    "deploy": "Anna deploys the website on Fridays",
    "tea": "The kitchen is out of green tea",
    "office": "The office moves to Lisbon in March",
    "badge": "Visitors get their badge at the desk",
}
ANSWERED = {
    "what database does billing use": "postgres",
    "who deploys the website": "deploy",
    "is there any tea left": "tea",
    "where is the office moving to": "office",
    "where do guests get a badge": "badge",
}
UNANSWERED = (
    "how do honey bees find nectar",
    "boundary layer of a blunt body at supersonic speed",
    "which gene causes cystic fibrosis",
    "sourdough bread volcano chess violin",
)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_handful_of_memories_answers_what_it_can_and_calls_nothing_else_likely(
    book: Notebook, is_indexed: bool
) -> None:
    """How rare a word is cannot be told by five texts, and the best of five has little chance to look good."""
    for id_, text in NOTES.items():
        book.remember(id_, text)
    if is_indexed:
        book.project()
    assert {query: book.found(query)[:1] for query in ANSWERED} == {query: [id_] for query, id_ in ANSWERED.items()}
    for query in UNANSWERED:
        assert {hit.confidence for hit in book.search(query).hits} <= {"weak"}


def test_a_question_about_something_else_is_not_answered_by_one_of_three(book: Notebook) -> None:
    """In a store of three memories one is always the nearest; the score must not say that it answers."""
    book.remember("nuts", "I am allergic to tree nuts, peanuts are fine")
    book.remember("work", "The office is open from nine to five")
    book.remember("cat", "Our cat is called Moth")
    assert [hit.confidence for hit in book.search("do I own a Tesla").hits if hit.confidence != "weak"] == []
    [first, *_] = book.search("what is the cat called").hits
    assert (first.owner_id, first.confidence) == ("cat", "sure")


def test_what_lies_below_the_floor_is_counted(book: Notebook) -> None:
    """Whoever is told nothing must know whether anything was near."""
    for id_, text in NOTES.items():
        book.remember(id_, text)
    query = "who deploys the website"
    everything = book.search(query, min_score=0.0)
    assert (everything.held_back, everything.best_held_back) == (0, None)
    low = [hit.score for hit in everything.hits if hit.score < 0.9]
    cut = book.search(query, min_score=0.9)
    assert [hit.owner_id for hit in cut.hits] == ["deploy"]
    assert (cut.held_back, cut.best_held_back) == (len(low), max(low))
    told = cut.to_dict()
    assert (told["held_back"], told["best_held_back"]) == (len(low), round(max(low), 4))


def test_scores_fall_with_the_rank(book: Notebook) -> None:
    """The score belongs to the probability, and neither rises with the rank."""
    for id_, text in NOTES.items():
        book.remember(id_, text)
    for query in ANSWERED:
        hits = book.search(query, min_score=0.0).hits
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        probability = np.array([hit.probability for hit in hits], np.float32)
        assert [hit.score for hit in hits] == pytest.approx(scores(probability).tolist())


def test_copies_of_an_answer_leave_it_above_the_floor(book: Notebook) -> None:
    """In a store of copies all that they say is common, and none of them stands out."""
    text = "The billing service keeps its invoices in Postgres, in the cluster of the finance team"
    book.remember("first", text)
    for number in range(4):
        book.remember(f"copy-{number}", f"{text}, version {number}")
    hits = book.search("where does billing keep invoices").hits
    assert len(hits) == 5
    assert min(hit.score for hit in hits) > FLOOR


def test_a_likely_hit_is_told_from_an_unlikely_one(book: Notebook) -> None:
    """Probability orders as the signals do, and says little for what is about something else."""
    for id_, text in NOTES.items():
        book.remember(id_, text)
    hits = {hit.owner_id: hit.probability or 0.0 for hit in book.search("who deploys the website", min_score=0.0).hits}
    assert hits["deploy"] > 0.5
    assert max(value for id_, value in hits.items() if id_ != "deploy") < 0.1
    [*strange] = book.search(UNANSWERED[0], min_score=0.0).hits
    assert max(hit.probability or 0.0 for hit in strange) < 0.3
    [*told] = book.search("who deploys the website").to_dict()["hits"]
    assert told[0]["probability"] == round(hits["deploy"], 4)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("who deploys the website", {}),
        ("who deploys the website", {"method": "bm25"}),
        ("who deploys the website", {"by_words": True}),
        ("who deployed the website in May 2024", {"now": 1_750_000_000.0}),
        ("what happened in May 2024", {"now": 1_750_000_000.0}),
    ],
)
def test_what_a_receipt_says_of_the_signals_adds_up_to_the_score(
    book: Notebook, query: str, asked: dict[str, object]
) -> None:
    """Also where no vector was made of the query, and where a time is asked for."""
    book.remember("deploy", NOTES["deploy"], at=1_715_000_000.0)
    result = book.search(query, min_score=0.0, **asked)
    [hit] = result.hits
    [candidate] = result.trace.candidates
    adds = sum(share.evidence for share in candidate.signals.values())
    bare = (
        -5.0 if query.startswith("what happened") else calibration_of("" if "by_words" in asked else "static").intercept
    )
    expected = probabilities(np.array([bare + adds], np.float32))
    assert hit.probability == pytest.approx(expected[0], abs=1e-5)
    assert hit.score == pytest.approx(scores(expected)[0], abs=1e-5)


# Each embedder has the scale and the weight that were fitted for its vectors; without a vector, the default ones.


def test_a_query_tells_what_made_its_vector() -> None:
    """By it the scale is chosen; where an embedder failed, none did."""
    tokens = StaticEmbedder.load()
    assert prepare("one thing", tokens.tokenize, HashingEmbedder(), [0]).embedder == "hashing"
    absent = AbsentEmbedder(Embedding("minilm", "1", 384), MissingExtraError("it is missing", remedy="install it"))
    prepared = prepare("one thing", tokens.tokenize, absent, [0])
    assert (prepared.embedder, prepared.fault) == ("", "it is missing; install it")


def token_rows(vectors: list[list[int]], spaces: list[int]) -> TokenRows:
    """Return passages 1, 2, … without a token that have these vectors."""
    count = len(vectors)
    numbers, none = np.arange(1, count + 1), np.zeros(count, np.int64)
    return TokenRows(
        numbers=numbers,
        owners=numbers,
        lengths=none,
        token_ids=np.empty(0, np.uint16),
        vectors=np.array(vectors, np.int8),
        spaces=np.array(spaces, np.uint8),
        kinds=np.zeros(count, np.uint8),
        times=none.astype(np.float64),
        sessions=np.full(count, "", np.object_),
    )


def test_it_is_crowded_where_ten_others_are_near_and_strangers_stand_for_what_is_not_there() -> None:
    about, alike, apart = [[0, 0, 100]] * ANSWERING, [[100, 0, 0]] * 13, [[0, 100, 0], [0, 0, 0]]
    dense = np.linspace(0.9, 0.1, ANSWERING + 15, dtype=np.float32)
    found = crowding(token_rows([*about, *alike, *apart], [0] * len(dense)), dense, ("minilm", ""))
    assert found.tolist() == pytest.approx([0.0] * ANSWERING + [1.0] * 13 + [0.0, 0.0])
    few = crowding(
        token_rows([*about, [100, 0, 0], [100, 0, 0]], [0] * (ANSWERING + 2)), dense[: ANSWERING + 2], ("minilm", "")
    )
    assert few.tolist() == pytest.approx([9 * 0.1 / 10] * ANSWERING + [(1 + 9 * 0.1) / 10] * 2)


def test_what_is_about_the_question_crowds_nothing() -> None:
    """Or a subject with many memories would be pushed behind what is near to the question by chance."""
    rows = token_rows([[100, 0]] * ANSWERING + [[0, 100]] * 20, [0] * (ANSWERING + 20))
    dense = np.linspace(0.9, 0.1, len(rows), dtype=np.float32)
    assert crowding(rows, dense, ("minilm", ""))[:ANSWERING].tolist() == pytest.approx([0.0] * ANSWERING)


def test_crowding_is_of_one_space_and_of_embedders_that_it_was_measured_for() -> None:
    rows, dense = token_rows([[100, 0]] * 90, [0] * 45 + [1] * 45), np.full(90, 0.5, np.float32)
    found = crowding(rows, dense, ("minilm", "static", ""))
    assert found.tolist() == pytest.approx([1.0] * 45 + [0.0] * 45)


def test_only_the_hundred_nearest_to_the_question_crowd() -> None:
    near, far = [[100, 0]] * 100, [[0, 100]] * 20
    dense = np.array([0.9] * 100 + [0.1] * 20, np.float32)
    found = crowding(token_rows([*near, *far], [0] * 120), dense, ("minilm", ""))
    assert found.tolist() == pytest.approx([1.0] * 100 + [0.0] * 20)
