"""Commands that a running server of the store runs: the same output, byte for byte, and otherwise nothing is lost."""

from __future__ import annotations

import io
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.surfaces.conftest import made_once
from tests.surfaces.mcp_process import Wire, call, structured
from tests.surfaces.test_golden import GOLDEN, SESSIONS, Session, _read, near, session
from tests.surfaces.test_hooks import ASKED, BOSS
from tests.surfaces.test_terminal import MAIN, in_pipe, on_terminal

import commonplace
from commonplace.cli import socket_client, socket_server
from commonplace.cli.main import QUERY_COMMANDS
from commonplace.cli.socket_client import GREETING, run_on_server, socket_path
from commonplace.cli.socket_server import Listener
from commonplace.settings import load

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

__all__ = ["session"]
TEXT = "We chose Postgres for billing, and Ada pays the invoices."


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cp-") as place:
        monkeypatch.setenv("XDG_RUNTIME_DIR", place)
        yield Path(place)


@pytest.fixture(scope="module")
def remembering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two memories, to be copied."""
    with made_once(tmp_path_factory) as program:
        program.run("init")
        with commonplace.open(program.project / ".commonplace") as book:
            book.remember(TEXT, id="billing-postgres", tags=["billing"])
            book.remember(BOSS, id="boss-petra-holm")
    return program.project


@pytest.fixture
def project(bare: Program, remembering: Path) -> Path:
    return bare.take(remembering).project


@contextmanager
def listening(project: Path, **flags: object) -> Iterator[Listener]:
    """Serve the store of a project to other processes, from this one."""
    settings = load({"store.path": str(project / ".commonplace"), **flags})
    listener = Listener()
    with commonplace.open(settings.store.path, settings.store.namespace, settings=settings) as book:
        listener.begin(settings, lambda: book)
        try:
            yield listener
        finally:
            listener.end()


def asked(*arguments: str, stdin: bytes = b"") -> dict[str, Any] | None:
    """Return what a command printed that a server ran, None where it is left to this process."""
    old = sys.stdin, sys.stdout, sys.stderr
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (stdin, b"", b"")]
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        if not run_on_server(arguments):
            assert sys.stdin.buffer.read() == stdin
            return None
    finally:
        sys.stdin, sys.stdout, sys.stderr = old
    told = [stream.buffer.getvalue().decode() for stream in streams[1:]]  # type: ignore[attr-defined]
    return {
        "exit_code": 0,
        **{name: _read(text) for name, text in zip(("stdout", "stderr"), told, strict=True) if text},
    }


def text_of(*arguments: str) -> str:
    found = asked(*arguments, "--json")
    assert found is not None, "no server ran it"
    return json.dumps(found["stdout"])


@pytest.mark.parametrize("name", sorted(set(SESSIONS) - {"csp", "graph", "mcp"}))
def test_the_golden_requests_are_answered_alike(name: str, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else, and every failure, is left to the process that asked."""
    served: list[str] = []
    listener, direct = Listener(), Session._cli

    def through(self: Session, request: dict[str, Any]) -> Any:
        arguments = shlex.split(request["cli"])
        store = self.project / ".commonplace"
        if not listener.listens.is_set() and (store / "store.db").exists():
            listener.begin(load({"store.path": str(store)}), lambda: self.book)
        if arguments[:1] and arguments[0] in QUERY_COMMANDS:
            found = asked(*arguments, stdin=request.get("stdin", "").encode())
            if found is not None:
                served.append(request["cli"])
                return found
        return direct(self, request)

    monkeypatch.setattr(Session, "_cli", through)
    before = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    try:
        for request in before:
            assert (request, near(session.ask(request), request["answer"])) == (request, request["answer"])
    finally:
        listener.end()
    good = [
        each["cli"]
        for each in before
        if each.get("cli", "").split(" ")[0] in QUERY_COMMANDS and not each["answer"]["exit_code"]
    ]
    assert [each for each in good if each not in served and not {"-v", "--store"} & {*each.split()}] == []


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("get billing-postgres --as-of 2099-01-01", {}),
        ("list --limit 1", {"TERM": "dumb"}),
        ("why billing", {"COLUMNS": "50"}),
        ("list --limit 1", {"NO_COLOR": "1", "PYTHONIOENCODING": "ascii"}),
    ],
)
def test_a_terminal_shows_the_same(command: str, changes: dict[str, str], project: Path) -> None:
    """Its width, colours and encoding are those of the process that asked."""
    with listening(project):
        shown = on_terminal(*command.split(), **changes)
        assert shown == on_terminal(*command.split(), "--no-server", **changes)
        assert shown


