"""Memories in a store: records, versions, links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from commonplace.dataclasses import replace
from commonplace.errors import StoreError
from commonplace.store import owners
from commonplace.store.change import Change, ChangingSpace, find, heads_of
from commonplace.store.connection import Connections
from commonplace.store.dialect import SPACE, Read, listed, listed_numbers
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.store.knowledge import KnowledgeChange, KnowledgeReading
from commonplace.store.ledger import LedgerChange, LedgerReading
from commonplace.store.rows import (
    Row,
    RowQuery,
    Values,
    check_times,
    checked,
    drop,
    form_of,
    refuse_wide,
    rows_of,
    unlisted,
)
from commonplace.store.schema import SCHEMA, TABLES, WHOLE_STORE, Table, table_of
from commonplace.store.statements import Statements
from commonplace.store.validate import META, check_recorded, refuse_other_maker
from commonplace.types import (
    CONFLICTS,
    DOUBT,
    HOLDS_BESIDE,
    RULE,
    SUPERSEDES,
    Chunk,
    Embedding,
    JournalBlock,
    JournalPage,
    Link,
    MemoryRecord,
    MemoryWrite,
    NewPassage,
    Note,
    Owner,
    Passage,
    Selection,
    StoredMemory,
    TokenEntry,
)

_RECORD = form_of(MemoryRecord)
_OWNER = form_of(Owner)
_LINK = form_of(Link)
_CHUNK = form_of(Chunk)
_WIDTH = 3 + len(_RECORD.columns)
_STAMP = _WIDTH + len(_OWNER.columns)
SQL: Final = Statements("memories")

_LISTS = ("ids", "tiers", "statuses", "tags", "sources", "sessions", "categories")
"""The fields of a selection that are lists of alternatives."""


_FACETS = ("tier", "status", "category", "source", "trust")


_UNLIMITED = 2**63 - 1


def build_memory(row: Row) -> StoredMemory:
    """Build a version of a memory from the columns that all queries for memories select."""
    number, created_at, expired_at = row[:3]
    owner = _OWNER.build(row[_WIDTH:])
    return StoredMemory(number, owner, _RECORD.build(row[3:_WIDTH]), created_at, expired_at)


_SEARCHED = ("tier", "trust", "source")
"""The fields of a record that search filters read."""


class Statement(NamedTuple):
    """A version's memory, its time, and the memories that overtook it.

    Attributes:
        told: as a person says.
        ended_by: as the graph says, though no person says that both hold.
        judged: as a rule judged, which is sure (True) or asks a person (False).
    """

    id: str
    at: float
    told: set[str]
    ended_by: set[str]
    judged: dict[str, bool]

    @property
    def overtaken_by(self) -> set[str]:
        """Those of which a person or the graph says so."""
        return self.told | self.ended_by


class MemoryChange(ChangingSpace):
    """Memories of one namespace inside one write transaction.

    The transaction is committed as one change when its block ends and rolled back if the block raises; others cannot
    change what it has read. Adding, replacing, revising or expiring a memory makes its Markdown due; so does adding or
    removing a link, for the memory at its source. Numbers of no version in this namespace are ignored. After a call was
    refused, the transaction may continue.

    Attributes:
        graph: the graph of the namespace in this transaction; likewise the `knowledge` of its agents and its `ledger`.
    """

    def __init__(self, change: Change) -> None:
        super().__init__(change)
        self.graph = GraphChange(change)
        self.knowledge = KnowledgeChange(change)
        self.ledger = LedgerChange(change)

    def rows_of(self, queries: Iterable[RowQuery]) -> Iterator[tuple[Table, Values]]:
        """Yield rows of several tables of this namespace as the transaction sees them; see `rows_of`."""
        return rows_of(self._change, self._change.namespace, queries)

    def find(self, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        row = self._rows(SQL["latest"], id=id_)
        return build_memory(row[0]) if row else None

    def alike(self, digest: str, bands: Sequence[int]) -> list[StoredMemory]:
        """Return the live memories with this digest or any of these bands, sorted by number."""
        return [build_memory(row) for row in self._rows(SQL["alike"], digest=digest, bands=listed(bands))]

    def links(self, ids: Sequence[str]) -> list[Link]:
        """Return the links that start or end at one of these memories; sorted by source, target, type."""
        return _links(self._rows(SQL["links"], ids=listed(ids)), past=False) if ids else []

    def add(self, write: MemoryWrite, *, created_at: float, expired_at: float | None = None) -> int:
        """Write a new version of a memory, which becomes the latest, and return its number.

        With `expired_at` the version is past from the start. Expire an older live version first: only the latest
        version can be live.

        Raises:
            StoreError: the memory has a live version, or another embedder made a vector.
        """
        owner = write.owner
        if owner.session and not write.is_placed:
            ((last,),) = self._rows(owners.SQL["last_position"], session=owner.session)
            write = replace(write, owner=replace(owner, position=0 if last is None else int(last) + 1))
        write = check_recorded(write, "memory", "a memory", self._change.embedding, created_at, expired_at)
        self._refuse_live(owner.id)
        return self._insert(write, created_at, expired_at)

    def revise(self, number: int, record: MemoryRecord, *, is_shown: bool = True) -> None:
        """Set the record of a version; its tags and passages, with their texts, stay as they are.

        Args:
            is_shown: False if its Markdown does not change and is not due.
        """
        old = self._version(number)
        if old is not None:
            key = {"namespace": self._change.namespace_id, "owner": number}
            if old.record.content != record.content:
                self._change.execute(SQL["detach"], key)
            self._change.execute(SQL["revise"], {**key, **_RECORD.pack(record, f"memory {old.owner.id!r}")})
            if any(getattr(old.record, name) != getattr(record, name) for name in _SEARCHED):
                self._change.mark()
            if is_shown:
                self._mark(old.owner.id)

    def expire(self, number: int, record: MemoryRecord, at: float) -> None:
        """Make a live version past from `at` on, with this record; ignore one that is past already."""
        old = self._version(number)
        if old is not None:
            check_times(f"memory {old.owner.id!r}", at)
            checked(record, f"memory {old.owner.id!r}")
            if old.expired_at is None:
                self._change.expire_owner(number, at)
                self._change.drop("memory_bands", owner=number)
                self.revise(number, record)

    def revive(self, number: int, record: MemoryRecord, *, bands: Sequence[int] = ()) -> int:
        """Make the latest version of a memory live again, as if it had never been past, with this record.

        Its time of creation, text, tags, passages and dates stay; it and its passages get new numbers, because the
        index has dropped the old ones. Return the new number, or the same one if the version is live.

        Args:
            bands: those of its text, which are not stored for a past version.

        Raises:
            StoreError: it is not the latest version of a memory here, or an owner without a record has its id.
        """
        old = self._version(number)
        latest = None if old is None else self.find(old.owner.id)
        if old is None or latest is None or latest.number != old.number:
            raise StoreError(f"version {number} is not the latest of a memory", remedy="revive the latest one")
        record = checked(record, f"memory {old.owner.id!r}")
        if old.expired_at is None:
            self.revise(number, record)
            return number
        refuse_wide(f"memory {old.owner.id!r}", *bands)
        self._refuse_live(old.owner.id)
        # The version is deleted and written again from its stored rows.
        key = {"namespace": self._change.namespace_id, "owner": number}
        rows = self._change.rows(SQL["written"], key)
        passages = tuple(NewPassage(id_, _CHUNK.build(chunk), ids, vector) for id_, *chunk, ids, vector in rows)
        dates = self._change.rows(SQL["dates"], key)
        ((digest,),) = self._change.rows(SQL["digest"], key)
        self._change.remove_owner(number)
        write = MemoryWrite(old.owner, passages, record, digest, tuple(bands), tuple(dates), is_placed=True)
        return self._insert(write, old.created_at)

    def erase(self, ids: Sequence[str]) -> int:
        """Delete memories with all versions, passages, links, dates and Markdown marks; return how many versions."""
        deleted = 0
        for id_ in dict.fromkeys(ids):
            for row in self._rows(SQL["versions"], id=id_):
                deleted += self._change.remove_owner(row[0])
            self._change.drop("links", source=id_)
            self._change.drop("links", target=id_)
            self._change.drop("mirror_blocks", id=id_)
            self.settle_due([id_])
        return deleted

    def erase_owners(self, numbers: Sequence[int]) -> int:
        """Delete owners of any kind by number, with their dependent rows; return how many there were."""
        return sum(self._change.remove_owner(number) for number in numbers)

    def link(self, link: Link) -> None:
        """Write a link, replacing the one with the same ends and type."""
        self._change.put(link)
        self._linked(link.source, link.type)

    def unlink(self, source: str, target: str, type_: str | None = None) -> int:
        """Delete the links from one memory to another, of one type or of all, and return how many there were."""
        of_type = {} if type_ is None else {"type": type_}
        deleted = self._change.drop("links", source=source, target=target, **of_type).rowcount
        if deleted:
            self._linked(source, type_)
        return deleted

    def put(self, *records: JournalBlock | JournalPage | Note) -> None:
        """Write records, replacing those with the same keys."""
        self._change.put(*records)

    def drop(self, record: type[JournalBlock | JournalPage | Note], **key: str) -> None:
        """Delete the records of a class whose fields have these values."""
        self._change.drop(table_of(record).name, **key)

    def settle_due(self, ids: Sequence[str]) -> None:
        """Record that the Markdown of these memories is up to date."""
        self._change.drop("mirror_due", id=list(ids))

    def _version(self, number: int) -> StoredMemory | None:
        rows = self._rows(SQL["of_numbers"], numbers=listed([int(number)]))
        return build_memory(rows[0]) if rows else None

    def _refuse_live(self, id_: str) -> None:
        """Refuse a second live version of a memory: it would be undefined which one is current."""
        if self._rows(owners.SQL["live"], kind="memory", ids=listed([id_])):
            raise StoreError(f"there is a live version of memory {id_!r}", remedy="expire it first")

    def _insert(self, write: MemoryWrite, created_at: float, expired_at: float | None = None) -> int:
        """Write a checked version as the latest one, and return its number."""
        change, id_ = self._change, write.owner.id
        change.execute(SQL["outdate"], {"namespace": change.namespace_id, "id": id_})
        content = write.record.content
        number = change.add_owner(
            write.owner, write.passages, content=content, created_at=created_at, expired_at=expired_at
        )
        insert_version(change, number, write, is_latest=True, is_live=expired_at is None)
        self._mark(id_)
        return number

    def _mark(self, id_: str) -> None:
        self._change.add_rows(SCHEMA["mirror_due"], [{"namespace": self._change.namespace_id, "id": id_}], "keep")

    def _linked(self, source: str, type_: str | None) -> None:
        if type_ in (None, SUPERSEDES, CONFLICTS, HOLDS_BESIDE):
            self._change.mark()  # search results say which memory is superseded
        if self.find(source) is not None:
            self._mark(source)


def insert_version(change: Change, number: int, write: MemoryWrite, *, is_latest: bool, is_live: bool) -> None:
    """Write the record, bands and dates of a version of a memory that `check_recorded` returned."""
    at = write.record.born_at if write.owner.at is None else write.owner.at
    columns = {"owner": number, "id": write.owner.id, "is_latest": int(is_latest), "digest": write.digest, "at": at}
    change.write(write.record, **columns)
    key = {"namespace": change.namespace_id, "owner": number}
    if is_live:
        change.add_rows(SCHEMA["memory_bands"], [{**key, "band": band} for band in set(write.bands)])
    dates = [{**key, "since": since, "until": until} for since, until in set(write.dates)]
    change.add_rows(SCHEMA["memory_dates"], dates)


def _links(rows: Iterable[Row], *, past: bool) -> list[Link]:
    links = [link for link in map(_LINK.build, rows) if past or link.expired_at is None]
    return sorted(links, key=lambda link: (link.source, link.target, link.type))


class MemoryStore:
    """The part of a store that holds memories."""

    _connections: Connections

    @contextmanager
    def change_memories(
        self,
        namespace: str,
        *,
        made_by: Embedding | None = None,
        writes: Sequence[MemoryWrite] = (),
        has_given_ids: bool = False,
    ) -> Iterator[MemoryChange]:
        """Begin a write transaction over the memories of a namespace; the first write creates the namespace.

        It takes a change number only if versions come or go, or if a record's tier, trust or source changes: if search
        results may change. Other reads of the store do not see its writes before the commit.

        Args:
            made_by: the embedder of the vectors that will be written, if any.
            writes: what will probably be added; `has_given_ids` if memories with these ids may exist.

        Raises:
            EmbedderMismatchError: another embedder made the store's vectors; raised when the block begins.
            StoreError: this thread writes to the store in another way inside the block.
        """
        ahead: list[Read] = [heads_of(namespace)] if made_by is None else [heads_of(namespace), (META, {})]
        if len(writes) == 1:  # the first reads of `remember`: is there a memory with its id or content?
            write, id_ = writes[0], writes[0].owner.id
            if has_given_ids:
                ahead.append((SQL["latest"], {"namespace": namespace, "id": id_}))
            ahead.append((owners.SQL["live"], {"namespace": namespace, "kind": "memory", "ids": listed([id_])}))
            if session := write.owner.session:
                ahead.append((owners.SQL["last_position"], {"namespace": namespace, "session": session}))
            else:
                values = {"namespace": namespace, "digest": write.digest, "bands": listed(write.bands)}
                ahead.append((SQL["alike"], values))
        with self._connections.writing(namespace, ahead) as db:
            change = Change(db, namespace)
            if made_by is not None:
                refuse_other_maker(change.embedding, made_by)
            try:
                yield MemoryChange(change)
                change.finish()
            finally:
                change.is_over = True

    def memory(self, namespace: str, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        rows = self._read(SQL["latest"], namespace, id=id_)
        return build_memory(rows[0]) if rows else None

    def memories(self, namespace: str, selection: Selection) -> list[StoredMemory]:
        """Return the latest versions that a selection chooses, in its order."""
        limit = _UNLIMITED if selection.limit is None else selection.limit
        page = {"limit": limit, "offset": selection.offset}
        numbers = [number for (number,) in self._selected(SQL[f"by_{selection.order}"], namespace, selection, **page)]
        versions = self.memory_records(namespace, numbers)
        return [versions[number] for number in numbers if number in versions]

    def count_memories(self, namespace: str, selection: Selection) -> int:
        """Return how many memories a selection chooses, ignoring its limit and offset."""
        ((count,),) = self._selected(SQL["count"], namespace, selection)
        return int(count)

    def count_tiers(self, namespace: str) -> dict[tuple[str, str], int]:
        """Return the number of memories by (tier, status)."""
        return {(tier, status): count for tier, status, count in self._read(SQL["tiers"], namespace)}

    def memory_facets(self, namespace: str, selection: Selection) -> dict[str, dict[str, int]]:
        """Return how many memories a selection chooses by tier, status, category, source, session, trust and tag.

        Values are texts, sorted; trust is rounded down to a tenth. Limit and offset are ignored.
        """
        facets: dict[str, Counter[str]] = {name: Counter() for name in (*_FACETS, "session", "tag")}
        for facet, *values, count in self._selected(SQL["facets"], namespace, selection):
            if facet == "memory":
                *labels, trust = values
                for name, value in zip(_FACETS, (*labels, str(int(float(trust) * 10) / 10)), strict=True):
                    facets[name][value] += count
            else:
                facets[facet][values[0]] += count
        return {name: dict(sorted(counts.items())) for name, counts in facets.items()}

    def versions(self, namespace: str, id_: str) -> list[StoredMemory]:
        """Return every version of a memory, oldest first."""
        return [build_memory(row) for row in self._read(SQL["versions"], namespace, id=id_)]

    def memory_digests(self, namespace: str) -> list[tuple[int, str, str]]:
        """Return (number, id, digest) of the latest versions, by number; the digest is that of their `MemoryWrite`."""
        sql = f"SELECT owner, id, digest FROM memories WHERE namespace = {SPACE} AND is_latest = 1 ORDER BY owner"
        return self._read(sql, namespace)

    def shared_bands(self, namespace: str, most: int) -> list[tuple[int, int]]:
        """Return (band, number) of live memories, sorted, for bands that at most `most` of them share."""
        return self._read(SQL["shared_bands"], namespace, most=most)

    def derivations(self, namespace: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, `derived_from`) of the versions that were derived from other memories, sorted by number."""
        sql = f"SELECT id, derived_from FROM memories WHERE namespace = {SPACE} AND derived_from != '' ORDER BY owner"
        return [(id_, unlisted(made_from)) for id_, made_from in self._read(sql, namespace)]

    def memory_records(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, StoredMemory]:
        """Return the versions with these numbers, live or past; other owners and unknown numbers are absent."""
        rows = self._read(SQL["of_numbers"], namespace, numbers=listed_numbers(owner_numbers))
        return {row[0]: build_memory(row) for row in rows}

    def statements(self, namespace: str, numbers: Sequence[int], as_of: float | None = None) -> dict[int, Statement]:
        """Return what overtook memories, by the links as of a time or, for None, by the current links and graph."""
        by_number: dict[int, Statement] = {}
        values = {"numbers": listed_numbers(numbers), "as_of": as_of, "doubt": DOUBT}
        for number, id_, at, source, type_, origin, ended_by in self._read(SQL["statements"], namespace, **values):
            statement = by_number.setdefault(number, Statement(id_, at, set(), {ended_by} - {None}, {}))
            if type_ == HOLDS_BESIDE:
                statement.judged.pop(source, None)
                statement.ended_by.discard(source)
            elif origin == RULE or type_ == CONFLICTS:
                statement.judged[source] = type_ == SUPERSEDES and statement.judged.get(source, True)
            elif type_ is not None:
                statement.told.add(source)
        return by_number

    def announced(self, namespace: str, numbers: Sequence[int]) -> dict[int, float]:
        """Return when the first fact begins of memories that state only what was still to come; others are absent."""
        return dict(self._read(SQL["announced"], namespace, numbers=listed_numbers(numbers)))

    def passages_with_owners(
        self, namespace: str, numbers: Sequence[int]
    ) -> dict[int, tuple[Passage, Owner, StoredMemory | None]]:
        """Return the passages that exist in this namespace, by number, with their owners and versions of memories."""
        ahead: Sequence[int] = self._connections.cached((SQL["passages_of_hits"], namespace), tuple)
        requested, width = ahead if set(numbers).issubset(ahead) else numbers, owners.PASSAGE_WIDTH
        return {
            row[0]: (
                owners.build_passage(row[:width]),
                owners.build_owner(row[width + _WIDTH :]),
                None if row[width + 3] is None else build_memory(row[width : width + _STAMP]),
            )
            for row in self._read(SQL["passages_of_hits"], namespace, numbers=listed_numbers(requested))
            if requested is numbers or row[0] in numbers
        }

    def passages_ahead(self, namespace: str, numbers: Sequence[int]) -> None:
        """Send the query of `passages_with_owners` ahead to a server, for all passages that may be requested."""
        connections = self._connections
        if connections.place and connections.cached((SQL["passages_of_hits"], namespace), lambda: numbers) is numbers:
            values = {"namespace": namespace, "numbers": listed_numbers(numbers)}
            connections.ahead([(SQL["passages_of_hits"], values)], namespace)

    def links(self, namespace: str, ids: Sequence[str] | None = None, *, past: bool = False) -> list[Link]:
        """Return the links that start or end at one of these memories, or all; sorted by source, target, type."""
        if ids is None:
            return _links(self._read(SQL["all_links"], namespace), past=past)
        return _links(self._read(SQL["links"], namespace, ids=listed(ids)), past=past) if ids else []

    def count_links(self, namespace: str) -> int:
        """Return how many live links there are, except those that a rule made."""
        sql = f"SELECT count(*) FROM links WHERE namespace = {SPACE} AND expired_at IS NULL AND origin != '{RULE}'"
        ((count,),) = self._read(sql, namespace)
        return int(count)

    def dated(
        self, namespace: str, since: float, until: float, *, as_of: float | None = None
    ) -> list[tuple[int, float, float]]:
        """Return (owner number, since, until) of the dates in live memories that overlap an interval, sorted.

        The `at` of a memory counts as an empty interval, which overlaps if since <= at < until.

        Args:
            as_of: search the versions that were live at this time instead.
        """
        names = ("dated",) if as_of is None else ("dated", "dated_past")
        values = {"since": since, "until": until, "as_of": as_of}
        return sorted(row for name in names for row in self._read(SQL[name], namespace, **values))

    def past(self, namespace: str, as_of: float | None, valid_at: float | None = None) -> list[TokenEntry]:
        """Return the passages of past versions live at a time, by number: created_at <= as_of < expired_at.

        Args:
            as_of: None for now, when no past version is live.
            valid_at: also return those of earlier versions that a filter with this `valid_at` finds in their place.
        """
        rows = set() if as_of is None else {*self._read(SQL["past"], namespace, as_of=as_of)}
        if valid_at is not None:
            rows |= {*self._read(SQL["passages_of_earlier"], namespace, as_of=as_of, valid_at=valid_at)}
        return [TokenEntry(*row) for row in sorted(rows)]

    def due(self, namespace: str) -> list[str]:
        """Return the ids of the memories whose Markdown is due, sorted."""
        due = self._read(f"SELECT id FROM mirror_due WHERE namespace = {SPACE}", namespace)
        return sorted(id_ for (id_,) in due)

    def blocks(self, namespace: str, ids: Sequence[str] | None = None) -> list[JournalBlock]:
        """Return the journal blocks of these memories, or of all, sorted by id."""
        criteria = {} if ids is None else {"id": list(ids)}
        return find(self._connections, namespace, form_of(JournalBlock), criteria, "ORDER BY id")

    def pages(self, namespace: str) -> list[JournalPage]:
        """Return the journal pages, sorted by name."""
        return find(self._connections, namespace, form_of(JournalPage), clause="ORDER BY page")

    def notes(self, namespace: str | None, kind: str, id_: str | None = None) -> list[Note]:
        """Return the notes of one kind, or the one with this id, of a namespace or of all; sorted by time, id, body."""
        criteria = {"kind": kind} if id_ is None else {"kind": kind, "id": id_}
        records = self._connections.cached(
            ("notes", namespace, *criteria.values()),
            lambda: find(self._connections, namespace, form_of(Note), criteria),
        )
        return sorted(records, key=lambda note: (note.at, note.id, note.body))

    def erase_namespace(self, namespace: str, notes: Sequence[Note] = ()) -> int:
        """Delete a namespace, its name and everything in it, including its graph; return how many owners it had.

        The number includes past versions, but not the texts of the graph. All happens in one transaction; a namespace
        that does not exist takes no change number.

        Args:
            notes: notes about it to write to `WHOLE_STORE` in the same transaction.
        """
        with self._connections.writing(namespace) as db:
            change = Change(db, namespace)
            if namespace not in change.namespace_ids:
                return 0
            sql = "SELECT count(*) FROM owners WHERE namespace = :namespace"
            ((deleted,),) = change.rows(sql, {"namespace": change.namespace_id})
            for namespace_id in change.namespace_ids.values():
                for table in reversed(TABLES):
                    if table.has_namespace:
                        drop(db, table.name, namespace=namespace_id)
                drop(db, "namespaces", number=namespace_id)
            with self._connections.writing_also(db, WHOLE_STORE):
                store_change = Change(db, WHOLE_STORE)
                store_change.put(*notes)
                store_change.finish()
            return int(deleted)

    def graph(self, namespace: str) -> GraphReading:
        """Return the graph of a namespace; it is empty if the namespace does not exist."""
        return GraphReading(self._connections, namespace)

    def knowledge(self, namespace: str) -> KnowledgeReading:
        """Return the knowledge of the agents of a namespace; it is empty if the namespace does not exist."""
        return KnowledgeReading(self._connections, namespace)

    def ledger(self, namespace: str) -> LedgerReading:
        """Return the ledger of a namespace; it is empty if the namespace does not exist."""
        return LedgerReading(self._connections, namespace)

    def compact(self, *, thorough: bool = False) -> bool:
        """Remove deleted content from the store's files; return whether all of it is gone.

        False means that another process still reads an older state: try again when it has finished.

        Args:
            thorough: rewrite the whole file, for cases where overwriting on deletion is not enough.
        """
        return self._connections.compact(thorough=thorough)

    def files(self) -> list[str]:
        """Return the absolute paths of the store's data files; none for a store in memory."""
        return list(map(str, self._connections.files()))

    def _selected(self, sql: str, namespace: str, selection: Selection, **page: str | float) -> list[Row]:
        alternatives = {name: getattr(selection, name) for name in _LISTS}
        lists = {name: listed(values) if values else None for name, values in alternatives.items()}
        bounds = {"since": selection.since, "until": selection.until, "min_trust": selection.min_trust}
        return self._read(sql, namespace, **lists, **bounds, **page)

    def _read(self, sql: str, namespace: str | None, **values: str | bytes | float | None) -> list[Row]:
        return self._connections.rows(sql, {"namespace": namespace, **values})
