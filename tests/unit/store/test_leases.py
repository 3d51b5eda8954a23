"""Leases between machines: one holder, taken over when it is gone, and never ended by one who lost it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import postgres

from commonplace.errors import StoreBusyError, StoreError
from commonplace.store import postgres as connections
from commonplace.store.postgres import Address, Lease
from commonplace.store.store import Store

HOLD = """
import sys
from pathlib import Path
from commonplace.store.store import Store
lock = Store.open_postgres(sys.argv[1], create=False, timeout_s=600.0).lock(Path("forgetting.lock"))
print("held" if lock.acquire(0.0) else "refused", flush=True)
sys.stdin.readline()
lock.release()
"""
EXPIRE = "UPDATE leases SET until = clock_timestamp() - interval '1 s'"


@pytest.fixture
def dsn() -> Iterator[str]:
    made = postgres.new_database()
    yield made
    postgres.drop(made)


def lease(dsn: str, name: str = "forgetting.lock") -> Lease:
    return Lease(Address(dsn, "", 60.0), name)


def holder(dsn: str) -> subprocess.Popen[str]:
    """Start a process that takes the lease, and tells whether it has it."""
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", HOLD, dsn], stdin=pipe, stdout=pipe, text=True)


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_lease_of_a_dead_process_is_taken_when_it_has_expired(dsn: str) -> None:
    """Nobody can tell a dead machine from a slow one but by time."""
    mine = lease(dsn)
    with holder(dsn) as process:
        assert told(process) == "held"
        assert (mine.acquire(0.0), mine.is_held()) == (False, True)
        process.kill()
    assert not mine.acquire(0.0)
    postgres.run(dsn, EXPIRE)
    assert not mine.is_held()
    assert mine.acquire(0.0)
    mine.release()


def test_a_lease_that_is_given_back_is_free_at_once(dsn: str) -> None:
    mine = lease(dsn)
    with mine.hold(0.0), holder(dsn) as process:
        assert told(process) == "refused"
        process.communicate("\n")
    with holder(dsn) as process:
        assert told(process) == "held"
        process.communicate("\n")
    assert mine.acquire(60.0)
    mine.release()


def test_who_lost_a_lease_neither_renews_nor_ends_it(dsn: str) -> None:
    late, other = lease(dsn), lease(dsn)
    assert late.acquire(0.0)
    postgres.run(dsn, EXPIRE)
    assert late.renew()  # nobody had taken it
    assert not other.acquire(0.0)
    postgres.run(dsn, EXPIRE)
    assert other.acquire(0.0)
    assert not late.renew()
    late.release()
    assert late.is_held()
    with pytest.raises(StoreBusyError, match=r"forgetting.lock of postgresql://.* was held .* for longer than 0 s"):
        late.hold(0.0).__enter__()
    other.release()


def test_a_lease_is_renewed_while_it_is_held(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LEASE_S", 0.03)
    mine = lease(dsn)
    renewed = connections.threading.Event()
    renew = mine.renew
    monkeypatch.setattr(mine, "renew", lambda: renew() and renewed.set() is None)
    with mine.hold(0.0):
        assert renewed.wait(600.0)


def test_other_names_and_other_stores_are_free(dsn: str, tmp_path: Path) -> None:
    with lease(dsn).hold(0.0):
        other = lease(dsn, "upgrade.lock")
        assert not other.is_held()
        with other.hold(0.0):
            assert other.renew()
        with Store.create(tmp_path / "store.db").lock(tmp_path / "forgetting.lock").hold(0.0):
            assert (tmp_path / "forgetting.lock").exists()


def test_a_lease_whose_server_is_gone_is_refused_and_lets_go() -> None:
    lost = Lease(Address("postgresql://u@127.0.0.1:1/d", "", 2.0), "x.lock")
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot be reached"):
            lost.acquire(0.0)
    lost.release()
