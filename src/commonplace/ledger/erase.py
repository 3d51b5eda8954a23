"""Erase deleted memories from the ledger: their ids and all free text beside them.

Free text may quote any memory, so all of it is removed. The issue itself stays, with its actors, times and the ids of
other memories.
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
_BATCH_SIZE = 500


@dataclass(frozen=True, slots=True)
class LedgerMentions:
    """The ids of the issues that name certain memories, and of those whose stored reversals do."""

    issues: tuple[str, ...] = ()
    reversals: tuple[str, ...] = ()


def find_mentions(ledger: LedgerReading, memory_ids: Collection[str]) -> LedgerMentions:
    """Return the issues and reversals that name any of these memories, also within the JSON texts of an issue."""
    ids = tuple(memory_ids)
    if not ids:
        return LedgerMentions()
    issues, reversals = dict[str, None](), dict[str, None]()
    for begin in range(0, len(ids), _BATCH_SIZE):
        batch = ids[begin : begin + _BATCH_SIZE]
        issues |= dict.fromkeys(issue.id for issue in ledger.issues(IssueSelection(memory_ids=batch)))
        reversals |= dict.fromkeys(reversal.issue for reversal in ledger.reversals(memory_ids=batch))
    id_set = frozenset(ids)
    for id_, (notes, *json_texts) in ledger.bodies():
        if id_ not in issues:
            texts = set(strings(split_notes(notes)[0]))
            for text in json_texts:
                if len(text) > len("[]"):
                    texts.update(strings(json.loads(text)))
            if not id_set.isdisjoint(texts):
                issues[id_] = None
    return LedgerMentions(tuple(issues), tuple(reversals))


def all_issues(ledger: LedgerReading) -> LedgerMentions:
    """Return all issues, and all issues with a stored reversal."""
    return LedgerMentions(
        tuple(issue.id for issue in ledger.issues(IssueSelection())),
        tuple(reversal.issue for reversal in ledger.reversals()),
    )


def forget(ledger: LedgerChange, memory_ids: Collection[str], doer: Doer, mentions: LedgerMentions) -> None:
    """Remove memories from the ledger, and close unfinished issues about them.

    A change that created or changed one of them can no longer be undone.

    Args:
        mentions: the issues and reversals that name the memories, or contain their words.
    """
    erased = frozenset(memory_ids)
    for id_ in mentions.reversals:
        ledger.drop_reversal(id_)
    for id_ in dict.fromkeys((*mentions.issues, *mentions.reversals)):
        issue = ledger.issue(id_)
        is_unfinished = issue is not None and issue.status in UNFINISHED
        if issue is not None:
            remaining = tuple(memory_id for memory_id in issue.memory_ids if memory_id not in erased)
            action = split_notes(issue.notes)[0].get("action")
            word = action if isinstance(action, str) and action.isalpha() and len(action) <= 20 else ""
            notes = {"memory_ids": list(remaining), "agent": issue.agent, **({"action": word} if word else {})}
            changes: dict[str, Any] = {"close_reason": ""}
            if is_unfinished:
                changes = {"status": "closed", "closed_at": doer.now, "close_reason": FORGOTTEN}
            issue = replace(
                issue,
                title=rules.title_of(word, len(issue.memory_ids)),
                memory_ids=remaining,
                description="",
                notes=json.dumps(notes),
                dependencies="[]",
                comments="[]",
                rest="{}",
                updated_at=doer.now,
                retry_at=None,
                claimed_by="",
                claimed_at=None,
                **changes,
            )
        rewrite(ledger, id_, issue, [replace(event, why="") for event in ledger.events(id_)])
        rules.record_act(ledger, id_, doer, "forgotten", FORGOTTEN if is_unfinished else "")


def rewrite(ledger: LedgerChange, id_: str, issue: Issue | None, events: Sequence[IssueEvent]) -> None:
    """Replace an issue and its events; its reversal stays.

    Args:
        issue: the new version; None if another program keeps it.
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
    """Return an issue with cleaned texts; in JSON, such as that in its notes, values are cleaned and names stay."""
    values, lines = split_notes(issue.notes)
    notes = json.dumps(clean_json(values), ensure_ascii=False) + clean(lines) if values else clean(issue.notes)
    changes: dict[str, Any] = {}
    for name in ("dependencies", "comments", "rest"):
        before = json.loads(getattr(issue, name))
        after = clean_json(before)
        if after != before:
            changes[name] = json.dumps(after, ensure_ascii=False)
    return replace(
        issue,
        title=clean(issue.title),
        description=clean(issue.description),
        notes=notes if notes.strip() != issue.notes.strip() else issue.notes,
        labels=tuple(sorted(set(map(clean, issue.labels)))),
        close_reason=clean(issue.close_reason),
        **changes,
    )
