"""A query about nothing in a graph finds nothing, and one about something still finds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.graph.query import MIN_COSINE, MIN_LETTER_SIMILARITY, NEVER, least_score

SAID = [
    "Mira Okafor lives in Berlin and works for Acme.",
    "Mira moved to Munich in May.",
    "auth.ts depends on token.ts.",
    "The billing service uses Postgres.",
    "We chose Postgres over MySQL for billing because of transactions.",
    "Tom Chen likes climbing and tea.",
    "The outage was caused by a full disk.",
    "Acme is based in Vienna.",
    "Tom Chen leads the payments team at Globex.",
    "loginService calls userStore.",
]

NOTHING = [
    *("zzzz", "qwertyuiop", "asdf jkl", "xkcd 4711", "blorbt", "aaaaaaaa", "12345", "???"),
    *("the", "of", "is it", "what was that"),
    *("dinosaur fossils", "recipe for lasagna", "quantum chromodynamics", "Beethoven symphony"),
    *("how tall is the Eiffel tower", "penguins in Antarctica", "what is the meaning of life"),
]

FACTS = [
    ("where does Mira live", "Munich"),
    ("who works for Acme", "Acme"),
    ("what database does billing use", "Postgres"),
    ("auth", "token.ts"),
    ("login service", "userStore"),
    ("why was there downtime", "full disk"),
    ("what caused the failure", "full disk"),
    ("who lives in Germany", "Munich"),
    ("headquarters of Acme", "Vienna"),
    ("residence of Okafor", "Berlin"),
    ("relocation", "Munich"),
    ("Tom's job", "payments team"),
    ("tea", "climbing"),
    ("SQL", "Postgres"),
]

ENTITIES = [
    ("Mira", "Mira Okafor"),
    ("postgres", "Postgres"),
    ("SQL", "MySQL"),
    ("mountaineering", "climbing"),
    ("who is in charge of payments", "payments team"),
    ("Mrs. Okafor's home", "Mira Okafor"),
    ("token", "token.ts"),
    ("disk", "full disk"),
]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with commonplace.open(tmp_path_factory.mktemp("relevance") / "store", clock=Clock()) as engine:
        for text in SAID:
            engine.graph.add_episode(text)
        yield engine


@pytest.mark.parametrize("query", NOTHING)
def test_what_a_graph_knows_nothing_of_is_not_found_in_it(book: Engine, query: str) -> None:
    assert list(book.graph.search_edges(query, 5, include_past=True)) == []
    assert list(book.graph.search_entities(query, 5)) == []


@pytest.mark.parametrize(("query", "target"), FACTS)
def test_a_fact_is_found_by_words_and_by_what_they_mean(book: Engine, query: str, target: str) -> None:
    assert target in [fact.target_name for fact in book.graph.search_edges(query, 3, include_past=True)]


@pytest.mark.parametrize(("query", "name"), ENTITIES)
def test_an_entity_is_found_by_words_and_by_what_they_mean(book: Engine, query: str, name: str) -> None:
    assert name in [entity.name for entity in book.graph.search_entities(query, 3)]


@pytest.mark.parametrize("query", ["zzzz", "qqq", "hello there", "purple monkey dishwasher"])
def test_of_short_names_of_letters_nonsense_finds_none(tmp_path: Path, query: str) -> None:
    """Vectors of words that the vocabulary does not know are those of their pieces: `zzzz` was near to `baz`."""
    with commonplace.open(tmp_path / "store", clock=Clock()) as engine:
        engine.graph.add_triplet("foo", "USES", "bar")
        engine.graph.add_triplet("bar", "USES", "baz")
        assert list(engine.graph.search_edges(query, 5)) == []
        assert list(engine.graph.search_entities(query, 5)) == []
        assert engine.graph.search_entities("baz", 5)[0].name == "baz"


def pieces(word: str) -> int:
    return {"zzzz": 3, "login": 2}.get(word, 1)


def test_what_a_query_has_to_have_in_common() -> None:
    assert least_score("relocation", "entity", "static", pieces) == (0.0, MIN_COSINE["entity"])
    assert least_score("login", "relation", "static", pieces) == (0.0, MIN_COSINE["relation"])
    assert least_score("zzzz", "relation", "static", pieces) == (0.0, NEVER)
    assert least_score("zzzz login", "relation", "static", pieces) == (0.0, MIN_COSINE["relation"])
    assert least_score("4711", "relation", "static", pieces) == (0.0, NEVER)
    assert least_score("what is it", "relation", "static", pieces) == (NEVER, NEVER)
    assert least_score("WHO", "entity", "static", pieces) == (0.0, NEVER)
    assert least_score("relocation", "entity", "hashing", pieces) == (0.0, MIN_LETTER_SIMILARITY)
