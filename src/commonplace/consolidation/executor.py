"""Apply an agent's plan: changes of memories, their issue and the record that undoes them, in one transaction.

If another program keeps the issues, they are filed before that transaction and closed after it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from commonplace.dates.time import parse
from commonplace.errors import NoRelation, NotFoundError, StoreBusyError, UsageError
from commonplace.ledger import rate_limit as window
from commonplace.ledger import rules
from commonplace.ledger.ledger import actor_of, process_is_gone, release
from commonplace.ledger.rate_limit import RateLimiter
from commonplace.ledger.rules import ERASE, Doer, Draft
from commonplace.types import Link, MemoryRecord, MemoryWrite, StoredMemory
from commonplace.types.ledger import Agent, IssueEvent, IssueSelection, Reversal, Urgency

if TYPE_CHECKING:
    from commonplace.consolidation.results import Result
    from commonplace.consolidation.runtime import ConsolidationRuntime, Issues
    from commonplace.store.contract import MemoryChange

REVIVE: Final = "revive"
REVISE: Final = "revise"
UNLINK: Final = "unlink"
LINK: Final = "link"
PAGE: Final = "page"

_LISTS: Final = ("entities", "uses", "derived_from")


class ChangeRecorder:
    """The acts of one change, in one transaction."""

    def __init__(self, change: MemoryChange, now: float) -> None:
        self.change = change
        self.now = now
        self._steps: list[dict[str, Any]] = []
        self._touched: set[str] = set()
        self._inactive: set[str] = set()

    @property
    def steps(self) -> str:
        """The steps that undo what was done, as JSON, in the order in which they undo."""
        return json.dumps(self._steps[::-1], sort_keys=True)

    @property
    def touched(self) -> tuple[str, ...]:
        """The ids of the memories that were changed, made or archived, sorted."""
        return tuple(sorted(self._touched))

    @property
    def inactive(self) -> tuple[str, ...]:
        """The ids of the memories that are not active any more, sorted: no agent works on them."""
        return tuple(sorted(self._inactive))

    def add(self, write: MemoryWrite) -> None:
        """Write a memory that is new."""
        self.change.add(write, created_at=self.now)
        self._did(write.owner.id, do=ERASE, version=write.record.version)

    def archive(self, memory: StoredMemory) -> None:
        """Take a live memory out of finding. It can be brought back as any archived memory."""
        record = replace(memory.record, status="archived")
        self.change.expire(memory.number, record, max(self.now, memory.created_at))
        self._inactive.add(memory.owner.id)
        self._did(memory.owner.id, do=REVIVE, record=packed(memory.record))

    def revise(self, memory: StoredMemory, record: MemoryRecord) -> None:
        """Set the record of a live memory, with the same words."""
        before, after = packed(memory.record), packed(record)
        changed = [name for name in before if before[name] != after[name]]
        self.change.revise(memory.number, record)
        if record.status != "active":
            self._inactive.add(memory.owner.id)
        pairs = {name: [before[name], after[name]] for name in changed}
        self._did(memory.owner.id, do=REVISE, version=memory.record.version, changed=pairs)

    def link(self, link: Link) -> None:
        """Link two memories, in the place of a link of the same type between them."""
        known = self._known(link)
        self.change.link(link)
        step: dict[str, Any] = {"source": link.source, "target": link.target, "type": link.type}
        if known is None:
            self._did(link.source, link.target, do=UNLINK, **step)
        else:
            self._did(link.source, link.target, do=LINK, **step, strength=known.strength, at=known.created_at)

    def page(self, id_: str, path: str, sha256: str) -> None:
        """Remember that a page of the vault was written for a memory: its place, and the sum of its bytes."""
        self._did(id_, do=PAGE, path=path, sha256=sha256)

    def _known(self, link: Link) -> Link | None:
        found = self.change.links([link.source])
        return next(
            (each for each in found if (each.source, each.target, each.type) == (link.source, link.target, link.type)),
            None,
        )

    def _did(self, *ids: str, **step: Any) -> None:
        self._touched.update(ids)
        self._steps.append({"id": ids[0], **step})


def packed(record: MemoryRecord) -> dict[str, Any]:
    """Return a record as JSON has it, without the words of the memory."""
    values = json.loads(json.dumps(asdict(record)))
    del values["content"]
    return dict(values)


def unpacked(values: Mapping[str, Any], known: MemoryRecord) -> MemoryRecord:
    """Return a record with the values that were packed, and the rest as it is known."""
    names = {field.name for field in fields(MemoryRecord)} - {"content"}
    kept: dict[str, Any] = {
        name: tuple(value) if name in _LISTS else value for name, value in values.items() if name in names
    }
    return replace(known, **kept)


_T = TypeVar("_T", bound="Result")

_log = logging.getLogger(__name__)

_TRIES: Final = 5
"""So often a plan is made anew where others change its memories meanwhile."""
_PROPOSED: Final = ("open", "blocked")
_MOOT: Final = "nothing is left to do: "
"""How the reason begins for which an agent closes what nobody turned down."""


@dataclass(frozen=True, slots=True)
class PlanExecutor:
    """Carries out the plans of one agent in one run.

    Attributes:
        rate_limit: operations a minute over all processes; 0 is without limit.
    """

    ground: ConsolidationRuntime
    agent: str
    run: str
    rate_limit: int

    def propose(self, plan: Plan[_T]) -> str:
        """File an issue that waits, and return its id; where an unfinished one tells the same, return that one's."""
        elsewhere = self.ground.elsewhere
        if elsewhere is not None:
            self._count_elsewhere()
            issue = elsewhere.create(plan.agent, plan.memory_ids, plan.action, plan.urgency, plan.notes)
        else:
            issue = self._propose(plan)
        self._log(plan, "waiting")
        return issue

    def _propose(self, plan: Plan[Any]) -> str:
        same: list[str] = []

        def due(change: MemoryChange) -> Callable[[], str] | None:
            known = change.ledger.unfinished(plan.agent, plan.memory_ids)
            if known is not None:
                same.append(known.id)
                return None
            return lambda: rules.file(change.ledger, self._draft(plan), self._doer)

        return self.pace.write(due) or same[0]

    def apply(self, plan: Plan[_T], again: Callable[[], Plan[_T]], issue: str | None, reason: str = "") -> _T:
        """Apply a plan, file its issue unless it has one, close it, and keep what undoes the change.

        Args:
            again: makes the plan anew, where others changed its memories since.

        Raises:
            StoreBusyError: they did so over and over.
        """
        if self.ground.elsewhere is not None and issue is None:
            return self._apply_as_filed_elsewhere(self.ground.elsewhere, plan, again, reason)
        tries = _TRIES
        while tries:
            with self.ground.store.change_memories(self.ground.namespace, made_by=self.ground.stamp()) as change:
                wait = 0.0
                if _is_current(change, plan):
                    wait = window.take(change.ledger, self.ground.now(), 1 + (issue is None), self.rate_limit)
                    if not wait:
                        acts = ChangeRecorder(change, self.ground.now())
                        result, issue = self._apply(acts, plan, issue, reason)
                        break
            if wait:
                self.ground.sleep(wait)
            else:
                tries -= 1
                plan = again()
        else:
            raise StoreBusyError(
                f"the memories of an item of {self.agent} changed {_TRIES} times while it was processed",
                remedy="run the agent again",
            )
        if self.ground.elsewhere is not None:
            self._close_elsewhere(self.ground.elsewhere, issue, reason or plan.why or plan.action)
            self._close_moot_elsewhere(self.ground.elsewhere, acts.inactive, issue)
        self.ground.after()
        self._log(plan, "applied")
        return with_issue(result, issue)

    def _apply_as_filed_elsewhere(
        self, elsewhere: Issues, plan: Plan[_T], again: Callable[[], Plan[_T]], reason: str
    ) -> _T:
        """File and claim an issue that another program keeps, and apply it; no claim of it outlives a failure."""
        self._count_elsewhere()
        issue = elsewhere.create(plan.agent, plan.memory_ids, plan.action, plan.urgency, plan.notes)
        if not elsewhere.claim(issue):
            raise rules.not_open(elsewhere.get(issue))
        try:
            return self.apply(plan, again, issue, reason)
        except (NoRelation, NotFoundError) as error:
            self.close(issue, str(error.args[0]), is_moot=True)
            raise
        except Exception as error:
            self.block(issue, error)
            raise

    def claim(self, issue: str) -> bool:
        """Take an issue to work on; return False where others did, or it is blocked or closed."""
        if self.ground.elsewhere is not None:
            return self.ground.elsewhere.claim(issue)
        with self.ground.store.change_memories(self.ground.namespace) as change:
            release(change.ledger, rules.known(change.ledger, issue), self._doer, is_gone=process_is_gone)
            return rules.claim(change.ledger, issue, self._doer)

    def block(self, issue: str, error: Exception) -> None:
        """Block an issue with what went wrong."""
        if self.ground.elsewhere is not None:
            self.ground.elsewhere.block(issue, _said(error))
            return
        with self.ground.store.change_memories(self.ground.namespace) as change:
            known = change.ledger.issue(issue)
            if known is not None and known.status != "closed":
                rules.block(change.ledger, issue, _said(error), self._doer)

    def close(self, issue: str, why: str, *, is_moot: bool = False) -> None:
        """Close an issue that is open, or kept by another program and ours; others may have been faster.

        Args:
            is_moot: what it asks for cannot be done any more, which does not turn it down for later.
        """
        reason = f"{_MOOT}{why}" if is_moot else why
        if self.ground.elsewhere is not None:
            self._count_elsewhere()
            self._close_elsewhere(self.ground.elsewhere, issue, reason)
            return

        def due(change: MemoryChange) -> Callable[[], None] | None:
            known = change.ledger.issue(issue)
            is_open = known is not None and known.status == "open"
            return (lambda: rules.close(change.ledger, issue, reason, self._doer)) if is_open else None

        self.pace.write(due)

    @staticmethod
    def _close_elsewhere(elsewhere: Issues, issue: str, reason: str) -> None:
        """Close an issue that another program keeps; others may have been faster."""
        with suppress(NotFoundError, UsageError):
            elsewhere.close(issue, reason)

    def was_turned_down(self, plan: Plan[Any]) -> bool:
        """Tell whether somebody undid the same, or closed its proposal, and no memory of it was used since."""
        ledger = self.ground.store.ledger(self.ground.namespace)
        at = 0.0
        for issue, closed_at in self._closed(plan):
            reversal = ledger.reversal(issue)
            if reversal is None:
                at = max(at, closed_at)
            elif reversal.undone_at is not None:
                at = max(at, reversal.undone_at)
        return at > 0 and all(max(each.record.last_used, each.created_at) <= at for each in plan.basis)

    def _closed(self, plan: Plan[Any]) -> Iterator[tuple[str, float]]:
        """Yield the issues that asked for the same and were closed, and when; not those that became moot."""
        # Two agents propose links; who does not want one does not want it of the other either.
        agents: tuple[Agent, ...] = ("cluster", "relations") if plan.action == "link" else (plan.agent,)
        if self.ground.elsewhere is not None:
            for told_ in (each for agent in agents for each in self.ground.elsewhere.query(agent, "closed")):
                is_same = tuple(told_["memory_ids"]) == plan.memory_ids and told_["closed_at"]
                if is_same and not told_["close_reason"].startswith(_MOOT):
                    yield told_["id"], parse(told_["closed_at"])
            return
        wanted = IssueSelection(agents=agents, statuses=("closed",), memory_ids=plan.memory_ids)
        for issue in self.ground.store.ledger(self.ground.namespace).issues(wanted):
            is_same = issue.memory_ids == plan.memory_ids and not issue.close_reason.startswith(_MOOT)
            if is_same and issue.closed_at is not None:
                yield issue.id, issue.closed_at

    def _apply(self, acts: ChangeRecorder, plan: Plan[_T], issue: str | None, reason: str) -> tuple[_T, str]:
        change = acts.change
        assert plan.apply is not None
        if issue is None:
            issue = rules.file(change.ledger, self._draft(plan), self._doer)
        result = plan.apply(acts)
        if acts.inactive:
            self._close_moot(change, acts.inactive, issue)
        change.ledger.put_reversal(Reversal(issue, self.run, acts.now, acts.touched, acts.steps))
        why = reason or plan.why or plan.action
        change.ledger.add_event(IssueEvent(issue, acts.now, self._doer.actor, "applied", why))
        if self.ground.elsewhere is None:
            rules.close(change.ledger, issue, why, self._doer)
        return result, issue

    def _close_moot(self, change: MemoryChange, inactive: tuple[str, ...], by: str) -> None:
        """Close what is proposed for memories that are not active any more: nobody can do it."""
        selection = IssueSelection(statuses=_PROPOSED, memory_ids=inactive)
        for each in change.ledger.issues(selection):
            if each.agent and each.id != by:
                rules.close(change.ledger, each.id, _why_moot(each.memory_ids, inactive, by), self._doer)

    def _close_moot_elsewhere(self, elsewhere: Issues, inactive: tuple[str, ...], by: str) -> None:
        for status in _PROPOSED if inactive else ():
            for each in elsewhere.query(None, status):
                if each["id"] != by and not set(inactive).isdisjoint(each["memory_ids"]):
                    self._count_elsewhere()
                    self._close_elsewhere(elsewhere, each["id"], _why_moot(each["memory_ids"], inactive, by))

    def _log(self, plan: Plan[Any], what: str) -> None:
        # Not the issue: that of a dry run is on a copy, and leads nowhere.
        _log.debug("%s: %s %s: %s: %s", self.agent, plan.action, ", ".join(plan.memory_ids), what, plan.why)

    def _count_elsewhere(self) -> None:
        """Wait until one operation that another program does fits into the rate limit, and count it."""
        self.pace.write(lambda _: lambda: None)

    def _draft(self, plan: Plan[Any]) -> Draft:
        return Draft(plan.agent, plan.memory_ids, plan.action, plan.urgency, plan.notes, plan.why)

    @property
    def pace(self) -> RateLimiter:
        """What writes within the rate limit."""
        return self.ground.pace(self.rate_limit)

    @property
    def _doer(self) -> Doer:
        return Doer(actor_of(self.agent), self.ground.now())


