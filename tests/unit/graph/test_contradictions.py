"""Two episodes, one after the other: which end what was known, which are disputed, and which stand side by side.

A wrong end loses what somebody knew; so whatever is not clear must be disputed or stand.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import pytest
from tests.unit.clock import Clock

from commonplace.engine import Engine

JANUARY, MARCH, JUNE = "2026-01-10", "2026-03-10", "2026-06-10"


class Pair(NamedTuple):
    """Two sentences with the days on which they were said, and when the first one's fact ends by the second."""

    first: str
    second: str
    closes_at: str = ""
    said: tuple[str, str] = (JANUARY, JUNE)
    origins: tuple[str, str] = ("agent", "agent")
    before: str = ""


CLOSING = [
    Pair("Mira lives in Berlin.", "Mira lives in Munich.", JUNE),
    Pair("Mira lives in Berlin.", "Mira moved to Munich in May.", "2026-05-01"),
    Pair("Mira lives in Berlin.", "Mira moved to Munich on 3 April 2026.", "2026-04-03"),
    Pair("Mira lives in Berlin.", "Mira has moved to Munich.", JUNE),
    Pair("Mira Okafor lives in Berlin.", "Mira lives in Munich now.", JUNE),
    Pair("Mira lives in Berlin.", "Mira Okafor lives in Paris.", JUNE),
    Pair("Mira has lived in Berlin since 2020.", "Mira moved to Munich in March 2026.", "2026-03-01"),
    Pair("Mira moved to Berlin in 2020.", "Mira moved to Munich in 2021.", "2021-01-01", (JUNE, JUNE)),
    Pair("Mira moved to Berlin in 2020.", "Mira moved to Munich in 2021.", "2021-01-01"),
    Pair("Mira lives in Berlin.", "Mira lives in France.", JUNE),
    Pair("Mira lives in Germany.", "Mira lives in France.", JUNE),
    Pair("Mira works for Acme.", "Mira works for Globex.", JUNE),
    Pair("Mira works at Acme.", "Mira joined Globex in May.", "2026-05-01"),
    Pair("Mira joined Acme in 2019.", "Mira joined Globex in 2024.", "2024-01-01"),
    Pair("Mira works for Acme.", "Mira no longer works for Acme.", JUNE),
    Pair("Mira works for Acme.", "Mira left Acme in April.", "2026-04-01"),
    Pair("Mira works for Acme.", "Mira quit Acme.", JUNE),
    Pair("Mira lives in Berlin.", "Mira left Berlin for good.", JUNE),
    Pair("Mira lives in Berlin.", "Mira left Berlin in May.", "2026-05-01"),
    Pair("Mira lives in Berlin.", "Mira no longer lives in Berlin.", JUNE),
    Pair("auth.ts depends on token.ts.", "auth.ts no longer depends on token.ts.", JUNE),
    Pair("The billing service uses Redis.", "The billing service no longer uses Redis.", JUNE),
    Pair("Mira lives in Berlin.", "This summer Mira moved to Munich.", "2026-06-01"),
    Pair("Mira lives in Berlin.", "Mira moved to Munich at the weekend.", "2026-06-06"),
    Pair("Mira works for Acme.", "Mira joined Globex on Monday.", "2026-06-08"),
    Pair("Mira lives in Berlin.", "Mira lives in Munich, and every day she walks to work.", JUNE),
    Pair("Mira lives in Berlin.", "Every day we work, and Mira lives in Munich.", JUNE),
    Pair("Acme is based in Berlin.", "Acme is based in Munich.", JUNE),
    Pair("Acme is headquartered in Berlin.", "Acme relocated to Vienna in May.", "2026-05-01"),
    Pair("We chose Postgres for billing.", "We chose MySQL for billing.", JUNE),
    Pair("We decided on Redis for caching.", "We decided on Memcached for caching.", JUNE),
    Pair("Mira lives in Berlin.", "Mira lives in Munich.", JUNE, origins=("agent", "user")),
    Pair("Mira lives in Berlin.", "Mira lives in Munich.", JUNE, origins=("web", "web")),
    # What was said first may be the newer fact.
    Pair("Mira moved to Munich in May 2026.", "Mira lives in Berlin.", "2026-05-01", (JUNE, JANUARY)),
]
"""The first fact ends (of the last pair the second one does, which is the older in the world)."""

