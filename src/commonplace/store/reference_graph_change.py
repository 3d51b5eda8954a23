"""One change to the graph of the in-memory store. It works on a copy and knows no lock, no rule about a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from commonplace.store.graph_checks import check_episode, check_remark, check_subject
from commonplace.store.graph_contract import texts_of
from commonplace.store.reference_graph import GraphState, ReferenceGraph
from commonplace.types import GRAPH_KINDS

if TYPE_CHECKING:
    from commonplace.store.reference_transaction import ReferenceTransaction
    from commonplace.types import NewPassage, OwnerWrite
    from commonplace.types.graph import Alias, Entity, Episode, Happening, Mention, Relation, Subject


class ReferenceGraphChange(ReferenceGraph):
    """A `GraphChange` on the copy of a graph; whatever is written or deleted takes a change number."""

    def __init__(self, transaction: ReferenceTransaction) -> None:
        super().__init__(self._opened_copy)
        self._transaction = transaction

    def put_episode(self, episode: Episode) -> None:
        """Write an episode in the place of the one with its id."""
        check_episode(episode)
        self._set(self._graph.episodes, episode.id, episode)

    def put_entity(self, entity: Entity, passages: Sequence[NewPassage] | None = None) -> None:
        """Write an entity in the place of the one with its id."""
        write = check_subject(entity, passages, self._transaction.embedding)
        self._set(self._graph.entities, entity.id, entity)
        self._put_texts("entity", write, entity.created_at)

    def put_relation(self, relation: Relation, passages: Sequence[NewPassage] | None = None) -> None:
        """Write a relation in the place of the one with its id."""
        write = check_subject(relation, passages, self._transaction.embedding)
        self._set(self._graph.relations, relation.id, relation)
        self._put_texts("relation", write, relation.created_at)

    def put_alias(self, alias: Alias) -> None:
        """Give an entity a name, in the place of one with the same normal form."""
        check_remark(alias)
        self._set(self._graph.aliases, (alias.entity, alias.normal), alias)

    def drop_alias(self, entity: str, normal: str) -> None:
        """Take a name from an entity."""
        self._drop(self._graph.aliases, [(entity, normal)])

    def put_mentions(self, mentions: Sequence[Mention]) -> None:
        """Record mentions; one that is there already stays once."""
        for mention in mentions:
            check_remark(mention)
        if mentions:
            self._graph.mentions.update(mentions)
            self._transaction.mark()

    def drop_mentions(self, mentions: Sequence[Mention]) -> None:
        """Delete mentions."""
        self._drop_mentions(set(mentions) & self._graph.mentions)

    def put_happening(self, happening: Happening) -> None:
        """Add to what happened."""
        check_remark(happening)
        self._graph.happenings.append(happening)
        self._transaction.mark()

    def erase_episodes(self, ids: Sequence[str]) -> int:
        """Delete episodes with their mentions; return how many there were."""
        self._drop_mentions({mention for mention in self._graph.mentions if mention.episode in ids})
        return self._drop(self._graph.episodes, ids)

    def erase_entities(self, ids: Sequence[str]) -> int:
        """Delete entities with their names, texts, mentions and what happened to them; return how many there were."""
        self._drop(self._graph.aliases, [key for key in self._graph.aliases if key[0] in ids])
        self._erase_all_of("entity", ids)
        return self._drop(self._graph.entities, ids)

    def erase_relations(self, ids: Sequence[str]) -> int:
        """Delete relations with their texts, mentions and what happened to them; return how many there were."""
        self._erase_all_of("relation", ids)
        return self._drop(self._graph.relations, ids)

    def erase_happenings(self, kind: Subject, id_: str) -> None:
        """Delete what happened to an entity or relation."""
        graph = self._graph
        kept = [each for each in graph.happenings if (each.kind, each.subject) != (kind, id_)]
        if len(kept) < len(graph.happenings):
            graph.happenings = kept
            self._transaction.mark()

    def drop_loose_ends(self) -> int:
        """Delete what hangs on nothing: names, mentions, happenings and texts of what is gone; return how many went."""
        graph = self._graph
        records: dict[Subject, Collection[str]] = {"entity": graph.entities, "relation": graph.relations}
        gone = self._drop(graph.aliases, [key for key in graph.aliases if key[0] not in graph.entities])
        loose = {
            each
            for each in graph.mentions
            if each.episode not in graph.episodes or each.subject not in records[each.kind]
        }
        self._drop_mentions(loose)
        kept = [each for each in graph.happenings if each.subject in records[each.kind]]
        gone += len(loose) + len(graph.happenings) - len(kept)
        if len(kept) < len(graph.happenings):
            graph.happenings = kept
            self._transaction.mark()
        for kind in GRAPH_KINDS:
            gone += self._drop_stray(kind, records[kind])
        return gone

    def _drop_stray(self, kind: Subject, known: Collection[str]) -> int:
        """Delete the texts of what is gone."""
        texts = texts_of(self._transaction.namespace, kind)
        if not self._transaction.has(texts):
            return 0
        with self._transaction.inside(texts) as change:
            stray = [id_ for of, id_ in change.space.by_id if of == kind and id_ not in known]
        for id_ in stray:
            self._drop_texts(kind, id_)
        return len(stray)

    @property
    def _graph(self) -> GraphState:
        return self._transaction.change.space.graph

    @contextmanager
    def _opened_copy(self) -> Iterator[GraphState]:
        yield self._graph

    def _put_texts(self, kind: Subject, write: OwnerWrite | None, at: float) -> None:
        if write is None:
            return
        if write.passages:
            with self._transaction.inside(texts_of(self._transaction.namespace, kind)) as change:
                change.put(write.owner, write.passages, at)
        else:
            self._drop_texts(kind, write.owner.id)

    def _drop_texts(self, kind: Subject, id_: str) -> None:
        texts = texts_of(self._transaction.namespace, kind)
        if not self._transaction.has(texts):
            return
        with self._transaction.inside(texts) as change:
            number = change.space.by_id.get((kind, id_))
            if number is not None:
                change.remove(number)
                self._transaction.mark()

    def _erase_all_of(self, kind: Subject, ids: Sequence[str]) -> None:
        """Delete what hangs on entities or relations alike."""
        for id_ in ids:
            self._drop_texts(kind, id_)
            self.erase_happenings(kind, id_)
        graph = self._graph
        self._drop_mentions({each for each in graph.mentions if each.kind == kind and each.subject in ids})

    def _drop_mentions(self, gone: set[Mention]) -> None:
        if gone:
            self._graph.mentions -= gone
            self._transaction.mark()

    def _set(self, values: dict[Any, Any], key: object, value: object) -> None:
        values[key] = value
        self._transaction.mark()

    def _drop(self, values: dict[Any, Any], keys: Iterable[object]) -> int:
        gone = [values.pop(key) for key in dict.fromkeys(keys) if key in values]
        if gone:
            self._transaction.mark()
        return len(gone)
