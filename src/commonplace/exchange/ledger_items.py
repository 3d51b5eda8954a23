"""Issues of the ledger in an export: their lines, what an import takes in of them, and how that is written.

An issue comes with what was done on it, and with what undoes its change. It knows no file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from commonplace.errors import UsageError
from commonplace.exchange.graph_comparing import Outcome
from commonplace.ledger.cleaning import cleaned, rewrite
from commonplace.memories.intake import refuse_unfit_id
from commonplace.memories.times import seconds
from commonplace.redaction import redact
from commonplace.redaction.structures import cleaned_json
from commonplace.types.ledger import Issue, IssueEvent, IssueSelection, Reversal

if TYPE_CHECKING:
    from commonplace.store.ledger_contract import LedgerChange, LedgerReading

_PRIORITIES: Final = range(5)
_VAULT: Final = "vault"


@dataclass(frozen=True, slots=True)
class IssueItem:
    """An issue with its history; `secrets` are the kinds of those that were replaced in it.

    Attributes:
        issue: None where another program keeps it.
    """

    place: str
    id: str
    issue: Issue | None
    events: tuple[IssueEvent, ...]
    reversal: Reversal | None
    secrets: tuple[str, ...] = ()


def ledger_lines(ledger: LedgerReading) -> Iterator[dict[str, Any]]:
    """Yield the lines of all issues, by creation, ties by id; then of those that another program keeps, by id."""
    events: dict[str, list[IssueEvent]] = {}
    for event in ledger.events():
        events.setdefault(event.issue, []).append(event)
    reversals = {reversal.issue: reversal for reversal in ledger.reversals()}
    issues: dict[str, Issue | None] = {issue.id: issue for issue in ledger.issues(IssueSelection())}
    elsewhere = sorted((events.keys() | reversals.keys()) - issues.keys())
    for id_, issue in (issues | dict.fromkeys(elsewhere)).items():
        yield {
            "type": "issue",
            "id": id_,
            "issue": issue,
            "events": events.get(id_, []),
            "reversal": reversals.get(id_),
        }


def issue_item(
    place: str, id_: str, issue: Issue | None, events: tuple[IssueEvent, ...], reversal: Reversal | None
) -> IssueItem:
    """Return an issue that may be stored.

    Raises:
        UsageError: a value is of the wrong kind or out of its range.
    """
    if issue is not None:
        _refuse_odd_issue(issue, id_)
    for event in events:
        _refuse_odd_times(event, "at")
    if reversal is not None:
        for each in reversal.memory_ids:
            refuse_unfit_id(each)
        _refuse_odd_times(reversal, "at", "undone_at")
        _refuse_odd_steps(_parsed("steps", reversal.steps, list))
    kinds: list[str] = []

    def clean(text: str) -> str:
        redacted = redact(text)
        kinds.extend(redacted.kinds)
        return redacted.text

    kept = issue
    if issue is not None:
        kept = cleaned(issue, clean, lambda value: cleaned_json(value, clean))
        kept = replace(kept, labels=tuple(map(clean, issue.labels)))
    told = tuple(replace(event, why=clean(event.why)) for event in events)
    return IssueItem(place, id_, kept, told, reversal, tuple(kinds))


def outcome_of_issue(item: IssueItem, ledger: LedgerReading) -> Outcome:
    """Compare what two issues of one id say, with all that was done on them."""
    here = (ledger.issue(item.id), tuple(ledger.events(item.id)), _unnumbered(ledger.reversal(item.id)))
    if here == (None, (), None):
        return "added"
    return "unchanged" if here == (item.issue, item.events, _unnumbered(item.reversal)) else "conflict"


def put_issues(ledger: LedgerChange, items: Sequence[IssueItem], *, is_replacing: bool) -> None:
    """Write issues that are not here, or in the place of those that are; what undoes their changes keeps its order."""
    written = [item for item in items if _is_wanted(outcome_of_issue(item, ledger), is_replacing=is_replacing)]
    for item in written:
        rewrite(ledger, item.id, item.issue, item.events)
        ledger.drop_reversal(item.id)
    undoing = [item.reversal for item in written if item.reversal is not None]
    numbers = [reversal.number for reversal in (*ledger.reversals(), *undoing)]
    is_free = len(set(numbers)) == len(numbers)
    for reversal in sorted(undoing, key=lambda reversal: reversal.number):
        ledger.put_reversal(reversal if is_free else replace(reversal, number=0))


def _is_wanted(outcome: Outcome, *, is_replacing: bool) -> bool:
    return outcome == "added" or (outcome == "conflict" and is_replacing)


def _unnumbered(reversal: Reversal | None) -> Reversal | None:
    return None if reversal is None else replace(reversal, number=0)


def _refuse_odd_issue(issue: Issue, id_: str) -> None:
    for each in issue.memory_ids:
        refuse_unfit_id(each)
    if issue.id != id_:
        raise UsageError(f"the line of issue {id_!r:.80} holds issue {issue.id!r:.80}", remedy="give one id")
    if issue.priority not in _PRIORITIES or issue.retries < 0:
        raise UsageError(
            f"priority is {issue.priority}, retries is {issue.retries}", remedy="give 0 to 4, and 0 or more"
        )
    _refuse_odd_times(issue, "created_at", "updated_at", "closed_at", "retry_at", "claimed_at", "escalated_at")
    for name, sort in (("dependencies", list), ("comments", list), ("rest", dict)):
        _parsed(name, getattr(issue, name), sort)


def _refuse_odd_times(what: object, *names: str) -> None:
    for name in names:
        value = getattr(what, name)
        if value is not None:
            seconds(name, value)


def _parsed(name: str, text: str, sort: type) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is {text!r:.80}", remedy="give JSON as text") from error
    if not isinstance(found, sort):
        raise UsageError(f"{name} is {text!r:.80}", remedy="give " + ("an array" if sort is list else "an object"))
    return found


def _refuse_odd_steps(steps: list[Any]) -> None:
    """Refuse steps that would reach beyond the vault when they are taken."""
    for step in steps:
        path = step.get("path") if isinstance(step, dict) else None
        if path is None:
            continue
        parts = PurePosixPath(path).parts if isinstance(path, str) else ()
        if parts[:1] != (_VAULT,) or ".." in parts or "\0" in str(path) or "\\" in str(path):
            raise UsageError(f"a step has the path {path!r:.80}", remedy=f"give a path below {_VAULT}/")
