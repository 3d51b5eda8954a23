"""Questions that nothing answers: read from a file or made of a corpus' words, and what becomes of them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from commonplace.benchmarks.measures import Judged, Reliability, answered_with_nothing, kept, mean
from commonplace.errors import UsageError

GRID: tuple[float, ...] = tuple(step / 20 for step in range(1, 20))
"""The thresholds of the curve."""

_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_WORDS, _MOST_WORDS = 4, 10


def read_unanswerable(path: Path) -> list[str]:
    """Return the questions of a file, one a line: JSON objects {query}, or the question itself.

    Raises:
        UsageError: it cannot be read, holds none, or a line that begins as JSON is not such an object.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="name a readable file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 ({error})", remedy="give text in UTF-8") from error
    questions = [_question(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not questions:
        raise UsageError(f"{path} holds no question", remedy="give one question a line")
    return questions


def _question(line: str, place: str) -> str:
    if not line.lstrip().startswith("{"):
        return line.strip()
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{place} is not JSON ({error})", remedy='give {"query": …} or the plain question') from error
    text = row.get("query")
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{place} has `query` {text!r:.80}", remedy="give a question")
    return text


def words_of(texts: Iterable[str]) -> set[str]:
    """Return the words of the texts, in lower case: of letters alone, two at least."""
    return {word for text in texts for word in _WORD.findall(text.lower())}


def word_salad(words: Collection[str], count: int, seed: int) -> list[str]:
    """Return so many questions of four to ten words each, drawn evenly; the same for the same words and seed.

    Raises:
        UsageError: there are no words.
    """
    if not words:
        raise UsageError("there are no words to make questions of", remedy="give a corpus with texts")
    ordered, chance = sorted(words), random.Random(seed)  # noqa: S311 - a sample, no secret
    return [" ".join(chance.choices(ordered, k=chance.randint(_LEAST_WORDS, _MOST_WORDS))) for _ in range(count)]


def curve(answerable: Collection[Judged], unanswerable: Collection[Judged]) -> dict[str, float]:
    """Return by threshold how many first relevant hits stay, and how many unanswerable questions get nothing."""
    return {
        **{f"first@{value:g}": round(kept(answerable, value).first, 4) for value in GRID},
        **{f"nothing@{value:g}": round(answered_with_nothing(unanswerable, value), 4) for value in GRID},
    }


def lost(best: Sequence[str | None], left: Sequence[Collection[str]]) -> float:
    """Return the share of questions whose best relevant hit a cut takes away, of those that have one.

    Args:
        best: the best relevant hit of each question without a cut, None where it has none.
        left: what the cut leaves of the hits of each.
    """
    pairs = [(id_, hits) for id_, hits in zip(best, left, strict=True) if id_ is not None]
    return mean([float(id_ not in hits) for id_, hits in pairs])


def reliability_json(found: Reliability) -> Mapping[str, Any]:
    """Return the JSON form."""
    return {
        "hits": sum(each.hits for each in found.bins),
        "ece": round(found.ece, 4),
        "brier": round(found.brier, 4),
        "brier_constant": round(found.constant, 4),
        "bins": [
            {
                "from": round(each.low, 4),
                "to": round(each.high, 4),
                "hits": each.hits,
                "said": round(each.said, 4),
                "relevant": round(each.relevant, 4),
            }
            for each in found.bins
        ],
    }
