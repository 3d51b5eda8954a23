"""How issues of another ledger, ours or beads', come into this one. It knows no format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commonplace.ledger import filing
from commonplace.types.ledger import UNFINISHED

if TYPE_CHECKING:
    from commonplace.ledger.filing import Doer
    from commonplace.store.ledger_contract import LedgerChange
    from commonplace.types.ledger import Issue


@dataclass(frozen=True, slots=True)
class ImportedIssues:
    """What became of the issues of an import, by their ids.

    Attributes:
        replaced: those that were here, and were changed later elsewhere.
        unchanged: those that were here as they are, or were changed later here.
        same: those that tell the same as an unfinished issue here, and were left out.
    """

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    same: tuple[str, ...] = ()


def take_in(ledger: LedgerChange, issues: Iterable[Issue], doer: Doer, why: str = "") -> ImportedIssues:
    """Write issues that come from elsewhere; of two with one id the one that was changed last stays.

    An applied change that stands here keeps its issue as it is: otherwise it could be applied twice.
    """
    done: dict[str, list[str]] = {"added": [], "replaced": [], "unchanged": [], "same": []}
    for issue in issues:
        what = _what(ledger, issue)
        done[what].append(issue.id)
        if what in ("added", "replaced"):
            ledger.put_issue(issue)
            filing.tell(ledger, issue.id, doer, "imported", why)
    return ImportedIssues(**{name: tuple(ids) for name, ids in done.items()})


def _what(ledger: LedgerChange, issue: Issue) -> str:
    here = ledger.issue(issue.id)
    undoes = ledger.reversal(issue.id)
    if here is not None and (issue.updated_at <= here.updated_at or (undoes and undoes.undone_at is None)):
        return "unchanged"
    if issue.agent and issue.memory_ids and issue.status in UNFINISHED:
        same = ledger.unfinished(issue.agent, issue.memory_ids)
        if same is not None and same.id != issue.id:
            return "same"
    return "added" if here is None else "replaced"
