"""Find what is said not to have come about after all: `the move was cancelled`, `she did not move after all`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from commonplace.extract.entities import Entities
from commonplace.extract.moods import doubtful_places, has_condition_behind
from commonplace.extract.phrases import Line, Phrase, phrase_of, read_before, read_behind
from commonplace.extract.tokens import Tokens
from commonplace.extract.verb_groups import VerbGroup, read_group
from commonplace.extract.verbs import FORMS
from commonplace.extract.words import BE, DO, HAVE, MODALS, NEGATIONS

HOMES: Final = ("LIVES_IN", "LOCATED_IN")
JOBS: Final = ("WORKS_FOR",)
TOOLS: Final = ("USES",)

_NOUNS: Final = frozenset({"move", "relocation", "migration", "switch"})
_OF_TOOLS: Final = frozenset({"migration", "switch"})
_CANCELLED: Final = frozenset("cancelled canceled abandoned scrapped dropped aborted".split())
_OFF: Final = frozenset({"called"})
_FELL: Final = frozenset({"fell", "falls", "fallen"})
_HAPPENING: Final = frozenset({"happen", "happened", "materialize", "materialise", "materialized"})
_FURTHEST: Final = 12
_BEFORE: Final = 4
_MOVES: Final = frozenset({"move", "relocate"})
_STAYING: Final = frozenset("stay stays stayed staying remain remains remained remaining".split())
_AFTER_ALL: Final = (("after", "all"), ("in", "the", "end"))
_OWNERS: Final = {"my": "i", "our": "we", "his": "he", "her": "she", "their": "they", "its": "it"}
_HELPERS: Final = BE | HAVE | {"got", "also", "then", "now", "just", "finally", "actually", "suddenly"}
_POSSIBLE: Final = MODALS | {"will", "'ll", "be"}
"""Before `cancelled` these tell what is not so yet: `will be`, `is to be`."""
_LEFT_OPEN: Final = "he"
"""Whose move it is nobody says: the person's that was spoken of last."""


@dataclass(frozen=True, slots=True)
class Called:
    """A move or a new job that is called off.

    Attributes:
        source: whose, None where the sentence does not tell.
        target: where to, None where the sentence does not tell.
        kept: where they stay instead.
        verb: the place of the word that says so.
        is_sure: it is said to have been planned or begun, and not only not to be so.
    """

    source: Phrase | None
    target: Phrase | None
    kept: Phrase | None
    relations: tuple[str, ...]
    verb: int
    is_sure: bool = True


def cancelled(line: Line, entities: Entities) -> Iterator[Called]:
    """Yield what a sentence says to be called off; what may be, will be or is not, is none."""
    tokens = line.tokens
    if _NOUNS.isdisjoint(tokens.lower) and NEGATIONS.isdisjoint(tokens.lower) and _STAYING.isdisjoint(tokens.lower):
        return
    doubtful = doubtful_places(tokens)
    for place, lower in enumerate(tokens.lower):
        if doubtful[place] or has_condition_behind(tokens, place, tokens.count):
            continue
        if lower in _NOUNS and (found := _of_noun(line, entities, place)) is not None:
            yield found
            return
        found = _of_verb(line, place) if lower in FORMS or lower in _STAYING else None
        if found is not None:
            yield found
            return


def _of_noun(line: Line, entities: Entities, noun: int) -> Called | None:
    """Read `Mira's move to Oslo was cancelled`, `she called off the move`."""
    tokens = line.tokens
    verb = _ending_behind(tokens, noun)
    if verb is None:
        verb = _ending_before(tokens, noun)
        if verb is None:
            return None
        source = _owner(line, noun) or next(iter(read_before(line, verb)[0]), None)
    else:
        source = _owner(line, noun)
    if source is None and tokens.lower[noun] not in _OF_TOOLS and entities.type_of(_pronoun(line, noun, _LEFT_OPEN)):
        source = _pronoun(line, noun, _LEFT_OPEN)
    target = _reached(line, noun + 1)
    is_tool = tokens.lower[noun] in _OF_TOOLS or (target is not None and target.type == "tool")
    # What had been used before is a fact beside it, which nothing here reopens: so such a switch is only doubted.
    return Called(source, target, None, TOOLS if is_tool else HOMES, verb, is_sure=not is_tool)


