"""The command group `logs`: what the log of retrievals says in sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commonplace.cli.invocation import Command, Group, Invocation, pass_invocation
from commonplace.cli.values import beginning

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.search.retrievals import RetrievalSummary


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
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.retrievals(since)
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        _print(found, console())


def _print(found: RetrievalSummary, target: Console) -> None:
    from commonplace.cli.memory_rendering import told
    from commonplace.cli.screen import counted
    from commonplace.search.times import moment
    from commonplace.text.escaping import harmless_line

    if found.first is None or found.last is None:
        target.print("No search is logged.")
        return
    first, last = told(moment(found.first)), told(moment(found.last))
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
