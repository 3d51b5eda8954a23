"""Extract the statements of a sentence from its verbs, by the table of relations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, product
from typing import Any, Final

from commonplace.dataclasses import replace
from commonplace.extract import words as lists
from commonplace.extract.decisions import chosen, decided, preferred, purpose
from commonplace.extract.entities import Entities
from commonplace.extract.modality import doubtful_places, has_condition_behind, is_hedged, is_lasting, is_recurring
from commonplace.extract.model import AT_TIMES, UNSURE
from commonplace.extract.names import Phrase
from commonplace.extract.phrases import Line, read_before, read_behind
from commonplace.extract.relations import MAX_LENGTH, MOVES, RULES, Rule, Statement, fitting_type, stated
from commonplace.extract.verbs import FORMS, VerbGroup, read_group
from commonplace.extract.words import PATTERNS

_FURTHEST: Final = 16
_CUT: Final = re.compile(r"[,;—–]|\b(?:and|but|because|however|where|which|while|who)\b")
_BEFORE_CUT: Final = re.compile(r"[;—–]|\b(?:and|but|because|however|so)\b")
_STOPS: Final = frozenset(". ; , : ( because so and but which who".split())
_PLACE: Final = frozenset({"place"})
_PERSON: Final = frozenset({"person"})
MOVING_AWAY: Final = lists.MOVING | {"relocate", "settle"}
_TELLING: Final = frozenset(lemma for lemma, *_ in RULES) | lists.MOVING | {"decide"}
TRIGGERS: Final = {"is", "are", "was", "were"}.union(word for word, ways in FORMS.items() if ways[0].lemma in _TELLING)
_AT: Final = frozenset("of at for with in".split())
_FURTHEST_OBJECT: Final = 24
_REDUCED: Final = frozenset("WORKS_FOR LOCATED_IN LIVES_IN USES CAUSED_BY".split())
"""Relations that a participle without a helper may state; `preferences based on` is no dependency."""
STATES: Final = frozenset("WORKS_FOR LOCATED_IN LIVES_IN".split())
"""Relations that no longer hold if stated in the past tense; `the outage was caused by a full disk` stays true."""
_OF_PEOPLE: Final = frozenset({"LIVES_IN", "WORKS_FOR"})
_TAIL_ENDS: Final = frozenset(", ; . ! and but so because to which where — –".split())
_ROLE_ENDS: Final = frozenset(", ; who which that and or not".split())
_MAX_TITLE_LENGTH: Final = 8
_MAX_VERBS: Final = 64
"""Maximum number of verbs read; text with more is no sentence."""


def moved(line: Line, entities: Entities, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement]:
    """Yield the statements of a move: the places reached, and those left."""
    tokens = line.tokens
    if PATTERNS["undone"].search(tokens.text, tokens.start[group.verb], tokens.end[-1]):
        return
    # Origins, destinations, and the thing moved if it is not the subject
    left: list[Phrase] = []
    reached: list[Phrase] = []
    thing, index = None, group.verb + 1
    if group.voice == "active" and tokens.at(index) not in ("from", "to", "away", "over", "off", "back", "out"):
        objects, stop = read_behind(line, index)
        if objects and tokens.at(stop) in ("from", "to", "over", "away", "off"):
            thing, index = objects[0], stop
    last = min(index + _FURTHEST, tokens.count)
    while index < last and tokens.lower[index] not in _STOPS:
        lower = tokens.lower[index]
        if lower in ("from", "to", "off") and index not in line.dated:
            objects, stop = read_behind(line, index + (2 if tokens.at(index + 1) == "of" else 1))
            (reached if lower == "to" else left).extend(objects[:1])
            index = max(stop, index + 1)
        else:
            index += 1
    new = reached[0] if reached else None
    behind = tokens.count if new is None else new.last
    tail = [tokens.lower[place] for place in range(behind, tokens.count) if place not in line.dated]
    is_return = "back" in tokens.lower[group.verb : behind] and is_lasting(tail)
    # Only `move` may mean a new home; switching or migrating to something unknown does not.
    is_move = group.form.lemma == "move"
    is_future = group.is_future or (group.form.shape == "ing" and not group.is_past)
    if new is not None and entities.type_of(new) == "place":
        subject = [replace(phrase, anaphor="i") if phrase.anaphor == "we" else phrase for phrase in subject]
    for source in [thing] if thing is not None else subject:
        relation = _reached(entities, source, new, is_move=is_move) if new is not None else ""
        if not relation and new is not None and new.is_name and left:
            # If the origin is a tool in use, an unknown destination is used too.
            relation = "USES" if _reached(entities, source, left[0], is_move=is_move) == "USES" else ""
        if new is not None and relation:
            # The destination of a move of home is a place, even if its name alone did not show it.
            types: Any = {"source_types": _PERSON, "target_types": _PLACE} if relation == "LIVES_IN" else {}
            yield stated(group, source, new, relation, is_event=True, is_future=is_future, is_return=is_return, **types)
        for old in left:
            old_relation = _reached(entities, source, old, is_move=is_move)
            if old_relation and bool(new) == bool(relation) and old_relation == (relation or old_relation):
                yield stated(group, source, old, old_relation, is_event=True, is_end=True, is_future=is_future)


def _reached(entities: Entities, source: Phrase, target: Phrase, *, is_move: bool) -> str:
    """Return the relation that a move to a target states, by the types of both; "" for none."""
    types = (entities.type_of(source), entities.type_of(target))
    relation = MOVES.get(types, "")
    if relation:
        return relation
    if types[0] not in ("person", "") and types[1] == "organization":
        return "USES"
    # A person who moves to something unknown that is written like a name moves to a place.
    is_home = is_move and types[0] == "person" and fitting_type(entities, target, _PLACE) is not None
    return "LIVES_IN" if is_home else ""


def replaced(line: Line, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement]:
    """Yield the old and the new USES of a replacement: `billing replaced MySQL with Postgres`."""
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


class Clauses:
    """Reads one sentence, verb by verb."""

    def __init__(self, line: Line, entities: Entities) -> None:
        self.line = line
        self.tokens = line.tokens
        self.entities = entities
        self._doubtful = doubtful_places(line.tokens)
        self._is_hedged = is_hedged(line.tokens.text[line.tokens.start[0] : line.tokens.end[-1]])
        self._subject: list[Phrase] = []
        self._inside = {index for mention in line.mentions for index in range(mention.first, mention.last)}

    def statements(self) -> Iterator[Statement]:
        verbs = [index for index, lower in enumerate(self.tokens.lower) if lower in TRIGGERS][:_MAX_VERBS]
        outside = (verb for verb in verbs if verb not in self._inside and verb not in self.line.dated)
        groups = [group for verb in outside if (group := read_group(self.tokens, verb)) is not None]
        for number, group in enumerate(groups):
            if not self._doubtful[group.verb]:
                end = self.tokens.count
                if number + 1 < len(groups):
                    # In `I moved to Rome and in May I left Acme`, the date is of the next clause.
                    places = range((end := groups[number + 1].first) - 1, group.verb, -1)
                    breaks = (index for index in places if self.tokens.lower[index] in (",", ";", "and", "but"))
                    end = next((index for index in breaks if index not in self.line.dated), end)
                yield from self._of_group(group, end)

    def _of_group(self, group: VerbGroup, end: int) -> Iterator[Statement]:
        subject, tokens, behind = self._subjects(group), self.tokens, group.verb + 1
        if subject:
            self._subject = subject
        fact = self._as_fact(group, end)
        readings = [reading for reading in (fact, self._rather(group, end)) if reading is not None]
        if not readings or has_condition_behind(tokens, behind, min(end + _FURTHEST_OBJECT, tokens.count)):
            return
        words = _CUT.split(tokens.text[tokens.start[group.first] : tokens.end[end - 1]], maxsplit=1)[0]
        head = _BEFORE_CUT.split(tokens.text[tokens.start[0] : tokens.start[group.first]])[-1]
        is_move = group.form.lemma in MOVING_AWAY
        has_span = PATTERNS["span"].search(words) is not None
        # `lived there for two years` is about the past anyway; `has lived there for two years` is about the present.
        is_brief = has_span and (is_move or not (group.is_perfect or group.is_past))
        is_leaving = group.form.lemma == "leave"
        is_out = is_leaving and PATTERNS["going out"].search(words) is not None
        is_gone = is_leaving and PATTERNS["for good"].search(words) is not None
        # The fact precedes a change, or is from an unknown time in the past.
        is_bygone = tokens.any_of(lists.SINCE_CHANGED, group.first - _MAX_TITLE_LENGTH, group.verb) or any(
            lower == "ago" and index not in self.line.dated for index, lower in enumerate(tokens.lower)
        )
        for statement in chain.from_iterable(self._stated(reading, subject) for reading in readings):
            is_state = statement.relation in STATES
            if is_state and (is_brief or is_out or (is_leaving and statement.relation == "LIVES_IN" and not is_gone)):
                continue
            is_once = statement.is_event or group.is_future or group.is_perfect
            is_present = is_state and not (statement.is_end or group.is_past)
            is_repeated = is_present and is_recurring(f"{head} {words}", is_event=is_once)
            is_former = is_bygone and not statement.is_end and (is_state or statement.relation == "DECIDED")
            yield replace(
                statement,
                end=max(end, statement.end) if statement.end else end,
                is_former=statement.is_former or is_former,
                is_ever=statement.is_ever and not has_span,
                doubt=AT_TIMES if is_repeated else self._doubt(statement, end),
            )

    def _doubt(self, statement: Statement, end: int) -> str:
        """Return why a statement is doubtful, else "": `Ben works for Globex, I think`, `we moved in our dreams`."""
        if self._is_hedged:
            return statement.doubt or UNSURE
        if statement.source.anaphor != "i" or statement.relation not in _OF_PEOPLE or statement.is_end:
            return statement.doubt
        tokens, target = self.tokens, statement.target
        is_open = PATTERNS["open"].search(tokens.text, tokens.start[0], tokens.end[-1]) is not None
        # `moved to marketing` names no place; `joined Spotify Premium` names no employer.
        is_other = target.name.rsplit(" ", 1)[-1].lower() in lists.CLUBS
        is_other = is_other or (statement.relation == "LIVES_IN" and target.type != "place")
        other = self.line.starting.get(target.last + 2)
        is_denied = other is not None and tokens.lower[target.last : other.first] == ["instead", "of"]
        first = other.last if other is not None and is_denied else target.last
        tail = [tokens.lower[index] for index in range(first, end) if index not in self.line.dated]
        stop = next((number for number, lower in enumerate(tail) if lower in _TAIL_ENDS), len(tail))
        return "" if is_lasting(tail[:stop]) and not (is_open or is_other) else UNSURE

    def _stated(self, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement]:
        behind = group.verb + 1
        special = self._special(group, subject)
        if special is not None:
            yield from special
            return
        if group.voice == "be":
            yield from self._held_role(group, subject, behind)
        for rules, index, is_passive, voice in self._rules(group, behind):
            objects, stop = read_behind(self.line, index)
            # `lives in a flat in Leeds` means Leeds.
            is_house = objects and not objects[0].is_name and self.tokens.at(stop) in ("in", "near", "outside")
            if is_house and any(rule.relation == "LIVES_IN" for rule in rules):
                objects, stop = read_behind(self.line, stop + 1)
            fitting, is_decision = rules, bool(rules) and rules[0].relation == "DECIDED"
            if not rules or (is_decision and group.is_progressive):
                continue
            if is_decision and not is_passive:
                fit = [phrase for phrase in objects if fitting_type(self.entities, phrase, rules[0].behind) is not None]
                yield from chosen(self.line, group, subject, fit, stop)
                return
            if not objects and is_passive and group.form.lemma in lists.AGENTLESS:
                objects, stop = purpose(self.line, index), index
                fitting = [rule._replace(before=frozenset()) for rule in rules]
            for source, target in product(subject, objects):
                statement = self._by_rule(fitting, replace(group, voice=voice), source, target, is_passive=is_passive)
                if statement is not None:
                    yield replace(statement, end=stop)
            if objects:
                return

    def _special(self, group: VerbGroup, subject: list[Phrase]) -> Iterator[Statement] | None:
        """Return the statements of verbs with a reader of their own; None for other verbs."""
        lemma = group.form.lemma
        if lemma == "decide" or (lemma == "agree" and self.tokens.at(group.verb + 1) in ("to", "not")):
            return decided(self.line, group, subject)
        if group.is_decided:
            return iter(())
        if lemma in lists.MOVING:
            return moved(self.line, self.entities, group, subject)
        if lemma in lists.LIKING:
            return preferred(self.line, group, subject)
        if lemma == "replace" and (statements := list(replaced(self.line, group, subject))):
            return iter(statements)
        return None

    def _by_rule(
        self, rules: list[Rule], group: VerbGroup, source: Phrase, target: Phrase, *, is_passive: bool
    ) -> Statement | None:
        """Return the statement of a verb with two phrases, by the first rule whose types they have or can take."""
        for rule in rules:
            if source.anaphor == "we" and rule.relation in _OF_PEOPLE and group.form.lemma in ("live", "work"):
                source = replace(source, anaphor="i")  # with `live` and `work`, `we` includes the speaker
            is_reversed = rule.is_reversed != is_passive
            left, right = (target, source) if is_reversed else (source, target)
            ends = ((left, rule.before), (right, rule.behind))
            if any(fitting_type(self.entities, phrase, types) is None for phrase, types in ends):
                continue
            relation, lemma = rule.relation, group.form.lemma
            is_future = group.is_future or (rule.is_event and group.form.shape == "ing" and not group.is_past)
            if is_future and relation == "USES" and source.anaphor in ("we", "i"):
                relation, is_future = "DECIDED", False
            # A state, not its beginning or end
            is_change = rule.is_event or rule.is_end or group.is_start or group.is_end
            is_state = rule.relation in STATES and not is_change
            is_participle = group.is_reduced and group.voice == "passive"
            is_occasion = rule.before == {"thing"} and lemma in ("hold", "take")
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
        """Yield the rules that match a verb and the words after it, longest match first.

        Each comes with the index of the object, whether subject and object are swapped, and the voice of the verb.
        """
        tokens, dated, lemma = self.tokens, self.line.dated, group.form.lemma
        # The words of a rule follow the verb directly, or after adverbs, `no longer` and a date.
        index = behind
        while True:
            word = tokens.at(index)
            if word == "no" and tokens.at(index + 1) == "longer":
                index += 2
            elif word in lists.ADVERBS or (word.endswith("ly") and len(word) > 4):
                index += 1
            else:
                break
        while index in dated or (tokens.at(index) == "," and {index - 1, index + 1} & dated):
            index += 1
        while group.voice == "be" and tokens.at(index) in lists.DETERMINERS:
            index += 1
        starts = [behind, index] if group.voice != "be" and index != behind else [index]
        voices = ("passive", "active") if group.voice == "passive" or group.is_reduced else (group.voice,)
        for start, voice, length in product(starts, voices, range(MAX_LENGTH, -1, -1)):
            end = start + length
            rules = RULES.get((lemma, voice, tuple(tokens.lower[start:end])))
            if rules is None or end > tokens.count:
                continue
            # `written` is no past tense; `called` or `required` mostly are participles.
            is_active = not group.is_reduced or (group.form.is_past and lemma not in ("call", "require", "base"))
            if group.voice == voice and (voice != "active" or is_active):
                yield rules, end, False, voice
            elif tokens.at(end) == "by":
                yield rules, end + 1, True, voice
            elif voice == "passive" and group.is_reduced:
                yield [rule for rule in rules if rule.relation in _REDUCED], end, False, voice
            elif lemma in lists.AGENTLESS and not length and group.voice == "passive":
                yield rules, start, True, voice

    def _held_role(self, group: VerbGroup, subject: list[Phrase], behind: int) -> Iterator[Statement]:
        """Read `Mira is the new head of design at Acme`."""
        tokens = self.tokens
        has_role = is_former = False
        for index in range(behind, min(behind + 8, tokens.count)):
            lower = tokens.lower[index]
            if lower in _ROLE_ENDS:
                return
            objects, stop = read_behind(self.line, index + 1) if has_role and lower in _AT else ([], index)
            if objects and (objects[0].type == "organization" or (objects[0].is_name and objects[0].type == "concept")):
                is_end, employer = group.is_end or is_former, frozenset({"organization"})
                details: dict[str, Any] = {"source_types": _PERSON, "target_types": employer, "is_end": is_end}
                details["is_former"] = group.is_past and not (is_end or group.is_perfect)
                for source in subject:
                    yield stated(group, source, objects[0], "WORKS_FOR", stop, **details)
                return
            is_former = is_former or lower in ("former", "ex")
            has_role = has_role or lower in lists.ROLES

    def _subjects(self, group: VerbGroup) -> list[Phrase]:
        tokens = self.tokens
        index = group.first
        before = tokens.at(index - 1)
        if before in ("which", "who", "that"):
            index -= 2 if tokens.at(index - 2) == "," else 1
            return read_before(self.line, index)[0][-1:]
        if before == "," and group.is_reduced:
            return read_before(self.line, index - 1)[0][-1:]
        # `I work at Acme and live in Oslo`; after a comma or another subject, a base form may be an imperative.
        is_finite = not group.is_bare or (before == "and" and self._is_plural(self._subject, group.form.lemma))
        if before in ("and", "but", ",", "then") and self._subject and is_finite:
            inner = self._before_insertion(index) if before == "," else index
            if inner == index:
                return self._subject
            index = inner
        elif before == ",":
            index = self._before_insertion(index)
        phrases, _ = read_before(self.line, index)
        if group.is_bare and not self._is_plural(phrases, group.form.lemma):
            return []
        return phrases

    def _is_plural(self, subject: list[Phrase], lemma: str) -> bool:
        """Return whether a base form agrees with a subject; a lemma that is also a noun needs a definite plural."""
        if len(subject) != 1:
            return len(subject) > 1
        if subject[0].anaphor:
            return subject[0].anaphor in lists.PLURAL
        return subject[0].name[-1:] == "s" and (lemma not in lists.NOUNS or subject[0].is_definite)

    def _before_insertion(self, index: int) -> int:
        """Return the index at which an insertion `, which …,` before `index` begins, else `index`."""
        tokens = self.tokens
        for back in range(index - 2, max(index - _FURTHEST_OBJECT, 0), -1):
            if tokens.lower[back] == ",":
                mention = self.line.starting.get(back + 1)
                # A title before the comma describes the name after it: `the president of Chile, Ana Soto,`.
                is_title = tokens.any_of(lists.ROLES, back - _MAX_TITLE_LENGTH, back)
                if mention is not None and mention.last == index - 1 and is_title:
                    return index - 1
                return back if back - 1 >= 0 and not self.line.is_stop(back - 1) else index
        return index

    def _rather(self, group: VerbGroup, end: int) -> VerbGroup | None:
        """Return the group that states `in Denver` in `don't live in Boston but in Denver`, None if there is none."""
        tokens = self.tokens
        if not (group.is_negative or group.is_end) or group.is_modal or tokens.any_of(lists.NOT_ONLY, group.first, end):
            return None
        but = next((index for index in range(group.verb + 2, end - 1) if tokens.lower[index] == "but"), 0)
        # In `I don't use Vim but Emacs is fine` and `I don't use Vim but ask`, another clause follows.
        is_object = tokens.at(but + 1) in lists.PREPOSITIONS or (end == tokens.count and but + 1 in self.line.starting)
        return replace(group, verb=but, is_negative=False, is_end=False) if but and is_object else None

    def _as_fact(self, group: VerbGroup, end: int) -> VerbGroup | None:
        """Return a group that states a fact or its end; None if it is negated or modal."""
        tokens = self.tokens
        if group.voice == "be":
            # With `be`, negations follow the verb: `is not …`, `is no longer …`.
            for index in range(group.verb + 1, min(group.verb + 4, tokens.count)):
                lower = tokens.lower[index]
                if lower == "no" and tokens.at(index + 1) == "longer":
                    group = replace(group, is_end=True)
                elif lower in lists.NEGATIONS or lower == "no":
                    group = replace(group, is_negative=True)
                elif lower in lists.ADVERBS:
                    continue
                break
        if group.is_modal:
            return None
        if not group.is_negative:
            return group
        for index in range(group.verb + 1, min(end + 2, tokens.count)):
            lower = tokens.lower[index]
            if lower == "anymore" or (lower == "any" and tokens.at(index + 1) in ("more", "longer")):
                return replace(group, is_end=True, is_negative=False)
        return None
