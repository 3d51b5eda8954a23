"""Store vectors after the fact and change a store's embedder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from commonplace.store import owners
from commonplace.store.connection import EVERY, Connections
from commonplace.store.dialect import RANDOM_BYTES, Database, among, listed, quoted
from commonplace.store.owners import ENTRY_COLUMNS, ENTRY_JOINS
from commonplace.store.rows import add_rows
from commonplace.store.schema import SCHEMA
from commonplace.store.writes import (
    NEXT,
    STAMP_KEYS,
    Change,
    read_embedding,
    refuse_other_maker,
    refuse_other_reembedding,
    refuse_same_embedding,
    refuse_unfit_vectors,
    set_embedding,
)
from commonplace.types import Embedding, IndexEntry, Reembedding

# After a switch of embedder that is not settled the vector waits in `next_vectors`.
_PENDING = """
    FROM passage_vectors v INDEXED BY passage_vectors_pending
    WHERE length(v.vector) = 0
        AND NOT EXISTS (SELECT 1 FROM next_vectors x WHERE x.number = v.number)
"""
_PENDING_ENTRIES = f"""
    SELECT {ENTRY_COLUMNS}, v.token_ids, v.vector
    FROM (SELECT v.number, v.token_ids, v.vector {_PENDING} ORDER BY v.number LIMIT :limit) v
        CROSS JOIN passages p ON p.number = v.number
        CROSS JOIN owners o ON o.number = p.owner
        CROSS JOIN namespaces n ON n.number = p.namespace
    ORDER BY p.number
"""

_REST = ", ".join(quoted(column.name) for column in SCHEMA["passages"].columns if column.name != "number")
_RENUMBER = (
    f"INSERT INTO passages (number, {_REST}) SELECT :new, {_REST} FROM passages WHERE number = :old",
    """
    INSERT INTO passage_vectors (number, namespace, owner, token_ids, vector, is_past)
    SELECT :new, namespace, owner, token_ids, coalesce(:vector, vector), is_past
    FROM passage_vectors WHERE number = :old
    """,
    "DELETE FROM next_vectors WHERE number = :old",
    "DELETE FROM passage_vectors WHERE number = :old",
    "DELETE FROM passages WHERE number = :old",
)

_UNEMBEDDED = f"""
    SELECT {ENTRY_COLUMNS}, v.token_ids, v.vector
    FROM passages p {ENTRY_JOINS}
    WHERE p.number > :after AND NOT EXISTS (SELECT 1 FROM next_vectors x WHERE x.number = p.number)
    ORDER BY p.number
    LIMIT :limit
"""

_KEEP = """
    INSERT INTO next_vectors (number, namespace, vector)
    SELECT number, namespace, :vector FROM passages WHERE number = :number
    ON CONFLICT (number) DO UPDATE SET vector = excluded.vector
"""

_HELD = """
    SELECT v.owner, v.namespace, n.name, v.is_past FROM passage_vectors v JOIN namespaces n ON n.number = v.namespace
    WHERE v.number = :number
"""
_SET_VECTOR = "UPDATE passage_vectors SET vector = :vector WHERE number = :number"
_STAMP = "UPDATE owners SET change = :change WHERE number = :owner AND expired_at IS NULL"
_PASSAGES = "SELECT number FROM passages WHERE owner = :owner ORDER BY ordinal"

_MOVE_ALL = (
    f"UPDATE namespaces SET change = change + 1, token = {RANDOM_BYTES} WHERE change > 0",
    """
    INSERT INTO changes (namespace, number, next_passage, token)
    SELECT number, change, (SELECT next_passage FROM sequences), token FROM namespaces WHERE change > 0
    """,
)

_IS_INCOMPLETE = """
    SELECT EXISTS (
        SELECT 1 FROM passage_vectors v
        WHERE v.number > :after AND NOT EXISTS (SELECT 1 FROM next_vectors x WHERE x.number = v.number)
    )
