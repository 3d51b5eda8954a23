"""How far links lead: nearest first, each memory once, never beyond depth and limit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import commonplace
from commonplace.errors import NotFoundError, UsageError
from commonplace.memory.service import outward
from commonplace.types import Link


def among(*edges: tuple[str, str, float]) -> object:
    links = [Link(source, target, "related", strength) for source, target, strength in edges]

    def links_of(ids: Sequence[str]) -> list[Link]:
        return [link for link in links if {link.source, link.target} & set(ids)]

    return links_of


RING = among(("a", "b", 0.5), ("b", "c", 1.0), ("c", "a", 0.9), ("c", "d", 0.2), ("d", "e", 1.0))


def every(ids: Sequence[str]) -> Sequence[str]:
    return ids


def reached(start: str, *, depth: int, limit: int = 10) -> tuple[str, ...]:
    return outward(start, RING, every, depth=depth, limit=limit)[0]  # type: ignore[arg-type]


def test_the_nearest_come_first_and_of_these_the_strongest() -> None:
    assert reached("a", depth=1) == ("a", "c", "b")
    assert reached("a", depth=2) == ("a", "c", "b", "d")
    assert reached("a", depth=3) == ("a", "c", "b", "d", "e")
    assert reached("e", depth=2) == ("e", "d", "c")


def test_the_limit_cuts_off_the_weakest() -> None:
    assert reached("a", depth=4, limit=2) == ("a", "c")
    assert reached("a", depth=4, limit=1) == ("a",)


def test_links_are_those_among_what_was_reached_the_strongest_first() -> None:
    _, links = outward("a", RING, every, depth=1, limit=10)  # type: ignore[arg-type]
    assert [(link.source, link.target) for link in links] == [("c", "a"), ("a", "b")]
    _, links = outward("a", RING, every, depth=2, limit=10)  # type: ignore[arg-type]
    assert [(link.source, link.target) for link in links] == [("b", "c"), ("c", "a"), ("a", "b"), ("c", "d")]


def test_a_memory_without_links_is_alone() -> None:
    assert outward("x", RING, every, depth=3, limit=10) == (("x",), ())  # type: ignore[arg-type]


def test_what_is_not_live_takes_no_place_and_leads_nowhere() -> None:
    asked: list[Sequence[str]] = []

    def live(ids: Sequence[str]) -> set[str]:
        asked.append(ids)
        return set(ids) - {"b", "c", "f"}

    star = among(("a", "b", 1.0), ("a", "c", 0.9), ("a", "d", 0.8), ("a", "e", 0.7), ("b", "x", 1.0), ("d", "f", 1.0))
    ids, links = outward("a", star, live, depth=3, limit=3)  # type: ignore[arg-type]
    assert ids == ("a", "d", "e")
    assert [(link.source, link.target) for link in links] == [("a", "d"), ("a", "e")]
    assert asked == [["b", "c", "d", "e"]]
    assert outward("a", star, live, depth=3, limit=9)[0] == ("a", "d", "e")  # type: ignore[arg-type]


def test_many_that_are_not_live_are_passed_over_and_no_more_are_asked_about_than_that_takes() -> None:
    asked: list[int] = []

    def live(ids: Sequence[str]) -> list[str]:
        asked.append(len(ids))
        return [each for each in ids if each >= "0150"]

    star = among(*(("a", f"{number:04}", 1.0) for number in range(1000)))
    assert outward("a", star, live, depth=1, limit=3)[0] == ("a", "0150", "0151")  # type: ignore[arg-type]
    assert asked == [100, 100]


def test_archived_neighbours_do_not_use_up_the_limit(tmp_path: Path) -> None:
    with commonplace.open(tmp_path) as book:
        for name in ("one", "two", "three", "four", "five"):
            book.remember(f"Memory {name}.", id=name)
        for name, strength in (("two", 1.0), ("three", 0.9), ("four", 0.5)):
            book.link("one", name, strength=strength)
        book.link("two", "five")
        book.archive("two")
        book.archive("three")
        around = book.neighbourhood("one", limit=2)
        assert [memory.id for memory in around.memories] == ["one", "four"]
        assert [link.target for link in around.links] == ["four"]
        assert [memory.id for memory in book.neighbourhood("one", depth=4).memories] == ["one", "four"]


def test_the_engine_leaves_out_what_is_archived(tmp_path: Path) -> None:
    with commonplace.open(tmp_path) as book:
        one, two, three = (book.remember(f"Memory {name}.", id=name) for name in ("one", "two", "three"))
        book.link("one", "two", "because", 0.7)
        book.link("three", "two", "after")
        around = book.neighbourhood("one")
        assert [memory.id for memory in around.memories] == [one.id, two.id, three.id]
        assert [(link.source, link.target, link.type) for link in around.links] == [
            ("three", "two", "after"),
            ("one", "two", "because"),
        ]
        book.archive("three")
        assert [memory.id for memory in book.neighbourhood("one").memories] == ["one", "two"]
        assert len(book.neighbourhood("one").links) == 1


def test_the_engine_refuses_what_is_not_there_and_what_is_out_of_range(tmp_path: Path) -> None:
    with commonplace.open(tmp_path) as book:
        book.remember("Memory one.", id="one")
        with pytest.raises(NotFoundError, match="no memory 'two'"):
            book.neighbourhood("two")
        for values in ({"depth": 0}, {"depth": 5}, {"limit": 0}, {"limit": 501}, {"depth": True}):
            with pytest.raises(UsageError, match="give a whole number"):
                book.neighbourhood("one", **values)
