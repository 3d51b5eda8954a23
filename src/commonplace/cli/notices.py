"""Print what is logged during a run on standard error."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from commonplace.cli.output import notify, say
from commonplace.formats.escaping import harmless_line

if TYPE_CHECKING:
    from commonplace.cli.invocation import Invocation

_JOURNAL_LOGGER: Final = "commonplace.journal"


class Details(logging.Handler):
    """Prints every record on standard error, but for what `Notices` prints."""

    def __init__(self, invocation: Invocation) -> None:
        super().__init__(logging.DEBUG)
        self._has_notices = not invocation.as_json

    def emit(self, record: logging.LogRecord) -> None:
        if self._has_notices and record.name == _JOURNAL_LOGGER and record.levelno >= logging.WARNING:
            return
        say(f"{record.levelname.lower()}: {harmless_line(record.getMessage())}", err=True)
        if record.exc_info:
            say(logging.Formatter().formatException(record.exc_info), err=True)


class Notices(logging.Handler):
    """Prints as notes on standard error, where output is no JSON, what became of pages that somebody edited."""

    def __init__(self, invocation: Invocation) -> None:
        super().__init__(logging.WARNING)
        self.addFilter(logging.Filter(_JOURNAL_LOGGER))
        self._invocation = invocation

    def emit(self, record: logging.LogRecord) -> None:
        notify((record.getMessage(),), self._invocation)
