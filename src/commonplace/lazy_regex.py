"""Regular expressions that are compiled on first use.

Answering one question imports some 250 and uses a third of them: compiling them all took a fifth of the time.
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
        """Return a pattern with the members of a `re.Pattern`; an invalid one raises an error on first use."""
else:

    class lazy_pattern:  # noqa: N801 - called like `re.compile`
        """A pattern that is compiled, and gets the members of a `re.Pattern`, on first access to one of them."""

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
