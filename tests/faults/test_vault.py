"""Links in the place of the vault, a vault that cannot be written, a full disk, and death between note and commit."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.permissions import without_rights

import commonplace
from commonplace.consolidation import LTMPromoter
from commonplace.consolidation.vault import Vault
from commonplace.dates.time import moment_of
from commonplace.engine import Engine
from commonplace.errors import StoreError
from commonplace.formats.vault import VaultNote, memory_id_of

NAME = "Billing runs on Postgres.md"

DIE = """
import os, signal, sys
import commonplace
from commonplace.consolidation import LTMPromoter
from commonplace.consolidation.base import ChangeRecorder
ChangeRecorder.page = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with commonplace.open(sys.argv[1]) as book:
    LTMPromoter(book=book).run()
"""


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", embedder="hashing") as engine:
        engine.remember("Billing runs on Postgres. We chose it in May.", id="a")
        for _ in range(5):
            engine.touch("a")
        yield engine


def note_of(id_: str, title: str) -> VaultNote:
    return VaultNote(id_, title, "words", moment_of(0.0), moment_of(0.0))


def refused(book: Engine, match: str) -> None:
    """Check that promoting fails with a clear error, and changes nothing."""
    with pytest.raises(StoreError, match=match):
        LTMPromoter(book=book).process_item("a")
    agent = LTMPromoter(book=book)
    assert agent.run() == []
    assert [each.item for each in agent.failures] == ["a"]
    assert book.get("a").status == "active"


class TestLinks:
    def test_a_vault_that_is_a_link_is_refused(self, book: Engine, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (book.directory / "vault").symlink_to(tmp_path / "elsewhere")
        refused(book, r"vault is a link or no directory, and links are not followed out of the store; put a directory")
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_vault_that_is_a_file_is_refused(self, book: Engine) -> None:
        (book.directory / "vault").write_text("mine")
        refused(book, "vault is a link or no directory")
        assert (book.directory / "vault").read_text() == "mine"

    def test_a_directory_of_a_namespace_that_is_a_link_is_refused(self, book: Engine, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (book.directory / "vault").mkdir()
        (book.directory / "vault" / "other").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="other is a link or no directory"):
            Vault(book.directory, "other").write(note_of("a", "x"))

    def test_a_file_that_is_a_link_is_passed_by(self, book: Engine, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text('---\nmemory_id: "a"\n---\n')
        (book.directory / "vault").mkdir()
        (book.directory / "vault" / NAME).symlink_to(tmp_path / "secret")
        result = LTMPromoter(book=book).process_item("a")
        assert result.vault_path.endswith("(ca978112).md")
        assert (tmp_path / "secret").read_text() == '---\nmemory_id: "a"\n---\n'

    def test_a_draft_that_is_a_link_is_not_written_through(self, book: Engine, tmp_path: Path) -> None:
        (tmp_path / "target").write_text("mine")
        (book.directory / "vault").mkdir()
        (book.directory / "vault" / ".note.commonplace-draft").symlink_to(tmp_path / "target")
        LTMPromoter(book=book).process_item("a")
        assert (tmp_path / "target").read_text() == "mine"

    def test_a_pipe_holds_nobody_up(self, book: Engine) -> None:
        (book.directory / "vault").mkdir()
        os.mkfifo(book.directory / "vault" / NAME)
        assert LTMPromoter(book=book).process_item("a").success

    @given(title=st.text(max_size=60) | st.sampled_from(["../x", "/etc/x", "..", "a/../../b", "\0", "CON", "~root"]))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_no_title_leads_out_of_the_vault(self, tmp_path: Path, title: str) -> None:
        store = tmp_path / "fuzzed"
        store.mkdir(exist_ok=True)
        path, _ = Vault(store, "default").write(note_of(f"id of {title}", title))
        assert (store / path).parent == store / "vault"
        assert memory_id_of((store / path).read_text()) == f"id of {title}"
        assert [path.name for path in tmp_path.iterdir()] == ["fuzzed"]
        assert [path.name for path in store.iterdir()] == ["vault"]


class TestPlacesThatCannotBeWritten:
    def test_a_vault_without_rights_says_so(self) -> None:
        place = Path(tempfile.mkdtemp())  # one that other users can look into
        place.chmod(0o755)
        (place / "vault").mkdir(mode=0o555)
        try:
            with (
                without_rights(),
                pytest.raises(StoreError, match=r"cannot be read or written: Permission denied; make it writable"),
            ):
                Vault(place, "default").write(note_of("a", "x"))
        finally:
            (place / "vault").rmdir()
            place.rmdir()

    def test_a_full_disk_leaves_no_note_and_no_change(self, book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr("commonplace.journal.folder.os.fsync", full)
            (book.directory / "vault").mkdir()
            with pytest.raises(StoreError, match="No space left on device; make room on the disk"):
                Vault(book.directory, "default").write(note_of("a", "x"))
        assert list((book.directory / "vault").iterdir()) == []

    def test_a_note_that_is_no_text_is_left_alone(self, book: Engine) -> None:
        result = LTMPromoter(book=book).process_item("a")
        note = book.directory / result.vault_path
        note.write_bytes(note.read_bytes() + b"\xff")
        assert Vault(book.directory, "default").write(note_of("a", "x"))[1] == ""
        assert note.read_bytes().endswith(b"\xff")


def test_killed_between_the_note_and_the_commit_the_next_run_uses_that_note(book: Engine) -> None:
    done = subprocess.run([sys.executable, "-c", DIE, str(book.directory)], check=False, capture_output=True)
    assert done.returncode == -9
    vault = book.directory / "vault"
    assert [path.name for path in vault.iterdir()] == [NAME]
    assert book.get("a").status == "active"
    [result] = LTMPromoter(book=book).run()
    assert result.vault_path == f"vault/{NAME}"
    assert [path.name for path in vault.iterdir()] == [NAME]
    assert book.get("a").status == "promoted"
