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
    PendingRun,
    finish_runs_locked,
    remove_pages,
    rewrite_files,
    store_receipt,
    vault_notes,
)
from commonplace.erasure.receipt import COPIES_ELSEWHERE, COPIES_ON_SERVER, ForgetReceipt
from commonplace.erasure.scan import MIN_LENGTH
from commonplace.erasure.select import EraseRequest, Plan, add_rows, erase_parts, plan_graph, plan_items, plan_namespace
from commonplace.erasure.verify import clear_logs, quoting_queries, verify
from commonplace.exchange.backup import known_backups
from commonplace.ledger.erase import all_issues, find_mentions
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
    runtime: ErasureRuntime,
    namespace: str,
    request: EraseRequest,
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
        with runtime.store.snapshot():
            has_parts = any(plan_items(runtime.store, namespace, request, in_process=in_process).parts.values())
        with _rolled_back(runtime, namespace) if has_parts else nullcontext() as change:
            plan = _planned(runtime, change, namespace, request, in_process)
        receipt = _receipt(runtime, namespace, plan, "", runtime.clock())
        return receipt.counted(log_lines=clear_logs(runtime, plan, dry_run=True))
    with _exclusive_run(runtime, namespace):
        id_, at = str(uuid4()), runtime.clock()
        with runtime.store.change_memories(namespace) as change:
            # Nobody else can write now: the plan covers exactly what is deleted.
            plan = _planned(runtime, change, namespace, request, in_process)
            receipt = _receipt(runtime, namespace, plan, id_, at)
            if request.archived_by is not None and plan.is_empty:
                return replace(receipt, id="", outside=(), verified=True)
            # Logs come first: after a kill, the run that finishes this one no longer knows what to search for.
            receipt = receipt.counted(log_lines=clear_logs(runtime, plan))
            _erase(runtime, change, namespace, plan, at)
            pending = PendingRun(id_, at, namespace, plan.memories)
            change.put(receipt.note())
            change.put(pending.note())
        return _finished(runtime, receipt, pending, plan)


def forget_namespace(runtime: ErasureRuntime, namespace: str, *, dry_run: bool = False) -> ForgetReceipt:
    """Forget a namespace with everything in it, and its name; see `Engine.forget_namespace`."""
    with nullcontext() if dry_run else _exclusive_run(runtime, namespace):
        with runtime.store.snapshot():
            plan = plan_namespace(runtime.store, namespace, runtime.is_served)
            add_rows(plan, runtime.store, namespace)
            plan.ledger_mentions = all_issues(runtime.store.ledger(namespace))
            plan_graph(plan, runtime.store, namespace)
        receipt = _receipt(runtime, namespace, plan, "" if dry_run else str(uuid4()), runtime.clock())
        # An outside graph comes first, while the store still knows the episodes and groups that it may have.
        if runtime.leave is not None and (plan.copied or plan.removed_parts["relations"]):
            removal = runtime.leave(namespace, plan.copied.keys(), dry_run)
            notices, outside = (*receipt.notices, *removal.notices), (*removal.outside, *receipt.outside)
            receipt = replace(receipt, notices=notices, outside=outside, found=removal.found)
        receipt = replace(receipt, ids=()).counted(log_lines=clear_logs(runtime, plan, dry_run=dry_run))
        if dry_run:
            return receipt
        pending = PendingRun(receipt.id, receipt.at, namespace, plan.memories, is_namespace=True)
        runtime.store.erase_namespace(namespace, (receipt.note(), pending.note()))
        return _finished(runtime, receipt, pending, plan)


def _planned(
    runtime: ErasureRuntime,
    change: MemoryChange | None,
    namespace: str,
    request: EraseRequest,
    in_process: Sequence[StoredMemory],
) -> Plan:
    """Plan a deletion. This already removes the parts of the graph in `change`: only that shows what goes with them.

    Without a change, which is also possible for a read-only store, no parts of the graph may be requested.
    """
    with runtime.store.snapshot():
        plan = plan_items(runtime.store, namespace, request, in_process=in_process)
        add_rows(plan, runtime.store, namespace)
        if change is not None and any(plan.parts.values()):
            assert runtime.graph is not None, "deleting parts of a graph needs its runtime"
            erase_parts(plan, runtime.store, change, runtime.graph())
        ledger = runtime.store.ledger(namespace) if change is None else change.ledger
        entries = find_mentions(ledger, plan.memories)
        issues = dict.fromkeys((*entries.issues, *quoting_queries(runtime, namespace, ledger, plan)))
        plan.ledger_mentions = replace(entries, issues=tuple(issues))
    if plan.copied and runtime.delete_outside is not None:
        copies = "copies of these episodes in Graphiti: `commonplace graph sync` deletes them, and says which it cannot"
        plan.outside = (*plan.outside, copies)
    return plan


