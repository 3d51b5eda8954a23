"""Find what holds secrets in a graph, part by part, and write it anew without them. It knows no file.

Where an episode is cleaned, the places in it that mentions and facts tell of are moved with their words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from commonplace.engine.secrets_cleaning import Cleaner, Known
from commonplace.graph.cleaning import GraphCleaner, Moves
from commonplace.graph.ground import Texts
from commonplace.graph.naming import KEY
from commonplace.types.graph import GraphFilter

if TYPE_CHECKING:
    from commonplace.ingest.passages import Destination
    from commonplace.store.contract import Store
    from commonplace.store.graph_contract import GraphChange, GraphReading
    from commonplace.types.graph import Alias, Entity, Episode, Happening, Mention, Subject

_EVER: Final = GraphFilter(with_past=True)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a graph that was looked at: an episode, an entity or a relation.

    Attributes:
        cleaner: which secrets were found in it.
        mend: writes it anew without them.
    """

    kind: str
    id: str
    cleaner: Cleaner
    mend: Callable[[], None]


class GraphSecrets:
    """The graph of one namespace.

    Args:
        destination: what makes the texts of entities and facts; asked for when something is written anew.
        known: secrets that were found before.
    """

    def __init__(self, store: Store, namespace: str, destination: Callable[[], Destination], known: Known) -> None:
        self._store = store
        self._namespace = namespace
        self._destination = destination
        self._known = known

    def parts(self) -> Iterator[Part]:
        """Yield every episode, entity and fact, with the secrets that it holds; nothing is written."""
        graph = self._store.graph(self._namespace)
        for episode in graph.list_episodes(_EVER):
            cleaner, clean = self._cleaners()
            clean.episode(episode)
            yield Part("episode", episode.id, cleaner, partial(self._mend_episode, episode.id))
        for entity in graph.list_entities(_EVER):
            cleaner, clean = self._cleaners()
            _cleaned_entity(graph, entity, clean)
            yield Part("entity", entity.id, cleaner, partial(self._mend_entity, entity.id))
        for relation in graph.list_relations(_EVER):
            cleaner, clean = self._cleaners()
            clean.relation(relation)
            clean.happenings(graph.happenings("relation", relation.id))
            yield Part("relation", relation.id, cleaner, partial(self._mend_relation, relation.id))

    def _cleaners(self) -> tuple[Cleaner, GraphCleaner]:
        cleaner = Cleaner(self._known)
        return cleaner, GraphCleaner(cleaner.text, cleaner.value, cleaner.find)

    def _mend_episode(self, id_: str) -> None:
        _, clean = self._cleaners()
        with self._store.change_memories(self._namespace) as change:
            for episode in change.graph.episodes([id_]).values():
                cleaned = clean.episode(episode)
                if cleaned != episode:
                    change.graph.put_episode(cleaned)
                move_places(change.graph, episode, clean.moves.get(id_, Moves()))

    def _mend_entity(self, id_: str) -> None:
        _, clean = self._cleaners()
        with self._store.change_memories(self._namespace) as change:
            graph, texts = change.graph, self._texts()
            for entity in graph.entities([id_]).values():
                cleaned, aliases, mentions, happenings = _cleaned_entity(graph, entity, clean)
                for alias in graph.aliases([id_]).get(id_, ()):
                    graph.drop_alias(id_, alias.normal)
                for alias in aliases:
                    graph.put_alias(alias)
                graph.drop_mentions(graph.mentions("entity", [id_]).get(id_, []))
                graph.put_mentions(mentions)
                _put_happenings(graph, "entity", id_, happenings)
                names = [alias for alias in aliases if not alias.normal.startswith(KEY)]
                graph.put_entity(cleaned, () if cleaned.merged_into else texts.of_entity(cleaned, names))

    def _mend_relation(self, id_: str) -> None:
        _, clean = self._cleaners()
        with self._store.change_memories(self._namespace) as change:
            graph, texts = change.graph, self._texts()
            for relation in graph.relations([id_]).values():
                cleaned = clean.relation(relation)
                _put_happenings(graph, "relation", id_, clean.happenings(graph.happenings("relation", id_)))
                graph.put_relation(cleaned, texts.of_relation(cleaned))

    def _texts(self) -> Texts:
        """Return what makes texts; inside a transaction, where nobody else can change the store's embedder."""
        return Texts(replace(self._destination(), namespace=self._namespace))


def move_places(graph: GraphChange, episode: Episode, moves: Moves) -> None:
    """Let what a graph under change tells of places in an episode follow its words."""
    if not moves.steps:
        return
    move = GraphCleaner(lambda text: text, lambda value: value, lambda _: (), {episode.id: moves})
    mentions = graph.mentioned([episode.id]).get(episode.id, [])
    graph.drop_mentions(mentions)
    graph.put_mentions(move.mentions(mentions))
    facts = list(dict.fromkeys(mention.subject for mention in mentions if mention.kind == "relation"))
    for id_, relation in graph.relations(facts).items():
        graph.put_relation(move.relation(relation))
        _put_happenings(graph, "relation", id_, move.happenings(graph.happenings("relation", id_)))


def _cleaned_entity(
    graph: GraphReading, entity: Entity, clean: GraphCleaner
) -> tuple[Entity, tuple[Alias, ...], tuple[Mention, ...], tuple[Happening, ...]]:
    cleaned = clean.entity(entity)
    return (
        cleaned,
        clean.aliases(cleaned, graph.aliases([entity.id]).get(entity.id, ())),
        clean.mentions(graph.mentions("entity", [entity.id]).get(entity.id, ())),
        clean.happenings(graph.happenings("entity", entity.id)),
    )


def _put_happenings(graph: GraphChange, kind: Subject, id_: str, happenings: Sequence[Happening]) -> None:
    graph.erase_happenings(kind, id_)
    for each in happenings:
        graph.put_happening(each)
