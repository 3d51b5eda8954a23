"""Which turns of a conversation are grouped: small talk is alike, and has nothing to do with each other."""

from __future__ import annotations

import json
from dataclasses import replace

import commonplace
from commonplace.consolidation.cluster import ClusterDetector
from commonplace.consolidation.groups import Labels, names_by_form, names_in, speakers, worth_comparing
from commonplace.engine import Engine

from .conftest import Clock

PLANS = {
    "t1": "Ada: I booked the ferry from Hull to Rotterdam for our cycling holiday.",
    "t2": "Ben: Great, the ferry from Hull to Rotterdam is booked for our cycling holiday!",
}
THANKS = {
    "t3": "Ada: Thanks, I definitely will!",
    "t4": "Ben: Thanks! I definitely will.",
}


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


# What memories name: by the graph where it followed them, else by their words, and never whoever speaks.


def names(book: Engine, id_: str) -> list[str]:
    runtime = book.consolidation_runtime()
    memory = runtime.store.memory(book.namespace, id_)
    assert memory is not None
    return sorted(Labels(runtime, [memory]).names(memory).values())


def test_names_are_those_given_and_those_in_the_words_each_once(book: Engine) -> None:
    book.remember("Mira Solberg moved the invoices to Postgres.", id="a", entities=["postgres", "billing"])
    assert names(book, "a") == ["Mira Solberg", "billing", "invoices", "postgres"]


def test_whoever_speaks_is_no_name(book: Engine) -> None:
    book.remember("I moved to Oslo, and we use Redis.", id="a", entities=["The user"])
    assert names(book, "a") == ["Oslo", "Redis"]
    assert names_by_form(["we", "User", "the user", "Ada", ""]) == {"ada": "Ada"}


def test_a_capital_at_the_beginning_of_a_sentence_is_no_name() -> None:
    assert names_in("Glad that it works. Thanks!") == ()
    assert names_in("Redis runs in Oslo.") == ("Redis", "Oslo")


def test_what_the_graph_did_not_follow_is_read_here(book: Engine, clock: Clock) -> None:
    """A graph that was switched on later knows the later memories only."""
    off = replace(book.settings, graph=replace(book.settings.graph, remember="off"))
    with commonplace.open(book.directory, embedder="hashing", clock=clock, settings=off) as unread:
        unread.remember("Mira Solberg lives in Oslo.", id="before")
        clock.now += 60
        book.remember("Jonas Lindqvist lives in Ghent.", id="within")
        clock.now += 60
        unread.remember("Ada Petrov lives in Porto.", id="after")
    assert [names(book, id_) for id_ in ("before", "within", "after")] == [
        ["Mira Solberg", "Oslo"],
        ["Ghent", "Jonas Lindqvist"],
        ["Ada Petrov", "Porto"],
    ]


def test_those_who_speak_in_a_conversation_are_known_by_their_turns() -> None:
    """What stands before a colon once, a sentence, a time or an address is nobody who speaks."""
    turns = [
        "Melanie: How are you?",
        "Dr. Bo Li: Fine. And: you?",
        "We meet at 10:30",
        "https://example.org",
        "And so we said: no",
    ]
    known = speakers([*turns, *turns, "Toronto: what a city!"])
    assert known == {"mel", "mela", "melan", "melani", "melanie", "bol", "boli"}
    assert speakers(["Al: Hi.", "Al: Bye."]) == {"al"}