"""

_SWITCHED = {
    "switched_from": "artifact",
    "switched_to": "artifact",
    "switched_from_knowledge": "knowledge",
    "switched_to_knowledge": "knowledge",
}
"""The names under which `meta` keeps the old and the new stamps, which recipes of files and items of knowledge name,
from the switch on until everything is settled."""

_NEXT_KEYS: Final = [f"{NEXT}{key}" for key in STAMP_KEYS]
_FIRST = "SELECT number FROM next_vectors ORDER BY number LIMIT :limit"
_SETTLE = (
    f"""
    UPDATE passage_vectors SET vector = (SELECT x.vector FROM next_vectors x WHERE x.number = passage_vectors.number)
    WHERE number IN ({_FIRST})
    """,
    f"DELETE FROM next_vectors WHERE number IN ({_FIRST})",
    """
    UPDATE file_stamps SET recipe = replace(recipe, :old, :new)
    WHERE owner IN (
        SELECT owner FROM file_stamps
        WHERE instr(recipe, :old) > 0 AND instr(recipe, :new) = 0 LIMIT :limit
    )
    """,
    """
    UPDATE knowledge_items SET embedder = :new_knowledge
    WHERE owner IN (
        SELECT owner FROM knowledge_items
        WHERE embedder = :old_knowledge AND :old_knowledge != :new_knowledge LIMIT :limit
    )
    """,
)
_SETTLED_AT_ONCE: Final = 2_000


class ReembeddingStore:
    """The part of a store that takes vectors later, and changes its embedder."""

    _connections: Connections

    def count_pending(self) -> int:
        """Return how many passages of all namespaces, live and past, have no vector yet."""
        return int(self._connections.rows(f"SELECT count(*) {_PENDING}", {"namespace": None})[0][0])

    def pending_vectors(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no vector yet, by number ascending."""
        found = self._connections.rows(_PENDING_ENTRIES, {"namespace": None, "limit": limit})
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
        with self._connections.writing() as db:
            refuse_other_maker(read_embedding(db), embedding)
            made = {
                number: vector
                for number, vector in vectors
                if db.execute(f"SELECT 1 {_PENDING} AND v.number = :number", {"number": number}).fetchone()
            }
            held = {}
            for number, vector in made.items():
                owner, space, name, is_past = db.execute(_HELD, {"number": number}).fetchone()
                held[owner] = space, name
                if is_past:
                    db.execute(_SET_VECTOR, {"vector": vector, "number": number})
            if held:
                change = Change.create(db, min(held.values())[1])
                for owner, (space, _) in sorted(held.items()):
                    with change.inside(space):
                        _renumber(change, owner, made)
                change.finish()
            return len(made)

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
        self._settle_all()
        with self._connections.writing() as db:
            refuse_same_embedding(read_embedding(db), embedding)
            if read_embedding(db, NEXT) != embedding:
                _drop(db)
                set_embedding(db, embedding, NEXT)

    def drop_reembedding(self) -> None:
        """Give up the change of embedder under way, if there is one, with all that was made for it."""
        self._settle_all()
        with self._connections.writing() as db:
            _drop(db)

    def unembedded(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no new vector yet, by number ascending.

        Each has its old vector. Without a change of embedder under way there are none.
        """
        with self._connections.reading(EVERY) as db:
            if read_embedding(db, NEXT) is None:
                return []
            # They are made in the order of their numbers, which ascend: what lacks one below the last is an exception.
            (last,) = db.execute("SELECT coalesce(max(number), 0) FROM next_vectors").fetchone()
            found = db.execute(_UNEMBEDDED, {"after": last, "limit": limit}).fetchall()
            if not found and last:
                found = db.execute(_UNEMBEDDED, {"after": 0, "limit": limit}).fetchall()
        return [owners.build_entry(row) for row in found]

    def put_reembedded(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Keep new vectors, by passage number; passages that are gone are passed over. It takes no change number.

        Raises:
            StoreError: another change of embedder is under way, or none, or a vector has another length.
        """
        refuse_unfit_vectors(embedding, [vector for _, vector in vectors])
        with self._connections.writing() as db:
            refuse_other_reembedding(read_embedding(db, NEXT), embedding)
            db.executemany(_KEEP, [{"number": number, "vector": vector} for number, vector in vectors])

    def finish_reembedding(self, embedding: Embedding) -> bool:
        """Let all new vectors count in the place of the old ones and stamp the store, as one change.

        It writes a few rows, however many passages there are: nobody who writes waits for it. What is to be done
        besides is for `settle_reembedding`.

        Returns:
            False, and nothing is changed, where a passage has no new vector yet.

        Raises:
            StoreError: another change of embedder is under way, or none.
        """
        with self._connections.reading(EVERY) as db:
            # Before anybody has to wait: what has its vector keeps it, and what comes meanwhile has a higher number.
            refuse_other_reembedding(read_embedding(db, NEXT), embedding)
            if db.execute(_IS_INCOMPLETE, {"after": 0}).fetchone()[0]:
                return False
            (last,) = db.execute("SELECT coalesce(max(number), 0) FROM passage_vectors").fetchone()
        with self._connections.writing() as db:
            refuse_other_reembedding(read_embedding(db, NEXT), embedding)
            if db.execute(_IS_INCOMPLETE, {"after": last}).fetchone()[0]:
                return False
            old = read_embedding(db)
            for key, kind in _SWITCHED.items():
                stamp = old if key.startswith("switched_from") else embedding
                add_rows(db, SCHEMA["meta"], [{"key": key, "value": str(stamp.of(kind)) if stamp else ""}])
            _drop_keys(db, _NEXT_KEYS)
            set_embedding(db, embedding)
            for sql in _MOVE_ALL:
                db.execute(sql)
        return True

    def settle_reembedding(self, limit: int) -> bool:
        """Put some of what a finished change left to be done where it belongs, in one short transaction.

        New vectors go to where the old ones are, at most `limit` of them; so many recipes of files and records of
        knowledge that name the old embedder's stamp name the new one's, each. Nothing that is read changes by it, and
        it takes no change number. The next change of embedder does it first, where nobody did.

        Returns:
            False where nothing is left.
        """
        if self._connections.is_read_only:
            return False
        with self._connections.reading(EVERY) as db:
            if not _switched(db):
                return False
        with self._connections.writing() as db:
            switched = _switched(db)
            if not switched:
                return False
            old, new, old_knowledge, new_knowledge = (switched[key] for key in _SWITCHED)
            values = {
                "limit": limit, "old": old, "new": new, "old_knowledge": old_knowledge, "new_knowledge": new_knowledge
            }  # fmt: skip
            # What names no old stamp holds none: `instr` finds an empty text in everything.
            statements = _SETTLE if old else _SETTLE[:2]
            if not sum(db.execute(sql, values).rowcount for sql in statements):
                _drop_keys(db, _SWITCHED)
                return False
        return True

    def _settle_all(self) -> None:
        while self.settle_reembedding(_SETTLED_AT_ONCE):
            pass


def _renumber(change: Change, owner: int, made: Mapping[int, bytes]) -> None:
    """Give the passages of an owner their vectors, and where it is live all of them new numbers."""
    change.mark()
    if change.db.execute(_STAMP, {"change": change.number, "owner": owner}).rowcount:
        for (old,) in change.db.execute(_PASSAGES, {"owner": owner}).fetchall():
            values = {"old": old, "new": change.take_passage(old), "vector": made.get(old)}
            for sql in _RENUMBER:
                change.db.execute(sql, values)


def _switched(db: Database) -> dict[str, str | bytes]:
    """Return the packed stamps before and after a switch that is not settled yet, by key; none where there is none."""
    return {key: value for key, value in db.execute("SELECT key, value FROM meta") if key in _SWITCHED}


def _drop(db: Database) -> None:
    db.execute("DELETE FROM next_vectors")
    _drop_keys(db, _NEXT_KEYS)


def _drop_keys(db: Database, keys: Iterable[str]) -> None:
    db.execute(f"DELETE FROM meta WHERE key IN {among('keys')}", {"keys": listed(keys)})
