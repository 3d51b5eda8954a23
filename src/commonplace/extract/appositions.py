"""Find what names say by standing beside each other: `Mira, the CTO of Acme`, `Oslo, Norway`, `Berlin-based Acme`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from commonplace.extract.names import Mention
from commonplace.extract.phrases import Line, phrase_of
from commonplace.extract.statements import Statement
from commonplace.extract.words import (
    COUNTRIES,
    PLACE_FRONTS,
    PLACE_HEADS,
    POSTAL,
    PUBLIC_ROLES,
    ROLES,
    STATES,
    STOPS,
    TITLES,
)

_FURTHEST: Final = 9
_AT: Final = frozenset("of at for with from".split())
_FORMER: Final = frozenset("former ex ex- late onetime retired past".split())
_SMALL: Final = frozenset("the a an of for and to at with from 's , &".split())
_ARTICLES: Final = frozenset({"the", "a", "an"})
_FIRMS: Final = frozenset("company firm group agency maker manufacturer bank startup chain subsidiary".split())
_FIRM_ROLES: Final = frozenset(
    "spokesman spokeswoman spokesperson ceo cto cfo coo president chairman chairwoman executive employee engineer "
    "developer designer manager cofounder co-founder".split()
)
"""Who only a firm or the like has; a leader or a judge may be anybody's."""
_AWAY: Final = frozenset("sen senator rep representative congressman congresswoman ambassador envoy".split())
"""Who holds one of these for a place is mostly elsewhere."""
_SAYING_WHO: Final = frozenset("a an the another former then now retired".split())
_DWELLERS: Final = frozenset("native resident citizen".split())
_TARGETS: Final = {"WORKS_FOR": frozenset({"organization"}), "LIVES_IN": frozenset({"place"})}
_GUESSED: Final = frozenset({"person", "place"})
_SURE: Final = 0.65
_FIRM: Final = 0.85
_LIKELY_FIRM: Final = 0.5
_DIRECTIONS: Final = frozenset(
    "north south east west northern southern eastern western central northeastern northwestern southeastern "
    "southwestern northeast northwest southeast southwest upstate suburban downtown nearby".split()
)
"""Before a place they only tell which part of it: `Haifa in northern Israel`."""
Demand = tuple[str, bool, float]
"""A relation, whether it goes from the second name to the first, how sure it is."""


def beside(line: Line) -> Iterator[Statement]:
    """Yield what each two names that follow each other say."""
    for left, right in zip(line.mentions, line.mentions[1:], strict=False):
        if right.first - left.last > _FURTHEST:
            continue
        gap = line.tokens.lower[left.last : right.first]
        found = _said(line, left, right, gap)
        if found is None:
            continue
        relation, is_reversed, sure = found
        source, target = (right, left) if is_reversed else (left, right)
        if not _is_backed(line, source, target, relation) or _is_rest(line, source) or _is_rest(line, target):
            continue
        yield Statement(
            phrase_of(source),
            phrase_of(target),
            relation,
            left.last - 1,
            right.last,
            target_types=_TARGETS.get(relation, frozenset()),
            is_end=bool(_FORMER.intersection(gap)) or line.tokens.at(left.first - 1) in _FORMER,
            confidence=sure,
        )


def _is_rest(line: Line, name: Mention) -> bool:
    """Tell whether a word is the rest of a name that begins before it: `Theater` of `Ford's Theater`."""
    is_owned = line.tokens.at(name.first - 1) in ("'s", "’s")
    return is_owned and name.is_weak and name.last - name.first == 1


def _is_backed(line: Line, source: Mention, target: Mention, relation: str) -> bool:
    """Tell whether it is sure enough what both names are; of two of which the one is sure, it tells of the other."""
    guessed = [name for name in (source, target) if name.type in _GUESSED and name.confidence < _SURE]
    if not guessed:
        return True
    if relation == "WORKS_FOR" and guessed == [source] and source.type == "person" and " " in source.name:
        first, last = min(source.last, target.last), max(source.first, target.first)
        beside = line.tokens.lower[first:last] + line.tokens.lower[target.last : target.last + 3]
        return target.confidence >= (_LIKELY_FIRM if ROLES.intersection(beside) else _FIRM)
    if relation == "LOCATED_IN" and guessed == [target]:
        return source.confidence >= _FIRM and source.last < target.first and line.tokens.at(source.last) == "in"
    return False


