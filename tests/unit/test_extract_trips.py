"""Who only travels, or goes home for the day, has not moved; nor have those who have come back."""

from __future__ import annotations

import pytest
from tests.unit.extracting import claims, extracted

from commonplace.extract.modality import HEARSAY

NO_MOVES = [
    "Mira left Berlin at five.",
    "Mira left Berlin at 5 pm.",
    "Mira left Berlin at 17:30.",
    "Mira left Berlin around noon.",
    "Mira left Berlin early.",
    "Mira left Berlin this morning.",
    "Mira left Berlin in the evening.",
    "Mira left Berlin on Monday.",
    "Mira left Berlin yesterday.",
    "Mira leaves Berlin tomorrow.",
    "Mira is leaving Berlin on Monday.",
    "Mira will leave Berlin on Friday.",
    "Mira is leaving on Monday.",
    "Mira left Berlin by train.",
    "Mira left Berlin on foot.",
    "Mira left Berlin for the airport.",
    "Mira left Berlin for the weekend.",
    "Mira left Berlin for a conference.",
    "Mira left Acme at five.",
    "Mira left Acme for the day.",
    "Mira left Acme for lunch.",
    "Mira moved to Lagos and back.",
    "Mira moved to Lagos and back again.",
    "Mira moved to Lagos, then back.",
    "Mira moved to Lagos and came back.",
    "Mira moved to Lagos in 2019 and returned in 2020.",
    "Mira moved to Lagos for the summer.",
    "Mira moved to Lagos for six months.",
    "Mira has moved to Lagos for six months.",
    "Mira temporarily moved to Lagos.",
    "Mira moved temporarily to Lagos.",
    "Mira settled in Lagos for the night.",
    "Mira relocated to Lagos for the winter.",
]

MOVES = [
    ("Mira left Berlin for good.", ["Mira LIVES_IN Berlin ended"]),
    ("Mira left Berlin in 2019.", ["Mira LIVES_IN Berlin until 2019-01-01 ended"]),
    ("Mira left Berlin in May 2025.", ["Mira LIVES_IN Berlin until 2025-05-01 ended"]),
    ("Mira is leaving Berlin in June.", ["Mira LIVES_IN Berlin until 2026-06-01 ended"]),
    ("Mira left Acme on Monday.", ["Mira WORKS_FOR Acme until 2026-03-09 ended"]),
    ("Mira is leaving Acme on Monday.", ["Mira WORKS_FOR Acme until 2026-03-16 ended"]),
    ("Mira moved back to Berlin.", ["Mira LIVES_IN Berlin"]),
    ("Mira moved to Lagos and back to Berlin.", ["Mira LIVES_IN Berlin"]),
    ("Mira moved to Lagos and then back to Berlin.", ["Mira LIVES_IN Berlin"]),
    (
        "Mira moved to Lagos in 2019 and back to Berlin in 2021.",
        ["Mira LIVES_IN Berlin since 2021-01-01"],
    ),
    (
        "Mira moved to Lagos in 2019 and moved back to Berlin in 2021.",
        ["Mira LIVES_IN Berlin since 2021-01-01"],
    ),
    ("Mira moved to Lagos this morning.", ["Mira LIVES_IN Lagos since 2026-03-10"]),
    ("Mira, who lives in Berlin, is leaving on Monday.", ["Mira LIVES_IN Berlin"]),
    ("Mira moved to Lagos.", ["Mira LIVES_IN Lagos"]),
]


@pytest.mark.parametrize("text", NO_MOVES)
def test_a_journey_is_no_move(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(("text", "facts"), MOVES)
def test_a_move_is_one(text: str, facts: list[str]) -> None:
    assert claims(text) == facts
    assert all(claim.confidence > HEARSAY for claim in extracted(text).claims)


@pytest.mark.parametrize("text", ["Mira left Berlin.", "Mira left Berlin for Munich.", "Mira has left Berlin."])
def test_who_left_a_place_may_only_travel_so_that_is_hardly_said(text: str) -> None:
    [claim] = extracted(text).claims
    assert claim.is_end
    assert claim.confidence == HEARSAY
