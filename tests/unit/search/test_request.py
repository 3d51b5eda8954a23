"""Several phrasings of one query, and queries that are spelled wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace.engine import Engine, maintenance
from commonplace.errors import UsageError
from commonplace.search.request import MAX_QUERY_CHARACTERS
from commonplace.text.query import edits, find_correction, subject_of

NOTES = {
    "manager": "Marisol's line manager is Colette Barnes; all leave requests go to her.",
    "session": "The session middleware refreshes the token on every request.",
    "billing": "Billing runs on Postgres.",
    "move": "Oksana moved to Bergen in March.",
    "wiki": "The release checklist is kept in the wiki.",
}


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path) as engine:
        engine.remember_many([{"id": id_, "content": content} for id_, content in NOTES.items()])
        yield engine


def found(book: Engine, query: str, **options: Any) -> list[str]:
    return [hit.owner_id for hit in book.recall(query, **options).hits]


def test_a_further_phrasing_finds_what_the_first_does_not(book: Engine) -> None:
    """The asker does not know the words of the answer, and guesses at several."""
    assert found(book, "who is above me", min_score=0.9) == []
    result = book.recall("who is above me", min_score=0.9, also=["head of my team", "line manager"])
    assert [hit.owner_id for hit in result.hits] == ["manager"]
    assert result.to_dict()["also"] == ["head of my team", "line manager"]
    assert book.why(result, result.hits[0].id).matched_terms == ("line", "manager")


def test_a_hit_is_as_likely_as_by_the_phrasing_that_fits_best(book: Engine) -> None:
    alone = book.search("line manager", min_score=0.0)
    both = book.search("who is my boss", min_score=0.0, also=["line manager"])
    assert both.hits[0].score == pytest.approx(alone.hits[0].score)
    assert both.hits[0].signals["coverage"] == pytest.approx(alone.hits[0].signals["coverage"])


def test_a_receipt_of_several_phrasings_adds_up(book: Engine) -> None:
    """What each signal adds is the mean of what it adds to the value in each phrasing, as far as these deviate."""
    result = book.search("who is my boss", min_score=0.0, also=["you told me of my line manager", "Colette"])
    assert result.hits[0].owner_id == "manager"
    for hit in result.hits:
        signals = {signal.name: signal for signal in book.why(result, hit.id).signals}
        assert {"lexical", "dense", "late", "phrasings"} <= set(signals)
        added = sum(signal.standardised * signal.weight for signal in signals.values())
        assert added == pytest.approx(signals["fused"].value, abs=1e-4)


@pytest.mark.parametrize("method", ["two-stage", "bm25", "semantic"])
def test_a_phrasing_that_says_the_same_changes_nothing(book: Engine, method: Any) -> None:
    alone = book.search("session token", method=method, min_score=0.0)
    both = book.search("session token", method=method, min_score=0.0, also=["session token", "the session token"])
    assert both.hits[0].owner_id == alone.hits[0].owner_id == "session"
    assert {hit.owner_id for hit in both.hits} == {hit.owner_id for hit in alone.hits}
    assert both.hits[0].score == pytest.approx(alone.hits[0].score, abs=0.02)


def test_phrasings_find_what_the_index_does_not_hold_yet(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "bring_up_to_date", lambda *_arguments, **_options: None)
    book.remember("The cleaner comes on Thursdays.", id="cleaner")
    assert found(book, "who tidies up", also=["what day does the cleaner come"])[0] == "cleaner"


@pytest.mark.parametrize(
    ("also", "message"),
    [
        ([], "also holds 0 phrasings, it takes 1 to 4"),
        (list("abcde"), "also holds 5 phrasings, it takes 1 to 4"),
        ("line manager", "also is 'line manager', not a list"),
        (7, "also is 7, not a list"),
        ([""], "a phrasing in also is empty"),
        (["line manager", " \n"], "a phrasing in also is empty"),
        ([3], "a phrasing in also is 3"),
        ([None], "a phrasing in also is None"),
        (["x" * (MAX_QUERY_CHARACTERS + 1)], "a phrasing in also has 100001 characters, the limit is 100000"),
    ],
)
def test_phrasings_that_are_none_are_refused(book: Engine, also: Any, message: str) -> None:
    for find in (book.search, book.recall):
        with pytest.raises(UsageError) as refused:
            find("who is my boss", also=also)
        assert str(refused.value).startswith(message)
        assert refused.value.remedy


@pytest.mark.parametrize(
    ("query", "corrected", "expected"),
    [
        ("sesion midleware", "session middleware", "session"),
        ("Postgras", "Postgres", "billing"),
        ("what about Oskana", "what about Oksana", "move"),
        ("relaese cheklist", "release checklist", "wiki"),
    ],
)
def test_a_misspelt_query_finds_what_was_meant_and_says_so(
    book: Engine, query: str, corrected: str, expected: str
) -> None:
    """Only where nothing else is found, and never without a word about it."""
    result = book.recall(query)
    assert result.hits[0].owner_id == expected
    assert result.to_dict()["corrected_query"] == result.corrected == corrected
    assert f"searched for '{corrected}' instead of '{query}'" in result.notices
    assert result.query == query
    assert book.why(result, result.hits[0].id).missing_terms == ()


def test_a_misspelt_query_is_corrected_by_what_the_index_does_not_hold_yet(
    book: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "bring_up_to_date", lambda *_arguments, **_options: None)
    book.remember("Grzegorz keeps the spare keys.", id="keys")
    assert book.recall("Grzegroz").corrected == "Grzegorz"


@pytest.mark.parametrize("query", ["session token", "sesion token", "who is my boss", "Potsdam harbour", "wkii"])
def test_a_query_is_left_as_it_is_where_a_word_is_known_or_could_be_another(book: Engine, query: str) -> None:
    """ "boss" is no slip for anything, and a short word is one slip away from too many."""
    result = book.recall(query)
    assert result.corrected == ""
    assert result.to_dict()["corrected_query"] is None
    assert result.notices == ()


def test_a_word_of_another_namespace_corrects_nothing(tmp_path: Path) -> None:
    """A correction would tell what others have."""
    with commonplace.open(tmp_path, namespace="theirs") as theirs, commonplace.open(tmp_path, namespace="own") as own:
        theirs.remember("Quillfeather signs the contracts.")
        own.remember("The kettle is descaled on Mondays.")
        assert theirs.recall("Quilfeather").corrected == "Quillfeather"
        assert own.recall("Quilfeather").corrected == ""


def test_a_pasted_text_without_a_known_word_is_not_spelled_anew(book: Engine) -> None:
    assert book.recall("sesion midleware " * 200).corrected == ""


@pytest.mark.parametrize(
    ("one", "other", "most", "count"),
    [
        ("session", "session", 1, 0),
        ("sesion", "session", 1, 1),
        ("sessoin", "session", 1, 1),
        ("sesson", "session", 1, 1),
        ("cession", "session", 1, 1),
        ("kitten", "sitting", 2, 3),
        ("kitten", "sitting", 3, 3),
        ("", "abc", 2, 3),
        ("abc", "", 3, 3),
    ],
)
def test_edits_are_counted_as_far_as_wanted(one: str, other: str, most: int, count: int) -> None:
    assert edits(one, other, most) == count


def test_the_nearest_word_is_meant_then_the_commonest() -> None:
    assert find_correction("sesion", ["a session", "a lesion", "sessions"]) == "session"
    assert find_correction("parzing", ["parsing", "passing parsing", "parking"]) == "parsing"
    assert find_correction("sesion", ["nothing like it"]) == ""
    assert find_correction("lost", ["post last list"]) == ""
    assert find_correction("methadone", ["methane"]) == ""


LONG_TASK = (
    "Could you please look into the following issue for a colleague: write a detailed explanation of how the session "
    "middleware refreshes a token, step by step, and make sure that everything is easy to understand for new people"
)


def test_a_long_task_is_searched_for_by_what_it_is_about_too(book: Engine) -> None:
    """Most of its words say how to work; they are in no answer, which then seems to answer little of the whole."""
    short, long = book.search("session middleware refreshes token"), book.search(LONG_TASK)
    assert long.also == ("session middleware refreshes token",)
    assert [each.hits[0].owner_id for each in (short, long)] == ["session", "session"]
    assert long.hits[0].score == pytest.approx(short.hits[0].score, abs=0.02)
    assert book.search(LONG_TASK, also=["token"]).also == ("token",)
    assert book.search(LONG_TASK, method="bm25").also == ()
    alone = book.search(LONG_TASK, also=[LONG_TASK])
    assert alone.hits[0].score < long.hits[0].score


CODE_TASK = "Check my parser: rewrite read_file in src/io.py, make it safe, then explain what you had to change"
FOREIGN = (
    "Bitte schreibe eine Zusammenfassung und erkläre, wie die Sitzung das Token erneuert, damit es alle im Team "
    "verstehen und niemand nachfragen muss"
)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        (LONG_TASK, "session middleware refreshes token"),
        ("session middleware refreshes token", ""),
        ("Please review this carefully, explain what you think, and suggest how we could improve it step by step.", ""),
        (f"{CODE_TASK} to people who are new and find it difficult.", "parser read_file src/io.py"),
        ("Redis cluster failover timeouts between Frankfurt, Dublin, Oslo during Debian kernel upgrades, please", ""),
        (FOREIGN, ""),
    ],
)
def test_what_a_task_is_about_is_what_does_not_ask_for_work(text: str, subject: str) -> None:
    """Too little of it is no subject; identifiers and paths are part of it whatever words they are made of."""
    assert subject_of(text) == subject
