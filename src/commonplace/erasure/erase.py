"""Run a deletion: select, erase in one transaction, remove copies, verify, write a receipt.

From that transaction on, a note in the store lists the remaining steps, so that a killed run is resumed by the next one
or by `doctor`. A lock in the store's directory admits one run at a time.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

from commonplace.dataclasses import replace
from commonplace.dates.time import iso
from commonplace.erasure.plan import Plan, erase_all_parts, erase_parts, make_plan, rehearse
from commonplace.erasure.receipt import BACKUP, ELSEWHERE, LEFT, ON_SERVER, STORE_SPACE, ForgetReceipt
from commonplace.erasure.resume import (
    DATABASE,
    LOCK,
    STEPS,
    ErasureRuntime,
    Pending,
    clear_logs,
    finish_held,
    settle,
    take,
    vault_notes,
)
from commonplace.erasure.scan import MIN_LENGTH
from commonplace.erasure.select import Wanted, all_of, choose
from commonplace.erasure.verify import prove, quoting_queries
from commonplace.graph.runtime import GraphRuntime
from commonplace.ledger.erase import all_there_is
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

    def planned() -> Plan:
        known = [each.owner.id for each in in_process]
        chosen = choose(place.store, namespace, wanted, in_process=known)
        return make_plan(place.store, namespace, chosen, in_process=in_process)

    if dry_run:
        return _rehearsed(place, namespace, planned(), len(in_process))
    with _alone(place, namespace):
        plan = planned()
        if wanted.archived_by is not None and plan.chosen.is_empty:
            return ForgetReceipt(namespace, place.clock(), counts=plan.counts(), verified=True)
        cleared = clear_logs(place, plan.traces.patterns())
        id_, at = str(uuid4()), place.clock()
        with place.store.change_memories(namespace) as change:
            if place.store.change(namespace) != plan.change:
                plan = planned()  # somebody wrote since; now nobody can
            change.erase(plan.chosen.memories)
            change.erase_owners(list(plan.chosen.owners))
            for name in plan.chosen.contexts:
                change.knowledge.drop_context(name)
            if plan.chosen.parts.ids:
                # What goes with them is known only now, and a run that is killed later cannot know it any more.
                erase_parts(plan, place.store, change, _ground(place))
                cleared += clear_logs(place, plan.traces.patterns())
                if place.untell is not None:
                    for episode, group in plan.told.items():
                        place.untell(change, episode, group)
            quoting = quoting_queries(place, namespace, change.ledger, plan)
            plan.naming = forget_in_ledger(change.ledger, plan.chosen.memories, Doer(_ACTOR, at), quoting)
            _revive(place, change, plan.chosen.revived, at)
            erase_injected(place.store, namespace, change, plan.ids)
            change.drop(Note, kind=ANSWER)
            change.drop(Note, kind=LEFT_OUT)
            receipt = _begun(place, namespace, plan, id_, at)
            ids = dict.fromkeys((*receipt.ids, *(each.owner.id for each in in_process)))
            receipt = replace(receipt, ids=tuple(ids))
            steps = () if plan.chosen.is_empty and not quoting else STEPS
            pending = Pending(id_, at, namespace, steps, plan.chosen.memories)
            change.put(receipt.note())
            change.put(pending.note())
        return _finished(place, replace(receipt, counts=_more(receipt, cleared, len(in_process))), pending, plan)


def forget_namespace(place: ErasureRuntime, namespace: str, *, dry_run: bool = False) -> ForgetReceipt:
    """Forget everything that a namespace holds, and its name.

    Raises:
        NotFoundError: there is no such namespace.
        StoreBusyError: another process forgets, or holds the store.
        StoreError: the store cannot be written.
    """

    def planned() -> Plan:
        plan = make_plan(place.store, namespace, all_of(place.store, namespace, place.is_served))
        plan.naming = all_there_is(place.store.ledger(namespace))
        erase_all_parts(plan, place.store, namespace)
        return plan

    if dry_run:
        plan = planned()
        return replace(_left(place, _rehearsed(place, namespace, plan, 0), plan), ids=())
    with _alone(place, namespace):
        plan = planned()
        cleared = clear_logs(place, plan.traces.patterns())
        id_, at = str(uuid4()), place.clock()
        # Before the groups and episodes that were told are gone here, too.
        receipt = replace(_left(place, _begun(place, namespace, plan, id_, at), plan), ids=())
        pending = Pending(id_, at, namespace, STEPS, plan.chosen.memories, is_namespace=True)
        # As long as this mark stands in the namespace itself, nothing was erased.
        with place.store.change_memories(namespace) as change:
            change.put(pending.note())
        with place.store.change_memories(STORE_SPACE) as change:
            for note in (receipt.note(), pending.note(), *place.store.notes(namespace, BACKUP)):
                change.put(note)  # a backup holds what other namespaces have, too
        place.store.erase_namespace(namespace)
        return _finished(place, replace(receipt, counts=_more(receipt, cleared, 0)), pending, plan)


def _revive(place: ErasureRuntime, change: MemoryChange, ids: Sequence[str], now: float) -> None:
    """Make archived memories active again with the words that they had, as used now: they are not to fade at once."""
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


def _ground(place: ErasureRuntime) -> GraphRuntime:
    assert place.ground is not None, "deleting parts of a graph needs its runtime"
    return place.ground()


def _rehearsed(place: ErasureRuntime, namespace: str, plan: Plan, in_process: int) -> ForgetReceipt:
    if plan.chosen.parts.ids:
        rehearse(plan, place.store, namespace, partial(_ground, place))
    plan.naming = plan.naming.with_issues(quoting_queries(place, namespace, place.store.ledger(namespace), plan))
    receipt = _begun(place, namespace, plan, "", place.clock())
    lines = clear_logs(place, plan.traces.patterns(), dry_run=True)
    notes = len(vault_notes(place, namespace, plan.chosen.memories, plan.vault_paths))
    return replace(receipt, dry_run=True, counts={**_more(receipt, lines, in_process), "vault_notes": notes})


def _begun(place: ErasureRuntime, namespace: str, plan: Plan, id_: str, at: float) -> ForgetReceipt:
    short, told = plan.traces.too_short, plan.told and plan.chosen.parts.ids and place.untell is not None
    notice = f"{short} of its texts have fewer than {MIN_LENGTH} bytes, too short to search for in files"
    return ForgetReceipt(
        namespace=namespace,
        at=at,
        id=id_,
        ids=plan.ids,
        counts=plan.counts(),
        outside=(*plan.chosen.outside, *([_TOLD] if told else []), *_copies(place)),
        notices=(*plan.chosen.notices, *([notice] if short else [])),
    )


def _left(place: ErasureRuntime, receipt: ForgetReceipt, plan: Plan) -> ForgetReceipt:
    """Take a namespace away from an outside graph that was told of it; return the receipt with what became of that."""
    if place.leave is None or not (plan.told or plan.parts.relations):
        return receipt
    left = place.leave(receipt.namespace, plan.told.keys(), receipt.dry_run)
    notices, outside = (*receipt.notices, *left.notices), (*left.outside, *receipt.outside)
    return replace(receipt, notices=notices, outside=outside, found=left.found)


def _finished(place: ErasureRuntime, receipt: ForgetReceipt, pending: Pending, plan: Plan) -> ForgetReceipt:
    counts = dict(receipt.counts)
    waiting = take(place, pending, counts, vault_paths=plan.vault_paths, is_patient=True)
    place.forget_caches()
    proof = prove(place, receipt.namespace, plan, is_compact=not any(each.step == DATABASE for each in waiting))
    waits = tuple(each.files for each in waiting)
    copies = _backups(place)
    here = tuple(
        (name, what)
        for name, what in proof.found
        if not (waits and name.startswith(waits)) and place.directory.joinpath(name) not in copies
    )
    found = (*receipt.found, *here)
    counts["log_lines"] += proof.log_lines
    receipt = replace(
        receipt,
        counts=counts,
        # A backup that took its copy before this run erased anything may have been made since.
        outside=tuple(dict.fromkeys((*receipt.outside[:-1], *_copies(place)))),
        checked=proof.checked,
        excluded_needles=proof.excluded,
        found=found,
        notices=(*receipt.notices, *((LEFT,) if here else ())),
    )
    return settle(place, receipt, replace(pending, is_proved=True, is_clean=not found), waiting)


def _more(receipt: ForgetReceipt, log_lines: int, in_process: int) -> dict[str, int]:
    return {**receipt.counts, "log_lines": log_lines, "in_process": in_process, "vault_notes": 0}


def _copies(place: ErasureRuntime) -> list[str]:
    """Say which copies there are elsewhere; first those that are being written, for they may be backups at once."""
    live = [each.target for each in clear_drafts(place.directory, remove=False) if each.state == "live"]
    written = [f"what another process is writing to {path}" for path in live]
    on_server = [ON_SERVER] if place.store.is_on_server else []
    return [*written, *_backups(place).values(), *on_server, ELSEWHERE]


def _backups(place: ErasureRuntime) -> dict[Path, str]:
    """Return a sentence for the path of each copy that the store knows of: backups, and stores that a restore replaced.

    One that is not there any more is named as such: it may have been moved, and holds what it held.
    """
    found = {}
    for note in place.store.notes(None, BACKUP):
        path, when = place.directory / note.id, iso(math.floor(note.at))
        is_there = os.path.lexists(path)
        found[path] = f"the backup {note.id} of {when}" + ("" if is_there else ", no longer there")
        if json.loads(note.body).get("replaced"):
            where = "kept" if is_there else "no longer"
            found[path] = f"the store that was replaced at {when}, {where} at {note.id}"
    return found
