"""The server is killed, flooded, kept waiting and told half of things: what it acknowledged stays, and it goes on."""

from __future__ import annotations

import functools
import json
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.serving import DATABASES, PATIENCE_S, new_store, serving

import commonplace
from commonplace.errors import UsageError
from commonplace.server import run
from commonplace.server.access import CSRF_HEADER, PageSession
from commonplace.server.app import Limits
from commonplace.server.page import views
from commonplace.server.problems import TYPE_PREFIX
from commonplace.server.routes import OPERATIONS

HEAD = b"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
PROGRAM = [sys.executable, "-m", "commonplace", "serve", "--json"]


@contextmanager
def started(store: Path | str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield the process of a server, and its address."""
    process = subprocess.Popen([*PROGRAM, "--store", str(store), *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())["address"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    with new_store(request.param, tmp_path) as place:
        yield place


def test_what_was_acknowledged_is_there_after_a_kill(store: Path | str) -> None:
    kept: list[str] = []
    enough = threading.Event()

    def write(url: str, writer: int) -> None:
        with commonplace.connect(url, timeout_s=PATIENCE_S) as client:
            for number in range(10_000):
                id_ = f"{writer}-{number}"
                try:
                    client.remember(f"Writer {writer} saw boat {number} pass the lock", id=id_)
                except commonplace.CommonplaceError:
                    return
                kept.append(id_)
                if len(kept) >= 40:
                    enough.set()

    with started(store, "--port", "0") as (process, url), ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, url, writer) for writer in range(4)]
        assert enough.wait(PATIENCE_S)
        process.send_signal(signal.SIGKILL)
        for each in writers:
            each.result(PATIENCE_S)
    with commonplace.open(store) as book:
        there = {memory.id for memory in book.list(limit=10_000)}
        assert set(kept) <= there
        assert len(there) <= len(kept) + 4
        assert book.doctor().is_healthy


def test_a_server_that_is_told_to_stop_finishes_and_ends_well(tmp_path: Path) -> None:
    place = tmp_path / "socket"
    with started(tmp_path / "store", "--socket", str(place)) as (process, address):
        assert address == f"unix:{place}"
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        transport = httpx.HTTPTransport(uds=str(place))
        with httpx.Client(transport=transport, base_url="http://localhost") as client:
            assert client.post("/v1/memories", json={"content": "The kettle is red"}).status_code == 201
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        assert not place.exists()


def test_connections_wait_for_no_acknowledgement() -> None:
    """With Nagle's algorithm each answer waits 40 ms for the client's."""
    with run._listen(run.ListenAddress("127.0.0.1", 0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_a_socket_that_a_dead_process_left_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "socket"
    with started(tmp_path / "store", "--socket", str(place)) as (process, _):
        process.kill()
        process.wait()
        assert place.exists()
    with started(tmp_path / "store", "--socket", str(place)) as (process, address):
        assert address == f"unix:{place}"


@pytest.mark.parametrize("kind", ["port", "socket"])
def test_an_address_that_is_taken_is_named(tmp_path: Path, kind: str) -> None:
    own = tmp_path / "socket"
    options = ["--port", "0"] if kind == "port" else ["--socket", str(own)]
    with started(tmp_path / "store", *options) as (_, address):
        again = ["--port", str(urlsplit(address).port)] if kind == "port" else options
        command = [*PROGRAM, "--store", str(tmp_path / "store"), *again]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode == 2
        assert "cannot listen on" in second.stderr + second.stdout


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (run.ListenAddress("", 0, Path("/nodir/socket")), "/nodir/socket: No such file.*; choose .* --socket"),
        (run.ListenAddress("192.0.2.1", 0), "192.0.2.1:0: .*; give an address of this machine with --host"),
    ],
)
def test_an_address_that_cannot_be_used_has_a_remedy_that_helps(address: run.ListenAddress, told: str) -> None:
    with pytest.raises(UsageError, match=rf"cannot listen on {told}$"):
        run._listen(address)


def test_two_hundred_clients_are_all_answered(store: Path | str) -> None:
    with serving(store) as http:
        url = str(http.base_url)
        together = threading.Barrier(200)
        certificates = ssl.create_default_context()  # once: 200 clients would take most of the time to read their own

        def ask(number: int) -> int:
            with httpx.Client(base_url=url, timeout=PATIENCE_S, verify=certificates) as client:
                together.wait(PATIENCE_S)
                return client.post("/v1/memories", json={"content": f"Boat {number} is blue"}).status_code

        with ThreadPoolExecutor(200) as pool:
            statuses = list(pool.map(ask, range(200)))
        assert statuses == [201] * 200
        assert http.get("/v1/memories", params={"limit": 1_000}).json()["counts"]["short"] == 200


def test_when_too_many_wait_some_are_told_to_come_again(tmp_path: Path) -> None:
    """An answer that comes in a minute is none, and each that waits holds memory."""
    begun, go_on = threading.Semaphore(0), threading.Event()
    opened = commonplace.open(tmp_path / "store", embedder="hashing")

    def slow_engine() -> commonplace.Engine:
        begun.release()
        assert go_on.wait(PATIENCE_S)
        return opened

    limits = Limits(workers=1, waiting=1)
    with serving(tmp_path / "store", limits=limits, open_engine=slow_engine) as http, ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(http.post, "/v1/recall", json={"query": "x"}) for _ in range(8)]
        assert begun.acquire(timeout=PATIENCE_S)
        refused = next(as_completed(waiting, PATIENCE_S)).result()
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert http.get("/healthz").status_code == 200
        go_on.set()
        assert {each.result().status_code for each in waiting} == {200, 503}


def test_a_server_whose_store_is_damaged_lives_and_is_not_ready(tmp_path: Path) -> None:
    place = tmp_path / "store"
    commonplace.open(place, embedder="hashing").close()
    (place / "store.db").write_bytes(b"no database" * 1_000)
    with serving(place) as http:
        assert http.get("/healthz").status_code == 200
        refused = http.get("/readyz")
        assert (refused.status_code, refused.json()["type"]) == (503, f"{TYPE_PREFIX}store-failed")
        assert http.post("/v1/recall", json={"query": "x"}).status_code == 500


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Hold up a call until the second event, which is set at the end too; the first says that it has begun."""
    begun, go_on = threading.Event(), threading.Event()
    function = owner[name].function if isinstance(owner, Mapping) else getattr(owner, name)

    @functools.wraps(function)
    def slow(*given: object, **arguments: object) -> object:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return function(*given, **arguments)

    if isinstance(owner, Mapping):
        monkeypatch.setitem(owner[name].__dict__, "function", slow)
    else:
        monkeypatch.setattr(owner, name, slow)
    try:
        yield begun, go_on
    finally:
        go_on.set()


PAGE = {each.id: each for each in views.OPERATIONS}
PARAMS = {"name": "memory_forget", "arguments": {"ids": ["m1"]}}
FORGET = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": PARAMS}


@pytest.mark.parametrize(
    ("owner", "name", "verb", "path", "body"),
    [
        (OPERATIONS, "health", "GET", "/v1/health", None),
        (OPERATIONS, "communities", "GET", "/v1/graph/communities", None),
        (OPERATIONS, "delete_knowledge", "DELETE", "/v1/knowledge/scout", None),
        (OPERATIONS, "undo_consolidation", "POST", "/v1/consolidation/undo/x", {}),
        (PAGE, "page_doctor", "GET", "/page/doctor", None),
        (commonplace.Engine, "forget", "POST", "/mcp", FORGET),
    ],
)
def test_a_call_that_takes_long_keeps_no_other_waiting(
    owner: Any, name: str, verb: str, path: str, body: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consolidation may run for minutes, and all that time agents recall."""
    limits, page = Limits(workers=1, long_workers=1), PageSession() if path.startswith("/page") else None
    with serving(tmp_path / "store", limits=limits, page=page) as http, ThreadPoolExecutor(1) as pool:
        if page:
            assert http.get(page.path).status_code == 200
            http.headers[CSRF_HEADER] = page.csrf
        with held(monkeypatch, owner, name) as (begun, go_on):
            waiting = pool.submit(http.request, verb, path, json=body)
            assert begun.wait(PATIENCE_S)
            assert http.post("/v1/recall", json={"query": "x"}).status_code == 200
            assert not waiting.done()
            go_on.set()
            assert waiting.result().status_code < 500


def test_who_asks_is_checked_while_all_workers_are_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a call has waited once, not once to be let in and again to be answered."""
    with (
        serving(tmp_path / "store", limits=Limits(workers=1)) as http,
        ThreadPoolExecutor(1) as pool,
        held(monkeypatch, OPERATIONS, "recall") as (begun, go_on),
    ):
        waiting = pool.submit(http.post, "/v1/recall", json={"query": "x"})
        assert begun.wait(PATIENCE_S)
        assert http.post("/v1/recall", headers={"Authorization": "Bearer cp_none"}).status_code == 401
        assert not waiting.done()
        go_on.set()
        assert waiting.result().status_code == 200


def test_calls_that_take_long_wait_in_places_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many of them wait as may, and one is told to come again; what is short is answered all the time."""
    limits = Limits(workers=1, waiting=8, long_workers=1, long_waiting=8)
    with serving(tmp_path / "store", limits=limits) as http, ThreadPoolExecutor(10) as pool:
        with held(monkeypatch, OPERATIONS, "health") as (begun, go_on):
            waiting = [pool.submit(http.get, "/v1/health")]
            assert begun.wait(PATIENCE_S)
            waiting += [pool.submit(http.get, "/v1/health") for _ in range(9)]
            refused = next(as_completed(waiting, PATIENCE_S)).result()
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
            assert http.post("/v1/recall", json={"query": "x"}).status_code == 200
            few = http.post("/v1/memories/bulk", json={"items": [{"content": "The boat is blue"}]})
            assert few.status_code == 201
            go_on.set()
        assert sorted(each.result().status_code for each in waiting) == [200] * 9 + [503]


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET",
        HEAD + b"Content-Length: 50\r\n\r\n{",
        b"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n",
        b"\x00\xff\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 1_000_000,
    ],
)
def test_half_a_request_holds_nobody_up(tmp_path: Path, half: bytes) -> None:
    with serving(tmp_path / "store", limits=Limits(workers=1)) as http:
        address = (http.base_url.host, http.base_url.port)
        with socket.create_connection(address) as one, socket.create_connection(address) as other:
            for each in (one, other):
                try:
                    each.sendall(half)
                except OSError:
                    break  # it was refused before it was whole
            assert http.post("/v1/recall", json={"query": "x"}).status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "store", limits=Limits(body_timeout_s=0.05)) as http,
        socket.create_connection((http.base_url.host, http.base_url.port)) as slow,
    ):
        slow.settimeout(PATIENCE_S)
        slow.sendall(HEAD + b"Content-Length: 9\r\n\r\n{")
        assert slow.recv(4_096).startswith(b"HTTP/1.1 408")


def test_a_reader_that_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    with serving(tmp_path / "store", limits=Limits(workers=1)) as http:
        items = [{"content": f"Boat {number} is b{'l' * 85_000}ue"} for number in range(20)]
        http.post("/v1/memories/bulk", json={"items": items})
        with socket.create_connection((http.base_url.host, http.base_url.port)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            slow.sendall(b"GET /v1/memories?limit=200 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert slow.recv(10).startswith(b"HTTP/1.1")
            assert http.post("/v1/recall", json={"query": "boat"}).status_code == 200


def test_a_body_of_100_mb_is_refused_without_being_read(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as http:
        with socket.create_connection((http.base_url.host, http.base_url.port)) as sender:
            sender.settimeout(PATIENCE_S)
            sender.sendall(HEAD + b"Content-Length: 104857600\r\n\r\n")
            assert sender.recv(4_096).startswith(b"HTTP/1.1 413")
        assert http.get("/healthz").status_code == 200
