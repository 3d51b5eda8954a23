"""Memories that a newer one may have overtaken: judged when they are stored, and kept as links."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.errors import ModelError
from commonplace.extract.model import SENSITIVE
from commonplace.memory.supersession import MAX_OF_FORM, SETTLING, SupersessionRule, confidence, overtaken
from commonplace.models.cross_encoder import CrossEncoder
from commonplace.store.store import Store
from commonplace.types import CONFLICTS, DOUBT, HOLDS_BESIDE, RULE, SUPERSEDES, TokenEntry

SAID = {
    "flat": "We live in a flat in Boston.",
    "days": "Deployments go out on Thursdays.",
    "cello": "Greta plays the cello.",
    "editor": "My editor is Vim.",
    "water": "The garden needs water in the evening.",
}
NEWS = "Deployments go out on Fridays now."
UNSURE = "Deployments go out in the evening."


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    clock = Clock()
    with commonplace.open(tmp_path / "store", clock=clock) as engine:
        for id_, text in SAID.items():
            engine.remember(text, id=id_)
            clock.now += 60.0
        yield engine


def links(book: Engine, origin: str = RULE) -> list[tuple[str, str, str]]:
    return [(each.source, each.type, each.target) for each in book.links() if each.origin == origin]


def pairs(book: Engine) -> list[tuple[str, str]]:
    found = overtaken(book._runtime.store, book.namespace)
    return [(each.older.owner.id, each.newer.owner.id) for each in found]


def later(book: Engine) -> None:
    """Let a minute go by."""
    book._runtime.clock.now += 60.0  # type: ignore[attr-defined] # the clock of the fixture


def asked(book: Engine) -> list[list[str]]:
    return [[side.id for side in each.sides] for each in book.questions() if each.kind == "overtaken"]


@pytest.mark.parametrize("name", ["load", "log_odds"])
def test_without_what_reads_pairs_words_and_vectors_decide(
    name: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged file must not cost what the rule knows by itself, and is told once."""

    def fail(*_: object) -> None:
        raise ModelError("model data cross_encoder.bin cannot be read")

    monkeypatch.setattr(CrossEncoder, name, fail)
    with commonplace.open(tmp_path / "store", clock=clock) as engine:
        for text in (*SAID.values(), NEWS):
            engine.remember(text)
            clock.move(days=9)
        [link] = engine.links()
    assert link.reason == "they are alike (0.91), and the newer one has words of change"
    [record] = caplog.records
    assert "compared by their words and vectors alone" in record.getMessage()
    assert "cross_encoder.bin cannot be read" in record.getMessage()


