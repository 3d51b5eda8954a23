"""One request over HTTP: its deadline holds for all that it does, whoever makes it wait."""

from __future__ import annotations

import socket
import threading
from queue import Empty, SimpleQueue

import pytest

from commonplace.models import http
from commonplace.models.http import Timeouts, send
from commonplace.models.providers import Endpoint

SHORT = Timeouts(5.0, 0.1, lambda: 0.0)


def test_a_name_that_nobody_looks_up_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's resolver has no deadline of its own."""
    ends = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ends.wait() and [])
    try:
        with pytest.raises(TimeoutError, match="the deadline has passed"):
            send(Endpoint("http", "slow.example", 80), "/x", {}, b"{}", SHORT, 100)
    finally:
        ends.set()


@pytest.mark.parametrize("read_s", [0.5, 60.0])
def test_who_asks_waits_until_the_deadline_however_long_a_step_may_take(
    monkeypatch: pytest.MonkeyPatch, read_s: float
) -> None:
    """A server that sends a byte now and then would hold them as long as it likes, or lose what came in time."""
    waited: list[float] = []

    class Never(SimpleQueue[object]):
        def get(self, block: bool = True, timeout: float | None = None) -> object:
            waited.append(timeout or 0.0)
            raise Empty

    monkeypatch.setattr(http, "SimpleQueue", Never)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(TimeoutError, match="deadline"):
        send(Endpoint("http", *server.getsockname()), "/x", {}, b"{}", Timeouts(read_s, 3.0, lambda: 1.0), 100)
    assert waited == [2.0]


def test_a_name_that_is_none_is_the_error_that_the_system_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    nobody = Endpoint("http", "nobody.example", 80)
    with pytest.raises(socket.gaierror, match="not known"):
        send(nobody, "/x", {}, b"{}", Timeouts(5.0, 10.0, lambda: 0.0), 100)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_request_that_nobody_takes_ends_too(scheme: str) -> None:
    """It is larger than what the system keeps for a reader, who never reads; with TLS nobody even shakes hands."""
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(TimeoutError):
        send(Endpoint(scheme, *server.getsockname()), "/x", {}, b" " * 50_000_000, SHORT, 100)


def test_a_deadline_that_has_passed_sends_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        with pytest.raises(TimeoutError, match="the deadline has passed"):
            send(Endpoint("http", *server.getsockname()), "/x", {}, b"{}", Timeouts(5.0, -1.0), 100)
        with pytest.raises(BlockingIOError):
            server.accept()
