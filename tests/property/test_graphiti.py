"""What goes out in Graphiti's JSON comes back as it was, as far as Graphiti has a field for it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.property.graph_records import Drawn

from commonplace.formats.graphiti import (
    entity_json,
    episode_json,
    labels_of,
    mention_json,
    read_entity,
    read_episode,
    read_mention,
    read_relation,
    relation_json,
    type_of,
)
from commonplace.types.graph import ENTITY_TYPES, RELATION_TYPES, Entity, Episode, Relation

TEXTS = st.text(max_size=20)
IDS = st.text("abc-é0", min_size=1, max_size=8)
TIMES = st.floats(-1e10, 1e11).map(lambda value: round(value, 3))
MAYBE = st.none() | TIMES
SHARES = st.floats(0, 1)
NUMBERS = st.integers(0, 2**40)
NAMED_ELSE = ("entity", "location", "topic")
PLAIN = st.booleans() | TIMES | TEXTS | st.lists(TEXTS)
NAMES = TEXTS.filter(lambda name: name != "_")
ATTRIBUTES = st.dictionaries(NAMES, PLAIN, max_size=3).map(lambda value: json.dumps(value, sort_keys=True))
OWN_TYPES = st.from_regex("[a-z]{1,9}(_[a-z]{1,9})?", fullmatch=True).filter(lambda name: name not in NAMED_ELSE)
TYPES = st.sampled_from(ENTITY_TYPES) | OWN_TYPES
DRAWN = Drawn(IDS, TEXTS, TIMES, MAYBE, SHARES, NUMBERS)
EPISODES = DRAWN.records(Episode, memory=TEXTS)
ENTITIES = DRAWN.records(Entity, type=TYPES, attributes=ATTRIBUTES, merged_into=TEXTS)
RELATIONS = DRAWN.records(Relation, type=st.sampled_from(RELATION_TYPES) | TEXTS, attributes=ATTRIBUTES)


def there_and_back(value: dict[str, Any]) -> Any:
    """Return a value as a file would bring it back."""
    return json.loads(json.dumps(value))


@given(EPISODES, TEXTS)
def test_episode_comes_back(episode: Episode, words: str) -> None:
    """With its words in it, also where a memory holds them: Graphiti has no memories."""
    found = read_episode(there_and_back(episode_json(episode, words, ("r",))), "e")
    assert (found.id, found.content, found.memory, found.reference_time) == (
        episode.id,
        words,
        "",
        episode.reference_time,
    )
    assert episode_json(found, words, ("r",)) == episode_json(episode, words, ("r",))


@given(ENTITIES)
def test_entity_comes_back(entity: Entity) -> None:
    found = read_entity(there_and_back(entity_json(entity, "what it is")), "n")
    assert entity_json(found, "") == entity_json(entity, "what it is")
    assert (found.id, found.name, found.created_at, found.group) == (
        entity.id,
        entity.name,
        entity.created_at,
        entity.group,
    )


@given(RELATIONS, st.lists(IDS, max_size=3, unique=True).map(tuple))
def test_fact_comes_back(relation: Relation, episodes: tuple[str, ...]) -> None:
    item = read_relation(there_and_back(relation_json(relation, episodes)), "e")
    assert item.episodes == episodes
    assert relation_json(item.relation, episodes) == {
        **relation_json(relation, episodes),
        "name": relation.type or "RELATED_TO",
    }


@given(EPISODES, IDS)
def test_mention_comes_back(episode: Episode, entity: str) -> None:
    assert read_mention(there_and_back(mention_json(episode, entity)), "m") == (episode.id, entity)


@given(st.sampled_from(ENTITY_TYPES))
def test_types_come_back_from_their_labels(type_: str) -> None:
    assert type_of(labels_of(type_)) == type_