def test_when_a_reading_fails_words_and_vectors_judge_as_if_there_were_none(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words alone cannot tell a plan from hearsay, and pass over both; a reading asks about the latter."""

    def fail(*_: object) -> None:
        raise ModelError("model data minilm.bin is damaged", remedy="reinstall Commonplace")

    with commonplace.open(tmp_path / "store", clock=clock) as engine:
        engine.remember("Deployments go out on Thursdays.")
        clock.move(days=9)
        monkeypatch.setattr(CrossEncoder, "log_odds", fail)
        engine.remember("Maybe deployments go out on Fridays now.")
        assert engine.links() == []


def test_memories_wait_while_the_system_cannot_open_the_weights(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Too few file descriptors are no reason to say that a stored memory was not, nor to judge it by less."""

    def fail() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with commonplace.open(tmp_path / "store", clock=clock) as engine:
        with monkeypatch.context() as patch:
            patch.setattr(CrossEncoder, "load", fail)
            for text in (*SAID.values(), NEWS):
                engine.remember(text)
                clock.move(days=9)
            assert engine.links() == []
        assert "wait to be compared with older ones" in caplog.text
        engine.remember("Lunch is at noon.")
        [link] = engine.links()
    assert "reads as news of the older one" in link.reason


def test_a_store_without_the_transformer_reads_no_pairs(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who takes the fast vectors must not wait for the slow reading."""
    monkeypatch.setattr(CrossEncoder, "load", None)
    with commonplace.open(tmp_path / "fast", embedder="static", clock=clock) as engine:
        for text in ("The office is on Pier Street.", "I like figs.", "The office is on Mill Lane now."):
            engine.remember(text)
            clock.move(days=9)
        assert [each.origin for each in engine.links()] == [RULE]


def test_memories_about_different_things_overtake_nothing(book: Engine) -> None:
    assert book.links() == []


def test_what_surely_overtakes_is_followed_and_nobody_is_asked(book: Engine) -> None:
    book.remember(NEWS, id="new-days")
    [link] = book.links()
    assert (link.source, link.type, link.target, link.origin) == ("new-days", SUPERSEDES, "days", RULE)
    assert confidence(SETTLING) < link.strength <= 1.0
    assert link.reason == (
        "they are alike (0.91), and the newer one has words of change and reads as news of the older one"
    )
    assert asked(book) == []
    assert [each.kind for each in book.health().findings] == []
    found = book.recall("when do deployments go out").hits[:2]
    assert [(hit.owner_id, hit.superseded_by) for hit in found] == [("new-days", None), ("days", "new-days")]
    assert [hit.superseded_by for hit in book.context("when do deployments go out").hits[:2]] == [None, "new-days"]
    result = book.recall("when do deployments go out")
    older = next(hit for hit in result.hits if hit.owner_id == "days")
    receipt = book.why(result, older.id)
    assert receipt.superseded_because == link.reason
    assert f"may have replaced it: {link.reason}" in receipt.explain(2, result.hits)


def test_who_remembers_while_another_thread_judges_does_not_wait_for_it(
    book: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may be a long list; what came meanwhile is judged in the background."""
    runtime, started = book._runtime, list[bool]()
    monkeypatch.setattr(runtime.backlog, "start", lambda *, is_due=False: started.append(is_due))
    with runtime.rule._lock:
        book.remember(NEWS, id="new-days")
        assert (book.links(), started[-1:]) == ([], [True])
    assert runtime.rule.catch_up()
    assert links(book) == [("new-days", SUPERSEDES, "days")]


def test_what_may_overtake_is_followed_and_asked(book: Engine) -> None:
    book.remember(UNSURE, id="evening")
    assert links(book) == [("evening", CONFLICTS, "days")]
    assert asked(book) == [["days", "evening"]]
    assert [each.ids for each in book.health().findings] == [("days", "evening")]
    assert book.recall("when do deployments go out").hits[1].superseded_by == "evening"
    book.archive("evening")
    assert asked(book) == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I take 50 mg of sertraline every morning.", "I take 75 mg of sertraline every morning now."),
        ("The password of the router is on the fridge.", "The password of the router is in the drawer now."),
    ],
)
def test_health_doses_money_and_access_are_asked_however_sure_it_is(book: Engine, older: str, newer: str) -> None:
    book.remember(older, id="older", at="2026-01-01")
    book.remember(newer, id="newer", at="2026-02-01")
    [link] = book.links("newer")
    assert (link.type, link.target) == (CONFLICTS, "older")
    assert link.strength > confidence(SETTLING)
    assert link.reason.endswith(SENSITIVE)
    assert len(book.questions()) == 1


@pytest.mark.parametrize(
    "said",
    [
        "Somebody said that deployments go out on Fridays.",
        "Deployments go out on Fridays now, I think.",
        "Deployments go out on Fridays now, but I am not sure.",
        "Apparently deployments go out on Fridays now.",
        "user: Tom thinks deployments go out on Fridays now.",
        "Deployments do not go out on Fridays.",
    ],
)
def test_hearsay_is_asked_about_and_stands_before_nothing(book: Engine, said: str) -> None:
    book.remember(said, id="rumour")
    assert asked(book) == [["days", "rumour"]]
    [link] = book.links()
    assert (link.type, link.strength) == (CONFLICTS, DOUBT)
    assert link.reason.endswith("; the newer one is not sure")
    found = {hit.owner_id: hit for hit in book.recall("when do deployments go out").hits}
    assert (found["days"].superseded_by, next(iter(found))) == (None, "days")


@pytest.mark.parametrize("lead", ["Apparently", "Tom thinks", "user: Rumour has it"])
def test_what_begins_as_hearsay_is_asked_about_though_it_reads_as_news(book: Engine, lead: str) -> None:
    book.remember("My manager is Dana.", id="dana", at="2026-01-10")
    book.remember(f"{lead} Raj is my manager now.", id="raj", at="2026-03-10")
    assert [(each.type, each.strength) for each in book.links() if each.target == "dana"] == [(CONFLICTS, DOUBT)]


@pytest.mark.parametrize("question", ["When do deployments go out now?", "user: Are deployments on Fridays now?"])
def test_a_short_question_states_nothing(book: Engine, question: str) -> None:
    book.remember(question)
    assert book.links() == []


