"""The benchmark of the server from end to end, on a store that is small enough for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.mcp import Server, ServerOptions, run

import commonplace
from commonplace.benchmarks.report import sheets
from commonplace.errors import CommonplaceError, UsageError


def test_every_tool_is_measured_beside_what_no_server_could_do_without(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    result = run(ServerOptions(memories=30, searches=3, calls=2, soak=12, keep=kept))
    assert json.loads(json.dumps(result)) == result
    names = {"search", "store", "get", "link", "graph", "context", "why", "forget"}
    assert set(result["tools"]) == {f"memory_{name}" for name in names}
    calls = {name: row["calls"] for name, row in result["tools"].items()}
    assert (calls["memory_search"], calls["memory_store"], calls["memory_get"], calls["memory_forget"]) == (3, 4, 2, 2)
    stages = ["idle", "after_a_search", "after_searches", "after_other_tools", "after_forgetting", "after_mixed_calls"]
    assert list(result["memory"]) == [*stages, "after_soak"]
    start = result["start"]
    assert 0 < start["initialized_ms"] <= start["listed_ms"] <= start["first_search_ms"]
    assert start["bare_python_ms"] > 0
    assert set(result["floor"]) == {"ping", "commit"}
    assert result["told"]["tools"] == 8
    assert result["told"]["given_to_models_tokens"] < result["told"]["list_tokens"]
    with commonplace.open(kept) as book:
        assert len(book.list(limit=100)) == 30 + 4 - 2 + 2 + 2
    for table in sheets(result):
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_a_server_that_cannot_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    complaint = r"the server ended with 2: .*No such option '?--nonsense"
    with pytest.raises(CommonplaceError, match=complaint), Server(tmp_path, ["--nonsense"]) as server:
        server.greet()


def test_what_a_server_refuses_is_an_error(tmp_path: Path) -> None:
    with Server(tmp_path / "store") as server:
        server.greet()
        with pytest.raises(CommonplaceError, match="the server refused dream: Method not found"):
            server.ask("dream")
        with pytest.raises(CommonplaceError, match="memory_search failed: memory_search was not run"):
            server.call("memory_search", {})


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(UsageError, match="searches is 0"):
        ServerOptions(searches=0)
