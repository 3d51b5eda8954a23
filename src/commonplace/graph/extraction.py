"""Extract entities and facts from an episode by rules: plain text, conversations and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import UsageError
from commonplace.extract import extract
from commonplace.extract.modality import HEARSAY
from commonplace.extract.model import Claim, Departure, Extraction, Found
from commonplace.graph.kinds import Kinds
from commonplace.graph.names import MAX_NAME_CHARACTERS, cleaned, has_extension, normal
from commonplace.patterns import late_pattern
from commonplace.text.words import word_lists
from commonplace.types.graph import EpisodeSource

_SPEAKER: Final = late_pattern(r"^[ \t>*-]*(?P<speaker>[^\W\d_][\w .'’()-]{0,59}?)[ \t]*:[ \t]+(?=\S)", re.MULTILINE)
_ASSISTANTS: Final = frozenset({"assistant", "agent", "ai", "bot"})
"""Who tells what everybody knows, that Paris is in France, and names scores of things to choose from."""
_OURS: Final = frozenset({"person", "organization", "project", "tool", "file", "decision"})
"""What an assistant's words are a fact of; of other things they are general knowledge, which is in their memory."""
_HUMPS: Final = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
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
        speaker: who says it, where the text does not tell.

    Raises:
        UsageError: the source is JSON, and the content is not.
    """
    speaker = cleaned(speaker)
    if source == "message":
        return _messages(content, at, speaker)
    if source == "json":
        return _Structure(content, at, kinds).read()
    return extract(content, at=at, speaker=speaker)


def _messages(content: str, at: float, speaker: str) -> Extraction:
    """Read lines of `speaker: text`, each as said by its speaker; what comes before the first is `speaker`'s."""
    parts = []
    begin, by, is_quoted = 0, speaker, False
    for match in _SPEAKER.finditer(content):
        parts.append((by, begin, match.start(), is_quoted))
        begin, by, is_quoted = match.end(), cleaned(match["speaker"]), ">" in content[match.start() : match.end()]
    parts.append((by, begin, len(content), is_quoted))
    together = Together()
    for by, begin, end, is_quoted in parts:
        if content[begin:end].strip():
            said = extract(content[begin:end], at=at, speaker=by)
            if by.lower() in _ASSISTANTS:
                kinds = [each.type for each in said.entities]
                kept = (each for each in said.claims if {kinds[each.source], kinds[each.target]} & _OURS)
                said = replace(said, claims=tuple(kept))
                said = said.only(said.stated)
            if is_quoted:  # by others, whom nobody has to believe
                claims = (replace(each, confidence=min(each.confidence, HEARSAY)) for each in said.claims)
                said = replace(said, claims=tuple(claims))
            together.add(said, begin)
    return together.extraction()


@dataclass
class Together:
    entities: list[Found] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    dates: list[Any] = field(default_factory=list)
    departures: list[Departure] = field(default_factory=list)
    _places: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, part: Extraction, begin: int) -> None:
        """Take what a part says that begins at a place of the whole."""
        places = {
            place: self.place(replace(each, spans=tuple((start + begin, end + begin) for start, end in each.spans)))
            for place, each in enumerate(part.entities)
        }
        self.claims += [each.moved(places, begin) for each in part.claims]
        self.departures += [each.moved(places, begin) for each in part.departures]
        self.dates += [replace(date, start=date.start + begin, end=date.end + begin) for date in part.dates]

    def place(self, found: Found) -> int:
        """Return the place of an entity, which is joined with one of its name and type."""
        key = (normal(found.name), found.type)
        if key not in self._places:
            self._places[key] = len(self.entities)
            self.entities.append(found)
        else:
            known = self.entities[self._places[key]]
            self.entities[self._places[key]] = replace(
                known,
                spans=(*known.spans, *found.spans),
                aliases=tuple(dict.fromkeys((*known.aliases, *found.aliases))),
                confidence=max(known.confidence, found.confidence),
            )
        return self._places[key]

    def extraction(self) -> Extraction:
        parts = (self.entities, self.claims, self.dates, self.departures)
        return Extraction(*map(tuple, parts))  # type: ignore[arg-type]