@pytest.mark.parametrize(
    ("older", "newer", "is_linked"),
    [
        ("auth-service runs on port 8443", "auth-db runs on port 5433", False),
        ("payments-db runs on port 5432", "payments-cache runs on port 6379", False),
        ("Ana: The auth-service runs on port 8443.", "Ana: The auth-db runs on port 5433.", False),
        ("auth-service: port 8443", "auth-db: port 5433", False),
        ("auth-service runs on port 8443", "auth-service runs on port 9443 now", True),
        ("auth-service runs on port 8443", "auth-gateway replaced auth-service on port 8443", True),
    ],
)
def test_texts_that_begin_with_two_identifiers_are_about_two_things(
    book: Engine, older: str, newer: str, *, is_linked: bool
) -> None:
    book.remember(older, id="older")
    later(book)
    book.remember(newer, id="newer")
    assert [(source, target) for source, _, target in links(book)] == [("newer", "older")] * is_linked


@pytest.mark.parametrize(
    ("older", "newer", "is_linked"),
    [
        ("Ada lives in Bergen", "In winter Ada lives in Oslo", False),
        ("Ada lives in Bergen", "Ada lives in Oslo every winter.", False),
        ("Ada lives in Bergen", "Ada moved to Oslo in winter", True),
        ("In winter Ada lives in Bergen", "In winter Ada lives in Oslo", True),
    ],
)
def test_what_recurs_holds_beside_what_always_holds(
    tmp_path: Path, clock: Clock, older: str, newer: str, *, is_linked: bool
) -> None:
    """The graph holds both facts, so a search must not say of one that the other may have replaced it."""
    with commonplace.open(tmp_path / "store", clock=clock) as engine:
        engine.remember(older, id="older")
        clock.move(days=9)
        engine.remember(newer, id="newer")
        assert [(source, target) for source, _, target in links(engine)] == [("newer", "older")] * is_linked


def test_what_is_denied_word_for_word_is_overtaken(book: Engine) -> None:
    book.remember("Deployments do not go out on Thursdays now.", id="denial")
    assert [(each.source, each.target) for each in book.links()] == [("denial", "days")]
    assert "not sure" not in book.links()[0].reason


def test_the_mark_of_a_secret_is_no_news(book: Engine) -> None:
    """A reading takes "…: github token" for another value of the deployments."""
    book.remember("The deployment failed because the token ghp_" + "4f9KzQ81mXv2Lr7Tn6Wb3Yc5Hd0Js8PaUeRg had expired.")
    assert links(book) == []


def test_who_is_trusted_less_settles_nothing(tmp_path: Path) -> None:
    clock = Clock()
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        for id_, text in SAID.items():
            book.remember(text, id=id_, origin="user")
            clock.now += 60.0
        book.remember(NEWS, id="new-days", origin="web")
        assert links(book) == [("new-days", CONFLICTS, "days")]
        assert book.links()[0].reason.endswith("the newer one is trusted less")


@pytest.mark.parametrize("order", [*permutations(range(3))])
@pytest.mark.parametrize("is_bulk", [True, False])
def test_the_same_is_kept_in_whatever_order_memories_come(book: Engine, order: tuple[int, ...], is_bulk: bool) -> None:
    told = [
        ("Ana lives in Porto.", "2026-01-01"),
        ("Ana lives in Braga now.", "2026-02-01"),
        ("Ana moved to Faro.", "2026-03-01"),
    ]
    items: list[dict[str, Any]] = [
        {"content": told[place][0], "at": told[place][1], "id": str(place)} for place in order
    ]
    for some in [items] if is_bulk else [[each] for each in items]:
        book.remember_many(some)
    assert links(book) == [("1", SUPERSEDES, "0"), ("2", SUPERSEDES, "0"), ("2", SUPERSEDES, "1")]


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_of_equal_texts_each_is_as_near_in_whatever_order_they_come(tmp_path: Path, order: tuple[int, ...]) -> None:
    nine = "The office in Lyon opens at nine in the morning."
    texts = (nine, "At eight in the morning the office in Lyon opens.", nine)
    with commonplace.open(tmp_path / "store") as book:
        for number in order:
            day = ("2026-01-01", "2026-01-26", "2026-01-26")[number]
            book.remember(texts[number], id=str(number), at=day, force=True)
        assert [(each.source, each.target) for each in book.links()] == [("1", "0")]


