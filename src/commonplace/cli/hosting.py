"""Host the server of one run. It knows streams and when the engine is opened, and no option."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from commonplace.cli.attending import Attendance

if TYPE_CHECKING:
    from commonplace.cli.running import Invocation
    from commonplace.engine import Engine
    from commonplace.types import Progress


def serve(invocation: Invocation) -> int:
    """Serve agents until the end of input; return the exit code.

    Where that is asked for, the project is watched from the call on that opens the store.
    """
    from commonplace.mcp import serve as serve_registry
    from commonplace.mcp.memory import Host, registry_of

    if sys.stdin.isatty():
        from commonplace.cli.screen import console

        hint = "Serving the Model Context Protocol on standard input; a client starts this. See --print-config."
        console(stderr=True).print(hint, style="dim")

    invocation.makes_store = True  # a client starts it before there is anything to serve
    attendance = Attendance()

    def opened(progress: Progress) -> Engine:
        loaded = invocation.settings(index_watch="on" if invocation.watches else None)
        engine = invocation.open(loaded, create=True, progress=progress, stays_small=True)
        if loaded.index.watch == "on":
            attendance.begin(engine)
        return engine

    host = Host(opened)
    try:
        return serve_registry(registry_of(host))
    finally:
        attendance.end()
        host.close()
