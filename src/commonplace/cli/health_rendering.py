"""Print how healthy memories are, for a person. It decides how things look, never what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from commonplace.cli.screen import counted
from commonplace.cli.sentences import LISTED, joined, print_beginning, print_head, print_more, print_under
from commonplace.formats.health_page import HEADINGS
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.health.report import Finding, Health

_WIDTH: Final = 30


def print_health(found: Health, texts: Mapping[str, str], target: Console) -> None:
    """Print counts, then the first findings of each kind with what the memories say."""
    archived = found.statuses.get("archived", 0)
    apart = f", and {archived:,} archived, counted apart" if archived else ""
    target.print(f"{counted(found.memories, 'memory', 'memories')}{apart}", style="bold")
    for name, counts in (("tiers", found.tiers), ("status", found.statuses), ("issues that wait", found.pending)):
        parts = [f"{count:,} {each}" for each, count in counts.items() if count]
        if parts:
            print_under(f"{name}: {joined(parts)}", target)
    most = max(found.retention.values(), default=0)
    if most:
        print_under("retention of what is active:", target)
    for end, count in found.retention.items() if most else ():
        bar = "█" * round(_WIDTH * count / most)
        target.print(f"      to {end} {count:>7,} {bar}", style="" if count else "dim")
    for kind in HEADINGS:
        _print_findings([each for each in found.findings if each.kind == kind], texts, target)
    if not found.findings:
        target.print("\nNothing to look at.", style="green")
    _print_golden(found, target)


def _print_findings(findings: Sequence[Finding], texts: Mapping[str, str], target: Console) -> None:
    if not findings:
        return
    target.print(f"\n{HEADINGS[findings[0].kind]}: {len(findings):,}", style="bold")
    for each in findings[:LISTED]:
        print_head(", ".join(map(harmless_line, each.ids)), (harmless_line(each.why),), target)
        for id_ in each.ids:
            if id_ in texts:
                print_beginning(texts[id_], target)
    print_more(len(findings), target)


def _print_golden(found: Health, target: Console) -> None:
    for answer in found.failed:
        missing = ", ".join(harmless_line(name) for name in answer.golden.relevant if name not in answer.found)
        query = harmless_line(answer.golden.query)
        print_under(f"golden query {query!r} does not find {missing}", target, "red")
    if found.golden and not found.failed:
        count = counted(len(found.golden), "golden query", "golden queries")
        print_under(f"{count}: each finds all that it must", target, "green")
