"""Which turns of a conversation are grouped: small talk is alike, and has nothing to do with each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import commonplace
from commonplace.consolidation.cluster import ClusterDetector
from commonplace.consolidation.groups import worth_comparing
from commonplace.engine import Engine

PLANS = {
    "t1": "Ada: I booked the ferry from Hull to Rotterdam for our cycling holiday.",
    "t2": "Ben: Great, the ferry from Hull to Rotterdam is booked for our cycling holiday!",
}
THANKS = {
    "t3": "Ada: Thanks, I definitely will!",
    "t4": "Ben: Thanks! I definitely will.",
}


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", embedder="hashing", clock=lambda: 1_750_000_000.0) as engine:
        yield engine


def groups(book: Engine) -> list[list[str]]:
    return [json.loads(item) for item in ClusterDetector(book=book).scan()]


def test_turns_that_speak_of_the_same_are_grouped_and_thanks_are_not(book: Engine) -> None:
    for id_, text in {**PLANS, **THANKS}.items():
        book.remember(text, id=id_, session="talk")
    assert groups(book) == [["t1", "t2"]]


def test_memories_are_grouped_however_little_they_say(book: Engine) -> None:
    """Somebody meant to keep them: they are no small talk."""
    for id_, text in THANKS.items():
        book.remember(text, id=id_, force=True)
    assert groups(book) == [["t3", "t4"]]


def test_what_very_many_turns_say_counts_for_nothing() -> None:
    """The words of a polite phrase are as many as those of a plan: only that everybody says them tells them apart."""
    phrase = "Your kind words and your support really mean very much"
    assert worth_comparing([phrase, phrase]) == [True, True]
    assert worth_comparing([phrase] * 21) == [False] * 21
    plan = "We sail the wooden dinghy round Lundy island"
    assert worth_comparing([*[phrase] * 21, plan]) == [False] * 21 + [True]


def test_a_turn_of_four_words_is_small_talk_and_one_of_five_is_not() -> None:
    assert worth_comparing(["Ferries leave Hull daily", "Ferries leave Hull daily, Tom"]) == [False, True]
