"""The table of relations, read from relations.txt, and the statements made from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

from commonplace.dataclasses import dataclass, replace
from commonplace.dates import Mention as Date
from commonplace.extract import words as lists
from commonplace.extract.entities import TEAM, THE_USER, Entities
from commonplace.extract.modality import HEARSAY
from commonplace.extract.model import SENSITIVE, UNMARKED, Claim
from commonplace.extract.names import Phrase
from commonplace.extract.phrases import SPEAKERS, USER, Line, read_before
from commonplace.extract.verbs import FORMS, VerbGroup
from commonplace.extract.words import PATTERNS
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.words import sections

MOVES: Final = {
    ("person", "place"): "LIVES_IN",
    ("person", "organization"): "WORKS_FOR",
    **{(kind, "place"): "LOCATED_IN" for kind in ("organization", "project", "event", "tool", "concept", "place")},
    **{(kind, "file"): "PART_OF" for kind in ("file", "concept")},
    **{(kind, "tool"): "USES" for kind in ("organization", "person", "project", "concept", "file")},
}
"""Relation of `X moved (from Z) to Y` or `X switched to Y`, by the types of X and Y."""
Key = tuple[str, str, tuple[str, ...]]
"""Lemma of a verb, its voice ("active", "passive" or "be"), and the words after it."""
SINCE: Final = frozenset({"since", "from", "starting", "beginning", "after", "as"})
UP_TO: Final = frozenset({"until", "till"})
_UNTIL: Final = UP_TO | {"before", "by"}
_BETWEEN: Final = frozenset({"from", "between", "during"})
_RANGE: Final = lazy_pattern(r"\b(?:to|until|till|through)\b|\d\s?[–—]|\d{4}\s?-\s?\d{4}", re.IGNORECASE)
_TOUCHY: Final = frozenset({"USES", "RELATED_TO", "PREFERS"})
"""Relations that may concern health, money or access; where somebody lives and works does not."""
_MAX_FACT_LENGTH: Final = 320
_WEAK: Final = 0.7
"""Confidence below which a name may be coerced to a type that a relation requires."""
_NAMED_SURE: Final = 0.6
_COERCED: Final = ("person", "organization", "place", "project", "tool", "event")
_OWNERS: Final = {"my": "i", "his": "he", "her": "she", "their": "they"}


class Rule(NamedTuple):
    """One line of the table.

    Attributes:
        is_reversed: the phrase after the verb is the source of the relation.
        before, behind: entity types allowed for X and for Y of the table; empty is any, `thing` any but a person.
    """

    relation: str
    is_reversed: bool
    before: frozenset[str] = frozenset()
    behind: frozenset[str] = frozenset()
    is_event: bool = False
    is_end: bool = False
    is_once: bool = False


def _rules() -> dict[Key, list[Rule]]:
    rules: dict[Key, list[Rule]] = {}
    lines = sections(Path(__file__).with_name("relations.txt"))
    for relation, line in ((relation, line) for relation, below in lines.items() for line in below):
        way, _, rest = line.partition("[")
        types, _, flags = rest.partition("]")
        marks = flags + way.partition("!")[2]
        first, verb, *behind = way.split()
        assert behind.pop() in "XY"
        before, after = (frozenset(part.replace("_", "").split("/")) - {""} for part in (types or "_ _").split())
        rule = Rule(relation, first == "Y", before, after, "!" in flags, "end" in marks, "once" in marks)
        # Keys: the verb of `uses`; passive `write` of `is written in`; `be` of `is part of`.
        key: Key
        if verb not in ("is", "was"):
            key = FORMS[verb][0].lemma, "active", tuple(behind)
        elif passive := next((form for form in FORMS.get(behind[0], ()) if form.is_participle), None):
            key = passive.lemma, "passive", tuple(behind[1:])
        else:
            key = "be", "be", tuple(behind)
        rules.setdefault(key, []).append(rule)
    return rules


RULES: Final = _rules()
MAX_LENGTH: Final = max(len(key[2]) for key in RULES)


class Validity(NamedTuple):
    """When a fact holds, in seconds since the epoch, half-open; None is unknown or open."""

    since: float | None = None
    until: float | None = None


def nearest(dates: Sequence[Date], subject: int, verb: int, end: int) -> Date | None:
    """Return the date of a verb: the first after it in its clause, else the last before its subject."""
    behind = next((date for date in dates if verb <= date.start < end), None)
    if behind is not None:
        return behind
    return next((date for date in reversed(dates) if date.end <= subject), None)


def validity(date: Date | None, *, at: float, is_event: bool, is_end: bool, is_past: bool) -> Validity:
    """Return when a fact holds, by its date and the tense of its verb; an event begins or ends it: `joined`, `left`."""
    if date is None:
        return Validity()
    since = date.since if isfinite(date.since) else None
    until = date.until if isfinite(date.until) else None
    first = _first_word(date)
    # `from January` alone gives a begin; `from January to March` also gives an end.
    is_range = first in _BETWEEN and (first != "from" or _RANGE.search(date.text) is not None)
    if since is not None and until is not None and is_range and not is_event and until > since:
        return Validity(since, until)
    if since is None:
        return Validity(None, until) if first in _UNTIL else Validity()
    since = since if date.moment is None else date.moment
    if is_end:
        return Validity(None, since)
    is_now = until is not None and since <= at < until
    if first in SINCE or is_event or (is_past and not is_now):
        return Validity(since, None)
    return Validity(since, None) if since > at else Validity()


def _first_word(date: Date) -> str:
    return date.text.split(maxsplit=1)[0].lower()


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation between two phrases of a sentence.

    Attributes:
        verb: index of the word that states it; its date is searched around it.
        end: index of the word after the statement.
        is_former: it held once, and may or may not still hold.
        is_ever: it has held at some time; only a date shows that it still does.
        source_types, target_types: required entity types; empty for any, `thing` for any but a person.
        aspect, doubt, is_return: as in a `Claim`.
        successor: what replaces a target that is gone.
    """

    source: Phrase
    target: Phrase
    relation: str
    verb: int
    end: int
    source_types: frozenset[str] = frozenset()
    target_types: frozenset[str] = frozenset()
    is_event: bool = False
    is_end: bool = False
    is_past: bool = False
    is_future: bool = False
    is_former: bool = False
    is_ever: bool = False
    confidence: float = 1.0
    new_type: str = ""
    aspect: str = ""
    doubt: str = ""
    successor: Phrase | None = None
    is_return: bool = False


