"""Find what holds secrets in the ledger, issue by issue, and write it anew without them. It knows no file.

Ids, statuses, times and who did what stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from commonplace.engine.secrets_cleaning import Cleaner, Known
from commonplace.ledger.cleaning import cleaned, rewrite
from commonplace.types.ledger import IssueSelection

if TYPE_CHECKING:
    from commonplace.store.contract import Store
    from commonplace.store.ledger_contract import LedgerReading
    from commonplace.types.ledger import Issue, IssueEvent


@dataclass(frozen=True, slots=True)
class IssuePart:
    """An issue that was looked at, with what was done on it.

    Attributes:
        names: what names it and others: ids, and who did something.
        cleaner: which secrets were found in it.
        mend: writes it anew without them.
    """

    id: str
    names: tuple[str, ...]
    cleaner: Cleaner
    mend: Callable[[], None]


class LedgerSecrets:
    """The ledger of one namespace.

    Args:
        known: secrets that were found before.
    """

    def __init__(self, store: Store, namespace: str, known: Known) -> None:
        self._store = store
        self._namespace = namespace
        self._known = known

    def parts(self) -> Iterator[IssuePart]:
        """Yield every issue with the secrets that it and its history hold; nothing is written."""
        ledger = self._store.ledger(self._namespace)
        for issue in ledger.issues(IssueSelection()):
            cleaner = Cleaner(self._known)
            _, events = _cleaned(ledger, issue, cleaner)
            names = (issue.id, *issue.memory_ids, issue.claimed_by, *(event.actor for event in events))
            yield IssuePart(issue.id, names, cleaner, partial(self._mend, issue.id))

    def _mend(self, id_: str) -> None:
        with self._store.change_memories(self._namespace) as change:
            issue, cleaner = change.ledger.issue(id_), Cleaner(self._known)
            if issue is not None:
                clean, events = _cleaned(change.ledger, issue, cleaner)
                if cleaner.kinds:
                    rewrite(change.ledger, clean, events)


def _cleaned(ledger: LedgerReading, issue: Issue, cleaner: Cleaner) -> tuple[Issue, list[IssueEvent]]:
    events = [replace(event, why=cleaner.text(event.why)) for event in ledger.events(issue.id)]
    clean = cleaned(issue, cleaner.text, cleaner.value)
    return replace(clean, labels=tuple(sorted(cleaner.texts(clean.labels)))), events
