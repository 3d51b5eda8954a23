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
from commonplace.extract.model import Claim, Departure, Extraction, Found
from commonplace.graph.kinds import Kinds
from commonplace.graph.names import MAX_NAME_CHARACTERS, cleaned, has_extension, normal
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.words import word_lists
from commonplace.types.graph import EpisodeSource

_SPEAKER: Final = lazy_pattern(r"^[ \t>*-]*(?P<speaker>[^\W\d_][\w .'’()-]{0,59}?)[ \t]*:[ \t]+(?=\S)", re.MULTILINE)
_ASSISTANTS: Final = frozenset({"assistant", "agent", "ai", "bot"})
"""Speakers who say what everybody knows, that Paris is in France, and name scores of things to choose from."""
_OURS: Final = frozenset({"person", "organization", "project", "tool", "file", "decision"})
"""What an assistant's words are a fact of; of other things they are general knowledge, which is in their memory."""
_HUMPS: Final = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_NAMES: Final = ("name", "title", "full_name", "fullname", "label", "id")
_MAX_DEPTH: Final = 8
_MAX_VALUES: Final = 2_000
_MAX_VALUE_LENGTH: Final = 80
"""A longer value is a text, and read as one."""

_KEYS: Final = {
    key: tuple(meaning.split())
    for meaning, keys in word_lists(Path(__file__).with_name("json_keys.txt")).items()
    for key in keys
}
"""What keys of plain objects say, and the type of thing that they name."""
_FACT_KEYS: Final = ("source", "target", "relation_type", "fact")
_TYPE_KEYS: Final = ("entity_type", "type", "kind")
_OF_PEOPLE: Final = frozenset({"email", "age", "birthday", "full_name"})
_PERSONAL: Final = frozenset({"WORKS_FOR", "LIVES_IN"})
_FOR_THINGS: Final = {"LIVES_IN": "LOCATED_IN", "WORKS_FOR": "PART_OF"}


def understand(content: str, source: EpisodeSource, at: float, kinds: Kinds, *, speaker: str = "") -> Extraction:
    """Return what an episode says.

    Args:
        at: when it was said, seconds since the epoch.
        speaker: who says it, where the text does not name a speaker.

    Raises:
        UsageError: the source is JSON, and the content is not.
    """
    if source == "json":
        return _Structure(content, at, kinds).extraction()
    if source != "message":
        return extract(content, at=at, speaker=cleaned(speaker))
    # Lines of `speaker: text`, each said by its speaker; what comes before the first is `speaker`'s.
    parts = []
    begin, by, is_quoted = 0, cleaned(speaker), False
    for match in _SPEAKER.finditer(content):
        parts.append((by, begin, match.start(), is_quoted))
        begin, by, is_quoted = match.end(), cleaned(match["speaker"]), ">" in content[match.start() : match.end()]
    parts.append((by, begin, len(content), is_quoted))
    together = _Together()
    for by, begin, end, is_quoted in parts:
        if not content[begin:end].strip():
            continue
        said = extract(content[begin:end], at=at, speaker=by)
        if by.lower() in _ASSISTANTS:
            types = [each.type for each in said.entities]
            kept = (each for each in said.claims if {types[each.source], types[each.target]} & _OURS)
            said = replace(said, claims=tuple(kept))
            said = said.only(said.stated)
        if is_quoted:  # by others, whom nobody has to believe
            claims = (replace(each, confidence=min(each.confidence, HEARSAY)) for each in said.claims)
            said = replace(said, claims=tuple(claims))
        together.add(said, begin)
    return together.extraction()


class _Together:
    """What the parts of a text say, as places of the whole."""

    def __init__(self) -> None:
        self.entities: list[Found] = []
        self.claims: list[Claim] = []
        self._dates: list[Any] = []
        self._departures: list[Departure] = []
        self._places: dict[tuple[str, str], int] = {}

    def add(self, part: Extraction, begin: int) -> None:
        """Take what a part says that begins at a place of the whole."""
        places = {
            place: self.place(replace(each, spans=tuple((start + begin, end + begin) for start, end in each.spans)))
            for place, each in enumerate(part.entities)
        }
        self.claims += [each.moved(places, begin) for each in part.claims]
        self._departures += [each.moved(places, begin) for each in part.departures]
        self._dates += [replace(date, start=date.start + begin, end=date.end + begin) for date in part.dates]

    def place(self, found: Found) -> int:
        """Return the place of an entity, which is joined with one of its name and type."""
        place = self._places.setdefault((normal(found.name), found.type), len(self.entities))
        if place == len(self.entities):
            self.entities.append(found)
        else:
            known = self.entities[place]
            self.entities[place] = replace(
                known,
                spans=(*known.spans, *found.spans),
                aliases=tuple(dict.fromkeys((*known.aliases, *found.aliases))),
                confidence=max(known.confidence, found.confidence),
            )
        return place

    def extraction(self) -> Extraction:
        return Extraction(tuple(self.entities), tuple(self.claims), tuple(self._dates), tuple(self._departures))


