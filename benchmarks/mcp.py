"""Measure what a server for one agent costs: its start, each tool, its memory, and the words that its tools take.

Everything is measured from outside, over the pipes of the real process, as a client feels it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.stores import bare_commits, fill, texts
from commonplace.benchmarks.data import questions_about
from commonplace.benchmarks.harness import check_counts, describe, last_line, latency, memory_of, open_engine, workspace
from commonplace.benchmarks.measures import median
from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError
from commonplace.types import Progress

STARTS = 5
FORGETTINGS = 10
"""Fewer than calls of the other tools: each looks for what it forgot through every file of the store."""

_STAGES = {"memory_store": "after_searches", "memory_forget": "after_other_tools"}
"""Before the first call of which tool the memory is looked at, and what that is called."""
_SETTLED = 2_000
_FORGOTTEN_EVERY = 1_000


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What to measure.

    Attributes:
        memories: how many the store holds when the server starts.
        searches: how many questions are asked before its memory is looked at again.
        calls: how often each other tool is called.
        soak: how many mixed calls are made at last; the memory after the first 2,000 of them and after all is told.
    """

    memories: int = 10_000
    searches: int = 1_000
    calls: int = 200
    soak: int = 0
    embedder: str | None = None
    keep: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_counts(memories=self.memories, searches=self.searches, calls=self.calls)


