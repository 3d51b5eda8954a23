"""Open a store with its index, embedder and settings as one engine, and check that they fit together."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from commonplace.dataclasses import replace
from commonplace.engine.engine import Engine
from commonplace.engine.runtime import Runtime
from commonplace.errors import EmbedderMismatchError, StoreError, StoreMissingError, UsageError
from commonplace.index.generations import Index
from commonplace.locks import Lock
from commonplace.memory.validate import boolean, path_value
from commonplace.models.client import Budget
from commonplace.models.contract import Embedder
from commonplace.models.registry import AbsentEmbedder, embedder_name, for_kind, is_remote, of_kinds, open_embedder
from commonplace.models.static import StaticEmbedder
from commonplace.settings import Settings, load, paths
from commonplace.store.database import left_behind, refuse_lost
from commonplace.store.store import Store
from commonplace.store.validate import upgrade_command
from commonplace.types import EMBEDDED_KIND_OF, EmbeddedKind, Embedding, Progress

MAX_NAMESPACE_CHARACTERS = 200
MAX_HIDDEN = 10_000
DEFAULT = "default"
"""Name that stands for the embedders that the settings give to each kind of owner."""


def open_engine(
    path: str | Path | None,
    namespace: str,
    embedder: str | Embedder | None,
    *,
    create: bool = True,
    settings: Settings | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] | None = None,
    low_memory: bool = False,
) -> Engine:
    """Return the engine of a store; see `commonplace.open`.

    Args:
        low_memory: do heavy work in separate processes, as suits a server that runs all day.
    """
    check_namespace(namespace)
    if path is not None and path != "":
        path_value("path", path)
    settings = settings or load({"store.path": None if path is None else str(path)})
    location = path or settings.store.path
    if not location:
        remedy = "load them with commonplace.settings.load()"
        raise UsageError("neither `path` nor the settings name a store", remedy=remedy)
    address = paths.address_of(location)
    directory = paths.directory_of(location).expanduser().absolute()
    paths.refuse_links(directory)
    is_there = address is not None or (directory / paths.DATABASE).exists()
    if address is None:
        refuse_lost(directory / paths.DATABASE)
    if not boolean("create", create) and not is_there:
        raise StoreMissingError(
            f"there is no store at {directory}", remedy="make one with create=True, or with `commonplace init`"
        )
    tokens = StaticEmbedder.load()
    budget = Budget(settings.models.max_calls, settings.models.max_tokens)
    # Opened before the store is created: an embedder that is unavailable must leave no empty store behind.
    first_embedder = None if is_there and address is None else _embedder(embedder, settings, None, tokens, budget)
    _make_directory(directory)
    if address is None:
        store = Store.open(directory / paths.DATABASE, create=True)
    else:
        store = Store.open_postgres(address, address.password, create=create)
        # Without Markdown and logs: a store on a server is shared by machines.
        memory, log = replace(settings.memory, mirror="off"), replace(settings.log, level="off", queries="off")
        settings = replace(settings, memory=memory, log=log)
    try:
        stored = store.embedding()
        reusable = None if stored is not None else first_embedder
        usable_embedder = reusable or _embedder(embedder, settings, stored, tokens, budget)
        index = Index(directory / paths.INDEX, store_id=store.id, embedding=usable_embedder.stamp)
    except BaseException:
        store.close()
        raise
    settings = replace(settings, store=replace(settings.store, path=address or str(directory), namespace=namespace))
    worker = None
    if low_memory and address is None:
        from commonplace.engine.worker import Worker  # subprocess costs 3 ms and .2 MB

        worker = Worker(settings, progress)
    runtime = Runtime(
        directory=directory,
        project=paths.project_of(directory) if address is None else settings.project,
        namespace=namespace,
        store=store,
        index=index,
        embedder=usable_embedder,
        tokens=tokens,
        settings=settings,
        progress=progress,
        clock=clock or time.time,
        budget=budget,
        open_embedder=lambda model, stored: _embedder(model, settings, stored, tokens, budget),
        worker=worker,
    )
    return Engine(runtime)


def recreate_lost_store(directory: Path) -> bool:
    """Create an empty store where one has lost its database; return whether it had.

    Raises:
        StoreError: a link is in the way.
    """
    database = directory / paths.DATABASE
    if database.is_file() or not left_behind(database):
        return False
    paths.refuse_links(directory)
    Store.create(database).close()
    return True


def make_on_server(address: paths.StoreAddress, grant_to: str, partitions: int) -> bool:
    """Create a store on a server unless it exists, and grant a role its use; return whether it was created."""
    return Store.make_on_server(address, address.password, grant_to=grant_to, partitions=partitions)


def consolidation_lock(engine: Engine) -> Lock:
    """Return the lock that a process holds while it consolidates a store periodically."""
    return engine._runtime.store.lock(engine.directory / paths.WATCH_LOCK)


def hidden_memories(settings: Settings) -> tuple[str, ...]:
    """Return the texts of the user store's memories, which a project's store hides; empty outside a project.

    Raises:
        CommonplaceError: the user store cannot be opened or read.
    """
    home = paths.user_store()
    if settings.project is None or str(home) == settings.store.path or not (home / paths.DATABASE).is_file():
        return ()
    with open_engine(home, settings.store.namespace, None, settings=settings) as engine:
        return tuple(memory.content for memory in engine.list(statuses=(), limit=MAX_HIDDEN))


def move_hidden_memories(target: Engine, settings: Settings, progress: Progress | None) -> int:
    """Move the memories of the user store to an engine's; return how many were moved."""
    with open_engine(paths.user_store(), settings.store.namespace, None, settings=settings, progress=progress) as home:
        return home.move_memories(target)


