"""The command group `consolidate`, and the program `cortexgraph-consolidate` that the contract names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.app import FAILURE, SUCCESS, Command, Group, Program, pass_invocation
from commonplace.cli.app import report as tell
from commonplace.cli.input import duration
from commonplace.cli.main import Invocation, guard_output
from commonplace.cli.output import (
    INDENT,
    LISTED,
    console,
    counted,
    joined,
    print_beginning,
    print_head,
    print_json,
    print_more,
    print_under,
    progress_bars,
    say,
)
from commonplace.cli.watch import repeat, told_to_stop
from commonplace.errors import CommonplaceError, NotFoundError, StoreBusyError
from commonplace.text.escaping import harmless, harmless_line
from commonplace.types import Progress
from commonplace.types.ledger import AGENTS

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.consolidation.runner import ConsolidationRun, ConsolidationStatus, Outcome, RunReport
    from commonplace.consolidation.undo import Undone
    from commonplace.engine import Engine


_NAMES = ("memory_id", "from_memory_id", "to_memory_id", "memory_ids", "source_ids", "new_memory_id")
_HEADINGS = {
    "decay": "fading",
    "cluster": "saying alike",
    "merge": "merging",
    "promote": "kept for good",
    "relations": "hanging together",
}


def texts_of(engine: Engine, report: RunReport) -> dict[str, str]:
    """Return the words of the memories that a report names, by id, as far as they are shown and still there."""
    texts: dict[str, str] = {}
    for results in report.results.values():
        for result in results[:LISTED]:
            for id_ in _ids(result):
                with suppress(NotFoundError):
                    texts[id_] = engine.get(id_, touch=False).content
    return texts


_FATES = {"applied": "done", "waiting": "waits for you", "left": "left as it is"}
_PREDICTED = {"applied": "would be done", "waiting": "would wait for you", "left": "would be left as it is"}


def _ids(result: Any) -> Iterable[str]:
    for name in _NAMES:
        value = getattr(result, name, ())
        yield from (value,) if isinstance(value, str) else value


def print_run(report: RunReport, texts: Mapping[str, str], target: Console) -> None:
    """Print what was done, or would be: each agent's results with what the memories say, scores, reasons and diffs."""
    would = " (nothing is changed)" if report.dry_run else ""
    for agent, results in report.results.items():
        target.print(f"{agent} · {_HEADINGS[agent]}: {_what(agent, len(results))}{would}", style="bold")
        for result, outcome in zip(results[:LISTED], report.outcomes[agent], strict=False):
            _PRINTERS[agent](result, _fate(result, outcome, report), texts, target)
            if outcome.why:
                print_under(f"why: {harmless_line(outcome.why)}", target, "dim")
        print_more(len(results), target)
    for failure in report.errors[:LISTED]:
        place = f" at {harmless_line(failure.item)}" if failure.item else ""
        print_under(f"{failure.agent} failed{place}: {harmless_line(failure.error)}", target, "red")
    print_more(len(report.errors), target)
    if report.skipped:
        more = counted(report.skipped, "more was", "more were")
        print_under(f"{more} looked at, and there was nothing to be done", target, "dim")
    for query in report.lost:
        print_under(f"lost: {harmless_line(query)}", target, "red")
    if report.lost:
        target.print("The run lost what was found before, and was undone.", style="bold red")
    elif report.dry_run:
        target.print(f"The run would make {counted(report.applied, 'change')}.", style="dim")
    elif report.applied:
        target.print("Undo all of it:", style="dim")
        target.print(f"{INDENT}commonplace consolidate undo {report.run}", style="dim")


def _what(agent: str, count: int) -> str:
    if agent in ("cluster",):
        return counted(count, "group")
    return counted(count, "pair") if agent == "relations" else counted(count, "memory", "memories")


def _fate(result: Any, outcome: Outcome, report: RunReport) -> str:
    """Say what became of it, or would, and in which issue that is told."""
    fate = (_PREDICTED if report.dry_run else _FATES)[outcome.decision]
    if report.lost and outcome.decision == "applied":
        fate = "undone"
    return f"{fate}, issue {result.beads_issue_id}" if result.beads_issue_id else fate


