"""Connections to PostgreSQL, and what it says in other words than SQLite.

The statements of the store are written for SQLite; `native` turns each into PostgreSQL's words once. No session state
is used, so that a transaction pooler may stand between: what a transaction needs is set for it alone.

A writer of a namespace holds two advisory locks until its transaction ends: its namespace's, and that of the whole
store, shared with other namespaces' writers. Who writes to all namespaces holds that one alone.
"""

from __future__ import annotations

import json
import os
import re
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from shlex import quote as in_shell
from typing import Any, Final
from urllib.parse import quote, urlencode
from uuid import uuid4

import numpy as np
import psycopg
from psycopg import pq
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import NumericBinaryLoader
from psycopg.types.string import StrBinaryDumper

from commonplace.errors import (
    CommonplaceError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreMissingError,
    StoreUnreachableError,
    StoreVersionError,
    UsageError,
)
from commonplace.locks import Lock, refuse_forked
from commonplace.store import leases, postings, rights, vector_index
from commonplace.store.connection import EVERY, Connections, PrivateConnections, settings
from commonplace.store.database import refuse_existing
from commonplace.store.dialect import RANDOM_BYTES, Conflict, Database, Read, Rows, insert, quoted, script
from commonplace.store.leases import Lease
from commonplace.store.rows import named_in
from commonplace.store.schema import TABLES, VERSION, Role, Table
from commonplace.store.writes import MOVE, change_is_under_way, snapshot_is_written

_TYPES: Final[Mapping[Role, str]] = {
    "key": "bigint",
    "number": "bigint",
    "flag": "smallint",
    "time": "double precision",
    "real": "double precision",
    "bytes": "bytea",
}
_TEXT: Final = 'text COLLATE "C"'  # texts are ordered by code points, whatever the database's language is

_RULES: Final = tuple(
    (re.compile(pattern, re.DOTALL), words)
    for pattern, words in (
        (r"\s+(?:NOT INDEXED|INDEXED BY \w+)", ""),
        (r"\bCROSS JOIN(\s+\w+\s+\w+\s+ON\b)", r"JOIN\1"),
        (r"\(SELECT value FROM json_each\(:(\w+)\)\)", r"(SELECT jsonb_array_elements_text(:\1::jsonb))"),
        (
            r"json_each\(:(\w+)\) j\b",
            r"(SELECT value::bigint AS value FROM jsonb_array_elements_text(:\1::jsonb)) j",
        ),
        # What has no end comes last, after the end of time: NaN is PostgreSQL's greatest number.
        (r"ifnull\(((?:r\.)?valid_to), ''\)", r"coalesce(\1, 'NaN')"),
        (r"\binstr\(", "strpos("),
        (r"\blength\(CAST\(((?:\w\.)?text) AS BLOB\)\)", r"octet_length(\1)"),
        (r"CAST\(m\.trust \* 10 AS INTEGER\) / 10\.0", "to_char(floor(m.trust * 10) / 10, 'FM0.0')"),
        (r"typeof\(token\) != 'blob' OR ", ""),
        (r"\blower\(hex\((\w+)\)\)", r"encode(\1, 'hex')"),
        (r"\bx''", r"'\\x'::bytea"),
        (re.escape(RANDOM_BYTES), "substring(sha256(uuid_send(gen_random_uuid())) for 8)"),
        # They count by themselves: no transaction waits for another there.
        (
            r"\s*UPDATE sequences .*",
            """
            SELECT array(SELECT nextval('owners_number_seq') FROM generate_series(1, :owners)),
                array(SELECT nextval('passages_number_seq') FROM generate_series(1, :passages))
            """,
        ),
        (r"^PRAGMA integrity_check.*", "SELECT 'ok'"),
    )
)
_VALUE: Final = re.compile(r"(?<!:):([A-Za-z_]\w*)")


