"""Open a store with its index, embedder and settings as one engine. It decides what fits together, and does no work."""

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
from commonplace.memory.validate import boolean
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
"""Stands in the place of an embedder's name for those that the settings give to each kind of thing."""


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
        low_memory: heavy work is done in processes of its own, as a server wants that is there all day.
    """
    check_namespace(namespace)
    settings = settings or load({"store.path": None if path is None else str(path)})
    named = path or settings.store.path
    if not named:
        remedy = "load them with commonplace.settings.load()"
        raise UsageError("neither `path` nor the settings name a store", remedy=remedy)
    address = paths.address_of(named)
    directory = paths.directory_of(named).expanduser().absolute()
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
    # One that cannot be had leaves no empty store behind.
    first = None if is_there and address is None else _embedder(embedder, settings, None, tokens, budget)
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
        usable = None if stored is not None else first
        chosen = usable or _embedder(embedder, settings, stored, tokens, budget)
        index = Index(directory / paths.INDEX, store_id=store.id, embedding=chosen.stamp)
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
        embedder=chosen,
        tokens=tokens,
        settings=settings,
        progress=progress,
        clock=clock or time.time,
        budget=budget,
        open_embedder=lambda asked, stored: _embedder(asked, settings, stored, tokens, budget),
        worker=worker,
    )
    return Engine(runtime)


def make_anew(directory: Path) -> bool:
    """Make an empty store where one has lost its database; return whether that was so.

    Raises:
        StoreError: a link is in the way.
    """
    database = directory / paths.DATABASE
    if database.is_file() or not left_behind(database):
        return False
    paths.refuse_links(directory)
    Store.create(database).close()
    return True


def make_on_server(address: paths.Address, grant_to: str, partitions: int) -> bool:
    """Create a store on a server unless it exists, and grant a role its use; return whether it was created."""
    return Store.make_on_server(address, address.password, grant_to=grant_to, partitions=partitions)


def consolidation_lock(engine: Engine) -> Lock:
    """Return the lock that a process holds while it consolidates a store periodically."""
    return engine._runtime.store.lock(engine.directory / paths.WATCH_LOCK)


def hidden_memories(settings: Settings) -> tuple[str, ...]:
    """Return the texts of the memories of the user store, which a project's store hides; none elsewhere.

    Raises:
        CommonplaceError: that store cannot be opened or read.
    """
    own = paths.user_store()
    if settings.project is None or str(own) == settings.store.path or not (own / paths.DATABASE).is_file():
        return ()
    with open_engine(own, settings.store.namespace, None, settings=settings) as engine:
        return tuple(each.content for each in engine.list(statuses=(), limit=MAX_HIDDEN))


def move_hidden_memories(to: Engine, settings: Settings, progress: Progress | None) -> int:
    """Move the memories of the user store to an engine's; return how many were moved."""
    with open_engine(paths.user_store(), settings.store.namespace, None, settings=settings, progress=progress) as own:
        return own.move_memories(to)


def check_namespace(namespace: str) -> None:
    """Refuse what is no name of a namespace.

    Raises:
        UsageError: it is empty, too long, or holds characters that cannot be seen.
    """
    is_name = isinstance(namespace, str) and namespace.strip() and namespace.isprintable()
    if not is_name or len(namespace) > MAX_NAMESPACE_CHARACTERS:
        limits = f"give 1 to {MAX_NAMESPACE_CHARACTERS} printable characters"
        raise UsageError(f"namespace {namespace!r} is not a printable name", remedy=limits)


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if directory.name == paths.STORE_NAME and not (directory / paths.DATABASE).exists():
            # The store of a project is never part of the project's own history, whoever makes it.
            with suppress(FileExistsError), (directory / ".gitignore").open("x", encoding="utf-8") as file:
                file.write("*\n")
    except FileExistsError as error:
        raise StoreError(f"{directory} is a file", remedy="name a directory with --store") from error
    except OSError as error:
        raise StoreError(
            f"{directory} cannot be created: {error.strerror}", remedy="name a writable directory with --store"
        ) from error


def _embedder(
    asked: str | Embedder | None, settings: Settings, stored: Embedding | None, tokens: StaticEmbedder, budget: Budget
) -> Embedder:
    """Return the embedder asked for, else the one of the store, else that of the settings for each kind."""
    found: dict[tuple[str | int, Embedding | None, bool], Embedder] = {}
    by_kind: dict[EmbeddedKind, Embedder] = {}
    for owner_kind, kind in EMBEDDED_KIND_OF.items():
        own = None if stored is None else stored.of(owner_kind)
        of_kind, of_all = settings.origins.get(f"embedder.{kind}"), settings.origins.get("embedder.name")
        is_asked = asked is not None or own is None or "flag" in (of_all, of_kind)
        wanted: str | Embedder
        if asked is not None and asked != DEFAULT:
            wanted = asked if isinstance(asked, str) else for_kind(asked, owner_kind)
        elif is_asked or own is None:
            # `embedder.<kind>` wins over `embedder.name`, unless this one alone is a flag.
            wins = of_kind is not None and (of_kind == "flag" or of_all != "flag")
            set_for_kind: str = getattr(settings.embedder, kind)
            wanted = set_for_kind if wins else settings.embedder.name or set_for_kind
        else:
            wanted = own.name
        key = (wanted if isinstance(wanted, str) else id(wanted), own, is_asked)
        if key not in found:
            found[key] = _of_kind(wanted, settings, own, tokens, budget, is_asked=is_asked)
        by_kind[kind] = found[key]
    return of_kinds(by_kind)


def _of_kind(
    asked: str | Embedder,
    settings: Settings,
    stored: Embedding | None,
    tokens: StaticEmbedder,
    budget: Budget,
    *,
    is_asked: bool,
) -> Embedder:
    """Return the embedder of one kind; a mismatch that nobody asked for gives an `AbsentEmbedder`."""
    if isinstance(asked, str):
        asked = embedder_name(asked) or asked
    if stored is not None and isinstance(asked, str) and asked == stored.name and embedder_name(asked) is None:
        raise EmbedderMismatchError(
            f"the store was built with an embedder {asked!r} of your own", remedy="pass it to `commonplace.open`"
        )
    if isinstance(asked, str) and not (is_remote(asked) and stored is not None and asked != stored.name):
        is_ours = asked == tokens.stamp.name
        asked = tokens if is_ours else open_embedder(asked, stored=stored, settings=settings.models, budget=budget)
    # A remote one that did not make the store's vectors is refused by its name: it need not be reached for that.
    stamp = asked if isinstance(asked, str) else asked.stamp
    if stored is not None and stamp != stored:
        name = stamp if isinstance(stamp, str) else stamp.name
        remedy = f"change its embedder with {upgrade_command(name)}"
        if name != stored.name:
            remedy = f"open it with embedder {stored.name!r}, or {remedy}"
        error = EmbedderMismatchError(f"the store was built with embedder {stored}, not {stamp}", remedy=remedy)
        if not is_asked:
            return AbsentEmbedder(stored, error)
        raise error
    assert not isinstance(asked, str)
    return asked
