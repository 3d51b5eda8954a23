"""What waits for a person: shown side by side, and settled through Python, the command line and MCP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.cli import memory as commands
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.mcp.tools import graph, link
from commonplace.types import RULE

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program


@pytest.fixture
def book(bare: Program) -> Iterator[Engine]:
    with commonplace.open(bare.project / ".commonplace", embedder="hashing", clock=Clock()) as engine:
        yield engine


def disputed(book: Engine, origin: str = "agent") -> str:
    book.graph.add_episode("Greta studies in Heidelberg.", reference_time="2026-01-10", origin=origin)
    book.graph.add_episode("Greta studies in Freiburg.", reference_time="2026-02-20", origin=origin)
    [question] = book.questions()
    return question.id


def held(book: Engine) -> dict[str, bool]:
    """Return the places that are known, and whether they hold."""
    return {each.target_name: each.expired_at is None for each in book.graph.search_edges("Greta", include_past=True)}


def test_a_contradiction_shows_both_sides_with_sources_and_dates(book: Engine) -> None:
    disputed(book)
    [question] = book.questions()
    assert (question.kind, question.answers) == ("contradiction", ("left", "right", "both", "edit"))
    told = [(each.text, each.source, each.at and each.at.date().isoformat()) for each in question.sides]
    assert told == [
        ("Greta studies in Heidelberg.", "agent", "2026-01-10"),
        ("Greta studies in Freiburg.", "agent", "2026-02-20"),
    ]
    assert question.command.startswith("commonplace graph settle ")


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("left", {"Heidelberg": True, "Freiburg": False}),
        ("right", {"Heidelberg": False, "Freiburg": True}),
        ("both", {"Heidelberg": True, "Freiburg": True}),
    ],
)
def test_an_answer_settles_a_contradiction(book: Engine, answer: str, left: dict[str, bool]) -> None:
    book.answer(disputed(book), answer, reason="asked her")
    assert held(book) == left
    assert book.questions() == []


def test_facts_that_both_hold_stay_settled_when_one_is_said_again(book: Engine) -> None:
    book.answer(disputed(book), "both")
    book.graph.add_episode("Greta studies in Freiburg.", reference_time="2026-02-25")
    assert book.questions() == []
    assert held(book) == {"Heidelberg": True, "Freiburg": True}


def test_a_text_of_ones_own_takes_the_place_of_both_sides(book: Engine) -> None:
    id_ = disputed(book)
    with pytest.raises(UsageError, match="does not say what is right"):
        book.answer(id_, "edit", text="Ravens nest in the lighthouse.")
    book.answer(id_, "edit", text="Greta studies in Basel now.")
    assert [name for name, holds in held(book).items() if holds] == ["Basel"]
    assert book.questions() == []


def test_an_ending_that_was_not_believed_is_a_question(book: Engine) -> None:
    book.graph.add_episode("Alex can unlock the server room.", reference_time="2026-01-10")
    book.graph.add_episode("Alex can no longer unlock the server room.", reference_time="2026-02-20")
    [question] = book.questions()
    assert (question.kind, [each.text for each in question.sides]) == (
        "ending",
        ["Alex can unlock the server room.", "Alex can no longer unlock the server room."],
    )
    book.answer(question.id, "right")
    assert book.questions() == []
    [fact] = book.graph.search_edges("Alex server room", include_past=True)
    assert fact.valid_to is not None
    assert fact.valid_to.date().isoformat() == "2026-02-20"


def proposed(book: Engine) -> str:
    book.remember("The office has a piano on the second floor", id="one")
    book.remember("On the second floor of the office stands a piano", id="two", force=True)
    return book.ledger.create("merge", ["one", "two"], "merge")


@pytest.mark.parametrize(
    ("answer", "left"),
    [("left", ["one"]), ("right", ["two"]), ("both", ["one", "two"]), ("edit", ["one"]), ("accept", None)],
)
def test_an_answer_settles_a_proposed_merge(book: Engine, answer: str, left: list[str] | None) -> None:
    id_ = proposed(book)
    [question] = book.questions()
    assert (question.id, question.kind, len(question.sides)) == (id_, "merge", 2)
    book.answer(id_, answer, text="A piano stands on the second floor.")
    assert book.questions() == []
    active = sorted(each.id for each in book.list())
    assert active == left if left is not None else len(active) == 1
    if answer == "edit":
        assert book.get("one").content == "A piano stands on the second floor."
    assert ("archived" in (book.ledger.get(id_).close_reason or "")) is (left is not None and len(left) == 1)


def test_what_an_answer_archives_is_named_with_the_way_back(book: Engine, bare: Program) -> None:
    id_ = proposed(book)
    printed = bare.run("review", "--answer", id_, "left").stdout
    assert printed == (
        f"{id_} settled: left (a person decided; archived, until `commonplace memory restore` brings it back: two)\n"
    )
    bare.run("memory", "restore", "two")
    assert sorted(each.id for each in book.list()) == ["one", "two"]


def test_a_rejected_link_is_not_proposed_again(book: Engine) -> None:
    book.remember("Ada tunes pianos", id="one")
    book.remember("Ada plays the organ", id="two")
    id_ = book.ledger.create("relations", ["one", "two"], "link")
    assert [each.answers for each in book.questions()] == [("accept", "reject")]
    book.answer(id_, "reject", reason="they have nothing in common")
    assert book.questions() == []
    assert book.ledger.get(id_).close_reason == "they have nothing in common"


@pytest.fixture
def changed(bare: Program) -> Iterator[Engine]:
    clock = Clock()
    with commonplace.open(bare.project / ".commonplace", clock=clock) as engine:
        for id_, text in (
            ("older", "Deployments go out on Thursdays."),
            ("cello", "Greta plays the cello."),
            ("garden", "The garden needs water on Tuesdays."),
            ("newer", "Deployments go out on Fridays."),
        ):
            engine.remember(text, id=id_)
            clock.now += 60.0
        yield engine


def test_a_memory_that_a_newer_one_may_have_overtaken_is_a_question(changed: Engine) -> None:
    [question] = changed.questions()
    assert (question.kind, [each.id for each in question.sides]) == ("overtaken", ["older", "newer"])
    assert question.command == "commonplace memory link newer older --type supersedes"
    [finding] = changed.health().findings
    assert (finding.kind, finding.ids, finding.command) == ("overtaken", ("older", "newer"), "commonplace review")


@pytest.mark.parametrize(
    ("answer", "linked", "marked"),
    [
        ("left", ("older", "supersedes", "newer"), {"older": None, "newer": "older"}),
        ("right", ("newer", "supersedes", "older"), {"older": "newer", "newer": None}),
        ("both", ("newer", "holds beside", "older"), {"older": None, "newer": None}),
        ("edit", ("newer", "supersedes", "older"), {"older": "newer", "newer": None}),
    ],
)
def test_an_answer_settles_which_of_two_memories_holds(
    changed: Engine, answer: str, linked: tuple[str, str, str], marked: dict[str, str | None]
) -> None:
    """Nothing is archived or deleted: a link tells, for which the links' commands are good."""
    changed.answer(changed.questions()[0].id, answer, text="Deployments go out on Fridays at noon.")
    assert changed.questions() == []
    assert [(each.source, each.type, each.target) for each in changed.links()] == [linked]
    hits = [each for each in changed.recall("when do deployments go out").hits if each.owner_id in marked]
    assert {each.owner_id: each.superseded_by for each in hits} == marked
    if answer != "both":
        assert hits[0].owner_id == linked[0]
    assert changed.get("newer").content.endswith("noon." if answer == "edit" else "days.")
    changed.unlink(linked[0], linked[2])
    assert [each.kind for each in changed.questions()] == ["overtaken"]


