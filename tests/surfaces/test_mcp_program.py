"""The official client drives the real process `commonplace mcp`: every tool, and all that a client can do wrong."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import jsonschema
import mcp_types
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from tests.surfaces.mcp_process import LIMIT_S, PROGRAM, store_held

import commonplace
from commonplace.mcp.tools import MAX_TOKENS
from commonplace.types import Document

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

ERAS = ["legacy", "auto"]
MEGABYTE = 1_000_000
MOST_CHARACTERS = 16 * MAX_TOKENS
"""No response is longer: a token of any text that is used here has fewer."""

NOTES = [
    "Billing keeps its invoices in a Postgres database since the move in March.",
    "Ada decided that refunds above a hundred euros need a second pair of eyes.",
]
QUESTIONS = ["where does billing keep its invoices", "who decided about refunds"]


class Agent:
    """A client that holds every result of a tool to the tool's own output schema."""

    def __init__(self, client: Client, tools: Mapping[str, mcp_types.Tool]) -> None:
        self.client = client
        self.tools = tools

    async def call(self, name: str, /, **arguments: Any) -> Any:
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result
        assert len(text_of(result)) <= MOST_CHARACTERS
        jsonschema.Draft202012Validator(self.tools[name].output_schema).validate(result.structured_content)
        return result.structured_content

    async def refusal(self, name: str, /, **arguments: Any) -> str:
        result = await self.client.call_tool(name, arguments)
        assert result.is_error, result
        assert len(text_of(result)) <= MOST_CHARACTERS
        return text_of(result)

    async def refused(self, name: str, /, **arguments: Any) -> MCPError:
        with pytest.raises(MCPError) as refused:
            await self.client.call_tool(name, arguments)
        assert len(str(refused.value)) <= MOST_CHARACTERS
        return refused.value


def text_of(result: Any) -> str:
    (block,) = result.content
    assert block.type == "text"
    return str(block.text)


@asynccontextmanager
async def agent_of(project: Path, mode: str, log: Path) -> AsyncIterator[Agent]:
    """An agent that works in a project, with a process of its own."""
    with log.open("w") as errors:
        server = StdioServerParameters(command=str(PROGRAM), args=["mcp"], cwd=project)
        async with Client(stdio_client(server, errlog=errors), mode=mode, read_timeout_seconds=LIMIT_S) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            yield Agent(client, tools)


Trying = Callable[[Callable[[Agent], Awaitable[None]]], None]


@pytest.fixture(params=ERAS)
def trying(request: pytest.FixtureRequest, bare: Program, tmp_path: Path) -> Trying:
    """Run something with an agent of each era in an empty store; nothing may be logged on standard error."""
    bare.run("init")

    def run(what: Callable[[Agent], Awaitable[None]]) -> None:
        log = tmp_path / "log"

        async def with_agent() -> None:
            async with agent_of(bare.project, request.param, log) as agent:
                await what(agent)

        asyncio.run(with_agent())
        assert log.read_text() == ""

    return run


def test_every_tool_answers_what_its_schema_promises(trying: Trying) -> None:
    async def work(agent: Agent) -> None:
        first = (await agent.call("memory_store", content=NOTES[0], tier="long", tags=["billing"]))["id"]
        second = (await agent.call("memory_store", content=NOTES[1], origin="user", category="decision"))["id"]
        [hit] = (await agent.call("memory_search", query=QUESTIONS[0]))["results"]
        assert (hit["id"], hit["snippet"]) == (first, NOTES[0])
        assert NOTES[0] in (await agent.call("memory_get", path=hit["path"], **{"from": 1}))["text"]
        assert NOTES[1] in (await agent.call("memory_context", task=QUESTIONS[1], maxTokens=500))["text"]
        link = await agent.call("memory_link", source=first, target=second, type="because", strength=0.5)
        around = await agent.call("memory_graph", id=first)
        assert ([each["id"] for each in around["memories"]], around["links"]) == ([first, second], [link])
        assert (await agent.call("memory_why", query=QUESTIONS[0], id=first))["rank"] == 1
        assert (await agent.call("memory_forget", ids=[first]))["forgotten"] is False
        assert (await agent.call("memory_forget", ids=[first], confirm=True))["verified"] is True
        assert (await agent.call("memory_search", query=QUESTIONS[0]))["results"] == []
        called = {"search", "get", "context", "store", "link", "graph", "why", "forget"}
        assert set(agent.tools) == {f"memory_{name}" for name in called}

    trying(work)


