"""Other forms of a name: which mean the same, and which only look so. A wrong "the same" joins two lives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.memories.clocks import Clock
from tests.unit.test_graph_resolving import found, known

import commonplace
from commonplace.engine import Engine
from commonplace.graph.names import SHORT_OF, WHOLE_OF, acronym, initials, plural, related, singular, team

SAME = [
    ("Liz", "person", "Elizabeth"),
    ("Elizabeth", "person", "Liz"),
    ("Liz", "person", "Elizabeth Okafor"),
    ("Liz Okafor", "person", "Elizabeth Okafor"),
    ("Elizabeth Okafor", "person", "Liz Okafor"),
    ("Lizzie", "person", "Liz"),
    ("Bob Chen", "person", "Robert Chen"),
    ("Bill", "person", "William Chen"),
    ("Dr. Bill Chen", "person", "William Chen"),
    ("Kate", "person", "Katherine"),
    ("WHO", "organization", "World Health Organization"),
    ("W.H.O.", "organization", "World Health Organization"),
    ("the WHO", "organization", "World Health Organization"),
    ("WHO", "concept", "World Health Organization"),
    ("DoD", "organization", "Department of Defense"),
    ("UN", "organization", "United Nations"),
    ("LOTR", "concept", "Lord of the Rings"),
    ("auth modules", "concept", "auth module"),
    ("the auth module", "concept", "auth modules"),
    ("modules", "concept", "module"),
    ("RPGs", "concept", "RPG"),
    ("Acme's", "organization", "Acme"),
    ("the auth module's", "concept", "auth module"),
    ("James'", "concept", "James"),
    ("McGee's", "place", "McGee's Pub"),
    ("McGee's bar", "place", "McGee's Pub"),
    ("Rosa Cafe", "place", "Rosa"),
    ("Wolves", "organization", "Minnesota Wolves"),
    ("The Minnesota Wolves", "organization", "Wolves"),
]

DIFFERENT = [
    ("Liz Chen", "person", "Elizabeth Okafor"),
    ("Liz Okafor", "person", "Tom Okafor"),
    ("Al", "person", "Alf"),
    ("Beth", "person", "Liz"),
    ("Robin", "person", "Robert"),
    ("Kim", "person", "Katherine"),
    ("Jack", "person", "John"),
    ("Robert's Rules", "concept", "Bob"),
    ("WHO", "organization", "World Heritage Office of Berlin"),
    ("who", "concept", "World Health Organization"),
    ("API", "concept", "Acme Payments Inc"),
    ("API", "organization", "Acme Payments Inc"),
    ("SQL", "concept", "Second Quarter Launch"),
    ("HP", "concept", "Harry Potter"),
    ("ABC", "concept", "a better cache"),
    ("World Health Organization", "organization", "WHO"),
    ("redis", "tool", "redi"),
    ("news", "concept", "new"),
    ("status", "concept", "statu"),
    ("analytics", "concept", "analytic"),
    ("access", "concept", "acces"),
    ("Williams", "organization", "William"),
    ("Jeans", "concept", "Jean"),
    ("Rosa Cafe", "place", "Rosa Hotel"),
    ("Systems", "organization", "Berlin Systems"),
    ("Wolves", "organization", "Acme Wolves"),
    ("Lakes", "place", "Minnesota Lakes"),
    ("v1s", "concept", "v1"),
    ("auth.ts", "file", "auth.t"),
    ("Mira's", "person", "Mirah"),
]


def type_of(type_: str, name: str) -> str:
    if type_ == "concept" and name in ("World Health Organization", "Acme Payments Inc"):
        return "organization"
    return type_


@pytest.mark.parametrize(("name", "type_", "other"), SAME)
def test_another_form_of_a_name_means_the_one_that_is_known(name: str, type_: str, other: str) -> None:
    assert found(name, type_, known(other, type=type_of(type_, other))) == other


@pytest.mark.parametrize(("name", "type_", "other"), DIFFERENT)
def test_what_only_looks_like_another_form_is_somebody_else(name: str, type_: str, other: str) -> None:
    assert found(name, type_, known(other, type=type_of(type_, other))) is None


def test_a_form_of_two_names_means_neither() -> None:
    people = known("Elizabeth Okafor", type="person"), known("Elizabeth Chen", type="person")
    assert found("Liz", "person", *people) is None
    bodies = [known(name, type="organization") for name in ("World Health Organization", "World Hockey Organization")]
    assert found("WHO", "organization", *bodies) is None


def test_who_shares_a_given_name_alone_is_somebody_else() -> None:
    """That Mira Okafor is called Mira makes nobody with another surname her."""
    assert found("Mira Chen", "person", known("Mira Okafor", "Mira", type="person")) is None
    assert found("Liz Chen", "person", known("Elizabeth Okafor", "Liz", type="person")) is None


def test_the_table_is_of_small_letters_and_no_name_is_short_for_itself() -> None:
    assert all(name.isalpha() and name.islower() for name in (*SHORT_OF, *WHOLE_OF))
    assert not any(name in forms for name, forms in SHORT_OF.items())
    assert related("liz") >= {"elizabeth", "lizzie"}
    assert related("mira") == frozenset()


def test_how_names_are_shortened() -> None:
    assert [acronym(name) for name in ("WHO", "DoD", "GoT", "Mira", "API", "A", "the UN")] == [
        *("who", "dod", "got", "", "", "", "un")
    ]
    assert initials("The Lord of the Rings") == ("lotr", "lr")
    assert initials("a better cache") == ()
    assert (singular("modules"), singular("redis"), plural("RPG"), plural("Mira")) == ("module", "", "RPGs", "")
    assert (team("Minnesota Wolves"), team("Acme Wolves"), team("Wolves")) == ("wolves", "", "")


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", embedder="hashing", clock=Clock()) as engine:
        yield engine


def test_a_graph_knows_its_entities_by_these_forms(book: Engine) -> None:
    graph = book.graph
    graph.add_episode("Elizabeth Okafor works for the World Health Organization. The Minnesota Wolves use Postgres.")
    graph.add_episode("Liz Okafor left the WHO in May.")
    assert graph.entity("Liz").name == "Elizabeth Okafor"
    assert graph.entity("WHO").name == graph.entity("W.H.O.").name == "World Health Organization"
    assert graph.entity("Lizzie Okafor").uuid == graph.entity("Elizabeth").uuid
    assert graph.entity("The Wolves").name == "Minnesota Wolves"


def test_two_people_of_one_given_name_stay_two(book: Engine) -> None:
    graph = book.graph
    for text in ("Mira Okafor lives in Berlin.", "Mira likes tea.", "Mira Chen lives in Munich."):
        graph.add_episode(text)
    assert graph.entity("Mira Okafor").uuid != graph.entity("Mira Chen").uuid
    assert graph.disputes() == []
