"""Secrets in a graph that was filled before they were replaced on the way in: found, and gone from all files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.graphs import EVER, texts
from tests.unit.clock import Clock
from tests.unit.erasure.test_secrets import GONE, TOKEN, found, holding, problems

import commonplace
from commonplace.engine import Engine
from commonplace.graph.names import KEY, normal
from commonplace.graph.runtime import Texts
from commonplace.store.graph import GraphChange
from commonplace.types.graph import Alias, Happening, Mention

KIND = "holds a secret of the kind github token"


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        book.graph.add_episode("Ann lives in Oslo.", uuid="said", reference_time="2026-01-05")
        yield book


def id_of(book: Engine, name: str) -> str:
    [id_] = [each.id for each in book._runtime.store.graph("default").list_entities(EVER) if each.name == name]
    return id_


def fact_of(book: Engine) -> str:
    [fact] = book._runtime.store.graph("default").list_relations(EVER)
    return fact.id


def spoil_entity(graph: GraphChange, id_: str, **values: Any) -> None:
    graph.put_entity(replace(graph.entities([id_])[id_], **values))


def spoil_fact(graph: GraphChange, id_: str, **values: Any) -> None:
    graph.put_relation(replace(graph.relations([id_])[id_], **values))


@pytest.mark.parametrize(
    "values",
    [
        {"name": f"mail of {TOKEN}"},
        {"source_description": f"from {TOKEN}"},
        {"group": TOKEN},
        {"content": f"Ann lives in Oslo. {TOKEN}"},
    ],
)
def test_every_text_of_an_episode_is_cleaned(book: Engine, values: dict[str, str]) -> None:
    with book._runtime.store.change_memories("default") as change:
        change.graph.put(replace(change.graph.episodes(["said"])["said"], **values))
    expected = f"episode 'said' of namespace 'default' {KIND}"
    assert [(each.problem, each.mended) for each in found(book, mend=False)] == [(expected, False)]
    assert problems(book) == [expected]
    assert holding(book) == []
    assert GONE in str(asdict(book._runtime.store.graph("default").episodes(["said"])["said"]))
    assert found(book) == []


@pytest.mark.parametrize(
    "values",
    [
        {"name": f"Ann {TOKEN}"},
        {"summary": f"She has {TOKEN}"},
        {"attributes": json.dumps({"keys": [TOKEN]})},
        {"group": TOKEN},
    ],
)
def test_every_text_of_an_entity_is_cleaned(book: Engine, values: dict[str, str]) -> None:
    id_ = id_of(book, "Ann")
    with book._runtime.store.change_memories("default") as change:
        spoil_entity(change.graph, id_, **values)
    assert problems(book) == [f"entity '{id_}' of namespace 'default' {KIND}"]
    assert holding(book) == []
    assert GONE in str(asdict(book._runtime.store.graph("default").entities([id_])[id_]))
    assert found(book) == []


@pytest.mark.parametrize(
    "values", [{"fact": f"Ann lives at {TOKEN}"}, {"attributes": json.dumps({"key": TOKEN})}, {"group": TOKEN}]
)
def test_every_text_of_a_fact_is_cleaned(book: Engine, values: dict[str, str]) -> None:
    id_ = fact_of(book)
    with book._runtime.store.change_memories("default") as change:
        spoil_fact(change.graph, id_, **values)
    assert problems(book) == [f"relation '{id_}' of namespace 'default' {KIND}"]
    assert holding(book) == []
    assert GONE in str(asdict(book._runtime.store.graph("default").relations([id_])[id_]))
    assert found(book) == []


def test_names_are_cleaned_with_their_forms_and_the_texts_by_which_they_are_found(book: Engine) -> None:
    """The form by which names are compared, and the index, have the secret too."""
    id_, name = id_of(book, "Ann"), f"Ann {TOKEN}"
    with book._runtime.store.change_memories("default") as change:
        graph = change.graph
        entity = graph.entities([id_])[id_]
        graph.put(Alias(id_, name, normal(name), 5.0, "said"))
        graph.put(Alias(id_, "", f"{KEY}part:{normal(TOKEN)}", 5.0))
        graph.put(Mention("said", "entity", id_, 0, 3, name))
        names = [alias for alias in graph.aliases([id_])[id_] if alias.name]
        graph.put_entity(entity, Texts(book._runtime.destination()).of_entity(entity, names))
    assert TOKEN in str(texts(book._runtime.store, "default"))
    assert problems(book) == [f"entity '{id_}' of namespace 'default' {KIND}"]
    assert holding(book, TOKEN, normal(TOKEN)) == []
    graph = book._runtime.store.graph("default")
    assert [alias.name for alias in graph.aliases([id_])[id_] if alias.name] == [f"Ann {GONE}", "Ann"]
    assert {mention.name for mention in graph.mentions("entity", [id_])[id_]} == {"Ann", f"Ann {GONE}"}
    assert f"Ann, Ann {GONE}" in texts(book._runtime.store, "default")["entity"]
    assert book.graph.entity(f"Ann {GONE}").uuid == id_
    assert found(book) == []


def test_what_happened_and_why_is_cleaned(book: Engine) -> None:
    id_, fact = id_of(book, "Ann"), fact_of(book)
    with book._runtime.store.change_memories("default") as change:
        change.graph.put(Happening("entity", id_, 5.0, "renamed", f"as {TOKEN} says", "", '{"name": "x"}'))
        change.graph.put(Happening("relation", fact, 5.0, "ended", "", "", json.dumps({"deep": [TOKEN]})))
    where = (f"entity '{id_}'", f"relation '{fact}'")
    assert problems(book) == [f"{each} of namespace 'default' {KIND}" for each in where]
    assert holding(book) == []
    assert book._runtime.store.graph("default").happenings("entity", id_)[-1].reason == f"as {GONE} says"
    assert found(book) == []


def test_every_namespace_is_looked_through_and_ids_are_told_of_and_stay(book: Engine, clock: Clock) -> None:
    with commonplace.open(book.directory, namespace="theirs", clock=clock) as theirs:
        theirs.graph.add_episode("Bob works for Acme.", uuid=TOKEN, reference_time="2026-01-05")
        assert [(each.problem, each.mended) for each in found(book)] == [
            (f"the name of episode '{GONE}' of namespace 'theirs' {KIND}", False)
        ]
        assert theirs.graph.episode(TOKEN).content == "Bob works for Acme."
