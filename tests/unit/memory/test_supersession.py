"""Memories that a newer one may have overtaken, over a whole namespace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.memory import supersession
from commonplace.memory.supersession import overtaken
from commonplace.types import HOLDS_BESIDE, SUPERSEDES

SAID = {
    "flat": "We live in a flat in Boston.",
    "days": "Deployments go out on Thursdays.",
    "cello": "Greta plays the cello.",
    "editor": "My editor is Vim.",
    "water": "The garden needs water on Tuesdays.",
}


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    clock = Clock()
    with commonplace.open(tmp_path / "store", clock=clock) as engine:
        for id_, text in SAID.items():
            engine.remember(text, id=id_)
            clock.now += 60.0
        yield engine


def pairs(book: Engine) -> list[tuple[str, str]]:
    found = overtaken(book._runtime.store, book.namespace, book._runtime.tokens)
    return [(each.older.owner.id, each.newer.owner.id) for each in found]


def test_memories_about_different_things_overtake_nothing(book: Engine) -> None:
    assert pairs(book) == []


def test_the_later_of_two_that_say_the_same_of_one_thing_may_overtake(book: Engine) -> None:
    book.remember("Deployments go out on Fridays now.", id="new-days")
    assert pairs(book) == [("days", "new-days")]
    book.archive("new-days")
    assert pairs(book) == []


def test_of_several_newer_ones_the_likeliest_is_named(book: Engine) -> None:
    book.remember("Deployments go out with the other team.", id="team")
    book.remember("Deployments go out on Fridays now.", id="new-days")
    assert dict(pairs(book))["days"] == "new-days"


@pytest.mark.parametrize(
    ("source", "target", "type_"),
    [
        ("new-days", "days", SUPERSEDES),
        ("days", "new-days", SUPERSEDES),
        ("new-days", "days", HOLDS_BESIDE),
        ("days", "new-days", HOLDS_BESIDE),
    ],
)
def test_what_a_link_settles_is_not_asked(book: Engine, source: str, target: str, type_: str) -> None:
    book.remember("Deployments go out on Fridays now.", id="new-days")
    book.link(source, target, type_)
    assert pairs(book) == []
    book.unlink(source, target, type_)
    assert pairs(book) == [("days", "new-days")]


def test_other_links_settle_nothing(book: Engine) -> None:
    book.remember("Deployments go out on Fridays now.", id="new-days")
    book.link("new-days", "days", "because")
    assert pairs(book) == [("days", "new-days")]


def test_turns_of_a_conversation_are_not_compared(book: Engine) -> None:
    book.remember("Deployments go out on Fridays now.", id="new-days", session="talk")
    assert pairs(book) == []


def test_turns_take_no_place_of_what_is_compared(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supersession, "COMPARED", len(SAID) + 1)
    book.remember("Deployments go out on Fridays now.", id="new-days")
    for number in range(3):
        book.remember(f"So they told me, {number} times.", session="talk")
    assert pairs(book) == [("days", "new-days")]


def test_long_texts_are_not_compared(book: Engine) -> None:
    book.remember("Deployments go out on Fridays now. " * 200, id="new-days")
    assert pairs(book) == []


def test_only_the_newest_are_compared(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    book.remember("Deployments go out on Fridays now.", id="new-days")
    monkeypatch.setattr(supersession, "COMPARED", 4)
    assert pairs(book) == []


def test_cosines_of_other_embedders_tell_nothing(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        for number, text in enumerate((*SAID.values(), "Deployments go out on Fridays now.")):
            book.remember(text, id=str(number))
        assert pairs(book) == []