def _said(line: Line, left: Mention, right: Mention, gap: list[str]) -> Demand | None:
    types = (left.type, right.type)
    if gap[:1] == ["in"] and right.type == "place":
        gap = ["in", *(word for word in gap[1:] if word not in _DIRECTIONS)]
    if types == ("place", "place"):
        return _inside(line, left, right, gap)
    if types in (("organization", "place"), ("place", "organization")):
        return _seated(line, left, right, gap)
    if types in (("person", "organization"), ("person", "place")):
        return _serves(line, right, gap)
    if types in (("organization", "person"), ("place", "person")):
        if gap == [","] and left.type == "organization" and _is_title_of(line, left):
            return "WORKS_FOR", True, 0.8
        return _served(left, gap, is_title=line.tokens.word[right.first - 1][0].isupper())
    return _unknown(line, left, right, gap)


def _unknown(line: Line, left: Mention, right: Mention, gap: list[str]) -> Demand | None:
    """Take an unknown name for a firm's where somebody is its spokesman or the like: `Zblork spokesman Tom Baker`."""
    tokens = line.tokens
    is_named = left.name[0].isupper() and tokens.word[left.first][0] != "`"
    if (left.type, right.type) == ("person", "concept") and right.name[0].isupper() and not right.is_weak:
        return _of_unknown(line, right, gap)
    if (left.type, right.type) == ("concept", "person") and is_named and gap in (["native"], ["resident"]):
        return "LIVES_IN", True, 0.85
    if (left.type, right.type) == ("concept", "person") and is_named and gap and gap[-1] in _FIRM_ROLES:
        return _served(replace(left, type="organization"), gap, is_title=False)
    return None


def _of_unknown(line: Line, right: Mention, gap: list[str]) -> Demand | None:
    """Read `Tom, 8, of Zblork`, `Tom, a Zblork native`, `Tom, president of Zblork Plastics`."""
    tokens = line.tokens
    goes_on = right.last < tokens.count and (
        tokens.lower[right.last] in ("of", "for") or tokens.word[right.last][0].isupper()
    )
    if goes_on:
        return None  # the name is longer than what is understood of it
    is_aged = len(gap) == 4 and gap[0] == gap[2] == "," and gap[1].isdigit() and gap[3] == "of"
    if is_aged or (_is_told(gap) and line.tokens.at(right.last) in ("native", "resident")):
        return "LIVES_IN", False, 0.8
    behind = line.tokens.lower[right.last : right.last + 4]
    if gap == [","] and behind[:1] in (["'s"], ["’s"]) and _FIRM_ROLES.intersection(behind):
        return "WORKS_FOR", False, 0.8
    words = [word for word in gap[1:] if word not in _ARTICLES]
    if gap[:1] == [","] and words[-1:] in (["of"], ["at"], ["for"]) and _FIRM_ROLES.intersection(words):
        return ("WORKS_FOR", False, 0.8) if _has_role_at(words) else None
    return None


def _inside(line: Line, left: Mention, right: Mention, gap: list[str]) -> Demand | None:
    """Read `Troy, Mich.` and `the Mound Plant in Ohio`."""
    if gap == [","]:
        is_owner = line.tokens.at(right.last) in ("'s", "’s")
        is_inside = _is_region(right) and not is_owner and not _in_row(line, left, right)
        if is_inside:
            return "LOCATED_IN", False, 0.9
        return ("LOCATED_IN", False, 0.8) if _is_address(line, left, right) else None
    if gap in (["in"], ["section", "of"], [",", "in"], ["province", "of"], ["suburb", "of"]):
        return "LOCATED_IN", False, 0.8
    if gap == ["'s"] and not _is_region(right):
        return "LOCATED_IN", True, 0.7
    return None


def _is_address(line: Line, left: Mention, right: Mention) -> bool:
    """Read `Fort Hamilton, Brooklyn, N.Y.`: a site, its city, the state."""
    tokens = line.tokens
    region = line.starting.get(right.last + 1)
    has_state = tokens.at(right.last) == "," and region is not None and _is_region(region)
    words = left.name.lower().split()
    return has_state and len(words) > 1 and (words[-1] in PLACE_HEADS or words[0] in PLACE_FRONTS)


def _is_region(mention: Mention) -> bool:
    name = mention.name.lower().rstrip(".")
    return name in STATES or name in COUNTRIES or mention.name in POSTAL


def _in_row(line: Line, left: Mention, right: Mention) -> bool:
    """Tell whether two places are items of a list: `France, Germany and Italy`."""
    if left.name.lower() in COUNTRIES or (_is_region(left) and right.name.lower() in STATES):
        return True
    is_state = right.name.lower().rstrip(".") in STATES
    return not is_state and line.tokens.at(right.last) in ("and", "or", "&")


