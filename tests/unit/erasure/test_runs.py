"""Runs of forgetting: whole namespaces, what was archived long ago, Markdown, backups, receipts, and what waits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.clock import Clock
from tests.unit.erasure.test_erase import MARKS, SECRET, files, holding, place_of

import commonplace
from commonplace.engine import Engine
from commonplace.erasure import erase
from commonplace.erasure.copies import FORGETTING, PendingRun, finish_runs
from commonplace.erasure.erase import forget
from commonplace.erasure.receipt import ForgetReceipt
from commonplace.erasure.select import EraseRequest
from commonplace.errors import NotFoundError, StoreBusyError, UsageError
from commonplace.store.schema import WHOLE_STORE
from commonplace.types import Document, JournalBlock, Note


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        yield book


class TestWhatWasArchived:
    def test_what_was_archived_long_enough_ago_goes_in_one_run(self, book: Engine, clock: Clock) -> None:
        """Thirty days by the setting; the long tier counts too, and what is live never goes."""
        for name in ("old", "older", "young", "live"):
            book.remember(f"Kettle {name}: {SECRET}" if name == "old" else f"Kettle {name}", id=name, tier="long")
        book.archive("older")
        clock.move(days=1)
        book.archive("old")
        clock.move(days=20)
        book.archive("young")
        clock.move(days=10)
        assert book.gc(dry_run=True).ids == ("old", "older")
        receipt = book.gc()
        assert (receipt.ids, receipt.verified) == (("old", "older"), True)
        assert {each.id for each in book.list(statuses=())} == {"young", "live"}
        assert holding(book, *MARKS) == []
        assert book.receipts() == [receipt]

    def test_what_was_derived_from_it_stays_as_it_is_live(self, book: Engine, clock: Clock) -> None:
        """The sources of a merge are archived: to forget the merged one with them would lose what is in use."""
        book.remember("The tides are told by the harbour master", id="a")
        book.remember("The tides are told, they say, by the harbour master alone", id="b", derived_from=["a"])
        book.archive("a")
        receipt = book.gc(0)
        assert (receipt.ids, receipt.verified) == (("a",), True)
        assert book.get("b").status == "active"

    def test_nothing_old_enough_is_no_error_and_leaves_no_receipt(self, book: Engine, clock: Clock) -> None:
        """It runs every night."""
        book.remember("Kettle", id="a")
        book.archive("a")
        clock.move(days=29.9)
        before = files(book)
        receipt = book.gc()
        assert (receipt.ids, receipt.id, receipt.verified) == ((), "", True)
        changed = {name for name, data in files(book).items() if before.get(name) != data}
        assert changed <= {"forgetting.lock", "store.db-shm"}
        assert book.gc(29.9).ids == ("a",)

    @pytest.mark.parametrize("days", [-1, float("nan"), 36_501, "7", True])
    def test_days_out_of_range_are_refused(self, book: Engine, days: Any) -> None:
        with pytest.raises(UsageError, match="older_than_days"):
            book.gc(days)


class TestANamespace:
    def test_everything_goes_with_its_name_and_nothing_of_another(self, book: Engine, tmp_path: Path) -> None:
        """Memories, documents, links and past versions; ids that another namespace also has are that one's own."""
        with commonplace.open(book.directory, namespace="quillfeather deal") as other:
            other.remember(SECRET, id="a")
            other.update("a", content=SECRET.replace("ninth", "tenth"))
            other.remember("The tides are told by the harbour master", id="b")
            other.link("a", "b")
            other.index_documents([Document("page", f"A page about it. {SECRET}")])
            book.remember("Kettle", id="a")
            receipt = book.forget_namespace("quillfeather deal", confirm="quillfeather deal")
            assert (receipt.verified, receipt.ids, receipt.namespace) == (True, (), "quillfeather deal")
            assert receipt.counts["memories"] == 2
            assert (receipt.counts["versions"], receipt.counts["owners"], receipt.counts["links"]) == (3, 1, 1)
            assert other.receipts() == [receipt]
        assert holding(book, *MARKS[:1], *MARKS[2:]) == []
        assert [name for name in book.namespaces() if name] == ["default"]
        assert book.receipts() == []
        assert book.get("a").content == "Kettle"

    def test_its_own_receipt_is_nothing_that_is_left(self, book: Engine) -> None:
        """The receipt names the namespace, and people write of a project by its name."""
        for text in ("acme-billing", "Ann moved to acme-billing.\nacme-billing"):
            with commonplace.open(book.directory, namespace="acme-billing") as other:
                other.remember(text, tags=["acme-billing"], source="acme-billing")
                receipt = other.forget_namespace("acme-billing", confirm="acme-billing")
            assert (receipt.found, receipt.notices, receipt.verified) == ((), (), True)

    def test_its_exact_name_is_given_twice(self, book: Engine) -> None:
        book.remember(SECRET)
        with pytest.raises(UsageError, match="give its exact name twice"):
            book.forget_namespace("default", confirm="defualt")
        for name in ("Default", "", "other"):
            with pytest.raises(NotFoundError, match="there is no namespace"):
                book.forget_namespace(name, confirm=name)
        assert len(book.list()) == 1

    def test_a_dry_run_changes_nothing(self, book: Engine) -> None:
        book.remember(SECRET, id="a")
        before, change = files(book), book._runtime.store.change()
        receipt = book.forget_namespace("default", confirm="default", dry_run=True)
        after = files(book)
        del before["store.db-shm"], after["store.db-shm"]
        assert (after, book._runtime.store.change(), receipt.counts["memories"], receipt.id) == (before, change, 1, "")

    def test_it_can_be_used_again_and_a_backup_of_it_is_still_known(self, book: Engine) -> None:
        """The backup holds what other namespaces have, too."""
        book.remember(SECRET, id="a", tier="ultra")
        book.remember(SECRET, id="b")
        with book._runtime.store.change_memories(WHOLE_STORE) as change:
            change.put(Note("backup", "/b.zip", 0.0, json.dumps({"path": "/b.zip", "at": ""})))
        receipt = book.forget_namespace("default", confirm="default")
        assert receipt.outside[0] == "the backup /b.zip of 1970-01-01T00:00:00Z, no longer there"
        assert book.list() == []
        book.remember("Kettle", id="b")
        assert [version.version for version in book.versions("b")] == [1]
        assert book.forget("b").outside[0].startswith("the backup /b.zip")


