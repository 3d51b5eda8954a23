"""The store: owners, passages, embeddings and memories by namespace. Every namespace has its own change sequence.

A store is a SQLite database in WAL mode, with durable commits, for any number of processes, or a PostgreSQL database.
Vectors and token ids are bytes here. Driver errors become `StoreError` or a subclass. All methods are safe for threads.

A passage without a vector is found by its words until it gets one. When the embedder changes, new vectors are written
beside the old ones, which searches use until one transaction replaces them all. The change outlives its process.

A memory is an owner of the kind "memory" with a `MemoryRecord`. Each version is a row of `owners`, with its own number
and passages. Only the current version is live: listed among owners, counted, and indexed. A version that was replaced
or archived is past: it can be read by number and by `versions` and `past` until it is erased.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from commonplace.errors import MissingExtraError, StoreError, StoreMissingError
from commonplace.locks import Lock
from commonplace.store import owners as queries
from commonplace.store.change import ALL_HEADS, STAMPS, Change, next_change
from commonplace.store.connection import EVERY, Connections, PrivateConnections
from commonplace.store.database import identity, make, refuse_unreadable
from commonplace.store.dialect import Database, listed, listed_numbers, quoted
from commonplace.store.filters import matching_owners
from commonplace.store.memories import MemoryStore
from commonplace.store.rows import (
    Row,
    RowQuery,
    Values,
    check_times,
    drop,
    hanging_rows,
    insert_rows,
    refuse_unstorable,
    rows_of,
)
from commonplace.store.schema import SCHEMA, Table, is_reserved, namespace_of, namespace_of_row, numbers_after
from commonplace.store.statements import Statements
from commonplace.store.validate import (
    META,
    NEXT,
    STAMP_KEYS,
    embedding_of,
    read_embedding,
    refuse_other_maker,
    refuse_other_reembedding,
    refuse_unfit_vectors,
    set_embedding,
    settle,
    upgrade_command,
)
from commonplace.types import (
    Embedding,
    FileStamp,
    Filter,
    Head,
    IndexEntry,
    Kind,
    Note,
    Owner,
    OwnerWrite,
    Passage,
    Reembedding,
    TokenEntry,
)

if TYPE_CHECKING:
    from commonplace.store.postings import PostingsReader

Value = TypeVar("Value")

_SQL: Final = Statements("embeddings")
_NEXT_KEYS: Final = [f"{NEXT}{key}" for key in STAMP_KEYS]
_ENTRIES_A_READ = 500
UPTO_DATE: Final = 2**62
"""Value of `change` in `Store.snapshot` for a caller that lacks no change, so that nothing is pending."""


class Store(MemoryStore):
    """One durable collection of namespaces. Use `open` or `create`; close it when done.

    Writes are transactions: all or nothing, durable when the call returns, visible to every later read of any process.
    A write that changes something takes the next number of the change sequence, stamps its rows with it and returns
    it; a write that changes nothing returns the current number.

    Attributes:
        id: UUID given at creation; a backup keeps it.
        is_read_only: the file or its directory cannot be written: every write raises `StoreError`.
        place: the address of its server, "" for a store in a file.
        is_on_server: processes on other machines may write to it, and no separate index follows it.
        postings: the postings in the database, which recall reads on a server; None for a store in a file.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.is_read_only = connections.is_read_only
        self.place = connections.place
        self.is_on_server = bool(self.place)
        self.postings: PostingsReader | None = None
        try:
            ((id_,),) = connections.rows("SELECT value FROM meta WHERE key = 'store_id'")
        except BaseException:
            connections.close()
            raise
        self.id = str(id_)
        if self.is_on_server:
            from commonplace.store.postings import PostingsReader

            self.postings = PostingsReader(connections)

    @classmethod
    def create(cls, path: Path, *, timeout_s: float = 10.0) -> Store:
        """Create a store, or open the one that is already there."""
        return cls.open(path, create=True, timeout_s=timeout_s)

    @classmethod
    def open(cls, path: Path, *, create: bool, timeout_s: float = 10.0) -> Store:
        """Open a store.

        Args:
            path: the database file; `create` makes its directory too.
            create: create the store if there is none; several processes may do so at once.
            timeout_s: how long a read or write may wait for other processes.

        Raises:
            StoreMissingError: there is no file, and `create` is false.
            StoreVersionError: another version of Commonplace wrote it.
            StoreDamagedError: the file is not a store, or is damaged.
            StoreBusyError: another process locked it for longer than `timeout_s`.
            StoreError: the file or its directory cannot be read or written.
        """
        if identity(path) is None:
            if not create:
                raise StoreMissingError(
                    f"there is no store at {path}",
                    remedy="create one with `commonplace init`, or name one with `--store`",
                )
            make(path, timeout_s)
        refuse_unreadable(path, timeout_s)
        return cls(Connections(path, timeout_s))

    @classmethod
    def open_postgres(cls, address: str, password: str = "", *, create: bool, timeout_s: float = 10.0) -> Store:
        """Open a store in a PostgreSQL database.

        Args:
            address: postgresql://user@host:port/database, or another form that libpq accepts; messages name it.
            password: "" where the server asks for none, or libpq finds it elsewhere.
            create: create the tables if there are none.
            timeout_s: how long a write may wait for another write, or any call for a connection.

        Raises:
            MissingExtraError: the extra `postgres` is not installed.
            StoreMissingError: the database has no tables of a store, and `create` is false.
            StoreVersionError: another version of Commonplace created them, or the server is too old.
            StoreError: the server cannot be reached, or this user lacks the rights.
        """
        with _driver_needed():
            from commonplace.store.postgres import Address, PostgresConnections

        return cls(PostgresConnections(Address(address, password, timeout_s), create=create))

    @staticmethod
    def make_on_server(
        address: str, password: str = "", *, grant_to: str = "", partitions: int = 0, timeout_s: float = 10.0
    ) -> bool:
        """Create a store in a PostgreSQL database, or add to an existing one what an earlier build did not create.

        Args:
            grant_to: a role that gets the right to read and write it, but not to alter tables; "" for none.
            partitions: the number of partitions by namespace of each table in a new store; 0 for none.

        Returns:
            True where there was no store before.

        Raises:
            MissingExtraError: the extra `postgres` is not installed.
            StoreError: the server cannot be reached, or this user lacks the rights.
            UsageError: the existing store has another number of partitions.
        """
        with _driver_needed():
            from commonplace.store.postgres import Address, make

        return make(Address(address, password, timeout_s), grant_to, partitions)

    @classmethod
    def in_memory(cls) -> Store:
        """Create a store in the memory of this process; nothing of it is written to disk."""
        return cls(PrivateConnections.empty(Path(":memory:"), is_spilling=False))

    def head(self, namespace: str) -> Head:
        """Return the last change of a namespace; writes to other namespaces do not move it."""
        rows = self._connections.cached(("head", namespace), lambda: self._read(queries.SQL["head"], namespace))
        return Head(rows[0][0], rows[0][1]) if rows else Head()

    def heads(self) -> dict[str, Head]:
        """Return the last change of every namespace that has one, by name.

        This includes the namespaces that hold the texts of graphs; see `schema.texts_of`.
        """
        rows = self._connections.rows(queries.SQL["heads"], {"namespace": None})
        return {name: Head(change, token) for name, change, token in rows}

    def change(self, namespace: str | None = None) -> int:
        """Return the number of a namespace's last change, 0 before the first; for None, the sum over all namespaces."""
        if namespace is None:
            return sum(head.change for name, head in self.heads().items() if not is_reserved(name))
        return self.head(namespace).change

    def token(self, namespace: str, change: int) -> str:
        """Return the random token of a change of a namespace, "" for 0 or a change that does not exist.

        Two histories that share a change number (one of them a restored backup) differ in the token.
        """
        if not 0 < change < 2**63:
            return ""
        head = self.head(namespace)
        if change >= head.change:
            return head.token if change == head.change else ""
        key = "token", namespace, change
        rows = self._connections.cached(key, lambda: self._read(queries.SQL["token"], namespace, change=change))
        return rows[0][0] if rows else ""

    def rows_of(self, queries: Iterable[RowQuery], namespace: str | None = None) -> Iterator[tuple[Table, Values]]:
        """Yield rows of several tables; see `rows_of`."""
        with self._connections.reading(EVERY if namespace is None else namespace) as db:
            yield from rows_of(db, namespace, queries)

    def hanging_rows(self, table: Table, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[Table, Values]]:
        """Yield rows with all rows that depend on them; see `hanging_rows`."""
        with self._connections.reading(namespace) as db:
            yield from hanging_rows(db, table, namespace, numbers)

    def snapshot(self, namespace: str | None = None, change: int = 0, notes: str = "") -> AbstractContextManager[None]:
        """Let every read of this thread inside the `with` block see the store as it was when the block began.

        Nested blocks see the state of the outermost one.

        Args:
            namespace: the one to search. One statement reads ahead its head, its counts, its passages pending after
                `change`, the token of that change, and its notes of the kind `notes`.

        Raises:
            StoreError: this thread writes inside the block.
        """
        if namespace is None:
            return self._connections.snapshot()

        def read_state(db: Database) -> dict[object, Any]:
            if self.postings is not None:
                self.postings.ahead(namespace, db)
            rows: defaultdict[str, list[Row]] = defaultdict(list)
            sql = queries.SQL["state_upto_date"] if change == UPTO_DATE else queries.SQL["state"]
            for part, *row in db.execute(sql, {"namespace": namespace, "change": change, "notes": notes}):
                rows[part].append(tuple(row))
            counts = {kind: row for kind, _, *row in rows["count"]}
            kinds = ("artifact", "memory", "knowledge")
            return {
                META: [row[:2] for row in rows["meta"]],
                ("head", namespace): [(number, token) for _, token, number, *_ in rows["head"]],
                ("token", namespace, change): [(token,) for _, token, *_ in rows["token"]],
                ("pending", namespace, change): rows["pending"][0][2:4] if rows["pending"] else (0, 0),
                ("counts", namespace): (
                    *(int(sum(row[column] for row in counts.values())) for column in range(3)),
                    *(counts[kind][0] if kind in counts else 0 for kind in kinds),
                ),
                ("session", namespace): bool(rows["session"]),
                ("notes", namespace, notes): [Note(notes, id_, at, body) for id_, body, _, _, at in rows["note"]],
            }

        return self._connections.snapshot(read_state, namespace)

    def lock(self, path: Path) -> Lock:
        """Return a lock shared by all users of the store: the file at `path`, or on a server a lease with its name."""
        return self._connections.lock(path)

    def close(self) -> None:
        """Release every resource; calling twice is harmless."""
        self._connections.close()

    def embedding(self) -> Embedding | None:
        """Return the embedder that made the vectors of this store, None before `set_embedding`."""
        return embedding_of(dict(self._connections.cached(META, lambda: self._connections.rows(META))))

    def set_embedding(self, embedding: Embedding) -> None:
        """Record which embedder makes this store's vectors.

        Raises:
            StoreError: the store holds passages made by another embedder.
        """
        with self._connections.writing() as db:
            passages, stored = db.execute("SELECT count(*) FROM passage_vectors").fetchone()[0], read_embedding(db)
            if passages and stored != embedding:
                maker = f"made by {stored}" if stored else "of an unknown embedder"
                upgrade = upgrade_command(embedding.name)
                raise StoreError(
                    f"the store holds {passages} passages {maker}, not by {embedding}",
                    remedy=f"open it with the embedder it was built with, or run {upgrade}",
                )
            set_embedding(db, embedding)

    def put_owners(
        self, namespace: str, writes: Sequence[OwnerWrite], *, at: float = 0.0, made_by: Embedding | None = None
    ) -> int:
        """Write owners with their passages in one transaction and return its change number in the namespace.

        An owner replaces the one with the same kind and id, or (for a non-empty path) the same kind and path; its old
        passages are deleted and the new ones get new numbers, in the order of the input. Creates the namespace.

        Args:
            at: when the owners begin to exist for a filter's `as_of`, seconds since the epoch.
            made_by: the embedder of their vectors, if known.

        Raises:
            EmbedderMismatchError: another embedder made the store's vectors.
        """
        with self._connections.writing(namespace) as db:
            embedding = read_embedding(db)
            refuse_other_maker(embedding, made_by)
            settled = settle(writes, embedding)
            check_times(f"owners of {namespace!r}", at)
            change = Change(db, namespace)
            change.put_owners(settled, at)
            return change.finish()

    def restamp_artifacts(self, namespace: str, stamps: Sequence[tuple[str, str, FileStamp]]) -> None:
        """Set root and file stamp of unchanged artifacts, given as (path, root, stamp); takes no change number."""
        with self._connections.writing(namespace) as db:
            by_path = {path: (root, stamp) for path, root, stamp in stamps}
            rows = db.execute(queries.SQL["of_paths"], {"namespace": namespace, "paths": listed(by_path)}).fetchall()
            sql = "UPDATE owners SET root = :root WHERE namespace = :namespace AND number = :owner"
            for path, number, namespace_id in rows:
                root, stamp = by_path[path]
                refuse_unstorable("the root", root)
                key = {"namespace": namespace_id, "owner": number}
                db.execute(sql, {**key, "root": root})
                drop(db, "file_stamps", **key)
                insert_rows(db, STAMPS.table, [{**key, **STAMPS.pack(stamp)}])

    def delete_owners(self, namespace: str, owner_numbers: Sequence[int]) -> int:
        """Delete owners and their passages in one transaction and return its change number; ignore unknown numbers."""
        with self._connections.writing(namespace) as db:
            change = Change(db, namespace)
            for number in dict.fromkeys(map(int, owner_numbers)) if namespace in change.namespace_ids else ():
                change.remove_owner(number)
            return change.finish()

    def namespaces(self, *, with_texts: bool = False) -> list[str]:
        """Return the names of the namespaces, sorted.

        Args:
            with_texts: include those that hold the texts of graphs, which no user can name; see `schema.texts_of`.
        """
        names = self._connections.rows("SELECT name FROM namespaces", {"namespace": None})
        return sorted(name for (name,) in names if with_texts or not is_reserved(name))

    def artifacts(self, namespace: str) -> list[tuple[int, Owner]]:
        """Return (owner number, owner) of every artifact that came from a file, sorted by path."""
        rows = self._read(queries.SQL["artifacts"], namespace)
        return sorted(((row[0], queries.build_owner(row[1:])) for row in rows), key=lambda item: item[1].path)

    def artifact_types(self, namespace: str) -> dict[str, bool]:
        """Return the types of the artifacts; the value says whether any artifact of the type has tags."""
        rows = self._read(queries.SQL["artifact_types"], namespace)
        return {type_: bool(has_tags) for type_, has_tags in rows}

    def owners(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, Owner]:
        """Return the owners that exist in this namespace, by number; others are absent."""
        return {row[0]: queries.build_owner(row[1:]) for row in self._of_numbers("owners", namespace, owner_numbers)}

    def passages(self, namespace: str, numbers: Sequence[int]) -> dict[int, Passage]:
        """Return the passages that exist in this namespace, by number; others are absent."""
        return {row[0]: queries.build_passage(row) for row in self._of_numbers("passages", namespace, numbers)}

    def passages_of(self, namespace: str, owner_numbers: Sequence[int]) -> list[int]:
        """Return the numbers of the passages of these owners, live or past, ascending; ignore unknown owners."""
        return sorted({number for (number,) in self._of_numbers("passages_of", namespace, owner_numbers)})

    def repeated_headings(self, namespace: str, numbers: Sequence[int]) -> set[int]:
        """Return the numbers of the passages whose heading does not identify one section of their owner.

        All passages of a section that was cut have its heading, but only the text of the first contains it.
        """
        return {number for (number,) in self._of_numbers("repeated_headings", namespace, numbers)}

    def tokens(self, namespace: str, numbers: Sequence[int]) -> dict[int, TokenEntry]:
        """Return token ids and vectors of the passages that exist in this namespace, by number."""
        return {row[0]: TokenEntry(*row) for row in self._of_numbers("tokens", namespace, numbers)}

    def vectors(self, namespace: str, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the int8 vectors of the passages that exist in this namespace, by number; b"" where not made yet."""
        return dict(self._of_numbers("vectors", namespace, numbers))

    def entries(self, namespace: str, numbers: Sequence[int]) -> dict[int, IndexEntry]:
        """Return the index entries of the passages that exist in this namespace, by number."""
        return {row[0]: queries.build_entry(row) for row in self._of_numbers("entries", namespace, numbers)}

    def neighbours(self, namespace: str, numbers: Sequence[int]) -> list[tuple[int, int]]:
        """Return (number, neighbour's number) of these passages and of their neighbours, sorted.

        Neighbours are the passages of the owners with the nearest lower and the nearest higher position in the same
        session; passages outside a session have none.
        """
        # Most namespaces hold no conversation; a snapshot knows whether this one does.
        if not self._connections.cached(("session", namespace), lambda: True):
            return []
        return self._of_numbers("neighbours", namespace, numbers)

    def tokens_beside(
        self, namespace: str, numbers: Sequence[int]
    ) -> tuple[dict[int, TokenEntry], list[tuple[int, int]]]:
        """Return the `tokens` of passages and of their neighbours, and the pairs that `neighbours` returns."""
        if not self._connections.cached(("session", namespace), lambda: True):
            return self.tokens(namespace, numbers), []
        rows = self._of_numbers("tokens_beside", namespace, numbers)
        tokens = {row[0]: TokenEntry(*row) for row in rows if row[2] is not None}
        return tokens, sorted(row[:2] for row in rows if row[2] is None)

    def places(self, namespace: str, kind: Kind, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return session and position of the live owners of one kind that exist in this namespace, by id."""
        rows = self._read(queries.SQL["live"], namespace, kind=kind, ids=listed(ids))
        return {id_: (session, position) for id_, _, session, position in rows}

    def owner_numbers(self, namespace: str, kind: Kind, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the live owners of one kind that exist in this namespace, by id."""
        rows = self._read(queries.SQL["live"], namespace, kind=kind, ids=listed(ids))
        return {id_: number for id_, number, _, _ in rows}

    def last_position(self, namespace: str, session: str) -> int:
        """Return the highest position in a session, -1 when the namespace has no such session or it is ""."""
        (position,) = self._read(queries.SQL["last_position"], namespace, session=session)[0]
        return -1 if position is None else int(position)

    def matching_owners(self, namespace: str, filter_: Filter) -> list[int]:
        """Return the numbers of the owners that pass the filter, ascending."""
        with self._connections.reading(namespace) as db:
            return matching_owners(db, namespace, filter_)

    def counts(self, namespace: str | None = None) -> dict[str, int]:
        """Return the counts `owners`, `passages`, `text_bytes`, `artifacts`, `memories`, `knowledge`.

        None counts all namespaces; the first three then include the texts of graphs.
        """
        row = self._connections.cached(("counts", namespace), lambda: self._read(queries.SQL["counts"], namespace)[0])
        return dict(zip(("owners", "passages", "text_bytes", "artifacts", "memories", "knowledge"), row, strict=True))

    def entries_since(self, namespace: str, change: int, upto: int) -> Iterator[IndexEntry]:
        """Yield the passages that the changes (change, upto] of a namespace wrote and that still exist, by number."""
        ((first, last),) = self._read(queries.SQL["bounds"], namespace, change=change, upto=upto)
        while first < last:
            rows = self._read(queries.SQL["entries_between"], namespace, first=first, last=last, limit=_ENTRIES_A_READ)
            yield from map(queries.build_entry, rows)
            first = rows[-1][0] + 1 if len(rows) == _ENTRIES_A_READ else last

    def tail(self, namespace: str, change: int) -> list[TokenEntry]:
        """Return the passages of a namespace written after `change`, by number ascending."""
        rows = self._read(queries.SQL["tail"], namespace, change=change)
        return [TokenEntry(*row) for row in rows]

    def pending(self, namespace: str, change: int) -> tuple[int, int]:
        """Return how many passages of a namespace were written and how many were deleted after `change`.

        Counts without reading them; the first number may include passages that were deleted since.
        """
        key = "pending", namespace, change
        written, deleted = self._connections.cached(
            key, lambda: self._read(queries.SQL["pending"], namespace, change=change)[0]
        )
        return written, deleted

    def deleted_since(self, namespace: str, change: int, upto: int) -> list[int]:
        """Return the numbers of passages that the changes (change, upto] of a namespace deleted, ascending."""
        rows = self._read(queries.SQL["deleted_between"], namespace, change=change, upto=upto)
        return [number for (number,) in rows]

    def count_pending(self) -> int:
        """Return how many passages of all namespaces, live and past, have no vector yet."""
        return int(self._connections.rows(_SQL["count_pending"], {"namespace": None})[0][0])

    def pending_vectors(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no vector yet, by number ascending."""
        rows = self._connections.rows(_SQL["pending_entries"], {"namespace": None, "limit": limit})
        return [queries.build_entry(row) for row in rows]

    def fill_vectors(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> int:
        """Store vectors, by passage number, for passages that lack one; return how many. One change per namespace.

        All passages of their live owners get new numbers, so that an index that follows the changes sees them.
        Passages that are deleted or have a vector are ignored.

        Raises:
            EmbedderMismatchError: another embedder made the store's vectors.
            StoreError: a vector has another length.
        """
        refuse_unfit_vectors(embedding, [vector for _, vector in vectors])
        by_namespace, filled = _by_namespace(vectors), 0
        names = self._connections.rows(_SQL["names"], {"namespace": None, "numbers": listed(by_namespace)})
        for name, namespace_id in sorted(names, key=itemgetter(1)):
            new_vectors = by_namespace[namespace_id]
            with self._connections.writing(namespace_of(name)) as db:
                refuse_other_maker(read_embedding(db), embedding)
                change = Change(db, namespace_of(name))
                if name not in change.namespace_ids:  # erased meanwhile
                    continue
                values = {"space": namespace_id, "numbers": listed_numbers(new_vectors)}
                pending = db.execute(_SQL["pending_of"], values).fetchall()
                past = [number for number, _, is_past in pending if is_past]
                db.executemany(
                    _SQL["set_vector"],
                    [{"space": namespace_id, "number": number, "vector": new_vectors[number]} for number in past],
                )
                if pending:
                    with change.inside(name):
                        _renumber(change, {owner for _, owner, is_past in pending if not is_past}, new_vectors)
                        change.mark()
                    change.finish()
                filled += len(pending)
        return filled

    def reembedding(self) -> Reembedding | None:
        """Return the change of embedder under way, None if there is none."""
        with self._connections.reading(EVERY) as db:
            embedding = read_embedding(db, NEXT)
            if embedding is None:
                return None
            (replaced,) = db.execute("SELECT count(*) FROM next_vectors").fetchone()
            (total,) = db.execute("SELECT count(*) FROM passage_vectors").fetchone()
        return Reembedding(embedding, replaced, total)

    def begin_reembedding(self, embedding: Embedding) -> None:
        """Begin or resume a change to this embedder; vectors made for another change of embedder are dropped.

        The caller ensures that only one process at a time does so.

        Raises:
            StoreError: this embedder made the store's vectors.
        """
        with self._connections.writing() as db:
            if read_embedding(db) == embedding:
                raise StoreError(f"the vectors of the store are made by {embedding} already")
            if read_embedding(db, NEXT) != embedding:
                db.execute("DELETE FROM next_vectors")
                drop(db, "meta", key=_NEXT_KEYS)
                set_embedding(db, embedding, NEXT)

    def drop_reembedding(self) -> None:
        """Abandon the change of embedder under way, if there is one, and delete its vectors."""
        with self._connections.writing() as db:
            db.execute("DELETE FROM next_vectors")
            drop(db, "meta", key=_NEXT_KEYS)

    def unembedded(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no new vector yet, by number ascending.

        Each has its old vector. Without a change of embedder under way the list is empty.
        """
        with self._connections.reading(EVERY) as db:
            if read_embedding(db, NEXT) is None:
                return []
            # Vectors are made in the order of numbers: few passages below the last one lack theirs.
            (last,) = db.execute("SELECT coalesce(max(number), 0) FROM next_vectors").fetchone()
            entries: list[IndexEntry] = []
            for after in (last, 0) if last else (0,):
                for (namespace_id,) in db.execute(_SQL["spaces"], {"space": namespace_of_row(after)}).fetchall():
                    first, end = max(after, numbers_after(namespace_id)), numbers_after(namespace_id + 1)
                    values = {"space": namespace_id, "after": first, "end": end, "limit": limit - len(entries)}
                    entries += map(queries.build_entry, db.execute(_SQL["unembedded"], values))
                    if len(entries) == limit:
                        return entries
                if entries:
                    break
            return entries

    def put_reembedded(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Store new vectors, by passage number; ignore deleted passages. Takes no change number.

        Raises:
            StoreError: another change of embedder is under way, or none, or a vector has another length.
        """
        refuse_unfit_vectors(embedding, [vector for _, vector in vectors])
        with self._connections.writing() as db:
            refuse_other_reembedding(read_embedding(db, NEXT), embedding)
            for namespace_id, batch in _by_namespace(vectors).items():
                existing = [
                    n for (n,) in db.execute(_SQL["there"], {"space": namespace_id, "numbers": listed_numbers(batch)})
                ]
                drop(db, "next_vectors", namespace=namespace_id, number=existing)
                rows = [{"namespace": namespace_id, "number": number, "vector": batch[number]} for number in existing]
                insert_rows(db, SCHEMA["next_vectors"], rows)

    def finish_reembedding(self, embedding: Embedding) -> bool:
        """Replace all old vectors by the new ones and stamp the store with the embedder, as one change.

        Returns:
            False, with nothing changed, if a passage has no new vector yet.

        Raises:
            StoreError: another change of embedder is under way, or none.
        """
        with self._connections.writing() as db:
            refuse_other_reembedding(read_embedding(db, NEXT), embedding)
            if db.execute(_SQL["is_any_missing"]).fetchone()[0]:
                return False
            db.execute(_SQL["move"])
            db.execute("DELETE FROM next_vectors")
            if old := read_embedding(db):
                for name, kind in (("rename_recipes", "artifact"), ("rename_stamps", "knowledge")):
                    db.execute(_SQL[name], {"old": str(old.of(kind)), "new": str(embedding.of(kind))})
            drop(db, "meta", key=_NEXT_KEYS)
            set_embedding(db, embedding)
            heads = db.execute(ALL_HEADS).fetchall()
            insert_rows(db, SCHEMA["changes"], [next_change(id_, *last) for _, id_, *last in heads if last[0]])
        return True

    def check(self) -> list[str]:
        """Return the problems of the stored data, one sentence each; empty when it is consistent."""
        from commonplace.store.check import problems, sentences

        with self._connections.reading(EVERY) as db:
            claims = () if self.postings is None else self.postings.claims
            counts = [(claim, db.execute(sql).fetchone()[0]) for claim, sql in claims]
            return [*problems(db, is_file=not self.is_on_server), *sentences(counts)]

    def backup(self, target: Path) -> None:
        """Write a complete copy to a new file while others read and write.

        Raises:
            StoreError: the target exists or cannot be written.
        """
        self._connections.copy_to(target)

    @contextmanager
    def scratch_copy(self) -> Iterator[Store]:
        """Provide a private, temporary copy of the store as it is now; writes to it are lost when the block ends.

        Others can read and write the store meanwhile. No file is left behind, however the process ends.
        """
        connections = self._connections.private_copy()
        try:
            yield Store(connections)
        finally:
            connections.close()

    def _of_numbers(self, statement: str, namespace: str, numbers: Sequence[int]) -> list[Row]:
        values = {"namespace": namespace, "numbers": listed_numbers(numbers)}
        rows = self._connections.rows(queries.SQL[statement], values)
        return sorted(rows, key=itemgetter(0))  # the order in which SQLite returns them


@contextmanager
def _driver_needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            "a store in PostgreSQL needs psycopg", remedy="install it with `pip install 'commonplace[postgres]'`"
        ) from error


def _by_namespace(numbered: Iterable[tuple[int, Value]]) -> dict[int, dict[int, Value]]:
    """Group values numbered by passage by the number of their namespace."""
    by_namespace: defaultdict[int, dict[int, Value]] = defaultdict(dict)
    for number, value in numbered:
        by_namespace[namespace_of_row(number)][number] = value
    return by_namespace


def _renumber(change: Change, owner_numbers: Collection[int], vectors: Mapping[int, bytes]) -> None:
    """Give the passages of live owners new numbers, and those without a vector the vector of their old number."""
    namespace_id, stored = change.namespace_id, dict[str, list[Values]]()
    key = {"space": namespace_id, "owners": listed_numbers(owner_numbers)}
    change.execute(_SQL["stamp"], {**key, "change": change.number})
    for name in ("passages", "passage_vectors"):
        columns = [column.name for column in SCHEMA[name].columns]
        sql = f"SELECT {', '.join(map(quoted, columns))} FROM {name} NOT INDEXED WHERE {_SQL['of_owners']}"
        selected = change.execute(sql, key)
        stored[name] = [dict(zip(columns, row, strict=True)) for row in selected]
    stored["passages"].sort(key=itemgetter("owner", "ordinal"))
    new_numbers = {row["number"]: change.take("next_passage") for row in stored["passages"]}
    # An index that follows this change drops the old numbers and adds the new ones.
    deletions = [{"namespace": namespace_id, "change": change.number, "number": number} for number in new_numbers]
    change.add_rows(SCHEMA["deletions"], deletions)
    for name in ("next_vectors", "passage_vectors"):
        drop(change, name, namespace=namespace_id, number=list(new_numbers))
    drop(change, "passages", namespace=namespace_id, owner=list(owner_numbers))
    for row in stored["passage_vectors"]:
        row["vector"] = row["vector"] or vectors.get(row["number"], b"")
    for name, rows in stored.items():
        change.add_rows(SCHEMA[name], [{**row, "number": new_numbers[row["number"]]} for row in rows])
