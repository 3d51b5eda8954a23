"""The Graphiti backend of one namespace: sessions, time limits, a circuit breaker, and the delivery of what is queued.

Each item is delivered once, by one process at a time. One that was sent without an answer is searched for before it is
sent again: an episode of ours has its id in its name. Graphiti takes its time to show what it accepted, so resending
waits long. A server that we started loses what it accepted when it ends: there an episode has arrived when it is to be
seen.
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
from commonplace.graph.graphiti.outbox import Delivery, Errand, Outbox
from commonplace.graph.graphiti.transport import Stdio, StreamableHttp, UnansweredError
from commonplace.locks import Lock
from commonplace.models.providers import address_of
from commonplace.settings.schema import GraphSettings
from commonplace.store.graph import GraphReading
from commonplace.types.graph import Entity, Episode, GraphFilter

NAME: Final = "graphiti-mcp"
PASSWORD: Final = "COMMONPLACE_GRAPH_PASSWORD"  # noqa: S105 - the name of a variable
DATABASE: Final = "FALKORDB_DATABASE"
"""Names the one of FalkorDB's graphs that Graphiti's server lists episodes of, and deletes from."""
REST_S: Final = 30.0
"""A server that did not answer is left alone for so long: whoever asks meanwhile is answered by the local graph."""
_DATABASES: Final = ("bolt", "neo4j", "redis", "rediss", "falkor")

GRACE_S: Final = 600.0
"""So long after it was sent something is not sent again unasked, though it is not there: Graphiti may be at it."""
LOOK_S: Final = 60.0
"""So often it is looked for."""
MAX_REFUSALS: Final = 3
"""What the server has refused so often is sent again only when somebody asks for it."""
FINISH_S: Final = 60.0
"""A server that we started is given so long to take in what it was sent, before it is ended."""
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
    """Graphiti, and what waits to be told to it. Safe for threads.

    Attributes:
        lock: held by the process that delivers.
        graph, words_of: the graph as it is, and the words of a memory in one of its versions.
        answered: the entities that Graphiti has answered, which none of its tools gives by their ids.
    """

    tools: GraphitiTools
    outbox: Outbox
    lock: Lock
    graph: Callable[[], GraphReading]
    words_of: Callable[[str, int], str]
    now: Callable[[], float]
    namespace: str
    default_group: str
    answered: dict[str, Entity] = field(default_factory=dict)
    _rests_until: float = 0.0
    _why: str = ""
    _looked: dict[str, float] = field(default_factory=dict)
    _queued: set[str] = field(default_factory=set)

    def ask(self, what: Callable[[GraphitiTools], T]) -> T:
        """Return what the server answers.

        Raises:
            ProviderError: it does not, or not in time; or it is resting.
        """
        with self._unless_down(), self.tools.within_limit():
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
                with self._unless_down(is_asked=is_asked):
                    self._deliver(delivered, is_asked=is_asked)
                    if is_asked:
                        self._finish(delivered)
            except ProviderError as error:
                notices.append(error_text(error))
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
            self._finish([])
        except ProviderError as error:
            _log.warning("%s", error_text(error))
        finally:
            self.tools.close()

    @contextmanager
    def _unless_down(self, *, is_asked: bool = False) -> Iterator[None]:
        """Do something with the server, which rests for a while where it does not answer, unless somebody asks.

        Raises:
            ProviderError: it rests.
        """
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

    def _deliver(self, arrived: list[Errand], *, is_asked: bool) -> None:
        """Deliver what waits, oldest first, as much as there is time for in one call; add to what arrived."""
        due = [each for each in self.outbox.errands() if is_asked or self._is_due(each)]
        if not due or not self.lock.acquire(0):
            return
        try:
            held = set[str]()
            has = self.tools.check()
            # Counted from here: a server that is started may have taken longer than all of it to be there.
            patience = self.tools.patience()
            # Read again, now that nobody else delivers.
            for errand in self.outbox.errands():
                if not is_asked and not patience.left_s:
                    break
                is_wanted = errand.id not in held and (is_asked or self._is_due(errand))
                if is_wanted and self._one(errand, has, is_asked=is_asked):
                    arrived.append(errand)
                elif errand.what == "delete":
                    left = (each for each in self.outbox.errands() if each.note.id == errand.note.id)
                    if not any(each.refusals for each in left):
                        # What takes its place must not come before it is gone: both bear the same mark.
                        held.add(errand.id)
        finally:
            self.lock.release()

    def _finish(self, arrived: list[Errand]) -> None:
        """Wait for a server that we started to take in what it was sent, which is lost when it ends."""
        deadline = time.monotonic() + FINISH_S
        while self._queued and self.lock.acquire(0):
            try:
                left = [each for each in self.outbox.errands() if each.note.id in self._queued]
                self._queued = {each.note.id for each in left}
                for errand in left:
                    said = self._said(errand)
                    if said is None or self._is_there(said, errand.sent_at or errand.at):
                        self._done(errand)
                        arrived.append(errand)
                    elif time.monotonic() >= deadline:
                        self._queued.discard(errand.note.id)
                        late = f"the server that was started had not taken it in after {FINISH_S:.0f} s"
                        self.outbox.refused(errand, late, is_sure=False)
            finally:
                self.lock.release()
            if self._queued:
                time.sleep(_LOOK_AGAIN_S)

    def _done(self, errand: Errand) -> None:
        self._queued.discard(errand.note.id)
        self.outbox.done(errand)

    def _is_due(self, errand: Errand) -> bool:
        if errand.refusals >= MAX_REFUSALS:
            return False
        looked = self._looked.get(errand.note.id, errand.sent_at)
        return looked is None or errand.sent_at is None or self.now() - looked >= LOOK_S

    def _one(self, errand: Errand, has: frozenset[str], *, is_asked: bool) -> bool:
        """Deliver one errand and return whether it arrived."""
        try:
            if errand.what == "delete":
                return self._delete(errand, has, is_asked=is_asked)
            said = self._said(errand)
            if said is None:
                self._done(errand)
                return False
            if (has_arrived := self._looked_for(errand, said, is_asked=is_asked)) is not None:
                return has_arrived
            errand = self.outbox.sending(errand)
            self.tools.add_memory(said)
        except UnansweredError:
            raise
        except ToolError as error:
            self.outbox.refused(errand, str(error.args[0]))
            return False
        except ProviderError:
            self.outbox.refused(errand, "")
            raise
        if not self.tools.is_started:
            self._done(errand)
            return True
        self._queued.add(errand.note.id)
        return bool(self._looked_for(errand, said, is_asked=False))

    def _looked_for(self, errand: Errand, said: Episode, *, is_asked: bool) -> bool | None:
        """Return whether what was sent is to be seen there; None where it is to be sent again, or was not sent."""
        if errand.sent_at is None:
            return None
        if self._is_there(said, errand.sent_at):
            self._done(errand)
            return True
        self._looked[errand.note.id] = now = self.now()
        is_early = errand.note.id in self._queued or (not is_asked and now - errand.sent_at < GRACE_S)
        return False if is_early else None

    def _said(self, errand: Errand) -> Episode | None:
        """Return an episode with its words and its group there; a fact is one, too. None where it is gone."""
        graph = self.graph()
        fact = graph.relations([errand.id]).get(errand.id) if errand.what == "relation" else None
        if fact is not None:
            told = fact.created_at if fact.valid_from is None else fact.valid_from
            return Episode(fact.id, fact.fact, told, fact.created_at, group=self.group(fact.group))
        found = graph.episodes([errand.id]).get(errand.id)
        if found is None:
            return None
        content = found.content or (self.words_of(found.memory, found.version) if found.memory else "")
        return replace(found, content=content, group=self.group(found.group)) if content else None

    def _delete(self, errand: Errand, has: frozenset[str], *, is_asked: bool) -> bool:
        """Delete an episode; one that is not there is given up when Graphiti has had the time to show it."""
        group = self.group(errand.group)
        listed = self.tools.episodes([group], MAX_EPISODES)
        theirs = next((each.id for each in listed if own_id(each.name) == errand.id), "")
        is_late = self.now() - errand.at >= GRACE_S
        if theirs:
            if "delete_episode" not in has:
                raise ToolError("Graphiti's server has no tool delete_episode", remedy="delete it there")
            # To delete twice does no harm: the second time it is not there.
            self.tools.delete_episode(theirs)
        elif not is_late or not listed:
            self._looked[errand.note.id] = self.now()
            errand = self.outbox.sending(errand)
            if not listed and (is_late or is_asked):
                self.outbox.refused(errand, _UNLISTED.format(group), is_sure=False)
            return False
        self.outbox.done(errand)
        return bool(theirs)

    def _is_there(self, said: Episode, since: float) -> bool:
        """Return whether an episode that was sent at a time is to be seen.

        Where no episode of the group is listed, facts are asked for that are newer than it.
        """
        listed = self.tools.episodes([said.group], MAX_EPISODES)
        if listed:
            return any(own_id(each.name) == said.id for each in listed)
        found = self.tools.search_facts(said.content[:_MAX_QUERY], [said.group], _FACTS, now=0.0)
        return any(each.relation.created_at >= since for each in found)


def error_text(error: ProviderError) -> str:
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
    user, password = settings.graph_user, environ.get(PASSWORD, "")
    if target.lower().startswith(("http://", "https://")):
        address = address_of(target, "graph.graph_uri")
        if address.path.endswith("/sse"):
            raise UsageError(
                f"{address} uses a transport that MCP no longer has",
                remedy="start Graphiti's server with --transport http, and name its /mcp",
            )
        if password and address.scheme == "http" and not address.is_inside:
            raise UsageError(
                f"the password of {address} would go out unencrypted", remedy="give an https:// address, or one inside"
            )
        basic = b64encode(f"{user}:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {basic}" if user else f"Bearer {password}"} if password else {}
        name = f"the MCP server {address}"
        return GraphitiTools(name, lambda: StreamableHttp(address, headers), settings.timeout_s, clock)
    try:
        started = shlex.split(target)
    except ValueError as error:
        raise UsageError(f"the command {target!r:.80} cannot be read: {error}", remedy="correct its quotes") from error
    for option, value in (("--embedder-provider", settings.embedder), ("--llm-provider", settings.llm_provider)):
        started += [option, value] if value else []
    kind = "FALKORDB" if uri.startswith(("redis", "falkor")) else "NEO4J"
    given = {"URI": uri if is_database else "", "USER": user, "PASSWORD": password}
    variables = {f"{kind}_{name}": value for name, value in given.items() if value}
    if DATABASE not in environ and not (is_database and kind == "NEO4J"):
        variables[DATABASE] = group_of(namespace, "", settings.group)
    return GraphitiTools(started[0], lambda: Stdio(started, variables), settings.timeout_s, clock, is_started=True)


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
            # A fact is told as an episode, where no tool takes facts.
            ids = [own_id(each.name) for each in listed]
            known = graph.episodes(ids).keys() | graph.relations(ids).keys()
            ours = [each.id for each in listed if own_id(each.name) in known]
            is_alone = group != ITS_OWN and len(ours) == len(listed) < MAX_EPISODES
            can_clear = is_alone and "clear_graph" in has
            if can_clear:
                tools.call("clear_graph", {"group_ids": [group]})
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
        outside.append(unreached(waiting, error_text(error)))
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


def unreached(groups: Iterable[str], why: str) -> str:
    """Say where data is that nobody could be asked to delete."""
    return f"data of this namespace sent to Graphiti, in {named_groups(groups)}: delete it there. {why}"


def named_groups(groups: Iterable[str]) -> str:
    some = list(groups)
    return f"its group{'s' * (len(some) > 1)} {', '.join(some)}"
