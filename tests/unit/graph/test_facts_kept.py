"""Sentences after which an older fact still holds: what passes, what others did, what is health, money and access."""

from __future__ import annotations

import pytest

from commonplace.engine import Engine

HOME, JOB, SITE, SERVERS = (
    "We live in Boston.",
    "I work at Initech.",
    "Our website is hosted on Netlify.",
    "We use AWS.",
)
SERVED = "Our servers run on AWS."
KEPT = [
    # What was long ago.
    (HOME, "In 2015 we moved to Seattle.", "Boston"),
    (HOME, "Ten years ago we moved to Seattle.", "Boston"),
    ("I use Vim.", "In 2010 I switched from Vim to Emacs.", "Vim"),
    # What others did, or nobody.
    ("Acme uses Slack.", "Globex switched from Slack to Teams.", "Slack"),
    ("Acme runs on AWS.", "AWS is shut down.", "AWS"),
    ("Redis Cloud runs on AWS.", "We left AWS.", "AWS"),
    (SITE, "Tom's company moved from Netlify to Vercel.", "Netlify"),
    (SITE, "Great article on why Shopify migrated from Netlify to Vercel.", "Netlify"),
    (SITE, "Nobody here migrated from Netlify to Vercel.", "Netlify"),
    (SITE, "Plan: we migrated from Netlify to Vercel.", "Netlify"),
    (SITE, "A blog post: how they migrated from Netlify to Vercel.", "Netlify"),
    (SITE, "I got rid of Netlify on my private blog.", "Netlify"),
    (SITE, "We moved our blog from Netlify to Vercel.", "Netlify"),
    ("Our build depends on Bazel.", "Anna replaced Bazel with Buck.", "Bazel"),
    ("Kubernetes depends on Docker.", "We dropped Docker.", "Docker"),
    ("Kubernetes uses Docker.", "We dropped Docker.", "Docker"),
    ("Our code is written in Go.", "We replaced Go with Rust in one tiny tool.", "Go"),
    # What passes.
    (SERVED, "AWS was shut down for an hour yesterday.", "AWS"),
    (SERVED, "AWS is gone for the weekend.", "AWS"),
    (SERVED, "AWS is shut down every Sunday at night.", "AWS"),
    (SERVED, "In the test lab, AWS is shut down.", "AWS"),
    (SERVED, "AWS is history's biggest cloud.", "AWS"),
    ("I use Slack.", "I left Slack for a minute.", "Slack"),
    ("I use Vim.", "I quit Vim with :q.", "Vim"),
    ("I use Docker.", "I quit Docker and started it again.", "Docker"),
    ("I use Notion.", "I stopped using Notion for recipes.", "Notion"),
    ("I use Slack.", "I switched from Slack to Teams for one call.", "Slack"),
    (SITE, "We left Netlify but came back.", "Netlify"),
    # What still holds.
    ("Mira lives in Oslo.", "Mira's move to Oslo did not fall through.", "Oslo"),
    ("Mira lives in Oslo.", "The move to Oslo went well but the housewarming party was cancelled.", "Oslo"),
    # What is no home and no employer.
    (HOME, "We moved to Slack.", "Boston"),
    ("I live in Boston.", "I moved to Windows 11.", "Boston"),
    (HOME, "We moved to Plan B.", "Boston"),
    (HOME, "We moved to Seattle in our dreams.", "Boston"),
    ("I live in Boston.", "I relocated to a Herman Miller chair.", "Boston"),
    ("I live in Boston.", "I moved to Marketing.", "Boston"),
    (HOME, "Fiction idea: I moved to Seattle.", "Boston"),
    (JOB, "I joined Anna for dinner.", "Initech"),
    (JOB, "We joined Rotary.", "Initech"),
    (JOB, "I got a job at Globex for my brother.", "Initech"),
    (JOB, "I took a position with Globex as a volunteer.", "Initech"),
    (JOB, "First day at Burning Man.", "Initech"),
    (JOB, "If I got a job at Globex I would move.", "Initech"),
    (JOB, "I was almost laid off from Initech.", "Initech"),
    (HOME, "We're living in Madrid for the summer.", "Boston"),
    (JOB, "I joined Spotify Premium.", "Initech"),
    (JOB, "I joined Netflix as a subscriber.", "Initech"),
    (JOB, "I joined Globex for lunch.", "Initech"),
    (JOB, "Next gig at Wembley Arena.", "Initech"),
    (JOB, "Just got an offer: new job at Globex, still deciding.", "Initech"),
    (JOB, "My sister: new job at Globex.", "Initech"),
    (JOB, "Anna's news: new job at Globex.", "Initech"),
    # What is old, or is one of many.
    (SITE, "Our old website is hosted on GeoCities now.", "Netlify"),
    ("My phone is a Pixel 6.", "My old phone is a Nokia 3310 now in a drawer.", "Pixel"),
    ("My phone is a Pixel 6.", "My phone is a Nokia 3310 now and then.", "Pixel"),
    ("My landlord is Mr. Weber.", "My landlord is Mrs. Okafor, and I have a new cat.", "Weber"),
    ("My friend is Tom.", "My new friend is Max.", "Tom"),
    ("My cat is Tom.", "My new cat is Max.", "Tom"),
    ("My brother is Tom.", "My brother is Max now.", "Tom"),
    ("My boss is Hanna.", "My boss is Canadian now.", "Hanna"),
    ("My sister lives in Porto.", "My little sister lives in Lisbon now.", "Porto"),
    ("The standup is at 9:30.", "The standup has been moved to 10:15 today.", "9:30"),
    ("The standup is at 9:30.", "The standup is at 10:15 now for one week.", "9:30"),
    ("I drive a Volvo.", "I drive a Skoda now while the Volvo is repaired.", "Volvo"),
    ("Our CI runs on Jenkins.", "We migrated CI to GitHub Actions in one repo.", "Jenkins"),
    ("Our standup is at 9:30.", "Tomorrow the standup has been moved to 10:15.", "9:30"),
]
DISPUTED = [
    ("My inhaler is Ventolin.", "I switched from Ventolin to Symbicort.", "Ventolin"),
    ("My medication is Metformin.", "I got rid of Metformin.", "Metformin"),
    ("My insulin is Lantus.", "I switched from Lantus to Toujeo.", "Lantus"),
    ("My blood thinner is Eliquis.", "We stopped using Eliquis.", "Eliquis"),
    ("I use Insulin Glargine.", "I stopped using Insulin Glargine.", "Glargine"),
    ("I use Metformin.", "I stopped using Metformin.", "Metformin"),
    ("I use my N26 account.", "I no longer use my N26 account.", "N26"),
    ("My blood type is B.", "My blood type is A now.", "B"),
    ("My cholesterol is 240.", "My cholesterol is 180 now.", "240"),
    ("My dentist is Dr. Weber.", "My new dentist is Dr. Okafor.", "Weber"),
    ("My GP is Dr. Weber.", "My new GP is Dr. Okafor.", "Weber"),
    ("My insurer is Allianz.", "My insurer is Axa now.", "Allianz"),
    ("My broker is Flatex.", "My broker is Degiro now.", "Flatex"),
    ("The alarm code is B42.", "The alarm code is B43 now.", "B42"),
    ("My CPAP is a ResMed.", "My new CPAP is a Philips.", "ResMed"),
]


