"""The part of the SQLite store that holds memories. It knows tables and connections, no rule about memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from commonplace.store import memory_queries
from commonplace.store.batches import refuse_other_maker
from commonplace.store.graph_contract import texts_of
from commonplace.store.memory_contract import MemoryChange, MirroredBlock, MirroredPage, Note
from commonplace.store.memory_rows import hex_json, unpack_link, unpack_memory
from commonplace.store.rows import pack_id, pack_text, unpack
from commonplace.store.sqlite_memory_change import SqliteMemoryChange
from commonplace.store.sqlite_transaction import Transaction
from commonplace.store.sqlite_writing import Change, namespace_number, numbers_json, read_embedding
from commonplace.types import GRAPH_KINDS, Link, Selection, StoredMemory, TokenEntry

if TYPE_CHECKING:
    from commonplace.store.connections import Connections
    from commonplace.store.graph_contract import GraphReading
    from commonplace.store.knowledge_contract import KnowledgeReading
    from commonplace.store.ledger_contract import LedgerReading
    from commonplace.store.rows import Row
    from commonplace.types import Embedding

_TABLES = (
    "memory_bands",
    "memory_dates",
    "memories",
    "links",
    "mirror_due",
    "mirror_blocks",
    "mirror_pages",
    "notes",
    "episodes",
    "entities",
    "aliases",
    "relations",
    "mentions",
    "happenings",
    "knowledge_items",
    "agent_contexts",
    "issues",
    "issue_memories",
    "issue_events",
    "reversals",
    "reversal_memories",
    "counts",
)


class SqliteMemories:
    """Memories in a SQLite database."""

    _connections: Connections

    @contextmanager
    def change_memories(self, namespace: str, *, made_by: Embedding | None = None) -> Iterator[MemoryChange]:
        """Begin a write transaction over the memories of a namespace."""
        with self._connections.writing() as db:
            refuse_other_maker(read_embedding(db), made_by)
            transaction = Transaction(db, namespace)
            try:
                yield SqliteMemoryChange(transaction)
                transaction.finish()
            finally:
                transaction.is_over = True

    def memory(self, namespace: str, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        found = self._read(memory_queries.LATEST, namespace, id=pack_id(id_))
        return unpack_memory(found[0]) if found else None

    def memories(self, namespace: str, selection: Selection) -> list[StoredMemory]:
        """Return the latest versions that a selection chooses, in its order."""
        keys = [(number, unpack(id_), time) for number, id_, time in self._selected(namespace, selection)]
        if selection.order == "id":
            keys.sort(key=lambda key: key[1])
        else:
            keys.sort(key=lambda key: (-key[2], key[1]))
        end = None if selection.limit is None else selection.offset + selection.limit
        numbers = [number for number, _, _ in keys[selection.offset : end]]
        found = self.memory_records(namespace, numbers)
        return [found[number] for number in numbers if number in found]

    def count_memories(self, namespace: str, selection: Selection) -> int:
        """Return how many a selection chooses, its limit and offset left out of account."""
        return len(self._selected(namespace, selection))

    def versions(self, namespace: str, id_: str) -> list[StoredMemory]:
        """Return every version of a memory, oldest first."""
        return [unpack_memory(row) for row in self._read(memory_queries.VERSIONS, namespace, id=pack_id(id_))]

    def memory_digests(self, namespace: str) -> list[tuple[int, str, str]]:
        """Return (number, id, digest) of the latest versions, by number."""
        found = self._read(memory_queries.DIGESTS, namespace)
        return [(number, unpack(id_), unpack(digest)) for number, id_, digest in found]

    def memory_records(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, StoredMemory]:
        """Return the versions with these numbers, live or past."""
        found = self._read(memory_queries.OF_NUMBERS, namespace, numbers=numbers_json(owner_numbers))
        return {row[0]: unpack_memory(row) for row in found}

    def links(self, namespace: str, ids: Sequence[str] | None = None) -> list[Link]:
        """Return the links that start or end at one of these memories, or all; sorted by source, target, type."""
        if ids is not None and not ids:
            return []
        found = self._read(memory_queries.LINKS, namespace, ids=hex_json(map(pack_id, ids or ())))
        return sorted(map(unpack_link, found), key=lambda link: (link.source, link.target, link.type))

    def dated(
        self, namespace: str, since: float, until: float, *, as_of: float | None = None
    ) -> list[tuple[int, float, float]]:
        """Return (owner number, since, until) of the dates in live memories that overlap an interval, sorted."""
        found = self._read(memory_queries.DATED, namespace, since=since, until=until, as_of=as_of)
        if as_of is None:
            return found
        past = self._read(memory_queries.DATED_PAST, namespace, since=since, until=until, as_of=as_of)
        return sorted([*found, *past])

    def past(self, namespace: str, as_of: float | None, valid_at: float | None = None) -> list[TokenEntry]:
        """Return the passages of past versions that were live, or true in the world, at a time, by number."""
        found = set() if as_of is None else {*self._read(memory_queries.PAST, namespace, as_of=as_of)}
        if valid_at is not None:
            found |= {*self._read(memory_queries.PAST_EARLIER, namespace, as_of=as_of, valid_at=valid_at)}
        return [TokenEntry(*row) for row in sorted(found)]

    def due(self, namespace: str) -> list[str]:
        """Return the ids of the memories whose Markdown is due, sorted."""
        return sorted(unpack(id_) for (id_,) in self._read(memory_queries.DUE, namespace))

    def blocks(self, namespace: str, ids: Sequence[str] | None = None) -> list[MirroredBlock]:
        """Return what is known of the blocks of these memories in Markdown, or of all, by id."""
        if ids is None:
            found = self._read(memory_queries.BLOCKS, namespace)
        else:
            each = (self._read(memory_queries.BLOCK, namespace, id=pack_id(id_)) for id_ in dict.fromkeys(ids))
            found = [row for rows in each for row in rows]
        blocks = [MirroredBlock(unpack(id_), unpack(page), unpack(digest)) for id_, page, digest in found]
        return sorted(blocks, key=lambda block: block.id)

    def pages(self, namespace: str) -> list[MirroredPage]:
        """Return what is known of pages, by name."""
        found = self._read(memory_queries.PAGES, namespace)
        pages = [MirroredPage(unpack(page), size, mtime_ns, unpack(sha256)) for page, size, mtime_ns, sha256 in found]
        return sorted(pages, key=lambda page: page.page)

    def notes(self, namespace: str | None, kind: str) -> list[Note]:
        """Return the notes of one kind, of one namespace or of all, by time, ties by id, then by body."""
        found = self._read(memory_queries.NOTES, namespace, kind=pack_text(kind))
        notes = [Note(unpack(kind_), unpack(id_), at, unpack(body)) for kind_, id_, at, body in found]
        return sorted(notes, key=lambda note: (note.at, note.id, note.body))

    def erase_namespace(self, namespace: str) -> int:
        """Delete everything that a namespace holds, and its name, as one change; return how many owners went."""
        with self._connections.writing() as db:
            space = namespace_number(db, namespace)
            if space is None:
                return 0
            change = Change.begin(db, space)
            gone = _remove_all(change)
            beside = [namespace_number(db, texts_of(namespace, kind)) for kind in GRAPH_KINDS]
            for texts in filter(None, beside):
                with change.inside(texts):
                    _remove_all(change)
            change.mark()
            change.finish()
            for erased in filter(None, [space, *beside]):
                for table in _TABLES:
                    db.execute(f"DELETE FROM {table} WHERE namespace = ?", (erased,))  # noqa: S608 - names of ours
                db.execute("DELETE FROM namespaces WHERE number = ?", (erased,))
            return gone

    def graph(self, namespace: str) -> GraphReading:
        """Return the graph of a namespace; one that is not there is empty."""
        from commonplace.store.sqlite_graph import SqliteGraph

        return SqliteGraph(self._connections, namespace)

    def knowledge(self, namespace: str) -> KnowledgeReading:
        """Return the knowledge of the agents of a namespace; of one that is not there nothing."""
        from commonplace.store.sqlite_knowledge import SqliteKnowledge

        return SqliteKnowledge(self._connections, namespace)

    def ledger(self, namespace: str) -> LedgerReading:
        """Return the ledger of a namespace; of one that is not there an empty one."""
        from commonplace.store.sqlite_ledger import SqliteLedger

        return SqliteLedger(self._connections, namespace)

    def compact(self, *, thorough: bool = False) -> bool:
        """Let nothing that was deleted be left in the store's files; return whether that is so now."""
        return self._connections.compact(thorough=thorough)

    def files(self) -> list[str]:
        """Return the absolute paths of the files that the store's data stand in."""
        database = self._connections.path.absolute()
        beside = [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
        return [str(path) for path in beside if path.exists()]

    def _selected(self, namespace: str, selection: Selection) -> list[Row]:
        return self._read(
            memory_queries.SELECTED,
            namespace,
            ids=hex_json(map(pack_id, selection.ids)),
            tiers=hex_json(selection.tiers),
            statuses=hex_json(selection.statuses),
            tags=hex_json(map(pack_text, selection.tags)),
            sources=hex_json(map(pack_text, selection.sources)),
            sessions=hex_json(map(pack_id, selection.sessions)),
            categories=hex_json(map(pack_text, selection.categories)),
            since=selection.since,
            until=selection.until,
        )

    def _read(self, sql: str, namespace: str | None, **values: str | bytes | float | None) -> list[Row]:
        name = None if namespace is None else pack_text(namespace)
        with self._connections.reading() as db:
            return db.execute(sql, {"namespace": name, **values}).fetchall()


def _remove_all(change: Change) -> int:
    """Delete every owner of the namespace that a change is in; return how many there were."""
    found = change.db.execute("SELECT number FROM owners WHERE namespace = ?", (change.space,)).fetchall()
    return sum(change.remove(number) for (number,) in found)
