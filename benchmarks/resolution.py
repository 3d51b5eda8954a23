"""Measure which names a graph takes for one thing, against what people say: pairs of names joined, and not.

A file holds JSON lines {set, type, names}, one for each thing: the names that it has in one text. The names of a set
are given one after the other to a graph that knows none, first those that stand first in their lines, then the second
ones, and so on. A pair of names of a set that ended as one entity is right where both stand in one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from benchmarks.output import FILE, json_option, show
from commonplace.benchmarks.harness import describe
from commonplace.errors import UsageError
from commonplace.graph.entities import Entities
from commonplace.graph.kinds import Kinds
from commonplace.graph.runtime import GraphRuntime, Texts
from commonplace.ingest.passages import Destination
from commonplace.store.store import Store
from commonplace.types import Progress
from commonplace.types.graph import ENTITY_TYPES, Episode

if TYPE_CHECKING:
    from commonplace.models.static import StaticEmbedder

_NAMESPACE: Final = "default"
_EPISODE: Final = Episode("names", "", 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ResolutionOptions:
    """What to measure: the file of names."""

    file: Path


@dataclass(frozen=True, slots=True)
class Thing:
    """What has some names in one text; `among` is that text."""

    among: str
    type: str
    names: tuple[str, ...]


def run(options: ResolutionOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Resolve the names of each set, compare, and return the JSON form of it.

    Raises:
        UsageError: the file cannot be read, or is not of the form.
    """
    from commonplace.models.static import StaticEmbedder

    things = list(read_names(options.file))
    sets = list(dict.fromkeys(thing.among for thing in things))
    embedder = StaticEmbedder.load()
    wrong: list[dict[str, str]] = []
    missed: list[dict[str, str]] = []
    right = same = pairs = 0
    for number, among in enumerate(sets):
        some = [thing for thing in things if thing.among == among]
        joined = _joined(some, embedder)
        meant = {pair for thing in some for pair in combinations(((thing.type, name) for name in thing.names), 2)}
        right, same = right + len(joined & meant), same + len(meant)
        pairs += comb(sum(len(thing.names) for thing in some), 2)
        wrong += [_shown(among, pair) for pair in sorted(joined - meant)]
        missed += [_shown(among, pair) for pair in sorted(meant - joined)]
        if progress is not None:
            progress("resolving", number + 1, len(sets))
    precision, recall = right / (right + len(wrong)) if right + len(wrong) else 0.0, right / same if same else 0.0
    return {
        "benchmark": "resolution",
        "machine": describe(),
        "names": sum(len(thing.names) for thing in things),
        "things": len(things),
        "pairs": pairs,
        "same_pairs": same,
        "joined_pairs": right + len(wrong),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "wrong": wrong,
        "missed": missed,
    }


def read_names(path: Path) -> Iterator[Thing]:
    """Yield the things of a file.

    Raises:
        UsageError: it cannot be read, or a line is not of the form.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="name a file of JSON lines") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
            thing = Thing(given["set"], given["type"], tuple(given["names"]))
        except (ValueError, TypeError, KeyError) as error:
            raise _unfit(path, number) from error
        texts = (thing.among, thing.type, *thing.names)
        if not thing.names or not all(isinstance(each, str) and each.strip() for each in texts):
            raise _unfit(path, number)
        if thing.type not in ENTITY_TYPES:
            raise UsageError(f"{path}:{number} has the type {thing.type!r:.40}", remedy="use one of ours")
        yield thing


Name = tuple[str, str]
"""A type and a name of it."""


def _joined(things: Sequence[Thing], embedder: StaticEmbedder) -> set[tuple[Name, Name]]:
    """Return the pairs of names that a graph takes for names of one thing, each in the order of the file."""
    store = Store.in_memory()
    store.set_embedding(embedder.stamp)

    ground = GraphRuntime(Texts(Destination(store, embedder, embedder.tokenize, _NAMESPACE)), Kinds(), lambda: 0.0)
    meant: dict[Name, str] = {}
    with store.change_memories(_NAMESPACE) as change:
        entities = Entities(change.graph, ground)
        for round_ in zip_longest(*(thing.names for thing in things)):
            for thing, name in zip(things, round_, strict=True):
                if name is not None:
                    meant[thing.type, name] = entities.of_name(name, thing.type, _EPISODE).id
    order = [(thing.type, name) for thing in things for name in thing.names]
    return {(one, other) for one, other in combinations(order, 2) if meant[one] == meant[other]}


def _shown(among: str, pair: tuple[Name, Name]) -> dict[str, str]:
    (type_, one), (other_type, other) = pair
    return {"set": among, "one": f"{one} ({type_})", "other": f"{other} ({other_type})"}


def _unfit(path: Path, number: int) -> UsageError:
    return UsageError(
        f"{path}:{number} is not of the form", remedy='write {"set": "…", "type": "person", "names": ["…", "…"]}'
    )


@click.command()
@click.argument("file", type=FILE)
@json_option
def main(*, as_json: bool, file: Path) -> None:
    """Measure which names are taken for one thing.

    FILE holds JSON lines {set, type, names}, one for each thing. Prints precision and recall of pairs of names, and
    those that were joined wrongly, or not.
    """
    show(lambda: run(ResolutionOptions(file)), as_json=as_json)


if __name__ == "__main__":
    main()
