"""The command group `consolidate`, and the program `cortexgraph-consolidate` that the contract names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options
from commonplace.cli.app import (
    FAILURE,
    HELP_OPTIONS,
    SUCCESS,
    Command,
    Group,
    Program,
    ask,
    command,
    invocation_of,
    opened,
    report,
    shared_option,
)
from commonplace.cli.invocation import Invocation, guard_output
from commonplace.cli.output import (
    INDENT,
    MAX_LISTED,
    Beginning,
    Line,
    Row,
    Rows,
    counted,
    emit,
    joined,
    memory_texts,
    more,
    print_json,
    say,
    some,
)
from commonplace.cli.watch import repeat, until_stopped
from commonplace.errors import CommonplaceError, StoreBusyError
from commonplace.formats.escaping import harmless
from commonplace.types.ledger import AGENTS

if TYPE_CHECKING:
    from commonplace.consolidation.runner import ConsolidationRun, ConsolidationStatus, Outcome, RunReport
    from commonplace.consolidation.undo import Undone
    from commonplace.engine import Engine

_SHARED: Final = ("dry_run", "rate_limit")
_ID_FIELDS: Final = ("memory_id", "from_memory_id", "to_memory_id", "memory_ids", "source_ids", "new_memory_id")
_FINDINGS: Final = {
    "decay": ("stale memory", "stale memories"),
    "cluster": ("group of similar memories", "groups of similar memories"),
    "merge": ("merged memory", "merged memories"),
    "promote": ("memory to keep for good", "memories to keep for good"),
    "relations": ("related pair", "related pairs"),
}
_FATES: Final = {"applied": "done", "waiting": "waiting for you", "left": "left as it is"}
_PREDICTED: Final = {"applied": "would be done", "waiting": "would wait for you", "left": "would be left as it is"}
_DECAY_ACTIONS: Final = {
    "gc": "archive",
    "reinforce": "reinforce",
    "consolidate": "merge with others",
    "promote": "keep for good",
}


def _shared(heeded: Collection[str]) -> list[click.Parameter]:
    # What a command does not heed may still stand before or after its name, as the contract has it; its help is silent.
    return [
        shared_option(
            "dry_run",
            "--dry-run",
            is_flag=True,
            hidden="dry_run" not in heeded,
            help="Show a diff of every change; change nothing.",
        ),
        shared_option(
            "rate_limit",
            "--rate-limit",
            type=click.IntRange(0, 1_000_000),
            metavar="N",
            hidden="rate_limit" not in heeded,
            help="Maximum operations a minute; 0 is unlimited. [default: 100]",
        ),
    ]


class _Command(Command):
    """A command that takes the options of all agents, too; its help lists those that it heeds."""

    def __init__(self, *args: Any, heeds: Collection[str] = _SHARED, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*_shared(heeds), *self.params]


class _Agents(Group):
    """A group that takes the options of all agents, too."""

    command_class = _Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*_shared(_SHARED), *self.params]


class _AgentsProgram(Program, _Agents):
    """The same as a program of its own."""


def _texts(engine: Engine, done: RunReport) -> dict[str, str]:
    """Return the texts of the memories that a report names, by id, as far as they are shown and still there."""
    shown = (result for results in done.results.values() for result in results[:MAX_LISTED])
    return memory_texts(engine, (id_ for result in shown for id_ in _ids(result)))


def _ids(result: Any) -> Iterable[str]:
    for name in _ID_FIELDS:
        value = getattr(result, name, ())
        yield from (value,) if isinstance(value, str) else value


def _run(done: RunReport, texts: Mapping[str, str]) -> Rows:
    """Yield each agent's results with what the memories say, scores, reasons and diffs."""
    would = " (dry run)" if done.dry_run else ""
    for agent, results in done.results.items():
        yield Line(f"{agent}: {counted(len(results), *_FINDINGS[agent])}{would}", "bold")
        for result, outcome in zip(results[:MAX_LISTED], done.outcomes[agent], strict=False):
            yield from _RESULTS[agent](result, _fate(result, outcome, done), texts)
            if outcome.why:
                yield Line(f"why: {outcome.why}", "dim", 1)
        yield from more(len(results))
    for failure in done.errors[:MAX_LISTED]:
        place = f" at {failure.item}" if failure.item else ""
        yield Line(f"{failure.agent} failed{place}: {failure.error}", "red", 1)
    yield from more(len(done.errors))
    if done.skipped:
        yield Line(f"{counted(done.skipped, 'more was', 'more were')} checked and needed no change", "dim", 1)
    for query in done.lost:
        yield Line(f"lost: {query}", "red", 1)
    if done.lost:
        yield Line("Rolled back: a golden query no longer finds its expected result.", "bold red")
    elif done.dry_run:
        yield Line(f"The run would make {counted(done.applied, 'change')}.", "dim")
    elif done.applied:
        yield Line("Undo all of it:", "dim")
        yield Line(f"{INDENT}commonplace consolidate undo {done.run}", "dim")


