"""Run a deletion: select, erase in one transaction, remove copies, verify, write a receipt.

That transaction also writes a note that the run is pending, so that the next run or `doctor` can finish a killed one. A
lock in the store's directory admits one run at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from uuid import uuid4

from commonplace.dataclasses import replace
from commonplace.dates.time import iso
from commonplace.erasure.copies import (
    LOCK,
    ErasureRuntime,
    Pending,
    finish_held,
    remove_pages,
    rewrite_files,
    settle,
    vault_notes,
)
from commonplace.erasure.receipt import ELSEWHERE, ON_SERVER, ForgetReceipt
from commonplace.erasure.scan import MIN_LENGTH
from commonplace.erasure.select import Plan, Wanted, add_rows, all_of, choose, erase_parts, plan_all_parts
from commonplace.erasure.verify import clear_logs, prove, quoting_queries
from commonplace.exchange.backup import known_backups
from commonplace.ledger.erase import all_there_is, naming
from commonplace.ledger.erase import forget as forget_in_ledger
from commonplace.ledger.rules import Doer
from commonplace.memory.idempotency import ANSWER
from commonplace.memory.injections import erase_injected
from commonplace.store.drafts import clear_drafts
from commonplace.store.memories import MemoryChange
from commonplace.text.similarity import signature
from commonplace.types import LEFT_OUT, Note, StoredMemory

_LOCK_WAIT_S = 60.0


def forget(
    place: ErasureRuntime,
    namespace: str,
    wanted: Wanted,
    *,
    in_process: Sequence[StoredMemory] = (),
    dry_run: bool = False,
) -> ForgetReceipt:
    """Forget the requested items of one namespace.

    Args:
        in_process: memories of this process that also match; the caller removes them.
        dry_run: return the receipt of what would be deleted, and change nothing.
    """
    if dry_run:
        with place.store.snapshot():
            has_parts = any(choose(place.store, namespace, wanted, in_process=in_process).parts.values())
        with _rolled_back(place, namespace) if has_parts else nullcontext() as change:
            plan = _planned(place, change, namespace, wanted, in_process)
        receipt = _receipt(place, namespace, plan, "", place.clock())
        return receipt.counted(log_lines=clear_logs(place, plan, dry_run=True))
    with _exclusive_run(place, namespace):
        id_, at = str(uuid4()), place.clock()
        with place.store.change_memories(namespace) as change:
            # Nobody else can write now: the plan covers exactly what is deleted.
            plan = _planned(place, change, namespace, wanted, in_process)
            receipt = _receipt(place, namespace, plan, id_, at)
            if wanted.archived_by is not None and plan.is_empty:
                return replace(receipt, id="", outside=(), verified=True)
            # Logs come first: after a kill, the run that finishes this one no longer knows what to search for.
            receipt = receipt.counted(log_lines=clear_logs(place, plan))
            _erase(place, change, namespace, plan, at)
            pending = Pending(id_, at, namespace, plan.memories)
            change.put(receipt.note())
            change.put(pending.note())
        return _finished(place, receipt, pending, plan)


def forget_namespace(place: ErasureRuntime, namespace: str, *, dry_run: bool = False) -> ForgetReceipt:
    """Forget a namespace with everything in it, and its name; see `Engine.forget_namespace`."""
    with nullcontext() if dry_run else _exclusive_run(place, namespace):
        with place.store.snapshot():
            plan = all_of(place.store, namespace, place.is_served)
            add_rows(plan, place.store, namespace)
            plan.naming = all_there_is(place.store.ledger(namespace))
            plan_all_parts(plan, place.store, namespace)
        receipt = _receipt(place, namespace, plan, "" if dry_run else str(uuid4()), place.clock())
        # An outside graph comes first, while the store still knows the episodes and groups that it may have.
        if place.leave is not None and (plan.copied or plan.gone["relations"]):
            removal = place.leave(namespace, plan.copied.keys(), dry_run)
            notices, outside = (*receipt.notices, *removal.notices), (*removal.outside, *receipt.outside)
            receipt = replace(receipt, notices=notices, outside=outside, found=removal.found)
        receipt = replace(receipt, ids=()).counted(log_lines=clear_logs(place, plan, dry_run=dry_run))
        if dry_run:
            return receipt
        pending = Pending(receipt.id, receipt.at, namespace, plan.memories, is_namespace=True)
        place.store.erase_namespace(namespace, (receipt.note(), pending.note()))
        return _finished(place, receipt, pending, plan)


def _planned(
    place: ErasureRuntime,
    change: MemoryChange | None,
    namespace: str,
    wanted: Wanted,
    in_process: Sequence[StoredMemory],
) -> Plan:
    """Plan a deletion. This already removes the parts of the graph in `change`: only that shows what goes with them.

    Without a change, which is also possible for a read-only store, no parts of the graph may be requested.
    """
    with place.store.snapshot():
        plan = choose(place.store, namespace, wanted, in_process=in_process)
        add_rows(plan, place.store, namespace)
        if change is not None and any(plan.parts.values()):
            assert place.graph is not None, "deleting parts of a graph needs its runtime"
            erase_parts(plan, place.store, change, place.graph())
        ledger = place.store.ledger(namespace) if change is None else change.ledger
        entries = naming(ledger, plan.memories)
        issues = dict.fromkeys((*entries.issues, *quoting_queries(place, namespace, ledger, plan)))
        plan.naming = replace(entries, issues=tuple(issues))
    if plan.copied and place.delete_outside is not None:
        copies = "copies of these episodes in Graphiti: `commonplace graph sync` deletes them, and says which it cannot"
        plan.outside = (*plan.outside, copies)
    return plan


def _erase(place: ErasureRuntime, change: MemoryChange, namespace: str, plan: Plan, now: float) -> None:
    change.erase(plan.memories)
    change.erase_owners(list(plan.owners))
    for name in plan.contexts:
        change.knowledge.drop_context(name)
    if place.delete_outside is not None:
        for episode, group in plan.copied.items():
            place.delete_outside(change, episode, group)
    forget_in_ledger(change.ledger, plan.memories, Doer("forget", now), plan.naming)
    for id_ in plan.revived:
        memory = change.find(id_)
        if memory is not None and memory.expired_at is not None:
            # It counts as used now, so that its retention does not decay at once.
            record = replace(memory.record, status="active", last_used=max(now, memory.record.last_used))
            bands = () if memory.owner.session else signature(memory.record.content).bands
            change.revive(memory.number, record, bands=bands)
    if plan.revived and place.follow is not None:
        place.follow(change, plan.revived)
    erase_injected(place.store, namespace, change, plan.ids)
    change.drop(Note, kind=ANSWER)
    change.drop(Note, kind=LEFT_OUT)


@contextmanager
def _exclusive_run(place: ErasureRuntime, namespace: str) -> Iterator[None]:
    """Hold the lock that excludes other runs, after finishing earlier ones."""
    if place.store.is_read_only:  # raise its error before changing anything, even a log
        with place.store.change_memories(namespace):
            pass
    with place.store.lock(place.directory / LOCK).hold(_LOCK_WAIT_S):
        finish_held(place)
        yield


@contextmanager
def _rolled_back(place: ErasureRuntime, namespace: str) -> Iterator[MemoryChange]:
    """Provide a change that is rolled back at the end of the block."""

    class DoneError(Exception):
        pass

    with suppress(DoneError), place.store.change_memories(namespace) as change:
        yield change
        raise DoneError


def _receipt(place: ErasureRuntime, namespace: str, plan: Plan, id_: str, at: float) -> ForgetReceipt:
    """Return the receipt of a plan; for a dry run, which has no id, it counts the vault notes to be deleted."""
    notices, counts = plan.notices, plan.counts()
    if short := plan.traces.too_short:
        notices += (f"{short} of its texts have fewer than {MIN_LENGTH} bytes, too short to search for in files",)
    if not id_:
        counts["vault_notes"] = len(vault_notes(place, namespace, plan.memories, plan.vault_paths))
    return ForgetReceipt(
        namespace=namespace,
        at=at,
        id=id_,
        dry_run=not id_,
        ids=plan.ids,
        counts=counts,
        outside=(*plan.outside, *_copies(place)),
        notices=notices,
    )


def _finished(place: ErasureRuntime, receipt: ForgetReceipt, pending: Pending, plan: Plan) -> ForgetReceipt:
    """Remove the copies of the erased data, search for remaining traces, and store the receipt."""
    counts = dict(receipt.counts)
    waiting = remove_pages(place, pending, counts, plan.vault_paths)
    waiting += rewrite_files(place, thorough=False)
    place.forget_caches()
    # A backup that copied the store before the erasure may have been completed since.
    outside = tuple(dict.fromkeys((*receipt.outside[:-1], *_copies(place))))
    receipt = prove(place, replace(receipt, counts=counts, outside=outside), plan, waiting)
    return settle(place, receipt, pending, waiting)


def _copies(place: ErasureRuntime) -> list[str]:
    """List the copies elsewhere; those being written come first, as they may become backups at any moment."""
    drafts = clear_drafts(place.directory, remove=False)
    copies = [f"what another process is writing to {draft.target}" for draft in drafts if draft.state == "live"]
    for copy in reversed(known_backups(place.store)):
        # A missing backup may have been moved, and still holds its content.
        when, exists = iso(copy.at.replace(microsecond=0)), os.path.lexists(place.directory / copy.path)
        if copy.is_replaced:
            status = "kept" if exists else "no longer"
            copies.append(f"the store that was replaced at {when}, {status} at {copy.path}")
        else:
            copies.append(f"the backup {copy.path} of {when}" + ("" if exists else ", no longer there"))
    return [*dict.fromkeys(copies), *([ON_SERVER] if place.store.is_on_server else []), ELSEWHERE]
