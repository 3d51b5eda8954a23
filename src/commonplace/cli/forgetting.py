"""The commands that delete for good: `forget`, `forget-namespace` and `gc`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.failures import FAILURE, SUCCESS
from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.cli.values import filled

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.engine import Engine
    from commonplace.forgetting.receipt import ForgetReceipt

_dry_run_option = click.option("--dry-run", is_flag=True, help="Tell what would go, and change nothing.")


@click.command(cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tag", metavar="TAG", callback=filled, help="Every memory with this tag.")
@click.option("--source", metavar="TEXT", callback=filled, help="Everything from this source.")
@click.option("--session", metavar="NAME", callback=filled, help="Every turn of this conversation.")
@click.option("--path", metavar="FILE", callback=filled, help="An indexed file; the file itself stays.")
@click.option("--agent", metavar="NAME", callback=filled, help="All that this agent knows, deleted or not.")
@_dry_run_option
@click.option("--yes", is_flag=True, help="Do not ask first.")
@click.option("--receipts", is_flag=True, help="List what was forgotten so far, and whether that is proved.")
@pass_invocation
def forget(
    invocation: Invocation, /, ids: tuple[str, ...], dry_run: bool, yes: bool, receipts: bool, **named: str | None
) -> int:
    """Delete memories with every copy, and prove it.

    Documents, artifacts, and episodes, entities and facts of the graph go the same way. On a terminal it shows what
    would go, and asks first; without one, and with --json, it deletes nothing without --yes.

    Every file of the store is searched for what was forgotten. The exit code is 1 where something is left or waits.
    """
    from commonplace.cli.screen import refuse_unasked, say

    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if receipts:
        if ids or given or dry_run or yes:
            raise click.UsageError(
                "--receipts lists what was forgotten and takes nothing to forget; leave the rest out"
            )
        return _list_receipts(invocation)

    def act(engine: Engine, dry_run: bool) -> ForgetReceipt:
        return engine.forget([engine.resolve_id(id_) for id_ in ids] or None, dry_run=dry_run, **given)

    if dry_run:
        return _rehearse(invocation, act)
    if not yes:
        refuse_unasked(invocation, "forget for good, or --dry-run to see what would go")
        _rehearse(invocation, act)
        # The store is closed while a person thinks.
        invocation.close()
        if not click.confirm("Forget this for good?", err=True):
            say("Nothing was forgotten.", err=True)
            return FAILURE
    return _run(invocation, act)


@click.command("forget-namespace", cls=Command)
@click.argument("name")
@click.option("--confirm", metavar="NAME", required=True, help="The exact name once more.")
@_dry_run_option
@pass_invocation
def forget_namespace(invocation: Invocation, /, name: str, confirm: str, dry_run: bool) -> int:
    """Delete namespace NAME with all it holds, and prove it."""

    def act(engine: Engine, dry_run: bool) -> ForgetReceipt:
        return engine.forget_namespace(name, confirm=confirm, dry_run=dry_run)

    return _rehearse(invocation, act, whole=True) if dry_run else _run(invocation, act, whole=True)


@click.command(cls=Command)
@click.option("--older-than-days", type=float, metavar="N", help="How long ago it was archived.")
@_dry_run_option
@pass_invocation
def gc(invocation: Invocation, /, older_than_days: float | None, dry_run: bool) -> int:
    """Forget what was archived more than 30 days ago."""

    def act(engine: Engine, dry_run: bool) -> ForgetReceipt:
        return engine.gc(older_than_days, dry_run=dry_run)

    return _rehearse(invocation, act) if dry_run else _run(invocation, act)


def _rehearse(invocation: Invocation, act: Callable[[Engine, bool], ForgetReceipt], *, whole: bool = False) -> int:
    """Print what would go, with the beginning of each text, and change nothing."""
    from commonplace.cli.forgetting_rendering import print_plan
    from commonplace.cli.screen import console, print_json
    from commonplace.cli.sentences import LISTED

    texts = {}
    with invocation.open(invocation.settings()) as engine:
        receipt = act(engine, True)
        for id_ in () if invocation.as_json else receipt.ids[:LISTED]:
            texts[id_] = _text_of(engine, id_)
    if invocation.as_json:
        print_json(receipt.to_dict())
    else:
        print_plan(receipt, texts, console(), whole=whole)
    return SUCCESS


def _text_of(engine: Engine, id_: str) -> str:
    """Return what a memory or a part of the graph says; "" for artifacts and documents, which go as well."""
    from commonplace.errors import NotFoundError

    reads: tuple[Callable[[], str], ...] = (
        lambda: engine.get(id_, touch=False).content,
        lambda: engine.graph.episode(id_).content,
        lambda: engine.graph.relation(id_).fact,
        lambda: engine.graph.entity(id_).name,
    )
    for read in reads:
        with suppress(NotFoundError):
            return read()
    return ""


def _run(invocation: Invocation, act: Callable[[Engine, bool], ForgetReceipt], *, whole: bool = False) -> int:
    from commonplace.cli.forgetting_rendering import print_receipt
    from commonplace.cli.screen import console, print_json, progress_bars

    with progress_bars(invocation) as progress, invocation.open(invocation.settings(), progress=progress) as engine:
        receipt = act(engine, False)
    if invocation.as_json:
        print_json(receipt.to_dict())
    else:
        print_receipt(receipt, console(), whole=whole)
    return SUCCESS if receipt.verified else FAILURE


def _list_receipts(invocation: Invocation) -> int:
    from commonplace.cli.forgetting_rendering import print_receipts
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        receipts = engine.receipts()
    if invocation.as_json:
        print_json([receipt.to_dict() for receipt in receipts])
    else:
        print_receipts(receipts, console())
    return SUCCESS
