"""What somebody else has said is recorded as hearsay: no surer than `HEARSAY`, so that a graph ends nothing by it."""

from __future__ import annotations

import pytest
from tests.unit.extracting import extracted

from commonplace.extract.modality import HEARSAY, is_inside, quotations
from commonplace.graph.extraction import understand
from commonplace.graph.facts import MIN_CONFIDENCE
from commonplace.graph.kinds import Kinds

REPORTED = [
    "The novel says Mira lives in Rome.",
    "In the novel, Mira lives in Rome.",
    "In the old film Mira lives in Rome.",
    "> Mira lives in Rome.",
    ">Mira lives in Rome.",
    "> > Mira lives in Rome.",
    "On Monday, Bob wrote:\n> Mira lives in Rome.",
    "See below.\n\n-----Original Message-----\nMira lives in Rome.",
    "Begin forwarded message:\n\nMira lives in Rome.",
    "According to Bob, Mira lives in Rome.",
    "Mira lives in Rome, according to Bob.",
    "Bob said that Mira lives in Rome.",
    "Bob says Mira lives in Rome.",
    "Bob told me Mira lives in Rome.",
    "Bob wrote that Mira lives in Rome.",
    "Bob insists Mira lives in Rome.",
    "It was announced that Mira lives in Rome.",
    "Mira lives in Rome, Bob said.",
    "Mira lives in Rome, said Bob.",
    "Mira lives in Rome, at least so Bob says.",
    "Mira lives in Rome – that is what Bob says.",
    '"Mira lives in Rome," said Bob.',
    '"Mira works. Mira lives in Rome," said Bob.',
    "“Mira lives in Rome.”",
    "«Mira lives in Rome.»",
    'Bob said: "Mira lives in Rome."',
    '"Mira lives in Rome. She',
]

TOLD = [
    "Mira lives in Rome.",
    "I told you that Mira lives in Rome.",
    "As I said, Mira lives in Rome.",
    "I have already said that Mira lives in Rome.",
    "Mira, who lives in Rome, said so.",
    "Mira lives in Rome, and Tom said hello.",
    "Mira lives in Rome and said hello.",
    "Mira wrote auth.ts and lives in Rome.",
    "Mira reports to Tom and lives in Rome.",
    "In the United States, Mira lives in Rome.",
    'Mira, called "the Boss", lives in Rome.',
    'The 5" pipe leaks. Mira lives in Rome.',
    'Tom: "Mira lives in Rome."',
    "a > b. Mira lives in Rome.",
]


def sureness(text: str) -> list[float]:
    found = extracted(text)
    return [claim.confidence for claim in found.claims if found.entities[claim.target].name == "Rome"]


@pytest.mark.parametrize("text", REPORTED)
def test_what_others_have_said_is_hearsay(text: str) -> None:
    assert sureness(text) == [HEARSAY]


@pytest.mark.parametrize("text", TOLD)
def test_what_the_text_itself_says_is_none(text: str) -> None:
    [sure] = sureness(text)
    assert sure > MIN_CONFIDENCE


@pytest.mark.parametrize("text", ['"I moved to Rome," said Bob.', 'Bob said: "I moved to Rome."', "> We use Redis."])
def test_who_speaks_in_a_quotation_is_not_who_speaks_in_the_text(text: str) -> None:
    assert extracted(text).claims == ()


def test_a_quotation_behind_a_label_is_its_speakers_own() -> None:
    found = extracted('Mira: "I moved to Rome. I love it."')
    [claim] = found.claims
    assert (found.entities[claim.source].name, found.entities[claim.target].name) == ("Mira", "Rome")
    assert claim.confidence > MIN_CONFIDENCE


def test_hearsay_is_less_sure_than_what_ends_a_fact() -> None:
    assert HEARSAY < MIN_CONFIDENCE


def test_quoted_lines_of_a_conversation_are_hearsay() -> None:
    said = understand("Tom: look\n> Mira: I moved to Rome.\nTom: Mira works for Acme.", "message", 0.0, Kinds())
    assert [claim.confidence > MIN_CONFIDENCE for claim in said.claims] == [False, True]


def test_where_a_text_quotes() -> None:
    text = 'a "b" c\n> "d"\n“e'
    spans = quotations(text)
    assert [text[start:end] for start, end in spans] == ['"b"', '> "d"', "“e"]
    assert [is_inside(spans, text.index(char)) for char in "abcde"] == [False, True, False, True, True]
    assert quotations("plain") == []
