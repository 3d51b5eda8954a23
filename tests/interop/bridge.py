"""Put a server that speaks on standard streams behind HTTP, for suites that know nothing else. One request at a time.

It passes on every message as it is: what a request brings about until it is answered is the body of its answer, as a
stream of events (specification 2025-11-25, basic/transports, streamable HTTP).
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Bridge(BaseHTTPRequestHandler):
    process: subprocess.Popen[bytes]
    turn: threading.Lock

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.turn:
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
            if "method" not in message or "id" not in message:
                self._answer(HTTPStatus.ACCEPTED)
                return
            events = b""
            for line in self.process.stdout:
                events += b"event: message\ndata: " + line + b"\n"
                if json.loads(line).get("id") == message["id"]:
                    break
        self._answer(HTTPStatus.OK, events)

    def do_GET(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED)

    def do_DELETE(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED)

    def _answer(self, status: HTTPStatus, events: bytes = b"") -> None:
        self.send_response(status)
        if events:
            self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(events)))
        self.end_headers()
        self.wfile.write(events)

    def log_message(self, *told: object) -> None:
        """Keep quiet: what matters is in the suite's report."""


@contextmanager
def bridged(command: Sequence[str], directory: Path) -> Iterator[str]:
    """Start the server and yield the address at which it can be reached."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=directory, stdin=pipe, stdout=pipe) as process:
        handler = type("Handler", (_Bridge,), {"process": process, "turn": threading.Lock()})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/mcp"
            finally:
                server.shutdown()
        process.communicate(timeout=60)


if __name__ == "__main__":
    with bridged(sys.argv[1:], Path()) as address:
        print(address, flush=True)
        sys.stdin.read()