class _Structure(_Together):
    """Reads JSON: an object with a name is an entity, its keys are facts where they are known ones.

    Raises:
        UsageError: the content is not JSON.
    """

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
        """Read a value, and return the place of the entity that it is."""
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0:
            return None
        if isinstance(value, list):
            for each in value:
                self._walk(each, owner, depth + 1)
        if not isinstance(value, dict) or self._states(value):
            return None
        name_key, me = next((key for key in _NAMES if isinstance(value.get(key), str)), ""), owner
        if name_key and cleaned(value[name_key]):
            given = [each.lower() for each in map(value.get, _TYPE_KEYS) if isinstance(each, str)]
            is_person = any(_KEYS.get(key, ("",))[0] in _PERSONAL for key in value) or not _OF_PEOPLE.isdisjoint(value)
            likely = "person" if is_person else "concept"
            me = self._entity(value[name_key], next((t for t in given if t in self._kinds.entity_types), likely))
        for key, inner in value.items():
            for each in inner if isinstance(inner, list) else [inner]:
                if key not in (name_key, *_TYPE_KEYS):
                    self._pair(key, each, me, depth)
        return me if name_key else None

    def _states(self, value: Mapping[str, Any]) -> bool:
        """Read an object that is itself a fact, of two ends and a type or a sentence; return whether it is one."""
        source, target, type_, fact = map(value.get, _FACT_KEYS)
        if not (isinstance(source, str) and isinstance(target, str) and cleaned(source) and cleaned(target)):
            return False
        if not isinstance(fact, str) and not isinstance(type_, str):
            return False
        one, other = (self._entity(each, "file" if has_extension(each) else "concept") for each in (source, target))
        before = len(self.claims)
        if isinstance(fact, str):
            self.add(extract(fact, at=self._at), self._find(fact))
        given = _key(type_).upper() if isinstance(type_, str) else ""
        known = given if given in self._kinds.relation_types else "RELATED_TO"
        # By name: the sentence shows better than a bare name of what type it is.
        found = [{normal(self.entities[end].name) for end in (c.source, c.target)} for c in self.claims[before:]]
        # What the sentence says of the two is more than that they are related.
        if known != "RELATED_TO" or {normal(source), normal(target)} not in found:
            self._claim(one, other, known, fact.strip() if isinstance(fact, str) else "")
        return True

    def _pair(self, key: str, value: Any, me: int | None, depth: int) -> None:
        """Read one key of an object; `me` is the entity that the object is, or is in."""
        own = key.upper() if key.upper() in self._kinds.relation_types else ""
        relation, type_ = _KEYS.get(key, (own, "concept"))
        found = None
        if isinstance(value, dict | list):
            found = self._walk(value, me, depth + 1)
        elif isinstance(value, str) and relation and me is not None and len(value) <= _MAX_VALUE_LENGTH:
            is_file = has_extension(value) and type_ == "concept"
            found = self._entity(value, "file" if is_file else type_) if cleaned(value) else None
        elif isinstance(value, str) and " " in value.strip():
            # A text in JSON may be escaped there: then the places of its words are not exact.
            begin = self._find(value)
            self.add(extract(value, at=self._at), begin)
        if me is not None and found is not None and found != me:
            self._claim(me, found, relation or "RELATED_TO")

    def _entity(self, name: str, type_: str) -> int:
        start = self._find(name)
        spans = ((start, start + len(name)),) if self._content.startswith(name, start) else ()
        return self.place(Found(cleaned(name)[:MAX_NAME_CHARACTERS], type_, spans))

    def _claim(self, source: int, target: int, relation: str, fact: str = "") -> None:
        one, other = self.entities[source], self.entities[target]
        type_ = relation if one.type == "person" or fact else _FOR_THINGS.get(relation, relation)
        fact = fact or f"{one.name} {type_.replace('_', ' ').lower()} {other.name}"
        self.claims.append(Claim(source, target, type_, fact, other.spans[-1] if other.spans else (0, 0)))

    def _find(self, text: str) -> int:
        """Return where a text occurs in the JSON, after what was read before, else anywhere, else 0."""
        found = self._content.find(text, self._from)
        if found < 0:
            found = self._content.find(text)
        self._from = max(self._from, found)
        return max(found, 0)


def _key(key: str) -> str:
    return re.sub(r"[\s-]+", "_", _HUMPS.sub("_", key)).strip("_").lower()
