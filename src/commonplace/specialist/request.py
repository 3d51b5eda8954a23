"""Validate the parts of a request for its verb."""

from __future__ import annotations

import re
from typing import Any, Final

from commonplace.errors import UsageError
from commonplace.formats.csp import CspError, Reference, Request, read_reference
from commonplace.memory.validate import fraction, int_in

MAX_RESULTS: Final = 100
"""More hits do not fit into a response."""

MEMORY, EPISODE, ENTITY, FACT = "mem", "episode", "entity", "fact"
_REFERENCE: Final = re.compile(rf"(?:{MEMORY}|{EPISODE}|{ENTITY}|{FACT}):")


class Parts:
    """The parts of one request that are not taken yet. Nothing is done before `finish` found nothing left.

    Each method reads one part, and raises a UsageError that says how to correct a missing or wrong one.

    Attributes:
        is_last: the process ends with this request.
    """

    def __init__(self, request: Request, *, is_last: bool = False) -> None:
        self.is_last = is_last
        self._verb = request.verb
        self._words = request.words
        params = request.values.get("PARAMS", {})
        self._params: dict[str, Any] = dict(params) if isinstance(params, dict) else {}
        self._lines: dict[str, str] = {key: each for key, each in request.values.items() if isinstance(each, str)}
        self._tags = request.values.get("TAGS")

    def topic(self) -> str:
        """Take the topic: the words after the verb, or QUERY."""
        words, query = self._take_words(), self._lines.pop("QUERY", "")
        if words and query:
            raise UsageError(f"{self._verb} is given words and QUERY", remedy="give one of them")
        if not words and not query:
            raise UsageError(f"{self._verb} needs a topic", remedy=f"write TASK REQ:{self._verb} <topic>")
        return words or query

    def reference(self, *kinds: str) -> Reference:
        """Take a reference: `mem:<id>`, another allowed kind, or the bare id of a memory."""
        words = self._take_words()
        if not words:
            raise UsageError(f"{self._verb} needs the id of a memory", remedy=f"write TASK REQ:{self._verb} mem:<id>")
        found = read_reference(words, f"REQ:{self._verb}") if _REFERENCE.match(words) else Reference(MEMORY, words)
        allowed = (MEMORY, *kinds)
        if found.kind not in allowed:
            raise UsageError(
                f"{found.id!r:.60} is named as {found.kind}", remedy=f"{self._verb} takes {', '.join(allowed)}"
            )
        return found

    def text(self, key: str) -> str:
        """Take a line that must be there."""
        if key not in self._lines:
            raise UsageError(f"{self._verb} has no {key}", remedy=f"add a line {key} <text>")
        return self._lines.pop(key)

    def text_or_none(self, key: str) -> str | None:
        return self._lines.pop(key, None)

    def tags(self) -> tuple[str, ...]:
        tags, self._tags = self._tags, None
        return tags if isinstance(tags, tuple) else ()

    def most_results(self, default: int) -> int:
        """Take how many hits are wanted, from PARAMS or MAX_RESULTS."""
        line = self._lines.pop("MAX_RESULTS", None)
        if line is not None and "max_results" in self._params:
            raise UsageError("max_results is given in PARAMS and in MAX_RESULTS", remedy="give it once")
        given = self._params.pop("max_results", default)
        if line is not None:
            given = int(line) if re.fullmatch(r"[0-9]{1,9}", line) else line
        return int_in("max_results", given, 1, MAX_RESULTS)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """Take a whole number from PARAMS."""
        return int_in(name, self._params.pop(name, default), low, high)

    def share(self, name: str, default: float) -> float:
        """Take a number from 0 to 1 from PARAMS."""
        return fraction(name, self._params.pop(name, default))

    def flag(self, name: str) -> bool:
        """Read true or false from PARAMS; false by default."""
        given = self._params.pop(name, False)
        if not isinstance(given, bool):
            raise UsageError(f"{name} is {given!r:.60}", remedy="give true or false")
        return given

    def moment(self, name: str) -> str | float | None:
        """Take a time from PARAMS, unparsed; None if it is not given."""
        given = self._params.pop(name, None)
        if given is not None and (isinstance(given, bool) or not isinstance(given, str | int | float)):
            raise UsageError(f"{name} is {given!r:.60}", remedy="give an ISO 8601 time")
        return given

    def values(self, *names: str) -> dict[str, Any]:
        """Take some values from PARAMS, unchecked."""
        return {name: self._params.pop(name) for name in names if name in self._params}

    def finish(self) -> None:
        """Reject parts that no method took: an unknown part is a mistake."""
        left = [f"PARAMS {name!r:.60}" for name in self._params] + list(self._lines)
        left += ["TAGS"] if self._tags is not None else []
        left += [f"words ({self._words!r:.40})"] if self._words else []
        if left:
            raise CspError(
                f"{self._verb} takes no {left[0]}", remedy="leave it out, or see the manual, docs/specialist.md"
            )

    def _take_words(self) -> str:
        words, self._words = self._words, ""
        return words