def stated(group: VerbGroup, source: Phrase, target: Phrase, relation: str, end: int = 0, **details: Any) -> Statement:
    """Return the statement of a verb about two phrases, with its tense; `details` are fields of `Statement`."""
    tense: dict[str, Any] = {"is_end": group.is_end, "is_past": group.is_past, "is_future": group.is_future}
    return Statement(source, target, relation, group.verb, end, **tense | details)


def _when(statement: Statement, date: Date | None, at: float) -> tuple[Validity, bool]:
    """Return when a statement holds by its date, and whether it only held once."""
    # A date may state the end of a former fact: `until May`, `from 2015 to 2019`.
    first = "" if date is None else _first_word(date)
    is_former = (statement.is_former or (statement.is_ever and date is None)) and first not in _UNTIL | _BETWEEN
    if not is_former or statement.is_event:
        tense = {"is_event": statement.is_event, "is_end": statement.is_end, "is_past": statement.is_past}
        return validity(date, at=at, **tense), is_former
    # `lived` states neither a begin nor an end.
    valid = validity(date, at=at, is_event=False, is_end=False, is_past=True)
    if date is not None and valid.since is not None and first not in SINCE and isfinite(date.until):
        valid = Validity(date.since, min(date.until, at)) if date.since < at else Validity()
    return valid, is_former


def fitting_type(entities: Entities, phrase: Phrase, types: frozenset[str]) -> str | None:
    """Return the type of a phrase if it is in `types`, or a type in `types` that the phrase may take; else None."""
    type_ = entities.type_of(phrase)
    if not type_:
        return None
    if not types or type_ in types or ("thing" in types and type_ not in ("person",)):
        return type_
    if not phrase.is_name or phrase.confidence >= _WEAK or not phrase.name[:1].isupper():
        return None
    if phrase.is_weak and len(types) > 1:
        return None
    return next((option for option in _COERCED if option in types), None)


