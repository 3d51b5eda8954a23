"""Pages as files: what cannot be read is left alone, what is written is whole, and times are those of this machine."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.journal.book import LONG, NOON, TODAY, Book, zone

from commonplace.journal import folder
from commonplace.journal.folder import MAX_PAGE_BYTES
from commonplace.journal.sync import SyncReport

YESTERDAY = "2026-11-20.md"


def no_utf8(path: Path) -> str:
    path.write_bytes(path.read_bytes() + b"\xff\xfe")
    return "is not UTF-8 (at byte "


def too_big(path: Path) -> str:
    with path.open("ab") as file:
        file.truncate(MAX_PAGE_BYTES + 1)
    return "has 8,388,609 bytes, the limit is 8,388,608"


def link(path: Path) -> str:
    other = path.with_name("elsewhere.txt")
    path.rename(other)
    path.symlink_to(other)
    return "is a link"


def dead_link(path: Path) -> str:
    path.unlink()
    path.symlink_to("nowhere")
    return "is a link"


def directory(path: Path) -> str:
    path.unlink()
    path.mkdir()
    return "is no file"


def pipe(path: Path) -> str:
    path.unlink()
    os.mkfifo(path)
    return "is no file"


def state(path: Path) -> tuple[int, ...]:
    """Return what changes with a file, but for when it was read last."""
    found = path.lstat()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns


@pytest.mark.parametrize("harm", [no_utf8, too_big, link, dead_link, directory, pipe])
@pytest.mark.parametrize("name", [TODAY, LONG])
def test_a_page_that_cannot_be_read_is_left_alone_and_archives_nothing(book: Book, harm, name: str) -> None:  # type: ignore[no-untyped-def]
    long = book.remember("We deploy on Mondays.", tier="long")
    short = book.remember("The door is blue.")
    other = book.remember("It snowed.", at=NOON - 86_400)
    book.sync()
    path = book.folder.path(name)
    said = harm(path)
    before = state(path)
    for id_ in (long.id, short.id, other.id):
        book.keeper.update(id_, {"tags": ["new"]})
    report = book.sync()
    assert [notice for notice in report.notices if notice.startswith(f"{book.folder.page_path(name)} {said}")]
    assert (report.archived, report.updated, report.added, report.pages_written) == (0, 0, 0, 2)
    assert state(path) == before
    assert len(book.contents()) == 3
    assert "Tags: #new" in book.page(YESTERDAY)
    assert replace(book.sync(), notices=()) == SyncReport()
    for each in (path, path.with_name("elsewhere.txt")):
        if each.is_dir():
            each.rmdir()
        else:
            each.unlink(missing_ok=True)
    book.sync()
    assert "Tags: #new" in book.page(name)
    assert book.is_settled()


def test_a_page_without_the_right_to_read_it_is_left_alone(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.remember("The door is blue.")
    book.sync()
    open_, page = os.open, book.folder.path(TODAY)

    def refuse(path: Path, *rest: int, **named: int | None) -> int:
        if path == page:
            raise PermissionError(13, "Permission denied")
        return open_(path, *rest, **named)

    monkeypatch.setattr("commonplace.journal.folder.os.open", refuse)
    report = book.sync()
    remedy = "make it readable UTF-8 text, or delete it to have it written again"
    notice = f"memory/{TODAY} cannot be read (Permission denied); it was left as it is: {remedy}"
    assert report == SyncReport(notices=(notice,))


def test_a_directory_without_the_right_to_read_it_is_told(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.remember("The door is blue.")
    book.sync()
    book.remember("The roof is grey.")

    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied", "memory")

    with monkeypatch.context() as patched:
        patched.setattr("commonplace.journal.folder.os.scandir", refuse)
        [notice] = book.sync().notices
    assert notice.startswith("pages and memories could not be synchronized: [Errno 13] Permission denied")
    assert len(book.contents()) == 2
    book.flush()
    assert "roof" in book.page()


def test_the_folder_of_pages_is_never_reached_through_a_link(book: Book, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "memory").symlink_to(elsewhere)
    book.remember("The door is blue.")
    [notice] = book.sync().notices
    assert notice.endswith("is no directory, links are not followed; memories are kept in the store alone")
    assert list(elsewhere.iterdir()) == []
    assert book.journal.forget("default", ["x"]) == book.journal.drop_all("default") == 0
    (tmp_path / "memory").unlink()
    book.sync()
    assert list(book.files()) == [f"memory/{TODAY}"]


@pytest.mark.parametrize(
    "name", ["README.md", "2026-13-45.md", "2026-11-21.txt", "notes.md", "2026-11-21.conflict-0.md"]
)
def test_other_files_are_no_pages(book: Book, name: str) -> None:
    book.write(name, "## 09:00 Tea\n")
    assert book.sync() == SyncReport()
    assert book.page(name) == "## 09:00 Tea\n"
    assert book.all() == []


def test_a_page_keeps_its_rights_and_is_replaced_whole(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft is written and flushed to the disk before it takes the place of the page, then the directory is."""
    book.remember("The door is blue.")
    book.sync()
    path = book.folder.path(TODAY)
    path.chmod(0o640)
    inode, steps = path.stat().st_ino, []
    fsync, rename = os.fsync, Path.replace

    def told_fsync(handle: int) -> None:
        steps.append(("fsync", "directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"))
        fsync(handle)

    def told_rename(self: Path, target: Path) -> Path:
        steps.append(("rename", f"{self.name} → {target.name}"))
        assert "roof" in self.read_text()
        assert "roof" not in target.read_text()
        return rename(self, target)

    monkeypatch.setattr("commonplace.journal.folder.os.fsync", told_fsync)
    monkeypatch.setattr(Path, "replace", told_rename)
    book.remember("The roof is grey.")
    book.sync()
    draft = f"{TODAY}.commonplace-draft"
    assert steps[:2] == [("fsync", "file"), ("rename", f"{draft} → {TODAY}")]
    assert set(steps[2:]) == {("fsync", "directory")}
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.stat().st_ino != inode


