"""Types of entities and relations, and which relations hold one value at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.errors import UsageError
from commonplace.lazy_regex import lazy_pattern
from commonplace.settings.schema import GraphSettings
from commonplace.types.graph import ENTITY_TYPES, RELATION_TYPES

SINGLE_VALUED: Final = ("LIVES_IN", "LOCATED_IN", "WORKS_FOR", "DECIDED")
"""Relations with one target at a time: one home and one employer of a person, one location and decision of a thing."""
SYMMETRIC: Final = frozenset({"SIMILAR_TO", "RELATED_TO", "CONTRADICTS"})

_TYPE: Final = lazy_pattern(r"[A-Za-z][A-Za-z0-9_ -]{0,59}")
_APART: Final = lazy_pattern(r"[\s-]+")
_ADDED: Final = lazy_pattern(
    r"\b(?:also|too(?=\s*(?:$|[.,;:!?)]))|as well|another|second|additional(?:ly)?|open(?:s|ed)?)\b", re.IGNORECASE
)
"""Words that mark an addition; `too` only at the end of a clause, so that "locked too often" does not match."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """Types in use, built-in and custom; a source has one target at a time of each type in `single_valued`."""

    entity_types: tuple[str, ...] = ENTITY_TYPES
    relation_types: tuple[str, ...] = RELATION_TYPES
    single_valued: tuple[str, ...] = SINGLE_VALUED

    def entity(self, name: str, value: object) -> str:
        """Return an entity type in its stored spelling; raise a `UsageError` if there is no such type."""
        return _matching_type(name, value, self.entity_types, "graph.entity_types")

    def relation(self, name: str, value: object) -> str:
        """Return a relation type in its stored spelling; raise a `UsageError` if there is no such type."""
        return _matching_type(name, value, self.relation_types, "graph.relation_types")

    def is_single(self, type_: str) -> bool:
        """Return whether a source has one target at a time; `FactKeys` excepts people and organizations that decide."""
        return type_ in self.single_valued


def kinds_of(settings: GraphSettings) -> Kinds:
    """Return the types of entities and relations: the built-in ones and those of the settings.

    Raise a `UsageError` if a type is malformed, or `single_valued` names an unknown one.
    """
    entities, relations = settings.entity_types, settings.relation_types
    for setting, names in (("graph.entity_types", entities), ("graph.relation_types", relations)):
        for name in names:
            if not _TYPE.fullmatch(name):
                remedy = "give names of letters, digits and _, up to 60 characters"
                raise UsageError(f"{setting} holds {name!r:.80}", remedy=remedy)
    added, singles = (
        tuple(_APART.sub("_", name.strip()).upper() for name in names) for names in (relations, settings.single_valued)
    )
    types = (*RELATION_TYPES, *added)
    for name in singles:
        if name not in types:
            problem = f"graph.single_valued holds {name!r:.80}, which is no type of relations"
            raise UsageError(problem, remedy=f"give some of {', '.join(types)}")
    added_entities = (_APART.sub("_", name.strip()).lower() for name in entities)
    return Kinds((*ENTITY_TYPES, *added_entities), types, (*SINGLE_VALUED, *singles))


def _matching_type(name: str, value: object, types: Sequence[str], setting: str) -> str:
    normalized = _APART.sub("_", value.strip()).lower() if isinstance(value, str) else value
    for type_ in types:
        if type_.lower() == normalized:
            return type_
    remedy = f"give one of {', '.join(types)}, or add yours to the setting {setting}"
    raise UsageError(f"{name} is {value!r:.80}", remedy=remedy, parameters=(name,))


def is_added(fact: str) -> bool:
    """Return whether a sentence adds to what held before instead of replacing it: `also`, `a second …`, `opened`."""
    return _ADDED.search(fact) is not None
