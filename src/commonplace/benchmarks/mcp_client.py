"""Start the real server process and time what it answers, one request after the other."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from commonplace.errors import CommonplaceError

VERSION = "2025-11-25"
_TIMEOUT_S = 60
_PROGRAM = "from commonplace.cli.main import main; main()"


class Server:
    """A process `commonplace mcp` over a store; `started` is when it was asked for, on the clock of `perf_counter`."""

    def __init__(self, store: Path, options: Sequence[str] = ()) -> None:
        command = [sys.executable, "-c", _PROGRAM, "mcp", "--store", str(store), *options]
        self.started = time.perf_counter()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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
            raise CommonplaceError(f"the server ended with {self._process.returncode}: {_last(complaint)}")

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
            raise CommonplaceError(f"the server ended with {self._process.returncode}: {_last(complaint)}")
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


def _last(complaint: bytes) -> str:
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
