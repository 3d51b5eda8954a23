"""One request over HTTP: its deadline holds for all that it does, whoever makes it wait."""

from __future__ import annotations

import itertools
import socket
import threading

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


def test_a_name_that_nobody_looks_up_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's resolver has no deadline of its own."""
    ends, asked = threading.Event(), []

    def never(host: str, port: int, *_: object, flags: int = 0, **__: object) -> list[object]:
        if flags:
            raise socket.gaierror(socket.EAI_NONAME, "no number")
        asked.append(host)
        ends.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", never)
    request = Request(Address("http", "slow.example", 80), "/x", {}, b"{}")
    try:
        with pytest.raises(TimeoutError, match=r"the name slow\.example was not looked up in time"):
            send(request, Patience(0.01, 5.0, 10.0, lambda: 0.0), 100)
    finally:
        ends.set()
    assert asked == ["slow.example"]


def test_a_name_that_is_none_is_the_error_that_the_system_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    request = Request(Address("http", "nobody.example", 80), "/x", {}, b"{}")
    with pytest.raises(socket.gaierror, match="not known"):
        send(request, Patience(5.0, 5.0, 10.0, lambda: 0.0), 100)


def test_a_number_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known, and would cost a thread."""
    known, flags = socket.getaddrinfo, []

    def noting(*place: object, **named: int) -> object:
        flags.append(named.get("flags", 0))
        return known(*place, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(socket, "getaddrinfo", noting)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        request = Request(Address("http", *taken.getsockname()), "/x", {}, b"{}")
        with pytest.raises(ConnectionRefusedError):
            send(request, Patience(5.0, 5.0, 10.0, lambda: 0.0), 100)
    assert flags == [socket.AI_NUMERICHOST]


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
