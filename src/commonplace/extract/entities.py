"""Collect the entities of a text and resolve coreference: short names, files, pronouns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from commonplace.dataclasses import dataclass, field
from commonplace.extract import words as lists
from commonplace.extract.model import ExtractedEntity, outermost
from commonplace.extract.names import Phrase, kind_of_noun
from commonplace.extract.phrases import PERSONAL, POINTING, SPEAKERS, USER

THE_USER: Final = "the user"
TEAM: Final = "we"
_FILES: Final = frozenset("module file script component class service package".split())
_ACRONYM: Final = 0.5
"""Confidence of an unknown acronym as an organisation; in texts about tools and files it rarely is one."""
_MAX_PEOPLE: Final = 20
_MAX_NAME_LENGTH: Final = 60
_RECENT: Final = 3
"""Number of recent sentences in which the name for a pronoun is looked for."""


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
    """The entities named so far, in the order of their first mention; `sentence` counts the sentences read."""

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
        """Return the type of the entity that a phrase means, "" if unknown."""
        if not phrase.anaphor:
            index = self._known(phrase)
            return self._all[index].type if index is not None else phrase.type
        if phrase.anaphor in ("i", "me", USER):
            return "person"
        if phrase.anaphor in ("we", "us"):
            return "organization"
        antecedent = self._antecedent(phrase)
        if isinstance(antecedent, Phrase):
            return self.type_of(antecedent)
        return self._all[antecedent].type if antecedent is not None else ""

    def name_of(self, index: int) -> str:
        return self._all[index].name

    def retype(self, index: int, type_: str) -> None:
        self._all[index].type = type_

    def begin(self, mentions: Iterable[Phrase], subjects: Sequence[Phrase]) -> None:
        """Begin a sentence: add its names, and its subjects as antecedents for later pronouns."""
        self.sentence += 1
        for mention in mentions:
            key = _key(mention.name)
            index = self._by_key.get(key)
            if index is None and mention.type in ("person", "concept") and " " not in key:
                index = self._surnames.get(key)
            if index is None:
                index = self._new(mention.name, mention.type, mention.confidence)
            entity = self._all[index]
            entity.is_sure = entity.is_sure or not mention.is_weak
            entity.sentence = self.sentence
            entity.spans[mention.start, mention.end] = None
            entity.forms[mention.name] = None
            if mention.confidence > entity.confidence:
                entity.type, entity.confidence = mention.type, mention.confidence
            if key not in self._by_key:
                self._remember_name(index, mention.name)
            self._last[entity.type] = index
            if entity.type == "person":
                self._people.append((mention.start, index))
        self._topic = [topic for topic in self._topic if self.sentence - topic[0] < _RECENT]
        if subjects and not subjects[0].anaphor:
            self._topic.append((self.sentence, subjects[0], len(subjects) == 1))

    def place_of(self, phrase: Phrase, *, type_: str = "") -> int | None:
        """Return the index of the entity that a phrase means, added if new; None if it means none."""
        index: int | None
        if phrase.anaphor in SPEAKERS or phrase.anaphor == USER:
            name = self.speaker if phrase.anaphor != USER else ""
            name = name or (THE_USER if phrase.anaphor in ("i", "me", USER) else TEAM)
            index = self._by_key.get(_key(name))
            if index is None:
                index = self._new(name, "organization" if name == TEAM else "person", 0.9)
        elif phrase.anaphor:
            antecedent = self._antecedent(phrase)
            index = self.place_of(antecedent) if isinstance(antecedent, Phrase) else antecedent
        else:
            index = self._known(phrase)
            if index is None:
                index = self._new(phrase.name, type_ or phrase.type, phrase.confidence)
            if " " in phrase.name or not phrase.is_definite or _key(phrase.name) in self._by_key:
                self._all[index].forms[phrase.name] = None
        if index is None:
            return None
        entity = self._all[index]
        entity.is_sure = entity.is_used = True
        if phrase.anaphor == "" and not phrase.is_name:
            self._phrases[phrase.start] = max(phrase.end, self._phrases.get(phrase.start, 0))
        if phrase.end > phrase.start:
            entity.spans[phrase.start, phrase.end] = None
        entity.sentence = self.sentence
        self._last[entity.type] = index
        return index

    def certain_entities(self) -> tuple[list[ExtractedEntity], dict[int, int]]:
        """Return the entities that are certain to be named, and their new indexes by old index."""
        new_indexes: dict[int, int] = {}
        entities: list[ExtractedEntity] = []
        order = sorted(range(len(self._all)), key=lambda index: (min(self._all[index].spans, default=(0, 0)), index))
        is_technical = any(entity.type in ("file", "tool") for entity in self._all if entity.is_sure)
        for index in order:
            entity = self._all[index]
            # A concept that occurs only inside longer phrases is no entity: `API` in `the payments API`.
            is_plain = not entity.is_used and entity.type == "concept"
            is_part = is_plain and all(self._is_in_phrase(*span) for span in entity.spans)
            if not entity.is_sure or is_part:
                continue
            is_acronym = entity.name.isupper() and entity.confidence <= _ACRONYM
            if is_technical and is_acronym and entity.type == "organization":
                entity.type = "concept"
            new_indexes[index] = len(entities)
            aliases = tuple(form for form in entity.forms if form != entity.name)
            spans = outermost(entity.spans)
            entities.append(ExtractedEntity(entity.name, entity.type, spans, aliases, round(entity.confidence, 2)))
        return entities, new_indexes

    def _is_in_phrase(self, start: int, end: int) -> bool:
        begins = range(max(start - _MAX_NAME_LENGTH, 0), start)
        return any(self._phrases.get(begin, 0) >= end for begin in begins)

    def _new(self, name: str, type_: str, confidence: float) -> int:
        self._all.append(_Entity(name, type_, confidence, self.sentence, is_sure=False))
        self._remember_name(len(self._all) - 1, name)
        return len(self._all) - 1

    def _remember_name(self, index: int, name: str) -> None:
        key = _key(name)
        self._by_key.setdefault(key, index)
        words = key.split()
        type_ = self._all[index].type
        if type_ == "person" and 1 < len(words) <= 4:
            for word in (words[-1], words[0]):
                self._surnames.setdefault(word, index)
        if type_ == "file" and "://" not in key:
            self._files.setdefault(key.rsplit("/", 1)[-1].split(".", 1)[0], index)

    def _known(self, phrase: Phrase) -> int | None:
        """Return the index of the entity that a name, `the auth module` or `the company` means, None if unknown."""
        key = _key(phrase.name)
        index = self._by_key.get(key)
        if index is not None or phrase.is_name or not phrase.is_definite:
            return index
        words = key.split()
        if len(words) == 2 and words[1] in _FILES and words[0] in self._files:
            return self._files[words[0]]
        if len(words) == 1 and words[0] in lists.CLASS_NOUNS | lists.GROUPS:
            return self._last.get(kind_of_noun(words[0]))
        return None

    def _antecedent(self, phrase: Phrase) -> Phrase | int | None:
        """Return the antecedent of a pronoun: the nearest fitting subject before it, else the nearest person."""
        for _, topic, is_alone in reversed(self._topic):
            if not is_alone and phrase.anaphor in ("they", "them", "these", "those"):
                return None
            type_ = self.type_of(topic) if topic.start < phrase.start else ""
            if phrase.anaphor in PERSONAL:
                fits = type_ == "person"
            elif phrase.anaphor in ("it", "this", "that"):
                fits = type_ not in ("person", "")
            else:
                fits = phrase.anaphor in POINTING and type_ != ""
            if fits:
                return topic
        if phrase.anaphor in PERSONAL:
            for start, index in reversed(self._people[-_MAX_PEOPLE:]):
                if start < phrase.start and self.sentence - self._all[index].sentence < _RECENT:
                    return index
        return None


def _key(name: str) -> str:
    """Return a name for comparison: in lower case, with single spaces, without a final full stop."""
    return " ".join(name.casefold().split()).rstrip(".")
