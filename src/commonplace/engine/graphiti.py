"""`engine.graph` where Graphiti is its outside backend: what is added is kept here and told there; it is asked first.

The local graph stays whole: it answers where Graphiti does not, and what Graphiti's tools cannot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Set
from contextlib import closing
from functools import cached_property, partial
from typing import Any, Final

from commonplace.dataclasses import replace
from commonplace.engine.graph_api import Graph
from commonplace.engine.runtime import Runtime
from commonplace.errors import NotFoundError, UsageError
from commonplace.graph.graphiti.backend import Backend, Left, named_groups, session_of, unreached
from commonplace.graph.graphiti.backend import leave as take_away
from commonplace.graph.graphiti.client import group_of
from commonplace.graph.graphiti.outbox import Delivery, Outbox, waiting_for
from commonplace.graph.graphiti.query import GraphitiReader, is_id
from commonplace.graph.query import GraphReader
from commonplace.graph.service import GraphService
from commonplace.graph.views import Addition, Deletion
from commonplace.models.static_reranking import StaticReranker
from commonplace.search.request import Request
from commonplace.search.result import SearchResult
from commonplace.settings.schema import GraphSettings
from commonplace.store.store import Store

LOCK: Final = "graphiti.lock"
_ITS_OWN: Final = "Graphiti reads it later: what it finds there is not counted here"


class GraphitiGraph(Graph):
    """The graph of a namespace, told to Graphiti and asked of it. Safe to call from several threads."""

    def __init__(self, runtime: Runtime, search: Callable[[Request], SearchResult]) -> None:
        """Name the server that the settings do; nothing is sent or started yet.

        Raises:
            UsageError: they name none.
        """
        super().__init__(runtime, search)
        store, namespace, now = runtime.store, runtime.namespace, runtime.now
        settings = runtime.settings.graph
        tools = session_of(settings, os.environ, time.monotonic, namespace)
        lock, graph = store.lock(runtime.directory / LOCK), partial(store.graph, namespace)
        outbox = Outbox(store, namespace, now)
        self._backend = Backend(tools, outbox, lock, graph, self._words_of, now, namespace, settings.group)

    def add_episode(self, *given: Any, **named: Any) -> Addition:
        """Keep an episode here and tell Graphiti of it; see `Graph.add_episode`.

        It is durable here, and in the queue of what Graphiti is to be told, when this returns.
        """
        return self._told(super().add_episode(*given, **named))

    def add_triplet(self, *given: Any, **named: Any) -> Addition:
        """Keep a fact here and tell Graphiti its sentence and since when it holds; see `Graph.add_triplet`."""
        return self._told(super().add_triplet(*given, **named))

    def delete_episode(self, uuid: str) -> Deletion:
        """Delete an episode here and at Graphiti's; see `Graph.delete_episode`."""
        gone = super().delete_episode(uuid)
        delivery = self._backend.deliver()
        return replace(gone, degraded=bool(delivery.waiting), notices=_notices(delivery))

    def sync(self) -> Delivery:
        """Tell Graphiti all that waits, and what may not have arrived once more; what cannot be told waits on."""
        super()._before()
        return self._backend.deliver(is_asked=True)

    def close(self) -> None:
        """End the session with Graphiti."""
        self._backend.close()

    @cached_property
    def _reader(self) -> GraphReader:
        ground, scores = self._runtime.graph_runtime(False), StaticReranker(self._runtime.tokens).scores
        return GraphitiReader(ground, self._search_graph, self._words_of, self._backend, scores)

    @property
    def _service(self) -> GraphService:
        return GraphService(self._runtime.graph_runtime(True), self._backend.outbox)

    def _centre(self, given: str | None) -> str:
        try:
            return super()._centre(given)
        except NotFoundError:
            if given is None or not is_id(given):
                raise
            return given  # Graphiti's own, which its searches take; none of its tools would find it

    def _told(self, added: Addition) -> Addition:
        own = () if added.outcome == "unchanged" else (_ITS_OWN,)
        return replace(added, degraded=True, notices=(*added.notices, *own, *_notices(self._backend.deliver())))

    def _before(self) -> None:
        super()._before()
        if not self._store.is_read_only:
            self._backend.deliver()


def leave(store: Store, namespace: str, settings: GraphSettings, known: Set[str], *, is_rehearsal: bool) -> Left:
    """Take a namespace of the store, with what has these ids, away from Graphiti, or only say that it would be."""
    outbox = Outbox(store, namespace, time.time)
    groups = {group_of(namespace, label, settings.group): label for label in ("", *outbox.labels())}
    if is_rehearsal:
        return Left(
            outside=(f"data of this namespace sent to Graphiti, in {named_groups(groups)}: deletion is queued",)
        )
    try:
        session = session_of(settings, os.environ, time.monotonic, namespace)
    except UsageError as error:
        return Left(outside=(unreached(groups, str(error)),))
    unsent = {each.id for each in outbox.errands() if each.what != "delete" and each.sent_at is None}
    with closing(session) as tools:
        return take_away(tools, store.graph(namespace), groups, known - unsent)


def _notices(delivery: Delivery) -> tuple[str, ...]:
    if not delivery.waiting:
        return delivery.notices
    return (*delivery.notices, f"{waiting_for(delivery.waiting)}; `commonplace graph sync` sends everything")
