"""What language models call the types of entities and relations, as ours. It knows words, no text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from commonplace.graph.kinds import Kinds

_APART: Final = re.compile(r"[\s-]+")
_NO_ENTITY: Final = frozenset(
    "date time datetime duration number quantity amount money percent percentage age url".split()
)
_ENTITIES: Final[Mapping[str, str]] = {
    name: type_
    for type_, names in {
        "person": "people human user author developer engineer speaker character per customer",
        "organization": "org organisation company institution team government university agency department",
        "place": "location loc gpe city country region address facility building",
        "tool": "software library framework technology product language database programming_language package api "
        "application app system service platform device",
        "file": "module path document script source_file directory",
        "event": "meeting incident release conference",
        "project": "repository repo program initiative",
        "preference": "like dislike taste",
        "decision": "choice resolution",
    }.items()
    for name in names.split()
}
_RELATIONS: Final[Mapping[str, str]] = {
    name: type_
    for type_, names in {
        "DEPENDS_ON": "DEPENDS REQUIRES NEEDS IMPORTS RELIES_ON",
        "PART_OF": "BELONGS_TO MEMBER_OF COMPONENT_OF IS_PART_OF CONTAINED_IN",
        "CAUSED_BY": "DUE_TO RESULT_OF IS_CAUSED_BY",
        "SIMILAR_TO": "LIKE RESEMBLES SAME_AS",
        "USES": "USE WORKS_WITH RUNS_ON BUILT_WITH BUILT_ON",
        "IMPLEMENTS": "REALIZES REALISES",
        "WORKS_FOR": "WORKS_AT EMPLOYED_BY EMPLOYEE_OF WORK_FOR",
        "LOCATED_IN": "BASED_IN LOCATION HEADQUARTERED_IN LOCATED_AT IS_IN",
        "LIVES_IN": "RESIDES_IN LIVES_AT MOVED_TO LIVE_IN",
        "PREFERS": "LIKES LOVES ENJOYS FAVOURS FAVORS",
        "DECIDED": "CHOSE CHOOSES SELECTED DECIDED_ON",
        "CONTRADICTS": "CONFLICTS_WITH DISAGREES_WITH",
        "OCCURRED_AFTER": "AFTER FOLLOWS FOLLOWED",
    }.items()
    for name in names.split()
}
_OTHER_ENTITY: Final = "concept"
_OTHER_RELATION: Final = "RELATED_TO"


def entity_type(given: str, kinds: Kinds) -> str:
    """Return the type of ours that a model means, `concept` where it is none; "" for what is no entity here."""
    name = _APART.sub("_", given.strip()).lower()
    if kinds.has_entity(name):
        return name
    return "" if name in _NO_ENTITY else _ENTITIES.get(name, _OTHER_ENTITY)


def relation_type(given: str, kinds: Kinds) -> str:
    """Return the type of ours that a model means, `RELATED_TO` where it is none."""
    name = _APART.sub("_", given.strip()).upper()
    return name if kinds.has_relation(name) else _RELATIONS.get(name, _OTHER_RELATION)
