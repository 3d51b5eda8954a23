"""Call the tools of an MCP server, in a session that is opened when needed and again when it ended. Safe for threads.

It speaks the protocol's session era, 2024-11-05 to 2025-11-25, which servers of today still serve.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from commonplace.errors import CommonplaceError, ProviderError
from commonplace.formats.jsonrpc import METHOD_NOT_FOUND, decode, notification
from commonplace.graph.graphiti.transports import Deadline, SessionEndedError, Transport, UnansweredError

VERSIONS: Final = ("2025-06-18", "2025-11-25", "2025-03-26", "2024-11-05")
"""Those that are understood, the one that is asked for first."""
START_S: Final = 20.0
"""A server that is started may need so long for its database."""
_MOST_PAGES: Final = 20
_MOST_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class Access:
    """A server, and how long it is waited for.

    Attributes:
        name: what messages call it.
        open: makes a transport; nothing is sent before the first call.
        is_started: it is a process that we start, which takes its time.
    """

    name: str
    open: Callable[[], Transport]
    timeout_s: float
    is_started: bool = False


class Session:
    """Calls tools, one at a time."""

    def __init__(self, access: Access, clock: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._clock = clock
        self._turn = threading.Lock()
        self._transport: Transport | None = None
        self._ids = itertools.count(1)
        self._tools: frozenset[str] = frozenset()
        self._own = threading.local()

    def tools(self) -> frozenset[str]:
        """Return the names of the tools that the server has.

        Raises:
            ProviderError: it cannot be asked.
        """
        with self._taken():
            self._opened()
            return self._tools

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and return what it answers.

        Raises:
            ProviderError: it was not called, or says that it did nothing.
            UnansweredError: nobody knows whether it did.
        """
        with self._taken() as deadline:
            try:
                return self._called(tool, arguments, deadline)
            except SessionEndedError:
                # It ended while nobody spoke: a server that was started anew, a process that died.
                self._drop()
                return self._called(tool, arguments, deadline)

    def close(self) -> None:
        """End the session; calling twice is harmless."""
        with self._turn:
            self._drop()

    @contextmanager
    def within_limit(self) -> Iterator[Deadline]:
        """Let all calls that this thread makes in a `with` block take together as long as one may."""
        self._own.deadline = Deadline(self._clock() + self._access.timeout_s, self._clock)
        try:
            yield self._own.deadline
        finally:
            self._own.deadline = None

    @contextmanager
    def _taken(self) -> Iterator[Deadline]:
        deadline: Deadline | None = getattr(self._own, "deadline", None)
        deadline = deadline or Deadline(self._clock() + self._access.timeout_s, self._clock)
        if not self._turn.acquire(timeout=deadline.left_s):
            raise ProviderError(f"{self._access.name} is busy with others' calls", remedy="try again")
        try:
            yield deadline
        finally:
            self._turn.release()

    def _called(self, tool: str, arguments: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        params = {"name": tool, "arguments": dict(arguments)}
        try:
            return self._result(tool, self._ask(self._opened(), "tools/call", params, deadline))
        except ToolError:
            raise
        except ProviderError:
            self._drop()
            raise

    def _opened(self) -> Transport:
        if self._transport is None:
            limit = max(START_S, self._access.timeout_s) if self._access.is_started else self._access.timeout_s
            deadline = Deadline(self._clock() + limit, self._clock)
            transport = self._access.open()
            try:
                self._tools = self._begin(transport, deadline)
            except UnansweredError as error:
                transport.close()
                # Nothing was asked for yet but to begin.
                raise ProviderError(str(error.args[0]), status=error.status, remedy=error.remedy) from error
            except BaseException:
                transport.close()
                raise
            self._transport = transport
        return self._transport

    def _begin(self, transport: Transport, deadline: Deadline) -> frozenset[str]:
        from importlib.metadata import version

        client = {"name": "commonplace", "version": version("commonplace")}
        params: dict[str, Any] = {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": client}
        opened = self._ask(transport, "initialize", params, deadline)
        agreed = opened.get("protocolVersion")
        if agreed not in VERSIONS:
            raise ProviderError(
                f"{self._access.name} speaks version {agreed!r:.30} of the protocol",
                remedy=f"one of {', '.join(VERSIONS)} is understood",
            )
        transport.agree(str(agreed))
        transport.tell(notification("notifications/initialized", {}), deadline)
        names: list[str] = []
        cursor: object = None
        for _ in range(_MOST_PAGES):
            page = self._ask(transport, "tools/list", {} if cursor is None else {"cursor": cursor}, deadline)
            tools = page.get("tools")
            names += (
                [str(each.get("name")) for each in tools if isinstance(each, dict)] if isinstance(tools, list) else []
            )
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        return frozenset(names)

    def _ask(self, transport: Transport, method: str, params: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer = transport.ask(message, deadline)
        error = answer.get("error")
        if error is not None:
            told = error.get("message") if isinstance(error, dict) else error
            code = error.get("code") if isinstance(error, dict) else None
            helps = "check its version" if code == METHOD_NOT_FOUND else "see its log"
            raise ToolError(f"{self._access.name} refused {method}: {_line(told)}", remedy=helps)
        result = answer.get("result")
        if not isinstance(result, dict):
            raise UnansweredError(f"{self._access.name} answered {method} with something else", remedy="see its log")
        return result

    def _result(self, tool: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a tool answers, however its server wraps it."""
        texts = [
            each.get("text")
            for each in result.get("content") or ()
            if isinstance(each, dict) and each.get("type") == "text"
        ]
        if result.get("isError"):
            raise ToolError(
                f"{tool} of {self._access.name} failed: {_line(' '.join(map(str, texts)))}", remedy="see its log"
            )
        found: Any = result.get("structuredContent")
        if not isinstance(found, dict):
            found = _json(texts[0]) if texts else None
        if isinstance(found, dict) and found.keys() == {"result"} and isinstance(found["result"], dict):
            found = found["result"]
        if not isinstance(found, dict):
            raise UnansweredError(f"{tool} of {self._access.name} answered no JSON object", remedy="see its log")
        if found.keys() == {"error"} and isinstance(found["error"], str):
            raise ToolError(f"{tool} of {self._access.name} failed: {_line(found['error'])}", remedy="see its log")
        return found

    def _drop(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()


class ToolError(ProviderError):
    """Read what the server says: it was reached, and did not do what it was asked."""


def _json(text: object) -> object:
    try:
        return decode(text.encode("utf-8", "replace")) if isinstance(text, str) else None
    except (CommonplaceError, json.JSONDecodeError):
        return None


def _line(told: object) -> str:
    from commonplace.redaction import redact

    text = "".join(each if each.isprintable() else " " for each in str(told))
    return redact(text).text[:_MOST_SHOWN]
