"""The Graphiti backend of one namespace: sessions, time limits, a circuit breaker, and delivery of the queue.

Each item is delivered once, by one process at a time. An item that was sent without an answer is searched for before it
is sent again: the names of our episodes contain their ids. Graphiti shows what it accepted only after a while, so
resending waits long. A server started by this process loses its queue when it ends, so there an episode counts as
delivered once it is listed.
"""

from __future__ import annotations

import logging
import shlex
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Final, TypeVar

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import ProviderError, UsageError
from commonplace.graph.graphiti.client import MAX_EPISODES, GraphitiTools, ToolError, group_of, own_id
from commonplace.graph.graphiti.outbox import Delivery, Outbox, QueueItem
from commonplace.graph.graphiti.transport import Stdio, StreamableHttp, UnansweredError
from commonplace.locks import Lock
from commonplace.models.providers import address_of
from commonplace.settings.schema import GraphSettings
from commonplace.store.graph import GraphReading
from commonplace.types.graph import Entity, Episode, GraphFilter

NAME: Final = "graphiti-mcp"
PASSWORD: Final = "COMMONPLACE_GRAPH_PASSWORD"  # noqa: S105 - the name of a variable
DATABASE: Final = "FALKORDB_DATABASE"
"""Environment variable: the one FalkorDB graph in which Graphiti's server lists and deletes episodes."""
REST_S: Final = 30.0
"""Seconds for which a server that did not answer is not called; meanwhile the local graph answers."""
_DATABASES: Final = ("bolt", "neo4j", "redis", "rediss", "falkor")

GRACE_S: Final = 600.0
"""Seconds before a sent item that is not listed is sent again on its own: Graphiti may still process it."""
LOOK_S: Final = 60.0
"""Seconds between searches for a sent item."""
MAX_REFUSALS: Final = 3
"""Number of refusals after which an item is sent again only on request."""
FINISH_S: Final = 60.0
"""Seconds that a server started by this process gets to process its queue before it is ended."""
_LOOK_AGAIN_S: Final = 0.5
_FACTS: Final = 20
_MAX_QUERY: Final = 400
_UNLISTED: Final = (
    "Graphiti lists no episode of its group {0}, so this one cannot be deleted there; over FalkorDB, start the server"
    " with FALKORDB_DATABASE={0}, or delete the graph {0} yourself"
)

