"""What every agent has from its base, shown by one that archives whatever is tagged as old."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from pydantic import BaseModel

import commonplace
from commonplace.consolidation.base import (
    AgentPlan,
    ChangeRecorder,
    ConsolidationAgent,
    PlannedAgent,
    record_values,
    restored_record,
)
from commonplace.consolidation.results import DecayResult, Result
from commonplace.consolidation.runner import RunOptions, run
from commonplace.consolidation.runtime import ConfidenceConfig
from commonplace.consolidation.undo import undo
from commonplace.engine import Engine
from commonplace.errors import NoRelation, NotFoundError, StoreBusyError, UsageError
from commonplace.types import Link, MemoryRecord, Selection
from commonplace.types.ledger import Agent, Issue, IssueSelection

from .conftest import Clock, Shelf, dump


class Tidier(PlannedAgent[DecayResult]):
    """Archives what is tagged "old", as sure as the tag says; fails at what is tagged "bad"."""

    name: ClassVar[Agent] = "decay"
    confidence: ClassVar[float] = 0.95

    def scan(self) -> list[str]:
        chosen = Selection(tags=("old", "bad", "none"), statuses=("active",), order="id")
        return [each.owner.id for each in self._runtime.store.memories(self._runtime.namespace, chosen)]

    def plan(self, item: str) -> AgentPlan[DecayResult]:
        memory = self._active(item)
        if "none" in memory.owner.tags:
            raise NoRelation("nothing to be done")
        result = DecayResult(memory_id=item, score=0.01, urgency="high", action="gc")

        def apply(acts: ChangeRecorder) -> DecayResult:
            acts.archive(memory)
            if "bad" in memory.owner.tags:
                raise ZeroDivisionError("after the first act")
            return result

        return AgentPlan(result, (memory,), "decay", "gc", self.confidence, "high", "it is old", {"score": 0.01}, apply)

    def item_of(self, issue: Issue) -> str:
        return issue.memory_ids[0]


class Unsure(Tidier):
    confidence: ClassVar[float] = 0.5


class Asking(Tidier):
    def plan(self, item: str) -> AgentPlan[DecayResult]:
        return replace(super().plan(item), needs_review=True)


class Telling(Tidier):
    def plan(self, item: str) -> AgentPlan[DecayResult]:
        return replace(super().plan(item), apply=None)


@pytest.fixture
def three(book: Engine) -> Engine:
    for id_ in ("a", "b", "c"):
        book.remember(f"The {id_} harbour froze in winter {ord(id_)}", id=id_, tags=["old"])
    return book


def issues(book: Engine, *statuses: str) -> list[Issue]:
    return book._runtime.store.ledger(book.namespace).issues(IssueSelection(statuses=statuses))


def live(book: Engine) -> list[str]:
    return sorted(memory.id for memory in book.list(statuses=["active"]))


class Verdict(BaseModel):
    """What the agent of somebody else returns."""

    memory_id: str


class Theirs(ConsolidationAgent[Verdict]):
    """An agent as the contract writes it: it says what it finds, and what it does with that, and nothing else."""

    def scan(self) -> list[str]:
        return ["a", "b", "c", "gone"]

    def process_item(self, memory_id: str) -> Verdict:
        if memory_id == "b":
            raise ValueError("no verdict")
        if memory_id == "gone":
            raise NotFoundError("there is no such memory")
        return Verdict(memory_id=memory_id)


def test_an_agent_of_the_contracts_two_methods_runs(shelf: Shelf, clock: Clock) -> None:
    """Whoever wrote one by the contract finds that `run` paces it, and survives what one item raises."""
    agent = Theirs(rate_limit=2, confidence_config=ConfidenceConfig(0.8, 0.6), book=shelf)
    assert agent.run() == [Verdict(memory_id="a"), Verdict(memory_id="c")]
    assert [(each.agent, each.item, each.error) for each in agent.failures] == [
        ("Theirs", "b", "ValueError: no verdict")
    ]
    assert (agent.skipped, agent.dry_run, agent.rate_limit, agent.confidence_config.log_threshold) == (1, False, 2, 0.6)
    assert sum(clock.waited) == 60.0


def test_a_dry_run_of_an_agent_of_the_contracts_two_methods_waits_for_nothing(shelf: Shelf, clock: Clock) -> None:
    agent = Theirs(dry_run=True, rate_limit=1, book=shelf)
    assert (len(agent.run()), agent.dry_run, clock.waited) == (2, True, [])


def test_what_an_agent_returns_is_a_model() -> None:
    """A type checker refuses an agent whose results are none, as the contract's type variable has it."""
    (of_agents,) = ConsolidationAgent.__parameters__  # type: ignore[attr-defined]
    (of_planned,) = PlannedAgent.__parameters__  # type: ignore[attr-defined]
    assert (of_agents.__bound__, of_planned.__bound__) == (BaseModel, Result)


