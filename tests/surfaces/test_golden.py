"""Requests through Python, the command line, MCP and CSP give what `tests/golden` holds, word for word.

Each file there is one session on a fresh store: a list of requests, each with its answer. A request has one of the keys

    cli      arguments of `commonplace`; `stdin` is what comes in the pipe
    python   an expression over `book`, the engine of the store
    mcp      a tool with its `arguments`, or a method of the protocol
    csp      the lines of one request of CSP/1
    write    a file of the project; `text` is its lines

`at` sets the clock, which otherwise goes on by a minute with each request. Scores are rounded; ids, measured durations
and the directory stand as `<id-1>`, `<ms>` and `/project`; a request may name such an id.

    pytest tests/surfaces/test_golden.py --rewrite-golden

writes the answers anew. Read the difference line by line, and commit it alone.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import secrets
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.unit.mcp.conversation import Talk, talking

import commonplace
from commonplace.cli.app import cli
from commonplace.mcp.registry import LazyEngine, registry_of

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

    from commonplace.engine import Engine

GOLDEN = Path(__file__).parent.parent / "golden"
SESSIONS = ("memories", "search", "graph", "knowledge", "consolidation", "upkeep", "errors", "mcp", "csp")
WIDTH = 118
VARIABLE_KEYS = {"seconds", "latency_ms", "ms", "store_bytes", "index_bytes", "size", "checked", "embedding", "methods"}
ID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|commonplace-[0-9a-f]{8}\b"
VARIABLE = {
    r"\b\d+(?:\.\d+)? ?ms\b": "<ms>",
    r"\bin \d+\.\d ?s\b": "in <s>",
    r"\b[0-9a-f]{64}\b": "<sha256>",
    r"@[\w.-]+:\d+\b": "@<host>:<pid>",
}


class Session:
    """One store under a clock of its own, asked through every surface."""

    def __init__(self, project: Path, stack: ExitStack) -> None:
        self.project = project
        self.now = datetime.fromisoformat("2026-03-02T09:00:00Z").timestamp()
        self._stack = stack
        self._ids: dict[str, str] = {}

    @cached_property
    def book(self) -> Engine:
        return self._stack.enter_context(commonplace.open(self.project / ".commonplace"))

    @cached_property
    def talk(self) -> Talk:
        host = LazyEngine(lambda progress: commonplace.open(self.project / ".commonplace"))
        self._stack.callback(host.close)
        talk = self._stack.enter_context(talking(registry_of(host.get)))
        talk.greet()
        return talk

    def ask(self, request: dict[str, Any]) -> Any:
        """Return the answer to a request, with what varies made constant."""
        self.now = datetime.fromisoformat(request["at"]).timestamp() if "at" in request else self.now + 60
        given = json.dumps(request)
        for real, shown in self._ids.items():
            given = given.replace(shown, real)
        request = json.loads(given)
        [surface] = {"cli", "python", "mcp", "csp", "write"} & set(request)
        return self._constant(getattr(self, f"_{surface}")(request))

    def _cli(self, request: dict[str, Any]) -> Any:
        arguments = shlex.split(request["cli"])
        done = CliRunner().invoke(cli, arguments, input=request.get("stdin"), prog_name="commonplace")
        told = {"stdout": done.stdout, "stderr": done.stderr}
        return {"exit_code": done.exit_code, **{name: _read(text) for name, text in told.items() if text}}

    def _python(self, request: dict[str, Any]) -> Any:
        try:
            return _plain(eval(request["python"], {"book": self.book}))
        except commonplace.CommonplaceError as error:
            return {"raises": type(error).__name__, "message": str(error)}

    def _mcp(self, request: dict[str, Any]) -> Any:
        if "/" in request["mcp"]:
            return self.talk.ask(request["mcp"], request.get("arguments"))["result"]
        called = {"name": request["mcp"], "arguments": request.get("arguments", {})}
        result = self.talk.ask("tools/call", called)["result"]
        texts = [_read(each["text"]) for each in result.pop("content")]
        return {**result, "text": texts}

    def _csp(self, request: dict[str, Any]) -> Any:
        return self.book.specialist.handle("\n".join((*request["csp"], ""))).splitlines()

    def _write(self, request: dict[str, Any]) -> Any:
        path = self.project / request["write"]
        path.write_text("".join(f"{line}\n" for line in request["text"]), encoding="utf-8")
        os.utime(path, (self.now, self.now))
        return None

    def _constant(self, value: Any, key: str = "") -> Any:
        if key in VARIABLE_KEYS and value and not (isinstance(value, list) and isinstance(value[0], str)):
            return f"<{key}>"
        if isinstance(value, dict):
            return {self._constant(name): self._constant(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self._constant(each) for each in value]
        if isinstance(value, bool) or not isinstance(value, float | int | str):
            return value
        if not isinstance(value, str):
            return round(value, 4)
        value = re.sub(ID, self._shown_id, value.replace(str(self.project), "/project"))
        value = value.replace(str(self.project.parent), "")
        for pattern, constant in VARIABLE.items():
            value = re.sub(pattern, constant, value)
        return value

    def _shown_id(self, found: re.Match[str]) -> str:
        return self._ids.setdefault(found.group(), f"<id-{len(self._ids) + 1}>")


def _plain(value: Any) -> Any:
    """Return what a call returned as JSON has it."""
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain({each.name: getattr(value, each.name) for each in dataclasses.fields(value)})
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _read(text: str) -> Any:
    """Return JSON or JSON lines as values, other text as its lines."""
    with suppress(ValueError):
        return json.loads(text)
    lines = text.splitlines()
    with suppress(ValueError):
        return [json.loads(line) for line in lines]
    return lines


def _formatted(value: Any, indent: str = "") -> str:
    """Return JSON of which a line holds what has room on it, so that a difference is small and can be read."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    deeper = f"{indent} "
    if isinstance(value, list):
        parts, (first, last) = [_formatted(each, deeper) for each in value], "[]"
    else:
        named = ((json.dumps(name, ensure_ascii=False), each) for name, each in value.items())
        parts, (first, last) = [f"{name}: {_formatted(each, deeper)}" for name, each in named], "{}"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{last}"


