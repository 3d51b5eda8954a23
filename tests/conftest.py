"""What all tests share."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: as many workers as cores would fight over them

import numpy as np
import pytest
from hypothesis import settings

from commonplace.ingest.embeddings import EmbeddingBacklog
from commonplace.journal.sync import JournalSync
from commonplace.memory import supersession
from commonplace.models import files
from commonplace.models.contract import TokenizedText
from commonplace.models.minilm import SHIPPED, Floats, MinilmEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.store import connection, database, dialect

# Where nothing keeps what was compiled, pytest rewrites every assertion anew, and so does each worker.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # of the processes that tests start
gc.disable()  # until all tests are collected: nothing of them is garbage
settings.register_profile("ci", settings.get_profile("ci"), max_examples=50)  # the same ones each time

_MEMORY, _ROOM = Path("/dev/shm"), 2 * 2**30
if _MEMORY.is_dir():
    _found = os.statvfs(_MEMORY)
    # A disk takes more than half of the time of a test. Programs that tests write must run there, too.
    if _found.f_bavail * _found.f_frsize > _ROOM and not _found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

_START, _EMBED = EmbeddingBacklog.start, MinilmEmbedder.embed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write the answers of tests/golden anew")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _vectors_in_turn() -> Iterator[None]:
    """Make vectors that come later before the call returns: what a test sees does not depend on a thread's pace."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddingBacklog, "start", lambda self, is_due=False: (self.drain(), is_due and self._after()))
        yield


@lru_cache(maxsize=50_000)
def _vector(model: MinilmEmbedder, ids: bytes) -> Floats:
    return _EMBED(model, [TokenizedText("", np.frombuffer(ids, np.uint16))])


@pytest.fixture(scope="session", autouse=True)
def _each_text_embedded_once() -> Iterator[None]:
    """Let the transformer read a text once in all tests of a process: it makes each vector by itself."""

    def embed(model: MinilmEmbedder, texts: Sequence[TokenizedText]) -> Floats:
        if model.directory != SHIPPED or not texts:
            return _EMBED(model, texts)
        return np.concatenate([_vector(model, each.token_ids.tobytes()) for each in texts])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MinilmEmbedder, "embed", embed)
        yield


@pytest.fixture(scope="session", autouse=True)
def _shipped_data_read_once() -> Iterator[None]:
    """Read what ships with the package once in all tests of a process: each engine would do so again.

    These are the vocabulary with its words, the tokens by which a wording is judged, the checksums of the models, and
    an empty store, which is copied. What a test writes elsewhere is read each time.
    """
    embedder = StaticEmbedder.load()  # shared by all engines while somebody has it
    judged = supersession.Wordings
    wordings = lru_cache(lambda: judged(embedder.tokenize))
    empty, is_free = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False), threading.Lock()
    tables, begin = dialect.TABLES, database.begin_store
    begin(empty, "")
    check, checked = files.ModelFiles._wrong_bytes, dict[object, str]()

    def wrong_bytes(model: files.ModelFiles[object], name: str) -> str:
        if model.directory != SHIPPED:
            return check(model, name)
        key = (name, model.stated[name])
        if key not in checked:
            checked[key] = check(model, name)
        return checked[key]

    def begin_store(db: sqlite3.Connection, store_id: str) -> None:
        if dialect.TABLES is not tables:  # a test has others
            begin(db, store_id)
            return
        with is_free:
            empty.backup(db)
        db.execute("UPDATE meta SET value = ? WHERE key = 'store_id'", (store_id,))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supersession, "Wordings", lambda of: wordings() if of == embedder.tokenize else judged(of))
        for module in (database, connection):
            patch.setattr(module, "begin_store", begin_store)
        patch.setattr(files.ModelFiles, "_wrong_bytes", wrong_bytes)
        yield


@pytest.fixture
def vectors_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the transformer read each text whenever it is given."""
    monkeypatch.setattr(MinilmEmbedder, "embed", _EMBED)


@pytest.fixture(scope="session", autouse=True)
def _pages_in_turn() -> Iterator[None]:
    """Stop the watch by which pages are looked at and written from time to time: a busy machine changes no page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(JournalSync.__init__.__kwdefaults__, "stopwatch", lambda: 0.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Leave it to the system when it writes what a store of this process commits: no test cuts its power."""
    prepare = connection.prepare_writer

    def prepared(db: sqlite3.Connection) -> None:
        prepare(db)
        db.execute("PRAGMA synchronous = OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "prepare_writer", prepared)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_variable_of_the_tests() -> Iterator[None]:
    """Take away what tells the tests of a server and a browser: the program would refuse these as unknown settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("COMMONPLACE_TEST_POSTGRES", "COMMONPLACE_TEST_BROWSER"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def embedding_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make vectors that come later in their thread, as the program does."""
    monkeypatch.setattr(EmbeddingBacklog, "start", _START)
