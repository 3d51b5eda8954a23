"""The readers of conversations, whose published files are not free of faults."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commonplace.benchmarks.data import Dialogue, Question, read_dialogues
from commonplace.errors import UsageError
from commonplace.types import Document


def locomo(evidence: list[str], category: int = 4) -> dict[str, Any]:
    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "Bye"}],
            "session_10_date_time": "unknown",
            "session_2": [
                {"speaker": "Ada", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a photo of a kite"},
                {"speaker": "Ben", "dia_id": "D2:2", "text": "Nice"},
            ],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_3_date_time": "2:00 pm on 9 May, 2023",
        },
        "qa": [{"question": "What flew?", "answer": "a kite", "evidence": evidence, "category": category}],
    }


def read(directory: Path, entries: object, form: str = "locomo") -> list[Dialogue]:
    path = directory / "conversations.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return list(read_dialogues(path, form))


def test_locomo_turns_carry_speaker_caption_session_and_time(tmp_path: Path) -> None:
    """Sessions come in the order of their numbers, not of their names; an unreadable date is no date."""
    at = datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
    [dialogue] = read(tmp_path, [locomo(["D2:1"])])
    assert dialogue.turns == (
        Document("D2:1", "Ada: Look! [a photo of a kite]", session="session_2", at=at),
        Document("D2:2", "Ben: Nice", session="session_2", at=at),
        Document("D10:1", "Ben: Bye", session="session_10"),
    )
    assert dialogue.questions == (Question("conv-1/0", "What flew?", "single-hop", ("D2:1",), ("session_2",)),)


@pytest.mark.parametrize(
    ("evidence", "turns", "repaired", "unknown"),
    [
        (["D2:1; D2:2"], ("D2:1", "D2:2"), 1, 0),
        (["D2:1 D10:1 D2:2"], ("D2:1", "D10:1", "D2:2"), 1, 0),
        (["D:10:1"], ("D10:1",), 1, 0),
        (["D2:01"], ("D2:1",), 1, 0),
        (["D2:1", "D2:1"], ("D2:1",), 0, 0),
        (["D"], (), 0, 1),
        (["D9:9", "D2:2"], ("D2:2",), 0, 1),
        (["D2:1; D9:9"], ("D2:1",), 1, 1),
        ([], (), 0, 0),
    ],
)
def test_malformed_evidence_is_read_where_it_can_be_and_counted(
    tmp_path: Path, evidence: list[str], turns: tuple[str, ...], repaired: int, unknown: int
) -> None:
    """The published file has each of these; dropping them silently would change the figures."""
    [dialogue] = read(tmp_path, [locomo(evidence)])
    assert dialogue.questions[0].turns == turns
    assert (dialogue.repaired, dialogue.unknown) == (repaired, unknown)


def test_adversarial_questions_stay_out_of_the_total(tmp_path: Path) -> None:
    """Their evidence is for a question that was not asked."""
    [dialogue] = read(tmp_path, [locomo(["D2:1"], category=5)])
    assert dialogue.questions[0].type == "adversarial"
    assert not dialogue.questions[0].is_counted


def longmemeval(question_id: str = "q7") -> dict[str, Any]:
    return {
        "question_id": question_id,
        "question_type": "multi-session",
        "question": "Which bike?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer_session_ids": ["s2", "gone"],
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": "Hello"}],
            [
                {"role": "user", "content": "I ride a gravel bike", "has_answer": True},
                {"role": "assistant", "content": "Good", "has_answer": False},
            ],
        ],
    }


def test_longmemeval_haystack_is_one_conversation(tmp_path: Path) -> None:
    """Evidence by turn is what has the answer; by session what the file names, as far as it is there."""
    [dialogue] = read(tmp_path, [longmemeval()], "longmemeval")
    assert [turn.id for turn in dialogue.turns] == ["0:s1:0", "1:s2:0", "1:s2:1"]
    assert dialogue.turns[0] == Document(
        "0:s1:0",
        "user: Hello",
        session="s1",
        at=datetime(2023, 5, 20, 2, 21, tzinfo=UTC).timestamp(),
    )
    assert dialogue.questions == (Question("q7", "Which bike?", "multi-session", ("1:s2:0",), ("s2",)),)
    assert dialogue.unknown == 1


def test_questions_without_an_answer_are_a_type_of_their_own(tmp_path: Path) -> None:
    """An id that ends in _abs asks for what was never said: there is nothing to find."""
    [dialogue] = read(tmp_path, [longmemeval("q7_abs")], "longmemeval")
    assert dialogue.questions[0].type == "abstention"
    assert not dialogue.questions[0].is_counted


@pytest.mark.parametrize(
    ("entries", "form", "complaint"),
    [
        ([locomo([]), {"qa": []}], "locomo", "entry 1 is not a locomo entry: KeyError 'conversation'"),
        ([locomo([])], "longmemeval", "entry 0 is not a longmemeval entry"),
        ({}, "locomo", "holds no list of entries"),
        ([7], "locomo", "entry 0 is not a locomo entry"),
        ([], "beam", "format 'beam' is unknown; use one of locomo, longmemeval"),
    ],
)
def test_a_file_of_another_shape_is_a_usage_error(tmp_path: Path, entries: object, form: str, complaint: str) -> None:
    """The message names the entry and what it lacks."""
    with pytest.raises(UsageError, match=complaint):
        read(tmp_path, entries, form)


def test_broken_json_is_a_usage_error(tmp_path: Path) -> None:
    """A download that broke off is the usual reason."""
    path = tmp_path / "half.json"
    path.write_text('[\n{"sample_id": ', encoding="utf-8")
    with pytest.raises(UsageError, match=r"half\.json:2 is not JSON"):
        list(read_dialogues(path, "locomo"))
    with pytest.raises(UsageError, match="cannot be read"):
        list(read_dialogues(tmp_path / "absent.json", "locomo"))