def test_every_tool_tells_what_is_wrong_with_its_arguments_and_goes_on(trying: Trying) -> None:
    async def err(agent: Agent) -> None:
        for name, tool in agent.tools.items():
            assert "nonsense is not known here" in await agent.refusal(name, nonsense=1)
            for required in tool.input_schema.get("required", ()):
                assert f"- {required} is missing" in await agent.refusal(name)
            for argument, schema in tool.input_schema["properties"].items():
                wrong = "x" if schema.get("type") != "string" else 7
                given = dict.fromkeys(tool.input_schema.get("required", ()), "x") | {argument: wrong}
                assert f"- {argument} is {json.dumps(wrong)}; give " in await agent.refusal(name, **given)
        assert (await agent.call("memory_search", query=QUESTIONS[0]))["results"] == []

    trying(err)


def test_a_megabyte_in_any_text_is_taken_or_refused_in_few_words(trying: Trying) -> None:
    huge = "x" * MEGABYTE

    async def exaggerate(agent: Agent) -> None:
        for name, tool in agent.tools.items():
            for argument, schema in tool.input_schema["properties"].items():
                if schema.get("type") == "string" and (name, argument) != ("memory_store", "content"):
                    given = dict.fromkeys(tool.input_schema.get("required", ()), "x") | {argument: huge}
                    assert await agent.refusal(name, **given)
            assert "is not known here" in await agent.refusal(name, **{huge: 1})
        assert "Unknown tool: x" in str(await agent.refused(huge))
        assert (await agent.call("memory_search", query=QUESTIONS[0]))["results"] == []

    trying(exaggerate)


@pytest.mark.parametrize("trying", ["auto"], indirect=True)
def test_a_memory_of_a_megabyte_is_kept_found_and_read_in_parts(trying: Trying) -> None:
    # Long lines, since the graph reads each sentence.
    text = "\n".join(f"On day {day} the tide came at {day * 37 % 1440}{' minutes' * 50}." for day in range(2_400))

    async def keep(agent: Agent) -> None:
        assert len(text) > MEGABYTE
        id_ = (await agent.call("memory_store", content=text, tier="medium"))["id"]
        hits = (await agent.call("memory_search", query="when did the tide come on day 2399", minScore=0))["results"]
        assert {hit["id"] for hit in hits} == {id_}
        part = await agent.call("memory_get", path=f"memory:{id_}", **{"from": 2_390})
        assert part["text"] == "\n".join(text.split("\n")[2_389:])
        assert "nextFrom" not in part

    trying(keep)


def test_five_megabytes_are_an_error_of_the_protocol_and_the_next_call_is_served(trying: Trying) -> None:
    async def exaggerate(agent: Agent) -> None:
        refused = await agent.refused("memory_store", content="x" * 5 * MEGABYTE)
        assert (refused.code, refused.message) == (-32600, "the line has more than 4194304 bytes; send less at a time")
        assert (await agent.call("memory_store", content=NOTES[0]))["outcome"] == "added"

    trying(exaggerate)


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(trying: Trying) -> None:
    async def ask(agent: Agent) -> None:
        refused = await agent.refused("memory_dream")
        assert (refused.code, refused.message) == (
            -32602,
            f"Unknown tool: memory_dream; there are {', '.join(agent.tools)}",
        )

    trying(ask)


