"""Graphiti as the outside backend over the pipes of a process that a setting starts: how it is started and ended."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.serving import PATIENCE_S
from tests.stubs import graphiti_server

from commonplace.engine.engine import Engine
from commonplace.engine.open import open_engine
from commonplace.graph.graphiti import backend, client
from commonplace.graph.graphiti import transport as stdio
from commonplace.settings import load

SAID = "auth.ts depends on token.ts."


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((client, "START_S"), (stdio, "_END_S"), (backend, "FINISH_S")):
        monkeypatch.setattr(module, name, PATIENCE_S)


@contextmanager
def opened(store: Path, **chosen: Any) -> Iterator[Engine]:
    flags: dict[str, Any] = {
        "store.path": str(store),
        "graph.backend": "graphiti-mcp",
        "graph.timeout_s": PATIENCE_S,
    }
    flags.update({f"graph.{name}": value for name, value in chosen.items()})
    settings = load(flags, environment={}, user_file=store / "none.toml")
    with open_engine(store, "default", None, settings=settings) as engine:
        yield engine


def command(file: Path) -> str:
    """Return the command of a server that keeps what it has in a file."""
    return shlex.join([sys.executable, str(graphiti_server.__file__), str(file)])


def kept(file: Path) -> list[str]:
    """Return the episodes that a server has kept."""
    return [each["content"] for each in json.loads(file.read_text(encoding="utf-8"))["episodes"]]


def test_server_is_started_told_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process serves all calls; it ends with the engine, and what it was told stays."""
    monkeypatch.setenv("GRAPHITI_STUB", "sdk")
    file = tmp_path / "state.json"
    with opened(tmp_path / "store", graph_uri=command(file)) as book:
        added = book.graph.add_episode(SAID)
        assert added.notices == ("Graphiti reads it later: what it finds there is not counted here",)
        book.graph.add_episode("Ann lives in Berlin.")
        assert len(book.graph.episodes()) == 2
        transport = book.graph._backend.tools._transport  # type: ignore[attr-defined]
        process = transport._process
    assert process.poll() == 0
    assert kept(file) == [SAID, "Ann lives in Berlin."]


def test_contract_s_settings_reach_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`graph_uri`, `graph_user` and the password are the database's; `embedder` and `llm_provider` Graphiti's own."""
    monkeypatch.setenv("COMMONPLACE_GRAPH_PASSWORD", "s3cret")
    file = tmp_path / "state.json"
    chosen = {"graph_user": "neo4j", "embedder": "openai", "llm_provider": "openai"}
    with opened(tmp_path / "store", server=command(file), graph_uri="bolt://localhost:7687", **chosen) as book:
        book.graph.add_episode(SAID)
    arguments, variables = json.loads(file.with_suffix(".started").read_text(encoding="utf-8"))
    assert arguments == ["--embedder-provider", "openai", "--llm-provider", "openai"]
    assert variables == {"NEO4J_URI": "bolt://localhost:7687", "NEO4J_USER": "neo4j", "NEO4J_PASSWORD": "s3cret"}


def test_server_that_dies_at_work_is_asked_what_it_had_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state.json"
    monkeypatch.setenv("GRAPHITI_STUB", "die")
    with opened(tmp_path / "store", graph_uri=command(file)) as book:
        added = book.graph.add_episode(SAID)
        assert any("ended, with the output: " in each and "no memory left" in each for each in added.notices)
        monkeypatch.delenv("GRAPHITI_STUB")
        told = book.graph.sync()
        assert (told.delivered, told.waiting) == (1, 0)
    assert kept(file) == [SAID]


def test_server_is_not_ended_before_it_has_taken_in_what_it_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphiti's server queues an episode, answers, and loses it when its input ends."""
    monkeypatch.setattr(backend, "_LOOK_AGAIN_S", 0.0)
    monkeypatch.setenv("GRAPHITI_STUB", "slow")
    file = tmp_path / "state.json"
    with opened(tmp_path / "store", graph_uri=command(file)) as book:
        added = book.graph.add_episode(SAID)
        assert added.notices[-1].startswith("1 item queued")
    assert kept(file) == [SAID]
    with opened(tmp_path / "store", graph_uri=command(file)) as book:
        told = book.graph.sync()
        assert (told.delivered, told.waiting) == (0, 0)


