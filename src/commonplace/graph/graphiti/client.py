"""Call the tools of Graphiti's MCP server; thread-safe, with sessions that reconnect.

It uses the protocol versions with sessions, 2024-11-05 to 2025-11-25.

Behaviour of the tools (github.com/getzep/graphiti, mcp_server): `add_memory` queues an episode and returns no id. Its
`uuid` must be that of an existing episode; with a new one, the episode is lost when the queue is processed. So none is
passed, and our episodes are recognised by a mark in their names. The id of a group consists of letters, digits, `-` and
`_`.

FalkorDB keeps each group in a graph of that name. `add_memory` and the searches use it; `get_episodes`,
`delete_episode` and `clear_graph` use the one graph FALKORDB_DATABASE instead, whatever group is passed, and report
success.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any, Final, TypeVar

from commonplace.dataclasses import dataclass, field, replace
from commonplace.dates.time import iso
from commonplace.errors import CommonplaceError, ConfigError, ProviderError
from commonplace.formats.graphiti import GraphitiFact, read_entity, read_episode, read_relation
from commonplace.formats.jsonrpc import METHOD_NOT_FOUND, decode, notification
from commonplace.graph.graphiti.transport import SessionEndedError, Transport, UnansweredError, printable
from commonplace.models.http import Timeouts
from commonplace.types.graph import Entity, Episode

T = TypeVar("T")

VERSIONS: Final = ("2025-06-18", "2025-11-25", "2025-03-26", "2024-11-05")
"""Supported protocol versions, the one requested first."""
START_S: Final = 20.0
"""Seconds allowed for starting a server, which may wait for its database."""
_MAX_SHOWN: Final = 300
MAX_EPISODES: Final = 1_000
"""Maximum number of episodes of a group that are searched for one of ours."""
NEEDED: Final = frozenset({"add_memory", "search_nodes", "search_memory_facts", "get_episodes"})
_PLAIN: Final = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
_HASHED: Final = re.compile(r"h_[0-9a-f]{32}")
_MARK: Final = re.compile(r" ?\[commonplace:(?P<id>[^\[\]]+)\]$")
_MAX_NAME_LENGTH: Final = 120


class ToolError(ProviderError):
    """Read what the server says: it was reached, and did not do what it was asked."""


@dataclass(eq=False, slots=True)
class GraphitiTools:
    """Calls tools, one at a time. An answer that cannot be read is a `ProviderError`. Safe for threads.

    Attributes:
        name: the name of the server in messages. Nothing is sent before the first call.
        is_started: the server is a process started by this client; it starts slowly and ends with the session.
    """

    name: str
    open_transport: Callable[[], Transport]
    timeout_s: float
    is_started: bool = False
    clock: Callable[[], float] = time.monotonic
    _turn: threading.RLock = field(default_factory=threading.RLock)
    _timeouts: Timeouts | None = None
    _transport: Transport | None = None
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _tools: frozenset[str] = frozenset()

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and return its answer.

        Raises:
            ProviderError: it was not called, or reports that it failed.
            UnansweredError: it is unknown whether it was executed.
        """
        params = {"name": tool, "arguments": dict(arguments)}
        with self.within_limit() as timeouts:
            for is_last in (False, True):
                try:
                    return self._result(tool, self._ask(self._opened(), "tools/call", params, timeouts))
                except ToolError:
                    raise
                except ProviderError as error:
                    self.close()
                    # Retry once: the session may have ended unnoticed, by a restart or the death of the process.
                    if is_last or not isinstance(error, SessionEndedError):
                        raise
        raise AssertionError

    def close(self) -> None:
        """End the session, if there is one; the next call opens another."""
        with self._turn:
            transport, self._transport = self._transport, None
            if transport is not None:
                transport.close()

    def timeouts(self, at_least_s: float = 0.0) -> Timeouts:
        """Return the time limit of a call that begins now."""
        longest_s = max(self.timeout_s, at_least_s)
        return Timeouts(longest_s, self.clock() + longest_s, self.clock)

    @contextmanager
    def within_limit(self) -> Iterator[Timeouts]:
        """Apply the time limit of one call to all calls in a `with` block; other threads wait meanwhile."""
        if not self._turn.acquire(timeout=self.timeout_s):
            raise ProviderError(f"{self.name} is busy with others' calls", remedy="try again")
        outer = self._timeouts
        self._timeouts = outer or self.timeouts()
        try:
            yield self._timeouts
        finally:
            self._timeouts = outer
            self._turn.release()

    def _opened(self) -> Transport:
        if self._transport is None:
            timeouts = self.timeouts(START_S if self.is_started else 0.0)
            transport = self.open_transport()
            try:
                self._tools = self._begin(transport, timeouts)
            except UnansweredError as error:
                transport.close()
                # Only `initialize` was sent, so a retry is safe.
                raise ProviderError(str(error.args[0]), status=error.status, remedy=error.remedy) from error
            except BaseException:
                transport.close()
                raise
            self._transport = transport
        return self._transport

    def _begin(self, transport: Transport, timeouts: Timeouts) -> frozenset[str]:
        client = {"name": "commonplace", "version": version("commonplace")}
        params: dict[str, Any] = {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": client}
        opened = self._ask(transport, "initialize", params, timeouts)
        agreed = opened.get("protocolVersion")
        if agreed not in VERSIONS:
            problem = f"{self.name} speaks version {agreed!r:.30} of the protocol"
            raise ProviderError(problem, remedy=f"one of {', '.join(VERSIONS)} is understood")
        transport.tell(notification("notifications/initialized", {}), timeouts)
        tools = self._ask(transport, "tools/list", {}, timeouts).get("tools")
        listed = tools if isinstance(tools, list) else []
        return frozenset(str(tool.get("name")) for tool in listed if isinstance(tool, dict))

    def _ask(self, transport: Transport, method: str, params: Mapping[str, Any], timeouts: Timeouts) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer = transport.ask(message, timeouts)
        error = answer.get("error")
        if error is not None:
            reason = error.get("message") if isinstance(error, dict) else error
            code = error.get("code") if isinstance(error, dict) else None
            advice = "check its version" if code == METHOD_NOT_FOUND else "see its log"
            raise ToolError(f"{self.name} refused {method}: {printable(reason)[:_MAX_SHOWN]}", remedy=advice)
        result = answer.get("result")
        if not isinstance(result, dict):
            raise UnansweredError(f"{self.name} answered {method} with something else", remedy="see its log")
        return result

    def _result(self, tool: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a tool, however the server wraps it."""
        parts = (part for part in result.get("content") or () if isinstance(part, dict))
        texts = [part.get("text") for part in parts if part.get("type") == "text"]
        if result.get("isError"):
            raise self._failed(tool, " ".join(map(str, texts)))
        content: Any = result.get("structuredContent")
        if not isinstance(content, dict):
            with suppress(CommonplaceError, json.JSONDecodeError):
                content = decode(str(texts[0]).encode("utf-8", "replace")) if texts else None
        if isinstance(content, dict) and content.keys() == {"result"} and isinstance(content["result"], dict):
            content = content["result"]
        if not isinstance(content, dict):
            raise UnansweredError(f"{tool} of {self.name} answered no JSON object", remedy="see its log")
        if content.keys() == {"error"} and isinstance(content["error"], str):
            raise self._failed(tool, content["error"])
        return content

    def _failed(self, tool: str, reason: str) -> ToolError:
        return ToolError(f"{tool} of {self.name} failed: {printable(reason)[:_MAX_SHOWN]}", remedy="see its log")

    def check(self) -> frozenset[str]:
        """Return the names of the server's tools; raise a `ProviderError` if it is no Graphiti server, or away."""
        with self.within_limit():
            self._opened()
        if missing := sorted(NEEDED - self._tools):
            problem = f"the MCP server has no tool {' and no '.join(missing)}"
            raise ProviderError(problem, remedy="name one of Graphiti's in graph.graph_uri")
        return self._tools

    def add_memory(self, episode: Episode) -> None:
        """Queue an episode, with its text and its group at Graphiti; a mark in its name holds its id."""
        self.call(
            "add_memory",
            {
                "name": f"{episode.name[:_MAX_NAME_LENGTH]} [commonplace:{episode.id}]".lstrip(),
                "episode_body": episode.content,
                "group_id": episode.group,
                "source": "text" if episode.source == "memory" else episode.source,
                "source_description": episode.source_description,
                "reference_time": iso(episode.reference_time),
            },
        )

    def search_nodes(self, query: str, groups: Sequence[str], limit: int, *, now: float) -> list[Entity]:
        answer = self.call("search_nodes", {"query": query, "group_ids": list(groups), "max_nodes": limit})
        return _read(answer, "nodes", limit, lambda node, path: read_entity(node, path, now))

    def search_facts(
        self, query: str, groups: Sequence[str], limit: int, *, centre: str = "", now: float
    ) -> list[GraphitiFact]:
        arguments: dict[str, Any] = {"query": query, "group_ids": list(groups), "max_facts": limit}
        if centre:
            arguments["center_node_uuid"] = centre
        answer = self.call("search_memory_facts", arguments)
        return _read(answer, "facts", limit, lambda fact, path: read_relation(fact, path, now))

    def episodes(self, groups: Sequence[str], limit: int) -> list[Episode]:
        """Return episodes, in no order; the names of ours still have their marks."""
        answer = self.call("get_episodes", {"group_ids": list(groups), "max_episodes": limit})
        return _read(answer, "episodes", limit, read_episode)

    def delete_episode(self, id_: str) -> None:
        self.call("delete_episode", {"uuid": id_})


def own_id(name: str) -> str:
    """Return the id in the mark of an episode's name at Graphiti; "" if it has none."""
    match = _MARK.search(name)
    return match["id"] if match else ""


def unmarked(episode: Episode) -> Episode:
    """Return one of our episodes with its own id and name; any other unchanged."""
    id_ = own_id(episode.name)
    return replace(episode, id=id_, name=_MARK.sub("", episode.name)) if id_ else episode


def group_of(namespace: str, label: str, default: str) -> str:
    """Return the unique name at Graphiti of a group of a namespace; `default`: the group of items without a label."""
    group = _part(label or default)
    return group if namespace == "default" else f"{_part(namespace)}__{group}"


def _part(name: str) -> str:
    if _PLAIN.fullmatch(name) and not _HASHED.fullmatch(name):
        return name
    return f"h_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _read(answer: Mapping[str, Any], name: str, limit: int, read: Callable[[object, str], T]) -> list[T]:
    records = answer.get(name)
    if not isinstance(records, list):
        raise ProviderError(f"Graphiti answered without {name}", remedy="check its version")
    try:
        return [read(record, f"{name}[{index}]") for index, record in enumerate(records[:limit])]
    except ConfigError as error:
        raise ProviderError(f"Graphiti answered something else: {error.args[0]}", remedy="check its version") from error