def _seated(line: Line, left: Mention, right: Mention, gap: list[str]) -> Demand | None:
    """Read `Acme of Berlin`, `Acme in Berlin`, `Berlin's Acme`, `Berlin-based Acme`."""
    if left.type == "organization":
        if gap in (["in"], ["of"], [",", "in"], ["at"]):
            return "LOCATED_IN", False, 0.8
        if _is_told(gap) and _FIRMS.intersection(line.tokens.lower[right.last : right.last + 3]):
            return "LOCATED_IN", False, 0.8
        if gap == [","] and line.tokens.at(right.last) == "," and line.tokens.at(right.last + 1) in STATES:
            return "LOCATED_IN", False, 0.8
        return None
    is_based = line.tokens.lower[left.first].endswith(("-based", "-headquartered"))
    if gap in ([], ["'s"]) or (is_based and not any(word in STOPS for word in gap) and "," not in gap):
        return "LOCATED_IN", True, 0.85
    return None


def _serves(line: Line, right: Mention, gap: list[str]) -> Demand | None:
    """Read `Mira of Acme`, `Mira, 47, of Oslo`, `Mira, the CTO of Acme`, `Mira, Acme's CTO`."""
    relation, sure = ("WORKS_FOR", 0.85) if right.type == "organization" else ("LIVES_IN", 0.7)
    words = [word for word in gap if word != "," and not word.isdigit()]
    if words in (["of"], ["from"]) or (words == ["of", "the"] and right.type == "organization"):
        return relation, False, sure
    if words in (["at"], ["at", "the"]) and right.type == "organization":
        return relation, False, 0.7
    behind_right = line.tokens.lower[right.last : right.last + 3]
    if right.type == "place" and _is_told(gap) and _DWELLERS.intersection(behind_right[:1]):
        return "LIVES_IN", False, 0.85
    if gap[:1] == [","] and _has_role_at(words):
        return (relation, False, sure) if right.type != "place" or _DWELLERS.intersection(words) else None
    is_beside = gap == [","] or _is_told(gap) or (gap[:1] == [","] and _SAYING_WHO.issuperset(words))
    is_theirs = ROLES.intersection(behind_right) and not (STOPS - {"'s"}).intersection(behind_right[:1])
    return (relation, False, sure) if is_beside and is_theirs and right.type == "organization" else None


def _has_role_at(words: list[str]) -> bool:
    """Tell whether words say what somebody is for what follows: `the new head of design at`."""
    roles = [place for place, word in enumerate(words) if word in ROLES]
    if not roles or not (STOPS - _SMALL).isdisjoint(words):
        return False
    behind = [word for word in words[roles[-1] + 1 :] if word not in _ARTICLES | {"state", "local"}]
    return behind[:1] != [] and behind[0] in _AT


def _is_title_of(line: Line, left: Mention) -> bool:
    """Tell whether before an organization stands who somebody is there: `the deputy secretary of the Ministry, Tom`."""
    tokens, place = line.tokens, left.first
    while tokens.at(place - 1) in _ARTICLES:
        place -= 1
    return tokens.at(place - 1) in _AT and tokens.at(place - 2) in ROLES


def _served(left: Mention, gap: list[str], *, is_title: bool) -> Demand | None:
    """Read `Acme spokesman Tom`, `Acme's CEO, Tom`, `U.S. Judge Abramson`, `Oslo native Mira`."""
    words = [word for word in gap if word not in (",", "'s")]
    while len(words) > 1 and words[-1] in TITLES:
        words.pop()
    if not words or any(word in STOPS or not word[0].isalpha() for word in words):
        return None
    if gap[0] == "," or gap.count(",") > 1:
        return None
    if left.type == "organization":
        return ("WORKS_FOR", True, 0.85) if words[-1] in ROLES or words[-1].endswith("man") else None
    if words[-1] in _DWELLERS:
        return "LIVES_IN", True, 0.85
    if words[-1] not in _AWAY and (words[-1] in PUBLIC_ROLES or (is_title and _is_region(left))):
        return "LIVES_IN", True, 0.7
    return None


def _is_told(gap: list[str]) -> bool:
    """Tell whether what follows says of a name what it is: `Mira, a …`, `Mira is a …`."""
    return len(gap) == 2 and gap[0] in (",", "is", "was") and gap[1] in _ARTICLES
