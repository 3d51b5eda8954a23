"""Runs of `doctor --secrets`: no file holds them afterwards, nothing else changes, pages and logs, and what waits."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.clock import Clock
from tests.unit.erasure.test_secrets import (
    AWS,
    GONE,
    OTHER,
    PASSWORD,
    TOKEN,
    found,
    holding,
    problems,
    spoil,
    store_file,
)
from tests.unit.store.test_read_only import without_rights

import commonplace
from commonplace.engine import Engine
from commonplace.erasure.copies import FORGETTING
from commonplace.erasure.receipt import RECEIPT
from commonplace.erasure.secrets import interrupted_run
from commonplace.errors import StoreError
from commonplace.exchange.backup import backup_note
from commonplace.logs import RetrievalLog
from commonplace.store.schema import WHOLE_STORE
from commonplace.types import Filter


def files(book: Engine) -> dict[str, bytes]:
    paths = [path for path in book.directory.rglob("*") if path.is_file() and not path.name.endswith((".lock", "-shm"))]
    return {path.relative_to(book.directory).as_posix(): path.read_bytes() for path in paths}


def page(book: Engine, name: str = "memory/2026-03-02.md") -> Path:
    return book.directory / name


class TestWhatIsLeft:
    def test_no_file_of_the_store_holds_a_secret_afterwards(self, book: Engine, clock: Clock) -> None:
        """Rows that are there and rows that were replaced, the database's log, the index, pages, and logs."""
        spoil(book, "kettle 1", record={"content": f"Once {TOKEN}"})
        book.update("kettle 1", content="Kettle")
        spoil(book, "kettle 2", record={"content": f"aws_secret_access_key = {AWS}, password: {PASSWORD}"})
        store_file(book, "a.md", f"Here {OTHER}")
        book.sync()
        log = RetrievalLog(book.directory / "logs", queries="text")
        for question in (f"who has {TOKEN}", f"use {AWS}", "kettle"):
            log.write(question, {})
        RetrievalLog(book.directory / "logs", queries="hash").write(TOKEN, {})
        book.doctor()
        generations = {path.name for path in (book.directory / "index").glob("g*")}
        assert {"store.db-wal", "memory/2026-03-02.md", "logs/retrieval/retrieval.jsonl"} <= set(holding(book))

        assert len(problems(book)) == 9

        assert holding(book) == []
        assert holding(book, TOKEN[:24], OTHER[-16:], AWS[:16]) == []
        assert generations.isdisjoint(path.name for path in (book.directory / "index").glob("g*"))
        lines = (book.directory / "logs/retrieval/retrieval.jsonl").read_text().splitlines()
        assert [line.strip() == "{}" for line in lines] == [True, True, False, True]
        assert '"kettle"' in lines[2]
        assert found(book) == []

    def test_a_file_of_somebody_else_with_a_known_secret_is_told_of(self, book: Engine) -> None:
        """It is not ours to write; the rest is mended all the same."""
        spoil(book, "kettle 1", record={"content": TOKEN})
        (book.directory / "notes.txt").write_text(TOKEN)
        mended, left = found(book)
        assert (mended.mended, left.mended) == (True, False)
        assert left.problem == "the file notes.txt still holds a secret"
        assert left.remedy == "it is no file of the store: remove it, or edit it"
        assert holding(book) == ["notes.txt"]

    def test_a_reader_of_the_state_before_is_waited_for_and_the_doctor_finishes(self, book: Engine) -> None:
        spoil(book, "kettle 1", record={"content": TOKEN})
        with commonplace.open(book.directory) as reader, reader._runtime.store.snapshot():
            reader._runtime.store.change()
            report = book.doctor(secrets=True)
            assert {(finding.part, finding.mended) for finding in report.findings} == {
                ("secrets", True),
                ("forgetting", False),
            }
            assert [name.removesuffix("-wal") for name in holding(book)] == ["store.db"]
        assert interrupted_run(book._runtime.store) is None
        assert [finding.part for finding in book.doctor().findings] == ["forgetting"]
        assert holding(book) == []
        assert book.doctor(secrets=True).is_healthy

    def test_backups_that_are_known_are_no_finding(self, book: Engine, tmp_path: Path) -> None:
        """The remedy says that they still hold it."""
        spoil(book, "kettle 1", record={"content": TOKEN})
        book.backup(tmp_path / "backup.zip")
        inside = book.directory / "backup.bak"  # none is made there any more
        inside.write_text(TOKEN)
        with book._runtime.store.change_memories(WHOLE_STORE) as change:
            change.put(backup_note(inside, datetime.fromtimestamp(0, UTC)))
        assert len(problems(book)) == 1

    def test_a_run_that_was_ended_is_done_again_by_a_plain_doctor(
        self, book: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What it had replaced it cannot name any more; what it had not is found again."""
        for name in ("kettle 1", "kettle 2"):
            spoil(book, name, record={"content": f"{name} {TOKEN}"})
        book.doctor()
        rewritten: list[str] = []

        class Killed(BaseException):
            pass

        def once(*arguments: Any) -> Any:
            if rewritten:
                raise Killed
            rewritten.append("kettle")
            return original(*arguments)

        from commonplace.exchange import items

        original = items.writes_of
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(items, "writes_of", once)
            book.doctor(secrets=True)
        book.sync()
        assert interrupted_run(book._runtime.store) is not None
        assert [finding.part for finding in book.doctor(mend=False).findings] == ["forgetting"]
        report = book.doctor()
        assert [(each.problem, each.mended) for each in report.findings] == [
            ("memory 'kettle 2' of namespace 'default' holds a secret of the kind github token", True),
            ("the page memory/2026-03-02.md holds a secret of the kind github token", True),
            ("an earlier run was ended before it had replaced all", True),
        ]
        assert holding(book) == []
        assert interrupted_run(book._runtime.store) is None
        assert book._runtime.store.notes(None, FORGETTING) == []
        assert book.doctor().findings == ()

    def test_the_receipt_of_a_run_names_nothing_and_is_no_forgetting(self, book: Engine) -> None:
        spoil(book, "kettle 1", record={"content": TOKEN})
        book.doctor(secrets=True)
        [note] = book._runtime.store.notes(WHOLE_STORE, RECEIPT)
        assert '"verified": true' in note.body
        assert '"ids": []' in note.body
        assert book.receipts() == []


class TestWhatStays:
    def test_nothing_but_the_secret_changes(self, book: Engine, clock: Clock) -> None:
        """Ids, times, uses, places in a conversation, links, readings of the past, and what others are found by."""
        turns = [{"content": f"Turn {n} of the talk", "id": f"turn {n}", "session": "talk"} for n in range(5)]
        book.remember_many(turns)
        store_file(book, "old.md", f"An old page with {OTHER}")
        clock.move(days=3)
        store_file(book, "a.md", "A page about kettles")
        book.link("turn 2", "kettle 1", type="about", strength=0.25)
        book.link("kettle 3", "turn 2")
        book.touch("turn 2")
        book.update("turn 2", tags=["talk"])
        clock.move(days=1)
        then = clock() - 2 * 86_400
        spoil(book, "turn 2", record={"content": f"Turn 2 of the talk {TOKEN}"})
        spoil(book, "kettle 8", record={"metadata": f'{{"token": "{TOKEN}"}}'})
        book.archive("kettle 8")
        clock.move(days=1)
        book.doctor()
        before = self.everything(book, then)
        assert len(problems(book)) == 3
        after = self.everything(book, then)
        assert after.pop("memories") == [
            replace(each, content=each.content.replace(TOKEN, GONE), metadata=cleaned(each.metadata))
            for each in before.pop("memories")
        ]
        assert after == before
        assert holding(book) == []

    def everything(self, book: Engine, then: float) -> dict[str, Any]:
        store = book._runtime.store
        ids = [each.id for each in book.list(statuses=(), limit=100)]
        asked = [(question, as_of) for question in ("kettle minutes", "turn of the talk") for as_of in (None, then)]
        hits = [book.search(question, 50, as_of=as_of, min_score=0.0).hits for question, as_of in asked]
        spoilt = {"turn 2", "kettle 8", "old.md"}
        return {
            "memories": [version for id_ in ids for version in book.versions(id_)],
            "links": store.links("default"),
            "places": store.places("default", "memory", ids),
            "owners": [owner.id for _, owner in store.artifacts("default")],
            "stamps": [owner.stamp for _, owner in store.artifacts("default")],
            "as of then": [store.owners("default", [n])[n].path for n in artifacts(book, then)],
            "as of now": [store.owners("default", [n])[n].path for n in artifacts(book, None)],
            "counts": {name: n for name, n in store.counts("default").items() if name != "text_bytes"},
            "found": [{(hit.id, hit.owner_id) for hit in found} for found in hits],
            "order of others": [[hit.id for hit in found if hit.owner_id not in spoilt] for found in hits],
        }

    @pytest.mark.parametrize("seconds", [0.0, 1e-6, 0.1, 86_400.000001, 1.7e9, 2.5e11])
    def test_a_file_counts_from_the_same_moment_on(self, book: Engine, clock: Clock, seconds: float) -> None:
        clock.now = seconds
        store_file(book, "a.md", TOKEN)
        clock.now = 1e9
        store_file(book, "b.md", TOKEN)
        assert len(problems(book)) == 2
        numbers = {owner.path: number for number, owner in book._runtime.store.artifacts("default")}
        assert numbers["a.md"] in artifacts(book, seconds)
        if seconds:
            below = seconds - max(seconds * 1e-15, 1e-12)
            assert numbers["a.md"] not in artifacts(book, below)
        assert numbers["b.md"] not in artifacts(book, 1e9 - 1e-6)

    def test_only_looking_changes_no_file(self, book: Engine) -> None:
        spoil(book, "kettle 1", record={"content": TOKEN})
        book.sync()
        book.doctor()
        before, change = files(book), book._runtime.store.change()
        findings = found(book, mend=False)
        assert [finding.mended for finding in findings] == [False, False]
        assert all(finding.remedy.startswith("run `commonplace doctor --secrets`") for finding in findings)
        assert (files(book), book._runtime.store.change()) == (before, change)

    def test_a_damaged_store_is_told_of_and_not_written(self, book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        spoil(book, "kettle 1", record={"content": TOKEN})
        change = book._runtime.store.change()
        monkeypatch.setattr(type(book._runtime.store), "check", lambda _: ["a page is lost"])
        report = book.doctor(secrets=True)
        assert [(each.part, each.mended) for each in report.findings if each.part == "secrets"] == [
            ("secrets", False)
        ] * 2
        assert report.findings[-1].problem == "nothing was replaced in a damaged store: a page is lost"
        assert book._runtime.store.change() == change

    def test_what_cannot_be_written_is_a_finding(self, book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        """What was found is told all the same."""
        spoil(book, "kettle 1", record={"content": TOKEN})

        def full(*_: object, **__: object) -> None:
            raise StoreError("the disk is full", remedy="make room")

        monkeypatch.setattr(type(book._runtime.store), "compact", full)
        findings = book.doctor(secrets=True).findings
        assert [(each.part, each.mended) for each in findings] == [("forgetting", False), ("secrets", True)]
        assert findings[0].remedy == "make room"
        monkeypatch.undo()
        assert len(book.doctor().findings) == 1
        assert holding(book) == []


def cleaned(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: GONE if value == TOKEN else value for key, value in metadata.items()}


def artifacts(book: Engine, as_of: float | None) -> list[int]:
    return book._runtime.store.matching_owners("default", Filter(kinds=("artifact",), as_of=as_of))


def found_of(book: Engine) -> list[Any]:
    return [finding for finding in book.doctor(secrets=True).findings if finding.part == "secrets"]


class TestPages:
    def test_pages_follow_their_memories_and_nothing_is_taken_for_an_edit(self, book: Engine, clock: Clock) -> None:
        """The heading is the beginning of the text: no part of a secret may stand there either."""
        address = "postgres://admin:" + "Sup3rSecretPassw0rdThatIsVeryLongIndeed" * 2 + "@db.example.org/billing"
        spoil(book, "kettle 1", record={"content": f"{address} is the address"})
        book.remember("Long", id="long", tier="long")
        spoil(book, "long", record={"content": f"The token is {TOKEN}, keep it"})
        book.sync()
        heading = page(book).read_text().split("## 09:00 ")[2].splitlines()[0]
        assert heading.endswith("IndeedSup…")
        assert len(problems(book)) == 4
        assert "Sup3r" not in page(book).read_text()
        assert "\npostgres://admin:[redacted: password in a url]@db.example.org/billing is" in page(book).read_text()
        assert f"The token is {GONE}, keep it" in page(book, "MEMORY.md").read_text()
        report = book.sync()
        assert (report.updated, report.added, report.archived, report.conflicts) == (0, 0, 0, ())
        assert [len(book.versions(name)) for name in ("kettle 1", "long")] == [1, 1]
        assert not list(book.directory.rglob("*conflict*"))

    def test_what_a_person_wrote_is_cleaned_where_it_stands(self, book: Engine) -> None:
        """Taken in, it was redacted; on the page it stood as it was written."""
        book.sync()
        with page(book).open("a") as file:
            file.write(f"\n## A note\n\nThe token is {TOKEN}, keep it\n")
        (book.directory / "memory" / "2026-03-01.conflict-abc.md").write_text(OTHER)
        (book.directory / "vault").mkdir()
        (book.directory / "vault" / "note.md").write_bytes(b"\xff " + TOKEN.encode())
        (book.directory / "vault" / "note.md").chmod(0o640)
        book.sync()
        assert len(book.list()) == 10
        assert [problem.rpartition(" holds")[0] for problem in problems(book)] == [
            "the page memory/2026-03-01.conflict-abc.md",
            "the page memory/2026-03-02.md",
            "the page vault/note.md",
        ]
        assert holding(book) == []
        assert (book.directory / "vault" / "note.md").read_bytes() == b"\xff " + GONE.encode()
        assert (book.directory / "vault" / "note.md").stat().st_mode & 0o777 == 0o640
        assert page(book).read_text().count(f"The token is {GONE}, keep it") == 1
        before = {each.id: each.version for each in book.list()}
        book.sync()
        assert {each.id: each.version for each in book.list()} == before
        assert not list(book.directory.rglob("*draft*"))

    def test_an_edit_that_was_not_taken_in_yet_is_not_lost(self, book: Engine) -> None:
        spoil(book, "kettle 1", record={"content": f"Kettle with {TOKEN}"})
        book.sync()
        page(book).write_text(page(book).read_text().replace(f"\nKettle with {TOKEN}", f"\nBig kettle with {TOKEN}"))
        problems(book)
        assert book.get("kettle 1").content == f"Big kettle with {GONE}"
        assert holding(book) == []
        assert not list(book.directory.rglob("*conflict*"))

    def test_links_out_of_the_store_are_not_followed(self, book: Engine, tmp_path: Path) -> None:
        (tmp_path / "mine.md").write_text(TOKEN)
        (book.directory / "vault").mkdir()
        (book.directory / "vault" / "link.md").symlink_to(tmp_path / "mine.md")
        assert found(book) == []
        assert (tmp_path / "mine.md").read_text() == TOKEN

    def test_pages_that_nobody_asked_for_are_not_written(self, tmp_path: Path, clock: Clock) -> None:
        settings = commonplace.settings.load({"store.path": str(tmp_path / "store"), "memory.mirror": "off"})
        with commonplace.open(tmp_path / "store", settings=settings, clock=clock) as book:
            book.remember("Kettle", id="kettle 1")
            spoil(book, "kettle 1", record={"content": TOKEN})
            assert len(problems(book)) == 1
            assert not list(book.directory.rglob("*.md"))
            book.sync()
            spoil(book, "kettle 1", record={"content": OTHER})
            book.sync()
            assert len(problems(book)) == 2
            assert GONE in page(book).read_text()

    def test_what_a_run_that_was_killed_left_beside_a_page_goes_with_the_next(self, book: Engine) -> None:
        """What people named so themselves is theirs."""
        for place in ("memory", "memory/other", "vault"):
            (book.directory / place).mkdir(exist_ok=True)
            (book.directory / place / "note.md.commonplace-draft").write_text("Half of")
            (book.directory / place / "note.md.draft").write_text("Mine")
        (book.directory / "vault" / "note.md").write_text(TOKEN)
        problems(book)
        left = sorted(path.relative_to(book.directory).as_posix() for path in book.directory.rglob("*draft"))
        assert left == [f"{place}/note.md.draft" for place in ("memory", "memory/other", "vault")]

    def test_a_page_that_cannot_be_written_is_a_finding(self, book: Engine) -> None:
        (book.directory / "vault" / "note.md.commonplace-draft").mkdir(parents=True)
        (book.directory / "vault" / "note.md").write_text(TOKEN)
        spoil(book, "kettle 1", record={"content": TOKEN})
        memory, there, cannot = found_of(book)
        assert (memory.mended, there.mended, cannot.mended) == (True, False, False)
        assert cannot.problem.endswith("note.md cannot be written: Is a directory")
        assert holding(book) == ["vault/note.md"]
        (book.directory / "vault" / "note.md.commonplace-draft").rmdir()
        assert len(problems(book)) == 1
        assert holding(book) == []


def test_a_store_that_cannot_be_written_is_only_looked_through(clock: Clock) -> None:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "store"
        with commonplace.open(directory, clock=clock) as book:
            book.remember("Kettle", id="kettle 1")
            spoil(book, "kettle 1", record={"content": TOKEN})
        for path in [Path(place), *Path(place).rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        settings = commonplace.settings.load({"store.path": str(directory)})
        with without_rights(), commonplace.open(directory, settings=settings, clock=clock) as book:
            assert book._runtime.store.is_read_only
            for finding in found(book):
                assert not finding.mended
                assert finding.remedy.startswith("run `commonplace doctor --secrets` where the store can be written")
