"""What an indexing run tells a person. It runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.escaping import harmless_line
from commonplace.cli.screen import counted

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.types import IndexReport

PROBLEMS_SHOWN = 10


def print_report(place: str, found: IndexReport, target: Console) -> None:
    """Print a line, what was passed over, and the first problems."""
    target.print(line_of(place, found))
    if found.skipped:
        target.print(
            "   skipped: " + ", ".join(f"{n:,} {why}" for why, n in sorted(found.skipped.items())), style="dim"
        )
    for problem in found.problems[:PROBLEMS_SHOWN]:
        target.print(f"   {harmless_line(problem.path)}: {harmless_line(problem.reason)}", style="dim")
    if len(found.problems) > PROBLEMS_SHOWN:
        target.print(f"   … and {len(found.problems) - PROBLEMS_SHOWN:,} more; --json lists all", style="dim")


def line_of(place: str, found: IndexReport) -> str:
    """Return what became of a directory's files, in one line."""
    files = found.added + found.changed + found.unchanged
    return (
        f"{harmless_line(place)}: {counted(files, 'file')} indexed "
        f"({found.added:,} new, {found.changed:,} changed, {found.unchanged:,} unchanged, {found.removed:,} removed), "
        f"{counted(found.passages, 'passage')} written in {found.seconds:.1f}s"
    )
