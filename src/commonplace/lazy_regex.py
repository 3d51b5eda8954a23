"""Regular expressions that are compiled when they are first used.

What answers one question imports some 250 and uses a third: compiling them all was a fifth of its time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

_MEMBERS = (
    *("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"),
    *("pattern", "flags", "groups", "groupindex"),
)

if TYPE_CHECKING:

    def lazy_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """Return a pattern with the members of one of `re`; what is wrong with it shows when it is used."""
else:

    class lazy_pattern:  # noqa: N801 - called like `re.compile`
        """A pattern that takes the members of one of `re` when the first of them is asked for."""

        def __init__(self, source: str | bytes, flags: int = 0) -> None:
            self._source, self._flags = source, flags

        def __getattr__(self, name: str) -> Any:
            if name not in _MEMBERS:
                raise AttributeError(name)
            compiled = re.compile(self._source, self._flags)
            self.__dict__.update({each: getattr(compiled, each) for each in _MEMBERS})
            return getattr(compiled, name)

        def __repr__(self) -> str:
            return f"lazy_pattern({self._source!r})"
