"""Extract entities, claims and dates from a text, sentence by sentence, in time that grows with its length alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from math import isfinite
from typing import Final

from commonplace.errors import UsageError
from commonplace.extract.appositions import beside
from commonplace.extract.cancelling import cancelled
from commonplace.extract.clauses import TRIGGERS, Clauses
from commonplace.extract.dating import UP_TO
from commonplace.extract.deciding import written_down
from commonplace.extract.entities import Entities
from commonplace.extract.hearsay import HEARSAY, is_inside, is_reported, quotations
from commonplace.extract.moods import is_question
from commonplace.extract.names import find_names
from commonplace.extract.phrases import ANAPHORS, SPEAKERS, Line, read_behind
from commonplace.extract.result import Cancellation, Claim, Extraction
from commonplace.extract.sentences import Stretch, stretches
from commonplace.extract.statements import Settler, Statement
from commonplace.extract.tokens import Tokens
from commonplace.timeline import Mention as Date
from commonplace.timeline import Prefer
from commonplace.timeline import mentions as find_dates

_NONE: Final[Mapping[str, Collection[str]]] = {}
_PLANNED: Final = frozenset("will 'll wo going moving joining leaving switching migrating starting relocating".split())
_ENGLISH: Final = frozenset("the of and is are to with by has have from at for on that it this be as i we".split())
_LABELS: Final = {"user": "", "human": "", "assistant": "the assistant", "agent": "the assistant"}
"""Who is meant by `I` behind a label; "" is the user."""
_SHORT: Final = 5
_GUESSED: Final = 0.6
"""No surer is it what a name in capitals is that stands in no list."""
_CALLED_OFF: Final = 0.8
"""So sure is it that what is said to be called off is."""
_MOST_CALLED_OFF: Final = 100
"""A text that calls off more is none that people write."""
_PAST: Final = frozenset({"was", "were"})
_LONGEST_SENTENCE: Final = 4_000


def extract(
    text: str, *, at: float, zone: tzinfo = UTC, types: Mapping[str, Collection[str]] = _NONE, speaker: str = ""
) -> Extraction:
    """Return what a text says: whom and what it names, what it claims of them, which dates it speaks of.

    What is asked, supposed, wished, rumoured or denied is not claimed; what is said to have ended is claimed as ended.
    Without somebody named to have decided, `we chose Postgres for billing` is a decision of billing: of what it is
    for; without that, of `speaker`, or of `we`. English only: other languages give names and paths, and hardly a claim.

    Args:
        at: when the text was written, seconds since the epoch: dates are told from it.
        zone: whose calendar the dates mean.
        types: the caller's own types of entities, each with the names that are of it, in any case.
        speaker: who `I` and `we` are; without, `I` is `the user`.

    Raises:
        UsageError: `at` is no time of the calendar.
    """
    try:
        now = datetime.fromtimestamp(at, zone)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"{at} is no time of the calendar", remedy="pass seconds since 1970, of years 1 to 9999"
        ) from error
    own = {name.lower(): type_ for type_, names in types.items() for name in names}
    reader = _Reader(text, now, at, own, Entities(speaker))
    for stretch in stretches(text):
        reader.read(stretch)
    return reader.result()


class _Reader:
    """Reads the sentences of one text in order."""

    def __init__(self, text: str, now: datetime, at: float, own: Mapping[str, str], entities: Entities) -> None:
        self._text = text
        self._now = now
        self._at = at
        self._own = own
        self._entities = entities
        self._claims: list[Claim] = []
        self._cancellations: list[Cancellation] = []
        self._dates: list[Date] = []
        self._quotations = quotations(text)

    def read(self, stretch: Stretch) -> None:
        """Take in one sentence."""
        for begin in range(stretch.start, stretch.end, _LONGEST_SENTENCE):
            tokens = Tokens(self._text, begin, min(begin + _LONGEST_SENTENCE, stretch.end))
            if tokens.count:
                self._read(tokens, is_prose=stretch.is_prose)

    def result(self) -> Extraction:
        """Return what has been found, each claim once."""
        found, places = self._entities.found()
        claims = {
            (claim.source, claim.target, claim.type, claim.span, claim.is_end): claim
            for claim in reversed(self._claims)
        }
        kept = [
            replace(claim, source=places[claim.source], target=places[claim.target])
            for claim in reversed(claims.values())
            if claim.source in places and claim.target in places and places[claim.source] != places[claim.target]
        ]
        taken_back = [each.moved(places) for each in self._cancellations]
        return Extraction(tuple(found), tuple(kept), tuple(self._dates), tuple(taken_back))

    def _read(self, tokens: Tokens, *, is_prose: bool) -> None:
        mentions = find_names(tokens, self._own, is_prose=is_prose)
        if not is_prose:
            self._entities.begin(mentions, [])
            return
        if not _is_english(tokens):
            mentions = [replace(one, is_weak=True) if one.confidence <= _GUESSED else one for one in mentions]
        dates = self._dates_of(tokens)
        dated = _dated(tokens, dates) if dates else frozenset()
        if dated:
            mentions = [mention for mention in mentions if mention.first not in dated]
        line = Line(tokens, mentions, dated)
        may_state = not TRIGGERS.isdisjoint(tokens.lower)
        self._hear(line)
        self._entities.begin(mentions, read_behind(line, 0, is_subject=True)[0] if may_state else [])
        if is_question(tokens):
            return
        self._take_back(line)
        settler = Settler(self._entities, line, dates, self._at)
        for statement in self._statements(line, may_state=may_state):
            is_quoted = is_inside(self._quotations, tokens.start[statement.verb])
            if is_quoted and not SPEAKERS.isdisjoint((statement.source.anaphor, statement.target.anaphor)):
                continue  # who `I` is in a quotation, nobody knows
            claim = settler.settle(statement, is_reported=is_quoted or is_reported(tokens, statement.verb))
            if claim is not None:
                self._claims.append(claim)

    def _take_back(self, line: Line) -> None:
        """Note what a sentence says never to have come about."""
        tokens = line.tokens
        if len(self._cancellations) >= _MOST_CALLED_OFF:
            return
        for called in cancelled(line, self._entities):
            is_passed_on = is_inside(self._quotations, tokens.start[called.verb]) or is_reported(tokens, called.verb)
            source, target, kept = (
                None if phrase is None else self._entities.place_of(phrase)
                for phrase in (called.source, called.target, called.kept)
            )
            sure = HEARSAY if is_passed_on or not called.is_sure else _CALLED_OFF
            span = (tokens.start[0], tokens.end[-1])
            said = " ".join(self._text[slice(*span)].split())
            self._cancellations.append(Cancellation(called.relations, said, span, source, target, kept, sure))

    def _hear(self, line: Line) -> None:
        """Note who speaks from here on: `Mira: I moved to Oslo`."""
        tokens = line.tokens
        named = line.starting.get(0)
        if named is not None and named.type == "person" and tokens.at(named.last) == ":":
            self._entities.speaker = named.name
        elif tokens.at(1) == ":" and tokens.at(0) in _LABELS:
            self._entities.speaker = _LABELS[tokens.at(0)]

    def _statements(self, line: Line, *, may_state: bool) -> Iterator[Statement]:
        if len(line.mentions) > 1:
            yield from beside(line)
        if line.tokens.at(0) == "decision" and line.tokens.at(1) == ":" and line.tokens.at(2) not in ANAPHORS:
            yield from written_down(line)
        elif may_state:
            yield from Clauses(line, self._entities).statements()

    def _dates_of(self, tokens: Tokens) -> list[Date]:
        start, end = tokens.start[0], tokens.end[-1]
        prefer: Prefer = (
            "future" if not _PLANNED.isdisjoint(tokens.lower) and _PAST.isdisjoint(tokens.lower) else "past"
        )
        found = find_dates(self._text[start:end], now=self._now, prefer=prefer)
        dates = [replace(date, start=date.start + start, end=date.end + start) for date in found]
        self._dates.extend(dates)
        return [self._up_to(date, prefer) for date in dates]

    def _up_to(self, date: Date, prefer: Prefer) -> Date:
        """Return `until 2018` as what ends where `since 2018` begins: who says both means no year in both places."""
        first, _, rest = date.text.partition(" ")
        if first.lower() not in UP_TO or isfinite(date.since):
            return date
        since = next(iter(find_dates(f"since {rest}", now=self._now, prefer=prefer)), None)
        return replace(date, until=since.since) if since is not None and since.since < date.until else date


def _is_english(tokens: Tokens) -> bool:
    """Tell whether a sentence may be English: a longer one has one of its small words."""
    return tokens.count <= _SHORT or not _ENGLISH.isdisjoint(tokens.lower)


def _dated(tokens: Tokens, dates: Sequence[Date]) -> frozenset[int]:
    """Return the places of the words that are part of a date."""
    inside: list[int] = []
    place = 0
    for date in dates:
        while place < tokens.count and tokens.end[place] <= date.start:
            place += 1
        while place < tokens.count and tokens.start[place] < date.end:
            inside.append(place)
            place += 1
    return frozenset(inside)
