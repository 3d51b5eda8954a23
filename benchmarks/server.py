"""Measure `commonplace serve`: how fast it answers one client and several, beside the engine alone, and its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from benchmarks.output import embedder_option, json_option, keep_option, seed_option, show
from benchmarks.stores import fill, texts
from commonplace.benchmarks.data import questions_about
from commonplace.benchmarks.harness import check_counts, describe, latency, memory_of, open_engine, workspace
from commonplace.errors import CommonplaceError
from commonplace.types import Progress

CLIENTS = 8
RATE = 30
"""Requests a second of all clients together, where they keep to a rate."""
SOAKED = 10_000


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What to measure.

    Attributes:
        memories: how many the store holds.
        calls: how often one client recalls; eight recall twice as often together, at a rate and without a pause.
        postgres: the address of an empty database, where the store is made instead.
    """

    memories: int = 10_000
    calls: int = 500
    embedder: str | None = None
    keep: Path | None = None
    seed: int = 0
    postgres: str = ""

    def __post_init__(self) -> None:
        check_counts(memories=self.memories, calls=self.calls)


class Client:
    """One connection to a server, kept open."""

    def __init__(self, address: str) -> None:
        url = urlsplit(address)
        self._connection = HTTPConnection(url.hostname or "", url.port, timeout=60)

    def recall(self, question: str) -> float:
        """Ask, and return the milliseconds that it took."""
        body = json.dumps({"query": question}).encode()
        return self._timed("POST", "/v1/recall", body, {"Content-Type": "application/json"})

    def ping(self) -> float:
        """Ask whether it is there, and return the milliseconds that it took."""
        return self._timed("GET", "/healthz", None, {})

    def _timed(self, verb: str, path: str, body: bytes | None, headers: dict[str, str]) -> float:
        begun = time.perf_counter()
        self._connection.request(verb, path, body, headers)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise CommonplaceError(f"the server answered {path} with {answer.status}")
        return (time.perf_counter() - begun) * 1000


def run(options: ServerOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Fill a store, ask its engine and then a server of it, and return the JSON form of what that took.

    Raises:
        UsageError: a number or the directory to keep is wrong.
        CommonplaceError: the server failed.
    """
    documents = list(texts(options.memories, options.seed))
    questions = questions_about(documents, 8 * options.calls, options.seed)
    groups = [list(islice(iterator, options.calls)) for iterator in [iter(questions)] * 2]
    with workspace(options.keep) as directory:
        store = options.postgres or directory
        filled = fill(store, documents, options.embedder, progress)
        with open_engine(store) as engine:
            embedder = engine.index_status().embedder
            engine.recall(questions[-1])
            cpu = time.process_time()
            alone = [_timed(partial(engine.recall, question)) for question in groups[0]]
            engine_cpu_ms = (time.process_time() - cpu) * 1000 / options.calls
        with _served(store) as (address, pid):
            memory = {"idle": memory_of(pid)}
            client = Client(address)
            client.recall(questions[-1])
            cpu = _cpu_s(pid)
            answers = [client.recall(question) for question in groups[1]]
            server_cpu_ms = (_cpu_s(pid) - cpu) * 1000 / options.calls
            begun = time.perf_counter()
            pings = [client.ping() for _ in range(2 * options.calls)]
            ping_rate = len(pings) / (time.perf_counter() - begun)
            several = questions[2 * options.calls : 4 * options.calls]
            paced = _together(address, several, CLIENTS / RATE)
            begun = time.perf_counter()
            pressed = _together(address, questions[4 * options.calls : 6 * options.calls], 0.0)
            rate = len(pressed) / (time.perf_counter() - begun)
            memory["served"] = memory_of(pid)
            _together(address, list(islice(cycle(questions), SOAKED)), 0.0)
            memory["soaked"] = memory_of(pid)
    return {
        "benchmark": "server",
        "machine": describe(),
        "embedder": embedder,
        "memories": {**filled, "calls": options.calls},
        "engine": {**latency(alone), "cpu_ms": round(engine_cpu_ms, 2)},
        "one_client": {**latency(answers), "cpu_ms": round(server_cpu_ms, 2)},
        "server_to_engine_cpu": round(server_cpu_ms / engine_cpu_ms, 2),
        "ping": {**latency(pings), "per_s": round(ping_rate)},
        f"{CLIENTS}_clients_{RATE}_per_s": latency(paced),
        f"{CLIENTS}_clients_without_pause": {**latency(pressed), "per_s": round(rate, 1)},
        "memory": memory,
    }


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1000


def _together(address: str, questions: Sequence[str], pause_s: float) -> list[float]:
    """Return the milliseconds of each question, asked by all clients at once, each once in so many seconds."""

    def client(number: int) -> list[float]:
        own, begun, times = Client(address), time.perf_counter() + pause_s * number / CLIENTS, []
        for turn, question in enumerate(questions[number::CLIENTS]):
            time.sleep(max(0.0, begun + turn * pause_s - time.perf_counter()))
            times.append(own.recall(question))
        return times

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [each for times in pool.map(client, range(CLIENTS)) for each in times]


@contextmanager
def _served(store: Path | str) -> Iterator[tuple[str, int]]:
    """Serve a store, and yield address and process number."""
    command = [sys.executable, "-m", "commonplace", "serve", "--port", "0", "--json", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise CommonplaceError(f"the server ended with {process.wait()}")
        try:
            yield json.loads(line)["address"], process.pid
        finally:
            process.terminate()


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@click.command()
@click.option("--memories", type=int, default=10_000, show_default=True, metavar="N", help="How many the store holds.")
@click.option("--calls", type=int, default=500, show_default=True, metavar="N", help="How often one client asks.")
@embedder_option
@keep_option
@seed_option
@click.option("--postgres", default="", metavar="URL", help="Make the store in this empty database instead.")
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure how fast a server recalls, for one client and for eight, and what memory it has.

    The engine alone answers as many questions before it; needs /proc.
    """
    show(lambda: run(ServerOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
