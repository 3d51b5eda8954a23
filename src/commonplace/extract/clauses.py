"""Extract the statements of a sentence from its verbs, by the table of relations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from commonplace.dataclasses import replace
from commonplace.extract.decisions import chosen, decided, preferred, purpose
from commonplace.extract.entities import Entities
from commonplace.extract.modality import doubtful_places, has_condition_behind, is_hedged, is_lasting
from commonplace.extract.model import UNSURE
from commonplace.extract.phrases import Line, Phrase, read_before, read_behind
from commonplace.extract.relations import (
    LIKING,
    MAX_LENGTH,
    MOVES,
    MOVING,
    RULES,
    VERBS_OF_RULES,
    Rule,
    Statement,
    fitting_type,
    stated,
)
from commonplace.extract.verbs import FORMS, VerbGroup, read_group
from commonplace.extract.words import ADVERBS, DETERMINERS, NEGATIONS, NOUNS, PATTERNS, ROLES

_FURTHEST: Final = 16
_CUT: Final = re.compile(r"[,;—–]|\b(?:and|but|because|however)\b")
_STOPS: Final = frozenset(". ; , : ( because so and but which who".split())
_PLACE: Final = frozenset({"place"})
_PERSON: Final = frozenset({"person"})
_ORGANIZATION: Final = frozenset({"organization"})


def moved(line: Line, entities: Entities, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement]:
    """Yield the places that something reached, and those that it left."""
    tokens = line.tokens
    if PATTERNS["undone"].search(tokens.text, tokens.start[group.verb], tokens.end[-1]):
        return
    # What is left, what is reached, and what is moved if that is not the subject
    left: list[Phrase] = []
    reached: list[Phrase] = []
    thing, place = None, group.verb + 1
    if group.voice == "active" and tokens.at(place) not in ("from", "to", "away", "over", "off", "back", "out"):
        objects, stop = read_behind(line, place)
        if objects and tokens.at(stop) in ("from", "to", "over", "away", "off"):
            thing, place = objects[0], stop
    last = min(place + _FURTHEST, tokens.count)
    while place < last and tokens.lower[place] not in _STOPS:
        lower = tokens.lower[place]
        if lower in ("from", "to", "off") and place not in line.dated:
            objects, stop = read_behind(line, place + (2 if tokens.at(place + 1) == "of" else 1))
            (reached if lower == "to" else left).extend(objects[:1])
            place = max(stop, place + 1)
        else:
            place += 1
    # Who switches or migrates to something unknown has not moved house.
    is_move = group.form.lemma == "move"
    is_future = group.is_future or (group.form.shape == "ing" and not group.is_past)
    new = reached[0] if reached else None
    if new is not None and entities.type_of(new) == "place":
        subject = [replace(each, anaphor="i") if each.anaphor == "we" else each for each in subject]
    for source in [thing] if thing is not None else subject:
        relation = _reached(entities, source, new, is_move=is_move) if new is not None else ""
        if not relation and new is not None and new.mention is not None and left:
            # What something unknown is moved to from a tool is used as that was.
            relation = "USES" if _reached(entities, source, left[0], is_move=is_move) == "USES" else ""
        if new is not None and relation:
            # What was moved to is a place from then on, though its name alone did not say so.
            types: Any = {"source_types": _PERSON, "target_types": _PLACE} if relation == "LIVES_IN" else {}
            yield stated(group, source, new, relation, is_event=True, is_future=is_future, **types)
        for old in left:
            before = _reached(entities, source, old, is_move=is_move)
            if before and bool(new) == bool(relation) and before == (relation or before):
                yield stated(group, source, old, before, is_event=True, is_end=True, is_future=is_future)


def _reached(entities: Entities, source: Phrase, target: Phrase, *, is_move: bool) -> str:
    """Return the relation that a move of one thing to another states, by the types of both; "" for none."""
    types = (entities.type_of(source), entities.type_of(target))
    relation = MOVES.get(types, "")
    if relation:
        return relation
    if types[0] not in ("person", "") and types[1] == "organization":
        return "USES"
    # A person who moves to something unknown that is written like a name has moved to a place.
    is_home = is_move and types[0] == "person" and fitting_type(entities, target, _PLACE) is not None
    return "LIVES_IN" if is_home else ""


def replaced(line: Line, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement]:
    """Yield what is used instead of what, by whom or in what: `billing replaced MySQL with Postgres`."""
    tokens = line.tokens
    is_passive = group.voice == "passive"
    old, stop = (subject, group.verb + 1) if is_passive else read_behind(line, group.verb + 1)
    if tokens.at(stop) not in ("with", "by"):
        return
    new, stop = read_behind(line, stop + 1)
    users = [] if is_passive else subject
    if tokens.at(stop) in ("in", "for"):
        places, behind = read_behind(line, stop + 1)
        if places and places[0].type != "place":
            users, stop = places, behind
    for user, (targets, is_end) in product(users, ((new, False), (old, True))):
        for target in targets:
            yield stated(group, user, target, "USES", stop, is_event=True, is_end=is_end, is_past=False)


_MOVING_AWAY: Final = MOVING | {"relocate", "settle"}
_TELLING: Final = VERBS_OF_RULES | {"decide"}
TRIGGERS: Final = frozenset(
    ["is", "are", "was", "were", *(word for word, forms in FORMS.items() if forms[0].lemma in _TELLING)]
)
_PLURAL: Final = frozenset("i we you they these those".split())
_AT: Final = frozenset("of at for with in".split())
_FURTHEST_OBJECT: Final = 24
_ADJECTIVES: Final = frozenset({"call", "require", "base"})
_REDUCED: Final = frozenset("WORKS_FOR LOCATED_IN LIVES_IN USES CAUSED_BY".split())
"""What a participle without helper may state; `preferences based on` is no dependency."""
_STATES: Final = frozenset("WORKS_FOR LOCATED_IN LIVES_IN".split())
"""What was so once and is no more; `the outage was caused by a full disk` stays true."""
_THINGS: Final = frozenset({"thing"})
_OF_PEOPLE: Final = frozenset({"LIVES_IN", "WORKS_FOR"})
_CLUBS: Final = frozenset("premium plus pro prime club gym beta waitlist program programme newsletter rotary".split())
_TAIL_ENDS: Final = frozenset(", ; . ! and but so because to which where — –".split())
_SINCE_CHANGED: Final = frozenset("originally initially formerly previously had first once".split())
_FORMER: Final = frozenset("former ex".split())
_ROLE_ENDS: Final = frozenset(", ; who which that and or not".split())
_MAX_TITLE_LENGTH: Final = 8
_MAX_VERBS: Final = 64
"""What has more verbs is no sentence."""
_AGENTLESS: Final = frozenset("choose pick select use adopt".split())


class Clauses:
    """Reads one sentence, verb by verb."""

    def __init__(self, line: Line, entities: Entities) -> None:
        self.line = line
        self.tokens = line.tokens
        self.entities = entities
        self._doubtful = doubtful_places(line.tokens)
        self._is_hedged = is_hedged(line.tokens.text[line.tokens.start[0] : line.tokens.end[-1]])
        self._subject: list[Phrase] = []
        self._inside = {place for mention in line.mentions for place in range(mention.first, mention.last)}

    def statements(self) -> Iterator[Statement]:
        verbs = [place for place, lower in enumerate(self.tokens.lower) if lower in TRIGGERS][:_MAX_VERBS]
        groups = [
            group
            for verb in verbs
            if verb not in self._inside and verb not in self.line.dated
            if (group := read_group(self.tokens, verb)) is not None
        ]
        for number, group in enumerate(groups):
            if not self._doubtful[group.verb]:
                end = groups[number + 1].first if number + 1 < len(groups) else self.tokens.count
                yield from self._of_group(group, end)

    def _of_group(self, group: VerbGroup, end: int) -> Iterator[Statement]:
        subject, tokens, behind = self._subjects(group), self.tokens, group.verb + 1
        if subject:
            self._subject = subject
        fact = self._as_fact(group, end)
        if fact is None or has_condition_behind(tokens, behind, min(end + _FURTHEST_OBJECT, tokens.count)):
            return
        said = _CUT.split(tokens.text[tokens.start[group.first] : tokens.end[end - 1]], maxsplit=1)[0]
        is_move = group.form.lemma in _MOVING_AWAY
        has_span = PATTERNS["span"].search(said) is not None
        # `lived there for two years` is about the past anyway, and `has lived there for two years` about now.
        is_brief = has_span and (is_move or not (group.is_perfect or group.is_past))
        is_leaving = group.form.lemma == "leave"
        is_out = is_leaving and PATTERNS["going out"].search(said) is not None
        is_gone = is_leaving and PATTERNS["for good"].search(said) is not None
        # It happened before something else, or at an unknown time.
        is_bygone = tokens.any_of(_SINCE_CHANGED, group.first - _MAX_TITLE_LENGTH, group.verb) or any(
            lower == "ago" and place not in self.line.dated for place, lower in enumerate(tokens.lower)
        )
        for statement in self._stated(fact, subject, behind):
            is_state = statement.relation in _STATES
            if is_state and (is_brief or is_out or (is_leaving and statement.relation == "LIVES_IN" and not is_gone)):
                continue
            is_former = is_bygone and not statement.is_end and (is_state or statement.relation == "DECIDED")
            yield replace(
                statement,
                end=max(end, statement.end) if statement.end else end,
                is_former=statement.is_former or is_former,
                is_ever=statement.is_ever and not has_span,
                doubt=self._doubt(statement, end),
            )

    def _doubt(self, statement: Statement, end: int) -> str:
        """Return why a statement may not hold: `Ben works for Globex, I think`, `we moved to Seattle in our dreams`."""
        if self._is_hedged:
            return statement.doubt or UNSURE
        if statement.source.anaphor != "i" or statement.relation not in _OF_PEOPLE or statement.is_end:
            return statement.doubt
        tokens, target = self.tokens, statement.target
        is_open = PATTERNS["open"].search(tokens.text, tokens.start[0], tokens.end[-1]) is not None
        # Marketing is no place, and who joins Spotify Premium does not work there.
        is_other = target.name.rsplit(" ", 1)[-1].lower() in _CLUBS
        is_other = is_other or (statement.relation == "LIVES_IN" and target.type != "place")
        tail = [tokens.lower[place] for place in range(target.last, end) if place not in self.line.dated]
        stop = next((number for number, lower in enumerate(tail) if lower in _TAIL_ENDS), len(tail))
        return "" if is_lasting(tail[:stop]) and not (is_open or is_other) else UNSURE

    def _stated(self, group: VerbGroup, subject: list[Phrase], behind: int) -> Iterator[Statement]:
        special = self._special(group, subject)
        if special is not None:
            yield from special
            return
        if group.voice == "be":
            yield from self._held_role(group, subject, behind)
        for rules, place, is_passive, voice in self._rules(group, behind):
            objects, stop = read_behind(self.line, place)
            # Who lives `in a flat in Leeds` lives in Leeds.
            is_house = objects and objects[0].mention is None and self.tokens.at(stop) in ("in", "near", "outside")
            if is_house and any(rule.relation == "LIVES_IN" for rule in rules):
                objects, stop = read_behind(self.line, stop + 1)
            fitting, is_decision = rules, bool(rules) and rules[0].relation == "DECIDED"
            if not rules or (is_decision and group.is_progressive):
                continue
            if is_decision and not is_passive:
                fit = [one for one in objects if fitting_type(self.entities, one, rules[0].behind) is not None]
                yield from chosen(self.line, group, subject, fit, stop)
                return
            if not objects and is_passive and group.form.lemma in _AGENTLESS:
                objects, stop = purpose(self.line, place), place
                fitting = [rule._replace(before=frozenset()) for rule in rules]
            for source, target in product(subject, objects):
                statement = self._by_rule(fitting, replace(group, voice=voice), source, target, is_passive=is_passive)
                if statement is not None:
                    yield replace(statement, end=stop)
            if objects:
                return

    def _special(self, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement] | None:
        """Return what verbs state that more belongs to than an object; None for all others."""
        lemma = group.form.lemma
        if lemma == "decide" or (lemma == "agree" and self.tokens.at(group.verb + 1) in ("to", "not")):
            return decided(self.line, group, subject)
        if group.is_decided:
            return iter(())
        if lemma in MOVING:
            return moved(self.line, self.entities, group, subject)
        if lemma in LIKING:
            return preferred(self.line, group, subject)
        if lemma == "replace" and (found := list(replaced(self.line, group, subject))):
            return iter(found)
        return None

    def _by_rule(
        self, rules: list[Rule], group: VerbGroup, source: Phrase, target: Phrase, *, is_passive: bool
    ) -> Statement | None:
        """Return what two phrases and a verb state: by the first rule that they fit, or that they can be made fit."""
        for rule in rules:
            if source.anaphor == "we" and rule.relation in _OF_PEOPLE and group.form.lemma in ("live", "work"):
                source = replace(source, anaphor="i")  # people live and work somewhere, and one of them speaks
            is_reversed = rule.is_reversed != is_passive
            left, right = (target, source) if is_reversed else (source, target)
            ends = ((left, rule.before), (right, rule.behind))
            if any(fitting_type(self.entities, phrase, types) is None for phrase, types in ends):
                continue
            relation, lemma = rule.relation, group.form.lemma
            is_future = group.is_future or (rule.is_event and group.form.shape == "ing" and not group.is_past)
            if is_future and relation == "USES" and source.anaphor in ("we", "i"):
                relation, is_future = "DECIDED", False
            # How somebody or something is or was, not how that began or ended
            is_change = rule.is_event or rule.is_end or group.is_start or group.is_end
            is_state = rule.relation in _STATES and not is_change
            is_participle = group.is_reduced and group.voice == "passive"
            is_occasion = rule.before == _THINGS and lemma in ("hold", "take")
            is_over = is_state and group.is_past and not (group.is_perfect or is_participle or is_occasion)
            return stated(
                group,
                left,
                right,
                relation,
                source_types=rule.before,
                target_types=rule.behind,
                is_event=rule.is_event or group.is_start,
                is_end=rule.is_end or group.is_end,
                is_former=rule.is_once or is_over,
                is_future=is_future,
                is_ever=is_state and group.is_perfect and group.form.shape != "ing",
            )
        return None

    def _rules(self, group: VerbGroup, behind: int) -> Iterator[tuple[list[Rule], int, bool, str]]:
        """Yield the lines of the table that fit a verb and the words behind it, the longest first.

        With each come the place of the object whether subject and object have changed places, and
        the voice in which the verb is read.
        """
        tokens, dated, lemma = self.tokens, self.line.dated, group.form.lemma
        # The words that belong to a verb begin behind it at once, or behind adverbs, `no longer` and a date.
        place = behind
        while True:
            word = tokens.at(place)
            if word == "no" and tokens.at(place + 1) == "longer":
                place += 2
            elif word in ADVERBS or (word.endswith("ly") and len(word) > 4):
                place += 1
            else:
                break
        while place in dated or (tokens.at(place) == "," and {place - 1, place + 1} & dated):
            place += 1
        while group.voice == "be" and tokens.at(place) in DETERMINERS:
            place += 1
        starts = [behind, place] if group.voice != "be" and place != behind else [place]
        voices = ("passive", "active") if group.voice == "passive" or group.is_reduced else (group.voice,)
        for start, voice, length in product(starts, voices, range(MAX_LENGTH, -1, -1)):
            end = start + length
            rules = RULES.get((lemma, voice, tuple(tokens.lower[start:end])))
            if rules is None or end > tokens.count:
                continue
            # `written` is no past, and `called` or `required` mostly are none.
            is_active = not group.is_reduced or (group.form.is_past and lemma not in _ADJECTIVES)
            if group.voice == voice and (voice != "active" or is_active):
                yield rules, end, False, voice
            elif tokens.at(end) == "by":
                yield rules, end + 1, True, voice
            elif voice == "passive" and group.is_reduced:
                yield [rule for rule in rules if rule.relation in _REDUCED], end, False, voice
            elif lemma in _AGENTLESS and not length and group.voice == "passive":
                yield rules, start, True, voice

    def _held_role(self, group: VerbGroup, subject: list[Phrase], behind: int) -> Iterator[Statement]:
        """Read `Mira is the new head of design at Acme`."""
        tokens = self.tokens
        has_role = is_former = False
        for place in range(behind, min(behind + 8, tokens.count)):
            lower = tokens.lower[place]
            if lower in _ROLE_ENDS:
                return
            objects, stop = read_behind(self.line, place + 1) if has_role and lower in _AT else ([], place)
            if objects and (objects[0].type == "organization" or (objects[0].mention and objects[0].type == "concept")):
                is_end = group.is_end or is_former
                details: dict[str, Any] = {"source_types": _PERSON, "target_types": _ORGANIZATION, "is_end": is_end}
                details["is_former"] = group.is_past and not (is_end or group.is_perfect)
                for source in subject:
                    yield stated(group, source, objects[0], "WORKS_FOR", stop, **details)
                return
            is_former = is_former or lower in _FORMER
            has_role = has_role or lower in ROLES

    def _subjects(self, group: VerbGroup) -> list[Phrase]:
        """Return what a verb is said of."""
        tokens = self.tokens
        place = group.first
        before = tokens.at(place - 1)
        if before in ("which", "who", "that"):
            place -= 2 if tokens.at(place - 2) == "," else 1
            return read_before(self.line, place)[0][-1:]
        if before == "," and group.is_reduced:
            return read_before(self.line, place - 1)[0][-1:]
        # `I work at Acme and live in Oslo`: behind a comma, or of somebody else, a plain form may be an order.
        is_finite = not group.is_bare or (before == "and" and self._is_plural(self._subject, group.form.lemma))
        if before in ("and", "but", ",", "then") and self._subject and is_finite:
            inner = self._before_insertion(place) if before == "," else place
            if inner == place:
                return self._subject
            place = inner
        elif before == ",":
            place = self._before_insertion(place)
        found, _ = read_before(self.line, place)
        if group.is_bare and not self._is_plural(found, group.form.lemma):
            return []
        return found

    def _is_plural(self, subject: list[Phrase], lemma: str) -> bool:
        """Return whether a plain form may be said of a subject; of one that is mostly a noun, only if it is clear."""
        if len(subject) != 1:
            return len(subject) > 1
        if subject[0].anaphor:
            return subject[0].anaphor in _PLURAL
        return subject[0].name[-1:] == "s" and (lemma not in NOUNS or subject[0].is_definite)

    def _before_insertion(self, place: int) -> int:
        """Return where `, which …,` before a verb begins, else the place itself."""
        tokens = self.tokens
        for back in range(place - 2, max(place - _FURTHEST_OBJECT, 0), -1):
            if tokens.lower[back] == ",":
                named = self.line.starting.get(back + 1)
                # The words before the comma say who follows it: `the president of Chile, Ana Soto,`.
                is_title = tokens.any_of(ROLES, back - _MAX_TITLE_LENGTH, back)
                if named is not None and named.last == place - 1 and is_title:
                    return place - 1
                return back if back - 1 >= 0 and not self.line.is_stop(back - 1) else place
        return place

    def _as_fact(self, group: VerbGroup, end: int) -> VerbGroup | None:
        """Return a verb that says that something is so, or no longer is; None for one that denies or supposes it."""
        tokens = self.tokens
        if group.voice == "be":
            # `be` precedes the words that precede any other verb: `is not …`, `is no longer …`.
            for place in range(group.verb + 1, min(group.verb + 4, tokens.count)):
                lower = tokens.lower[place]
                if lower == "no" and tokens.at(place + 1) == "longer":
                    group = replace(group, is_end=True)
                elif lower in NEGATIONS or lower == "no":
                    group = replace(group, is_negative=True)
                elif lower in ADVERBS:
                    continue
                break
        if group.is_modal:
            return None
        if not group.is_negative:
            return group
        for place in range(group.verb + 1, min(end + 2, tokens.count)):
            lower = tokens.lower[place]
            if lower == "anymore" or (lower == "any" and tokens.at(place + 1) in ("more", "longer")):
                return replace(group, is_end=True, is_negative=False)
        return None
