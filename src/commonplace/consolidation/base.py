"""The base of all agents: plan, decide by confidence, apply in one transaction, file one issue.

A plan is based on versions of memories; if one has changed by the time the transaction begins, planning is repeated.
If another program keeps the issues, they are filed before that transaction and closed after it. A dry run applies its
plans to a private copy.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from typing import Any, ClassVar, Final, Generic, Self, TypeVar
from uuid import uuid4

from pydantic import BaseModel

from commonplace.consolidation.results import Result
from commonplace.consolidation.runtime import Book, ConfidenceConfig, ConsolidationRuntime, runtime_of
from commonplace.dataclasses import asdict, dataclass, field, replace
from commonplace.errors import CommonplaceError, NoRelation, NotFoundError, StoreBusyError, UsageError
from commonplace.ledger import rules
from commonplace.ledger.ledger import Ledger, actor_of
from commonplace.ledger.rate_limit import RateLimiter
from commonplace.ledger.rules import ERASE, Doer
from commonplace.memory.validate import invalid
from commonplace.store.memories import MemoryChange
from commonplace.types import Link, MemoryRecord, MemoryWrite, Selection, StoredMemory, Tier
from commonplace.types.ledger import UNFINISHED, Agent, Issue, IssueEvent, IssueSelection, Reversal, Urgency

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R", bound=Result)

_log = logging.getLogger(__name__)

REVIVE: Final = "revive"
REVISE: Final = "revise"
UNLINK: Final = "unlink"
LINK: Final = "link"
PAGE: Final = "page"

TRIES: Final = 5
"""Maximum number of attempts to plan and apply an item whose memories keep changing."""
_MOOT: Final = "nothing is left to do: "
"""Prefix of the reason for closing an issue that has become moot; such a closing is not a rejection."""


class ChangeRecorder:
    """Perform the acts of one change in one transaction, and record how to undo them.

    Attributes:
        steps: the step that undoes each act, in the order of the acts.
        touched: ids of the memories that were changed, created or archived.
        inactive: ids of the memories that are no longer active, so that no agent works on them.
    """

    def __init__(self, change: MemoryChange, now: float) -> None:
        self.change = change
        self.now = now
        self.steps: list[dict[str, Any]] = []
        self.touched: set[str] = set()
        self.inactive: set[str] = set()

    def add(self, write: MemoryWrite) -> None:
        self.change.add(write, created_at=self.now)
        self._record(write.owner.id, do=ERASE, version=write.record.version)

    def archive(self, memory: StoredMemory) -> None:
        """Archive a live memory: searches no longer find it. It can be restored like any archived memory."""
        record = replace(memory.record, status="archived")
        self.change.expire(memory.number, record, max(self.now, memory.created_at))
        self.inactive.add(memory.owner.id)
        self._record(memory.owner.id, do=REVIVE, record=record_values(memory.record))

    def revise(self, memory: StoredMemory, record: MemoryRecord) -> None:
        """Replace the record of a live memory; its content must be the same."""
        before, after = record_values(memory.record), record_values(record)
        changed = [name for name in before if before[name] != after[name]]
        self.change.revise(memory.number, record)
        if record.status != "active":
            self.inactive.add(memory.owner.id)
        values = {name: [before[name], after[name]] for name in changed}
        self._record(memory.owner.id, do=REVISE, version=memory.record.version, changed=values)

    def link(self, link: Link) -> None:
        """Link two memories, replacing any link of the same type between them."""
        key = (link.source, link.target, link.type)
        links = self.change.links([link.source])
        old = next((stored for stored in links if (stored.source, stored.target, stored.type) == key), None)
        self.change.link(link)
        undoing = {"do": UNLINK} if old is None else {"do": LINK, "strength": old.strength, "at": old.created_at}
        self._record(*key[:2], source=link.source, target=link.target, type=link.type, **undoing)

    def page(self, id_: str, path: str, sha256: str) -> None:
        """Record that a vault page was written for a memory, with its path and the SHA-256 of its bytes."""
        self._record(id_, do=PAGE, path=path, sha256=sha256)

    def _record(self, *ids: str, **step: Any) -> None:
        self.touched.update(ids)
        self.steps.append({"id": ids[0], **step})


def record_values(record: MemoryRecord) -> dict[str, Any]:
    """Return a record as JSON values, without the memory's content."""
    values = asdict(record)
    del values["content"]
    return dict(json.loads(json.dumps(values)))