STANDING = [
    Pair("Mira lives in Berlin.", "Mira has lived in Lagos, Rome and Oslo."),
    Pair("Mira lives in Berlin.", "Mira lives in Berlin."),
    Pair("Mira lives in Berlin.", "Mira Okafor lives in Berlin."),
    Pair("Mira lives in Berlin.", "Mira lives in Germany."),
    Pair("Mira lives in Germany.", "Mira lives in Berlin."),
    Pair("Mira lives in London.", "Mira lives in England.", before="London is located in England."),
    Pair("Mira lives in Kreuzberg.", "Mira lives in Berlin.", before="Kreuzberg is part of Berlin."),
    Pair("Mira lives in Berlin.", "Tom lives in Munich."),
    Pair("Mira lives in Berlin.", "Mira works for Acme."),
    Pair("Mira works for Acme.", "Mira also works for Globex."),
    Pair("Project Apollo decided on React for the frontend.", "Project Apollo decided on Django for the backend."),
    Pair("The checkout service decided on Redis for caching.", "The checkout service decided on Kafka for events."),
    Pair("Mira Okafor lives in Berlin.", "Mira Chen lives in Munich."),
    Pair("auth.ts depends on token.ts.", "auth.ts depends on session.ts."),
    Pair("The billing service uses Redis.", "The billing service uses Kafka."),
    Pair("Mira prefers tea.", "Mira prefers Python over Java."),
    Pair("We chose Postgres for billing.", "We chose Redis for caching."),
    Pair("Mira lives in Berlin.", "Does Mira live in Munich?"),
    Pair("Mira lives in Berlin.", "If Mira lives in Munich, she needs a visa."),
    Pair("Mira lives in Berlin.", "Mira might move to Munich."),
    Pair("Mira lives in Berlin.", "Tom claims that Mira lives in Munich."),
    Pair("Mira lives in Berlin.", "Tom said that Mira lives in Berlin until December 2026."),
    Pair("Mira lives in Berlin.", "> I moved to Munich."),
    Pair("Mira lives in Berlin.", "Mira wants to live in Munich."),
    Pair("Mira lives in Berlin.", "Mira does not live in Munich."),
    Pair("Mira lives in Berlin.", "Mira visited Munich in May."),
    Pair("Mira works for Acme.", "Mira no longer works for Globex."),
    Pair("Mira lived in Berlin until 2018.", "Mira has lived in Munich since 2018."),
    Pair("Mira has lived in Munich since 2018.", "Mira lived in Berlin until 2018."),
    Pair("Mira worked for Acme till May 2018.", "Mira joined Globex in May 2018."),
    Pair("Mira lived in Berlin before 2018.", "Mira has lived in Munich since 2018."),
    Pair("Mira lived in Berlin from 2010 to 2015.", "Mira lives in Munich."),
    Pair("Mira lives in Munich.", "Mira lived in Berlin from 2010 to 2015."),
    Pair("Acme is based in Berlin.", "Acme opened an office in Munich."),
    Pair("We chose Postgres for billing.", "We had chosen MySQL for billing."),
    Pair("We chose Postgres for billing.", "Originally we chose MySQL for billing."),
    Pair("We chose Postgres for billing.", "We first chose MySQL for billing."),
    Pair("Mira lives in Berlin.", "Years ago, Mira moved to Munich."),
    Pair("Mira lives in Berlin.", "Mira moved to Munich temporarily."),
    Pair("Mira lives in Berlin.", "Mira relocated to Munich for two weeks."),
    Pair("Mira lives in Berlin.", "Mira left Berlin for a holiday."),
    Pair("Mira lives in Berlin.", "Mira left Berlin."),
    Pair("Mira works for Acme.", "Mira left Acme's office at five."),
    Pair("Mira works for Acme.", "Mira left Acme at five."),
    Pair("Mira lives in Berlin.", "Mira left Berlin at five."),
    Pair("Mira lives in Berlin.", "Mira is leaving Berlin on Monday."),
    Pair("Mira lives in Berlin.", "Mira is leaving on Monday."),
    Pair("Mira lives in Berlin.", "Mira moved to Lagos and back."),
    Pair("Mira lives in Berlin.", "Mira moved to Lagos and back to Berlin."),
    Pair("Mira lives in Berlin.", "Mira moved to Lagos for six months."),
    # Whoever has a brother has one of their own.
    Pair("The brother lives in Berlin.", "Carol's brother lives in Munich."),
    # What comes again and again holds beside what holds in between, whichever was said first.
    Pair("I live in Berlin.", "Every Sunday I live in Munich."),
    Pair("Every Sunday I live in Munich.", "I live in Berlin."),
    Pair("I live in Berlin.", "I live in Munich every Sunday."),
    Pair("I live in Berlin.", "I live in Munich in summer."),
    Pair("I live in Berlin.", "Sometimes I live in Munich."),
    Pair("Mira lives in Berlin.", "Every summer Mira moves to Munich."),
    Pair("Mira lives in Berlin.", "In winter, Mira lives in Munich."),
    Pair("Mira lives in Berlin.", "Mira lives in Munich at the weekend."),
    Pair("Mira lives in Berlin.", "Mira lives in Munich on weekends."),
    Pair("Mira lives in Berlin.", "Mira lives in Munich during the week."),
    Pair("Mira lives in Berlin.", "Mira lives in Munich three days a week."),
    Pair("Mira works for Acme.", "On Sundays Mira works for Globex."),
    Pair("Mira works for Acme.", "Mira works for Globex on Fridays."),
    Pair("Acme is based in Berlin.", "Acme is based in Munich every other month."),
    # What was so once does not end what is so now, nor does where somebody is from.
    Pair("Mira works for Acme.", "Mira worked for Globex."),
    Pair("Mira works for Acme.", "Mira previously worked for Globex."),
    Pair("Mira works for Acme.", "When Mira was young, she worked for Globex."),
    Pair("Mira works for Acme.", "Mira was the head of design at Globex."),
    Pair("Mira works for Acme.", "Mira is a former employee of Globex."),
    Pair("Mira works for Acme.", "Mira worked for Globex in 2019."),
    Pair("Mira works for Acme.", "Mira worked for Acme in March."),
    Pair("Mira lives in Berlin.", "Mira lived in Munich as a child."),
    Pair("Mira lives in Berlin.", "Before she worked for Acme, Mira had lived in Munich."),
    Pair("Mira lives in Berlin.", "Mira lived in Berlin."),
    Pair("Mira lives in Berlin.", "Mira was born in Munich in 1980."),
    Pair("Mira lives in Berlin.", "Mira grew up in Munich."),
    Pair("Mira lives in Berlin.", "Mira is from Munich."),
    Pair("Mira lives in Berlin.", "Mira nearly moved to Munich."),
    Pair("Acme is based in Berlin.", "Acme was based in Munich."),
    Pair("We chose Postgres for billing.", "We almost chose MySQL for billing."),
]

