"""Start the program `commonplace`. It knows the one command line that is not parsed like all others.

A server is started by a client, over and over, with what `commonplace mcp --print-config` wrote for it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from commonplace.cli.output import guard_output

if TYPE_CHECKING:
    from commonplace.cli.program import cli
    from commonplace.cli.running import Invocation

__all__ = ["cli", "main", "server_asked_for"]

_OPTIONS = frozenset({"--store", "--namespace"})
_WATCH = "--watch"
"""Where it comes last, as our own configurations have it."""


def main() -> NoReturn:
    """Run the program; the console script."""
    # A terminal without UTF-8 shows what it cannot write as an escape; nothing fails for a dash.
    guard_output()
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    server = server_asked_for(sys.argv[1:])
    if server is None:
        from commonplace.cli.program import cli

        cli.main()
    from commonplace.cli.hosting import serve
    from commonplace.cli.running import run_to_the_end

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
    from commonplace.cli.running import Invocation

    given = dict(zip(names, values, strict=True))
    return Invocation(store=given.get("--store"), namespace=given.get("--namespace"), watches=watches)


def __getattr__(name: str) -> Any:
    if name == "cli":
        from commonplace.cli.program import cli

        return cli
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