@pytest.mark.parametrize(("agent", "takes"), [("decay", 1), ("promote", 1), ("relations", 2)])
def test_an_issue_that_names_more_than_an_agent_works_on_is_refused(
    three: Engine, shelf: Shelf, agent: str, takes: int
) -> None:
    """Else the agent would do a part of it, and close it as done."""
    issue = three.ledger.create(agent, ["a", "b", "c"], "gc")
    with pytest.raises(UsageError, match=f"names 3 memories, {agent} works on {takes} at a time"):
        three.process_issue(issue)
    assert three.ledger.get(issue).status == "open"
    assert live(three) == ["a", "b", "c"]


def test_run_scans_and_processes_each_item(three: Engine, shelf: Shelf) -> None:
    results = Tidier(book=shelf).run()
    assert [result.memory_id for result in results] == ["a", "b", "c"]
    assert live(three) == []


def test_what_was_applied_leaves_one_closed_issue_that_tells_why_and_what_undoes_it(
    three: Engine, shelf: Shelf
) -> None:
    result = Tidier(book=shelf).process_item("a")
    (issue,) = issues(three)
    assert result.beads_issue_id == issue.id
    assert (issue.status, issue.close_reason, issue.memory_ids) == ("closed", "it is old", ("a",))
    ledger = three._runtime.store.ledger(three.namespace)
    assert [event.act for event in ledger.events(issue.id)] == ["created", "applied", "closed"]
    reversal = ledger.reversal(issue.id)
    assert reversal is not None
    assert reversal.memory_ids == ("a",)
    assert "harbour" not in reversal.steps


def test_a_dry_run_takes_the_same_way_and_writes_nothing(three: Engine, shelf: Shelf) -> None:
    before, change = dump(three), three._runtime.store.change()
    dry = Tidier(dry_run=True, book=shelf).run()
    assert (dump(three), three._runtime.store.change(), issues(three)) == (before, change, [])
    wet = Tidier(book=shelf).run()
    assert dry == [result.model_copy(update={"beads_issue_id": None}) for result in wet]


def test_what_an_agent_is_not_sure_of_it_proposes_once(three: Engine, shelf: Shelf) -> None:
    first, second = Unsure(book=shelf).run(), Unsure(book=shelf).run()
    assert first == second
    assert [issue.status for issue in issues(three)] == ["open"] * 3
    assert live(three) == ["a", "b", "c"]


@pytest.mark.parametrize(("log_threshold", "left"), [(0.5, []), (0.51, ["a", "b", "c"])])
def test_every_agent_obeys_the_thresholds_it_is_given(
    three: Engine, shelf: Shelf, log_threshold: float, left: list[str]
) -> None:
    Unsure(confidence_config=ConfidenceConfig(0.9, log_threshold), book=shelf).run()
    assert live(three) == left


def test_what_needs_a_person_waits_however_sure_the_agent_is(three: Engine, shelf: Shelf) -> None:
    result = Asking(book=shelf).process_item("a")
    assert live(three) == ["a", "b", "c"]
    assert Asking(book=shelf).process_issue(str(result.beads_issue_id)).memory_id == "a"
    assert live(three) == ["b", "c"]
    assert [issue.status for issue in issues(three)] == ["closed"]


