"""Start the program `commonplace`.

A client starts a server for every session and a hook for every prompt, so modules that these do not need load late.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from commonplace.cli.invocation import Invocation
    from commonplace.engine import Engine
    from commonplace.types import Progress


def serve(invocation: Invocation) -> int:
    """Serve agents until the end of input; return the exit code.

    If watching is on, the project is watched as soon as the first call opens the store.
    """
    from commonplace.mcp.registry import LazyEngine, registry_of
    from commonplace.mcp.server import serve as serve_registry

    if sys.stdin.isatty():
        from commonplace.cli.output import hint

        hint("Serving the Model Context Protocol on standard input; a client starts this. See --print-config.")

    invocation.makes_store = True  # a client starts the server before there is a store

    def open_engine(progress: Progress) -> Engine:
        loaded = invocation.settings(index_watch="on" if invocation.watches else None)
        engine = invocation.open(loaded, create=True, progress=progress, low_memory=True)
        if loaded.index.watch == "on":
            from commonplace.cli.watch import ProjectWatch

            project_watch = ProjectWatch()
            cleanup.callback(project_watch.end)
            project_watch.begin(engine)
        from commonplace.cli.socket_server import Listener

        listener = Listener()
        cleanup.callback(listener.end)
        listener.begin(loaded, lambda: engine)
        return engine

    engine = LazyEngine(open_engine)
    with ExitStack() as cleanup:
        cleanup.callback(engine.close)
        return serve_registry(registry_of(engine.get))


QUERY_COMMANDS: Final = frozenset({"recall", "search", "context", "why", "get", "list"})
"""Read-only commands, which a running server of the store can run as well."""
_OPTIONS = frozenset({"--store", "--namespace"})
_WATCH = "--watch"
"""Recognised without a parser only as the last argument, where our own client configurations put it."""


def main() -> NoReturn:
    """Run the program; the console script."""
    if sys.argv[1:2] and sys.argv[1] in QUERY_COMMANDS:
        from commonplace.cli.socket_client import run_on_server

        if run_on_server(sys.argv[1:]):
            sys.exit(0)
    from commonplace.cli.invocation import guard_output, run_to_the_end

    guard_output()
    server = server_invocation(sys.argv[1:])
    if server is None:
        from commonplace.cli.app import cli

        cli.main()
    run_to_the_end(lambda: serve(server), server)


def server_invocation(arguments: Sequence[str]) -> Invocation | None:
    """Return the invocation of the MCP server, or None if the arguments need a parser: other options, wrong values."""
    if list(arguments[:1]) != ["mcp"]:
        return None
    pairs = list(arguments[1:])
    watches = pairs[-1:] == [_WATCH]
    if watches:
        pairs.pop()
    names, values = pairs[::2], pairs[1::2]
    if len(names) != len(values) or len(set(names)) < len(names):
        return None
    if not _OPTIONS.issuperset(names) or any(value.startswith("-") or not value.strip() for value in values):
        return None
    from commonplace.cli.invocation import Invocation

    flags = dict(zip(names, values, strict=True))
    return Invocation(store=flags.get("--store"), namespace=flags.get("--namespace"), watches=watches)