def test_a_pipe_gets_the_same(project: Path) -> None:
    with listening(project):
        done, direct = (in_pipe("list", "--limit", "1", *extra) for extra in ((), ("--no-server",)))
    assert done == direct
    assert b"there are more" in done[1]


def test_what_one_path_stores_the_other_finds_and_a_use_counts_once(project: Path, bare: Program) -> None:
    with listening(project):
        assert "Postgres" in text_of("recall", "billing invoices")
        bare.run("remember", "The cat of the office is called Biscuit.")
        assert "Biscuit" in text_of("recall", "what is the cat called")
        assert "Postgres" in bare.run("recall", "billing invoices").stdout
        assert "Postgres" in text_of("recall", "billing invoices")
    (found,) = (each for each in bare.json("list") if each["id"] == "billing-postgres")
    assert found["use_count"] == 1


def test_a_namespace_and_a_strategy_of_the_one_who_asks_are_taken(project: Path, bare: Program) -> None:
    """Its settings are its own: the server's are of another directory and another start."""
    bare.run("remember", "Only Bob knows.", "--namespace", "bob")
    with listening(project, **{"index.watch": "on"}):
        assert "Only Bob" in text_of("list", "--namespace", "bob")
        assert "Only Bob" not in text_of("list")
        (project / "commonplace.toml").write_text('[store]\nnamespace = "bob"\n[search]\nlimit = 1\n')
        assert "Only Bob" in text_of("list")
        (project / "commonplace.toml").write_text("[search]\nlimits = 1\n")
        assert asked("list") is None


def test_a_command_of_another_directory_names_the_store(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(project):
        monkeypatch.chdir(project / "src")
        assert "Postgres" in text_of("list")
        monkeypatch.chdir(project.parent)
        assert asked("list") is None
        assert "Postgres" in text_of("list", "--store", "project/.commonplace")
        assert "Postgres" in text_of("list", f"--store={project}/.commonplace")
        monkeypatch.setenv("COMMONPLACE_STORE", str(project / ".commonplace"))
        assert "Postgres" in text_of("list")


@pytest.mark.parametrize(
    "arguments",
    (
        "list --no-server",
        "list -v",
        "list --help",
        "list -h",
        "list --nonsense",
        "list -n x",
        "get nothing-has-this-id",
        "search billing --rerank single",
        "recall",
    ),
)
def test_what_is_not_plain_is_left_to_the_process_itself(arguments: str, project: Path) -> None:
    with listening(project):
        assert asked(*arguments.split()) is None
        assert asked("list") is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TZ", "Asia/Tokyo"),
        ("HOME", "/elsewhere"),
        ("COMMONPLACE_STORE_SERVER", "off"),
        ("COMMONPLACE_NONSENSE", "1"),
        ("COMMONPLACE_MODELS_GENERATOR", "openai:m"),
        ("COMMONPLACE_EMBEDDER_MEMORIES", "hashing"),
    ],
)
def test_another_environment_is_not_the_server_s(
    name: str, value: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**socket_client._environment(), name: value}
    with listening(project):
        monkeypatch.setattr(socket_client, "_environment", lambda: environment)
        assert asked("list") is None


def test_a_store_that_forbids_it_is_not_served(project: Path, runtime: Path) -> None:
    with listening(project, **{"store.server": "off"}) as listener:
        assert not listener.listens.is_set()
        assert list(runtime.iterdir()) == []


