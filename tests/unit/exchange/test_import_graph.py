"""What is imported feeds the graph as what is remembered does, and an export of ours brings its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.exchange import import_
from commonplace.graph import episodes


def mem0(path: Path, *memories: tuple[str, str], **more: Any) -> Path:
    entries = [
        {"id": id_, "memory": text, "user_id": "dev", "created_at": "2026-02-01T12:00:00Z", **more}
        for id_, text in memories
    ]
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def facts(book: Engine) -> list[str]:
    return sorted(each.fact for each in book.graph.search_edges("who lives where", 50, include_past=True))


def said(book: Engine, name: str) -> set[tuple[str, str]]:
    return {(each.relation_type, each.fact) for each in book.graph.search_edges(name, 50)}


def test_what_another_system_remembered_is_in_the_graph(book: Engine, tmp_path: Path) -> None:
    given = mem0(tmp_path / "m.json", ("a", "Mira lives in Berlin."), ("b", "short answers are better"))
    assert book.import_(given).memories.added == 2
    [episode] = book.graph.episodes()
    assert (episode.memory, episode.origin, episode.trust) == ("a", "document", 0.6)
    assert facts(book) == ["Mira lives in Berlin."]


def test_imported_twice_it_says_it_once(book: Engine, tmp_path: Path) -> None:
    given = mem0(tmp_path / "m.json", ("a", "Mira lives in Berlin."))
    book.import_(given)
    [before] = book.graph.episodes()
    assert book.import_(given).memories.unchanged == 1
    assert book.graph.episodes() == [before]


def test_what_replaces_a_memory_replaces_its_episode(book: Engine, tmp_path: Path) -> None:
    book.import_(mem0(tmp_path / "m.json", ("a", "Mira lives in Berlin.")))
    changed = mem0(tmp_path / "n.json", ("a", "Mira lives in Munich."))
    assert book.import_(changed, on_conflict="skip").memories.skipped == 1
    assert facts(book) == ["Mira lives in Berlin."]
    assert book.import_(changed, on_conflict="replace").memories.replaced == 1
    assert facts(book) == ["Mira lives in Munich."]
    assert book.graph.counts().episodes == 1


def test_relations_of_another_system_become_facts_once(book: Engine, tmp_path: Path) -> None:
    """What the reference MCP memory server keeps of who works where is a fact here, and known again the next time."""
    given = tmp_path / "memory.jsonl"
    given.write_text(
        '{"type":"entity","name":"Ada_Byron","entityType":"person","observations":["Plays chess"]}\n'
        '{"type":"relation","from":"Ada_Byron","to":"Initech","relationType":"works_at"}\n'
        '{"type":"relation","from":"Ada_Byron","to":"pizza","relationType":"is fond of"}\n'
    )
    dry = book.import_(given, dry_run=True)
    report = book.import_(given)
    assert (dry.relations.added, report.relations.added, report.memories.added) == (2, 2, 1)
    known = said(book, "Ada Byron")
    assert known >= {
        ("WORKS_FOR", "Ada Byron works at Initech"),
        ("RELATED_TO", "Ada Byron is fond of pizza"),
    }
    again = book.import_(given)
    assert (again.relations.added, again.relations.unchanged) == (0, 2)
    assert said(book, "Ada Byron") == known


def test_a_relation_is_known_again_without_a_look_at_the_others_of_its_ends(
    book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other systems tie everything to one user: to compare each relation with all of that would take hours."""

    def all_of_them(*_: object, **__: object) -> None:
        raise AssertionError

    relations = [{"source": "Ada", "relationship": "likes", "target": each} for each in ("chess", "pizza")]
    given = tmp_path / "m.json"
    given.write_text(json.dumps({"results": [{"id": "1", "memory": "x"}], "relations": relations}))
    book.import_(given)
    monkeypatch.setattr("commonplace.store.graph.GraphReading.relations_of", all_of_them)
    assert book.import_(given).relations.unchanged == 2


