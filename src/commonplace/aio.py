"""The engine's and the client's methods as coroutines, for code in an event loop; each call runs in a thread.

import commonplace.aio

async with commonplace.aio.open() as book:
    await book.remember("We chose Postgres for billing")
    result = await book.search("what database does billing use")
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, Final, Self

import commonplace

_SERVICES: Final = frozenset({"graph", "knowledge", "ledger", "specialist", "tokens"})


class Async:
    """An engine or a client whose methods are coroutines; its services, such as `graph`, have coroutines too.

    The first call or `async with` opens it.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._lock = threading.Lock()
        self._new, self._made = make, None

    def _make(self) -> Any:
        with self._lock:  # the first calls may be concurrent
            if self._made is None:
                self._made = self._new()
            return self._made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _SERVICES:
            return Async(lambda: getattr(self._make(), name))

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(self._call, name, args, kwargs)

        return call

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._make)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the engine or the client."""
        await asyncio.to_thread(lambda: self._make().close())

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        member = getattr(self._make(), name)
        if callable(member):
            return member(*args, **kwargs)
        if args or kwargs:
            raise TypeError(f"{name} is a value, and takes no arguments")
        return member


@functools.wraps(commonplace.open, assigned=("__doc__",))
def open(*args: Any, **kwargs: Any) -> Async:  # noqa: A001 - as `commonplace.open`
    inspect.signature(commonplace.open).bind(*args, **kwargs)
    return Async(lambda: commonplace.open(*args, **kwargs))


@functools.wraps(commonplace.connect, assigned=("__doc__",))
def connect(*args: Any, **kwargs: Any) -> Async:
    client = commonplace.connect(*args, **kwargs)
    return Async(lambda: client)
