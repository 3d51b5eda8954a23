"""Undo one change of an agent, or all of a run, in one transaction; later changes by others are kept.

A change can be undone unless a later change builds on it; mere use of a memory does not count. Where a value was
changed again, the newer value stays. An undo affects what is known from now on: earlier versions stay as they were.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commonplace.consolidation.base import LINK, PAGE, REVIVE, UNLINK, packed, unpacked
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
    """What was undone.

    Attributes:
        issues: those whose changes were undone, the latest first.
        memory_ids: the memories that are as they were before, sorted; those that a change had made are gone.
        notices: one sentence each: what was left alone, and why.
    """

    issues: tuple[str, ...]
    memory_ids: tuple[str, ...]
    notices: tuple[str, ...] = ()


def undo(runtime: ConsolidationRuntime, id_: str) -> Undone:
    """Undo the change of an issue, or every change of a run that is still applied.

    Raises:
        NotFoundError: there is no such issue or run, or nothing of it is still applied.
        UsageError: a later change rests on it, or a memory of it was changed by others since.
    """
    pages, notices = list[Path](), list[str]()
    with runtime.store.change_memories(runtime.namespace, made_by=runtime.stamp()) as change:
        standing = _standing(runtime, change, id_)
        ours = {each.issue for each in standing}
        for each in standing:
            for later in change.ledger.reversals(memory_ids=each.memory_ids, after=each.number):
                if later.undone_at is None and later.issue not in ours:
                    raise UsageError(
                        f"issue {later.issue} changed the same memories later than {each.issue}",
                        remedy=f"undo {later.issue} first",
                    )
        for reversal in standing:
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
    # Only now: a note that is left over is found again by its memory's id, one that is lost is not.
    for page in pages:
        try:
            page.unlink(missing_ok=True)
        except OSError as error:
            notices.append(f"{page.name} could not be removed and stays: {error.strerror}")
    runtime.after()
    touched = sorted({each for reversal in standing for each in reversal.memory_ids})
    return Undone(tuple(each.issue for each in standing), tuple(touched), tuple(notices))


def undo_merge(runtime: ConsolidationRuntime, memory_id: str) -> Undone:
    """Undo the merge that made a memory: its sources are what they were.

    Raises:
        NotFoundError: no merge that is still applied made it.
        UsageError: a later change rests on it, or a memory of it was changed by others since.
    """
    for reversal in runtime.store.ledger(runtime.namespace).reversals(memory_ids=[memory_id]):
        steps = json.loads(reversal.steps)
        if reversal.undone_at is None and any((step["do"], step["id"]) == (ERASE, memory_id) for step in steps):
            return undo(runtime, reversal.issue)
    raise NotFoundError(
        f"no merge made memory {memory_id!r:.80}, or it was undone, or a memory of it was forgotten since",
        remedy="see `commonplace ledger list --all`",
    )


def _standing(runtime: ConsolidationRuntime, change: MemoryChange, id_: str) -> list[Reversal]:
    of_issue = change.ledger.reversal(id_)
    found = [of_issue] if of_issue is not None else change.ledger.reversals(run=id_)
    standing = [each for each in found if each.undone_at is None]
    if standing:
        return standing[::-1]
    if found:
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
    """Erase, revive or revise a memory, unless others changed it since."""
    id_, known = step["id"], change.find(step["id"])
    changed_since = UsageError(
        f"memory {id_!r:.80} was changed, archived or brought back since",
        remedy="see `commonplace get ID --versions`, and restore by hand what you need",
    )
    if known is None:
        raise changed_since
    if step["do"] == ERASE:
        if known.expired_at is not None or known.record.version != step["version"]:
            raise changed_since
        # What the change itself linked was unlinked before: this is others', unless the rule judged it.
        notices += [
            f"the link {link.type} from {link.source} to {link.target} went with its memory"
            for link in change.links([id_])
            if link.origin != RULE
        ]
        change.erase([id_])
    elif step["do"] == REVIVE:
        record = unpacked(step["record"], known.record)
        if known.expired_at is None or known.record.version != record.version:
            raise changed_since
        bands = () if known.owner.session else signature(known.record.content).bands
        change.revive(known.number, record, bands=bands)
    else:
        now, before = packed(known.record), {}
        for name, (old, new) in step["changed"].items():
            if now[name] == new:
                before[name] = old
            else:
                notices.append(f"{name} of memory {id_} was changed since and stays {now[name]!r}")
        change.revise(known.number, unpacked(before, known.record))


def _is_as_written(directory: Path, step: Mapping[str, Any], notices: list[str]) -> bool:
    """Return whether a note of the vault is there as it was written; one that was edited is noticed."""
    path = directory / step["path"]
    if not os.path.lexists(path):
        return False
    # A link, or a directory that is one, leads to what is not ours.
    is_there = path.is_file() and path.resolve() == directory.resolve() / step["path"]
    try:
        is_ours = is_there and hashlib.sha256(path.read_bytes()).hexdigest() == str(step["sha256"])
    except OSError:
        is_ours = False
    if not is_ours:
        notices.append(f"{step['path']} was edited since it was written, and stays")
    return is_ours