class _Structure:
    """Reads JSON: an object with a name is an entity, its keys are facts where they are known ones."""

    def __init__(self, content: str, at: float, kinds: Kinds) -> None:
        try:
            self._value = json.loads(content, object_pairs_hook=_with_plain_keys)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the content is not JSON: {error}", remedy="give JSON, or another source") from error
        self._content = content
        self._at = at
        self._kinds = kinds
        self._together = Together()
        self._left = _MAX_VALUES
        self._from = 0

    def read(self) -> Extraction:
        self._walk(self._value, None, 0)
        return self._together.extraction()

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
            me = self._entity(value[name_key], self._type_of(value))
        for key, inner in value.items():
            for each in inner if isinstance(inner, list) else [inner]:
                if key not in (name_key, *_TYPE_KEYS):
                    self._pair(key, each, me, depth)
        return me if name_key else None

    def _states(self, value: Mapping[str, Any]) -> bool:
        """Read an object that is itself a fact, of two ends and a type or a sentence; tell whether it is one."""
        source, target, type_, fact = map(value.get, _FACT_KEYS)
        if not (isinstance(source, str) and isinstance(target, str) and cleaned(source) and cleaned(target)):
            return False
        if not isinstance(fact, str) and not isinstance(type_, str):
            return False
        one, other = (self._entity(each, "file" if has_extension(each) else "concept") for each in (source, target))
        before = len(self._together.claims)
        if isinstance(fact, str):
            self._together.add(extract(fact, at=self._at), self._place(fact))
        given = _key(type_).upper() if isinstance(type_, str) else ""
        known = given if given in self._kinds.relation_types else "RELATED_TO"
        entities = self._together.entities
        # By name: the sentence tells better than a bare name does of what type it is.
        found = [{normal(entities[end].name) for end in (c.source, c.target)} for c in self._together.claims[before:]]
        # What the sentence says of the two is more than that they are related.
        if known != "RELATED_TO" or {normal(source), normal(target)} not in found:
            self._claim(one, other, known, fact.strip() if isinstance(fact, str) else "")
        return True

    def _pair(self, key: str, value: Any, me: int | None, depth: int) -> None:
        own = key.upper() if key.upper() in self._kinds.relation_types else ""
        relation, type_ = _KEYS.get(key, (own, "concept"))
        found = None
        if isinstance(value, dict | list):
            found = self._walk(value, me, depth + 1)
        elif isinstance(value, str) and relation and me is not None and len(value) <= _MAX_VALUE_LENGTH:
            is_file = has_extension(value) and type_ == "concept"
            found = self._entity(value, "file" if is_file else type_) if cleaned(value) else None
        elif isinstance(value, str) and " " in value.strip():
            # A text in JSON may be escaped there: where its words stand is told as far as they stand as they are.
            begin = self._place(value)
            self._together.add(extract(value, at=self._at), begin)
        if me is not None and found is not None and found != me:
            self._claim(me, found, relation or "RELATED_TO")

    def _type_of(self, value: Mapping[str, Any]) -> str:
        for given in map(value.get, _TYPE_KEYS):
            if isinstance(given, str) and given.lower() in self._kinds.entity_types:
                return given.lower()
        is_person = any(_KEYS.get(key, ("",))[0] in _PERSONAL for key in value) or not _OF_PEOPLE.isdisjoint(value)
        return "person" if is_person else "concept"

    def _entity(self, name: str, type_: str) -> int:
        kept = cleaned(name)[:MAX_NAME_CHARACTERS]
        start = self._place(name)
        spans = ((start, start + len(name)),) if self._content[start : start + len(name)] == name else ()
        return self._together.place(Found(kept, type_, spans))

    def _claim(self, source: int, target: int, relation: str, fact: str = "") -> None:
        entities = self._together.entities
        is_person = entities[source].type == "person"
        type_ = relation if is_person or fact else _FOR_THINGS.get(relation, relation)
        fact = fact or f"{entities[source].name} {type_.replace('_', ' ').lower()} {entities[target].name}"
        span = entities[target].spans[-1] if entities[target].spans else (0, 0)
        self._together.claims.append(Claim(source, target, type_, fact, span))

    def _place(self, text: str) -> int:
        """Return where a text stands in the JSON, after what was read before, else anywhere, else 0."""
        found = self._content.find(text, self._from)
        if found < 0:
            found = self._content.find(text)
        self._from = max(self._from, found)
        return max(found, 0)


def _key(key: str) -> str:
    return re.sub(r"[\s-]+", "_", _HUMPS.sub("_", key)).strip("_").lower()


def _with_plain_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {_key(key): value for key, value in pairs}