def test_a_hook_is_answered_in_the_directory_of_its_event(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(project / "src"), "prompt": ASKED}
    monkeypatch.chdir("/")
    with listening(project):
        told = asked("context", "--stdin-json", stdin=json.dumps(event).encode())
        assert told is not None
        assert BOSS in "".join(told["stdout"])
        again = asked("context", "--stdin-json", stdin=json.dumps(event).encode())
        assert again == {"exit_code": 0}
        for broken in (b"{", b"[]", b'{"cwd": 1}', b'{"cwd": "/there/is/none"}', b"\xff"):
            assert asked("context", "--stdin-json", stdin=broken) is None
    assert Path.cwd() == Path("/")


def place_of(project: Path) -> str:
    place = socket_path(str(project / ".commonplace" / "store.db"))
    assert place is not None
    return place


@contextmanager
def pretending(project: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """Listen in the place of a server, and answer one connection as is said."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(place_of(project))
        server.listen()

        def serve() -> None:
            with suppress(OSError), server.accept()[0] as connection:
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            thread.join(60)
            assert not thread.is_alive()


def _whole(connection: socket.socket) -> None:
    with connection.makefile("rb") as file:
        file.read()


GOOD = json.dumps({"output": [[1, "forged\n"]]}).encode()


@pytest.mark.parametrize(
    ("greeting", "answer"),
    [
        (b"", b""),
        (b"commonplace 0.0.1\n", GOOD),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", GOOD),
        (GREETING, b""),
        (GREETING, b"{}"),
        (GREETING, GOOD[:-4]),
        (GREETING, b"\xff" + GOOD),
        (GREETING, b"[]"),
        (GREETING, b'{"output": null}'),
        (GREETING, b'{"output": [[3, "x"]]}'),
        (GREETING, b'{"output": [[1, 2]]}'),
        (GREETING, b'{"output": [[1]]}'),
        (GREETING, b"[" * 100_000),
    ],
)
def test_an_answer_that_is_damaged_or_cut_is_none(greeting: bytes, answer: bytes, project: Path) -> None:
    """As when a server is killed in the middle of it: nothing of it is printed."""

    def reply(connection: socket.socket) -> None:
        connection.sendall(greeting)
        _whole(connection)
        connection.sendall(answer)

    with pretending(project, reply):
        assert asked("list") is None


def test_a_whole_answer_is_printed(project: Path) -> None:
    def reply(connection: socket.socket) -> None:
        connection.sendall(GREETING)
        _whole(connection)
        connection.sendall(GOOD)

    with pretending(project, reply):
        assert asked("list") == {"exit_code": 0, "stdout": ["forged"]}


def test_a_server_that_is_stopped_keeps_nobody_waiting(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel takes the connection all the same."""
    monkeypatch.setattr(socket_client, "GREETING_S", 0.01)
    ended = threading.Event()
    with pretending(project, lambda _: ended.wait(60) and None):
        assert asked("list") is None
        ended.set()


def test_a_dead_socket_is_removed_unless_somebody_is_about_to_listen(project: Path) -> None:
    place = Path(place_of(project))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(place))
    assert asked("list") is None
    assert not place.exists()
    with listening(project):
        assert asked("list") is not None
    assert not place.exists()


def test_another_user_is_neither_asked_nor_answered(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(project):
        for module in (socket_client, socket_server):
            with monkeypatch.context() as patch:
                patch.setattr(module, "is_ours", lambda connection: False)
                assert asked("list") is None
        assert asked("list") is not None


def test_the_peer_s_user_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert socket_client.is_ours(one)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not socket_client.is_ours(one)


def test_a_directory_that_others_may_enter_or_own_is_not_used(
    project: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(place_of(project))
    assert (place.parent, place.parent.stat().st_mode & 0o777) == (runtime / "commonplace", 0o700)
    place.parent.chmod(0o755)
    with listening(project) as listener:
        assert not listener.listens.is_set()
        assert asked("list") is None
    place.parent.rmdir()
    place.parent.symlink_to(project)
    assert socket_path(str(project / ".commonplace" / "store.db")) is None
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / "none"))
    monkeypatch.setenv("TMPDIR", str(runtime))
    assert Path(place_of(project)).parent == runtime / f"commonplace-{os.geteuid()}"