def check_namespace(namespace: str) -> None:
    """Refuse an invalid name of a namespace.

    Raises:
        UsageError: it is empty, too long, or has characters that are not printable.
    """
    is_name = isinstance(namespace, str) and namespace.strip() and namespace.isprintable()
    if not is_name or len(namespace) > MAX_NAMESPACE_CHARACTERS:
        limits = f"give 1 to {MAX_NAMESPACE_CHARACTERS} printable characters"
        raise UsageError(f"namespace {namespace!r} is not a printable name", remedy=limits)


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if directory.name == paths.STORE_NAME and not (directory / paths.DATABASE).exists():
            # A project's store is never committed to the project's repository, whoever creates it.
            with suppress(FileExistsError), (directory / ".gitignore").open("x", encoding="utf-8") as file:
                file.write("*\n")
    except FileExistsError as error:
        raise StoreError(f"{directory} is a file", remedy="name a directory with --store") from error
    except OSError as error:
        raise StoreError(
            f"{directory} cannot be created: {error.strerror}", remedy="name a writable directory with --store"
        ) from error


def _embedder(
    model: str | Embedder | None, settings: Settings, stored: Embedding | None, tokens: StaticEmbedder, budget: Budget
) -> Embedder:
    """Return the requested embedder, else the store's, else the one of the settings for each kind."""
    opened: dict[tuple[str | int, Embedding | None, bool], Embedder] = {}
    by_kind: dict[EmbeddedKind, Embedder] = {}
    for owner_kind, kind in EMBEDDED_KIND_OF.items():
        recorded = None if stored is None else stored.of(owner_kind)
        of_kind, of_all = settings.origins.get(f"embedder.{kind}"), settings.origins.get("embedder.name")
        is_asked = model is not None or recorded is None or "flag" in (of_all, of_kind)
        choice: str | Embedder
        if model is not None and model != DEFAULT:
            choice = model if isinstance(model, str) else for_kind(model, owner_kind)
        elif is_asked or recorded is None:
            # `embedder.<kind>` wins over `embedder.name`, unless only the latter is a flag.
            kind_wins = of_kind is not None and (of_kind == "flag" or of_all != "flag")
            set_for_kind: str = getattr(settings.embedder, kind)
            choice = set_for_kind if kind_wins else settings.embedder.name or set_for_kind
        else:
            choice = recorded.name
        key = (choice if isinstance(choice, str) else id(choice), recorded, is_asked)
        if key not in opened:
            opened[key] = _of_kind(choice, settings, recorded, tokens, budget, is_asked=is_asked)
        by_kind[kind] = opened[key]
    return of_kinds(by_kind)


def _of_kind(
    model: str | Embedder,
    settings: Settings,
    stored: Embedding | None,
    tokens: StaticEmbedder,
    budget: Budget,
    *,
    is_asked: bool,
) -> Embedder:
    """Return the embedder of one kind; a mismatch without a request gives an `AbsentEmbedder` instead of an error."""
    if isinstance(model, str):
        model = embedder_name(model) or model
    if stored is not None and isinstance(model, str) and model == stored.name and embedder_name(model) is None:
        raise EmbedderMismatchError(
            f"the store was built with an embedder {model!r} of your own", remedy="pass it to `commonplace.open`"
        )
    if isinstance(model, str) and not (is_remote(model) and stored is not None and model != stored.name):
        is_ours = model == tokens.stamp.name
        model = tokens if is_ours else open_embedder(model, stored=stored, settings=settings.models, budget=budget)
    # A remote embedder that did not make the store's vectors is refused by its name, without being contacted.
    stamp = model if isinstance(model, str) else model.stamp
    if stored is not None and stamp != stored:
        name = stamp if isinstance(stamp, str) else stamp.name
        remedy = f"change its embedder with {upgrade_command(name)}"
        if name != stored.name:
            remedy = f"open it with embedder {stored.name!r}, or {remedy}"
        error = EmbedderMismatchError(f"the store was built with embedder {stored}, not {stamp}", remedy=remedy)
        if not is_asked:
            return AbsentEmbedder(stored, error)
        raise error
    assert not isinstance(model, str)
    return model
