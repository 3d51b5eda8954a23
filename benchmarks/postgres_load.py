"""Measure a store in PostgreSQL under load: many namespaces of mixed sizes, processes that read and write at once."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Barrier
from typing import Any, Final

import click
import psycopg

from benchmarks.output import embedder_option, json_option, seed_option, show
from benchmarks.stores import FILLED_AT_ONCE, MEMORY_WORDS
from commonplace.benchmarks.data import SAMPLED, make_documents, questions_about
from commonplace.benchmarks.harness import check_counts, describe, latency, open_engine
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.server.app import EnginePool
from commonplace.types import Document

LARGEST_TO_SMALLEST: Final = 50
"""How many times as many passages the largest of the usual namespaces has as the smallest."""
LARGE: Final = "large"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What to measure.

    Attributes:
        postgres: the address of a database, empty or filled by an earlier run with the same numbers.
        passages: how many all namespaces hold together; `large` of them are in one namespace.
        clients: how many processes ask at once, one measurement for each number.
        calls: how often all of them ask in one measurement.
        writes: the share of the calls that store something.
        to_large: the share of the calls that go to the large namespace; the others go to any, each as often.
        fillers: how many processes fill the store.
        artifacts: fill it with documents of some 200 words and search in them, not with memories of 40.
    """

    postgres: str
    namespaces: int = 90
    passages: int = 10_000
    large: int = 2_000
    clients: tuple[int, ...] = (1, 8)
    calls: int = 400
    writes: float = 0.1
    to_large: float = 0.1
    fillers: int = 2
    embedder: str | None = None
    seed: int = 0
    artifacts: bool = False

    def __post_init__(self) -> None:
        check_counts(namespaces=self.namespaces, calls=self.calls, fillers=self.fillers, clients=min(self.clients))
        if self.passages - self.large < self.namespaces:
            raise UsageError(
                f"{self.passages} passages, of which {self.large} are in one namespace, are too few for "
                f"{self.namespaces} more",
                remedy="give more, or fewer namespaces",
            )

    def sizes(self) -> dict[str, int]:
        """Return the passages of each namespace, by its name."""
        draw = random.Random(self.seed)  # noqa: S311 - not a secret
        shares = [LARGEST_TO_SMALLEST ** draw.random() for _ in range(self.namespaces)]
        unit = (self.passages - self.large) / sum(shares)
        usual = {f"tenant{number:05d}": max(1, round(share * unit)) for number, share in enumerate(shares)}
        return usual | ({LARGE: self.large} if self.large else {})

    def pool(self) -> EnginePool:
        """Return engines of the namespaces, as a server has them."""
        return EnginePool(lambda: open_engine(self.postgres, embedder=self.embedder))

    def texts(self, count: int, part: str, *, is_whole: bool = False) -> Iterator[Document]:
        """Yield texts, other ones for each part of the work: whole passages, or memories."""
        for document in make_documents(count, random.Random(f"{self.seed} {part}").randrange(2**32)):  # noqa: S311
            yield document if is_whole else Document(document.id, " ".join(document.text.split()[:MEMORY_WORDS]))


@dataclass(frozen=True, slots=True)
class Work:
    """What one process did: its calls, each by name, beginning and end in seconds, and its processor time."""

    calls: Sequence[tuple[str, float, float]]
    cpu_s: float


def run(options: LoadOptions) -> dict[str, Any]:
    """Fill the store where it is empty, put it under load, and return the JSON form of what that took.

    Raises:
        UsageError: a number is wrong.
        CommonplaceError: the database cannot be used.
    """
    sizes = options.sizes()
    open_engine(options.postgres, embedder=options.embedder).close()
    with psycopg.connect(options.postgres, autocommit=True) as db:
        server = Server(db.info.backend_pid)
        filled: dict[str, float] = {}
        if db.execute("SELECT NOT EXISTS (SELECT 1 FROM owners)").fetchall() == [(True,)]:
            names = sorted(sizes, key=lambda name: -sizes[name])
            cpu = server.cpu_s()
            works = _together(_fill, [(options, names[index :: options.fillers]) for index in range(options.fillers)])
            seconds = _duration(works)
            filled = {
                "fill_s": round(seconds, 1),
                "passages_per_s": round(sum(sizes.values()) / seconds, 1),
                "worker_cpu_s": round(sum(work.cpu_s for work in works), 1),
                "server_cpu_s": round(server.cpu_s() - cpu, 1),
            }
            db.execute("VACUUM ANALYZE")
        [(size, text)] = db.execute(
            "SELECT pg_database_size(current_database()), (SELECT sum(text_bytes)::bigint FROM counts)"
        ).fetchall()
        tables = db.execute(_TABLES).fetchall()
        loads = {f"{count}_clients": _loaded(options, count, server) for count in options.clients}
    with open_engine(options.postgres, namespace=next(iter(sizes))) as engine:
        embedder = engine.index_status().embedder
    return {
        "benchmark": "postgres load",
        "machine": describe(),
        "embedder": embedder,
        "store": {"namespaces": len(sizes), "passages": sum(sizes.values()), "large": options.large, **filled},
        "size": {"bytes": size, "text_bytes": text, "size_to_text": round(size / text, 2), **dict(tables)},
        **loads,
    }


_TABLES: Final = """
    SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC LIMIT 8
"""


