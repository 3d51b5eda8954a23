"""The command group `consolidate`, and the program `cortexgraph-consolidate` that the contract names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import app, options
from commonplace.cli.invocation import Invocation, guard_output
from commonplace.cli.output import print_json, say
from commonplace.cli.rows import MAX_LISTED, Answer, Body, Line, Row, Rows, counted, emit, joined, listed, memory_texts
from commonplace.cli.watch import repeat, until_stopped
from commonplace.errors import CommonplaceError, StoreBusyError
from commonplace.formats.escaping import harmless
from commonplace.types.ledger import AGENTS

if TYPE_CHECKING:
    from commonplace.consolidation.base import Failure
    from commonplace.consolidation.runner import ConsolidationRun, Outcome, RunReport
    from commonplace.consolidation.undo import Undone
    from commonplace.engine import Engine

_ID_FIELDS: Final = ("memory_id", "from_memory_id", "to_memory_id", "memory_ids", "source_ids", "new_memory_id")
_FINDINGS: Final = {
    "decay": ("stale memory", "stale memories"),
    "cluster": ("group of similar memories", "groups of similar memories"),
    "merge": ("proposed merge", "proposed merges"),
    "promote": ("memory to keep for good", "memories to keep for good"),
    "relations": ("related pair", "related pairs"),
}
_FATES: Final = {"applied": "done", "waiting": "waiting for you", "left": "left as it is"}
_PREDICTED: Final = {"applied": "would be done", "waiting": "would wait for you", "left": "would be left as it is"}
_DECAY_ACTIONS: Final = {"gc": "archive", "consolidate": "merge with others", "promote": "keep for good"}


class _Command(app.Command):
    """A command that also accepts the options of all agents, before or after its name; help lists those in `heeds`."""

    def __init__(self, *args: Any, heeds: Collection[str] = ("dry_run", "rate_limit"), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        text, is_hidden = "Show a diff of every change; change nothing.", "dry_run" not in heeds
        dry_run = app.shared_option("dry_run", "--dry-run", is_flag=True, hidden=is_hidden, help=text)
        limit, text = click.IntRange(0, 1_000_000), "Maximum operations a minute; 0 is unlimited. [default: 100]"
        is_hidden = "rate_limit" not in heeds
        rate_limit = app.shared_option(
            "rate_limit", "--rate-limit", type=limit, metavar="N", hidden=is_hidden, help=text
        )
        self.params = [dry_run, rate_limit, *self.params]


class _Agents(_Command, app.Group):
    command_class = _Command


def _ids(result: Any) -> Iterable[str]:
    for name in _ID_FIELDS:
        value = getattr(result, name, ())
        yield from (value,) if isinstance(value, str) else value


def _texts(engine: Engine, report: RunReport) -> dict[str, str]:
    shown = (result for results in report.results.values() for result in results[:MAX_LISTED])
    return memory_texts(engine, (id_ for result in shown for id_ in _ids(result)))


def _print_run(invocation: Invocation, report: RunReport, texts: Mapping[str, str]) -> None:
    def row(agent: str, pair: tuple[Any, Outcome]) -> Rows:
        result, outcome = pair
        fate = (_PREDICTED if report.dry_run else _FATES)[outcome.decision]
        if report.lost and outcome.decision == "applied":
            fate = "undone"
        fate = f"{fate}, issue {result.beads_issue_id}" if result.beads_issue_id else fate
        name, properties = _summary(agent, result)
        yield Row(name, (*properties, fate))
        if agent == "merge":
            for line in result.content_diff.splitlines():
                yield Line(f"   {harmless(line)}", {"+": "green", "-": "red", "@": "dim"}.get(line[:1], ""))
        else:
            yield Line(getattr(result, "reasoning", ""), "dim", 1)
            yield from (Body(texts.get(id_, id_ if agent == "cluster" else "")) for id_ in _ids(result))
        if outcome.why:
            yield Line(f"why: {outcome.why}", "dim", 1)

    def failed(error: Failure) -> Line:
        location = f" at {error.item}" if error.item else ""
        return Line(f"{error.agent} failed{location}: {error.error}", "red", 1)

    def rows() -> Rows:
        suffix = " (dry run)" if report.dry_run else ""
        for agent, results in report.results.items():
            yield Line(f"{agent}: {counted(len(results), *_FINDINGS[agent])}{suffix}", "bold")
            pairs = list(zip(results, report.outcomes[agent], strict=False))
            yield from listed(pairs, partial(row, agent), limit=MAX_LISTED)
        yield from listed(report.errors, failed, limit=MAX_LISTED)
        if report.skipped:
            yield Line(f"{counted(report.skipped, 'more was', 'more were')} checked and needed no change", "dim", 1)
        yield from (Line(f"lost: {query}", "red", 1) for query in report.lost)
        if report.lost:
            yield Line("Rolled back: a golden query no longer finds its expected result.", "bold red")
        elif report.dry_run:
            yield Line(f"The run would make {counted(report.applied, 'change')}.", "dim")
        elif report.applied:
            yield Line("Undo all of it:", "dim")
            yield Line(f"   commonplace consolidate undo {report.run}", "dim")

    emit(invocation, report, rows(), has_notices=True)


def _summary(agent: str, result: Any) -> tuple[str, Sequence[str]]:
    match agent:
        case "decay":
            action, urgency = _DECAY_ACTIONS.get(result.action, result.action), f"urgency {result.urgency}"
            return result.memory_id, (action, f"retention {result.score:.2f}", urgency)
        case "cluster":
            name = f"{result.action} {len(result.memory_ids)}"
            return name, (f"cohesion {result.cohesion:.2f}", f"confidence {result.confidence:.2f}")
        case "merge":
            preserved = f"keeps {counted(result.entities_preserved, 'name')}" if result.entities_preserved else ""
            return result.new_memory_id, (f"of {len(result.source_ids)}", preserved)
        case "promote":
            criteria = joined([criterion.replace("_", " ") for criterion in result.criteria_met])
            return result.memory_id, (result.vault_path, criteria)
    strength = f"strength {result.strength:.2f}" if result.strength else "by similar texts alone"
    name = f"{result.from_memory_id} ↔ {result.to_memory_id}"
    return name, (strength, f"confidence {result.confidence:.2f}")


def _undone(undone: Undone) -> Rows:
    if undone.issues and undone.memory_ids:
        memories = counted(len(undone.memory_ids), "memory", "memories")
        yield Line(f"Undid {counted(len(undone.issues), 'change')} of {memories}", "bold")
    yield from listed(undone.issues, lambda issue: Line(issue, "dim", 1), limit=MAX_LISTED)
    yield from (Line(f"note: {notice}", "yellow", 1) for notice in undone.notices)


@click.group(cls=_Agents)
def consolidate() -> None:
    """Archive, merge, promote and link memories.

    Five agents change memories when confident, and otherwise propose the change. Each change and proposal is an issue
    in the ledger; every change can be undone.

    Example: commonplace consolidate run --all --dry-run
    """


_golden = options.golden("a run that loses one is rolled back")


@app.command(consolidate, _golden)
@click.argument("agents", nargs=-1, metavar="[AGENT]...", type=click.Choice(AGENTS))
@click.option("--all", "is_all", is_flag=True, help="Run all agents, one after the other.")
def run(invocation: Invocation, /, agents: tuple[str, ...], is_all: bool, golden: Path | None) -> int:
    """Run agents: decay, cluster, merge, promote, relations.

    The exit code is 1 if an item could not be processed, or a golden query no longer finds its expected result.

    Example: commonplace consolidate run decay merge --dry-run
    """
    if is_all == bool(agents):
        raise click.UsageError(f"Name agents ({', '.join(AGENTS)}), or give --all.")
    with app.opened(invocation, is_long=True) as engine:
        report = engine.consolidate(agents or None, invocation.dry_run, rate_limit=invocation.rate_limit, golden=golden)
        texts = {} if invocation.as_json else _texts(engine, report)
    _print_run(invocation, report, texts)
    return app.FAILURE if report.errors or report.lost else app.SUCCESS


@app.command(consolidate)
@click.option("--every", required=True, metavar="DURATION", callback=options.duration, help="How often: 30m, 1h, 1d, …")
@_golden
def watch(invocation: Invocation, /, every: float, golden: Path | None) -> int:
    """Run all agents repeatedly until stopped.

    Each run prints one line, or one JSON value with --json. A failed run does not end it. A store can have one such
    process. SIGINT and SIGTERM let the current run finish.

    Example: commonplace consolidate watch --every 1h
    """
    from commonplace.engine.open import consolidation_lock

    def once() -> None:
        try:
            with invocation.open() as engine:
                report = engine.consolidate(None, invocation.dry_run, rate_limit=invocation.rate_limit, golden=golden)
        except CommonplaceError as error:
            app.report(error, invocation)
        else:
            changes = counted(report.applied, "change")
            lost = counted(len(report.lost), "golden query", "golden queries")
            parts = [
                f"would apply {changes}" if report.dry_run else f"{changes} applied",
                counted(sum(map(len, report.results.values())), "result"),
                counted(len(report.errors), "failure") if report.errors else "",
                f"undone, since it lost {lost}" if report.lost else "",
                f"run {report.run}",
            ]
            line = f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S} {', '.join(filter(None, parts))}"
            print_json(report.to_dict(), indent=None) if invocation.as_json else say(line)
        finally:
            invocation.close()

    with invocation.open() as engine:
        lock = consolidation_lock(engine)
    if not lock.acquire(0.0):
        raise StoreBusyError("another process watches this store already", remedy="stop it first")
    try:
        with until_stopped() as wait:
            repeat(once, every, wait)
    finally:
        lock.release()
    return app.SUCCESS


@app.ask(consolidate, heeds=("rate_limit",))
@click.argument("agent", required=False, type=click.Choice(AGENTS))
def status(engine: Engine, /, agent: str | None) -> Answer:
    """Show what is pending, in progress or blocked.

    Example: commonplace consolidate status decay
    """
    rate_limit = app.invocation_of(click.get_current_context()).rate_limit
    state = engine.consolidation_status(agent, rate_limit=rate_limit)
    rows: list[Row | str] = []
    for name, counts in state.agents.items():
        numbers = [f"{number:,} {kind.replace('_', ' ')}" for kind, number in counts.items() if number]
        rows.append(Row(name, numbers or ["nothing pending"]))
    remaining = state.rate_limit_remaining
    limit = "no limit on operations" if remaining is None else f"{counted(remaining, 'operation')} left this minute"
    return state, [*rows, f"\n{state.total_pending:,} pending in all; {limit}"]


@app.ask(consolidate, heeds=())
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Maximum number.")
def runs(engine: Engine, /, limit: int) -> Answer:
    """List recent runs that changed or proposed something.

    Example: commonplace consolidate runs --limit 5
    """
    recent = engine.consolidation_runs(limit)

    def row(run: ConsolidationRun) -> Row:
        is_undone = run.applied and run.undone and not run.standing
        properties = (
            f"{run.at.astimezone():%Y-%m-%d %H:%M:%S}",
            ", ".join(run.agents),
            f"{counted(run.applied, 'change')} applied",
            "undone" if is_undone else f"{run.undone:,} undone" if run.undone else "",
            f"{run.proposed:,} proposed" if run.proposed else "",
            counted(run.errors, "failure") if run.errors else "",
            "only its changes are known" if run.proposed is None else "",
        )
        return Row(run.run, properties)

    rows = [*listed(recent, row, none="no run has changed or proposed anything")]
    if any(entry.standing for entry in recent):
        rows += [Line("\nUndo a run:", "dim"), Line("   commonplace consolidate undo RUN", "dim")]
    return {"runs": recent}, rows


@app.command(consolidate, click.argument("issue", metavar="ISSUE"))
def process(invocation: Invocation, /, issue: str) -> int:
    """Apply what ISSUE proposes, and close it.

    The confidence does not matter. On failure the issue is blocked with the error, and nothing is changed.

    Example: commonplace consolidate process commonplace-115e671d
    """
    from commonplace.consolidation.base import failure_of
    from commonplace.consolidation.runner import RunOptions, RunReport

    with invocation.open() as engine:
        agent = engine.ledger.get(issue).agent
        try:
            report = engine.process_issue(issue, invocation.dry_run, rate_limit=invocation.rate_limit)
        except CommonplaceError as error:
            if not invocation.as_json:
                app.report(error, invocation)
                return app.FAILURE
            failure = failure_of(agent, issue, error)
            report = RunReport(RunOptions().run, invocation.dry_run, {}, (failure,))
            say(f"error: {failure.error}", err=True)
        texts = {} if invocation.as_json else _texts(engine, report)
    _print_run(invocation, report, texts)
    return app.FAILURE if report.errors else app.SUCCESS


@app.ask(consolidate, click.argument("id_", metavar="ISSUE|RUN"), heeds=(), has_notices=True)
def undo(engine: Engine, /, id_: str) -> Answer:
    """Undo what ISSUE or RUN changed.

    Example: commonplace consolidate undo commonplace-115e671d
    """
    _refuse_dry_run()
    undone = engine.undo_consolidation(id_)
    return undone, _undone(undone)


@app.ask(consolidate, click.argument("memory", metavar="MEMORY"), heeds=(), has_notices=True)
def unmerge(engine: Engine, /, memory: str) -> Answer:
    """Undo the merge that made MEMORY.

    Example: commonplace consolidate unmerge 3f2a
    """
    _refuse_dry_run()
    undone = engine.unmerge(engine.resolve_id(memory))
    return undone, _undone(undone)


def _refuse_dry_run() -> None:
    if app.invocation_of(click.get_current_context()).dry_run:
        raise click.UsageError("There is no preview of this; `commonplace ledger history` shows what was changed.")


program = _Agents(
    "cortexgraph-consolidate",
    commands=dict(consolidate.commands),
    help=f"{consolidate.help}\n\nThis is `commonplace consolidate` under the name that agents of CortexGraph expect.",
    context_settings=app.HELP_OPTIONS,
)


def main() -> None:
    """Run `cortexgraph-consolidate`."""
    guard_output()
    program.main(prog_name="cortexgraph-consolidate")