PORTO, LISBON, FARO = (f"My sister lives in {place}." for place in ("Porto", "Lisbon", "Faro"))


@pytest.fixture
def moved(bare: Program) -> Iterator[Engine]:
    """Two memories that may overtake each other, whose facts the graph disputes."""
    clock = Clock()
    with commonplace.open(bare.project / ".commonplace", clock=clock) as engine:
        for id_, text in (("older", PORTO), ("cello", "Greta plays the cello."), ("newer", LISBON)):
            engine.remember(text, id=id_)
            clock.move(days=30)
        yield engine


def test_the_graph_and_the_memories_ask_one_question_of_a_pair(moved: Engine) -> None:
    assert [(each.kind, [side.text for side in each.sides]) for each in moved.questions()] == [
        ("contradiction", [PORTO, LISBON])
    ]
    assert [each.kind for each in moved.health().findings] == ["contradiction"]


@pytest.mark.parametrize(
    ("answer", "linked", "places"),
    [
        ("left", ("older", "supersedes", "newer"), ["Porto"]),
        ("right", ("newer", "supersedes", "older"), ["Lisbon"]),
        ("both", ("newer", "holds beside", "older"), ["Lisbon", "Porto"]),
        ("edit", ("newer", "supersedes", "older"), ["Faro"]),
    ],
)
def test_one_answer_settles_it_for_the_graph_and_the_memories(
    moved: Engine, answer: str, linked: tuple[str, str, str], places: list[str]
) -> None:
    moved.answer(moved.questions()[0].id, answer, text=FARO)
    assert [(each.source, each.type, each.target) for each in moved.links()] == [linked]
    assert sorted(each.target_name for each in moved.graph.search_edges("sister")) == places
    assert moved.questions() == []
    assert moved.health().findings == ()
    if answer == "left":
        assert f'{linked[0]} replaced it"' in moved.recall("where does my sister live").to_text()


