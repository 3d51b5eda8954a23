"""Commonplace: a memory engine for AI agents, in one local directory.

In five lines:

    import commonplace

    with commonplace.open() as book:
        book.index(".")
        for hit in book.search("where are sessions refreshed").hits:
            print(hit.path, hit.lines, hit.score)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.client import Client
    from commonplace.engine import Engine
    from commonplace.exchange.restore import RestoreReport
    from commonplace.memory.view import Memory
    from commonplace.models.contract import Embedder
    from commonplace.settings import Settings
    from commonplace.specs.run import Answerer
    from commonplace.types import Document, Filter, Hit, IndexReport, Progress

__version__ = "0.1.0"

__all__ = [
    "CommonplaceError",
    "Document",
    "Engine",
    "Filter",
    "Hit",
    "IndexReport",
    "Memory",
    "__version__",
    "connect",
    "open",
    "restore",
    "run_spec",
]


def open(  # noqa: A001 - as in `commonplace.open`, on the model of `gzip.open`
    path: str | Path | None = None,
    namespace: str = "default",
    embedder: str | Embedder | None = None,
    *,
    create: bool = True,
    settings: Settings | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] | None = None,
) -> Engine:
    """Open a store and return its engine; use it in a `with` block, or close it.

    Args:
        path: the store's directory, or `postgresql://…`. Default: the nearest `.commonplace`, upward from the working
            directory, else the one in the user's data directory.
        namespace: the owner of everything stored and searched through this engine.
        embedder: a name ("static", "hashing") or an embedder of your own; default: the store's.
        create: create a missing store; False raises `StoreMissingError`.
        settings: loaded settings; default: from files and environment.
        progress: called with (what, done, total) during long work.
        clock: returns seconds since the epoch; default: the system's clock.

    Raises:
        EmbedderMismatchError: the store was built with an embedder other than the requested one.
        SettingsError: a settings file or variable is wrong.
        StoreDamagedError: the store is damaged, or its database is missing although its index or pages exist.
        StoreError: the store cannot be opened or created.
        StoreMissingError: there is no store, and `create` is False.
    """
    from commonplace.engine.open import open_engine

    return open_engine(path, namespace, embedder, create=create, settings=settings, progress=progress, clock=clock)


def connect(url: str, token: str | None = None, *, namespace: str | None = None, timeout_s: float = 60.0) -> Client:
    """Return a client of a server, with the methods of the engine; nothing is sent before the first call.

    Args:
        url: the server's address, such as `http://127.0.0.1:8765`.
        token: an access token, as `commonplace token create` prints it; None if the server requires none.
        namespace: default: the token's first.
        timeout_s: seconds to wait for a connection, and for each part of a response.

    Raises:
        UsageError: `url` is not an address of a server.
    """
    from commonplace.client import Client

    return Client(url, token, namespace=namespace, timeout_s=timeout_s)


def restore(
    source: str | Path, path: str | Path | None = None, *, replace: bool = False, progress: Progress | None = None
) -> RestoreReport:
    """Make a store from a backup that `Engine.backup` wrote; everything is checked before anything is touched.

    Args:
        path: the store's directory; default: as in `open`.
        replace: replace the store there, which is kept beside it.
        progress: called with (what, bytes done, total bytes).

    Raises:
        NotFoundError: there is no such backup.
        StoreError: the backup is damaged, or a store exists and `replace` is False.
    """
    from commonplace.exchange.restore import restore as make_store

    return make_store(source, path, replace=replace, progress=progress)


def run_spec(
    spec: str | Path | Mapping[str, Any],
    task: str | None = None,
    input: Mapping[str, Any] | None = None,  # noqa: A002 - the word of the Open Agent Spec
    generator: Answerer | Mapping[str, Answerer] | None = None,
    *,
    system: str | None = None,
    user: str | None = None,
    settings: Settings | None = None,
) -> dict[str, Any]:
    """Run a task of an Open Agent Spec and return its envelope: a result, or an error with a `code`.

    A result has `task, output, input, prompt, engine, model, raw_output`, with `chain` if tasks ran before it,
    `delegated_to` if another spec implements it, `usage` if tokens were counted, and `degraded` if our own re-ranker
    can stand in for a model. An error has `error, code, stage`, and usually `task`.

    Args:
        spec: a file, or a parsed document.
        task: the task's name; default: the first that can be run.
        generator: replaces models: an object with `generate`, a function of system and user prompt, or a mapping from
            task names to these.
        system: a system prompt instead of the task's; `user`: a user prompt instead of the task's.
        settings: as in `open`.

    Raises:
        SettingsError: a settings file or variable is wrong.
    """
    from commonplace.settings import load
    from commonplace.specs import run

    return run(spec, task, input, generator, settings or load(), system=system, user=user)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # a type checker that sees it accepts any name

    def __getattr__(name: str) -> object:
        """Import an exported type on first access: importing them all takes longer than starting Python."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "Engine":
            from commonplace.engine import Engine

            return Engine
        if name == "Memory":
            from commonplace.memory.view import Memory

            return Memory
        from commonplace import types

        return getattr(types, name)