def with_issue(result: _T, issue: str | None) -> _T:
    """Return a result that names its issue."""
    return result.model_copy(update={"beads_issue_id": issue})


def _why_moot(memory_ids: Sequence[str], inactive: tuple[str, ...], by: str) -> str:
    gone = next(id_ for id_ in memory_ids if id_ in inactive)
    return f"{_MOOT}memory {gone} is not active any more, by issue {by}"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _is_current(change: MemoryChange, plan: Plan[Any]) -> bool:
    """Tell whether the memories that a plan rests on are as they were, their use included."""
    return all(change.find(memory.owner.id) == memory for memory in plan.basis)


T = TypeVar("T", bound="Result")


@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    """What an agent would do with an item.

    Attributes:
        result: what a dry run returns.
        basis: the versions that it rests on.
        agent: whose the issue is: of the one that is to act on it.
        action: one word.
        why: the reason, one line, without words of a memory.
        extra: what the issue's notes tell besides: scores and the like, no words of a memory.
        apply: does it, and returns the result; None where there is nothing to do but to tell.
        needs_a_person: done only when somebody asks for it by its issue, however sure the agent is.
        is_filed: whether an issue tells of it.
    """

    result: T
    basis: tuple[StoredMemory, ...]
    agent: Agent
    action: str
    confidence: float
    urgency: Urgency = "medium"
    why: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    apply: Callable[[ChangeRecorder], T] | None = None
    needs_a_person: bool = False
    is_filed: bool = True

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids that the issue names, sorted."""
        return tuple(sorted({memory.owner.id for memory in self.basis}))

    @property
    def notes(self) -> dict[str, object]:
        """What the issue's notes tell besides what all notes do."""
        return {"confidence": round(self.confidence, 4), "why": self.why, **self.extra}
