"""Collect the entities of a text and resolve coreference: short names, files, pronouns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from commonplace.dataclasses import dataclass, field
from commonplace.extract.model import Found, outermost
from commonplace.extract.names import Mention, kind_of_noun
from commonplace.extract.phrases import PERSONAL, POINTING, SPEAKERS, USER, Phrase
from commonplace.extract.words import CLASS_NOUNS

THE_USER: Final = "the user"
TEAM: Final = "we"
_GROUPS: Final = frozenset("company firm startup team agency organization organisation".split())
_FILES: Final = frozenset("module file script component class".split())
_MANY: Final = frozenset({"they", "them", "these", "those"})
_SINGLE: Final = frozenset("it this that".split())
_ACRONYM: Final = 0.5
"""Confidence that unknown capitals are an organisation; among tools and files they rarely are."""
_MAX_PEOPLE: Final = 20
_MAX_NAME_LENGTH: Final = 60
_RECENT: Final = 3
"""Maximum number of sentences between a pronoun and its name."""


@dataclass(slots=True)
class _Entity:
    name: str
    type: str
    confidence: float
    sentence: int
    is_sure: bool
    is_used: bool = False
    spans: dict[tuple[int, int], None] = field(default_factory=dict)
    forms: dict[str, None] = field(default_factory=dict)


class Entities:
    """The things named so far, in the order of their first mention; `sentence` counts the sentences read."""

    def __init__(self, speaker: str) -> None:
        self.speaker = speaker.strip()
        self._all: list[_Entity] = []
        self._by_key: dict[str, int] = {}
        self._surnames: dict[str, int] = {}
        self._files: dict[str, int] = {}
        self._topic: list[tuple[int, Phrase, bool]] = []
        self._last: dict[str, int] = {}
        self._phrases: dict[int, int] = {}
        self._people: list[tuple[int, int]] = []
        self.sentence = 0

    def type_of(self, phrase: Phrase) -> str:
        """Return the type of what a phrase means, "" if it is unknown."""
        if not phrase.anaphor:
            known = self._known(phrase)
            return self._all[known].type if known is not None else phrase.type
        if phrase.anaphor in ("i", "me", USER):
            return "person"
        if phrase.anaphor in ("we", "us"):
            return "organization"
        meant = self._antecedent(phrase)
        if isinstance(meant, Phrase):
            return self.type_of(meant)
        return self._all[meant].type if meant is not None else ""

    def name_of(self, place: int) -> str:
        return self._all[place].name

    def retype(self, place: int, type_: str) -> None:
        self._all[place].type = type_

    def begin(self, mentions: Iterable[Mention], subjects: Sequence[Phrase]) -> None:
        """Take in a sentence: its names, and what it speaks of, for the pronouns of the next."""
        self.sentence += 1
        for mention in mentions:
            key = _key(mention.name)
            place = self._by_key.get(key)
            if place is None and mention.type in ("person", "concept") and " " not in key:
                place = self._surnames.get(key)
            if place is None:
                place = self._new(mention.name, mention.type, mention.confidence)
            entity = self._all[place]
            entity.is_sure = entity.is_sure or not mention.is_weak
            entity.sentence = self.sentence
            entity.spans[mention.start, mention.end] = None
            entity.forms[mention.name] = None
            if mention.confidence > entity.confidence:
                entity.type, entity.confidence = mention.type, mention.confidence
            if key not in self._by_key:
                self._remember_name(place, mention.name)
            self._last[entity.type] = place
            if entity.type == "person":
                self._people.append((mention.start, place))
        self._topic = [topic for topic in self._topic if self.sentence - topic[0] < _RECENT]
        if subjects and not subjects[0].anaphor:
            self._topic.append((self.sentence, subjects[0], len(subjects) == 1))

    def place_of(self, phrase: Phrase, *, type_: str = "") -> int | None:
        """Return the place of what a phrase means, added if new, or None if it means nothing."""
        place: int | None
        if phrase.anaphor in SPEAKERS or phrase.anaphor == USER:
            name = self.speaker if phrase.anaphor != USER else ""
            name = name or (THE_USER if phrase.anaphor in ("i", "me", USER) else TEAM)
            place = self._by_key.get(_key(name))
            if place is None:
                place = self._new(name, "organization" if name == TEAM else "person", 0.9)
                self._remember_name(place, name)
        elif phrase.anaphor:
            meant = self._antecedent(phrase)
            place = self.place_of(meant) if isinstance(meant, Phrase) else meant
        else:
            place = self._known(phrase)
            if place is None:
                place = self._new(phrase.name, type_ or phrase.type, phrase.confidence)
                self._remember_name(place, phrase.name)
            if " " in phrase.name or not phrase.is_definite or _key(phrase.name) in self._by_key:
                self._all[place].forms[phrase.name] = None
        if place is None:
            return None
        entity = self._all[place]
        entity.is_sure = entity.is_used = True
        if phrase.anaphor == "" and phrase.mention is None:
            self._phrases[phrase.start] = max(phrase.end, self._phrases.get(phrase.start, 0))
        if phrase.end > phrase.start:
            entity.spans[phrase.start, phrase.end] = None
        entity.sentence = self.sentence
        self._last[entity.type] = place
        return place

    def found(self) -> tuple[list[Found], dict[int, int]]:
        """Return what is sure to be named, and where each place has gone."""
        places: dict[int, int] = {}
        found: list[Found] = []
        order = sorted(range(len(self._all)), key=lambda place: (min(self._all[place].spans, default=(0, 0)), place))
        is_technical = any(entity.type in ("file", "tool") for entity in self._all if entity.is_sure)
        for place in order:
            entity = self._all[place]
            # An abstract name that occurs only inside of longer ones is none: `API` in `the payments API`.
            is_part = (
                not entity.is_used
                and entity.type == "concept"
                and all(
                    any(
                        self._phrases.get(before, 0) >= end for before in range(max(start - _MAX_NAME_LENGTH, 0), start)
                    )
                    for start, end in entity.spans
                )
            )
            if not entity.is_sure or is_part:
                continue
            is_acronym = entity.name.isupper() and entity.confidence <= _ACRONYM
            if is_technical and is_acronym and entity.type == "organization":
                entity.type = "concept"
            places[place] = len(found)
            aliases = tuple(form for form in entity.forms if form != entity.name)
            spans = outermost(entity.spans)
            found.append(Found(entity.name, entity.type, spans, aliases, round(entity.confidence, 2)))
        return found, places

    def _new(self, name: str, type_: str, confidence: float) -> int:
        self._all.append(_Entity(name, type_, confidence, self.sentence, is_sure=False))
        return len(self._all) - 1

    def _remember_name(self, place: int, name: str) -> None:
        key = _key(name)
        self._by_key.setdefault(key, place)
        words = key.split()
        type_ = self._all[place].type
        if type_ == "person" and 1 < len(words) <= 4:
            for word in (words[-1], words[0]):
                self._surnames.setdefault(word, place)
        if type_ == "file" and "://" not in key:
            self._files.setdefault(key.rsplit("/", 1)[-1].split(".", 1)[0], place)

    def _known(self, phrase: Phrase) -> int | None:
        """Return the entity that a name or `the auth module`, `the company` means."""
        key = _key(phrase.name)
        place = self._by_key.get(key)
        if place is not None or phrase.mention is not None or not phrase.is_definite:
            return place
        words = key.split()
        if len(words) == 2 and words[1] in _FILES | {"service", "package"} and words[0] in self._files:
            return self._files[words[0]]
        if len(words) == 1 and words[0] in CLASS_NOUNS | _GROUPS:
            return self._last.get(kind_of_noun(words[0]))
        return None

    def _antecedent(self, phrase: Phrase) -> Phrase | int | None:
        """Return what a pronoun means: the nearest subject before it that fits, else the nearest name."""
        for _, topic, is_alone in reversed(self._topic):
            if not is_alone and phrase.anaphor in _MANY:
                return None
            type_ = self.type_of(topic) if topic.start < phrase.start else ""
            if phrase.anaphor in PERSONAL:
                fits = type_ == "person"
            elif phrase.anaphor in _SINGLE:
                fits = type_ not in ("person", "")
            else:
                fits = phrase.anaphor in POINTING and type_ != ""
            if fits:
                return topic
        if phrase.anaphor in PERSONAL:
            for start, place in reversed(self._people[-_MAX_PEOPLE:]):
                if start < phrase.start and self.sentence - self._all[place].sentence < _RECENT:
                    return place
        return None


def _key(name: str) -> str:
    """Return a name as it is compared: small letters, single spaces, no full stop at the end."""
    return " ".join(name.casefold().split()).rstrip(".")
