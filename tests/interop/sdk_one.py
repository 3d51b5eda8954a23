"""Drive a server with the official SDK's client of the 1.x line; run by `scripts/interop.py` where that is installed.

Arguments: the program to serve, the directory to serve in. Ends with an assertion error at the first surprise.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from pydantic import AnyUrl

LIMIT = timedelta(seconds=60)
NOTES = [
    "Billing keeps its invoices in a Postgres database since the move in March.",
    "Ada decided that refunds above a hundred euros need a second pair of eyes.",
]
QUESTIONS = ["where does billing keep its invoices", "who decided about refunds"]


@asynccontextmanager
async def session_of(program: str, directory: str) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(command=program, args=["mcp", "--store", "store"], cwd=directory)
    async with (
        stdio_client(server) as (reading, writing),
        ClientSession(reading, writing, read_timeout_seconds=LIMIT) as session,
    ):
        opened = await session.initialize()
        assert (opened.protocolVersion, opened.serverInfo.name) == ("2025-11-25", "commonplace")
        yield session


async def call(session: ClientSession, name: str, /, **arguments: Any) -> Any:
    """Call a tool; the client itself holds what comes back to the tool's output schema."""
    result = await session.call_tool(name, arguments)
    assert not result.isError, result
    return result.structuredContent


async def refusal(session: ClientSession, name: str, /, **arguments: Any) -> str:
    result = await session.call_tool(name, arguments)
    assert result.isError, result
    return str(result.content[0].text)


async def use_every_tool(session: ClientSession) -> None:
    assert len((await session.list_tools()).tools) == 8
    first = (await call(session, "memory_store", content=NOTES[0], tier="long", tags=["billing"]))["id"]
    second = (await call(session, "memory_store", content=NOTES[1], origin="user"))["id"]
    [hit] = (await call(session, "memory_search", query=QUESTIONS[0]))["results"]
    assert (hit["id"], hit["snippet"]) == (first, NOTES[0])
    assert NOTES[0] in (await call(session, "memory_get", path=hit["path"]))["text"]
    assert NOTES[1] in (await call(session, "memory_context", task=QUESTIONS[1]))["text"]
    link = await call(session, "memory_link", source=first, target=second)
    assert (await call(session, "memory_graph", id=first))["links"] == [link]
    assert (await call(session, "memory_why", query=QUESTIONS[0], id=first))["rank"] == 1
    assert (await call(session, "memory_forget", ids=[first]))["forgotten"] is False
    assert (await call(session, "memory_forget", ids=[first], confirm=True))["verified"] is True


async def err(session: ClientSession) -> None:
    assert "nonsense is not known here" in await refusal(session, "memory_search", query="x", nonsense=1)
    assert "the maximum is 50" in await refusal(session, "memory_search", query="x", maxResults=51)
    assert "the limit is 100000" in await refusal(session, "memory_search", query="x" * 1_000_000)
    for wrong, told in (
        (session.call_tool("memory_dream", {}), "Unknown tool: memory_dream"),
        (session.call_tool("memory_store", {"content": "x" * 5_000_000}), "more than 4194304 bytes"),
        (session.read_resource(AnyUrl("commonplace://memory/1999-01-01.md")), "Resource not found"),
        (session.get_prompt("dream"), "Unknown prompt: dream"),
    ):
        try:
            await wrong
        except McpError as error:
            assert told in str(error), error
        else:
            raise AssertionError(f"no error: {told}")
    await session.send_ping()


async def read(session: ClientSession) -> None:
    for resource in (await session.list_resources()).resources:
        (contents,) = (await session.read_resource(resource.uri)).contents
        assert contents.mimeType == "text/markdown"
    assert (await session.list_resource_templates()).resourceTemplates == []
    (prompt,) = (await session.list_prompts()).prompts
    (message,) = (await session.get_prompt(prompt.name, {"task": QUESTIONS[1]})).messages
    assert NOTES[1] in message.content.text


async def main(program: str, directory: str) -> None:
    async with session_of(program, directory) as session, session_of(program, directory) as other:
        await use_every_tool(session)
        await err(session)
        await read(session)
        stored = [call(session, "memory_store", content=f"Ada saw the comet of {year}.") for year in range(1900, 1912)]
        ids = {each["id"] for each in await asyncio.gather(*stored)}
        found = await call(other, "memory_search", query="Ada saw the comet", minScore=0, maxResults=50)
        assert ids <= {hit["id"] for hit in found["results"]}
    print(f"mcp {version('mcp')}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