def _fate(result: Any, outcome: Outcome, done: RunReport) -> str:
    """Return what became of a result, or would, and in which issue that is recorded."""
    fate = (_PREDICTED if done.dry_run else _FATES)[outcome.decision]
    if done.lost and outcome.decision == "applied":
        fate = "undone"
    return f"{fate}, issue {result.beads_issue_id}" if result.beads_issue_id else fate


def _decay(result: Any, fate: str, texts: Mapping[str, str]) -> Rows:
    known = (_DECAY_ACTIONS[result.action], f"retention {result.score:.2f}", f"urgency {result.urgency}", fate)
    yield Row(result.memory_id, known, texts.get(result.memory_id, ""))


def _cluster(result: Any, fate: str, texts: Mapping[str, str]) -> Rows:
    known = (f"cohesion {result.cohesion:.2f}", f"confidence {result.confidence:.2f}", fate)
    yield Row(f"{result.action} {len(result.memory_ids)}", known)
    for id_ in result.memory_ids:
        yield Beginning(texts.get(id_, id_))


def _merge(result: Any, fate: str, _: Mapping[str, str]) -> Rows:
    names = result.entities_preserved
    yield Row(
        result.new_memory_id,
        (f"of {len(result.source_ids)}", f"keeps {counted(names, 'name')}" if names else "", fate),
    )
    for line in result.content_diff.splitlines():
        yield Line(f"{INDENT}{harmless(line)}", {"+": "green", "-": "red", "@": "dim"}.get(line[:1], ""))


def _promotion(result: Any, fate: str, texts: Mapping[str, str]) -> Rows:
    known = (result.vault_path, joined([each.replace("_", " ") for each in result.criteria_met]), fate)
    yield Row(result.memory_id, known, texts.get(result.memory_id, ""))


def _relation(result: Any, fate: str, texts: Mapping[str, str]) -> Rows:
    strength = f"strength {result.strength:.2f}" if result.strength else "by similar texts alone"
    ends = (result.from_memory_id, result.to_memory_id)
    yield Row(" ↔ ".join(ends), (strength, f"confidence {result.confidence:.2f}", fate))
    yield Line(result.reasoning, "dim", 1)
    for id_ in ends:
        yield Beginning(texts.get(id_, ""))


_RESULTS: Final[Mapping[str, Callable[[Any, str, Mapping[str, str]], Rows]]] = {
    "decay": _decay,
    "cluster": _cluster,
    "merge": _merge,
    "promote": _promotion,
    "relations": _relation,
}


def _status(found: ConsolidationStatus) -> Rows:
    for agent, counts in found.agents.items():
        known = [f"{counts[name]:,} {name.replace('_', ' ')}" for name in counts if counts[name]]
        yield Row(agent, known or ["nothing pending"])
    left = found.rate_limit_remaining
    limit = "no limit on operations" if left is None else f"{counted(left, 'operation')} left this minute"
    yield f"\n{found.total_pending:,} pending in all; {limit}"