def test_an_issue_is_processed_once(three: Engine, shelf: Shelf) -> None:
    result = Unsure(book=shelf).process_item("a")
    Unsure(book=shelf).process_issue(str(result.beads_issue_id))
    with pytest.raises(NotFoundError, match=r"is not open: it is closed: it is old; .* reopen"):
        Unsure(book=shelf).process_issue(str(result.beads_issue_id))


def test_an_issue_in_progress_is_nobody_elses(three: Engine, shelf: Shelf) -> None:
    result = Unsure(book=shelf).process_item("a")
    assert shelf.consolidation_runtime().issues.claim(str(result.beads_issue_id)) is True
    with pytest.raises(NotFoundError, match=r"is not open: .+ works on it; leave it to them; a claim lapses"):
        Unsure(book=shelf).process_issue(str(result.beads_issue_id))
    assert live(three) == ["a", "b", "c"]


def test_the_issue_of_another_agent_is_refused(three: Engine, shelf: Shelf) -> None:
    id_ = shelf.consolidation_runtime().issues.create("merge", ["a", "b"], "merge")
    with pytest.raises(UsageError, match="is of merge, not of decay"):
        Tidier(book=shelf).process_issue(id_)


def test_what_no_agent_does_is_refused_and_blocks_its_issue(three: Engine, shelf: Shelf) -> None:
    result = Telling(book=shelf).process_item("a")
    with pytest.raises(UsageError, match="asks for gc, which no agent can do"):
        Telling(book=shelf).process_issue(str(result.beads_issue_id))
    with pytest.raises(NotFoundError, match=r"is not open: it is blocked: .*asks for gc.*; .* reopen"):
        Telling(book=shelf).process_issue(str(result.beads_issue_id))
    assert [issue.status for issue in issues(three)] == ["blocked"]


def test_the_failure_of_one_item_does_not_stop_the_others_and_leaves_nothing_half_done(
    three: Engine, shelf: Shelf
) -> None:
    three.remember("The dam burst", id="aa", tags=["bad"])
    three.remember("The dam held", id="bb", tags=["none"])
    agent = Tidier(book=shelf)
    assert [result.memory_id for result in agent.run()] == ["a", "b", "c"]
    assert [(failure.item, failure.error) for failure in agent.failures] == [
        ("aa", "ZeroDivisionError: after the first act")
    ]
    assert agent.skipped == 1
    assert live(three) == ["aa", "bb"]
    assert "aa" not in {id_ for issue in issues(three) for id_ in issue.memory_ids}


def test_a_failure_blocks_the_issue_with_the_error_in_its_notes_and_leaves_the_memories(
    three: Engine, shelf: Shelf
) -> None:
    three.remember("The dam burst", id="aa", tags=["bad"])
    before = dump(three)
    id_ = shelf.consolidation_runtime().issues.create("decay", ["aa"], "gc")
    with pytest.raises(ZeroDivisionError):
        Tidier(book=shelf).process_issue(id_)
    (issue,) = issues(three)
    assert issue.status == "blocked"
    assert "ZeroDivisionError: after the first act" in issue.notes
    assert dump(three) == before


def test_the_rate_limit_is_waited_for(three: Engine, shelf: Shelf, clock: Clock) -> None:
    """Each item is a change and an issue: two operations, of which four fit into a minute."""
    Tidier(rate_limit=4, book=shelf).run()
    assert live(three) == []
    assert sum(clock.waited) == 60.0


def test_the_rate_limit_counts_what_other_agents_did(three: Engine, shelf: Shelf, clock: Clock) -> None:
    Tidier(rate_limit=4, book=shelf).process_item("a")
    Unsure(rate_limit=3, book=shelf).process_item("b")
    assert clock.waited == []
    Unsure(rate_limit=3, book=shelf).process_item("c")
    assert sum(clock.waited) == 60.0


