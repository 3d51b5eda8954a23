"""Compile search filters to SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.errors import UsageError
from commonplace.store import knowledge, memories, owners
from commonplace.store.dialect import Database, listed_or_none
from commonplace.types import Filter

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


def matching_owners(db: Database, namespace: str, wanted: Filter) -> list[int]:
    """Return the numbers of the owners of a namespace that pass the filter, ascending."""
    values = {
        "namespace": namespace,
        "kinds": " ".join(wanted.kinds) or None,
        "types": listed_or_none(wanted.types),
        "phases": listed_or_none(wanted.phases),
        "as_of": wanted.as_of,
        "valid_at": wanted.valid_at,
    }
    numbers = _numbers(db, owners.MATCHING, values)
    if wanted.as_of is not None:
        numbers |= _numbers(db, owners.MATCHING_PAST, values)
    if wanted.valid_at is not None:
        numbers = (numbers & _numbers(db, memories.HAPPENED, values)) | _earlier(db, wanted, values)
    if wanted.paths:
        is_wanted = path_matcher(wanted.paths)
        numbers &= {n for n, path in db.execute(owners.PATHS, {"namespace": namespace}) if is_wanted(path)}
    if wanted.tags:
        tagged: set[int] = set()
        for tag in wanted.tags:
            tagged |= _numbers(db, owners.TAGGED, {"namespace": namespace, "tag": tag})
        numbers &= tagged
    if wanted.tiers or wanted.sessions or wanted.sources:
        numbers &= _numbers(
            db,
            memories.MATCHING,
            {
                "namespace": namespace,
                "tiers": listed_or_none(wanted.tiers),
                "sessions": listed_or_none(wanted.sessions),
                "sources": listed_or_none(wanted.sources),
            },
        )
    if wanted.agents:
        known: set[int] = set()
        for agent in wanted.agents:
            known |= _numbers(db, knowledge.MATCHING, {"namespace": namespace, "agent": agent})
        numbers &= known
    if wanted.min_trust:
        numbers -= _numbers(db, memories.DISTRUSTED, {"namespace": namespace, "min_trust": wanted.min_trust})
    return sorted(numbers)


def _earlier(db: Database, wanted: Filter, values: Mapping[str, str | bytes | float | None]) -> set[int]:
    is_memory_wanted = not wanted.types and (not wanted.kinds or "memory" in wanted.kinds)
    return _numbers(db, memories.EARLIER, values) if is_memory_wanted else set()


def _numbers(db: Database, sql: str, values: Mapping[str, str | bytes | float | None]) -> set[int]:
    return {number for (number,) in db.execute(sql, values)}
