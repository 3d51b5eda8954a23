"""What is remembered feeds the graph, and what is let go leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.memories.clocks import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.settings import Settings
from commonplace.settings.schema import GraphSettings


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    settings = Settings(graph=GraphSettings(remember="on"))
    with commonplace.open(tmp_path / "store", embedder="hashing", clock=clock, settings=settings) as engine:
        yield engine


def facts(book: Engine) -> list[str]:
    return sorted(each.fact for each in book.graph.search_edges("Mira lives works", 50, include_past=True))


def test_a_memory_is_an_episode_that_holds_no_words_of_its_own(book: Engine) -> None:
    memory = book.remember("Mira lives in Berlin.", source="standup", origin="user")
    [episode] = book.graph.episodes()
    assert (episode.memory, episode.source, episode.trust) == (memory.id, "memory", 1.0)
    assert (episode.content, episode.source_description) == ("Mira lives in Berlin.", "standup")
    assert book._store.graph("default").episodes([episode.uuid])[episode.uuid].content == ""
    assert facts(book) == ["Mira lives in Berlin."]


def test_the_same_said_twice_is_one_episode(book: Engine, clock: Clock) -> None:
    book.remember("Mira lives in Berlin.")
    clock.move(days=1)
    book.remember("mira lives in Berlin", tags=["home"])
    assert [each.memory for each in book.graph.episodes()] == [each.id for each in book.list()]
    assert facts(book) == ["Mira lives in Berlin."]


def test_a_new_version_takes_the_place_of_the_old_one(book: Engine, clock: Clock) -> None:
    memory = book.remember("Mira lives in Berlin.")
    clock.move(days=1)
    book.update(memory.id, "Mira lives in Munich.")
    assert facts(book) == ["Mira lives in Munich."]
    assert book.graph.counts().episodes == 1


def test_a_newer_memory_ends_what_an_older_one_says(book: Engine, clock: Clock) -> None:
    book.remember("Mira lives in Berlin.")
    clock.move(days=30)
    second = book.remember("Mira moved to Munich.")
    now = book.graph.search_edges("where Mira lives", relation_types=["LIVES_IN"])
    assert [each.target_name for each in now] == ["Munich"]
    book.archive(second.id)
    now = book.graph.search_edges("where Mira lives", relation_types=["LIVES_IN"])
    assert [each.target_name for each in now] == ["Berlin"]
    book.restore_memory(second.id)
    assert len(facts(book)) == 2


def test_what_is_forgotten_leaves_the_graph(book: Engine) -> None:
    memory = book.remember("Mira lives in Berlin.")
    receipt = book.forget(memory.id)
    assert receipt is not None
    assert book.graph.counts().episodes == book.graph.counts().entities == book.graph.counts().relations == 0


def test_what_fades_leaves_the_graph(book: Engine, clock: Clock) -> None:
    book.remember("Mira lives in Berlin.")
    clock.move(days=200)
    assert len(book.decay(threshold=1.0).archived) == 1
    assert book.graph.counts().episodes == 0


def test_a_turn_of_a_conversation_is_its_speakers(book: Engine) -> None:
    book.remember("Mira: I live in Berlin.", session="talk")
    [fact] = book.graph.search_edges("who lives in Berlin")
    assert (fact.source_name, fact.target_name) == ("Mira", "Berlin")


def test_a_memory_about_nothing_is_no_episode(book: Engine) -> None:
    book.remember("short answers are better")
    assert book.graph.counts().episodes == 0


def test_memories_of_this_process_do_not_feed_it(book: Engine) -> None:
    book.remember("Mira lives in Berlin.", tier="ultra")
    assert book.graph.counts().episodes == 0


def test_the_setting_leaves_the_graph_alone(tmp_path: Path) -> None:
    with commonplace.open(tmp_path, embedder="hashing", settings=Settings(graph=GraphSettings(remember="off"))) as book:
        book.remember("Mira lives in Berlin.")
        assert book.graph.counts().episodes == 0


def test_a_memory_that_only_calls_off_what_was_said_is_an_episode_too(book: Engine, clock: Clock) -> None:
    book.remember("Mira lives in Berlin.")
    clock.move(days=1)
    book.remember("Mira moved to Munich.")
    clock.move(days=1)
    book.remember("the move was called off")
    assert book.graph.counts().episodes == 3


def test_what_people_change_on_a_page_is_in_the_graph(book: Engine) -> None:
    book.remember("Mira lives in Berlin.")
    book.sync()
    [page] = (book.directory / "memory").glob("*.md")
    page.write_text(page.read_text(encoding="utf-8").replace("Berlin", "Munich"), encoding="utf-8")
    book.sync()
    assert facts(book) == ["Mira lives in Munich."]
    assert book.graph.counts().episodes == 1


def test_each_namespace_has_the_graph_of_its_own_memories(book: Engine) -> None:
    book.remember("Mira lives in Berlin.")
    with commonplace.open(book.directory, namespace="other", embedder="hashing") as other:
        other.remember("Mira lives in Munich.")
        assert facts(other) == ["Mira lives in Munich."]
    assert facts(book) == ["Mira lives in Berlin."]