def _print_decay(result: Any, fate: str, texts: Mapping[str, str], target: Console) -> None:
    verb = {"gc": "archive", "reinforce": "reinforce", "consolidate": "merge with others", "promote": "keep for good"}
    told = (verb[result.action], f"retention {result.score:.2f}", f"urgency {result.urgency}", fate)
    print_head(result.memory_id, told, target)
    print_beginning(texts.get(result.memory_id, ""), target)


def _print_cluster(result: Any, fate: str, texts: Mapping[str, str], target: Console) -> None:
    told = (f"cohesion {result.cohesion:.2f}", f"confidence {result.confidence:.2f}", fate)
    print_head(f"{result.action} {len(result.memory_ids)}", told, target)
    for id_ in result.memory_ids:
        print_beginning(texts.get(id_, id_), target)


def _print_merge(result: Any, fate: str, _texts: Mapping[str, str], target: Console) -> None:
    names = result.entities_preserved
    told = (f"of {len(result.source_ids)}", f"keeps {counted(names, 'name')}" if names else "", fate)
    print_head(result.new_memory_id, told, target)
    for line in result.content_diff.splitlines():
        style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
        target.print(f"{INDENT}{harmless(line)}", style=style)


def _print_promotion(result: Any, fate: str, texts: Mapping[str, str], target: Console) -> None:
    told = (result.vault_path, joined([each.replace("_", " ") for each in result.criteria_met]), fate)
    print_head(result.memory_id, told, target)
    print_beginning(texts.get(result.memory_id, ""), target)


def _print_relation(result: Any, fate: str, texts: Mapping[str, str], target: Console) -> None:
    strength = f"strength {result.strength:.2f}" if result.strength else "by similar texts alone"
    told = (strength, f"confidence {result.confidence:.2f}", fate)
    print_head(f"{result.from_memory_id} ↔ {result.to_memory_id}", told, target)
    print_under(harmless_line(result.reasoning), target, "dim")
    for id_ in (result.from_memory_id, result.to_memory_id):
        print_beginning(texts.get(id_, ""), target)


_PRINTERS = {
    "decay": _print_decay,
    "cluster": _print_cluster,
    "merge": _print_merge,
    "promote": _print_promotion,
    "relations": _print_relation,
}


def print_status(found: ConsolidationStatus, target: Console) -> None:
    """Print what waits for each agent."""
    for agent, counts in found.agents.items():
        known = [f"{counts[name]:,} {name.replace('_', ' ')}" for name in counts if counts[name]]
        print_head(agent, known or ["nothing waits"], target)
    left = found.rate_limit_remaining
    limit = "no limit on operations" if left is None else f"{counted(left, 'operation')} left this minute"
    target.print(f"\n{found.total_pending:,} pending in all; {limit}")


def print_runs(found: Sequence[ConsolidationRun], target: Console) -> None:
    """Print each run on a line: when, which agents, what came of it, and whether it can be undone."""
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
        print_head(each.run, known, target)
    if any(each.standing for each in found):
        target.print("\nUndo what stands of one:", style="dim")
        target.print(f"{INDENT}commonplace consolidate undo RUN", style="dim")
    elif not found:
        target.print("no run has changed or proposed anything")


def print_undone(undone: Undone, target: Console) -> None:
    """Print what is as it was before."""
    target.print(
        f"Undid {counted(len(undone.issues), 'change')} of {counted(len(undone.memory_ids), 'memory', 'memories')}",
        style="bold",
    )
    for id_ in undone.issues[:LISTED]:
        print_under(id_, target, "dim")
    print_more(len(undone.issues), target)
    for notice in undone.notices:
        print_under(f"note: {harmless_line(notice)}", target, "yellow")


def line_of(report: RunReport) -> str:
    """Return one line that tells what a run came to, with the time."""
    found = sum(map(len, report.results.values()))
    changes = counted(report.applied, "change")
    parts = [
        f"would apply {changes}" if report.dry_run else f"{changes} applied",
        f"{counted(found, 'result')}",
        f"{counted(len(report.errors), 'failure')}" if report.errors else "",
        f"undone, since it lost {counted(len(report.lost), 'golden query', 'golden queries')}" if report.lost else "",
        f"run {report.run}",
    ]
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S} {', '.join(part for part in parts if part)}"


