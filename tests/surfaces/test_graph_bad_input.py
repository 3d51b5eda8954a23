"""What nobody can mean, told to the graph in four ways: the same refusal, nothing half done, the option's own name."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.surfaces.conftest import Program
from tests.unit.mcp.conversation import Talk, talking

import commonplace
from commonplace.engine import Engine
from commonplace.errors import CommonplaceError, NotFoundError, UsageError
from commonplace.graph.entities import MAX_ALIASES
from commonplace.mcp.registry import LazyEngine, registry_of

UNKNOWN = "8f14e45f-ceea-467f-9c3f-0123456789ab"


class Surfaces:
    """One store, and the ways to it."""

    def __init__(self, program: Program, book: Engine, talk: Talk) -> None:
        self.program = program
        self.book = book
        self.talk = talk

    def refused_by_python(self, call: Callable[[Any], object]) -> CommonplaceError:
        with pytest.raises((UsageError, NotFoundError)) as caught:
            call(self.book.graph)
        return caught.value

    def refused_by_mcp(self, tool: str, **arguments: Any) -> str:
        result = self.talk.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert result.get("isError"), result
        told: str = result["content"][0]["text"]
        return told

    def csp(self, *lines: str) -> str:
        return self.book.specialist.handle("\n".join((f"TASK REQ:{lines[0]} IN:MEM OUT:X", *lines[1:], "")))


def exported(book: Engine) -> str:
    target = io.StringIO()
    book.graph.export_graphiti(target)
    return target.getvalue()


@pytest.fixture
def surfaces(bare: Program) -> Iterator[Surfaces]:
    bare.run("init")
    bare.run("graph", "add", "Ada Marsh lives in Lisbon.", "--at", "2026-01-10")
    store = bare.project / ".commonplace"
    host = LazyEngine(lambda progress: commonplace.open(store))
    with talking(registry_of(host.get)) as talk, commonplace.open(store) as book:
        talk.greet()
        before = exported(book)
        yield Surfaces(bare, book, talk)
        assert exported(book) == before, "nothing of it was done"
    host.close()


@pytest.mark.parametrize(
    ("call", "command", "code", "same"),
    [
        (lambda graph: graph.history(UNKNOWN), ["history", UNKNOWN], 1, "there is no entity '8f14"),
        (lambda graph: graph.entity(UNKNOWN), ["entity", UNKNOWN], 1, "there is no entity '8f14"),
        (lambda graph: graph.delete_episode(UNKNOWN), ["delete-episode", UNKNOWN], 1, "there is no episode '8f14"),
        (lambda graph: graph.settle(UNKNOWN), ["settle", UNKNOWN, "--reason", "x"], 1, "there is no fact '8f14"),
        (
            lambda graph: graph.merge("Ada Marsh", UNKNOWN),
            ["merge", "Ada Marsh", UNKNOWN],
            1,
            "there is no entity '8f",
        ),
        (lambda graph: graph.split(UNKNOWN), ["split", UNKNOWN], 1, "there is no entity '8f14"),
        (
            lambda graph: graph.path("Ada Marsh", UNKNOWN),
            ["path", "Ada Marsh", UNKNOWN],
            1,
            "there is no entity '8f",
        ),
        (lambda graph: graph.timeline(UNKNOWN), ["timeline", UNKNOWN], 1, "there is no entity '8f14"),
        (lambda graph: graph.neighbourhood(UNKNOWN), ["show", UNKNOWN], 1, "there is no entity '8f14"),
        (
            lambda graph: graph.search_edges("x", center_node_uuid=UNKNOWN),
            ["facts", "x", "--centre", UNKNOWN],
            1,
            "there is no entity '8f14",
        ),
        (
            lambda graph: graph.add_triplet("Bo", "USES", UNKNOWN),
            ["fact", "Bo", "USES", UNKNOWN],
            1,
            "there is no entity '8f14",
        ),
        (lambda graph: graph.add_triplet("", "USES", "b"), ["fact", "", "USES", "b"], 2, "is '', of 0 characters"),
        (lambda graph: graph.add_triplet("a", "USES", "the A"), ["fact", "a", "USES", "the A"], 2, "both mean 'a'"),
        (
            lambda graph: graph.add_triplet("Ada Marsh", "USES", "ada-marsh"),
            ["fact", "Ada Marsh", "USES", "ada-marsh"],
            2,
            "both mean 'Ada Marsh'",
        ),
        (
            lambda graph: graph.add_triplet("a", "USES", "b" * 201),
            ["fact", "a", "USES", "b" * 201],
            2,
            "of 201 characters; give a name of 1 to 200 characters",
        ),
        (
            lambda graph: graph.add_triplet("a", "USES", "b", valid_from="2026-03", valid_to="2026-03-01"),
            ["fact", "a", "USES", "b", "--valid-from", "2026-03", "--valid-to", "2026-03-01"],
            2,
            "is not after",
        ),
        (lambda graph: graph.merge("Ada Marsh", "ada marsh"), ["merge", "Ada Marsh", "ada marsh"], 2, "both are 'Ada"),
        (lambda graph: graph.split("Ada Marsh"), ["split", "Ada Marsh"], 2, "nothing was merged into 'Ada Marsh'"),
        (
            lambda graph: graph.split("Ada Marsh", names=["Nobody"]),
            ["split", "Ada Marsh", "--name", "Nobody"],
            2,
            "Nobody",
        ),
    ],
)
def test_python_and_the_command_line_refuse_alike(
    surfaces: Surfaces, call: Callable[[Any], object], command: list[str], code: int, same: str
) -> None:
    error = surfaces.refused_by_python(call)
    assert same in str(error)
    assert isinstance(error, UsageError) == (code == 2)
    told = surfaces.program.error("graph", *command, code=code)
    assert told["type"] == type(error).__name__
    assert same in f"{told['message']}; {told['remedy']}"


@pytest.mark.parametrize(
    ("name", "option", "argument"),
    [("as_of", "--as-of", "asOf"), ("valid_at", "--valid-at", "validAt")],
)
def test_a_time_that_is_none_is_named_by_the_option_of_each_surface(
    surfaces: Surfaces, name: str, option: str, argument: str
) -> None:
    form = "an ISO 8601 time like 2026-03-01T09:30:00Z, of the years 1 to 9999"
    rest = f"is 'colour'; give {form}, or words such as \"last Tuesday\""
    error = surfaces.refused_by_python(lambda graph: graph.search_edges("Ada", **{name: "colour"}))
    assert str(error) == f"{name} {rest}"
    for command in ("facts", "entities", "context"):
        arguments = ["--query", "Ada"] if command == "context" else ["Ada"]
        assert (
            f"error: {option} {rest}"
            in surfaces.program.run("graph", command, *arguments, option, "colour", code=2).stderr
        )
    assert surfaces.refused_by_mcp("memory_graph", query="Ada", **{argument: "colour"}) == f"{argument} {rest}"
    answer = surfaces.csp("temporal_query Ada", f'PARAMS {{"{name}": "colour"}}')
    assert "STATUS FAIL" in answer
    assert "ERROR BAD_VALUE" in answer
    assert f"RATIONALE {name} is 'colour'" in answer


def test_an_agent_is_told_of_its_own_arguments(surfaces: Surfaces) -> None:
    assert surfaces.refused_by_mcp("memory_graph", query="Ada", limit=0).startswith("limit is 0; give a whole number")
    assert surfaces.refused_by_mcp("memory_graph", id="Ada Marsh", limit=501).startswith("limit is 501; give")
    assert surfaces.refused_by_mcp("memory_graph", id="Ada Marsh", depth=9).startswith("depth is 9; give")
    told = surfaces.refused_by_mcp("memory_graph", id=UNKNOWN)
    assert f"there is no memory '{UNKNOWN}', and there is no entity '{UNKNOWN}'" in told
    refusals = [surfaces.refused_by_mcp("memory_link", source="a", target="b")]
    refusals += [surfaces.csp(f"get {kind}:{UNKNOWN}") for kind in ("episode", "fact", "entity", "mem")]
    for each in (told, *refusals):
        assert "there is no " in each
        assert "`commonplace " not in each, "an agent has no command line"
    assert refusals[0].endswith("; give the ids of two memories, or two names and a fact")


def test_what_is_about_itself_is_no_fact_on_any_surface(surfaces: Surfaces) -> None:
    for one, other in (("a", "a"), ("Ada Marsh", "ada-marsh"), ("./auth.ts", "auth.ts")):
        refused = surfaces.refused_by_mcp("memory_link", source=one, target=other, fact="x")
        assert refused == f"source and target both mean {one!r}; name two entities"
        answer = surfaces.csp("link", f"ENTITY1 {one}", f"ENTITY2 {other}", "CONTEXT uses")
        assert "ERROR BAD_VALUE" in answer
        assert f"RATIONALE ENTITY1 and ENTITY2 both mean {one!r}" in answer
    told = surfaces.book.graph.add_episode({"source": "a", "target": "A", "fact": "a uses A"}, source="json", uuid="e")
    assert told.relations == ()
    surfaces.book.graph.delete_episode("e")


def test_an_unknown_memory_or_episode_is_not_found_by_the_specialist(surfaces: Surfaces) -> None:
    for reference in (f"episode:{UNKNOWN}", f"mem:{UNKNOWN}"):
        answer = surfaces.csp(f"forget {reference}")
        assert "ERROR NOT_FOUND" in answer, answer
        assert UNKNOWN in answer


def test_a_cycle_is_gone_round_once_on_every_surface(bare: Program) -> None:
    """Nothing that walks a graph may walk for ever, nor tell a fact twice."""
    bare.run("init")
    for source, target in (("a.py", "b.py"), ("b.py", "c.py"), ("c.py", "a.py"), ("b.py", "a.py")):
        bare.run("graph", "fact", source, "DEPENDS_ON", target)
    with commonplace.open(bare.project / ".commonplace") as book:
        near = book.graph.neighbourhood("a.py", 4)
        assert (len(near.entities), len({each.uuid for each in near.relations}), len(near.relations)) == (3, 4, 4)
        assert len(book.graph.path("a.py", "c.py").relations) == 1
        assert book.graph.path("a.py", "a.py").relations == ()
        assert [each.size for each in book.graph.communities()] == [3]
    drawn = bare.json("graph", "show", "a.py", "--depth", "4", "--format", "svg")
    assert (drawn["entities"], drawn["facts"]) == (3, 4)


def test_an_entity_has_no_more_names_than_the_limit_however_many_are_told(
    bare: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million names of one thing would make every look at it slow."""
    monkeypatch.setattr("commonplace.graph.service.MAX_ALIASES", 20)
    bare.run("init")
    with commonplace.open(bare.project / ".commonplace") as book:
        graph = book.graph
        graph.add_triplet("Thing", "USES", "paper")
        for number in range(19):
            graph.add_triplet("paper", "PART_OF", f"Name {number:04} of it")
            graph.merge("Thing", f"Name {number:04} of it")
        graph.add_triplet("paper", "PART_OF", "one more")
        before = exported(book)
        with pytest.raises(UsageError) as caught:
            graph.merge("Thing", "one more")
        assert str(caught.value).startswith("'Thing' and 'one more' have 21 names, the limit of one is 20; keep them")
        assert exported(book) == before
        assert len(graph.entity("Thing").aliases) == 19
    refused = bare.run("graph", "merge", "Thing", "one more", code=2).stderr
    assert "have 21 names, the limit of one is 20" in refused


def test_an_episode_of_very_many_names_of_one_thing_keeps_what_fits(bare: Program) -> None:
    bare.run("init")
    with commonplace.open(bare.project / ".commonplace") as book:
        names = [f"alias{number:05}" for number in range(30_000)]
        book.graph.add_episode({"name": "Thing", "aliases": names, "uses": "paper"}, source="json")
        assert len(book.graph.entity("Thing").aliases) < MAX_ALIASES
        assert book.graph.search_edges("Thing uses paper")[0].target_name == "paper"
