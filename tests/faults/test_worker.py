"""Heavy work in a process of its own: with the same outcome, whatever becomes of that process or of the first one."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes import children

import commonplace
from commonplace.engine import Engine, maintenance, worker
from commonplace.engine.erasure_api import ErasureApi
from commonplace.engine.open import open_engine
from commonplace.errors import NotFoundError, StoreError
from commonplace.settings import load

SCRIPT = Path(__file__).with_name("worker.py")
ENDS_AT_ONCE = f"import os, sys; os.write(int(sys.argv[1]), {worker._line('started')!r}); os.abort()"
HAS_A_DEFECT = "from commonplace.engine import worker; worker._TASKS = {'forget': lambda *_: {}['lost']}; worker.main()"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with open_engine(tmp_path / "store", "default", None, low_memory=True) as engine:
        for number in range(9):
            engine.remember(f"Kettle {number} boils in {number + 2} minutes", id=f"{number}")
        yield engine


def refuse_to_work_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("it was done in this process")

    monkeypatch.setattr(ErasureApi, "erase", refuse)


def test_a_worker_that_forgets_gives_the_receipt_and_leaves_neither_words_nor_a_process(
    book: Engine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A process that ended and is not waited for stays in the system's table for as long as a server runs."""
    before = children()
    refuse_to_work_here(monkeypatch)
    assert book.search("kettle", min_score=0.0).hits
    rehearsed = book.forget(["3", "4"], dry_run=True)
    assert (rehearsed.dry_run, rehearsed.counts["memories"]) == (True, 2)
    receipt = book.forget(["3", "4"])
    assert (receipt.verified, receipt.ids) == (True, ("3", "4"))
    assert book.receipts() == [receipt]
    assert {hit.owner_id for hit in book.search("kettle", min_score=0.0).hits} == set("0125678")
    assert children() <= before
    assert capfd.readouterr() == ("", "")