DISPUTED = [
    Pair("Mira lives in Berlin.", "Mira lives in Munich.", said=(JUNE, JUNE)),
    Pair("Mira works for Acme.", "Mira works for Globex.", said=(JUNE, JUNE)),
    Pair("Mira lives in Berlin.", "Mira lives in Munich.", origins=("user", "web")),
    Pair("Mira works for Acme.", "Mira works for Globex.", origins=("user", "agent")),
    Pair("Mira works for Acme.", "Mira no longer works for Acme.", origins=("user", "web")),
    Pair("Mira works for Acme.", "Mira left Acme in 2025."),
    Pair("Mira lives in Berlin.", "Mira moved to Munich in March 2025."),
    Pair("Mira lives in Berlin.", "Mira moved to Munich in March.", before="Mira lives in Berlin."),
    Pair("Mira lives in Germany.", "Mira lives in Smallville."),
    Pair("We chose Postgres for billing.", "We chose MySQL for billing.", said=(MARCH, MARCH)),
    # What others have said ends nothing.
    Pair("Mira lives in Berlin.", "> Mira lives in Munich."),
    Pair("Mira lives in Berlin.", "On Monday, Tom wrote:\n> Mira moved to Munich in May."),
    Pair("Mira lives in Berlin.", "The novel says Mira lives in Munich."),
    Pair("Mira lives in Berlin.", "According to Tom, Mira lives in Munich."),
    Pair("Mira lives in Berlin.", "Mira lives in Munich, according to Tom."),
    Pair("Mira lives in Berlin.", "Tom told me that Mira moved to Munich."),
    Pair("Mira lives in Berlin.", '"Mira lives in Munich," said Tom.'),
    Pair("Mira works for Acme.", "Tom says that Mira left Acme."),
    Pair("Mira works for Acme.", "Tom said Mira no longer works for Acme."),
    Pair("Mira works for Acme.", "According to Tom, Mira joined Globex in May."),
]


def tell(book: Engine, pair: Pair) -> None:
    """Add the two episodes, and what is known before between them."""
    graph = book.graph
    if pair.before and pair.before != pair.first:
        graph.add_episode(pair.before, reference_time=JANUARY)
    graph.add_episode(pair.first, reference_time=pair.said[0], origin=pair.origins[0])
    if pair.before == pair.first:
        graph.add_episode(pair.before, reference_time="2026-05-20")
    graph.add_episode(pair.second, reference_time=pair.said[1], origin=pair.origins[1])


def name(pair: Pair) -> str:
    return f"{pair.first} / {pair.second}"


@pytest.mark.parametrize("pair", CLOSING, ids=name)
def test_a_newer_fact_ends_the_older_one_in_the_clear_case(book: Engine, pair: Pair) -> None:
    tell(book, pair)
    facts = book.graph.search_edges(pair.first, 50, include_past=True)
    ended = [fact for fact in facts if fact.expired_at is not None]
    older = pair.second if pair.said[0] > pair.said[1] else pair.first
    assert [fact.fact for fact in ended] == [older]
    [fact] = ended
    assert fact.valid_to is not None
    assert fact.valid_to.date().isoformat() == pair.closes_at
    assert not any(fact.disputed for fact in facts)


