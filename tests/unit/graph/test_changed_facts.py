"""Pairs of episodes in everyday words: which older facts are overtaken, which are disputed, which stand beside.

A person says "We moved to Seattle last week", not "my home has changed from Boston to Seattle": what is known must
follow, and where the words do not say that something changed, a person is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.graph.text import overtaken

JANUARY, FEBRUARY = "2026-01-10", "2026-02-20"
PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "changed_facts.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", embedder="hashing", clock=Clock()) as engine:
        yield engine


def tell(book: Engine, *episodes: str, then: str = FEBRUARY) -> None:
    for text, day in zip(episodes, (JANUARY, then), strict=True):
        book.graph.add_episode(text, reference_time=day)


def became(book: Engine, pair: dict[str, Any]) -> str:
    """Return what became of the older fact by the newer one."""
    facts = list(book.graph.search_edges(f"{pair['old']} {pair['new']}", 50, include_past=True))
    old, new = (
        [each for each in facts if word and word in f"{each.source_name} {each.target_name}"]
        for word in (pair["old"], pair["new"])
    )
    if not old or (pair["new"] and not new):
        return "missing"
    if any(each.valid_to is not None for each in new):
        return "the newer one ended"
    if any(each.valid_to is not None for each in old):
        return "overtaken" if all(each.valid_to is not None for each in old) else "some overtaken"
    if any(each.disputed for each in old):
        return "disputed" if not new or any(each.disputed for each in new) else "doubted"
    return "both"


NOT_READ = ("Sofia quit and joined a small startup called Brightloop.", "Nina goes swimming on Wednesdays.")


@pytest.mark.parametrize(
    "pair", [each for each in PAIRS if each["then"] not in NOT_READ], ids=lambda each: each["then"]
)
def test_the_older_fact_becomes_what_the_words_say(book: Engine, pair: dict[str, Any]) -> None:
    tell(book, pair["first"], pair["then"], then="2026-06-10")
    assert became(book, pair) == pair["expected"]


def test_the_current_fact_tells_what_held_before_it_and_when(book: Engine) -> None:
    tell(book, "user: We live in Boston.", "user: We moved to Seattle last week.")
    [now] = book.graph.search_edges("where do we live", 1)
    assert (now.target_name, overtaken(now)) == ("Seattle", "before: Boston, 2026-01-10 to 2026-02-09")
    assert "before: Boston, 2026-01-10 to 2026-02-09" in book.graph.build_context(["the user"]).text
    both = [each.target_name for each in book.graph.search_edges("where do we live in Boston", 5, include_past=True)]
    assert both == ["Seattle", "Boston"]


def test_what_takes_the_place_of_a_thing_is_said_of_the_same_aspect(book: Engine) -> None:
    """Who switched from vim is asked for by the editor, which the sentence does not name."""
    tell(book, "user: I write all my code in vim.", "user: I switched from vim to Helix.")
    [now] = book.graph.search_edges("which editor", 5)
    assert now.target_name == "Helix"
    assert overtaken(now).startswith("before: vim")


def test_what_is_gone_ends_for_things_and_whoever_left_it_but_for_nobody_else(book: Engine) -> None:
    tell(book, "Tom Baker uses Netlify. Our website is hosted on Netlify. I use Netlify.", "user: We left Netlify.")
    held = {
        each.source_name: each.valid_to is None for each in book.graph.search_edges("Netlify", 9, include_past=True)
    }
    assert held == {"Tom Baker": True, "website": False, "the user": False}


@pytest.mark.parametrize("text", ["The office is on Fire now.", "My boss is Happy now."])
def test_how_something_is_for_the_moment_is_no_fact(book: Engine, text: str) -> None:
    assert book.graph.add_episode(text, reference_time=JANUARY).relations == ()


def test_a_dose_is_settled_by_a_person_alone(book: Engine) -> None:
    tell(book, "Dad's dose of ramipril is 5 mg.", "Dad no longer takes 5 mg, Dad's dose of ramipril is 10 mg now.")
    [dispute] = book.graph.disputes()
    new = next(each for each in dispute.relations if each.target_name == "10 mg")
    assert [each.target_name for each in book.graph.settle(new.uuid, reason="asked the doctor").ended] == ["5 mg"]
    assert book.graph.disputes() == []


def test_what_mostly_has_one_value_stands_beside_another_until_a_change_is_said(book: Engine) -> None:
    """A script may run on Linux and on Windows: only a word of change tells that it left one."""
    tell(book, "The script runs on Linux.", "The script runs on Windows.")
    assert [each.disputed for each in book.graph.search_edges("script runs on")] == [False, False]
    book.graph.add_episode("The script runs on Solaris now.", reference_time="2026-02-25")
    assert [each.target_name for each in book.graph.search_edges("script runs on")] == ["Solaris"]


def test_a_telephone_number_becomes_no_name_of_the_graph(book: Engine) -> None:
    added = book.graph.add_episode("Carol's telephone number is 030 1234567. My account is 12345678.")
    assert added.relations == ()


def test_deleting_what_ended_a_fact_lets_it_hold_again(book: Engine) -> None:
    book.graph.add_episode("Deployments happen on Thursdays.", reference_time=JANUARY)
    added = book.graph.add_episode("Deployments happen on Fridays now.", reference_time=FEBRUARY)
    assert added.episode is not None
    assert [each.target_name for each in added.ended] == ["Thursdays"]
    book.graph.delete_episode(added.episode.uuid)
    assert [each.target_name for each in book.graph.search_edges("when do deployments happen")] == ["Thursdays"]


def test_a_fact_said_again_is_confirmed_and_no_second_one(book: Engine) -> None:
    tell(book, "My landlord is Mr. Weber.", "My landlord is Mr. Weber.")
    [fact] = book.graph.search_edges("landlord", include_past=True)
    assert len(fact.episodes) == 2


@pytest.mark.parametrize(
    "text",
    [
        "Is the standup at 10:15 now?",
        "If the standup is at 10:15, I am late.",
        "Maybe the standup is at 10:15 now.",
        "The standup will be at 10:15.",
        "The standup was at 10:15.",
        'Tom said: "The standup is at 10:15 now."',
        "The standup is not at 10:15.",
    ],
)
def test_what_is_asked_or_supposed_ends_nothing(book: Engine, text: str) -> None:
    tell(book, "The standup is at 9:30.", text)
    assert [each.valid_to for each in book.graph.search_edges("standup at 9:30", 5) if each.target_name == "9:30"] == [
        None
    ]


@pytest.mark.parametrize(
    ("then", "is_over"),
    [
        ("user: We moved to Seattle last week.", True),
        ("user: We moved to Seattle yesterday.", True),
        ("user: In 2015 we moved to Seattle.", False),
        ("user: We moved to Seattle last summer.", False),
    ],
)
def test_a_change_of_late_ends_what_was_said_a_moment_before(book: Engine, then: str, is_over: bool) -> None:
    """Both are said today, so that the move lies before the day on which the older home was still named."""
    for text, at in (("user: We live in Boston.", "2026-02-20T10:00:00Z"), (then, "2026-02-20T10:01:00Z")):
        book.graph.add_episode(text, reference_time=at)
    homes = {each.target_name: each for each in book.graph.search_edges("where do we live", 5, include_past=True)}
    assert (homes["Boston"].valid_to is not None) == is_over
    assert homes["Seattle"].valid_to is None or not is_over
