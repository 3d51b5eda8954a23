"""What a sentence states before it is settled who is meant; and the settling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from commonplace.extract.dating import nearest, once, says_end, validity
from commonplace.extract.entities import TEAM, THE_USER, Entities
from commonplace.extract.hearsay import HEARSAY
from commonplace.extract.phrases import SPEAKERS, USER, Line, Phrase
from commonplace.extract.result import Claim
from commonplace.extract.trips import SHORTEST_TIME_OF_A_MOVE
from commonplace.timeline import Mention as Date

_LONGEST_FACT: Final = 320
_WEAK: Final = 0.7
"""A name under this confidence may turn out to be what a fact needs."""
_COERCED_SURE: Final = 0.6
_COERCED: Final = ("person", "organization", "place", "project", "tool", "event")


_ANYBODY: Final = frozenset("a an some one such his her its their your 's ’s".split())
"""Before `company` or `brother` these tell that it is another one in the next sentence."""
_RELATIVE: Final = frozenset("my our".split())


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation between two phrases of a sentence.

    Attributes:
        verb: the place of the word that says it; the date is looked for around it.
        end: the word behind all that belongs to it.
        is_former: it was so once, which does not tell whether it is.
        is_ever: it has been so at some time, and only a date with it tells that it still is.
        is_departure: somebody left a place, whether for good nobody says.
        source_types, target_types: what the relation demands; empty for nothing, `thing` for anything but a person.
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
    is_departure: bool = False
    confidence: float = 1.0
    new_type: str = ""


def fitting_type(entities: Entities, phrase: Phrase, wanted: frozenset[str]) -> str | None:
    """Return the type of a phrase where it is among the wanted ones, or may become one of them; else None."""
    type_ = entities.type_of(phrase)
    if not type_:
        return None
    if not wanted or type_ in wanted or ("thing" in wanted and type_ not in ("person",)):
        return type_
    if phrase.mention is None or phrase.confidence >= _WEAK or not phrase.name[:1].isupper():
        return None
    if phrase.mention.is_weak and len(wanted) > 1:
        return None
    return next((option for option in _COERCED if option in wanted), None)


def _sureness(phrase: Phrase, type_: str) -> float:
    """Return how sure a phrase is, more where the fact itself tells what it is."""
    return max(phrase.confidence, _COERCED_SURE) if phrase.type and type_ != phrase.type else phrase.confidence


class Settler:
    """Makes claims of the statements of one sentence."""

    def __init__(self, entities: Entities, line: Line, dates: Sequence[Date], at: float) -> None:
        self.entities = entities
        self.line = line
        self._dates = dates
        self._at = at

    def settle(self, statement: Statement, *, is_reported: bool = False) -> Claim | None:
        """Return the claim, or None where it is not known who is meant, or what has not happened has no date."""
        source_type = fitting_type(self.entities, statement.source, statement.source_types)
        target_type = fitting_type(self.entities, statement.target, statement.target_types)
        if source_type is None or target_type is None:
            return None
        if self._is_anybody(statement.source) or self._is_anybody(statement.target):
            return None
        tokens = self.line.tokens
        stop = tokens.end[min(statement.end, tokens.count) - 1]
        subject = min(statement.source.start, statement.target.start)
        date = nearest(self._dates, subject, tokens.start[statement.verb], stop)
        if statement.is_future and date is None:
            return None
        if statement.is_departure and date is not None and date.until - date.since < SHORTEST_TIME_OF_A_MOVE:
            return None
        is_unsure = is_reported or (statement.is_departure and date is None)
        source = self.entities.place_of(statement.source)
        target = self.entities.place_of(statement.target, type_=statement.new_type)
        if source is None or target is None or source == target:
            return None
        self._retype(source, source_type, statement.source)
        self._retype(target, target_type, statement.target)
        is_former = (statement.is_former or (statement.is_ever and date is None)) and not says_end(date)
        valid = (
            once(date, at=self._at)
            if is_former and not statement.is_event
            else validity(
                date, at=self._at, is_event=statement.is_event, is_end=statement.is_end, is_past=statement.is_past
            )
        )
        sure = min(
            statement.confidence,
            _sureness(statement.source, source_type),
            _sureness(statement.target, target_type),
        )
        return Claim(
            source,
            target,
            statement.relation,
            self._fact(statement, source, target),
            (tokens.start[0], tokens.end[-1]),
            valid.since,
            valid.until,
            statement.is_end,
            round(min(sure, HEARSAY) if is_unsure else sure, 2),
            is_former,
        )

    def _is_anybody(self, phrase: Phrase) -> bool:
        """Tell whether a phrase means somebody or some organization that its words do not tell from others."""
        if phrase.mention is not None or phrase.anaphor or phrase.type not in ("person", "organization"):
            return False
        before = self.line.tokens.at(phrase.first - 1)
        return before in _ANYBODY or (phrase.type == "person" and before in _RELATIVE)

    def _retype(self, place: int, type_: str, phrase: Phrase) -> None:
        if phrase.mention is not None and phrase.confidence < _WEAK and type_ != phrase.type:
            self.entities.retype(place, type_)

    def _fact(self, statement: Statement, source: int, target: int) -> str:
        """Return the sentence, or as much of a long one as says it, with names for its pronouns."""
        tokens, text = self.line.tokens, self.line.tokens.text
        start, end = tokens.start[0], tokens.end[-1]
        if end - start > _LONGEST_FACT:
            start = max(start, min(statement.source.start, statement.target.start, tokens.start[statement.verb]))
            end = min(max(statement.source.end, statement.target.end), start + _LONGEST_FACT)
        pieces: list[str] = []
        ends = sorted(((statement.source, source), (statement.target, target)), key=lambda pair: pair[0].start)
        for phrase, place in ends:
            if phrase.anaphor and phrase.anaphor not in SPEAKERS | {USER} and start <= phrase.start < phrase.end <= end:
                pieces += (text[start : phrase.start], self.entities.name_of(place))
                start = phrase.end
        said = " ".join("".join((*pieces, text[start:end])).split())
        by = next((place for phrase, place in ends if phrase.anaphor in SPEAKERS), None)
        if by is None or self.entities.name_of(by) in (THE_USER, TEAM) or said.startswith(self.entities.name_of(by)):
            return said
        return f"{self.entities.name_of(by)}: {said}"
