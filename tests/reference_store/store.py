"""The store as plain dictionaries under one lock: the exact reference that SQLite is compared with."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from tests.reference_store.memories import ReferenceMemories
from tests.reference_store.state import Row, Space, index_entry, matching_owners

from commonplace.errors import StoreError
from commonplace.store.check import STRAY_TEXTS, dangling, sentences
from commonplace.store.rows import check_times
from commonplace.store.schema import is_reserved, namespace_of
from commonplace.store.validate import refuse_other_maker, settle, upgrade_command
from commonplace.types import (
    Embedding,
    FileStamp,
    Filter,
    Head,
    IndexEntry,
    Kind,
    Owner,
    OwnerWrite,
    Passage,
    StoredMemory,
    TokenEntry,
)


class MemoryStore(ReferenceMemories):
    """A `Store` in memory."""

    postings = None

    def __init__(self) -> None:
        super().__init__(str(uuid4()))

    @property
    def id(self) -> str:
        """UUID given at creation; a backup keeps it."""
        return self._id

    @property
    def is_read_only(self) -> bool:
        """False: memory can be written."""
        return False

    def head(self, namespace: str) -> Head:
        """Return the last change of a namespace."""
        with self._open():
            return self._state.space(namespace).head

    def heads(self) -> dict[str, Head]:
        """Return the last change of every namespace that has one."""
        with self._open():
            return {name: space.head for name, space in self._state.spaces.items() if space.head.change}

    def change(self, namespace: str | None = None) -> int:
        """Return the number of a namespace's last change; None adds up those of all namespaces."""
        with self._open():
            return self._state.change if namespace is None else self._state.space(namespace).head.change

    def token(self, namespace: str, change: int) -> str:
        """Return the random token that a change of a namespace got, "" for 0 or a change that is not."""
        with self._open():
            changes = self._state.space(namespace).changes
            return changes[change][2] if 0 < change < len(changes) else ""

    @contextmanager
    def snapshot(self, namespace: str | None = None, change: int = 0, notes: str = "") -> Iterator[None]:
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
            return self._state.embedding

    def set_embedding(self, embedding: Embedding) -> None:
        """Record which embedder makes this store's vectors; refuse another one than made the stored ones."""
        with self._writing():
            passages = sum(len(space.owner_of) for space in self._state.spaces.values())
            if passages and self._state.embedding != embedding:
                held = self._state.embedding
                raise StoreError(
                    f"the store holds {passages} passages {f'made by {held}' if held else 'of an unknown embedder'},"
                    f" not by {embedding}",
                    remedy=f"open it with the embedder it was built with, or run {upgrade_command(embedding.name)}",
                )
            self._state.embedding = embedding

    def put_owners(
        self, namespace: str, writes: Sequence[OwnerWrite], *, at: float = 0.0, made_by: Embedding | None = None
    ) -> int:
        """Write owners with their passages as one change and return its number."""
        with self._writing():
            refuse_other_maker(self._state.embedding, made_by)
            settled = settle(writes, self._state.embedding)
            check_times(f"owners of {namespace!r}", at)
            if not settled:
                return self._state.space(namespace).head.change
            if namespace not in self._state.spaces:
                self._state.put({namespace: self._state.draft(namespace)})
            change = self._state.begin(self._state.spaces[namespace])
            for write in settled:
                change.put(write.owner, write.passages, at)
            return self._state.record(change)

    def restamp_artifacts(self, namespace: str, stamps: Sequence[tuple[str, str, FileStamp]]) -> None:
        """Set root and file stamp of artifacts, by (path, root, stamp); no number is taken."""
        with self._writing():
            space = self._state.space(namespace)
            for path, root, stamp in stamps:
                number = space.by_path.get(("artifact", path))
                if number is not None:
                    row = space.rows[number]
                    space.rows[number] = replace(row, owner=replace(row.owner, root=root, stamp=stamp))

    def delete_owners(self, namespace: str, owner_numbers: Sequence[int]) -> int:
        """Delete owners and their passages as one change; unknown numbers are passed over."""
        with self._writing():
            change = self._state.begin(self._state.space(namespace))
            removed = [change.remove(number) for number in map(int, owner_numbers)]
            return self._state.record(change) if any(removed) else change.number - 1

    def namespaces(self, *, with_texts: bool = False) -> list[str]:
        """Return the names, sorted; with those that hold the texts of graphs, or without."""
        with self._open():
            return sorted(name for name in self._state.spaces if with_texts or not is_reserved(name))

    def artifacts(self, namespace: str) -> list[tuple[int, Owner]]:
        """Return (owner number, owner) of every artifact that came from a file, by path."""
        with self._open():
            owners = [(number, row.owner) for number, row in self._state.space(namespace).live()]
        files = [item for item in owners if item[1].kind == "artifact" and item[1].path]
        return sorted(files, key=lambda item: item[1].path)

    def artifact_types(self, namespace: str) -> dict[str, bool]:
        """Return of what types the artifacts are, and whether some artifact of the type has tags."""
        with self._open():
            owners = [row.owner for _, row in self._state.space(namespace).live() if row.owner.kind == "artifact"]
        tagged = {owner.type for owner in owners if owner.tags}
        return {owner.type: owner.type in tagged for owner in owners}

    def owners(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, Owner]:
        """Return the owners that exist in this namespace, by number; others are absent."""
        with self._open():
            rows = self._state.space(namespace).rows
            return {number: rows[number].owner for number in map(int, owner_numbers) if number in rows}

    def passages_with_owners(
        self, namespace: str, numbers: Sequence[int]
    ) -> dict[int, tuple[Passage, Owner, StoredMemory | None]]:
        """Return the passages that exist in this namespace by number, with their owners, as memories where they are."""
        passages = self.passages(namespace, numbers)
        of = [passage.owner_number for passage in passages.values()]
        owners, memories = self.owners(namespace, of), self.memory_records(namespace, of)
        return {
            number: (passage, owners[passage.owner_number], memories.get(passage.owner_number))
            for number, passage in passages.items()
        }

    def passages_ahead(self, namespace: str, numbers: Sequence[int]) -> None:
        """Send for nothing: all of it is here."""

    def passages(self, namespace: str, numbers: Sequence[int]) -> dict[int, Passage]:
        """Return the passages that exist in this namespace, by number; others are absent."""
        with self._open():
            space = self._state.space(namespace)
            return {
                number: Passage(number, new.id, space.owner_of[number], number - row.first_passage, new.chunk)
                for number, row, new in space.passages(numbers)
            }

    def passages_of(self, namespace: str, owner_numbers: Sequence[int]) -> list[int]:
        """Return the numbers of the passages of owners, live or past, ascending."""
        with self._open():
            rows = self._state.space(namespace).rows
            return sorted({passage for owner in owner_numbers if owner in rows for passage in rows[owner].numbers})

    def repeated_headings(self, namespace: str, numbers: Sequence[int]) -> set[int]:
        """Return those of the passages whose heading does not name one section of their owner."""
        with self._open():
            found = set()
            for number, row, new in self._state.space(namespace).passages(numbers):
                alike = [each.chunk for each in row.passages if each.chunk.heading == new.chunk.heading]
                holding = sum(each.heading in each.text for each in alike)
                if new.chunk.heading and (holding or len(alike)) > 1:
                    found.add(number)
            return found

    def tokens(self, namespace: str, numbers: Sequence[int]) -> dict[int, TokenEntry]:
        """Return token ids and vectors of the passages that exist in this namespace, by number."""
        with self._open():
            return {entry.number: entry for entry in self._state.space(namespace).token_entries(numbers)}

    def vectors(self, namespace: str, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of the passages that exist in this namespace, by number."""
        return {number: entry.vector for number, entry in self.tokens(namespace, numbers).items()}

    def entries(self, namespace: str, numbers: Sequence[int]) -> dict[int, IndexEntry]:
        """Return what the index needs of the passages that exist in this namespace, by number."""
        with self._open():
            return {entry.number: entry for entry in _index_entries(namespace, self._state.space(namespace), numbers)}

    def neighbours(self, namespace: str, numbers: Sequence[int]) -> list[tuple[int, int]]:
        """Return (number, neighbour's number) of neighbours in a session, and of theirs."""
        with self._open():
            space = self._state.space(namespace)

            def beside(some: Iterable[int]) -> set[tuple[int, int]]:
                rows = ((number, row) for number, row, _ in space.passages(sorted(some)))
                return {
                    (number, other) for number, row in rows for near in _beside(row, space) for other in near.numbers
                }

            near = beside(map(int, numbers))
            return sorted(near | beside({other for _, other in near}))

    def tokens_beside(
        self, namespace: str, numbers: Sequence[int]
    ) -> tuple[dict[int, TokenEntry], list[tuple[int, int]]]:
        """Return `tokens` of passages and of those next to them, and their `neighbours`."""
        pairs, asked = self.neighbours(namespace, numbers), set(numbers)
        return self.tokens(namespace, sorted(asked.union(other for one, other in pairs if one in asked))), pairs

    def places(self, namespace: str, kind: Kind, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return session and position of the owners of one kind that exist in this namespace, by id."""
        with self._open():
            space = self._state.space(namespace)
            owners = {id_: space.rows[space.by_id[kind, id_]].owner for id_ in ids if (kind, id_) in space.by_id}
        return {id_: (owner.session, owner.position) for id_, owner in owners.items()}

    def owner_numbers(self, namespace: str, kind: Kind, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the live owners of one kind that exist in this namespace, by id."""
        with self._open():
            space = self._state.space(namespace)
            return {id_: space.by_id[kind, id_] for id_ in ids if (kind, id_) in space.by_id}

    def last_position(self, namespace: str, session: str) -> int:
        """Return the highest position in a session, -1 when the namespace has no such session; "" is none."""
        with self._open():
            return self._state.space(namespace).last_position(session)

    def matching_owners(self, namespace: str, wanted: Filter) -> list[int]:
        """Return the numbers of the owners that pass the filter, ascending."""
        with self._open():
            return matching_owners(self._state.space(namespace), wanted)

    def counts(self, namespace: str | None = None) -> dict[str, int]:
        """Return `owners`, `passages`, `text_bytes`, `artifacts`, `memories`, `knowledge`; None counts everything."""
        with self._open():
            spaces = list(self._state.spaces.values()) if namespace is None else [self._state.space(namespace)]
            rows = [row for space in spaces for _, row in space.live()]
        kinds = [row.owner.kind for row in rows]
        texts = [new.chunk.text for row in rows for new in row.passages]
        return {
            "owners": len(kinds),
            "passages": len(texts),
            "text_bytes": sum(len(text.encode()) for text in texts),
            "artifacts": kinds.count("artifact"),
            "memories": kinds.count("memory"),
            "knowledge": kinds.count("knowledge"),
        }

    def entries_since(self, namespace: str, change: int, upto: int) -> Iterator[IndexEntry]:
        """Yield the live passages that the changes (change, upto] of a namespace wrote, by number."""
        with self._open():
            space = self._state.space(namespace)
            first, last = (space.changes[max(0, min(each, len(space.changes) - 1))][1] for each in (change, upto))
            found = _index_entries(namespace, space, [n for n in _written(space, 0) if first <= n < last])
        return iter(found)

    def tail(self, namespace: str, change: int) -> list[TokenEntry]:
        """Return the passages of a namespace written after `change`, by number ascending."""
        with self._open():
            space = self._state.space(namespace)
            return space.token_entries(_written(space, change))

    def pending(self, namespace: str, change: int) -> tuple[int, int]:
        """Return how many passages of a namespace were written, and how many deleted, after `change`."""
        with self._open():
            space = self._state.space(namespace)
            return len(_written(space, change)), sum(deletion > change for deletion, _ in space.deletions)

    def deleted_since(self, namespace: str, change: int, upto: int) -> list[int]:
        """Return the numbers of passages that the changes (change, upto] of a namespace deleted, ascending."""
        with self._open():
            deletions = self._state.space(namespace).deletions
            return sorted(number for deletion, number in deletions if change < deletion <= upto)

    def check(self) -> list[str]:
        """Return where ids in a graph lead nowhere: nothing else can come apart in dictionaries under one lock."""
        with self._open():
            return graph_problems(self._state.spaces)

    def backup(self, target: Path) -> None:
        """Write a complete copy to a new file, a SQLite store with the same id, numbers and changes."""
        from tests.reference_store.contents import contents_of, write_store

        with self._open():
            contents = contents_of(self._id, self._state)
        write_store(contents, target)

    @contextmanager
    def scratch_copy(self) -> Iterator[MemoryStore]:
        """Give a private copy of the store as it is now, which is gone when the block ends."""
        other = MemoryStore()
        with self._open():
            other._id, other._state = self._id, deepcopy(self._state)
        try:
            yield other
        finally:
            other.close()


def _written(space: Space, change: int) -> list[int]:
    """Return the numbers of the live passages that were written after a change, ascending."""
    return sorted(number for _, row in space.live() if change < row.change for number in row.numbers)


def _index_entries(namespace: str, space: Space, numbers: Sequence[int]) -> list[IndexEntry]:
    return [
        index_entry(namespace, number, space.owner_of[number], row.owner, new)
        for number, row, new in space.passages(numbers)
    ]


def _beside(row: Row, space: Space) -> list[Row]:
    """Return the live owners with the nearest lower and the nearest higher position in the same session."""
    if not row.owner.session or row.expired_at is not None:
        return []
    session = [other for _, other in space.live() if other.owner.session == row.owner.session]
    positions = sorted({other.owner.position for other in session})
    place = bisect_right(positions, row.owner.position) - 1
    near = {*positions[max(0, place - 1) : place], *positions[place + 1 : place + 2]}
    return [other for other in session if other.owner.position in near]


def graph_problems(spaces: Mapping[str, Space]) -> list[str]:
    """Return one sentence for each thing that is wrong with the graphs of an in-memory store."""
    found: Counter[str] = Counter()
    for name, space in spaces.items():
        graph = space.graph
        records: dict[str, Collection[str]] = {"entity": graph.entities, "relation": graph.relations}
        merged = [each.merged_into for each in graph.entities.values() if each.merged_into]
        found[dangling("entities", "merged_into")] += sum(id_ not in graph.entities for id_ in merged)
        found[dangling("aliases", "entity")] += sum(entity not in graph.entities for entity, _ in graph.aliases)
        for end in ("source", "target"):
            ends = [getattr(each, end) for each in graph.relations.values()]
            found[dangling("relations", end)] += sum(id_ not in graph.entities for id_ in ends)
        subjects = [each.subject not in records[each.kind] for each in graph.mentions]
        found[dangling("mentions", "subject")] += sum(subjects)
        found[dangling("mentions", "episode")] += sum(each.episode not in graph.episodes for each in graph.mentions)
        found[dangling("happenings", "subject")] += sum(
            each.subject not in records[each.kind] for each in graph.happenings
        )
        if is_reserved(name):
            home = spaces.get(namespace_of(name))
            kept: dict[str, Collection[str]] = {}
            if home is not None:
                kept = {"entity": home.graph.entities, "relation": home.graph.relations}
            found[STRAY_TEXTS] += sum(id_ not in kept.get(kind, ()) for kind, id_ in space.by_id)
    texts = found.pop(STRAY_TEXTS, 0)
    return sentences([*found.items(), (STRAY_TEXTS, texts)])
