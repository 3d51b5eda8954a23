"""The same work done by the parts that one would otherwise build on: Tantivy alone, SQLite FTS5, NumPy brute force.

Each is used as its own manual shows, with stop words taken out of the questions, and finds the best hundred. They do
less than a search does: no second stage, no filters, no snippets.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.benchmarks.asking import DEPTH, latency
from commonplace.benchmarks.machine import size_bytes
from commonplace.benchmarks.workspace import Metered
from commonplace.text.languages import STOP_WORDS
from commonplace.types import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SQLITE_BATCH = 2000
MATRIX_BATCH = 50_000


def content_words(question: str) -> list[str]:
    """Return the words of a question as a keyword engine wants them: lower case, no stop words, each once."""
    words = ["".join(filter(str.isalnum, word)).lower() for word in question.split()]
    kept = [word for word in words if word and word not in STOP_WORDS]
    return list(dict.fromkeys(kept or [word for word in words if word]))


def tantivy(documents: Iterable[Document], questions: Sequence[str], directory: Path) -> dict[str, Any]:
    """Build a Tantivy index of one stemmed field, with its own defaults for threads and memory, and search it."""
    from tantivy import Document as Row
    from tantivy import Index, SchemaBuilder

    directory.mkdir(parents=True)
    schema = SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    schema.add_text_field("text", tokenizer_name="en_stem", index_option="freq")
    index = Index(schema.build(), str(directory))
    metered = Metered(documents)
    start = time.perf_counter()
    writer = index.writer()
    for document in metered:
        writer.add_document(Row(id=document.id, text=document.text))
    writer.commit()
    writer.wait_merging_threads()
    seconds = time.perf_counter() - start - metered.seconds
    index.reload()
    searcher = index.searcher()

    def find(question: str) -> int:
        words = content_words(question)
        return (
            len(searcher.search(index.parse_query(" ".join(words), ["text"]), DEPTH, count=False).hits) if words else 0
        )

    return _report(seconds, size_bytes(directory), questions, find)


def fts5(documents: Iterable[Document], questions: Sequence[str], directory: Path) -> dict[str, Any]:
    """Build an FTS5 table with the porter stemmer in one transaction and search it with OR, ranked by its bm25."""
    directory.mkdir(parents=True)
    path = directory / "fts5.db"
    metered = Metered(documents)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        start = time.perf_counter()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE VIRTUAL TABLE passages USING fts5(text, tokenize = 'porter unicode61')")
        connection.execute("BEGIN")
        for batch in _batches(metered, SQLITE_BATCH):
            connection.executemany("INSERT INTO passages (text) VALUES (?)", [(document.text,) for document in batch])
        connection.execute("COMMIT")
        seconds = time.perf_counter() - start - metered.seconds

        def find(question: str) -> int:
            words = " OR ".join(f'"{word}"' for word in content_words(question))
            if not words:
                return 0
            sql = "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
            return len(connection.execute(sql, (words, DEPTH)).fetchall())

        return _report(seconds, size_bytes(directory), questions, find)


def numpy(passages: int, dimensions: int, questions: Sequence[str], seed: int) -> dict[str, Any]:
    """Compare a vector with every row of a float32 matrix; the numbers are random, which does not change the work."""
    import numpy as np

    generator = np.random.default_rng(seed)
    matrix: NDArray[np.float32] = np.empty((passages, dimensions), np.float32)
    for start in range(0, passages, MATRIX_BATCH):
        part = matrix[start : start + MATRIX_BATCH]
        generator.standard_normal(out=part, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    best = min(DEPTH, passages)

    def find(_question: str) -> int:
        vector = generator.standard_normal(dimensions, dtype=np.float32)
        scores = matrix @ vector
        nearest = np.argpartition(scores, passages - best)[passages - best :]
        return len(nearest[np.argsort(-scores[nearest])])

    return _report(None, matrix.nbytes, questions, find)


def _batches(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    batch: list[Document] = []
    for document in documents:
        batch.append(document)
        if len(batch) == size:
            yield batch
            batch = []
    yield batch


def _report(seconds: float | None, size: int, questions: Sequence[str], find: Callable[[str], int]) -> dict[str, Any]:
    times = []
    for question in (questions[0], *questions):
        start = time.perf_counter()
        find(question)
        times.append((time.perf_counter() - start) * 1000)
    build = {} if seconds is None else {"build_s": round(seconds, 3)}
    # The first question opens files and fills caches; it is asked again, and only that counts.
    return {**build, "bytes": size, **latency(times[1:])}
