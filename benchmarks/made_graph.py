"""Make a graph with hubs, the same for everyone, and measure how fast the surroundings of an entity are found."""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from commonplace.benchmarks.harness import latency, open_engine, workspace
from commonplace.graph.names import normal
from commonplace.settings.paths import DATABASE
from commonplace.store.store import Store
from commonplace.types import Progress
from commonplace.types.graph import RELATION_TYPES, Alias, Entity, Episode, Mention, Relation

DEPTH: Final = 2
LIMIT: Final = 50
"""Entities that are asked for: as many as by default."""
HUBS: Final = 20
_BATCH: Final = 20_000
_SKEW: Final = 0.9
"""The source of a fact is drawn by Zipf's law with this exponent, its target evenly: so there are hubs."""
_FACTS_OF_AN_EPISODE: Final = 5
_BEGAN: Final = 1_700_000_000.0


@dataclass(frozen=True, slots=True)
class MadeGraph:
    """The facts of a made graph by their ends, places in `ids`."""

    ids: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]

    def beside(self) -> dict[str, list[str]]:
        """Return the entities beside each, one for each fact."""
        neighbours: dict[str, list[str]] = {}
        for source, target in self.edges:
            neighbours.setdefault(self.ids[source], []).append(self.ids[target])
            neighbours.setdefault(self.ids[target], []).append(self.ids[source])
        return neighbours

    def hubs(self, count: int) -> list[str]:
        """Return the entities with the most facts."""
        degrees = Counter(end for edge in self.edges for end in edge)
        return [self.ids[index] for index, _ in sorted(degrees.items(), key=lambda item: (-item[1], item[0]))[:count]]

    def starts(self, calls: int, seed: int) -> dict[str, list[str]]:
        """Return where to look around: at any entity, at the ends of facts, where hubs are often met, and at hubs."""
        draw = random.Random(seed + 1)  # noqa: S311 - nothing secret is made
        return {
            "entity": [draw.choice(self.ids) for _ in range(calls)],
            "end of a fact": [self.ids[draw.choice(draw.choice(self.edges))] for _ in range(calls)],
            "hub": self.hubs(HUBS),
        }

    def most_facts(self) -> int:
        """Return how many facts the greatest hub has."""
        return max(Counter(end for edge in self.edges for end in edge).values(), default=0)


def run(entities: int, relations: int, calls: int, seed: int) -> dict[str, Any]:
    """Return how long it takes to look around in a made graph, by where, as many entities far as by default."""
    with workspace(None) as directory:
        directory.mkdir(parents=True)
        graph = write_graph(directory / DATABASE, entities, relations, seed, None)
        starts = graph.starts(calls, seed)
        times: dict[str, list[float]] = {}
        with open_engine(directory) as engine:
            engine.graph.neighbourhood(starts["entity"][0], DEPTH, LIMIT)
            for start, ids in starts.items():
                for id_ in ids:
                    begun = time.perf_counter()
                    engine.graph.neighbourhood(id_, DEPTH, LIMIT)
                    times.setdefault(f"{start}, {LIMIT}", []).append((time.perf_counter() - begun) * 1000)
    return {"benchmark": "graph", "neighbourhood": {start: latency(values) for start, values in times.items()}}


def write_graph(path: Path, entities: int, relations: int, seed: int, progress: Progress | None) -> MadeGraph:
    """Write a made graph into a new store, in large transactions, without the texts by which a search would find it."""
    draw = random.Random(seed)  # noqa: S311 - nothing secret is made
    ids = tuple(_id(draw) for _ in range(entities))
    weights = list(accumulate((rank + 10) ** -_SKEW for rank in range(entities)))
    sources = draw.choices(range(entities), cum_weights=weights, k=relations)
    # Never the source itself: some places further on, around the end.
    edges = tuple((source, (source + draw.randrange(1, entities)) % entities) for source in sources)
    store = Store.create(path)
    try:
        for begin in range(0, entities, _BATCH):
            _write_entities(store, ids, range(begin, min(begin + _BATCH, entities)))
            _tell(progress, "writing entities", begin, entities)
        for begin in range(0, relations, _BATCH):
            _write_relations(store, ids, edges, range(begin, min(begin + _BATCH, relations)), draw)
            _tell(progress, "writing facts", begin, relations)
    finally:
        store.close()
    return MadeGraph(ids, edges)


def _write_entities(store: Store, ids: tuple[str, ...], places: range) -> None:
    with store.change_memories("default") as change:
        for index in places:
            name, at = f"part {index}x", _BEGAN + index
            change.graph.put_entity(Entity(ids[index], name, "concept", at, valid_from=at))
            change.graph.put(Alias(ids[index], name, normal(name), at))


def _write_relations(
    store: Store, ids: tuple[str, ...], edges: tuple[tuple[int, int], ...], places: range, draw: random.Random
) -> None:
    with store.change_memories("default") as change:
        graph, episode, mentions = change.graph, "", []
        for index in places:
            source, target = edges[index]
            fact, at = f"part {source}x goes with part {target}x", _BEGAN + index
            if index % _FACTS_OF_AN_EPISODE == 0:
                episode = _id(draw)
                graph.put(Episode(episode, fact, at, at))
            type_ = RELATION_TYPES[index % len(RELATION_TYPES)]
            relation = Relation(_id(draw), ids[source], ids[target], type_, fact, at, valid_from=at)
            graph.put_relation(relation)
            mentions.append(Mention(episode, "relation", relation.id, 0, len(fact)))
        graph.put(*mentions)


def _id(draw: random.Random) -> str:
    return str(uuid.UUID(int=draw.getrandbits(128), version=4))


def _tell(progress: Progress | None, stage: str, count: int, total: int) -> None:
    if progress is not None:
        progress(stage, min(count + _BATCH, total), total)


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:]))))  # noqa: T201 - read by `figures`