def run(options: ServerOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Fill a store, start servers over it, and return the JSON form of what was measured.

    The least that any server could take here is measured in the same run: the start of a bare interpreter, a ping over
    the same pipes, and one small row committed by SQLite alone.

    Raises:
        UsageError: a number or the directory to keep is wrong.
        CommonplaceError: a server failed.
    """
    documents = texts(options.memories + 2 * options.calls, options.seed)
    stored = list(islice(documents, options.memories))
    fresh = [document.text for document in documents]
    questions = questions_about(stored, options.searches, options.seed)
    with workspace(options.keep) as directory:
        filled = fill(directory, stored, options.embedder, progress)
        with open_engine(directory) as engine:
            # The index is complete before a server is started, and nobody else holds it open later.
            engine.search(questions[0])
            embedder = engine.index_status().embedder
        start = _starts(directory, questions[0], progress)
        with Server(directory) as server:
            greeting, tools = server.greet(), server.ask("tools/list")["tools"]
            figures = _serve(server, questions, fresh, options, progress)
        with open_engine(directory) as engine:
            greeting_size = _told(greeting, tools, engine.count_tokens)
        commits = bare_commits(directory.parent / f"{directory.name}.bare.db", options.calls)
    return {
        "benchmark": "mcp",
        "machine": describe(),
        "embedder": embedder,
        "memories": filled,
        "start": start,
        "told": greeting_size,
        "tools": figures["tools"],
        "floor": {"ping": figures["ping"], "commit": latency(commits)},
        "memory": figures["memory"],
    }


def _told(
    greeting: Mapping[str, Any], tools: Sequence[Mapping[str, Any]], count: Callable[[str], int]
) -> dict[str, int]:
    """Return how long what a model reads in every session is.

    The engine's vocabulary has no words for JSON and counts each mark: a model's own makes about half as many tokens.
    """
    whole = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    offers = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools]
    text = json.dumps(offers, ensure_ascii=False, separators=(",", ":"))
    return {
        "tools": len(tools),
        "list_characters": len(whole),
        "list_tokens": count(whole),
        "given_to_models_characters": len(text),
        "given_to_models_tokens": count(text),
        "instructions_tokens": count(greeting.get("instructions", "")),
    }


def _starts(store: Path, question: str, progress: Progress | None) -> dict[str, float]:
    """Return medians of several starts, in milliseconds from the start of the process; bare starts lie between them."""
    names = ("bare_python_ms", "initialized_ms", "listed_ms", "first_search_ms")
    rows = []
    for number in range(STARTS):
        if progress is not None:
            progress("starting", number, STARTS)
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "print()"], capture_output=True, check=True)
        row = [time.perf_counter() - begun]
        with Server(store) as server:
            for step in (
                server.greet,
                lambda: server.ask("tools/list"),
                lambda: server.call("memory_search", {"query": question}),
            ):
                step()
                row.append(time.perf_counter() - server.started)
        rows.append(row)
    return {name: round(median(column) * 1000, 1) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _serve(
    server: Server, questions: Sequence[str], fresh: Sequence[str], options: ServerOptions, progress: Progress | None
) -> dict[str, Any]:
    """Return the time of each tool and of a ping, and the memory of the process at each stage."""
    calls, memory = options.calls, {"idle": memory_of(server.pid)}
    server.call("memory_search", {"query": questions[0]})
    memory["after_a_search"] = memory_of(server.pid)
    stored: list[str] = []
    times: dict[str, list[float]] = {}
    for tool, arguments in _conversation(questions, fresh, calls, stored):
        if tool in _STAGES and tool not in times:
            memory[_STAGES[tool]] = memory_of(server.pid)
        of_tool = times.setdefault(tool, [])
        if progress is not None:
            progress(f"calling {tool}", len(of_tool), 0)
        begun = time.perf_counter()
        result = server.call(tool, arguments)
        of_tool.append((time.perf_counter() - begun) * 1000)
        if tool == "memory_store":
            stored.append(result["id"])
    memory["after_forgetting"] = memory_of(server.pid)
    for turn in range(calls):
        question = questions[turn % len(questions)]
        server.call("memory_store", {"content": f"{question} {turn}", "tier": "short"})
        server.call("memory_context", {"task": question})
        server.call("memory_get", {"path": f"memory:{stored[turn]}"})
        server.call("memory_search", {"query": question})
    memory["after_mixed_calls"] = memory_of(server.pid)
    memory |= _soak(server, questions, stored[:calls], options.soak, progress)
    pings = []
    for _ in range(calls):
        begun = time.perf_counter()
        server.ask("ping")
        pings.append((time.perf_counter() - begun) * 1000)
    tools = {tool: {"calls": len(values), **latency(values)} for tool, values in times.items()}
    return {"tools": tools, "memory": memory, "ping": latency(pings)}


def _conversation(
    questions: Sequence[str], fresh: Sequence[str], calls: int, stored: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield tools with arguments; whoever calls them fills `stored` with the ids of what was stored."""
    for question in questions:
        yield "memory_search", {"query": question}
    for text in fresh:
        yield "memory_store", {"content": text, "tier": "medium"}
    first, remaining = stored[:calls], stored[calls:]
    by_turn: Mapping[str, Callable[[int], Mapping[str, Any]]] = {
        "memory_get": lambda turn: {"path": f"memory:{first[turn]}"},
        "memory_link": lambda turn: {"source": first[turn], "target": remaining[turn]},
        "memory_graph": lambda turn: {"id": first[turn]},
        "memory_context": lambda turn: {"task": questions[turn % len(questions)]},
        "memory_why": lambda turn: {"query": fresh[turn][:200], "id": first[turn]},
    }
    for tool, arguments in by_turn.items():
        for turn in range(calls):
            yield tool, arguments(turn)
    for id_ in remaining[:FORGETTINGS]:
        yield "memory_forget", {"ids": [id_], "confirm": True}


def _soak(
    server: Server, questions: Sequence[str], stored: Sequence[str], calls: int, progress: Progress | None
) -> dict[str, dict[str, int]]:
    """Make so many mixed calls; return the memory of the process after the first of them and after all."""
    memory, new_ids = dict[str, dict[str, int]](), list[str]()
    for turn, (tool, arguments) in enumerate(_mixed(questions, stored, new_ids, calls), 1):
        if progress is not None:
            progress("soaking", turn, calls)
        result = server.call(tool, arguments)
        if tool == "memory_store":
            new_ids.append(result["id"])
        if turn == _SETTLED:
            memory[f"after_{_SETTLED}_of_soak"] = memory_of(server.pid)
    if calls:
        memory["after_soak"] = memory_of(server.pid)
    return memory


def _mixed(
    questions: Sequence[str], stored: Sequence[str], new_ids: Sequence[str], calls: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield so many calls of all tools; whoever makes them adds the ids of what was stored to `new_ids`."""
    for turn in range(calls):
        question, id_, last = questions[turn % len(questions)], stored[turn % len(stored)], (new_ids or [""])[-1]
        kinds: tuple[tuple[str, Mapping[str, Any]], ...] = (
            ("memory_store", {"content": f"Soak {turn}: {question}", "tier": "medium"}),
            ("memory_get", {"path": f"memory:{id_}"}),
            ("memory_context", {"task": question}),
            ("memory_why", {"query": f"Soak {turn - turn % 10}: {question}", "id": last}),
            ("memory_graph", {"id": id_}),
            ("memory_link", {"source": id_, "target": last}),
        )
        if turn % _FORGOTTEN_EVERY == _FORGOTTEN_EVERY - 1:
            yield "memory_forget", {"ids": [last], "confirm": True}
        else:
            yield kinds[turn % 10] if turn % 10 < len(kinds) else ("memory_search", {"query": question})


VERSION = "2025-11-25"
_TIMEOUT_S = 60
_PROGRAM = "from commonplace.cli.main import main; main()"


class Server:
    """A process `commonplace mcp` over a store; `started` is when it was asked for, on the clock of `perf_counter`."""

    def __init__(self, store: Path, options: Sequence[str] = ()) -> None:
        command = [sys.executable, "-c", _PROGRAM, "mcp", "--store", str(store), *options]
        # An installed package has its bytecode, which this variable would keep a checkout from having.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        self._asked = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            _, complaint = self._process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise
        if kind is None and self._process.returncode != 0:
            raise CommonplaceError(
                f"the server ended with {self._process.returncode}: {last_line(complaint.decode('utf-8', 'replace'))}"
            )

    @property
    def pid(self) -> int:
        """Return the process's number."""
        return self._process.pid

    def greet(self) -> Mapping[str, Any]:
        """Shake hands."""
        about = {"name": "benchmark", "version": "1"}
        return self.ask("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about})

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return the result of one request.

        Raises:
            CommonplaceError: it was refused, or the server ended.
        """
        self._asked += 1
        request = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params or {}}
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # what it said at its end is told below
        line = self._process.stdout.readline()
        if not line:
            complaint = self._process.communicate(timeout=_TIMEOUT_S)[1]
            raise CommonplaceError(
                f"the server ended with {self._process.returncode}: {last_line(complaint.decode('utf-8', 'replace'))}"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise CommonplaceError(f"the server refused {method}: {answer['error']['message']}")
        result: Mapping[str, Any] = answer["result"]
        return result

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the structured result of a tool.

        Raises:
            CommonplaceError: the tool could not do it.
        """
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise CommonplaceError(f"{tool} failed: {result['content'][0]['text']}")
        structured: Mapping[str, Any] = result["structuredContent"]
        return structured
