"""Measure how well two memories alone tell that one overtakes the other: chosen on some people, shown on the others.

True is that a question's newest relevant memories overtake its stale ones; all other pairs of a person are not, but for
those that a file of further pairs names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.output import FILE, json_option, show
from commonplace.benchmarks.data import Person, read_people, read_talk
from commonplace.benchmarks.harness import describe
from commonplace.errors import UsageError
from commonplace.models.contract import TokenizedText
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.search.rank import COMPETING
from commonplace.search.supersession import Statements, Wordings, judge

PRECISION: Final = 0.85
OTHERS: Final = 1_000
Judged = tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]
"""Values of all pairs of a person, n × n, which of them are true, and which count as neither."""


def run(memories: Path, questions: Path, *, further: Path | None = None, talk: Path | None = None) -> dict[str, Any]:
    """Judge all pairs of each person, and the turns of a talk as if one was said each day; return the figures.

    Raises:
        UsageError: a file is wrong.
    """
    people = read_people(memories, questions)
    named = _named(further)
    judged = [_judged(person, named) for person in people]
    others = [] if talk is None else list(islice(read_talk(talk), OTHERS))
    values = judge(statements(others, list(range(len(others))))) if others else np.empty((0, 0), np.float32)
    halves = [(judged[start::2], judged[1 - start :: 2]) for start in (0, 1)]
    return {
        "benchmark": "supersession",
        "machine": describe(),
        "people": len(people),
        "true_pairs": sum(int(true.sum()) for _, true, _ in judged),
        "asked": asked(judged),
        "halves": [held_out(chosen, rest, values) for chosen, rest in halves if chosen and rest],
    }


def held_out(chosen: Sequence[Judged], rest: Sequence[Judged], talk: NDArray[np.float32]) -> dict[str, float]:
    """Return what the least value from which on so many of the chosen are right does to the rest, and to talk."""
    values, true = _counted(chosen)
    order = np.argsort(-values, kind="stable")
    right = np.flatnonzero(np.cumsum(true[order]) / np.arange(1, len(order) + 1) >= PRECISION)
    cut = float(values[order[right[-1]]]) if len(right) else float("inf")
    values, true = _counted(rest)
    flagged = values >= cut
    return {
        "from": round(cut, 3),
        "precision": round(float(true[flagged].mean()), 3) if flagged.any() else 0.0,
        "recall": round(float(true[flagged].sum() / max(1, true.sum())), 3),
        "flags_per_100_turns": round(100 * float((talk >= cut).sum()) / max(1, len(talk)), 2),
    }


def _counted(people: Sequence[Judged]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    values, true = ([each[place][~each[2]] for each in people] for place in (0, 1))
    return np.concatenate(values), np.concatenate(true)


def asked(people: Sequence[Judged]) -> dict[str, float]:
    """Return about how many overtaken memories `commonplace review` asks, of how many, and how often in vain."""
    right = overtaken = wrong = 0
    for values, true, left in people:
        newer = values.argmax(axis=1)
        rows = np.arange(len(values))
        is_asked = (values[rows, newer] >= COMPETING) & ~left[rows, newer]
        right += int((is_asked & true[rows, newer]).sum())
        wrong += int((is_asked & ~true[rows, newer]).sum())
        overtaken += int(true.any(axis=1).sum())
    return {"overtaken": overtaken, "asked": right, "in_vain_per_person": round(wrong / max(1, len(people)), 2)}


def statements(texts: Sequence[str], times: Sequence[float]) -> Statements:
    """Return memories as they are judged."""
    tokens = StaticEmbedder.load()
    tokenized = [TokenizedText(text, tokens.tokenize(text)) for text in texts]
    return Wordings(tokens.tokenize).statements(
        np.concatenate([each.token_ids for each in tokenized]),
        np.array([len(each.token_ids) for each in tokenized]),
        times=np.array(times, dtype=np.float64),
        stored=np.zeros(len(texts)),
        sessions=[""] * len(texts),
        vectors=MinilmEmbedder.load().embed(tokenized),
    )


def _judged(person: Person, named: Mapping[str, Sequence[Sequence[str]]]) -> Judged:
    kept = person.memories
    times = [datetime.fromisoformat(each["at"]).replace(tzinfo=UTC).timestamp() for each in kept]
    values = judge(statements([each["content"] for each in kept], times))
    place = {each["id"]: number for number, each in enumerate(kept)}
    true, left = np.zeros_like(values, dtype=np.bool_), np.zeros_like(values, dtype=np.bool_)
    pairs = [(newer, older) for each in person.questions for newer in each.relevant for older in each.stale]
    for marks, some in ((true, [*pairs, *named.get("supersedes", ())]), (left, named.get("artefacts", ()))):
        for newer, older, *_ in some:
            if newer in place and older in place:
                marks[place[older], place[newer]] = True
    return values, true, left


def _named(path: Path | None) -> Mapping[str, Sequence[Sequence[str]]]:
    """Return the lists [newer, older, why] of a file: "supersedes" are true, "artefacts" count as neither."""
    try:
        found: Any = {} if path is None else json.loads(path.read_text("utf-8"))
        return {name: found.get(name, []) for name in ("supersedes", "artefacts")}
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="name a file with one JSON object") from error


@click.command()
@click.argument("memories", type=FILE)
@click.argument("questions", type=FILE)
@click.option("--further", type=FILE, help="JSON with lists of [newer, older, why]: supersedes, artefacts.")
@click.option("--talk", type=FILE, help="Judge 1,000 turns of this talk too.")
@json_option
def main(*, as_json: bool, memories: Path, questions: Path, further: Path | None, talk: Path | None) -> None:
    """Measure how well two memories alone tell that one overtakes the other.

    MEMORIES and QUESTIONS are those of `commonplace benchmark recall`. The cut is chosen on every second person, for a
    precision of 0.85, and shown on the others.
    """
    show(lambda: run(memories, questions, further=further, talk=talk), as_json=as_json)


if __name__ == "__main__":
    main()
