"""Forgetting: what goes with what, what a receipt says, and that no file of the store holds the words afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.contract.graphs import EVER
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.erasure.copies import ErasureRuntime
from commonplace.erasure.erase import forget
from commonplace.erasure.receipt import ForgetReceipt
from commonplace.erasure.select import EraseRequest, Plan, add_rows
from commonplace.erasure.verify import verify
from commonplace.errors import NotFoundError, UsageError
from commonplace.logs import RetrievalLog
from commonplace.types import Document

SECRET = "The merger with Quillfeather closes on the ninth. Nobody but Ms Abernathy may know the price."
MARKS = (b"Quillfeather", b"quillfeather", b"Abernathy", b"closes on the ninth")


def files(book: Engine) -> dict[str, bytes]:
    root = book.directory
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def holding(book: Engine, *marks: bytes) -> list[str]:
    return sorted(name for name, data in files(book).items() if any(mark in data for mark in marks))


def place_of(book: Engine, **values: Any) -> ErasureRuntime:
    own = {"pages": book._runtime.journal, "graph": lambda: book._runtime.graph_runtime(True)}
    return ErasureRuntime(book.directory, book._runtime.store, book._runtime.index, **{**own, **values})


def memories_in(receipt: ForgetReceipt) -> tuple[str, ...]:
    """Return the ids of the memories that went; those of the graph's parts come behind."""
    return receipt.ids[: receipt.counts["memories"]]


def in_graph(book: Engine) -> tuple[set[str], set[str], set[str]]:
    """Return the ids of the episodes, entities and facts that there are, past ones too."""
    graph = book._runtime.store.graph("default")
    lists = (graph.list_episodes(EVER), graph.list_entities(EVER), graph.list_relations(EVER))
    episodes, entities, relations = ({each.id for each in listed} for listed in lists)
    return episodes, entities, relations


