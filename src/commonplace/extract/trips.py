"""Tell who only travels from who has moved: `left Berlin at five`, `moved to Lagos for the summer`, `and back`."""

from __future__ import annotations

from typing import Final

from commonplace.extract.grammar import MOVING
from commonplace.extract.moods import BOUNDARIES
from commonplace.extract.phrases import Line
from commonplace.extract.verb_groups import VerbGroup

SHORTEST_TIME_OF_A_MOVE: Final = 27 * 86_400.0
"""Who left a place on a day has set out; who left it in a month or a year has moved away."""

_FURTHEST: Final = 24
_WHILES: Final = frozenset(
    """
day days night nights week weeks weekend while holiday holidays vacation visit trip summer winter spring autumn season
semester term sabbatical internship
""".split()
)
_SPANS: Final = _WHILES | frozenset("month months year years decade decades".split())
_CLOCKS: Final = frozenset("noon midnight dawn dusk sunrise sunset daybreak lunchtime".split())
_HOURS: Final = frozenset("one two three four five six seven eight nine ten eleven twelve half quarter".split())
_PARTS_OF_DAY: Final = frozenset("morning afternoon evening night tonight today early late".split())
_VEHICLES: Final = frozenset("train car bus plane boat ferry bike taxi ship coach tram air foot bicycle".split())
_ERRANDS: Final = frozenset(
    """
airport station office day night evening weekend holiday holidays vacation trip visit conference meeting lunch dinner
breakfast work home school appointment flight wedding funeral concert party festival beach mountains break coffee tour
""".split()
)
_FOR_GOOD: Final = frozenset("good forever ever".split())
_MOVING_AWAY: Final = MOVING | {"relocate", "settle"}
_BACK: Final = frozenset({"back", "returned"})
_ON_THE_WAY: Final = frozenset(
    "then later soon eventually now again has have had is was are were came come went gone moved she he they".split()
)
_JOINTS: Final = frozenset({"and", "but", ",", "–", "—"})
_BACK_AND_FORTH: Final = 16


def is_for_a_while(line: Line, group: VerbGroup) -> bool:
    """Tell whether a verb says how long: `temporarily`, `for two weeks`; of what goes on, years are not long either."""
    spans = _SPANS if group.is_perfect or group.form.lemma in _MOVING_AWAY else _WHILES
    tokens = line.tokens
    last = min(group.verb + 1 + _FURTHEST, tokens.count)
    if "temporarily" in tokens.lower[group.first : group.verb]:
        return True
    for place in range(group.verb + 1, last):
        lower = tokens.lower[place]
        if lower in BOUNDARIES or lower in (",", "and"):
            return False
        if lower == "temporarily":
            return True
        is_named = any(mention.first <= place + 1 < mention.last for mention in line.mentions)
        if lower == "for" and not is_named and tokens.any_of(spans, place + 1, min(place + 4, last)):
            return True
    return False


def is_passing(group: VerbGroup) -> bool:
    """Tell whether what a verb says to be so for a while is no lasting state: `has lived there for years` is one."""
    return not group.is_perfect or group.form.lemma in _MOVING_AWAY


def is_setting_out(line: Line, group: VerbGroup, end: int) -> bool:
    """Tell whether `left` says when in the day, how or for what errand, as nobody does of a move or a new job."""
    tokens = line.tokens
    for place in range(group.verb + 1, min(end, tokens.count)):
        lower, behind = tokens.lower[place], tokens.at(place + 1)
        if lower in BOUNDARIES or lower == ",":
            return False
        if lower in _CLOCKS or lower in _PARTS_OF_DAY:
            return True
        is_hour = behind in _HOURS or behind[:1].isdigit()
        if lower in ("at", "around", "about") and is_hour and place + 1 not in line.dated:
            return True
        if lower in ("by", "on") and behind in _VEHICLES:
            return True
        if lower in ("for", "on") and tokens.any_of(_ERRANDS, place + 1, place + 4):
            return True
    return False


def is_for_good(line: Line, group: VerbGroup, end: int) -> bool:
    """Tell whether somebody left for good."""
    tokens = line.tokens
    return any(
        (tokens.lower[place] == "for" and tokens.at(place + 1) in _FOR_GOOD)
        or tokens.lower[place] in ("permanently", "forever")
        for place in range(group.first, min(end, tokens.count))
    )


def way_back(line: Line, place: int) -> int | None:
    """Return the place of `back` or `returned` behind a word: `and (then) (came) back`, but not `back in May`."""
    tokens = line.tokens
    for ahead in range(place, min(place + _BACK_AND_FORTH, tokens.count)):
        lower = tokens.lower[ahead]
        if lower in (".", ";"):
            return None
        if lower not in _BACK or ahead in line.dated:
            continue
        start = ahead - 1
        while tokens.at(start) in _ON_THE_WAY:
            start -= 1
        if tokens.at(start) in _JOINTS:
            return ahead
    return None