def test_a_relation_that_cannot_be_kept_refuses_the_import(book: Engine, tmp_path: Path) -> None:
    """Nothing is half done: with one bad relation no memory is written either."""
    given = tmp_path / "m.json"
    relations = [{"source": "Ada", "relationship": "is", "target": "ada"}]
    given.write_text(json.dumps({"results": [{"id": "1", "memory": "Ada plays chess."}], "relations": relations}))
    with pytest.raises(UsageError, match="both mean"):
        book.import_(given)
    assert book.list() == []
    assert book.import_(given, skip_problems=True).memories.added == 1


def test_what_is_imported_is_not_archived_at_once(book: Engine, tmp_path: Path) -> None:
    """Its file may be years old, and tells of no use: who imports it wants to find it."""
    book.import_(mem0(tmp_path / "m.json", ("a", "The user's name is Bob."), created_at="2019-02-01T12:00:00Z"))
    book.consolidate(["decay"])
    assert book.get("a").status == "active"
    assert book.recall("what is the user's name").hits[0].owner_id == "a"


def test_a_dry_run_leaves_the_graph_alone(book: Engine, tmp_path: Path) -> None:
    book.import_(mem0(tmp_path / "m.json", ("a", "Mira lives in Berlin.")), dry_run=True)
    assert book.graph.counts().episodes == 0


def test_much_text_is_written_in_portions(book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a batch says is written while others wait."""
    monkeypatch.setattr(import_, "BATCH_CHARACTERS", 38)
    held: list[int] = []
    change = type(book._runtime.store).change_memories

    def noted(self: object, *given: object, **named: object) -> object:
        held.append(len(book.list()))
        return change(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(book._runtime.store), "change_memories", noted)
    cities = ("Rome", "Oslo", "Bonn", "Bern")
    book.import_(mem0(tmp_path / "m.json", *((city, f"Mira lives in {city}.") for city in cities)))
    assert held[:2] == [0, 2]
    assert book.graph.counts().episodes == 4


def test_memories_that_say_more_than_the_graph_takes_are_told_of(
    book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episodes, "MAX_FACTS", 1)
    text = "Mira lives in Berlin. Tom lives in Rome."
    report = book.import_(mem0(tmp_path / "m.json", ("a", text), ("b", f"{text} So they said.")))
    assert report.notices == (
        "the graph took 1 of the 2 facts in it: give it in parts to have them all (2 of the memories)",
    )


def test_an_export_of_ours_brings_its_graph_and_says_nothing_twice(book: Engine, tmp_path: Path) -> None:
    book.remember("Mira lives in Berlin.")
    book.export(tmp_path / "all.jsonl")
    with commonplace.open(tmp_path / "other", embedder="hashing", clock=Clock()) as other:
        other.import_(tmp_path / "all.jsonl")
        other.export(tmp_path / "again.jsonl")
        assert other.graph.counts() == book.graph.counts()
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()


def berlin(path: Path) -> Path:
    with commonplace.open(path / "another", embedder="hashing", clock=Clock()) as another:
        another.remember("Mira lives in Berlin.", id="m")
        another.export(path / "berlin.jsonl")
    return path / "berlin.jsonl"


def test_an_export_that_replaces_a_memory_replaces_what_it_said(book: Engine, tmp_path: Path) -> None:
    book.remember("Mira lives in Oslo.", id="m")
    given = berlin(tmp_path)
    assert book.import_(given, on_conflict="replace").memories.replaced == 1
    [episode] = book.graph.episodes()
    assert (episode.memory, episode.content) == ("m", "Mira lives in Berlin.")
    assert facts(book) == ["Mira lives in Berlin."]
    again = book.import_(given)
    assert (again.memories.unchanged, again.episodes.unchanged, again.conflicts) == (1, 1, ())
    book.update("m", "Mira lives in Bonn.")
    assert facts(book) == ["Mira lives in Bonn."]


def test_an_export_whose_memory_is_skipped_brings_its_words_with_the_episode(book: Engine, tmp_path: Path) -> None:
    """Facts must not stand beside words that do not say them."""
    book.remember("Mira lives in Oslo.", id="m")
    book.import_(berlin(tmp_path), on_conflict="skip")
    assert {(each.memory, each.content) for each in book.graph.episodes()} == {
        ("m", "Mira lives in Oslo."),
        ("", "Mira lives in Berlin."),
    }
