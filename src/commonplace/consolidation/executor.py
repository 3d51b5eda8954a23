"""Apply an agent's plan: changes of memories, their issue and the record that undoes them, in one transaction.

If another program keeps the issues, they are filed before that transaction and closed after it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar

from commonplace.consolidation.results import Result
from commonplace.consolidation.runtime import ConsolidationRuntime
from commonplace.dataclasses import asdict, dataclass, field, fields, replace
from commonplace.errors import NoRelation, NotFoundError, StoreBusyError, UsageError
from commonplace.ledger import rules
from commonplace.ledger.ledger import Ledger, actor_of
from commonplace.ledger.rate_limit import RateLimiter
from commonplace.ledger.rules import ERASE, Doer, Draft
from commonplace.store.memories import MemoryChange
from commonplace.types import Link, MemoryRecord, MemoryWrite, StoredMemory
from commonplace.types.ledger import Agent, Issue, IssueEvent, IssueSelection, Reversal, Urgency

REVIVE: Final = "revive"
REVISE: Final = "revise"
UNLINK: Final = "unlink"
LINK: Final = "link"
PAGE: Final = "page"

_LISTS: Final = ("entities", "uses", "derived_from")


_T = TypeVar("_T", bound="Result")


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
        ends = (link.source, link.target, link.type)
        links = self.change.links([link.source])
        known = next((each for each in links if (each.source, each.target, each.type) == ends), None)
        self.change.link(link)
        undoing = {"do": UNLINK} if known is None else {"do": LINK, "strength": known.strength, "at": known.created_at}
        self._did(*ends[:2], source=link.source, target=link.target, type=link.type, **undoing)

    def page(self, id_: str, path: str, sha256: str) -> None:
        """Remember that a page of the vault was written for a memory: its place, and the sum of its bytes."""
        self._did(id_, do=PAGE, path=path, sha256=sha256)

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


@dataclass(frozen=True, slots=True)
class Plan(Generic[_T]):
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

    result: _T
    basis: tuple[StoredMemory, ...]
    agent: Agent
    action: str
    confidence: float
    urgency: Urgency = "medium"
    why: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    apply: Callable[[ChangeRecorder], _T] | None = None
    needs_a_person: bool = False
    is_filed: bool = True

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids that the issue names, sorted."""
        return tuple(sorted({memory.owner.id for memory in self.basis}))

    @property
    def draft(self) -> Draft:
        """What the issue says."""
        return Draft(self.agent, self.memory_ids, self.action, self.urgency, self.notes, self.why)

    @property
    def notes(self) -> dict[str, object]:
        """What the issue's notes tell besides what all notes do."""
        return {"confidence": round(self.confidence, 4), "why": self.why, **self.extra}


_log = logging.getLogger(__name__)

