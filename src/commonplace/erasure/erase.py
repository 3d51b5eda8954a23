"""Run a deletion: select, erase in one transaction, remove copies, verify, write a receipt.

From that transaction on, a note in the store says that the run is pending, so that a killed one is finished by the next
one or by `doctor`. A lock in the store's directory admits one run at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from uuid import uuid4

from commonplace.dataclasses import replace
from commonplace.dates.time import iso
from commonplace.erasure.receipt import ELSEWHERE, ON_SERVER, ForgetReceipt
from commonplace.erasure.resume import (
    LOCK,
    ErasureRuntime,
    Pending,
    finish_held,
    remove_pages,
    rewrite_files,
    settle,
    vault_notes,
)
from commonplace.erasure.scan import MIN_LENGTH
from commonplace.erasure.select import (
    Plan,
    Wanted,
    add_rows,
    all_of,
    choose,
    erase_parts,
    plan_all_parts,
)
from commonplace.erasure.verify import clear_logs, prove, quoting_queries
from commonplace.exchange.backup import BACKUP, STORE_SPACE, KnownBackup, known_backups
from commonplace.graph.runtime import GraphRuntime
from commonplace.ledger.erase import all_there_is, naming
from commonplace.ledger.erase import forget as forget_in_ledger
from commonplace.ledger.rules import Doer
from commonplace.memory.answers import ANSWER
from commonplace.memory.injections import erase_injected
from commonplace.store.drafts import clear_drafts
from commonplace.store.memories import MemoryChange
from commonplace.text.similarity import signature
from commonplace.types import LEFT_OUT, Note, StoredMemory

_LOCK_WAIT_S = 60.0
_TOLD = "copies of these episodes in Graphiti: `commonplace graph sync` deletes them, and says which it cannot"
_ACTOR = "forget"
"""Who it was, in the history of issues that named what is forgotten."""


def forget(
    place: ErasureRuntime,
    namespace: str,
    wanted: Wanted,
    *,
    in_process: Sequence[StoredMemory] = (),
    dry_run: bool = False,
) -> ForgetReceipt:
    """Forget what is wanted, in one namespace.

    Args:
        in_process: memories of this process that match as well; whoever calls lets them go.
        dry_run: return the receipt of what would go, and change nothing.

    Raises:
        NotFoundError: nothing matches. Nothing was changed.
        StoreBusyError: another process forgets, or holds the store.
        StoreError: the store cannot be written.
    """
    if dry_run:
        with place.store.snapshot():
            has_parts = any(choose(place.store, namespace, wanted, in_process=in_process).parts.values())
        with _undone(place, namespace) if has_parts else nullcontext() as change:
            plan = _planned(place, change, namespace, wanted, in_process)
        return _rehearsed(place, namespace, plan)
    with _alone(place, namespace):
        id_, at = str(uuid4()), place.clock()
        with place.store.change_memories(namespace) as change:
            # Nobody else can write now: what is read here is what goes.
            plan = _planned(place, change, namespace, wanted, in_process)
            receipt = _receipt(place, namespace, plan, id_, at)
            if wanted.archived_by is not None and plan.is_empty:
                return replace(receipt, id="", outside=(), verified=True)
            # Before anything is erased: a run that is killed later cannot know any more what to look for.
            receipt = receipt.counted(log_lines=clear_logs(place, plan))
            _erase(place, change, namespace, plan, at)
            pending = Pending(id_, at, namespace, plan.memories)
            change.put(receipt.note())
            change.put(pending.note())
        return _finished(place, receipt, pending, plan)


def forget_namespace(place: ErasureRuntime, namespace: str, *, dry_run: bool = False) -> ForgetReceipt:
    """Forget everything that a namespace holds, and its name.

    Raises:
        NotFoundError: there is no such namespace.
        StoreBusyError: another process forgets, or holds the store.
        StoreError: the store cannot be written.
    """
    if dry_run:
        plan = _planned_whole(place, namespace)
        return replace(_left(place, _rehearsed(place, namespace, plan), plan), ids=())
    with _alone(place, namespace):
        plan = _planned_whole(place, namespace)
        id_, at = str(uuid4()), place.clock()
        # First, while the episodes and groups that Graphiti may have are still known here.
        receipt = replace(_left(place, _receipt(place, namespace, plan, id_, at), plan), ids=())
        receipt = receipt.counted(log_lines=clear_logs(place, plan))
        pending = Pending(id_, at, namespace, plan.memories, is_namespace=True)
        # As long as this mark stands in the namespace itself, nothing was erased.
        with place.store.change_memories(namespace) as change:
            change.put(pending.note())
        with place.store.change_memories(STORE_SPACE) as change:
            for note in (receipt.note(), pending.note(), *place.store.notes(namespace, BACKUP)):
                change.put(note)  # a backup holds what other namespaces have, too
        place.store.erase_namespace(namespace)
        return _finished(place, receipt, pending, plan)


def _planned(
    place: ErasureRuntime,
    change: MemoryChange | None,
    namespace: str,
    wanted: Wanted,
    in_process: Sequence[StoredMemory],
) -> Plan:
    """Return what will be deleted. Parts of the graph are removed already: only that shows what goes with them.

    Without a change no parts of the graph may be wanted; then a read-only store can be asked too.
    """
    with place.store.snapshot():
        plan = choose(place.store, namespace, wanted, in_process=in_process)
        add_rows(plan, place.store, namespace)
        if change is not None and any(plan.parts.values()):
            erase_parts(plan, place.store, change, _ground(place))
        ledger = place.store.ledger(namespace) if change is None else change.ledger
        found = naming(ledger, plan.memories)
        plan.naming = found.with_issues(quoting_queries(place, namespace, ledger, plan))
    if plan.told and place.untell is not None:
        plan.outside = (*plan.outside, _TOLD)
    return plan


def _planned_whole(place: ErasureRuntime, namespace: str) -> Plan:
    with place.store.snapshot():
        plan = all_of(place.store, namespace, place.is_served)
        add_rows(plan, place.store, namespace)
        plan.naming = all_there_is(place.store.ledger(namespace))
        plan_all_parts(plan, place.store, namespace)
    return plan


def _erase(place: ErasureRuntime, change: MemoryChange, namespace: str, plan: Plan, now: float) -> None:
    change.erase(plan.memories)
    change.erase_owners(list(plan.owners))
    for name in plan.contexts:
        change.knowledge.drop_context(name)
    if place.untell is not None:
        for episode, group in plan.told.items():
            place.untell(change, episode, group)
    forget_in_ledger(change.ledger, plan.memories, Doer(_ACTOR, now), plan.naming)
    _revive(place, change, plan.revived, now)
    erase_injected(place.store, namespace, change, plan.ids)
    change.drop(Note, kind=ANSWER)
    change.drop(Note, kind=LEFT_OUT)


def _revive(place: ErasureRuntime, change: MemoryChange, ids: Sequence[str], now: float) -> None:
    """Make archived memories active again. They count as used now, so that they do not fade at once."""
    for id_ in ids:
        known = change.find(id_)
        if known is not None and known.expired_at is not None:
            record = replace(known.record, status="active", last_used=max(now, known.record.last_used))
            bands = () if known.owner.session else signature(known.record.content).bands
            change.revive(known.number, record, bands=bands)
    if ids and place.follow is not None:
        place.follow(change, ids)


@contextmanager
def _alone(place: ErasureRuntime, namespace: str) -> Iterator[None]:
    """Keep other runs away, and finish what earlier ones left."""
    if place.store.is_read_only:  # which says so before anything is done, be it only to a log
        with place.store.change_memories(namespace):
            pass
    with place.store.lock(place.directory / LOCK).hold(_LOCK_WAIT_S):
        finish_held(place)
        yield


class _UndoneError(Exception):
    """Raised in a change that is to be rolled back."""


@contextmanager
def _undone(place: ErasureRuntime, namespace: str) -> Iterator[MemoryChange]:
    """Give a change that is rolled back at the end of the block."""
    with suppress(_UndoneError), place.store.change_memories(namespace) as change:
        yield change
        raise _UndoneError


def _ground(place: ErasureRuntime) -> GraphRuntime:
    assert place.ground is not None, "deleting parts of a graph needs its runtime"
    return place.ground()


def _receipt(place: ErasureRuntime, namespace: str, plan: Plan, id_: str, at: float) -> ForgetReceipt:
    short = plan.traces.too_short
    notice = f"{short} of its texts have fewer than {MIN_LENGTH} bytes, too short to search for in files"
    return ForgetReceipt(
        namespace=namespace,
        at=at,
        id=id_,
        ids=plan.ids,
        counts=plan.counts(),
        outside=(*plan.outside, *_copies(place)),
        notices=(*plan.notices, *([notice] if short else [])),
    )


def _rehearsed(place: ErasureRuntime, namespace: str, plan: Plan) -> ForgetReceipt:
    receipt = replace(_receipt(place, namespace, plan, "", place.clock()), dry_run=True)
    notes = vault_notes(place, namespace, plan.memories, plan.vault_paths)
    return receipt.counted(log_lines=clear_logs(place, plan, dry_run=True), vault_notes=len(notes))


def _left(place: ErasureRuntime, receipt: ForgetReceipt, plan: Plan) -> ForgetReceipt:
    """Delete a namespace in an outside graph that may have copies of it; return the receipt with the outcome."""
    if place.leave is None or not (plan.told or plan.gone["relations"]):
        return receipt
    left = place.leave(receipt.namespace, plan.told.keys(), receipt.dry_run)
    notices, outside = (*receipt.notices, *left.notices), (*left.outside, *receipt.outside)
    return replace(receipt, notices=notices, outside=outside, found=left.found)


def _finished(place: ErasureRuntime, receipt: ForgetReceipt, pending: Pending, plan: Plan) -> ForgetReceipt:
    counts = dict(receipt.counts)
    waiting = remove_pages(place, pending, counts, plan.vault_paths)
    waiting += rewrite_files(place, thorough=False)
    place.forget_caches()
    # A backup that took its copy before this run erased anything may have been made since.
    outside = tuple(dict.fromkeys((*receipt.outside[:-1], *_copies(place))))
    receipt = prove(place, replace(receipt, counts=counts, outside=outside), plan, waiting)
    return settle(place, receipt, pending, waiting)


def _copies(place: ErasureRuntime) -> list[str]:
    """List the copies elsewhere; first those being written, which may become backups at any moment."""
    live = [each.target for each in clear_drafts(place.directory, remove=False) if each.state == "live"]
    written = [f"what another process is writing to {path}" for path in live]
    on_server = [ON_SERVER] if place.store.is_on_server else []
    noted = [_sentence(place.directory / each.path, each) for each in reversed(known_backups(place.store))]
    return [*written, *dict.fromkeys(noted), *on_server, ELSEWHERE]


def _sentence(path: Path, copy: KnownBackup) -> str:
    """Describe a copy. One that is gone may have been moved, and still holds its content."""
    when, is_there = iso(copy.at.replace(microsecond=0)), os.path.lexists(path)
    if copy.is_replaced:
        return f"the store that was replaced at {when}, {'kept' if is_there else 'no longer'} at {copy.path}"
    return f"the backup {copy.path} of {when}" + ("" if is_there else ", no longer there")
