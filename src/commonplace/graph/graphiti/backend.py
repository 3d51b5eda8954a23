"""The Graphiti backend of one namespace: sessions, time limits and a circuit breaker."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Final, TypeVar

from commonplace.dataclasses import dataclass
from commonplace.errors import ProviderError, UsageError
from commonplace.graph.graphiti.client import MAX_EPISODES, GraphitiTools, ToolError, group_of, own_id
from commonplace.graph.graphiti.delivery import FINISH_S, MAX_REFUSALS, Courier, Delivery
from commonplace.graph.graphiti.outbox import Errand, Outbox
from commonplace.graph.graphiti.transport import Stdio, StreamableHttp, credentials
from commonplace.models.providers import address_of
from commonplace.settings.schema import GraphSettings
from commonplace.store.graph import GraphReading
from commonplace.types.graph import GraphFilter

NAME: Final = "graphiti-mcp"
PASSWORD: Final = "COMMONPLACE_GRAPH_PASSWORD"  # noqa: S105 - the name of a variable
DATABASE: Final = "FALKORDB_DATABASE"
"""Names the one of FalkorDB's graphs that Graphiti's server lists episodes of, and deletes from."""
REST_S: Final = 30.0
"""A server that did not answer is left alone for so long: whoever asks meanwhile is answered by the local graph."""
_DATABASES: Final = ("bolt", "neo4j", "redis", "rediss", "falkor")

_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backend:
    """Graphiti, and what waits to be told to it. Safe for threads."""

    tools: GraphitiTools
    outbox: Outbox
    courier: Courier
    rest: Rest
    namespace: str
    default_group: str

    def ask(self, what: Callable[[GraphitiTools], T]) -> T:
        """Return what the server answers.

        Raises:
            ProviderError: it does not, or not in time; or it is resting.
        """
        with self.rest.unless_down(), self.tools.within_limit():
            self.tools.check()
            return what(self.tools)

    def deliver(self, *, is_asked: bool = False) -> Delivery:
        """Bring over what waits, and say what still does; a server that is down is told, not raised.

        Args:
            is_asked: take the time for all of it, and send also what may have arrived, or was refused.
        """
        delivered: list[Errand] = []
        notices: list[str] = []
        has_some = bool(self.outbox.errands())
        if has_some:
            try:
                with self.rest.unless_down(is_asked=is_asked):
                    self.courier.deliver(delivered.append, is_asked=is_asked)
                    if is_asked:
                        self.courier.finish(delivered.append, FINISH_S)
            except ProviderError as error:
                notices.append(told(error))
        left = self.outbox.errands() if has_some else []
        refused = [each for each in left if each.refusals]
        notices += [f"Graphiti refused {each.what} {each.id:.80}: {each.error}" for each in refused[:3]]
        unsure = sum(each.sent_at is not None for each in left)
        given_up = sum(each.refusals >= MAX_REFUSALS for each in left)
        return Delivery(NAME, len(delivered), len(left), unsure, given_up, tuple(notices))

    def group(self, label: str) -> str:
        return group_of(self.namespace, label, self.default_group)

    def labels(self, wanted: tuple[str, ...]) -> dict[str, str]:
        """Return the groups of ours that are asked for, all that are known for none, by their group at Graphiti's."""
        chosen = wanted or ("", *self.outbox.labels())
        return {self.group(label): label for label in chosen}

    def close(self) -> None:
        """End the session, when a server that ends with it has taken in what it was sent."""
        try:
            self.courier.finish(lambda _: None, FINISH_S)
        except ProviderError as error:
            _log.warning("%s", told(error))
        finally:
            self.tools.close()


class Rest:
    """Remembers that a server is down. Safe for threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = 0.0
        self._why = ""

    @contextmanager
    def unless_down(self, *, is_asked: bool = False) -> Iterator[None]:
        """Do something with the server in a `with` block, which takes note where it does not answer.

        Args:
            is_asked: do it also while the server rests.

        Raises:
            ProviderError: it rests.
        """
        if not is_asked and self._clock() < self._until:
            raise ProviderError(self._why)
        try:
            yield
        except ToolError:
            self._until = 0.0
            raise
        except ProviderError as error:
            self._why, self._until = str(error.args[0]), self._clock() + REST_S
            raise
        self._until = 0.0


def told(error: ProviderError) -> str:
    return f"Graphiti does not answer: {error.args[0]}"


def session_of(
    settings: GraphSettings, environ: Mapping[str, str], clock: Callable[[], float], namespace: str
) -> GraphitiTools:
    """Return a session with the server that settings name; nothing is sent or started yet.

    Args:
        namespace: of which a server that is started over FalkorDB is to list and delete what has no group.

    Raises:
        UsageError: they name none.
    """
    uri, command = settings.graph_uri.strip(), settings.server.strip()
    is_database = uri.partition("://")[0].lower() in _DATABASES
    target = command or ("" if is_database else uri)
    if not target:
        raise UsageError(
            "graph.backend is graphiti-mcp, and no server is named",
            remedy="set graph.graph_uri to its address, or graph.server to the command that starts it",
        )
    if target.lower().startswith(("http://", "https://")):
        return _over_http(target, settings, environ, clock)
    group = group_of(namespace, "", settings.group)
    return _over_pipes(target, uri if is_database else "", settings, environ, group, clock)


def _over_http(
    target: str, settings: GraphSettings, environ: Mapping[str, str], clock: Callable[[], float]
) -> GraphitiTools:
    address = address_of(target, "graph.graph_uri")
    if address.path.endswith("/sse"):
        raise UsageError(
            f"{address} uses a transport that MCP no longer has",
            remedy="start Graphiti's server with --transport http, and name its /mcp",
        )
    password = environ.get(PASSWORD, "")
    if password and address.scheme == "http" and not address.is_inside:
        raise UsageError(
            f"the password of {address} would go out unencrypted", remedy="give an https:// address, or one inside"
        )
    headers = credentials(settings.graph_user, password)
    name = f"the MCP server {address}"
    return GraphitiTools(name, lambda: StreamableHttp(address, headers), settings.timeout_s, clock)


def _over_pipes(
    target: str,
    database: str,
    settings: GraphSettings,
    environ: Mapping[str, str],
    group: str,
    clock: Callable[[], float],
) -> GraphitiTools:
    try:
        command = shlex.split(target)
    except ValueError as error:
        raise UsageError(f"the command {target!r:.80} cannot be read: {error}", remedy="correct its quotes") from error
    for option, value in (("--embedder-provider", settings.embedder), ("--llm-provider", settings.llm_provider)):
        command += [option, value] if value else []
    kind = "FALKORDB" if database.startswith(("redis", "falkor")) else "NEO4J"
    given = {"URI": database, "USER": settings.graph_user, "PASSWORD": environ.get(PASSWORD, "")}
    variables = {f"{kind}_{name}": value for name, value in given.items() if value}
    if DATABASE not in environ and not (database and kind == "NEO4J"):
        variables[DATABASE] = group
    return GraphitiTools(command[0], lambda: Stdio(command, variables), settings.timeout_s, clock, is_started=True)


ITS_OWN: Final = "main"
"""Where Graphiti keeps what comes without a group: everybody's."""
_PROBES: Final = 5
"""So many facts of a group, and names, are searched for to see whether they are still there."""