TRIES: Final = 5
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

    runtime: ConsolidationRuntime
    agent: str
    run: str
    rate_limit: int

    def propose(self, plan: Plan[_T]) -> str | None:
        """File an issue that waits, and return its id; where an unfinished one tells the same, return that one's.

        None says that others changed the memories of the plan since, so that it has to be made anew.
        """
        same: list[str] = []

        def due(change: MemoryChange) -> Callable[[], str] | None:
            if not _is_current(change, plan):
                return None
            if (known := change.ledger.unfinished(plan.agent, plan.memory_ids)) is not None:
                same.append(known.id)
                return None
            return lambda: rules.file(change.ledger, plan.draft, self._doer)

        external = self.runtime.external
        issue = self._file_external(external, plan) if external else self.pace.write(due) or next(iter(same), None)
        if issue is not None:
            self._log(plan, "waiting")
        return issue

    def apply(self, plan: Plan[_T], again: Callable[[], Plan[_T]], issue: str | None) -> _T:
        """Apply a plan, file its issue unless it has one, close it, and keep what undoes the change.

        Args:
            again: makes the plan anew, where others changed its memories since.

        Raises:
            StoreBusyError: they did so over and over.
        """
        external = self.runtime.external
        if external is not None and issue is None:
            return self._apply_as_filed(external, plan, again)
        for _ in range(TRIES):
            due = partial(self._due, plan, issue)
            applied = self.pace.write(due, count=1 + (issue is None), made_by=self.runtime.stamp())
            if applied is not None:
                break
            plan = again()
        else:
            raise self.outrun()
        result, issue, inactive = applied
        if external is not None:
            self._close_external(external, issue, plan.why or plan.action)
            moot = IssueSelection(statuses=_PROPOSED, memory_ids=inactive)
            for each, why in _moot(external.selected(moot) if inactive else (), inactive, issue):
                self._count()
                self._close_external(external, each, why)
        self.runtime.after()
        self._log(plan, "applied")
        return with_issue(result, issue)

    def _due(
        self, plan: Plan[_T], issue: str | None, change: MemoryChange
    ) -> Callable[[], tuple[_T, str, tuple[str, ...]]] | None:
        return partial(self._apply, change, plan, issue) if _is_current(change, plan) else None

    def _apply(self, change: MemoryChange, plan: Plan[_T], issue: str | None) -> tuple[_T, str, tuple[str, ...]]:
        """Apply a plan in a transaction; return the result, its issue, and what is not active any more."""
        assert plan.apply is not None
        acts, ledger = ChangeRecorder(change, self.runtime.now()), change.ledger
        if issue is None:
            issue = rules.file(ledger, plan.draft, self._doer)
        result = plan.apply(acts)
        if acts.inactive:
            # Nobody can do what is proposed for memories that are not active any more.
            moot = ledger.issues(IssueSelection(statuses=_PROPOSED, memory_ids=acts.inactive))
            for each, reason in _moot(moot, acts.inactive, issue):
                rules.close(ledger, each, reason, self._doer)
        ledger.put_reversal(Reversal(issue, self.run, acts.now, acts.touched, acts.steps))
        why = plan.why or plan.action
        ledger.add_event(IssueEvent(issue, acts.now, self._doer.actor, "applied", why))
        if self.runtime.external is None:
            rules.close(ledger, issue, why, self._doer)
        return result, issue, acts.inactive

    def _file_external(self, external: Ledger, plan: Plan[Any]) -> str:
        self._count()
        return external.create(plan.agent, plan.memory_ids, plan.action, plan.urgency, plan.notes)

    def _apply_as_filed(self, external: Ledger, plan: Plan[_T], again: Callable[[], Plan[_T]]) -> _T:
        """File and claim an issue that another program keeps, and apply it; no claim of it outlives a failure."""
        issue = self._file_external(external, plan)
        if not external.claim(issue):
            raise rules.not_open(external.get(issue))
        try:
            return self.apply(plan, again, issue)
        except (NoRelation, NotFoundError) as error:
            self.close(issue, str(error.args[0]), is_moot=True)
            raise
        except Exception as error:
            self.block(issue, error)
            raise

    def outrun(self) -> StoreBusyError:
        """Return the error of an item whose memories others changed over and over."""
        return StoreBusyError(
            f"the memories of an item of {self.agent} changed {TRIES} times while it was processed",
            remedy="run the agent again",
        )

    def block(self, issue: str, error: Exception) -> None:
        """Block an issue with what went wrong, unless others closed it meanwhile."""
        with suppress(NotFoundError, UsageError):
            self.issues.block(issue, f"{type(error).__name__}: {error}")

    def close(self, issue: str, why: str, *, is_moot: bool = False) -> None:
        """Close an issue that is open, or kept by another program and ours; others may have been faster.

        Args:
            is_moot: what it asks for cannot be done any more, which does not turn it down for later.
        """
        reason = f"{_MOOT}{why}" if is_moot else why

        def due(change: MemoryChange) -> Callable[[], None] | None:
            known = change.ledger.issue(issue)
            is_open = known is not None and known.status == "open"
            return (lambda: rules.close(change.ledger, issue, reason, self._doer)) if is_open else None

        if self.runtime.external is None:
            self.pace.write(due)
        else:
            self._count()
            self._close_external(self.runtime.external, issue, reason)

    @staticmethod
    def _close_external(external: Ledger, issue: str, reason: str) -> None:
        with suppress(NotFoundError, UsageError):  # others were faster
            external.close(issue, reason)

    def was_turned_down(self, plan: Plan[Any]) -> bool:
        """Return whether somebody undid the same, or closed its proposal, and no memory of it was used since."""
        # Two agents propose links; who does not want one does not want it of the other either.
        agents: tuple[Agent, ...] = ("cluster", "relations") if plan.action == "link" else (plan.agent,)
        at = 0.0
        for agent in agents:
            closed = IssueSelection(agents=(agent,), statuses=("closed",), memory_ids=plan.memory_ids)
            for issue in self.issues.selected(closed):
                if issue.memory_ids == plan.memory_ids and not issue.close_reason.startswith(_MOOT):
                    reversal = self.runtime.store.ledger(self.runtime.namespace).reversal(issue.id)
                    at = max(at, (issue.closed_at if reversal is None else reversal.undone_at) or 0.0)
        return at > 0 and all(max(each.record.last_used, each.created_at) <= at for each in plan.basis)

    def _log(self, plan: Plan[Any], what: str) -> None:
        # Not the issue: that of a dry run is on a copy, and leads nowhere.
        _log.debug("%s: %s %s: %s: %s", self.agent, plan.action, ", ".join(plan.memory_ids), what, plan.why)

    def _count(self) -> None:
        """Wait until one operation that another program does fits into the rate limit, and count it."""
        self.pace.write(lambda _: lambda: None)

    @property
    def pace(self) -> RateLimiter:
        return self.runtime.pace(self.rate_limit)

    @property
    def issues(self) -> Ledger:
        """The ledger as this agent, and no person, writes it."""
        runtime = self.runtime
        return runtime.external or Ledger(runtime.store, runtime.namespace, runtime.now, actor_of(self.agent))

    @property
    def _doer(self) -> Doer:
        return Doer(actor_of(self.agent), self.runtime.now())


def with_issue(result: _T, issue: str | None) -> _T:
    """Return a result that names its issue."""
    return result.model_copy(update={"beads_issue_id": issue})


def _moot(issues: Iterable[Issue], inactive: tuple[str, ...], by: str) -> Iterator[tuple[str, str]]:
    """Yield the issues of agents, but the one that is applied, with the reason why they are closed."""
    for each in issues:
        if each.agent and each.id != by:
            gone = next(id_ for id_ in each.memory_ids if id_ in inactive)
            yield each.id, f"{_MOOT}memory {gone} is not active any more, by issue {by}"


def _is_current(change: MemoryChange, plan: Plan[Any]) -> bool:
    """Return whether the memories that a plan rests on are as they were, their use included."""
    return all(change.find(memory.owner.id) == memory for memory in plan.basis)
