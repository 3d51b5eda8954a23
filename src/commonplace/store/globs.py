"""Path globs in the notation of .gitignore, for filters, indexing and ignore files; pathspec reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.errors import UsageError

if TYPE_CHECKING:
    from pathspec import RegexPattern

_CLASSES: Final = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "0-9A-Za-z",
    "upper": "A-Z",
    "lower": "a-z",
    "xdigit": "0-9A-Fa-f",
    "space": " \t\n\r\f\v",
    "blank": " \t",
    "cntrl": "\x00-\x1f\x7f",
    "graph": '"-~!',
    "print": " -~",
    "punct": '"-/:-@[-`{-~!',
}
"""What pathspec does not know of a bracket, as ranges; none begins with `!`, which would negate the bracket."""


def path_matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate that holds for the paths that globs name; the last that matches decides, "" is never named.

    A glob that names a directory names what is in it.

    Raises:
        UsageError: a glob is malformed or says nothing, or there is none.
    """
    from pathspec import PathSpec

    if not globs:
        raise UsageError("no glob was given", remedy="name at least one, for example '**/*.md'")
    patterns: list[Any] = []
    for glob in globs:
        if not (pattern := pattern_of(glob)):
            raise UsageError(
                f"{glob!r} is not a glob", remedy="write it as in .gitignore, for example 'docs/**/*.md' or '*.py'"
            )
        patterns.append(pattern)
    spec = PathSpec(patterns)
    return lambda path: bool(path) and spec.match_file(path)


def pattern_of(line: str) -> RegexPattern | None:
    """Return the pattern of one line, None where it is a comment, blank or malformed."""
    from pathspec import GitIgnoreSpec

    try:
        line = re.sub(r"\[:(\w*):\]", lambda named: _CLASSES[named[1]], line)
        # `[[` as it stands is a nested set to later versions of `re`, which warns of it.
        found = GitIgnoreSpec.from_lines([re.sub(r"(?<!\\)\[\[", r"[\\[", line)]).patterns
    except (ValueError, KeyError, re.error):
        return None
    return found[0] if found and found[0].include is not None else None