def _ending_behind(tokens: Tokens, noun: int) -> int | None:
    """Return the place of `cancelled` in `the move … was cancelled`, None where it is not, or only may be."""
    for place in range(noun + 1, min(noun + _FURTHEST, tokens.count)):
        lower = tokens.lower[place]
        if lower in (";", "because", "but", "if"):
            return None
        before = tokens.lower[max(place - _BEFORE, noun + 1) : place]
        is_off = lower in _CANCELLED or (lower in _OFF and tokens.at(place + 1) == "off")
        if is_off and before and before[-1] in _HELPERS and (_POSSIBLE | NEGATIONS).isdisjoint(before):
            return place
        if lower in _FELL and tokens.at(place + 1) == "through":
            return place
        goes = lower in _HAPPENING or (lower in ("go", "come") and tokens.at(place + 1) in ("through", "off", "ahead"))
        if goes and not NEGATIONS.isdisjoint(before) and _POSSIBLE.isdisjoint(before):
            return place
    return None


def _ending_before(tokens: Tokens, noun: int) -> int | None:
    """Return the place of `cancelled` in `she has cancelled her move`."""
    for place in range(noun - 1, max(noun - _BEFORE - 2, -1), -1):
        lower = tokens.lower[place]
        if lower in _CANCELLED or (lower in _OFF and tokens.at(place + 1) == "off"):
            before = {*tokens.lower[max(place - _BEFORE, 0) : place]}
            return None if before & (_POSSIBLE | NEGATIONS | DO) else place
    return None


def _owner(line: Line, noun: int) -> Phrase | None:
    """Return whose move it is: `Mira's`, `her`."""
    tokens = line.tokens
    for place in range(noun - 1, max(noun - _BEFORE, -1), -1):
        lower = tokens.lower[place]
        if lower in _OWNERS:
            return _pronoun(line, place, _OWNERS[lower])
        if lower in ("'s", "’s"):
            return next(iter(read_before(line, place)[0][-1:]), None)
        if lower in ("the", "this", "that", ","):
            return None
    return None


def _pronoun(line: Line, place: int, anaphor: str) -> Phrase:
    start = line.tokens.start[place]
    return Phrase(place, place, start, start, anaphor, "", 0.9, None, anaphor)


def _reached(line: Line, place: int) -> Phrase | None:
    """Return where a move goes: what stands behind the first `to`."""
    tokens = line.tokens
    for ahead in range(place, min(place + _FURTHEST, tokens.count)):
        if tokens.lower[ahead] in (",", ";", "was", "were", "has", "is", "and", "but", "fell"):
            return None
        if tokens.lower[ahead] == "to":
            named = line.starting.get(ahead + 2 if tokens.at(ahead + 1) == "the" else ahead + 1)
            return None if named is None else phrase_of(named)
    return None


def _of_verb(line: Line, verb: int) -> Called | None:
    """Read `she did not move to Oslo after all`, `she decided not to move`, `she stayed in Rome after all`."""
    tokens = line.tokens
    is_after_all = any(
        tuple(tokens.lower[place : place + len(words)]) == words
        for words in _AFTER_ALL
        for place in range(tokens.count)
    )
    if tokens.lower[verb] in _STAYING:
        return _stayed(line, verb) if is_after_all else None
    group = read_group(tokens, verb)
    if group is None or not group.is_negative or group.is_modal or group.is_end:
        return None
    subject = read_before(line, group.first)[0]
    if len(subject) != 1:
        return None
    is_sure = is_after_all or group.is_decided
    return _not_done(line, group, subject[0], is_sure=is_sure)


def _not_done(line: Line, group: VerbGroup, source: Phrase, *, is_sure: bool) -> Called | None:
    """Return what somebody did not do; where nothing says that it had been planned, only what is named counts."""
    relations: tuple[str, ...] = HOMES
    if group.form.lemma in _MOVES:
        target = _reached(line, group.verb + 1)
    elif group.form.lemma == "join":
        target = next((one for one in read_behind(line, group.verb + 1)[0] if one.mention is not None), None)
        relations = JOBS
        if target is None:
            return None
    else:
        return None
    if not is_sure and (target is None or line.dated or not group.is_past):
        return None
    return Called(source, target, None, relations, group.verb, is_sure)


def _stayed(line: Line, verb: int) -> Called | None:
    tokens = line.tokens
    first = verb
    while tokens.at(first - 1) in _HELPERS | {"decided", "to", "chose"}:
        first -= 1
    if not NEGATIONS.isdisjoint(tokens.lower[first:verb]) or tokens.at(first - 1) in NEGATIONS | MODALS:
        return None
    source = next(iter(read_before(line, first)[0]), None)
    if source is None:
        return None
    kept = read_behind(line, verb + 2)[0][:1] if tokens.at(verb + 1) in ("in", "at") else []
    return Called(source, None, kept[0], HOMES, verb) if kept else None
