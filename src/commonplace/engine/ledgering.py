"""`engine.ledger`: the issues of a namespace. It finds who keeps them and who is asking; the rules are in `ledger`."""

from __future__ import annotations

import getpass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.engine.workings import Workings

if TYPE_CHECKING:
    from commonplace.ledger.bd import BdLedger
    from commonplace.ledger.book import Ledger


class Ledgering(Workings):
    """The part of `Engine` that keeps the list of what consolidation did or proposes."""

    @cached_property
    def ledger(self) -> Ledger | BdLedger:
        """The issues of this namespace, in the store or, where the settings say so, in beads.

        Raises:
            UsageError: the settings name beads, and there is no program or no database of it.
        """
        if self.settings.ledger.backend == "bd":
            from commonplace.ledger.bd import open_bd

            return open_bd(self.settings.ledger.bd, (self.project or Path.cwd()).absolute())
        from commonplace.ledger.book import Ledger

        return Ledger(self._store, self.namespace, self._now, _person())


def _person() -> str:
    """Return who asks, by the name that the machine knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"  # in a container a user may have a number and no name