def test_no_socket_is_made_in_a_store(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(project / ".commonplace" / "vault"))
    (project / ".commonplace" / "vault").mkdir(exist_ok=True)
    with listening(project) as listener:
        assert not listener.listens.is_set()


def test_the_socket_is_its_owner_s_alone(project: Path) -> None:
    with listening(project):
        assert Path(place_of(project)).stat().st_mode & 0o777 == 0o600


def test_the_next_process_listens_when_the_first_is_gone(project: Path) -> None:
    """Neither waits for the other: the second serves its own client meanwhile."""
    with listening(project) as first, commonplace.open(project / ".commonplace") as book:
        second = Listener()
        second.begin(book.settings, lambda: book)
        assert (first.listens.is_set(), second.listens.is_set()) == (True, False)
        first.end()
        assert second.listens.wait(60)
        assert asked("list") is not None
        second.end()
        assert asked("list") is None


def test_a_process_that_never_came_to_listen_ends_all_the_same(project: Path) -> None:
    with listening(project), commonplace.open(project / ".commonplace") as book:
        waiting = Listener()
        waiting.begin(book.settings, lambda: book)
        waiting.end()
        assert not waiting.listens.is_set()
        assert asked("list") is not None


def test_a_store_in_the_place_of_another_is_not_mistaken_for_it(project: Path, bare: Program) -> None:
    store = project / ".commonplace"
    with listening(project):
        store.rename(project / ".moved")
        assert asked("list", "--store", str(project / ".moved")) is None
        bare.run("init")
        assert asked("list") is None


@pytest.mark.parametrize("variables", [{}, {"COMMONPLACE_STORE": "~/here"}, {"COMMONPLACE_STORE": "there"}])
@pytest.mark.parametrize("marker", ["", "sub/.commonplace/", "commonplace.toml", "sub/commonplace.toml"])
def test_the_store_is_guessed_as_the_settings_say_it(
    marker: str, variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who guesses wrong asks nobody, or a server that declines."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    start = tmp_path / "sub" / "deeper"
    start.mkdir(parents=True)
    place = tmp_path / marker
    if marker.endswith("/"):
        place.mkdir()
    elif marker:
        place.touch()
    meant = load(environment=variables, start=start).store.path
    assert socket_client._database(["list"], variables, str(start)) == f"{meant}/store.db"


def program(project: Path, *arguments: str) -> tuple[str, bool]:
    """Return what the program prints, and whether it did it all by itself."""
    code = f"import sys, atexit; atexit.register(lambda: sys.stderr.write(str('numpy' in sys.modules))); {MAIN}"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.endswith("True")


def test_an_agent_s_server_answers_commands_and_is_replaced_when_it_is_killed(project: Path) -> None:
    """Its protocol is as before: nothing else is printed, and it ends with its input."""
    first, second = Wire(project), Wire(project)
    try:
        for wire in (first, second):
            wire.greet()
            assert "Postgres" in str(structured(wire.ask(call("memory_search", query="billing invoices"))))
        assert ("Postgres" in (found := program(project, "list"))[0], found[1]) == (True, False)
        first.process.kill()
        first.process.wait()
        # The kernel has given the lock to the other one, which may not have taken it up yet.
        stored = call("memory_store", 2, content="The key lies under the mat.")
        assert structured(second.ask(stored))["outcome"] == "added"
        assert "under the mat" in program(project, "list")[0]
        assert second.end() == []
        assert program(project, "list")[1]
        assert not Path(place_of(project)).exists()
    finally:
        first.close()
        second.close()
