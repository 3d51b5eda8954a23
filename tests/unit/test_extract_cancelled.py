"""What is said not to have come about after all: whose, where to, and how surely."""

from __future__ import annotations

import pytest
from tests.unit.extracting import claims, extracted

from commonplace.extract.modality import HEARSAY

CALLED_OFF = [
    ("Mira's move to Munich was cancelled.", "Mira LIVES_IN Munich"),
    ("Mira's move to Munich has been canceled.", "Mira LIVES_IN Munich"),
    ("Mira's planned move was called off.", "Mira LIVES_IN"),
    ("Mira's move to Munich fell through.", "Mira LIVES_IN Munich"),
    ("Mira's move to Munich did not happen.", "Mira LIVES_IN Munich"),
    ("Mira's relocation never happened.", "Mira LIVES_IN"),
    ("Mira cancelled her move to Munich.", "Mira LIVES_IN Munich"),
    ("Mira called off the move.", "Mira LIVES_IN"),
    ("The move to Munich was cancelled.", "LIVES_IN Munich"),
    ("The move was cancelled.", "LIVES_IN"),
    ("Mira was tired. The move was cancelled.", "Mira LIVES_IN"),
    ("Mira was tired. Her move was cancelled.", "Mira LIVES_IN"),
    ("Mira was tired. She did not move after all.", "Mira LIVES_IN"),
    ("Mira did not move to Munich after all.", "Mira LIVES_IN Munich"),
    ("Mira didn't relocate to Munich in the end.", "Mira LIVES_IN Munich"),
    ("Mira is not moving to Munich after all.", "Mira LIVES_IN Munich"),
    ("Mira won't move to Munich after all.", "Mira LIVES_IN Munich"),
    ("Mira decided not to move to Munich.", "Mira LIVES_IN Munich"),
    ("Mira did not join Acme after all.", "Mira WORKS_FOR Acme"),
    ("Mira stayed in Berlin after all.", "Mira LIVES_IN not Berlin"),
    ("Mira is staying in Berlin after all.", "Mira LIVES_IN not Berlin"),
    ("I did not move after all.", "the user LIVES_IN"),
    ("My move was cancelled.", "the user LIVES_IN"),
    ("Acme did not move to Munich after all.", "Acme LIVES_IN Munich"),
]

NOTHING_CALLED_OFF = [
    "Was the move cancelled?",
    "If the move is cancelled, Mira stays.",
    "The move may be cancelled.",
    "The move will be cancelled.",
    "The move was not cancelled.",
    "The move wasn't cancelled.",
    "Mira did not cancel the move.",
    "Mira should cancel the move.",
    "The meeting was cancelled.",
    "The flight to Munich was cancelled.",
    "Mira did not move.",
    "Mira did not move in 2019.",
    "Mira stayed in Berlin.",
    "Mira did not live in Munich after all.",
    "Mira moved to Munich after all.",
    "Nobody moved after all.",
    "That was a good move.",
]


def called_off(text: str) -> list[tuple[str, float]]:
    found = extracted(text)
    lines = []
    for each in found.cancellations:
        ends = [found.entities[place].name if place is not None else "" for place in (each.source, each.target)]
        words = [ends[0], each.types[0], ends[1]]
        if each.kept is not None:
            words += ["not", found.entities[each.kept].name]
        lines.append((" ".join(filter(None, words)), each.confidence))
    return lines


@pytest.mark.parametrize(("text", "line"), CALLED_OFF)
def test_what_is_called_off_is_told(text: str, line: str) -> None:
    [(told, sure)] = called_off(text)
    assert told == line
    assert sure > HEARSAY


@pytest.mark.parametrize("text", NOTHING_CALLED_OFF)
def test_what_may_be_or_is_not_called_off_is_none(text: str) -> None:
    assert called_off(text) == []


@pytest.mark.parametrize("text", ["Mira did not move to Munich.", "Tom says Mira's move to Munich was cancelled."])
def test_what_is_only_denied_or_reported_is_hardly_said(text: str) -> None:
    assert called_off(text) == [("Mira LIVES_IN Munich", HEARSAY)]


@pytest.mark.parametrize("text", [text for text, _ in CALLED_OFF if "decided" not in text])
def test_what_is_called_off_is_no_fact(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("The migration to Kubernetes was cancelled.", "USES Kubernetes"),
        ("We called off the switch to Postgres.", "we USES Postgres"),
        ("The move to Postgres was abandoned.", "USES Postgres"),
    ],
)
def test_a_change_of_tools_that_is_called_off_is_only_doubted(text: str, line: str) -> None:
    """What was used before stands beside it, and nothing reopens that."""
    assert called_off(text) == [(line, HEARSAY)]
