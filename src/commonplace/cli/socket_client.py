"""Let a running server of the store run a read-only command, and print its output.

If there is no server, or it does not answer as it should, nothing has happened and this process runs the command.
Nothing slow is imported here: Python's own start is most of the time that such a command takes.
"""

from __future__ import annotations

import io
import json
import os
import socket
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import commonplace

GREETING: Final = f"commonplace {commonplace.__version__}\n".encode()
"""Sent by a server at once after a connection, so that a stopped server does not keep a command waiting."""
MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
GREETING_S: Final = 1.0
ANSWER_S: Final = 30.0
"""Timeout of an answer, after which this process runs the command itself."""
SHARED: Final = ("HOME", "TZ", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
"""Variables that decide where files are and how times are shown; a server must have the same values."""
_LOOKS: Final = "TERM COLORTERM NO_COLOR FORCE_COLOR COLUMNS LINES TTY_COMPATIBLE TTY_INTERACTIVE".split()
_SECRET: Final = "COMMONPLACE_GRAPH_PASSWORD"  # noqa: S105 - the name of a variable
_OFF: Final = "--no-server"
_HOOK: Final = "--stdin-json"
_MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
_SIZE: Final = (80, 25)
"""Default columns and lines without a terminal."""


def run_on_server(arguments: Sequence[str]) -> bool:
    """Let a server run a command, and print its output; return False if no server did."""
    environment = _environment()
    if _OFF in arguments or environment.get("COMMONPLACE_STORE_SERVER") == "off":
        return False
    output: list[tuple[int, str]] | None = None
    try:
        with suppress(Exception):  # the command itself meets the same error, or does not need the server
            output = _output(arguments, environment)
        for descriptor, text in output or ():
            stream = sys.stdout if descriptor == 1 else sys.stderr
            stream.write(text)
            stream.flush()
    except (OSError, KeyboardInterrupt) as error:
        # Exit as any command does when it is interrupted or its output cannot be written.
        from commonplace.cli.invocation import Invocation, run_to_the_end

        failure = error

        def fail() -> None:
            raise failure

        run_to_the_end(fail, Invocation(as_json="--json" in arguments))
    return output is not None


def _output(arguments: Sequence[str], environment: Mapping[str, str]) -> list[tuple[int, str]] | None:
    streams = (sys.stdout, sys.stderr)
    for stream in streams:
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # as the program prints by itself
    terminals = [number for number, stream in enumerate(streams, 1) if stream.isatty()]
    if terminals and environment.get("TERM") in ("dumb", "unknown"):
        return None  # rich uses another size there
    stdin = event_directory = ""
    if _HOOK in arguments:
        if sys.stdin.isatty():
            return None
        # The event of a hook names the directory. If no server answers, standard input is read again from here.
        data = sys.stdin.buffer.read(_MAX_EVENT_BYTES + 1)
        sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        event_directory = json.loads(data).get("cwd") or ""
        if len(data) > _MAX_EVENT_BYTES or not isinstance(event_directory, str):
            return None
        stdin = data.decode(errors="surrogateescape")
    size = _SIZE
    for descriptor in range(3):
        with suppress(OSError):
            columns, lines = os.get_terminal_size(descriptor)
            size = columns or _SIZE[0], lines or _SIZE[1]
            break
    directory = os.getcwd()  # noqa: PTH109 - pathlib is not loaded
    path = socket_path(_database(arguments, environment, os.path.join(directory, event_directory)))  # noqa: PTH118
    if path is None:
        return None
    request: dict[str, Any] = {"arguments": arguments, "directory": directory, "stdin": stdin, "size": size}
    encodings = [stream.encoding for stream in streams]
    request |= {"environment": environment, "terminals": terminals, "encodings": encodings}
    return _exchange(path, json.dumps(request).encode())


def _exchange(path: str, request: bytes) -> list[tuple[int, str]] | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(GREETING_S)
        try:
            connection.connect(path)
        except ConnectionRefusedError:
            import fcntl

            # Remove the socket of a dead process, unless another process is about to create its own.
            with open(f"{path}.lock", "ab") as lock:  # noqa: PTH123 - pathlib is not loaded
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)  # noqa: PTH108
            return None
        if not is_ours(connection) or connection.recv(len(GREETING)) != GREETING:
            return None
        connection.settimeout(ANSWER_S)
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answer:
            output = json.loads(answer.read())["output"]
    if all(descriptor in (1, 2) and isinstance(text, str) for descriptor, text in output):
        return [(descriptor, text) for descriptor, text in output]
    return None


def socket_path(database: str) -> str | None:
    """Return the socket path of the server of a database, or None if its directory is not private to this user.

    The name consists of the database's device and inode, not of the store's id, which a copy of the store shares.
    """
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base.startswith("/") and os.path.isdir(base):  # noqa: PTH112
        directory = f"{base}/commonplace"
    else:
        directory = f"{os.environ.get('TMPDIR') or '/tmp'}/commonplace-{os.geteuid()}"  # noqa: S108 - checked below
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)  # noqa: PTH102
    info, file = os.lstat(directory), os.stat(database)  # noqa: PTH116
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
        return None
    return f"{directory}/{commonplace.__version__}-{file.st_dev:x}-{file.st_ino:x}"


def is_ours(connection: socket.socket) -> bool:
    """Return whether the peer process belongs to this user; True if the system does not report it."""
    options = ((socket.SOL_SOCKET, "SO_PEERCRED"), (0, "LOCAL_PEERCRED"))
    for level, name in options:
        if hasattr(socket, name):
            # The result is process, user, group on Linux, and version, user, groups elsewhere.
            peer = connection.getsockopt(level, getattr(socket, name), 128)
            return int.from_bytes(peer[4:8], sys.byteorder) == os.geteuid()
    return True


def _environment() -> dict[str, str]:
    names = {*SHARED, *_LOOKS, *(name for name in os.environ if name.startswith("COMMONPLACE_"))} - {_SECRET}
    return {name: os.environ[name] for name in sorted(names) if name in os.environ}


def _database(arguments: Sequence[str], environment: Mapping[str, str], start: str) -> str:
    """Guess the path of a command's database: loading the settings, to be certain, takes longer than the answer."""
    location = environment.get("COMMONPLACE_STORE", "")
    for number, argument in enumerate(arguments):
        if argument == "--store":
            location = arguments[number + 1] if number + 1 < len(arguments) else ""
        elif argument.startswith("--store="):
            location = argument.removeprefix("--store=")
    if location:
        return os.path.join(start, os.path.expanduser(location), "store.db")  # noqa: PTH111, PTH118
    folder = start
    while True:
        store = f"{folder}/.commonplace"
        if os.path.isdir(store) or os.path.isfile(f"{folder}/commonplace.toml"):  # noqa: PTH112, PTH113
            return f"{store}/store.db"
        if folder == os.path.dirname(folder):  # noqa: PTH120
            data = os.environ.get("XDG_DATA_HOME") or f"{os.environ.get('HOME', '')}/.local/share"
            return f"{data}/commonplace/store/store.db"
        folder = os.path.dirname(folder)  # noqa: PTH120