@dataclass
class Pages:
    """Markdown that is one file for each memory, to be forgotten."""

    directory: Path
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def forget(self, namespace: str, ids: Sequence[str]) -> int:
        self.asked.append((namespace, tuple(ids)))
        pages = [page for page in self.directory.glob("*.md") if page.stem in ids]
        for page in pages:
            page.unlink()
        return len(pages)


class TestMarkdown:
    def test_blocks_and_conflict_copies_are_the_pages_work(self, book: Engine) -> None:
        """Who knows how a page is written removes the block; the search afterwards sees whether it is gone."""
        memory = book.directory / "memory"
        memory.mkdir()
        for name in ("a", "b"):
            book.remember(f"{name}: {SECRET}", id=name, session="talk")
            (memory / f"{name}.md").write_text(f"## 09:00\n\n{name}: {SECRET}\n")
        with book._runtime.store.change_memories("default") as change:
            change.put(JournalBlock("a", "a.md", "ab" * 32))
        pages = Pages(memory)
        receipt = forget(place_of(book, pages=pages), "default", EraseRequest(ids=("a",)))
        assert pages.asked == [("default", ("a",))]
        assert receipt.counts["blocks"] == 1
        assert receipt.verified
        assert holding(book, *MARKS) == ["memory/b.md", "store.db"]
        assert forget(place_of(book), "default", EraseRequest(ids=("b",))).found == (("memory/b.md", "words of it"),)

    def test_its_note_in_the_vault_goes_and_no_other(self, book: Engine, tmp_path: Path) -> None:
        """By the path that the memory names, or by the id in the front matter; never a file elsewhere."""
        vault = book.directory / "vault"
        vault.mkdir()
        front = "---\ntitle: It\nmemory_id: {}\n---\n"
        (vault / "by path.md").write_text(SECRET)
        (vault / "by id.md").write_text(front.format("a") + SECRET)
        (vault / "of another.md").write_text(front.format("b") + "# Kettle\n\nmemory_id: a")
        (vault / "no front matter.md").write_text("memory_id: a")
        elsewhere = tmp_path / "elsewhere.md"
        elsewhere.write_text(SECRET)
        for number, path in enumerate(("vault/by path.md", "../elsewhere.md", "vault/gone.md")):
            book.remember(f"{number} {SECRET}", id="a" if number == 0 else f"a{number}", session="talk")
            with book._runtime.store.change_memories("default") as change:
                stored = change.find("a" if number == 0 else f"a{number}")
                assert stored is not None
                change.revise(stored.number, replace(stored.record, vault_path=path))
        assert book.forget(session="talk", dry_run=True).counts["vault_notes"] == 2
        receipt = book.forget(session="talk")
        assert (receipt.counts["vault_notes"], receipt.verified) == (2, True)
        assert sorted(path.name for path in vault.iterdir()) == ["no front matter.md", "of another.md"]
        assert elsewhere.read_text() == SECRET

    def test_an_id_that_another_namespace_also_has_does_not_betray_its_note(self, book: Engine) -> None:
        """Ids that callers give are unique in their namespace alone."""
        vault = book.directory / "vault" / "other"
        vault.mkdir(parents=True)
        (vault / "note.md").write_text("---\nmemory_id: a\n---\nKettle")
        with commonplace.open(book.directory, namespace="other") as other:
            other.remember("Kettle", id="a")
            book.remember(SECRET, id="a")
            assert book.forget("a").verified
        assert (vault / "note.md").exists()


