"""The relations that sentences state, read from relations.txt, which says how its lines are written."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from commonplace.extract.verbs import FORMS
from commonplace.text.words import entries

MOVES: Final = {
    ("person", "place"): "LIVES_IN",
    ("person", "organization"): "WORKS_FOR",
    ("organization", "place"): "LOCATED_IN",
    ("project", "place"): "LOCATED_IN",
    ("event", "place"): "LOCATED_IN",
    ("tool", "place"): "LOCATED_IN",
    ("concept", "place"): "LOCATED_IN",
    ("file", "file"): "PART_OF",
    ("concept", "file"): "PART_OF",
    ("organization", "tool"): "USES",
    ("person", "tool"): "USES",
    ("project", "tool"): "USES",
    ("concept", "tool"): "USES",
    ("file", "tool"): "USES",
}
"""What `X moved (from Z) to Y`, `X switched to Y` says, by what X and Y are."""

MOVING: Final = frozenset({"move", "switch", "migrate", "transition", "change", "convert"})


LIKING: Final = frozenset("prefer like love enjoy favor favour".split())
"""What is liked may be anything, so `deciding` reads it."""


class Rule(NamedTuple):
    """One line of the table.

    Attributes:
        is_reversed: the relation goes from what stands behind the verb to what stands before it.
        before, behind: the types that fit there; empty is any, `thing` any but a person.
    """

    relation: str
    is_reversed: bool
    before: frozenset[str] = frozenset()
    behind: frozenset[str] = frozenset()
    is_event: bool = False
    is_end: bool = False
    is_once: bool = False


Key = tuple[str, str, tuple[str, ...]]
"""A verb, "active", "passive" or "be", and the words behind it."""


def _rules() -> dict[Key, list[Rule]]:
    rules: dict[Key, list[Rule]] = {}
    relation = ""
    for line in entries(Path(__file__).with_name("relations.txt")):
        if not line.startswith(" "):
            relation = line.strip()
            continue
        said, _, rest = line.partition("[")
        types, _, flags = rest.partition("]")
        marks = flags + said.partition("!")[2]
        words = said.split()
        first, last = words[0], words[-1]
        is_event = "!" in flags
        before, behind = (frozenset(part.replace("_", "").split("/")) - {""} for part in (types or "_ _").split())
        rule = Rule(relation, first == "Y", before, behind, is_event, "end" in marks, "once" in marks)
        assert last in "XY"
        rules.setdefault(_key(words[1:-1]), []).append(rule)
    return rules


def _key(words: list[str]) -> Key:
    """Return how `uses`, `is written in` or `is part of` is looked up."""
    if words[0] not in ("is", "was"):
        return FORMS[words[0]][0].lemma, "active", tuple(words[1:])
    forms = [form for form in FORMS.get(words[1], ()) if form.is_participle]
    if forms:
        return forms[0].lemma, "passive", tuple(words[2:])
    return "be", "be", tuple(words[1:])


RULES: Final = _rules()
LONGEST: Final = max(len(key[2]) for key in RULES)
VERBS_OF_RULES: Final = frozenset(key[0] for key in RULES) | MOVING