@dataclass(frozen=True, slots=True)
class Left:
    """What became of a namespace there.

    Attributes:
        notices: what went.
        outside: what stays, and who can delete it.
        found: (group, what) that is still to be found there, though its tool said that it was deleted.
    """

    notices: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    found: tuple[tuple[str, str], ...] = ()


def to_leave(groups: Sequence[str]) -> Left:
    return Left(outside=(f"data of this namespace sent to Graphiti, in {_named(groups)}: deletion is queued",))


def cannot_leave(groups: Sequence[str], why: str) -> Left:
    return Left(outside=(_unreached(groups, why),))


def leave(tools: GraphitiTools, graph: GraphReading, groups: Mapping[str, str], sent: Set[str]) -> Left:
    """Delete there what a namespace has told it, while the namespace is still here.

    A group is cleared where it is the namespace's alone: not Graphiti's own, and every episode in it is one of ours. Of
    any other group our episodes are deleted, and what they alone support.

    Args:
        groups: ours, by what Graphiti calls them.
        sent: the ids of the episodes, and of the facts that were sent as such.
    """
    notices: list[str] = []
    outside: list[str] = []
    found: list[tuple[str, str]] = []
    waiting = list(groups)
    seen = set[str]()
    try:
        has = tools.check()
        while waiting:
            group = waiting[0]
            listed = tools.episodes([group], MAX_EPISODES)
            ours = _ours(graph, {each.id: own_id(each.name) for each in listed})
            is_alone = group != ITS_OWN and len(ours) == len(listed) < MAX_EPISODES
            can_clear = is_alone and "clear_graph" in has
            if can_clear:
                tools.clear_group(group)
            if not listed and (still := _still_found(tools, graph, group, groups[group])):
                found.append((f"Graphiti, group {group}", still))
            elif can_clear:
                notices.append(f"Graphiti has cleared its group {group}")
            else:
                deleted = ours if "delete_episode" in has else []
                for id_ in deleted:
                    tools.delete_episode(id_)
                if ours:
                    many = "1 episode was" if len(deleted) == 1 else f"{len(deleted)} episodes were"
                    outside.append(
                        f"data sent to Graphiti in its group {group}, which others share: {many} deleted there; check"
                        " for facts that it took from them"
                    )
            seen |= {own_id(each.name) for each in listed}
            waiting.pop(0)
    except ProviderError as error:
        outside.append(_unreached(waiting, told(error)))
    else:
        unseen = sent - seen
        if unseen and not found:
            outside.append(
                f"episodes sent to Graphiti not listed there ({len(unseen)} of {len(sent)}): it may still process them,"
                " so check again in ten minutes"
            )
    return Left(tuple(notices), tuple(outside), tuple(found))


def _still_found(tools: GraphitiTools, graph: GraphReading, group: str, label: str) -> str:
    """Say that a search of a group still finds what the namespace has told; "" where it does not."""
    told = graph.list_relations(GraphFilter(groups=(label,), with_past=True), limit=_PROBES)
    names = {
        each.name for each in graph.entities([end for fact in told for end in (fact.source, fact.target)]).values()
    }
    for name in sorted(names)[:_PROBES]:
        some = tools.search_nodes(name, [group], 10, now=0.0)
        if any(each.name in names for each in some):
            named = f"{some[0].name!r:.80} and more"
            return f"{named}: its tools work on another graph, so delete the graph {group} yourself"
    return ""


def _ours(graph: GraphReading, listed: Mapping[str, str]) -> list[str]:
    """Return the ids there of what the namespace has told; a fact is told as an episode where no tool takes facts."""
    ids = [id_ for id_ in listed.values() if id_]
    known = graph.episodes(ids).keys() | graph.relations(ids).keys()
    return [theirs for theirs, id_ in listed.items() if id_ in known]


def _unreached(groups: Sequence[str], why: str) -> str:
    return f"data of this namespace sent to Graphiti, in {_named(groups)}: delete it there. {why}"


def _named(groups: Sequence[str]) -> str:
    return f"its group {groups[0]}" if len(groups) == 1 else f"its groups {', '.join(groups)}"