_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(slots=True)
class Backend:
    """A Graphiti server and the queue of items for it. Safe for threads.

    Attributes:
        lock: held by the process that delivers.
        graph, words_of: return the current graph, and the text of a version of a memory.
        group: returns the name at Graphiti of a group.
        answered: entities that Graphiti has returned, by id; none of its tools reads one by its id.
    """

    tools: GraphitiTools
    outbox: Outbox
    lock: Lock
    graph: Callable[[], GraphReading]
    words_of: Callable[[str, int], str]
    now: Callable[[], float]
    group: Callable[[str], str]
    answered: dict[str, Entity] = field(default_factory=dict)
    _rests_until: float = 0.0
    _why: str = ""
    _looked: dict[str, float] = field(default_factory=dict)
    _queued: set[str] = field(default_factory=set)

    def ask(self, call: Callable[[GraphitiTools], T]) -> T:
        """Return the answer of the server; raise a `ProviderError` if it is not in time, or was not lately."""
        with self._unless_down(), self.tools.within_limit():
            self.tools.check()
            return call(self.tools)

    def deliver(self, *, is_asked: bool = False) -> Delivery:
        """Deliver queued items and report what still waits; a server that is down is a notice, not an error.

        On request, ignore the time limit, and resend items that may have arrived or were refused.
        """
        delivered, notices = list[QueueItem](), list[str]()
        has_some = bool(self.outbox.items())
        if has_some:
            try:
                with self._unless_down(is_asked=is_asked):
                    self._deliver(delivered, is_asked=is_asked)
                    if is_asked:
                        self._finish(delivered)
            except ProviderError as error:
                notices.append(error_text(error))
        remaining = self.outbox.items() if has_some else []
        refused = [item for item in remaining if item.refusals]
        notices += [f"Graphiti refused {item.what} {item.id:.80}: {item.error}" for item in refused[:3]]
        unsure = sum(item.sent_at is not None for item in remaining)
        given_up = sum(item.refusals >= MAX_REFUSALS for item in remaining)
        return Delivery(NAME, len(delivered), len(remaining), unsure, given_up, tuple(notices))

    def labels(self, wanted: tuple[str, ...]) -> dict[str, str]:
        """Return our groups by their names at Graphiti: those requested, or all known ones."""
        requested = wanted or ("", *self.outbox.labels())
        return {self.group(label): label for label in requested}

    def close(self) -> None:
        """End the session, after a server that ends with it has processed its queue."""
        try:
            self._finish([])
        except ProviderError as error:
            _log.warning("%s", error_text(error))
        finally:
            self.tools.close()

    @contextmanager
    def _unless_down(self, *, is_asked: bool = False) -> Iterator[None]:
        """Guard calls to the server: after one without an answer, refuse others for `REST_S`, except on request."""
        if not is_asked and self.now() < self._rests_until:
            raise ProviderError(self._why)
        try:
            yield
        except ToolError:
            self._rests_until = 0.0
            raise
        except ProviderError as error:
            self._why, self._rests_until = str(error.args[0]), self.now() + REST_S
            raise
        self._rests_until = 0.0

    def _deliver(self, arrived: list[QueueItem], *, is_asked: bool) -> None:
        """Deliver queued items, oldest first, within the time limit of one call; append to `arrived`."""
        due = [item for item in self.outbox.items() if is_asked or self._is_due(item)]
        if not due or not self.lock.acquire(0):
            return
        try:
            blocked = set[str]()
            tools = self.tools.check()
            # The limit counts from here: starting a server may take longer than all of it.
            timeouts = self.tools.timeouts()
            # Read again under the lock.
            for item in self.outbox.items():
                if not is_asked and not timeouts.remaining_s:
                    break
                is_wanted = item.id not in blocked and (is_asked or self._is_due(item))
                if is_wanted and self._deliver_one(item, tools, is_asked=is_asked):
                    arrived.append(item)
                elif item.what == "delete":
                    pending = (queued for queued in self.outbox.items() if queued.note.id == item.note.id)
                    if not any(queued.refusals for queued in pending):
                        # Its replacement has the same mark, so it must not be sent before this one is deleted.
                        blocked.add(item.id)
        finally:
            self.lock.release()

    def _finish(self, arrived: list[QueueItem]) -> None:
        """Wait until a server started by this process has processed its queue, which is lost when it ends."""
        deadline = time.monotonic() + FINISH_S
        while self._queued and self.lock.acquire(0):
            try:
                unfinished = [item for item in self.outbox.items() if item.note.id in self._queued]
                self._queued = {item.note.id for item in unfinished}
                for item in unfinished:
                    episode = self._episode_of(item)
                    if episode is None or self._is_there(episode, item.sent_at or item.at):
                        self._done(item)
                        arrived.append(item)
                    elif time.monotonic() >= deadline:
                        self._queued.discard(item.note.id)
                        problem = f"the server that was started had not taken it in after {FINISH_S:.0f} s"
                        self.outbox.refused(item, problem, is_sure=False)
            finally:
                self.lock.release()
            if self._queued:
                time.sleep(_LOOK_AGAIN_S)

    def _done(self, item: QueueItem) -> None:
        self._queued.discard(item.note.id)
        self.outbox.remove(item)

    def _is_due(self, item: QueueItem) -> bool:
        if item.refusals >= MAX_REFUSALS:
            return False
        last_look = self._looked.get(item.note.id, item.sent_at)
        return last_look is None or item.sent_at is None or self.now() - last_look >= LOOK_S

    def _deliver_one(self, item: QueueItem, tools: frozenset[str], *, is_asked: bool) -> bool:
        try:
            if item.what == "delete":
                return self._delete(item, tools, is_asked=is_asked)
            episode = self._episode_of(item)
            if episode is None:
                self._done(item)
                return False
            if (has_arrived := self._find_sent(item, episode, is_asked=is_asked)) is not None:
                return has_arrived
            item = self.outbox.sending(item)
            self.tools.add_memory(episode)
        except UnansweredError:
            raise
        except ToolError as error:
            self.outbox.refused(item, str(error.args[0]))
            return False
        except ProviderError:
            self.outbox.refused(item, "")
            raise
        if not self.tools.is_started:
            self._done(item)
            return True
        self._queued.add(item.note.id)
        return bool(self._find_sent(item, episode, is_asked=False))

    def _find_sent(self, item: QueueItem, episode: Episode, *, is_asked: bool) -> bool | None:
        """Return whether a sent item is listed; None if it was not sent, or is to be sent again."""
        if item.sent_at is None:
            return None
        if self._is_there(episode, item.sent_at):
            self._done(item)
            return True
        self._looked[item.note.id] = now = self.now()
        is_early = item.note.id in self._queued or (not is_asked and now - item.sent_at < GRACE_S)
        return False if is_early else None

    def _episode_of(self, item: QueueItem) -> Episode | None:
        """Return an episode, or a fact as one, with its text and its group at Graphiti; None if it was deleted."""
        graph = self.graph()
        fact = graph.relations([item.id]).get(item.id) if item.what == "relation" else None
        if fact is not None:
            said_at = fact.created_at if fact.valid_from is None else fact.valid_from
            return Episode(fact.id, fact.fact, said_at, fact.created_at, group=self.group(fact.group))
        episode = graph.episodes([item.id]).get(item.id)
        if episode is None:
            return None
        content = episode.content or self.words_of(episode.memory, episode.version)
        return replace(episode, content=content, group=self.group(episode.group)) if content else None

    def _delete(self, item: QueueItem, tools: frozenset[str], *, is_asked: bool) -> bool:
        """Delete an episode and return whether it was listed; give up on one that is not listed after `GRACE_S`."""
        group = self.group(item.group)
        listed = self.tools.episodes([group], MAX_EPISODES)
        remote_id = next((episode.id for episode in listed if own_id(episode.name) == item.id), "")
        is_late = self.now() - item.at >= GRACE_S
        if remote_id:
            if "delete_episode" not in tools:
                raise ToolError("Graphiti's server has no tool delete_episode", remedy="delete it there")
            # Deleting is idempotent: the second time it is not listed.
            self.tools.delete_episode(remote_id)
        elif not is_late or not listed:
            self._looked[item.note.id] = self.now()
            item = self.outbox.sending(item)
            if not listed and (is_late or is_asked):
                self.outbox.refused(item, _UNLISTED.format(group), is_sure=False)
            return False
        self.outbox.remove(item)
        return bool(remote_id)

    def _is_there(self, episode: Episode, since: float) -> bool:
        """Return whether an episode sent at `since` is listed, or, in a group without episodes, has newer facts."""
        listed = self.tools.episodes([episode.group], MAX_EPISODES)
        if listed:
            return any(own_id(remote.name) == episode.id for remote in listed)
        facts = self.tools.search_facts(episode.content[:_MAX_QUERY], [episode.group], _FACTS, now=0.0)
        return any(fact.relation.created_at >= since for fact in facts)


