"""What of the found has a place in a context: neither the same twice, nor one kind of source before all others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commonplace.search.context import distinct, in_turn, is_history, of_the_first_owners, without_old_news
from commonplace.types import Hit, Kind


def hit(name: str, score: float = 0.9, *, owner: str = "A", type_: str = "", path: str = "") -> Hit:
    return Hit(id=name, owner_id=owner, kind="artifact", text=name, score=score, signals={}, type=type_, path=path)


def test_a_text_that_several_owners_have_stands_once_by_the_name_of_the_best() -> None:
    """Copies of a file, and a memory of what a page says, would fill the budget with one sentence."""
    found = [replace(hit("1"), text="Tea  at\nfour."), hit("2"), replace(hit("3"), text="Tea at four.")]
    assert [each.id for each in distinct(found)] == ["1", "2"]


def test_the_first_owners_keep_all_their_passages() -> None:
    kinds: list[Kind] = ["artifact", "memory", "artifact", "artifact"]
    hits = [replace(hit(str(place), owner=owner), kind=kinds[place]) for place, owner in enumerate("AABA")]
    assert [each.id for each in of_the_first_owners(hits, 2)] == ["0", "1", "3"]


def test_what_stands_in_for_other_types_is_never_more_than_half_of_the_first() -> None:
    """A budget of tokens ends somewhere: prose that scores a little more would leave no room for the code."""
    prose = [hit(f"p{n}", 0.99, type_="documentation") for n in range(4)]
    code = [hit(f"c{n}", 0.7, type_="code") for n in range(3)]
    assert [each.id for each in in_turn([*prose, *code], {"documentation"})] == "p0 c0 p1 c1 p2 c2 p3".split()
    assert in_turn([*prose, *code], set()) == (*prose, *code) == in_turn([*prose, *code], {"test"})
    assert in_turn(prose, {"documentation"}) == tuple(prose)


def test_what_stands_in_is_not_brought_before_what_is_better() -> None:
    found = [hit("c0", 0.9, type_="code"), hit("c1", 0.8, type_="code"), hit("p0", 0.7, type_="documentation")]
    assert in_turn(found, {"documentation"}) == tuple(found)


def test_of_many_pages_of_release_notes_the_first_two_have_a_place() -> None:
    found = [hit(str(n), owner=str(n), path=f"docs/releases/{n}.txt") for n in range(9)]
    other = hit("other", owner="other", path="docs/guide.md")
    assert [each.id for each in without_old_news([*found, other])] == ["0", "1", "other"]
    assert len(without_old_news([replace(each, owner_id="one") for each in found])) == 9


@pytest.mark.parametrize(
    ("path", "tells"),
    [
        ("CHANGELOG.md", True),
        ("CHANGES", False),
        ("CHANGES.rst", True),
        ("HISTORY.md", True),
        ("docs/release-notes/1.2.md", True),
        ("docs/releases/index.txt", True),
        ("docs/whatsnew/3.12.rst", True),
        ("changelog", True),
        ("src/history/store.py", False),
        ("docs/releasing.md", False),
        ("docs/guide.md", False),
        ("", False),
    ],
)
def test_a_path_tells_of_what_changed(path: str, *, tells: bool) -> None:
    assert is_history(path) == tells
