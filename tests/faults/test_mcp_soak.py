"""A server that runs for days: after ten thousand mixed requests it has no more memory than after one thousand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.mcp_process import Wire, call, structured
from tests.unit.mcp.conversation import request

import commonplace
from commonplace.benchmarks.harness import memory_of

ROUNDS = 10
TURNS = 100
"""Of a round; each is ten requests, some of them at once."""
KNOWN = 1_000
LIMIT_S = 1_800
TOLERANCE = 4_000_000
"""Less than half a kilobyte for each of the 9,000 requests between. Whatever could be kept of one, its answer, hits or
trace, has more: a mean answer here has three kilobytes. Without a leak the first rounds differ by 1 MB, as the heap
fragments."""

BIRDS = "heron egret stork crane ibis rail coot grebe diver swan teal smew".split()
PLACES = "ditch pond weir dyke marsh creek lagoon reed-bed slipway".split()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("COMMONPLACE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with commonplace.open(tmp_path / ".commonplace") as book:
        book.remember_many([{"id": f"known{number}", "content": sighting(number)} for number in range(KNOWN)])
    return tmp_path


def sighting(number: int) -> str:
    bird, place = BIRDS[number % len(BIRDS)], PLACES[number % len(PLACES)]
    return (
        f"On day {number} a {bird} with ring {number * 7919 % 10_007} stood at the {place} for {number % 59} minutes."
    )


def turn(number: int, fresh: str) -> list[dict[str, Any]]:
    """Return ten requests: every kind of tool, list and page, what is wrong, and one store."""
    one, other = f"known{number * 37 % KNOWN}", f"known{(number * 53 + 1) % KNOWN}"
    question = f"which {BIRDS[number % len(BIRDS)]} stood at the {PLACES[number * 5 % len(PLACES)]}"
    others = [
        request("tools/list", call_id=8),
        request("resources/list", call_id=8),
        request("prompts/get", {"name": "use-memory", "arguments": {"task": question}}, 8),
        request("tools/dream", call_id=8),
    ]
    return [
        call("memory_search", 0, query=question),
        call("memory_search", 1, query=sighting(number * 11 % KNOWN), minScore=0, maxResults=50),
        call("memory_get", 2, path=f"memory:{one}"),
        call("memory_context", 3, task=question),
        call("memory_link", 4, source=one, target=other, type="seen-with"),
        call("memory_graph", 5, id=one, depth=3),
        call("memory_why", 6, query=sighting(number % KNOWN), id=f"known{number % KNOWN}"),
        call("memory_search", 7, query=question, nonsense="x" * 10_000),
        others[number % len(others)],
        call("memory_store", 9, content=fresh, tier="medium"),
    ]


def stored_in(wire: Wire, numbers: Iterator[int]) -> list[str]:
    """Make one round of requests, half of them ten at once, and return the ids of what was stored."""
    ids = []
    for number in range(TURNS):
        requests = turn(number, f"A note of hour {next(numbers)}: {sighting(number)}")
        if number % 2:
            wire.say(*requests)
            answers = [wire.hear() for _ in requests]
        else:
            answers = [wire.ask(each) for each in requests]
        by_id = {answer["id"]: answer for answer in answers}
        assert sorted(by_id) == list(range(len(requests)))
        assert by_id[7]["result"]["isError"]
        assert all(structured(by_id[id_]) for id_ in range(7))
        ids.append(structured(by_id[9])["id"])
    return ids


@pytest.mark.soak
def test_ten_thousand_requests_leave_the_memory_that_one_thousand_left(project: Path) -> None:
    """What a round stores, it forgets, so that every round begins with the same store."""
    with closing(Wire(project, LIMIT_S)) as wire:
        wire.greet()
        if not memory_of(wire.process.pid):
            pytest.skip("this system does not tell what a process has in memory")
        numbers = iter(range(ROUNDS * TURNS))
        sizes = []
        for _ in range(ROUNDS):
            ids = stored_in(wire, numbers)
            assert structured(wire.ask(call("memory_forget", ids=ids, confirm=True)))["verified"]
            sizes.append(memory_of(wire.process.pid)["anonymous_bytes"])
        assert wire.end() == []
    assert sizes[-1] <= sizes[0] + TOLERANCE, sizes
