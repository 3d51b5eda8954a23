"""Count the SQL statements of the calls that an agent makes most, and list them with `--list`.

With the address of an empty database in PostgreSQL: how often each call waits for it, which is what a network adds to.
"""

from __future__ import annotations

import math
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import commonplace
from commonplace.engine.engine import Engine
from commonplace.journal import sync

CALLS: dict[str, Callable[[Engine], object]] = {
    "search": lambda book: book.search("what database does billing use"),
    "recall": lambda book: book.recall("which database is billing on"),
    "remember": lambda book: book.remember("We chose Redis for sessions", tags=["decision"], id="new"),
    "get": lambda book: book.get("m3"),
    "forget": lambda book: book.forget("m4"),
    "add_episode": lambda book: book.graph.add_episode("auth.ts depends on token.ts"),
}


NO_STATEMENTS = ("BEGIN", "BEGIN IMMEDIATE", "ROLLBACK")


@contextmanager
def traced(statements: list[str]) -> Iterator[None]:
    """Collect every statement that any connection made in the block runs, but for those that follow by the clock.

    Pages of Markdown do, which counts differently on a busy machine.
    """
    connect = sqlite3.connect

    def traced_connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*args, **kwargs)
        db.set_trace_callback(statements.append)
        return db

    sqlite3.connect = traced_connect  # type: ignore[assignment]
    try:
        with patch.multiple(sync, LOOK_EVERY_S=math.inf, FLUSH_AFTER_S=math.inf):
            yield
    finally:
        sqlite3.connect = connect


def counted(directory: Path) -> dict[str, list[str]]:
    """Return the statements of each call in a store of twenty memories, each call made once before."""
    statements: list[str] = []
    by_call = {}
    with traced(statements), commonplace.open(directory, embedder="hashing") as book:
        for name, call in _warmed(book):
            statements.clear()
            call(book)
            by_call[name] = [statement for statement in statements if statement not in NO_STATEMENTS]
    return by_call


def _warmed(book: Engine) -> Iterator[tuple[str, Callable[[Engine], object]]]:
    book.remember_many([{"content": f"Note {n} on billing with Postgres", "id": f"m{n}"} for n in range(20)])
    book.graph.add_episode("billing.ts depends on Postgres")
    for name, call in CALLS.items():
        book.recall("warm")
        yield name, call


def waits(url: str) -> dict[str, int]:
    """Return how often each call waits for a server in PostgreSQL, in an empty store there."""
    from commonplace.store.postgres import Address

    connect, by_call = Address.connect, {}
    with tempfile.TemporaryFile() as trace:

        def traced_connect(address: Address) -> Any:
            connection = connect(address)
            connection.pgconn.trace(trace.fileno())
            return connection

        with (
            patch.object(Address, "connect", traced_connect),
            patch.multiple(sync, LOOK_EVERY_S=math.inf, FLUSH_AFTER_S=math.inf),
            commonplace.open(url, embedder="hashing") as book,
        ):
            for name, call in _warmed(book):
                begin = trace.seek(0, os.SEEK_END)
                call(book)
                trace.seek(begin)
                by_call[name] = _waits(trace.read().decode(errors="replace"))
    return by_call


def _waits(trace: str) -> int:
    """Count where a client asks for the answers to what it sent, `F`, and takes one, `B`."""
    waits, is_sent, is_asked = 0, False, False
    for line in trace.splitlines():
        _, *message = line.split("\t")
        if message[:1] == ["F"]:
            is_sent = is_sent or message[2] in ("Execute", "Query")
            if is_sent and message[2] in ("Sync", "Flush", "Query"):
                is_sent, is_asked = False, True
        elif message[:1] == ["B"] and is_asked:
            waits, is_asked = waits + 1, False
    return waits


def main(arguments: list[str]) -> int:
    """Print a line for each call."""
    if arguments and "--list" not in arguments:
        for name, count in waits(arguments[0]).items():
            print(f"{name:12} {count:4}")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        for name, statements in counted(Path(directory) / "store").items():
            print(f"{name:12} {len(statements):4}")
            if "--list" in arguments:
                print(*(f"    {' '.join(statement.split()):.150}" for statement in statements), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