def test_what_a_run_tends_counts_and_waits(three: Engine, shelf: Shelf, clock: Clock) -> None:
    """However many issues rise at once: they are changed together, in one operation."""
    for id_ in "abc":
        three.ledger.create("decay", [id_], "gc", "low")
    clock.now += 8 * 86_400
    run(shelf, RunOptions(("promote",), rate_limit=1))
    assert (clock.waited, three.consolidation_status(rate_limit=5).rate_limit_remaining) == ([], 4)
    clock.now += 8 * 86_400
    Unsure(rate_limit=0, book=shelf)._close(issues(three)[0].id, "enough")
    run(shelf, RunOptions(("promote",), dry_run=True, rate_limit=1))
    assert clock.waited == []
    run(shelf, RunOptions(("promote",), rate_limit=1))
    assert clock.waited == [60.0]


def test_the_closing_of_an_issue_counts_and_waits(three: Engine, shelf: Shelf, clock: Clock) -> None:
    agent = Unsure(rate_limit=1, book=shelf)
    proposed = str(agent.process_item("a").beads_issue_id)
    agent._close(proposed, "the memory is gone", is_moot=True)
    assert clock.waited == [60.0]
    agent._close(proposed, "it is closed already, which is no operation")
    assert (clock.waited, issues(three)[0].close_reason) == ([60.0], "nothing is left to do: the memory is gone")


