"""Locks between machines that share a store in PostgreSQL: rows that expire unless their holder renews them."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from commonplace.errors import StoreError
from commonplace.locks import Lock, refuse_forked

if TYPE_CHECKING:
    from commonplace.store.postgres import Address

LEASE_S: Final = 60.0
"""So long after its holder died, or was cut off, a lease can be taken by another one."""
_WAIT_S: Final = 0.25

CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS leases (name text PRIMARY KEY, holder text NOT NULL, until timestamptz NOT NULL)"
)
# The server's clock counts: those of machines differ.
_UNTIL: Final = f"clock_timestamp() + interval '{LEASE_S:g} s'"
_TAKE: Final = f"""
    INSERT INTO leases (name, holder, until) VALUES ($1, $2, {_UNTIL})
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE leases.until < clock_timestamp() RETURNING 1
"""
_RENEW: Final = f"UPDATE leases SET until = {_UNTIL} WHERE name = $1 AND holder = $2 RETURNING 1"
_END: Final = "DELETE FROM leases WHERE name = $1 AND holder = $2 RETURNING 1"
_LOOK: Final = "SELECT 1 FROM leases WHERE name = $1 AND holder != $2 AND until > clock_timestamp()"


class Lease(Lock):
    """Exclude other processes on all machines, other threads and other `Lease` objects of the name. Not re-entrant.

    While it is held, a thread renews it. A holder that could not do so for `LEASE_S` seconds may have lost it.
    """

    def __init__(self, address: Address, name: str) -> None:
        self.place = f"{name} of {address}"
        self._address = address
        self._name = name
        self._holder = token_hex()
        self._threads = threading.Lock()
        self._ended: threading.Event | None = None
        self._process = os.getpid()

    def acquire(self, timeout_s: float) -> bool:
        """Take the lease; see `Lock.acquire`."""
        refuse_forked(self._process, Path(self.place))
        deadline = time.monotonic() + timeout_s
        if not self._threads.acquire(timeout=max(0.0, timeout_s)):
            return False
        try:
            while not self._run(_TAKE):
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return False
                time.sleep(min(_WAIT_S, left_s))
            self._ended = threading.Event()
            threading.Thread(target=self._keep, args=(self._ended,), daemon=True, name=f"lease of {self._name}").start()
        finally:
            if self._ended is None:
                self._threads.release()
        return True

    def release(self) -> None:
        """Give the lease back; harmless when it is not held. Where the server cannot be reached, it expires."""
        ended, self._ended = self._ended, None
        if ended is None:
            return
        ended.set()
        if self._process == os.getpid():
            with suppress(StoreError):
                self._run(_END)
        self._threads.release()

    def is_held(self) -> bool:
        """Tell whether another one holds it."""
        return self._run(_LOOK)

    def renew(self) -> bool:
        """Hold the lease for another while; return whether it was still ours."""
        return self._run(_RENEW)

    def _keep(self, ended: threading.Event) -> None:
        renewed = time.monotonic()
        while not ended.wait(LEASE_S / 3) and time.monotonic() - renewed < LEASE_S:
            with suppress(StoreError):
                if not self.renew():
                    return
                renewed = time.monotonic()

    def _run(self, sql: str) -> bool:
        with self._address.errors(), self._address.connect() as connection:
            return connection.execute(sql, [self._name, self._holder]).fetchone() is not None
