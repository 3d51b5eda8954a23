"""Writing the graph of a namespace inside a transaction of the SQLite store: a `GraphChange`.

It knows tables, no connections and no rule about a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from commonplace.store import graph_queries
from commonplace.store.graph_checks import check_episode, check_remark, check_subject
from commonplace.store.graph_contract import texts_of
from commonplace.store.graph_rows import (
    pack_alias,
    pack_entity,
    pack_episode,
    pack_happening,
    pack_mention,
    pack_relation,
)
from commonplace.store.rows import Row, pack_id, pack_text, unpack
from commonplace.store.sqlite_graph import SqliteGraphReading
from commonplace.store.sqlite_space import ChangingSpace
from commonplace.store.sqlite_writing import create_namespace, namespace_number, read_embedding
from commonplace.types import GRAPH_KINDS

if TYPE_CHECKING:
    from commonplace.types import NewPassage, OwnerWrite
    from commonplace.types.graph import Alias, Entity, Episode, Happening, Mention, Relation, Subject


_NO_SUBJECT = """
    (kind = 'entity' AND subject NOT IN (SELECT id FROM entities WHERE namespace = ?1))
    OR (kind = 'relation' AND subject NOT IN (SELECT id FROM relations WHERE namespace = ?1))
"""
_LOOSE = (
    "DELETE FROM aliases WHERE namespace = ?1 AND entity NOT IN (SELECT id FROM entities WHERE namespace = ?1)",
    "DELETE FROM mentions WHERE namespace = ?1 AND episode NOT IN (SELECT id FROM episodes WHERE namespace = ?1)",
    f"DELETE FROM mentions WHERE namespace = ?1 AND ({_NO_SUBJECT})",  # noqa: S608 - a constant
    f"DELETE FROM happenings WHERE namespace = ?1 AND ({_NO_SUBJECT})",  # noqa: S608 - a constant
)
_STRAY: Mapping[Subject, str] = {
    "entity": """
        SELECT id FROM owners
        WHERE namespace = ? AND kind = ? AND id NOT IN (SELECT id FROM entities WHERE namespace = ?)
    """,
    "relation": """
        SELECT id FROM owners
        WHERE namespace = ? AND kind = ? AND id NOT IN (SELECT id FROM relations WHERE namespace = ?)
    """,
}


class SqliteGraphChange(ChangingSpace, SqliteGraphReading):
    """Reads and writes the graph of one namespace; whatever is written or deleted takes a change number."""

    def put_episode(self, episode: Episode) -> None:
        """Write an episode in the place of the one with its id."""
        check_episode(episode)
        self._put(graph_queries.PUT_EPISODE, pack_episode(episode))

    def put_entity(self, entity: Entity, passages: Sequence[NewPassage] | None = None) -> None:
        """Write an entity in the place of the one with its id."""
        write = check_subject(entity, passages, read_embedding(self._transaction.db))
        self._put(graph_queries.PUT_ENTITY, pack_entity(entity))
        self._put_texts("entity", write, entity.created_at)

    def put_relation(self, relation: Relation, passages: Sequence[NewPassage] | None = None) -> None:
        """Write a relation in the place of the one with its id."""
        write = check_subject(relation, passages, read_embedding(self._transaction.db))
        self._put(graph_queries.PUT_RELATION, pack_relation(relation))
        self._put_texts("relation", write, relation.created_at)

    def put_alias(self, alias: Alias) -> None:
        """Give an entity a name, in the place of one with the same normal form."""
        check_remark(alias)
        self._put(graph_queries.PUT_ALIAS, pack_alias(alias))

    def drop_alias(self, entity: str, normal: str) -> None:
        """Take a name from an entity."""
        one = "DELETE FROM aliases WHERE namespace = ? AND entity = ? AND normal = ?"
        self._delete(one, pack_id(entity), pack_text(normal))

    def put_mentions(self, mentions: Sequence[Mention]) -> None:
        """Record mentions; one that is there already stays once."""
        for mention in mentions:
            check_remark(mention)
        if mentions:
            change = self._transaction.begin()
            rows = ((change.space, *pack_mention(each)) for each in mentions)
            self._transaction.db.executemany(graph_queries.PUT_MENTION, rows)
            change.mark()

    def drop_mentions(self, mentions: Sequence[Mention]) -> None:
        """Delete mentions."""
        for mention in mentions:
            self._delete(graph_queries.DROP_MENTION, *pack_mention(mention))

    def put_happening(self, happening: Happening) -> None:
        """Add to what happened."""
        check_remark(happening)
        self._put(graph_queries.PUT_HAPPENING, pack_happening(happening))

    def erase_episodes(self, ids: Sequence[str]) -> int:
        """Delete episodes with their mentions; return how many there were."""
        gone = 0
        for key in map(pack_id, dict.fromkeys(ids)):
            self._delete("DELETE FROM mentions WHERE namespace = ? AND episode = ?", key)
            gone += self._delete("DELETE FROM episodes WHERE namespace = ? AND id = ?", key)
        return gone

    def erase_entities(self, ids: Sequence[str]) -> int:
        """Delete entities with their names, texts, mentions and what happened to them; return how many there were."""
        gone = 0
        for id_ in dict.fromkeys(ids):
            key = pack_id(id_)
            self._delete("DELETE FROM aliases WHERE namespace = ? AND entity = ?", key)
            self._erase_all_of("entity", id_)
            gone += self._delete("DELETE FROM entities WHERE namespace = ? AND id = ?", key)
        return gone

    def erase_relations(self, ids: Sequence[str]) -> int:
        """Delete relations with their texts, mentions and what happened to them; return how many there were."""
        gone = 0
        for id_ in dict.fromkeys(ids):
            self._erase_all_of("relation", id_)
            gone += self._delete("DELETE FROM relations WHERE namespace = ? AND id = ?", pack_id(id_))
        return gone

    def erase_happenings(self, kind: Subject, id_: str) -> None:
        """Delete what happened to an entity or relation."""
        self._delete("DELETE FROM happenings WHERE namespace = ? AND kind = ? AND subject = ?", kind, pack_id(id_))

    def drop_loose_ends(self) -> int:
        """Delete what hangs on nothing: names, mentions, happenings and texts of what is gone; return how many went."""
        gone = sum(self._delete(sql) for sql in _LOOSE)
        change, db = self._transaction.known(), self._transaction.db
        if change is None:
            return gone
        for kind in GRAPH_KINDS:
            space = namespace_number(db, texts_of(self._transaction.namespace, kind))
            stray = db.execute(_STRAY[kind], (space, kind, change.space)).fetchall()
            for (id_,) in stray:
                self._drop_texts(kind, unpack(id_))
            gone += len(stray)
        return gone

    def _put(self, sql: str, columns: Row) -> None:
        change = self._transaction.begin()
        self._transaction.db.execute(sql, (change.space, *columns))
        change.mark()

    def _put_texts(self, kind: Subject, write: OwnerWrite | None, at: float) -> None:
        if write is None:
            return
        change, db = self._transaction.begin(), self._transaction.db
        if write.passages:
            change.flush()  # what it replaces may have been written in this transaction
            with change.inside(create_namespace(db, texts_of(self._transaction.namespace, kind))):
                change.put(write, at)
        else:
            self._drop_texts(kind, write.owner.id)

    def _drop_texts(self, kind: Subject, id_: str) -> None:
        change = self._transaction.known()
        space = namespace_number(self._transaction.db, texts_of(self._transaction.namespace, kind))
        if change is not None and space is not None:
            change.flush()
            with change.inside(space):
                change.drop(kind, id_)

    def _erase_all_of(self, kind: Subject, id_: str) -> None:
        """Delete what hangs on an entity or relation alike."""
        self._drop_texts(kind, id_)
        self._delete("DELETE FROM mentions WHERE namespace = ? AND kind = ? AND subject = ?", kind, pack_id(id_))
        self.erase_happenings(kind, id_)

    def _delete(self, sql: str, *values: str | bytes | int) -> int:
        change = self._transaction.known()
        if change is None:
            return 0
        gone = self._transaction.db.execute(sql, (change.space, *values)).rowcount
        if gone:
            change.mark()
        return gone