def error_text(error: ProviderError) -> str:
    return f"Graphiti does not answer: {error.args[0]}"


def session_of(settings: GraphSettings, environ: Mapping[str, str], namespace: str) -> GraphitiTools:
    """Return a session with the server that the settings name; nothing is sent or started yet.

    A server started over FalkorDB lists and deletes the episodes of the namespace without a group.

    Raises:
        UsageError: the settings name no server, or a setting is invalid.
    """
    uri, command = settings.graph_uri.strip(), settings.server.strip()
    is_database = uri.partition("://")[0].lower() in _DATABASES
    target = command or ("" if is_database else uri)
    if not target:
        remedy = "set graph.graph_uri to its address, or graph.server to the command that starts it"
        raise UsageError("graph.backend is graphiti-mcp, and no server is named", remedy=remedy)
    user, password = settings.graph_user, environ.get(PASSWORD, "")
    if target.lower().startswith(("http://", "https://")):
        address = address_of(target, "graph.graph_uri")
        if address.path.endswith("/sse"):
            remedy = "start Graphiti's server with --transport http, and name its /mcp"
            raise UsageError(f"{address} uses a transport that MCP no longer has", remedy=remedy)
        if password and address.scheme == "http" and not address.is_inside:
            problem = f"the password of {address} would go out unencrypted"
            raise UsageError(problem, remedy="give an https:// address, or one inside")
        basic = b64encode(f"{user}:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {basic}" if user else f"Bearer {password}"} if password else {}
        name = f"the MCP server {address}"
        return GraphitiTools(name, lambda: StreamableHttp(address, headers), settings.timeout_s)
    try:
        argv = shlex.split(target)
    except ValueError as error:
        raise UsageError(f"the command {target!r:.80} cannot be read: {error}", remedy="correct its quotes") from error
    for option, value in (("--embedder-provider", settings.embedder), ("--llm-provider", settings.llm_provider)):
        argv += [option, value] if value else []
    kind = "FALKORDB" if uri.startswith(("redis", "falkor")) else "NEO4J"
    credentials = {"URI": uri if is_database else "", "USER": user, "PASSWORD": password}
    variables = {f"{kind}_{name}": value for name, value in credentials.items() if value}
    if DATABASE not in environ and not (is_database and kind == "NEO4J"):
        variables[DATABASE] = group_of(namespace, "", settings.group)
    return GraphitiTools(argv[0], lambda: Stdio(argv, variables), settings.timeout_s, is_started=True)


