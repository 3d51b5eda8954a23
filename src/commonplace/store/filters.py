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
        # Unescaped, `[[` begins a nested set in later versions of `re`, which warn of it.
        found = GitIgnoreSpec.from_lines([re.sub(r"(?<!\\)\[\[", r"[\\[", line)]).patterns
    except (ValueError, KeyError, re.error):
        return None
    return found[0] if found and found[0].include is not None else None


def matching_owners(db: Database, namespace: str, wanted: Filter) -> list[int]:
    """Return the numbers of the owners of a namespace that pass the filter, ascending."""
    values: dict[str, Any] = {"namespace": namespace, "as_of": wanted.as_of, "valid_at": wanted.valid_at}
    for name in _TERMS:
        if given := getattr(wanted, name):
            values[name] = " ".join(given) if name == "kinds" else given if name == "min_trust" else listed(given)
    if wanted.tags:
        values["untagged_types"] = listed(wanted.untagged_types)
    chosen = frozenset(name for name, value in values.items() if value is not None)
    numbers = {number for (number,) in db.execute(_matching(chosen), values)}
    if wanted.paths:
        is_wanted = path_matcher(wanted.paths)
        numbers &= {n for n, path in db.execute(owners.SQL["paths"], {"namespace": namespace}) if is_wanted(path)}
    return sorted(numbers)


_OF_MEMORIES: Final = f"o.number {{}}IN (SELECT m.owner FROM memories m WHERE m.namespace = {SPACE} AND m.{{}})"
_TERMS: Final = {
    # Kinds are few and none is part of another: they come as one text, which costs little for each owner.
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
"""What a filter says of an owner `o`, by its fields."""


@cache
def _matching(chosen: frozenset[str]) -> str:
    """Return the statement for a filter that has some values: for what is live, was live then, or is about then."""
    rest = [f"o.namespace = {SPACE}", *(term for name, term in _TERMS.items() if name in chosen)]
    then = ["o.created_at <= :as_of"] if "as_of" in chosen else []
    happened = [_OF_MEMORIES.format("", "at <= :valid_at")] if "valid_at" in chosen else []
    parts = [("owners o INDEXED BY owners_by_filter", ["o.expired_at IS NULL", *then, *happened])]
    if then:
        parts.append(("owners o INDEXED BY owners_past", ["o.expired_at > :as_of", *then, *happened]))
    if happened:
        parts.append(
            (f"({SHARED['earlier']}) e CROSS JOIN owners o ON o.namespace = e.namespace AND o.number = e.owner", [])
        )
    return " UNION ".join(f"SELECT o.number FROM {source} WHERE {' AND '.join([*rest, *own])}" for source, own in parts)
