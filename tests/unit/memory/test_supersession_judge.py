"""Which memory overtakes which: values worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.faults.rememberers import marker, sentence
from tests.unit.clock import Clock
from tests.unit.search.notebook import model

import commonplace
from commonplace.dataclasses import replace
from commonplace.memory.supersession import (
    CHANGE,
    COMPETING,
    DOUBTED,
    FEW,
    LENGTH,
    MAX_CHANGE_LENGTH,
    MAX_ODDS,
    MAX_OF_FORM,
    MIN_ODDS,
    OF_FEW,
    PLAIN_LENGTH,
    RANK,
    READING,
    SETTLING,
    SHARED,
    TALK,
    TERSE,
    TOPIC,
    TOPICS,
    UNREAD,
    LogOdds,
    StatementBatch,
    Wordings,
    judge,
    read,
    scaled,
    shares,
)
from commonplace.types import SUPERSEDES


def unit(degrees: float) -> list[float]:
    """Return a vector of unit length in that direction."""
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def tokens_of(*texts: str) -> NDArray[np.int64]:
    """Return the letters of texts as the terms that they are about."""
    return np.array([place << 16 | ord(each) for place, text in enumerate(texts) for each in sorted(text.split())])


def about_two_things(
    *,
    times: list[float],
    stored: list[float] | None = None,
    sessions: list[str] | None = None,
    terms: list[str] | None = None,
    changes: list[int] | None = None,
    topics: list[int] | None = None,
    talk: list[int] | None = None,
    lengths: list[int] | None = None,
    vectors: list[list[float]] | None = None,
) -> StatementBatch:
    """Return three memories, of which the first two are about the same, in words that they do not share."""
    return StatementBatch(
        times=np.array(times),
        stored=np.array(stored or [1.0, 2.0, 3.0]),
        sessions=sessions or ["", "", ""],
        vectors=np.array(vectors or [unit(0), unit(10), unit(90)], np.float32),
        terms=tokens_of(*(terms or ["a", "b", "c"])),
        changes=np.array(changes or [0, 0, 0]),
        owners=np.zeros(3, dtype=np.int64),
        titles=np.zeros(3, dtype=np.int64),
        is_open=np.zeros(3, dtype=np.bool_),
        is_refusal=np.zeros(3, dtype=np.bool_),
        is_offer=np.zeros(3, dtype=np.bool_),
        topics=np.array(topics or [0, 0, 0]),
        talk=np.array(talk or [0, 0, 0]),
        lengths=np.array(lengths or [4, 4, 4]),
    )


def statements(*texts: str) -> StatementBatch:
    """Return texts as they are judged, of which each is a day later, and all have one vector."""
    token_ids = [model().tokenize(text) for text in texts]
    return Wordings(model()).statements(
        np.concatenate(token_ids),
        np.array([len(ids) for ids in token_ids]),
        times=np.arange(len(texts)) * 86_400.0,
        stored=np.arange(len(texts)) * 1.0,
        sessions=[""] * len(texts),
        vectors=np.array([unit(0)] * len(texts), np.float32),
    )


def found(said: StatementBatch) -> list[tuple[int, int]]:
    """Return who may overtake whom: (older, newer)."""
    return [(older, newer) for older, newer in np.argwhere(np.isfinite(judge(said))).tolist()]


def test_where_something_is_done_from_is_no_change() -> None:
    said = statements("I work from home on Fridays.", "From Friday on I am at home.", "The rent rises from next month.")
    assert said.changes.tolist() == [0, 1, 1]


def test_a_part_of_a_word_is_no_word_of_change() -> None:
    """The first piece of "backend" is "back"."""
    said = statements("The backend is written in Rust.", "The cat is back.", "The cat came back to the barn.")
    assert said.changes.tolist() == [0, 1, 1]


def test_a_cosine_is_scaled_by_what_is_near_anyway() -> None:
    """Strangers of .1 replace missing neighbours: at 0° and 60° the nearest five have the mean (.5 + 4 · .1) / 5."""
    vectors = np.array([unit(0), unit(60), unit(180)], np.float32)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    assert scaled(cosines)[0, 1] == pytest.approx(2 * 0.5 - 0.18 - 0.18, abs=1e-6)
    assert scaled(cosines)[0, 2] == pytest.approx(-2 - 0.18 - 0.1, abs=1e-6)


def test_a_share_counts_rare_words_more() -> None:
    """Of three texts `a` is in two, `b` in one: ln(1 + 3 / 2) and ln(1 + 3)."""
    rarity = math.log(2.5) / (math.log(2.5) + math.log(4.0))
    assert shares(tokens_of("a b", "a", ""), 3)[0].tolist() == pytest.approx([1.0, rarity, 0.0])
    assert shares(tokens_of("", "a"), 2)[0].tolist() == [0.0, 0.0], "a text without words shares none"


def test_the_later_of_two_about_the_same_overtakes_the_earlier_one() -> None:
    assert found(about_two_things(times=[1.0, 2.0, 3.0])) == [(0, 1)]
    assert found(about_two_things(times=[2.0, 1.0, 3.0])) == [(1, 0)]
    assert found(about_two_things(times=[1.0, 1.0, 1.0])) == [], "none is later"


def test_without_two_dates_it_counts_when_they_were_stored() -> None:
    assert found(about_two_things(times=[9.0, math.nan, 3.0], stored=[1.0, 2.0, 3.0])) == [(0, 1)]
    assert found(about_two_things(times=[1.0, math.nan, 3.0], stored=[2.0, 1.0, 3.0])) == [(1, 0)]
    assert found(about_two_things(times=[math.nan] * 3, stored=[1.0, 1.9, 3.0])) == [], "they came together"


def test_what_says_the_same_again_overtakes_nothing() -> None:
    assert found(about_two_things(times=[1.0, 2.0, 3.0], terms=["a b", "b a", "c"])) == []
    assert found(about_two_things(times=[1.0, 2.0, 3.0], terms=["a b", "a b d", "c"])) == [(0, 1)]


def test_turns_of_one_session_do_not_compete() -> None:
    assert found(about_two_things(times=[1.0, 2.0, 3.0], sessions=["a", "a", ""])) == []
    assert found(about_two_things(times=[1.0, 2.0, 3.0], sessions=["a", "b", ""])) == [(0, 1)]


def test_words_of_change_and_shared_words_count() -> None:
    times = [1.0, 2.0, 3.0]
    plain = judge(about_two_things(times=times))[0, 1]
    assert judge(about_two_things(times=times, changes=[0, 1, 0]))[0, 1] == pytest.approx(plain + CHANGE)
    assert judge(about_two_things(times=times, changes=[1, 0, 0]))[0, 1] == pytest.approx(plain), "of the later one"
    alike = about_two_things(times=times, terms=["a", "a b", "c"])
    assert judge(alike)[0, 1] == pytest.approx(plain + SHARED)
    turns = about_two_things(times=times, terms=["a", "a b", "c"], sessions=["x", "y", ""])
    assert judge(turns)[0, 1] == pytest.approx(plain), "talk comes back to the same words"


def odds(value: float, doubt: float = DOUBTED, asked: list[tuple[int, int]] | None = None) -> LogOdds:
    """Return what gives every pair these log-odds, and notes the first tokens of the pairs."""

    def answer(pairs: Sequence[tuple[NDArray[np.uint16], NDArray[np.uint16]]]) -> NDArray[np.float32]:
        if asked is not None:
            asked.extend((int(older[0]), int(newer[0])) for older, newer in pairs)
        return np.array([[value, doubt]] * len(pairs), np.float32).reshape(-1, 2)

    return answer


def test_a_reading_lifts_a_little_and_takes_away_more() -> None:
    """Among few memories it decides more than all else; the second is read against the first, in that order."""
    said, asked = about_two_things(times=[1.0, 2.0, 3.0]), []
    texts = [np.array([word], np.uint16) for word in (7, 8, 9)]

    def after(value: float, log_odds: float, doubt: float = DOUBTED) -> float:
        values = np.where(np.isfinite(judge(said)), np.float32(value), np.float32(-np.inf))
        found, is_news, is_doubted = read(said, values, texts, odds(log_odds, doubt, asked))
        assert is_news[0, 1] == (log_odds > 0)
        assert is_doubted[0, 1] == (doubt > DOUBTED and value > -2)
        return float(found[0, 1])

    base, share, weight = OF_FEW
    assert after(0.6, 0.5) == pytest.approx(base + share * 0.6 + weight * 0.5)
    assert set(asked) == {(7, 8)}
    assert after(0.6, 9) == pytest.approx(base + share * 0.6 + weight * MAX_ODDS)
    assert COMPETING < after(5, -2.5) < SETTLING, "what is denied is asked at most"
    assert after(5, -3.6) == -np.inf, "what is denied outright is not asked"
    assert after(-2, 0) == -2, "no reading would lift it far enough"
    assert after(0.6, -9, DOUBTED + 0.1) == pytest.approx(COMPETING), "what leaves a reader in doubt is asked"
    assert COMPETING < after(5, 9, DOUBTED + 0.1) < SETTLING, "and not settled, however surely it reads as news"
    assert after(-2, 0, DOUBTED + 0.1) == -2, "of things that are not near nothing is read"
    for length in (TERSE, TERSE + 1):
        news = about_two_things(
            times=[1.0, 2.0, 3.0], changes=[0, 1, 0], topics=[3, 2, 0], lengths=[TERSE, length, TERSE]
        )
        value = judge(news)[0, 1]
        found, *_ = read(news, judge(news), texts, odds(-1))
        expected = value - READING if length == TERSE else base + share * value - weight
        assert found[0, 1] == pytest.approx(expected), "words tell better of terse news of one topic"


def test_among_many_memories_a_reading_adds_to_what_words_and_vectors_tell() -> None:
    said = statements(*(f"Room {number} is on Pier Street." for number in range(FEW + 1)))
    values = np.full((FEW + 1, FEW + 1), -np.inf, np.float32)
    values[0, 1] = 0.6
    texts = [np.array([7], np.uint16)] * len(values)
    for log_odds, expected in ((-9, MIN_ODDS), (-1, -1), (0.5, 0.5), (9, MAX_ODDS)):
        found, *_ = read(said, values, texts, odds(log_odds))
        assert found[0, 1] == (-np.inf if log_odds == -9 else pytest.approx(0.6 + READING * expected))


def test_what_is_only_hearsay_is_asked_at_most() -> None:
    """ "Somebody said that Marcus leads sales" is no news yet, and no reason to say nothing."""
    said = replace(about_two_things(times=[1.0, 2.0, 3.0]), is_open=np.array([False, True, False]))
    assert judge(said)[0, 1] == -np.inf, "words alone cannot tell it from a plan"
    texts = [np.array([7], np.uint16)] * 3
    found, _, is_doubted = read(said, judge(said, is_read=True), texts, odds(3))
    assert COMPETING < found[0, 1] < SETTLING
    assert is_doubted[0, 1]


def test_of_all_that_a_memory_may_overtake_the_two_likeliest_are_read() -> None:
    """A third must not be asked about because it alone was not denied."""
    said = statements(*(f"The {word} is on Pier Street." for word in ("office", "studio", "archive", "press")))
    values = np.full((4, 4), -np.inf, np.float32)
    values[:3, 3] = [0.6, 0.8, 0.7]
    asked: list[tuple[int, int]] = []
    found, *_ = read(said, values, [np.array([place], np.uint16) for place in range(4)], odds(0, asked=asked))
    assert sorted(asked) == [(1, 3), (2, 3)]
    assert np.isfinite(found[:3, 3]).tolist() == [False, True, True]


def test_without_a_reading_a_value_counts_for_less() -> None:
    said = about_two_things(times=[1.0, 2.0, 3.0])
    found, is_news, is_doubted = read(said, judge(said), [], None)
    assert (found == judge(said) - np.float32(UNREAD)).all()
    assert not is_news.any()
    assert not is_doubted.any()
    far = about_two_things(times=[1.0, 2.0, 3.0], vectors=[unit(0), unit(66), unit(180)])
    assert not np.isfinite(judge(far)[0, 1])
    assert np.isfinite(judge(far, is_read=True)[0, 1])


def test_news_of_a_thing_that_people_have_one_of_counts_more() -> None:
    times = [1.0, 2.0, 3.0]
    changed = judge(about_two_things(times=times, changes=[0, 1, 0]))[0, 1]
    both = about_two_things(times=times, changes=[0, 1, 0], topics=[3, 2, 0])
    assert judge(both)[0, 1] == pytest.approx(changed + TOPIC)
    apart = about_two_things(times=times, changes=[0, 1, 0], topics=[1, 2, 0])
    assert judge(apart)[0, 1] == pytest.approx(changed)
    plain = judge(about_two_things(times=times))[0, 1]
    assert judge(about_two_things(times=times, topics=[3, 2, 0]))[0, 1] == pytest.approx(plain), "no word of change"


def test_what_is_said_to_somebody_and_what_says_much_count_less() -> None:
    times = [1.0, 2.0, 3.0]
    plain = judge(about_two_things(times=times))[0, 1]
    assert judge(about_two_things(times=times, talk=[1, 5, 0]))[0, 1] == pytest.approx(plain - 3 * TALK)
    long = about_two_things(times=times, lengths=[2 * PLAIN_LENGTH, 5 * PLAIN_LENGTH, 1])
    assert judge(long)[0, 1] == pytest.approx(plain - LENGTH * math.log(2), abs=1e-6), "of the earlier one"


def test_words_are_counted_by_what_they_tell() -> None:
    said = statements("We live in Rome.", "Thanks, did you and Ana split up?", "I split the up arrow", "turned down")
    one_home, one_partner = (1 << TOPICS.index(f"one {name}") for name in ("home", "partner"))
    assert said.topics.tolist() == [one_home, one_partner, 0, 0]
    assert said.talk.tolist() == [0, 3, 0, 0]
    assert said.is_refusal.tolist() == [False, False, False, True]
    assert statements("", "He turned", "down, and", "").is_refusal.tolist() == [False] * 4, "two texts hold no pair"


def test_what_has_others_nearer_is_less_likely_overtaken() -> None:
    """The third is the second nearest of the first, at 30°; the first is the second nearest of the third."""
    said = about_two_things(times=[1.0, 2.0, 3.0])
    said.vectors[2] = unit(30)
    cosines = said.vectors @ said.vectors.T
    np.fill_diagonal(cosines, -1.0)
    assert judge(said)[0, 2] == pytest.approx(scaled(cosines)[0, 2] - 2 * RANK * math.log(2.0), abs=1e-6)


def test_words_of_change_count_in_short_texts() -> None:
    texts = ["From tomorrow it is 75, no longer 50", "I take 50 every morning", "now " * (MAX_CHANGE_LENGTH + 1)]
    assert statements(*texts).changes.tolist() == [4, 0, 0]


def test_a_text_is_about_each_of_its_words_once_but_function_words() -> None:
    [cat] = model().tokenize("cat").tolist()
    assert statements("the cat and the cat", "the", "cat").terms.tolist() == [cat, 2 << 16 | cat]


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("Our house is in Lucca.", "Our house is in Pisa now.", True),
        ("Our house is in Lucca.", "Grandpa's house is in Siena.", False),
        ("Tom's phone is a Pixel.", "Jane's phone is a Fairphone now.", False),
        ("My manager is Ulrike.", "Ulrike's office is empty, Gregor is my manager now.", True),
        ("My office is in Rome.", "My manager’s office is in Rome, too.", False),
        ("I live in Rome.", "My daughter moved to Pisa.", False),
        ("user: My manager is Ulrike.", "user: My sister's manager is Gregor now.", False),
        ("I live in Rome.", "My husband and I moved to Pisa.", True),
        ("My wife works in Rome.", "My wife works in Pisa now.", True),
        ("I drink black coffee at the shop.", "Oat milk's run out at the shop.", True),
        ("Ola lives in Krakow.", "Ola is thinking about moving to Gdansk.", False),
        ("We use Jenkins for CI.", "Maybe we should use GitHub Actions instead.", False),
        ("I work at Globex.", "I turned down the job at Lumen.", False),
        ("Lumen offered me a job.", "I turned down the job at Lumen.", True),
        ("Kim works in Paris.", "If Kim got the job in Rome she would move.", False),
        ("I live in Krakow.", "I moved to Gdansk and I am thinking about a car.", True),
        ("Daily notes for Monday: Ravi fixed it.", "Daily notes for Tuesday: Mei is blocked.", False),
        ("Weekly report 2026-W02: 14 closed.", "Weekly report 2026-W03: 9 closed.", False),
        ("Deployment day: Thursday", "Deployment day: Friday", True),
        ("The standup is at 9:30.", "The standup is at 10:15.", True),
    ],
)
def test_whose_it_is_and_what_it_is_called_tell_what_it_overtakes(older: str, newer: str, *, expected: bool) -> None:
    """The entries of a log each stay, as do what others own, and what somebody only thinks of changes nothing."""
    assert ((0, 1) in found(statements(older, newer))) is expected


def test_what_the_graph_knows_to_have_ended_stands_behind_what_ended_it(tmp_path: Path) -> None:
    """In a store of two memories nothing else tells that these are about one thing."""
    with commonplace.open(tmp_path / "store", clock=Clock()) as book:
        older = book.remember("We live in Boston", at="2026-02-20T10:00:00Z").id
        newer = book.remember("user: We moved to Seattle last week. New job at Globex.", at="2026-02-20T10:01:00Z").id
        hits = book.recall("where do we live").hits
        assert [(hit.owner_id, hit.superseded_by) for hit in hits] == [(newer, None), (older, newer)]
        book.forget([newer])
        assert [(hit.owner_id, hit.superseded_by) for hit in book.recall("where do we live").hits] == [(older, None)]


@pytest.mark.parametrize(
    ("said", "query"),
    [
        (("Ana lives in Porto.", "Ana moved to Braga.", "Ana moved to Faro."), "where does Ana live"),
        (("I lived in Lyon.", "I live in Grenoble now.", "I live in Lyon again."), "where do I live"),
        (("The gym is on Monday.", "The gym is on Tuesday now.", "The gym moved to Friday."), "when is the gym"),
    ],
)
def test_of_a_chain_the_newest_is_first_whatever_each_has_overtaken(
    tmp_path: Path, said: tuple[str, ...], query: str
) -> None:
    clock = Clock()
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        for text in said:
            book.remember(text)
            clock.move(days=200)
        assert [hit.text for hit in book.recall(query).hits] == [*reversed(said)]
        assert book.recall(query, limit=1).hits[0].text == said[-1]
        assert said[-1] in book.injection(query).text


@pytest.mark.parametrize(
    ("said", "query", "first"),
    [
        (("I'm dating Anna.", "Anna and I broke up.", "I'm seeing Bea now."), "Who am I dating?", 2),
        (("I work at Globex as an analyst.", "Started at Lumen Labs."), "Where do I work?", 1),
        (("I work at Globex as an analyst.", "Started at Nordwind this week."), "Where do I work?", 1),
        (("Kim works at Globex.", "Kim turned down the job at Nordwind."), "Where does Kim work?", 0),
    ],
)
def test_the_first_is_what_holds(tmp_path: Path, said: tuple[str, ...], query: str, first: int) -> None:
    """A parting does not stand above the new partner, nor a refused post above the one that is held."""
    clock = Clock()
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        for text in (*said, "The cat is called Figaro.", "I like figs."):
            book.remember(text)
            clock.move(days=10)
        assert book.recall(query).hits[0].text == said[first]


@pytest.mark.parametrize(
    "later", ["From September we live in Oslo.", "In September we're moving to Oslo.", "We move to Oslo on 1 September"]
)
def test_what_is_to_begin_stands_behind_what_holds_until_then(tmp_path: Path, later: str) -> None:
    """By its own words, or by the day from which its fact holds."""
    clock = Clock()
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        for text in ("We live in Bergen.", later, "The cat is Figaro.", "I like figs."):
            book.remember(text)
            clock.move(days=10)
        ids = {memory.content: memory.id for memory in book.list()}

        def recalled(**valid_at: str) -> list[tuple[str, str | None]]:
            return [(hit.text, hit.superseded_by) for hit in book.recall("Where do we live?", **valid_at).hits[:2]]

        before = [("We live in Bergen.", None), (later, None)]
        then = [(later, None), ("We live in Bergen.", ids[later])]
        assert recalled() == before
        asked = book.recall("Are we moving to Oslo?")
        assert [hit.text for hit in asked.hits[:2]] == [text for text, _ in before]
        assert "because hit 2 is still to begin" in book.why(asked, asked.hits[0].id).explain(1, asked.hits)
        assert recalled(valid_at="2026-10-01") == then
        clock.move(days=200)
        assert recalled() == then
        assert recalled(valid_at="2026-08-01") == before


LOG = [f"Worker {number % 5} saw parcel {29 + 7 * number} at gate {'ABC'[number % 3]}." for number in range(12)]


def test_a_form_that_many_share_is_a_log_and_not_an_update() -> None:
    """They differ in a number, as an update does; but nobody corrects one thing twelve times."""
    assert found(statements(*LOG)) == []
    few = [f"The rent is {700 + 20 * year} euros a month." for year in range(MAX_OF_FORM)]
    assert len(found(statements(*few))) == MAX_OF_FORM * (MAX_OF_FORM - 1) / 2


def test_nothing_of_a_log_waits_for_a_person(tmp_path: Path) -> None:
    clock = Clock()
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        for text in ("Our office is in Rome.", *LOG, "Our office moved to Pisa."):
            book.remember(text)
            clock.move(days=1)
        assert [(book.get(each.source).content, each.type) for each in book.links()] == [
            ("Our office moved to Pisa.", SUPERSEDES)
        ]
        assert book.questions() == []
        assert {hit.superseded_by for hit in book.recall("which parcel did worker 1 see").hits} == {None}


def test_notes_of_one_form_do_not_crowd_out_the_one_that_is_asked_for(tmp_path: Path) -> None:
    """Each of them looks like the next state of another one, and such chains hold more than a search returns."""
    clock = Clock()
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        ids = {}
        for number, name in product(range(15), "abcdefgh"):
            ids[name, number] = book.remember(sentence(name, number)).id
            clock.move(days=2 / 86_400)
        found = book.recall(f"what stands by {marker('a', 0)}", min_score=0.0).hits
        assert ids["a", 0] in [hit.owner_id for hit in found]
