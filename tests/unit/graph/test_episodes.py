"""What one episode may bring into a graph: so much that others who write wait briefly for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import commonplace
from commonplace.extract.model import Claim, ExtractedEntity, Extraction
from commonplace.graph import episodes
from commonplace.graph.episodes import bounded


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episodes, "MAX_ENTITIES", 4)
    monkeypatch.setattr(episodes, "MAX_FACTS", 2)


def found(name: str, times: int = 1) -> ExtractedEntity:
    return ExtractedEntity(name, "concept", tuple((place, place + 1) for place in range(times)))


def claim(source: int, target: int) -> Claim:
    return Claim(source, target, "USES", f"{source} uses {target}", (0, 1))


def test_what_is_within_the_bounds_stays_as_it_is() -> None:
    given = Extraction((found("a"), found("b"), found("c"), found("d")), (claim(0, 1), claim(2, 3)))
    assert bounded(given) == (given, ())


def test_the_first_facts_are_taken_with_what_they_are_about() -> None:
    given = Extraction(tuple(map(found, "abcdef")), (claim(5, 4), claim(4, 2), claim(0, 1)))
    taken, notices = bounded(given)
    assert [each.name for each in taken.entities] == ["a", "c", "e", "f"]
    assert [(each.source, each.target) for each in taken.claims] == [(3, 2), (2, 1)]
    assert notices == (
        "the graph took 2 of the 3 facts in it: give it in parts to have them all",
        "the graph took 4 of the 6 entities in it: give it in parts to have them all",
    )


def test_of_the_others_those_are_taken_that_are_named_most_often_and_first() -> None:
    given = Extraction((found("a"), found("b"), found("c", 2), found("d"), found("e", 3), found("f")))
    taken, notices = bounded(given)
    assert [each.name for each in taken.entities] == ["a", "b", "c", "e"]
    assert notices == ("the graph took 4 of the 6 entities in it: give it in parts to have them all",)


def test_a_fact_about_more_things_than_are_taken_is_left_out_and_later_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each fact that is taken finds both things that it is about."""
    monkeypatch.setattr(episodes, "MAX_FACTS", 9)
    given = Extraction(tuple(map(found, "abcdef")), (claim(0, 1), claim(2, 1), claim(4, 5), claim(0, 2), claim(3, 0)))
    taken, _ = bounded(given)
    assert [each.name for each in taken.entities] == ["a", "b", "c", "d"]
    assert [(each.source, each.target) for each in taken.claims] == [(0, 1), (2, 1), (0, 2), (3, 0)]


def test_what_is_mentioned_on_and_on_is_recorded_once_by_each_of_its_names(tmp_path: Path) -> None:
    """A long text mentions its hero thousands of times; by which names is asked when two are parted."""
    with commonplace.open(tmp_path, embedder="hashing") as book:
        added = book.graph.add_episode("Mira Okafor came home. " * 80 + "Okafor slept.")
        [mira] = added.entities
        mentions = book._runtime.store.graph("default").mentions("entity", [mira.uuid])[mira.uuid]
        assert [(each.name, each.start) for each in mentions] == [("Mira Okafor", 0), ("Okafor", 80 * 23)]
