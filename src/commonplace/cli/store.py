"""The commands for a store as a whole: `init`, `doctor`, `backup`, `restore`, `export`, `import`, `sync` and `logs`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli.app import FAILURE, SUCCESS, Command, Group, pass_invocation
from commonplace.cli.input import beginning
from commonplace.cli.main import Invocation
from commonplace.cli.output import (
    console,
    counted,
    notify,
    print_json,
    print_some,
    print_under,
    progress_bars,
    say,
    size_of,
    tally,
    told,
)
from commonplace.dates.time import iso, moment_of
from commonplace.errors import CommonplaceError, NotFoundError
from commonplace.text.escaping import harmless_line
from commonplace.types import KINDS

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.exchange.backup import BackupReport
    from commonplace.exchange.export import ExportReport
    from commonplace.exchange.import_ import ImportReport
    from commonplace.exchange.restore import RestoreReport
    from commonplace.journal.report import SyncReport
    from commonplace.search.retrieval_log import RetrievalSummary
    from commonplace.settings import Settings


_SORTS: Final = (
    ("memories", "memory", "memories"),
    ("links", "link", ""),
    ("owners", "artifact or document", "artifacts or documents"),
    ("knowledge", "item of knowledge", "items of knowledge"),
    ("contexts", "context of an agent", "contexts of agents"),
    ("episodes", "episode", ""),
    ("entities", "entity", "entities"),
    ("relations", "fact", ""),
    ("issues", "issue", ""),
)

_FATES: Final[Mapping[str, str]] = {
    "added": "",
    "unchanged": "Here already",
    "replaced": "In place of what is here under the same id",
    "skipped": "Left out for what is here under the same id",
}


def print_backup(report: BackupReport, target: Console) -> None:
    """Print where a backup is, and what it holds."""
    target.print(f"Backed up to {harmless_line(str(report.path))} ({size_of(report.size)})", style="bold")
    pages = f" and {_pages(report.files)}" if report.files else ""
    print_under(f"The whole store{pages}, as of change {report.change:,}; read back, and right.", target, "dim")
    print_some([f"note: {notice}" for notice in report.notices], target, "yellow")


def print_restore(report: RestoreReport, source: Path, target: Console) -> None:
    """Print which store was made of which backup, and where the store is that was there before."""
    name = harmless_line(str(report.directory))
    target.print(f"Restored {name} from {harmless_line(str(source))}", style="bold")
    pages = f", with {_pages(report.files)}" if report.files else ""
    when = told(datetime.fromisoformat(report.backed_up_at))
    print_under(
        f"As it was on {when}, change {report.change:,}{pages}; the next search builds the index.", target, "dim"
    )
    if report.kept is not None:
        print_under(f"The store that was there is kept at {report.kept}", target)


def print_export(report: ExportReport, target: Console) -> None:
    """Print what was exported, and where it is."""
    what = _tally(asdict(report)) or "nothing"
    target.print(f"Exported {what} to {harmless_line(str(report.path))}", style="bold")
    versions = f"{counted(report.versions, 'version')} of the memories, " if report.versions > report.memories else ""
    print_under(f"{versions}{counted(report.lines + 1, 'line')}, {size_of(report.size)}", target, "dim")
    print_under(f"sha256 {report.sha256}", target, "dim")


def print_import(report: ImportReport, source: Path, target: Console) -> None:
    """Print what was taken in, what was here already, and what was left out and why."""
    sorts = {sort: getattr(report, sort) for sort, *_ in _SORTS}
    outcomes = {fate: _tally({sort: getattr(counts, fate) for sort, counts in sorts.items()}) for fate in _FATES}
    done = "Would import" if report.is_dry_run else "Imported"
    name = f"{harmless_line(str(source))} ({report.format})"
    target.print(f"{done} {outcomes['added'] or 'nothing new'} from {name}", style="bold")
    for fate, words in _FATES.items():
        if outcomes[fate] and words:
            print_under(f"{words}: {outcomes[fate]}", target)
    # Either all of them were replaced, or all were skipped.
    print_some(report.conflicts, target, level=2)
    if report.problems:
        print_under(f"{counted(len(report.problems), 'problem')}:", target, "yellow")
        print_some([str(problem) for problem in report.problems], target, "yellow", level=2)
    print_some([f"note: {notice}" for notice in report.notices], target, "dim")
    if report.is_dry_run:
        print_under("Nothing was written.", target, "dim")


def plain(report: Any) -> dict[str, Any]:
    """Return a report as JSON has it: paths as text, times as ISO 8601."""
    found: dict[str, Any] = _plain(asdict(report))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _tally(counts: Mapping[str, int]) -> str:
    return tally((counts[name], noun, plural) for name, noun, plural in _SORTS)


def _pages(count: int) -> str:
    return counted(count, "Markdown page")


_SHOWN, _SHOWN_CHARACTERS = 3, 80
MAX_LISTED = 10_000


@click.command(cls=Command, makes_store=True)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option("--move-memories", is_flag=True, help="Move the memories of your own store into it, without asking.")
@click.option("--anew", is_flag=True, help="Also where a store has lost its database: begin with an empty one.")
@pass_invocation
def init(invocation: Invocation, directory: Path, move_memories: bool, anew: bool) -> None:
    """Create the store of a project.

    It is `.commonplace` in DIRECTORY, and without one in the working directory; with --store it is created there.
    A store that exists is left as it is.

    What was remembered before there was a project is in your own store, and not found from here: it is moved if you
    agree.

    Where a store has lost its database, but its index or its pages are there, nothing is made: restore a backup. With
    --anew an empty store is made there, and takes in what stands on its Markdown pages.
    """
    from commonplace.settings.paths import DATABASE, STORE_NAME, find_store, refuse_links
    from commonplace.store.database import left_behind
    from commonplace.store.store import SqliteStore

    outer = None
    if invocation.store is None:
        project = directory.expanduser().absolute()
        invocation.store = str(project / STORE_NAME)
        outer = find_store(project.parent)
    loaded = invocation.settings()
    store = Path(loaded.store.path)
    existed = (store / DATABASE).is_file()
    is_lost = anew and bool(left_behind(store / DATABASE)) and not existed
    if is_lost:
        refuse_links(store)
        SqliteStore.create(store / DATABASE).close()
    with invocation.open(loaded, create=True) as engine:
        taken = engine.sync().added if is_lost else 0
    moved = _move_memories(invocation, loaded, is_agreed=move_memories)
    if outer is not None:
        notify((f"from here downward this store hides the one above, {harmless_line(str(outer))}",), invocation)
    shown = harmless_line(str(store))
    if invocation.as_json:
        print_json(
            {
                "store": str(store),
                "created": not existed,
                "hides": None if outer is None else str(outer),
                "moved": moved,
                "taken_in": taken,
            }
        )
    elif existed:
        say(f"There is already a store at {shown}; it was left as it is.")
    else:
        kept = f"\nTook in {counted(taken, 'memory', 'memories')} from its pages" if taken else ""
        say(f"Created {shown}{kept}\nNext: commonplace index build")
    if moved and not invocation.as_json:
        say(f"Moved {counted(moved, 'memory', 'memories')} here from your own store.")


def hidden_memories(settings: Settings) -> tuple[str, ...]:
    """Return the beginnings of the memories of the user's own store, which a project's store hides; none elsewhere.

    Raises:
        CommonplaceError: that store cannot be opened or read.
    """
    from commonplace.engine.open import open_engine
    from commonplace.settings.paths import DATABASE, user_store

    own = user_store()
    if settings.project is None or own == Path(settings.store.path) or not (own / DATABASE).is_file():
        return ()
    with open_engine(own, settings.store.namespace, None, settings=settings) as engine:
        return tuple(memory.content[:_SHOWN_CHARACTERS] for memory in engine.list(statuses=(), limit=MAX_LISTED))


def _move_memories(invocation: Invocation, loaded: Settings, *, is_agreed: bool) -> int:
    """Move the memories of the user's own store here where that is agreed; return how many were moved."""
    from commonplace.engine.open import open_engine
    from commonplace.settings.paths import user_store

    try:
        texts = hidden_memories(loaded)
    except CommonplaceError as error:
        if is_agreed:
            raise
        notify((f"your own store, {user_store()}, cannot be looked into: {error.args[0]}",), invocation)
        return 0
    if not texts:
        return 0
    told = f"your own store, {user_store()}, holds {counted(len(texts), 'memory', 'memories')} not found from here"
    if not is_agreed and not invocation.as_json and sys.stdin.isatty():
        for text in texts[:_SHOWN]:
            click.echo(f"  {harmless_line(text)}", err=True)
        is_agreed = click.confirm(f"{told[0].upper()}{told[1:]}. Move them here?", err=True)
    if not is_agreed:
        notify((f"{told}; `commonplace init --move-memories` moves them here",), invocation)
        return 0
    with (
        progress_bars(invocation) as progress,
        open_engine(user_store(), loaded.store.namespace, None, settings=loaded, progress=progress) as own,
        invocation.open(loaded, progress=progress) as here,
    ):
        return own.move_memories(here)


