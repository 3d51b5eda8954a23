"""Extract entities, claims and dates from a text, sentence by sentence, in linear time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, pairwise
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

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
from commonplace.text.words import entries

_FURTHEST: Final = 9
_FORMER: Final = frozenset("former ex ex- late onetime retired past".split())
_SMALL: Final = frozenset("the a an of for and to at with from".split())
_TARGETS: Final = {"WORKS_FOR": frozenset({"organization"}), "LIVES_IN": frozenset({"place"})}
_GUESSED: Final = frozenset({"person", "place"})
_SURE: Final = 0.65
_FIRM: Final = 0.85
_LIKELY_FIRM: Final = 0.5


_KINDS: Final[Mapping[str, Callable[[str], bool]]] = {
    "ANY": bool,
    "NUMBER": str.isdigit,
    "MAN": lambda word: word.endswith("man"),
    "STOPS": (lists.STOPS - lists.POSSESSIVE).__contains__,
    "WORD": lambda word: word[0].isalpha() and word not in lists.STOPS,
    "MILD": lambda word: word not in lists.STOPS or word in _SMALL,
    "PLAIN": lambda word: (word not in lists.STOPS or word in _SMALL) and word not in lists.ROLES,
}
"""A WORD is of a noun phrase, MILD ones are of two with a small word between, and PLAIN ones of these no roles."""
_NAMES: Final = frozenset("PERSON TITLED ORG NAME PLACE BASED TOWN REGION STATE_NAME SHORT_STATE COUNTRY_NAME".split())


class _Item(NamedTuple):
    """A word of adjacent_names.txt: what it may be, and its mark."""

    ways: frozenset[str]
    mark: str

    def accepts(self, word: str | frozenset[str]) -> bool:
        """Return whether a word, or a name with these types, may stand there."""
        if not isinstance(word, str):
            return not word.isdisjoint(self.ways)
        return word in self.ways or any(
            _KINDS[way](word) if way in _KINDS else word in lists.WORDS.get(way, ()) for way in self.ways
        )


class _Row(NamedTuple):
    """A line of adjacent_names.txt."""

    relation: str
    sure: float
    is_reversed: bool
    items: tuple[_Item, ...]
    names: tuple[frozenset[str], ...]


def _rows() -> Iterator[_Row]:
    relation = ""
    for line in entries(Path(__file__).with_name("adjacent_names.txt")):
        sure, *said = line.split()
        if not said:
            relation = sure
            continue
        marks = (each[0] if each[0] == "!" else each[-1] if each[-1] in "?*" else "" for each in said)
        items = [_Item(frozenset(each.strip("!?*").split("|")), mark) for each, mark in zip(said, marks, strict=True)]
        names = (each.ways for each in items if each.mark != "!" and each.ways <= _NAMES)
        is_reversed = said[0] == "<"
        yield _Row(relation, float(sure), is_reversed, tuple(items[is_reversed:]), tuple(names))


_ROWS: Final = tuple(_rows())


def _fits(items: Sequence[_Item], words: Sequence[str | frozenset[str]]) -> bool:
    """Return whether some words begin as a line of adjacent_names.txt says."""
    if not items:
        return True
    item, rest = items[0], items[1:]
    is_it = bool(words) and item.accepts(words[0])
    if item.mark == "!":
        return not is_it and _fits(rest, words)
    if is_it and _fits(items if item.mark == "*" else rest, words[1:]):
        return True
    return item.mark != "" and _fits(rest, words)


def beside(line: Line) -> Iterator[Statement]:
    """Yield what each two names that follow each other say."""
    tokens = line.tokens
    for left, right in pairwise(line.mentions):
        if right.first - left.last > _FURTHEST:
            continue
        gap = tokens.lower[left.last : right.first]
        names = _shown(line, left), _shown(line, right, is_second=True)
        before = tokens.lower[max(left.first - 3, 0) : left.first]
        words: list[str | frozenset[str]]
        words = [*before, names[0], *gap, names[1], *tokens.lower[right.last : right.last + 3]]
        row = next(
            (
                row
                for row in _ROWS
                if not any(map(frozenset.isdisjoint, names, row.names))
                and any(_fits(row.items, words[begin:]) for begin in range(len(before) + 1))
            ),
            None,
        )
        # `Theater` of `Ford's Theater` is the rest of a name that begins before it.
        is_rest = any(
            name.is_weak and name.last - name.first == 1 and tokens.at(name.first - 1) in lists.POSSESSIVE
            for name in (left, right)
        )
        if row is None or is_rest:
            continue
        source, target = (right, left) if row.is_reversed else (left, right)
        if _is_backed(line, source, target, row.relation):
            types = _TARGETS.get(row.relation, frozenset())
            is_end = bool(_FORMER.intersection(gap)) or tokens.at(left.first - 1) in _FORMER
            ends = phrase_of(source), phrase_of(target)
            place = left.last - 1, right.last
            yield Statement(*ends, row.relation, *place, target_types=types, is_end=is_end, confidence=row.sure)


def _shown(line: Line, mention: Mention, *, is_second: bool = False) -> frozenset[str]:
    """Return the types that adjacent_names.txt has for a name."""
    tokens, behind = line.tokens, mention.last
    first, is_large = tokens.word[mention.first], mention.name[0].isupper()
    if mention.type == "place":
        name = mention.name.lower().rstrip(".")
        is_state, is_country = name in lists.STATES, name in lists.COUNTRIES
        is_region = is_state or is_country or mention.name in lists.POSTAL
        types = {
            "PLACE": True,
            "BASED": first.lower().endswith(("-based", "-headquartered")),
            "TOWN": not is_region,
            "REGION": is_region,
            "STATE_NAME": is_state,
            "SHORT_STATE": is_state and mention.name[-1] == ".",
            "COUNTRY_NAME": is_country,
        }
        return frozenset(type_ for type_, holds in types.items() if holds)
    if mention.type == "person":
        return frozenset(("PERSON", "TITLED") if tokens.word[mention.first - 1][0].isupper() else ("PERSON",))
    # An unknown name is a firm's if it has a spokesman; one that goes on is longer than what is understood of it.
    goes_on = behind < tokens.count and (tokens.at(behind) in ("of", "for") or tokens.word[behind][0].isupper())
    is_unfit = (mention.is_weak or goes_on) if is_second else first[0] == "`"
    is_name = mention.type == "concept" and is_large and not is_unfit
    return frozenset({"ORG"} if mention.type == "organization" else {"NAME"} if is_name else ())


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


_HELPERS: Final = lists.BE | lists.HAVE | {"decided", "to", "chose"}


def _joined(claims: list[Claim], new: Claim, *, is_team: bool) -> list[Claim]:
    """Return the claims of a sentence with one of its attributes, without what says the same with less."""
    same = [claim for claim in claims if (claim.source, claim.target) == (new.source, new.target)]
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
        gone = [departure.moved(places) for departure in self._departures if departure.target in places]
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
            replace(claim, doubt=claim.doubt or gone.doubt) if claim.is_end and claim.target == target else claim
            for claim in self._claims[first:]
        ]
        is_own = gone.source.anaphor in (NOBODY, "i", "we")
        tokens = settler.line.tokens
        said, span = tokens.read(0, tokens.count), (tokens.start[0], tokens.end[-1])
        at = settler.ended_at(gone.source.start, gone.verb)
        self._departures.append(Departure(target, said, span, successor, source, gone.doubt, is_own, at))