@contextmanager
def session_of(program: Program) -> Iterator[Session]:
    """Give a project with constant times, ids in the order in which they are made, and a clock that stands."""
    for path in program.project.rglob("*.*"):
        os.utime(path, (1_770_000_000, 1_770_000_000))
    numbers = itertools.count(1)
    real_time, sessions = time.time, []
    with pytest.MonkeyPatch.context() as monkeypatch:
        # One function for all sessions, which falls back: a module loaded meanwhile may keep it.
        monkeypatch.setattr(time, "time", lambda: sessions[-1].now if sessions else real_time())
        monkeypatch.setattr(os, "urandom", lambda size: next(numbers).to_bytes(size, "big"))
        monkeypatch.setattr(secrets, "token_hex", lambda size: os.urandom(size).hex())
        # Uses are written by the next call, never meanwhile by a thread.
        monkeypatch.setattr("commonplace.memory.usage.WRITE_AFTER_S", 600.0)
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
        with ExitStack() as stack:
            sessions.append(Session(program.project, stack))
            yield sessions[-1]
        sessions.clear()
    time.tzset()


@pytest.fixture
def session(bare: Program) -> Iterator[Session]:
    """A session about the files, without a store."""
    with session_of(bare) as session:
        yield session


def near(answer: Any, expected: Any, tolerance: float = 5e-4) -> Any:
    """Return an answer with the scores that are expected, where they differ by no more than processors do.

    One computes a cosine in another order than the next, and a probability goes up to five times as far.
    """
    if isinstance(answer, dict) and isinstance(expected, dict):
        return {name: near(each, expected.get(name), tolerance) for name, each in answer.items()}
    if isinstance(answer, list) and isinstance(expected, list) and len(answer) == len(expected):
        return [near(*pair, tolerance) for pair in zip(answer, expected, strict=True)]
    is_score = isinstance(answer, float) and isinstance(expected, float)
    return expected if is_score and abs(answer - expected) < tolerance else answer


@pytest.mark.parametrize("name", SESSIONS)
def test_requests_are_answered_as_before(name: str, session: Session, pytestconfig: pytest.Config) -> None:
    """What a change of the code must not change; what is meant to change is read here, line by line."""
    path = GOLDEN / f"{name}.json"
    before = path.read_text(encoding="utf-8")
    asked = [{**each, "answer": near(session.ask(each), each.get("answer"))} for each in json.loads(before)]
    after = _formatted(asked) + "\n"
    if pytestconfig.getoption("--rewrite-golden"):
        path.write_text(after, encoding="utf-8")
    assert after.splitlines() == before.splitlines() or pytestconfig.getoption("--rewrite-golden")


def test_every_session_is_run() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(SESSIONS)


@pytest.mark.parametrize("name", SESSIONS)
def test_times_in_answers_are_utc_and_end_in_z(name: str) -> None:
    answers = json.dumps([each["answer"] for each in json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))])
    times = re.findall(r"\d{4}-\d\d-\d\dT\d\d:[\d:.]+\S{0,6}", answers)
    assert [time for time in times if not re.match(r"[\dT:.-]+Z", time)] == []
