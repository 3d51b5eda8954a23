"""Which known entity a name means; precision comes first."""

from __future__ import annotations

import pytest

from commonplace.graph.names import Known, are_compatible, better_name, choose, lookups
from commonplace.types.graph import Entity


def known(*names: str, type: str = "concept", at: float = 0.0) -> Known:  # noqa: A002
    return Known(Entity(names[0], names[0], type, created_at=at), names)


def found(name: str, type_: str, *candidates: Known, similarity: float = 1.0) -> str | None:
    chosen = choose(name, type_, candidates, lambda _one, _other: similarity)
    return None if chosen is None else chosen.entity.name


@pytest.mark.parametrize(
    ("name", "type_", "candidate"),
    [
        ("postgresql", "tool", known("PostgreSQL", type="tool")),
        ("Postgres", "tool", known("PostgreSQL", type="tool")),
        ("Postgres", "concept", known("PostgreSQL", type="tool")),
        ("GitHub", "organization", known("Github", type="tool")),
        ("Mira", "person", known("Mira Okafor", type="person")),
        ("Dr. Okafor", "person", known("Mira Okafor", type="person")),
        ("M. Okafor", "person", known("Mira Okafor", type="person")),
        ("Mira Okafor", "person", known("Mira", type="person")),
        ("Mira A. Okafor", "person", known("Mira Okafor", type="person")),
        ("auth.ts", "file", known("src/auth.ts", type="file")),
        ("src/auth.ts", "file", known("auth.ts", type="file")),
        ("loginService", "concept", known("login service")),
        ("payments API", "concept", known("payment API")),
        ("Acme", "organization", known("Acme Inc.", type="organization")),
        ("the auth module", "concept", known("auth service", "auth module")),
        ("USA", "place", known("United States", type="place")),
    ],
)
def test_a_name_means_the_one_entity_that_it_can(name: str, type_: str, candidate: Known) -> None:
    assert found(name, type_, candidate) == candidate.entity.name


@pytest.mark.parametrize(
    ("name", "type_", "candidate"),
    [
        ("auth.ts", "file", known("auth.py", type="file")),
        ("src/auth.ts", "file", known("lib/auth.ts", type="file")),
        ("auth", "concept", known("auth.ts", type="file")),
        ("Berlin", "place", known("Bern", type="place")),
        ("Berlin", "person", known("Berlin", type="place")),
        ("Paris Hilton", "person", known("Paris", type="place")),
        ("v1", "concept", known("v2")),
        ("release 1", "event", known("release 2", type="event")),
        ("Mira Chen", "person", known("Mira Okafor", type="person")),
        ("Mira Okafor", "person", known("Tom Okafor", type="person")),
        ("M.", "person", known("Mira Okafor", type="person")),
        ("Mercury", "project", known("Mercury", type="place")),
        ("C", "tool", known("C++", type="tool")),
        ("Georgia", "person", known("Georgia", type="place")),
    ],
)
def test_a_name_that_only_looks_alike_is_a_new_entity(name: str, type_: str, candidate: Known) -> None:
    assert found(name, type_, candidate) is None


def test_a_given_name_that_two_bear_means_neither() -> None:
    okafor, chen = known("Mira Okafor", "Mira", type="person"), known("Mira Chen", type="person")
    assert found("Mira", "person", okafor) == "Mira Okafor"
    assert found("Mira", "person", okafor, chen) is None


def test_an_entity_of_just_that_name_goes_before_others() -> None:
    assert found("Mira", "person", known("Mira", type="person"), known("Mira Okafor", type="person")) == "Mira"


def test_of_several_of_the_same_name_the_type_decides_and_then_the_age() -> None:
    first, second = known("Stripe", type="tool", at=1.0), known("Stripe", type="organization", at=2.0)
    assert choose("Stripe", "organization", [first, second], lambda *_: 1.0) is second
    assert choose("Stripe", "concept", [second, first], lambda *_: 1.0) is first


def test_a_base_name_of_two_paths_means_neither() -> None:
    assert found("auth.ts", "file", known("src/auth.ts", type="file"), known("lib/auth.ts", type="file")) is None


def test_names_with_the_same_stems_are_one_only_where_their_vectors_are_near() -> None:
    assert found("payments API", "concept", known("payment API"), similarity=0.5) is None


def test_the_whole_name_is_the_better_one() -> None:
    assert better_name("Mira", "Mira Okafor", "person") == "Mira Okafor"
    assert better_name("Mira Okafor", "Mira", "person") == "Mira Okafor"
    assert better_name("auth.ts", "src/auth.ts", "file") == "src/auth.ts"
    assert better_name("PostgreSQL", "Postgres", "tool") == "PostgreSQL"


def test_which_types_are_compatible() -> None:
    assert are_compatible("concept", "person")
    assert are_compatible("tool", "organization")
    assert not are_compatible("concept", "file")
    assert not are_compatible("place", "organization")


def test_a_name_is_looked_up_under_all_that_it_may_stand_under() -> None:
    assert lookups("Mira Okafor", "person") == ("miraokafor", "\x1fpart:mira", "\x1fpart:okafor")
    assert lookups("auth.ts", "concept") == ("auth.ts", "\x1fsame:authts", "\x1ffile:auth.ts")
