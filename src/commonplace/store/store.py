"""The store: owners, passages, embeddings and memories by namespace, along one change sequence for each.

A SQLite database in WAL mode, with durable commits, for any number of processes. Vectors and token ids are bytes here.
Driver errors are raised as `StoreError` or a subclass. Every method may be called from several threads at once.

A passage without a vector is found by its words until it gets one. When the embedder changes, new vectors are written
beside the old ones, which answer until all are replaced at once; a change survives the process that began it.

A memory is an owner of the kind "memory" with a `MemoryRecord`. Each version is an owner row of its own, with its own
number and passages. Only the current version is live: listed among owners, counted, and followed by the index. A
replaced or archived version is past: readable by number, by `versions` and by `past`, until it is erased.
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
    Asked,
    Row,
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
"""Stands for the change that recall has seen where it lacks none."""


class Store(MemoryStore):
    """One durable collection of namespaces. Use `open` or `create`; close it when done.

    Writes are transactions: all or nothing, durable when the call returns, visible to every later read of any
    process. Each write that changes something takes the next number of the change sequence, returns it, and
    stamps with it what it wrote; a write that changes nothing returns the current number.

    Attributes:
        id: UUID given at creation; a backup keeps it.
        is_read_only: the store is in a place that cannot be written: every write raises `StoreError`.
        place: the address of its server, "" where it is in a file.
        is_on_server: others than this machine's processes write to it, and no index of its own follows it.
        postings: what recall reads of a store on a server; None where an index follows the store.
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
            path: the database file; its directory is made too when `create` is true.
            create: make the store if there is none; several processes may do so at once.
            timeout_s: how long any read or write may wait for other processes.

        Raises:
            StoreMissingError: there is no file, and `create` is false.
            StoreVersionError: another version of Commonplace wrote it.
            StoreDamagedError: the file is no store, or cannot be read.
            StoreBusyError: another process held it for longer than `timeout_s`.
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
            address: postgresql://user@host:port/database, or what else libpq takes; messages name it.
            password: "" where the server asks for none, or libpq finds it elsewhere.
            create: make the tables where there are none.
            timeout_s: how long a write may wait for another one, or any call for a connection.

        Raises:
            MissingExtraError: the extra `postgres` is not installed.
            StoreMissingError: the database has no tables of a store, and `create` is false.
            StoreVersionError: another version of Commonplace made them, or the server is too old.
            StoreError: the server cannot be reached, or lets this user do nothing.
        """
        with _driver_needed():
            from commonplace.store.postgres import Address, PostgresConnections

        return cls(PostgresConnections(Address(address, password, timeout_s), create=create))

    @staticmethod
    def make_on_server(
        address: str, password: str = "", *, grant_to: str = "", partitions: int = 0, timeout_s: float = 10.0
    ) -> bool:
        """Make a store in a PostgreSQL database unless there is one, or add to it what an earlier build did not make.

        Args:
            grant_to: a role that may read and write it from then on, and change no table; "" is none.
            partitions: into so many each table is cut by namespace, where the store is new; 0 is none.

        Returns:
            Whether there was none.

        Raises:
            MissingExtraError: the extra `postgres` is not installed.
            StoreError: the server cannot be reached, or this user may not do so.
            UsageError: a store is there, with another number of partitions.
        """
        with _driver_needed():
            from commonplace.store.postgres import Address, make

        return make(Address(address, password, timeout_s), grant_to, partitions)

    @classmethod
    def in_memory(cls) -> Store:
        """Make a store of this process alone, of which nothing is written to disk."""
        return cls(PrivateConnections.empty(Path(":memory:"), is_spilling=False))

    def head(self, namespace: str) -> Head:
        """Return the last change of a namespace; what others write does not move it."""
        found = self._connections.known(("head", namespace), lambda: self._read(queries.SQL["head"], namespace))
        return Head(found[0][0], found[0][1]) if found else Head()

    def heads(self) -> dict[str, Head]:
        """Return the last change of every namespace that has one, by name.

        Those that hold the texts of graphs are among them; see `schema.texts_of`.
        """
        found = self._connections.rows(queries.SQL["heads"], {"namespace": None})
        return {name: Head(change, token) for name, change, token in found}

    def change(self, namespace: str | None = None) -> int:
        """Return the number of a namespace's last change, 0 before the first; None adds up those of all namespaces."""
        if namespace is None:
            return sum(head.change for name, head in self.heads().items() if not is_reserved(name))
        return self.head(namespace).change

    def token(self, namespace: str, change: int) -> str:
        """Return the random token that a change of a namespace got, "" for 0 or a change that is not.

        Two histories that share a number (one of them a restored backup) differ in its token.
        """
        if not 0 < change < 2**63:
            return ""
        head = self.head(namespace)
        if change >= head.change:
            return head.token if change == head.change else ""
        key = "token", namespace, change
        found = self._connections.known(key, lambda: self._read(queries.SQL["token"], namespace, change=change))
        return found[0][0] if found else ""

    def rows_of(self, asked: Iterable[Asked], namespace: str | None = None) -> Iterator[tuple[Table, Values]]:
        """Yield rows of several tables; see `rows_of`."""
        with self._connections.reading(EVERY if namespace is None else namespace) as db:
            yield from rows_of(db, namespace, asked)

    def hanging_rows(self, table: Table, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[Table, Values]]:
        """Yield rows with all that hangs on them; see `hanging_rows`."""
        with self._connections.reading(namespace) as db:
            yield from hanging_rows(db, table, namespace, numbers)

    def snapshot(self, namespace: str | None = None, change: int = 0, notes: str = "") -> AbstractContextManager[None]:
        """Let every read of this thread inside the `with` block see the store as it was when the block began.

        Blocks may be nested: the outermost one's state counts.

        Args:
            namespace: what a search asks of it is read at once: its head, its counts, what is pending after `change`
                and that change's token, its notes of the kind `notes`.

        Raises:
            StoreError: this thread writes inside the block.
        """
        if namespace is None:
            return self._connections.snapshot()

        def known(db: Database) -> dict[object, Any]:
            if self.postings is not None:
                self.postings.ahead(namespace, db)
            found: defaultdict[str, list[Row]] = defaultdict(list)
            sql = queries.SQL["state_upto_date"] if change == UPTO_DATE else queries.SQL["state"]
            for what, *row in db.execute(sql, {"namespace": namespace, "change": change, "notes": notes}):
                found[what].append(tuple(row))
            counts = {kind: row for kind, _, *row in found["count"]}
            kinds = ("artifact", "memory", "knowledge")
            return {
                META: [row[:2] for row in found["meta"]],
                ("head", namespace): [(number, token) for _, token, number, *_ in found["head"]],
                ("token", namespace, change): [(token,) for _, token, *_ in found["token"]],
                ("pending", namespace, change): found["pending"][0][2:4] if found["pending"] else (0, 0),
                ("counts", namespace): (
                    *(int(sum(row[place] for row in counts.values())) for place in range(3)),
                    *(counts[kind][0] if kind in counts else 0 for kind in kinds),
                ),
                ("session", namespace): bool(found["session"]),
                ("notes", namespace, notes): [Note(notes, id_, at, body) for id_, body, _, _, at in found["note"]],
            }

        return self._connections.snapshot(known, namespace)

    def lock(self, path: Path) -> Lock:
        """Return a lock of all who use the store: the file at a path, or on a server a lease with the file's name."""
        return self._connections.lock(path)

    def close(self) -> None:
        """Release every resource; calling twice is harmless."""
        self._connections.close()

    def embedding(self) -> Embedding | None:
        """Return the stamp of the vectors in this store, None before the first was set."""
        return embedding_of(dict(self._connections.known(META, lambda: self._connections.rows(META))))

    def set_embedding(self, embedding: Embedding) -> None:
        """Record which embedder makes this store's vectors.

        Raises:
            StoreError: the store holds passages made by another embedder.
        """
        with self._connections.writing() as db:
            passages, held = db.execute("SELECT count(*) FROM passage_vectors").fetchone()[0], read_embedding(db)
            if passages and held != embedding:
                maker = f"made by {held}" if held else "of an unknown embedder"
                upgrade = upgrade_command(embedding.name)
                raise StoreError(
                    f"the store holds {passages} passages {maker}, not by {embedding}",
                    remedy=f"open it with the embedder it was built with, or run {upgrade}",
                )
            set_embedding(db, embedding)

    def put_owners(
        self, namespace: str, writes: Sequence[OwnerWrite], *, at: float = 0.0, made_by: Embedding | None = None
    ) -> int:
        """Write owners with their passages in one transaction and return its number in the namespace.

        An owner replaces the one with the same kind and id, or (for a non-empty path) the same kind and path;
        its old passages go and the new ones get new numbers, in the order given. Creates the namespace.

        Args:
            at: from when on they count for a filter's `as_of`, seconds since the epoch.
            made_by: the embedder of their vectors, where that is known.

        Raises:
            EmbedderMismatchError: the store's vectors are another's.
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
        """Set root and file stamp of artifacts, by (path, root, stamp); their text is the same, no number is taken."""
        with self._connections.writing(namespace) as db:
            given = {path: (root, stamp) for path, root, stamp in stamps}
            found = db.execute(queries.SQL["of_paths"], {"namespace": namespace, "paths": listed(given)}).fetchall()
            sql = "UPDATE owners SET root = :root WHERE namespace = :namespace AND number = :owner"
            for path, number, space in found:
                root, stamp = given[path]
                refuse_unstorable("the root", root)
                own = {"namespace": space, "owner": number}
                db.execute(sql, {**own, "root": root})
                drop(db, "file_stamps", **own)
                insert_rows(db, STAMPS.table, [{**own, **STAMPS.pack(stamp)}])

    def delete_owners(self, namespace: str, owner_numbers: Sequence[int]) -> int:
        """Delete owners and their passages in one transaction; unknown numbers are passed over."""
        with self._connections.writing(namespace) as db:
            change = Change(db, namespace)
            for number in dict.fromkeys(map(int, owner_numbers)) if namespace in change.spaces else ():
                change.remove_owner(number)
            return change.finish()

    def namespaces(self, *, with_texts: bool = False) -> list[str]:
        """Return the names, sorted.

        Args:
            with_texts: also those that hold the texts of graphs, which no user can name; see `schema.texts_of`.
        """
        names = self._connections.rows("SELECT name FROM namespaces", {"namespace": None})
        return sorted(name for (name,) in names if with_texts or not is_reserved(name))

    def artifacts(self, namespace: str) -> list[tuple[int, Owner]]:
        """Return (owner number, owner) of every artifact that came from a file, by path."""
        found = self._read(queries.SQL["artifacts"], namespace)
        return sorted(((row[0], queries.build_owner(row[1:])) for row in found), key=lambda item: item[1].path)

    def artifact_types(self, namespace: str) -> dict[str, bool]:
        """Return of what types the artifacts are, and whether some artifact of the type has tags."""
        found = self._read(queries.SQL["artifact_types"], namespace)
        return {type_: bool(has_tags) for type_, has_tags in found}

    def owners(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, Owner]:
        """Return the owners that exist in this namespace, by number; others are absent."""
        return {row[0]: queries.build_owner(row[1:]) for row in self._of_numbers("owners", namespace, owner_numbers)}

    def passages(self, namespace: str, numbers: Sequence[int]) -> dict[int, Passage]:
        """Return the passages that exist in this namespace, by number; others are absent."""
        return {row[0]: queries.build_passage(row) for row in self._of_numbers("passages", namespace, numbers)}

    def passages_of(self, namespace: str, owner_numbers: Sequence[int]) -> list[int]:
        """Return the numbers of the passages of owners, live or past, ascending; unknown owners have none."""
        return sorted({number for (number,) in self._of_numbers("passages_of", namespace, owner_numbers)})

    def repeated_headings(self, namespace: str, numbers: Sequence[int]) -> set[int]:
        """Return those of the passages whose heading does not name one section of their owner.

        A section that was cut gives all its pieces its heading, but only the first holds it.
        """
        return {number for (number,) in self._of_numbers("repeated_headings", namespace, numbers)}

    def tokens(self, namespace: str, numbers: Sequence[int]) -> dict[int, TokenEntry]:
        """Return token ids and vectors of the passages that exist in this namespace, by number."""
        return {row[0]: TokenEntry(*row) for row in self._of_numbers("tokens", namespace, numbers)}

    def vectors(self, namespace: str, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of the passages that exist in this namespace, int8, by number; b"" for one made later."""
        return dict(self._of_numbers("vectors", namespace, numbers))

    def entries(self, namespace: str, numbers: Sequence[int]) -> dict[int, IndexEntry]:
        """Return what the index needs of the passages that exist in this namespace, by number."""
        return {row[0]: queries.build_entry(row) for row in self._of_numbers("entries", namespace, numbers)}

    def neighbours(self, namespace: str, numbers: Sequence[int]) -> list[tuple[int, int]]:
        """Return (number, neighbour's number) for passages next to each other in a session, and for their neighbours.

        Neighbours are the owners with the nearest lower and the nearest higher position in the same session.
        Sorted; passages outside a session have none.
        """
        # Most namespaces hold no conversation, which is known for each state of them.
        if not self._connections.known(("session", namespace), lambda: True):
            return []
        return self._of_numbers("neighbours", namespace, numbers)

    def tokens_beside(
        self, namespace: str, numbers: Sequence[int]
    ) -> tuple[dict[int, TokenEntry], list[tuple[int, int]]]:
        """Return `tokens` of passages and of those next to them, and their `neighbours`."""
        if not self._connections.known(("session", namespace), lambda: True):
            return self.tokens(namespace, numbers), []
        found = self._of_numbers("tokens_beside", namespace, numbers)
        tokens = {row[0]: TokenEntry(*row) for row in found if row[2] is not None}
        return tokens, sorted(row[:2] for row in found if row[2] is None)

    def places(self, namespace: str, kind: Kind, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return session and position of the owners of one kind that exist in this namespace, by id."""
        found = self._read(queries.SQL["live"], namespace, kind=kind, ids=listed(ids))
        return {id_: (session, position) for id_, _, session, position in found}

    def owner_numbers(self, namespace: str, kind: Kind, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the live owners of one kind that exist in this namespace, by id."""
        found = self._read(queries.SQL["live"], namespace, kind=kind, ids=listed(ids))
        return {id_: number for id_, number, _, _ in found}

    def last_position(self, namespace: str, session: str) -> int:
        """Return the highest position in a session, -1 when the namespace has no such session; "" is none."""
        (position,) = self._read(queries.SQL["last_position"], namespace, session=session)[0]
        return -1 if position is None else int(position)

    def matching_owners(self, namespace: str, wanted: Filter) -> list[int]:
        """Return the numbers of the owners that pass the filter, ascending."""
        with self._connections.reading(namespace) as db:
            return matching_owners(db, namespace, wanted)

    def counts(self, namespace: str | None = None) -> dict[str, int]:
        """Return `owners`, `passages`, `text_bytes`, `artifacts`, `memories`, `knowledge`.

        None counts everything; the first three then hold the texts of graphs too.
        """
        row = self._connections.known(("counts", namespace), lambda: self._read(queries.SQL["counts"], namespace)[0])
        return dict(zip(("owners", "passages", "text_bytes", "artifacts", "memories", "knowledge"), row, strict=True))

    def entries_since(self, namespace: str, change: int, upto: int) -> Iterator[IndexEntry]:
        """Yield the passages that the changes (change, upto] of a namespace wrote and that exist now, by number."""
        ((first, last),) = self._read(queries.SQL["bounds"], namespace, change=change, upto=upto)
        while first < last:
            found = self._read(queries.SQL["entries_between"], namespace, first=first, last=last, limit=_ENTRIES_A_READ)
            yield from map(queries.build_entry, found)
            first = found[-1][0] + 1 if len(found) == _ENTRIES_A_READ else last

    def tail(self, namespace: str, change: int) -> list[TokenEntry]:
        """Return the passages of a namespace written after `change`, by number ascending."""
        found = self._read(queries.SQL["tail"], namespace, change=change)
        return [TokenEntry(*row) for row in found]

    def pending(self, namespace: str, change: int) -> tuple[int, int]:
        """Return how many passages were written to a namespace, and how many of it were deleted, after `change`.

        Counts without reading them; passages that are gone again may be counted.
        """
        key = "pending", namespace, change
        written, deleted = self._connections.known(
            key, lambda: self._read(queries.SQL["pending"], namespace, change=change)[0]
        )
        return written, deleted

    def deleted_since(self, namespace: str, change: int, upto: int) -> list[int]:
        """Return the numbers of passages that the changes (change, upto] of a namespace deleted, ascending."""
        found = self._read(queries.SQL["deleted_between"], namespace, change=change, upto=upto)
        return [number for (number,) in found]

    def count_pending(self) -> int:
        """Return how many passages of all namespaces, live and past, have no vector yet."""
        return int(self._connections.rows(_SQL["count_pending"], {"namespace": None})[0][0])

    def pending_vectors(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no vector yet, by number ascending."""
        found = self._connections.rows(_SQL["pending_entries"], {"namespace": None, "limit": limit})
        return [queries.build_entry(row) for row in found]

    def fill_vectors(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> int:
        """Give passages without a vector theirs, by passage number, as one change of each namespace; return how many.

        All passages of live owners get new numbers, so that whatever follows the sequence sees them. Passages that
        are gone or have a vector are passed over.

        Raises:
            EmbedderMismatchError: the store's vectors are another's.
            StoreError: a vector has another length.
        """
        refuse_unfit_vectors(embedding, [vector for _, vector in vectors])
        of_spaces, made = _by_space(vectors), 0
        names = self._connections.rows(_SQL["names"], {"namespace": None, "numbers": listed(of_spaces)})
        for name, space in sorted(names, key=itemgetter(1)):
            given = of_spaces[space]
            with self._connections.writing(namespace_of(name)) as db:
                refuse_other_maker(read_embedding(db), embedding)
                change = Change(db, namespace_of(name))
                if name not in change.spaces:  # erased meanwhile
                    continue
                own = {"space": space, "numbers": listed_numbers(given)}
                pending = db.execute(_SQL["pending_of"], own).fetchall()
                past = [number for number, _, is_past in pending if is_past]
                db.executemany(
                    _SQL["set_vector"],
                    [{"space": space, "number": number, "vector": given[number]} for number in past],
                )
                if pending:
                    with change.inside(name):
                        _renumber(change, {owner for _, owner, is_past in pending if not is_past}, given)
                        change.mark()
                    change.finish()
                made += len(pending)
        return made

    def reembedding(self) -> Reembedding | None:
        """Return the change of embedder under way, None where there is none."""
        with self._connections.reading(EVERY) as db:
            embedding = read_embedding(db, NEXT)
            if embedding is None:
                return None
            (done,) = db.execute("SELECT count(*) FROM next_vectors").fetchone()
            (total,) = db.execute("SELECT count(*) FROM passage_vectors").fetchone()
        return Reembedding(embedding, done, total)

    def begin_reembedding(self, embedding: Embedding) -> None:
        """Begin to change the embedder, or go on with that; what was made for another one is dropped.

        One process at a time does so: whoever calls sees to that.

        Raises:
            StoreError: the store's vectors are of that embedder.
        """
        with self._connections.writing() as db:
            if read_embedding(db) == embedding:
                raise StoreError(f"the vectors of the store are made by {embedding} already")
            if read_embedding(db, NEXT) != embedding:
                db.execute("DELETE FROM next_vectors")
                drop(db, "meta", key=_NEXT_KEYS)
                set_embedding(db, embedding, NEXT)

    def drop_reembedding(self) -> None:
        """Give up the change of embedder under way, if there is one, with all that was made for it."""
        with self._connections.writing() as db:
            db.execute("DELETE FROM next_vectors")
            drop(db, "meta", key=_NEXT_KEYS)

    def unembedded(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no new vector yet, by number ascending.

        Each has its old vector. Without a change of embedder under way there are none.
        """
        with self._connections.reading(EVERY) as db:
            if read_embedding(db, NEXT) is None:
                return []
            # They are made in the order of their numbers: what lacks one below the last is an exception.
            (last,) = db.execute("SELECT coalesce(max(number), 0) FROM next_vectors").fetchone()
            found: list[IndexEntry] = []
            for after in (last, 0) if last else (0,):
                for (space,) in db.execute(_SQL["spaces"], {"space": namespace_of_row(after)}).fetchall():
                    first, end = max(after, numbers_after(space)), numbers_after(space + 1)
                    values = {"space": space, "after": first, "end": end, "limit": limit - len(found)}
                    found += map(queries.build_entry, db.execute(_SQL["unembedded"], values))
                    if len(found) == limit:
                        return found
                if found:
                    break
            return found

    def put_reembedded(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Keep new vectors, by passage number; passages that are gone are passed over. It takes no change number.

        Raises:
            StoreError: another change of embedder is under way, or none, or a vector has another length.
        """
        refuse_unfit_vectors(embedding, [vector for _, vector in vectors])
        with self._connections.writing() as db:
            refuse_other_reembedding(read_embedding(db, NEXT), embedding)
            for space, some in _by_space(vectors).items():
                there = [
                    number for (number,) in db.execute(_SQL["there"], {"space": space, "numbers": listed_numbers(some)})
                ]
                drop(db, "next_vectors", namespace=space, number=there)
                rows = [{"namespace": space, "number": number, "vector": some[number]} for number in there]
                insert_rows(db, SCHEMA["next_vectors"], rows)

    def finish_reembedding(self, embedding: Embedding) -> bool:
        """Put all new vectors in the place of the old ones and stamp the store, as one change.

        Returns:
            False, and nothing is changed, where a passage has no new vector yet.

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
            insert_rows(db, SCHEMA["changes"], [next_change(space, *last) for _, space, *last in heads if last[0]])
        return True

    def check(self) -> list[str]:
        """Return what is wrong with the stored data, one sentence each; empty when all is well."""
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
        """Give a private copy of the store as it is now: nobody else sees what is written to it, and none of it stays.

        Others read and write the store meanwhile. It leaves no file behind, however the process ends.
        """
        connections = self._connections.private_copy()
        try:
            yield Store(connections)
        finally:
            connections.close()

    def _of_numbers(self, statement: str, namespace: str, numbers: Sequence[int]) -> list[Row]:
        values = {"namespace": namespace, "numbers": listed_numbers(numbers)}
        found = self._connections.rows(queries.SQL[statement], values)
        return sorted(found, key=itemgetter(0))  # as they come from SQLite


@contextmanager
def _driver_needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            "a store in PostgreSQL needs psycopg", remedy="install it with `pip install 'commonplace[postgres]'`"
        ) from error


def _by_space(numbered: Iterable[tuple[int, Value]]) -> dict[int, dict[int, Value]]:
    """Return what is numbered by passage of each namespace, by its number."""
    found: defaultdict[int, dict[int, Value]] = defaultdict(dict)
    for number, value in numbered:
        found[namespace_of_row(number)][number] = value
    return found


def _renumber(change: Change, of: Collection[int], vectors: Mapping[int, bytes]) -> None:
    """Give the passages of live owners new numbers, and those that lack a vector theirs."""
    space, held = change.space, dict[str, list[Values]]()
    own = {"space": space, "owners": listed_numbers(of)}
    change.execute(_SQL["stamp"], {**own, "change": change.number})
    for name in ("passages", "passage_vectors"):
        columns = [column.name for column in SCHEMA[name].columns]
        sql = f"SELECT {', '.join(map(quoted, columns))} FROM {name} NOT INDEXED WHERE {_SQL['of_owners']}"
        found = change.execute(sql, own)
        held[name] = [dict(zip(columns, row, strict=True)) for row in found]
    held["passages"].sort(key=itemgetter("owner", "ordinal"))
    new = {row["number"]: change.take("next_passage") for row in held["passages"]}
    # The index follows the change: it lets go of the old numbers and takes the new ones.
    gone = [{"namespace": space, "change": change.number, "number": number} for number in new]
    change.add_rows(SCHEMA["deletions"], gone)
    for name in ("next_vectors", "passage_vectors"):
        drop(change, name, namespace=space, number=list(new))
    drop(change, "passages", namespace=space, owner=list(of))
    for row in held["passage_vectors"]:
        row["vector"] = row["vector"] or vectors.get(row["number"], b"")
    for name, rows in held.items():
        change.add_rows(SCHEMA[name], [{**row, "number": new[row["number"]]} for row in rows])