@pytest.mark.parametrize("pair", STANDING, ids=name)
def test_facts_that_can_both_be_true_stand(book: Engine, pair: Pair) -> None:
    tell(book, pair)
    facts = list(book.graph.search_edges(pair.first, 50, include_past=True))
    assert [fact for fact in facts if fact.expired_at is not None] == []
    assert pair.first in [fact.fact for fact in facts]
    assert book.graph.counts().disputed == 0


@pytest.mark.parametrize("pair", DISPUTED, ids=name)
def test_what_is_not_clear_is_disputed_and_nothing_ends(book: Engine, pair: Pair) -> None:
    tell(book, pair)
    facts = list(book.graph.search_edges(pair.first, 50, include_past=True))
    assert [fact for fact in facts if fact.expired_at is not None] == []
    disputed = [fact for fact in facts if fact.disputed]
    assert pair.first in [fact.fact for fact in disputed]
    assert len({fact.dispute for fact in disputed}) == 1


def test_the_table_is_large_enough() -> None:
    assert len(CLOSING) + len(STANDING) + len(DISPUTED) >= 40


def test_where_a_place_lies_counts_from_the_sentence_on_that_says_it(book: Engine) -> None:
    """What was read of a place when it was first compared would make two facts that both hold a dispute."""
    book.graph.add_episode("Mira lives in Rome.", reference_time=JANUARY)
    text = "Mira lives in Kreuzberg. Kreuzberg is part of Berlin. Mira lives in Berlin."
    assert book.graph.add_episode(text, reference_time=JUNE).disputed == ()


CHAIN = ("Mira lives in Berlin.", JANUARY), ("Mira moved to Munich.", MARCH), ("Mira moved to Paris.", JUNE)
RETURN = *CHAIN[:2], ("Mira moved back to Berlin.", JUNE)


def homes(book: Engine) -> list[tuple[str, str, str, bool]]:
    """Return where Mira lived, with both dates, and whether that is disputed."""
    facts = book.graph.search_edges("where does Mira live", include_past=True)
    return sorted(
        (fact.target_name, str(fact.valid_from)[:10], str(fact.valid_to)[:10], fact.disputed) for fact in facts
    )


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_a_chain_of_moves_is_known_in_whichever_order_it_is_learnt(book: Engine, order: tuple[int, ...]) -> None:
    for number in order:
        book.graph.add_episode(CHAIN[number][0], reference_time=CHAIN[number][1])
    assert homes(book) == [
        ("Berlin", JANUARY, MARCH, False),
        ("Munich", MARCH, JUNE, False),
        ("Paris", JUNE, "None", False),
    ]


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_who_moved_back_is_known_to_have_been_away_in_whichever_order_it_is_learnt(
    book: Engine, order: tuple[int, ...]
) -> None:
    for number in order:
        added = book.graph.add_episode(RETURN[number][0], reference_time=RETURN[number][1])
        assert added.disputed == ()
    assert homes(book) == [
        ("Berlin", JANUARY, MARCH, False),
        ("Berlin", JUNE, "None", False),
        ("Munich", MARCH, JUNE, False),
    ]


def test_what_was_known_before_a_late_episode_is_still_found(book: Engine, clock: Clock) -> None:
    """That Mira was away is learnt last; until then she had lived in Berlin all the time."""
    for number in (0, 2, 1):
        clock.move(days=1)
        book.graph.add_episode(RETURN[number][0], reference_time=RETURN[number][1])
    for as_of, city in (("2026-03-04T12:00Z", "Berlin"), ("2026-03-05T12:00Z", "Munich")):
        known = book.graph.search_edges("where does Mira live", valid_at="2026-04-01", as_of=as_of)
        assert [fact.target_name for fact in known] == [city]


def test_what_a_person_decided_stays_when_something_older_is_learnt(book: Engine, clock: Clock) -> None:
    """The decision is about the two that were known; the third ends where the next one began."""
    for city in ("Munich", "Paris"):
        added = book.graph.add_episode(f"Mira lives in {city}.", reference_time=MARCH)
    [paris] = added.relations
    clock.move(days=1)
    book.graph.settle(paris.uuid)
    book.graph.add_episode("Mira lives in Berlin.", reference_time=JANUARY)
    assert book.graph.disputes() == []
    assert [home for home in homes(book) if home[0] != "Munich"] == [
        ("Berlin", JANUARY, MARCH, False),
        ("Paris", MARCH, "None", False),
    ]
