"""Notes as files: whose name is free, which note is whose, and what is written over what."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from commonplace.consolidation.vault import Vault
from commonplace.errors import StoreError
from commonplace.formats.vault import VaultNote, name_key, write_note

THEN = datetime(2026, 11, 21, tzinfo=UTC)


def note(id_: str, title: str, content: str = "words") -> VaultNote:
    return VaultNote(id_, title, content, THEN, THEN)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path, "default")


def names(place: Path) -> list[str]:
    return sorted(path.name for path in (place / "vault").iterdir())


def test_a_note_is_written_and_found_again_by_its_memory(vault: Vault, tmp_path: Path) -> None:
    assert vault.path_of(note("a", "Tea")) == "vault/Tea.md"
    path, sum_ = vault.write(note("a", "Tea"))
    data = (tmp_path / path).read_bytes()
    assert (path, sum_) == ("vault/Tea.md", sha256(data).hexdigest())
    assert data.decode() == write_note(note("a", "Tea"))
    assert vault.path_of(note("a", "Another title")) == "vault/Tea.md"


def test_a_memory_never_gets_a_second_note(vault: Vault, tmp_path: Path) -> None:
    vault.write(note("a", "Tea"))
    assert vault.write(note("a", "Coffee", "other"))[0] == "vault/Tea.md"
    assert Vault(tmp_path, "default").write(note("a", "Milk"))[0] == "vault/Tea.md"
    assert names(tmp_path) == ["Tea.md"]


def test_what_a_killed_run_wrote_for_other_reasons_is_written_anew_and_what_was_edited_stays(
    vault: Vault, tmp_path: Path
) -> None:
    """Undoing the promotion has to know the note as its own."""
    path, _ = vault.write(replace(note("a", "Tea"), reason="used often", score=0.9))
    path, sum_ = vault.write(replace(note("a", "Tea"), reason="used for long", score=0.8))
    data = (tmp_path / path).read_bytes()
    assert sum_ == sha256(data).hexdigest()
    assert b"used for long" in data
    (tmp_path / path).write_bytes(data + b"mine\n")
    assert vault.write(note("a", "Tea")) == (path, "")
    assert (tmp_path / path).read_bytes() == data + b"mine\n"


@pytest.mark.parametrize(("one", "other"), [("Tea", "TEA"), ("Caf\u00e9", "cafe\u0301"), ("Straße", "STRASSE")])
def test_titles_that_some_file_system_takes_for_one_get_names_that_differ(
    vault: Vault, tmp_path: Path, one: str, other: str
) -> None:
    paths = [vault.write(note("a", one))[0], vault.write(note("b", other))[0]]
    assert len({name_key(path) for path in paths}) == 2
    assert len(names(tmp_path)) == 2


def test_a_persons_own_file_is_never_written_over(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "tea.md").write_text("mine")
    (tmp_path / "vault" / "Tea (ca978112).md").mkdir()
    assert vault.write(note("a", "Tea"))[0] == "vault/Tea (ca978112ca1bbdca).md"
    assert (tmp_path / "vault" / "tea.md").read_text() == "mine"


def test_a_file_that_a_person_makes_meanwhile_is_not_written_over(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write(note("b", "Milk"))
    monkeypatch.setattr(Vault, "_free_name", lambda *_: "Milk.md")
    with pytest.raises(StoreError, match=r"Milk\.md was edited just now; run it again"):
        vault.write(note("a", "Tea"))
    assert (tmp_path / "vault" / "Milk.md").read_text() == write_note(note("b", "Milk"))


def test_a_file_made_in_the_last_moment_is_not_written_over(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a look at the name and the rename onto it anybody may save a file there."""

    def late(act: Callable[..., None]) -> Callable[..., None]:
        def made_before(source: Path, target: Path) -> None:
            Path(target).write_text("mine")
            act(source, target)

        return made_before

    monkeypatch.setattr(os, "link", late(os.link))
    monkeypatch.setattr(Path, "replace", late(Path.replace))
    with pytest.raises(StoreError, match=r"Tea\.md was edited just now; run it again"):
        vault.write(note("a", "Tea"))
    assert (tmp_path / "vault" / "Tea.md").read_text() == "mine"
    assert names(tmp_path) == ["Tea.md"]


def test_a_note_is_written_where_the_file_system_has_no_hard_links(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    vault.write(note("a", "Tea"))
    assert (tmp_path / "vault" / "Tea.md").read_text() == write_note(note("a", "Tea"))
    assert names(tmp_path) == ["Tea.md"]


def test_a_note_that_a_person_renamed_is_found_where_it_is_now(vault: Vault, tmp_path: Path) -> None:
    first = tmp_path / vault.write(note("a", "Tea"))[0]
    first.rename(first.with_name("My tea.md"))
    assert vault.write(note("a", "Tea", "new"))[0] == "vault/My tea.md"
    assert names(tmp_path) == ["My tea.md"]


def test_what_a_person_edited_stays_and_has_no_sum_by_which_it_would_be_removed(vault: Vault, tmp_path: Path) -> None:
    file = tmp_path / vault.write(note("a", "Tea"))[0]
    file.write_text(edited := file.read_text() + "\n## Mine\n")
    assert vault.write(note("a", "Tea", "new"))[1] == ""
    assert file.read_text() == edited


def test_what_is_as_it_should_be_is_not_written_again(vault: Vault, tmp_path: Path) -> None:
    file = tmp_path / vault.write(note("a", "Tea"))[0]
    before = file.stat()
    assert vault.write(note("a", "Tea"))[1] == sha256(file.read_bytes()).hexdigest()
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_draft_of_a_process_that_was_killed_goes_with_the_next_note(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / ".note.commonplace-draft").write_text("---\ntit")
    vault.write(note("a", "Tea"))
    assert names(tmp_path) == ["Tea.md"]


def test_namespaces_have_directories_that_no_file_system_mixes_up(tmp_path: Path) -> None:
    paths = {Vault(tmp_path, name).write(replace(note("a", "Tea")))[0] for name in ("default", "team", "Team", "../x")}
    assert paths == {"vault/Tea.md", "vault/team/Tea.md", "vault/%54eam/Tea.md", "vault/%2e%2e%2fx/Tea.md"}
    assert [path.name for path in tmp_path.iterdir()] == ["vault"]
