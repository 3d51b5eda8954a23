"""Compile search filters to SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from commonplace.errors import UsageError
from commonplace.store import owners
from commonplace.store.dialect import SPACE, Database, among, listed
from commonplace.store.statements import SHARED
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
    "punct": '"-.:-@[-`{-~!',  # without "/", at which a pattern is cut first
}
"""POSIX character classes, which pathspec lacks, as ranges; none begins with `!`, which would negate the bracket."""


def path_matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate for the paths that match globs; the last matching glob decides, and "" never matches.

    A glob that matches a directory matches everything in it.

    Raises:
        UsageError: a glob is malformed, blank or a comment, or there is none.
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
    """Return the pattern of one line; None if the line is a comment, blank or malformed."""
    from pathspec import GitIgnoreSpec

    try:
        line = re.sub(r"\[:(\w*):\]", lambda named: _CLASSES[named[1]], line)
        # Unescaped, `[[` may begin a nested set in a later version of `re`, which warns about it.
        patterns = GitIgnoreSpec.from_lines([re.sub(r"(?<!\\)\[\[", r"[\\[", line)]).patterns
    except (ValueError, KeyError, re.error):
        return None
    return patterns[0] if patterns and patterns[0].include is not None else None


def matching_owners(db: Database, namespace: str, filter_: Filter) -> list[int]:
    """Return the numbers of the owners of a namespace that pass the filter, ascending."""
    values: dict[str, Any] = {"namespace": namespace, "as_of": filter_.as_of, "valid_at": filter_.valid_at}
    for name in _TERMS:
        if option := getattr(filter_, name):
            values[name] = " ".join(option) if name == "kinds" else option if name == "min_trust" else listed(option)
    if filter_.tags:
        values["untagged_types"] = listed(filter_.untagged_types)
    fields = frozenset(name for name, value in values.items() if value is not None)
    numbers = {number for (number,) in db.execute(_matching(fields), values)}
    if filter_.paths:
        matches = path_matcher(filter_.paths)
        numbers &= {n for n, path in db.execute(owners.SQL["paths"], {"namespace": namespace}) if matches(path)}
    return sorted(numbers)


_OF_MEMORIES: Final = f"o.number {{}}IN (SELECT m.owner FROM memories m WHERE m.namespace = {SPACE} AND m.{{}})"
_TERMS: Final = {
    # No kind is a part of another: they are passed as one text, which is cheap to search for each owner.
    "kinds": "instr(:kinds, o.kind) > 0",
    "types": f"o.type IN {among('types')}",
    "phases": f"(o.phase = '' OR o.phase IN {among('phases')})",
    "tags": f"""(
        o.number IN (SELECT owner FROM owner_tags WHERE namespace = {SPACE} AND tag IN {among("tags")})
        OR o.type IN {among("untagged_types")}
    )""",
    "tiers": _OF_MEMORIES.format("", f"tier IN {among('tiers')}"),
    "sources": _OF_MEMORIES.format("", f"source IN {among('sources')}"),
    "sessions": f"""o.number IN (
        SELECT m.owner FROM memories m CROSS JOIN owners s ON s.namespace = m.namespace AND s.number = m.owner
        WHERE m.namespace = {SPACE} AND s.session IN {among("sessions")}
    )""",
    "agents": f"""o.number IN (
        SELECT k.owner FROM knowledge_items k INDEXED BY knowledge_items_by_agent
        WHERE k.namespace = {SPACE} AND k.agent IN {among("agents")}
    )""",
    "min_trust": _OF_MEMORIES.format("NOT ", "trust < :min_trust"),
}
"""Condition for an owner `o`, by field of a filter."""


@cache
def _matching(fields: frozenset[str]) -> str:
    """Return the statement for a filter with these values: owners live now, live as of a time, or valid at a time."""
    terms = [f"o.namespace = {SPACE}", *(term for name, term in _TERMS.items() if name in fields)]
    born = ["o.created_at <= :as_of"] if "as_of" in fields else []
    valid = [_OF_MEMORIES.format("", "at <= :valid_at")] if "valid_at" in fields else []
    parts = [("owners o INDEXED BY owners_by_filter", ["o.expired_at IS NULL", *born, *valid])]
    if born:
        parts.append(("owners o INDEXED BY owners_past", ["o.expired_at > :as_of", *born, *valid]))
    if valid:
        parts.append(
            (f"({SHARED['earlier']}) e CROSS JOIN owners o ON o.namespace = e.namespace AND o.number = e.owner", [])
        )
    return " UNION ".join(f"SELECT o.number FROM {rows} WHERE {' AND '.join([*terms, *more])}" for rows, more in parts)