def restored_record(values: Mapping[str, Any], record: MemoryRecord) -> MemoryRecord:
    """Return the record with the values from `record_values`; those of an imported step may hold more, as a text."""
    known = ((name, values[name]) for name in record_values(record) if name in values)
    restored: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in known}
    return replace(record, **restored)


@dataclass(frozen=True, slots=True)
class AgentPlan(Generic[R]):
    """What an agent would do with an item.

    Attributes:
        result: the result before anything is applied.
        basis: the memory versions that the plan is based on.
        agent: the agent that the issue is filed for and that acts on it.
        action: one word.
        reason: the reason, one line, without any of a memory's content.
        extra: further values for the issue's notes, such as scores, without any of a memory's content.
        apply: applies the plan and returns the result; None if all there is to do is file an issue.
        needs_review: applied only when somebody requests it by its issue, whatever the confidence.
        is_filed: whether an issue is filed for the plan; if not, the item is left as it is.
    """

    result: R
    basis: tuple[StoredMemory, ...]
    agent: Agent
    action: str
    confidence: float
    urgency: Urgency = "medium"
    reason: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    apply: Callable[[ChangeRecorder], R] | None = None
    needs_review: bool = False
    is_filed: bool = True

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids that the issue names, sorted."""
        return tuple(sorted({memory.owner.id for memory in self.basis}))

    @property
    def stated(self) -> tuple[Agent, tuple[str, ...], str, Urgency, dict[str, object]]:
        """The arguments of `rules.new_issue`."""
        notes = {"confidence": round(self.confidence, 4), "why": self.reason, **self.extra}
        return self.agent, self.memory_ids, self.action, self.urgency, notes

    @property
    def issue(self) -> Issue:
        """The plan's issue, not filed yet."""
        return rules.new_issue(*self.stated)


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that an agent could not process; `item` is "" if `scan` or `finish` failed."""

    agent: str
    item: str
    error: str


def failure_of(agent: str, item: str, error: Exception) -> Failure:
    """Return an error as a failure; log an error that is not a `CommonplaceError` with its traceback."""
    if isinstance(error, CommonplaceError):
        return Failure(agent, item, str(error))
    _log.error("agent %s failed at %r", agent, item, exc_info=error)
    return Failure(agent, item, f"{type(error).__name__}: {error}")


class ConsolidationAgent(ABC, Generic[T]):
    """An agent that finds memories to consolidate and processes each of them.

    A subclass implements `scan` and `process_item`; `run` does the rest. If `dry_run` is true, `process_item` must
    not change anything.

    Args:
        dry_run: preview without making changes.
        rate_limit: maximum operations per minute, over all processes that use the store; 0 means no limit.
        confidence_config: when to act, when to record details too, when to wait; None means the settings' values.
        book: the engine whose memories the agent works on; None means the default store.

    Attributes:
        name: the agent's name in failures and progress; the class name unless the class sets another.
        run_id: the UUID under which everything this agent applies can be undone together.
        failures: the items that the last `run` could not process.
        skipped: number of items of the last `run` without a result, such as two memories that are hardly related.

    Raises:
        UsageError: the rate limit is not a whole number, or is below 0.
    """

    name: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    def __init__(
        self,
        dry_run: bool = False,
        rate_limit: int = 100,
        confidence_config: ConfidenceConfig | None = None,
        *,
        book: Book | None = None,
    ) -> None:
        if isinstance(rate_limit, bool) or not isinstance(rate_limit, int) or rate_limit < 0:
            raise invalid("rate_limit", rate_limit, "give the most operations a minute, 0 for no limit")
        self._runtime: ConsolidationRuntime = runtime_of(book)
        self.dry_run = dry_run
        self.rate_limit = rate_limit
        self.confidence_config = confidence_config or self._runtime.confidence
        self.run_id = str(uuid4())
        self.failures: list[Failure] = []
        self.skipped = 0

    @abstractmethod
    def scan(self) -> list[str]:
        """Return the items that need processing, most urgent first. Changes nothing."""

    @abstractmethod
    def process_item(self, memory_id: str) -> T:
        """Process one item returned by `scan`.

        Raises:
            NotFoundError: the item no longer exists; `run` counts it as skipped.
            NoRelation: the item has no result; `run` counts it as skipped.
        """

    def run(self) -> list[T]:
        """Process every item that `scan` finds; a failed item is recorded and does not stop the others.

        Each item counts as one operation of the rate limit, and waits for it, except in a dry run.
        """
        self.failures, self.skipped = [], 0
        return self._each(self.scan(), self.process_item, is_paced=not self.dry_run)

    def _each(self, items: Sequence[str], process: Callable[[str], T], *, is_paced: bool = False) -> list[T]:
        results: list[T] = []
        for processed, item in enumerate(items):
            self._runtime.progress(self.name, processed, len(items))
            try:
                if is_paced:
                    self._count_operation()
                results.append(process(item))
            except (NoRelation, NotFoundError) as error:
                # An item found by the scan and missing now was processed or deleted by others.
                _log.debug("%s skipped %s: %s", self.name, item, error)
                self.skipped += 1
            except Exception as error:
                self.failures.append(failure_of(self.name, item, error))
        return results

    def _count_operation(self) -> None:
        with self._pace.change():
            pass

    @property
    def _pace(self) -> RateLimiter:
        return self._runtime.pace(self.rate_limit)


class PlannedAgent(ConsolidationAgent[R]):
    """An agent that plans what to do with an item and, by its confidence, acts or files an issue, or leaves it alone.

    A plan is applied in one transaction with its issue and its undo steps. A dry run acts on a private copy of the
    memories and the ledger, so its results are those of a real run.
    """

    name: ClassVar[Agent]
    takes_issues: ClassVar[bool] = False
    """Whether the agent's items are ledger issues, filed by others."""
    tiers: ClassVar[tuple[Tier, ...]] = ()
    """The tiers of the memories that the agent works on; empty means all."""

    @abstractmethod
    def plan(self, item: str) -> AgentPlan[R]:
        """Return the plan for an item. Changes nothing.

        Raises:
            NotFoundError: a memory or an issue does not exist, or is no longer active.
            NoRelation: two memories are hardly related.
        """

    def item_of(self, issue: Issue) -> str:
        """Return the item that an issue of this agent is about: a memory, unless overridden.

        Raises:
            UsageError: the issue does not name exactly the number of memories of an item.
        """
        return self._named(issue, 1)[0]

    def due(self) -> list[str]:
        """Return the ids of this agent's issues whose time has come: none, unless overridden."""
        return []

    def process_item(self, memory_id: str) -> R:
        """Process one item: apply its plan or file an issue that waits, depending on the confidence.

        Raises:
            NotFoundError: the item does not exist, or is no longer active.
            NoRelation: two memories are hardly related.
            StoreBusyError: others changed the item's memories on every attempt.
        """
        if self.dry_run:
            with self._on_a_copy() as agent:
                return with_issue(agent.process_item(memory_id), None)
        for _ in range(TRIES):
            try:
                plan = self.plan(memory_id)
            except (NoRelation, NotFoundError):
                raise
            except Exception as error:
                # Block an open issue that cannot be planned.
                is_ours = self.takes_issues and self._runtime.issues.get(memory_id).agent == self.name
                if is_ours and self._ledger.claim(memory_id):
                    self._block(memory_id, error)
                raise
            if not plan.is_filed or (not self.takes_issues and self._was_rejected(plan)):
                _log.debug("%s: %s %s: left as it is: %s", self.name, plan.action, memory_id, plan.reason)
                return _unsuccessful(plan.result)
            is_sure = self.confidence_config.decide(plan.confidence) != "wait"
            may_apply = plan.apply is not None and not plan.needs_review and is_sure
            # The issue is filed in the change's own transaction, unless another program keeps the issues.
            if may_apply and not self.takes_issues and self._runtime.external is None:
                if (result := self._apply(plan, None)) is not None:
                    return result
                continue
            issue = memory_id if self.takes_issues else self._propose(plan)
            if issue is not None and may_apply:
                return self._settle(memory_id, issue, plan, is_new=not self.takes_issues)
            if issue is not None:
                _log.debug("%s: %s %s: waiting: %s", self.name, plan.action, ", ".join(plan.memory_ids), plan.reason)
                return with_issue(_unsuccessful(plan.result), issue)
        raise self._busy_error()

    def process_issue(self, issue_id: str) -> R:
        """Claim an issue of this agent, apply it whatever the confidence, and close it.

        If that fails, the issue is blocked with the error and the memories are unchanged.

        Raises:
            NotFoundError: there is no such issue, it is not open, or one of its memories no longer exists.
            UsageError: the issue belongs to another agent, or asks for something that no agent can do.
        """
        if self.dry_run:
            with self._on_a_copy() as agent:
                return with_issue(agent.process_issue(issue_id), None)
        issue = self._runtime.issues.get(issue_id)
        if issue.agent != self.name:
            raise UsageError(
                f"issue {issue_id} is of {issue.agent or 'no agent'}, not of {self.name}",
                remedy="name an issue of this agent; see `commonplace ledger list`",
            )
        return self._settle(issue_id if self.takes_issues else self.item_of(issue), issue_id, None)

    def run(self) -> list[R]:
        """Process the due issues, then every item that `scan` finds, then call `finish`.

        A failed item is recorded and does not stop the others.
        """
        if self.dry_run:
            with self._on_a_copy() as agent:
                results = agent.run()
            self.failures, self.skipped = agent.failures, agent.skipped
            return [with_issue(result, None) for result in results]
        self.failures, self.skipped = [], 0
        due, items = self.due(), self.scan()
        _log.info("%s: %d items to look at", self.name, len(due) + len(items))
        results = self._each(due, self.process_issue) + self._each(items, self.process_item)
        self._attempt("", self.finish)
        _log.info("%s: %d results, %d skipped, %d failed", self.name, len(results), self.skipped, len(self.failures))
        return results

    def finish(self) -> None:
        """Close the open issues that name a memory that is no longer active; called after every item is processed.

        A failure here is recorded and does not affect the results of `run`.
        """
        named_ids = self._runtime.issues.named(self.name, ("open",))
        selection = Selection(ids=tuple(named_ids), tiers=self.tiers, statuses=("active",), order="id")
        active = self._runtime.store.memories(self._runtime.namespace, selection) if named_ids else []
        inactive = named_ids - {memory.owner.id for memory in active if memory.expired_at is None}
        for issue in self._open_issues(inactive):
            reason = f"memory {min(inactive.intersection(issue.memory_ids))} is not active any more"
            self._attempt(issue.id, partial(self._close, issue.id, reason, is_moot=True))

    def _unfinished(self, *agents: Agent) -> list[Issue]:
        return self._runtime.issues.selected(IssueSelection(agents=agents, statuses=UNFINISHED))

    def _open_issues(self, memory_ids: Collection[str]) -> list[Issue]:
        """Return the open issues of this agent that name any of the memories, oldest first."""
        selection = IssueSelection(agents=(self.name,), statuses=("open",), memory_ids=tuple(sorted(memory_ids)))
        return self._runtime.issues.selected(selection) if memory_ids else []

    @contextmanager
    def _on_a_copy(self) -> Iterator[Self]:
        with self._runtime.dry_run() as runtime:
            agent = copy(self)
            agent._runtime, agent.dry_run, agent.rate_limit = runtime, False, 0
            yield agent

    def _attempt(self, item: str, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:
            self.failures.append(failure_of(self.name, item, error))

    def _propose(self, plan: AgentPlan[R]) -> str | None:
        """File an issue and return its id, or that of an unfinished equal one; return None if the plan is outdated."""
        if self._runtime.external is not None:
            self._count_operation()
            return self._runtime.external.create(*plan.stated)
        existing = self._runtime.store.ledger(self._runtime.namespace).unfinished(plan.agent, plan.memory_ids)
        if existing is not None:
            return existing.id
        with self._pace.change() as change:
            return rules.file(change.ledger, plan.issue, self._doer, plan.reason) if _is_current(change, plan) else None

    def _settle(self, item: str, issue: str, plan: AgentPlan[R] | None, *, is_new: bool = False) -> R:
        """Claim an issue, apply what it asks for and close it; block it if that fails.

        Args:
            plan: an existing plan, if any; planning is repeated if others changed its memories.
            is_new: whether this agent has just filed the issue; if its memories are gone, it is closed, not blocked.
        """
        if not self._ledger.claim(issue):
            raise rules.not_open(self._runtime.issues.get(issue))
        try:
            return self._apply_claimed(item, issue, plan)
        except Exception as error:
            if is_new and isinstance(error, NoRelation | NotFoundError):
                self._close(issue, str(error.args[0]), is_moot=True)
            else:
                self._block(issue, error)
            raise

    def _apply_claimed(self, item: str, issue: str, plan: AgentPlan[R] | None) -> R:
        for _ in range(TRIES):
            plan = plan or self.plan(item)
            if plan.apply is None:
                raise UsageError(
                    f"issue {issue} asks for {plan.action}, which no agent can do",
                    remedy="do what it asks for, and close it with `commonplace ledger close`",
                )
            if (result := self._apply(plan, issue)) is not None:
                return result
            plan = None
        raise self._busy_error()

    def _apply(self, plan: AgentPlan[R], issue: str | None) -> R | None:
        """Apply a plan, close its issue and store its undo steps, in one transaction; return None if it is outdated.

        Args:
            issue: id of the plan's claimed issue; None files one.
        """
        external, actor, reason = self._runtime.external, actor_of(self.name), plan.reason or plan.action
        assert plan.apply is not None
        with self._pace.change(1 + (issue is None), self._runtime.stamp()) as change:
            if not _is_current(change, plan):
                return None
            recorder, ledger = ChangeRecorder(change, self._runtime.now()), change.ledger
            issue = issue or rules.file(ledger, plan.issue, self._doer, plan.reason)
            result = plan.apply(recorder)
            # Proposals for memories that are no longer active cannot be applied.
            inactive = tuple(sorted(recorder.inactive))
            affected = IssueSelection(statuses=("open", "blocked"), memory_ids=inactive)
            for moot_id, moot_reason in _moot_issues(ledger.issues(affected) if inactive else (), inactive, issue):
                rules.close(ledger, moot_id, moot_reason, self._doer)
            # The last act is undone first: a memory is created before it is linked.
            steps = json.dumps(recorder.steps[::-1], sort_keys=True)
            ledger.put_reversal(Reversal(issue, self.run_id, recorder.now, tuple(sorted(recorder.touched)), steps))
            ledger.add_event(IssueEvent(issue, recorder.now, actor, "applied", reason))
            if external is None:
                rules.close(ledger, issue, reason, self._doer)
        if external is not None:
            with suppress(NotFoundError, UsageError):  # others were faster
                external.close(issue, reason)
            for moot_id, moot_reason in _moot_issues(external.selected(affected) if inactive else (), inactive, issue):
                self._close(moot_id, moot_reason)
        self._runtime.after()
        # The issue is not logged: in a dry run it exists only on the copy.
        _log.debug("%s: %s %s: applied: %s", self.name, plan.action, ", ".join(plan.memory_ids), plan.reason)
        return with_issue(result, issue)

    def _busy_error(self) -> StoreBusyError:
        return StoreBusyError(
            f"the memories of an item of {self.name} changed {TRIES} times while it was processed",
            remedy="run the agent again",
        )

    def _block(self, issue: str, error: Exception) -> None:
        with suppress(NotFoundError, UsageError):
            self._ledger.block(issue, f"{type(error).__name__}: {error}")

    def _close(self, issue: str, why: str, *, is_moot: bool = False) -> None:
        """Close an open issue, or one that another program keeps, unless others were faster.

        Args:
            is_moot: whether the issue can no longer be carried out; it is then not taken as rejected.
        """
        reason = f"{_MOOT}{why}" if is_moot else why
        with suppress(NotFoundError, UsageError):  # others were faster
            if self._runtime.external is not None:
                self._count_operation()
                self._runtime.external.close(issue, reason)
            elif self._runtime.issues.get(issue).status == "open":
                with self._pace.change() as change:  # may wait, so the status is checked again
                    if rules.get_issue(change.ledger, issue).status == "open":
                        rules.close(change.ledger, issue, reason, self._doer)

    def _was_rejected(self, plan: AgentPlan[Any]) -> bool:
        """Return whether somebody undid or rejected the same plan and none of its memories has been used since."""
        # Two agents propose links: rejecting one agent's link rejects the other's too.
        agents: tuple[Agent, ...] = ("cluster", "relations") if plan.action == "link" else (plan.agent,)
        since = 0.0
        closed = IssueSelection(agents=agents, statuses=("closed",), memory_ids=plan.memory_ids)
        for issue in self._runtime.issues.selected(closed):
            if issue.memory_ids == plan.memory_ids and not issue.close_reason.startswith(_MOOT):
                reversal = self._runtime.store.ledger(self._runtime.namespace).reversal(issue.id)
                since = max(since, (issue.closed_at if reversal is None else reversal.undone_at) or 0.0)
        return since > 0 and all(max(memory.record.last_used, memory.created_at) <= since for memory in plan.basis)

    @property
    def _ledger(self) -> Ledger:
        runtime = self._runtime
        return runtime.external or Ledger(runtime.store, runtime.namespace, runtime.now, actor_of(self.name))

    @property
    def _doer(self) -> Doer:
        return Doer(actor_of(self.name), self._runtime.now())

    def _named(self, issue: Issue, count: int) -> tuple[str, ...]:
        if len(issue.memory_ids) != count:
            raise UsageError(
                f"issue {issue.id} names {len(issue.memory_ids)} memories, {self.name} works on {count} at a time",
                remedy="file an issue for each, and close this one",
            )
        return issue.memory_ids

    def _active(self, id_: str) -> StoredMemory:
        memory = self._runtime.store.memory(self._runtime.namespace, id_)
        if memory is None:
            raise NotFoundError(f"there is no memory {id_!r:.80} in this namespace", remedy="see `commonplace list`")
        if memory.expired_at is not None or memory.record.status != "active":
            raise NotFoundError(
                f"memory {id_!r:.80} is {memory.record.status}, not active", remedy="name an active memory"
            )
        return memory


def _unsuccessful(result: R) -> R:
    return result.model_copy(update={"success": False}) if "success" in type(result).model_fields else result


def with_issue(result: R, issue: str | None) -> R:
    """Return a copy of a result with an issue's id."""
    return result.model_copy(update={"beads_issue_id": issue})


def _moot_issues(issues: Iterable[Issue], inactive: tuple[str, ...], by: str) -> Iterator[tuple[str, str]]:
    """Yield the ids of the agents' issues, except `by`, with the reason for closing them."""
    for issue in issues:
        if issue.agent and issue.id != by:
            inactive_id = next(id_ for id_ in issue.memory_ids if id_ in inactive)
            yield issue.id, f"{_MOOT}memory {inactive_id} is not active any more, by issue {by}"


def _is_current(change: MemoryChange, plan: AgentPlan[Any]) -> bool:
    """Return whether the memories that a plan is based on are unchanged, including their uses."""
    return all(change.find(memory.owner.id) == memory for memory in plan.basis)
