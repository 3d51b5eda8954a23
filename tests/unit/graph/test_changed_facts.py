"""Pairs of episodes in everyday words: which older facts are overtaken, which are disputed, which stand beside.

A person says "We moved to Seattle last week", not "my home has changed from Boston to Seattle": what is known must
follow, and where the words do not say that something changed, a person is asked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commonplace.engine import Engine
from commonplace.graph.text import overtaken, replaced, when

JANUARY, FEBRUARY = "2026-01-10", "2026-02-20"
PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "changed_facts.jsonl").read_text(encoding="utf-8").splitlines()
]


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


def test_the_current_fact_tells_until_when_another_held_that_began_at_an_unknown_time(book: Engine) -> None:
    book.graph.add_triplet("Ann", "LIVES_IN", "Bern", valid_to="2024-05-01")
    book.graph.add_triplet("Ann", "LIVES_IN", "Basel", valid_from="2024-05-01")
    [now] = book.graph.search_edges("where does Ann live", 1)
    assert (now.target_name, overtaken(now)) == ("Basel", "before: Bern, until 2024-05-01")


@pytest.mark.parametrize(
    ("older", "newer", "pair"),
    [
        ("I work at Initech.", "I got a job at Globex.", "overtaken"),
        ("I work at Initech.", "I started a new job at Globex.", "overtaken"),
        ("I work at Initech.", "Got a new job at Globex!", "overtaken"),
        ("I work at Initech.", "Today was my first day at Globex.", "disputed"),
        ("We live in Boston.", "We're living in Seattle these days.", "overtaken"),
        ("We live in Boston.", "We are living in Seattle now.", "overtaken"),
        ("We live in Boston.", "I moved to Seattle to be near my parents.", "overtaken"),
        ("We live in Boston.", "I moved to Seattle last Monday at noon.", "overtaken"),
        ("We live in Boston.", "I moved to Seattle permanently.", "overtaken"),
        ("We live in Boston.", "We moved to Seattle, which is great.", "overtaken"),
        ("We live in Boston.", "We moved to Seattle which is great.", "overtaken"),
        ("We live in Boston.", "We moved to Seattle for now.", "disputed"),
        ("I work at Initech.", "I work for Globex remotely now.", "overtaken"),
        ("I work at Initech.", "I joined Globex last Monday at 9:30.", "overtaken"),
        ("I work at Initech.", "I joined Globex at 9 am last Monday.", "overtaken"),
        ("My sister lives in Boston.", "My sister lives in Seattle now.", "overtaken"),
        ("My sister lives in Boston.", "My older sister moved to Seattle.", "disputed"),
    ],
)
def test_a_new_job_or_home_is_told_in_many_ways(book: Engine, older: str, newer: str, pair: str) -> None:
    tell(book, f"user: {older}", f"user: {newer}")
    old, new = ("Initech", "Globex") if "work" in older else ("Boston", "Seattle")
    assert became(book, {"old": old, "new": new}) == pair


@pytest.mark.parametrize("city", ["Mainz", "Kiel", "Leicester", "Grenoble"])
def test_a_city_of_some_size_is_a_place_apart_from_others(book: Engine, city: str) -> None:
    tell(book, "user: I live in Boston.", f"user: I moved to {city}.")
    assert became(book, {"old": "Boston", "new": city}) == "overtaken"


@pytest.mark.parametrize(
    ("said", "is_overtaken"),
    [
        ("Tomas handed Heron over to Priya.", True),
        ("Tomas handed over Heron to Priya last week.", True),
        ("Tomas has handed Heron over to Priya.", True),
        ("Priya took Heron over from Tomas.", True),
        ("Priya took over Heron from Tomas.", True),
        ("Tomas handed the letter over to Priya.", False),
        ("Tomas did not hand Heron over to Priya.", False),
    ],
)
def test_who_hands_something_over_leads_it_no_longer(book: Engine, said: str, is_overtaken: bool) -> None:
    tell(book, "Tomas leads Heron.", said)
    led = {
        each.target_name: each.valid_to is None
        for each in book.graph.search_edges("who leads Heron", 9, include_past=True)
        if each.source_name in ("Heron", "Heron project") and each.target_name in ("Tomas", "Priya")
    }
    assert led == ({"Tomas": False, "Priya": True} if is_overtaken else {"Tomas": True})


@pytest.mark.parametrize(
    ("older", "newer", "pair"),
    [
        ("Priya leads team Falcon.", "Omar took over team Falcon from Priya.", "Priya Omar"),
        ("Priya leads team Falcon.", "Priya handed team Falcon over to Omar.", "Priya Omar"),
        ("Priya leads team Falcon.", "Team Falcon was handed over to Omar.", "Priya Omar"),
        ("Priya leads billing.", "Priya handed over billing to Omar.", "Priya Omar"),
        ("The standup is on Monday.", "The standup was moved to Tuesday.", "Monday Tuesday"),
        ("The standup is on Monday.", "The standup got pushed back to Tuesday.", "Monday Tuesday"),
        ("The standup is on Monday.", "We moved the standup to Tuesday.", "Monday Tuesday"),
        ("The standup is at 9:30.", "The standup was postponed to 10:00.", "9:30 10:00"),
        ("The office is in Lisbon.", "The office moved to Madrid.", "Lisbon Madrid"),
        ("Our office is in Lisbon.", "We moved our office from Lisbon to Madrid.", "Lisbon Madrid"),
    ],
)
def test_what_is_handed_over_or_moved_has_the_new_value_alone(book: Engine, older: str, newer: str, pair: str) -> None:
    tell(book, older, newer)
    old, new = pair.split()
    assert became(book, {"old": old, "new": new}) == "overtaken"


@pytest.mark.parametrize(
    "newer",
    [
        "The standup was almost moved to Tuesday.",
        "The standup was not moved to Tuesday.",
        "The standup will be moved to Tuesday.",
        "We moved the standup to Tuesday, but moved it back.",
        "The standup was moved to 10:00.",
    ],
)
def test_a_day_stays_where_nothing_else_took_its_place(book: Engine, newer: str) -> None:
    tell(book, "The standup is on Monday.", newer)
    [monday] = [fact for fact in book.graph.search_edges("standup Monday") if fact.target_name == "Monday"]
    assert (monday.valid_to, monday.disputed) == (None, False)


@pytest.mark.parametrize("how", ["from Priya for a week", "from Priya temporarily", "while she is ill"])
def test_who_takes_over_for_a_while_ends_nothing(book: Engine, how: str) -> None:
    tell(book, "Priya leads team Falcon.", f"Omar took over team Falcon {how}.")
    leads = book.graph.search_edges("who leads team Falcon", include_past=True)
    assert [fact.valid_to for fact in leads if fact.target_name == "Priya"] == [None]


def test_a_building_that_is_handed_over_is_not_led(book: Engine) -> None:
    book.graph.add_episode("Priya handed over the building to Omar.", reference_time=JANUARY)
    assert not list(book.graph.search_edges("who leads the building"))


@pytest.mark.parametrize(
    ("older", "newer", "old", "new"),
    [
        ("The standup is on Monday.", "The standup moved from Monday to Friday.", "Monday", "Friday"),
        ("The standup is on Mondays.", "The standup moved from Mondays to Fridays.", "Mondays", "Fridays"),
        ("The release is on June 3.", "The release moved from June 3 to June 10.", "June 3", "June 10"),
        ("The release date is June 3.", "The release date is June 10 now.", "June 3", "June 10"),
    ],
)
def test_days_that_are_values_are_not_when_they_changed(
    book: Engine, older: str, newer: str, old: str, new: str
) -> None:
    tell(book, older, newer)
    found = {fact.target_name: when(fact) for fact in book.graph.search_edges("standup release", 5, include_past=True)}
    assert found == {old: "from 2026-01-10 to 2026-02-20", new: "since 2026-02-20"}


@pytest.mark.parametrize("name", ["Atlas", "Borealis", "Checkout", "Acme", "billing"])
def test_a_project_of_any_name_can_cease_to_use_a_thing(book: Engine, name: str) -> None:
    tell(book, f"{name} uses MySQL.", f"{name} no longer uses MySQL.")
    [fact] = book.graph.search_edges(f"{name} MySQL", 5, include_past=True)
    assert (when(fact), fact.disputed, book.graph.disputes()) == ("from 2026-01-10 to 2026-02-20", False, [])


def test_an_end_by_hearsay_is_disputed_for_a_project_of_any_name(book: Engine) -> None:
    tell(book, "Atlas uses MySQL.", "Tom says Atlas no longer uses MySQL.")
    [fact] = book.graph.search_edges("Atlas MySQL", 5, include_past=True)
    assert (when(fact), fact.disputed) == ("since 2026-01-10", True)


def test_a_move_between_days_needs_no_earlier_fact(book: Engine) -> None:
    book.graph.add_episode("The standup moved from Monday to Friday.", reference_time=FEBRUARY)
    [fact] = book.graph.search_edges("standup", 5, include_past=True)
    assert (fact.target_name, fact.disputed) == ("Friday", False)


def test_another_s_first_day_is_no_job_of_the_speaker(book: Engine) -> None:
    tell(book, "user: I work at Initech.", "user: First day at Globex for Tom.")
    assert [each.target_name for each in book.graph.search_edges("where do I work", 5)] == ["Initech"]
    assert not book.graph.disputes()


def test_who_is_laid_off_works_there_no_longer(book: Engine) -> None:
    tell(book, "user: I work at Initech.", "user: I was laid off from Initech.")
    [fact] = book.graph.search_edges("where do I work", 5, include_past=True)
    assert fact.valid_to is not None


def test_what_takes_the_place_of_a_thing_is_said_of_the_same_aspect(book: Engine) -> None:
    """Who switched from vim is asked for by the editor, which the sentence does not name."""
    tell(book, "user: I write all my code in vim.", "user: I switched from vim to Helix.")
    [now] = book.graph.search_edges("which editor", 5)
    assert now.target_name == "Helix"
    assert overtaken(now).startswith("before: vim")


def test_an_exchange_of_what_is_ones_own_is_of_that_attribute_alone(book: Engine) -> None:
    tell(book, "user: My editor is Vim. My hobby is Vim.", "user: I switched my editor from Vim to Emacs.")
    ended = {(fact.fact, fact.valid_to is not None) for fact in book.graph.search_edges("Vim", include_past=True)}
    assert {("My editor is Vim.", True), ("My hobby is Vim.", False)} <= {
        (f.removeprefix("user: "), e) for f, e in ended
    }


@pytest.mark.parametrize(
    ("newer", "pair"),
    [
        ("We switched billing from MySQL to Postgres.", "overtaken"),
        ("We migrated billing from MySQL to Postgres last week.", "overtaken"),
        ("We switched billing from MySQL to Postgres in staging.", "doubted"),
        ("We might switch billing from MySQL to Postgres.", "both"),
    ],
)
def test_what_is_switched_is_of_the_thing_that_is_named(book: Engine, newer: str, pair: str) -> None:
    tell(book, "Billing runs on MySQL.", newer)
    assert became(book, {"old": "MySQL", "new": "" if pair == "both" else "Postgres"}) == pair


def test_what_is_gone_ends_for_things_and_whoever_left_it_but_for_nobody_else(book: Engine) -> None:
    tell(book, "Tom Baker uses Netlify. Our website is hosted on Netlify. I use Netlify.", "user: We left Netlify.")
    held = {
        each.source_name: each.valid_to is None for each in book.graph.search_edges("Netlify", 9, include_past=True)
    }
    assert held == {"Tom Baker": True, "website": False, "the user": False}


@pytest.mark.parametrize("text", ["The office is on Fire now.", "My boss is Happy now."])
def test_how_something_is_for_the_moment_is_no_fact(book: Engine, text: str) -> None:
    assert book.graph.add_episode(text, reference_time=JANUARY).relations == ()


@pytest.mark.parametrize(
    ("older", "newer", "pair"),
    [
        ("user: My manager is Dana.", "user: My manager is Raj, not Dana.", "Dana Raj"),
        ("user: My manager is Dana.", "user: My manager is not Dana but Raj.", "Dana Raj"),
        ("user: My manager is Dana.", "user: My manager isn't Dana, it's Raj.", "Dana Raj"),
        ("user: My manager is Dana.", "user: Not Dana but Raj is my manager.", "Dana Raj"),
        ("user: My manager is Dana.", "user: Correction: my manager is Raj.", "Dana Raj"),
        ("user: My manager is Dana.", "user: I was wrong, my manager is Raj.", "Dana Raj"),
        ("user: My manager is Dana.", "user: Sorry, I meant my manager is Raj.", "Dana Raj"),
        ("The standup is at 9:30.", "The standup is at 10:00, not 9:30.", "9:30 10:00"),
        ("The standup is on Monday.", "The standup is not on Monday but on Tuesday.", "Monday Tuesday"),
        ("Priya leads team Falcon.", "Omar leads team Falcon, not Priya.", "Priya Omar"),
        ("Atlas runs on AWS.", "Atlas runs on GCP, not AWS.", "AWS GCP"),
        ("Atlas uses MySQL.", "Atlas uses Postgres, not MySQL.", "MySQL Postgres"),
        ("Atlas uses MySQL.", "Atlas uses Postgres instead of MySQL.", "MySQL Postgres"),
        ("Atlas runs on AWS.", "Atlas runs on GCP instead of AWS.", "AWS GCP"),
        ("Atlas is written in Go.", "Atlas is written in Rust instead of Go.", "Go Rust"),
        ("The standup is on Monday.", "The standup is on Tuesday instead of Monday.", "Monday Tuesday"),
        ("user: My editor is Vim.", "user: My editor is Emacs instead of Vim.", "Vim Emacs"),
        ("user: My sister lives in Rome.", "user: My sister lives in Lisbon instead of Rome.", "Rome Lisbon"),
        ("user: I live in Boston.", "user: I live in Denver instead of Boston.", "Boston Denver"),
        ("user: My sister lives in Rome.", "user: My sister lives in Lisbon, not Rome.", "Rome Lisbon"),
        ("user: I live in Boston.", "user: I don't live in Boston but in Denver.", "Boston Denver"),
        ("user: I live in Boston.", "user: I no longer live in Boston but in Denver.", "Boston Denver"),
        ("user: I live in Boston.", "user: I didn't move to Rome but to Denver.", "Boston Denver"),
        ("Mira works for Acme.", "Mira doesn't work for Acme but for Globex.", "Acme Globex"),
        ("user: I use Vim.", "user: I don't use Vim but Emacs.", "Vim Emacs"),
        ("user: I drive a Volvo.", "user: I don't drive a Volvo but a Tesla.", "Volvo Tesla"),
    ],
)
def test_what_is_said_not_to_be_so_ends(book: Engine, older: str, newer: str, pair: str) -> None:
    tell(book, older, newer)
    old, new = pair.split()
    assert became(book, {"old": old, "new": new}) == "overtaken"


@pytest.mark.parametrize(
    ("older", "newer", "pair", "outcome"),
    [
        ("Atlas runs on AWS.", "Atlas runs on GCP instead of Azure.", "AWS GCP", "both"),
        ("Atlas runs on AWS.", "Atlas runs on GCP instead of AWS in staging.", "AWS GCP", "both"),
        ("user: My editor is Vim.", "user: My editor is Emacs instead of Vim for recipes.", "Vim Emacs", "disputed"),
        (
            "The standup is on Monday.",
            "The standup is on Friday instead of Monday this week.",
            "Monday Friday",
            "disputed",
        ),
        ("The standup is on Monday.", "The standup is on Friday, not Monday, this week.", "Monday Friday", "disputed"),
    ],
)
def test_what_is_replaced_in_part_or_for_a_while_does_not_end(
    book: Engine, older: str, newer: str, pair: str, outcome: str
) -> None:
    tell(book, older, newer)
    old, new = pair.split()
    assert became(book, {"old": old, "new": new}) == outcome


@pytest.mark.parametrize(
    "text",
    [
        "Ann moved to Bern in January, then moved to Basel last month.",
        "In January Ann moved to Bern and last month Ann moved to Basel.",
        "Ann moved to Basel last month, but in January Ann moved to Bern.",
    ],
)
def test_of_two_dated_moves_in_a_sentence_the_later_ends_the_earlier(book: Engine, text: str) -> None:
    tell(book, "Ann lives in Rome.", text, then="2026-06-10")
    homes = {
        each.target_name: (str(each.valid_from)[:10], str(each.valid_to)[:10])
        for each in book.graph.search_edges("where does Ann live", include_past=True)
    }
    assert homes["Bern"] == ("2026-01-01", "2026-05-01")
    assert homes["Basel"] == ("2026-05-01", "None")
    assert homes["Rome"][1] != "None"


@pytest.mark.parametrize(
    ("first", "second", "third", "interim"),
    [
        ("user: My manager is Dana.", "user: My manager is Raj now.", "user: My manager is Dana again.", "Raj"),
        ("user: I live in Boston.", "user: I moved to Denver.", "user: I live in Boston again.", "Denver"),
        ("user: I work for Acme.", "user: I work for Globex now.", "user: I work for Acme again.", "Globex"),
        ("Atlas is written in Go.", "Atlas is written in Rust now.", "Atlas is written in Go again.", "Rust"),
        ("Priya leads team Falcon.", "Omar leads team Falcon now.", "Priya leads team Falcon again.", "Omar"),
        ("user: My editor is Vim.", "user: My editor is Emacs now.", "user: I switched back to Vim.", "Emacs"),
        ("Atlas runs on AWS.", "We moved Atlas to GCP.", "We moved Atlas back to AWS.", "GCP"),
    ],
)
def test_a_return_ends_what_held_in_between(book: Engine, first: str, second: str, third: str, interim: str) -> None:
    days = (JANUARY, FEBRUARY, "2026-06-10")
    for text, day in zip((first, second, third), days, strict=True):
        book.graph.add_episode(text, reference_time=day)
    facts = book.graph.search_edges(f"{first} {interim}", 50, include_past=True)
    assert {(str(fact.valid_to)[:10], fact.disputed) for fact in facts if fact.target_name == interim} == {
        ("2026-06-10", False)
    }


@pytest.mark.parametrize("third", ["user: I switched back to Vim for a day.", "user: I might switch back to Vim."])
def test_what_is_used_again_for_a_while_or_perhaps_ends_nothing(book: Engine, third: str) -> None:
    tell(book, "user: My editor is Vim.", "user: My editor is Emacs now.")
    book.graph.add_episode(third, reference_time="2026-06-10")
    assert [fact.valid_to for fact in book.graph.search_edges("Emacs") if fact.target_name == "Emacs"] == [None]


@pytest.mark.parametrize(
    ("older", "newer", "pair", "expected"),
    [
        # Another value than the known one is denied.
        ("user: My manager is Dana.", "user: My manager is Raj, not Tom.", "Dana Raj", "disputed"),
        ("user: My manager is Dana.", "user: My manager is Raj, not Dana, I think.", "Dana Raj", "disputed"),
        (
            "user: My dose of sertraline is 50 mg.",
            "user: Correction: my dose of sertraline is 75 mg.",
            "50 75",
            "disputed",
        ),
        ("user: My rent is $900.", "user: My rent is $950, not $900.", "$900 $950", "disputed"),
        # Vim is for Go alone, and Dana is denied of another role.
        ("user: I use Emacs.", "user: I use Vim, not Emacs, for Go.", "Emacs Vim", "both"),
        ("user: My landlord is Dana.", "user: My manager is Raj, not Dana.", "Dana Raj", "both"),
        ("Atlas runs on AWS.", "In staging, Atlas runs on GCP, not AWS.", "AWS GCP", "both"),
        ("user: I drive a Volvo.", "user: I don't drive a Volvo but a Tesla on weekends.", "Volvo Tesla", "disputed"),
        ("Atlas uses MySQL.", "Atlas doesn't only use MySQL but Postgres.", "MySQL Postgres", "missing"),
        ("Atlas uses MySQL.", "Atlas doesn't use Go but Postgres is fine.", "MySQL Postgres", "missing"),
    ],
)
def test_a_denial_ends_only_what_it_is_about(book: Engine, older: str, newer: str, pair: str, expected: str) -> None:
    tell(book, older, newer)
    old, new = pair.split()
    assert became(book, {"old": old, "new": new}) == expected


def test_a_denied_value_that_nobody_stated_leaves_no_fact(book: Engine) -> None:
    """The sentence does not say that Tom was the manager before."""
    book.graph.add_episode("user: My manager is Raj, not Tom.", reference_time=JANUARY)
    assert [fact.target_name for fact in book.graph.search_edges("manager Raj Tom", include_past=True)] == ["Raj"]


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


@pytest.mark.parametrize(
    ("newer", "became"),
    [
        ("Zed is my editor these days.", (True, False, "Zed")),
        ("Zed is my editor now.", (True, False, "Zed")),
        ("Zed is my editor.", (False, False, "Emacs")),
        ("Zed is my editor now for the demo.", (False, False, "Emacs")),
        ("Zed is my favourite toy now.", (False, False, "Emacs")),
        ("Zed is not my editor now.", (False, False, "Emacs")),
        ("Is Zed my editor now?", (False, False, "Emacs")),
    ],
)
def test_the_value_may_stand_before_what_it_is_of(book: Engine, newer: str, became: tuple[bool, bool, str]) -> None:
    tell(book, "My editor is Emacs.", newer)
    facts = {each.target_name: each for each in book.graph.search_edges("editor", include_past=True)}
    held = next(name for name, each in facts.items() if each.valid_to is None and name in ("Emacs", "Zed"))
    assert (facts["Emacs"].valid_to is not None, facts["Emacs"].disputed, held) == became


@pytest.mark.parametrize(
    ("older", "newer", "is_disputed"),
    [
        ("My dentist is Dr. Hall.", "Dr. Okafor is my dentist now.", True),
        ("My friend is Tom.", "Max is my friend now.", False),
    ],
)
def test_what_a_rule_must_not_end_stays(book: Engine, older: str, newer: str, is_disputed: bool) -> None:
    tell(book, older, newer)
    facts = book.graph.search_edges(f"{older} {newer}", include_past=True)
    assert {(each.valid_to, bool(each.disputed)) for each in facts} == {(None, is_disputed)}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Ben works for Initech.", "Ben works for Globex, I think."),
        ("Ben works for Initech.", "Ben works for Globex, as far as I know."),
        ("Ben works for Initech.", "Ben joined Globex in May, I guess."),
        ("We live in Boston.", "We live in Seattle (apparently)."),
        ("We live in Boston.", "We moved to Seattle, we think so."),
        ("Ana leads the design team.", "Tess leads the design team now, but I am not sure."),
    ],
)
def test_who_is_not_sure_ends_nothing(book: Engine, older: str, newer: str) -> None:
    tell(book, older, newer)
    facts = book.graph.search_edges(newer, 5, include_past=True)
    assert len(facts) == 2
    assert all(each.disputed and each.valid_to is None for each in facts)


def test_an_end_that_is_not_sure_is_disputed(book: Engine) -> None:
    tell(book, "Ben works for Initech.", "Ben works for Initech until 1 December 2026, I think.")
    [fact] = book.graph.search_edges("Ben works for Initech", include_past=True)
    assert fact.disputed and fact.valid_to is None


def test_a_hedge_in_the_middle_leaves_the_rest_sure(book: Engine) -> None:
    tell(book, "Ben works for Initech.", "Ben joined Globex last week (not sure which team).")
    facts = {each.target_name: each for each in book.graph.search_edges("Ben works", include_past=True)}
    assert facts["Initech"].valid_to is not None and not facts["Globex"].disputed


def test_what_is_to_begin_is_no_answer_yet(book: Engine) -> None:
    """`From January` is said in November of a January to come, until which the old home holds."""
    tell(book, "We live in Bergen.", "From January we live in Oslo.", then="2026-11-10")
    found = book.graph.search_edges("where do we live", 5)
    assert [(each.target_name, when(each)) for each in found] == [
        ("Bergen", "from 2026-01-10 to 2027-01-01"),
        ("Oslo", "from 2027-01-01 on"),
    ]
    assert book.graph.disputes() == []
    [then] = book.graph.search_edges("where do we live", 5, valid_at="2027-02-01")
    assert then.target_name == "Oslo"


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("From January I work at Globex.", "2027-01-01"),
        ("As of March Mira lives in Oslo.", "2027-03-01"),
        ("I start at Globex on 1 December.", "2026-12-01"),
        ("From January I worked at Globex.", "2026-01-01"),
        ("I started at Globex on 1 December.", "2025-12-01"),
    ],
)
def test_the_tense_tells_which_january_is_meant(book: Engine, text: str, since: str) -> None:
    [fact] = book.graph.add_episode(text, reference_time="2026-11-10").relations
    assert (fact.valid_from and fact.valid_from.date().isoformat(), fact.valid_to) == (since, None)


def test_a_thing_is_its_owners(book: Engine) -> None:
    """Where the houses of several people are, one answers nothing about another."""
    ours = "Our house is in Lucca. Mira Falk lives in Rome. Her office is in Ostia."
    tell(book, ours, "Grandpa's house is in Siena.")
    book.graph.add_episode("My brother's house is in Pisa.", reference_time="2026-03-01")
    found = book.graph.search_edges("where is whose house or office", 9, include_past=True)
    assert {each.source_name: each.target_name for each in found if each.relation_type == "LOCATED_IN"} == {
        "house": "Lucca",
        "Mira Falk's office": "Ostia",
        "Grandpa's house": "Siena",
        "the user's brother's house": "Pisa",
    }
    assert {each.valid_to for each in found} == {None}


def test_who_owns_it_is_not_told_by_their(book: Engine) -> None:
    """`Their server` is not ours, and of whom it is nothing tells."""
    tell(book, "Our server is located in Bonn.", "Their server is located in Oslo.")
    found = book.graph.search_edges("where is the server located", 5, include_past=True)
    assert [(each.target_name, each.valid_to) for each in found] == [("Bonn", None)]


def test_what_a_fact_came_with_is_not_taken_for_what_it_overtook(book: Engine, tmp_path: Path) -> None:
    """An attribute of the same name, as another program may keep, stays as it was given."""
    tell(book, "user: We live in Boston.", "user: We moved to Seattle last week.")
    book.graph.export_graphiti(tmp_path / "graph.json")
    document = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))
    for edge in document["entity_edges"]:
        edge["attributes"] = {"overtook": "a bid"}
    (tmp_path / "given.json").write_text(json.dumps(document), encoding="utf-8")
    other = book.in_namespace("other")
    other.graph.import_graphiti(tmp_path / "given.json")
    [home] = other.graph.search_edges("where do we live", 1)
    assert home.attributes["overtook"] == "a bid"


def test_a_fact_tells_what_a_newer_memory_says_that_may_have_replaced_it(book: Engine) -> None:
    """A link ends no fact of several, nor does one that a rule made: who reads the older fact must still be warned."""
    older = book.remember("Tom is the project manager. Lena works for Initech.", at=JANUARY)
    newer = book.remember("Priya took over from Tom as project manager.", at=FEBRUARY)
    assert [each.attributes for each in book.graph.search_edges("who does Lena work for", 1)] == [{}]
    book.link(newer.id, older.id, "supersedes")
    [fact] = book.graph.search_edges("who does Lena work for", 1)
    assert fact.attributes["superseded_by"] == {"memory": newer.id, "content": newer.content}
    assert replaced(fact) == f"perhaps out of date: “{newer.content}”"
    assert newer.content in book.graph.build_context(["Lena"]).text
    assert "superseded_by" not in book.graph.search_edges("who does Lena work for", 1, valid_at=JANUARY)[0].attributes


def test_what_the_newer_memory_states_as_well_is_not_taken_for_replaced(book: Engine) -> None:
    older = book.remember("Lena works for Initech. Lena lives in Graz.", at=JANUARY)
    newer = book.remember("Lena moved to Linz. Lena works for Initech.", at=FEBRUARY)
    book.link(newer.id, older.id, "supersedes")
    [fact] = book.graph.search_edges("who does Lena work for", 1)
    assert "superseded_by" not in fact.attributes


def test_of_several_newer_memories_a_fact_tells_the_newest(book: Engine) -> None:
    """Two memories state the fact, and each was overtaken by another one."""
    texts = ("Lena works for Initech. Ana likes tea.", "Lena works for Initech, and Ana lives in Graz.")
    older = [book.remember(text, at=JANUARY, id=id_) for text, id_ in zip(texts, "ab", strict=True)]
    for memory, day in zip(older, ("2026-03-01", FEBRUARY), strict=True):
        newer = book.remember(f"Initech has closed, says the paper of {day}.", at=day, id=f"new-{memory.id}")
        book.link(newer.id, memory.id, "supersedes")
    [fact] = book.graph.search_edges("who does Lena work for", 1)
    assert fact.attributes["superseded_by"]["memory"] == "new-a"


@pytest.mark.parametrize(
    ("before", "after", "name", "type_"),
    [
        ("ANN LEE lives in OSLO.", "Ann Lee lives in Oslo.", "Ann Lee", "person"),
        ("I prefer Dark Mode.", "I prefer dark mode.", "dark mode", "preference"),
        ("Ann works for Nimbus.", "Ann works on Nimbus. The Nimbus project uses Redis.", "Nimbus", "project"),
    ],
)
def test_an_edited_memory_leaves_no_name_or_type_of_its_old_words(
    book: Engine, before: str, after: str, name: str, type_: str
) -> None:
    memory = book.remember(before)
    book.update(memory.id, after)
    entity = book.graph.entity(name)
    assert (entity.name, entity.entity_type) == (name, type_)


def test_a_name_that_another_memory_wrote_stays_when_a_memory_is_edited(book: Engine) -> None:
    book.remember("ANN LEE lives in OSLO.")
    memory = book.remember("Ann Lee works for Acme.")
    book.update(memory.id, "Ann Lee works for Globex.")
    assert book.graph.entity("Ann Lee").name == "ANN LEE"


@pytest.mark.parametrize(
    ("text", "earlier"),
    [
        ("Acme opened in Bern in 2019 and opened in Basel in 2021.", "Bern"),
        ("I joined Acme in 2019 and I joined Spotify Premium in 2021.", "Acme"),
    ],
)
def test_of_two_dated_facts_of_one_sentence_the_later_ends_none_that_it_may_hold_beside(
    book: Engine, text: str, earlier: str
) -> None:
    book.remember(text)
    [fact] = (each for each in book.graph.search_edges(earlier, 50, include_past=True) if each.target_name == earlier)
    assert fact.valid_to is None