def _runs(found: Sequence[ConsolidationRun]) -> Rows:
    """Yield each run on a line: when, which agents, what came of it, and whether it can be undone."""
    for each in found:
        is_undone = each.applied and each.undone and not each.standing
        known = (
            f"{each.at.astimezone():%Y-%m-%d %H:%M:%S}",
            ", ".join(each.agents),
            f"{counted(each.applied, 'change')} applied",
            "undone" if is_undone else f"{each.undone:,} undone" if each.undone else "",
            f"{each.proposed:,} proposed" if each.proposed else "",
            counted(each.errors, "failure") if each.errors else "",
            "only its changes are known" if each.proposed is None else "",
        )
        yield Row(each.run, known)
    if any(each.standing for each in found):
        yield Line("\nUndo a run:", "dim")
        yield Line(f"{INDENT}commonplace consolidate undo RUN", "dim")
    elif not found:
        yield "no run has changed or proposed anything"


def _undone(undone: Undone) -> Rows:
    memories = counted(len(undone.memory_ids), "memory", "memories")
    yield Line(f"Undid {counted(len(undone.issues), 'change')} of {memories}", "bold")
    yield from some(undone.issues, "dim")
    yield from (Line(f"note: {notice}", "yellow", 1) for notice in undone.notices)


def _summary(done: RunReport) -> str:
    """Return one line for a run, with the time."""
    changes = counted(done.applied, "change")
    parts = [
        f"would apply {changes}" if done.dry_run else f"{changes} applied",
        counted(sum(map(len, done.results.values())), "result"),
        counted(len(done.errors), "failure") if done.errors else "",
        f"undone, since it lost {counted(len(done.lost), 'golden query', 'golden queries')}" if done.lost else "",
        f"run {done.run}",
    ]
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S} {', '.join(filter(None, parts))}"


@click.group(cls=_Agents)
def consolidate() -> None:
    """Archive, merge, promote and link memories.

    Five background agents archive stale memories, merge duplicates, promote what is used often and link related ones.
    They act when confident and otherwise file an issue in the ledger. Every change can be undone.

    Example: commonplace consolidate run --all --dry-run
    """


_golden = options.golden("a run that loses one is rolled back")


@command(consolidate)
@click.argument("agents", nargs=-1, metavar="[AGENT]...", type=click.Choice(AGENTS))
@click.option("--all", "is_all", is_flag=True, help="Run all agents, one after the other.")
@_golden
def run(invocation: Invocation, /, agents: tuple[str, ...], is_all: bool, golden: Path | None) -> int:
    """Run agents: decay, cluster, merge, promote, relations.

    The exit code is 1 if an item could not be processed, or a golden query no longer finds its expected result.

    Example: commonplace consolidate run decay merge --dry-run
    """
    if is_all == bool(agents):
        raise click.UsageError(f"Name agents ({', '.join(AGENTS)}), or give --all.")
    with opened(invocation, is_long=True) as engine:
        done = engine.consolidate(agents or None, invocation.dry_run, rate_limit=invocation.rate_limit, golden=golden)
        texts = {} if invocation.as_json else _texts(engine, done)
    emit(invocation, done, lambda done: _run(done, texts), has_notices=True)
    return FAILURE if done.errors or done.lost else SUCCESS


