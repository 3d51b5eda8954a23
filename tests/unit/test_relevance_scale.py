"""The score means the same in a handful of memories as in a large store, and copies do not change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.contract.stores import BACKENDS
from tests.unit.searching import Notebook, notebook

from commonplace.ranking.calibration import CALIBRATION, scale
from commonplace.search.constants import ABSTAIN_BELOW

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


@pytest.fixture(params=sorted(BACKENDS))
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Notebook]:
    """Give an empty notebook over every store in turn."""
    made = notebook(request.param, tmp_path / "store")
    yield made
    made.close()


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_handful_of_memories_answers_what_it_can_and_nothing_else(book: Notebook, is_indexed: bool) -> None:
    """How rare a word is cannot be told by five texts, and the best of five has little chance to look good."""
    for id_, text in NOTES.items():
        book.remember(id_, text)
    if is_indexed:
        book.project()
    assert {query: book.found(query)[:1] for query in ANSWERED} == {query: [id_] for query, id_ in ANSWERED.items()}
    assert {query: book.found(query) for query in UNANSWERED} == {query: [] for query in UNANSWERED}


def test_copies_of_an_answer_do_not_push_it_below_the_cut(book: Notebook) -> None:
    """In a store of copies all that they say is common; common words told nothing, and the answer looked poor."""
    text = "The billing service keeps its invoices in Postgres, in the cluster of the finance team"
    book.remember("first", text)
    [alone] = book.search("where does billing keep invoices").hits
    for number in range(4):
        book.remember(f"copy-{number}", f"{text}, version {number}")
    hits = {hit.owner_id: hit.score for hit in book.search("where does billing keep invoices").hits}
    assert len(hits) == 5
    assert hits["first"] >= ABSTAIN_BELOW
    assert hits["first"] == pytest.approx(alone.score, abs=0.05)


def test_a_likely_hit_is_told_from_an_unlikely_one(book: Notebook) -> None:
    """Probability orders as the signals do, and says little for what is about something else."""
    for id_, text in NOTES.items():
        book.remember(id_, text)
    hits = {hit.owner_id: hit.probability or 0.0 for hit in book.search("who deploys the website", min_score=0.0).hits}
    assert hits["deploy"] > 0.5
    assert max(value for id_, value in hits.items() if id_ != "deploy") < 0.1
    [*strange] = book.search(UNANSWERED[0], min_score=0.0, abstain_below=0.0).hits
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
    result = book.search(query, min_score=0.0, abstain_below=0.0, **asked)
    [hit] = result.hits
    adds = sum(value * result.trace.evidence.get(name, 0.0) for name, value in hit.signals.items())
    odds = CALIBRATION.intercept + CALIBRATION.size * np.log(2) + adds
    assert hit.score == pytest.approx(scale(CALIBRATION, np.array([odds], np.float32))[0], abs=1e-5)
