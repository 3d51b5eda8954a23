"""Print what was forgotten, or would be, for a person. It decides how a receipt looks, never what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from commonplace.cli.memory_rendering import told
from commonplace.cli.screen import counted, size_of
from commonplace.cli.sentences import INDENT, LISTED, joined, print_more, print_some, print_under, tally
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.forgetting.receipt import ForgetReceipt

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
