"""The store as plain dictionaries under one lock: the exact reference that every other store is compared with.

It keeps nothing after the process ends; its backup is a SQLite store.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from commonplace.errors import StoreError
from commonplace.store.batches import new_token, refuse_reembedding, settle, snapshot_is_written
from commonplace.store.globs import path_matcher
from commonplace.types import (
    Embedding,
    FileStamp,
    Filter,
    IndexEntry,
    Kind,
    NewPassage,
    Owner,
    OwnerWrite,
    Passage,
    TokenEntry,
)


@dataclass(slots=True)
class _StoredOwner:
    owner: Owner
    change: int
    passages: range


@dataclass(frozen=True, slots=True)
class _StoredPassage:
    owner_number: int
    ordinal: int
    change: int
    new: NewPassage


@dataclass(slots=True)
class _Space:
    owners: dict[int, _StoredOwner] = field(default_factory=dict)
    passages: dict[int, _StoredPassage] = field(default_factory=dict)
    by_id: dict[tuple[str, str], int] = field(default_factory=dict)
    by_path: dict[tuple[str, str], int] = field(default_factory=dict)


class MemoryStore:
    """A `Store` in memory."""

    def __init__(self) -> None:
        self._id = str(uuid4())
        self._lock = threading.RLock()
        self._is_closed = False
        self._snapshots = 0
        self._embedding: Embedding | None = None
        self._spaces: dict[str, _Space] = {}
        # After change c the next owner and passage numbers are _next[c]; the deleted ones stand with their change.
        self._next: list[tuple[int, int]] = [(1, 1)]
        self._tokens = [""]
        self._deletions: list[tuple[int, int]] = []

    @property
    def id(self) -> str:
        """UUID given at creation; a backup keeps it."""
        return self._id

    @property
    def is_read_only(self) -> bool:
        """False: memory can be written."""
        return False

    def change(self) -> int:
        """Return the last number of the change sequence, 0 for a fresh store."""
        with self._open():
            return len(self._next) - 1

    def token(self, change: int) -> str:
        """Return the random token that the given change got when it was written, "" for 0 or a change that is not."""
        with self._open():
            return self._tokens[change] if 0 < change < len(self._tokens) else ""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every read of this thread inside the `with` block see one state: writers wait until it ends."""
        with self._open():
            self._snapshots += 1
            try:
                yield
            finally:
                self._snapshots -= 1

    def close(self) -> None:
        """Refuse every later call; calling twice is harmless."""
        with self._lock:
            self._is_closed = True

    def embedding(self) -> Embedding | None:
        """Return the stamp of the vectors in this store, None before the first was set."""
        with self._open():
            return self._embedding

    def set_embedding(self, embedding: Embedding) -> None:
        """Record which embedder makes this store's vectors; refuse another one than made the stored ones."""
        with self._writing():
            passages = sum(len(space.passages) for space in self._spaces.values())
            refuse_reembedding(self._embedding, embedding, passages)
            self._embedding = embedding

    def put_owners(self, namespace: str, writes: Sequence[OwnerWrite]) -> int:
        """Write owners with their passages as one change and return its number."""
        with self._writing():
            settled = settle(writes, self._embedding)
            if not settled:
                return self.change()
            space = self._spaces.setdefault(namespace, _Space())
            change = len(self._next)
            next_owner, next_passage = self._next[-1]
            for write in settled:
                number = self._make_room(space, write.owner, change)
                if number is None:
                    number, next_owner = next_owner, next_owner + 1
                end = next_passage + len(write.passages)
                space.owners[number] = _StoredOwner(write.owner, change, range(next_passage, end))
                space.by_id[write.owner.kind, write.owner.id] = number
                if write.owner.path:
                    space.by_path[write.owner.kind, write.owner.path] = number
                for ordinal, passage in enumerate(write.passages):
                    space.passages[next_passage + ordinal] = _StoredPassage(number, ordinal, change, passage)
                next_passage = end
            return self._record(next_owner, next_passage)

    def restamp_artifacts(self, namespace: str, stamps: Sequence[tuple[str, str, FileStamp]]) -> None:
        """Set root and file stamp of artifacts, by (path, root, stamp); no number is taken."""
        with self._writing():
            space = self._space(namespace)
            for path, root, stamp in stamps:
                number = space.by_path.get(("artifact", path))
                if number is not None:
                    stored = space.owners[number]
                    stored.owner = replace(stored.owner, root=root, stamp=stamp)

    def delete_owners(self, namespace: str, owner_numbers: Sequence[int]) -> int:
        """Delete owners and their passages as one change; unknown numbers are passed over."""
        with self._writing():
            space = self._space(namespace)
            present = [number for number in dict.fromkeys(map(int, owner_numbers)) if number in space.owners]
            if not present:
                return self.change()
            for number in present:
                self._remove(space, number, len(self._next))
            return self._record(*self._next[-1])

    def namespaces(self) -> list[str]:
        """Return the names, sorted."""
        with self._open():
            return sorted(self._spaces)

    def artifacts(self, namespace: str) -> list[tuple[int, Owner]]:
        """Return (owner number, owner) of every artifact that came from a file, by path."""
        with self._open():
            owners = [(number, stored.owner) for number, stored in self._space(namespace).owners.items()]
        files = [item for item in owners if item[1].kind == "artifact" and item[1].path]
        return sorted(files, key=lambda item: item[1].path)

    def owners(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, Owner]:
        """Return the owners that exist in this namespace, by number; others are absent."""
        with self._open():
            owners = self._space(namespace).owners
            return {number: owners[number].owner for number in map(int, owner_numbers) if number in owners}

    def passages(self, namespace: str, numbers: Sequence[int]) -> dict[int, Passage]:
        """Return the passages that exist in this namespace, by number; others are absent."""
        return {
            number: Passage(number, stored.new.id, stored.owner_number, stored.ordinal, stored.new.chunk)
            for number, stored in self._present(namespace, numbers)
        }

    def tokens(self, namespace: str, numbers: Sequence[int]) -> dict[int, TokenEntry]:
        """Return token ids and vectors of the passages that exist in this namespace, by number."""
        return {number: _token_entry(number, stored) for number, stored in self._present(namespace, numbers)}

    def entries(self, namespace: str, numbers: Sequence[int]) -> dict[int, IndexEntry]:
        """Return what the index needs of the passages that exist in this namespace, by number."""
        with self._open():
            return {
                number: self._index_entry(namespace, number, stored)
                for number, stored in self._present(namespace, numbers)
            }

    def neighbours(self, namespace: str, numbers: Sequence[int]) -> list[tuple[int, int]]:
        """Return (number, neighbour's number) for passages whose owners stand next to each other in a session."""
        with self._open():
            owners = self._space(namespace).owners
            pairs = {
                (number, neighbour)
                for number, stored in self._present(namespace, numbers)
                for beside in _beside(owners[stored.owner_number].owner, owners)
                for neighbour in beside.passages
            }
        return sorted(pairs)

    def places(self, namespace: str, kind: Kind, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return session and position of the owners of one kind that exist in this namespace, by id."""
        with self._open():
            space = self._space(namespace)
            owners = {id_: space.owners[space.by_id[kind, id_]].owner for id_ in ids if (kind, id_) in space.by_id}
        return {id_: (owner.session, owner.position) for id_, owner in owners.items()}

    def last_position(self, namespace: str, session: str) -> int:
        """Return the highest position in a session, -1 when the namespace has no such session; "" is none."""
        with self._open():
            owners = [stored.owner for stored in self._space(namespace).owners.values()]
        return max((owner.position for owner in owners if session and owner.session == session), default=-1)

    def matching_owners(self, namespace: str, wanted: Filter) -> list[int]:
        """Return the numbers of the owners that pass the filter, ascending."""
        is_wanted_path = path_matcher(wanted.paths) if wanted.paths else None

        def passes(owner: Owner) -> bool:
            return bool(
                (not wanted.kinds or owner.kind in wanted.kinds)
                and (not wanted.types or owner.type in wanted.types)
                and (not wanted.phases or not owner.phase or owner.phase in wanted.phases)
                and (not wanted.tags or not set(owner.tags).isdisjoint(wanted.tags))
                and (is_wanted_path is None or (owner.kind == "artifact" and owner.path and is_wanted_path(owner.path)))
            )

        with self._open():
            return sorted(n for n, stored in self._space(namespace).owners.items() if passes(stored.owner))

    def counts(self, namespace: str | None = None) -> dict[str, int]:
        """Return `owners`, `passages`, `text_bytes`, `artifacts`, `memories`, `knowledge`; None counts everything."""
        with self._open():
            spaces = list(self._spaces.values()) if namespace is None else [self._space(namespace)]
            kinds = [stored.owner.kind for space in spaces for stored in space.owners.values()]
            texts = [stored.new.chunk.text for space in spaces for stored in space.passages.values()]
        return {
            "owners": len(kinds),
            "passages": len(texts),
            "text_bytes": sum(len(text.encode("utf-8", "surrogatepass")) for text in texts),
            "artifacts": kinds.count("artifact"),
            "memories": kinds.count("memory"),
            "knowledge": kinds.count("knowledge"),
        }

    def entries_since(self, change: int, upto: int) -> Iterator[IndexEntry]:
        """Yield the passages that exist now and were written in change numbers (change, upto], by number."""
        with self._open():
            found = [
                self._index_entry(name, number, stored)
                for name, space in self._spaces.items()
                for number, stored in space.passages.items()
                if change < stored.change <= upto
            ]
        return iter(sorted(found, key=lambda entry: entry.number))

    def tail(self, namespace: str, change: int) -> list[TokenEntry]:
        """Return the passages of a namespace written after `change`, by number ascending."""
        with self._open():
            passages = self._space(namespace).passages
            return [_token_entry(n, passages[n]) for n in sorted(passages) if passages[n].change > change]

    def pending(self, namespace: str, change: int) -> tuple[int, int]:
        """Return how many passages of a namespace were written, and how many of all were deleted, after `change`."""
        with self._open():
            written = sum(stored.change > change for stored in self._space(namespace).passages.values())
            return written, sum(deletion > change for deletion, _ in self._deletions)

    def deleted_since(self, change: int, upto: int) -> list[int]:
        """Return the numbers of passages deleted in change numbers (change, upto], ascending."""
        with self._open():
            return sorted(number for deletion, number in self._deletions if change < deletion <= upto)

    def check(self) -> list[str]:
        """Return nothing: dictionaries under one lock cannot come apart."""
        with self._open():
            return []

    def backup(self, target: Path) -> None:
        """Write a complete copy to a new file, a SQLite store with the same id, numbers and changes."""
        from commonplace.store.contents import Contents, StoredOwner, write_store

        with self._open():
            owners = [
                StoredOwner(
                    name,
                    number,
                    stored.change,
                    stored.passages.start,
                    OwnerWrite(stored.owner, tuple(space.passages[n].new for n in stored.passages)),
                )
                for name, space in self._spaces.items()
                for number, stored in space.owners.items()
            ]
            contents = Contents(
                self._id,
                self._embedding,
                tuple(self._spaces),
                tuple(owners),
                tuple(self._next),
                tuple(self._tokens),
                tuple(self._deletions),
            )
        write_store(contents, target)

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._is_closed:
                raise StoreError(f"the store {self._id} in memory is closed", remedy="make a new one")
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._open():
            if self._snapshots:
                raise snapshot_is_written()
            yield

    def _record(self, next_owner: int, next_passage: int) -> int:
        self._next.append((next_owner, next_passage))
        self._tokens.append(new_token().hex())
        return len(self._next) - 1

    def _space(self, namespace: str) -> _Space:
        return self._spaces.get(namespace) or _Space()

    def _present(self, namespace: str, numbers: Sequence[int]) -> list[tuple[int, _StoredPassage]]:
        with self._open():
            passages = self._space(namespace).passages
            return [(number, passages[number]) for number in map(int, numbers) if number in passages]

    def _index_entry(self, namespace: str, number: int, stored: _StoredPassage) -> IndexEntry:
        owner, new = self._spaces[namespace].owners[stored.owner_number].owner, stored.new
        return IndexEntry(
            number=number,
            owner_number=stored.owner_number,
            namespace=namespace,
            kind=owner.kind,
            type=owner.type,
            phase=owner.phase,
            tags=owner.tags,
            title=owner.title,
            path=owner.path,
            heading=new.chunk.heading,
            summary=owner.summary,
            text=new.chunk.text,
            token_ids=new.token_ids,
            vector=new.vector,
        )

    def _make_room(self, space: _Space, owner: Owner, change: int) -> int | None:
        """Remove what an owner replaces and return the number that it takes over, None when it is new."""
        by_id = space.by_id.get((owner.kind, owner.id))
        by_path = space.by_path.get((owner.kind, owner.path))
        for number in {by_id, by_path}:
            if number is not None:
                self._remove(space, number, change)
        return by_path if by_id is None else by_id

    def _remove(self, space: _Space, number: int, change: int) -> None:
        stored = space.owners.pop(number)
        del space.by_id[stored.owner.kind, stored.owner.id]
        space.by_path.pop((stored.owner.kind, stored.owner.path), None)
        for passage in stored.passages:
            del space.passages[passage]
            self._deletions.append((change, passage))


def _token_entry(number: int, stored: _StoredPassage) -> TokenEntry:
    return TokenEntry(number, stored.owner_number, stored.new.token_ids, stored.new.vector)


def _beside(owner: Owner, owners: dict[int, _StoredOwner]) -> list[_StoredOwner]:
    """Return the owners with the nearest lower and the nearest higher position in the same session."""
    if not owner.session:
        return []
    session = [stored for stored in owners.values() if stored.owner.session == owner.session]
    positions = sorted({stored.owner.position for stored in session})
    place = bisect_right(positions, owner.position) - 1
    near = {*positions[max(0, place - 1) : place], *positions[place + 1 : place + 2]}
    return [stored for stored in session if stored.owner.position in near]