@lru_cache(maxsize=4096)
def native(sql: str, absent: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """Return a statement in PostgreSQL's words, and the names of its values in their order.

    Args:
        absent: the names of values that are None. They are written out: nothing else tells of what type they are.
    """
    for pattern, words in _RULES:
        sql = pattern.sub(words, sql)
    places: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        return "NULL" if found[1] in absent else f"${places.setdefault(found[1], len(places) + 1)}"

    return _VALUE.sub(place, sql), tuple(places)


def initial_sql() -> Iterator[str]:
    """Yield the statements that make an empty store."""
    for table in TABLES:
        if table.name != "sequences":
            yield _create_table(table)
    last = "(SELECT last_value + is_called::int FROM {}_number_seq) AS next_{}"
    numbers = f"{last.format('owners', 'owner')}, {last.format('passages', 'passage')}"
    yield f"CREATE VIEW sequences AS SELECT 1 AS number, {numbers}"
    for index in script("indexes"):
        # What covers a whole row there is longer than a page here may hold.
        yield native(
            re.sub(
                r"(created_at DESC, id), target,.*\)|(created_at DESC, id), source,.*\)", r"\1\2)", index, flags=re.S
            ),
            frozenset(),
        )[0].replace("ON passage_vectors (namespace)", "ON passage_vectors (namespace, number)")


def _create_table(table: Table) -> str:
    key = table.key[-1] if table.is_numbered else ""
    lines = []
    for column in table.columns:
        rest = "" if column.is_optional or column.name == key else " NOT NULL"
        if column.name == key and column.name == "number" and not column.refers:
            rest += " GENERATED BY DEFAULT AS IDENTITY"
        if column.name == key:
            rest += " PRIMARY KEY"
        if column.is_enforced:
            rest += f" REFERENCES {column.refers}"
        lines.append(f"{quoted(column.name)} {_TYPES.get(column.role, _TEXT)}{rest}")
    if not key:
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted, table.key))})")
    return f"CREATE TABLE {table.name} ({', '.join(lines)})"


class _Text(StrBinaryDumper):
    """Gives a text as one, and no NUL: what is written has none, and what is asked for with one is not there."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _Numbers(bytes):
    """An array of integers as the protocol has it."""


class _Texts(bytes):
    """An array of texts as the protocol has it."""


class _Bytes(bytes):
    """An array of bytes as the protocol has it."""


_OIDS: Final[Mapping[type, tuple[int, int]]] = {_Numbers: (1016, 20), _Texts: (1009, 25), _Bytes: (1001, 17)}
"""The types of these arrays and of what is in them."""
_MANY: Final = 16
_SIZE: Final = struct.Struct("!i")
_NUMBER: Final = np.dtype([("size", ">i4"), ("value", ">i8")])


def _array(value: Any) -> Any:
    """Return a value, a list of many as an array that is written at once: the driver asks of each item what it is."""
    if type(value) is not list or len(value) < _MANY:
        return value
    types = set(map(type, value))
    if types == {int}:
        numbers = np.full(len(value), 8, _NUMBER)
        numbers["value"] = value
        return _of_array(_Numbers, len(value), numbers.tobytes())
    if types == {bytes}:
        return _of_array(_Bytes, len(value), _sized(value))
    return _of_array(_Texts, len(value), _sized([*map(_encoded, value)])) if types == {str} else value


def _of_array(kind: type[bytes], count: int, items: bytes) -> bytes:
    return kind(struct.pack("!iiiii", 1, 0, _OIDS[kind][1], count, 1) + items)


def _sized(items: Sequence[bytes]) -> bytes:
    return b"".join(chain.from_iterable(zip(map(_SIZE.pack, map(len, items)), items, strict=True)))


def _encoded(text: str) -> bytes:
    return text.replace("\0", "\ufffd").encode()


class _Array(Dumper):
    """Gives an array as it is."""

    format = pq.Format.BINARY

    def __init__(self, cls: type, context: Any = None) -> None:
        super().__init__(cls, context)
        self.oid = _OIDS[cls][0]

    def dump(self, obj: Any) -> Any:
        return obj


class _Whole(NumericBinaryLoader):
    """Takes the sum of integers as the integer that it is."""

    def load(self, data: Any) -> Any:
        return int(super().load(data))


class _Cursor(psycopg.RawCursor[Any]):
    """Tells how many rows were written when it is known."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement wrote, which in a pipeline is waited for."""
        try:
            self.fetchone()
        except psycopg.ProgrammingError as error:
            if error.sqlstate:  # else it says that there are no rows to fetch
                raise
        return super().rowcount


