"""The base of all agents: plan, decide by confidence, apply in one transaction, file one issue.

A plan is based on versions of memories; if one has changed by the time the transaction begins, the plan is made again.
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
from commonplace.dataclasses import asdict, dataclass, field, fields, replace
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
"""So often a plan is made again where others change its memories meanwhile."""
_MOOT: Final = "nothing is left to do: "
"""How the reason begins for which an agent closes what nobody turned down."""


class ChangeRecorder:
    """The acts of one change, in one transaction.

    Attributes:
        steps: what undoes each act, in the order of the acts.
        touched: the ids of the memories that were changed, made or archived.
        inactive: the ids of the memories that are not active any more: no agent works on them.
    """

    def __init__(self, change: MemoryChange, now: float) -> None:
        self.change = change
        self.now = now
        self.steps: list[dict[str, Any]] = []
        self.touched: set[str] = set()
        self.inactive: set[str] = set()

    def add(self, write: MemoryWrite) -> None:
        self.change.add(write, created_at=self.now)
        self._did(write.owner.id, do=ERASE, version=write.record.version)

    def archive(self, memory: StoredMemory) -> None:
        """Take a live memory out of finding. It can be brought back as any archived memory."""
        record = replace(memory.record, status="archived")
        self.change.expire(memory.number, record, max(self.now, memory.created_at))
        self.inactive.add(memory.owner.id)
        self._did(memory.owner.id, do=REVIVE, record=packed(memory.record))

    def revise(self, memory: StoredMemory, record: MemoryRecord) -> None:
        """Set the record of a live memory, with the same words."""
        before, after = packed(memory.record), packed(record)
        changed = [name for name in before if before[name] != after[name]]
        self.change.revise(memory.number, record)
        if record.status != "active":
            self.inactive.add(memory.owner.id)
        values = {name: [before[name], after[name]] for name in changed}
        self._did(memory.owner.id, do=REVISE, version=memory.record.version, changed=values)

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
        self.touched.update(ids)
        self.steps.append({"id": ids[0], **step})


def packed(record: MemoryRecord) -> dict[str, Any]:
    """Return a record as JSON has it, without the words of the memory."""
    values = asdict(record)
    del values["content"]
    return dict(json.loads(json.dumps(values)))


def unpacked(values: Mapping[str, Any], known: MemoryRecord) -> MemoryRecord:
    """Return a record with the values that were packed, and the rest as it is known."""
    names = {field.name for field in fields(MemoryRecord)} - {"content"}
    lists = ("entities", "uses", "derived_from")
    kept: dict[str, Any] = {
        name: tuple(value) if name in lists else value for name, value in values.items() if name in names
    }
    return replace(known, **kept)


@dataclass(frozen=True, slots=True)
class Plan(Generic[R]):
    """What an agent would do with an item.

    Attributes:
        result: what a dry run returns.
        basis: the versions that it rests on.
        agent: whose the issue is: of the one that is to act on it.
        action: one word.
        why: the reason, one line, without words of a memory.
        extra: what the issue's notes say besides: scores and the like, no words of a memory.
        apply: does it, and returns the result; None where there is nothing to do but to file an issue.
        needs_a_person: done only when somebody asks for it by its issue, however sure the agent is.
        is_filed: whether an issue is filed for it.
    """

    result: R
    basis: tuple[StoredMemory, ...]
    agent: Agent
    action: str
    confidence: float
    urgency: Urgency = "medium"
    why: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    apply: Callable[[ChangeRecorder], R] | None = None
    needs_a_person: bool = False
    is_filed: bool = True

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids that the issue names, sorted."""
        return tuple(sorted({memory.owner.id for memory in self.basis}))

    @property
    def stated(self) -> tuple[Agent, tuple[str, ...], str, Urgency, dict[str, object]]:
        """What `rules.new_issue` takes."""
        notes = {"confidence": round(self.confidence, 4), "why": self.why, **self.extra}
        return self.agent, self.memory_ids, self.action, self.urgency, notes

    @property
    def issue(self) -> Issue:
        """The issue for it, not filed yet."""
        return rules.new_issue(*self.stated)


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that an agent could not process; "" is none in particular: it could not look for any, or not finish."""

    agent: str
    item: str
    error: str


def failure_of(agent: str, item: str, error: Exception) -> Failure:
    """Return what an error is as a failure; what is no error of ours is logged with where it came from."""
    if isinstance(error, CommonplaceError):
        return Failure(agent, item, str(error))
    _log.error("agent %s failed at %r", agent, item, exc_info=error)
    return Failure(agent, item, f"{type(error).__name__}: {error}")


class ConsolidationAgent(ABC, Generic[T]):
    """An agent that looks for memories to be consolidated, and processes each.

    One of your own says `scan` and `process_item`; `run` does the rest. Where `dry_run` is true, `process_item` must
    not change anything.

    Args:
        dry_run: preview without making changes.
        rate_limit: the most operations a minute, over all processes that work on the store; 0 is without limit.
        confidence_config: when to act, when to record details too, when to wait; None is what the settings say.
        book: the engine whose memories it works on; None is the default store.

    Attributes:
        name: of the agent, in failures and progress: that of its class, unless it has another.
        run_id: the UUID under which what this agent applies can be undone together.
        failures: the items that the last `run` could not process.
        skipped: how many items of the last `run` came to nothing, as two memories do that are hardly related.

    Raises:
        UsageError: the rate limit is no whole number, or below 0.
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
        """Return the items that need processing, the most urgent first; it changes nothing."""

    @abstractmethod
    def process_item(self, memory_id: str) -> T:
        """Process one item, as `scan` returns it.

        Raises:
            NotFoundError: it is not there any more; `run` counts it as skipped.
            NoRelation: it comes to nothing; `run` counts it as skipped.
        """

    def run(self) -> list[T]:
        """Process every item that `scan` finds; the failure of one is counted and does not stop the others.

        Each item is one operation of the rate limit, which is waited for; not in a dry run.
        """
        self.failures, self.skipped = [], 0
        return self._each(self.scan(), self.process_item, is_paced=not self.dry_run)

    def _each(self, items: Sequence[str], process: Callable[[str], T], *, is_paced: bool = False) -> list[T]:
        results: list[T] = []
        for done, item in enumerate(items):
            self._runtime.progress(self.name, done, len(items))
            try:
                if is_paced:
                    self._count_operation()
                results.append(process(item))
            except (NoRelation, NotFoundError) as error:
                # What was there at the scan and is not there now was processed, or taken away, by others.
                _log.debug("%s skipped %s: %s", self.name, item, error)
                self.skipped += 1
            except Exception as error:
                self.failures.append(failure_of(self.name, item, error))
        return results

    def _count_operation(self) -> None:
        """Wait until one more operation fits into the rate limit, and count it."""
        with self._pace.change():
            pass

    @property
    def _pace(self) -> RateLimiter:
        return self._runtime.pace(self.rate_limit)


