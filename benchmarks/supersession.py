"""Measure how well two memories alone tell that one overtakes the other: chosen on some people, shown on the others.

True is that a question's newest relevant memories overtake its stale ones; all other pairs of a person are not, but for
those that a file of further pairs names. What is flagged of other talk in the same store is counted by itself.
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
from commonplace.dataclasses import dataclass
from commonplace.errors import UsageError
from commonplace.memory.supersession import COMPETING, SETTLING, StatementBatch, Wordings, judge, read
from commonplace.models.contract import TokenizedText
from commonplace.models.cross_encoder import CrossEncoder
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.static import StaticEmbedder

PRECISION: Final = 0.85
OTHERS: Final = 1_000
AROUND: Final = 40
"""Each family of statements is judged among the facts of so many others."""
_MARKS: Final = {"n": "newer", "q": "newer, of health, access or money", "x": "near"}
_WORDS: Final = {"{N}": "Priya", "{M}": "Jonas", "{C}": "Leeds", "{D}": "Porto"}


@dataclass(frozen=True, slots=True)
class Judged:
    """The pairs of one store, as rows that a column may overtake.

    Attributes:
        values: of all pairs, float32, shape (n, n).
        true: which of them are; bool, shape (n, n).
        left: which count as neither; bool, shape (n, n).
        turns: the last so many rows and columns are of other talk.
    """

    values: NDArray[np.float32]
    true: NDArray[np.bool_]
    left: NDArray[np.bool_]
    turns: int = 0

    def counted(self) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32]]:
        """Return the values of the pairs of memories that count, which of them are true, and values with other talk."""
        is_turn = np.arange(len(self.values)) >= len(self.values) - self.turns
        with_turn = is_turn | is_turn[:, np.newaxis]
        counts = ~self.left & ~with_turn
        return self.values[counts], self.true[counts], self.values[with_turn]


@dataclass(frozen=True, slots=True)
class Kept:
    """What one store holds, in the order of its times.

    Attributes:
        memories: each an id, a time as ISO 8601 and a content.
        true: ids, the newer one first.
        left: the same, of pairs that count as neither.
        chatter: other talk in it.
    """

    memories: Sequence[Mapping[str, str]]
    true: Sequence[Sequence[str]]
    left: Sequence[Sequence[str]]
    chatter: Sequence[str] = ()


def run(
    memories: Path,
    questions: Path,
    *,
    further: Path | None = None,
    talk: Path | None = None,
    mixed: Path | None = None,
    families: Path | None = None,
) -> dict[str, Any]:
    """Judge all pairs of each person, alone and beside turns of a talk, and those of mixed stores; return the figures.

    Raises:
        UsageError: a file is wrong.
    """
    further_pairs = _read(further, {})
    people = [_kept(person, further_pairs) for person in read_people(memories, questions)]
    turns = [] if talk is None else list(islice(read_talk(talk), OTHERS))
    reader = Reader()
    judged = [reader.judged(store) for store in people]
    result = {
        "benchmark": "supersession",
        "machine": describe(),
        "people": len(people),
        "true_pairs": sum(int(store.true.sum()) for store in judged),
        "asked": question_figures(judged),
        "halves": _halves(judged),
        "sure": pair_figures(judged, SETTLING),
    }
    if turns:
        beside = [reader.judged(store, turns) for store in people]
        result |= {"beside_talk": _halves(beside), "sure_beside_talk": pair_figures(beside, SETTLING)}
    stores = [Kept(row["memories"], row["supersedes"], row["unclear"], row["chatter"]) for row in _read(mixed, [])]
    if stores:
        beside_stores = [reader.judged(store, turns[offset :: len(stores)]) for offset, store in enumerate(stores)]
        result |= {"mixed_asked": question_figures(beside_stores), "mixed": pair_figures(beside_stores, SETTLING)}
    if families is not None:
        result["families"] = of_families(families.read_text("utf-8"), reader)
    return result


def of_families(text: str, reader: Reader) -> dict[str, dict[str, int]]:
    """Return of how many statements it is sure, or may be asked, that they overtake an older one of their family.

    Args:
        text: families with an empty line between them; a line is a mark, a colon and a statement, see the README.
    """
    for mark, word in _WORDS.items():
        text = text.replace(mark, word)
    families = [
        [(mark, statement) for mark, _, statement in (line.partition(": ") for line in family.splitlines())]
        for family in text.strip().split("\n\n")
    ]
    counts = {name: {"statements": 0, "sure": 0, "asked": 0} for name in _MARKS.values()}
    for number, family in enumerate(families):
        around = [families[(number + step) % len(families)][0][1] for step in range(1, min(AROUND, len(families)))]
        older = [statement for mark, statement in family if mark == "o"]
        for mark, statement in family:
            if mark in _MARKS:
                times = np.arange(len(older) + len(around) + 1) * 86_400.0
                values = reader.values([*older, *around, statement], times.tolist())[: len(older), -1]
                counted = counts[_MARKS[mark]]
                counted["statements"] += 1
                counted["sure"] += int(values.max() >= SETTLING)
                counted["asked"] += int(values.max() >= COMPETING)
    return counts


def _halves(stores: Sequence[Judged]) -> list[dict[str, float]]:
    halves = [(stores[start::2], stores[1 - start :: 2]) for start in (0, 1)]
    return [held_out(chosen, others) for chosen, others in halves if chosen and others]


def held_out(chosen: Sequence[Judged], others: Sequence[Judged]) -> dict[str, float]:
    """Return what the least value from which on so many of the chosen are right does to the rest."""
    values, true, _ = _counted(chosen)
    order = np.argsort(-values, kind="stable")
    right = np.flatnonzero(np.cumsum(true[order]) / np.arange(1, len(order) + 1) >= PRECISION)
    return pair_figures(others, float(values[order[right[-1]]]) if len(right) else float("inf"))


def pair_figures(stores: Sequence[Judged], cut: float) -> dict[str, float]:
    """Return how many pairs of some stores are flagged from a value on, and how many of those are right."""
    values, true, talk = _counted(stores)
    flagged = values >= cut
    turns = sum(store.turns for store in stores)
    return {
        "from": round(cut, 3),
        "precision": round(float(true[flagged].mean()), 3) if flagged.any() else 0.0,
        "recall": round(float(true[flagged].sum() / max(1, true.sum())), 3),
        "flags_per_100_turns": round(100 * float((talk >= cut).sum()) / max(1, turns), 2),
    }


def _counted(stores: Sequence[Judged]) -> list[NDArray[Any]]:
    return [np.concatenate(arrays) for arrays in zip(*(store.counted() for store in stores), strict=True)]


def question_figures(stores: Sequence[Judged]) -> dict[str, float]:
    """Return about how many overtaken memories `commonplace review` asks, of how many, and how often in vain."""
    right = overtaken = wrong = 0
    for store in stores:
        newer = store.values.argmax(axis=1)
        rows = np.arange(len(store.values))
        is_asked = (store.values[rows, newer] >= COMPETING) & ~store.left[rows, newer]
        right += int((is_asked & store.true[rows, newer]).sum())
        wrong += int((is_asked & ~store.true[rows, newer]).sum())
        overtaken += int(store.true.any(axis=1).sum())
    return {"overtaken": overtaken, "asked": right, "in_vain_per_person": round(wrong / max(1, len(stores)), 2)}


class Reader:
    """Judges what stores hold; embeds each text once."""

    def __init__(self) -> None:
        self._tokens, self._embedder, self._pairs = StaticEmbedder.load(), MinilmEmbedder.load(), CrossEncoder.load()
        self._wordings = Wordings(self._tokens)
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def judged(self, store: Kept, turns: Sequence[str] = ()) -> Judged:
        """Judge all pairs of a store, in which turns of other talk were spread over the same time."""
        turns = [*store.chatter, *turns]
        times = [datetime.fromisoformat(memory["at"]).replace(tzinfo=UTC).timestamp() for memory in store.memories]
        between = np.linspace(min(times), max(times), len(turns) + 2)[1:-1].tolist()
        values = self.values([*(memory["content"] for memory in store.memories), *turns], [*times, *between])
        row_of = {memory["id"]: number for number, memory in enumerate(store.memories)}
        true, left = np.zeros_like(values, dtype=np.bool_), np.zeros_like(values, dtype=np.bool_)
        for marks, pairs in ((true, store.true), (left, store.left)):
            for newer, older, *_ in pairs:
                if newer in row_of and older in row_of:
                    marks[row_of[older], row_of[newer]] = True
        return Judged(values, true, left, len(turns))

    def values(self, texts: Sequence[str], times: Sequence[float]) -> NDArray[np.float32]:
        """Return how much tells that a column's memory overtakes a row's, float32, shape (n, n)."""
        batch = self.statements(texts, times)
        judged = judge(batch, is_read=True)
        return read(batch, judged, [self._tokens.tokenize(text) for text in texts], self._pairs.log_odds).values

    def statements(self, texts: Sequence[str], times: Sequence[float]) -> StatementBatch:
        """Return memories as they are judged."""
        tokenized = [TokenizedText(text, self._tokens.tokenize(text)) for text in texts]
        new = [entry for entry in tokenized if entry.text not in self._vectors]
        if new:
            self._vectors.update(zip((entry.text for entry in new), self._embedder.embed(new), strict=True))
        return self._wordings.statements(
            np.concatenate([entry.token_ids for entry in tokenized]),
            np.array([len(entry.token_ids) for entry in tokenized]),
            times=np.array(times, dtype=np.float64),
            stored=np.zeros(len(texts)),
            sessions=[""] * len(texts),
            vectors=np.array([self._vectors[text] for text in texts]),
        )


def _kept(person: Person, further_pairs: Mapping[str, Sequence[Sequence[str]]]) -> Kept:
    pairs = [(newer, older) for question in person.questions for newer in question.relevant for older in question.stale]
    return Kept(person.memories, [*pairs, *further_pairs.get("supersedes", ())], further_pairs.get("artefacts", ()))


def _read(path: Path | None, empty: Any) -> Any:
    """Return what a file of JSON holds, of the type of `empty`."""
    try:
        value = empty if path is None else json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="name a file of JSON") from error
    if not isinstance(value, type(empty)):
        raise UsageError(f"{path} cannot be read: it is no {type(empty).__name__}", remedy="name another file of JSON")
    return value


@click.command()
@click.argument("memories", type=FILE)
@click.argument("questions", type=FILE)
@click.option("--further", type=FILE, help="JSON with lists of [newer, older, why]: supersedes, artefacts.")
@click.option("--talk", type=FILE, help="Judge beside 1,000 turns of this talk too.")
@click.option("--mixed", type=FILE, help="Judge stores of several people too, as in benchmarks/mixed_memories.json.")
@click.option("--families", type=FILE, help="Judge families of statements too, as in benchmarks/statements.txt.")
@json_option
def main(*, as_json: bool, memories: Path, questions: Path, **files: Path | None) -> None:
    """Measure how well two memories alone tell that one overtakes the other.

    MEMORIES and QUESTIONS are those of `commonplace benchmark recall`. The cut is chosen on every second person, for a
    precision of 0.85, and shown on the others; that of all people is shown on mixed stores.
    """
    show(lambda: run(memories, questions, **files), as_json=as_json)


if __name__ == "__main__":
    main()
