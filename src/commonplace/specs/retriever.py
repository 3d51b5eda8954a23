"""Extra rules for memory-retriever tasks: selected turns must be candidates, within the limit and in order.

A task is a retriever if its inputs are `query` and `candidates`, its outputs `history` and `memory_count`.
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
"""Default of `top_k`, which the contract states in prose."""
MIN_RELEVANCE: Final = 0.3
"""Minimum score of a turn by our own re-ranker, 0–1: the memory specialist's default. If no turn reaches it, the
message is about something else."""
MAX_NEAR_TURNS: Final = 50
"""Number of turns, those nearest to the whole message, that its single sentences are compared with."""

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
    args, results = task.input.get("properties", {}), task.output.get("properties", {})
    return not task.is_text and {"query", "candidates"} <= args.keys() and {"history", "memory_count"} <= results.keys()


def needs_no_call(values: Mapping[str, Any]) -> bool:
    """Return whether the output is certain to be empty, so that no model is needed."""
    return not values["candidates"] or _limit(values) == 0


def retriever_output(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the output with these turns."""
    history = [{"role": turn["role"], "content": turn["content"]} for turn in turns]
    return {"history": history, "memory_count": len(history)}


def rank(reranker: Reranker, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the output by a re-ranker: the best candidates among those that are relevant enough.

    No single turn answers all of a long message. If none is relevant to the whole message, each sentence is a query.
    """
    candidates, limit = values["candidates"], _limit(values)
    texts = [candidate["content"] for candidate in candidates]

    results = reranker.rerank(values["query"], texts, max(limit, MAX_NEAR_TURNS))
    scores = {result.index: result.score for result in results if result.score >= MIN_RELEVANCE}
    near = [result.index for result in results]
    sentences: list[str] = []
    if not scores:
        # Split wherever a sentence may end: a needless split does no harm, and no question hides behind templates or
        # code. Short parts such as greetings are left out; of too many, the last are used.
        message = values["query"]
        parts = [part for part in _ENDS.split(message[-_MAX_LENGTH:].strip()) if len(part.split()) >= _MIN_WORDS]
        sentences = [part for part in parts if part != message.strip()][-_MAX_SENTENCES:]
    for sentence in sentences:
        for result in reranker.rerank(sentence, [texts[index] for index in near], limit):
            if result.score >= MIN_RELEVANCE:
                scores[near[result.index]] = max(result.score, scores.get(near[result.index], 0.0))
    chosen = sorted(scores, key=lambda index: (-scores[index], index))[:limit]
    return retriever_output([candidates[index] for index in _oldest_first(chosen, candidates)])


def repair(task: Task, output: object, values: Mapping[str, Any]) -> object:
    """Return a model's output with order, length and count corrected; refuse a turn that is none of the candidates.

    Of too many turns the first are kept; surplus copies of a candidate are dropped. A turn that matches exactly one
    candidate except for blanks, quotes or dashes becomes that candidate.
    """
    history = output.get("history") if isinstance(output, Mapping) else None
    if not isinstance(history, list):
        return output
    candidates = values["candidates"]
    indices: dict[tuple[object, object], list[int]] = {}
    for index, candidate in enumerate(candidates):
        indices.setdefault((candidate["role"], candidate["content"]), []).append(index)
    alike: dict[tuple[object, object], list[tuple[object, object]]] = {}
    for role, content in indices:
        alike.setdefault((role, _plain(content)), []).append((role, content))
    chosen: list[int] = []
    for number, turn in enumerate(history):
        key: tuple[object, object] = (None, None)
        if isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str):
            key = turn["role"], turn["content"]
        if key not in indices:
            near = alike.get((key[0], _plain(key[1])), [])
            key = near[0] if len(near) == 1 else key
        if key not in indices:
            message = f"history[{number}] of the answer is none of the candidates; a model cannot invent history"
            raise SpecError(message, "OUTPUT_SCHEMA_ERROR", "output_validation", task.name)
        if indices[key]:
            chosen.append(indices[key].pop(0))
    kept_indices = _oldest_first(chosen[: _limit(values)], candidates)
    return retriever_output([candidates[index] for index in kept_indices])


def _plain(content: object) -> str:
    """Return a text as models tend to repeat it: straight quotes and dashes, single blanks, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", str(content)).translate(_STRAIGHT).split())


def _limit(values: Mapping[str, Any]) -> int:
    return max(0, int(values.get("top_k", DEFAULT_TOP_K)))


def _oldest_first(indices: Sequence[int], candidates: Sequence[Mapping[str, Any]]) -> list[int]:
    """Sort indices by their candidates' timestamps if all are readable, else in ascending order.

    A timestamp is in seconds since the epoch, or a time text, which is UTC without a zone.
    """
    times: dict[int, float] = {}
    for index in indices:
        timestamp = candidates[index].get("timestamp")
        with suppress(ValueError, OverflowError):
            if isinstance(timestamp, int | float) and not isinstance(timestamp, bool):
                times[index] = float(timestamp)
            elif isinstance(timestamp, str) and (moment := parse(timestamp)) is not None:
                times[index] = moment
    return sorted(indices, key=lambda index: (times[index], index) if len(times) == len(indices) else (0.0, index))
