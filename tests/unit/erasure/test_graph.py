"""Forgetting what a graph holds: episodes, facts, entities, and what is only there because of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.graphs import EVER, texts
from tests.unit.clock import Clock
from tests.unit.erasure.test_erase import files, holding

import commonplace
from commonplace.engine import Engine
from commonplace.erasure.receipt import ForgetReceipt
from commonplace.errors import NotFoundError
from commonplace.graph.graphiti.outbox import WAITING
from commonplace.logs import RetrievalLog
from commonplace.types.graph import Episode

MERGER = "Agnes Abernathy works for Quillfeather Holdings. Agnes Abernathy lives in Rotterdam."
MARKS = (b"Abernathy", b"abernathi", b"Quillfeather", b"quillfeath", b"agnesabernathy", b"Rotterdam")
MOVED = "Agnes Abernathy moved to Antwerpen in February 2026."
KETTLE = "Bob uses the kettle."


@pytest.fixture
def book(book: Engine) -> Engine:
    book.graph.add_episode(KETTLE, uuid="kettle", reference_time="2026-01-05")
    return book


def names(book: Engine) -> set[str]:
    return {entity.name for entity in book._runtime.store.graph("default").list_entities(EVER)}


def aliases(book: Engine) -> set[str]:
    graph = book._runtime.store.graph("default")
    ids = [entity.id for entity in graph.list_entities(EVER)]
    return {alias.name for some in graph.aliases(ids).values() for alias in some}


def facts(book: Engine) -> dict[str, str]:
    return {fact.fact: fact.id for fact in book._runtime.store.graph("default").list_relations(EVER)}


def targets(book: Engine, source: str) -> set[str]:
    found = (book.graph.relation(each.id) for each in book._runtime.store.graph("default").list_relations(EVER))
    return {each.target_name for each in found if each.source_name == source}


def id_of(book: Engine, name: str) -> str:
    [id_] = [each.id for each in book._runtime.store.graph("default").list_entities(EVER) if each.name == name]
    return id_


def of_the_graph(receipt: ForgetReceipt) -> tuple[int, int, int]:
    return tuple(receipt.counts[name] for name in ("episodes", "entities", "relations"))  # type: ignore[return-value]


class TestAnEpisode:
    def test_it_goes_with_what_only_it_supported_and_no_file_holds_its_words(self, book: Engine) -> None:
        """The database and its log, the index over names and facts, and logs of questions."""
        before = book._runtime.store.graph("default").counts()
        book.graph.add_episode(MERGER, uuid="merger", reference_time="2026-01-05", name="Abernathy's file")
        for question in ("where does Abernathy live", MERGER, "the kettle"):
            RetrievalLog(book.directory / "logs", queries="text").write(question, {})
        book.doctor()
        book.graph.search_edges("Quillfeather")
        assert {"store.db", "logs/retrieval/retrieval.jsonl"} <= {n.removesuffix("-wal") for n in holding(book, *MARKS)}
        held = names(book)

        receipt = book.forget("merger")

        assert holding(book, *MARKS) == []
        assert (receipt.verified, receipt.found, receipt.waiting) == (True, (), ())
        assert of_the_graph(receipt) == (1, len(held - names(book)), 2)
        assert {"merger"} < set(receipt.ids)
        assert book._runtime.store.graph("default").counts() == before
        assert list(facts(book)) == [KETTLE]
        assert b'"the kettle"' in files(book)["logs/retrieval/retrieval.jsonl"]
        assert book.doctor().findings == ()

    def test_what_others_say_stays_and_what_it_had_ended_holds_again(self, book: Engine) -> None:
        book.graph.add_episode(MERGER, uuid="merger", reference_time="2026-01-05")
        before = {fact: book._runtime.store.graph("default").relations([id_])[id_] for fact, id_ in facts(book).items()}
        book.graph.add_episode(MOVED, uuid="moved", reference_time="2026-02-20")
        receipt = book.forget("moved")
        assert receipt.verified
        assert of_the_graph(receipt) == (1, 1, 1)
        after = {fact: book._runtime.store.graph("default").relations([id_])[id_] for fact, id_ in facts(book).items()}
        assert after == before
        assert holding(book, b"Antwerpen", b"antwerpen") == []
        assert holding(book, b"Rotterdam") != []

    def test_names_that_only_it_used_go_from_entities_that_stay(self, book: Engine) -> None:
        """An alias is a word of whoever used it."""
        book.graph.add_episode("auth.ts depends on token.ts.", uuid="first", reference_time="2026-01-05")
        book.graph.add_episode("src/larkspur/auth.ts depends on token.ts.", uuid="second", reference_time="2026-01-06")
        assert holding(book, b"larkspur") != []
        assert book.forget("second").verified
        assert holding(book, b"larkspur") == []
        assert {"auth.ts", "token.ts"} <= names(book)

    def test_a_name_that_several_used_goes_with_the_last_of_them_whichever_goes_first(self, book: Engine) -> None:
        """The first to use it has it in the graph; when that one goes, another one of them must."""
        book.graph.add_episode("auth.ts depends on token.ts.", uuid="plain", reference_time="2026-01-05")
        for day, id_ in ((6, "first"), (7, "second")):
            said = f"src/larkspur/auth.ts depends on token.ts on day {day}."
            book.graph.add_episode(said, uuid=id_, reference_time=f"2026-01-0{day}")
        assert book.forget("first").verified
        assert "src/larkspur/auth.ts" in names(book) | aliases(book)
        assert book.forget("second").verified
        assert "src/larkspur/auth.ts" not in names(book) | aliases(book)
        assert holding(book, b"larkspur") == []
        assert {"auth.ts", "token.ts"} <= names(book)

    def test_an_outside_graph_that_was_told_of_it_is_told_to_delete_it(self, book: Engine, tmp_path: Path) -> None:
        """In the same transaction, so that no killed run leaves it there; until then the receipt names it."""
        book.graph.add_episode(MERGER, uuid="merger", reference_time="2026-01-05", group_id="the larkspur group")
        chosen = replace(book.settings.graph, backend="graphiti-mcp", graph_uri="http://127.0.0.1:9/mcp")
        settings = replace(book.settings, graph=chosen)
        with commonplace.open(book.directory, settings=settings) as following:
            receipt = following.forget("merger")
        assert receipt.verified
        assert receipt.id not in ("", *receipt.ids), "a receipt has an id of its own"
        assert receipt.outside[0].startswith("copies of these episodes in Graphiti")
        assert [note.id for note in book._runtime.store.notes("default", WAITING)] == ["delete:merger"]
        assert holding(book, *MARKS) == []


class TestAFactOrAnEntity:
    def test_a_fact_goes_and_the_episode_that_says_it_is_named(self, book: Engine) -> None:
        book.graph.add_episode(MERGER, uuid="merger", reference_time="2026-01-05")
        [id_] = [id_ for fact, id_ in facts(book).items() if "Rotterdam" in fact]
        receipt = book.forget(id_)
        assert (of_the_graph(receipt), receipt.ids) == ((0, 0, 1), (id_,))
        assert receipt.notices == ("episodes that mention it stay; forget them by their ids: merger",)
        assert receipt.verified
        assert id_ not in facts(book).values()
        assert {"Rotterdam", "Agnes Abernathy"} <= names(book)
        assert [each for each in texts(book._runtime.store, "default")["relation"] if "Rotterdam" in each] == []

    def test_a_fact_that_ended_another_lets_it_hold_again(self, book: Engine) -> None:
        book.graph.add_episode(MERGER, uuid="merger", reference_time="2026-01-05")
        book.graph.add_episode(MOVED, uuid="moved", reference_time="2026-02-20")
        graph = book._runtime.store.graph("default")
        first, second = (next(id_ for fact, id_ in facts(book).items() if word in fact) for word in ("Rotter", "Antwe"))
        assert graph.relations([first])[first].valid_to is not None
        book.forget(second)
        assert graph.relations([first])[first].valid_to is None
        assert book.doctor().findings == ()

    def test_an_entity_goes_with_every_fact_about_it_and_all_that_was_merged_with_it(self, book: Engine) -> None:
        book.graph.add_triplet("Agnes Abernathy", "WORKS_FOR", "Quillfeather Holdings", reason="Abernathy said so")
        book.graph.add_triplet("Aggie Abernathy", "LIVES_IN", "Rotterdam")
        book.graph.merge("Agnes Abernathy", "Aggie Abernathy", reason="Abernathy is one person")
        receipt = book.forget(id_of(book, "Aggie Abernathy"))
        assert of_the_graph(receipt) == (0, 2, 2)
        assert (receipt.verified, receipt.notices) == (True, ())
        assert names(book) >= {"Quillfeather Holdings", "Rotterdam"}
        assert holding(book, b"Abernathy", b"abernathi", b"agnesabernathy", b"said so", b"one person") == []
        assert book.doctor().findings == ()

    def test_an_id_of_nothing_is_an_error_and_nothing_goes(self, book: Engine) -> None:
        counts = book._runtime.store.graph("default").counts()
        with pytest.raises(NotFoundError, match="nothing with the id 'nobody'"):
            book.forget(["kettle", "nobody"])
        assert book._runtime.store.graph("default").counts() == counts


class TestAMemory:
    def test_the_episodes_that_it_is_go_with_it(self, book: Engine) -> None:
        """Such an episode holds no words of its own; facts and names hold them."""
        before = book._runtime.store.graph("default").counts()
        memory = book.remember(MERGER, id="merger", tags=["deal"])
        book.graph.add_episode(MERGER, uuid="an episode", reference_time="2026-01-05")
        with book._runtime.store.change_memories("default") as change:
            kept = change.graph.episodes(["an episode"])["an episode"]
            change.graph.put(replace(kept, content="", source="memory", memory=memory.id, version=1))
        receipt = book.forget(tag="deal")
        assert of_the_graph(receipt)[1:] == (3, 2)
        assert receipt.verified
        assert holding(book, *MARKS) == []
        assert book._runtime.store.graph("default").counts() == before

    def test_what_a_departure_said_of_it_goes_too(self, book: Engine) -> None:
        """That billing ran on AWS, and so on Azure since, was told by the forgotten memory alone."""
        memory = book.remember("Our billing service runs on AWS.", at="2026-01-05")
        book.remember("We switched from AWS to Azure.", at="2026-02-05")
        book.remember("We switched from Azure to Hetzner.", at="2026-02-10")
        assert {"AWS", "Azure", "Hetzner"} == targets(book, "billing service")
        book.update(memory.id, "Our billing service runs on AWS, with backups.")
        assert {"AWS", "Azure", "Hetzner"} == targets(book, "billing service")
        assert book.forget(memory.id).verified
        assert "billing service" not in names(book)
        assert targets(book, "we") == {"AWS", "Azure", "Hetzner"}

    def test_a_decision_about_a_fact_goes_with_what_stated_it(self, book: Engine) -> None:
        memory = book.remember("Our billing service runs on AWS.", at="2026-01-05")
        book.remember("We left AWS, I think.", at="2026-02-05")
        [dispute] = book.graph.disputes()
        book.graph.settle(dispute.relations[0].uuid, verdict="ended", reason="asked Tom")
        assert book.forget(memory.id).verified
        assert list(facts(book)) == [KETTLE]

    def test_old_archived_ones_let_go_of_theirs_too(self, book: Engine, clock: Clock) -> None:
        book.archive("kettle 1")
        with book._runtime.store.change_memories("default") as change:
            change.graph.put(Episode("of it", "", 1.0, 1.0, source="memory", memory="kettle 1", version=1))
        clock.move(days=40)
        assert of_the_graph(book.gc()) == (1, 0, 0)

    def test_what_a_merged_memory_says_stays_when_its_old_sources_go(self, book: Engine, clock: Clock) -> None:
        book.remember("Mira Okafor works at Zephyrion.", id="a", force=True)
        book.remember("Mira Okafor works at Zephyrion and lives in Quito.", id="b", force=True)
        known = names(book) & {"Mira Okafor", "Zephyrion", "Quito"}
        assert len(known) == 3
        merged = book.process_issue(book.ledger.create("merge", ["a", "b"], "merge")).results["merge"][0]
        clock.move(days=40)
        before = book._runtime.store.change()
        book.gc(dry_run=True)
        assert book._runtime.store.change() == before
        assert {"a", "b"} <= set(book.gc().ids)
        assert known <= names(book)
        book.forget(merged.model_dump()["new_memory_id"])
        assert known.isdisjoint(names(book))


class TestADryRun:
    def test_it_lists_what_would_go_of_the_graph_and_changes_nothing(self, book: Engine) -> None:
        book.graph.add_episode(MERGER, uuid="merger", reference_time="2026-01-05")
        RetrievalLog(book.directory / "logs", queries="text").write(MERGER, {})
        change, held = book._runtime.store.change(), (names(book), facts(book), texts(book._runtime.store, "default"))
        rehearsed = book.forget("merger", dry_run=True)
        assert (book._runtime.store.change(), (names(book), facts(book), texts(book._runtime.store, "default"))) == (
            change,
            held,
        )
        assert (rehearsed.dry_run, rehearsed.id, rehearsed.verified) == (True, "", False)
        receipt = book.forget("merger")
        assert (rehearsed.ids, rehearsed.counts) == (receipt.ids, receipt.counts)


class TestANamespace:
    def test_it_goes_with_its_graph_and_another_keeps_the_same(self, book: Engine, clock: Clock) -> None:
        with commonplace.open(book.directory, namespace="theirs", clock=clock) as theirs:
            theirs.graph.add_episode(MERGER, uuid="merger", reference_time="2026-01-05")
            theirs.graph.add_episode("Zebedee Zoidberg lives in Zwolle.", uuid="more", reference_time="2026-01-05")
            theirs.graph.merge("Agnes Abernathy", "Zebedee Zoidberg", reason="a slip of the pen")
        book.graph.add_episode(KETTLE, uuid="merger", reference_time="2026-01-05")
        held = (names(book), facts(book))
        rehearsed = book.forget_namespace("theirs", confirm="theirs", dry_run=True)
        receipt = book.forget_namespace("theirs", confirm="theirs")
        assert of_the_graph(receipt) == of_the_graph(rehearsed) == (2, 5, 3)
        assert receipt.verified
        assert holding(book, *MARKS, b"Zebedee", b"zebede", b"Zwolle", b"zwoll", b"slip of the pen") == []
        assert (names(book), facts(book)) == held
        assert book._runtime.store.namespaces(with_texts=True) == sorted(
            ["", "default", "\x1fentity\x1fdefault", "\x1frelation\x1fdefault"]
        )
        assert book.doctor().findings == ()