def test_what_is_changed_is_judged_anew(book: Engine) -> None:
    book.remember(NEWS, id="new-days")
    book.update("new-days", content="The cat is called Figaro.")
    assert book.links() == []
    book.update("new-days", content=NEWS)
    assert links(book) == [("new-days", SUPERSEDES, "days")]


def test_a_verdict_on_what_another_process_edits_meanwhile_is_not_kept(
    book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = SupersessionRule._keep

    def edited_first(*arguments: Any) -> None:
        monkeypatch.undo()
        with commonplace.open(tmp_path / "store") as other:
            other.update("new-days", content="The cat is called Figaro.")
        keep(*arguments)

    monkeypatch.setattr(SupersessionRule, "_keep", edited_first)
    book.remember(NEWS, id="new-days")
    assert book.links() == []


def test_a_new_memory_may_show_that_others_are_entries_of_a_log(book: Engine) -> None:
    for number in range(MAX_OF_FORM + 1):
        assert bool(links(book)) is (number > 1)
        book.remember(f"The rent of flat 7 is {700 + 20 * number} euros.", at=f"2026-01-{number + 1:02}")
    assert links(book) == []


@pytest.mark.parametrize("type_", [SUPERSEDES, HOLDS_BESIDE])
@pytest.mark.parametrize("ends", [("new-days", "days"), ("days", "new-days")])
def test_what_a_person_links_decides(book: Engine, ends: tuple[str, str], type_: str) -> None:
    book.remember(NEWS, id="new-days")
    book.link(*ends, type_)
    assert [(each.source, each.target, each.type) for each in book.links()] == [(*ends, type_)]
    book.remember("Deployments go out on Mondays again.", id="again")
    assert not {("new-days", "days"), ("days", "new-days")} & {(source, target) for source, _, target in links(book)}
    assert ("days", "new-days") not in pairs(book)


def test_other_links_settle_nothing(book: Engine) -> None:
    book.remember(UNSURE, id="evening")
    book.link("evening", "days", "because")
    assert asked(book) == [["days", "evening"]]


def test_what_was_believed_before_and_after_it_was_judged_is_known(book: Engine) -> None:
    book.remember(NEWS, id="new-days")
    [link] = book.links()
    book._runtime.clock.now += 60.0  # type: ignore[attr-defined]
    book.link("new-days", "days", HOLDS_BESIDE)
    [answer] = book.links()
    told = {link.created_at - 1e-3: None, link.created_at: "new-days", answer.created_at: None, None: None}
    for as_of, by in told.items():
        result = book.recall("when do deployments go out", as_of=as_of)
        [hit] = [hit for hit in result.hits if hit.owner_id == "days"]
        assert hit.superseded_by == by
        assert book.why(result, hit.id).superseded_because == (link.reason if by else "")


def test_forgetting_takes_the_links_along_and_an_export_brings_them(book: Engine, tmp_path: Path) -> None:
    book.remember(NEWS, id="new-days")
    book.export(tmp_path / "out.jsonl")
    with commonplace.open(tmp_path / "other") as other:
        other.import_(tmp_path / "out.jsonl")
        assert other.links() == book.links()
    book.forget("new-days")
    assert book.links() == []
    assert book.recall("when do deployments go out").hits[0].superseded_by is None


def test_turns_of_a_conversation_are_not_asked_about(book: Engine) -> None:
    book.remember(UNSURE, id="new-days", session="talk")
    assert asked(book) == []


def test_what_a_killed_process_left_is_judged_by_the_next(
    book: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(type(book._runtime), "is_judging", False)
    book.remember(NEWS, id="new-days")
    assert book.links() == []
    monkeypatch.undo()
    with commonplace.open(tmp_path / "store") as other:
        other.embed_pending()
        assert links(other) == [("new-days", SUPERSEDES, "days")]


def test_processes_that_end_early_judge_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If each began anew, a large import would never be judged by commands alone."""
    told: list[int] = []
    verdicts = SupersessionRule._verdicts

    def tells(rule: SupersessionRule, entry: TokenEntry) -> Any:
        told.append(entry.number)
        return verdicts(rule, entry)

    with monkeypatch.context() as patch, commonplace.open(tmp_path / "store", embedder="static") as book:
        patch.setattr(type(book._runtime), "is_judging", False)
        for day, text in enumerate(SAID.values(), 1):
            book.remember(text, at=f"2026-01-{9 - day:02}")
    monkeypatch.setattr("commonplace.memory.supersession.AT_ONCE", 2)
    monkeypatch.setattr(SupersessionRule, "_verdicts", tells)
    for _ in range(3):
        with commonplace.open(tmp_path / "store") as book:
            is_all = book._runtime.rule.catch_up(is_stopped=lambda: True)
    assert (told, is_all) == ([5, 4, 3, 2, 1], False)
    with commonplace.open(tmp_path / "store") as book:
        assert book._runtime.rule.catch_up()
        book.remember(NEWS)
    assert told == [5, 4, 3, 2, 1, 6]


def test_what_is_stored_in_a_namespace_after_it_was_forgotten_is_judged(book: Engine) -> None:
    """Its changes are counted from one again, and the first ones are no older than what was judged before."""
    book.forget_namespace("default", confirm="default")
    book.remember_many(
        [
            {"content": "Ana lives in Porto.", "at": "2026-01-01", "id": "porto"},
            {"content": "Ana lives in Braga now.", "at": "2026-02-01", "id": "braga"},
        ]
    )
    assert links(book) == [("braga", SUPERSEDES, "porto")]


def test_long_texts_are_not_compared(book: Engine) -> None:
    book.remember(f"{NEWS} " * 200, id="new-days")
    book.embed_pending()
    assert book.links() == []


def test_cosines_of_other_embedders_tell_nothing(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        for number, text in enumerate((*SAID.values(), NEWS)):
            book.remember(text, id=str(number))
        assert book.links() == []


@pytest.mark.parametrize("second", [("new-days", "days"), ("days", "new-days")])
@pytest.mark.parametrize("type_", [SUPERSEDES, HOLDS_BESIDE])
def test_of_two_answers_about_the_same_memories_the_later_counts(
    book: Engine, second: tuple[str, str], type_: str
) -> None:
    """A person who answered wrongly answers again; without the last answer, the question is open as at first."""
    book.remember(UNSURE, id="new-days")
    question = asked(book)
    book.link("new-days", "days", SUPERSEDES)
    later(book)
    book.link(*second, type_)
    assert [(each.source, each.target, each.type) for each in book.links()] == [(*second, type_)]
    newer = {hit.owner_id: hit.superseded_by for hit in book.recall("when do deployments go out").hits[:2]}
    assert newer == {
        id_: second[0] if (id_, type_) == (second[1], SUPERSEDES) else None for id_ in ("days", "new-days")
    }
    assert asked(book) == []
    book.unlink(*second, type_)
    assert asked(book) == question


def test_the_same_answer_twice_changes_nothing(book: Engine) -> None:
    """Removed and made again, the link would end a fact of the graph at another time."""
    book.remember("My sister lives in Porto.", id="porto")
    later(book)
    book.remember("My sister lives in Lisbon.", id="lisbon")
    later(book)
    first = book.link("lisbon", "porto", SUPERSEDES)
    ended = [fact.expired_at for fact in book.graph.search_edges("where does my sister live", include_past=True)]
    later(book)
    assert book.link("lisbon", "porto", SUPERSEDES) == first
    assert (
        [fact.expired_at for fact in book.graph.search_edges("where does my sister live", include_past=True)]
        == ended
        != [None, None]
    )
    book.update("porto", "My sister lives in Porto again.")
    later(book)
    assert book.link("lisbon", "porto", SUPERSEDES) != first, "the answer is about what it says now"


def test_what_a_person_asked_stays_when_a_memory_changes(book: Engine) -> None:
    """Only what a rule asked is judged anew."""
    book.link("editor", "water", CONFLICTS)
    book.remember(UNSURE, id="new-days")
    assert links(book) == [("new-days", CONFLICTS, "days")]
    later(book)
    book.update("water", "The garden needs water at noon.")
    book.update("new-days", "Lunch is at noon.")
    assert links(book) == []
    assert links(book, "") == [("editor", CONFLICTS, "water")]
    book.link("editor", "water", HOLDS_BESIDE)
    assert links(book, "") == [("editor", HOLDS_BESIDE, "water")], "an answer ends the question"


def test_a_rule_leaves_the_question_of_a_person_as_it_is(book: Engine) -> None:
    book.remember("Lunch is at noon.", id="new-days")
    book.link("new-days", "days", CONFLICTS)
    book.update("new-days", UNSURE)
    assert [(each.source, each.type, each.target, each.origin) for each in book.links()] == [
        ("new-days", CONFLICTS, "days", "")
    ]


def test_what_a_rule_was_sure_of_comes_back_without_the_answer(book: Engine) -> None:
    book.remember(NEWS, id="new-days")
    [judged] = book.links()
    book.link("new-days", "days", HOLDS_BESIDE)
    book.unlink("new-days", "days")
    assert book.links() == [judged]


def test_without_its_link_an_answer_about_an_edited_memory_is_no_question(book: Engine) -> None:
    """The question was about what the memory said before."""
    book.remember(UNSURE, id="new-days")
    book.link("new-days", "days", SUPERSEDES)
    later(book)
    book.update("new-days", content="Lunch is at noon.")
    book.unlink("new-days", "days")
    assert asked(book) == book.links() == []


def test_a_link_that_goes_brings_back_none_of_a_memory_that_was_forgotten_meanwhile(
    book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.remember(UNSURE, id="new-days")
    book.link("new-days", "days", SUPERSEDES)
    change_memories = Store.change_memories

    def forgotten_first(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        with commonplace.open(tmp_path / "store") as other:
            other.forget("days")
        return change_memories(*arguments, **options)

    monkeypatch.setattr(Store, "change_memories", forgotten_first)
    book.unlink("new-days", "days")
    assert book._runtime.store.links(book.namespace, past=True) == []


def superseded(book: Engine, question: str, *ids: str, **options: Any) -> list[tuple[str, str | None]]:
    """Return which of these memories a search finds, best first, each with what it says supersedes it."""
    hits = book.recall(question, **options).hits
    return [(hit.owner_id, hit.superseded_by) for hit in hits if hit.owner_id in ids]


def test_what_is_surely_superseded_is_marked_however_little_the_newer_one_has_to_do_with_the_question(
    book: Engine,
) -> None:
    book.remember("issue tracker: Jira", id="jira", tags=["tools"])
    later(book)
    book.remember("we're on Linear since June, Jira is read-only", id="linear")
    question = "which issue tracker do we use"
    assert superseded(book, question, "jira", "linear") == [("linear", None), ("jira", "linear")]
    assert superseded(book, question, "jira", "linear", tags=["tools"]) == [("jira", "linear")], (
        "what is filtered out says so as well"
    )


def test_a_newer_memory_that_was_forgotten_marks_nothing(book: Engine) -> None:
    book.remember("issue tracker: Jira", id="jira", tags=["tools"])
    later(book)
    book.remember("we're on Linear since June, Jira is read-only", id="linear")
    book.forget("linear")
    assert superseded(book, "which issue tracker do we use", "jira", "linear", tags=["tools"]) == [("jira", None)]


def test_what_is_dated_in_the_future_supersedes_on_its_day(book: Engine) -> None:
    book.remember(NEWS, id="new-days", at="2027-05-01")
    question = "on which days do deployments go out"
    assert superseded(book, question, "days", "new-days") == [("days", None), ("new-days", None)]
    assert superseded(book, question, "days", "new-days", valid_at="2027-06-01") == [
        ("new-days", None),
        ("days", "new-days"),
    ]


def test_what_is_said_before_the_day_of_an_announcement_does_not_supersede_it(book: Engine) -> None:
    book.update("flat", content="From June we live in a flat in Oslo.")
    later(book)
    book.remember("We live in a flat in Bergen.", id="bergen")
    question = "in which city do we live"
    assert superseded(book, question, "flat", "bergen") == [("bergen", None), ("flat", None)]
    assert superseded(book, question, "flat", "bergen", valid_at="2026-07-01") == [("flat", None), ("bergen", "flat")]


def test_what_a_person_writes_on_a_page_is_judged_when_it_is_read(book: Engine, tmp_path: Path) -> None:
    later(book)
    book.remember("The cellar is damp.", id="new-days")
    book.sync()
    book.close()
    [page] = [page for page in (tmp_path / "store" / "memory").glob("*.md") if "The cellar" in page.read_text("utf-8")]
    page.write_text(page.read_text("utf-8").replace("The cellar is damp.", NEWS), "utf-8")
    with commonplace.open(tmp_path / "store") as reopened:
        assert superseded(reopened, "on which days do deployments go out", "days", "new-days") == [
            ("new-days", None),
            ("days", "new-days"),
        ]
