"""Erase deleted memories from the ledger: their ids and all free text beside them.

Free text may quote any memory, so all of it goes. An issue keeps its existence, actors, times and the ids of other
memories.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

from commonplace.dataclasses import dataclass, replace
from commonplace.formats.beads import split_notes
from commonplace.formats.escaping import strings
from commonplace.ledger import rules
from commonplace.ledger.rules import Doer
from commonplace.store.ledger import LedgerChange, LedgerReading
from commonplace.types.ledger import UNFINISHED, Issue, IssueEvent, IssueSelection

FORGOTTEN = "a memory of it was forgotten"
_IDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Naming:
    """The issues that name some memories, and the issues whose changes, which are kept to be undone, do."""

    issues: tuple[str, ...] = ()
    reversals: tuple[str, ...] = ()


def naming(ledger: LedgerReading, memory_ids: Collection[str]) -> Naming:
    """Return what names any of these memories: as what it is about, or anywhere in its notes."""
    ids = tuple(memory_ids)
    if not ids:
        return Naming()
    about, undoing = dict[str, None](), dict[str, None]()
    for begin in range(0, len(ids), _IDS_AT_ONCE):
        some = ids[begin : begin + _IDS_AT_ONCE]
        about |= dict.fromkeys(issue.id for issue in ledger.issues(IssueSelection(memory_ids=some)))
        undoing |= dict.fromkeys(each.issue for each in ledger.reversals(memory_ids=some))
    wanted = frozenset(ids)
    for id_, (notes, *others) in ledger.bodies():
        if id_ not in about:
            named = set(strings(split_notes(notes)[0]))
            for text in others:
                if len(text) > len("[]"):
                    named.update(strings(json.loads(text)))
            if not wanted.isdisjoint(named):
                about[id_] = None
    return Naming(tuple(about), tuple(undoing))


def all_there_is(ledger: LedgerReading) -> Naming:
    """Return every issue, and every issue whose change is kept to be undone."""
    return Naming(
        tuple(issue.id for issue in ledger.issues(IssueSelection())),
        tuple(reversal.issue for reversal in ledger.reversals()),
    )


def forget(ledger: LedgerChange, memory_ids: Collection[str], doer: Doer, found: Naming) -> None:
    """Remove memories from all that the ledger says; what was to be done with them is closed.

    A change that made or changed one of them cannot be undone any more.

    Args:
        found: what names them, or has their words.
    """
    gone = frozenset(memory_ids)
    for id_ in found.reversals:
        ledger.drop_reversal(id_)
    for id_ in dict.fromkeys((*found.issues, *found.reversals)):
        issue = ledger.issue(id_)
        is_unfinished = issue is not None and issue.status in UNFINISHED
        if issue is not None:
            kept = tuple(each for each in issue.memory_ids if each not in gone)
            action = split_notes(issue.notes)[0].get("action")
            word = action if isinstance(action, str) and action.isalpha() and len(action) <= 20 else ""
            notes = {"memory_ids": list(kept), "agent": issue.agent, **({"action": word} if word else {})}
            over: dict[str, Any] = {"close_reason": ""}
            if is_unfinished:
                over = {"status": "closed", "closed_at": doer.now, "close_reason": FORGOTTEN}
            issue = replace(
                issue,
                title=rules.title_of(word, len(issue.memory_ids)),
                memory_ids=kept,
                description="",
                notes=json.dumps(notes),
                dependencies="[]",
                comments="[]",
                rest="{}",
                updated_at=doer.now,
                retry_at=None,
                claimed_by="",
                claimed_at=None,
                **over,
            )
        rewrite(ledger, id_, issue, [replace(event, why="") for event in ledger.events(id_)])
        rules.record_act(ledger, id_, doer, "forgotten", FORGOTTEN if is_unfinished else "")


def rewrite(ledger: LedgerChange, id_: str, issue: Issue | None, events: Sequence[IssueEvent]) -> None:
    """Rewrite an issue and all that was done on it; what undoes its change stays.

    Args:
        issue: None where another program keeps it.
    """
    reversal = ledger.reversal(id_)
    ledger.drop_issue(id_)
    if issue is not None:
        ledger.put_issue(issue)
    for event in events:
        ledger.add_event(event)
    if reversal is not None:
        ledger.put_reversal(reversal)


def cleaned(issue: Issue, clean: Callable[[str], str], clean_json: Callable[[Any], Any]) -> Issue:
    """Return an issue whose texts were cleaned, the JSON in its notes value by value; names stay."""
    found, behind = split_notes(issue.notes)
    notes = json.dumps(clean_json(found), ensure_ascii=False) + clean(behind) if found else clean(issue.notes)
    other: dict[str, Any] = {}
    for name in ("dependencies", "comments", "rest"):
        before = json.loads(getattr(issue, name))
        after = clean_json(before)
        if after != before:
            other[name] = json.dumps(after, ensure_ascii=False)
    return replace(
        issue,
        title=clean(issue.title),
        description=clean(issue.description),
        notes=notes if notes.strip() != issue.notes.strip() else issue.notes,
        labels=tuple(sorted(set(map(clean, issue.labels)))),
        close_reason=clean(issue.close_reason),
        **other,
    )
