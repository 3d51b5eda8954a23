"""Extra rules for memory-retriever tasks: selected turns must be candidates, within the limit and in order.

A task is one if it takes `query` and `candidates` and gives `history` and `memory_count`, whatever it is called.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from commonplace.dates.time import parse
from commonplace.models.contract import Reranker
from commonplace.specs.document import SpecError, Task

DEFAULT_TOP_K: Final = 5
"""The contract says so in prose."""
RELEVANT: Final = 0.3
"""What our own re-ranker must find in a turn, 0–1: what the memory specialist asks for where nothing is said. Where no
turn has so much, the message is about something else."""
NEAREST: Final = 50
"""How many turns the sentences of a long message are compared with: those nearest to the whole message."""

_STRAIGHT: Final = str.maketrans(
    dict.fromkeys("‘’‚‛′`´", "'") | dict.fromkeys("“”„‟″«»", '"') | dict.fromkeys("‐‑‒–—―−", "-") | {"…": "..."}
)

_ENDS: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_MIN_WORDS, _MAX_SENTENCES, _MAX_LENGTH = 3, 8, 10_000

TURN: Final = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"enum": ["user", "assistant"]}, "content": {"type": "string"}},
}
INPUT: Final = {
    "required": ["query", "candidates"],
    "properties": {
        "query": {"type": "string"},
        "candidates": {"type": "array", "items": TURN},
        "top_k": {"type": "integer"},
    },
}


def is_retriever(task: Task) -> bool:
    """Return whether a task re-ranks candidate turns."""
    taken, given = task.input.get("properties", {}), task.output.get("properties", {})
    return not task.is_text and {"query", "candidates"} <= taken.keys() and {"history", "memory_count"} <= given.keys()


def needs_no_call(values: Mapping[str, Any]) -> bool:
    """Return whether the answer is known to be empty."""
    return not values["candidates"] or _limit(values) == 0


def retrieved(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the output that holds these turns."""
    history = [{"role": turn["role"], "content": turn["content"]} for turn in turns]
    return {"history": history, "memory_count": len(history)}


def rank(reranker: Reranker, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the output that a re-ranker gives: the best of the candidates that are relevant enough.

    A long message is answered whole by no turn. Where none is relevant to all of it, its sentences are asked singly.
    """
    candidates, limit = values["candidates"], _limit(values)
    texts = [candidate["content"] for candidate in candidates]

    found = reranker.rerank(values["query"], texts, max(limit, NEAREST))
    scores = {result.index: result.score for result in found if result.score >= RELEVANT}
    near = [result.index for result in found]
    sentences: list[str] = []
    if not scores:
        # Cut wherever one may end: a part too many only asks for nothing, and templates or code in a line hide no
        # question. Greetings and the like are left out, and of very many the last are asked.
        message = values["query"]
        parts = [part for part in _ENDS.split(message[-_MAX_LENGTH:].strip()) if len(part.split()) >= _MIN_WORDS]
        sentences = [part for part in parts if part != message.strip()][-_MAX_SENTENCES:]
    for sentence in sentences:
        for result in reranker.rerank(sentence, [texts[place] for place in near], limit):
            if result.score >= RELEVANT:
                scores[near[result.index]] = max(result.score, scores.get(near[result.index], 0.0))
    chosen = sorted(scores, key=lambda place: (-scores[place], place))[:limit]
    return retrieved([candidates[place] for place in _oldest_first(chosen, candidates)])


def repair(task: Task, output: object, values: Mapping[str, Any]) -> object:
    """Return a model's output with its order, length and count put right.

    Of too many turns the first are kept; a turn given more often than it was a candidate is given as often. A turn that
    differs from one candidate alone, and from that only in blanks, quotes or dashes, is that candidate, in its words.
    """
    history = output.get("history") if isinstance(output, Mapping) else None
    if not isinstance(history, list):
        return output
    candidates = values["candidates"]
    places: dict[tuple[object, object], list[int]] = {}
    for place, candidate in enumerate(candidates):
        places.setdefault((candidate["role"], candidate["content"]), []).append(place)
    alike: dict[tuple[object, object], list[tuple[object, object]]] = {}
    for role, content in places:
        alike.setdefault((role, _plain(content)), []).append((role, content))
    chosen: list[int] = []
    for number, turn in enumerate(history):
        key: tuple[object, object] = (None, None)
        if isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str):
            key = turn["role"], turn["content"]
        if key not in places:
            near = alike.get((key[0], _plain(key[1])), [])
            key = near[0] if len(near) == 1 else key
        if key not in places:
            message = f"history[{number}] of the answer is none of the candidates; a model cannot invent history"
            raise SpecError(message, "OUTPUT_SCHEMA_ERROR", "output_validation", task.name)
        if places[key]:
            chosen.append(places[key].pop(0))
    kept = _oldest_first(chosen[: _limit(values)], candidates)
    return retrieved([candidates[place] for place in kept])


def _plain(content: object) -> str:
    """Return a text as models like to write it again: quotes and dashes straight, blanks single, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", str(content)).translate(_STRAIGHT).split())


def _limit(values: Mapping[str, Any]) -> int:
    return max(0, int(values.get("top_k", DEFAULT_TOP_K)))


def _oldest_first(places: Sequence[int], candidates: Sequence[Mapping[str, Any]]) -> list[int]:
    """Order places by their candidates' timestamps if all have one that can be read, else as they came.

    A timestamp is a number of seconds since the epoch, or a time, which without a zone is UTC.
    """
    times: dict[int, float] = {}
    for place in places:
        timestamp = candidates[place].get("timestamp")
        with suppress(ValueError, OverflowError):
            if isinstance(timestamp, int | float) and not isinstance(timestamp, bool):
                times[place] = float(timestamp)
            elif isinstance(timestamp, str) and (moment := parse(timestamp)) is not None:
                times[place] = moment
    return sorted(places, key=lambda place: (times[place], place) if len(times) == len(places) else (0.0, place))
