"""Validate the parts of a request for its verb."""

from __future__ import annotations

import re
from typing import Any, Final

from commonplace.errors import UsageError
from commonplace.formats.csp import CspError, CspRequest, Reference, read_reference
from commonplace.memory.validate import fraction, int_in

MAX_RESULTS: Final = 100
"""Maximum hits of a response; more do not fit."""

MEMORY, EPISODE, ENTITY, FACT = "mem", "episode", "entity", "fact"
_REFERENCE: Final = re.compile(rf"(?:{MEMORY}|{EPISODE}|{ENTITY}|{FACT}):")


class Parts:
    """The parts of one request that are not taken yet. A verb acts only after `finish` found none left.

    Each method takes one part, and raises a UsageError that says how to correct a missing or wrong one.

    Attributes:
        is_last: the process ends with this request.
    """

    def __init__(self, request: CspRequest, *, is_last: bool = False) -> None:
        self.is_last = is_last
        self._verb, self._words = request.verb, request.words
        self._lines: dict[str, Any] = dict(request.values)
        self._params: dict[str, Any] = dict(self._lines.pop("PARAMS", {}))

    def topic(self) -> str:
        """Take the topic: the words after the verb, or QUERY."""
        words, query = self._take_words(), self._lines.pop("QUERY", "")
        if words and query:
            raise UsageError(f"{self._verb} is given words and QUERY", remedy="give one of them")
        if not words and not query:
            raise UsageError(f"{self._verb} needs a topic", remedy=f"write TASK REQ:{self._verb} <topic>")
        return str(words or query)

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
        """Take a required line."""
        if key not in self._lines:
            raise UsageError(f"{self._verb} has no {key}", remedy=f"add a line {key} <text>")
        return str(self._lines.pop(key))

    def line(self, key: str, default: Any = None) -> Any:
        """Take a line: a text, or a tuple of texts for TAGS."""
        return self._lines.pop(key, default)

    def most_results(self, default: int) -> int:
        """Take the maximum number of hits from PARAMS or MAX_RESULTS."""
        line = self._lines.pop("MAX_RESULTS", None)
        if line is not None and "max_results" in self._params:
            raise UsageError("max_results is given in PARAMS and in MAX_RESULTS", remedy="give it once")
        limit = self._params.pop("max_results", default)
        if line is not None:
            limit = int(line) if re.fullmatch(r"[0-9]{1,9}", line) else line
        return int_in("max_results", limit, 1, MAX_RESULTS)

    def share(self, name: str, default: float) -> float:
        """Take a number from 0 to 1 from PARAMS."""
        return fraction(name, self._params.pop(name, default))

    def param(self, name: str, default: Any = None) -> Any:
        """Take a value from PARAMS, unchecked."""
        return self._params.pop(name, default)

    def values(self, *names: str) -> dict[str, Any]:
        """Take the named values that are in PARAMS, unchecked."""
        return {name: self._params.pop(name) for name in names if name in self._params}

    def finish(self) -> None:
        """Reject parts that no method took."""
        unknown = [f"PARAMS {name!r:.60}" for name in self._params] + list(self._lines)
        unknown += [f"words ({self._words!r:.40})"] if self._words else []
        if unknown:
            raise CspError(
                f"{self._verb} takes no {unknown[0]}", remedy="leave it out, or see the manual, docs/specialist.md"
            )

    def _take_words(self) -> str:
        words, self._words = self._words, ""
        return words
