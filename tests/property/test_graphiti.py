"""What goes out in Graphiti's JSON comes back as it was, whatever it holds."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.property.graph_records import Drawn

from commonplace.formats.graphiti import (
    EntityItem,
    RelationItem,
    entity_json,
    episode_json,
    labels_of,
    mentions_json,
    read_entity,
    read_episode,
    read_mentions,
    read_relation,
    relation_json,
    type_of,
)
from commonplace.types.graph import (
    ENTITY_TYPES,
    RELATION_TYPES,
    Alias,
    Entity,
    Episode,
    Happening,
    Mention,
    Relation,
)

TEXTS = st.text(max_size=20)
IDS = st.text("abc-é0", min_size=1, max_size=8)
TIMES = st.floats(-1e13, 1e13)
MAYBE = st.none() | TIMES
SHARES = st.floats(0, 1)
NUMBERS = st.integers(0, 2**40)
ATTRIBUTES = st.dictionaries(TEXTS, st.none() | st.booleans() | TIMES | TEXTS | st.lists(TEXTS), max_size=3).map(
    lambda value: json.dumps(value, sort_keys=True)
)
HAPPENINGS = st.lists(
    st.builds(Happening, st.sampled_from(["entity", "relation"]), IDS, TIMES, TEXTS, TEXTS, TEXTS, ATTRIBUTES),
    max_size=2,
).map(tuple)
DRAWN = Drawn(IDS, TEXTS, TIMES, MAYBE, SHARES, NUMBERS)
EPISODES = DRAWN.records(Episode, memory=TEXTS)
ENTITIES = DRAWN.records(Entity, type=st.sampled_from(ENTITY_TYPES) | TEXTS, attributes=ATTRIBUTES, merged_into=TEXTS)
RELATIONS = DRAWN.records(Relation, type=st.sampled_from(RELATION_TYPES) | TEXTS, attributes=ATTRIBUTES)


def there_and_back(value: dict[str, Any]) -> Any:
    """Return a value as a file would bring it back."""
    return json.loads(json.dumps(value))


@given(EPISODES, TEXTS)
def test_episode_comes_back(episode: Episode, words: str) -> None:
    """With its words in it, also where a memory holds them: Graphiti has no memories."""
    found = read_episode(there_and_back(episode_json(episode, words, ["r"])), "e")
    assert (found.content, found.memory, found.version) == (words, episode.memory, episode.version)
    assert episode_json(found, words, ["r"]) == episode_json(episode, words, ["r"])


@given(ENTITIES, st.lists(st.builds(Alias, IDS, TEXTS, TEXTS, TIMES, TEXTS), max_size=3).map(tuple), HAPPENINGS)
def test_entity_comes_back(entity: Entity, aliases: tuple[Alias, ...], happenings: tuple[Happening, ...]) -> None:
    item = EntityItem(entity, aliases, happenings)
    assert read_entity(there_and_back(entity_json(item, "what it is")), "n") == item


@given(RELATIONS, st.lists(st.tuples(IDS, NUMBERS, NUMBERS, TEXTS), max_size=3), HAPPENINGS)
def test_fact_comes_back(
    relation: Relation, places: list[tuple[str, int, int, str]], happenings: tuple[Happening, ...]
) -> None:
    mentions = tuple(Mention(each[0], "relation", relation.id, *each[1:]) for each in places)
    item = RelationItem(relation, mentions, happenings)
    assert read_relation(there_and_back(relation_json(item)), "e") == item


@given(IDS, IDS, st.lists(st.tuples(NUMBERS, NUMBERS, TEXTS), min_size=1, max_size=3))
def test_mentions_come_back(episode: str, entity: str, places: list[tuple[int, int, str]]) -> None:
    mentions = tuple(Mention(episode, "entity", entity, *each) for each in places)
    assert read_mentions(there_and_back(mentions_json(mentions, "", 1.0)), "m") == mentions


@given(st.sampled_from(ENTITY_TYPES))
def test_types_come_back_from_their_labels(type_: str) -> None:
    assert type_of(labels_of(type_)) == type_
