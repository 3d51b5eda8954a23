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
class NamedEntity:
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

    entities = list(read_names(options.file))
    sets = list(dict.fromkeys(entity.among for entity in entities))
    embedder = StaticEmbedder.load()
    wrong: list[dict[str, str]] = []
    missed: list[dict[str, str]] = []
    right = same = pairs = 0
    for number, among in enumerate(sets):
        members = [entity for entity in entities if entity.among == among]
        joined = _joined(members, embedder)
        truth = {pair for entity in members for pair in combinations(((entity.type, name) for name in entity.names), 2)}
        right, same = right + len(joined & truth), same + len(truth)
        pairs += comb(sum(len(entity.names) for entity in members), 2)
        wrong += [_shown(among, pair) for pair in sorted(joined - truth)]
        missed += [_shown(among, pair) for pair in sorted(truth - joined)]
        if progress is not None:
            progress("resolving", number + 1, len(sets))
    precision, recall = right / (right + len(wrong)) if right + len(wrong) else 0.0, right / same if same else 0.0
    return {
        "benchmark": "resolution",
        "machine": describe(),
        "names": sum(len(entity.names) for entity in entities),
        "things": len(entities),
        "pairs": pairs,
        "same_pairs": same,
        "joined_pairs": right + len(wrong),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "wrong": wrong,
        "missed": missed,
    }


def read_names(path: Path) -> Iterator[NamedEntity]:
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
            record = json.loads(line)
            entity = NamedEntity(record["set"], record["type"], tuple(record["names"]))
        except (ValueError, TypeError, KeyError) as error:
            raise _unfit(path, number) from error
        texts = (entity.among, entity.type, *entity.names)
        if not entity.names or not all(isinstance(text, str) and text.strip() for text in texts):
            raise _unfit(path, number)
        if entity.type not in ENTITY_TYPES:
            raise UsageError(f"{path}:{number} has the type {entity.type!r:.40}", remedy="use one of ours")
        yield entity


Name = tuple[str, str]
"""A type and a name of it."""


def _joined(members: Sequence[NamedEntity], embedder: StaticEmbedder) -> set[tuple[Name, Name]]:
    """Return the pairs of names that a graph takes for names of one thing, each in the order of the file."""
    store = Store.in_memory()
    store.set_embedding(embedder.stamp)

    ground = GraphRuntime(Texts(Destination(store, embedder, embedder.tokenize, _NAMESPACE)), Kinds(), lambda: 0.0)
    ids: dict[Name, str] = {}
    with store.change_memories(_NAMESPACE) as change:
        entities = Entities(change.graph, ground)
        for round_ in zip_longest(*(entity.names for entity in members)):
            for entity, name in zip(members, round_, strict=True):
                if name is not None:
                    ids[entity.type, name] = entities.of_name(name, entity.type, _EPISODE).id
    order = [(entity.type, name) for entity in members for name in entity.names]
    return {(left, right) for left, right in combinations(order, 2) if ids[left] == ids[right]}


def _shown(among: str, pair: tuple[Name, Name]) -> dict[str, str]:
    (type_, left), (other_type, right) = pair
    return {"set": among, "one": f"{left} ({type_})", "other": f"{right} ({other_type})"}


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