def test_drafts_of_a_killed_process_go_and_nothing_else_does(book: Book) -> None:
    book.remember("The door is blue.")
    book.write(TODAY + ".commonplace-draft", "half a pa")
    book.folder.path(LONG + ".commonplace-draft").write_text("half")
    book.write("2026-11-21.md.draft", "Mine.")
    book.sync()
    names = sorted(path.name for path in (*book.directory.iterdir(), *(book.directory / "memory").iterdir()))
    assert [name for name in names if "draft" in name] == ["2026-11-21.md.draft"]


def test_a_page_that_cannot_be_written_holds_up_no_other(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.remember("It snowed.", at=NOON - 86_400)
    book.remember("The door is blue.")
    write = folder.write_draft

    def refuse_today(draft: Path, *rest: object) -> object:
        if draft.name.startswith(TODAY):
            raise OSError(28, "No space left on device")
        return write(draft, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(folder, "write_draft", refuse_today)
        report = book.sync()
    assert report.notices == (
        f"memory/{TODAY} could not be written (No space left on device); its memories are in the store",
    )
    assert list(book.files()) == [f"memory/{YESTERDAY}"]
    book.flush()
    assert "The door is blue." in book.page()
    assert book.is_settled()


def test_notes_whose_page_cannot_be_written_wait(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.write(TODAY, "## 09:00 Tea\n")
    book.write(YESTERDAY, "## 09:00 Coffee\n")
    write = folder.write_draft

    def refuse_today(draft: Path, *rest: object) -> object:
        if draft.name.startswith(TODAY):
            raise OSError(13, "Permission denied")
        return write(draft, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(folder, "write_draft", refuse_today)
        report = book.sync()
    assert report.added == 1
    assert f"memory/{TODAY}: its new notes could not get their ids (Permission denied)" in report.notices[0]
    assert book.contents() == ["Coffee"]
    book.flush()
    assert book.contents() == ["Coffee", "Tea"]
    assert book.is_settled()


def test_a_journey_to_another_time_zone_is_no_edit(tmp_path: Path) -> None:
    with zone("UTC"):
        book = Book(tmp_path)
        early = book.remember("Early.", at=NOON - 11.5 * 3600)
        book.remember("Late.", at=NOON + 11.5 * 3600)
        book.remember("Long.", tier="long", at=NOON + 11.5 * 3600)
        book.sync()
        before, files = book.all(), book.files()
    for name in ("JST-9", "PST8PDT", "UTC", "<+1345>-13:45"):
        with zone(name):
            book.write(TODAY, book.page() + "\n")
            book.write(LONG, book.page(LONG) + "\n")
            report = book.sync()
            assert replace(report, pages_read=0) == SyncReport()
            assert book.all() == before
            assert {path: text.rstrip() for path, text in book.files().items()} == {
                path: text.rstrip() for path, text in files.items()
            }
            assert book.is_settled()
    with zone("JST-9"):
        book.edit("Early.\n\n", "Early indeed.\n\n")
        book.sync()
        stored = book.get(early.id)
        assert (stored.record.content, stored.owner.at) == ("Early indeed.", NOON - 11.5 * 3600)
        assert book.is_settled()
        assert "## 09:30 Early indeed" in book.page(), "what is written anew has the time of where it is written"
        book.edit("## 09:30 Early indeed", "## 10:15 Early indeed")
        book.sync()
        assert book.get(early.id).owner.at == NOON - 11.5 * 3600 + 45 * 60
        assert book.is_settled()


@pytest.mark.parametrize("wall", ["02:30", "03:30", "01:30"])
def test_times_that_a_clock_change_leaves_out_or_has_twice_are_taken_once(tmp_path: Path, wall: str) -> None:
    with zone("CET-1CEST,M3.5.0,M10.5.0/3"):
        book = Book(tmp_path)
        for day in ("2026-03-29", "2026-10-25"):
            book.write(f"{day}.md", f"## {wall} Night\n")
        assert book.sync().added == 2
        before = book.all()
        assert book.is_settled()
        for day in ("2026-03-29", "2026-10-25"):
            book.write(f"{day}.md", book.page(f"{day}.md") + "\n")
        assert book.sync().updated == 0
        assert book.all() == before


@pytest.mark.parametrize("year", [1, 1970, 9999])
@pytest.mark.parametrize("name", ["UTC", "JST-9", "EST5"])
def test_first_and_last_days_have_pages(tmp_path: Path, year: int, name: str) -> None:
    with zone(name):
        book = Book(tmp_path)
        for day in (f"{year:04}-01-01", f"{year:04}-12-31"):
            book.write(f"{day}.md", "## 00:00 Midnight\n\n## 23:59 Late\n")
        is_beyond = (name, year) == ("EST5", 9999)
        report = book.sync()
        assert report.added == (3 if is_beyond else 4), "in Greenwich the last evening is in the year 10000"
        assert bool(report.notices) == is_beyond
        assert book.is_settled()
        book.keeper.update(book.all()[0].owner.id, {"content": "Changed."})
        book.sync()
        assert book.is_settled()
