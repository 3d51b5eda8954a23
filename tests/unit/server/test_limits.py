"""How many calls of the engine a server runs at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from commonplace.cli.app import cli
from commonplace.server import run
from commonplace.server.app import MAX_WORKERS, Limits
from commonplace.server.routes import OPERATIONS, SMALL_BODY


def test_no_more_calls_run_than_there_are_processors() -> None:
    assert 2 <= Limits().workers <= MAX_WORKERS


def test_only_many_memories_at_once_take_long() -> None:
    assert [OPERATIONS["remember_many"].is_long(size) for size in (SMALL_BODY, SMALL_BODY + 1)] == [False, True]


@pytest.mark.parametrize(("store", "waits"), [("postgresql://db.example/agents", True), ("book", False)])
def test_calls_that_wait_for_a_database_keep_no_others_waiting(
    store: str, waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(run, "run", lambda *_, waits_for_database, **__: told.append(waits_for_database))
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(cli, ["serve", "--store", store], catch_exceptions=False)
    assert told == [waits]