def told(book: Engine, first: str, then: str, old: str) -> tuple[bool, bool]:
    """Tell two things, a month apart; return whether the first is known and holds, and whether it is disputed."""
    book.graph.add_episode(first, reference_time="2026-01-10")
    book.graph.add_episode(then, reference_time="2026-02-10")
    found = book.graph.search_edges(f"{first} {old}", 50, include_past=True)
    facts = [each for each in found if each.fact == first and old in each.target_name]
    return bool(facts) and all(each.valid_to is None for each in facts), any(each.disputed for each in facts)


@pytest.mark.parametrize(("first", "then", "old"), KEPT, ids=[then for _, then, _ in KEPT])
def test_a_fact_holds_on_where_the_words_do_not_surely_end_it(book: Engine, first: str, then: str, old: str) -> None:
    assert told(book, first, then, old)[0]


@pytest.mark.parametrize(("first", "then", "old"), DISPUTED, ids=[then for _, then, _ in DISPUTED])
def test_health_money_and_access_are_disputed_and_never_ended(book: Engine, first: str, then: str, old: str) -> None:
    assert told(book, first, then, old) == (True, True)


@pytest.mark.parametrize(
    ("text", "value", "since"),
    [
        ("We moved to Seattle two weeks ago.", "Seattle", "2026-01-27"),
        ("We moved to Seattle yesterday.", "Seattle", "2026-02-09"),
        ("New job at Globex two weeks ago.", "Globex", "2026-01-27"),
        ("New job at Globex, starting Monday.", "Globex", "2026-02-16"),
    ],
)
def test_a_date_is_no_part_of_a_value_and_tells_since_when(book: Engine, text: str, value: str, since: str) -> None:
    book.graph.add_episode("We live in Boston. I work at Initech.", reference_time="2026-01-10")
    added = book.graph.add_episode(text, reference_time="2026-02-10")
    assert [(each.target_name, str(each.valid_from)[:10]) for each in added.relations] == [(value, since)]
    assert [str(each.valid_to)[:10] for each in added.ended] == [since]


def test_what_has_many_values_stays_best_first(book: Engine) -> None:
    """Only of what has one value at a time the one that holds goes before those that ended."""
    book.graph.add_episode("I use Slack. I use Zoom.", reference_time="2026-01-10")
    book.graph.add_episode("I stopped using Slack.", reference_time="2026-02-10")
    found = book.graph.search_edges("I use Slack", 5, include_past=True)
    assert found[0].target_name == "Slack"
