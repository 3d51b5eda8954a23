"""The calls that an agent makes most ask the database few questions: each one is a round trip where it is far away."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from tests import postgres

import commonplace

LIMITS = {"search": 5, "recall": 5, "remember": 25, "get": 1, "forget": 135, "add_episode": 29}
"""What was counted last, rounded up; they may fall. Of a store in a file one is for the vectors of the candidates."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "count_round_trips.py"
    spec = spec_from_file_location("count_round_trips", path)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_call_asks_the_database_more_than_it_did(script: ModuleType, tmp_path: Path) -> None:
    """A read too many is cheap in a file beside the program, and a millisecond on a network."""
    found = {name: len(statements) for name, statements in script.counted(tmp_path / "store").items()}
    assert found.keys() == LIMITS.keys()
    assert {name: count for name, count in found.items() if count > LIMITS[name]} == {}


WAITS = {"search": 4, "recall": 4, "remember": 4, "get": 1, "forget": 105, "add_episode": 17}
"""Likewise for a server."""


@pytest.mark.usefixtures("embedding_thread")
def test_no_call_waits_for_a_server_more_often_than_it_did(script: ModuleType) -> None:
    dsn = postgres.new_database()
    found = script.waits(postgres.url_of(dsn))
    postgres.drop(dsn)
    assert found.keys() == WAITS.keys()
    assert {name: count for name, count in found.items() if count > WAITS[name]} == {}


def test_a_search_in_a_conversation_asks_five_times(script: ModuleType, tmp_path: Path) -> None:
    """There the passages around each candidate are read, too: state, vectors, rows, what they say, hits."""
    statements: list[str] = []
    with script.traced(statements), commonplace.open(tmp_path / "store", embedder="static") as book:
        book.remember_many([{"content": f"user: note {n} on Postgres", "session": f"s{n % 9}"} for n in range(300)])
        book.search("warm")
        statements.clear()
        assert book.search("what database does billing use").hits
        asked = [each for each in statements if each not in script.NO_STATEMENTS]
    assert len(asked) == 5, asked