class Server:
    """The processes of a server, where it runs on this machine and /proc tells of them."""

    def __init__(self, backend: int) -> None:
        fields = _stat(backend)
        self._parent = int(fields[1]) if fields else 0

    def cpu_s(self) -> float:
        """Return the processor time that all of them took so far; 0 where they are not here."""
        if not self._parent:
            return 0.0
        every = {int(path.name): _stat(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit()}
        processes = [fields for pid, fields in every.items() if fields and self._parent in (pid, int(fields[1]))]
        ended = every[self._parent][13:15]  # which the parent counts
        return sum(map(int, [*ended, *(ticks for fields in processes for ticks in fields[11:13])])) / _TICKS


def _stat(pid: int) -> list[str]:
    """Return the fields of a process from its state on; none where it is not one of PostgreSQL."""
    try:
        name, _, fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")
    except OSError:
        return []
    return fields.split() if "postgres" in name else []


def _together(job: Callable[..., Work], arguments: Sequence[tuple[Any, ...]]) -> list[Work]:
    """Return what processes did, all of which begin when the last is ready."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        start = manager.Barrier(len(arguments))
        with ProcessPoolExecutor(len(arguments), mp_context=context) as pool:
            return [future.result() for future in [pool.submit(job, start, *values) for values in arguments]]


def _duration(works: Sequence[Work]) -> float:
    times = [time for work in works for _, begun, ended in work.calls for time in (begun, ended)]
    return max(times) - min(times)


def _fill(start: Barrier, options: LoadOptions, names: Sequence[str]) -> Work:
    sizes = options.sizes()
    with closing(options.pool()) as pool:
        pool.root()
        start.wait()
        cpu, begun = time.process_time(), time.perf_counter()
        for name in names:
            texts = options.texts(sizes[name], name, is_whole=options.artifacts)
            with pool.use(name) as engine:
                if options.artifacts:
                    engine.index_documents(texts)
                    continue
                while part := list(islice(texts, FILLED_AT_ONCE)):
                    engine.remember_many([{"content": text.text, "tier": "medium"} for text in part])
        return Work([("fill", begun, time.perf_counter())], time.process_time() - cpu)


def _loaded(options: LoadOptions, clients: int, server: Server) -> dict[str, Any]:
    """Return the figures of so many clients at once."""
    cpu = server.cpu_s()
    works = _together(_ask, [(options, f"{clients} {number}", options.calls // clients) for number in range(clients)])
    server_cpu_s = server.cpu_s() - cpu
    times: defaultdict[str, list[float]] = defaultdict(list)
    for name, begun, ended in (call for work in works for call in work.calls):
        times[name].append((ended - begun) * 1000)
    count = sum(map(len, times.values()))
    return {
        "calls": count,
        "per_s": round(count / _duration(works), 1),
        **{name: latency(values) | {"calls": len(values)} for name, values in sorted(times.items())},
        "worker_cpu_ms": round(sum(work.cpu_s for work in works) * 1000 / count, 2),
        "server_cpu_ms": round(server_cpu_s * 1000 / count, 2),
    }


def _ask(start: Barrier, options: LoadOptions, client: str, count: int) -> Work:
    """Recall and remember, in the large namespace and in any, as chance has it."""
    draw = random.Random(f"{options.seed} {client}")  # noqa: S311 - not a secret
    usual = [name for name in options.sizes() if name != LARGE]
    fresh = options.texts(count + 1, client)
    questions = iter(questions_about(options.texts(SAMPLED, LARGE), count + 1, draw.randrange(2**32)))
    calls = []
    with closing(options.pool()) as pool:
        with pool.use(usual[0]) as engine:
            _recall(engine, next(questions), options)
            if options.writes:
                engine.remember(next(fresh).text)
        start.wait()
        cpu = time.process_time()
        for _ in range(count):
            namespace = LARGE if options.large and draw.random() < options.to_large else draw.choice(usual)
            is_write = draw.random() < options.writes
            text = next(fresh).text if is_write else next(questions)
            begun = time.perf_counter()
            with pool.use(namespace) as engine:
                if is_write:
                    engine.remember(text)
                else:
                    _recall(engine, text, options)
            name = f"{'remember' if is_write else 'recall'}_{'large' if namespace == LARGE else 'usual'}"
            calls.append((name, begun, time.perf_counter()))
        return Work(calls, time.process_time() - cpu)


def _recall(engine: Engine, question: str, options: LoadOptions) -> None:
    if options.artifacts:
        engine.search(question)
    else:
        engine.recall(question)


def _numbers(_: click.Context, __: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, value.split(",")))
    except ValueError:
        raise click.BadParameter("write numbers with commas between them") from None


@click.command()
@click.argument("postgres", metavar="URL")
@click.option("--namespaces", type=int, default=90, show_default=True, metavar="N", help="Usual namespaces.")
@click.option("--passages", type=int, default=10_000, show_default=True, metavar="N", help="Passages in all of them.")
@click.option("--large", type=int, default=2_000, show_default=True, metavar="N", help="Those of one more namespace.")
@click.option("--clients", default="1,8", show_default=True, callback=_numbers, help="Processes that ask at once.")
@click.option("--calls", type=int, default=400, show_default=True, metavar="N", help="Calls of each measurement.")
@click.option("--writes", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Share that stores.")
@click.option("--to-large", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Share for the large.")
@click.option("--fillers", type=int, default=2, show_default=True, metavar="N", help="Processes that fill the store.")
@click.option("--artifacts", is_flag=True, help="Fill it with documents of 200 words, not memories of 40.")
@embedder_option
@seed_option
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure a store in the database at URL under load.

    An empty database is filled first; one that an earlier run filled with the same options is used as it is.
    """
    show(lambda: run(LoadOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