@click.command(cls=Command)
@click.option("--no-mend", is_flag=True, help="Only look; change nothing.")
@click.option("--secrets", is_flag=True, help="Also replace secrets in what is stored by placeholders.")
@pass_invocation
def doctor(invocation: Invocation, no_mend: bool, secrets: bool) -> int:
    """Check store, index and model data, and mend the index.

    A faulty index is rebuilt from the store, and what a forgetting had to leave is finished. With --secrets memories,
    documents, indexed files, Markdown pages and logs are searched for keys, tokens and passwords; where one is found a
    placeholder is written, and every copy in the store goes. The files that were indexed stay as they are. The exit
    code is 1 when something is wrong and was not mended.
    """

    loaded = invocation.settings()
    with progress_bars(invocation) as progress, invocation.open(loaded, progress=progress) as engine:
        found = engine.doctor(mend=not no_mend, secrets=secrets)
    code = SUCCESS if found.is_healthy else FAILURE
    if invocation.as_json:
        print_json({"store": loaded.store.path, "healthy": found.is_healthy, **asdict(found)})
        return code
    target = console()
    target.print(f"Store: {harmless_line(loaded.store.path)}")
    for part in found.checked:
        findings = [finding for finding in found.findings if finding.part == part]
        if not findings:
            target.print(f"  {part}: well", style="green")
        for finding in findings:
            fate = "mended" if finding.mended else f"not mended: {finding.remedy}"
            target.print(
                f"  {part}: {harmless_line(finding.problem)} ({fate})", style="yellow" if finding.mended else "red"
            )
        # What is mended in the store may still be open elsewhere.
        for remedy in dict.fromkeys(each.remedy for each in findings if each.mended and part == "secrets"):
            target.print(f"  {part}: now {remedy}", style="yellow")
    return code