def test_errors_come_as_they_were_raised(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller tells them apart by their class, and a person needs the remedy."""
    with commonplace.open(book.directory) as other, pytest.raises(NotFoundError) as expected:
        other.forget("nobody")
    refuse_to_work_here(monkeypatch)
    with pytest.raises(NotFoundError) as raised:
        book.forget("nobody")
    assert (str(raised.value), raised.value.remedy) == (str(expected.value), expected.value.remedy)


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false", "/dev/null", ""])
def test_it_is_done_here_where_no_process_can_be_started(
    book: Engine, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """An interpreter may have been upgraded away under a server, or there may be none."""
    monkeypatch.setattr(sys, "executable", program)
    assert book.forget("3").verified


def test_modules_of_the_working_directory_are_not_loaded(
    book: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A server works in somebody's project, which may have a `json.py`, or a trap."""
    for name in ("commonplace", "json", "numpy", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    refuse_to_work_here(monkeypatch)
    assert book.forget("3").verified


def test_a_process_that_is_ended_at_work_is_told_with_what_to_do(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows how far it came; to do the same here might find half of it done."""
    monkeypatch.setattr(worker, "_CODE", ENDS_AT_ONCE)
    with pytest.raises(StoreError, match="the process that was to forget was stopped; run `commonplace doctor`"):
        book.forget("3")
    assert book.get("3").content == "Kettle 3 boils in 5 minutes"


def test_a_defect_in_that_process_is_told_and_its_traceback_logged(
    book: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody sees what it prints, so a mere end would leave nothing to find the defect by."""
    monkeypatch.setattr(worker, "_CODE", HAS_A_DEFECT)
    with pytest.raises(StoreError, match="the process that was to forget failed: KeyError: 'lost'; the store's log"):
        book.forget("3")
    assert "Traceback" in caplog.text
    assert "in <lambda>" in caplog.text


def test_what_is_printed_at_a_start_is_no_answer(book: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment may greet whoever starts; taken for an answer, the work would be done twice at the same time."""
    (tmp_path / "greets").mkdir()
    (tmp_path / "greets" / "sitecustomize.py").write_text("import os; os.write(1, b'Welcome!\\n')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "greets"))
    refuse_to_work_here(monkeypatch)
    assert book.forget("3").verified


NEVER_BEGINS = "import time; time.sleep(3600)"
SAYS_NO_MORE = (
    f"import os, sys, time; os.write(int(sys.argv[1]), {worker._line('started')!r} + b'80'); time.sleep(3600)"
)
NEVER_ENDS = (
    "from commonplace.engine import worker; import atexit, time; atexit.register(time.sleep, 3600); worker.main()"
)


def test_a_process_that_says_no_more_is_ended(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a word is none: whoever forgets would wait as long as the process lives."""
    before = children()
    monkeypatch.setattr(worker, "_CODE", SAYS_NO_MORE)
    monkeypatch.setattr(worker, "SILENCE_S", 0.5)
    refuse_to_work_here(monkeypatch)
    with pytest.raises(
        StoreError, match=r"to forget did not respond for 0\.5 s and was stopped; run `commonplace doctor`"
    ):
        book.forget("3")
    assert children() <= before


@pytest.mark.parametrize("ids", [["3"], ["3", *(f"{n:0>200}" for n in range(2_000))]])
def test_what_a_process_never_begins_is_done_here(
    book: Engine, monkeypatch: pytest.MonkeyPatch, ids: list[str]
) -> None:
    """Also where what it is asked is more than a pipe holds, and nobody reads it."""
    before = children()
    monkeypatch.setattr(worker, "_CODE", NEVER_BEGINS)
    monkeypatch.setattr(worker, "SILENCE_S", 0.2)
    if len(ids) == 1:
        assert book.forget(ids).verified
    else:
        with pytest.raises(NotFoundError):
            book.forget(ids)
    assert children() <= before


def test_a_process_that_has_answered_is_not_waited_for(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    monkeypatch.setattr(worker, "_CODE", NEVER_ENDS)
    refuse_to_work_here(monkeypatch)
    assert book.forget("3").verified
    assert children() <= before


def test_a_store_that_was_deleted_is_not_made_anew(book: Engine) -> None:
    """Whoever deletes a store under a server wants it to be gone."""
    shutil.rmtree(book.directory)
    with pytest.raises(StoreError, match="was deleted while it was open"):
        book.forget("3")
    assert not book.directory.exists()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells of the end of processes that are no child")
def test_what_was_begun_is_finished_after_the_process_that_wanted_it_is_killed(tmp_path: Path) -> None:
    """A client that closes kills its server at any time."""
    with commonplace.open(tmp_path / "store") as book:
        book.remember("The merger with Quillfeather closes on the ninth.", id="secret")
        book.search("merger")
        wanting = subprocess.Popen(
            [sys.executable, str(SCRIPT), "begin", str(book.directory), "secret"], stdout=subprocess.PIPE, text=True
        )
        assert wanting.stdout is not None
        working = os.pidfd_open(int(wanting.stdout.readline()))
        wanting.kill()
        wanting.communicate()
        select.select([working], [], [])
        os.close(working)
        [receipt] = book.receipts()
        assert receipt.verified
        assert not any(b"Quillfeather" in path.read_bytes() for path in book.directory.rglob("*") if path.is_file())


def test_a_worker_brings_the_index_up_to_date_and_no_search_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the index lacks is scored directly, which takes longer and more memory the more it is."""
    monkeypatch.setattr(maintenance, "MIN_FOR_WORKER", 20)
    settings = load({"store.path": str(tmp_path / "store"), "embedder.name": "hashing"})
    with open_engine(settings.store.path, "default", None, settings=settings, low_memory=True) as book:
        book.remember("The kettle is in the kitchen")
        assert book.search("kettle", min_score=0.0).hits
        before = book._runtime.index.reader().head("default").change
        for number in range(20):
            book.remember(f"Kettle {number} boils in {number + 2} minutes")
        assert len(book.search("kettle", 10, min_score=0.0).hits) == 10
        assert book._runtime.maintenance._ahead.acquire(timeout=60)
        assert book._runtime.index.reader().head("default").change > before
        assert book.index_status().waiting == 0


def test_an_engine_of_low_memory_has_loaded_nothing_that_forgets_or_writes_the_index(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "loaded", str(tmp_path / "store")], capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert modules.isdisjoint(
        {
            "commonplace.erasure.erase",
            "commonplace.erasure.verify",
            "commonplace.index.writer",
        }
    )