@pytest.mark.parametrize(("answer", "source", "target"), [("left", "older", "newer"), ("both", "newer", "older")])
def test_without_its_link_an_answer_counts_for_neither_the_graph_nor_the_memories(
    moved: Engine, answer: str, source: str, target: str
) -> None:
    """A person who takes back an answer is asked again, and the next answer counts as the first would have."""
    asked = moved.questions()
    known = [(each.target_name, each.valid_to, each.disputed) for each in moved.graph.search_edges("sister")]
    moved.answer(asked[0].id, answer)
    moved.unlink(source, target)
    assert moved.questions() == asked
    assert [(each.target_name, each.valid_to, each.disputed) for each in moved.graph.search_edges("sister")] == known
    moved.answer(asked[0].id, "right")
    facts = {each.target_name: each for each in moved.graph.search_edges("sister", include_past=True)}
    assert (facts["Porto"].valid_to, facts["Lisbon"].valid_to) == (facts["Lisbon"].valid_from, None)
    assert [each.target_name for each in moved.graph.search_edges("sister")] == ["Lisbon"]
    assert moved.questions() == []


def test_another_link_that_goes_leaves_an_answer_as_it_is(moved: Engine) -> None:
    """Only links that decide between two memories carry an answer."""
    moved.answer(moved.questions()[0].id, "right")
    moved.link("newer", "older")
    moved.unlink("newer", "older", "related")
    assert [each.target_name for each in moved.graph.search_edges("sister")] == ["Lisbon"]


def test_a_correction_is_not_asked_about_again(changed: Engine) -> None:
    """What is written in place of a memory may say a fact that the graph knows otherwise."""
    changed.update("older", content="The standup is at 9:30.")
    changed.update("newer", content="The standup has been moved to 10:15.")
    changed.graph.settle(changed.graph.disputes()[0].uuid, verdict="both") if changed.graph.disputes() else None
    for question in changed.questions():
        changed.answer(question.id, "edit", text="The standup is at 11:00.")
    assert changed.questions() == []
    assert changed.health().findings == ()


def test_an_agent_settles_nothing_that_a_user_or_the_web_said(book: Engine) -> None:
    id_ = disputed(book, "user")
    with pytest.raises(UsageError, match="an agent may not"):
        link(book, {"source": id_, "target": "right", "type": "settles"})
    shown = graph(book, {"id": "review"})
    assert [(each["question"], each["userOnly"]) for each in shown.structured["facts"]] == [(id_, True)] * 2
    assert "they settle by `commonplace review`" in shown.text
    assert "memory_link" not in shown.text, "it would be refused"
    book.answer(id_, "right")
    assert graph(book, {"id": "review"}).text == "Nothing waits for the user."


