"""Say what a part of a graph is to the graph of a store, and write it there. It knows no file and no batch.

An entity or a fact grows: other episodes name it otherwise, end it, dispute it. Where all that is imported of it is
here already, what is here is the same or the later state of it, and stays.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Literal

from commonplace.exchange.graph_items import EntityItem, EpisodeItem, GraphItem, RelationItem
from commonplace.graph.evidence import evidence_of
from commonplace.graph.naming import KEY, normal

if TYPE_CHECKING:
    from commonplace.graph.giving import GivenFact
    from commonplace.graph.ground import Texts
    from commonplace.store.graph_contract import GraphChange, GraphReading
    from commonplace.types.graph import Alias, Entity, Happening, Mention, Relation

Outcome = Literal["added", "unchanged", "conflict"]


def outcome_of(graph: GraphReading, item: GraphItem) -> Outcome:
    """Compare a part of a graph with what is there under its id."""
    if isinstance(item, EpisodeItem):
        known = graph.episodes([item.episode.id]).get(item.episode.id)
        if known is None:
            return "added"
        # A version of a memory that says what the one before it said is the same episode.
        same = replace(known, created_at=item.episode.created_at, version=item.episode.version)
        return "unchanged" if same == item.episode else "conflict"
    if isinstance(item, EntityItem):
        return _outcome_of_entity(graph, item)
    return _outcome_of_relation(graph, item)


def is_said(graph: GraphReading, fact: GivenFact) -> bool:
    """Return whether things of these names are in a fact of this type that somebody gave in the same words."""
    ends = normal(fact.source), normal(fact.target)
    named = graph.named(ends)
    sources, targets = ([each.id for each in named.get(end, ())] for end in ends)
    return any(
        evidence is not None and not evidence.episode and evidence.text == fact.fact
        for one, other in (*product(sources, targets), *product(targets, sources))
        for relation in graph.facts(one, fact.type, other)
        for evidence in map(evidence_of, graph.happenings("relation", relation.id))
    )


def missing(graph: GraphReading, item: GraphItem) -> str:
    """Return what a part of a graph names that is not there, in words; "" where all is there."""
    entities, episodes = needs(item)
    known, told = graph.entities(entities), graph.episodes(episodes)
    gone = [f"entity {id_!r:.80}" for id_ in entities if id_ not in known]
    gone += [f"episode {id_!r:.80}" for id_ in episodes if id_ not in told]
    return gone[0] if gone else ""


def needs(item: GraphItem) -> tuple[list[str], list[str]]:
    """Return the ids of the entities and of the episodes that a part of a graph names, each once."""
    if isinstance(item, EpisodeItem):
        return [], []
    episodes = list(dict.fromkeys(mention.episode for mention in item.mentions))
    if isinstance(item, EntityItem):
        return [item.entity.merged_into] if item.entity.merged_into else [], episodes
    return list(dict.fromkeys((item.relation.source, item.relation.target))), episodes


def text_of(item: GraphItem) -> tuple[Entity, Sequence[Alias]] | Relation | None:
    """Return what the text of a part of a graph is made of; None where it has none."""
    if isinstance(item, RelationItem):
        return item.relation
    if isinstance(item, EpisodeItem) or item.entity.merged_into:
        return None
    return item.entity, [alias for alias in item.aliases if not alias.normal.startswith(KEY)]


def write(graph: GraphChange, item: GraphItem, texts: Texts, *, is_replacing: bool) -> None:
    """Write a part of a graph, unless it is there already, or something else is that is to stay.

    What it names may be gone since it was looked at: then it is left out.
    """
    outcome = outcome_of(graph, item)
    if outcome == "unchanged" or (outcome == "conflict" and not is_replacing) or missing(graph, item):
        return
    if isinstance(item, EpisodeItem):
        if outcome == "conflict":
            graph.drop_mentions(graph.mentioned([item.episode.id]).get(item.episode.id, []))
        graph.put_episode(item.episode)
    elif isinstance(item, EntityItem):
        graph.erase_entities([item.entity.id])
        source = text_of(item)
        graph.put_entity(item.entity, texts.of_entity(*source) if isinstance(source, tuple) else ())
        for alias in item.aliases:
            graph.put_alias(alias)
        _write_rest(graph, item.mentions, item.happenings)
    else:
        graph.erase_relations([item.relation.id])
        graph.put_relation(item.relation, texts.of_relation(item.relation))
        _write_rest(graph, item.mentions, item.happenings)


def _write_rest(graph: GraphChange, mentions: Sequence[Mention], happenings: Sequence[Happening]) -> None:
    graph.put_mentions(mentions)
    for happening in happenings:
        graph.put_happening(happening)


def _outcome_of_entity(graph: GraphReading, item: EntityItem) -> Outcome:
    id_ = item.entity.id
    known = graph.entities([id_]).get(id_)
    if known is None:
        return "added"
    happened = set(map(_with_plain_detail, item.happenings))
    names = {alias.normal for alias in graph.aliases([id_]).get(id_, ())}
    is_known = (
        (bool(happened) or _plain(known) == _plain(item.entity))
        and happened <= set(map(_with_plain_detail, graph.happenings("entity", id_)))
        and names.issuperset(alias.normal for alias in item.aliases)
        and set(item.mentions) <= set(graph.mentions("entity", [id_]).get(id_, ()))
    )
    return "unchanged" if is_known else "conflict"


def _outcome_of_relation(graph: GraphReading, item: RelationItem) -> Outcome:
    """Compare what is said of a fact, for the rest follows from that, and from what its entities are now."""
    id_ = item.relation.id
    known = graph.relations([id_]).get(id_)
    if known is None:
        return "added"
    said = set(map(evidence_of, item.happenings)) - {None}
    is_known = (
        (bool(said) or _plain(known) == _plain(item.relation))
        and said <= set(map(evidence_of, graph.happenings("relation", id_)))
        and set(item.mentions) <= set(graph.mentions("relation", [id_]).get(id_, ()))
    )
    return "unchanged" if is_known else "conflict"


def _with_plain_detail(happening: Happening) -> Happening:
    return replace(happening, detail=_as_compared(happening.detail))


def _plain(what: Entity | Relation) -> Entity | Relation:
    return replace(what, attributes=_as_compared(what.attributes))


def _as_compared(text: str) -> str:
    """Return a JSON object in the one form in which two of them are compared."""
    return json.dumps(json.loads(text), sort_keys=True)
