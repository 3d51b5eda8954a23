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
from commonplace.extract.clauses import MOVING_AWAY, STATES, TRIGGERS, Clauses
from commonplace.extract.decisions import written_down
from commonplace.extract.entities import Entities
from commonplace.extract.modality import is_inside, is_question, is_reported, quotations
from commonplace.extract.model import SENSITIVE, UNSURE, Claim, Departure, Extraction
from commonplace.extract.names import Phrase, find_names
from commonplace.extract.phrases import ANAPHORS, SPEAKERS, Line, read_behind
from commonplace.extract.relations import UP_TO, Settler, Statement
from commonplace.extract.tokens import Tokens
from commonplace.extract.verbs import FORMS
from commonplace.extract.words import PATTERNS
from commonplace.text.sentences import stretches
from commonplace.text.words import sections

_FURTHEST: Final = 9
_TARGETS: Final = {"WORKS_FOR": frozenset({"organization"}), "LIVES_IN": frozenset({"place"})}
_SURE, _FIRM, _LIKELY_FIRM = 0.65, 0.85, 0.5


_KINDS: Final[Mapping[str, Callable[[str], bool]]] = {
    **{name: words.__contains__ for name, words in lists.WORDS.items()},
    "ANY": bool,
    "NUMBER": str.isdigit,
    "MAN": lambda word: word.endswith("man"),
    "STOPS": (lists.STOPS - lists.POSSESSIVE).__contains__,
    "WORD": lambda word: word[0].isalpha() and word not in lists.STOPS,
    "MILD": lambda word: word not in lists.STOPS or word in lists.SMALL,
    "PLAIN": lambda word: (word not in lists.STOPS or word in lists.SMALL) and word not in lists.ROLES,
}
"""Kinds of words in adjacent_names.txt: WORD may be in a noun phrase, MILD may join two, PLAIN is MILD but no role."""
_NAMES: Final = frozenset("PERSON TITLED ORG NAME PLACE BASED TOWN REGION STATE_NAME SHORT_STATE COUNTRY_NAME".split())
_HELPERS: Final = lists.BE | lists.HAVE | {"decided", "to", "chose"}
_LABELS: Final = {"user": "", "human": "", "assistant": "the assistant", "agent": "the assistant"}
"""Who `I` is after a label; "" is the user."""
_SHORT: Final = 5
_GUESSED_KINDS: Final = 0.6
"""Maximum confidence in the type of a capitalised name that is in no list."""
_MAX_RETRACTED: Final = 100
"""Maximum number of retractions read in a text; people write fewer."""
_MAX_SENTENCE_LENGTH: Final = 4_000


class _Item(NamedTuple):
    """An item of a line of adjacent_names.txt: its alternatives and its mark."""

    ways: frozenset[str]
    mark: str

    def accepts(self, word: str | frozenset[str]) -> bool:
        """Return whether a word, or a name of these types, matches."""
        if not isinstance(word, str):
            return not word.isdisjoint(self.ways)
        return word in self.ways or any(_KINDS[way](word) for way in self.ways if way in _KINDS)


class _Row(NamedTuple):
    relation: str
    sure: float
    is_reversed: bool
    items: tuple[_Item, ...]
    names: tuple[frozenset[str], ...]


def _rows() -> Iterator[_Row]:
    lines = sections(Path(__file__).with_name("adjacent_names.txt"))
    for relation, line in ((relation, line) for relation, below in lines.items() for line in below):
        confidence, *parts = line.split()
        marks = (part[0] if part[0] == "!" else part[-1] if part[-1] in "?*" else "" for part in parts)
        items = [_Item(frozenset(part.strip("!?*").split("|")), mark) for part, mark in zip(parts, marks, strict=True)]
        names = (item.ways for item in items if item.mark != "!" and item.ways <= _NAMES)
        is_reversed = parts[0] == "<"
        yield _Row(relation, float(confidence), is_reversed, tuple(items[is_reversed:]), tuple(names))


_ROWS: Final = tuple(_rows())


