"""A process that is killed while it adds and tells loses nothing that it acknowledged, and nothing is told twice."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.processes import run
from tests.stubs.graphiti_server import GraphitiServer, State

from commonplace.engine.open import open_engine
from commonplace.graph.graphiti.client import own_id
from commonplace.settings import load
from commonplace.types.graph import GraphFilter

POINTS, IN_SHORT = 60, 5


def tell(store: Path, address: str, *call: int) -> subprocess.CompletedProcess[str]:
    """Run a process that adds and tells."""
    return run(Path(__file__).with_name("tellers.py"), store, address, *call)


def check(store: Path, address: str, state: State, acknowledged: list[str]) -> None:
    """Tell what is left to be told, and see that both sides hold the same, each thing once."""
    flags = {"store.path": str(store), "graph.backend": "graphiti-mcp", "graph.graph_uri": address}
    settings = load(flags, environment={}, user_file=store / "none.toml")
    with open_engine(store, "default", None, settings=settings) as book:
        assert book.graph.sync().waiting == 0
        graph = book._runtime.store.graph("default")
        here = [each.id for each in graph.list_episodes(GraphFilter())]
        given = [each.id for each in graph.list_relations(GraphFilter(types=("USES",)))]
        assert sorted(own_id(each["name"]) for each in state.episodes) == sorted(here + given)
        known = {*here, *(each.id for each in graph.list_relations(GraphFilter()))}
        assert known.issuperset(acknowledged)
        assert book._runtime.store.check() == []


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many calls it takes to add and tell everything."""
    with GraphitiServer() as server:
        whole = tell(tmp_path_factory.mktemp("whole"), server.url)
    assert whole.returncode == 0, whole.stderr
    return int(whole.stdout.split()[-1])


@pytest.mark.parametrize(
    "share",
    [
        pytest.param(point / POINTS, marks=() if point % (POINTS // IN_SHORT) == 1 else pytest.mark.soak)
        for point in range(1, POINTS)
    ],
)
def test_killed_at_any_point_everything_arrives_once(tmp_path: Path, calls: int, share: float) -> None:
    with GraphitiServer() as server:
        died = tell(tmp_path / "store", server.url, int(calls * share))
        assert died.returncode == -signal.SIGKILL, died.stderr
        check(tmp_path / "store", server.url, server.state, died.stdout.split())