class TestReceipts:
    def test_a_receipt_is_kept_as_it_was_returned_and_holds_no_word_of_it(self, book: Engine, clock: Clock) -> None:
        """It must not become the copy that is left."""
        first = book.forget(book.remember(SECRET, tags=["quillfeather"], session="abernathy").id)
        clock.move(days=1)
        second = book.forget(book.remember(SECRET, id="a").id)
        assert book.receipts() == [first, second]
        written = json.dumps([each.to_dict() for each in book.receipts()])
        assert not any(mark.decode().lower() in written.lower() for mark in MARKS)
        assert json.loads(json.dumps(first.to_dict()))["ids"] == list(first.ids)

    def test_a_backup_that_is_known_is_outside_even_in_the_store(self, book: Engine) -> None:
        """It is a copy that somebody wanted; who forgets must hear of it."""
        memory = book.remember(SECRET)
        (book.directory / "copy.bak").write_text(SECRET)
        with book._runtime.store.change_memories(WHOLE_STORE) as change:
            change.put(Note("backup", "copy.bak", 0.0, json.dumps({"path": "copy.bak", "at": ""})))
        receipt = book.forget(memory.id)
        assert receipt.outside[0] == "the backup copy.bak of 1970-01-01T00:00:00Z"
        assert (receipt.found, receipt.verified) == ((), True)

    def test_one_process_forgets_at_a_time(self, book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two at once would each take the other's words for what remains."""
        from commonplace.locks import FileLock

        memory = book.remember(SECRET)
        monkeypatch.setattr(erase, "_LOCK_WAIT_S", 0.0)
        with FileLock(book.directory / "forgetting.lock").hold(0.0), pytest.raises(StoreBusyError):
            book.forget(memory.id)
        assert book.get(memory.id).content == SECRET


class TestWhatWasCutShort:
    def test_a_run_that_ended_after_it_erased_is_finished(self, book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        """Documents went with the memories; their copies follow, and nobody can look for the words any more."""

        def killed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        book.index_documents([Document("page", SECRET), Document("other", "Kettle")])
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(erase, "remove_pages", killed)
            book.forget("page")
        assert [owner.id for owner in book._runtime.store.owners("default", [1, 2]).values()] == ["other"]
        told = book.doctor(mend=False).findings
        assert [(each.part, each.mended) for each in told] == [("forgetting", False)]
        [finding] = book.doctor().findings
        assert (finding.part, finding.mended) == ("forgetting", True)
        assert book.doctor().findings == ()
        assert holding(book, *MARKS) == []
        [receipt] = book.receipts()
        assert (receipt.verified, receipt.waiting) == (False, ())
        assert "interrupted before it could scan the files" in receipt.notices[0]

    def test_the_next_forgetting_finishes_it_as_well(self, book: Engine) -> None:
        """Nobody need remember to call the doctor."""
        memory = book.remember(SECRET)
        with book._runtime.store.change_memories("default") as change:
            change.put(ForgetReceipt("default", 1.0, id="r").note())
            change.put(PendingRun("r", 1.0, "default").note())
        assert book.forget(memory.id).verified
        assert book._runtime.store.notes(None, FORGETTING) == []

    def test_while_another_process_forgets_nothing_is_finished(self, book: Engine) -> None:
        """It is at it."""
        from commonplace.locks import FileLock

        with book._runtime.store.change_memories("default") as change:
            change.put(PendingRun("r", 1.0, "default").note())
        with FileLock(book.directory / "forgetting.lock").hold(0.0):
            [found] = finish_runs(place_of(book))
        assert (found.problem, found.mended) == ("another process is forgetting at this moment", False)


OTHER = """
import sys, commonplace
with commonplace.open(sys.argv[1]) as book:
    print(*sorted(each.id for each in book.list()))
"""


def ids_in_another_process(directory: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", OTHER, directory], capture_output=True, text=True, check=True)
    return done.stdout.split()


def open_files(directory: Path) -> list[str]:
    """Return which files below a directory this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return sorted(path for path in found if path.startswith(f"{directory}/"))


def test_what_is_written_after_a_forgetting_is_there_for_other_processes(tmp_path: Path) -> None:
    """Whoever closes a file drops his locks on it, and SQLite's: another process then removes the log that is in use.

    What was written to that log was seen by nobody else, and lost when the process was killed.
    """
    with commonplace.open(tmp_path / "store") as book, commonplace.open(tmp_path / "store", "other") as second:
        for id_ in ("a", "b"):
            book.remember(f"The crane {id_} stands in the pond", id=id_)
        assert book.forget("a").verified
        assert ids_in_another_process(book.directory) == ["b"]
        book.remember("The otter sleeps until six", id="c")
        assert ids_in_another_process(book.directory) == ["b", "c"]
        book.close()
        assert ids_in_another_process(book.directory) == ["b", "c"]
        second.remember("The otter sleeps until six", id="d")
    assert open_files(tmp_path) == []
    assert ids_in_another_process(book.directory) == ["b", "c"]