class PlannedAgent(ConsolidationAgent[R]):
    """An agent that plans what it does with an item, and acts, asks or leaves it alone by how sure it is.

    Whatever it applies is one transaction with its issue and with what undoes it. A dry run acts on a private copy of
    the memories and the ledger, so that it comes to what the run would.
    """

    name: ClassVar[Agent]
    takes_issues: ClassVar[bool] = False
    """Whether its items are issues of the ledger, filed by others."""
    tiers: ClassVar[tuple[Tier, ...]] = ()
    """The tiers of the memories that it works on; none is all."""

    @abstractmethod
    def plan(self, item: str) -> Plan[R]:
        """Return what is to be done with an item; it changes nothing.

        Raises:
            NotFoundError: a memory or an issue is not there, or no longer active.
            NoRelation: two memories are hardly related.
        """

    def item_of(self, issue: Issue) -> str:
        """Return the item that an issue of this agent is about: a memory, unless overridden.

        Raises:
            UsageError: it names more memories, or fewer, than an item has.
        """
        return self._named(issue, 1)[0]

    def due(self) -> list[str]:
        """Return the issues of this agent that waited for a time that has come: none, unless overridden."""
        return []

    def process_item(self, memory_id: str) -> R:
        """Process one item: apply it, or file an issue that waits, by how sure the agent is.

        Raises:
            NotFoundError: it is not there, or no longer active.
            NoRelation: two memories are hardly related.
            StoreBusyError: others changed its memories over and over.
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
                # An open issue for which nothing can be planned is blocked.
                is_ours = self.takes_issues and self._runtime.issues.get(memory_id).agent == self.name
                if is_ours and self._ledger.claim(memory_id):
                    self._block(memory_id, error)
                raise
            if not plan.is_filed or (not self.takes_issues and self._was_turned_down(plan)):
                _log.debug("%s: %s %s: left as it is: %s", self.name, plan.action, memory_id, plan.why)
                return _not_done(plan.result)
            is_sure = self.confidence_config.decide(plan.confidence) != "wait"
            acts = plan.apply is not None and not plan.needs_a_person and is_sure
            # The issue is a part of the change's own transaction, unless another program keeps it.
            if acts and not self.takes_issues and self._runtime.external is None:
                if (result := self._apply(plan, None)) is not None:
                    return result
                continue
            issue = memory_id if self.takes_issues else self._propose(plan)
            if issue is not None and acts:
                return self._settle(memory_id, issue, plan, is_new=not self.takes_issues)
            if issue is not None:
                _log.debug("%s: %s %s: waiting: %s", self.name, plan.action, ", ".join(plan.memory_ids), plan.why)
                return with_issue(_not_done(plan.result), issue)
        raise self._outrun()

    def process_issue(self, issue_id: str) -> R:
        """Claim an issue of this agent, apply it whatever the confidence, and close it.

        Where that fails the issue is blocked with the error, and the memories are as they were.

        Raises:
            NotFoundError: there is no such issue, or a memory of it is not there any more.
            UsageError: it is another agent's, is claimed by others, blocked or closed, or asks for nothing that an
                agent can do.
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
        """Process what waited until it is due, then every item that `scan` finds, then do what is left.

        The failure of one item is counted and does not stop the others.
        """
        if self.dry_run:
            with self._on_a_copy() as agent:
                results = agent.run()
            self.failures, self.skipped = agent.failures, agent.skipped
            return [with_issue(each, None) for each in results]
        self.failures, self.skipped = [], 0
        due, found = self.due(), self.scan()
        _log.info("%s: %d items to look at", self.name, len(due) + len(found))
        results = self._each(due, self.process_issue) + self._each(found, self.process_item)
        self._attempt("", self.finish)
        _log.info("%s: %d results, %d skipped, %d failed", self.name, len(results), self.skipped, len(self.failures))
        return results

    def finish(self) -> None:
        """Do what is left when every item was processed: close the open issues that name a memory not active any more.

        What fails here is counted, and takes nothing from what `run` returns.
        """
        named = self._runtime.issues.named(self.name, ("open",))
        wanted = Selection(ids=tuple(named), tiers=self.tiers, statuses=("active",), order="id")
        active = self._runtime.store.memories(self._runtime.namespace, wanted) if named else []
        gone = named - {each.owner.id for each in active if each.expired_at is None}
        for issue in self._open_issues(gone):
            why = f"memory {min(gone.intersection(issue.memory_ids))} is not active any more"
            self._attempt(issue.id, partial(self._close, issue.id, why, is_moot=True))

    def _unfinished(self, *agents: Agent) -> list[Issue]:
        return self._runtime.issues.selected(IssueSelection(agents=agents, statuses=UNFINISHED))

    def _open_issues(self, memory_ids: Collection[str]) -> list[Issue]:
        """Return the open issues of this agent that name any of some memories, the oldest first."""
        wanted = IssueSelection(agents=(self.name,), statuses=("open",), memory_ids=tuple(sorted(memory_ids)))
        return self._runtime.issues.selected(wanted) if memory_ids else []

    @contextmanager
    def _on_a_copy(self) -> Iterator[Self]:
        """Give this agent as it acts on a private copy of the memories and the ledger."""
        with self._runtime.dry_run() as runtime:
            agent = copy(self)
            agent._runtime, agent.dry_run, agent.rate_limit = runtime, False, 0
            yield agent

    def _attempt(self, item: str, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:
            self.failures.append(failure_of(self.name, item, error))

    def _propose(self, plan: Plan[R]) -> str | None:
        """File an issue, unless an unfinished one is about the same; return its id, None if the plan is outdated."""
        if self._runtime.external is not None:
            self._count_operation()
            return self._runtime.external.create(*plan.stated)
        known = self._runtime.store.ledger(self._runtime.namespace).unfinished(plan.agent, plan.memory_ids)
        if known is not None:
            return known.id
        with self._pace.change() as change:
            return rules.file(change.ledger, plan.issue, self._doer, plan.why) if _is_current(change, plan) else None

    def _settle(self, item: str, issue: str, plan: Plan[R] | None, *, is_new: bool = False) -> R:
        """Claim an issue, apply what it asks for and close it; block it if that fails.

        Args:
            plan: what was planned already; it is planned again if others changed its memories.
            is_new: this agent filed the issue just now; if its memories are gone, nobody needs to look at it.
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

    def _apply_claimed(self, item: str, issue: str, plan: Plan[R] | None) -> R:
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
        raise self._outrun()

    def _apply(self, plan: Plan[R], issue: str | None) -> R | None:
        """Apply a plan, close its issue and keep what undoes it, in one transaction; return None if it is outdated.

        Args:
            issue: the plan's, claimed; None files one.
        """
        external, actor, why = self._runtime.external, actor_of(self.name), plan.why or plan.action
        assert plan.apply is not None
        with self._pace.change(1 + (issue is None), self._runtime.stamp()) as change:
            if not _is_current(change, plan):
                return None
            acts, ledger = ChangeRecorder(change, self._runtime.now()), change.ledger
            issue = issue or rules.file(ledger, plan.issue, self._doer, plan.why)
            result = plan.apply(acts)
            # Nobody can do what is proposed for memories that are not active any more.
            inactive = tuple(sorted(acts.inactive))
            moot = IssueSelection(statuses=("open", "blocked"), memory_ids=inactive)
            for each, reason in _moot(ledger.issues(moot) if inactive else (), inactive, issue):
                rules.close(ledger, each, reason, self._doer)
            # The last act is undone first: a memory was made before it was linked.
            steps = json.dumps(acts.steps[::-1], sort_keys=True)
            ledger.put_reversal(Reversal(issue, self.run_id, acts.now, tuple(sorted(acts.touched)), steps))
            ledger.add_event(IssueEvent(issue, acts.now, actor, "applied", why))
            if external is None:
                rules.close(ledger, issue, why, self._doer)
        if external is not None:
            with suppress(NotFoundError, UsageError):  # others were faster
                external.close(issue, why)
            for each, reason in _moot(external.selected(moot) if inactive else (), inactive, issue):
                self._close(each, reason)
        self._runtime.after()
        # Not the issue: that of a dry run is on a copy, and leads nowhere.
        _log.debug("%s: %s %s: applied: %s", self.name, plan.action, ", ".join(plan.memory_ids), plan.why)
        return with_issue(result, issue)

    def _outrun(self) -> StoreBusyError:
        return StoreBusyError(
            f"the memories of an item of {self.name} changed {TRIES} times while it was processed",
            remedy="run the agent again",
        )

    def _block(self, issue: str, error: Exception) -> None:
        """Block an issue with what went wrong, unless others closed it meanwhile."""
        with suppress(NotFoundError, UsageError):
            self._ledger.block(issue, f"{type(error).__name__}: {error}")

    def _close(self, issue: str, why: str, *, is_moot: bool = False) -> None:
        """Close an issue that is open, or kept by another program and ours, unless others were faster.

        Args:
            is_moot: what it asks for cannot be done any more, which does not turn it down for later.
        """
        reason = f"{_MOOT}{why}" if is_moot else why
        with suppress(NotFoundError, UsageError):  # others were faster
            if self._runtime.external is not None:
                self._count_operation()
                self._runtime.external.close(issue, reason)
            elif self._runtime.issues.get(issue).status == "open":
                with self._pace.change() as change:  # which may wait, so that it is looked at again
                    if rules.known(change.ledger, issue).status == "open":
                        rules.close(change.ledger, issue, reason, self._doer)

    def _was_turned_down(self, plan: Plan[Any]) -> bool:
        """Return whether somebody undid the same, or closed its proposal, and no memory of it was used since."""
        # Two agents propose links; who does not want one does not want it of the other either.
        agents: tuple[Agent, ...] = ("cluster", "relations") if plan.action == "link" else (plan.agent,)
        at = 0.0
        closed = IssueSelection(agents=agents, statuses=("closed",), memory_ids=plan.memory_ids)
        for issue in self._runtime.issues.selected(closed):
            if issue.memory_ids == plan.memory_ids and not issue.close_reason.startswith(_MOOT):
                reversal = self._runtime.store.ledger(self._runtime.namespace).reversal(issue.id)
                at = max(at, (issue.closed_at if reversal is None else reversal.undone_at) or 0.0)
        return at > 0 and all(max(each.record.last_used, each.created_at) <= at for each in plan.basis)

    @property
    def _ledger(self) -> Ledger:
        """The ledger as this agent, and no person, writes it."""
        runtime = self._runtime
        return runtime.external or Ledger(runtime.store, runtime.namespace, runtime.now, actor_of(self.name))

    @property
    def _doer(self) -> Doer:
        return Doer(actor_of(self.name), self._runtime.now())

    def _named(self, issue: Issue, count: int) -> tuple[str, ...]:
        """Return the ids of the memories that an issue names, which must be as many."""
        if len(issue.memory_ids) != count:
            raise UsageError(
                f"issue {issue.id} names {len(issue.memory_ids)} memories, {self.name} works on {count} at a time",
                remedy="file an issue for each, and close this one",
            )
        return issue.memory_ids

    def _active(self, id_: str) -> StoredMemory:
        """Return a memory; a NotFoundError says that it is not there, or no longer active."""
        memory = self._runtime.store.memory(self._runtime.namespace, id_)
        if memory is None:
            raise NotFoundError(f"there is no memory {id_!r:.80} in this namespace", remedy="see `commonplace list`")
        if memory.expired_at is not None or memory.record.status != "active":
            raise NotFoundError(
                f"memory {id_!r:.80} is {memory.record.status}, not active", remedy="name an active memory"
            )
        return memory


def _not_done(result: R) -> R:
    """Return a result that says so, where it can, if nothing was done."""
    return result.model_copy(update={"success": False}) if "success" in type(result).model_fields else result


def with_issue(result: R, issue: str | None) -> R:
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
