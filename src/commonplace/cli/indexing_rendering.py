"""What an indexing run tells a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.screen import counted
from commonplace.formats.front_matter import FAULT
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.types import FileProblem, IndexReport

PROBLEMS_SHOWN = 10


def print_report(place: str, found: IndexReport, target: Console) -> None:
    """Print a line, what was passed over, and the first problems."""
    target.print(line_of(place, found))
    if found.skipped:
        target.print(
            "   skipped: " + ", ".join(f"{n:,} {why}" for why, n in sorted(found.skipped.items())), style="dim"
        )
    of_front_matter = [problem for problem in found.problems if problem.reason.startswith(FAULT)]
    others = [problem for problem in found.problems if not problem.reason.startswith(FAULT)]
    for problem in others[:PROBLEMS_SHOWN]:
        target.print(f"   {_shown(problem)}", style="dim")
    if len(others) > PROBLEMS_SHOWN:
        target.print(f"   … and {len(others) - PROBLEMS_SHOWN:,} more; --json lists all", style="dim")
    if len(of_front_matter) == 1:
        target.print(f"   {_shown(of_front_matter[0])}", style="dim")
    elif of_front_matter:
        files = len({problem.path for problem in of_front_matter})
        target.print(
            f"   front matter of {counted(files, 'file')} is not used in full, such as {_shown(of_front_matter[0])}; "
            "--json lists all",
            style="dim",
        )


def _shown(problem: FileProblem) -> str:
    return f"{harmless_line(problem.path)}: {harmless_line(problem.reason)}"


def line_of(place: str, found: IndexReport) -> str:
    """Return what became of a directory's files, in one line."""
    files = found.added + found.changed + found.unchanged
    return (
        f"{harmless_line(place)}: {counted(files, 'file')} indexed "
        f"({found.added:,} new, {found.changed:,} changed, {found.unchanged:,} unchanged, {found.removed:,} removed), "
        f"{counted(found.passages, 'passage')} written in {found.seconds:.1f}s"
    )