class TestWhatIsLeft:
    def test_no_file_of_the_store_holds_the_words_afterwards(
        self, book: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every version, live, replaced or archived; in the database, its log, the index, logs; in any form."""
        monkeypatch.setattr("commonplace.journal.sync.FLUSH_AFTER_S", 600.0)  # no page comes in between
        memory = book.remember(SECRET, tags=["quillfeather"], metadata={"who": "Ms Abernathy"})
        clock.move(days=1)
        book.update(memory.id, content=SECRET.replace("ninth", "tenth"))
        book.link(memory.id, "kettle 1")
        book.archive(memory.id)
        book.restore_memory(memory.id)
        RetrievalLog(book.directory / "logs", queries="text").write("merger with Quillfeather closes on the ninth", {})
        RetrievalLog(book.directory / "logs", queries="hash").write(SECRET, {})
        RetrievalLog(book.directory / "logs", queries="text").write("what Quillfeathers pay", {})
        RetrievalLog(book.directory / "logs", queries="text").write("kettle", {})
        book.doctor()
        book.search("the merger with Quillfeather")
        store = book._runtime.store
        numbers = store.passages_of("default", [version.number for version in store.versions("default", memory.id)])
        rows = store.tokens("default", numbers).values()
        bytes_of_it = [bytes.fromhex(memory.id.replace("-", "")), *(row.vector for row in rows)]
        assert {"store.db-wal", "logs/retrieval/retrieval.jsonl"} <= set(holding(book, *MARKS))
        before = in_graph(book)

        receipt = book.forget(memory.id)

        assert holding(book, *MARKS, *bytes_of_it) == []
        assert (receipt.verified, receipt.found, receipt.waiting, receipt.notices) == (True, (), (), ())
        episodes, entities, relations = (was - now for was, now in zip(before, in_graph(book), strict=True))
        assert receipt.ids[0] == memory.id
        assert sorted(receipt.ids[1:]) == sorted([*episodes, *entities, *relations])
        assert len(episodes) == 1
        assert entities
        assert receipt.counts == {
            "memories": 1,
            "derived": 0,
            "versions": 3,
            "passages": 3,
            "links": 1,
            "owners": 0,
            "knowledge": 0,
            "contexts": 0,
            "blocks": 0,
            "episodes": 1,
            "entities": len(entities),
            "relations": len(relations),
            "issues": 0,
            "reversals": 0,
            "log_lines": 3,
            "in_process": 0,
            "vault_notes": 0,
        }
        checked = dict(receipt.checked)
        assert checked.keys() == files(book).keys()
        assert checked["logs/retrieval/retrieval.jsonl"] == len(files(book)["logs/retrieval/retrieval.jsonl"])
        assert b'"kettle"' in files(book)["logs/retrieval/retrieval.jsonl"]

    def test_nothing_that_asks_finds_it_now_or_as_of_then(self, book: Engine, clock: Clock) -> None:
        """Time travel must not bring back what somebody had the right to have deleted."""
        memory = book.remember(SECRET)
        then = clock()
        clock.move(days=1)
        book.forget(memory.id)
        assert [hit.owner_id for hit in book.search("Quillfeather merger", min_score=0.0, method="bm25").hits] == []
        assert memory.id not in {hit.owner_id for hit in book.search(SECRET, min_score=0.0, as_of=then).hits}
        assert memory.id not in {each.id for each in book.list(statuses=())}
        with pytest.raises(NotFoundError):
            book.get(memory.id)
        with pytest.raises(NotFoundError):
            book.versions(memory.id)
        assert len(book.list()) == 9
        assert book.doctor().findings == ()

    def test_a_page_that_deletion_did_not_overwrite_is_gone_too(self, book: Engine) -> None:
        """Another program may have written to the database without overwriting what it deleted."""
        memory = book.remember(SECRET)
        with closing(sqlite3.connect(book.directory / "store.db")) as db:
            db.execute("PRAGMA secure_delete = OFF")
            db.execute("CREATE TABLE copy AS SELECT content FROM memories")
            db.execute("DROP TABLE copy")
            db.commit()
        assert book.forget(memory.id).verified
        assert holding(book, *MARKS) == []

    def test_what_remains_may_say_the_same(self, book: Engine) -> None:
        """A sentence that another memory has was not forgotten there, and is no trace of this one."""
        memory = book.remember(f"{SECRET} Kettle 3 boils in 5 minutes")
        receipt = book.forget(memory.id)
        assert receipt.verified
        assert receipt.excluded_needles >= 1
        assert holding(book, b"Kettle 3 boils in 5 minutes") == ["store.db"]

    def test_a_copy_in_another_namespace_stays_and_its_id_and_checksum_are_no_traces(
        self, book: Engine, tmp_path: Path
    ) -> None:
        """An export that was taken in beside its original keeps the ids; the database packs them."""
        memory = book.remember(SECRET)
        said = book.graph.add_episode("Bob uses the kettle.", reference_time="2026-01-05")
        book.export(tmp_path / "all.jsonl")
        with commonplace.open(book.directory, namespace="copy") as copy:
            copy.import_(tmp_path / "all.jsonl")

            receipts = [book.forget(each) for each in (memory.id, said.episode.uuid)]

            assert [(receipt.verified, receipt.found) for receipt in receipts] == [(True, ())] * 2
            assert copy.get(memory.id).content == SECRET
            assert copy.graph.episode(said.episode.uuid).content == "Bob uses the kettle."

    def test_a_link_to_it_leaves_the_page_of_the_other_memory(self, book: Engine) -> None:
        """The page of what stays names what it is linked to by id, which would be a trace."""
        for id_ in ("standup", "quillfeather-merger", "kettle-descaled"):
            book.remember(f"{id_} is a memory with a page", id=id_)
        book.link("standup", "quillfeather-merger")
        book.link("standup", "kettle-descaled")
        book.sync()
        receipt = book.forget("quillfeather-merger")
        assert (receipt.found, receipt.verified) == ((), True)
        [page] = (book.directory / "memory").glob("*.md")
        assert "Links: [[kettle-descaled]]" in page.read_text("utf-8")
        book.sync()
        assert "Links: [[kettle-descaled]]" in page.read_text("utf-8")

    def test_a_file_that_somebody_put_there_is_told_of(self, book: Engine) -> None:
        """It is not ours to delete, and the receipt must not claim that nothing is left."""
        memory = book.remember(SECRET)
        (book.directory / "notes").mkdir()
        (book.directory / "notes" / "mine.txt").write_text(f"> {SECRET.upper()}\n{SECRET.lower()}")
        receipt = book.forget(memory.id)
        assert not receipt.verified
        assert receipt.found == (
            ("notes/mine.txt", "a tag, name or source of it"),
            ("notes/mine.txt", "words of it"),
        )
        assert "remove or edit those files" in receipt.notices[0]
        assert book.receipts() == [receipt]

    def test_a_trace_in_the_index_is_found_though_no_file_betrays_it(self, book: Engine) -> None:
        """Words and vectors are packed there; the index itself is asked."""
        memory = book.remember(SECRET)
        book.doctor()
        book._runtime.maintenance.update_index()
        with book._runtime.store.snapshot():
            plan = Plan((memory.id,))
            add_rows(plan, book._runtime.store, "default")
        with book._runtime.store.change_memories("default") as change:
            change.erase([memory.id])
        receipt = verify(place_of(book), ForgetReceipt("default", 0.0, counts=plan.counts()), plan, [])
        assert [what for file, what in receipt.found if file == "index"] == [
            "a passage of it",
            "its vector",
            "a word that nothing else has",
        ]

    def test_a_text_too_short_to_be_looked_for_is_said_to_be(self, book: Engine) -> None:
        """Its rows are gone; that three letters stand in no file cannot be shown."""
        memory = book.remember("Oslo")
        receipt = book.forget(memory.id)
        assert receipt.verified
        assert receipt.notices == ("2 of its texts have fewer than 8 bytes, too short to search for in files",)


class TestADryRun:
    def test_it_changes_nothing_and_tells_what_would_go(self, book: Engine) -> None:
        """The same path up to the first write."""
        memory = book.remember(SECRET, session="talk")
        book.remember("Later", session="talk", derived_from=[memory.id])
        RetrievalLog(book.directory / "logs", queries="text").write(SECRET, {})
        before, change = files(book), book._runtime.store.change()
        rehearsed = book.forget(session="talk", dry_run=True)
        after = files(book)
        del before["store.db-shm"], after["store.db-shm"]  # where readers put their marks
        assert (after, book._runtime.store.change()) == (before, change)
        assert (rehearsed.dry_run, rehearsed.id, rehearsed.verified, rehearsed.checked) == (True, "", False, ())
        receipt = book.forget(session="talk")
        assert (rehearsed.ids, rehearsed.counts) == (receipt.ids, receipt.counts)
        assert book.receipts() == [receipt]


class TestWhatCanBeForgotten:
    @pytest.mark.parametrize(
        ("by", "gone"),
        [
            ({"id": ["a", "c"]}, {"a", "c"}),
            ({"tag": "red"}, {"a", "d"}),
            ({"source": "standup"}, {"b"}),
            ({"session": "talk"}, {"c", "turn"}),
            ({"id": "page"}, {"page"}),
            ({"path": "notes/plan.md"}, {"notes/plan.md"}),
        ],
    )
    def test_by_id_tag_source_session_and_path(
        self, book: Engine, tmp_path: Path, by: dict[str, Any], gone: set[str]
    ) -> None:
        """Live and archived memories, documents, and what is indexed of files."""
        book.remember("An apple for the teacher", id="a", tags=["red"])
        book.remember("A boat for the ferryman", id="b", source="standup")
        book.remember("A coat for the porter", id="c", session="talk")
        book.remember("A dress for the dancer", id="d", tags=["red", "blue"])
        book.archive("d")
        book.index_documents(
            [Document("page", "An elbow for the fiddler"), Document("turn", "A fan for the singer", session="talk")]
        )
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "plan.md").write_text("# Plan\n\nA garden for the hermit")
        book.index(tmp_path / "notes")
        if "path" in by:
            by = {"path": tmp_path / by["path"]}
            gone = {str(tmp_path / "notes" / "plan.md")}
        everything = {"a", "b", "c", "d", "page", "turn", str(tmp_path / "notes" / "plan.md")}
        assert everything <= held(book)
        receipt = book.forget(**by)
        assert receipt.verified
        assert everything - held(book) == gone
        assert len(receipt.ids) == len(gone)

    def test_a_file_stays_and_the_receipt_says_so(self, book: Engine, tmp_path: Path) -> None:
        """It is the user's; what is indexed of it comes back with the next build."""
        path = tmp_path / "plan.md"
        path.write_text(f"---\ntags: [plan]\n---\n# Plan\n\n{SECRET}")
        book.index(path)
        noted = book.remember("The plan is with Ada", tags=["plan"])
        by_tag = book.forget(tag="plan")
        assert memories_in(by_tag) == (noted.id,)
        assert by_tag.notices == (f"indexed files have that tag too and stay; forget them by path: {path}",)
        receipt = book.forget(path=path)
        assert path.read_text().endswith(SECRET)
        assert receipt.outside[0].startswith(f"the file {path} is yours and stays")
        assert holding(book, *MARKS) == []
        assert book.index(path).added == 1

    def test_a_memory_of_this_process_is_forgotten_with_what_logs_quote_of_it(self, book: Engine) -> None:
        """It was never stored, but somebody may have asked for it."""
        memory = book.remember(SECRET, tier="ultra", tags=["deal"])
        RetrievalLog(book.directory / "logs", queries="text").write(SECRET, {})
        receipt = book.forget(tag="deal")
        assert (receipt.ids, receipt.counts["in_process"], receipt.counts["memories"]) == ((memory.id,), 1, 0)
        assert receipt.verified
        assert holding(book, *MARKS) == []
        with pytest.raises(NotFoundError):
            book.get(memory.id)

    @pytest.mark.parametrize(
        "by", [{"id": "x"}, {"id": ["kettle 1", "x"]}, {"tag": "x"}, {"source": "x"}, {"path": "x"}]
    )
    def test_what_is_not_there_is_an_error_and_nothing_goes(self, book: Engine, by: dict[str, Any]) -> None:
        """A slip in one id of a list must not be found out afterwards."""
        before = held(book)
        with pytest.raises(NotFoundError, match="nothing"):
            book.forget(**by)
        assert held(book) == before
        assert book.receipts() == []

    @pytest.mark.parametrize("by", [{}, {"id": "a", "tag": "b"}, {"tag": " "}, {"id": []}, {"id": ""}, {"path": ""}])
    def test_exactly_one_thing_is_named(self, book: Engine, by: dict[str, Any]) -> None:
        """To forget by nothing, or by two things at once, would be guessed."""
        with pytest.raises(UsageError):
            book.forget(**by)


def held(book: Engine) -> set[str]:
    memories = {each.id for each in book.list(statuses=(), limit=10_000)}
    owners = book._runtime.store.owners(
        "default", book._runtime.store.matching_owners("default", commonplace.types.Filter())
    )
    return memories | {owner.path or owner.id for owner in owners.values()}


class TestCopies:
    def test_what_was_derived_goes_too_whatever_else_it_was_made_from(self, book: Engine) -> None:
        """Nobody can tell which of its words came from where; the other sources stay."""
        book.remember(SECRET, id="a")
        book.remember("Nobody asked the harbour master about the tides", id="b")
        book.remember("Quillfeather and the tides, merged", id="ab", derived_from=["a", "b"])
        book.remember("A digest of the merged ones about Quillfeather", id="abc", derived_from=["ab"])
        receipt = book.forget("a")
        assert memories_in(receipt) == ("a", "ab", "abc")
        assert receipt.counts["derived"] == 2
        assert "even if they have other sources: ab, abc" in receipt.notices[0]
        assert holding(book, *MARKS) == []
        assert book.get("b").status == "active"

    def test_archived_sources_go_with_what_they_were_merged_into_and_live_ones_stay(self, book: Engine) -> None:
        """An archived source is the same text under another id, in no list that a person sees."""
        book.remember(SECRET, id="a")
        book.remember("The tides are told by the harbour master", id="b")
        book.remember(f"{SECRET} The tides are told by the harbour master, they say", id="ab", derived_from=["a", "b"])
        book.archive("a")
        receipt = book.forget("ab")
        assert memories_in(receipt) == ("ab", "a")
        assert receipt.notices == (
            "archived memories that it was merged from are deleted too: a",
            "it was derived from memories that are still live and stay: b",
        )
        assert holding(book, *MARKS) == []

    def test_archived_sources_of_archived_sources_go_too(self, book: Engine) -> None:
        """Of what was merged twice, the oldest copy has the same words under yet another id."""
        book.remember(SECRET, id="a")
        book.remember(f"{SECRET} The tides are told by the harbour master", id="b", derived_from=["a"])
        book.archive("a")
        book.remember("The harbour master and the price of Quillfeather", id="c", derived_from=["b"])
        book.archive("b")
        receipt = book.forget("c")
        assert memories_in(receipt) == ("c", "a", "b")
        assert "archived memories that it was merged from are deleted too: a, b" in receipt.notices
        assert holding(book, *MARKS) == []

    @pytest.mark.parametrize("is_dry", [True, False])
    def test_what_it_was_merged_with_is_active_again_as_nothing_else_tells_it_any_more(
        self, book: Engine, clock: Clock, is_dry: bool
    ) -> None:
        """The merge took it out of sight; whoever forgets one of two memories did not ask to lose the other."""
        for id_, text in (
            ("a", "Quillfeather sails at noon"),
            ("b", "The tide turns at six"),
            ("c", "Mira keeps bees"),
        ):
            book.remember(text, id=id_, tags=[id_])
        before = book.get("b")
        clock.move(days=1)
        report = book.process_issue(book.ledger.create("merge", ["a", "b"], "merge"))
        first = report.results["merge"][0].new_memory_id
        clock.move(days=1)
        book.process_issue(book.ledger.create("merge", [first, "c"], "merge"))
        clock.move(days=300)
        receipt = book.forget("a", dry_run=is_dry)
        assert receipt.notices[-1] == "other memories that it was merged with become active again: b, c"
        if is_dry:
            assert book.get("b").status == "archived"
            return
        assert (receipt.verified, receipt.found) == (True, ())
        again = book.get("b")
        assert (again.content, again.tags, again.status, again.version) == (before.content, ("b",), "active", 1)
        assert again.last_used.timestamp() == clock()
        assert {memory.id for memory in book.list()} >= {"b", "c"}
        assert first not in {memory.id for memory in book.list(statuses=())}
        assert [hit.owner_id for hit in book.recall("when does the tide turn", min_score=0).hits][:1] == ["b"]
        assert [each.name for each in book.graph.search_entities("Mira").entities] == ["Mira"]
        assert book.doctor().is_healthy

    def test_only_the_other_part_of_a_later_merge_is_active_again(self, book: Engine, clock: Clock) -> None:
        """The first merge carries on what it was made of."""
        for id_, text in (
            ("a", "Quillfeather sails at noon"),
            ("b", "The tide turns at six"),
            ("c", "Mira keeps bees"),
        ):
            book.remember(text, id=id_)
        report = book.process_issue(book.ledger.create("merge", ["a", "b"], "merge"))
        first = report.results["merge"][0].new_memory_id
        clock.move(days=1)
        book.process_issue(book.ledger.create("merge", [first, "c"], "merge"))
        book.forget("c")
        assert book.get(first).status == "active"
        assert {id_: book.get(id_).status for id_ in "ab"} == {"a": "archived", "b": "archived"}

    def test_what_was_archived_as_a_part_of_a_merge_stays_archived(self, book: Engine, clock: Clock) -> None:
        """Somebody did not want it any more; that something else is forgotten does not bring it back."""
        for id_, text in (("a", "Quillfeather sails at noon"), ("b", "The tide turns at six")):
            book.remember(text, id=id_)
        report = book.process_issue(book.ledger.create("merge", ["a", "b"], "merge"))
        clock.move(days=1)
        book.archive(report.results["merge"][0].new_memory_id)
        assert book.forget("a").notices[-1].startswith("other memories that it was made from stay archived;")
        assert book.get("b").status == "archived"

    def test_what_somebody_archived_stays_archived_and_is_named(self, book: Engine, clock: Clock) -> None:
        book.remember("Quillfeather sails at noon", id="a")
        book.remember("The tide turns at six", id="b")
        book.remember("Quillfeather and the tides, merged by hand", id="ab", derived_from=["a", "b"])
        clock.move(days=1)
        book.archive("b")
        assert book.forget("a").notices[-1] == (
            "other memories that it was made from stay archived; `commonplace memory restore` brings them back: b"
        )
        assert book.get("b").status == "archived"

    def test_a_version_that_was_derived_counts_though_the_latest_is_not(self, book: Engine) -> None:
        """The version before is still read by `as_of`."""
        book.remember("The first of them all", id="a")
        book.remember("What the first one says", id="b", derived_from=["a"])
        book.remember("Something of its own", id="b")
        assert memories_in(book.forget("a")) == ("a", "b")

    def test_what_another_process_writes_meanwhile_is_not_missed(self, book: Engine, tmp_path: Path) -> None:
        """A version that came after the plan was made has other words, which are looked for too."""
        book.remember("The tides are told by the harbour master", id="a")

        def interrupted() -> float:
            with commonplace.open(book.directory) as other:
                other.update("a", content=SECRET)
            return 0.0

        receipt = forget(place_of(book, clock=interrupted), "default", EraseRequest(ids=("a",)))
        assert receipt.counts["versions"] == 2
        assert holding(book, *MARKS) == []
