"""What is said once more after something newer was said counts from then on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.memory import supersession
from commonplace.memory.service import MemoryService
from commonplace.search.retrieve import Searcher
from commonplace.store.store import Store
from commonplace.types import HOLDS_BESIDE, RULE, SUPERSEDES

FIRST, SECOND = "We deploy on Tuesdays.", "We deploy on Thursdays."
ASKED = "on which day do we deploy"
OTHERS = ("Greta plays the cello.", "The garden needs water at noon.", "My editor is Vim.")


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", clock=clock) as engine:
        yield engine


def said(book: Engine, clock: Clock, *texts: str) -> None:
    for text in texts:
        book.remember(text, id={FIRST: "first", SECOND: "second"}.get(text))
        clock.move(days=60)


def linked(book: Engine) -> list[str]:
    """Return the types of the links that somebody made."""
    return [each.type for each in book.links() if each.origin != RULE]


def current(book: Engine, **given: float) -> list[str]:
    """Return of the two what a question finds, as they stand."""
    return [hit.text for hit in book.recall(ASKED, **given).hits if hit.text in (FIRST, SECOND)]


@pytest.mark.parametrize("again", [FIRST, "we deploy on tuesdays"])
def test_what_is_said_again_after_something_newer_is_the_newest(book: Engine, clock: Clock, again: str) -> None:
    said(book, clock, *OTHERS, FIRST, SECOND)
    then = clock.now
    told = book.remember(again)
    assert (told.id, told.outcome, told.version, told.at.timestamp()) == ("first", "touched", 2, then)
    assert (told.use_count, told.content) == (1, FIRST)
    assert "it now has the date" in told.notices[-1]
    assert current(book) == [FIRST, SECOND]
    assert [each.superseded_by for each in book.recall(ASKED).hits[:2]] == [None, "first"]
    assert [[side.id for side in each.sides] for each in book.questions()] == [["second", "first"]]


def test_what_was_believed_before_is_kept(book: Engine, clock: Clock) -> None:
    said(book, clock, *OTHERS, FIRST, SECOND)
    before = clock.now - 1
    book.remember(FIRST)
    assert current(book, as_of=before) == [SECOND, FIRST]
    assert book.get("first", as_of=before).at < book.get("second").at < book.get("first").at


def test_what_nothing_contests_is_only_touched(book: Engine, clock: Clock) -> None:
    said(book, clock, FIRST, *OTHERS)
    again = book.remember(FIRST)
    assert (again.outcome, again.version, again.use_count) == ("touched", 1, 1)


def test_dates_that_are_given_count_in_whatever_order_they_come(book: Engine, clock: Clock) -> None:
    clock.move(days=180)
    days = {"2026-01-10": FIRST, "2026-03-10": SECOND, "2026-02-10": FIRST, "2026-06-10": FIRST, "2026-05-10": FIRST}
    for at, text in [*days.items(), ("2026-04-10", SECOND)]:
        book.remember(text, at=at)
    assert current(book) == [FIRST, SECOND]
    assert [each.at.date().isoformat() for each in book.list()] == ["2026-06-10", "2026-04-10"]


@pytest.mark.parametrize("is_one_call", [True, False])
def test_a_list_may_say_something_again(book: Engine, clock: Clock, is_one_call: bool) -> None:
    clock.move(days=180)
    items = [
        {"content": text, "at": at}
        for text, at in ((FIRST, "2026-01-10"), (SECOND, "2026-03-10"), (FIRST, "2026-06-10"), (SECOND, "2026-02-10"))
    ]
    for some in [items] if is_one_call else [[each] for each in items]:
        book.remember_many(some)
    assert current(book) == [FIRST, SECOND]


def test_an_answer_of_before_puts_nothing_below(book: Engine, clock: Clock) -> None:
    said(book, clock, *OTHERS, FIRST, SECOND)
    book.link("second", "first", SUPERSEDES)
    assert current(book) == [SECOND, FIRST]
    book.remember(FIRST)
    assert current(book) == [FIRST, SECOND]
    assert linked(book) == []
    book.link("first", "second", HOLDS_BESIDE)
    clock.move(days=1)
    book.remember(SECOND)
    assert linked(book) == [HOLDS_BESIDE]


def test_an_answer_stays_where_what_it_prefers_is_later_still(book: Engine) -> None:
    book.remember(FIRST, id="first", at="2026-01-10")
    book.remember(SECOND, id="second", at="2026-03-10")
    book.link("second", "first", SUPERSEDES)
    book.remember(FIRST, at="2026-02-10")
    assert linked(book) == [SUPERSEDES]


def test_the_graph_holds_again_what_is_said_again_and_keeps_what_was(book: Engine, clock: Clock) -> None:
    said(book, clock, "We moved to Boston.", "We moved to Seattle.")
    book.remember("We moved to Boston.")

    def home(**given: bool) -> list[tuple[str, bool]]:
        found = book.graph.search_edges("where do we live", **given)
        return [(each.target_name, each.valid_to is None) for each in found if each.relation_type == "LIVES_IN"]

    assert home() == [("Boston", True)]
    assert sorted(home(include_past=True)) == [("Boston", False), ("Boston", True), ("Seattle", False)]
    hits = book.recall("where do we live").hits
    assert [(each.text, each.superseded_by is None) for each in hits[:2]] == [
        ("We moved to Boston.", True),
        ("We moved to Seattle.", False),
    ]
    book.archive(book.remember("We moved to Boston.").id)
    assert home() == [("Seattle", True)]


def test_a_fact_begins_at_the_earliest_date_on_which_it_was_said(book: Engine) -> None:
    for date in ("2026-02-10", "2025-03-01", "2025-03-01", "2025-06-01"):
        memory = book.remember("Mira Okafor lives in Berlin.", at=date)
    assert (memory.version, memory.at.date().isoformat()) == (1, "2026-02-10")
    [home] = book.graph.search_edges("where does Mira live")
    assert (str(home.valid_from)[:10], len(home.episodes)) == ("2025-03-01", 2)
    assert book.forget(memory.id).verified
    assert book.graph.counts().episodes == 0


def test_what_is_kept_in_the_process_counts_from_a_date_that_is_given_alone(book: Engine, clock: Clock) -> None:
    book.remember(FIRST, tier="ultra")
    began = clock.now
    for text in (SECOND, FIRST):
        clock.move(days=1)
        again = book.remember(text, tier="ultra")
    assert (again.outcome, again.version, again.at.timestamp()) == ("touched", 1, began)
    assert book.remember(FIRST, tier="ultra", at=clock.now).at.timestamp() == clock.now


def test_what_another_changed_meanwhile_stays_as_it_is(
    book: Engine, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(book, clock, *OTHERS, FIRST, SECOND)
    asked = MemoryService._contested
    with commonplace.open(tmp_path / "store", clock=clock) as other:

        def beside(self: MemoryService, *given: Any) -> Any:
            other.update("first", content="Deploying is paused.", tags=["paused"])
            return asked(self, *given)

        monkeypatch.setattr(MemoryService, "_contested", beside)
        book.remember(FIRST)
    now = book.get("first")
    assert (now.version, now.content, now.tags) == (2, "Deploying is paused.", ("paused",))
    assert FIRST not in [hit.text for hit in book.recall(ASKED).hits]


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize("is_linked", [True, False])
@pytest.mark.parametrize(("first", "second"), [("user", "user"), ("web", "user"), ("user", "web")])
def test_who_is_trusted_less_moves_nothing(
    book: Engine, clock: Clock, dated: bool, is_linked: bool, first: str, second: str
) -> None:
    codes = "The vault code is 1111.", "The vault code is 2222."
    for text, origin in zip(codes, (first, second), strict=True):
        book.remember(text, id=text[-5:-1], origin=origin)
        clock.move(days=1)
    if is_linked:
        book.link("2222", "1111", SUPERSEDES)
    given: dict[str, Any] = {"at": clock.now} if dated else {}
    again = book.remember(codes[0], origin="web", **given)
    assert (again.version, len(linked(book))) == (1, int(is_linked))
    assert [hit.text for hit in book.recall("what is the vault code").hits] == [*reversed(codes)]
    again = book.remember(codes[0], origin="user", **given)
    assert (again.version, linked(book)) == (2, [])
    assert [hit.text for hit in book.recall("what is the vault code").hits] == [*codes]


NOUNS = "parser linter builder loader mailer router ledger planner indexer printer watcher solver".split()
PLACES = "Bergen Lima Oslo Quito".split()
NOTES = [f"The {noun} of the office in {place} is kept by its own team." for noun in NOUNS for place in PLACES]


@pytest.mark.parametrize("more", [False, True])
def test_a_list_that_is_stored_each_day_makes_no_new_version(
    book: Engine, clock: Clock, more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: Counter[str] = Counter()

    def count(kind: Any, name: str) -> None:
        done = getattr(kind, name)

        def beside(*given: Any, **named: Any) -> Any:
            counted[name] += 1
            return done(*given, **named)

        monkeypatch.setattr(kind, name, beside)

    count(Searcher, "search")
    count(Store, "change_memories")
    count(supersession, "judge")
    for day in range(4):
        kept = book.remember_many([{"content": note} for note in NOTES])
        assert {each.version for each in kept} == {1}
        clock.move(days=1)
        if more:
            book.remember(f"Greta plays the cello in hall {day}.")
            clock.move(days=1)
    assert len(book.list(limit=1000)) == len(NOTES) + 4 * more
    assert counted["search"] <= 8 * more
    assert counted["change_memories"] <= 4 + 8 * more
    assert counted["judge"] <= len(NOTES) + 4 * more


RELATED = (
    "Releases are tagged in git with their date.",
    "Nora writes the release notes in plain English.",
    "The release branch is protected, and two people approve each merge.",
    "Our build machine has two cores and is busy at noon.",
    "Every release is announced in the team channel by whoever made it.",
    "The changelog of a release lists what users notice.",
)


def test_notes_that_are_stored_one_by_one_each_day_make_no_new_version(book: Engine, clock: Clock) -> None:
    for _ in range(3):
        for note in RELATED:
            clock.now += 5
            assert book.remember(note).version == 1
        clock.move(days=1)
    assert len(book.list()) == len(RELATED)
