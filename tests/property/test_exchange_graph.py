"""Whatever graph a namespace may hold comes back from an export as it was."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.graph_records import Drawn
from tests.property.test_exchange import ids, names, shares, texts, times, two_stores, values
from tests.unit.exchange.imports import dump, import_file, import_given, read

from commonplace.exchange.items import EntityItem, EpisodeItem, GraphItem, Item, RelationItem
from commonplace.exchange.read import Problem
from commonplace.graph.facts import OWN, Assertion, happening
from commonplace.types.graph import Alias, Entity, Episode, Happening, Mention, Relation

contents = st.text("abc é\ue000\n", min_size=1, max_size=12).filter(str.strip)
maybe = st.none() | times
keys = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=3).filter(
    lambda key: key != OWN
)
objects = st.dictionaries(keys, values, max_size=2).map(lambda value: json.dumps(value, sort_keys=True))
drawn = Drawn(ids, texts, times, maybe, shares, st.integers(0, 9))
episodes = drawn.records(Episode, content=contents, memory=st.sampled_from(["", "m"]))
places = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)


@st.composite
def happenings(draw: st.DrawFn, kind: str, subject: str) -> tuple[Happening, ...]:
    """What happened to something, as anybody may have written it or as facts are resolved from."""
    found = []
    for _ in range(draw(st.integers(0, 2))):
        if kind == "relation" and draw(st.booleans()):
            when = draw(times), draw(times), draw(st.integers(0, 9))
            said = Assertion(subject, draw(ids), draw(ids), "said", draw(texts), *when)
            found.append(happening("created", subject, said, draw(texts)))
        else:
            found.append(Happening(kind, subject, draw(times), draw(names), draw(texts), draw(ids), draw(objects)))  # type: ignore[arg-type]
    return tuple(found)


@st.composite
def mentions(draw: st.DrawFn, kind: str, subject: str, said: list[str]) -> tuple[Mention, ...]:
    """Where something is mentioned, in the order of a store."""
    found = set()
    for _ in range(draw(st.integers(0, 2)) if said else 0):
        start, end = draw(places)
        name = draw(texts) if kind == "entity" else ""
        found.add(Mention(draw(st.sampled_from(said)), kind, subject, start, end, name))  # type: ignore[arg-type]
    return tuple(found)


@st.composite
def graphs(draw: st.DrawFn) -> list[Item]:
    """Parts of a graph of which each names what stands before it."""
    told = draw(st.lists(episodes, max_size=2, unique_by=lambda each: each.id))
    said = [each.id for each in told]
    entities: list[GraphItem] = []
    known: list[str] = []
    for id_ in draw(st.lists(ids, max_size=3, unique=True)):
        entity = draw(
            drawn.records(
                Entity,
                id=st.just(id_),
                name=names,
                type=names,
                attributes=objects,
                merged_into=st.sampled_from(["", *known]),
            )
        )
        forms = draw(st.lists(names, max_size=2, unique=True))
        aliases = tuple(Alias(id_, draw(texts), form, draw(times), draw(ids)) for form in forms)
        entities.append(
            EntityItem(entity, aliases, draw(mentions("entity", id_, said)), draw(happenings("entity", id_)))
        )
        known.append(id_)
    relations: list[GraphItem] = []
    for id_ in draw(st.lists(ids, max_size=2, unique=True)) if known else []:
        ends = st.sampled_from(known)
        relation = draw(
            drawn.records(Relation, id=st.just(id_), source=ends, target=ends, type=names, attributes=objects)
        )
        relations.append(
            RelationItem(relation, draw(mentions("relation", id_, said)), draw(happenings("relation", id_)))
        )
    return [*(EpisodeItem(each) for each in told), *entities, *relations]


def plain(item: Item | Problem) -> tuple[object, ...]:
    """Return a part of a graph without the places where it stood, and what hangs on it in one order."""
    match item:
        case EpisodeItem():
            return "episode", item.key, item.episode
        case EntityItem():
            aliases = sorted(item.aliases, key=repr)
            return "entity", item.key, item.entity, aliases, sorted(item.mentions, key=repr), item.happenings
        case RelationItem():
            return "relation", item.key, item.relation, sorted(item.mentions, key=repr), item.happenings
    raise AssertionError(item)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs())
def test_export_and_import_of_a_graph_lose_nothing(items: list[Item]) -> None:
    with two_stores() as (first, second, path):
        import_given(first, items)
        assert first.check() == []
        exported = dump(first)
        assert sorted(map(repr, map(plain, read(exported, path)))) == sorted(map(repr, map(plain, items)))
        report = import_file(second, path)
        assert report.problems == ()
        assert dump(second) == exported
        change = second.change()
        import_file(second, path)
        assert (second.change(), dump(second), second.check()) == (change, exported, [])