def test_an_issue_that_is_claimed_while_its_closing_waits_stays_with_who_claimed_it(
    three: Engine, shelf: Shelf, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claimed(seconds: float) -> None:
        three.ledger.claim(proposed)
        sleep(seconds)

    sleep = clock.sleep
    monkeypatch.setattr(clock, "sleep", claimed)
    agent = Unsure(rate_limit=1, book=shelf)
    proposed = str(agent.process_item("a").beads_issue_id)
    agent._close(proposed, "the memory is gone", is_moot=True)
    assert [issue.status for issue in issues(three)] == ["in_progress"]


@pytest.mark.parametrize("dry_run", [False, True])
def test_dry_runs_and_a_rate_of_zero_wait_for_nothing(three: Engine, shelf: Shelf, clock: Clock, dry_run: bool) -> None:
    Tidier(dry_run, rate_limit=int(dry_run), book=shelf).run()
    assert clock.waited == []


@pytest.mark.parametrize("rate", [-1, 1.5, "100", None, True])
def test_a_rate_that_is_none_is_refused(shelf: Shelf, rate: object) -> None:
    with pytest.raises(UsageError, match="rate_limit is"):
        Tidier(rate_limit=rate, book=shelf)  # type: ignore[arg-type]


def test_a_memory_that_changes_between_plan_and_act_is_planned_anew(three: Engine, shelf: Shelf) -> None:
    planned: list[int] = []

    class Slow(Tidier):
        def plan(self, item: str) -> AgentPlan[DecayResult]:
            plan = super().plan(item)
            planned.append(plan.basis[0].record.version)
            if len(planned) == 1:
                three.update(item, content="The a harbour never froze")
            return plan

    Slow(book=shelf).process_item("a")
    assert planned == [1, 2]
    assert live(three) == ["b", "c"]


def test_a_memory_that_changes_over_and_over_is_left_alone(three: Engine, shelf: Shelf) -> None:
    class Outrun(Tidier):
        def plan(self, item: str) -> AgentPlan[DecayResult]:
            plan = super().plan(item)
            three.touch(item)
            return plan

    with pytest.raises(StoreBusyError, match="changed 5 times"):
        Outrun(book=shelf).process_item("a")
    assert live(three) == ["a", "b", "c"]
    assert issues(three) == []


def test_a_change_is_undone_exactly(three: Engine, shelf: Shelf) -> None:
    before = dump(three)
    result = Tidier(book=shelf).process_item("a")
    undone = undo(shelf.consolidation_runtime(), str(result.beads_issue_id))
    assert dump(three) == before
    assert (undone.issues, undone.memory_ids, undone.notices) == ((result.beads_issue_id,), ("a",), ())
    assert three.search("a harbour winter 97").hits[0].owner_id == "a"


def test_a_link_that_took_the_place_of_another_is_that_one_again(three: Engine, shelf: Shelf) -> None:
    """With its strength and its time, which are a person's."""

    class Linker(Tidier):
        def plan(self, item: str) -> AgentPlan[DecayResult]:
            plan = super().plan(item)

            def apply(acts: ChangeRecorder) -> DecayResult:
                acts.link(Link("a", "b", "related", 0.9, acts.now))
                return plan.result

            return replace(plan, apply=apply)

    three.link("a", "b", strength=0.25)
    shelf.clock.now += 60.0
    before = dump(three)
    result = Linker(book=shelf).process_item("a")
    assert dump(three) != before
    undo(shelf.consolidation_runtime(), str(result.beads_issue_id))
    assert dump(three) == before


def test_a_run_is_undone_as_a_whole(three: Engine, shelf: Shelf) -> None:
    before = dump(three)
    agent = Tidier(book=shelf)
    agent.run()
    assert len(undo(shelf.consolidation_runtime(), agent.run_id).issues) == 3
    assert dump(three) == before
    with pytest.raises(NotFoundError, match="was undone already"):
        undo(shelf.consolidation_runtime(), agent.run_id)


def test_what_was_undone_is_not_done_again_until_the_memory_is_used(three: Engine, shelf: Shelf, clock: Clock) -> None:
    agent = Tidier(book=shelf)
    agent.run()
    undo(shelf.consolidation_runtime(), agent.run_id)
    assert [result.beads_issue_id for result in Tidier(book=shelf).run()] == [None] * 3
    assert live(three) == ["a", "b", "c"]
    clock.now += 1
    three.touch("b")
    Tidier(book=shelf).run()
    assert live(three) == ["a", "c"]


def test_a_proposal_that_somebody_closed_is_not_made_again(three: Engine, shelf: Shelf) -> None:
    result = Unsure(book=shelf).process_item("a")
    shelf.consolidation_runtime().issues.close(str(result.beads_issue_id), "no")
    assert Unsure(book=shelf).process_item("a").beads_issue_id is None


@pytest.mark.parametrize("id_", ["nothing", "commonplace-00000000"])
def test_what_is_no_issue_or_run_cannot_be_undone(shelf: Shelf, id_: str) -> None:
    with pytest.raises(NotFoundError, match="there is no issue or run"):
        undo(shelf.consolidation_runtime(), id_)


def test_an_issue_that_changed_nothing_cannot_be_undone(three: Engine, shelf: Shelf) -> None:
    result = Unsure(book=shelf).process_item("a")
    with pytest.raises(NotFoundError, match="changed nothing"):
        undo(shelf.consolidation_runtime(), str(result.beads_issue_id))


def test_a_memory_that_was_brought_back_is_not_undone_again(three: Engine, shelf: Shelf) -> None:
    result = Tidier(book=shelf).process_item("a")
    three.restore_memory("a")
    with pytest.raises(UsageError, match="was changed, archived or brought back since"):
        undo(shelf.consolidation_runtime(), str(result.beads_issue_id))


def test_an_agent_without_a_book_works_on_the_default_store(three: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    three.close()
    monkeypatch.setenv("COMMONPLACE_STORE", str(three.directory))
    assert [result.memory_id for result in Tidier().run()] == ["a", "b", "c"]
    with commonplace.open(three.directory) as book:
        assert live(book) == []


def test_a_step_restores_neither_a_text_nor_what_a_record_lacks() -> None:
    """An imported ledger may hold both; a restored text would pass by the search for secrets and by the index."""
    record = MemoryRecord("kept", use_count=2)
    values = {**record_values(replace(record, use_count=1, uses=(4.0,))), "content": "replaced", "unknown": 1}
    assert restored_record(values, record) == replace(record, use_count=1, uses=(4.0,))
