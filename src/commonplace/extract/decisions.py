"""Extract decisions and preferences, whose object may be any phrase."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from commonplace.dataclasses import replace
from commonplace.extract.model import BESIDE
from commonplace.extract.names import Phrase, phrase_of
from commonplace.extract.phrases import Line, read_behind
from commonplace.extract.relations import Statement, stated
from commonplace.extract.verbs import FORMS, Form, VerbGroup
from commonplace.extract.words import DETERMINERS

_TAKING: Final = {
    **dict.fromkeys("use adopt choose pick keep".split(), ()),
    **dict.fromkeys("go stay stick".split(), ("with",)),
    **dict.fromkeys("switch move migrate".split(), ("to",)),
}
"""Verbs whose object is the thing decided for, by the words that must follow: `decided to go with X`."""
_ENDS: Final = frozenset(". ; ! ? ( ) : — – - because since so but as which too".split())
_LESS: Final = frozenset(", and over than rather instead when".split())
_BEHIND_TAKEN: Final = _ENDS | {"", "for", "over", ",", "instead", "in", "and"}
_MAX_LENGTH: Final = 12
_PERSON: Final = frozenset({"person", "organization"})
_EVENT: Final = Form("decide", "ed", is_past=True)


def decided(line: Line, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement]:
    """Read `we decided to use Postgres for billing`, `it was decided that …`; `decided against it` states nothing."""
    tokens, index = line.tokens, group.verb + 1
    lower = tokens.at(index)
    if group.is_progressive:
        return
    if lower == "on":
        targets, stop = read_behind(line, index + 1)
    elif lower == "to" or (lower == "not" and tokens.at(index + 1) == "to"):
        targets, stop = _taken(line, index + 1) if lower == "to" else _words(line, index, "decision")
    elif lower == "that":
        targets, stop = _words(line, index + 1, "decision")
    else:
        return
    if group.voice == "passive" and all(phrase.anaphor == "it" for phrase in subject):
        subject = [_team(line)]
    yield from chosen(line, group, subject, targets, stop)


def _team(line: Line) -> Phrase:
    """Return the phrase `we`, for decisions without a named decider."""
    start = line.tokens.start[0]
    return Phrase(0, 0, start, start, "we", "organization", 0.8, anaphor="we")


def written_down(line: Line) -> Iterator[Statement]:
    """Read `Decision: use Postgres for billing`."""
    group = VerbGroup(0, 0, _EVENT, "active", is_past=True)
    targets, stop = _taken(line, 2)
    yield from chosen(line, group, [_team(line)], targets, stop)


def chosen(line: Line, group: VerbGroup, subject: list[Phrase], targets: list[Phrase], end: int) -> Iterator[Statement]:
    """Yield a decision of its purpose, if the text states one, and of its deciders, if they are named."""
    # `For billing we chose Stripe`: the purpose comes first.
    purposes = purpose(line, end) or (read_behind(line, 1)[0] if line.tokens.at(0) == "for" else [])
    sources = [phrase for phrase in subject if not (phrase.anaphor and purposes)]
    for target in targets:
        for source in (*sources, *purposes):
            types = frozenset[str]() if source in purposes else _PERSON | {"project"}
            # One project may have separate decisions for its frontend and its backend.
            doubt = BESIDE if purposes and source not in purposes else ""
            tense = {"is_event": True, "is_past": True, "is_future": False, "doubt": doubt}
            yield stated(group, source, target, "DECIDED", max(end, 1), source_types=types, **tense)


def purpose(line: Line, start: int) -> list[Phrase]:
    """Read `for billing`, also after `over MySQL`."""
    tokens = line.tokens
    for index in range(start, min(start + _MAX_LENGTH, tokens.count)):
        lower = tokens.lower[index]
        if lower in _ENDS or lower == "," or index in line.dated:
            return []
        if lower == "for":
            return read_behind(line, index + 1)[0]
    return []


def _taken(line: Line, index: int) -> tuple[list[Phrase], int]:
    """Read the thing decided for, else the words of the decision; return it with the index of the next word."""
    tokens = line.tokens
    forms = FORMS.get(tokens.at(index), ()) or ((Form("keep", "base"),) if tokens.at(index) == "keep" else ())
    behind = _TAKING.get(forms[0].lemma) if forms else None
    if behind is not None:
        after = index + 1 + len(behind)
        if tuple(tokens.lower[index + 1 : after]) == behind:
            targets, stop = read_behind(line, after)
            if targets and (tokens.at(stop) in _BEHIND_TAKEN or stop in line.dated):
                return targets, stop
    return _words(line, index, "decision")


def _words(line: Line, index: int, type_: str) -> tuple[list[Phrase], int]:
    """Read the words of a decision, or of a preference up to `over` and the like; also return the index after them."""
    tokens, is_wish = line.tokens, type_ == "preference"
    stops = _ENDS | _LESS if is_wish else _ENDS
    last = index
    while last < tokens.count and last - index < _MAX_LENGTH and tokens.lower[last] not in stops:
        if is_wish and (last in line.dated or (last > index and tokens.lower[last] == "to")):
            break
        last += 1
    if last == index or tokens.at(index) == ",":
        return [], index
    return [phrase_of(tokens, index, last, type_, 0.7)], last


def preferred(line: Line, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement]:
    """Read `prefers tabs over spaces`, `likes working at night`, `loves to use vim`."""
    tokens, index = line.tokens, group.verb + 1
    lower = tokens.at(index)
    if group.voice != "active" or group.is_future:
        return
    if lower in ("to", "using") and tokens.at(index + 1) and group.form.shape != "ing":
        inner = index + 1 if lower == "to" else index
        forms = FORMS.get(tokens.at(inner), ())
        targets = read_behind(line, inner + 1)[0] if forms and forms[0].lemma == "use" else []
        stop = inner + 1
        if not targets:
            targets, stop = _words(line, inner, "preference")
    elif lower.endswith("ing") and lower not in DETERMINERS:
        targets, stop = _words(line, index, "preference")
    else:
        targets, stop = read_behind(line, index)
    # A liked common noun is an entity of type preference.
    named = (target for target in targets if not target.anaphor)
    liked = [one if one.is_name or one.type != "concept" else replace(one, type="preference") for one in named]
    for source, target in product(subject, liked):
        yield stated(group, source, target, "PREFERS", stop, source_types=_PERSON, is_past=False)
