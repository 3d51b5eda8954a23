"""The base of all agents: plan, decide by confidence, apply in one transaction, file one issue.

A plan is based on versions of memories; where one has changed by the time the transaction begins, the plan is made
again. A dry run applies its plans to a private copy.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar
from uuid import uuid4

from pydantic import BaseModel

from commonplace.consolidation.executor import TRIES, Plan, PlanExecutor, with_issue
from commonplace.consolidation.results import Result
from commonplace.consolidation.runtime import Book, ConfidenceConfig, ConsolidationRuntime, runtime_of
from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError, NoRelation, NotFoundError, UsageError
from commonplace.ledger import rules
from commonplace.types import Selection, StoredMemory
from commonplace.types.ledger import UNFINISHED, Agent, Issue

__all__ = ["ConsolidationAgent", "Failure", "Plan", "PlannedAgent"]

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R", bound=Result)

_log = logging.getLogger(__name__)


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
            raise UsageError(
                f"rate_limit is {rate_limit!r:.80}",
                remedy="give the most operations a minute, 0 for no limit",
                parameters=("rate_limit",),
            )
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

        def paced(item: str) -> T:
            if not self.dry_run:
                self._runtime.pace(self.rate_limit).write(lambda _: lambda: None)
            return self.process_item(item)

        self.failures, self.skipped = [], 0
        return self._each(self.scan(), paced)

    def _each(self, items: Sequence[str], process: Callable[[str], T]) -> list[T]:
        results: list[T] = []
        for done, item in enumerate(items):
            self._runtime.progress(self.name, done, len(items))
            try:
                results.append(process(item))
            except (NoRelation, NotFoundError) as error:
                # What was there at the scan and is not there now was processed, or taken away, by others.
                _log.debug("%s skipped %s: %s", self.name, item, error)
                self.skipped += 1
            except Exception as error:
                self._fail(item, error)
        return results

    def _fail(self, item: str, error: Exception) -> None:
        self.failures.append(failure_of(self.name, item, error))


class PlannedAgent(ConsolidationAgent[R]):
    """An agent that plans what it does with an item, and acts, asks or leaves it alone by how sure it is.

    Whatever it applies is one transaction with its issue and with what undoes it. A dry run acts on a private copy of
    the memories and the ledger, so that it comes to what the run would.
    """

    name: ClassVar[Agent]
    takes_issues: ClassVar[bool] = False
    """Whether its items are issues of the ledger, filed by others."""

    @abstractmethod
    def plan(self, item: str) -> Plan[R]:
        """Return what is to be done with an item; it changes nothing.

        Raises:
            NotFoundError: a memory or an issue is not there, or no longer active.
            NoRelation: two memories are hardly related.
        """

    def item_of(self, issue: Issue) -> str:
        """Return the item that an issue of this agent is about: a memory, where it says nothing else.

        Raises:
            UsageError: it names more memories, or fewer, than an item has.
        """
        return self._named(issue, 1)[0]

    def due(self) -> list[str]:
        """Return the issues of this agent that waited for a time that has come: none, where it says nothing else."""
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
            if (result := self._processed(memory_id)) is not None:
                return result
        raise self._executor.outrun()

    def _processed(self, memory_id: str) -> R | None:
        """Process an item; return None where others changed its memories before its issue was filed."""
        plan = self._planned(memory_id)
        if not plan.is_filed or (not self.takes_issues and self._executor.was_turned_down(plan)):
            _log.debug("%s: %s %s: left as it is: %s", self.name, plan.action, memory_id, plan.why)
            return _not_done(plan.result)
        is_sure = self.confidence_config.decide(plan.confidence) != "wait"
        if plan.apply is None or plan.needs_a_person or not is_sure:
            issue = memory_id if self.takes_issues else self._executor.propose(plan)
            return None if issue is None else with_issue(_not_done(plan.result), issue)
        if self.takes_issues:
            return self._with_issue(memory_id, memory_id, plan)
        return self._executor.apply(plan, partial(self.plan, memory_id), None)

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
        return self._with_issue(issue_id if self.takes_issues else self.item_of(issue), issue_id, None)

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
        active = self._runtime.store.memories(self._runtime.namespace, self._selection(named)) if named else []
        gone = named - {each.owner.id for each in active if each.expired_at is None}
        for issue in self._runtime.issues.about(sorted(gone), self.name):
            if issue["status"] == "open":
                why = f"memory {min(gone.intersection(issue['memory_ids']))} is not active any more"
                self._attempt(issue["id"], partial(self._executor.close, issue["id"], why, is_moot=True))

    def _selection(self, ids: Iterable[str]) -> Selection:
        """Return what selects those memories that this agent may work on."""
        return Selection(ids=tuple(ids), statuses=("active",), order="id")

    def _unfinished(self, *agents: Agent) -> Iterator[dict[str, Any]]:
        for agent in agents:
            for status in UNFINISHED:
                yield from self._runtime.issues.query(agent, status)

    @contextmanager
    def _on_a_copy(self) -> Iterator[Self]:
        """Give this agent as it acts on a private copy of the memories and the ledger."""
        with self._runtime.dry_run() as runtime:
            agent = copy(self)
            agent._runtime, agent.dry_run, agent.rate_limit = runtime, False, 0
            yield agent

    def _attempt(self, item: str, act: Callable[[], object]) -> None:
        """Do something beside the items; count it where it fails."""
        try:
            act()
        except Exception as error:
            self._fail(item, error)

    def _planned(self, item: str) -> Plan[R]:
        """Return the plan of an item; where it is an open issue and nothing can be planned for it, block that."""
        try:
            return self.plan(item)
        except (NoRelation, NotFoundError):
            raise
        except Exception as error:
            is_ours = self.takes_issues and self._runtime.issues.get(item).agent == self.name
            if is_ours and self._executor.issues.claim(item):
                self._executor.block(item, error)
            raise

    def _with_issue(self, item: str, issue: str, plan: Plan[R] | None) -> R:
        """Claim an issue, apply what it asks for and close it; block it where that fails."""
        if not self._executor.issues.claim(issue):
            raise rules.not_open(self._runtime.issues.get(issue))
        try:
            made = plan or self.plan(item)
            _refuse_unfit(made, issue)
            return self._executor.apply(made, partial(self.plan, item), issue)
        except Exception as error:
            self._executor.block(issue, error)
            raise

    @property
    def _executor(self) -> PlanExecutor:
        return PlanExecutor(self._runtime, self.name, self.run_id, self.rate_limit)

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


def _refuse_unfit(plan: Plan[Any], issue: str) -> None:
    if plan.apply is None:
        raise UsageError(
            f"issue {issue} asks for {plan.action}, which no agent can do",
            remedy="do what it asks for, and close it with `commonplace ledger close`",
        )
