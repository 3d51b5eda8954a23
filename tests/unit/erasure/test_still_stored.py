"""What is forgotten may be a word of the store's own: found in the store's files, it is no trace of what went."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.erasure.scan import LABEL, MIN_LENGTH, Collector, Patterns
from commonplace.erasure.verify import fixed_content, still_stored
from commonplace.settings.schema import keys
from commonplace.store.rows import RowQuery, Values
from commonplace.store.schema import Table
from commonplace.store.store import Store

WORD = re.compile(rb"[A-Za-z_./-]{%d,}" % MIN_LENGTH)
RANDOM = re.compile(rb"[0-9a-f-]{32,}")


def words_of_files(directory: Path) -> set[str]:
    """Return the words that the files of a store hold, of the database those of its schema and of its notes."""
    files = [path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("store.db")]
    texts = [path.read_bytes() for path in files]
    with closing(sqlite3.connect(directory / "store.db")) as db:
        for sql in ("SELECT name FROM sqlite_schema", "SELECT sql FROM sqlite_schema", "SELECT key FROM meta"):
            texts += [text.encode() for (text,) in db.execute(sql) if text]
        for (body,) in db.execute("SELECT body FROM notes"):
            texts.append(json.dumps({**json.loads(body), "checked": [], "counts": {}}).encode())
    return {word.decode() for text in texts for word in WORD.findall(RANDOM.sub(b" ", text))}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words of a store in which nothing with a word was ever remembered, searched and forgotten."""
    directory = tmp_path_factory.mktemp("bare") / "store"
    with commonplace.open(directory) as book:
        memory = book.remember(str(uuid4().int))
        book.search("9")
        book.sync()
        found = words_of_files(directory)
        book.forget(memory.id)
        found |= words_of_files(directory)
    assert {"generation", "passages", "last_numbers", "expired_at", "excluded_needles", "verified"} < found
    return sorted(found)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        book.remember("The ferry leaves at nine", id="ferry")
        yield book


def test_a_name_that_is_a_word_of_any_store_is_no_trace(book: Engine, words: list[str]) -> None:
    book.remember_many([{"content": str(uuid4().int), "source": word, "tags": ["gone"]} for word in words])
    receipt = book.forget(tag="gone")
    assert (receipt.found, receipt.verified) == ((), True)
    assert receipt.excluded_needles > 0


@pytest.fixture(scope="module")
def own() -> bytes:
    return fixed_content()


def test_every_word_of_any_store_is_among_its_own_words(words: list[str], own: bytes) -> None:
    """And so is every part of one, whatever somebody calls something."""
    assert [word for word in words if word.encode() not in own] == []


def test_how_every_database_begins_is_no_trace(book: Engine) -> None:
    memory = book.remember("SQLite format 3", entities=["SQLite format"])
    receipt = book.forget(memory.id)
    assert (receipt.found, receipt.verified) == ((), True)


@pytest.mark.parametrize(
    "kept",
    [
        {"origin": "document"},
        {"metadata": {"category": "confidential"}},
        {"category": "preference"},
        {"tags": ["preference"]},
    ],
)
def test_a_word_that_what_remains_is_kept_under_is_no_trace(book: Engine, kept: dict[str, Any]) -> None:
    book.remember("The gate is shut at ten", id="gate", **kept)
    for number, name in enumerate(("document", "confidential", "preference", "Preferences", "Decisions")):
        book.remember(f"The harbour master has {number} keys", tags=[name], source="us")
    book.sync()
    receipt = book.forget(source="us")
    assert (receipt.found, receipt.verified) == ((), True)


def test_a_name_that_an_earlier_receipt_gives_as_an_id_is_no_trace(book: Engine) -> None:
    """Receipts keep ids, so that what comes back is known."""
    book.forget(book.remember("Boats", id="Quillfeather").id)
    memory = book.remember("The merger closes on the ninth", tags=["Quillfeather"])
    receipt = book.forget(memory.id)
    assert (receipt.found, receipt.verified) == ((), True)


def test_a_name_that_the_place_of_a_backup_has_is_no_trace(book: Engine, tmp_path: Path) -> None:
    (tmp_path / "Quillfeather").mkdir()
    book.backup(tmp_path / "Quillfeather" / "b.zip")
    memory = book.remember("The merger closes on the ninth", tags=["Quillfeather"])
    receipt = book.forget(memory.id)
    assert (receipt.found, receipt.verified) == ((), True)


def test_a_name_that_is_that_of_a_page_is_no_trace(book: Engine) -> None:
    """Notes of other systems are called by their files, which may be called as ours are."""
    book.sync()
    [page] = [path.name for path in (book.directory / "memory").glob("*.md")]
    memory = book.remember("The harbour is closed", source=page)
    receipt = book.forget(memory.id)
    assert (receipt.found, receipt.verified) == ((), True)


def test_what_was_said_is_looked_for_in_receipts_all_the_same(book: Engine) -> None:
    """They must not hold it: only a name may be the same word as an id."""
    patterns = Collector()
    patterns.add_content("Quillfeather")
    book.forget(book.remember("Boats", id="Quillfeather").id)
    assert still_stored(book._runtime.store, patterns.patterns()) == set()
    patterns = Collector()
    patterns.add_label("Quillfeather")
    assert still_stored(book._runtime.store, patterns.patterns().of_kinds(LABEL)) == {b"Quillfeather"}


def test_the_settings_of_a_store_are_its_own_words(own: bytes) -> None:
    assert [key.name for key in keys() if json.dumps(key.name).encode() not in own] == []


def test_all_that_is_stored_is_read_table_by_table(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is asked for several whole tables sends all of them, and this process has to hold them at once."""
    memory = book.remember("The gate is shut at ten", tags=["SQLite format"])
    asked, read = list[int](), Store.rows_of

    def counted(self: Store, some: Iterable[RowQuery], namespace: str | None = None) -> Iterator[tuple[Table, Values]]:
        whole = list(some)
        asked.append(sum(not among for _, among in whole))
        return read(self, whole, namespace)

    monkeypatch.setattr(Store, "rows_of", counted)
    assert book.forget(memory.id).verified
    assert max(asked) == 1


def test_what_is_stored_is_searched_in_large_blocks(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search costs the same however little it is given: texts that are empty must not have one each."""
    book.remember_many([{"content": f"Berth {n} is taken", "metadata": {"berth": n, "note": ""}} for n in range(40)])
    searched, found = list[int](), Patterns.find

    def counted(self: Patterns, data: bytes) -> set[bytes]:
        searched.append(len(data))
        return found(self, data)

    monkeypatch.setattr(Patterns, "find", counted)
    patterns = Collector()
    patterns.add_content("Quillfeather")
    assert still_stored(book._runtime.store, patterns.patterns()) == set()
    assert len(searched) < 10
