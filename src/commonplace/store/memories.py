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
    Asked,
    Row,
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
"""The fields of a selection of which each value is an alternative."""


_FACETS = ("tier", "status", "category", "source", "trust")


_UNLIMITED = 2**63 - 1


def build_memory(row: Row) -> StoredMemory:
    """Build a version of a memory from the columns that all queries for memories give."""
    number, created_at, expired_at = row[:3]
    owner = _OWNER.build(row[_WIDTH:])
    return StoredMemory(number, owner, _RECORD.build(row[3:_WIDTH]), created_at, expired_at)


_SEARCHED = ("tier", "trust", "source")
"""What a filter of a search asks of a record."""


class Statement(NamedTuple):
    """Whose a version of a memory is, its time, and which overtook it: as a person or the graph says, and as a rule."""

    id: str
    at: float
    overtaken_by: set[str]
    judged: set[str]


class MemoryChange(ChangingSpace):
    """Memories of one namespace inside one write transaction.

    It is committed as one change when its block ends and rolled back when that raises; nothing that is read in it can
    be changed by others meanwhile. Whatever adds, replaces, revises or expires a memory makes its Markdown due; a link
    does so for the memory where it starts, when it comes and when it goes. Numbers that are no version here are passed
    over. After a refusal the change may go on.

    Attributes:
        graph: the graph of the same namespace, in the same transaction; likewise the `knowledge` of its agents, and its
            `ledger`.
    """

    def __init__(self, change: Change) -> None:
        super().__init__(change)
        self.graph = GraphChange(change)
        self.knowledge = KnowledgeChange(change)
        self.ledger = LedgerChange(change)

    def rows_of(self, asked: Iterable[Asked]) -> Iterator[tuple[Table, Values]]:
        """Yield rows of several tables of this namespace as they are now; see `rows_of`."""
        return rows_of(self._change, self._change.namespace, asked)

    def find(self, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        row = self._rows(SQL["latest"], id=id_)
        return build_memory(row[0]) if row else None

    def alike(self, digest: str, bands: Sequence[int]) -> list[StoredMemory]:
        """Return the live memories with that digest or any of those bands, by number."""
        return [build_memory(row) for row in self._rows(SQL["alike"], digest=digest, bands=listed(bands))]

    def links(self, ids: Sequence[str]) -> list[Link]:
        """Return the links that start or end at one of these memories; sorted by source, target, type."""
        return _links(self._rows(SQL["links"], ids=listed(ids)), past=False) if ids else []

    def add(self, write: MemoryWrite, *, created_at: float, expired_at: float | None = None) -> int:
        """Write a new version of a memory and return its number; what was the latest version before is that no longer.

        With `expired_at` the version is past from the start. An older version that is still live must have been expired
        before: the live version is always the latest.

        Raises:
            StoreError: a live version of that id exists, or a vector is not of the store's embedder.
        """
        owner = write.owner
        if owner.session and not write.is_placed:
            ((last,),) = self._rows(owners.SQL["last_position"], session=owner.session)
            write = replace(write, owner=replace(owner, position=0 if last is None else int(last) + 1))
        write = check_recorded(write, "memory", "a memory", self._change.embedding, created_at, expired_at)
        self._refuse_live(owner.id)
        return self._insert(write, created_at, expired_at)

    def revise(self, number: int, record: MemoryRecord, *, is_shown: bool = True) -> None:
        """Set the record of a version; its text, tags and passages stay as they are.

        Args:
            is_shown: False where its Markdown is as it was, and not due.
        """
        old = self._version(number)
        if old is not None:
            own = {"namespace": self._change.space, "owner": number}
            if old.record.content != record.content:
                self._change.execute(SQL["detach"], own)
            self._change.execute(SQL["revise"], {**own, **_RECORD.pack(record, f"memory {old.owner.id!r}")})
            if any(getattr(old.record, name) != getattr(record, name) for name in _SEARCHED):
                self._change.mark()
            if is_shown:
                self._mark(old.owner.id)

    def expire(self, number: int, record: MemoryRecord, at: float) -> None:
        """Make a live version past from `at` on, with this record; nothing happens to one that is past already."""
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

        Its time of creation, words, tags, passages and dates stay; it and its passages get new numbers, since the index
        has let go of the old ones. Return the new number, or the same where the version is live.

        Args:
            bands: those of its text, which a past version has not kept.

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
        # It is written again from what it was written from.
        own = {"namespace": self._change.space, "owner": number}
        rows = self._change.rows(SQL["written"], own)
        passages = tuple(NewPassage(id_, _CHUNK.build(chunk), ids, vector) for id_, *chunk, ids, vector in rows)
        dates = self._change.rows(SQL["dates"], own)
        ((digest,),) = self._change.rows(SQL["digest"], own)
        self._change.remove_owner(number)
        write = MemoryWrite(old.owner, passages, record, digest, tuple(bands), tuple(dates), is_placed=True)
        return self._insert(write, old.created_at)

    def erase(self, ids: Sequence[str]) -> int:
        """Delete memories with every version, passage, link, date and Markdown mark; return how many versions went."""
        gone = 0
        for id_ in dict.fromkeys(ids):
            for row in self._rows(SQL["versions"], id=id_):
                gone += self._change.remove_owner(row[0])
            self._change.drop("links", source=id_)
            self._change.drop("links", target=id_)
            self._change.drop("mirror_blocks", id=id_)
            self.settle_due([id_])
        return gone

    def erase_owners(self, numbers: Sequence[int]) -> int:
        """Delete owners of any kind by number, with all that hangs on them; return how many there were."""
        return sum(self._change.remove_owner(number) for number in numbers)

    def link(self, link: Link) -> None:
        """Write a link in the place of the one with the same ends and type."""
        self._change.put(link)
        self._linked(link.source, link.type)

    def unlink(self, source: str, target: str, type_: str | None = None) -> int:
        """Delete the links from one memory to another, of one type or of all, and return how many there were."""
        of_type = {} if type_ is None else {"type": type_}
        gone = self._change.drop("links", source=source, target=target, **of_type).rowcount
        if gone:
            self._linked(source, type_)
        return gone

    def put(self, *records: JournalBlock | JournalPage | Note) -> None:
        """Write records in the places of those with their keys."""
        self._change.put(*records)

    def drop(self, record: type[JournalBlock | JournalPage | Note], **key: str) -> None:
        """Delete the records of a class that have these values."""
        self._change.drop(table_of(record).name, **key)

    def settle_due(self, ids: Sequence[str]) -> None:
        """Say that the Markdown of these memories is as it should be."""
        self._change.drop("mirror_due", id=list(ids))

    def _version(self, number: int) -> StoredMemory | None:
        found = self._rows(SQL["of_numbers"], numbers=listed([int(number)]))
        return build_memory(found[0]) if found else None

    def _refuse_live(self, id_: str) -> None:
        """Refuse a version of a memory beside a live one: nobody could say which is the truth."""
        if self._rows(owners.SQL["live"], kind="memory", ids=listed([id_])):
            raise StoreError(f"there is a live version of memory {id_!r}", remedy="expire it first")

    def _insert(self, write: MemoryWrite, created_at: float, expired_at: float | None = None) -> int:
        """Write a checked version as the latest one, and return its number."""
        change, id_ = self._change, write.owner.id
        change.execute(SQL["outdate"], {"namespace": change.space, "id": id_})
        content = write.record.content
        number = change.add_owner(
            write.owner, write.passages, content=content, created_at=created_at, expired_at=expired_at
        )
        insert_version(change, number, write, is_latest=True, is_live=expired_at is None)
        self._mark(id_)
        return number

    def _mark(self, id_: str) -> None:
        self._change.add_rows(SCHEMA["mirror_due"], [{"namespace": self._change.space, "id": id_}], "keep")

    def _linked(self, source: str, type_: str | None) -> None:
        if type_ in (None, SUPERSEDES, CONFLICTS, HOLDS_BESIDE):
            self._change.mark()  # which is older is a part of what a search answers
        if self.find(source) is not None:
            self._mark(source)


def insert_version(change: Change, number: int, write: MemoryWrite, *, is_latest: bool, is_live: bool) -> None:
    """Write what a version of a memory, as `check_recorded` returned it, has besides its owner and passages."""
    at = write.record.born_at if write.owner.at is None else write.owner.at
    beside = {"owner": number, "id": write.owner.id, "is_latest": int(is_latest), "digest": write.digest, "at": at}
    change.write(write.record, **beside)
    own = {"namespace": change.space, "owner": number}
    if is_live:
        change.add_rows(SCHEMA["memory_bands"], [{**own, "band": band} for band in set(write.bands)])
    dates = [{**own, "since": since, "until": until} for since, until in set(write.dates)]
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
        """Begin a write transaction over the memories of a namespace, which is created where something is written.

        It takes a change number only where versions came or went, or where a record's tier, trust or source changed:
        where a search might answer otherwise. Reads of the store itself do not see it before it is committed.

        Args:
            made_by: the embedder of the vectors that will be written, where any will.
            writes: what will most likely be added; `has_given_ids` where memories of these ids may be there.

        Raises:
            EmbedderMismatchError: the store's vectors are another's, as the block begins.
            StoreError: this thread writes to the store in another way inside the block.
        """
        ahead: list[Read] = [heads_of(namespace)] if made_by is None else [heads_of(namespace), (META, {})]
        if len(writes) == 1:  # what `remember` asks first: whether a memory has its id or says the same
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
        found = self._read(SQL["latest"], namespace, id=id_)
        return build_memory(found[0]) if found else None

    def memories(self, namespace: str, selection: Selection) -> list[StoredMemory]:
        """Return the latest versions that a selection chooses, in its order."""
        limit = _UNLIMITED if selection.limit is None else selection.limit
        page = {"limit": limit, "offset": selection.offset}
        numbers = [number for (number,) in self._selected(SQL[f"by_{selection.order}"], namespace, selection, **page)]
        found = self.memory_records(namespace, numbers)
        return [found[number] for number in numbers if number in found]

    def count_memories(self, namespace: str, selection: Selection) -> int:
        """Return how many a selection chooses, its limit and offset left out of account."""
        ((count,),) = self._selected(SQL["count"], namespace, selection)
        return int(count)

    def count_tiers(self, namespace: str) -> dict[tuple[str, str], int]:
        """Return how many memories there are by tier and status."""
        return {(tier, status): count for tier, status, count in self._read(SQL["tiers"], namespace)}

    def memory_facets(self, namespace: str, selection: Selection) -> dict[str, dict[str, int]]:
        """Return how many a selection chooses by tier, status, category, source, session, trust and tag.

        Values are texts, sorted; trust is rounded down to a tenth. Limit and offset are left out of account.
        """
        facets: dict[str, Counter[str]] = {name: Counter() for name in (*_FACETS, "session", "tag")}
        for what, *values, count in self._selected(SQL["facets"], namespace, selection):
            if what == "memory":
                *shown, trust = values
                for name, value in zip(_FACETS, (*shown, str(int(float(trust) * 10) / 10)), strict=True):
                    facets[name][value] += count
            else:
                facets[what][values[0]] += count
        return {name: dict(sorted(some.items())) for name, some in facets.items()}

    def versions(self, namespace: str, id_: str) -> list[StoredMemory]:
        """Return every version of a memory, oldest first."""
        return [build_memory(row) for row in self._read(SQL["versions"], namespace, id=id_)]

    def memory_digests(self, namespace: str) -> list[tuple[int, str, str]]:
        """Return (number, id, digest) of the latest versions, by number; the digest is what they were written with."""
        sql = f"SELECT owner, id, digest FROM memories WHERE namespace = {SPACE} AND is_latest = 1 ORDER BY owner"
        return self._read(sql, namespace)

    def shared_bands(self, namespace: str, most: int) -> list[tuple[int, int]]:
        """Return (band, number) of live memories whose bands are shared by at most so many, in this order."""
        return self._read(SQL["shared_bands"], namespace, most=most)

    def derivations(self, namespace: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, what it was made from) of each version of a memory that was made from others, by number."""
        sql = f"SELECT id, derived_from FROM memories WHERE namespace = {SPACE} AND derived_from != '' ORDER BY owner"
        return [(id_, unlisted(made_from)) for id_, made_from in self._read(sql, namespace)]

    def memory_records(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, StoredMemory]:
        """Return the versions with these numbers, live or past; others, and owners that are no memory, are absent."""
        found = self._read(SQL["of_numbers"], namespace, numbers=listed_numbers(owner_numbers))
        return {row[0]: build_memory(row) for row in found}

    def statements(self, namespace: str, numbers: Sequence[int], as_of: float | None = None) -> dict[int, Statement]:
        """Return what overtook versions, by links of now or a time, and the graph of now; only memories have it."""
        found: dict[int, Statement] = {}
        values = {"numbers": listed_numbers(numbers), "as_of": as_of, "doubt": DOUBT}
        for number, id_, at, source, type_, origin, ended_by in self._read(SQL["statements"], namespace, **values):
            known = found.setdefault(number, Statement(id_, at, set(), set()))
            known.overtaken_by.update({ended_by} - {None})
            if type_ == HOLDS_BESIDE:
                known.judged.discard(source)
            elif type_ is not None:
                (known.judged if origin == RULE or type_ == CONFLICTS else known.overtaken_by).add(source)
        return found

    def passages_with_owners(
        self, namespace: str, numbers: Sequence[int]
    ) -> dict[int, tuple[Passage, Owner, StoredMemory | None]]:
        """Return the passages that exist in this namespace by number, with their owners, as memories where they are."""
        ahead: Sequence[int] = self._connections.known((SQL["passages_of_hits"], namespace), tuple)
        asked, width = ahead if set(numbers).issubset(ahead) else numbers, owners.PASSAGE_WIDTH
        return {
            row[0]: (
                owners.build_passage(row[:width]),
                owners.build_owner(row[width + _WIDTH :]),
                None if row[width + 3] is None else build_memory(row[width : width + _STAMP]),
            )
            for row in self._read(SQL["passages_of_hits"], namespace, numbers=listed_numbers(asked))
            if asked is numbers or row[0] in numbers
        }

    def passages_ahead(self, namespace: str, numbers: Sequence[int]) -> None:
        """Send for passages with their owners, of which some will be asked for, where a server is far away."""
        connections = self._connections
        if connections.place and connections.known((SQL["passages_of_hits"], namespace), lambda: numbers) is numbers:
            values = {"namespace": namespace, "numbers": listed_numbers(numbers)}
            connections.ahead([(SQL["passages_of_hits"], values)], namespace)

    def links(self, namespace: str, ids: Sequence[str] | None = None, *, past: bool = False) -> list[Link]:
        """Return the links that start or end at one of these memories, or all; sorted by source, target, type."""
        if ids is None:
            return _links(self._read(SQL["all_links"], namespace), past=past)
        return _links(self._read(SQL["links"], namespace, ids=listed(ids)), past=past) if ids else []

    def count_links(self, namespace: str) -> int:
        """Return how many links were made."""
        sql = f"SELECT count(*) FROM links WHERE namespace = {SPACE} AND expired_at IS NULL AND origin != '{RULE}'"
        ((count,),) = self._read(sql, namespace)
        return int(count)

    def dated(
        self, namespace: str, since: float, until: float, *, as_of: float | None = None
    ) -> list[tuple[int, float, float]]:
        """Return (owner number, since, until) of the dates in live memories that overlap an interval, sorted.

        Each `at` of an owner of the kind memory counts as the interval from it to it, which overlaps where
        since <= at < until.

        Args:
            as_of: take the versions that were live at this time instead.
        """
        names = ("dated",) if as_of is None else ("dated", "dated_past")
        values = {"since": since, "until": until, "as_of": as_of}
        return sorted(found for name in names for found in self._read(SQL[name], namespace, **values))

    def past(self, namespace: str, as_of: float | None, valid_at: float | None = None) -> list[TokenEntry]:
        """Return the passages of past versions live at a time, by number: created_at <= as_of < expired_at.

        Args:
            as_of: None is now, when no past version is live.
            valid_at: add those of the versions before these that a filter with this `valid_at` finds in their place.
        """
        found = set() if as_of is None else {*self._read(SQL["past"], namespace, as_of=as_of)}
        if valid_at is not None:
            found |= {*self._read(SQL["passages_of_earlier"], namespace, as_of=as_of, valid_at=valid_at)}
        return [TokenEntry(*row) for row in sorted(found)]

    def due(self, namespace: str) -> list[str]:
        """Return the ids of the memories whose Markdown is due, sorted."""
        due = self._read(f"SELECT id FROM mirror_due WHERE namespace = {SPACE}", namespace)
        return sorted(id_ for (id_,) in due)

    def blocks(self, namespace: str, ids: Sequence[str] | None = None) -> list[JournalBlock]:
        """Return what is known of the blocks of these memories in Markdown, or of all, by id."""
        wanted = {} if ids is None else {"id": list(ids)}
        return find(self._connections, namespace, form_of(JournalBlock), wanted, "ORDER BY id")

    def pages(self, namespace: str) -> list[JournalPage]:
        """Return what is known of pages, by name."""
        return find(self._connections, namespace, form_of(JournalPage), rest="ORDER BY page")

    def notes(self, namespace: str | None, kind: str, id_: str | None = None) -> list[Note]:
        """Return the notes of one kind, or the one with an id, of one namespace or of all.

        They come by time, ties by id, then by body.
        """
        wanted = {"kind": kind} if id_ is None else {"kind": kind, "id": id_}
        found = self._connections.known(
            ("notes", namespace, *wanted.values()), lambda: find(self._connections, namespace, form_of(Note), wanted)
        )
        return sorted(found, key=lambda note: (note.at, note.id, note.body))

    def erase_namespace(self, namespace: str, notes: Sequence[Note] = ()) -> int:
        """Delete everything that a namespace holds, its graph too, and its name; return how many owners went.

        It is one change. Past versions count, the texts of the graph do not. A namespace that is not there takes no
        change number.

        Args:
            notes: what is noted of it, in the same transaction, about the store as a whole.
        """
        with self._connections.writing(namespace) as db:
            change = Change(db, namespace)
            if namespace not in change.spaces:
                return 0
            counted = "SELECT count(*) FROM owners WHERE namespace = :namespace"
            ((gone,),) = change.rows(counted, {"namespace": change.space})
            for erased in change.spaces.values():
                for table in reversed(TABLES):
                    if table.has_namespace:
                        drop(db, table.name, namespace=erased)
                drop(db, "namespaces", number=erased)
            with self._connections.writing_also(db, WHOLE_STORE):
                whole = Change(db, WHOLE_STORE)
                whole.put(*notes)
                whole.finish()
            return int(gone)

    def graph(self, namespace: str) -> GraphReading:
        """Return the graph of a namespace; one that is not there is empty."""
        return GraphReading(self._connections, namespace)

    def knowledge(self, namespace: str) -> KnowledgeReading:
        """Return the knowledge of the agents of a namespace; of one that is not there nothing."""
        return KnowledgeReading(self._connections, namespace)

    def ledger(self, namespace: str) -> LedgerReading:
        """Return the ledger of a namespace; of one that is not there an empty one."""
        return LedgerReading(self._connections, namespace)

    def compact(self, *, thorough: bool = False) -> bool:
        """Let nothing that was deleted be left in the store's files; return whether that is so now.

        False means that another process still reads the state before: try again when it has gone on.

        Args:
            thorough: rewrite the whole file, where overwriting on deletion is not enough.
        """
        return self._connections.compact(thorough=thorough)

    def files(self) -> list[str]:
        """Return the absolute paths of the files that hold the store's data; none for one in memory."""
        return list(map(str, self._connections.files()))

    def _selected(self, sql: str, namespace: str, selection: Selection, **page: str | float) -> list[Row]:
        chosen = {name: getattr(selection, name) for name in _LISTS}
        lists = {name: listed(values) if values else None for name, values in chosen.items()}
        others = {"since": selection.since, "until": selection.until, "min_trust": selection.min_trust}
        return self._read(sql, namespace, **lists, **others, **page)

    def _read(self, sql: str, namespace: str | None, **values: str | bytes | float | None) -> list[Row]:
        return self._connections.rows(sql, {"namespace": namespace, **values})
