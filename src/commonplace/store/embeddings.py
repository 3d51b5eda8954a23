"""Store vectors after the fact and change a store's embedder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final, TypeVar

from commonplace.errors import StoreError
from commonplace.store import owners
from commonplace.store.change import ALL_HEADS, Change, next_change
from commonplace.store.connection import EVERY, Connections
from commonplace.store.dialect import listed, listed_numbers, quoted
from commonplace.store.rows import Values, drop, insert_rows
from commonplace.store.schema import SCHEMA, namespace_of, namespace_of_row, numbers_after
from commonplace.store.statements import Statements
from commonplace.store.validate import (
    NEXT,
    STAMP_KEYS,
    read_embedding,
    refuse_other_maker,
    refuse_other_reembedding,
    refuse_unfit_vectors,
    set_embedding,
)
from commonplace.types import Embedding, IndexEntry, Reembedding

Value = TypeVar("Value")
SQL: Final = Statements("embeddings")

_NEXT_KEYS: Final = [f"{NEXT}{key}" for key in STAMP_KEYS]


class ReembeddingStore:
    """The part of a store that takes vectors later, and changes its embedder."""

    _connections: Connections

    def count_pending(self) -> int:
        """Return how many passages of all namespaces, live and past, have no vector yet."""
        return int(self._connections.rows(SQL["count_pending"], {"namespace": None})[0][0])

    def pending_vectors(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no vector yet, by number ascending."""
        found = self._connections.rows(SQL["pending_entries"], {"namespace": None, "limit": limit})
        return [owners.build_entry(row) for row in found]

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
        names = self._connections.rows(SQL["names"], {"namespace": None, "numbers": listed(of_spaces)})
        for name, space in sorted(names, key=itemgetter(1)):
            given = of_spaces[space]
            with self._connections.writing(namespace_of(name)) as db:
                refuse_other_maker(read_embedding(db), embedding)
                change = Change(db, namespace_of(name))
                if name not in change.spaces:  # erased meanwhile
                    continue
                own = {"space": space, "numbers": listed_numbers(given)}
                pending = db.execute(SQL["pending_of"], own).fetchall()
                past = [number for number, _, is_past in pending if is_past]
                db.executemany(
                    SQL["set_vector"], [{"space": space, "number": number, "vector": given[number]} for number in past]
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
                for (space,) in db.execute(SQL["spaces"], {"space": namespace_of_row(after)}).fetchall():
                    first, end = max(after, numbers_after(space)), numbers_after(space + 1)
                    values = {"space": space, "after": first, "end": end, "limit": limit - len(found)}
                    found += map(owners.build_entry, db.execute(SQL["unembedded"], values))
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
                    number for (number,) in db.execute(SQL["there"], {"space": space, "numbers": listed_numbers(some)})
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
            if db.execute(SQL["is_any_missing"]).fetchone()[0]:
                return False
            db.execute(SQL["move"])
            db.execute("DELETE FROM next_vectors")
            if old := read_embedding(db):
                for name, kind in (("rename_recipes", "artifact"), ("rename_stamps", "knowledge")):
                    db.execute(SQL[name], {"old": str(old.of(kind)), "new": str(embedding.of(kind))})
            drop(db, "meta", key=_NEXT_KEYS)
            set_embedding(db, embedding)
            heads = db.execute(ALL_HEADS).fetchall()
            insert_rows(db, SCHEMA["changes"], [next_change(space, *last) for _, space, *last in heads if last[0]])
        return True


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
    change.execute(SQL["stamp"], {**own, "change": change.number})
    for name in ("passages", "passage_vectors"):
        columns = [column.name for column in SCHEMA[name].columns]
        sql = f"SELECT {', '.join(map(quoted, columns))} FROM {name} NOT INDEXED WHERE {SQL['of_owners']}"
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
