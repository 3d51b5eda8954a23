"""Start the program `commonplace`.

A client starts a server for every session and a hook for every prompt: what either does not need is loaded late.
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

    Where that is asked for, the project is watched from the call on that opens the store.
    """
    from commonplace.mcp.registry import LazyEngine, registry_of
    from commonplace.mcp.server import serve as serve_registry

    if sys.stdin.isatty():
        from commonplace.cli.output import hint

        hint("Serving the Model Context Protocol on standard input; a client starts this. See --print-config.")

    invocation.makes_store = True  # a client starts it before there is anything to serve

    def opened(progress: Progress) -> Engine:
        loaded = invocation.settings(index_watch="on" if invocation.watches else None)
        engine = invocation.open(loaded, create=True, progress=progress, low_memory=True)
        if loaded.index.watch == "on":
            from commonplace.cli.watch import ProjectWatch

            project_watch = ProjectWatch()
            ending.callback(project_watch.end)
            project_watch.begin(engine)
        from commonplace.cli.socket_server import Listener

        listener = Listener()
        ending.callback(listener.end)
        listener.begin(loaded, lambda: engine)
        return engine

    engine = LazyEngine(opened)
    with ExitStack() as ending:
        ending.callback(engine.close)
        return serve_registry(registry_of(engine.get))


ASKING: Final = frozenset({"recall", "search", "context", "why", "get", "list"})
"""Commands that only ask, which a running server of the store can run as well."""
_OPTIONS = frozenset({"--store", "--namespace"})
_WATCH = "--watch"
"""Where it comes last, as our own configurations have it."""


def main() -> NoReturn:
    """Run the program; the console script."""
    if sys.argv[1:2] and sys.argv[1] in ASKING:
        from commonplace.cli.socket_client import answered

        if answered(sys.argv[1:]):
            sys.exit(0)
    from commonplace.cli.invocation import guard_output, run_to_the_end

    guard_output()
    server = server_asked_for(sys.argv[1:])
    if server is None:
        from commonplace.cli.app import cli

        cli.main()
    run_to_the_end(lambda: serve(server), server)


def server_asked_for(arguments: Sequence[str]) -> Invocation | None:
    """Return the run that such arguments ask for, None for all that need a parser: other options, wrong values."""
    if list(arguments[:1]) != ["mcp"]:
        return None
    rest = list(arguments[1:])
    watches = rest[-1:] == [_WATCH]
    if watches:
        rest.pop()
    names, values = rest[::2], rest[1::2]
    if len(names) != len(values) or len(set(names)) < len(names):
        return None
    if not _OPTIONS.issuperset(names) or any(value.startswith("-") or not value.strip() for value in values):
        return None
    from commonplace.cli.invocation import Invocation

    given = dict(zip(names, values, strict=True))
    return Invocation(store=given.get("--store"), namespace=given.get("--namespace"), watches=watches)
