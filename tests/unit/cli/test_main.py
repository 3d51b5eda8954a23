"""Which command lines are a server's, and need no parser."""

from __future__ import annotations

import pytest

from commonplace.cli.invocation import Invocation
from commonplace.cli.main import server_invocation


@pytest.mark.parametrize(
    ("arguments", "store", "namespace"),
    [
        ("mcp", None, None),
        ("mcp --store /srv/memory", "/srv/memory", None),
        ("mcp --namespace ada", None, "ada"),
        ("mcp --store /srv/memory --namespace ada", "/srv/memory", "ada"),
        ("mcp --namespace mcp --store .", ".", "mcp"),
    ],
)
def test_what_a_client_was_told_to_start_is_a_server(arguments: str, store: str | None, namespace: str | None) -> None:
    assert server_invocation(arguments.split()) == Invocation(store=store, namespace=namespace)


def test_a_server_that_watches_says_so_last() -> None:
    """As `mcp --print-config --watch` has it."""
    assert server_invocation(["mcp", "--watch"]) == Invocation(watches=True)
    assert server_invocation(["mcp", "--store", "a", "--watch"]) == Invocation(store="a", watches=True)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["mcp", "--watch", "--store", "a"],
        ["mcp", "--watch", "--watch"],
        ["mcp", "--store", "--watch"],
        ["search", "--watch"],
        ["--store", "/srv", "mcp"],
        ["search", "mcp"],
        ["mcp", "--help"],
        ["mcp", "--json"],
        ["mcp", "--store"],
        ["mcp", "--store=/srv"],
        ["mcp", "--store", ""],
        ["mcp", "--store", " "],
        ["mcp", "--store", "--namespace"],
        ["mcp", "--store", "a", "--store", "b"],
        ["mcp", "--store", "a", "b"],
        ["mcp", "--print-config", "cursor"],
        ["mcp", "--store", "a", "--install", "cursor"],
    ],
)
def test_everything_else_is_parsed(arguments: list[str]) -> None:
    """There is one parser: what it would refuse, or take otherwise, is not judged before it."""
    assert server_invocation(arguments) is None
