"""Several requests at a time: what waits for what, what is cancelled, and how a server ends."""

from __future__ import annotations

import ctypes
import io
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.unit.mcp.conversation import INFO, LIMIT_S, Talk, answers, line, request, stateless, talking, tool

from commonplace.mcp.protocol import CallContext, Registry, ToolResult
from commonplace.mcp.server import Pool, serve


class Gate:
    """A tool that runs until it is let go or cancelled, and says when it has begun and how it ended."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.open = threading.Event()
        self.cancelled = threading.Event()

    def wait(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        self.begun.release()
        if arguments.get("until") == "cancelled":
            assert context.cancellation.wait(LIMIT_S)
            context.progress(99)
            self.cancelled.set()
        else:
            assert self.open.wait(LIMIT_S)
        return ToolResult({"cancelled": context.cancellation.is_set()})


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


def registry(gate: Gate) -> Registry:
    return Registry(*INFO, (tool("wait", "Wait", "Wait", {"type": "object"}, gate.wait),))


def start(talk: Talk, gate: Gate, call_id: int | str, params: Mapping[str, Any] | None = None) -> None:
    """Call the tool, and go on when it has begun."""
    talk.say(request("tools/call", {"name": "wait", **(params or {})}, call_id))
    assert gate.begun.acquire(timeout=LIMIT_S)


def cancel(talk: Talk, call_id: Any) -> None:
    talk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call_id, "reason": "no"}})


UNTIL_CANCELLED = {"arguments": {"until": "cancelled"}}


def test_pings_and_lists_are_answered_while_tools_run(gate: Gate) -> None:
    """With every thread busy too: a client that gets no pong kills the server."""
    with talking(registry(gate), workers=1, waiting=1) as talk:
        talk.greet()
        start(talk, gate, "slow")
        assert talk.ask("ping", call_id="p")["result"] == {}
        assert len(talk.ask("tools/list", call_id="l")["result"]["tools"]) == 1
        gate.open.set()
        assert talk.hear()["id"] == "slow"


def test_tools_run_side_by_side_and_are_answered_as_they_end(gate: Gate) -> None:
    with talking(registry(gate), workers=2) as talk:
        talk.greet()
        start(talk, gate, "first", UNTIL_CANCELLED)
        start(talk, gate, "second")
        gate.open.set()
        assert talk.hear()["id"] == "second"
        cancel(talk, "first")


def test_request_over_the_queue_is_refused_and_those_in_it_are_served(gate: Gate) -> None:
    with talking(registry(gate), workers=1, waiting=1) as talk:
        talk.greet()
        start(talk, gate, "runs")
        talk.say(request("tools/call", {"name": "wait"}, "waits"))
        error = talk.ask("tools/call", {"name": "wait"}, "over")["error"]
        assert error["code"] == -32603
        assert error["message"] == "1 requests are waiting; send this one again when one of them has been answered"
        gate.open.set()
        assert [talk.hear()["id"] for _ in range(2)] == ["runs", "waits"]


@pytest.mark.parametrize("era", [{}, stateless()])
def test_cancelled_request_is_not_answered_and_its_tool_is_told(gate: Gate, era: dict[str, Any]) -> None:
    """Nothing more is sent for it, progress included."""
    meta = {"_meta": {**era.get("_meta", {}), "progressToken": "t"}}
    with talking(registry(gate)) as talk:
        talk.greet()
        start(talk, gate, 5, {**UNTIL_CANCELLED, **meta})
        cancel(talk, 5)
        assert gate.cancelled.wait(LIMIT_S)
        assert talk.ask("ping", call_id="after")["result"] == {}
        assert talk.end() == []
        assert talk.status == 0


def test_request_cancelled_in_the_queue_never_runs(gate: Gate) -> None:
    with talking(registry(gate), workers=1, waiting=2) as talk:
        talk.greet()
        start(talk, gate, "runs")
        talk.say(request("tools/call", {"name": "wait"}, "queued"))
        cancel(talk, "queued")
        talk.ask("ping")
        gate.open.set()
        assert [one["id"] for one in talk.end()] == ["runs"]
        assert not gate.begun.acquire(blocking=False)


def test_cancelling_the_string_does_not_cancel_the_number(gate: Gate) -> None:
    with talking(registry(gate)) as talk:
        talk.greet()
        start(talk, gate, 5)
        for other in ("5", True, None, 6, [5]):
            cancel(talk, other)
        talk.ask("ping", call_id="heard")
        gate.open.set()
        assert talk.hear()["result"]["structuredContent"] == {"cancelled": False}


def test_cancelling_what_has_been_answered_changes_nothing(gate: Gate) -> None:
    gate.open.set()
    with talking(registry(gate)) as talk:
        talk.greet()
        talk.ask("tools/call", {"name": "wait"}, 5)
        cancel(talk, 5)
        assert talk.ask("tools/call", {"name": "wait"}, 5)["result"]["structuredContent"] == {"cancelled": False}


def test_batch_is_answered_without_what_was_cancelled_in_it(gate: Gate) -> None:
    with talking(registry(gate)) as talk:
        talk.greet("2025-03-26")
        talk.say([request("tools/call", {"name": "wait", **UNTIL_CANCELLED}, 1), request("ping", call_id=2)])
        assert gate.begun.acquire(timeout=LIMIT_S)
        cancel(talk, 1)
        assert talk.hear() == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


def test_id_of_a_request_that_runs_is_refused_for_another_and_free_afterwards(gate: Gate) -> None:
    with talking(registry(gate)) as talk:
        talk.greet()
        start(talk, gate, 5)
        error = talk.ask("ping", call_id=5)["error"]
        assert error["code"] == -32600
        assert "id 5 is still being answered" in error["message"]
        assert talk.ask("ping", call_id="5")["result"] == {}
        gate.open.set()
        assert talk.hear()["id"] == 5
        assert talk.ask("ping", call_id=5)["result"] == {}


def tell(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    context.progress(0)
    context.progress(1, 4, "a quarter")
    context.progress(1)
    context.progress(0.5)
    context.progress(2.5, 4)
    return ToolResult({})


TELLING = Registry(*INFO, (tool("tell", "Tell", "Tell", {"type": "object"}, tell),))


@pytest.mark.parametrize("token", ["t", 0, 7])
@pytest.mark.parametrize("era", [{}, stateless()])
def test_progress_is_sent_to_who_asked_and_only_while_it_grows(token: Any, era: dict[str, Any]) -> None:
    meta = {"_meta": {**era.get("_meta", {}), "progressToken": token}}
    with talking(TELLING) as talk:
        talk.greet()
        talk.say(request("tools/call", {"name": "tell", **meta}, 1))
        told = [talk.hear() for _ in range(4)]
    assert told[-1]["id"] == 1
    assert {one["method"] for one in told[:-1]} == {"notifications/progress"}
    assert [one["params"] for one in told[:-1]] == [
        {"progressToken": token, "progress": 0},
        {"progressToken": token, "progress": 1, "total": 4, "message": "a quarter"},
        {"progressToken": token, "progress": 2.5, "total": 4},
    ]


@pytest.mark.parametrize(
    "meta", [{}, {"progressToken": None}, {"progressToken": 1.5}, {"progressToken": True}, None, []]
)
def test_progress_is_sent_to_nobody_else(meta: Any) -> None:
    with talking(TELLING) as talk:
        talk.greet()
        assert talk.ask("tools/call", {"name": "tell", "_meta": meta})["result"]["structuredContent"] == {}


def test_end_of_input_waits_for_all_that_was_asked(gate: Gate) -> None:
    """What runs and what waits: `printf … | commonplace mcp` gets its answers."""
    with talking(registry(gate), workers=1, waiting=5) as talk:
        talk.greet()
        start(talk, gate, 0)
        for call_id in (1, 2):
            talk.say(request("tools/call", {"name": "wait"}, call_id))
        talk.out.close()
        gate.open.set()
        assert [one["id"] for one in talk.end()] == [0, 1, 2]
        assert talk.status == 0


def test_client_that_goes_while_a_tool_runs_cancels_it(gate: Gate) -> None:
    """Nobody can read the answer, so that the work for it is in vain."""
    with talking(registry(gate)) as talk:
        talk.greet()
        start(talk, gate, 1, UNTIL_CANCELLED)
        talk.into.close()
        talk.say(request("ping"))
        assert gate.cancelled.wait(LIMIT_S)
        talk.out.close()
        talk.wait()
        assert talk.status == 1


def test_interrupt_cancels_what_runs_and_goes_on_to_the_caller(gate: Gate) -> None:
    class Interrupted(io.BytesIO):
        def readline(self, *arguments: Any) -> bytes:
            found = super().readline(*arguments)
            if not found:
                assert gate.begun.acquire(timeout=LIMIT_S)
                raise KeyboardInterrupt
            return found

    call = {"name": "wait", **UNTIL_CANCELLED}
    with pytest.raises(KeyboardInterrupt):
        serve(registry(gate), Interrupted(line("tools/call", stateless(call))), io.BytesIO())
    assert gate.cancelled.wait(LIMIT_S)


def test_requests_one_after_another_need_one_thread() -> None:
    """Each thread costs the store a connection, and most clients ask one thing at a time."""
    seen = set()

    def who(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        seen.add(threading.current_thread().name)
        return ToolResult({})

    with talking(Registry(*INFO, (tool("who", "Who", "Who", {"type": "object"}, who),))) as talk:
        talk.greet()
        for _ in range(50):
            talk.ask("tools/call", {"name": "who"})
    assert seen == {"mcp-1"}


def test_many_requests_at_once_are_each_answered_once() -> None:
    lines = [line("tools/call", stateless({"name": "tell"}), number) for number in range(300)]
    out = io.BytesIO()
    assert serve(TELLING, io.BytesIO(b"".join(lines)), out, waiting=300) == 0
    told = out.getvalue().splitlines()
    assert len(told) == len(set(told)) == 300


def test_no_requests_start_no_thread() -> None:
    before = threading.active_count()
    assert answers(TELLING, line("ping"), line("tools/list", stateless()))
    assert threading.active_count() == before


def test_pool_runs_no_more_threads_than_it_may() -> None:
    pool, together, seen = Pool(3, 100), threading.Barrier(3), set()

    def work() -> str:
        together.wait(LIMIT_S)
        return threading.current_thread().name

    assert all(pool.submit(work, seen.add) for _ in range(30))
    pool.finish()
    assert seen == {"mcp-1", "mcp-2", "mcp-3"}


# The threads of a server, and what they cost it.

HEAPS = """
import ctypes, os, tempfile, threading
from commonplace.mcp.server import Pool

pool, together = Pool(4, 8), threading.Barrier(4)
for number in range(4):
    assert pool.submit(lambda: (together.wait(20), [bytearray(2_000) for _ in range(1_000)]), lambda _: None)
pool.finish()

system = ctypes.CDLL(None)
system.fdopen.restype = ctypes.c_void_p
with tempfile.TemporaryFile() as told:
    stream = ctypes.c_void_p(system.fdopen(os.dup(told.fileno()), b"w"))
    assert system.malloc_info(0, stream) == 0
    system.fclose(stream)
    told.seek(0)
    print(told.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="another system's allocator")
def test_threads_share_one_heap() -> None:
    """Each with one of its own keeps the most that a request ever took: 115 MB after 10,000 of them, in place of 75."""
    done = subprocess.run([sys.executable, "-c", HEAPS], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "1\n"
