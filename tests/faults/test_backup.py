"""Backups under fire: processes that write and die meanwhile, and archives that are cut off or made to do harm."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import stat
import zipfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.processes import finish, start
from tests.unit.exchange.imports import memory_line, written_by_hand

import commonplace
from commonplace.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError

SCRIPT = Path(__file__).with_name("exchangers.py")
DRAFT = re.compile(r"[0-9a-f]{32}")
KILLS = [pytest.param(3, id="short"), pytest.param(60, id="long", marks=pytest.mark.soak)]


@pytest.fixture(autouse=True)
def _embedder_without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare processes that are killed the model, which an archive does not depend on."""
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_NAME", "hashing")


def points(kills: int, *arguments: object) -> list[int]:
    """Return moments at which to be killed, of all that there are; the last ones, where names change, among them."""
    moments = int(finish(start(SCRIPT, "count", *arguments)))
    late = min(kills // 2, moments)
    return sorted({*range(moments - late, moments), *range(1, moments, moments // (kills - late))})


def die(point: int, *arguments: object) -> None:
    """Do it in a process that is killed at a moment."""
    victim = start(SCRIPT, point, *arguments)
    victim.communicate()
    assert victim.returncode == -signal.SIGKILL


def told(store: Path) -> str:
    """Return everything that a healthy store exports; an index to be built again and drafts left are no illness."""
    with commonplace.open(store) as book:
        report = book.doctor()
        assert {finding.part for finding in report.findings} <= {"index", "drafts"}, report.findings
        assert report.is_healthy, report.findings
        stream = StringIO()
        book.export(stream)
        return stream.getvalue()


def drafts(*places: Path) -> list[str]:
    """Return what is left in these directories of what was being written, or notes of it."""
    names = [path.name for place in places for path in place.iterdir()]
    return [name for name in names if DRAFT.search(name) or name == "restore.json"]


def make(store: Path, *words: str) -> Path:
    """Make a store that remembers these words."""
    with commonplace.open(store) as book:
        for word in words:
            book.remember(f"The {word} stands by the lighthouse and is painted in {word} colours", id=word)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with three memories."""
    return make(tmp_path / "store", "amber", "basalt", "cedar")


@pytest.fixture
def archive(store: Path, tmp_path: Path) -> Path:
    """A backup of it, with a page of Markdown."""
    (store / "vault").mkdir(exist_ok=True)
    (store / "vault" / "a.md").write_text("# A note\n")
    with commonplace.open(store) as book:
        return book.backup(tmp_path / "b.zip").path


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_backup_leaves_the_store_and_no_half_of_itself(store: Path, tmp_path: Path, kills: int) -> None:
    before = told(store)
    for point in points(kills, "backup", store, tmp_path / "counted.zip"):
        target = tmp_path / f"{point}.zip"
        die(point, "backup", store, target)
        assert told(store) == before
        assert drafts(tmp_path, store) == []
        if target.exists():
            assert told(commonplace.restore(target, tmp_path / f"restored{point}").directory) == before


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_restore_leaves_the_old_store_or_the_new_one(archive: Path, tmp_path: Path, kills: int) -> None:
    old, new = told(make(tmp_path / "old", "delta", "ember")), told(tmp_path / "store")
    place = tmp_path / "place"
    shutil.copytree(tmp_path / "old", place)
    found = []
    for point in points(kills, "restore", archive, shutil.copytree(place, tmp_path / "counted")):
        die(point, "restore", archive, place)
        found.append(told(place))
        assert found[-1] in (old, new)
        assert drafts(tmp_path, place) == []
        if found[-1] == new:
            [kept] = tmp_path.glob("place.*.replaced")
            assert told(kept) == old
            shutil.rmtree(kept)
            shutil.rmtree(place)
            shutil.copytree(tmp_path / "old", place)
    assert set(found) == {old, new}
    commonplace.restore(archive, place, replace=True)
    assert told(place) == new


@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("name", ["backup", "export", "graph"])
def test_forgetting_removes_what_killed_writers_left(store: Path, tmp_path: Path, name: str, kills: int) -> None:
    """Each left a whole copy of what is forgotten, anywhere, which nobody would ever look for."""
    out = tmp_path / "elsewhere"
    out.mkdir()
    left = 0
    for point in points(kills, name, store, out / "counted"):
        die(point, name, store, out / f"{point}")
        left = max(left, len(drafts(out)))
    assert left
    with commonplace.open(store) as book:
        receipt = book.forget("amber")
    assert (receipt.verified, receipt.waiting) == (True, ())
    assert drafts(out, store) == []
    named = " ".join(receipt.outside)
    assert name != "backup" or all(str(path) in named for path in out.iterdir())


def test_what_a_live_process_writes_stays_and_is_named_by_the_receipt(store: Path, tmp_path: Path) -> None:
    """Its copy may have been taken before: who forgets has to know that there will be a backup with it."""
    target = tmp_path / "b.zip"
    moments = int(finish(start(SCRIPT, "count", "backup", store, tmp_path / "counted.zip")))
    writer = start(SCRIPT, "wait", moments // 2, "backup", store, target)
    assert writer.stdout.readline() == "there\n"
    assert drafts(tmp_path)
    with commonplace.open(store) as book:
        assert book.doctor().findings == ()
        receipt = book.forget("amber")
    assert f"what another process is writing to {target}" in receipt.outside
    assert receipt.verified
    finish(writer)
    assert "amber" in told(commonplace.restore(target, tmp_path / "restored").directory)
    assert drafts(tmp_path, store) == []


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_import_is_completed_by_importing_again(tmp_path: Path, kills: int) -> None:
    """Batches before the kill are there, whole; nothing is there twice afterwards."""
    lines = [memory_line(f"m{number}", f"Entry {number} of {number * 7}") for number in range(300)]
    links = [{"type": "link", "link": {"source": "m1", "target": f"m{number}"}} for number in range(2, 9)]
    file = written_by_hand(tmp_path / "e.jsonl", *lines, *links)
    with commonplace.open(tmp_path / "whole") as book:
        book.import_(file)
    whole, counts = told(tmp_path / "whole"), set()
    for point in points(kills, "import", tmp_path / "counted", file):
        store = tmp_path / f"store{point}"
        die(point, "import", store, file)
        with commonplace.open(store) as book:
            counts.add(book.index_status().counts["memories"])
            book.import_(file)
        assert told(store) == whole
    assert counts <= {0, 256, 300}


def test_what_is_acknowledged_before_a_backup_is_in_it(store: Path, tmp_path: Path) -> None:
    """While another process goes on writing."""
    writer = start(SCRIPT, "write", store)
    for number in range(4):
        acknowledged = int(writer.stdout.readline())
        with commonplace.open(store) as book:
            book.backup(tmp_path / f"{number}.zip")
        backed_up = told(commonplace.restore(tmp_path / f"{number}.zip", tmp_path / f"r{number}").directory)
        ids = {json.loads(line)["owner"]["id"] for line in backed_up.splitlines()[1:-1]}
        written = sorted(int(id_[1:]) for id_ in ids if id_.startswith("w"))
        assert written == list(range(len(written)))
        assert len(written) > acknowledged
    finish(writer)


def test_a_store_that_another_process_holds_is_not_replaced(archive: Path, store: Path) -> None:
    before = told(store)
    holder = start(SCRIPT, "hold", store)
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(StoreBusyError, match="close every program that uses it"):
        commonplace.restore(archive, store, replace=True)
    finish(holder)
    assert told(store) == before
    assert commonplace.restore(archive, store, replace=True).kept is not None


def refused(archive: Path, place: Path, *errors: type[StoreError]) -> StoreError:
    """Return the error over an archive that must leave nothing behind."""
    before = {path.name for path in place.parent.iterdir()}
    with pytest.raises(errors or StoreDamagedError) as raised:
        commonplace.restore(archive, place)
    assert {path.name for path in place.parent.iterdir()} == before
    return raised.value


def test_an_archive_that_was_cut_off_is_refused(archive: Path, tmp_path: Path) -> None:
    data = archive.read_bytes()
    for length in (0, 1, 3, 100, len(data) // 3, len(data) // 2, len(data) - 500, len(data) - 22, len(data) - 1):
        archive.write_bytes(data[:length])
        assert refused(archive, tmp_path / "place").remedy


def test_a_pipe_in_the_place_of_an_archive_is_refused_at_once(tmp_path: Path) -> None:
    """Opening it would wait, without a word, for somebody who writes to it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    error = refused(pipe, tmp_path / "place", StoreError)
    assert f"cannot read {pipe}: it is not a regular file" in str(error)


def test_a_flipped_bit_is_noticed_or_means_nothing(archive: Path, store: Path, tmp_path: Path) -> None:
    """Some bits of an archive are in nobody's way: the time of a member, for one."""
    chance, data, whole = random.Random(5), archive.read_bytes(), told(store)
    noticed = 0
    for number in range(60):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        archive.write_bytes(damaged)
        place = tmp_path / f"place{number}"
        with suppress(StoreError):
            commonplace.restore(archive, place)
        if place.exists():
            assert told(place) == whole
            assert (place / "vault" / "a.md").read_text() == "# A note\n"
        noticed += not place.exists()
    assert noticed > 40


Change = Callable[[dict[str, Any], dict[str, bytes]], None]


def rewritten(archive: Path, change: Change, *, info: Callable[[zipfile.ZipInfo], None] = lambda _: None) -> Path:
    """Write an archive anew with another manifest or other members; `info` changes those of pages."""
    with zipfile.ZipFile(archive) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest, members)
    hostile = archive.with_name("hostile.zip")
    with zipfile.ZipFile(hostile, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            if name.endswith(".md"):
                info(entry)
            packed.writestr(entry, data)
        packed.writestr("manifest.json", json.dumps(manifest))
    return hostile


def entry(path: str, data: bytes) -> dict[str, Any]:
    return {"path": path, "size": len(data), "sha256": sha256(data).hexdigest(), "mtime_ns": 0}


def adding(path: str) -> Change:
    """Add a member that is right in all but its name."""

    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        members[path] = b"harm"
        manifest["members"].append(entry(path, b"harm"))

    return change


@pytest.mark.parametrize(
    "path",
    [
        "../a.md",
        "memory/../../a.md",
        "/tmp/a.md",
        "memory//a.md",
        "memory/./a.md",
        "memory/a.md/",
        "logs/a.md",
        "index/current.json",
        "settings.json",
        "memory/a.sh",
        "memory",
        "a.md",
        "store.db-wal",
        "",
    ],
)
def test_names_that_lead_elsewhere_are_refused(archive: Path, tmp_path: Path, path: str) -> None:
    refused(rewritten(archive, adding(path)), tmp_path / "place")
    assert not (tmp_path / "a.md").exists()


def setting(**values: Any) -> Change:
    return lambda manifest, _: manifest.update(values)


def of_page(**values: Any) -> Change:
    """Change what the manifest says of the page."""
    return lambda manifest, _: next(m for m in manifest["members"] if m["path"] == "vault/a.md").update(values)


def without_database(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    del members["store.db"]
    manifest["members"] = [member for member in manifest["members"] if member["path"] != "store.db"]


def bomb(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    members["vault/a.md"] = bytes(50_000_000)


@pytest.mark.parametrize(
    "change",
    [
        setting(format="other"),
        setting(version="1"),
        setting(version=0),
        setting(members={}),
        setting(members=[7]),
        setting(change=-1),
        setting(change=2**70),
        setting(store="another"),
        setting(more=1),
        of_page(size=8),
        of_page(size=-1),
        of_page(sha256="0" * 64),
        of_page(path="vault/b.md"),
        of_page(mtime_ns=2**70),
        of_page(more=1),
        lambda manifest, _: manifest["members"].append(manifest["members"][0]),
        lambda _, members: members.update({"vault/unlisted.md": b""}),
        lambda _, members: members.pop("vault/a.md"),
        lambda _, members: members.update({"vault/a.md": b"# B note\n"}),
        without_database,
        bomb,
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(archive: Path, tmp_path: Path, change: Change) -> None:
    assert refused(rewritten(archive, change), tmp_path / "place").remedy


def test_a_database_of_something_else_is_refused(archive: Path, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        members["store.db"] = b"something else" * 1000
        manifest["members"][0] = entry("store.db", members["store.db"])

    assert refused(rewritten(archive, change), tmp_path / "place").remedy


def _link(info: zipfile.ZipInfo) -> None:
    info.external_attr = (stat.S_IFLNK | 0o777) << 16


def _device(info: zipfile.ZipInfo) -> None:
    info.external_attr = (stat.S_IFCHR | 0o600) << 16


def _otherwise_packed(info: zipfile.ZipInfo) -> None:
    info.compress_type = zipfile.ZIP_LZMA


@pytest.mark.parametrize("info", [_link, _device, _otherwise_packed])
def test_members_that_are_no_plain_files_are_refused(
    archive: Path, tmp_path: Path, info: Callable[[zipfile.ZipInfo], None]
) -> None:
    assert refused(rewritten(archive, lambda *_: None, info=info), tmp_path / "place").remedy


def test_a_backup_of_a_newer_version_is_refused(archive: Path, tmp_path: Path) -> None:
    error = refused(rewritten(archive, setting(version=2)), tmp_path / "place", StoreVersionError)
    assert str(error).endswith("knows versions up to 1; upgrade Commonplace")


def test_a_store_of_a_newer_schema_is_refused(store: Path, archive: Path, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        file = tmp_path / "newer.db"
        file.write_bytes(members["store.db"])
        db = sqlite3.connect(file)
        db.execute("INSERT INTO schema_versions (version, name) VALUES (99, 'later')")
        db.commit()
        db.close()
        members["store.db"] = file.read_bytes()
        manifest["members"][0] = entry("store.db", members["store.db"])

    hostile = rewritten(archive, change)
    (tmp_path / "newer.db").unlink()
    error = refused(hostile, tmp_path / "place", StoreVersionError)
    assert "schema version 99" in str(error)


def test_a_refused_archive_leaves_the_store_that_it_was_to_replace(archive: Path, store: Path) -> None:
    before, names = told(store), {path.name for path in store.parent.iterdir()} | {"hostile.zip"}
    with pytest.raises(StoreDamagedError):
        commonplace.restore(rewritten(archive, of_page(sha256="0" * 64)), store, replace=True)
    assert told(store) == before
    assert {path.name for path in store.parent.iterdir()} == names