ITS_OWN: Final = "main"
"""Graphiti's default group, shared by all clients."""
_PROBES: Final = 5
"""Number of facts of a group, and of names, with which to check whether its data is still there."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The result of deleting a namespace at Graphiti.

    Attributes:
        notices: what was deleted.
        outside: what remains, and how to delete it.
        found: (group, description) of data that a search still finds though the server reported its deletion.
    """

    notices: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    found: tuple[tuple[str, str], ...] = ()


def leave(tools: GraphitiTools, graph: GraphReading, groups: Mapping[str, str], sent: Set[str]) -> Removal:
    """Delete the data of a namespace at Graphiti; call it before the namespace is deleted locally.

    A group is cleared if it belongs to the namespace alone: it is not Graphiti's default, and every episode in it is
    ours. In any other group, our episodes are deleted with what they alone support.

    Args:
        groups: our groups, by their names at Graphiti.
        sent: the ids of the episodes, and of the facts added directly, that were sent.
    """
    notices, outside, found = list[str](), list[str](), list[tuple[str, str]]()
    waiting, seen = list(groups), set[str]()
    try:
        tool_names = tools.check()
        while waiting:
            group = waiting[0]
            listed = tools.episodes([group], MAX_EPISODES)
            # Facts are sent as episodes, since no tool takes facts.
            ids = [own_id(episode.name) for episode in listed]
            our_ids = graph.episodes(ids).keys() | graph.relations(ids).keys()
            ours = [episode.id for episode in listed if own_id(episode.name) in our_ids]
            is_alone = group != ITS_OWN and len(ours) == len(listed) < MAX_EPISODES
            can_clear = is_alone and "clear_graph" in tool_names
            if can_clear:
                tools.call("clear_graph", {"group_ids": [group]})
            if not listed and (still := _still_found(tools, graph, group, groups[group])):
                found.append((f"Graphiti, group {group}", still))
            elif can_clear:
                notices.append(f"Graphiti has cleared its group {group}")
            else:
                deleted = ours if "delete_episode" in tool_names else []
                for id_ in deleted:
                    tools.delete_episode(id_)
                if ours:
                    count = "1 episode was" if len(deleted) == 1 else f"{len(deleted)} episodes were"
                    outside.append(
                        f"data sent to Graphiti in its group {group}, which others share: {count} deleted there; check"
                        " for facts that it took from them"
                    )
            seen |= {own_id(episode.name) for episode in listed}
            waiting.pop(0)
    except ProviderError as error:
        outside.append(unreached(waiting, error_text(error)))
    else:
        unseen = sent - seen
        if unseen and not found:
            outside.append(
                f"episodes sent to Graphiti not listed there ({len(unseen)} of {len(sent)}): it may still process them,"
                " so check again in ten minutes"
            )
    return Removal(tuple(notices), tuple(outside), tuple(found))


def _still_found(tools: GraphitiTools, graph: GraphReading, group: str, label: str) -> str:
    """Say what a search still finds of the data of the namespace in a group; "" if nothing."""
    facts = graph.list_relations(GraphFilter(groups=(label,), with_past=True), limit=_PROBES)
    ends = [end for fact in facts for end in (fact.source, fact.target)]
    names = {entity.name for entity in graph.entities(ends).values()}
    for name in sorted(names)[:_PROBES]:
        nodes = tools.search_nodes(name, [group], 10, now=0.0)
        if any(node.name in names for node in nodes):
            example = f"{nodes[0].name!r:.80} and more"
            return f"{example}: its tools work on another graph, so delete the graph {group} yourself"
    return ""


def unreached(groups: Iterable[str], reason: str) -> str:
    """Say where data remains because the server could not be reached."""
    return f"data of this namespace sent to Graphiti, in {named_groups(groups)}: delete it there. {reason}"


def named_groups(groups: Iterable[str]) -> str:
    names = list(groups)
    return f"its group{'s' * (len(names) > 1)} {', '.join(names)}"
