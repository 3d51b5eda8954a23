"""A graph that leaves as an export and comes back: what is found in it, what grows, what is refused, and secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.graphs import texts
from tests.reference_store.store import MemoryStore
from tests.unit.clock import Clock
from tests.unit.exchange.imports import dump, import_file, written_by_hand

import commonplace
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.types.graph import GraphFilter

SAID = (
    ("first", "Ann lives in Oslo. auth.ts depends on token.ts.", "2026-01-05"),
    ("second", "Ann moved to Bergen in February 2026.", "2026-02-20"),
    ("third", "Bob works for Acme.", "2026-02-21"),
)
TOKEN = "ghp" + "_" + "Zk3Qw9Rt5Yb1Nc7Vx2Mp8Ls4Hd6Jf0GgTuEa"


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        for id_, content, at in SAID:
            book.graph.add_episode(content, uuid=id_, reference_time=at)
        yield book


@pytest.fixture
def other(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "other", clock=clock) as other:
        yield other


def exported(book: Engine, path: Path, **options: Any) -> Path:
    book.export(path, **options)
    return path


def line(kind: str, what: dict[str, Any], **more: Any) -> dict[str, Any]:
    lists = {"episode": (), "entity": ("aliases", "mentions", "happenings"), "relation": ("mentions", "happenings")}
    return {"type": kind, kind: what, **{name: [] for name in lists[kind]}, **more}


def an_episode(id_: str = "e", content: str = "Ann lives in Oslo", **fields: Any) -> dict[str, Any]:
    return line("episode", {"id": id_, "content": content, "reference_time": 5.0, "created_at": 6.0, **fields})


def an_entity(id_: str, name: str = "Ann", more: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return line("entity", {"id": id_, "name": name, "type": "person", "created_at": 6.0, **fields}, **(more or {}))


def a_fact(id_: str = "r", source: str = "a", target: str = "b", **fields: Any) -> dict[str, Any]:
    what = {"id": id_, "source": source, "target": target, "type": "KNOWS", "fact": "Ann knows Bob", "created_at": 6.0}
    return line("relation", {**what, **fields})


class TestThereAndBack:
    def test_a_graph_is_the_same_in_another_store_and_is_found_there(
        self, book: Engine, other: Engine, tmp_path: Path
    ) -> None:
        report = other.import_(exported(book, tmp_path / "e.jsonl"))
        assert (report.episodes.added, report.entities.added, report.relations.added) == (3, 7, 4)
        assert dump(other._runtime.store, "default") == dump(book._runtime.store, "default")
        there, here = texts(other._runtime.store, "default"), texts(book._runtime.store, "default")
        assert {kind: sorted(some) for kind, some in there.items()} == {k: sorted(some) for k, some in here.items()}
        found = [[fact.uuid for fact in each.graph.search_edges("where does Ann live")] for each in (other, book)]
        assert found[0] == found[1] != []
        assert other.graph.search_entities("auth.ts")[0].name == "auth.ts"
        assert other.doctor().findings == ()

    def test_what_was_merged_and_settled_goes_with_it_and_can_be_undone_there(
        self, book: Engine, other: Engine, tmp_path: Path
    ) -> None:
        """The history is what facts are resolved from, and what a split needs."""
        book.graph.merge("Ann", "Bob", reason="one person")
        other.import_(exported(book, tmp_path / "e.jsonl"))
        assert dump(other._runtime.store, "default") == dump(book._runtime.store, "default")
        for each in (book, other):
            each.graph.split("Ann")
        assert dump(other._runtime.store, "default") == dump(book._runtime.store, "default")

    def test_only_the_graph_or_all_but_the_graph_is_exported(self, book: Engine, tmp_path: Path) -> None:
        book.remember("The kettle whistles")
        graph = exported(book, tmp_path / "graph.jsonl", kinds=["graph"]).read_text().splitlines()
        assert {json.loads(each).get("type") for each in graph} == {None, "episode", "entity", "relation", "end"}
        assert json.loads(graph[0])["counts"]["episodes"] == 3
        rest = exported(book, tmp_path / "rest.jsonl", kinds=["memory"]).read_text().splitlines()
        assert {json.loads(each).get("type") for each in rest} == {None, "memory", "end"}
        assert json.loads(rest[0])["counts"]["episodes"] == 0

    def test_what_leads_nowhere_is_left_out(self, book: Engine, tmp_path: Path) -> None:
        """A mention in an episode that is gone tells nothing, and would be refused."""
        with book._runtime.store.change_memories("default") as change:
            change.graph.erase_episodes(["third"])
            change.graph.put()
        store = MemoryStore()
        import_file(store, exported(book, tmp_path / "e.jsonl"))
        assert store.check() == []


class TestWhatIsThereAlready:
    def test_importing_twice_changes_nothing(self, book: Engine, tmp_path: Path) -> None:
        change = book._runtime.store.change()
        report = book.import_(exported(book, tmp_path / "e.jsonl"))
        assert (report.episodes.unchanged, report.entities.unchanged, report.relations.unchanged) == (3, 7, 4)
        assert book._runtime.store.change() == change

    def test_what_has_grown_since_stays_as_it_is(self, book: Engine, clock: Clock, tmp_path: Path) -> None:
        """An old export holds an earlier state of the same entities and facts."""
        old = exported(book, tmp_path / "old.jsonl")
        clock.move(days=1)
        book.graph.add_episode("Ann moved to Paris in March 2026.", reference_time="2026-03-02")
        book.graph.merge("Ann", "Bob", reason="one person")
        before = dump(book._runtime.store, "default")
        report = book.import_(old)
        assert report.conflicts == ()
        assert dump(book._runtime.store, "default") == before

    def test_something_else_under_the_same_id_is_refused_skipped_or_replaced(
        self, book: Engine, other: Engine, tmp_path: Path
    ) -> None:
        other.import_(exported(book, tmp_path / "e.jsonl"))
        other.graph.add_episode("Nobody lives in Oslo.", uuid="first", reference_time="2026-01-05")
        changed = dump(other._runtime.store, "default")
        with pytest.raises(UsageError, match="here with other content, nothing was imported: episode"):
            other.import_(tmp_path / "e.jsonl")
        report = other.import_(tmp_path / "e.jsonl", on_conflict="skip")
        assert report.episodes.skipped == 1
        assert changed != dump(book._runtime.store, "default")
        other.import_(tmp_path / "e.jsonl", on_conflict="replace")
        found = {each.id: each.content for each in other._runtime.store.graph("default").list_episodes(GraphFilter())}
        assert found == {id_: content for id_, content, _ in SAID}
        assert other.doctor().findings == ()
        change = other._runtime.store.change()
        assert other.import_(tmp_path / "e.jsonl").conflicts == ()
        assert other._runtime.store.change() == change

    def test_an_import_that_was_cut_short_is_completed(self, book: Engine, other: Engine, tmp_path: Path) -> None:
        path = exported(book, tmp_path / "e.jsonl")
        lines = [json.loads(each) for each in path.read_text().splitlines()]
        half = written_by_hand(tmp_path / "half.jsonl", *lines[1:6])
        other.import_(half)
        other.import_(path)
        assert dump(other._runtime.store, "default") == dump(book._runtime.store, "default")


ODD = {"at": 5, "what": "created", "detail": {"evidence": {"home": "r"}}}
REFUSED = [
    ([an_episode(content="")], "line 2 (episode 'e'): the content is"),
    ([an_episode(trust=2)], "trust is 2"),
    ([an_episode(reference_time="inf")], "reference_time is inf"),
    ([an_episode(source="letter")], "source is 'letter'; give one of text, message, json, memory"),
    ([an_episode(), an_episode()], "line 3 (episode 'e'): it comes twice"),
    ([an_entity("a", name=" ")], "the entity has no name, or no type"),
    (
        [an_entity("a", merged_into="b")],
        "line 2 (entity 'a'): there is no entity 'b'; import it too, before this one",
    ),
    ([an_entity("a", attributes=[])], "attributes is []"),
    ([an_entity("a", attributes={"_": {"merged": [1]}})], "attributes cannot be read"),
    ([an_entity("a", kind="person")], "entity has the unknown entry 'kind'"),
    ([an_entity("a", more={"mentions": [{"episode": "e", "start": 0, "end": 1}]})], "there is no episode 'e'"),
    ([an_episode(), an_entity("a", more={"mentions": [{"episode": "e", "start": 3, "end": 1}]})], "characters 3-1"),
    (
        [
            an_entity(
                "a", more={"aliases": [{"name": f"N{i}", "normal": f"n{i}", "created_at": 6.0} for i in range(201)]}
            )
        ],
        "an entity has 201 names, the limit is 200",
    ),
    ([an_entity("a", more={"happenings": [{"at": 5, "what": "x", "detail": 1}]})], "detail is 1"),
    ([an_entity("a"), a_fact()], "line 3 (relation 'r'): there is no entity 'b'"),
    ([an_entity("a"), a_fact(target="a", attributes={"_": 1})], "attributes cannot be read"),
    ([an_entity("a"), a_fact(target="a", type="")], "the fact has no type"),
    (
        [
            an_entity("a"),
            a_fact(target="a") | {"happenings": [{"at": 5, "what": "x", "detail": {"evidence": {"a": 1}}}]},
        ],
        "detail cannot be read",
    ),
]


@pytest.mark.parametrize(("lines", "message"), REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_what_no_graph_can_hold_is_refused_by_line_and_value(tmp_path: Path, lines: Any, message: str) -> None:
    store = MemoryStore()
    with pytest.raises(UsageError) as caught:
        import_file(store, written_by_hand(tmp_path / "e.jsonl", *lines))
    assert message in str(caught.value)
    assert store.change() == 0


def test_secrets_are_replaced_in_all_that_a_graph_holds(tmp_path: Path) -> None:
    content = f"Use {TOKEN} for Ann, who knows Bob"
    begin = content.index("Ann")
    said = {
        "home": "r",
        "source": "a",
        "target": "b",
        "saying": "said",
        "text": "Ann knows Bob",
        "at": 6.0,
        "told": 5.0,
        "episode": "e",
        "start": begin,
        "end": len(content),
    }
    path = written_by_hand(
        tmp_path / "e.jsonl",
        an_episode(content=content),
        an_entity("a", more={"mentions": [{"episode": "e", "start": begin, "end": begin + 3, "name": "Ann"}]}),
        an_entity(
            "b",
            f"Key {TOKEN}",
            more={
                "aliases": [{"name": f"Key {TOKEN}", "normal": "keyghp", "created_at": 6.0}],
                "mentions": [{"episode": "e", "start": 4, "end": 44, "name": TOKEN}],
            },
        ),
        a_fact(attributes={"_": {"sentence": f"e {begin} {len(content)}"}})
        | {"happenings": [{"at": 6.0, "what": "created", "episode": "e", "detail": {"evidence": said}}]},
    )
    store = MemoryStore()
    report = import_file(store, path)
    assert report.notices == ("what looks like a secret was replaced in 2 items: github token",)
    graph = store.graph("n")
    told = graph.episodes(["e"])["e"].content
    assert told == "Use [redacted: github token] for Ann, who knows Bob"
    [ann], [key] = (graph.mentions("entity", [id_])[id_] for id_ in "ab")
    assert (ann.name, key.name) == ("Ann", "[redacted: github token]")
    assert [alias.name for alias in graph.aliases(["b"])["b"] if alias.name] == ["Key [redacted: github token]"]
    assert TOKEN not in dump(store)
    assert TOKEN[4:20].lower() not in dump(store).lower()
