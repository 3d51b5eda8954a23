"""The commands that delete for good: `forget`, `forget-namespace` and `gc`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.escaping import harmless_line
from commonplace.cli.failures import FAILURE, SUCCESS
from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.cli.values import filled

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.engine import Engine
    from commonplace.forgetting.receipt import ForgetReceipt

_dry_run_option = click.option("--dry-run", is_flag=True, help="Tell what would go, and change nothing.")

FILES_SHOWN = 5


@click.command(cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tag", metavar="TAG", callback=filled, help="Every memory with this tag.")
@click.option("--source", metavar="TEXT", callback=filled, help="Everything from this source.")
@click.option("--session", metavar="NAME", callback=filled, help="Every turn of this conversation.")
@click.option("--path", metavar="FILE", callback=filled, help="An indexed file; the file itself stays.")
@_dry_run_option
@pass_invocation
def forget(invocation: Invocation, /, ids: tuple[str, ...], dry_run: bool, **named: str | None) -> int:
    """Delete memories with every copy, and prove it.

    Documents and artifacts go the same way.

    Every file of the store is searched for what was forgotten. The exit code is 1 where something is left or waits.
    """
    given = {name: value for name, value in named.items() if value is not None}
    return _run(invocation, lambda engine: engine.forget(list(ids) or None, dry_run=dry_run, **given))


@click.command("forget-namespace", cls=Command)
@click.argument("name")
@click.option("--confirm", metavar="NAME", required=True, help="The exact name once more.")
@_dry_run_option
@pass_invocation
def forget_namespace(invocation: Invocation, /, name: str, confirm: str, dry_run: bool) -> int:
    """Delete namespace NAME with all it holds, and prove it."""
    return _run(invocation, lambda engine: engine.forget_namespace(name, confirm=confirm, dry_run=dry_run))


@click.command(cls=Command)
@click.option("--older-than-days", type=float, metavar="N", help="How long ago it was archived.")
@_dry_run_option
@pass_invocation
def gc(invocation: Invocation, /, older_than_days: float | None, dry_run: bool) -> int:
    """Forget what was archived more than 30 days ago."""
    return _run(invocation, lambda engine: engine.gc(older_than_days, dry_run=dry_run))


def _run(invocation: Invocation, act: Callable[[Engine], ForgetReceipt]) -> int:
    from commonplace.cli.screen import print_json, progress_bars

    with progress_bars(invocation) as progress, invocation.open(invocation.settings(), progress=progress) as engine:
        receipt = act(engine)
    if invocation.as_json:
        print_json(receipt.to_dict())
    else:
        _show(receipt)
    is_done = receipt.dry_run or receipt.verified or not receipt.id
    return SUCCESS if is_done else FAILURE


def _show(receipt: ForgetReceipt) -> None:
    from commonplace.cli.screen import console, counted, size_of

    target = console()
    counts: dict[str, Any] = {name: number for name, number in receipt.counts.items() if number}
    told = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items()) or "nothing"
    if not receipt.dry_run and not receipt.id:
        target.print("Nothing to forget.")
        return
    target.print(f"{'Would forget' if receipt.dry_run else 'Forgotten'}: {told}", style="bold")
    for id_ in receipt.ids:
        target.print(f"   {harmless_line(id_)}")
    if not receipt.dry_run:
        size = size_of(sum(size for _, size in receipt.checked))
        verdict = "nothing of it is left" if receipt.verified else "not proved yet"
        files = counted(len(receipt.checked), "file")
        target.print(f"Searched {files} ({size}): {verdict}. Receipt {receipt.id}")
    for file, what in receipt.found[:FILES_SHOWN]:
        target.print(f"   still in {harmless_line(file)}: {harmless_line(what)}", style="red")
    for what in receipt.waiting:
        target.print(f"   waiting: {harmless_line(what)}", style="yellow")
    for what in receipt.outside:
        target.print(f"   outside: {harmless_line(what)}", style="yellow")
    for notice in receipt.notices:
        target.print(f"   {harmless_line(notice)}", style="dim")