def _fits(items: Sequence[_Item], words: Sequence[str | frozenset[str]]) -> bool:
    """Return whether words begin with a match of the items of a line of adjacent_names.txt."""
    if not items:
        return True
    item, rest = items[0], items[1:]
    fits = bool(words) and item.accepts(words[0])
    if item.mark == "!":
        return not fits and _fits(rest, words)
    if fits and _fits(items if item.mark == "*" else rest, words[1:]):
        return True
    return item.mark != "" and _fits(rest, words)


def beside(line: Line) -> Iterator[Statement]:
    """Yield the statements that adjacent names make."""
    tokens = line.tokens
    for left, right in pairwise(line.mentions):
        if right.first - left.last > _FURTHEST:
            continue
        gap = tokens.lower[left.last : right.first]
        names = _shown(line, left), _shown(line, right, is_second=True)
        before = tokens.lower[max(left.first - 3, 0) : left.first]
        words: list[str | frozenset[str]]
        words = [*before, names[0], *gap, names[1], *tokens.lower[right.last : right.last + 3]]
        rows = (row for row in _ROWS if not any(map(frozenset.isdisjoint, names, row.names)))
        parts = [words[begin:] for begin in range(len(before) + 1)]
        row = next((row for row in rows if any(_fits(row.items, part) for part in parts)), None)
        # `Theater` in `Ford's Theater` is the rest of a name that begins earlier.
        weak = (name for name in (left, right) if name.is_weak and name.last - name.first == 1)
        is_rest = any(tokens.at(name.first - 1) in lists.POSSESSIVE for name in weak)
        if row is None or is_rest:
            continue
        source, target = (right, left) if row.is_reversed else (left, right)
        if _is_backed(line, source, target, row.relation):
            types = _TARGETS.get(row.relation, frozenset())
            is_end = bool(lists.FORMER.intersection(gap)) or tokens.at(left.first - 1) in lists.FORMER
            ends = source, target
            span = left.last - 1, right.last
            yield Statement(*ends, row.relation, *span, target_types=types, is_end=is_end, confidence=row.sure)


def _shown(line: Line, mention: Phrase, *, is_second: bool = False) -> frozenset[str]:
    """Return the types of adjacent_names.txt that a name has."""
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
    # An unknown name may be a firm, say if it has a spokesman; not if the name goes on beyond what was recognised.
    goes_on = behind < tokens.count and (tokens.at(behind) in ("of", "for") or tokens.word[behind][0].isupper())
    is_unfit = (mention.is_weak or goes_on) if is_second else first[0] == "`"
    is_name = mention.type == "concept" and is_large and not is_unfit
    return frozenset({"ORG"} if mention.type == "organization" else {"NAME"} if is_name else ())


def _is_backed(line: Line, source: Phrase, target: Phrase, relation: str) -> bool:
    """Return whether the types of two names are certain enough; a certain one supports the other."""
    guessed = [name for name in (source, target) if name.type in ("person", "place") and name.confidence < _SURE]
    if not guessed:
        return True
    if relation == "WORKS_FOR" and guessed == [source] and source.type == "person" and " " in source.name:
        first, last = min(source.last, target.last), max(source.first, target.first)
        around = line.tokens.lower[first:last] + line.tokens.lower[target.last : target.last + 3]
        return target.confidence >= (_LIKELY_FIRM if lists.ROLES.intersection(around) else _FIRM)
    if relation == "LOCATED_IN" and guessed == [target]:
        return source.confidence >= _FIRM and source.last < target.first and line.tokens.at(source.last) == "in"
    return False


def _joined(claims: list[Claim], new: Claim, *, is_team: bool) -> list[Claim]:
    """Return the claims of a sentence with one from its attributes added, without less specific duplicates."""
    same = [claim for claim in claims if (claim.source, claim.target) == (new.source, new.target)]
    if any(claim.type == "WORKS_FOR" or claim.is_end for claim in same) or (not new.aspect and same):
        return claims
    # That somebody leads a team without a name does not tell where they work.
    inverse = (new.target, new.source) if new.aspect == "lead" and is_team else None
    others = [claim for claim in claims if claim not in same[1:] and (claim.source, claim.target) != inverse]
    if not same:
        return [*others, new]
    return [replace(new, type=claim.type) if claim is same[0] else claim for claim in others]


