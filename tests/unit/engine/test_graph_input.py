"""What is remembered feeds the graph, and what is let go leaves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.graph import episodes
from commonplace.models.contract import TokenizedText
from commonplace.models.hashing import HashingEmbedder
from commonplace.settings import Settings
from commonplace.settings.schema import GraphSettings


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
    assert book._runtime.store.graph("default").episodes([episode.uuid])[episode.uuid].content == ""
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


# What it costs a memory to feed the graph: what is read, embedded and written, and when.


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were embedded, in their order."""
    texts: list[str] = []
    embed = HashingEmbedder.embed

    def noted(self: HashingEmbedder, given: Sequence[TokenizedText]) -> object:
        texts.extend(each.text for each in given)
        return embed(self, given)

    monkeypatch.setattr(HashingEmbedder, "embed", noted)
    return texts


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, book: Engine) -> list[tuple[str, bool]]:
    """The texts that were read for what they say, each with whether other writers had to wait for it."""
    texts: list[tuple[str, bool]] = []
    understand = episodes.understand

    def noted(content: str, *given: object, **named: object) -> object:
        texts.append((content, book._runtime.store._connections._open_pool()._writing_thread is not None))  # type: ignore[attr-defined]
        return understand(content, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(episodes, "understand", noted)
    return texts


def test_a_text_is_read_once_and_before_others_have_to_wait(book: Engine, read: list[tuple[str, bool]]) -> None:
    """A long one takes seconds, in which no other process could write."""
    memory = book.remember("Mira lives in Berlin.")
    book.update(memory.id, "Mira lives in Munich.")
    book.update(memory.id, tags=["home"], tier="long")
    book.archive(memory.id)
    book.restore_memory(memory.id)
    book.remember_many([{"content": "Tom lives in Rome."}, {"content": "Ada: I live in Oslo.", "session": "talk"}])
    assert read == [
        ("Mira lives in Berlin.", False),
        ("Mira lives in Munich.", False),
        ("Mira lives in Munich.", False),
        ("Tom lives in Rome.", False),
        ("Ada: I live in Oslo.", False),
    ]
    assert book.graph.counts().episodes == 3


def test_the_same_words_are_read_for_a_turn_of_a_conversation_as_for_one(book: Engine) -> None:
    """Only in a conversation does a text begin with who speaks: the two say different things."""
    book.remember_many(
        [
            {"content": "xan: I live in Oslo.", "at": "2026-03-01"},
            {"content": "xan: I live in Oslo.", "at": "2026-03-01", "session": "talk"},
        ]
    )
    facts = book.graph.search_edges("who lives in Oslo", 10)
    assert sorted(each.source_name for each in facts) == ["the user", "xan"]
    assert book.graph.counts().episodes == 2


def test_a_text_that_names_nothing_embeds_nothing_but_itself(book: Engine, embedded: list[str]) -> None:
    book.remember("short answers are better")
    assert embedded == ["short answers are better"]
    assert book.graph.counts().episodes == 0


def test_what_was_named_lately_is_not_embedded_again(book: Engine, embedded: list[str]) -> None:
    """With a model behind an address each embedding is a request."""
    book.remember("Mira Okafor called.")
    embedded.clear()
    book.remember("Mira Okafor wrote back.")
    assert embedded == ["Mira Okafor wrote back."]


def test_a_change_beside_the_words_leaves_the_episode_as_it_was_known(book: Engine, clock: Clock) -> None:
    """Nothing new was said: what is known of the world is known since then."""
    memory = book.remember("Mira lives in Berlin.")
    [fact] = book.graph.search_edges("where Mira lives")
    [episode] = book.graph.episodes()
    clock.move(days=1)
    book.update(memory.id, tags=["home"])
    assert book.graph.search_edges("where Mira lives", as_of=clock.now - 3600)[0].uuid == fact.uuid
    [after] = book.graph.episodes()
    assert (after.uuid, after.content, after.created_at) == (episode.uuid, "Mira lives in Berlin.", episode.created_at)
    clock.move(days=1)
    again = book.remember("mira lives in berlin", tags=["city"])
    assert (again.id, again.tags) == (memory.id, ("home", "city"))
    [stored] = book._runtime.store.graph("default").episodes_of_memory(memory.id)
    assert (stored.id, stored.version) == (episode.uuid, 3)


def test_another_time_of_the_same_words_is_another_episode(book: Engine, clock: Clock) -> None:
    """Dates in it are read as seen from its time."""
    memory = book.remember("Mira moved to Berlin yesterday.")
    [before] = book.graph.search_edges("where Mira lives")
    book.update(memory.id, at="2025-01-10T12:00:00Z")
    [after] = book.graph.search_edges("where Mira lives")
    assert (before.valid_from, after.valid_from) == (
        datetime(2026, 3, 1, tzinfo=UTC),
        datetime(2025, 1, 9, tzinfo=UTC),
    )
    assert book.graph.counts().episodes == 1


def test_a_memory_that_says_more_than_the_graph_takes_is_told_so(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episodes, "MAX_FACTS", 1)
    memory = book.remember("Mira lives in Berlin. Tom lives in Rome.")
    notice = "the graph took 1 of the 2 facts in it: give it in parts to have them all"
    assert memory.notices == (notice,)
    assert book.graph.counts().relations == 1
    added = book.graph.add_episode("Ada lives in Oslo. Zoe lives in Lisbon.")
    assert (added.notices, len(added.relations)) == ((notice,), 1)


def test_a_long_list_is_written_in_portions_of_text(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What 256 long memories say would keep other writers waiting for seconds."""
    from commonplace.memory import admission as making

    monkeypatch.setattr(making, "BATCH_CHARACTERS", 45)
    numbers: list[int] = []
    change = type(book._runtime.store).change_memories

    def noted(self: object, *given: object, **named: object) -> object:
        numbers.append(len(book.list()))
        return change(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(book._runtime.store), "change_memories", noted)
    kept = book.remember_many([{"content": f"Mira lives in {city}."} for city in ("Rome", "Oslo", "Bonn", "Bern")])
    assert len({each.id for each in kept}) == 4
    assert numbers == [0, 2]


def test_what_is_let_go_asks_no_embedder_for_what_stays_as_it_is(book: Engine, embedded: list[str]) -> None:
    """One behind an address may not answer, and other writers wait meanwhile."""
    book.remember("Mira Okafor lives in Berlin.")
    archived = book.remember("Mira Okafor works for Acme in Berlin.")
    forgotten = book.remember("Mira Okafor uses Postgres.")
    embedded.clear()
    book.archive(archived.id)
    book.forget(forgotten.id)
    assert embedded == []
    assert [each.fact for each in book.graph.search_edges("where does Mira live")] == ["Mira Okafor lives in Berlin."]
