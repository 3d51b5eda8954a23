"""A PostgreSQL server that is killed amid writes: whatever was acknowledged is there, and nothing by halves."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests import postgres
from tests.contract.stores import memory
from tests.serving import serving
from tests.surfaces.test_http import problem

from commonplace.errors import StoreError
from commonplace.store.store import Store

WRITERS = 3
KILLS = 3
BEFORE_A_KILL = 12
_numbers = count()


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A server of our own, which may be killed; not below pytest's directory, which only this user may enter."""
    with tempfile.TemporaryDirectory(prefix="commonplace-postgres-", ignore_cleanup_errors=True) as directory:
        server = postgres.start(Path(directory))
        yield server
        server._cleanup()


@pytest.fixture
def dsn(server: Any) -> str:
    """The address of an empty database of that server, which runs."""
    server.ensure_postgres_running()
    name = f"database{next(_numbers)}"
    postgres.run(server.get_uri(), f"CREATE DATABASE {name}")
    return str(server.get_uri(name))


def kill(server: Any) -> None:
    """Kill a server with all its processes at once, as a power cut would."""
    postmaster = psutil.Process(server.get_pid())
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    psutil.wait_procs(processes, timeout=600)


def test_what_was_acknowledged_outlives_the_server(server: Any, dsn: str) -> None:
    """Writers go on when the server is back; a write that failed is whole or not there."""
    store = Store.open_postgres(dsn, create=True)
    acknowledged: list[str] = []
    written, stopping = threading.Semaphore(0), threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not stopping.is_set():
            number += 1
            id_ = f"{writer}-{number}"
            try:
                store.put_owners(f"n{writer % 2}", [memory(id_, "first", "second"), memory(f"{id_}b", "third")])
            except StoreError:
                stopping.wait(0.01)
            else:
                acknowledged.append(id_)
                written.release()

    threads = [threading.Thread(target=write, args=(each,)) for each in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(KILLS):
            for _ in range(BEFORE_A_KILL):
                assert written.acquire(timeout=600)
            kill(server)
            server.ensure_postgres_running()
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    there = {id_ for name in ("n0", "n1") for id_ in store.owner_numbers(name, "memory", _ids(store, name))}
    assert {each for id_ in acknowledged for each in (id_, f"{id_}b")} <= there
    assert {each.removesuffix("b") for each in there} == {each for each in there if not each.endswith("b")}
    assert store.counts()["passages"] == store.counts()["owners"] // 2 * 3
    assert store.check() == []
    store.close()


def test_a_server_says_that_its_database_is_gone_and_goes_on_when_it_is_back(server: Any, dsn: str) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    kettle = {"content": "The kettle is in the attic"}
    with serving(postgres.url_of(dsn)) as http:
        assert http.post("/v1/memories", json=kettle).status_code == 201
        for _ in range(2):
            assert http.post("/v1/recall", json={"query": "kettle"}).json()["hits"]
            kill(server)
            for verb, path, body in (
                ("POST", "/v1/recall", {"query": "kettle"}),
                ("POST", "/v1/memories", {"content": "The boat is blue"}),
                ("GET", "/v1/namespaces", None),
                ("GET", "/readyz", None),
                ("POST", "/mcp", ping),
            ):
                refused = http.request(verb, path, json=body)
                problem(refused, 503, "store-unreachable")
                assert refused.headers["retry-after"]
            assert http.get("/healthz").status_code == 200
            server.ensure_postgres_running()
            assert http.get("/readyz").status_code == 200
        assert len(http.get("/v1/memories").json()["memories"]) == 1


def test_a_server_may_be_started_before_its_database(server: Any, dsn: str) -> None:
    kill(server)
    with serving(postgres.url_of(dsn)) as http:
        problem(http.get("/readyz"), 503, "store-unreachable")
        problem(http.post("/v1/recall", json={"query": "kettle"}), 503, "store-unreachable")
        server.ensure_postgres_running()
        assert http.post("/v1/recall", json={"query": "kettle"}).status_code == 200


def _ids(store: Store, namespace: str) -> list[str]:
    from commonplace.types import Filter

    return [owner.id for owner in store.owners(namespace, store.matching_owners(namespace, Filter())).values()]
