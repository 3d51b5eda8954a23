"""One request over HTTP: its deadline holds for all that it does, whoever makes it wait."""

from __future__ import annotations

import itertools
import socket

import pytest

from commonplace.models.addresses import Address
from commonplace.models.http import Patience, Request, _Wire, send


def test_one_deadline_holds_for_all_addresses_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may stand for dozens that do not answer, and each could take as long as the first."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = taken.getsockname()
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", where)] * 50
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        moments = itertools.count(0.0, 4.0)
        asked = Request(Address("http", "many.example", where[1]), "/x", {}, b"{}")
        with pytest.raises(TimeoutError, match="the deadline has passed"):
            send(asked, Patience(5.0, 5.0, 10.0, lambda: next(moments)), 100)
        assert next(moments) <= 20.0


class _Trickle:
    """A socket of TLS whose other side takes a byte a second: each record has the whole timeout for itself."""

    def __init__(self) -> None:
        self.now = 0.0

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def send(self, data: memoryview) -> int:
        self.now += 1.0
        return min(1, len(data))

    def sendall(self, data: bytes) -> None:
        for place in range(len(data)):
            self.send(memoryview(data)[place:])


def test_a_request_that_is_taken_a_byte_at_a_time_ends_too() -> None:
    slow = _Trickle()
    wire = _Wire(slow, Patience(5.0, 5.0, 10.0, lambda: slow.now))  # type: ignore[arg-type]
    with pytest.raises(TimeoutError, match="the deadline has passed"):
        wire.sendall(b"x" * 100)
    assert slow.now == 10.0


def test_a_whole_request_arrives() -> None:
    here, there = socket.socketpair()
    with here, there:
        _Wire(here, Patience(5.0, 5.0, 10.0, lambda: 0.0)).sendall(b"all of it")
        assert there.recv(100) == b"all of it"
