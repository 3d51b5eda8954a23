"""Print what a backup, a restore, an export or an import did, for a person. It decides how a report looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commonplace.cli.memory_rendering import told
from commonplace.cli.screen import counted, size_of
from commonplace.cli.sentences import print_some, print_under, tally
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.exchange.backing_up import BackupReport
    from commonplace.exchange.exporting import ExportReport
    from commonplace.exchange.importing import ImportReport
    from commonplace.exchange.restoring import RestoreReport

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
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _tally(counts: Mapping[str, int]) -> str:
    return tally((counts[name], noun, plural) for name, noun, plural in _SORTS)


def _pages(count: int) -> str:
    return counted(count, "Markdown page")
