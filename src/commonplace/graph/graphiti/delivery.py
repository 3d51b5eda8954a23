"""Deliver queued items to Graphiti once each, by one process at a time.

An item that was sent without an answer is searched for before it is sent again: an episode of ours has its id in its
name. Graphiti takes its time to show what it accepted, so resending waits long. A server that we
started loses what it accepted when it ends: there an episode has arrived when it is to be seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import ProviderError
from commonplace.graph.graphiti.client import MAX_EPISODES, GraphitiTools, ToolError, own_id
from commonplace.graph.graphiti.outbox import Errand, Outbox
from commonplace.graph.graphiti.transport import UnansweredError
from commonplace.graph.views import View
from commonplace.locks import Lock
from commonplace.store.graph import GraphReading
from commonplace.types.graph import Episode

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


def waiting_for(number: int) -> str:
    return f"{number} item{'' if number == 1 else 's'} queued for Graphiti"


@dataclass(slots=True)
class Courier:
    """Delivers the errands of one outbox.

    Attributes:
        graph, words_of: the graph as it is, and the words of a memory in one of its versions.
        group_of: the group at Graphiti's of a group of ours.
    """

    outbox: Outbox
    tools: GraphitiTools
    lock: Lock
    graph: Callable[[], GraphReading]
    words_of: Callable[[str, int], str]
    group_of: Callable[[str], str]
    now: Callable[[], float]
    _looked: dict[str, float] = field(default_factory=dict)
    _queued: set[str] = field(default_factory=set)

    def deliver(self, arrived: Callable[[Errand], object], *, is_asked: bool = False) -> None:
        """Deliver what waits, oldest first: as much as there is time for in one call.

        Args:
            arrived: told of each that did.
            is_asked: take the time for all, and send also what may have arrived but is not there, or was refused.

        Raises:
            ProviderError: the server cannot be reached, or did not answer; what is left waits on.
        """
        due = [each for each in self.outbox.errands() if is_asked or self._is_due(each)]
        if not due or not self.lock.acquire(0):
            return
        try:
            held = set[str]()
            has = self.tools.check()
            # Counted from here: a server that is started may have taken longer than all of it to be there.
            with self.tools.within_limit() as limit:
                pass
            # Read again, now that nobody else delivers.
            for errand in self.outbox.errands():
                if not is_asked and limit.left_s <= 0.0:
                    break
                is_wanted = errand.id not in held and (is_asked or self._is_due(errand))
                has_arrived = is_wanted and self._one(errand, has, is_asked=is_asked)
                if has_arrived:
                    arrived(errand)
                elif errand.what == "delete":
                    left = (each for each in self.outbox.errands() if each.note.id == errand.note.id)
                    if not any(each.refusals for each in left):
                        # What takes its place must not come before it is gone: both bear the same mark.
                        held.add(errand.id)
        finally:
            self.lock.release()

    def finish(self, arrived: Callable[[Errand], object], timeout_s: float) -> None:
        """Wait for a server that we started to take in what it was sent, which is lost when it ends.

        Raises:
            ProviderError: it does not answer; what it was sent is looked for by the next one.
        """
        deadline = time.monotonic() + timeout_s
        while self._queued and self.lock.acquire(0):
            try:
                left = [each for each in self.outbox.errands() if each.note.id in self._queued]
                self._queued = {each.note.id for each in left}
                for errand in left:
                    said = self._said(errand)
                    if said is None or self._is_there(said, errand.sent_at or errand.at):
                        self._done(errand)
                        arrived(errand)
                    elif time.monotonic() >= deadline:
                        self._queued.discard(errand.note.id)
                        late = f"the server that was started had not taken it in after {timeout_s:.0f} s"
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
        """Deliver one errand and tell whether it arrived."""
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
        """Tell whether what was sent is to be seen there; None where it is to be sent again, or was not sent."""
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
            return Episode(fact.id, fact.fact, told, fact.created_at, group=self.group_of(fact.group))
        found = graph.episodes([errand.id]).get(errand.id)
        if found is None:
            return None
        content = found.content or (self.words_of(found.memory, found.version) if found.memory else "")
        return replace(found, content=content, group=self.group_of(found.group)) if content else None

    def _delete(self, errand: Errand, has: frozenset[str], *, is_asked: bool) -> bool:
        """Delete an episode; one that is not there is given up when Graphiti has had the time to show it."""
        group = self.group_of(errand.group)
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
        """Tell whether an episode that was sent at a time is to be seen.

        Where no episode of the group is listed, facts are asked for that are newer than it.
        """
        listed = self.tools.episodes([said.group], MAX_EPISODES)
        if listed:
            return any(own_id(each.name) == said.id for each in listed)
        found = self.tools.search_facts(said.content[:_MAX_QUERY], [said.group], _FACTS, now=0.0)
        return any(each.relation.created_at >= since for each in found)
