"""What of the found has a place in a context: nothing twice, and of so many owners."""

from __future__ import annotations

from dataclasses import replace

from commonplace.search.context import distinct, of_the_first_owners
from commonplace.types import Hit, Kind


def hit(name: str, *, owner: str = "A") -> Hit:
    return Hit(id=name, owner_id=owner, kind="artifact", text=name, score=0.9, signals={})


def test_a_text_that_several_owners_have_stands_once_by_the_name_of_the_best() -> None:
    """Copies of a file, and a memory of what a page says, would fill the budget with one sentence."""
    found = [replace(hit("1"), text="Tea  at\nfour."), hit("2"), replace(hit("3"), text="Tea at four.")]
    assert [each.id for each in distinct(found)] == ["1", "2"]


def test_the_first_owners_keep_all_their_passages() -> None:
    kinds: list[Kind] = ["artifact", "memory", "artifact", "artifact"]
    hits = [replace(hit(str(place), owner=owner), kind=kinds[place]) for place, owner in enumerate("AABA")]
    assert [each.id for each in of_the_first_owners(hits, 2)] == ["0", "1", "3"]