def extract(text: str, *, at: float, speaker: str = "") -> Extraction:
    """Return the entities, claims and dates of a text.

    What is asked, supposed, wished, rumoured or denied is not claimed; what is said to have ended is claimed as ended.
    Without a named decider, a decision belongs to its purpose: `we chose Postgres for billing` is one of billing;
    without a purpose, to `speaker` or `we`. English only: other languages yield names and paths, but hardly a claim.

    Args:
        at: when the text was written, seconds since the epoch; dates are relative to it.
        speaker: who `I` and `we` are; if empty, `I` is `the user`.

    Raises:
        UsageError: `at` is outside the calendar.
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
        """Read the names, dates and statements of a sentence; of a line that is no prose, only its names."""
        mentions = find_names(tokens, is_prose=is_prose)
        if not is_prose:
            self._entities.begin(mentions, [])
            return
        # A longer sentence without a common English word is in another language.
        if tokens.count > _SHORT and lists.ENGLISH.isdisjoint(tokens.lower):
            mentions = [replace(name, is_weak=True) if name.confidence <= _GUESSED_KINDS else name for name in mentions]
        dates = self._dates_of(tokens)
        places = (range(bisect_right(tokens.end, day.start), bisect_left(tokens.start, day.end)) for day in dates)
        dated = frozenset(chain.from_iterable(places))
        mentions = [mention for mention in mentions if mention.first not in dated] if dated else mentions
        line = Line(tokens, mentions, dated)
        # A label sets the speaker from here on: `Mira: I moved to Oslo`.
        speaker = line.starting.get(0)
        is_named = speaker is not None and speaker.type == "person" and tokens.at(speaker.last) == ":"
        is_spoken = is_named or (tokens.at(1) == ":" and tokens.at(0) in _LABELS)
        if is_spoken:
            self._entities.speaker = speaker.name if speaker is not None and is_named else _LABELS[tokens.at(0)]
        may_state = not TRIGGERS.isdisjoint(tokens.lower)
        self._entities.begin(mentions, read_behind(line, 0, is_subject=True)[0] if may_state else [])
        if not is_question(tokens):
            self._state(line, Settler(self._entities, line, dates, self._at), may_state, is_spoken)

    def result(self) -> Extraction:
        """Return the extraction, each claim once."""
        entities, indexes = self._entities.certain_entities()
        claims = {(one.source, one.target, one.type, one.span, one.is_end): one for one in reversed(self._claims)}
        certain = (claim for claim in reversed(claims.values()) if claim.ends <= indexes.keys())
        renumbered = [claim.moved(indexes) for claim in certain if indexes[claim.source] != indexes[claim.target]]
        departures = [departure.moved(indexes) for departure in self._departures if departure.target in indexes]
        return Extraction(tuple(entities), tuple(renumbered), tuple(self._dates), tuple(departures))

    def _dates_of(self, tokens: Tokens) -> list[Date]:
        start, end = tokens.start[0], tokens.end[-1]
        # `From January we live in Oslo` and `I start there on 1 December` refer to the future.
        is_announced = PATTERNS["from then on"].search(self._text, start, end) is not None
        is_planned = not lists.PLANNED.isdisjoint(tokens.lower)
        is_past = not {"was", "were"}.isdisjoint(tokens.lower) or any(
            tokens.at(index - 1) not in _HELPERS
            and all(form.shape != "base" for form in forms)
            and any(form.is_past for form in forms)
            for index, lower in enumerate(tokens.lower)
            if (forms := FORMS.get(lower, ()))
        )
        prefer: Prefer = "past" if is_past else "future" if is_planned else "near" if is_announced else "past"
        mentions = find_dates(self._text[start:end], now=self._now, prefer=prefer)
        dates = [replace(date, start=date.start + start, end=date.end + start) for date in mentions]
        self._dates.extend(dates)
        for index, date in enumerate(dates):
            # `until 2018` ends where `since 2018` begins, so that the two do not overlap.
            first, _, rest = date.text.partition(" ")
            if first.lower() in UP_TO and not isfinite(date.since):
                since = next(iter(find_dates(f"since {rest}", now=self._now, prefer=prefer)), None)
                if since is not None and since.since < date.until:
                    dates[index] = replace(date, until=since.since if since.moment is None else since.moment)
        return dates

    def _state(self, line: Line, settler: Settler, may_state: bool, is_spoken: bool) -> None:
        """Add the claims of a sentence: of adjacent names, of its verbs, and of single-valued attributes."""
        tokens, first = line.tokens, len(self._claims)
        statements: Iterable[Statement] = list(beside(line))
        if tokens.at(0) == "decision" and tokens.at(1) == ":" and tokens.at(2) not in ANAPHORS:
            statements = chain(statements, written_down(line))
        elif may_state:
            statements = chain(statements, Clauses(line, self._entities).statements())
        attributes = Attributes(line, self._entities.speaker, is_spoken=is_spoken)
        moves: list[Claim] = []  # with a date, of what holds until the next
        of_attributes = ((item, True) for item in attributes.statements())
        for statement, is_attribute in chain(((item, False) for item in statements), of_attributes):
            is_quoted = is_inside(self._quotations, tokens.start[statement.verb])
            is_passed_on = is_quoted or is_reported(tokens, statement.verb)
            if statement.relation == GONE:
                if not is_passed_on:
                    self._depart(statement, settler, first)
                continue
            if is_quoted and not SPEAKERS.isdisjoint((statement.source.anaphor, statement.target.anaphor)):
                continue  # who `I` is in a quotation is unknown
            claim = settler.settle(statement, is_reported=is_passed_on)
            if claim is None:
                continue
            is_sure = not (claim.is_end or claim.doubt or claim.valid_from is None)
            if statement.is_event and claim.type in STATES and is_sure:
                forms = FORMS.get(tokens.lower[statement.verb], ())
                # What opens in two places has both.
                if claim.type != "LOCATED_IN" or any(form.lemma in MOVING_AWAY for form in forms):
                    moves.append(claim)
            others = self._claims[first:]
            is_team = not statement.source.is_name
            self._claims[first:] = _joined(others, claim, is_team=is_team) if is_attribute else [*others, claim]
            if not is_passed_on:
                self._exclude(attributes.excluded(statement), claim)
        moves.sort(key=lambda move: (move.source, move.type, move.valid_from or 0.0))
        self._claims += [  # `In May I moved to Bern, and in June I moved to Basel.`
            replace(move, is_end=True, valid_from=None, valid_to=later.valid_from)
            for move, later in pairwise(moves)
            if (move.source, move.type) == (later.source, later.type) and move.valid_from != later.valid_from
        ]

    def _exclude(self, excluded: Phrase | None, claim: Claim) -> None:
        """Add that a value named beside that of a claim is not the value, as of when the claim holds."""
        index = None if excluded is None else self._entities.place_of(excluded)
        if index is None or claim.is_end or claim.is_former:
            return
        doubt = claim.doubt if claim.doubt in (SENSITIVE, UNSURE) else ""
        gone = Departure(index, claim.fact, claim.span, None, claim.source, doubt, valid_to=claim.valid_from)
        self._departures.append(replace(gone, type=claim.type, aspect=claim.aspect))

    def _depart(self, departure: Statement, settler: Settler, first: int) -> None:
        target = self._entities.place_of(departure.target)
        successor = None if departure.successor is None else self._entities.place_of(departure.successor)
        source = self._entities.place_of(departure.source) if departure.source.anaphor != NOBODY else None
        if target is None or len(self._departures) >= _MAX_RETRACTED:
            return
        for index, claim in enumerate(self._claims[first:], first):
            if claim.is_end and claim.target == target and source in (None, claim.source):
                self._claims[index] = replace(claim, doubt=claim.doubt or departure.doubt)
        is_own = departure.source.anaphor in (NOBODY, "i", "we")
        tokens = settler.line.tokens
        sentence, span = tokens.read(0, tokens.count), (tokens.start[0], tokens.end[-1])
        end = settler.ended_at(departure)
        gone = Departure(target, sentence, span, successor, source, departure.doubt, is_own, end)
        self._departures.append(replace(gone, aspect=departure.aspect))