_SHARED = ("dry_run", "rate_limit")
_CHOICES = f"Which of the agents {', '.join(AGENTS)}"


@dataclass(slots=True)
class _Choices:
    """The options that stand before or after the name of a command; the later one wins."""

    dry_run: bool = False
    rate_limit: int | None = None


def _choices(context: click.Context) -> _Choices:
    return context.find_root().meta.setdefault("commonplace.consolidating", _Choices())  # type: ignore[no-any-return]


def _keep(name: str) -> Any:
    def callback(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None and value is not False:
            setattr(_choices(context), name, value)

    return callback


def _shared(heeded: Collection[str]) -> list[click.Parameter]:
    # What a command does not heed may still stand before or after its name, as the contract has it; its help is silent.
    return [
        click.Option(
            ["--dry-run"],
            is_flag=True,
            expose_value=False,
            callback=_keep("dry_run"),
            hidden="dry_run" not in heeded,
            help="Preview, and change nothing.",
        ),
        click.Option(
            ["--rate-limit"],
            type=click.IntRange(0, 1_000_000),
            metavar="N",
            expose_value=False,
            callback=_keep("rate_limit"),
            hidden="rate_limit" not in heeded,
            help="The most operations a minute, 100 unless set otherwise; 0 is without limit.",
        ),
    ]


_golden_option = click.option(
    "--golden",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Queries that must find what they found; a run that loses one is undone.",
)


class _Command(Command):
    """A command that takes the options of all agents, too; its help tells of those that it heeds."""

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


@click.command(cls=_Command)
@click.argument("agents", nargs=-1, metavar="[AGENT]...", type=click.Choice(AGENTS))
@click.option("--all", "is_all", is_flag=True, help="Run all agents, one after the other.")
@_golden_option
@pass_invocation
def run(invocation: Invocation, /, agents: tuple[str, ...], is_all: bool, golden: Path | None) -> int:
    """Run agents: decay, cluster, merge, promote, relations.

    Whatever they change can be undone with `undo`, by the issue or the whole run. The exit code is 1 where an item
    could not be processed, or where a golden query was lost.
    """

    if is_all == bool(agents):
        raise click.UsageError(f"Name agents ({', '.join(AGENTS)}), or give --all.")
    chosen = _choices(click.get_current_context())
    with progress_bars(invocation) as progress, _open(invocation, progress) as engine:
        report = engine.consolidate(agents or None, chosen.dry_run, rate_limit=chosen.rate_limit, golden=golden)
        texts = None if invocation.as_json else texts_of(engine, report)
    if texts is None:
        print_json(report.to_dict())
    else:
        print_run(report, texts, console())
    return FAILURE if report.errors or report.lost else SUCCESS


@click.command(cls=_Command)
@click.option("--every", required=True, metavar="DURATION", callback=duration, help="How often: 30m, 1h, 1d, ….")
@_golden_option
@pass_invocation
def watch(invocation: Invocation, /, every: float, golden: Path | None) -> int:
    """Run all agents again and again, until it is stopped.

    One line tells of each run, with --json one JSON value. A run that fails is told on standard error, and the next one
    comes at its time. Only one such process works on a store. SIGINT and SIGTERM let the run under way end first.
    """
    from commonplace.locks import FileLock
    from commonplace.settings.paths import WATCH_LOCK

    chosen = _choices(click.get_current_context())

    def once() -> None:
        try:
            with _open(invocation) as engine:
                report = engine.consolidate(None, chosen.dry_run, rate_limit=chosen.rate_limit, golden=golden)
        except CommonplaceError as error:
            tell(error, invocation)
        else:
            if invocation.as_json:
                print_json(report.to_dict(), indent=None)
            else:
                say(line_of(report))
        finally:
            invocation.close()

    with _open(invocation) as engine:
        lock = FileLock(engine.directory / WATCH_LOCK)
    if not lock.acquire(0.0):
        raise StoreBusyError("another process watches this store already", remedy="stop it first, or let it be")
    try:
        with told_to_stop() as wait:
            repeat(once, every, wait)
    finally:
        lock.release()
    return SUCCESS


@click.command(cls=_Command, heeds=("rate_limit",))
@click.argument("agent", required=False, type=click.Choice(AGENTS))
@pass_invocation
def status(invocation: Invocation, /, agent: str | None) -> None:
    """Say what waits, is in progress or blocked."""

    with _open(invocation) as engine:
        found = engine.consolidation_status(agent, rate_limit=_choices(click.get_current_context()).rate_limit)
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        print_status(found, console())


@click.command(cls=_Command, heeds=())
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many at most.")
@pass_invocation
def runs(invocation: Invocation, /, limit: int) -> None:
    """List the last runs, to find what to undo.

    The latest comes first. Runs that came to nothing and dry runs are left out: they wrote nothing.
    """

    with _open(invocation) as engine:
        found = engine.consolidation_runs(limit)
    if invocation.as_json:
        print_json({"runs": [each.to_dict() for each in found]})
    else:
        print_runs(found, console())


@click.command(cls=_Command)
@click.argument("issue", metavar="ISSUE")
@pass_invocation
def process(invocation: Invocation, /, issue: str) -> int:
    """Do what ISSUE proposes, and close it.

    It is done whatever the confidence. Where it fails, the issue is blocked with the error, and nothing is changed.
    """
    from commonplace.consolidation.base import failure_of
    from commonplace.consolidation.runner import RunReport, Wanted

    chosen = _choices(click.get_current_context())
    with _open(invocation) as engine:
        agent = engine.ledger.get(issue).agent
        try:
            report = engine.process_issue(issue, chosen.dry_run, rate_limit=chosen.rate_limit)
        except CommonplaceError as error:
            if not invocation.as_json:
                tell(error, invocation)
                return FAILURE
            failure = failure_of(agent, issue, error)
            report = RunReport(Wanted().run, chosen.dry_run, {}, (failure,))
            say(f"error: {failure.error}", err=True)
        texts = None if invocation.as_json else texts_of(engine, report)
    if texts is None:
        print_json(report.to_dict())
    else:
        print_run(report, texts, console())
    return FAILURE if report.errors else SUCCESS


@click.command(cls=_Command, heeds=())
@click.argument("id_", metavar="ISSUE|RUN")
@pass_invocation
def undo(invocation: Invocation, /, id_: str) -> None:
    """Undo what ISSUE or RUN changed."""
    _print_undone(invocation, lambda engine: engine.undo_consolidation(id_))


@click.command(cls=_Command, heeds=())
@click.argument("memory", metavar="MEMORY")
@pass_invocation
def unmerge(invocation: Invocation, /, memory: str) -> None:
    """Undo the merge that made MEMORY."""
    _print_undone(invocation, lambda engine: engine.unmerge(engine.resolve_id(memory)))


def _print_undone(invocation: Invocation, undo: Any) -> None:

    if _choices(click.get_current_context()).dry_run:
        raise click.UsageError("There is no preview of this; `commonplace ledger history` tells what was changed.")
    with _open(invocation) as engine:
        undone = undo(engine)
    if invocation.as_json:
        print_json(undone.to_dict())
    else:
        print_undone(undone, console())


def _open(invocation: Invocation, progress: Progress | None = None) -> Engine:
    return invocation.open(invocation.settings(), progress=progress)


_COMMANDS: Mapping[str, click.Command] = {
    "run": run,
    "status": status,
    "runs": runs,
    "process": process,
    "undo": undo,
    "unmerge": unmerge,
    "watch": watch,
}

_HELP = """Let memories fade, merge, rise and find each other.

Agents look for memories to be consolidated. What they are sure of they do; the rest they propose as issues of the
ledger. Everything they do can be undone.
"""

consolidate = _Agents("consolidate", commands=dict(_COMMANDS), help=_HELP)
program = _AgentsProgram(
    "cortexgraph-consolidate",
    commands=dict(_COMMANDS),
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
"""The same as `consolidate`, under the name that the contract gives it."""


def main() -> None:
    """Run `cortexgraph-consolidate`."""
    guard_output()
    program.main(prog_name="cortexgraph-consolidate")