def test_a_hit_that_was_moved_up_says_above_which_it_stands(book: Engine, bare: Program) -> None:
    """Its score is its own, and may be lower than that of the older one below it."""
    old = book.remember("My manager is Ulrike", at="2026-01-10").id
    new = book.remember("Ulrike left the company, so Gregor signs off leave", at="2026-02-10").id
    book.link(new, old, "supersedes")
    told = bare.run("recall", "my manager is Ulrike").stdout
    assert told.startswith(f"1. {new} · ")
    assert told.index("newer than hit 2") < told.index(f"2. {old}") < told.index("hit 1 replaced it")


@pytest.mark.parametrize("type_", ["supersedes", " holds  beside "])
def test_an_agent_links_nothing_of_a_user_by_what_settles(book: Engine, type_: str) -> None:
    """A link by which one memory stands before another is an answer, too."""
    said = book.remember("The launch is on Monday", origin="user").id
    read, noted = (book.remember(text).id for text in ("The launch is on Friday", "The launch has been put off"))
    with pytest.raises(UsageError, match="an agent may not"):
        link(book, {"source": read, "target": said, "type": type_})
    assert book.links() == []
    link(book, {"source": read, "target": said, "type": "contradicts"})
    link(book, {"source": noted, "target": read, "type": type_})
    book.link(read, said, type_)
    assert len(book.links()) == 3


def test_an_agent_links_nothing_otherwise_than_it_is_settled(book: Engine) -> None:
    """Links of people and agents look alike: what the user answered would be lost."""
    older, newer = (book.remember(text).id for text in ("The standup is at nine.", "The standup is at ten."))
    book.link(older, newer, "supersedes")
    for source, target, type_ in ((newer, older, "supersedes"), (older, newer, "holds beside")):
        with pytest.raises(UsageError, match="settled already"):
            link(book, {"source": source, "target": target, "type": type_})
    link(book, {"source": older, "target": newer, "type": "supersedes"})
    assert [(each.source, each.target, each.type) for each in book.links()] == [(older, newer, "supersedes")]


@pytest.mark.parametrize("origin", ["user", "web"])
def test_an_agent_settles_nothing_that_a_user_or_the_web_said_as_well(book: Engine, origin: str) -> None:
    """A side shows the trust in one of those who said it."""
    book.remember("My sister lives in Porto.", id="a", at="2026-01-10")
    book.remember("My sister lives in Porto, as she told us.", id="b", at="2026-01-11", origin=origin)
    book.remember("My sister lives in Lisbon.", id="c", at="2026-02-20")
    [question] = book.questions()
    with pytest.raises(UsageError, match="an agent may not"):
        link(book, {"source": question.id, "target": "right", "type": "settles"})


def test_an_agent_reads_what_is_asked_and_which_answers_there_are(book: Engine) -> None:
    """`edit` is none of them: a link has no text."""
    id_ = disputed(book)
    shown = graph(book, {"id": "review"})
    form = {"question": id_, "asks": "Which is right?", "answers": ["left", "right", "both"], "userOnly": False}
    assert all(form.items() <= each.items() for each in shown.structured["facts"])
    assert f'ref="{id_}" label="contradiction: left, right, both">\nWhich is right?' in shown.text
    assert shown.text.index(f'label="left of {id_}"') < shown.text.index(f'label="right of {id_}"')
    assert shown.text.endswith('Ask the user, then memory_link: source question, target answer, type "settles".')


def test_an_agent_settles_what_agents_said(book: Engine) -> None:
    link(book, {"source": disputed(book), "target": "right", "type": "settles"})
    assert held(book) == {"Heidelberg": False, "Freiburg": True}


def test_wrong_answers_and_questions_are_refused(book: Engine) -> None:
    with pytest.raises(UsageError, match="is no answer"):
        book.answer(disputed(book), "accept")
    with pytest.raises(NotFoundError):
        book.answer("nothing", "left")


def test_the_command_lists_and_settles_without_a_terminal(book: Engine, bare: Program) -> None:
    id_ = disputed(book)
    assert [each["id"] for each in bare.json("review")["questions"]] == [id_]
    assert bare.json("review", "--answer", id_, "right", "--reason", "asked her")["answer"] == "right"
    assert bare.json("review") == {"questions": []}
    assert held(book) == {"Heidelberg": False, "Freiburg": True}


