"""The command `health`: examine memories and point out what a person may want to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from commonplace.cli import options
from commonplace.cli.app import FAILURE, SUCCESS, command
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import (
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
)

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.health.report import Finding, Health

_BAR_WIDTH: Final = 30
_HEADINGS: Final = {
    "duplicate": "Said more than once",
    "contradiction": "Cannot all be true",
    "overtaken": "Perhaps out of date",
    "stale": "Of files that have changed",
    "orphan": "Left alone",
    "junk": "Perhaps worth nothing",
}
"""What a kind of finding is called, in the order in which they are printed."""


@command()
@click.option("--golden", type=options.FILE, metavar="FILE", help="Queries with expected results; a miss exits with 1.")
def health(invocation: Invocation, /, golden: Path | None) -> int:
    """Find duplicates, contradictions and stale memories.

    It reports memories that say the same, facts that contradict each other, memories that a newer one may have
    overtaken, files that changed since a memory mentioned them, notes that lost their memory, and what may be
    worthless. It changes nothing.

    Example: commonplace health --golden golden.jsonl
    """
    with invocation.open() as engine:
        found = engine.health(golden)
        emit(invocation, found, lambda found: _rows(found, engine))
    return FAILURE if found.failed else SUCCESS


def _rows(found: Health, engine: Engine) -> Rows:
    said = (each for each in found.findings if each.kind != "contradiction")
    texts = memory_texts(engine, (id_ for each in said for id_ in each.ids))
    archived = found.statuses.get("archived", 0)
    apart = f", and {archived:,} archived (not counted)" if archived else ""
    yield Line(f"{counted(found.memories, 'memory', 'memories')}{apart}", "bold")
    for name, counts in (("tiers", found.tiers), ("status", found.statuses), ("pending issues", found.pending)):
        if parts := [f"{count:,} {each}" for each, count in counts.items() if count]:
            yield Line(f"{name}: {joined(parts)}", "", 1)
    if most := max(found.retention.values(), default=0):
        yield Line("retention of what is active:", "", 1)
        for end, number in found.retention.items():
            bar = "█" * round(_BAR_WIDTH * number / most)
            yield Line(f"      to {end} {number:>7,} {bar}", "" if number else "dim")
    for kind, heading in _HEADINGS.items():
        yield from _findings(heading, [each for each in found.findings if each.kind == kind], texts)
    if not found.findings:
        yield Line("\nNothing to look at.", "green")
    for answer in found.failed:
        missing = ", ".join(name for name in answer.golden.relevant if name not in answer.found)
        wrong = [f"does not find {missing}"] if missing else []
        wrong += [f"shows {', '.join(answer.shown)}"] if answer.shown else []
        yield Line(f"golden query {answer.golden.query!r} {' and '.join(wrong)}", "red", 1)
    if found.golden and not found.failed:
        count = counted(len(found.golden), "golden query", "golden queries")
        yield Line(f"{count}: each finds its expected results", "green", 1)


def _findings(heading: str, findings: Sequence[Finding], texts: Mapping[str, str]) -> Rows:
    if findings:
        yield Line(f"\n{heading}: {len(findings):,}", "bold")
    for each in findings[:MAX_LISTED]:
        yield Row(", ".join(each.ids), (each.why,))
        for id_ in each.ids:
            if id_ in texts:
                yield Beginning(texts[id_])
        if each.command:
            yield Line(each.command, "dim", 1)
    yield from more(len(findings))
