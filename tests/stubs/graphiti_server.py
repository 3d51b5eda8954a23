"""A server with the tools and answers of Graphiti's MCP server, made with the official SDK; it has no model.

    with GraphitiServer() as server:
        open_with(graph_uri=server.url)

As a script it serves on its pipes, and keeps what it has in a file: `python graphiti_server.py FILE`. As Graphiti's,
`add_memory` only queues: `work` takes the queue in, at once where `works_at_once`. A `uuid` given to it names an
episode that is there already, else the episode is lost.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import uuid as uuids
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from mcp.server import MCPServer

NOW = "2026-01-29T12:00:00Z"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


class ErrorResponse(TypedDict):
    error: str


class SuccessResponse(TypedDict):
    message: str


class NodeSearchResponse(TypedDict):
    message: str
    nodes: list[dict[str, Any]]


class FactSearchResponse(TypedDict):
    message: str
    facts: list[dict[str, Any]]


class EpisodeSearchResponse(TypedDict):
    message: str
    episodes: list[dict[str, Any]]


@dataclass
class State:
    """What a server has, and what was asked of it."""

    episodes: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    queue: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    works_at_once: bool = True
    looks: int = sys.maxsize
    """After so many calls of `get_episodes` the queue is worked off."""
    database: str = ""
    """Over FalkorDB, which keeps each group in a graph of its own: the one graph that all tools but the searches and
    `add_memory` work on, whatever group they are given. "" is Neo4j, which keeps all groups together."""

    def has(self, group: str) -> bool:
        """Return whether the tools that do not look for a group's graph see a group."""
        return self.database in ("", group)

    def work(self) -> None:
        """Take in what is queued."""
        for each in self.queue:
            known = [episode for episode in self.episodes if episode["uuid"] == each["uuid"]]
            if each["uuid"] is None or known:
                self.episodes.append({**each, "uuid": each["uuid"] or str(uuids.uuid4())})
        self.queue.clear()

    def called(self, tool: str) -> list[dict[str, Any]]:
        """Return what a tool was called with."""
        return [arguments for name, arguments in self.calls if name == tool]

    def node(self, name: str, *labels: str, group: str = "main", summary: str = "", uuid: str = "") -> str:
        """Add an entity and return its id."""
        id_ = uuid or str(uuids.uuid5(uuids.NAMESPACE_URL, f"{group}/{name}"))
        if all(each["uuid"] != id_ for each in self.nodes):
            self.nodes.append(
                {
                    "uuid": id_,
                    "name": name,
                    "labels": ["Entity", *labels],
                    "created_at": NOW,
                    "summary": summary,
                    "group_id": group,
                    "attributes": {},
                }
            )
        return id_

    def fact(self, source: str, name: str, target: str, fact: str, **more: Any) -> str:
        """Add a fact about two entities, by their names or ids, and return its id."""
        group = more.get("group_id", "main")
        ids = {each["name"]: each["uuid"] for each in self.nodes if each["group_id"] == group}
        edge = {
            "uuid": str(uuids.uuid4()),
            "group_id": group,
            "source_node_uuid": ids.get(source, source),
            "target_node_uuid": ids.get(target, target),
            "created_at": NOW,
            "name": name,
            "fact": fact,
            "episodes": [],
            "expired_at": None,
            "valid_at": None,
            "invalid_at": None,
            "attributes": {},
        }
        self.facts.append({**edge, **more})
        return str(self.facts[-1]["uuid"])


