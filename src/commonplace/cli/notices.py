"""Print what is logged during a run on standard error."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from commonplace.cli.output import notify, say
from commonplace.formats.escaping import harmless_line

if TYPE_CHECKING:
    from commonplace.cli.invocation import Invocation

_JOURNAL_LOGGER: Final = "commonplace.journal"


class Notices(logging.Handler):
    """Prints as notes what became of pages that somebody edited; with --verbose also every other record."""

    def __init__(self, invocation: Invocation) -> None:
        super().__init__(logging.DEBUG if invocation.is_verbose else logging.WARNING)
        self._invocation = invocation

    def emit(self, record: logging.LogRecord) -> None:
        is_note = record.name == _JOURNAL_LOGGER and record.levelno >= logging.WARNING
        if is_note and not self._invocation.as_json:
            notify((record.getMessage(),), self._invocation)
        elif self._invocation.is_verbose:
            say(f"{record.levelname.lower()}: {harmless_line(record.getMessage())}", err=True)
            if record.exc_info:
                say(logging.Formatter().formatException(record.exc_info), err=True)