def test_the_command_with_ids_counts_a_review(book: Engine, bare: Program) -> None:
    book.remember("Ravens nest in the lighthouse", id="ravens")
    assert bare.json("review", "ravens")[0]["outcome"] == "reviewed"


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        (["z", "2"], {"Heidelberg": False, "Freiburg": True}),
        (["\x1b[D"], {"Heidelberg": True, "Freiburg": False}),
        (["l"], {"Heidelberg": True, "Freiburg": True}),
        (["q"], {"Heidelberg": True, "Freiburg": True}),
    ],
)
def test_a_person_is_asked_one_question_after_the_other(
    book: Engine, monkeypatch: pytest.MonkeyPatch, keys: list[str], left: dict[str, bool]
) -> None:
    disputed(book)
    typed = iter(keys)
    getchar: Callable[[], str] = lambda: next(typed)  # noqa: E731 - in place of a terminal
    monkeypatch.setattr(click, "getchar", getchar)
    commands._ask_all(book, "")
    assert held(book) == left
    assert list(typed) == []


def test_a_key_that_is_no_answer_shows_the_keys_again(
    book: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Silence looks like a program that hangs."""
    disputed(book)
    typed = iter(["z", "q"])
    monkeypatch.setattr(click, "getchar", lambda: next(typed))
    commands._ask_all(book, "")
    assert capsys.readouterr().out.count("l later   q quit") == 2


def test_nothing_written_leaves_a_question_as_it_was(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    disputed(book)
    keys, lines = iter(["e", "q"]), iter([""])
    monkeypatch.setattr(click, "getchar", lambda: next(keys))
    monkeypatch.setattr(click, "prompt", lambda _text, default=None, **_: next(lines) or default)
    commands._ask_all(book, "")
    assert held(book) == {"Heidelberg": True, "Freiburg": True}
    assert len(book.questions()) == 1


@pytest.mark.parametrize(
    ("answer", "links", "marked"),
    [
        ("left", {"ten > twenty", "ten > forty"}, {"ten": None, "twenty": "ten", "forty": "ten"}),
        ("right", {"twenty > ten", "twenty > forty"}, {"ten": "twenty", "twenty": None, "forty": "twenty"}),
        ("both", {"forty = twenty", "forty = ten", "twenty = ten"}, {"ten": None, "twenty": None, "forty": None}),
        ("edit", {"forty > ten", "forty > twenty"}, {"ten": "forty", "twenty": "forty", "forty": None}),
    ],
)
def test_one_answer_settles_which_of_three_memories_hold(
    bare: Program, answer: str, links: set[str], marked: dict[str, str | None]
) -> None:
    with commonplace.open(bare.project / ".commonplace") as book:
        for place, id_ in enumerate(marked):
            book.remember(f"Mara takes {10 << place} mg of lisinopril.", id=id_, at=f"2026-0{place + 1}-01", force=True)
        [question] = book.questions()
        assert len(question.sides) == 3
        book.answer(question.id, answer, text="Mara takes 15 mg of lisinopril.")
        signs = {"supersedes": ">", "holds beside": "="}
        told = [each for each in book.links() if each.origin != RULE]
        assert {f"{each.source} {signs[each.type]} {each.target}" for each in told} == links
        hits = book.recall("how much lisinopril does Mara take").hits
        assert {each.owner_id: each.superseded_by for each in hits} == marked
        assert hits[0].superseded_by is None
        assert [each.id for each in book.list() if "15 mg" in each.content] == ["forty"] * (answer == "edit")
        assert book.questions() == []
        assert book.health().findings == ()


@pytest.mark.parametrize(
    ("answer", "link", "sizes"),
    [
        ("left", ("first", "supersedes", "second"), ["42"]),
        ("right", ("second", "supersedes", "first"), ["43"]),
        ("both", ("second", "holds beside", "first"), ["42", "43"]),
        ("edit", ("second", "supersedes", "first"), ["44"]),
    ],
)
def test_an_answer_about_memories_of_one_day_reaches_every_search(
    bare: Program, answer: str, link: tuple[str, str, str], sizes: list[str]
) -> None:
    """The graph alone asks, since the rule compares older with newer ones; recall follows the answer all the same."""
    clock = Clock()
    with commonplace.open(bare.project / ".commonplace", clock=clock) as book:
        book.remember("My shoe size is 42.", id="first", at="2026-06-10")
        clock.move(days=1)
        book.remember("My shoe size is 43.", id="second", at="2026-06-10")
        assert book.links() == []
        book.answer(book.questions()[0].id, answer, text="My shoe size is 44.")
        assert [(each.source, each.type, each.target) for each in book.links()] == [link]
        assert sorted(each.target_name for each in book.graph.search_edges("shoe size")) == sizes
        assert book.questions() == []
        if answer != "both":
            hits = book.recall("shoe size").hits
            assert [(each.owner_id, each.superseded_by) for each in hits] == [(link[0], None), (link[2], link[0])]
            book.unlink(link[0], link[2])
            assert [each.kind for each in book.questions()] == ["contradiction"]


def test_an_answer_about_the_newest_settles_the_past_ones_too(bare: Program) -> None:
    """Each held until the next one began, so nothing is left to ask."""
    with commonplace.open(bare.project / ".commonplace") as book:
        for month, dose in enumerate(("50 mg", "60 mg", "75 mg now", "100 mg now"), 1):
            book.remember(f"My dose of sertraline is {dose}.", at=f"2026-0{month}-01")
        [question] = book.questions()
        book.answer(question.id, question.sides[-1].id)
        facts = book.graph.search_edges("dose of sertraline", include_past=True)
        ends = {each.target_name: each.valid_to and each.valid_to.date().isoformat() for each in facts}
        assert ends == {"50 mg": "2026-02-01", "60 mg": "2026-03-01", "75 mg": "2026-04-01", "100 mg": None}
        assert book.questions() == []


def test_a_question_is_listed_with_a_command_to_paste(moved: Engine, bare: Program) -> None:
    [question] = moved.questions()
    lines = bare.run("review").stdout.splitlines()
    assert f"commonplace review --answer {question.id} ANSWER" in lines
    assert "Answer left, right, both, edit (with --text TEXT):" in lines
    assert "give left, right, both, edit" in bare.error("review", "--answer", question.id, code=2)["remedy"]
    told = bare.error("review", "--answer", question.id, "edit", code=2)
    assert told["remedy"] == "give it with --text TEXT"


def test_a_command_to_paste_quotes_an_id(bare: Program) -> None:
    """An id is any text, and the shell would read two of it."""
    with commonplace.open(bare.project / ".commonplace", clock=Clock()) as engine:
        engine.remember("Deployments go out on Thursdays.", id="the older", at="2026-01-10")
        engine.remember("Deployments go out on Fridays.", id="newer", at="2026-02-10")
        [question] = engine.questions()
    assert question.command == "commonplace memory link newer 'the older' --type supersedes"
    assert f"commonplace review --answer '{question.id}' ANSWER" in bare.run("review").stdout.splitlines()


@pytest.mark.parametrize(("answer", "link"), [("left", ("can", "no longer")), ("right", ("no longer", "can"))])
def test_one_answer_settles_whether_what_memories_say_has_ended(
    bare: Program, answer: str, link: tuple[str, str]
) -> None:
    with commonplace.open(bare.project / ".commonplace") as book:
        for month, id_ in enumerate(("can", "no longer"), 1):
            book.remember(f"Alex {id_.replace('no', 'can no')} unlock the server room.", id=id_, at=f"2026-0{month}-10")
        assert [each.kind for each in book.questions()] == ["ending"]
        [finding] = book.health().findings
        assert finding.why.endswith("Alex can unlock the server room. / Alex can no longer unlock the server room.")
        book.answer(book.questions()[0].id, answer)
        assert [(each.source, each.target) for each in book.links()] == [link]
        assert book.questions() == []


def test_each_side_of_a_contradiction_of_three_is_shown(bare: Program) -> None:
    for city in ("Madrid", "Porto", "Lisbon"):
        bare.run("graph", "add", f"Ada Marsh lives in {city}.", "--at", "2026-03-14T09:00Z")
    shown = bare.run("review").stdout
    assert [f"lives in {city}" in shown for city in ("Madrid", "Porto", "Lisbon")] == [True] * 3
    assert [line.split()[0] for line in shown.splitlines() if "trust" in line] == ["left", "right", "3."]
