"""Extract entities and facts from an episode by rules: plain text, conversations and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import replace
from commonplace.errors import UsageError
from commonplace.extract import extract
from commonplace.extract.modality import HEARSAY
from commonplace.extract.model import Claim, Departure, ExtractedEntity, Extraction
from commonplace.graph.kinds import Kinds
from commonplace.graph.names import cleaned, clipped, has_extension, normal
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.words import word_lists
from commonplace.types.graph import EpisodeSource

_SPEAKER: Final = lazy_pattern(r"^[ \t>*-]*(?P<speaker>[^\W\d_][\w .'’()-]{0,59}?)[ \t]*:[ \t]+(?=\S)", re.MULTILINE)
_ASSISTANTS: Final = frozenset({"assistant", "agent", "ai", "bot"})
"""Speakers whose turns are full of common knowledge ("Paris is in France") and of long lists of options."""
_OURS: Final = frozenset({"person", "organization", "project", "tool", "file", "decision"})
"""An assistant's claims are kept only if one end has such a type; the rest is general knowledge, kept in its memory."""
_HUMPS: Final = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_NAMES: Final = ("name", "title", "full_name", "fullname", "label", "id")
_MAX_DEPTH: Final = 8
_MAX_VALUES: Final = 2_000
_MAX_VALUE_LENGTH: Final = 80
"""Length above which a JSON string is read as text instead of as the name of an entity."""

_KEYS_OF: Final = word_lists(Path(__file__).with_name("json_keys.txt"))
_KEYS: Final = {key: tuple(meaning.split()) for meaning, keys in _KEYS_OF.items() for key in keys}
"""Relation type, and entity type of the value, by key of a plain JSON object."""
_FACT_KEYS: Final = ("source", "target", "relation_type", "fact")
_TYPE_KEYS: Final = ("entity_type", "type", "kind")
_OF_PEOPLE: Final = frozenset({"email", "age", "birthday", "full_name"})
_PERSONAL: Final = frozenset({"WORKS_FOR", "LIVES_IN"})
_FOR_THINGS: Final = {"LIVES_IN": "LOCATED_IN", "WORKS_FOR": "PART_OF"}


def understand(content: str, source: EpisodeSource, at: float, kinds: Kinds, *, speaker: str = "") -> Extraction:
    """Return the entities and claims of an episode.

    Args:
        at: when it was said, seconds since the epoch.
        speaker: who says it where the text names no speaker.

    Raises:
        UsageError: the source is "json" and the content is not JSON.
    """
    if source == "json":
        return _JsonReader(content, at, kinds).extraction()
    if source != "message":
        return extract(content, at=at, speaker=cleaned(speaker))
    # Turns have the form `speaker: text`; text before the first turn is said by `speaker`.
    turns = []
    begin, name, is_quoted = 0, cleaned(speaker), False
    for match in _SPEAKER.finditer(content):
        turns.append((name, begin, match.start(), is_quoted))
        begin, name, is_quoted = match.end(), cleaned(match["speaker"]), ">" in content[match.start() : match.end()]
    turns.append((name, begin, len(content), is_quoted))
    together = _JoinedExtraction()
    for name, begin, end, is_quoted in turns:
        if not content[begin:end].strip():
            continue
        part = extract(content[begin:end], at=at, speaker=name)
        if name.lower() in _ASSISTANTS:
            types = [entity.type for entity in part.entities]
            claims = (claim for claim in part.claims if {types[claim.source], types[claim.target]} & _OURS)
            part = replace(part, claims=tuple(claims))
            part = part.only(part.stated)
        if is_quoted:  # somebody else said it: hearsay
            hearsay = (replace(claim, confidence=min(claim.confidence, HEARSAY)) for claim in part.claims)
            part = replace(part, claims=tuple(hearsay))
        together.add(part, begin)
    return together.extraction()


class _JoinedExtraction:
    """Joins the extractions of the parts of a text, with spans in the whole text."""

    def __init__(self) -> None:
        self.entities: list[ExtractedEntity] = []
        self.claims: list[Claim] = []
        self._departures: list[Departure] = []
        self._places: dict[tuple[str, str], int] = {}

    def add(self, part: Extraction, begin: int) -> None:
        """Add the extraction of a part that begins at offset `begin` of the whole."""
        places = {
            index: self.place(replace(entity, spans=tuple((start + begin, end + begin) for start, end in entity.spans)))
            for index, entity in enumerate(part.entities)
        }
        self.claims += [claim.moved(places, begin) for claim in part.claims]
        self._departures += [departure.moved(places, begin) for departure in part.departures]

    def place(self, found: ExtractedEntity) -> int:
        """Return the index of an entity; it is joined with an earlier one of the same name and type."""
        place = self._places.setdefault((normal(found.name), found.type), len(self.entities))
        if place == len(self.entities):
            self.entities.append(found)
        else:
            old = self.entities[place]
            spans, aliases = (*old.spans, *found.spans), tuple(dict.fromkeys((*old.aliases, *found.aliases)))
            confidence = max(old.confidence, found.confidence)
            self.entities[place] = replace(old, spans=spans, aliases=aliases, confidence=confidence)
        return place

    def extraction(self) -> Extraction:
        return Extraction(tuple(self.entities), tuple(self.claims), departures=tuple(self._departures))