class Tools:
    """The tools of a server, over what a state has."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = threading.Lock()

    def _note(self, tool: str, /, **arguments: Any) -> None:
        with self._lock:
            self._state.calls.append((tool, {name: value for name, value in arguments.items() if value is not None}))

    def _chosen(self, items: list[dict[str, Any]], group_ids: str | list[str] | None) -> list[dict[str, Any]]:
        groups = [group_ids] if isinstance(group_ids, str) else group_ids or ["main"]
        return [each for each in items if each["group_id"] in groups]

    def _ranked(self, items: list[dict[str, Any]], query: str, *names: str) -> list[dict[str, Any]]:
        """Return all, those that share most words with the query first: Graphiti always finds something."""
        if _ID.fullmatch(query):
            return []  # ids are in no index
        words = set(query.lower().split())
        texts = [" ".join(str(each[name]) for name in names).lower().split() for each in items]
        order = sorted(range(len(items)), key=lambda place: -len(words & set(texts[place])))
        return [items[place] for place in order]

    def add_memory(
        self,
        name: str,
        episode_body: str,
        group_id: str | None = None,
        source: str = "text",
        source_description: str = "",
        uuid: str | None = None,
        reference_time: str | None = None,
    ) -> SuccessResponse | ErrorResponse:
        self._note("add_memory", name=name, episode_body=episode_body, group_id=group_id, source=source, uuid=uuid)
        if "add_memory" in self._state.refuses:
            return ErrorResponse(error="Error queuing episode: no database")
        with self._lock:
            self._state.queue.append(
                {
                    "uuid": uuid,
                    "name": name,
                    "content": episode_body,
                    "created_at": reference_time or NOW,
                    "source": source,
                    "source_description": source_description,
                    "group_id": group_id or "main",
                }
            )
            if self._state.works_at_once:
                self._state.work()
        return SuccessResponse(message=f"Episode '{name}' queued")

    def search_nodes(
        self,
        query: str,
        group_ids: str | list[str] | None = None,
        max_nodes: int = 10,
        entity_types: list[str] | None = None,
        center_node_uuid: str | None = None,
    ) -> NodeSearchResponse | ErrorResponse:
        self._note("search_nodes", query=query, group_ids=group_ids, max_nodes=max_nodes)
        if "search_nodes" in self._state.refuses:
            return ErrorResponse(error="Error searching nodes: no database")
        found = self._ranked(self._chosen(self._state.nodes, group_ids), query, "name", "summary")
        return NodeSearchResponse(message="Nodes retrieved successfully", nodes=found[:max_nodes])

    def search_memory_facts(
        self,
        query: str,
        group_ids: str | list[str] | None = None,
        max_facts: int = 10,
        center_node_uuid: str | None = None,
    ) -> FactSearchResponse | ErrorResponse:
        self._note("search_memory_facts", query=query, group_ids=group_ids, center_node_uuid=center_node_uuid)
        found = self._ranked(self._chosen(self._state.facts, group_ids), query, "fact")
        if center_node_uuid:
            found.sort(key=lambda each: center_node_uuid not in (each["source_node_uuid"], each["target_node_uuid"]))
        return FactSearchResponse(message="Facts retrieved successfully", facts=found[:max_facts])

    def get_episodes(
        self, group_ids: str | list[str] | None = None, max_episodes: int = 10
    ) -> EpisodeSearchResponse | ErrorResponse:
        self._note("get_episodes", group_ids=group_ids, max_episodes=max_episodes)
        if len(self._state.called("get_episodes")) > self._state.looks:
            self._state.work()
        chosen = [each for each in self._chosen(self._state.episodes, group_ids) if self._state.has(each["group_id"])]
        found = sorted(chosen, key=lambda each: str(each["uuid"]), reverse=True)
        return EpisodeSearchResponse(message="Episodes retrieved successfully", episodes=found[:max_episodes])

    def delete_episode(self, uuid: str) -> SuccessResponse | ErrorResponse:
        self._note("delete_episode", uuid=uuid)
        if "delete_episode" in self._state.refuses:
            return ErrorResponse(error="Error deleting episode: no database")
        if all(each["uuid"] != uuid or not self._state.has(each["group_id"]) for each in self._state.episodes):
            return ErrorResponse(error=f"Error deleting episode: node {uuid} not found")
        self._state.episodes[:] = [each for each in self._state.episodes if each["uuid"] != uuid]
        return SuccessResponse(message=f"Episode with UUID {uuid} deleted successfully")

    def get_entity_edge(self, uuid: str) -> dict[str, Any]:
        return next((each for each in self._state.facts if each["uuid"] == uuid), {"error": "not found"})

    def clear_graph(self, group_ids: str | list[str] | None = None) -> SuccessResponse | ErrorResponse:
        self._note("clear_graph", group_ids=group_ids)
        if not group_ids:
            return ErrorResponse(error="No group IDs")
        state = self._state
        for items in (state.episodes, state.nodes, state.facts):
            items[:] = [each for each in items if each["group_id"] not in group_ids or not state.has(each["group_id"])]
        return SuccessResponse(message=f"Graph data cleared successfully for group IDs: {group_ids}")

    def get_status(self) -> dict[str, str]:
        return {"status": "ok", "message": "Graphiti MCP server is running"}


TOOLS = (
    "add_memory search_nodes search_memory_facts get_episodes delete_episode get_entity_edge clear_graph get_status"
).split()


def server_of(state: State, without: frozenset[str] = frozenset()) -> MCPServer:
    """Return a server of what a state has. `without`: tools that it lacks."""
    from mcp.server import MCPServer  # takes a second, which each process would need

    server, tools = MCPServer("Graphiti Agent Memory", log_level="CRITICAL"), Tools(state)
    for name in TOOLS:
        if name not in without:
            server.tool()(getattr(tools, name))
    return server


class GraphitiServer:
    """The stub over streamable HTTP on 127.0.0.1; it serves from `with` on until its end."""

    def __init__(
        self,
        state: State | None = None,
        *,
        without: frozenset[str] = frozenset(),
        json_response: bool = False,
        port: int = 0,
    ) -> None:
        self.state = state or State()
        self._without = without
        self._json_response = json_response
        self._port = port

    def __enter__(self) -> Self:
        import socket

        import uvicorn

        app = server_of(self.state, self._without).streamable_http_app(json_response=self._json_response)
        self._socket = socket.create_server(("127.0.0.1", self._port))
        self._port = self._socket.getsockname()[1]
        config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp/"


def serve_pipes(state: State) -> None:
    """Serve the tools on the pipes without the SDK, until the input ends."""
    tools = Tools(state)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["method"] == "initialize":
            result = {
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "Graphiti Agent Memory", "version": "0"},
            }
        elif asked["method"] == "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
        elif asked["method"] == "tools/call":
            answer = getattr(tools, asked["params"]["name"])(**asked["params"]["arguments"])
            result = {"content": [], "structuredContent": {"result": answer}}
        else:
            result = {}
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


def main(file: Path) -> None:
    """Serve on the pipes, with a state from a file, which is written anew whenever something is taken in.

    GRAPHITI_STUB says how it behaves: "sdk": by the official SDK, "die" when the first episode is taken in, "noisy",
    "slow": what is queued is taken in when it was looked for twice, or "idle": never. What is still queued when its
    input ends is lost.
    """
    manner = os.environ.get("GRAPHITI_STUB")
    state = State(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else State()
    inner = state.work
    state.works_at_once = manner not in ("slow", "idle")
    state.looks = 2 if manner == "slow" else sys.maxsize

    def work() -> None:
        inner()
        kept = {"episodes": state.episodes, "nodes": state.nodes, "facts": state.facts}
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps(kept), encoding="utf-8")
        fresh.replace(file)
        if manner == "die":
            print("no memory left", file=sys.stderr, flush=True)
            os._exit(9)

    state.work = work  # type: ignore[method-assign]
    given = {name: value for name, value in os.environ.items() if name.startswith(("NEO4J_", "FALKORDB_"))}
    file.with_suffix(".started").write_text(json.dumps([sys.argv[2:], given]), encoding="utf-8")
    if manner == "noisy":
        print("Starting up ...\n{not json", flush=True)
    if manner == "sdk":
        server_of(state).run("stdio")
    else:
        serve_pipes(state)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
