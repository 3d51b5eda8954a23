"""Measure what it takes to look around in a large graph, and to add to and search one, beside simpler means."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.made_graph import DEPTH, LIMIT, MadeGraph, write_graph
from benchmarks.output import embedder_option, json_option, keep_option, probed, seed_option, show
from benchmarks.stores import bare_commits
from commonplace.benchmarks.harness import describe, latency, open_engine, size_bytes, workspace
from commonplace.benchmarks.measures import median
from commonplace.errors import UsageError
from commonplace.extract.words import CITIES, FIRST_NAMES, SURNAMES
from commonplace.types import Progress

LARGE_LIMIT: Final = 500
"""As many entities as one may ask for."""
FACTS: Final = "facts"
"""The namespace of the graph to which is added and that is searched."""
_SENTENCES_OF_AN_EPISODE: Final = 100

SQL: Final = """
    WITH RECURSIVE near (id, distance) AS (
        SELECT :start, 0
        UNION
        SELECT r.target, near.distance + 1
        FROM near CROSS JOIN relations r INDEXED BY relations_by_source
        WHERE r.namespace = 1 AND r.source = near.id AND r.stage = 0 AND near.distance < :depth
        UNION
        SELECT r.source, near.distance + 1
        FROM near CROSS JOIN relations r INDEXED BY relations_by_target
        WHERE r.namespace = 1 AND r.target = near.id AND r.stage = 0 AND near.distance < :depth
    )
    SELECT id, min(distance) FROM near GROUP BY id ORDER BY 2, 1 LIMIT :limit
"""
"""The neighbourhood of an entity, as short as SQL has it: ids alone, and every fact of every hub."""


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """What to measure.

    Attributes:
        entities, relations: size of the graph in which is looked around.
        facts: size of the graph to which is added, and that is searched.
        calls: how often each call is made.
    """

    entities: int = 100_000
    relations: int = 500_000
    facts: int = 10_000
    calls: int = 200
    embedder: str | None = None
    keep: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("entities", self.entities, 2),
            ("relations", self.relations, 1),
            ("facts", self.facts, 1),
            ("calls", self.calls, 1),
        ):
            if value < least:
                raise UsageError(f"{name} is {value}", remedy=f"give at least {least}")


def run(options: GraphOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Make both graphs, ask each in a fresh process, repeat with simpler means, and return the JSON form of it.

    Raises:
        UsageError: a number or the directory to keep is wrong.
        CommonplaceError: a measured process failed.
    """
    with workspace(options.keep) as directory:
        directory.mkdir(parents=True, exist_ok=True)
        begun = time.perf_counter()
        graph = write_graph(directory / "store.db", options.entities, options.relations, options.seed, progress)
        large = {
            "entities": options.entities,
            "relations": options.relations,
            "most_facts": graph.most_facts(),
            "made_s": round(time.perf_counter() - begun, 1),
            "store_bytes": size_bytes(directory),
        }
        starts = graph.starts(options.calls, options.seed)
        around = probed(
            "graph_probe", [str(directory.absolute()), "default", options.embedder or ""], _look_around(starts)
        )
        baselines = _baselines(directory / "store.db", graph, starts)
        small = _fill(directory, options, progress)
        searched = probed(
            "graph_probe", [str(directory.absolute()), FACTS, options.embedder or ""], _add_and_search(options)
        )
        commits = bare_commits(directory.parent / f"{directory.name}.bare.db", options.calls)
    return {
        "benchmark": "graph",
        "machine": describe(),
        "embedder": small.pop("embedder"),
        "graph": large,
        "neighbourhood": {
            start: {"entities": int(median(around["sizes"][start])), **latency(times)}
            for start, times in around["times"].items()
        },
        "baselines": baselines,
        "facts": small,
        "calls": {
            **{start: latency(times) for start, times in searched["times"].items()},
            "bare_commit": latency(commits),
        },
        "memory": {**around["memory"], **searched["memory"]},
    }


def _look_around(starts: dict[str, list[str]]) -> Iterator[Sequence[Any]]:
    yield "neighbourhood", "first", starts["entity"][0], DEPTH, LIMIT
    yield "memory", "large graph, first answer"
    for limit in (LIMIT, LARGE_LIMIT):
        for start, ids in starts.items():
            yield from (("neighbourhood", f"{start}, {limit}", id_, DEPTH, limit) for id_ in ids)
        yield "memory", f"large graph, after those of {limit}"


