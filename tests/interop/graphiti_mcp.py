"""Graphiti's MCP server over graphiti-core and FalkorDB, as small as it can be.

The server itself (github.com/getzep/graphiti, `mcp_server/`) is in no package index. This one has the tools that
Commonplace uses, under their names, and calls of graphiti-core what that one calls: so what it finds, loses and cannot
do is Graphiti's own doing. Configured by FALKORDB_URI, FALKORDB_DATABASE, OPENAI_BASE_URL as that one is.

    python graphiti_mcp.py --transport stdio
    python graphiti_mcp.py --transport http --port 8000
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from graphiti_backends import DIMENSIONS
from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.falkordb_driver import FalkorDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode
from graphiti_core.search.search_config_recipes import NODE_HYBRID_SEARCH_NODE_DISTANCE, NODE_HYBRID_SEARCH_RRF
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.utils.maintenance.graph_data_operations import clear_data
from mcp.server.fastmcp import FastMCP

Answer = dict[str, Any]


class Unranked(CrossEncoderClient):
    """Leaves what was found in its order; the searches of the tools ask for no more."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        del query
        return [(each, 1.0) for each in passages]


class Tools:
    """The tools, over one client; episodes are taken in one after the other in each group, after the answer."""

    def __init__(self) -> None:
        self._client: Graphiti | None = None
        self._queues: dict[str, asyncio.Queue[Callable[[], Awaitable[object]]]] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._lock = asyncio.Lock()

    async def client(self) -> Graphiti:
        """Return the client, made in the loop that it is used in."""
        async with self._lock:
            if self._client is None:
                uri, address = urlsplit(os.environ["FALKORDB_URI"]), os.environ["OPENAI_BASE_URL"]
                database = os.environ.get("FALKORDB_DATABASE", "default_db")
                driver = FalkorDriver(host=uri.hostname or "", port=uri.port or 6379, database=database)
                llm = LLMConfig(api_key="none", base_url=address, model="stub", small_model="stub")
                embedder = OpenAIEmbedderConfig(api_key="none", base_url=address, embedding_dim=DIMENSIONS)
                self._client = Graphiti(
                    graph_driver=driver,
                    llm_client=OpenAIGenericClient(llm),
                    embedder=OpenAIEmbedder(embedder),
                    cross_encoder=Unranked(),
                )
                await self._client.build_indices_and_constraints()
            return self._client

    async def add_memory(
        self,
        name: str,
        episode_body: str,
        group_id: str = "main",
        source: str = "text",
        source_description: str = "",
        uuid: str | None = None,
        reference_time: str | None = None,
    ) -> Answer:
        client = await self.client()
        at = datetime.fromisoformat(reference_time) if reference_time else datetime.now(UTC)

        async def take_in() -> object:
            return await client.add_episode(
                name=name,
                episode_body=episode_body,
                source_description=source_description,
                reference_time=at,
                source=EpisodeType[source],
                group_id=group_id,
                uuid=uuid,
            )

        if group_id not in self._queues:
            self._queues[group_id] = asyncio.Queue()
            self._workers.append(asyncio.create_task(self._work(self._queues[group_id])))
        await self._queues[group_id].put(take_in)
        return {"message": f"Episode '{name}' queued for processing in group '{group_id}'"}

    async def search_nodes(
        self,
        query: str,
        group_ids: list[str] | None = None,
        max_nodes: int = 10,
        entity_types: list[str] | None = None,
        center_node_uuid: str | None = None,
    ) -> Answer:
        found = await (await self.client()).search_(
            query=query,
            config=NODE_HYBRID_SEARCH_NODE_DISTANCE if center_node_uuid else NODE_HYBRID_SEARCH_RRF,
            group_ids=group_ids or ["main"],
            center_node_uuid=center_node_uuid,
            search_filter=SearchFilters(node_labels=entity_types),
        )
        nodes = [_node(each) for each in found.nodes[:max_nodes]]
        return {"message": "Nodes retrieved successfully" if nodes else "No relevant nodes found", "nodes": nodes}

    async def search_memory_facts(
        self, query: str, group_ids: list[str] | None = None, max_facts: int = 10, center_node_uuid: str | None = None
    ) -> Answer:
        found = await (await self.client()).search(
            group_ids=group_ids or ["main"], query=query, num_results=max_facts, center_node_uuid=center_node_uuid
        )
        return {"message": "Facts retrieved successfully", "facts": [_edge(each) for each in found]}

    async def get_episodes(self, group_ids: list[str] | None = None, max_episodes: int = 10) -> Answer:
        client = await self.client()
        found = await EpisodicNode.get_by_group_ids(client.driver, group_ids or ["main"], limit=max_episodes)
        episodes = [
            {
                "uuid": each.uuid,
                "name": each.name,
                "content": each.content,
                "created_at": each.created_at.isoformat(),
                "source": each.source.value,
                "source_description": each.source_description,
                "group_id": each.group_id,
            }
            for each in found
        ]
        return {"message": "Episodes retrieved successfully", "episodes": episodes}

    async def delete_episode(self, uuid: str) -> Answer:
        await (await self.client()).remove_episode(uuid)
        return {"message": f"Episode with UUID {uuid} deleted successfully"}

    async def clear_graph(self, group_ids: list[str] | None = None) -> Answer:
        await clear_data((await self.client()).driver, group_ids=group_ids or ["main"])
        return {"message": "Graph data cleared successfully"}

    async def _work(self, queue: asyncio.Queue[Callable[[], Awaitable[object]]]) -> None:
        while True:
            take_in = await queue.get()
            try:
                await take_in()
            except Exception:
                logging.exception("an episode was lost")


def _node(node: EntityNode) -> Answer:
    shown: Answer = node.model_dump(mode="json", exclude={"name_embedding"})
    shown["attributes"].pop("name_embedding", None)
    return shown


def _edge(edge: EntityEdge) -> Answer:
    shown: Answer = edge.model_dump(mode="json", exclude={"fact_embedding"})
    shown["attributes"].pop("fact_embedding", None)
    return shown


def _caught(tool: Callable[..., Awaitable[Answer]]) -> Callable[..., Awaitable[Answer]]:
    """Return a tool that answers an error as Graphiti's server does."""
    from functools import wraps

    @wraps(tool)
    async def call(*given: Any, **named: Any) -> Answer:
        try:
            return await tool(*given, **named)
        except Exception as error:
            logging.exception("a tool failed")
            return {"error": f"Error: {error}"}

    return call


TOOLS = ("add_memory search_nodes search_memory_facts get_episodes delete_episode clear_graph").split()


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["stdio", "http"], default="http")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    server, tools = FastMCP("Graphiti Agent Memory", port=given.port, log_level="WARNING"), Tools()
    for name in TOOLS:
        server.tool()(_caught(getattr(tools, name)))
    server.run("stdio" if given.transport == "stdio" else "streamable-http")


if __name__ == "__main__":
    main()