@pytest.mark.parametrize("mode", ERAS)
def test_progress_of_a_search_that_must_first_rebuild_the_index_is_told(
    mode: str, bare: Program, tmp_path: Path
) -> None:
    store = bare.project / ".commonplace"
    with commonplace.open(store) as book:
        book.index_documents(Document(str(number), f"The lighthouse number {number} blinks.") for number in range(600))
    shutil.rmtree(store / "index")
    told: list[tuple[float, float | None, str | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def search() -> None:
        async with agent_of(bare.project, mode, tmp_path / "log") as agent:
            arguments = {"query": "lighthouse number 77", "minScore": 0}
            result = await agent.client.call_tool("memory_search", arguments, progress_callback=listen)
            assert not result.is_error

    asyncio.run(search())
    assert [total for _, total, _ in told] == [600] * len(told)
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert told[-1] == (600, 600, "indexing passages")


def test_call_that_the_client_gives_up_is_cancelled_and_the_next_is_served(trying: Trying) -> None:
    async def give_up(agent: Agent) -> None:
        assert (await agent.call("memory_search", query=QUESTIONS[0]))["results"] == []
        with store_held(Path()):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(agent.client.call_tool, "memory_store", {"content": NOTES[0]})
                    assert (await agent.call("memory_search", query=QUESTIONS[1]))["results"] == []
                    scope.cancel()
            assert scope.cancelled_caught
            assert (await agent.call("memory_search", query=QUESTIONS[1]))["results"] == []
        assert (await agent.call("memory_store", content=NOTES[1]))["outcome"] == "added"

    trying(give_up)


def test_pages_are_listed_and_read(trying: Trying) -> None:
    async def read(agent: Agent) -> None:
        await agent.call("memory_store", content=NOTES[0], tier="long")
        await agent.call("memory_store", content=NOTES[1], at="2026-03-05T09:00:00", tier="short")
        with commonplace.open() as book:
            book.sync()
        listed = {resource.uri: resource for resource in (await agent.client.list_resources()).resources}
        assert sorted(listed) == ["commonplace://MEMORY.md", "commonplace://memory/2026-03-05.md"]
        for uri, note in zip(sorted(listed), NOTES, strict=True):
            assert listed[uri].mime_type == "text/markdown"
            (contents,) = (await agent.client.read_resource(uri)).contents
            assert isinstance(contents, mcp_types.TextResourceContents)
            assert (contents.uri, contents.mime_type) == (uri, "text/markdown")
            assert note in contents.text
        for uri in ("commonplace://memory/2026-03-06.md", "commonplace://../../etc/passwd", "file:///etc/passwd", "x"):
            with pytest.raises(MCPError, match="Resource not found") as refused:
                await agent.client.read_resource(uri)
            assert refused.value.code == (-32002 if agent.client.protocol_version == "2025-11-25" else -32602)

    trying(read)


def test_the_prompt_tells_how_to_use_memory_and_what_is_known_of_the_task(trying: Trying) -> None:
    async def prompt(agent: Agent) -> None:
        await agent.call("memory_store", content=NOTES[0])
        (offered,) = (await agent.client.list_prompts()).prompts
        (general,) = (await agent.client.get_prompt(offered.name)).messages
        (particular,) = (await agent.client.get_prompt(offered.name, {"task": QUESTIONS[0]})).messages
        assert isinstance(general.content, mcp_types.TextContent)
        assert isinstance(particular.content, mcp_types.TextContent)
        assert particular.content.text.startswith(general.content.text)
        assert NOTES[0] in particular.content.text
        assert NOTES[0] not in general.content.text
        with pytest.raises(MCPError, match="Unknown prompt: other"):
            await agent.client.get_prompt("other")

    trying(prompt)


@pytest.mark.parametrize("modes", [("legacy", "legacy"), ("legacy", "auto")])
def test_two_clients_on_one_store_find_at_once_what_the_other_stored(
    modes: tuple[str, str], bare: Program, tmp_path: Path
) -> None:
    """Each is a process of its own; both write at the same time, nothing is lost, and nobody waits for an index."""
    bare.run("init")

    async def work(agent: Agent, name: str) -> set[str]:
        texts = [f"{name} saw the comet of the year {year}." for year in range(1908, 1920)]
        stored = await asyncio.gather(*(agent.call("memory_store", content=text, tier="medium") for text in texts))
        return {each["id"] for each in stored}

    async def meet() -> None:
        async with (
            agent_of(bare.project, modes[0], tmp_path / "log0") as ada,
            agent_of(bare.project, modes[1], tmp_path / "log1") as bob,
        ):
            of_ada, of_bob = await asyncio.gather(work(ada, "Ada"), work(bob, "Bob"))
            for agent, name, ids in ((ada, "Bob", of_bob), (bob, "Ada", of_ada)):
                found = await agent.call("memory_search", query=f"{name} saw a comet", minScore=0, maxResults=50)
                assert ids <= {hit["id"] for hit in found["results"]}
                last = await agent.call("memory_search", query=f"{name} saw the comet of 1919", minScore=0)
                assert last["results"][0]["snippet"] == f"{name} saw the comet of the year 1919."

    asyncio.run(meet())
    assert len(bare.json("list", "--limit", "100")) == 24
    assert (tmp_path / "log0").read_text() + (tmp_path / "log1").read_text() == ""