def _add_and_search(options: GraphOptions) -> Iterator[Sequence[Any]]:
    fresh = made_sentences(options.seed + 2)
    sentences = made_sentences(options.seed)
    yield "search_edges", "first search", next(sentences)
    yield "memory", "small graph, first search"
    for sentence in islice(sentences, options.calls):
        yield "search_edges", "search_edges", sentence
        yield "search_entities", "search_entities", " ".join(sentence.split()[:2])
    for _ in range(options.calls):
        yield "add_episode", "add_episode", " ".join(islice(fresh, 2))
    yield "memory", "small graph, after all"


def _fill(directory: Path, options: GraphOptions, progress: Progress | None) -> dict[str, Any]:
    """Add episodes of many sentences until there are enough facts, and return the JSON form of what there is."""
    sentences = made_sentences(options.seed)
    with open_engine(directory, namespace=FACTS, embedder=options.embedder) as engine:
        begun = time.perf_counter()
        while (counts := engine.graph.counts()).relations < options.facts:
            left = options.facts - counts.relations
            engine.graph.add_episode(" ".join(islice(sentences, min(_SENTENCES_OF_AN_EPISODE, left))))
            if progress is not None:
                progress("adding facts", counts.relations, options.facts)
        return {
            "facts": counts.relations,
            "entities": counts.entities,
            "fill_s": round(time.perf_counter() - begun, 1),
            "embedder": engine.index_status().embedder,
        }


def _baselines(path: Path, graph: MadeGraph, starts: dict[str, list[str]]) -> dict[str, Any]:
    """Return how long it takes to reach as many ids by one statement of SQL, and in dictionaries that hold all."""
    beside = graph.beside()
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:

        def by_sql(start: str) -> object:
            return db.execute(SQL, {"start": start, "depth": DEPTH, "limit": LIMIT}).fetchall()

        means: dict[str, Callable[[str], object]] = {"sql": by_sql, "dict": lambda start: nearest(beside, start, LIMIT)}
        return {
            name: {category: latency([_ms(reach, id_) for id_ in ids]) for category, ids in starts.items()}
            for name, reach in means.items()
        }


def nearest(beside: Mapping[str, Sequence[str]], start: str, limit: int) -> list[str]:
    """Return what lies about an entity, nearest first, from dictionaries that hold what lies beside each."""
    reached = {start: 0}
    rim = [start]
    for distance in range(1, DEPTH + 1):
        rim = [id_ for node in rim for id_ in beside.get(node, ()) if reached.setdefault(id_, distance) == distance]
        rim = list(dict.fromkeys(rim))
    return sorted(reached, key=lambda id_: (reached[id_], id_))[:limit]


def _ms(reach: Callable[[str], object], start: str) -> float:
    begun = time.perf_counter()
    reach(start)
    return (time.perf_counter() - begun) * 1000


def made_sentences(seed: int) -> Iterator[str]:
    """Yield sentences that each say a fact: of people and firms, of people and cities, of files."""
    draw = random.Random(seed)  # noqa: S311 - nothing secret is made
    first_names, surnames, cities = (sorted(words) for words in (FIRST_NAMES, SURNAMES, CITIES))
    while True:
        person = f"{draw.choice(first_names)} {draw.choice(surnames)}".title()
        kind = draw.random()
        if kind < 0.3:
            yield f"{person} works for {draw.choice(surnames).title()} Labs."
        elif kind < 0.5:
            yield f"{person} lives in {draw.choice(cities).title()}."
        else:
            source, target = draw.sample(range(2_000), 2)
            yield f"module_{source}.py depends on module_{target}.py."


@click.command()
@click.option(
    "--entities", type=int, default=100_000, show_default=True, metavar="N", help="Entities of the large graph."
)
@click.option(
    "--relations", type=int, default=500_000, show_default=True, metavar="N", help="Facts of the large graph."
)
@click.option("--facts", type=int, default=10_000, show_default=True, metavar="N", help="Facts of the small graph.")
@click.option("--calls", type=int, default=200, show_default=True, metavar="N", help="How often each call is made.")
@embedder_option
@keep_option
@seed_option
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure a graph: looking around, adding, searching.

    Looks around entities and hubs of a large made graph, two facts far, and adds to and searches a small one; the same
    neighbourhoods by SQL alone and from memory are measured beside.
    """
    show(lambda: run(GraphOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