class Session:
    """A connection of which a thread makes use: a `Database`.

    In a transaction it goes on without waiting: what was sent is waited for where rows are asked for, and at its end.
    An error in one statement is raised then; the server passes over those after it, also over the commit.
    """

    def __init__(self, connection: psycopg.Connection[Any], scope: str = "") -> None:
        """Take a connection.

        Args:
            scope: whose rows are read or written; see `rights.scope_of`. "" is nobody's.
        """
        self.connection = connection
        self._scope = scope
        self._entered = ""
        self._is_within = False
        self._pipeline = ExitStack()
        self._ahead: dict[str, tuple[Mapping[str, Any], Rows]] = {}
        self.first: Any = None
        """What was read at the beginning."""
        self.changed: set[int] = set()
        """The numbers of the namespaces of which it wrote a change."""

    def execute(self, sql: str, values: Mapping[str, Any] | None = None, /) -> Rows:
        """Run a statement of the store."""
        values = values or {}
        if self._ahead:
            asked, found = self._ahead.get(sql, (None, None))
            if found is not None and asked == values:
                del self._ahead[sql]
                return found
            if not sql.lstrip().startswith("SELECT"):
                written = named_in(sql)
                self._ahead = {each: held for each, held in self._ahead.items() if written.isdisjoint(named_in(each))}
        if sql is MOVE:
            self.changed.update(json.loads(values["spaces"]))
        absent = frozenset(name for name, value in values.items() if value is None)
        words, names = native(sql, absent)
        given = [_array(values[name]) for name in names]
        if self._scope == self._entered:
            return self.connection.execute(words, given, binary=True)
        with self.together():  # outside a transaction, what goes together is one
            self.connection.execute(rights.ENTER, [self._scope])
            found = self.connection.execute(words, given, binary=True)
        if self._is_within or self.connection.info.transaction_status != pq.TransactionStatus.IDLE:
            self._entered = self._scope
        return found

    def ahead(self, reads: Iterable[Read]) -> None:
        """Send what will be read before anything else is written to the same tables; no two by one statement."""
        self._ahead = {sql: (values, self.execute(sql, values)) for sql, values in reads}

    def begin(self, statements: Sequence[str]) -> None:
        """Begin a transaction of the scope."""
        self._pipeline.enter_context(self.connection.pipeline())
        self._is_within, self._entered = True, self._scope
        for statement in (*statements, *([rights.entering(self._scope)] if self._scope else ())):
            self.connection.execute(statement)

    def end(self, words: str = "ROLLBACK") -> None:
        """End the transaction when all that was sent is done.

        Raises:
            StoreError: the server did something else.
        """
        self._is_within = False
        try:
            ended = self.connection.execute(words)
        finally:
            self._pipeline.close()
        if ended.statusmessage != words:
            raise StoreError(f"the server was to {words}, and said {ended.statusmessage}")

    def close(self) -> None:
        """Undo what was begun and not ended."""
        if self._is_within:
            with suppress(psycopg.Error, StoreError):
                self.end()

    def together(self) -> AbstractContextManager[object]:
        """Let what is executed in the block go without waiting for answers."""
        return nullcontext() if self._is_within else self.connection.pipeline()

    @contextmanager
    def within(self, scope: str | None) -> Iterator[None]:
        """Let what is executed inside the block read the rows of a scope; None leaves it."""
        before = self._scope
        self._scope = before if scope is None else scope
        try:
            yield
        finally:
            self._scope = before

    def executemany(self, sql: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        """Run a statement for each of the rows, of which none waits for the answer to another."""
        with self.together():
            for row in rows:
                self.execute(sql, row)

    def insert_many(
        self, table: Table, names: tuple[str, ...], conflict: Conflict, rows: Sequence[Mapping[str, Any]], /
    ) -> None:
        """Write rows, with a list for each column in one statement where that says the same."""
        if conflict in ("replace", "add"):  # it would change no row twice
            self.executemany(insert(table, names, conflict), rows)
        else:
            self.execute(_insert_lists(table, names, conflict), {name: [row[name] for row in rows] for name in names})


@lru_cache
def _insert_lists(table: Table, names: tuple[str, ...], conflict: Conflict) -> str:
    lists = ", ".join(f":{name}::{_TYPES.get(table[name].role, 'text')}[]" for name in names)
    before, rest = insert(table, names, conflict, 1).split("VALUES")
    return f"{before}SELECT * FROM unnest({lists}) {rest.partition(')')[2]}"


class Address:
    """Where a store stands, and how a connection is made; its text is a URL that leads there, without a password."""

    def __init__(self, dsn: str, password: str, timeout_s: float) -> None:
        self._dsn = dsn
        self._password = password
        self.timeout_s = timeout_s
        try:
            self._parts = conninfo_to_dict(dsn)
        except psycopg.Error:
            raise UsageError(
                "the address of the PostgreSQL store cannot be read",
                remedy="write postgresql://user@host:5432/database",
            ) from None  # the cause names all of it

    def __str__(self) -> str:
        rest = {name: str(value) for name, value in self._parts.items() if "password" not in name}
        user, name = (quote(rest.pop(each, ""), safe="") for each in ("user", "dbname"))
        place = f"{user}@" if user else ""
        if re.fullmatch(r"[\w.-]+", rest.get("host", "")):  # else a directory, or several
            port = rest.pop("port", "")
            place += rest.pop("host") + (f":{port}" if port else "")
        query = urlencode(rest, safe="/,", quote_via=quote)
        return f"postgresql://{place}/{name}{'?' if query else ''}{query}"

    @property
    def option(self) -> str:
        """How a command of a shell names the store."""
        return f"--store {in_shell(str(self))}"

    def connect(self) -> psycopg.Connection[Any]:
        """Make a connection that begins no transaction by itself."""
        with self.errors():
            connection = psycopg.connect(
                make_conninfo(self._dsn, password=self._password or None),
                autocommit=True,
                prepare_threshold=None,
                cursor_factory=_Cursor,
                connect_timeout=max(2, round(self.timeout_s)),
            )
        connection.adapters.register_dumper(str, _Text)
        for kind in _OIDS:
            connection.adapters.register_dumper(kind, _Array)
        connection.adapters.register_loader("numeric", _Whole)
        return connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what the driver raises into the store's errors, with a remedy and without a password."""
        try:
            yield
        except psycopg.Error as error:
            raise self._meaning(error) from _DriverError(self._hidden(error), error)

    def _hidden(self, error: psycopg.Error) -> str:
        password = self._password or str(self._parts.get("password") or "")
        first = str(error).strip().split("\n")[0]
        return first.replace(password, "***") if password else first

    def _meaning(self, error: psycopg.Error) -> CommonplaceError:
        code, text = error.sqlstate or "", self._hidden(error)
        if code in _BUSY:
            return StoreBusyError(f"the store {self} stayed locked by another program: {text}", remedy="try again")
        if not code and isinstance(error, psycopg.OperationalError):
            # A server that refuses a connection gives no code.
            code = next((code for words, code in _REFUSALS.items() if words in text), _LOST)
        found = next((meaning for begin, meaning in _MEANINGS.items() if code.startswith(begin)), _OTHER)
        kind = StoreUnreachableError if found in _TRANSIENT else StoreError
        return kind(f"the store {self} {found[0]}: {text}", remedy=found[1])


class _DriverError(Exception):
    """What the driver said, without what it was told."""

    def __init__(self, text: str, error: psycopg.Error) -> None:
        super().__init__(f"{type(error).__name__}: {text}")


_BUSY: Final = {"40001", "40P01", "55P03", "57014"}
_LOST: Final = "08"
_MEANINGS: Final = {
    _LOST: ("cannot be reached", "see that the server is running, and that address and network are right"),
    "57P": ("cannot be reached", "wait until the server has started, and try again"),
    "28": ("refuses the user or password", "correct the address, or ask who runs the server"),
    "3D": ("does not exist", "make the database with `createdb`, or name another one"),
    "42501": ("does not let this user do so", "let who owns the tables run `commonplace init --grant-to`"),
    "42704": ("does not know this", "make the role with `createuser`, or name another one"),
    "25006": ("is read-only", "name the primary server, and a role that may write"),
    "533": ("takes no more connections", "try again, or raise max_connections on the server"),
    "53100": ("has a full disk", "free some space on the server"),
    "42P07": ("has tables of another program", "name an empty database"),
    "54": ("is given a value that is too large", "split it"),
}
"""What the driver's errors mean, by how their codes begin."""
_TRANSIENT: Final = (_MEANINGS[_LOST], _MEANINGS["57P"], _MEANINGS["533"])
_REFUSALS: Final = {
    "authentication failed": "28",
    "no password supplied": "28",
    "does not exist": "3D",
    "too many": "533",
}
_OTHER: Final = ("cannot do this", "run `commonplace doctor`")

_CONNECTIONS: Final = 16
_SCHEMA_LOCK: Final = 1131245680
_STORE_LOCK: Final = 1131245681
_OLDEST_SERVER: Final = 150_000
_SNAPSHOT: Final = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
# After a lock was waited for, a statement is to see what the other one wrote, whatever the server's default is.
_CHANGE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"


class PostgresConnections(Connections):
    """Connections to a database, each used by one thread at a time; see `Connections`."""

    def __init__(self, address: Address, *, create: bool) -> None:
        self.address = address
        self.place = str(address)
        self.path = Path(self.place)
        self._process = os.getpid()
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self._idle: list[psycopg.Connection[Any]] = []
        self._guard = threading.Lock()
        self._taken: dict[int, Session] = {}
        self._writing: set[int] = set()
        self._known = {}
        self._is_closed = False
        try:
            with self.address.errors(), self._session() as session:
                self.is_read_only = _prepare(session.connection, address, create=create)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self, namespace: str | None = None, *, once: bool = False) -> Iterator[Database]:
        """Give a connection inside a read transaction; see `Connections.reading`."""
        scope = None if namespace is None else rights.scope_of(namespace)
        with self.address.errors():
            inside = self._taken.get(threading.get_ident())
            if inside is not None:
                self._refuse_closed()
                with inside.within(scope):
                    yield inside
                return
            begin, first = ((), None) if once else (_SNAPSHOT, _is_there)
            with self._session(begin, scope or "", first) as session:
                yield session

    def rows(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the rows that one statement finds; where the connection is lost, on another one."""
        values = values or {}
        scope = rights.scope_of(values["namespace"]) if "namespace" in values else None
        with self.address.errors():
            inside = self._taken.get(threading.get_ident())
            if inside is None:
                return self._again(lambda session: session.execute(sql, values).fetchall(), scope or "")
            self._refuse_closed()
            with inside.within(scope):
                return inside.execute(sql, values).fetchall()

    @contextmanager
    def snapshot(
        self, first: Callable[[Database], dict[object, Any]] = settings, namespace: str | None = None
    ) -> Iterator[None]:
        """Let every `reading` of this thread inside the block see one state; refuse `writing`."""
        thread = threading.get_ident()
        if thread in self._taken:
            yield
            return
        scope = "" if namespace is None else rights.scope_of(namespace)
        with self.address.errors(), self._session(_SNAPSHOT, scope, first) as session:
            self._known[thread] = session.first
            self._taken[thread] = session
            try:
                yield
            finally:
                del self._taken[thread], self._known[thread]

    @contextmanager
    def writing(self, namespace: str | None = None, ahead: Sequence[Read] = ()) -> Iterator[Database]:
        """Give a connection inside a transaction that is committed at the end, or rolled back on error."""
        thread = threading.get_ident()
        if thread in self._taken:
            raise snapshot_is_written()
        if thread in self._writing:
            raise change_is_under_way()
        self._refuse_closed()
        if self.is_read_only:
            raise StoreError(f"the store {self.address} is read-only", remedy=_MEANINGS["25006"][1])
        begin = _begin(namespace, self.address.timeout_s)

        def first(session: Session) -> None:
            session.ahead(ahead)
            refuse_other_version(session, self.address)

        with self.address.errors(), self._session(begin, rights.scope_of(namespace), first) as session:
            self._writing.add(thread)
            try:
                yield session
                if session.changed:
                    postings.follow(session, session.changed)
                self._commit(session)
            finally:
                self._writing.discard(thread)

    def _commit(self, session: Session) -> None:
        try:
            session.end("COMMIT")
        except psycopg.OperationalError as error:
            if session.connection.closed:
                raise StoreError(
                    f"the connection to {self.address} was lost while a change was committed; it may be there or not",
                    remedy="look whether it is, and try again where it is not",
                ) from _DriverError(str(self.address), error)
            raise

    def files(self) -> list[Path]:
        """Return none: where the data stand is the server's affair."""
        return []

    def copy_to(self, target: Path) -> None:
        """Write a complete copy to a new file, of SQLite."""
        refuse_existing(target)
        private = self.private_copy()
        try:
            private.copy_to(target)
        finally:
            private.close()

    def private_copy(self) -> PrivateConnections:
        """Return a private copy of the store as it is now, in SQLite."""
        private = PrivateConnections.empty(self.path)
        with self.reading(EVERY) as source, private.writing() as target:
            for name in ("meta", "schema_versions", "sequences"):
                target.execute(f"DELETE FROM {name}")
            for table in TABLES:
                names = tuple(column.name for column in table.columns)
                found = source.execute(f"SELECT {', '.join(map(quoted, names))} FROM {table.name}")
                rows = (dict(zip(names, row, strict=True)) for row in found)
                target.executemany(insert(table, names, "refuse"), rows)
        return private

    def compact(self, *, thorough: bool) -> bool:
        """Let the server take back what deleted rows held, and return True: what it keeps still, receipts name.

        It passes over the tables of another owner, so for the role of an application over all.
        """
        self._refuse_closed()
        if thorough and not self.is_read_only:
            with self.address.errors(), self._session() as session:
                names = (table.name for table in TABLES if table.name != "sequences")
                for name in (*names, *postings.TABLES):
                    session.connection.execute(f"VACUUM {name}")
        return True

    def lock(self, path: Path) -> Lock:
        """Return a lock between machines; see `Connections.lock`."""
        return Lease(self.address, path.name)

    def close(self) -> None:
        """Close what is idle, and what is in use as soon as it is given back; calling twice is harmless."""
        with self._guard:
            self._is_closed = True
            idle, self._idle = self._idle, []
        if self._process == os.getpid():  # what was there before a fork is the parent's to close
            for connection in idle:
                connection.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # a constructor that failed
            self.close()

    @contextmanager
    def _session(
        self, begin: Sequence[str] = (), scope: str = "", first: Callable[[Session], Any] | None = None
    ) -> Iterator[Session]:
        """Give a connection, in a transaction where statements begin one, which is rolled back if nobody ended it.

        Args:
            first: run at its beginning, and again on a new connection where the first was lost.
        """
        for is_last in (False, True):
            connection = self._take(is_new=is_last)
            session = Session(connection, scope)
            try:
                try:
                    if begin:
                        session.begin(begin)
                    session.first = first and first(session)
                except psycopg.OperationalError:
                    if is_last or not connection.closed:
                        raise
                    continue
                yield session
                return
            finally:
                session.close()
                self._give_back(connection)

    def _again(self, read: Callable[[Session], list[Any]], scope: str) -> list[Any]:
        """Return what a read finds, once more on a new connection where the first was lost."""
        for is_last in (False, True):
            connection = self._take(is_new=is_last)
            try:
                return read(Session(connection, scope))
            except psycopg.OperationalError:
                if is_last or not connection.closed:
                    raise
            finally:
                self._give_back(connection)
        raise AssertionError

    def _take(self, *, is_new: bool = False) -> psycopg.Connection[Any]:
        """Return a connection, which is to be given back.

        Args:
            is_new: none of those that were kept, for which the server may have gone.
        """
        self._refuse_closed()
        refuse_forked(self._process, self.path)
        if not self._free.acquire(timeout=self.address.timeout_s):
            raise StoreBusyError(
                f"all {_CONNECTIONS} connections to {self.address} were in use for {self.address.timeout_s:g} s",
                remedy="try again, or use fewer threads",
            )
        try:
            with self._guard:
                if is_new:
                    lost, self._idle = self._idle, []
                    for each in lost:
                        each.close()
                elif self._idle:
                    return self._idle.pop()
            return self.address.connect()
        except BaseException:
            self._free.release()
            raise

    def _give_back(self, connection: psycopg.Connection[Any]) -> None:
        try:
            if not connection.closed and connection.info.transaction_status != pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            with suppress(psycopg.Error):
                connection.close()
        with self._guard:
            is_kept = not connection.closed and not self._is_closed
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()
        self._free.release()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise StoreError(f"the store {self.address} is closed", remedy="open it again")


def _is_there(db: Database) -> None:
    """Wait for the server."""
    db.execute("SELECT 1").fetchall()


def _begin(namespace: str | None, timeout_s: float) -> list[str]:
    """Return the statements that begin a transaction which writes to a namespace, or to all."""
    begin = [_CHANGE, f"SET LOCAL lock_timeout = {max(1, round(timeout_s * 1000))}"]
    if namespace is None:
        return [*begin, f"SELECT pg_advisory_xact_lock({_STORE_LOCK})"]
    digest = blake2b(namespace.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, signed=True)
    return [
        *begin, f"SELECT pg_advisory_xact_lock_shared({_STORE_LOCK})", f"SELECT pg_advisory_xact_lock({number})"
    ]  # fmt: skip


_VERSIONS: Final = """
    SELECT max(version), coalesce((SELECT value FROM meta WHERE key = 'recall'), '0') FROM schema_versions
"""


def refuse_other_version(db: Database, where: Address) -> None:
    """Refuse a database whose schema is another one than that of this Commonplace.

    Raises:
        StoreVersionError: naming the version found and the one known here.
    """
    version, recall = map(int, db.execute(_VERSIONS).fetchone())
    if version != VERSION:
        raise StoreVersionError(
            f"the store {where} has schema version {version}, this Commonplace knows version {VERSION}",
            remedy="upgrade Commonplace" if version > VERSION else "export it with the Commonplace that made it",
        )
    if recall != postings.VERSION:
        raise StoreVersionError(
            f"the store {where} was made by another build, which analyses texts for searches otherwise or not at all",
            remedy="upgrade Commonplace"
            if recall > postings.VERSION
            else f"let who owns the tables run `commonplace init {where.option}`, which makes anew what searches read",
        )


def _prepare(connection: psycopg.Connection[Any], address: Address, *, create: bool) -> bool:
    """Make the tables where there are none, and refuse others than ours; return whether nothing can be written."""
    if connection.info.server_version < _OLDEST_SERVER:
        raise StoreVersionError(
            f"the server of {address} is PostgreSQL {connection.info.server_version // 10_000}, 15 is the oldest that "
            "Commonplace works with",
            remedy="upgrade the server",
        )
    if not _is_made(connection):
        if not create:
            raise StoreMissingError(
                f"there is no store at {address}", remedy=f"make one with `commonplace init {address.option}`"
            )
        _make(connection, address)
    session = Session(connection)
    if not session.execute("SELECT 1 FROM meta WHERE key = 'store_id'").fetchone():
        raise StoreDamagedError(f"{address} is not a Commonplace store", remedy="name an empty database")
    refuse_other_version(session, address)
    if not rights.is_guarded(connection):
        raise StoreVersionError(
            f"the store {address} was made by an earlier build, which did not part namespaces",
            remedy=f"let who owns the tables run `commonplace init {address.option}`",
        )
    (is_read_only,) = session.execute(
        """
        SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean
            OR NOT has_table_privilege('owners', 'INSERT')
        """
    ).fetchone()
    return bool(is_read_only)


def make(address: Address, grant_to: str = "") -> bool:
    """Make a store where there is none, and what is lacking in one; return whether there was none.

    Args:
        grant_to: a role that is to read and write it, and to change no table.
    """
    with address.errors(), address.connect() as connection:
        is_new = _make(connection, address, grant_to)
        vector_index.make(connection)
        return is_new


def _make(connection: psycopg.Connection[Any], address: Address, grant_to: str = "") -> bool:
    connection.execute(f"{_CHANGE}; SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
    is_new = not _is_made(connection)
    session = Session(connection)
    if is_new:
        try:
            for statement in initial_sql():
                connection.execute(statement)
        except psycopg.errors.InsufficientPrivilege as error:
            user = connection.info.user
            raise StoreMissingError(
                f"there is no store at {address}, and {user} may not make one",
                remedy=f"let who owns the database run `commonplace init {address.option} --grant-to {user}`",
            ) from _DriverError("permission denied", error)
        session.execute("INSERT INTO schema_versions VALUES (:version, 'initial')", {"version": VERSION})
        session.execute("INSERT INTO meta VALUES ('store_id', :id)", {"id": str(uuid4())})
    version, recall = map(int, session.execute(_VERSIONS).fetchone())
    is_older = version == VERSION and recall < postings.VERSION
    if not is_older:
        refuse_other_version(session, address)
    if is_older or not rights.is_guarded(connection):
        connection.execute(f"SELECT pg_advisory_xact_lock({_STORE_LOCK})")
        if is_older:
            postings.make_tables(session)
        connection.execute(leases.CREATE)
        rights.guard(connection, _NAMES)
        if is_older:
            connection.execute(rights.entering("*"))
            postings.rebuild(session)
    for role in {*rights.granted(connection), grant_to} - {""}:
        rights.grant(connection, role, _NAMES)
    connection.execute("COMMIT")
    return is_new


_NAMES: Final = (*(table.name for table in TABLES if table.name != "sequences"), *postings.TABLES, "leases")
"""The tables of a store, beside which there may be others of other programs."""


def _is_made(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("SELECT to_regclass('schema_versions')").fetchall() != [(None,)]
