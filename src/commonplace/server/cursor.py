"""The cursor of a list: where the next page begins, which list it is of, and until when it is good."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from commonplace.errors import UsageError

GOOD_FOR_S: Final = 86_400.0
_REMEDY: Final = "ask for the first page again, without a cursor"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place in a list of memories, the newest first.

    Attributes:
        until: the page begins with memories before this time.
        skip: so many of the first ones are known already, since they are of the same moment.
    """

    until: Any
    skip: int

    def after(self, times: Sequence[datetime]) -> Cursor:
        """Return the place behind a page, by the times of its memories; the page has at least one."""
        last = times[-1]
        until = (last + timedelta(microseconds=1)).isoformat()
        same = sum(each == last for each in times)
        return Cursor(until, same + (self.skip if self.until == until else 0))

    def write(self, filters: Mapping[str, Any]) -> str:
        """Return the cursor as a text, for a list with these filters."""
        value = [self.until, self.skip, _digest(filters), int(time.time())]
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, filters: Mapping[str, Any]) -> Cursor:
        """Return the place that a text of `write` says.

        Raises:
            UsageError: it is no cursor, is older than a day, or belongs to a list with other filters.
        """
        try:
            until, skip, digest, at = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            is_one = isinstance(until, str) and isinstance(skip, int) and skip >= 0 and isinstance(at, int)
        except (ValueError, TypeError):
            is_one = False
        if not is_one:
            raise UsageError(f"{text!r:.80} is no cursor of this server", remedy=_REMEDY, parameters=("cursor",))
        if not 0 <= time.time() - at < GOOD_FOR_S:
            raise UsageError("the cursor is older than a day", remedy=_REMEDY)
        if digest != _digest(filters):
            raise UsageError("the cursor is of a list with other filters", remedy=_REMEDY)
        return cls(until, skip)


def _digest(filters: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(filters, sort_keys=True, default=list).encode()).hexdigest()[:16]
