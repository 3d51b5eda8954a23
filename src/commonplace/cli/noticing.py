"""What the mirror has to say while a command runs, shown to people. The log has it as well."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from commonplace.cli.screen import notify

if TYPE_CHECKING:
    from commonplace.cli.invocation import Invocation

_SPEAKER: Final = "commonplace.mirror"


class Notices(logging.Handler):
    """Prints as notes on standard error, where output is no JSON, what became of pages that somebody edited."""

    def __init__(self, invocation: Invocation) -> None:
        super().__init__(logging.WARNING)
        self.addFilter(logging.Filter(_SPEAKER))
        self._invocation = invocation

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record as a note."""
        notify((record.getMessage(),), self._invocation)
