"""Graphiti as the outside backend of one namespace: asked within a limit of time, left alone for a while when down."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from commonplace.errors import ProviderError, UsageError
from commonplace.graph.graphiti.session import Access, Session, ToolError
from commonplace.graph.graphiti.tools import GraphitiTools, group_of

if TYPE_CHECKING:
    from commonplace.graph.graphiti.delivering import Courier, Delivery
    from commonplace.graph.graphiti.outbox import Errand, Outbox
    from commonplace.graph.graphiti.transports import Transport
    from commonplace.settings.graph import GraphSettings

NAME: Final = "graphiti-mcp"
PASSWORD: Final = "COMMONPLACE_GRAPH_PASSWORD"  # noqa: S105 - the name of a variable
REST_S: Final = 30.0
"""A server that did not answer is left alone for so long: whoever asks meanwhile is answered by the local graph."""
_DATABASES: Final = ("bolt", "neo4j", "redis", "rediss", "falkor")

T = TypeVar("T")


class Resting(ProviderError):  # noqa: N818 - it is a state
    """Wait: the server did not answer a moment ago, and is not asked again yet."""


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
        from commonplace.graph.graphiti.delivering import MOST_REFUSALS, Delivery

        delivered: list[Errand] = []
        notices: list[str] = []
        has_some = bool(self.outbox.errands())
        if has_some:
            try:
                with self.rest.unless_down(is_asked=is_asked):
                    self.courier.deliver(delivered.append, is_asked=is_asked)
            except ProviderError as error:
                notices.append(told(error))
        left = self.outbox.errands() if has_some else []
        refused = [each for each in left if each.refusals]
        notices += [f"Graphiti refused {each.what} {each.id:.80}: {each.error}" for each in refused[:3]]
        unsure = sum(each.sent_at is not None for each in left)
        given_up = sum(each.refusals >= MOST_REFUSALS for each in left)
        return Delivery(NAME, len(delivered), len(left), unsure, given_up, tuple(notices))

    def group(self, label: str) -> str:
        """Return the group at Graphiti's of a group of ours."""
        return group_of(self.namespace, label, self.default_group)

    def labels(self, wanted: tuple[str, ...]) -> dict[str, str]:
        """Return the groups of ours that are asked for, all that are known for none, by their group at Graphiti's."""
        chosen = wanted or ("", *self.outbox.labels())
        return {self.group(label): label for label in chosen}

    def close(self) -> None:
        """End the session."""
        self.tools.close()


class Rest:
    """Remembers that a server is down. Safe for threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = 0.0
        self._why = ""
        self._lock = threading.Lock()

    def unless_down(self, *, is_asked: bool = False) -> _Watching:
        """Do something with the server in a `with` block, which takes note where it does not answer.

        Args:
            is_asked: do it also while the server rests.
        """
        return _Watching(self, is_asked)

    def check(self) -> None:
        """Refuse while it rests.

        Raises:
            Resting: it does.
        """
        with self._lock:
            if self._clock() < self._until:
                raise Resting(self._why)

    def begin(self, error: ProviderError) -> None:
        """Let it rest."""
        with self._lock:
            self._until, self._why = self._clock() + REST_S, str(error.args[0])

    def end(self) -> None:
        """Take note that it answers."""
        with self._lock:
            self._until = 0.0


class _Watching:
    def __init__(self, rest: Rest, is_asked: bool) -> None:
        self._rest = rest
        self._is_asked = is_asked

    def __enter__(self) -> None:
        if not self._is_asked:
            self._rest.check()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ProviderError) and not isinstance(error, ToolError | Resting):
            self._rest.begin(error)
        elif error is None or isinstance(error, ToolError):
            self._rest.end()


def told(error: ProviderError) -> str:
    """Say in one sentence that Graphiti does not answer."""
    return f"Graphiti does not answer: {error.args[0]}"


def session_of(settings: GraphSettings, environ: Mapping[str, str], clock: Callable[[], float]) -> Session:
    """Return a session with the server that settings name; nothing is sent or started yet.

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
        return Session(_over_http(target, settings, environ), clock)
    return Session(_over_pipes(target, uri if is_database else "", settings, environ), clock)


def _over_http(target: str, settings: GraphSettings, environ: Mapping[str, str]) -> Access:
    from commonplace.graph.graphiti.streamable_http import StreamableHttp, credentials
    from commonplace.models.addresses import address_of, proxy_for

    address = address_of(target, "graph.graph_uri")
    if address.path.endswith("/sse"):
        raise UsageError(
            f"{address} is of the transport that the protocol has given up",
            remedy="start Graphiti's server with --transport http, and name its /mcp",
        )
    password = environ.get(PASSWORD, "")
    if password and address.scheme == "http" and not address.is_inside:
        raise UsageError(
            f"the password of {address} would go out unencrypted", remedy="give an https:// address, or one inside"
        )
    headers = credentials(settings.graph_user, password)

    def open_it() -> Transport:
        return StreamableHttp(address, headers, proxy_for(address, environ))

    return Access(f"the MCP server {address}", open_it, settings.timeout_s)


def _over_pipes(target: str, database: str, settings: GraphSettings, environ: Mapping[str, str]) -> Access:
    from commonplace.graph.graphiti.stdio import Stdio

    try:
        command = shlex.split(target)
    except ValueError as error:
        raise UsageError(f"the command {target!r:.80} cannot be read: {error}", remedy="correct its quotes") from error
    for option, value in (("--embedder-provider", settings.embedder), ("--llm-provider", settings.llm_provider)):
        command += [option, value] if value else []
    kind = "FALKORDB" if database.startswith(("redis", "falkor")) else "NEO4J"
    given = {"URI": database, "USER": settings.graph_user, "PASSWORD": environ.get(PASSWORD, "")}
    variables = {f"{kind}_{name}": value for name, value in given.items() if value}
    return Access(command[0], lambda: Stdio(command, variables), settings.timeout_s, is_started=True)
