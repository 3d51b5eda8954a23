"""The tail's inverted index gives the scores of the reference formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contract.stores import BACKENDS
from tests.unit.search.notebook import NAMESPACE, Notebook, notebook

from commonplace.types import Document, Filter

# A search as of a time finds what was known then, as it would have been found then.

NOISE = [
    "The office plants are watered on Mondays by whoever comes first.",
    "Anna prefers tea to coffee, and takes it without milk.",
    "The printer on the second floor jams when it is fed thick paper.",
    "Deployments are made from the main branch after the tests have passed.",
    "The team has lunch together on the last Friday of a month.",
    "Invoices are sent by mail and paid within thirty days.",
]
OLD = "Billing keeps its data in a MySQL database on the machine called hera."
NEW = "Billing moved to Postgres; its data is on the machine called zeus."
QUESTIONS = ["which database does billing use", "hera", "MySQL", "where are the invoices' data kept"]


@pytest.fixture(params=sorted(BACKENDS))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Notebook]]:
    """Give a maker of notebooks over every store in turn."""
    made: list[Notebook] = []

    def create(name: str) -> Notebook:
        made.append(notebook(request.param, tmp_path / name))
        return made[-1]

    yield create
    for book in made:
        book.close()


def fill(book: Notebook) -> None:
    for number, text in enumerate(NOISE):
        book.remember(f"noise {number}", text)
    book.remember("billing", OLD)


@pytest.mark.parametrize("indexed", ["nothing", "before the change", "after the change"])
@pytest.mark.parametrize("method", ["bm25", "semantic", "two-stage"])
def test_the_version_of_then_is_found_and_the_one_of_now_is_not(
    make: Callable[[str], Notebook], indexed: str, method: str
) -> None:
    """Whatever the index holds: it may still have the old passage, or not yet the new one."""
    book = make("store")
    fill(book)
    then = book.clock
    if indexed == "before the change":
        book.project()
    book.remember("billing", NEW)
    if indexed == "after the change":
        book.project()
    for query in ("billing MySQL hera", "billing database machine"):
        result = book.search(query, wanted=Filter(as_of=then), method=method, min_score=0.0)
        assert result.hits[0].text == OLD
        assert NEW not in {hit.text for hit in result.hits}
    now = book.search("billing database machine", method=method, min_score=0.0)
    assert now.hits[0].text == NEW
    assert OLD not in {hit.text for hit in now.hits}


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("query", QUESTIONS)
def test_the_past_is_found_as_if_it_were_the_present(
    make: Callable[[str], Notebook], query: str, is_indexed: bool
) -> None:
    """Every signal must work for a passage that no index holds: the same hits, in the same order, with like scores."""
    moved, stayed = make("moved"), make("stayed")
    for book in (moved, stayed):
        fill(book)
        if is_indexed:
            book.project()
    then = moved.clock
    moved.remember("billing", NEW)
    moved.remember("another", "A new colleague, Ben, began in the design team.")
    # What was written since counts in the index's statistics, so rarities differ a little in so small a store, and so
    # does the order of what hardly answers.
    past = moved.search(query, wanted=Filter(as_of=then), min_score=0.7).hits
    present = stayed.search(query, min_score=0.7).hits
    assert past[0].text == OLD or "invoices" in query
    assert [hit.text for hit in past] == [hit.text for hit in present]
    assert [hit.score for hit in past] == pytest.approx([hit.score for hit in present], abs=0.05)
    for signal in ("dense", "late", "coverage", "words"):
        ours = [hit.signals[signal] for hit in past]
        assert ours == pytest.approx([hit.signals[signal] for hit in present], abs=0.1), signal


@pytest.mark.parametrize("make", sorted(BACKENDS.keys() - {"postgres"}), indirect=True)
def test_without_an_index_the_past_is_found_exactly_as_it_was(make: Callable[[str], Notebook]) -> None:
    """Where all is scored directly, nothing that was written later has a part in the scores.

    In PostgreSQL it has: there the present's rarities count, as they do with an index.
    """
    moved, stayed = make("moved"), make("stayed")
    for book in (moved, stayed):
        fill(book)
    then = moved.clock
    moved.remember("billing", NEW)
    for query in QUESTIONS:
        past = moved.search(query, wanted=Filter(as_of=then)).hits
        present = stayed.search(query).hits
        assert [(hit.text, dict(hit.signals), hit.score) for hit in past] == [
            (hit.text, dict(hit.signals), hit.score) for hit in present
        ]


def test_what_was_archived_is_found_as_of_a_time_before_and_not_after(make: Callable[[str], Notebook]) -> None:
    """An archived memory is past: it is out of ordinary finding, and still part of what was known."""
    book = make("store")
    fill(book)
    then = book.clock
    book.archive("billing")
    assert "billing" not in book.found("billing database", min_score=0.0)
    assert book.found("billing database", wanted=Filter(as_of=then))[0] == "billing"
    assert book.found("billing database", wanted=Filter(as_of=then - 1.0), min_score=0.0)[:1] != ["billing"]


def test_each_of_several_versions_has_its_time(make: Callable[[str], Notebook]) -> None:
    """Passages of the past lie between those of the present in number, in whatever order they were written."""
    book = make("store")
    fill(book)
    times = []
    for year in (2021, 2022, 2023, 2024):
        book.remember("plan", f"The offsite of the year takes place in {year}, by the lake.")
        times.append(book.clock)
        book.remember(f"other {year}", f"Rooms of the offsite {year} must be booked by spring.")
    for year, time in zip((2021, 2022, 2023, 2024), times, strict=True):
        hits = book.search("when does the offsite take place by the lake", wanted=Filter(as_of=time)).hits
        assert hits[0].text == f"The offsite of the year takes place in {year}, by the lake."
        assert not [hit for hit in hits if hit.owner_id == f"other {year}"]


def test_other_filters_hold_for_the_past_too(make: Callable[[str], Notebook]) -> None:
    """A past version passes by its own tags and tier."""
    book = make("store")
    fill(book)
    book.remember("billing", OLD, tags=("money",), tier="long")
    then = book.clock
    book.remember("billing", NEW)
    assert book.found("billing database", wanted=Filter(as_of=then, tags=("money",))) == ["billing"]
    assert book.found("billing database", wanted=Filter(as_of=then, tiers=("long",))) == ["billing"]
    assert book.found("billing database", wanted=Filter(as_of=then, tiers=("short",)), min_score=0.0)[:1] != ["billing"]
    assert book.found("billing database", wanted=Filter(tags=("money",)), min_score=0.0) == []


def test_an_artifact_is_found_as_of_a_time_since_it_was_stored(make: Callable[[str], Notebook]) -> None:
    """Files have no versions here: what was stored by then is found, what came later is not."""
    book = make("store")
    fill(book)
    then = book.clock
    book.index_documents(Document("manual", "The billing manual names the database and its machine."))
    assert "manual" not in book.found("billing manual", wanted=Filter(as_of=then), min_score=0.0)
    assert book.found("billing manual", wanted=Filter(as_of=book.clock))[0] == "manual"


def test_a_forgotten_past_is_not_found(make: Callable[[str], Notebook]) -> None:
    """Its words may still be in what this process has analysed; the store alone says what exists."""
    book = make("store")
    fill(book)
    then = book.clock
    book.remember("billing", NEW)
    wanted = Filter(as_of=then)
    assert book.found("billing MySQL", wanted=wanted)[0] == "billing"
    with book.store.change_memories(NAMESPACE) as change:
        change.erase(["billing"])
    assert "billing" not in book.found("billing MySQL", wanted=wanted, min_score=0.0)


def test_more_of_the_past_than_is_ranked_keeps_its_best(make: Callable[[str], Notebook]) -> None:
    """A long past is cut to its best by words and by meaning, as a long tail is."""
    book = make("store")
    for number in range(230):
        book.remember(f"m{number}", f"Memo {number}: shelf {number % 7} of the archive was tidied.")
    book.remember("billing", OLD)
    then = book.clock
    for number in range(230):
        book.archive(f"m{number}")
    book.archive("billing")
    assert book.found("which database does billing use", wanted=Filter(as_of=then))[:1] == ["billing"]
    assert len(book.found("memo shelf archive tidied", wanted=Filter(as_of=then), limit=220, min_score=0.0)) == 220
