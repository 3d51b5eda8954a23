"""Rules of the graph in SQL: which facts hold when.

This is the only place that defines which facts hold when.

Let *known* be the time of which it is asked what was known, or the end of time. A fact was not there before its
`created_at`. Until its `expired_at` it was true from `valid_from` to `stated_to`; from then on it is true from
`valid_from` to `valid_to`, or never where it was retracted. Where a fact never expired, `valid_to` is its end. With
`valid_at`, a filter selects the facts that were true then, expired ones included; with `open_at`, those that do not
end by then, expired ones included; without both, those that had not expired. `with_past` selects all facts there are,
where no time is given.

The texts by which entities and facts are found are owners with passages, in two reserved namespaces that belong to the
graph's own (`texts_of`): searches in that one never return them, and the index follows them like all others.
"""

from __future__ import annotations

import math

from commonplace.store.rows import check_times
from commonplace.types import Owner
from commonplace.types.graph import Entity, GraphFilter, Relation, Subject

_RESERVED = "\x1f"


def texts_of(namespace: str, kind: Subject) -> str:
    """Return the namespace that holds the texts of a namespace's entities or relations; no user can name it."""
    return f"{_RESERVED}{kind}{_RESERVED}{namespace}"


def namespace_of(texts: str) -> str:
    """Return the namespace whose texts a reserved one holds; any other is its own."""
    return texts.split(_RESERVED, 2)[2] if is_reserved(texts) else texts


def is_reserved(namespace: str) -> bool:
    """Return whether a namespace holds the texts of a graph, and so belongs to another one."""
    return namespace.startswith(_RESERVED)


MEANT = """
    r.created_at <= :known_at AND (
        :is_all OR (
            (r.is_retracted = 0 OR r.expired_at > :known_at)
            AND CASE
                WHEN :after IS NULL THEN r.expired_at IS NULL OR r.expired_at > :known_at
                ELSE (:valid_at IS NULL OR r.valid_from IS NULL OR r.valid_from <= :valid_at)
                    AND coalesce(
                        CASE WHEN r.expired_at > :known_at THEN r.stated_to ELSE r.valid_to END > :after, true
                    )
            END
        )
    )
"""
"""The condition for a row `r` of relations, but for types and groups; the values are those of `times_of`."""


def times_of(wanted: GraphFilter) -> dict[str, float | None]:
    """Return the values that `MEANT` takes; `after` is the time after which a fact must hold, if any.

    Raises:
        UsageError: a time is not a number.
    """
    check_times("the filter of a graph", wanted.valid_at, wanted.open_at, wanted.known_at)
    return {
        "known_at": math.inf if wanted.known_at is None else wanted.known_at,
        "valid_at": wanted.valid_at,
        "after": wanted.open_at if wanted.valid_at is None else wanted.valid_at,
        "is_all": is_all(wanted),
    }


def reaches_past(wanted: GraphFilter) -> bool:
    """Return whether a filter can select facts that have expired or were retracted."""
    return wanted.with_past or (wanted.valid_at, wanted.open_at, wanted.known_at) != (None, None, None)


def is_all(wanted: GraphFilter) -> bool:
    """Return whether a filter selects all facts, whatever their times."""
    return wanted.with_past and (wanted.valid_at, wanted.open_at, wanted.known_at) == (None, None, None)


STANDING, ENDING, PAST = range(3)
STAGES = 3


def stage_of(relation: Relation) -> int:
    """Return the stage of a fact, by which an index keeps together the facts that are asked for together.

    `PAST` are those that have expired or were retracted, `ENDING` others that have an end, `STANDING` all others.
    """
    if relation.expired_at is not None or relation.is_retracted:
        return PAST
    return STANDING if relation.valid_to is None else ENDING


def text_owner(what: Entity | Relation) -> Owner:
    """Return the owner of the texts by which an entity or relation is found: its type, its group as a tag."""
    tags = (what.group,) if what.group else ()
    if isinstance(what, Entity):
        return Owner(what.id, "entity", title=what.name, type=what.type, tags=tags)
    return Owner(what.id, "relation", type=what.type, tags=tags, at=what.valid_from)
