"""Every surface counts what is used, so that what agents ask for stays and rises whichever way they ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from tests.surfaces.conftest import made_once
from tests.unit.mcp.conversation import talking

import commonplace
from commonplace.cli.app import cli
from commonplace.mcp.registry import LazyEngine, registry_of

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

BOSS = "Petra Holm is my boss and approves every holiday."
ASKED = "Who approves my holiday, is it my boss Petra Holm?"
ID = "boss-petra-holm"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with made_once(tmp_path_factory) as bare:
        bare.run("init")
        with commonplace.open(bare.project / ".commonplace") as book:
            book.remember(BOSS, id=ID)
            book.remember("The staging cluster is rebuilt every Sunday night.", id="staging")
    return bare.project


@pytest.fixture
def store(bare: Program, once: Path) -> Path:
    return bare.take(once).project / ".commonplace"


def used(store: Path) -> dict[str, int]:
    with commonplace.open(store) as book:
        return {memory.id: memory.use_count for memory in book.list()}


@pytest.mark.parametrize(
    "arguments",
    [
        ["recall", ASKED],
        ["search", ASKED],
        ["context", ASKED],
        ["get", ID],
        ["csp", f"TASK REQ:recall {ASKED} IN:MEM OUT:MEM_REFS"],
        ["csp", f"TASK REQ:get mem:{ID} IN:MEM OUT:MEM_REFS"],
    ],
    ids=lambda arguments: " ".join(arguments)[:20],
)
def test_a_command_that_answers_counts_a_use_once_an_hour(bare: Program, store: Path, arguments: list[str]) -> None:
    """A command line is a process for each question: asking six times must not make a memory a long one."""
    bare.run(*arguments)
    bare.run(*arguments)
    assert used(store) == {ID: 1, "staging": 0}


@pytest.mark.parametrize(
    "arguments",
    [
        ["recall", ASKED, "--as-of", "2099-01-01"],
        ["search", ASKED, "--as-of", "2099-01-01"],
        ["get", ID, "--as-of", "2099-01-01"],
        ["get", ID, "--versions"],
        ["why", ASKED, ID],
        ["list"],
        ["forget", ID, "--dry-run"],
        ["health"],
    ],
    ids=lambda arguments: " ".join(arguments)[-30:],
)
def test_a_command_that_looks_counts_nothing(bare: Program, store: Path, arguments: list[str]) -> None:
    bare.run(*arguments)
    assert used(store) == {ID: 0, "staging": 0}


def test_a_hook_counts_what_it_injects(store: Path) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(store.parent), "prompt": ASKED}
    done = CliRunner().invoke(cli, ["context", "--stdin-json"], input=json.dumps(event).encode())
    assert BOSS in done.stdout
    assert used(store) == {ID: 1, "staging": 0}


@pytest.mark.parametrize(
    ("tool", "arguments", "count"),
    [
        ("memory_search", {"query": ASKED}, 1),
        ("memory_search", {"query": ASKED, "asOf": "2099-01-01"}, 0),
        ("memory_get", {"path": f"memory:{ID}"}, 1),
        ("memory_context", {"task": ASKED}, 1),
        ("memory_why", {"query": ASKED, "id": ID}, 0),
        ("memory_graph", {"id": ID}, 0),
    ],
)
def test_a_tool_counts_what_it_gives_to_a_model(store: Path, tool: str, arguments: dict[str, str], count: int) -> None:
    host = LazyEngine(lambda progress: commonplace.open(store))
    with talking(registry_of(host.get)) as talk:
        talk.greet()
        for _ in range(2):
            answer = talk.ask("tools/call", {"name": tool, "arguments": arguments})
            assert not answer["result"].get("isError"), answer
    host.close()
    assert used(store) == {ID: count, "staging": 0}


def test_reading_a_line_of_a_page_counts_the_memory_that_stands_there(store: Path) -> None:
    with commonplace.open(store) as book:
        book.sync()
        place = book.places([ID])[ID]
        book.read(place.path, place.first_line, touch=True)
    assert used(store) == {ID: 1, "staging": 0}
