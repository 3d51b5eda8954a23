"""Extract entities, claims and dates from a text, sentence by sentence, in linear time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain, pairwise
from math import isfinite
from typing import Final

from commonplace.dataclasses import replace
from commonplace.dates import Mention as Date
from commonplace.dates import Prefer
from commonplace.dates import mentions as find_dates
from commonplace.errors import UsageError
from commonplace.extract import words as lists
from commonplace.extract.attributes import GONE, NOBODY, Attributes
from commonplace.extract.clauses import TRIGGERS, Clauses
from commonplace.extract.decisions import written_down
from commonplace.extract.entities import Entities
from commonplace.extract.modality import is_inside, is_question, is_reported, quotations
from commonplace.extract.model import Claim, Departure, Extraction
from commonplace.extract.names import Mention, find_names
from commonplace.extract.phrases import ANAPHORS, SPEAKERS, Line, phrase_of, read_behind
from commonplace.extract.relations import UP_TO, Settler, Statement
from commonplace.extract.tokens import Tokens
from commonplace.extract.verbs import FORMS
from commonplace.extract.words import PATTERNS
from commonplace.text.sentences import stretches

_FURTHEST: Final = 9
_AT: Final = frozenset("of at for with from".split())
_FORMER: Final = frozenset("former ex ex- late onetime retired past".split())
_SMALL: Final = frozenset("the a an of for and to at with from 's , &".split())
_POSSESSIVE: Final = frozenset({"'s", "’s"})
_ARTICLES: Final = frozenset({"the", "a", "an"})
_FIRMS: Final = frozenset("company firm group agency maker manufacturer bank startup chain subsidiary".split())
_AWAY: Final = frozenset("sen senator rep representative congressman congresswoman ambassador envoy".split())
"""Who holds one of these for a place is mostly elsewhere."""
_SAYING_WHO: Final = frozenset("a an the another former then now retired".split())
_TARGETS: Final = {"WORKS_FOR": frozenset({"organization"}), "LIVES_IN": frozenset({"place"})}
_GUESSED: Final = frozenset({"person", "place"})
_SURE: Final = 0.65
_FIRM: Final = 0.85
_LIKELY_FIRM: Final = 0.5
Demand = tuple[str, bool, float]
"""A relation, whether it goes from the second name to the first, how sure it is."""


def beside(line: Line) -> Iterator[Statement]:
    """Yield what each two names that follow each other say."""
    tokens = line.tokens
    for left, right in pairwise(line.mentions):
        if right.first - left.last > _FURTHEST:
            continue
        gap = tokens.lower[left.last : right.first]
        found = _said(line, left, right, gap)
        # `Theater` of `Ford's Theater` is the rest of a name that begins before it.
        is_rest = any(
            name.is_weak and name.last - name.first == 1 and tokens.at(name.first - 1) in _POSSESSIVE
            for name in (left, right)
        )
        if found is None or is_rest:
            continue
        relation, is_reversed, sure = found
        source, target = (right, left) if is_reversed else (left, right)
        if _is_backed(line, source, target, relation):
            types = _TARGETS.get(relation, frozenset())
            is_end = bool(_FORMER.intersection(gap)) or tokens.at(left.first - 1) in _FORMER
            ends = phrase_of(source), phrase_of(target)
            place = left.last - 1, right.last
            yield Statement(*ends, relation, *place, target_types=types, is_end=is_end, confidence=sure)


def _is_backed(line: Line, source: Mention, target: Mention, relation: str) -> bool:
    """Return whether it is sure enough what both names are; if one is sure, the fact makes the other sure."""
    guessed = [name for name in (source, target) if name.type in _GUESSED and name.confidence < _SURE]
    if not guessed:
        return True
    if relation == "WORKS_FOR" and guessed == [source] and source.type == "person" and " " in source.name:
        first, last = min(source.last, target.last), max(source.first, target.first)
        around = line.tokens.lower[first:last] + line.tokens.lower[target.last : target.last + 3]
        return target.confidence >= (_LIKELY_FIRM if lists.ROLES.intersection(around) else _FIRM)
    if relation == "LOCATED_IN" and guessed == [target]:
        return source.confidence >= _FIRM and source.last < target.first and line.tokens.at(source.last) == "in"
    return False


def _said(line: Line, left: Mention, right: Mention, gap: list[str]) -> Demand | None:
    tokens, types = line.tokens, (left.type, right.type)
    if gap[:1] == ["in"] and right.type == "place":
        gap = ["in", *(word for word in gap[1:] if word not in lists.DIRECTIONS)]
    if types == ("place", "place"):
        return _inside(line, left, right, gap)
    if types in (("organization", "place"), ("place", "organization")):
        return _seated(line, left, right, gap)
    if types in (("person", "organization"), ("person", "place")):
        return _serves(line, right, gap)
    if types in (("organization", "person"), ("place", "person")):
        place = left.first
        while tokens.at(place - 1) in _ARTICLES:
            place -= 1
        # `the deputy secretary of the Ministry, Tom`
        has_title = tokens.at(place - 1) in _AT and tokens.at(place - 2) in lists.ROLES
        if gap == [","] and left.type == "organization" and has_title:
            return "WORKS_FOR", True, 0.8
        return _served(left, gap, is_title=tokens.word[right.first - 1][0].isupper())
    # An unknown name is a firm's if it has a spokesman: `Zblork spokesman Tom Baker`, `Tom, president of Zblork`.
    if types == ("concept", "person") and left.name[0].isupper() and tokens.word[left.first][0] != "`":
        is_theirs = gap != [] and gap[-1] in lists.FIRM_ROLES
        return _served(replace(left, type="organization"), gap, is_title=False) if is_theirs else None
    if types != ("person", "concept") or right.is_weak or not right.name[0].isupper():
        return None
    # A name that goes on is longer than what is understood of it.
    goes_on = right.last < tokens.count and (
        tokens.at(right.last) in ("of", "for") or tokens.word[right.last][0].isupper()
    )
    is_role = gap[:1] == [","] and gap[-1] in _AT and not lists.FIRM_ROLES.isdisjoint(gap)
    return ("WORKS_FOR", False, 0.8) if is_role and not goes_on and _has_role_at(gap[1:]) else None


def _is_region(mention: Mention) -> bool:
    name = mention.name.lower().rstrip(".")
    return name in lists.STATES or name in lists.COUNTRIES or mention.name in lists.POSTAL


def _inside(line: Line, left: Mention, right: Mention, gap: list[str]) -> Demand | None:
    """Read `Troy, Mich.` and `the Mound Plant in Ohio`, not the lists `Paris, Rome` and `France, Germany and Italy`."""
    if gap == [","]:
        behind = line.tokens.at(right.last)
        is_state = right.name.lower().rstrip(".") in lists.STATES
        is_list = left.name.lower() in lists.COUNTRIES or (_is_region(left) and right.name.lower() in lists.STATES)
        is_list = is_list or (not is_state and behind in ("and", "or", "&"))
        return ("LOCATED_IN", False, 0.9) if _is_region(right) and behind not in _POSSESSIVE and not is_list else None
    if gap in (["in"], ["section", "of"], [",", "in"], ["province", "of"], ["suburb", "of"]):
        return "LOCATED_IN", False, 0.8
    return ("LOCATED_IN", True, 0.7) if gap == ["'s"] and not _is_region(right) else None


def _seated(line: Line, left: Mention, right: Mention, gap: list[str]) -> Demand | None:
    """Read `Acme of Berlin`, `Acme in Berlin`, `Berlin's Acme`, `Berlin-based Acme`."""
    lower, behind = line.tokens.lower, line.tokens.lower[right.last : right.last + 3]
    if left.type == "organization":
        is_firm = _is_told(gap) and not _FIRMS.isdisjoint(behind)
        is_in_state = gap == [","] and behind[:1] == [","] and behind[1:2] != [] and behind[1] in lists.STATES
        is_seat = gap in (["in"], ["of"], [",", "in"], ["at"]) or is_firm or is_in_state
        return ("LOCATED_IN", False, 0.8) if is_seat else None
    is_based = lower[left.first].endswith(("-based", "-headquartered"))
    if gap in ([], ["'s"]) or (is_based and lists.STOPS.isdisjoint(gap) and "," not in gap):
        return "LOCATED_IN", True, 0.85
    return None


def _serves(line: Line, right: Mention, gap: list[str]) -> Demand | None:
    """Read `Mira of Acme`, `Mira, 47, of Oslo`, `Mira, the CTO of Acme`, `Mira, Acme's CTO`."""
    is_firm = right.type == "organization"
    relation, sure = ("WORKS_FOR", 0.85) if is_firm else ("LIVES_IN", 0.7)
    words = [word for word in gap if word != "," and not word.isdigit()]
    if words in (["of"], ["from"]) or (words == ["of", "the"] and is_firm):
        return relation, False, sure
    if words in (["at"], ["at", "the"]) and is_firm:
        return relation, False, 0.7
    if gap[:1] == [","] and _has_role_at(words):
        return (relation, False, sure) if right.type != "place" else None
    behind = line.tokens.lower[right.last : right.last + 3]
    is_beside = gap == [","] or _is_told(gap) or (gap[:1] == [","] and _SAYING_WHO.issuperset(words))
    is_theirs = lists.ROLES.intersection(behind) and not (lists.STOPS - {"'s"}).intersection(behind[:1])
    return (relation, False, sure) if is_beside and is_theirs and is_firm else None


def _served(left: Mention, gap: list[str], *, is_title: bool) -> Demand | None:
    """Read `Acme spokesman Tom`, `Acme's CEO, Tom`, `U.S. Judge Abramson`."""
    words = [word for word in gap if word not in (",", "'s")]
    while len(words) > 1 and words[-1] in lists.TITLES:
        words.pop()
    if not words or any(word in lists.STOPS or not word[0].isalpha() for word in words):
        return None
    if gap[0] == "," or gap.count(",") > 1:
        return None
    if left.type == "organization":
        return ("WORKS_FOR", True, 0.85) if words[-1] in lists.ROLES or words[-1].endswith("man") else None
    if words[-1] not in _AWAY and (words[-1] in lists.PUBLIC_ROLES or (is_title and _is_region(left))):
        return "LIVES_IN", True, 0.7
    return None


def _has_role_at(words: list[str]) -> bool:
    """Return whether words say what somebody is for what follows: `the new head of design at`."""
    roles = [place for place, word in enumerate(words) if word in lists.ROLES]
    if not roles or not (lists.STOPS - _SMALL).isdisjoint(words):
        return False
    behind = [word for word in words[roles[-1] + 1 :] if word not in _ARTICLES | {"state", "local"}]
    return behind[:1] != [] and behind[0] in _AT


def _is_told(gap: list[str]) -> bool:
    """Return whether what follows says of a name what it is: `Mira, a …`, `Mira is a …`."""
    return len(gap) == 2 and gap[0] in (",", "is", "was") and gap[1] in _ARTICLES


_HELPERS: Final = lists.BE | lists.HAVE | {"decided", "to", "chose"}


def _joined(claims: list[Claim], new: Claim, *, is_team: bool) -> list[Claim]:
    """Return the claims of a sentence with one of its attributes, without what says the same with less."""
    same = [each for each in claims if (each.source, each.target) == (new.source, new.target)]
    if any(each.type == "WORKS_FOR" or each.is_end for each in same) or (not new.aspect and same):
        return claims
    # The leader of a team without a name is its lead; where they work remains unknown.
    turned = (new.target, new.source) if new.aspect == "lead" and is_team else None
    kept = [each for each in claims if each not in same[1:] and (each.source, each.target) != turned]
    if not same:
        return [*kept, new]
    return [replace(new, type=each.type) if each is same[0] else each for each in kept]


_PLANNED: Final = frozenset("will 'll wo going moving joining leaving switching migrating starting relocating".split())
_ENGLISH: Final = frozenset("the of and is are to with by has have from at for on that it this be as i we".split())
_LABELS: Final = {"user": "", "human": "", "assistant": "the assistant", "agent": "the assistant"}
"""Whom `I` means after a label; "" is the user."""
_SHORT: Final = 5
_GUESSED_KINDS: Final = 0.6
"""Greatest confidence in the type of a name in capitals that is in no list."""
_MAX_RETRACTED: Final = 100
"""Maximum number of retractions read in a text; people write fewer."""
_PAST: Final = frozenset({"was", "were"})
_MAX_SENTENCE_LENGTH: Final = 4_000


def extract(text: str, *, at: float, speaker: str = "") -> Extraction:
    """Return what a text says: whom and what it names, what it claims of them, which dates it speaks of.

    What is asked, supposed, wished, rumoured or denied is not claimed; what is said to have ended is claimed as ended.
    Without somebody named to have decided, `we chose Postgres for billing` is a decision of billing: of what it is
    for; without that, of `speaker`, or of `we`. English only: other languages give names and paths, and hardly a claim.

    Args:
        at: when the text was written, seconds since the epoch: dates are relative to it.
        speaker: who `I` and `we` are; without, `I` is `the user`.

    Raises:
        UsageError: `at` is no time of the calendar.
    """
    try:
        now = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"{at} is no time of the calendar", remedy="pass seconds since 1970, of years 1 to 9999"
        ) from error
    reader = _Reader(text, now, at, Entities(speaker))
    for stretch in stretches(text):
        for begin in range(stretch.start, stretch.end, _MAX_SENTENCE_LENGTH):
            tokens = Tokens(text, begin, min(begin + _MAX_SENTENCE_LENGTH, stretch.end))
            if tokens.count:
                reader.read(tokens, is_prose=stretch.is_prose)
    return reader.result()


class _Reader:
    """Reads the sentences of one text in order."""

    def __init__(self, text: str, now: datetime, at: float, entities: Entities) -> None:
        self._text = text
        self._now = now
        self._at = at
        self._entities = entities
        self._claims: list[Claim] = []
        self._departures: list[Departure] = []
        self._dates: list[Date] = []
        self._quotations = quotations(text)

    def read(self, tokens: Tokens, *, is_prose: bool) -> None:
        """Read a sentence, or a line of what is no prose, for its names, dates and statements."""
        mentions = find_names(tokens, is_prose=is_prose)
        if not is_prose:
            self._entities.begin(mentions, [])
            return
        # A longer sentence is English if it has one of its small words.
        if tokens.count > _SHORT and _ENGLISH.isdisjoint(tokens.lower):
            mentions = [replace(one, is_weak=True) if one.confidence <= _GUESSED_KINDS else one for one in mentions]
        dates = self._dates_of(tokens)
        dated = frozenset(
            place
            for date in dates
            for place in range(bisect_right(tokens.end, date.start), bisect_left(tokens.start, date.end))
        )
        mentions = [mention for mention in mentions if mention.first not in dated] if dated else mentions
        line = Line(tokens, mentions, dated)
        # Who speaks from here on: `Mira: I moved to Oslo`.
        named = line.starting.get(0)
        is_named = named is not None and named.type == "person" and tokens.at(named.last) == ":"
        is_spoken = is_named or (tokens.at(1) == ":" and tokens.at(0) in _LABELS)
        if is_spoken:
            self._entities.speaker = named.name if named is not None and is_named else _LABELS[tokens.at(0)]
        may_state = not TRIGGERS.isdisjoint(tokens.lower)
        self._entities.begin(mentions, read_behind(line, 0, is_subject=True)[0] if may_state else [])
        if not is_question(tokens):
            self._state(line, Settler(self._entities, line, dates, self._at), may_state, is_spoken)

    def result(self) -> Extraction:
        """Return what has been found, each claim once."""
        found, places = self._entities.found()
        claims = {
            (claim.source, claim.target, claim.type, claim.span, claim.is_end): claim
            for claim in reversed(self._claims)
        }
        kept = [
            claim.moved(places)
            for claim in reversed(claims.values())
            if claim.ends <= places.keys() and places[claim.source] != places[claim.target]
        ]
        gone = [each.moved(places) for each in self._departures if each.target in places]
        return Extraction(tuple(found), tuple(kept), tuple(self._dates), tuple(gone))

    def _dates_of(self, tokens: Tokens) -> list[Date]:
        start, end = tokens.start[0], tokens.end[-1]
        # `From January we live in Oslo`, `I start there on 1 December` are said of what is to come.
        is_planned = not _PLANNED.isdisjoint(tokens.lower) or PATTERNS["from then on"].search(self._text, start, end)
        is_past = not _PAST.isdisjoint(tokens.lower) or any(
            tokens.at(place - 1) not in _HELPERS
            and all(form.shape != "base" for form in forms)
            and any(form.is_past for form in forms)
            for place, lower in enumerate(tokens.lower)
            if (forms := FORMS.get(lower, ()))
        )
        prefer: Prefer = "future" if is_planned and not is_past else "past"
        found = find_dates(self._text[start:end], now=self._now, prefer=prefer)
        dates = [replace(date, start=date.start + start, end=date.end + start) for date in found]
        self._dates.extend(dates)
        for place, date in enumerate(dates):
            # `until 2018` ends where `since 2018` begins: who says both means no year in both places.
            first, _, rest = date.text.partition(" ")
            if first.lower() in UP_TO and not isfinite(date.since):
                since = next(iter(find_dates(f"since {rest}", now=self._now, prefer=prefer)), None)
                if since is not None and since.since < date.until:
                    dates[place] = replace(date, until=since.since)
        return dates

    def _state(self, line: Line, settler: Settler, may_state: bool, is_spoken: bool) -> None:
        """Note what a sentence claims: by names side by side, by its verbs, and of what has one value at a time."""
        tokens, first = line.tokens, len(self._claims)
        statements: Iterable[Statement] = list(beside(line))
        if tokens.at(0) == "decision" and tokens.at(1) == ":" and tokens.at(2) not in ANAPHORS:
            statements = chain(statements, written_down(line))
        elif may_state:
            statements = chain(statements, Clauses(line, self._entities).statements())
        for statement in statements:
            is_quoted, is_passed_on = self._is_passed_on(tokens, statement.verb)
            if is_quoted and not SPEAKERS.isdisjoint((statement.source.anaphor, statement.target.anaphor)):
                continue  # `I` in a quotation is unknown
            claim = settler.settle(statement, is_reported=is_passed_on)
            if claim is not None:
                self._claims.append(claim)
        for each in Attributes(line, self._entities.speaker, is_spoken=is_spoken).statements():
            is_quoted, is_passed_on = self._is_passed_on(tokens, each.verb)
            if each.relation == GONE:
                if not is_passed_on:
                    self._depart(each, settler, first)
            elif not (is_quoted and each.source.anaphor):
                claim = settler.settle(each, is_reported=is_passed_on)
                if claim is not None:
                    is_team = each.source.mention is None
                    self._claims[first:] = _joined(self._claims[first:], claim, is_team=is_team)

    def _is_passed_on(self, tokens: Tokens, verb: int) -> tuple[bool, bool]:
        """Return whether what a verb says is quoted, and whether it is quoted or reported."""
        is_quoted = is_inside(self._quotations, tokens.start[verb])
        return is_quoted, is_quoted or is_reported(tokens, verb)

    def _depart(self, gone: Statement, settler: Settler, first: int) -> None:
        target = self._entities.place_of(gone.target)
        successor = None if gone.successor is None else self._entities.place_of(gone.successor)
        source = self._entities.place_of(gone.source) if gone.source.anaphor != NOBODY else None
        if target is None or len(self._departures) >= _MAX_RETRACTED:
            return
        self._claims[first:] = [
            replace(each, doubt=each.doubt or gone.doubt) if each.is_end and each.target == target else each
            for each in self._claims[first:]
        ]
        is_own = gone.source.anaphor in (NOBODY, "i", "we")
        tokens = settler.line.tokens
        said, span = tokens.read(0, tokens.count), (tokens.start[0], tokens.end[-1])
        at = settler.ended_at(gone.source.start, gone.verb)
        self._departures.append(Departure(target, said, span, successor, source, gone.doubt, is_own, at))
