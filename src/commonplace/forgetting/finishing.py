"""Finish what a forgetting left: because it was killed, or because another process held something open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commonplace.errors import StoreError
from commonplace.forgetting.pending import FORGETTING, Pending, pending_of
from commonplace.forgetting.proving import clear_unknown_questions
from commonplace.forgetting.receipt import RECEIPT, STORE_SPACE, UNPROVED, ForgetReceipt, receipt_of
from commonplace.forgetting.steps import DATABASE, DRAFTS, FINISHES, GENERATIONS, INDEX, Waiting, take
from commonplace.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.forgetting.place import Place

LOCK = "forgetting.lock"
"""Held, in the store's directory, by the one process that forgets."""
_SHARED = frozenset({INDEX, GENERATIONS, DATABASE, DRAFTS})
"""The steps that are the same whatever was forgotten."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A forgetting that was found unfinished. `mended` tells whether it is finished now."""

    problem: str
    remedy: str
    mended: bool = False


def finish_waiting(place: Place, *, mend: bool = True) -> list[Unfinished]:
    """Finish what earlier runs could not; an empty list where nothing is unfinished.

    Args:
        mend: else only tell what there is.

    Raises:
        StoreError: the store cannot be written.
    """
    if not place.store.notes(None, FORGETTING):
        return []
    if not mend or place.store.is_read_only:
        pending = pending_of(place.store.notes(None, FORGETTING))
        return [
            Unfinished(_problem(each), "run `commonplace doctor` where the store can be written") for each in pending
        ]
    lock = FileLock(place.directory / LOCK)
    if not lock.acquire(0.0):
        return [Unfinished("another process is forgetting at this moment", "wait for it, then look again")]
    try:
        return finish_held(place)
    finally:
        lock.release()


def finish_held(place: Place) -> list[Unfinished]:
    """Do the same for a caller that holds the lock."""
    found: list[Unfinished] = []
    shared: dict[str, Waiting] = {}
    for each in pending_of(place.store.notes(None, FORGETTING)):
        if shared.keys() >= set(each.steps):
            # What had to wait for one run has to for the others: nobody is kept once more for each of them.
            found.append(_unfinished(each, [shared[step] for step in each.steps]))
        else:
            unfinished, waiting = _finish(place, each)
            found.append(unfinished)
            shared |= {left.step: left for left in waiting if left.step in _SHARED}
    if found:
        place.forget_caches()
    return found


def settle(place: Place, receipt: ForgetReceipt, pending: Pending, waiting: Sequence[Waiting]) -> ForgetReceipt:
    """Write what became of a run: its receipt, and what is pending where something waits; return the receipt.

    Where it cannot be written, all steps stay pending, and the receipt says so.
    """
    steps = tuple(dict.fromkeys(each.step for each in waiting))
    receipt = replace(
        receipt,
        waiting=tuple(dict.fromkeys(map(str, waiting))),
        verified=pending.is_proved and pending.is_clean and not steps,
    )
    try:
        with place.store.change_memories(_space(pending)) as change:
            change.put_note(receipt.note())
            if steps:
                change.put_note(replace(pending, steps=steps).note())
            else:
                change.drop_note(FORGETTING, pending.id)
    except StoreError as error:
        unwritten = Waiting(DATABASE, "store.db", f"the receipt was not written: {error.args[0]}")
        return replace(receipt, waiting=(*receipt.waiting, str(unwritten)), verified=False)
    return receipt


def _space(pending: Pending) -> str:
    """Return the namespace in which the notes of a run stand."""
    return STORE_SPACE if pending.is_namespace else pending.namespace


def _finish(place: Place, pending: Pending) -> tuple[Unfinished, Sequence[Waiting]]:
    notes = [note for note in place.store.notes(_space(pending), RECEIPT) if note.id == pending.id]
    is_marked = any(note.id == pending.id for note in place.store.notes(pending.namespace, FORGETTING))
    if not notes or (pending.is_namespace and is_marked):
        return _called_off(place, pending), ()
    receipt = receipt_of(notes[0])
    if not pending.is_proved:
        receipt = replace(receipt, notices=tuple(dict.fromkeys((*receipt.notices, UNPROVED))))
    counts = dict(receipt.counts)
    waiting = take(place, pending, counts, thorough=True, is_patient=True)
    if not pending.is_proved and not any(each.step == INDEX for each in waiting):
        counts["log_lines"] = counts.get("log_lines", 0) + clear_unknown_questions(place)
    receipt = settle(place, replace(receipt, counts=counts), pending, waiting)
    if waiting:
        return _unfinished(pending, waiting), waiting
    if receipt.waiting:
        why = receipt.waiting[0].removesuffix(FINISHES)
        return Unfinished(f"{_problem(pending)}: {why}", "see that there is room on the disk"), ()
    return Unfinished(_problem(pending), "finish it", mended=True), ()


def _unfinished(pending: Pending, waiting: Sequence[Waiting]) -> Unfinished:
    return Unfinished(f"{_problem(pending)}: {str(waiting[0]).removesuffix(FINISHES)}", waiting[0].remedy)


def _called_off(place: Place, pending: Pending) -> Unfinished:
    """Drop the notes of a run that was ended before it erased anything."""
    for space in dict.fromkeys((pending.namespace, _space(pending))):
        if space in place.store.namespaces():
            with place.store.change_memories(space) as change:
                change.drop_note(FORGETTING, pending.id)
                change.drop_note(RECEIPT, pending.id)
    return Unfinished(
        f"to forget namespace {pending.namespace!r} was begun, and nothing was erased", "forget it again", mended=True
    )


def _problem(pending: Pending) -> str:
    what = f"namespace {pending.namespace!r}" if pending.is_namespace else "what was forgotten"
    return f"copies of {what} are not all gone yet (receipt {pending.id})"