def _erase(runtime: ErasureRuntime, change: MemoryChange, namespace: str, plan: Plan, now: float) -> None:
    change.erase(plan.memories)
    change.erase_owners(list(plan.owners))
    for name in plan.contexts:
        change.knowledge.drop_context(name)
    if runtime.delete_outside is not None:
        for episode, group in plan.copied.items():
            runtime.delete_outside(change, episode, group)
    forget_in_ledger(change.ledger, plan.memories, Doer("forget", now), plan.ledger_mentions)
    for id_ in plan.revived:
        memory = change.find(id_)
        if memory is not None and memory.expired_at is not None:
            # It counts as used now, so that its retention does not decay at once.
            record = replace(memory.record, status="active", last_used=max(now, memory.record.last_used))
            bands = () if memory.owner.session else signature(memory.record.content).bands
            change.revive(memory.number, record, bands=bands)
    if plan.revived and runtime.follow is not None:
        runtime.follow(change, plan.revived)
    erase_injected(runtime.store, namespace, change, plan.ids)
    change.drop(Note, kind=ANSWER)
    change.drop(Note, kind=LEFT_OUT)


@contextmanager
def _exclusive_run(runtime: ErasureRuntime, namespace: str) -> Iterator[None]:
    """Hold the lock that excludes other runs, after finishing earlier ones."""
    if runtime.store.is_read_only:  # raise its error before changing anything, even a log
        with runtime.store.change_memories(namespace):
            pass
    with runtime.store.lock(runtime.directory / LOCK).hold(_LOCK_WAIT_S):
        finish_runs_locked(runtime)
        yield


@contextmanager
def _rolled_back(runtime: ErasureRuntime, namespace: str) -> Iterator[MemoryChange]:
    class DoneError(Exception):
        pass

    with suppress(DoneError), runtime.store.change_memories(namespace) as change:
        yield change
        raise DoneError


def _receipt(runtime: ErasureRuntime, namespace: str, plan: Plan, id_: str, at: float) -> ForgetReceipt:
    """Return the receipt of a plan; for a dry run, which has no id, it counts the vault notes to be deleted."""
    notices, counts = plan.notices, plan.counts()
    if short := plan.traces.too_short:
        notices += (f"{short} of its texts have fewer than {MIN_LENGTH} bytes, too short to search for in files",)
    if not id_:
        counts["vault_notes"] = len(vault_notes(runtime, namespace, plan.memories, plan.vault_paths))
    return ForgetReceipt(
        namespace=namespace,
        at=at,
        id=id_,
        dry_run=not id_,
        ids=plan.ids,
        counts=counts,
        outside=(*plan.outside, *_copies(runtime)),
        notices=notices,
    )


def _finished(runtime: ErasureRuntime, receipt: ForgetReceipt, pending: PendingRun, plan: Plan) -> ForgetReceipt:
    """Remove the copies of the erased data, search for remaining traces, and store the receipt."""
    counts = dict(receipt.counts)
    waiting = remove_pages(runtime, pending, counts, plan.vault_paths)
    waiting += rewrite_files(runtime, thorough=False)
    runtime.forget_caches()
    # A backup that copied the store before the erasure may have been completed since.
    outside = tuple(dict.fromkeys((*receipt.outside[:-1], *_copies(runtime))))
    receipt = verify(runtime, replace(receipt, counts=counts, outside=outside), plan, waiting)
    return store_receipt(runtime, receipt, pending, waiting)


def _copies(runtime: ErasureRuntime) -> list[str]:
    """List the copies elsewhere; those being written come first, as they may become backups at any moment."""
    drafts = clear_drafts(runtime.directory, remove=False)
    copies = [f"what another process is writing to {draft.target}" for draft in drafts if draft.state == "live"]
    for copy in reversed(known_backups(runtime.store)):
        # A missing backup may have been moved, and still holds its content.
        when, exists = iso(copy.at.replace(microsecond=0)), os.path.lexists(runtime.directory / copy.path)
        if copy.is_replaced:
            status = "kept" if exists else "no longer"
            copies.append(f"the store that was replaced at {when}, {status} at {copy.path}")
        else:
            copies.append(f"the backup {copy.path} of {when}" + ("" if exists else ", no longer there"))
    return [*dict.fromkeys(copies), *([COPIES_ON_SERVER] if runtime.store.is_on_server else []), COPIES_ELSEWHERE]
