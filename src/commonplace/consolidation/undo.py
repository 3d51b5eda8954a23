"""Undo one change of an agent, or all of a run, in one transaction; later changes by others are kept.

A change can be undone unless a later change builds on it; mere use of a memory does not count. A value that was
changed again keeps its newer value. An undo takes effect from now on: earlier versions stay as they were.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commonplace.consolidation.base import LINK, PAGE, REVIVE, UNLINK, record_values, restored_record
from commonplace.consolidation.runner import is_run
from commonplace.consolidation.runtime import ConsolidationRuntime
from commonplace.dataclasses import dataclass, replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.json_values import View
from commonplace.ledger.rules import ERASE
from commonplace.store.memories import MemoryChange
from commonplace.text.similarity import signature
from commonplace.types import RULE, Link
from commonplace.types.ledger import IssueEvent, Reversal


@dataclass(frozen=True, slots=True)
class Undone(View):
    """The result of an undo.

    Attributes:
        issues: ids of the issues whose changes were undone, latest first.
        memory_ids: sorted ids of the memories that were restored, or erased if an undone change had created them.
        notices: what was left alone and why, one sentence each.
    """

    issues: tuple[str, ...]
    memory_ids: tuple[str, ...]
    notices: tuple[str, ...] = ()


def undo(runtime: ConsolidationRuntime, id_: str) -> Undone:
    """Undo the change of an issue, or every change of a run that is still applied.

    Raises:
        NotFoundError: there is no such issue or run, or none of its changes is still applied.
        UsageError: a later change builds on it, or others have changed one of its memories since.
    """
    pages, notices = list[Path](), list[str]()
    with runtime.store.change_memories(runtime.namespace, made_by=runtime.stamp()) as change:
        applied = _applied_reversals(runtime, change, id_)
        undoing = {row.issue for row in applied}
        for earlier in applied:
            for later in change.ledger.reversals(memory_ids=earlier.memory_ids, after=earlier.number):
                if later.undone_at is None and later.issue not in undoing:
                    raise UsageError(
                        f"issue {later.issue} changed the same memories later than {earlier.issue}",
                        remedy=f"undo {later.issue} first",
                    )
        for reversal in applied:
            for step in json.loads(reversal.steps):
                if step["do"] == UNLINK:
                    change.unlink(step["source"], step["target"], step["type"])
                elif step["do"] == LINK:
                    change.link(Link(step["source"], step["target"], step["type"], step["strength"], step["at"]))
                elif step["do"] == PAGE:
                    if _is_as_written(runtime.directory, step, notices):
                        pages.append(runtime.directory / step["path"])
                else:
                    _undo_memory(change, step, notices)
            change.ledger.put_reversal(replace(reversal, undone_at=runtime.now()))
            change.ledger.add_event(IssueEvent(reversal.issue, runtime.now(), runtime.actor, "undone"))
    # Removed only after the commit: a leftover note is found again by its memory's id, a lost one is not.
    for page in pages:
        try:
            page.unlink(missing_ok=True)
        except OSError as error:
            notices.append(f"{page.name} could not be removed and stays: {error.strerror}")
    runtime.after()
    touched = sorted({memory_id for reversal in applied for memory_id in reversal.memory_ids})
    return Undone(tuple(row.issue for row in applied), tuple(touched), tuple(notices))


def undo_merge(runtime: ConsolidationRuntime, memory_id: str) -> Undone:
    """Undo the merge that made a memory and restore its sources.

    Raises:
        NotFoundError: no merge that is still applied made the memory.
        UsageError: a later change builds on the merge, or others have changed one of its memories since.
    """
    for reversal in runtime.store.ledger(runtime.namespace).reversals(memory_ids=[memory_id]):
        steps = json.loads(reversal.steps)
        if reversal.undone_at is None and any((step["do"], step["id"]) == (ERASE, memory_id) for step in steps):
            return undo(runtime, reversal.issue)
    raise NotFoundError(
        f"no merge made memory {memory_id!r:.80}, or it was undone, or a memory of it was forgotten since",
        remedy="see `commonplace ledger list --all`",
    )


def _applied_reversals(runtime: ConsolidationRuntime, change: MemoryChange, id_: str) -> list[Reversal]:
    issue_reversal = change.ledger.reversal(id_)
    reversals = [issue_reversal] if issue_reversal is not None else change.ledger.reversals(run=id_)
    applied = [reversal for reversal in reversals if reversal.undone_at is None]
    if applied:
        return applied[::-1]
    if reversals:
        raise NotFoundError(f"what {id_!r:.80} changed was undone already", remedy="there is nothing left to undo")
    is_issue = change.ledger.issue(id_) is not None
    if is_issue or is_run(runtime, id_):
        raise NotFoundError(
            f"{'issue' if is_issue else 'run'} {id_!r:.80} changed nothing, or what it changed was forgotten since",
            remedy="only applied changes can be undone; `commonplace ledger history` shows what was done",
        )
    raise NotFoundError(
        f"there is no issue or run {id_!r:.80} in this namespace",
        remedy="see `commonplace consolidate runs` and `commonplace ledger list --all`",
    )


def _undo_memory(change: MemoryChange, step: Mapping[str, Any], notices: list[str]) -> None:
    """Erase, revive or revise a memory; raise a `UsageError` if others have changed it since."""
    id_, memory = step["id"], change.find(step["id"])
    changed_since = UsageError(
        f"memory {id_!r:.80} was changed, archived or brought back since",
        remedy="see `commonplace get ID --versions`, and restore by hand what you need",
    )
    if memory is None:
        raise changed_since
    if step["do"] == ERASE:
        if memory.expired_at is not None or memory.record.version != step["version"]:
            raise changed_since
        # The change's own links are already removed: remaining ones are others', unless the rule made them.
        notices += [
            f"the link {link.type} from {link.source} to {link.target} went with its memory"
            for link in change.links([id_])
            if link.origin != RULE
        ]
        change.erase([id_])
    elif step["do"] == REVIVE:
        record = restored_record(step["record"], memory.record)
        if memory.expired_at is None or memory.record.version != record.version:
            raise changed_since
        bands = () if memory.owner.session else signature(memory.record.content).bands
        change.revive(memory.number, record, bands=bands)
    else:
        now, before = record_values(memory.record), {}
        for name, (old, new) in step["changed"].items():
            if now[name] == new:
                before[name] = old
            else:
                notices.append(f"{name} of memory {id_} was changed since and stays {now[name]!r}")
        change.revise(memory.number, restored_record(before, memory.record))


def _is_as_written(directory: Path, step: Mapping[str, Any], notices: list[str]) -> bool:
    """Return whether a vault note is there as it was written; add a notice if it was edited."""
    path = directory / step["path"]
    if not os.path.lexists(path):
        return False
    # A symbolic link, as the file or a directory, leads to something that is not ours.
    is_file = path.is_file() and path.resolve() == directory.resolve() / step["path"]
    try:
        is_ours = is_file and hashlib.sha256(path.read_bytes()).hexdigest() == str(step["sha256"])
    except OSError:
        is_ours = False
    if not is_ours:
        notices.append(f"{step['path']} was edited since it was written, and stays")
    return is_ours