def test_server_that_takes_long_to_start_is_sent_what_it_was_started_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its start alone takes longer than an answer may: a command that ends then would never have sent anything."""
    file, late = tmp_path / "state.json", [0.0]
    begin = client.GraphitiTools._begin

    def slow(session: client.GraphitiTools, *given: Any) -> frozenset[str]:
        late.append(PATIENCE_S + 1.0)
        return begin(session, *given)

    monkeypatch.setattr(client.GraphitiTools, "_begin", slow)
    monkeypatch.setattr(client, "START_S", 3 * PATIENCE_S)
    with opened(tmp_path / "store", graph_uri=command(file)) as book:
        book.graph._backend.tools.clock = lambda: time.monotonic() + sum(late)  # type: ignore[attr-defined]
        book.graph.add_episode(SAID)
    assert kept(file) == [SAID]


def test_sync_waits_until_a_started_server_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_LOOK_AGAIN_S", 0.0)
    monkeypatch.setenv("GRAPHITI_STUB", "slow")
    with opened(tmp_path / "store", graph_uri=command(tmp_path / "state.json")) as book:
        book.graph.add_episode(SAID)
        told = book.graph.sync()
        assert (told.delivered, told.waiting) == (1, 0)


def test_what_a_started_server_lost_waits_and_is_sent_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "FINISH_S", 0.0)
    monkeypatch.setenv("GRAPHITI_STUB", "idle")
    file = tmp_path / "state.json"
    with opened(tmp_path / "store", graph_uri=command(file)) as book:
        book.graph.add_episode(SAID)
    assert not file.exists()
    monkeypatch.delenv("GRAPHITI_STUB")
    with opened(tmp_path / "store", graph_uri=command(file)) as book:
        told = book.graph.sync()
        assert (told.delivered, told.waiting) == (1, 0)
    assert kept(file) == [SAID]


def test_database_of_a_started_server_is_the_namespace_s_own_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over FalkorDB it lists and deletes episodes of no other group; a user's own choice is left alone."""
    file = tmp_path / "state.json"
    for given, wanted in ((None, "main"), ("mine", "mine")):
        if given:
            monkeypatch.setenv("FALKORDB_DATABASE", given)
        with opened(tmp_path / "store", server=command(file), graph_uri="redis://localhost:6379") as book:
            book.graph.add_episode(SAID)
        _, variables = json.loads(file.with_suffix(".started").read_text(encoding="utf-8"))
        assert variables == {"FALKORDB_URI": "redis://localhost:6379", "FALKORDB_DATABASE": wanted}


def test_server_that_died_meanwhile_is_started_again(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with opened(tmp_path / "store", graph_uri=command(file)) as book:
        book.graph.add_episode(SAID)
        process = book.graph._backend.tools._transport._process  # type: ignore[attr-defined]
        process.kill()
        process.wait()
        added = book.graph.add_episode("Ann lives in Berlin.")
        assert len(added.notices) == 1
    assert kept(file) == [SAID, "Ann lives in Berlin."]


def test_what_is_no_message_is_read_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers print to the pipe that they speak on, though they must not."""
    monkeypatch.setenv("GRAPHITI_STUB", "noisy")
    with opened(tmp_path / "store", graph_uri=command(tmp_path / "state.json")) as book:
        book.graph.add_episode(SAID)
    assert kept(tmp_path / "state.json") == [SAID]


def test_episode_longer_than_a_pipe_holds_is_told(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    long = " ".join(f"word{number}" for number in range(15_000))
    with opened(tmp_path / "store", graph_uri=command(file)) as book:
        book.graph.add_episode(long)
        assert book.graph.sync().waiting == 0
    assert kept(file) == [long]


@pytest.mark.parametrize(
    ("program", "start_s", "end_s", "told"),
    [
        ("import time; time.sleep(600)", 0.1, 0.1, "did not answer in time"),
        (
            "import sys; sys.exit('no database here')",
            PATIENCE_S,
            PATIENCE_S,
            "ended, with the output: no database here",
        ),
        ("print('{}' * 10)", PATIENCE_S, PATIENCE_S, "ended"),
        (
            "print('x' * 5_000_000, flush=True); import time; time.sleep(600)",
            PATIENCE_S,
            0.1,
            "answered more than can be read",
        ),
    ],
)
def test_what_is_no_server_is_told_and_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, start_s: float, end_s: float, told: str
) -> None:
    """The local graph answers, and no process is left behind."""
    monkeypatch.setattr(client, "START_S", start_s)
    monkeypatch.setattr(stdio, "_END_S", end_s)
    line = shlex.join([sys.executable, "-c", program])
    with opened(tmp_path / "store", graph_uri=line, timeout_s=start_s) as book:
        added = book.graph.add_episode(SAID)
        assert any(told in each for each in added.notices), added.notices
        assert [each.fact for each in book.graph.search_edges("what does auth.ts depend on")] == [SAID]


def test_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    with opened(tmp_path / "store", graph_uri="/no/such/program --transport stdio") as book:
        added = book.graph.add_episode(SAID)
        assert any("/no/such/program cannot be started: No such file" in each for each in added.notices)
