"""Read conversations with questions about them: the LoCoMo and LongMemEval files.

Knows the two formats and the faults of their evidence, not how a conversation is stored or searched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from commonplace.errors import UsageError
from commonplace.types import Document

LOCOMO_CATEGORIES: Mapping[int, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}

DAY_S = 86_400.0

_SESSION = re.compile(r"session_(\d+)")
# Evidence comes as "D1:3", and sometimes as "D8:6; D9:17", "D:11:26" or "D30:05".
_TURN = re.compile(r"D:?(\d+):(\d+)")
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one conversation.

    Attributes:
        type: what kind of question it is, in the words of the data set.
        turns, sessions: ids of the turns and sessions that hold the evidence, each once.
        is_counted: whether it belongs to the total; the others are reported by their type only.
    """

    id: str
    text: str
    type: str
    turns: tuple[str, ...]
    sessions: tuple[str, ...]
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation: its turns in order, each a document with a session, and the questions about it.

    Attributes:
        asked_at: when the questions are asked, seconds since the epoch; None where the file has no times.
        repaired: pieces of evidence that were malformed and could still be read.
        unknown: pieces of evidence that name no turn; they are left out.
    """

    id: str
    turns: tuple[Document, ...]
    questions: tuple[Question, ...]
    repaired: int = 0
    unknown: int = 0
    asked_at: float | None = None


def read_dialogues(path: Path, form: str) -> Iterator[Dialogue]:
    """Yield the conversations of a file in the order of the file.

    Args:
        form: one of `FORMATS`.

    Raises:
        UsageError: the file cannot be read, or an entry lacks what its format promises; names file and entry.
    """
    if form not in FORMATS:
        raise UsageError(f"format {form!r} is unknown", remedy=f"use one of {', '.join(FORMATS)}")
    entries = _entries(path)
    for number, entry in enumerate(entries):
        try:
            yield FORMATS[form](entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"{path}, entry {number} is not a {form} entry: {type(error).__name__} {error}",
                remedy="check the format and the file",
            ) from error


def _entries(path: Path) -> list[Any]:
    try:
        entries = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="name a readable file") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno} is not JSON ({error.msg})", remedy="give one JSON list") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 ({error})", remedy="give one JSON list in UTF-8") from error
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path} holds no list of entries", remedy="give one JSON list")
    return entries


def _locomo(entry: Mapping[str, Any]) -> Dialogue:
    conversation = entry["conversation"]
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    turns = tuple(
        Document(
            id=turn["dia_id"],
            text=_spoken(turn),
            session=f"session_{number}",
            at=_locomo_time(conversation.get(f"session_{number}_date_time", "")),
        )
        for number in numbers
        for turn in conversation[f"session_{number}"]
    )
    sessions = {turn.id: turn.session for turn in turns}
    questions, repaired, unknown = [], 0, 0
    for number, item in enumerate(entry["qa"]):
        evidence, mended, lost = _evidence(item.get("evidence") or [], sessions)
        repaired, unknown = repaired + mended, unknown + lost
        category = LOCOMO_CATEGORIES.get(item["category"], str(item["category"]))
        questions.append(
            Question(
                id=f"{entry['sample_id']}/{number}",
                text=str(item["question"]),
                type=category,
                turns=evidence,
                sessions=tuple(dict.fromkeys(sessions[turn] for turn in evidence)),
                is_counted=category != "adversarial",
            )
        )
    # The file does not say when its questions are asked; they speak of all of the conversation as past.
    last = max((turn.at for turn in turns if turn.at is not None), default=None)
    asked_at = None if last is None else last + DAY_S
    return Dialogue(str(entry["sample_id"]), turns, tuple(questions), repaired, unknown, asked_at)


def _spoken(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [{caption}]" if caption else "")


def _evidence(pieces: Sequence[str], known: Mapping[str, str]) -> tuple[tuple[str, ...], int, int]:
    """Return the known turns that the pieces name, how many pieces were malformed, how many names were unknown."""
    turns: dict[str, None] = {}
    repaired = unknown = 0
    for piece in pieces:
        named = [f"D{int(session)}:{int(turn)}" for session, turn in _TURN.findall(piece)]
        found = [turn for turn in named if turn in known]
        repaired += bool(found) and named != [piece]
        unknown += max(len(named), 1) - len(found)
        turns.update(dict.fromkeys(found))
    return tuple(turns), repaired, unknown


def _locomo_time(text: str) -> float | None:
    """Read "1:56 pm on 8 May, 2023" as UTC; None for anything else."""
    try:
        return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _longmemeval(entry: Mapping[str, Any]) -> Dialogue:
    turns, evidence = [], []
    dates = entry.get("haystack_dates") or []
    names = [str(name) for name in entry["haystack_session_ids"]]
    for place, (name, session) in enumerate(zip(names, entry["haystack_sessions"], strict=True)):
        at = _longmemeval_time(dates[place]) if place < len(dates) else None
        for number, turn in enumerate(session):
            # The place comes first because one session may stand twice in a haystack.
            id_ = f"{place}:{name}:{number}"
            turns.append(Document(id_, f"{turn['role']}: {turn['content']}", session=name, at=at))
            if turn.get("has_answer"):
                evidence.append(id_)
    answers = [str(name) for name in entry["answer_session_ids"]]
    known = set(names)
    id_ = str(entry["question_id"])
    # Questions that cannot be answered from the haystack carry this mark; there is nothing to find for them.
    is_abstention = id_.endswith("_abs")
    question = Question(
        id=id_,
        text=str(entry["question"]),
        type="abstention" if is_abstention else str(entry["question_type"]),
        turns=tuple(evidence),
        sessions=tuple(dict.fromkeys(name for name in answers if name in known)),
        is_counted=not is_abstention,
    )
    unknown = sum(name not in known for name in answers)
    asked_at = _longmemeval_time(entry.get("question_date", ""))
    return Dialogue(id_, tuple(turns), (question,), 0, unknown, asked_at)


def _longmemeval_time(text: str) -> float | None:
    """Read "2023/05/20 (Sat) 02:21" as UTC; None for anything else."""
    numbers = [int(number) for number in _NUMBERS.findall(str(text))]
    try:
        year, month, day, hour, minute = numbers
        return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()
    except ValueError:
        return None


FORMATS: Mapping[str, Callable[[Mapping[str, Any]], Dialogue]] = {"locomo": _locomo, "longmemeval": _longmemeval}
