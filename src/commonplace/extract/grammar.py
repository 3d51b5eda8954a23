"""The relations that sentences state, as a table to read: each line is a way to say one, in the present tense.

`X` is what the relation comes from and `Y` what it goes to, on whichever side of the verb they stand; all tenses, the
passive (`Y is used by X`), lists and adverbs are understood by `clauses`. In brackets stands what X and Y must be: a
type, or several with `/`; `_` is anything, `thing` anything but a person. `!` marks an event, which begins the fact
when it happens; `!end` one that ends it. `!once` marks what tells where somebody is from, not where they are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from commonplace.extract.verbs import FORMS

TABLE: Final = """
DEPENDS_ON
    X depends on Y
    X depends upon Y
    X relies on Y
    X relies upon Y
    X builds on Y
    X hinges on Y
    X requires Y                    [thing _]
    X needs Y                       [file/project/tool/concept thing]
    X imports Y                     [thing thing]
    X is built on Y
    X is built upon Y
    X is built on top of Y
    X is dependent on Y
    X is dependent upon Y
    X is blocked by Y
    X is blocked on Y
    X is coupled to Y
    X is based on Y                 [thing _]
PART_OF
    X is part of Y
    X belongs to Y                  [thing _]
    X is component of Y
    X is module of Y
    X is subset of Y
    X is included in Y
    X is contained in Y
    X is defined in Y               [_ file]
    X lives in Y                    [thing file/concept/project]
    Y contains X
    Y includes X
    Y consists of X
    Y comprises X
    Y is composed of X
    Y is made up of X
CAUSED_BY
    X is caused by Y
    X is due to Y
    X results from Y
    X stems from Y
    X is triggered by Y
    X is result of Y
    X was consequence of Y
    Y causes X
    Y triggers X
    Y results in X
    Y leads to X
    Y breaks X
    Y brings down X
    Y takes down X
    Y is cause of X
SIMILAR_TO
    X is similar to Y
    X resembles Y
    X is equivalent to Y
    X is comparable to Y
    X is analogous to Y
    X is same as Y
    X works like Y
    X behaves like Y
USES
    X uses Y
    X utilizes Y
    X utilises Y
    X calls Y                       [thing thing]
    X wraps Y                       [thing thing]
    X queries Y                     [thing thing]
    X consumes Y                    [thing thing]
    X runs on Y                     [thing thing]
    X reads from Y                  [thing thing]
    X writes to Y                   [thing thing]
    X adopts Y                      [_ tool/project] !
    X employs Y                     [thing thing]
    X stays with Y                  [_ tool]
    X sticks with Y                 [_ tool]
    X is written in Y               [thing tool/concept]
    X is implemented in Y           [thing tool/concept]
    X is built with Y               [thing thing]
    X is powered by Y               [thing thing]
    X is backed by Y                [thing thing]
    X is hosted on Y                [thing thing]
    X is deployed on Y              [thing thing]
    X is deployed to Y              [thing thing]
    X is hosted by Y                [thing thing]
IMPLEMENTS
    X implements Y
    X realizes Y                    [thing thing]
    X conforms to Y                 [thing thing]
    X complies with Y               [thing thing]
    X is implementation of Y
WORKS_FOR
    X works for Y                   [person organization/project]
    X works at Y                    [person organization]
    Y employs X                     [person organization]
    X is employed at Y              [person organization]
    X joins Y                       [person organization/project] !
    Y hires X                       [person organization] !
    X starts at Y                   [person organization] !
    X leads Y                       [person organization]
    X heads Y                       [person organization]
    X runs Y                        [person organization]
    X founds Y                      [person organization] !
    X cofounds Y                    [person organization] !
    X chairs Y                      [person organization]
    X serves on Y                   [person organization]
    X teaches at Y                  [person organization]
    X leaves Y                      [person organization/project] !end
    X quits Y                       [person organization] !end
    X resigns from Y                [person organization] !end
    X retires from Y                [person organization] !end
    Y fires X                       [person organization] !end
    X is fired from Y               [person organization] !end
LOCATED_IN
    X is located in Y               [thing place]
    X is located at Y               [thing place]
    X is based in Y                 [organization place]
    X is based in Y                 [project/tool/event place]
    X is headquartered in Y         [thing place]
    X is situated in Y              [thing place]
    X is hosted in Y                [thing place]
    X is held in Y                  [thing place]
    X takes place in Y              [thing place]
    X lies in Y                     [thing place]
    X sits in Y                     [thing place]
    X is in Y                       [organization/place/event/project place]
    X opens in Y                    [thing place] !
    X relocates to Y                [organization/place/event/project place] !
LIVES_IN
    X lives in Y                    [person place]
    X resides in Y                  [person place]
    X settles in Y                  [person place] !
    X is based in Y                 [person place]
    X is born in Y                  [person place] !once
    X grows up in Y                 [person place] !once
    X comes from Y                  [person place] !once
    X hails from Y                  [person place] !once
    X is from Y                     [person place] !once
    X is native of Y                [person place] !once
    X is resident of Y              [person place]
    X relocates to Y                [person place] !
    X leaves Y                      [person place] !end
PREFERS
    X prefers Y                     [person/organization _]
    X likes Y                       [person _]
    X loves Y                       [person _]
    X enjoys Y                      [person _]
    X favors Y                      [person/organization _]
    X favours Y                     [person/organization _]
    X is fan of Y                   [person _]
DECIDED
    X chooses Y                     [person/organization/project _] !
    X picks Y                       [person/organization/project _] !
    X selects Y                     [person/organization/project _] !
    X opts for Y                    [person/organization/project _] !
    X settles on Y                  [person/organization/project _] !
    X goes with Y                   [person/organization/project tool/concept/project/decision] !
    X decides on Y                  [person/organization/project _] !
    X agrees on Y                   [person/organization/project _] !
RELATED_TO
    X is related to Y
    X relates to Y                  [thing thing]
    X works on Y                    [person thing]
    X works with Y                  [person _]
    X maintains Y                   [person thing]
    X owns Y                        [person/organization thing]
    X is responsible for Y          [person/organization thing]
    X is in charge of Y             [person/organization thing]
    X reports to Y                  [person person]
    X manages Y                     [person thing/person]
    X is married to Y               [person person]
    X is engaged to Y               [person person]
    X marries Y                     [person person] !
    X is friends with Y             [person person]
    X is friend of Y                [person person]
    X talks to Y                    [thing thing]
    X communicates with Y           [thing thing]
    X integrates with Y             [thing thing]
    X connects to Y                 [thing thing]
    X replaces Y                    [thing thing]
    X supersedes Y                  [thing thing]
CONTRADICTS
    X contradicts Y
    X conflicts with Y
    X is inconsistent with Y
    X is incompatible with Y
    X disagrees with Y
    X is at odds with Y
    X refutes Y
OCCURRED_AFTER
    X happens after Y
    X occurs after Y
    X takes place after Y
    X comes after Y                 [event _]
    X is after Y                    [event _]
    X follows Y                     [event event]
    Y happens before X
    Y occurs before X
    Y takes place before X
    Y precedes X                    [thing thing]
"""

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
    for line in TABLE.strip().splitlines():
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
