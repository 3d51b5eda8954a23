"""Read changes of place and of tools: `moved from A to B`, `switched to B`, `replaced A with B`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from commonplace.extract.entities import Entities
from commonplace.extract.grammar import MOVES, MOVING
from commonplace.extract.phrases import Line, Phrase, read_behind
from commonplace.extract.statements import Statement, fitting_type
from commonplace.extract.trips import way_back
from commonplace.extract.verb_groups import VerbGroup
from commonplace.extract.verbs import FORMS

_FURTHEST: Final = 16
_STOPS: Final = frozenset(". ; , : ( because so and but which who".split())
_PLACE: Final = frozenset({"place"})
_PERSON: Final = frozenset({"person"})


def moved(line: Line, entities: Entities, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement]:
    """Yield where something has come to be, and where it no longer is."""
    left, reached, thing = _ends(line, group)
    back = way_back(line, reached[0].last) if reached else None
    if back is not None:
        # Who went there and came back lives where they came back to; `moved back` says that itself.
        left, reached = [], _home(line, back)
        group = replace(group, verb=back)
    for source in [thing] if thing is not None else subject:
        relations = []
        for target in reached:
            relation = _relation(entities, source, target) or _alike(entities, source, target, left)
            if relation is not None:
                relations.append(relation)
                yield _statement(group, source, target, relation, is_end=group.is_end)
        for target in left:
            relation = _relation(entities, source, target)
            if (
                relation is not None
                and (relations[:1] or [relation])[0][0] == relation[0]
                and bool(reached) == bool(relations)
            ):
                yield _statement(group, source, target, relation, is_end=True)


Demand = tuple[str, frozenset[str], frozenset[str]]
"""A relation and what it demands of both sides."""


def _relation(entities: Entities, source: Phrase, target: Phrase) -> Demand | None:
    """Return what a move of one thing to another means, by the types of both."""
    types = (entities.type_of(source), entities.type_of(target))
    relation = MOVES.get(types)
    if relation is not None:
        return relation, frozenset({types[0]}), frozenset({types[1]})
    if types[0] not in ("person", "") and types[1] == "organization":
        return "USES", frozenset(), frozenset()
    # A person who moves to something unknown that is written like a name has moved to a place.
    if types[0] == "person" and fitting_type(entities, target, _PLACE):
        return "LIVES_IN", _PERSON, _PLACE
    if types[1] == "place" and fitting_type(entities, source, _PERSON):
        return "LIVES_IN", _PERSON, _PLACE
    return None


def _alike(entities: Entities, source: Phrase, target: Phrase, left: list[Phrase]) -> Demand | None:
    """Return what a move to something unknown means, by what has been left for it."""
    relations = [_relation(entities, source, old) for old in left]
    if target.mention is None or not relations or relations[0] is None:
        return None
    return (relations[0][0], frozenset(), frozenset()) if relations[0][0] == "USES" else None


def _statement(group: VerbGroup, source: Phrase, target: Phrase, relation: Demand, *, is_end: bool) -> Statement:
    is_future = group.is_future or (group.form.shape == "ing" and not group.is_past)
    return Statement(
        source,
        target,
        relation[0],
        group.verb,
        0,
        relation[1],
        relation[2],
        is_event=True,
        is_end=is_end,
        is_past=group.is_past,
        is_future=is_future,
    )


def _ends(line: Line, group: VerbGroup) -> tuple[list[Phrase], list[Phrase], Phrase | None]:
    """Read what is left, what is reached, and what is moved where that is not the subject."""
    tokens, place = line.tokens, group.verb + 1
    left: list[Phrase] = []
    reached: list[Phrase] = []
    thing: Phrase | None = None
    if group.voice == "active" and tokens.at(place) not in ("from", "to", "away", "over", "off", "back", "out"):
        objects, stop = read_behind(line, place)
        if objects and tokens.at(stop) in ("from", "to", "over", "away", "off"):
            thing, place = objects[0], stop
    last = min(place + _FURTHEST, tokens.count)
    while place < last:
        lower = tokens.lower[place]
        if lower in _STOPS:
            break
        if lower in ("from", "to", "off") and place not in line.dated:
            objects, stop = read_behind(line, place + (2 if tokens.at(place + 1) == "of" else 1))
            if objects:
                (reached if lower == "to" else left).extend(objects[:1])
            place = max(stop, place + 1)
        else:
            place += 1
    return left, reached, thing


def _home(line: Line, back: int) -> list[Phrase]:
    """Return where somebody has come back to, unless the verb before `back` is read by itself."""
    forms = FORMS.get(line.tokens.at(back - 1), ())
    if line.tokens.at(back + 1) != "to" or any(form.lemma in MOVING for form in forms):
        return []
    return read_behind(line, back + 2)[0][:1]


def replaced(line: Line, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement]:
    """Yield what is used instead of what, by whom or in what: `billing replaced MySQL with Postgres`."""
    tokens = line.tokens
    if group.voice == "passive":
        if tokens.at(group.verb + 1) not in ("by", "with"):
            return
        old = subject
        new, stop = read_behind(line, group.verb + 2)
        users: list[Phrase] = []
    else:
        old, stop = read_behind(line, group.verb + 1)
        if tokens.at(stop) not in ("with", "by"):
            return
        new, stop = read_behind(line, stop + 1)
        users = subject
    if tokens.at(stop) in ("in", "for"):
        places, behind = read_behind(line, stop + 1)
        if places and places[0].type != "place":
            users, stop = places, behind
    for user in users:
        for target in new:
            yield Statement(user, target, "USES", group.verb, stop, is_event=True, is_future=group.is_future)
        for target in old:
            yield Statement(
                user, target, "USES", group.verb, stop, is_event=True, is_end=True, is_future=group.is_future
            )
