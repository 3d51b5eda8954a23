"""A server of a store on a free port, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from tests.responses import check

import commonplace
from commonplace.engine import Engine
from commonplace.server.access import AccessControl, PageSession
from commonplace.server.app import EnginePool, Limits, Service, application
from commonplace.server.run import LOOPBACK


class _Server(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = threading.Event()

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


DATABASES = ("sqlite", "postgres")
PATIENCE_S = 600.0
"""A busy machine does everything in its own time: no test fails before, and none that passes waits for so long."""


@contextmanager
def new_store(database: str, directory: Path) -> Iterator[Path | str]:
    """Yield the address of a store that is not there yet or empty, in one of `DATABASES`."""
    if database == "sqlite":
        yield directory / "store"
        return
    from tests import postgres  # others need neither a driver nor a server

    with postgres.lent() as dsn:
        yield postgres.url_of(dsn)


def everything_in(store: Path | str) -> str:
    """Return all that a store holds: the bytes of its files as Latin-1, or the rows of its tables."""
    if isinstance(store, Path):
        return "".join(path.read_bytes().decode("latin-1") for path in store.rglob("*") if path.is_file())
    from tests import postgres

    names = postgres.run(store, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return str([postgres.run(store, f"SELECT t::text FROM {name} t") for (name,) in names])


@contextmanager
def serving(
    store: Path | str,
    *,
    is_local: bool = True,
    limits: Limits | None = None,
    per_minute: int = 0,
    open_engine: Callable[[], Engine] | None = None,
    page: PageSession | None = None,
) -> Iterator[httpx.Client]:
    """Yield a client of a server, each of whose answers must be as documented; `client.base_url` is its address."""
    engines = EnginePool(open_engine or (lambda: commonplace.open(store, embedder="hashing")))
    access = AccessControl(engines.root, hosts=LOOPBACK, is_local=is_local, per_minute=per_minute, page=page)
    app = application(Service(engines, access, limits or Limits()))
    server = _Server(
        uvicorn.Config(app, port=0, http="h11", ws="none", log_config=None, access_log=False, lifespan="off")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.listens.wait(PATIENCE_S)
        port = server.servers[0].sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=address, timeout=PATIENCE_S, event_hooks={"response": [check]}) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        engines.close()
