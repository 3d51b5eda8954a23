"""Tell which known entity a name means, if any.

A wrong "the same" joins two lives; a wrong "new" only waits for a merge.

It knows names and types, no store. Where more than one entity could be meant and nothing tells which, none is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from commonplace.graph.forms import are_forms, more_keys
from commonplace.graph.hypocorisms import related
from commonplace.graph.naming import basename, has_extension, is_path, keys, loose, normal, parts, stems
from commonplace.types.graph import ENTITY_TYPES, Entity

LEAST_SIMILAR: Final = 0.75
"""Cosine of two names' vectors from which they may be one, where their words have the same stems; a round guess."""

Similarity = Callable[[str, str], float]
"""Returns the cosine of the vectors of two names."""

_LOOSE: Final = frozenset({"concept", "tool", "project", "organization"})
"""Types that are easily taken for one another: software is a tool, a project, and the company that makes it."""
_SPECIFIC_LOOSE: Final = _LOOSE - {"concept"}
_INITIAL: Final = 1


@dataclass(frozen=True, slots=True)
class Known:
    """An entity and its names, its own among them."""

    entity: Entity
    names: tuple[str, ...]


def lookups(name: str, type_: str) -> tuple[str, ...]:
    """Return the normal forms and keys under which the entities stand that a name may mean."""
    types = (type_,) if type_ in ("person", "file") else (type_, *(("file",) if has_extension(name) else ()))
    found = [normal(name), *(key for each in types for key in (*keys(name, each), *more_keys(name, each)))]
    return tuple(dict.fromkeys(found))


def choose(name: str, type_: str, candidates: Sequence[Known], similarity: Similarity) -> Known | None:
    """Return the entity among the candidates that a name means, None where that is a new one or nobody can tell.

    Args:
        candidates: what stands under the `lookups` of the name.
    """
    form = normal(name)
    able = [each for each in candidates if are_compatible(type_, each.entity.type)]
    own = [each for each in able if normal(each.entity.name) == form]
    if own:
        return min(own, key=lambda each: (each.entity.type != type_, each.entity.created_at, each.entity.id))
    named = [each for each in able if form in map(normal, each.names)]
    near = [each for each in able if each not in named and _is_near(name, type_, each, similarity)]
    if type_ == "person" and len(parts(name)) == 1:
        # A given name is not somebody's alone, even if it was when it was used before.
        named, near = [*named, *near], []
    for some in (named, near):
        if some:
            same = [each for each in some if each.entity.type == type_] if type_ != "concept" else []
            alone = same or some
            return alone[0] if len(alone) == 1 else None
    return None


def are_compatible(first: str, second: str) -> bool:
    """Tell whether a thing of the one type can be of the other."""
    if first == second:
        return True
    if "concept" in (first, second):
        return {first, second} & {"file"} == set()
    return {first, second} <= _SPECIFIC_LOOSE


def better_type(known: str, found: str) -> str:
    """Return the type that says more: anything says more than `concept`."""
    return found if known == "concept" else known


def better_name(known: str, found: str, type_: str) -> str:
    """Return the name that says more: the whole name of a person, the longer path of a file; else the known one."""
    if type_ == "person":
        return found if len(parts(found)) > len(parts(known)) and _is_part(parts(known), parts(found)) else known
    if type_ == "file":
        return found if normal(found).endswith(f"/{normal(known)}") else known
    return known


def is_known_type(type_: str, more: Sequence[str] = ()) -> bool:
    """Tell whether a type of entities is one of ours or of the user's own."""
    return type_ in ENTITY_TYPES or type_ in more


def _is_near(name: str, type_: str, known: Known, similarity: Similarity) -> bool:
    kind = known.entity.type if type_ == "concept" else type_
    names = known.names
    if kind == "person" and len(parts(name)) > 1 and len(parts(known.entity.name)) > 1:
        # Whoever is called Mira is not for that everybody with a surname who is called Mira.
        names = tuple(each for each in names if len(parts(each)) > 1)
    return any(_is_form_of(name, other, kind, similarity) for other in names)


def _is_form_of(name: str, other: str, type_: str, similarity: Similarity) -> bool:
    """Tell whether two different names of things of one type may mean the same."""
    if type_ == "person":
        first, second = parts(name), parts(other)
        return _is_part(first, second) or _is_part(second, first)
    if type_ == "file":
        return _is_end(name, other) or _is_end(other, name)
    if loose(name) == loose(other) or are_forms(name, other, type_):
        return True
    if type_ == "place" or has_extension(name) != has_extension(other):
        return False
    return bool(stems(name)) and stems(name) == stems(other) and similarity(name, other) >= LEAST_SIMILAR


def _is_part(fewer: Sequence[str], more: Sequence[str]) -> bool:
    """Tell whether a name of fewer parts is that of somebody with more: `Mira`, `Okafor`, `M. Okafor`."""
    if not fewer or len(fewer) > len(more):
        return False
    if len(fewer) == 1:
        return len(fewer[0]) > _INITIAL and (fewer[0] in (more[0], more[-1]) or more[0] in related(fewer[0]))
    if fewer[-1] != more[-1] or not _is_given(fewer[0], more[0]):
        return False
    rest = iter(more[1:-1])
    return all(any(_is_given(part, other) for other in rest) for part in fewer[1:-1])


def _is_given(part: str, whole: str) -> bool:
    return part == whole or (len(part) == _INITIAL and whole.startswith(part)) or whole in related(part)


def _is_end(name: str, path: str) -> bool:
    """Tell whether a path ends with a name, by whole parts."""
    return is_path(path) and normal(path).endswith(f"/{normal(name)}") and basename(name) == basename(path)
