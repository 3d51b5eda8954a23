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
        issues = [issue.id for issue in ledger.issues(IssueSelection())]
        # Of an issue that another program keeps, only what was done on it stands here.
        for id_ in dict.fromkeys((*issues, *(event.issue for event in ledger.events()))):
            cleaner = Cleaner(self._known)
            issue, events = _cleaned(ledger, id_, cleaner)
            named = () if issue is None else (*issue.memory_ids, issue.claimed_by)
            names = (id_, *named, *(event.actor for event in events))
            yield IssuePart(id_, names, cleaner, partial(self._mend, id_))

    def _mend(self, id_: str) -> None:
        with self._store.change_memories(self._namespace) as change:
            cleaner = Cleaner(self._known)
            issue, events = _cleaned(change.ledger, id_, cleaner)
            if cleaner.kinds:
                rewrite(change.ledger, id_, issue, events)


def _cleaned(ledger: LedgerReading, id_: str, cleaner: Cleaner) -> tuple[Issue | None, list[IssueEvent]]:
    events = [replace(event, why=cleaner.text(event.why)) for event in ledger.events(id_)]
    issue = ledger.issue(id_)
    if issue is None:
        return None, events
    clean = cleaned(issue, cleaner.text, cleaner.value)
    return replace(clean, labels=tuple(sorted(cleaner.texts(clean.labels)))), events