class Settler:
    """Turns the statements of one sentence into claims."""

    def __init__(self, entities: Entities, line: Line, dates: Sequence[Date], at: float) -> None:
        self.entities = entities
        self.line = line
        self._dates = dates
        self._at = at

    def settle(self, statement: Statement, *, is_reported: bool = False) -> Claim | None:
        """Return the claim, None if an end is unknown, or if it is about the future and has no date."""
        tokens = self.line.tokens
        sentence = tokens.text[tokens.start[0] : tokens.end[-1]]
        is_common = statement.source.type == "person" and not (statement.source.is_name or statement.source.anaphor)
        if is_common and statement.relation == "LIVES_IN" and not statement.doubt:
            is_change = statement.is_event or PATTERNS["change"].search(sentence) is not None
            if not is_change or " " in statement.source.name:
                statement = replace(statement, doubt=UNMARKED)  # either of two brothers may be meant
        source_type = fitting_type(self.entities, statement.source, statement.source_types)
        target_type = fitting_type(self.entities, statement.target, statement.target_types)
        if source_type is None or target_type is None:
            return None
        ends = (statement.source, statement.target)
        source_phrase, target_phrase = (None if self._is_anybody(end) else self._owned(end) for end in ends)
        if source_phrase is None or target_phrase is None:
            return None
        statement = replace(statement, source=source_phrase, target=target_phrase)
        stop = tokens.end[min(statement.end, tokens.count) - 1]
        subject = min(statement.source.start, statement.target.start)
        dates = self._dates_beside(statement.target) if statement.aspect else self._dates
        date = nearest(dates, subject, tokens.start[statement.verb], stop)
        if statement.is_future and date is None:
            return None
        source = self.entities.place_of(statement.source)
        target = self.entities.place_of(statement.target, type_=statement.new_type)
        if source is None or target is None or source == target:
            return None
        certainty = statement.confidence
        for phrase, index, type_ in ((statement.source, source, source_type), (statement.target, target, target_type)):
            if phrase.is_name and phrase.confidence < _WEAK and type_ != phrase.type:
                self.entities.retype(index, type_)
            # The fact itself is evidence that a name is one, of the type that the relation requires.
            is_name = phrase.is_name
            certainty = min(certainty, max(phrase.confidence, _NAMED_SURE) if is_name else phrase.confidence)
        valid, is_former = _when(statement, date, self._at)
        # A fact that begins in the future is a change, even without a word of change.
        is_unsettled = statement.doubt != UNMARKED or valid.since is None or valid.since <= self._at
        doubt = statement.doubt if is_unsettled else ""
        said = f"{sentence} {statement.aspect} {statement.target.name}"
        if statement.relation in _TOUCHY and PATTERNS["sensitive"].search(said):
            doubt = SENSITIVE
        return Claim(
            source,
            target,
            statement.relation,
            self._fact(statement, source, target),
            (tokens.start[0], tokens.end[-1]),
            valid.since,
            valid.until,
            statement.is_end,
            round(min(certainty, HEARSAY) if is_reported else certainty, 2),
            is_former,
            statement.aspect,
            doubt,
            statement.is_return,
        )

    def ended_at(self, departure: Statement) -> float | None:
        """Return when something was left, by the date of the verb; None without a date."""
        tokens, start = self.line.tokens, departure.source.start
        date = nearest(self._dates_beside(departure.target), start, tokens.start[departure.verb], tokens.end[-1])
        return validity(date, at=self._at, is_event=True, is_end=True, is_past=False).until

    def _dates_beside(self, value: Phrase) -> list[Date]:
        """Return the dates that are not, or do not hold, the value itself: `moved from Monday to Friday`."""
        return [day for day in self._dates if day.end <= value.start or value.end <= day.start]

    def _is_anybody(self, phrase: Phrase) -> bool:
        """Return whether a phrase means a person or an organization that its words do not identify."""
        if phrase.is_name or phrase.anaphor or phrase.type not in ("person", "organization"):
            return False
        before = self.line.tokens.at(phrase.first - 1)
        return before in lists.ANYBODY or (phrase.type == "person" and before == "our")

    def _owned(self, phrase: Phrase) -> Phrase | None:
        """Return a possession named after its owner, None if the owner is unknown; return any other phrase unchanged.

        `Our house` stays `house`: it is the one that everybody in the text means.
        """
        tokens, first = self.line.tokens, phrase.first
        if phrase.is_name or phrase.anaphor or "'s " in phrase.name:
            return phrase
        before = tokens.at(first - 1)
        if before in ("'s", "’s"):
            holder = next(iter(read_before(self.line, first - 1)[0][-1:]), None)
            owner = None if holder is None else self._owned(holder)
            index = None if owner is None else self.entities.place_of(owner) if owner.is_name or owner.anaphor else -1
        elif before in _OWNERS:
            start = tokens.start[first - 1]
            owner = Phrase(first - 1, first - 1, start, start, before, "", 0.9, anaphor=_OWNERS[before])
            index = self.entities.place_of(owner)
        else:
            return phrase
        if owner is None or index is None:
            return None
        name = owner.name if index < 0 else self.entities.name_of(index)
        return replace(phrase, name=f"{name}'s {phrase.name}")

    def _fact(self, statement: Statement, source: int, target: int) -> str:
        """Return the sentence, or the stating part of a long one, with its pronouns replaced by names."""
        tokens, text = self.line.tokens, self.line.tokens.text
        start, end = tokens.start[0], tokens.end[-1]
        if end - start > _MAX_FACT_LENGTH:
            start = max(start, min(statement.source.start, statement.target.start, tokens.start[statement.verb]))
            end = min(max(statement.source.end, statement.target.end), start + _MAX_FACT_LENGTH)
        pieces: list[str] = []
        ends = sorted(((statement.source, source), (statement.target, target)), key=lambda pair: pair[0].start)
        for phrase, index in ends:
            if phrase.anaphor and phrase.anaphor not in SPEAKERS | {USER} and start <= phrase.start < phrase.end <= end:
                pieces += (text[start : phrase.start], self.entities.name_of(index))
                start = phrase.end
        fact = " ".join("".join((*pieces, text[start:end])).split())
        by = next((index for phrase, index in ends if phrase.anaphor in SPEAKERS), None)
        if by is None or self.entities.name_of(by) in (THE_USER, TEAM) or fact.startswith(self.entities.name_of(by)):
            return fact
        return f"{self.entities.name_of(by)}: {fact}"
