"""Processes of tests' own: `start` forks one from a process that has imported Commonplace, which takes milliseconds.

A process that starts from nothing imports for most of a second. What is about the start itself, or about which modules
are loaded, starts the program.
"""

from __future__ import annotations

import atexit
import json
import os
import pkgutil
import pty
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "src" / "commonplace" / "__main__.py"
"""The script that is the command line, for `start` and `run`."""
_PARTS = "cli consolidation engine erasure exchange graph index ingest journal memory search".split()


class Child:
    """A process whose standard streams are pipes of text; it is like `subprocess.Popen` as far as tests need it.

    Its standard output may be a terminal: reading it ends with an OSError when the process does.
    """

    def __init__(self, request: dict[str, Any], *, has_terminal: bool = False) -> None:
        (in_, stdin), (stdout, out), (stderr, err) = os.pipe(), pty.openpty() if has_terminal else os.pipe(), os.pipe()
        own, other = socket.socketpair()
        message = [json.dumps(request).encode()]
        socket.send_fds(_server(), message, [in_, out, err, other.fileno()])
        other.close()
        for descriptor in (in_, out, err):
            os.close(descriptor)
        self.stdin, self.stdout, self.stderr = os.fdopen(stdin, "w"), os.fdopen(stdout), os.fdopen(stderr)
        self._told = own.makefile("r")
        own.close()
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def wait(self) -> int:
        """Return the exit status: of a process that was killed, the signal's number below zero."""
        if self.returncode is None:
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit status if there is one yet."""
        return self.wait() if self.returncode is not None or select.select([self._told], [], [], 0)[0] else None

    def communicate(self) -> tuple[str, str]:
        """End its standard input, and return what it printed and its errors when it has ended."""
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.append(self.stderr.read()))
        reader.start()
        with suppress(BrokenPipeError):
            self.stdin.close()
        output = self.stdout.read()
        reader.join()
        self.wait()
        self._close()
        return output, errors[0]

    def kill(self) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is not None:
            self.kill()
        self._close()
        self.wait()

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            with suppress(BrokenPipeError):
                stream.close()


def start(script: str | Path, *arguments: object, **environment: str) -> Child:
    """Run a script as the main program of another process."""
    words = [str(script), *map(str, arguments)]
    return Child({"arguments": words, "directory": str(Path.cwd()), "environment": {**os.environ, **environment}})


def run(script: str | Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as the main program of another process, and return what came of it."""
    child = start(script, *arguments, **environment)
    output, errors = child.communicate()
    return subprocess.CompletedProcess(list(map(str, arguments)), child.wait(), output, errors)


def finish(child: Child) -> str:
    """Return what a process printed; fail with its errors if it did not end well."""
    output, errors = child.communicate()
    assert child.returncode == 0, errors
    return output


def children() -> set[int]:
    """Return the ids of the processes that this one started and did not wait for, as Linux tells them."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            _, parent = file.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid():
                found.add(int(file.parent.name))
    return found


@cache
def _server() -> socket.socket:
    """Start the process that forks; it ends with this one."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__, str(there.fileno())]
        process = subprocess.Popen(command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, env=environment)
    atexit.register(process.wait)
    atexit.register(here.close)
    return here


def _serve(requests: socket.socket) -> str:
    """Fork as often as it is asked for; return the script in each new process, and "" when nobody asks any more."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not message:
            with suppress(ChildProcessError):
                while os.wait():
                    pass
            return ""
        if not os.fork():
            requests.close()
            if script := _become(json.loads(message), descriptors):
                return script
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _become(request: dict[str, Any], descriptors: list[int]) -> str:
    """Fork once more: return the script in the child, and tell of its end in this process, which is its parent."""
    *streams, told = descriptors
    if child := os.fork():
        for descriptor in streams:
            os.close(descriptor)
        with suppress(BrokenPipeError):
            os.write(told, b"%d\n" % child)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.write(told, b"%d\n" % status)
        return ""
    os.close(told)
    for place, descriptor in enumerate(streams):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    encoding = os.environ.get("PYTHONIOENCODING") or "utf-8"
    # New ones ask anew whether they are files, pipes or terminals.
    sys.stdin = os.fdopen(0, encoding=encoding, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=encoding, closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding=encoding, errors="backslashreplace", closefd=False)
    sys.argv[:] = request["arguments"]
    return sys.argv[0]


def _load() -> None:
    for part in _PARTS:
        package = import_module(f"commonplace.{part}")
        for module in pkgutil.iter_modules(package.__path__, f"commonplace.{part}."):
            import_module(module.name)


if __name__ == "__main__":
    _load()
    if _script := _serve(socket.socket(fileno=int(sys.argv[1]))):
        runpy.run_path(_script, run_name="__main__")