_FILE = click.Path(path_type=Path, readable=False)
"""What may be read is for the engine to find out, whose message has a remedy."""


class _Format(click.Option):
    """An option whose help names all formats. They are looked up when somebody asks for help, and not before."""

    def make_metavar(self, ctx: click.Context) -> str:  # noqa: ARG002 - the name is click's
        from commonplace.exchange.read import FORMATS

        return f"[{'|'.join(FORMATS)}]"


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@pass_invocation
def backup(invocation: Invocation, /, file: Path) -> None:
    """Write a complete copy of the store to FILE.

    Others go on meanwhile. The copy is read back before it gets its name.
    """

    with progress_bars(invocation) as progress, invocation.open(invocation.settings(), progress=progress) as engine:
        report = engine.backup(file)
    _tell(invocation, report, partial(print_backup, report))


@click.command(cls=Command, makes_store=True)
@click.argument("file", type=_FILE)
@click.option("--replace", is_flag=True, help="Put it in the place of the store there, which is kept beside it.")
@pass_invocation
def restore(invocation: Invocation, /, file: Path, replace: bool) -> None:
    """Make a store of the backup FILE.

    It is the store that --store names, or the one found from here.

    Everything in it is checked before anything is touched. Close what has the store open.
    """
    import commonplace

    place = Path(invocation.settings().store.path)
    with progress_bars(invocation) as progress:
        report = commonplace.restore(file, place, replace=replace, progress=progress)
    _tell(invocation, report, partial(print_restore, report, file))


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@click.option("--kind", "kinds", multiple=True, type=click.Choice((*KINDS, "graph", "ledger")), help="Only this kind.")
@pass_invocation
def export(invocation: Invocation, /, file: Path, kinds: tuple[str, ...]) -> None:
    """Write the namespace to FILE as JSON lines.

    A FILE of - is standard output.
    """

    is_stream = str(file) == "-"
    # On a terminal, bars would be drawn among the lines.
    bars = nullcontext() if is_stream else progress_bars(invocation)
    with bars as progress, invocation.open(invocation.settings(), progress=progress) as engine:
        report = engine.export(sys.stdout if is_stream else file, kinds=kinds or None)
    if not is_stream:
        _tell(invocation, report, partial(print_export, report))


