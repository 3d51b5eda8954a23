"""The commands that delete for good: `forget`, `forget-namespace` and `gc`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli.app import FAILURE, SUCCESS, Command, pass_invocation
from commonplace.cli.input import filled
from commonplace.cli.main import Invocation
from commonplace.cli.output import (
    INDENT,
    LISTED,
    console,
    counted,
    joined,
    print_json,
    print_more,
    print_some,
    print_under,
    progress_bars,
    refuse_unasked,
    say,
    size_of,
    tally,
    told,
)
from commonplace.errors import NotFoundError
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.engine import Engine
    from commonplace.erasure.receipt import ForgetReceipt


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

    with progress_bars(invocation) as progress, invocation.open(invocation.settings(), progress=progress) as engine:
        receipt = act(engine, False)
    if invocation.as_json:
        print_json(receipt.to_dict())
    else:
        print_receipt(receipt, console(), whole=whole)
    return SUCCESS if receipt.verified else FAILURE


def _list_receipts(invocation: Invocation) -> int:

    with invocation.open(invocation.settings()) as engine:
        receipts = engine.receipts()
    if invocation.as_json:
        print_json([receipt.to_dict() for receipt in receipts])
    else:
        print_receipts(receipts, console())
    return SUCCESS


_OWNERS: Final = (
    ("memories", "memory", "memories"),
    ("owners", "artifact or document", "artifacts or documents"),
    ("knowledge", "item of knowledge", "items of knowledge"),
    ("contexts", "context of an agent", "contexts of agents"),
    ("in_process", "memory of this process", "memories of this process"),
    ("episodes", "episode", ""),
    ("entities", "entity", "entities"),
    ("relations", "fact", ""),
)
_PARTS: Final = (
    ("versions", "version", ""),
    ("passages", "passage", ""),
    ("links", "link", ""),
    ("blocks", "Markdown block", ""),
    ("vault_notes", "vault note", ""),
    ("issues", "issue of the ledger cleaned", "issues of the ledger cleaned"),
    ("reversals", "change that could be undone", "changes that could be undone"),
    ("log_lines", "log line", ""),
)
_NOTHING: Final = "Nothing to forget: nothing was archived that long ago."
_LEAST_TEXT: Final = 24
"""Columns without which a text has no place on the line of its id."""


def print_plan(receipt: ForgetReceipt, texts: Mapping[str, str], target: Console, *, whole: bool = False) -> None:
    """Print what would go.

    Args:
        texts: what the memories and the parts of the graph say, by id, as far as it is to be shown.
        whole: a whole namespace would go.
    """
    if _is_nothing(receipt, whole=whole):
        target.print(_NOTHING)
        return
    target.print(f"Would forget {_what(receipt, whole=whole)}", style="bold")
    _print_parts(receipt, target)
    _print_ids(receipt.ids, texts, target)
    _print_rest(receipt, target)


def print_receipt(receipt: ForgetReceipt, target: Console, *, whole: bool = False) -> None:
    """Print what went, where it was looked for, and what is left."""
    if _is_nothing(receipt, whole=whole):
        target.print(_NOTHING)
        return
    target.print(f"Forgot {_what(receipt, whole=whole)}", style="bold")
    _print_parts(receipt, target)
    _print_ids(receipt.ids, {}, target)
    looked = (
        f"{counted(len(receipt.checked), 'file')} of the store ({size_of(sum(size for _, size in receipt.checked))})"
    )
    if receipt.verified:
        target.print(f"Searched {looked}: nothing of it is left.", style="green")
    else:
        left = tally([(len(receipt.found), "trace", "")])
        waits = "some of it waits" if receipt.waiting else ""
        verdict = joined([part for part in (f"found {left}" if left else "", waits) if part]) or "this is no proof"
        target.print(f"Searched {looked}: {verdict}.", style="red" if receipt.found else "yellow")
    print_some([f"{file}: {what}" for file, what in receipt.found], target, "red")
    print_some([f"waiting: {what}" for what in receipt.waiting], target, "yellow")
    _print_rest(receipt, target)
    target.print(f"Receipt {receipt.id}", style="dim")


def print_receipts(receipts: Sequence[ForgetReceipt], target: Console) -> None:
    """Print receipts one below the other, oldest first."""
    if not receipts:
        target.print("Nothing was forgotten in this namespace.")
    for receipt in receipts:
        proof = "proved" if receipt.verified else "waiting" if receipt.waiting else "not proved"
        when = told(datetime.fromtimestamp(receipt.at, UTC))
        target.print(f"{when}  {_what(receipt)}: {proof}", style="" if receipt.verified else "yellow")
        print_under(f"receipt {receipt.id}", target, "dim")
        print_some([f"still in {file}: {what}" for file, what in receipt.found], target, "red")
        print_some([f"waiting: {what}" for what in receipt.waiting], target, "yellow")


def _what(receipt: ForgetReceipt, *, whole: bool = False) -> str:
    """Return what went as one phrase: how many of which sort, and how many of them only because of the others."""
    counts = receipt.counts
    gone = _tally(counts, _OWNERS) or "nothing"
    if derived := counts.get("derived", 0):
        gone += f", {derived:,} of them as copies of the others"
    return f"namespace {harmless_line(repr(receipt.namespace))} with {gone}" if whole else gone


def _is_nothing(receipt: ForgetReceipt, *, whole: bool) -> bool:
    """Tell whether there was nothing that is old enough; whatever else finds nothing is an error."""
    return not whole and not any(receipt.counts.values())


def _tally(counts: Mapping[str, int], nouns: Sequence[tuple[str, str, str]]) -> str:
    return tally((counts.get(name, 0), noun, plural) for name, noun, plural in nouns)


def _print_parts(receipt: ForgetReceipt, target: Console) -> None:
    if parts := _tally(receipt.counts, _PARTS):
        print_under(f"with {parts}", target, "dim")


def _print_ids(ids: Sequence[str], texts: Mapping[str, str], target: Console) -> None:
    """Print ids in a column, each with the beginning of its text beside it or, where there is no room, below it."""
    from rich.text import Text

    shown = [harmless_line(id_) for id_ in ids[:LISTED]]
    column = max(map(len, shown), default=0) + 2
    room = target.width - len(INDENT) - column
    for id_, name in zip(ids, shown, strict=False):
        text = Text(" ".join(harmless_line(" ".join(texts.get(id_, "").split())).split()), style="dim")
        line = Text.assemble(INDENT, (name, "cyan"))
        if text and room >= _LEAST_TEXT:
            text.truncate(room, overflow="ellipsis")
            line.append(" " * (column - len(name)))
            line.append_text(text)
        target.print(line)
        if text and room < _LEAST_TEXT:
            text.truncate(target.width - 2 * len(INDENT), overflow="ellipsis")
            target.print(Text(2 * INDENT) + text)
    print_more(len(ids), target)


def _print_rest(receipt: ForgetReceipt, target: Console) -> None:
    for notice in receipt.notices:
        print_under(f"note: {notice}", target, "dim")
    if receipt.outside:
        target.print("Out of reach, outside of the store:", style="dim")
        print_some(receipt.outside, target, "dim")