class _JsonReader(_JoinedExtraction):
    """Reads JSON: an object with a name is an entity, and its keys with a known meaning are facts."""

    def __init__(self, content: str, at: float, kinds: Kinds) -> None:
        super().__init__()
        self._content = content
        self._at = at
        self._kinds = kinds
        self._left = _MAX_VALUES
        self._from = 0
        try:
            value = json.loads(content, object_pairs_hook=lambda pairs: {_key(key): value for key, value in pairs})
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the content is not JSON: {error}", remedy="give JSON, or another source") from error
        self._walk(value, None, 0)

    def _walk(self, value: Any, owner: int | None, depth: int) -> int | None:
        """Read a value; return the index of the entity that it describes, None if it describes none."""
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0:
            return None
        if isinstance(value, list):
            for element in value:
                self._walk(element, owner, depth + 1)
        if not isinstance(value, dict) or self._states(value):
            return None
        name_key, entity = next((key for key in _NAMES if isinstance(value.get(key), str)), ""), owner
        if name_key and cleaned(value[name_key]):
            types = [type_name.lower() for type_name in map(value.get, _TYPE_KEYS) if isinstance(type_name, str)]
            is_person = any(_KEYS.get(key, ("",))[0] in _PERSONAL for key in value) or not _OF_PEOPLE.isdisjoint(value)
            likely = "person" if is_person else "concept"
            entity = self._entity(value[name_key], next((t for t in types if t in self._kinds.entity_types), likely))
        for key, inner in value.items():
            for element in inner if isinstance(inner, list) else [inner]:
                if key not in (name_key, *_TYPE_KEYS):
                    self._pair(key, element, entity, depth)
        return entity if name_key else None

    def _states(self, value: Mapping[str, Any]) -> bool:
        """Read an object that states a fact: two ends, and a type or a sentence. Return whether it is one."""
        source, target, type_, fact = map(value.get, _FACT_KEYS)
        if not (isinstance(source, str) and isinstance(target, str) and cleaned(source) and cleaned(target)):
            return False
        if not isinstance(fact, str) and not isinstance(type_, str):
            return False
        head, tail = (self._entity(name, "file" if has_extension(name) else "concept") for name in (source, target))
        before = len(self.claims)
        if isinstance(fact, str):
            self.add(extract(fact, at=self._at), self._find(fact))
        stated_type = _key(type_).upper() if isinstance(type_, str) else ""
        relation = stated_type if stated_type in self._kinds.relation_types else "RELATED_TO"
        # Compared by name: the sentence may have given an end another type than its bare name does.
        stated_pairs = [{normal(self.entities[end].name) for end in (c.source, c.target)} for c in self.claims[before:]]
        # A relation that the sentence states between the two is more specific than RELATED_TO.
        if relation != "RELATED_TO" or {normal(source), normal(target)} not in stated_pairs:
            self._claim(head, tail, relation, fact.strip() if isinstance(fact, str) else "")
        return True

    def _pair(self, key: str, value: Any, entity: int | None, depth: int) -> None:
        """Read one key of an object; `entity` is the index of the entity that the object describes or belongs to."""
        own_type = key.upper() if key.upper() in self._kinds.relation_types else ""
        relation, type_ = _KEYS.get(key, (own_type, "concept"))
        target = None
        if isinstance(value, dict | list):
            target = self._walk(value, entity, depth + 1)
        elif isinstance(value, str) and relation and entity is not None and len(value) <= _MAX_VALUE_LENGTH:
            is_file = has_extension(value) and type_ == "concept"
            target = self._entity(value, "file" if is_file else type_) if cleaned(value) else None
        elif isinstance(value, str) and " " in value.strip():
            # A string may be escaped in JSON; then the spans of its words are not exact.
            begin = self._find(value)
            self.add(extract(value, at=self._at), begin)
        if entity is not None and target is not None and target != entity:
            self._claim(entity, target, relation or "RELATED_TO")

    def _entity(self, name: str, type_: str) -> int:
        start = self._find(name)
        spans = ((start, start + len(name)),) if self._content.startswith(name, start) else ()
        return self.place(ExtractedEntity(clipped(name), type_, spans))

    def _claim(self, source: int, target: int, relation: str, fact: str = "") -> None:
        head, tail = self.entities[source], self.entities[target]
        type_ = relation if head.type == "person" or fact else _FOR_THINGS.get(relation, relation)
        fact = fact or f"{head.name} {type_.replace('_', ' ').lower()} {tail.name}"
        self.claims.append(Claim(source, target, type_, fact, tail.spans[-1] if tail.spans else (0, 0)))

    def _find(self, text: str) -> int:
        """Return the offset of a text in the JSON: after the last one found, else anywhere, else 0."""
        position = self._content.find(text, self._from)
        if position < 0:
            position = self._content.find(text)
        self._from = max(self._from, position)
        return max(position, 0)


def _key(key: str) -> str:
    return re.sub(r"[\s-]+", "_", _HUMPS.sub("_", key)).strip("_").lower()