@command(consolidate)
@click.option(
    "--every", required=True, metavar="DURATION", callback=options.duration, help="How often: 30m, 1h, 1d, …."
)
@_golden
def watch(invocation: Invocation, /, every: float, golden: Path | None) -> int:
    """Run all agents repeatedly until stopped.

    Each run prints one line, or one JSON value with --json. A failed run is reported, and the next one comes at its
    time. One such process works on a store. SIGINT and SIGTERM let the current run finish.

    Example: commonplace consolidate watch --every 1h
    """
    from commonplace.engine.open import consolidation_lock

    def once() -> None:
        try:
            with invocation.open() as engine:
                done = engine.consolidate(None, invocation.dry_run, rate_limit=invocation.rate_limit, golden=golden)
        except CommonplaceError as error:
            report(error, invocation)
        else:
            print_json(done.to_dict(), indent=None) if invocation.as_json else say(_summary(done))
        finally:
            invocation.close()

    with invocation.open() as engine:
        lock = consolidation_lock(engine)
    if not lock.acquire(0.0):
        raise StoreBusyError("another process watches this store already", remedy="stop it first, or let it be")
    try:
        with until_stopped() as wait:
            repeat(once, every, wait)
    finally:
        lock.release()
    return SUCCESS


@ask(consolidate, _status, heeds=("rate_limit",))
@click.argument("agent", required=False, type=click.Choice(AGENTS))
def status(engine: Engine, /, agent: str | None) -> ConsolidationStatus:
    """Show what is pending, in progress or blocked.

    Example: commonplace consolidate status decay
    """
    return engine.consolidation_status(agent, rate_limit=invocation_of(click.get_current_context()).rate_limit)


@ask(consolidate, lambda found: _runs(found["runs"]), heeds=())
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Maximum number.")
def runs(engine: Engine, /, limit: int) -> Mapping[str, Any]:
    """List recent runs that changed or proposed something.

    Example: commonplace consolidate runs --limit 5
    """
    return {"runs": engine.consolidation_runs(limit)}


@command(consolidate)
@click.argument("issue", metavar="ISSUE")
def process(invocation: Invocation, /, issue: str) -> int:
    """Apply what ISSUE proposes, and close it.

    The confidence does not matter. On failure the issue is blocked with the error, and nothing is changed.

    Example: commonplace consolidate process cortexgraph-abc
    """
    from commonplace.consolidation.base import failure_of
    from commonplace.consolidation.runner import RunOptions, RunReport

    with invocation.open() as engine:
        agent = engine.ledger.get(issue).agent
        try:
            done = engine.process_issue(issue, invocation.dry_run, rate_limit=invocation.rate_limit)
        except CommonplaceError as error:
            if not invocation.as_json:
                report(error, invocation)
                return FAILURE
            failure = failure_of(agent, issue, error)
            done = RunReport(RunOptions().run, invocation.dry_run, {}, (failure,))
            say(f"error: {failure.error}", err=True)
        texts = {} if invocation.as_json else _texts(engine, done)
    emit(invocation, done, lambda done: _run(done, texts), has_notices=True)
    return FAILURE if done.errors else SUCCESS


@ask(consolidate, _undone, heeds=(), has_notices=True)
@click.argument("id_", metavar="ISSUE|RUN")
def undo(engine: Engine, /, id_: str) -> Undone:
    """Undo what ISSUE or RUN changed.

    Example: commonplace consolidate undo cortexgraph-abc
    """
    _refuse_dry_run()
    return engine.undo_consolidation(id_)


@ask(consolidate, _undone, heeds=(), has_notices=True)
@click.argument("memory", metavar="MEMORY")
def unmerge(engine: Engine, /, memory: str) -> Undone:
    """Undo the merge that made MEMORY.

    Example: commonplace consolidate unmerge 3f2a
    """
    _refuse_dry_run()
    return engine.unmerge(engine.resolve_id(memory))


def _refuse_dry_run() -> None:
    if invocation_of(click.get_current_context()).dry_run:
        raise click.UsageError("There is no preview of this; `commonplace ledger history` shows what was changed.")


program = _AgentsProgram(
    "cortexgraph-consolidate",
    commands=dict(consolidate.commands),
    help=f"{consolidate.help}\n\nThis is `commonplace consolidate` under the name that agents of CortexGraph expect.",
    context_settings=HELP_OPTIONS,
)


def main() -> None:
    """Run `cortexgraph-consolidate`."""
    guard_output()
    program.main(prog_name="cortexgraph-consolidate")
