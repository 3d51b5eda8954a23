"""The process `commonplace mcp` for tests that write and read its bytes themselves."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.unit.mcp.conversation import request

PROGRAM = Path(sys.executable).with_name("commonplace")
LIMIT_S = 600
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}


class Wire:
    """The process with its two pipes. One that does not answer is killed, so that the test fails instead of waiting."""

    def __init__(self, project: Path, limit_s: float = LIMIT_S, options: Sequence[str] = ()) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([PROGRAM, "mcp", *options], cwd=project, stdin=pipe, stdout=pipe, stderr=pipe)
        self._guard = threading.Timer(limit_s, self.process.kill)
        self._guard.daemon = True
        self._guard.start()

    def send(self, *lines: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def say(self, *values: Any) -> None:
        self.send(*(json.dumps(value).encode() for value in values))

    def hear(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, value: Any) -> Any:
        self.say(value)
        return self.hear()

    def greet(self, version: str = "2025-11-25") -> None:
        answer = self.ask(request("initialize", {**OPENING, "protocolVersion": version}, "greeting"))
        assert answer["result"]["protocolVersion"] == version
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end(self) -> list[Any]:
        """End the input, and return all that is still answered by a process that then ends well and logged nothing."""
        out, log = self.process.communicate(timeout=LIMIT_S)
        assert (self.process.returncode, log) == (0, b"")
        return [json.loads(line) for line in out.splitlines()]

    def close(self) -> None:
        self._guard.cancel()
        self.process.kill()
        self.process.communicate()


@contextmanager
def store_held(project: Path) -> Iterator[None]:
    """Keep every other process from writing to the store, as a long transaction of another does."""
    with closing(sqlite3.connect(project / ".commonplace" / "store.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")


def call(name: str, call_id: int | str = 1, /, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", {"name": name, "arguments": arguments}, call_id)


def structured(answer: Any) -> Any:
    assert "isError" not in answer["result"], answer
    return answer["result"]["structuredContent"]
