"""The commands that delete for good: `forget`, `store forget-namespace` and `store gc`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options
from commonplace.cli.app import FAILURE, SUCCESS, command, opened
from commonplace.cli.input import refuse_unasked
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import (
    INDENT,
    MAX_LISTED,
    Line,
    Row,
    Rows,
    counted,
    emit,
    holdings,
    joined,
    local_time,
    more,
    say,
    size_text,
    some,
    tally,
)
from commonplace.errors import NotFoundError

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.erasure.receipt import ForgetReceipt

_OWNERS: Final = "memories owners knowledge contexts in_process episodes entities relations".split()
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
_MAX_TEXT: Final = 72
Act = Callable[["Engine", bool], "ForgetReceipt"]


@command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@options.text("--tag", metavar="TAG", help="Every memory with this tag.")
@options.text("--source", help="Everything from this source.")
@options.text("--session", metavar="NAME", help="Every turn of this conversation.")
@options.text("--path", metavar="FILE", help="An indexed file; the file itself stays.")
@options.text("--agent", metavar="NAME", help="All knowledge of this agent, deleted or not.")
@options.dry_run
@options.yes
@click.option("--receipts", is_flag=True, help="List past deletions and whether they are verified.")
def forget(
    invocation: Invocation, /, ids: tuple[str, ...], dry_run: bool, yes: bool, receipts: bool, **named: str | None
) -> int:
    """Delete memories with every copy, and verify it.

    Also deletes documents, artifacts, knowledge, and episodes, entities and facts of the graph. On a terminal it shows
    what would go and asks first; elsewhere, and with --json, it needs --yes.

    The store is scanned afterwards and you get a receipt. The exit code is 1 if anything is left or still waiting.

    Example: commonplace forget --source standup --dry-run
    """
    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if receipts:
        if ids or given or dry_run or yes:
            raise click.UsageError("--receipts lists past deletions; it takes no other option")
        with invocation.open() as engine:
            found = engine.receipts()
        emit(invocation, found, _receipts)
        return SUCCESS

    def act(engine: Engine, dry_run: bool) -> ForgetReceipt:
        return engine.forget([engine.resolve_id(id_) for id_ in ids] or None, dry_run=dry_run, **given)

    is_named = bool(ids or given)  # or else the engine says what there is to forget by
    if is_named and not dry_run and not yes:
        refuse_unasked(invocation, "forget for good, or --dry-run to see what would go")
        _preview(invocation, act)
        # The store is closed while a person thinks.
        invocation.close()
        if not click.confirm("Forget this for good?", err=True):
            say("Nothing was forgotten.", err=True)
            return FAILURE
    return _run(invocation, act, dry_run=dry_run)


@command(name="forget-namespace")
@click.argument("name")
@click.option("--confirm", metavar="NAME", required=True, help="The exact name once more.")
@options.dry_run
def forget_namespace(invocation: Invocation, /, name: str, confirm: str, dry_run: bool) -> int:
    """Delete namespace NAME with all it holds, and verify it.

    Example: commonplace store forget-namespace old-team --confirm old-team
    """

    def act(engine: Engine, dry_run: bool) -> ForgetReceipt:
        return engine.forget_namespace(name, confirm=confirm, dry_run=dry_run)

    return _run(invocation, act, dry_run=dry_run, whole=True)


@command()
@click.option("--older-than-days", type=float, metavar="N", help="How long ago it was archived. [default: 30]")
@options.dry_run
def gc(invocation: Invocation, /, older_than_days: float | None, dry_run: bool) -> int:
    """Delete what was archived more than 30 days ago.

    Example: commonplace store gc --older-than-days 90 --dry-run
    """
    return _run(invocation, lambda engine, dry: engine.gc(older_than_days, dry_run=dry), dry_run=dry_run)


def _run(invocation: Invocation, act: Act, *, dry_run: bool, whole: bool = False) -> int:
    if dry_run:
        _preview(invocation, act, whole=whole)
        return SUCCESS
    with opened(invocation, is_long=True) as engine:
        receipt = act(engine, False)
    emit(invocation, receipt, lambda done: _receipt(done, whole=whole), has_notices=True)
    return SUCCESS if receipt.verified else FAILURE


def _preview(invocation: Invocation, act: Act, *, whole: bool = False) -> None:
    """Print what would go, with the beginning of each text, and change nothing."""
    with invocation.open() as engine:
        receipt = act(engine, True)
        texts = {} if invocation.as_json else {id_: _text_of(engine, id_) for id_ in receipt.ids[:MAX_LISTED]}
    emit(invocation, receipt, lambda plan: _plan(plan, texts, whole=whole), has_notices=True)


def _text_of(engine: Engine, id_: str) -> str:
    """Return what a memory or a part of the graph says; "" for artifacts and documents."""
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


def _plan(receipt: ForgetReceipt, texts: Mapping[str, str], *, whole: bool) -> Rows:
    yield from _gone("Would forget", receipt, texts, whole=whole)
    if not _is_empty(receipt, whole=whole):
        yield from _rest(receipt)


def _receipt(receipt: ForgetReceipt, *, whole: bool) -> Rows:
    yield from _gone("Forgot", receipt, {}, whole=whole)
    if _is_empty(receipt, whole=whole):
        return
    size = size_text(sum(size for _, size in receipt.checked))
    looked = f"Searched {counted(len(receipt.checked), 'file')} of the store ({size})"
    if receipt.verified:
        yield Line(f"{looked}: nothing of it is left.", "green")
    else:
        left = tally([(len(receipt.found), "trace", "")])
        parts = [f"found {left}"] * bool(left) + ["some of it is still waiting"] * bool(receipt.waiting)
        yield Line(f"{looked}: {joined(parts) or 'not verified'}.", "red" if receipt.found else "yellow")
    yield from some([f"{file}: {what}" for file, what in receipt.found], "red")
    yield from some([f"waiting: {what}" for what in receipt.waiting], "yellow")
    yield from _rest(receipt)
    yield Line(f"Receipt {receipt.id}", "dim")


def _receipts(receipts: Sequence[ForgetReceipt]) -> Rows:
    if not receipts:
        yield "Nothing was forgotten in this namespace."
    for each in receipts:
        proof = "verified" if each.verified else "waiting" if each.waiting else "not verified"
        yield Line(
            f"{local_time(datetime.fromtimestamp(each.at, UTC))}  {_what(each)}: {proof}",
            "" if each.verified else "yellow",
        )
        yield Line(f"receipt {each.id}", "dim", 1)
        yield from some([f"still in {file}: {what}" for file, what in each.found], "red")
        yield from some([f"waiting: {what}" for what in each.waiting], "yellow")


def _is_empty(receipt: ForgetReceipt, *, whole: bool) -> bool:
    """Tell whether nothing was old enough to be collected; whatever else finds nothing is an error."""
    return not whole and not any(receipt.counts.values())


def _what(receipt: ForgetReceipt, *, whole: bool = False) -> str:
    """Return what went as one phrase: how many of which sort, and how many of them only because of the others."""
    gone = holdings(receipt.counts, _OWNERS) or "nothing"
    if derived := receipt.counts.get("derived", 0):
        gone += f", {derived:,} of them as copies of the others"
    return f"namespace {receipt.namespace!r} with {gone}" if whole else gone


def _gone(verb: str, receipt: ForgetReceipt, texts: Mapping[str, str], *, whole: bool) -> Rows:
    if _is_empty(receipt, whole=whole):
        yield "Nothing to forget: nothing was archived that long ago."
        return
    yield Line(f"{verb} {_what(receipt, whole=whole)}", "bold")
    if parts := tally((receipt.counts.get(name, 0), noun, plural) for name, noun, plural in _PARTS):
        yield Line(f"with {parts}", "dim", 1)
    for id_ in receipt.ids[:MAX_LISTED]:
        text = " ".join(texts.get(id_, "").split())
        yield Row(id_, (text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…",), before=INDENT)
    yield from more(len(receipt.ids))


def _rest(receipt: ForgetReceipt) -> Rows:
    yield from (Line(f"note: {notice}", "dim", 1) for notice in receipt.notices)
    if receipt.outside:
        yield Line("Not deleted, because it is outside the store:", "dim")
        yield from some(receipt.outside, "dim")
