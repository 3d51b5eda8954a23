"""A threaded server on 127.0.0.1 for a test: it listens from `with` on, and its end waits for every handler."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer
from types import TracebackType
from typing import Self


class Serving:
    """Serves with a kind of handler, each of which knows it as `stub`.

    Attributes:
        closing: set as the end begins, for handlers that wait.
    """

    def __init__(self, handler: type[BaseRequestHandler], kind: type[ThreadingTCPServer] = ThreadingHTTPServer) -> None:
        self.closing = threading.Event()
        self._handler = type("Handler", (handler,), {"stub": self})
        self._kind = kind

    def __enter__(self) -> Self:
        self._server = self._kind(("127.0.0.1", 0), self._handler)
        # So that the end waits for every handler, and no thread of one test is alive in the next.
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"
