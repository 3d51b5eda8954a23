"""The command `sync`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from commonplace.cli.invocation import Command, Invocation, pass_invocation

if TYPE_CHECKING:
    from commonplace.mirror.report import SyncReport


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
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        report = engine.sync(accept=accept)
    if invocation.as_json:
        print_json(asdict(report))
        return
    console().print(_sentence(report))


def _sentence(report: SyncReport) -> str:
    from commonplace.cli.screen import counted

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
