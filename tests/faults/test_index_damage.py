"""A damaged, foreign or half-written index is never an error: it is empty, says why, and is rebuilt."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.reference_store.store import MemoryStore

from commonplace.dataclasses import replace
from commonplace.errors import IndexFaultError, StoreError
from commonplace.index.chunks import ChunkFile
from commonplace.index.contract import Scope
from commonplace.index.files import OpenFiles, generation_path, read_manifest
from commonplace.index.generations import Index
from commonplace.index.writer import DenseWriter
from commonplace.ingest.index_update import bring_up_to_date
from commonplace.types import Chunk, Embedding, Head, IndexEntry, NewPassage, Owner, OwnerWrite

EMBEDDING = Embedding("test", "1", 8)
STEPS = [
    "files.OpenFiles",
    "DenseWriter",
    "_add",
    "DenseWriter.finish",
    "_record",
    "files.replace_file",
    "_remove_leftovers",
]
"""What a writer calls, in order; the last, which removes what is old, it calls before all others too."""
SCOPE = Scope("default")
QUERY = np.full(8, 8**-0.5, np.float32)


def filled() -> MemoryStore:
    store = MemoryStore()
    for owner in range(5):
        passages = tuple(
            NewPassage(f"{owner}-{n}", Chunk(f"apple {owner} {n}", 1, 1), b"\x07\x00", bytes([n + 1] * 8))
            for n in range(10)
        )
        store.put_owners("default", [OwnerWrite(Owner(f"owner {owner}", "memory"), passages)])
    return store


def projected(directory: Path) -> tuple[MemoryStore, Path]:
    """Return a store and its index directory, the index made in several generations."""
    store = filled()
    index = Index(directory / "index", store_id=store.id, embedding=EMBEDDING)
    bring_up_to_date(store, index)
    store.delete_owners("default", [1])
    store.put_owners(
        "default", [OwnerWrite(Owner("late", "memory"), (NewPassage("l", Chunk("apple", 1, 1), b"", b"\x01" * 8),))]
    )
    bring_up_to_date(store, index)
    return store, directory / "index"


def found(index: Index) -> int:
    return len(index.reader().lexical.search(["appl"], SCOPE, 1000).numbers)


def is_rebuilt(store: MemoryStore, directory: Path) -> str:
    """Open the index, check that it holds nothing, rebuild it, check that all is back; return the fault it had."""
    index = Index(directory, store_id=store.id, embedding=EMBEDDING)
    generation = index.reader()
    assert (generation.heads, found(index)) == ({}, 0)
    assert generation.dense.search(QUERY, SCOPE, 10, store.vectors).numbers.tolist() == []
    report = bring_up_to_date(store, index)
    assert report is not None
    assert report.rebuilt
    assert report.fault == generation.fault
    assert (found(index), index.reader().fault, index.verify()) == (41, "", [])
    return generation.fault


def current_files(directory: Path) -> list[Path]:
    newest = max(directory.glob("g*"))
    return sorted(path for path in newest.glob("*/*") if not path.name.endswith(".lock"))


def test_every_single_file_that_is_cut_short_is_noticed(tmp_path: Path) -> None:
    """Nonsense would be answered."""
    store, original = projected(tmp_path)
    for number, path in enumerate(current_files(original)):
        if not path.stat().st_size:
            continue
        copy = tmp_path / f"copy{number}"
        shutil.copytree(original, copy)
        damaged = copy / path.relative_to(original)
        damaged.write_bytes(damaged.read_bytes()[:-1])
        assert is_rebuilt(store, copy) == f"was damaged: {path.parent.name}/{path.name} is 1 bytes too short"


def test_every_single_file_that_is_missing_or_altered_is_noticed(tmp_path: Path) -> None:
    """A changed bit keeps the size; the time or the checksum tells."""
    store, original = projected(tmp_path)
    for number, path in enumerate(current_files(original)):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(original, copy)
        damaged = copy / path.relative_to(original)
        data = bytearray(damaged.read_bytes())
        if data and number % 2:
            data[len(data) // 2] ^= 0x10
            damaged.write_bytes(data)
            assert is_rebuilt(store, copy) == f"was damaged: {path.parent.name}/{path.name} was altered"
        else:
            damaged.unlink()
            assert is_rebuilt(store, copy) == f"was damaged: {path.parent.name}/{path.name} is missing"


def test_a_copied_index_is_trusted_after_its_checksums_were_compared(tmp_path: Path) -> None:
    """A restored backup has new times and the same bytes: it must not cost a rebuild."""
    store, original = projected(tmp_path)
    shutil.copytree(original, tmp_path / "copy", copy_function=shutil.copyfile)
    index = Index(tmp_path / "copy", store_id=store.id, embedding=EMBEDDING)
    assert (index.reader().fault, found(index)) == ("", 41)


def test_new_times_are_recorded_once_and_then_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing the checksums of a large index takes seconds: not in every process that comes after a copy."""
    store, original = projected(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(original, copy, copy_function=shutil.copyfile)
    assert found(Index(copy, store_id=store.id, embedding=EMBEDDING)) == 41
    monkeypatch.setattr("commonplace.index.files._file_checksum", lambda _descriptor: 0)
    index = Index(copy, store_id=store.id, embedding=EMBEDDING)
    assert (index.reader().fault, found(index), index.reader().heads) == ("", 41, store.heads())


def test_new_times_are_not_recorded_while_another_writes_or_where_nobody_may(tmp_path: Path) -> None:
    """Reading must not wait for the lock, nor fail for a file system that cannot be written."""
    store, original = projected(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(original, copy, copy_function=shutil.copyfile)
    writer, reader = (Index(copy, store_id=store.id, embedding=EMBEDDING) for _ in range(2))
    before = (copy / "current.json").read_bytes()
    assert writer.claim(0)
    assert (reader.reader().fault, found(reader)) == ("", 41)
    assert (copy / "current.json").read_bytes() == before
    writer.release()
    (copy / "lock").unlink()
    (copy / "lock").mkdir()
    assert found(Index(copy, store_id=store.id, embedding=EMBEDDING)) == 41
    assert (copy / "current.json").read_bytes() == before


@pytest.mark.parametrize("share", [0, 2])
def test_a_file_cut_short_while_it_is_open_is_noticed_before_it_is_read(tmp_path: Path, share: int) -> None:
    """Nobody may take what is left of it for all."""
    store, directory = projected(tmp_path)
    manifest = read_manifest(directory, store_id=store.id, embedding=EMBEDDING)
    kinds = {path.suffix or path.name: path for path in current_files(directory) if path.stat().st_size}
    assert kinds.keys() == {".chunk", "dead"}
    for path in kinds.values():
        data = path.read_bytes()
        files = OpenFiles(generation_path(directory, manifest.generation), manifest.files)
        files.check()
        left = len(data) // share if share else 0
        os.truncate(path, left)
        with pytest.raises(IndexFaultError) as fault:
            files.check()
        assert str(fault.value) == f"was damaged: {path.parent.name}/{path.name} is {len(data) - left} bytes too short"
        path.write_bytes(data)


def test_an_open_generation_whose_file_changes_its_size_is_a_fault(tmp_path: Path) -> None:
    """What is searched looks at all its files first."""
    store, original = projected(tmp_path)
    for number, path in enumerate(path for path in current_files(original) if path.stat().st_size):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(original, copy)
        generation = Index(copy, store_id=store.id, embedding=EMBEDDING).reader()
        with generation.in_use():
            assert generation.fault == ""
        with (copy / path.relative_to(original)).open("ab") as file:
            file.write(b"x")
        with pytest.raises(IndexFaultError, match=f"{path.name} is 1 bytes too long"), generation.in_use():
            pytest.fail("it was given out")


def test_terms_are_a_fault_after_their_file_was_cut_short(tmp_path: Path) -> None:
    """Chunk files are not mapped: whoever reads them meanwhile is told, and does not die."""
    store, directory = projected(tmp_path)
    manifest = read_manifest(directory, store_id=store.id, embedding=EMBEDDING)
    generation = generation_path(directory, manifest.generation)
    loose = ChunkFile(generation / manifest.chunks[0].file, 8)
    for path in (path for path in current_files(directory) if path.parent.name == "dense"):
        os.truncate(path, 0)
    with pytest.raises(IndexFaultError, match="a chunk was cut short while it was open"):
        loose.terms(np.arange(1))
    with pytest.raises(IndexFaultError, match="a chunk was cut short while it was open"):
        loose.find_terms(0, ["appl"])


def test_names_that_were_altered_under_an_open_chunk_are_a_fault(tmp_path: Path) -> None:
    """Only whoever looks for misspelt words, or forgets, reads them."""
    store, directory = projected(tmp_path)
    manifest = read_manifest(directory, store_id=store.id, embedding=EMBEDDING)
    path = generation_path(directory, manifest.generation) / manifest.chunks[0].file
    chunk = ChunkFile(path, 8)
    assert chunk.listed(["appl", "nowhere"]) == {"appl": 50}
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    with pytest.raises(IndexFaultError, match="the names of terms cannot be read"):
        chunk.listed(["appl"])


def test_an_open_generation_passes_its_check_after_newer_ones_replaced_it(tmp_path: Path) -> None:
    """A file that was removed can still be read by whoever has it open; that is no damage."""
    index = empty(tmp_path / "index")
    old = index.reader()
    for number in range(31, 35):
        index.update([entry(number)], [], heads={"n": Head(number)})
    with old.in_use():
        assert len(old.lexical.search(["appl"], SCOPE, 100).numbers) == 30


def cut_manifest(directory: Path) -> None:
    path = directory / "current.json"
    path.write_bytes(path.read_bytes()[:-40])


def change_manifest(old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        path = directory / "current.json"
        assert old in path.read_bytes()
        path.write_bytes(path.read_bytes().replace(old, new))

    return change


def fill_with_noise(directory: Path) -> None:
    noise = random.Random(1)
    for path in directory.rglob("*"):
        if path.is_file():
            path.write_bytes(noise.randbytes(path.stat().st_size))


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (shutil.rmtree, "is missing"),
        (lambda directory: (directory / "current.json").unlink(), "is missing"),
        (lambda directory: shutil.rmtree(max(directory.glob("g*"))), "was damaged: dense/"),
        (cut_manifest, "was damaged: current.json cannot be read"),
        (
            lambda directory: (directory / "current.json").write_bytes(b"[" * 100_000),
            "was damaged: current.json cannot",
        ),
        (lambda directory: (directory / "current.json").write_text("{}"), "was damaged: current.json cannot be read"),
        (change_manifest(b'"documents": 41', b'"documents": 42'), "was damaged: current.json was altered"),
        (change_manifest(b'"schema": 8', b'"schema": 0'), "was made by another version"),
        (fill_with_noise, "was damaged: current.json cannot be read"),
    ],
)
def test_damage_at_large_is_told_and_mended(tmp_path: Path, damage: Callable[[Path], None], fault: str) -> None:
    """Whatever stands in the directory, the store is the truth."""
    store, directory = projected(tmp_path)
    damage(directory)
    assert is_rebuilt(store, directory).startswith(fault)


def test_an_altered_file_of_the_same_size_and_time_is_found_by_verify(tmp_path: Path) -> None:
    """`doctor` reads everything; opening does not."""
    store, directory = projected(tmp_path)
    path = next(path for path in current_files(directory) if path.suffix == ".chunk")
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    index = Index(directory, store_id=store.id, embedding=EMBEDDING)
    assert index.reader().fault == ""
    assert index.verify() == [f"was damaged: dense/{path.name} was altered"]
    report = bring_up_to_date(store, index, rebuild=True)
    assert report is not None
    assert (report.rebuilt, index.verify()) == (True, [])


def test_any_bit_that_turns_in_a_file_whose_size_and_time_stay_is_a_fault_or_no_error(tmp_path: Path) -> None:
    """A bare error would end a search; a length that turned into gigabytes would be asked of the system."""
    store, original = projected(tmp_path)
    chance = random.Random(7)
    told = set[str]()
    for path in (path for path in current_files(original) if path.stat().st_size):
        stat, data = path.stat(), path.read_bytes()
        for _ in range(100):
            damaged = bytearray(data)
            damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path.write_bytes(damaged)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            index = Index(original, store_id=store.id, embedding=EMBEDDING)
            try:
                manifest = read_manifest(original, store_id=store.id, embedding=EMBEDDING)
                lexical, dense = (held := index.reader()).lexical, held.dense
                for scope in (SCOPE, Scope("default", kinds=("memory",))):
                    lexical.search(["appl", "0", "1"], scope, 10)
                    lexical.similar("aple", 1, scope, 10)
                    dense.search(QUERY, scope, 10, store.vectors)
                lexical.statistics(["appl"], Scope("default", dead=np.arange(1, 20)))
                told.add(held.fault)
                draft = tmp_path / "draft"
                shutil.rmtree(draft, ignore_errors=True)
                shutil.copytree(generation_path(original, manifest.generation), draft)
                writer = DenseWriter(draft, replace(manifest, generation=9))
                writer.delete(range(12))
                writer.finish(purge=True)
            except IndexFaultError as fault:
                told.add(str(fault))
        path.write_bytes(data)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert len(told) > 6


def test_damage_under_an_update_turns_it_into_a_rebuild(tmp_path: Path) -> None:
    """A process may hold a good generation open while its files are destroyed."""
    store, directory = projected(tmp_path)
    index = Index(directory, store_id=store.id, embedding=EMBEDDING)
    assert found(index) == 41
    next(path for path in current_files(directory) if path.suffix == ".chunk").unlink()
    store.put_owners(
        "default", [OwnerWrite(Owner("x", "memory"), (NewPassage("x", Chunk("apple", 1, 1), b"", b"\x01" * 8),))]
    )
    report = bring_up_to_date(store, index)
    assert report is not None
    assert (report.rebuilt, report.added) == (True, 42)
    assert "is missing" in report.fault
    assert found(index) == 42


def test_a_condemned_generation_is_not_used_again_and_is_rebuilt(tmp_path: Path) -> None:
    """What fails only while it is searched passed every check at opening."""
    store, directory = projected(tmp_path)
    index = Index(directory, store_id=store.id, embedding=EMBEDDING)
    assert found(index) == 41
    index.condemn("was damaged: a posting list ends early")
    assert (found(index), index.reader().fault) == (0, "was damaged: a posting list ends early")
    report = bring_up_to_date(store, index)
    assert report is not None
    assert (report.rebuilt, found(index), index.reader().fault) == (True, 41, "")


def test_condemning_an_old_generation_leaves_the_rebuilt_one_in_use(tmp_path: Path) -> None:
    """Of two threads that meet one fault, the slower one must not throw away what the faster one has rebuilt."""
    store, directory = projected(tmp_path)
    index = Index(directory, store_id=store.id, embedding=EMBEDDING)
    faulty = index.reader()
    index.condemn("was damaged: x", faulty)
    assert index.reader().fault == "was damaged: x"
    assert bring_up_to_date(store, index) is not None
    index.condemn("was damaged: x", faulty)
    assert (found(index), index.reader().fault) == (41, "")


def test_condemning_does_not_hide_what_another_process_has_published(tmp_path: Path) -> None:
    """The rebuilt generation may be on disk already when this process still holds the faulty one."""
    store, directory = projected(tmp_path)
    index, other = (Index(directory, store_id=store.id, embedding=EMBEDDING) for _ in range(2))
    faulty = index.reader()
    assert bring_up_to_date(store, other, rebuild=True) is not None
    index.condemn("was damaged: x", faulty)
    assert (found(index), index.reader().fault) == (41, "")


def test_too_few_descriptors_are_not_taken_for_damage(tmp_path: Path) -> None:
    """A healthy index was thrown away and rebuilt because a program had many files open."""
    store, directory = projected(tmp_path)
    before = (directory / "current.json").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    index = Index(directory, store_id=store.id, embedding=EMBEDDING)
    assert found(Index(directory, store_id=store.id, embedding=EMBEDDING)) == 41
    refused: list[str] = []
    for limit in range(3, 500):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limits[1]))
        try:
            index.reader()
            break
        except StoreError as error:
            refused.append(f"{type(error).__name__}: {error}")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(refused) > len(current_files(directory))
    assert {text.partition(":")[0] for text in refused} == {"StoreError"}
    assert all("the index cannot be used: " in text and "Too many open files" in text for text in refused)
    assert ((directory / "current.json").read_bytes(), found(index), index.reader().fault) == (before, 41, "")


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EACCES, errno.EIO])
def test_an_update_that_the_system_refuses_to_let_read_is_no_rebuild(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """What cannot be read now may be whole: building it again would fail the same way, or hide a failing disk."""
    store, directory = projected(tmp_path)
    index = Index(directory, store_id=store.id, embedding=EMBEDDING)
    assert found(index) == 41
    store.delete_owners("default", [2])

    def refuse(*_arguments: object) -> int:
        raise OSError(code, os.strerror(code))

    before = (directory / "current.json").read_bytes()
    monkeypatch.setattr("commonplace.index.files.os.open", refuse)
    with pytest.raises(StoreError, match=os.strerror(code)) as caught:
        bring_up_to_date(store, index)
    assert not isinstance(caught.value, IndexFaultError)
    assert (directory / "current.json").read_bytes() == before


def entry(number: int) -> IndexEntry:
    return IndexEntry(
        number, number, "default", "memory", "", "", (), "", "", "", "", "apple", b"\x07\x00", b"\x01" * 8
    )


def empty(directory: Path) -> Index:
    index = Index(directory, store_id="store", embedding=EMBEDDING)
    assert index.claim(0)
    index.update([entry(n) for n in range(1, 31)], [], heads={"n": Head(1)}, rebuild=True)
    index.release()
    return index


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from commonplace.index import writer
from commonplace.index.generations import Index
from commonplace.types import Embedding, Head, IndexEntry

def stop(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

*owner, name = sys.argv[2].split(".")
owner, calls = getattr(writer, owner[0]) if owner else writer, []
original = getattr(owner, name)

def stepped(*given):
    calls.append(given)
    return original(*given) if name == "_remove_leftovers" and len(calls) == 1 else stop()

index = Index(Path(sys.argv[1]), store_id="store", embedding=Embedding("test", "1", 8))
assert index.claim(5)
entries = [
    IndexEntry(n, n, "default", "memory", "", "", (), "", "", "", "", "apple", b"\\x07\\x00", b"\\x01" * 8)
    for n in range(31, 41)
]
setattr(owner, name, stepped if name == "_remove_leftovers" else stop)
index.update(entries, [1, 2], heads={"n": Head(2)})
"""


@pytest.mark.parametrize("step", STEPS)
def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_generation(tmp_path: Path, step: str) -> None:
    """Nothing half-written is ever named, and nothing that was left behind stays."""
    directory = tmp_path / "index"
    empty(directory)
    source = str(Path(__file__).parents[2] / "src")
    run = subprocess.run([sys.executable, "-c", KILLED, str(directory), step, source], check=False, timeout=60)
    assert run.returncode == -signal.SIGKILL
    index = Index(directory, store_id="store", embedding=EMBEDDING)
    change = index.reader().head("n").change
    assert change == (2 if step == "_remove_leftovers" else 1)
    assert (index.reader().fault, found(index)) == ("", 38 if change == 2 else 30)
    assert index.claim(0)
    index.update([entry(n) for n in range(31, 41)], [1, 2], heads={"n": Head(3)})
    index.release()
    assert (found(index), index.reader().documents, index.verify()) == (38, 38, [])
    assert len(list(directory.glob("g*"))) == 2


@pytest.mark.parametrize("step", STEPS[:-1])
def test_a_writer_that_fails_at_any_step_leaves_nothing_behind(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted update in a long-lived process must not pile up directories."""
    directory = tmp_path / "index"
    index = empty(directory)

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"commonplace.index.writer.{step}", fail)
    with pytest.raises(KeyboardInterrupt):
        index.update([entry(31)], [1], heads={"n": Head(2)})
    assert len(list(directory.glob("g*"))) == 1
    assert (index.reader().fault, found(index)) == ("", 30)
