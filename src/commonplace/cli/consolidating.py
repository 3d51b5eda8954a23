"""The program that runs the agents of consolidation: `commonplace consolidate`, and `cortexgraph-consolidate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.failures import FAILURE, SUCCESS
from commonplace.cli.invocation import Command, Group, Invocation, pass_invocation
from commonplace.cli.program import Program
from commonplace.cli.repeating import duration
from commonplace.types.ledger import AGENTS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from commonplace.engine import Engine
    from commonplace.types import Progress

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
    from commonplace.cli.consolidating_rendering import print_run, texts_of
    from commonplace.cli.screen import console, print_json, progress_bars

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
    from commonplace.cli.consolidating_rendering import line_of
    from commonplace.cli.failures import report as tell
    from commonplace.cli.repeating import repeat, told_to_stop
    from commonplace.cli.screen import print_json, say
    from commonplace.engine.layout import WATCH_LOCK
    from commonplace.errors import CommonplaceError, StoreBusyError
    from commonplace.locks import FileLock

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
    from commonplace.cli.consolidating_rendering import print_status
    from commonplace.cli.screen import console, print_json

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
    from commonplace.cli.consolidating_rendering import print_runs
    from commonplace.cli.screen import console, print_json

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
    from commonplace.cli.consolidating_rendering import print_run, texts_of
    from commonplace.cli.failures import report as tell
    from commonplace.cli.screen import console, print_json, say
    from commonplace.consolidation.base import failure_of
    from commonplace.consolidation.running import RunReport, Wanted
    from commonplace.errors import CommonplaceError

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
    from commonplace.cli.consolidating_rendering import print_undone
    from commonplace.cli.screen import console, print_json

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
    from commonplace.cli.output import guard_output

    guard_output()
    program.main(prog_name="cortexgraph-consolidate")