@click.command("import", cls=Command, makes_store=True)
@click.argument("path", type=_FILE)
@click.option("--format", "format_", default="auto", show_default=True, cls=_Format, help="Whose files they are.")
@click.option(
    "--on-conflict",
    default="refuse",
    show_default=True,
    type=click.Choice(("refuse", "skip", "replace")),
    help="Where something else has the same id.",
)
@click.option("--skip-problems", is_flag=True, help="Leave out what cannot be kept, in place of refusing everything.")
@click.option("--dry-run", is_flag=True, help="Check everything, and write nothing.")
@pass_invocation
def import_(invocation: Invocation, /, path: Path, format_: str, **options: Any) -> None:
    """Take in an export, or another system's memories.

    Nothing is written if anything is refused; importing twice changes nothing.
    """
    from commonplace.engine.exchange_api import refuse_unfit_import

    try:
        path.expanduser().stat()
    except OSError as error:
        remedy = "name a file or folder to import"
        raise NotFoundError(f"{path} cannot be read: {error.strerror}", remedy=remedy) from error
    loaded, is_real = invocation.settings(), not options["dry_run"]
    if is_real and not invocation.has_store(loaded):
        refuse_unfit_import(path, loaded, format_=format_, skip_problems=options["skip_problems"])
    with progress_bars(invocation) as progress, invocation.open(loaded, create=is_real, progress=progress) as engine:
        report = engine.import_(path, format=format_, **options)
    _tell(invocation, report, partial(print_import, report, path))


def _tell(invocation: Invocation, report: Any, show: Callable[[Console], None]) -> None:

    if invocation.as_json:
        print_json(plain(report))
    else:
        show(console())


@click.group(cls=Group)
def logs() -> None:
    """Sum up what the store's logs say."""


@logs.command(cls=Command)
@click.option(
    "--since", metavar="TIME", callback=beginning, help="Only from then on: ISO 8601, or words such as 'yesterday'."
)
@pass_invocation
def retrieval(invocation: Invocation, /, since: str | None) -> None:
    """Sum up searches: how long, how many in vain, what was found.

    It covers what was asked on the command line, over MCP and in CSP/1, as far back as log.max_bytes and log.keep let
    logs reach, in this namespace. What was found and then opened or touched counts as a use of it.
    """

    with invocation.open(invocation.settings()) as engine:
        found = engine.retrievals(since)
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        _print(found, console())


def _print(found: RetrievalSummary, target: Console) -> None:
    if found.first is None or found.last is None:
        target.print("No search is logged.")
        return
    first, last = told(moment_of(found.first)), told(moment_of(found.last))
    target.print(f"{counted(found.searches, 'search', 'searches')} from {first} to {last}")
    target.print(f"Found nothing: {found.nothing:.0%}, degraded: {found.degraded:.0%}")
    for method, took in found.methods.items():
        target.print(f"{method}: {took.searches:,}, p50 {took.p50_ms:.0f}ms, p95 {took.p95_ms:.0f}ms", style="bold")
        stages = ", ".join(f"{name} {ms:.1f}ms" for name, ms in took.stages.items())
        target.print(f"   {stages}" if stages else "   no stages", style="dim")
    if found.agents:
        target.print("By agent: " + ", ".join(f"{harmless_line(name)} {n:,}" for name, n in found.agents.items()))
    uses = counted(found.uses, "use")
    target.print(f"Then opened or touched: {uses}, after {found.followed:.0%} of the searches that found something")
    if found.most_found:
        target.print("Found most often:")
        for path, number in found.most_found:
            target.print(f"   {number:,}  {harmless_line(path)}")


@click.command(cls=Command)
@click.option("--accept", metavar="FILE", help="Take in this page, or the file in which it was kept, as it is.")
@pass_invocation
def sync(invocation: Invocation, accept: str | None) -> None:
    """Bring Markdown and memories together now.

    MEMORY.md and memory/ in the store are for people to read and edit; what was changed there is taken in, and what
    was remembered is written there. Other commands do the same by themselves, unless the setting memory.mirror is off.

    A page that looks damaged, because it holds NUL characters, breaks off, or lacks many entries at once, is written
    again from the store, and what stood there is kept beside it. If you meant it, --accept takes it in after all.
    """

    with invocation.open(invocation.settings()) as engine:
        report = engine.sync(accept=accept)
    if invocation.as_json:
        print_json(asdict(report))
        return
    console().print(_sentence(report))


def _sentence(report: SyncReport) -> str:

    taken = [
        f"{number:,} {what}"
        for number, what in (
            (report.added, "new"),
            (report.updated, "edited"),
            (report.archived, "archived"),
            (report.restored, "brought back"),
            (report.moved, "moved"),
        )
        if number
    ]
    parts = [f"{counted(report.pages_written, 'page')} written"] if report.pages_written else []
    if taken:
        parts.append(f"memories taken in: {', '.join(taken)}")
    if report.conflicts:
        parts.append(f"{counted(len(report.conflicts), 'version')} kept beside the pages")
    if not parts:
        return "Nothing was changed; the notes say why." if report.notices else "Markdown and memories agree."
    return f"{'; '.join(parts)}."
