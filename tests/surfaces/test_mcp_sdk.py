"""The official client understands what we serve, in both eras, over the pipes of a real process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPDeprecationWarning

TOYS = Path(__file__).with_name("toy_mcp_server.py")
LIMIT_S = 30
ERAS = ["legacy", "auto", "2026-07-28"]


@asynccontextmanager
async def toys(mode: str, log: Path) -> AsyncIterator[Client]:
    """A client of a server that logs to a file."""
    with log.open("w") as errors:
        server = StdioServerParameters(command=sys.executable, args=["-W", "error", str(TOYS)])
        async with Client(stdio_client(server, errlog=errors), mode=mode, read_timeout_seconds=LIMIT_S) as client:
            yield client


@pytest.fixture(params=ERAS)
def trying(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Callable[[Client], Awaitable[None]]], str]:
    """Run something with a client of each era, and return what the server logged."""

    def run(what: Callable[[Client], Awaitable[None]]) -> str:
        log = tmp_path / "log"

        async def with_client() -> None:
            async with toys(request.param, log) as client:
                await what(client)

        asyncio.run(with_client())
        return log.read_text()

    return run


Trying = Callable[[Callable[[Client], Awaitable[None]]], str]


def text_of(result: Any) -> str:
    (block,) = result.content
    assert block.type == "text"
    return str(block.text)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_client_learns_whom_it_speaks_to(mode: str, tmp_path: Path) -> None:
    async def learn() -> None:
        async with toys(mode, tmp_path / "log") as client:
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.version) == ("toys", "0.1")
            assert client.instructions == "Play gently."
            offered = client.server_capabilities
            assert offered.tools is not None
            assert offered.resources is not None
            assert offered.prompts is not None
            assert offered.logging is None

    asyncio.run(learn())


def test_client_learns_which_tools_there_are(trying: Trying) -> None:
    async def learn(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools][:3] == ["echo", "count", "wait"]
        assert tools[0].annotations is not None
        assert tools[0].annotations.read_only_hint
        assert not tools[0].annotations.open_world_hint
        assert tools[0].output_schema is not None

    assert trying(learn) == ""


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_client_and_server_settle_on_the_newest_version_of_the_era(mode: str, version: str, tmp_path: Path) -> None:
    async def settle() -> None:
        async with toys(mode, tmp_path / "log") as client:
            assert client.protocol_version == version
            result = await client.call_tool("echo", {"text": "x"})
            assert result.structured_content == {"text": "x", "version": version}

    asyncio.run(settle())


def test_tool_answers_text_in_every_script_and_at_length(trying: Trying) -> None:
    async def call(client: Client) -> None:
        # What nobody sees is written out on the way to a model.
        shown = {
            "记忆 🧠 \u2028 \x00 line\nline": "记忆 🧠 \\u2028 \x00 line\nline",
            "long " * 200_000: "long " * 200_000,
        }
        for text, told in shown.items():
            result = await client.call_tool("echo", {"text": text})
            assert result.structured_content is not None
            assert result.structured_content["text"] == told
            assert json.loads(text_of(result))["text"] == text
            assert not result.is_error

    assert trying(call) == ""


def test_request_over_the_limit_is_an_error_to_the_client_and_the_next_is_served(trying: Trying) -> None:
    async def call(client: Client) -> None:
        with pytest.raises(MCPError, match="more than 4194304 bytes"):
            await client.call_tool("echo", {"text": "x" * 5_000_000})
        assert not (await client.call_tool("echo", {"text": "next"})).is_error

    trying(call)


def test_wrong_arguments_and_failures_reach_the_model(trying: Trying) -> None:
    async def call(client: Client) -> None:
        wrong = await client.call_tool("count", {"to": "three", "fast": True})
        assert wrong.is_error
        assert text_of(wrong).splitlines() == [
            "count was not run:",
            '- to is "three"; give an integer',
            "- fast is not known here; there are to",
            "Correct this and call it again.",
        ]
        foreseen = await client.call_tool("fail")
        assert (foreseen.is_error, text_of(foreseen)) == (True, "there is no toy 'x'; make one first")
        crashed = await client.call_tool("crash")
        assert crashed.is_error
        assert "ZeroDivisionError" in text_of(crashed)
        assert "secret" not in text_of(crashed)

    log = trying(call)
    assert "Traceback" in log
    assert "ZeroDivisionError: secret" in log


def test_unknown_tool_is_an_error_of_the_protocol(trying: Trying) -> None:
    async def call(client: Client) -> None:
        with pytest.raises(MCPError, match="Unknown tool: nothing") as refused:
            await client.call_tool("nothing")
        assert refused.value.code == -32602

    trying(call)


def test_progress_reaches_the_client(trying: Trying) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def call(client: Client) -> None:
        result = await client.call_tool("count", {"to": 3}, progress_callback=listen)
        assert result.structured_content == {"counted": 3}

    trying(call)
    assert sorted(told) == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]


def test_call_that_the_client_gives_up_is_cancelled(trying: Trying) -> None:
    async def call(client: Client) -> None:
        with anyio.CancelScope() as scope:

            async def begun(*_: object) -> None:
                scope.cancel()

            await client.call_tool("wait", progress_callback=begun)
        assert scope.cancelled_caught
        assert (await client.call_tool("was_cancelled")).structured_content == {"was_cancelled": True}

    assert trying(call) == ""


def test_calls_run_side_by_side(trying: Trying) -> None:
    async def call(client: Client) -> None:
        results = await asyncio.gather(*(client.call_tool("echo", {"text": str(number)}) for number in range(50)))
        assert [result.structured_content["text"] for result in results if result.structured_content] == [
            str(number) for number in range(50)
        ]

    assert trying(call) == ""


def test_nothing_that_is_printed_reaches_the_client(trying: Trying) -> None:
    """By us, by a library in C or by a child; nor does any of them take what the client says."""

    async def call(client: Client) -> None:
        result = await client.call_tool("babble")
        assert result.structured_content == {"read": ["", ""]}
        assert (await client.call_tool("echo", {"text": "still here"})).structured_content is not None

    log = trying(call)
    for text in ("printed", '"written"', "from below", "from a child"):
        assert text in log


def test_resources_are_listed_and_read(trying: Trying) -> None:
    async def read(client: Client) -> None:
        (bear,) = (await client.list_resources()).resources
        assert (bear.uri, bear.mime_type) == ("toy://bear", "text/plain")
        assert (await client.list_resource_templates()).resource_templates == []
        (contents,) = (await client.read_resource("toy://bear")).contents
        assert isinstance(contents, mcp_types.TextResourceContents)
        assert (contents.uri, contents.text) == ("toy://bear", "brown")
        with pytest.raises(MCPError, match="Resource not found") as refused:
            await client.read_resource("toy://none")
        assert refused.value.code == (-32002 if client.protocol_version == "2025-11-25" else -32602)

    assert trying(read) == ""


def test_prompts_are_listed_and_filled_in(trying: Trying) -> None:
    async def fill(client: Client) -> None:
        (play,) = (await client.list_prompts()).prompts
        assert play.arguments == [mcp_types.PromptArgument(name="toy", description="Which toy", required=True)]
        (message,) = (await client.get_prompt("play", {"toy": "a bear"})).messages
        assert message.content == mcp_types.TextContent(type="text", text="Play with a bear")
        with pytest.raises(MCPError, match="the prompt play needs toy"):
            await client.get_prompt("play")

    assert trying(fill) == ""


def test_ping_is_answered_in_a_session(tmp_path: Path) -> None:
    async def ping() -> None:
        async with toys("legacy", tmp_path / "log") as client:
            with pytest.warns(MCPDeprecationWarning, match="only works under mode='legacy'"):
                answered = await client.send_ping()
            assert answered == mcp_types.EmptyResult()

    asyncio.run(ping())


def start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(TOYS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def line(method: str, params: dict[str, Any] | None = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode() + b"\n"


def test_process_ends_well_when_its_input_ends_within_a_request() -> None:
    with start() as process:
        out, log = process.communicate(line("ping") + b'{"jsonrpc": "2.0", "id": 2, "meth', LIMIT_S)
    pong, error = map(json.loads, out.splitlines())
    assert pong["result"] == {}
    assert error["error"]["code"] == -32700
    assert (process.returncode, log) == (0, b"")


def test_process_whose_client_reads_no_more_ends_without_a_traceback() -> None:
    with start() as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stdin.write(line("ping"))
        process.stdin.close()
        assert process.wait(LIMIT_S) == 1
        assert process.stderr.read() == b""


def test_process_without_standard_error_serves_all_the_same() -> None:
    """Whatever is printed then goes nowhere, and above all not to the client."""
    opening = {"protocolVersion": "2025-11-25"}
    call = line("initialize", opening) + line("tools/call", {"name": "babble"})
    done = subprocess.run(
        ["sh", "-c", f'exec "{sys.executable}" "{TOYS}" 2>&-'], input=call, capture_output=True, check=True
    )
    greeting, answer = map(json.loads, done.stdout.splitlines())
    assert greeting["result"]["serverInfo"]["name"] == "toys"
    assert answer["result"]["structuredContent"] == {"read": ["", ""]}
