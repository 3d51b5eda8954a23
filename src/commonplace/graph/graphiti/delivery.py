"""Deliver queued items to Graphiti once each, by one process at a time.

An item that was sent without an answer is searched for before it is sent again: an episode of ours has its id in its
name, a fact its words. Graphiti takes its time to show what it accepted, so resending waits long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.errors import ProviderError
from commonplace.graph.graphiti.client import MAX_EPISODES, GraphitiTools, ToolError, Triplet, own_id
from commonplace.graph.graphiti.outbox import Errand, Outbox
from commonplace.graph.graphiti.transport import UnansweredError
from commonplace.graph.views import View
from commonplace.locks import FileLock
from commonplace.store.graph import GraphReading
from commonplace.types.graph import Episode

GRACE_S: Final = 600.0
"""So long after it was sent something is not sent again unasked, though it is not there: Graphiti may be at it."""
LOOK_S: Final = 60.0
"""So often it is looked for."""
MAX_REFUSALS: Final = 3
"""What the server has refused so often is sent again only when somebody asks for it."""
_FACTS: Final = 20


@dataclass(frozen=True, slots=True)
class Delivery(View):
    """What was brought to the outside backend, and what still waits.

    Attributes:
        delivered: how many episodes, facts and deletions arrived.
        waiting: how many still wait.
        unsure: how many of these were sent, and may have arrived.
        refused: how many of these the server does not want.
        notices: one sentence each, for people.
    """

    backend: str
    delivered: int = 0
    waiting: int = 0
    unsure: int = 0
    refused: int = 0
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class From:
    """Where what is sent is read.

    Attributes:
        words_of: the words of a memory in one of its versions.
        group_of: the group at Graphiti's of a group of ours.
    """

    graph: Callable[[], GraphReading]
    words_of: Callable[[str, int], str]
    group_of: Callable[[str], str]
    now: Callable[[], float]


def waiting_for(number: int) -> str:
    """Say how much waits to be told."""
    return f"{number} item{'' if number == 1 else 's'} queued for Graphiti"


class Courier:
    """Delivers the errands of one outbox."""

    def __init__(self, outbox: Outbox, tools: GraphitiTools, source: From, lock: FileLock) -> None:
        self._outbox = outbox
        self._tools = tools
        self._source = source
        self._lock = lock
        self._looked: dict[str, float] = {}

    def deliver(self, arrived: Callable[[Errand], object], *, is_asked: bool = False) -> None:
        """Deliver what waits, oldest first: as much as there is time for in one call.

        Args:
            arrived: told of each that did.
            is_asked: take the time for all, and send also what may have arrived but is not there, or was refused.

        Raises:
            ProviderError: the server cannot be reached, or did not answer; what is left waits on.
        """
        due = [each for each in self._outbox.errands() if is_asked or self._is_due(each)]
        if not due or not self._lock.acquire(0):
            return
        try:
            held = set[str]()
            with self._tools.within_limit() as limit:
                has = self._tools.check()
            # Read again, now that nobody else delivers.
            for errand in self._outbox.errands():
                if not is_asked and limit.left_s <= 0.0:
                    break
                is_wanted = errand.id not in held and (is_asked or self._is_due(errand))
                has_arrived = is_wanted and self._one(errand, has, is_asked=is_asked)
                if has_arrived:
                    arrived(errand)
                elif errand.what == "delete":
                    # What takes its place must not come before it is gone: both bear the same mark.
                    held.add(errand.id)
        finally:
            self._lock.release()

    def _is_due(self, errand: Errand) -> bool:
        if errand.refusals >= MAX_REFUSALS:
            return False
        looked = self._looked.get(errand.note.id, errand.sent_at)
        return looked is None or errand.sent_at is None or self._source.now() - looked >= LOOK_S

    def _one(self, errand: Errand, has: frozenset[str], *, is_asked: bool) -> bool:
        """Deliver one errand and tell whether it arrived."""
        try:
            if errand.what == "delete":
                return self._delete(errand, has)
            send = self._episode(errand) if errand.what == "episode" else self._fact(errand, has)
            if send is None:
                self._outbox.done(errand)
                return False
            if errand.sent_at is not None:
                if send.is_there():
                    self._outbox.done(errand)
                    return True
                self._looked[errand.note.id] = now = self._source.now()
                if not is_asked and now - errand.sent_at < GRACE_S:
                    return False
            errand = self._outbox.sending(errand)
            send.send()
        except UnansweredError:
            raise
        except ToolError as error:
            self._outbox.refused(errand, str(error.args[0]))
            return False
        except ProviderError:
            self._outbox.refused(errand, "")
            raise
        self._outbox.done(errand)
        return True

    def _episode(self, errand: Errand) -> _Sending | None:
        """Return how an episode is sent; None where it is gone."""
        found = self._source.graph().episodes([errand.id]).get(errand.id)
        if found is None:
            return None
        content = found.content or (self._source.words_of(found.memory, found.version) if found.memory else "")
        if not content:
            return None
        group = self._source.group_of(found.group)
        return _Sending(
            lambda: bool(self._theirs(found.id, group)), lambda: self._tools.add_memory(found, content, group)
        )

    def _fact(self, errand: Errand, has: frozenset[str]) -> _Sending | None:
        """Return how a fact is sent: as such, or as an episode where the server has no tool for facts."""
        graph = self._source.graph()
        found = graph.relations([errand.id]).get(errand.id)
        ends = {} if found is None else graph.entities([found.source, found.target])
        if found is None or found.source not in ends or found.target not in ends:
            return None
        group = self._source.group_of(found.group)
        if "add_triplet" not in has:
            said = Episode(found.id, found.fact, found.valid_from or found.created_at, found.created_at)
            return _Sending(
                lambda: bool(self._theirs(found.id, group)), lambda: self._tools.add_memory(said, found.fact, group)
            )
        triplet = Triplet(
            ends[found.source].name, found.source, found.type, found.fact, ends[found.target].name, found.target
        )

        def is_there() -> bool:
            now = self._source.now()
            some = self._tools.search_facts(found.fact, [group], _FACTS, now=now)
            return any((each.relation.type, each.relation.fact) == (found.type, found.fact) for each in some)

        return _Sending(is_there, lambda: self._tools.add_triplet(triplet, group))

    def _delete(self, errand: Errand, has: frozenset[str]) -> bool:
        """Delete an episode; one that is not there is given up when Graphiti has had the time to show it."""
        theirs = self._theirs(errand.id, self._source.group_of(errand.group))
        if theirs and "delete_episode" in has:
            # To delete twice does no harm: the second time it is not there.
            self._tools.delete_episode(theirs)
        elif not theirs and self._source.now() - errand.at < GRACE_S:
            self._looked[errand.note.id] = self._source.now()
            self._outbox.sending(errand)
            return False
        self._outbox.done(errand)
        return bool(theirs)

    def _theirs(self, id_: str, group: str) -> str:
        """Return the id at Graphiti's of an episode of ours, "" where it is not to be seen."""
        found = self._tools.episodes([group], MAX_EPISODES)
        return next((each.id for each in found if own_id(each.name) == id_), "")


@dataclass(frozen=True, slots=True)
class _Sending:
    is_there: Callable[[], bool]
    send: Callable[[], None]
