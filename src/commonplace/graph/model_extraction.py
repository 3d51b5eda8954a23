"""Extract entities and facts with a language model, checked against the text; fall back to rules.

The text enters the prompt as a JSON string, labelled as data.

Every part of an answer must be supported by the text: each name occurs in it, each fact in a sentence that names one of
its ends, each date among the dates found. So a wrong or misled model can select from the text but add nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass, replace
from commonplace.dates import Mention, mentions
from commonplace.dates.time import iso, moment_in_words
from commonplace.errors import ProviderError, UsageError
from commonplace.extract.modality import HEARSAY, is_passed_on
from commonplace.extract.model import Claim, ExtractedEntity, Extraction, outermost
from commonplace.graph.extraction import understand
from commonplace.graph.kinds import Kinds
from commonplace.graph.names import MAX_NAME_CHARACTERS, cleaned, normal
from commonplace.lazy_regex import lazy_pattern
from commonplace.models.contract import Generator, Message
from commonplace.models.llm import json_of
from commonplace.text.sentences import stretches
from commonplace.text.words import word_lists
from commonplace.types.graph import EpisodeSource

_DAY_S: Final = 86_400.0
"""Tolerance for dates of a model that may count days in another timezone than UTC."""
_APART: Final = lazy_pattern(r"[\s-]+")
MAX_ENTITIES: Final = 200
MAX_FACTS: Final = 300
"""Limits of one answer; a longer one is a fault of the model."""
_MAX_SPANS: Final = 100
_MAX_FACT_LENGTH: Final = 300
_SURE: Final = 0.8
_LESS_SURE: Final = 0.6
"""Confidence of a fact with one end that is not named in its sentence, but supplied by the model."""
THE_USER: Final = "the user"
_SPEAKING: Final = lazy_pattern(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself)\b(?!['’/]?\w)|\bI(?=['’])")
_PRONOUNS: Final = frozenset(
    "i me my mine myself you your yours he him his she her hers it its we us our ours they them their theirs this that "
    "these those who whom which what someone somebody everyone one here there".split()
)
_LETTER: Final = lazy_pattern(r"[^\W_]")
_PLAIN: Final = lazy_pattern("[A-Za-z0-9_]")
MAX_CHARACTERS: Final = 12_000
"""Maximum length of a text for a model; the entities and facts of a longer one would not fit into one answer."""
_TRIES: Final = 2
_MAX_ECHO_LENGTH: Final = 4_000
_OPTIONS: Final = {"temperature": 0.0}


def moment(date: str, now: float, dates: Sequence[Mention]) -> float | None:
    """Return the beginning of a date, in seconds since the epoch; None if it is malformed or not among `dates`.

    It is ISO 8601, a year or a month alone included, or the words of the text.
    """
    try:
        timestamp = moment_in_words("date", date, now, is_start=True)
    except UsageError:
        return None
    for mention in dates:
        ends = [end for end in (mention.since, mention.until) if isfinite(end)]  # one if it is open
        if ends and ends[0] - _DAY_S <= timestamp <= ends[-1] + _DAY_S:
            return timestamp
    return None


_NAMES_OF: Final = word_lists(Path(__file__).with_name("model_types.txt"))
_TYPE_OF: Final = {name: type_ for type_, names in _NAMES_OF.items() for name in names}
"""Types of this package, by what models call them."""


def entity_type(label: str, kinds: Kinds) -> str:
    """Return the entity type that a model means, `concept` if unknown; "" for dates and numbers."""
    name = _APART.sub("_", label.strip()).lower()
    return name if name in kinds.entity_types else _TYPE_OF.get(name, "concept")


def relation_type(label: str, kinds: Kinds) -> str:
    """Return the relation type that a model means, `RELATED_TO` if unknown."""
    name = _APART.sub("_", label.strip()).upper()
    return name if name in kinds.relation_types else _TYPE_OF.get(name, "RELATED_TO")


@dataclass(frozen=True, slots=True)
class Text:
    """A text to read, when it was written, and who says `I` in it; "" is the user."""

    content: str
    at: float
    kinds: Kinds
    speaker: str = ""


def borne_out(answer: Any, text: Text) -> tuple[Extraction, int]:
    """Return the part of a model's answer that the text supports, and the number of items skipped.

    Raises:
        ProviderError: it has the wrong form, exceeds a limit, or is not supported; says so in words for the model.
    """
    if not isinstance(answer, Mapping):
        raise ProviderError("the answer is not a JSON object")
    for name, most in (("entities", MAX_ENTITIES), ("facts", MAX_FACTS)):
        value = answer.get(name)
        if not isinstance(value, list):
            raise ProviderError(f'the answer has no list "{name}"')
        if len(value) > most:
            raise ProviderError(f"the answer has {len(value):,} {name}, the limit is {most}")
    entities, facts = answer["entities"], answer["facts"]
    reading = _Reading(text)
    results = [reading.entity(item) for item in entities] + [reading.fact(item) for item in facts]
    extraction, left_out = reading.extraction(), results.count(False)
    if left_out and not extraction.entities:
        raise ProviderError(
            f"none of the {len(entities):,} entities and {len(facts):,} facts of the answer are in the text, "
            'as objects with the texts "name" and "type", or "source", "type", "target" and "quote"'
        )
    return extraction, left_out


class _Reading:
    """Takes the items of an answer one by one and keeps those that the text supports."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._content = text.content
        self._sentences = [(stretch.start, stretch.end) for stretch in stretches(text.content)]
        now = datetime.fromtimestamp(text.at, UTC)
        self._dates = mentions(text.content, now=now)
        # Accept either reading of an ambiguous date: the model may know better which `May` is meant.
        later = mentions(text.content, now=now, prefer="future") if self._dates else ()
        self._times = (*self._dates, *later)
        self._entities: list[ExtractedEntity] = []
        self._indexes: dict[str, int] = {}
        self._claims: dict[tuple[int, int, str, int, bool], Claim] = {}

    def entity(self, item: Any) -> bool:
        """Take an entity; return False if it is not in the text."""
        name, type_ = _strings(item, "name", "type")
        kind = entity_type(type_, self._text.kinds) if name and type_ else ""
        # A date or a number is no entity here, but no mistake either.
        return self._index_of(name, kind) is not None if kind else bool(name and type_)

    def fact(self, entry: Any) -> bool:
        """Take a fact; return False if the text does not support it."""
        source_name, target_name, type_, quote = _strings(entry, "source", "target", "type", "quote")
        if not (source_name and target_name and type_):
            return False
        source, target = (self._index_of(name, "concept") for name in (source_name, target_name))
        if source is None or target is None or source == target:
            return False
        by_end = [self._entities[index].spans for index in (source, target)]
        # Its span: the sentences of its quote, else the first sentence that names both ends.
        spans = (item for item in self._sentences if all(any(_holds(item, one) for one in ends) for ends in by_end))
        span = next(spans, None)
        if quoted := _spans(quote, self._content)[:1]:
            start, end = quoted[0]
            around = [item for item in self._sentences if item[0] < end and start < item[1]]
            span = min([start, *(item[0] for item in around)]), max([end, *(item[1] for item in around)])
        if span is None or self._content[slice(*span)].rstrip().endswith("?"):
            return False
        within = [[one[0] for one in ends if _holds(span, one)] for ends in by_end]
        if not any(within):
            return False
        confidence = _SURE if all(within) else _LESS_SURE
        if is_passed_on(self._content, span, max(starts[0] for starts in within if starts)):
            confidence = min(confidence, HEARSAY)
        since, until = (moment(date, self._text.at, self._times) for date in _strings(entry, "valid_from", "valid_to"))
        if since is not None and until is not None and until <= since:
            since = until = None
        sentence = cleaned(self._content[slice(*span)])[:_MAX_FACT_LENGTH]
        # A sentence that names only one end is unclear by itself.
        fact = sentence if all(within) else f"{self._entities[source].name}: {sentence}"
        kind, is_end = relation_type(type_, self._text.kinds), entry.get("ended") is True
        claim = Claim(source, target, kind, fact, span, since, until, is_end, confidence)
        self._claims.setdefault((source, target, kind, span[0], is_end), claim)
        return True

    def extraction(self) -> Extraction:
        """Return the items kept, in the order of the text."""
        order = sorted(range(len(self._entities)), key=lambda index: self._entities[index].spans[0])
        moved = {index: position for position, index in enumerate(order)}
        claims = [replace(item, source=moved[item.source], target=moved[item.target]) for item in self._claims.values()]
        claims.sort(key=lambda item: (item.span, item.source, item.target, item.type))
        return Extraction(tuple(self._entities[index] for index in order), tuple(claims), self._dates)

    def _index_of(self, name: str, type_: str) -> int | None:
        """Return the index of an entity, added if new; None if the text does not name it."""
        index = self._indexes.get(normal(name))
        if index is not None:
            if self._entities[index].type == "concept":
                self._entities[index] = replace(self._entities[index], type=type_)
            return index
        spelling = cleaned(name)
        spans = _spans(spelling, self._content)
        if spelling == (self._text.speaker or THE_USER):  # the speaker need not be named
            spans = outermost((*spans, *(match.span() for match in _SPEAKING.finditer(self._content)))[:_MAX_SPANS])
        elif len(spelling) > MAX_NAME_CHARACTERS or not _LETTER.search(spelling) or spelling.casefold() in _PRONOUNS:
            return None
        elif spans:
            spelling = cleaned(self._content[slice(*spans[0])])
        if not spans:
            return None
        self._indexes[normal(name)] = len(self._entities)
        self._entities.append(ExtractedEntity(spelling, type_, spans, (), _SURE))
        return len(self._entities) - 1


def _holds(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _spans(name: str, content: str) -> tuple[tuple[int, int], ...]:
    """Return where a name occurs as whole words, in any spacing; ignore case only if it does not occur as written."""
    words = name.split()
    if not words:
        return ()
    left = r"(?<![A-Za-z0-9_])" if _PLAIN.match(name) else ""
    right = r"(?![A-Za-z0-9_])" if _PLAIN.match(name.rstrip()[-1]) else ""
    pattern = left + r"\s+".join(map(re.escape, words)) + right
    for flags in (0, re.IGNORECASE):
        matches = tuple(match.span() for match in islice(re.finditer(pattern, content, flags), _MAX_SPANS))
        if matches:
            return matches
    return ()


def _strings(record: Any, *names: str) -> list[str]:
    values = [record.get(name) if isinstance(record, Mapping) else None for name in names]
    return [value if isinstance(value, str) else "" for value in values]


TASK: Final = Path(__file__).with_name("extraction_prompt.txt").read_text(encoding="utf-8").rstrip("\n")


@dataclass(frozen=True, slots=True)
class Understood:
    """The extraction of an episode; degraded if the model failed and the rules read it instead."""

    extraction: Extraction
    is_degraded: bool = False
    notices: tuple[str, ...] = ()


def read(text: Text, source: EpisodeSource, open_generator: Callable[[], Generator] | None) -> Understood:
    """Extract an episode with a language model; with the rules, and a notice, if that fails.

    JSON is always read by the rules, since its keys are explicit.

    Args:
        open_generator: called only if there is something to ask; None uses the rules alone.

    Raises:
        UsageError: the model's name is malformed, or the source is "json" and the content is not JSON.
    """
    notices: tuple[str, ...] = ()
    if open_generator is not None and source != "json" and text.content.strip():
        try:
            extraction, left_out = _ask(open_generator, text)
        except ProviderError as error:
            notices = (f"the text was read by the rules, for the language model did not: {error}",)
        else:
            notice = f"{left_out} of the things that the language model named are not in the text, and were skipped"
            return Understood(extraction, False, (notice,) if left_out else ())
    by_rules = understand(text.content, source, text.at, text.kinds, speaker=text.speaker)
    return Understood(by_rules, bool(notices), notices)


def _ask(open_generator: Callable[[], Generator], text: Text) -> tuple[Extraction, int]:
    if len(text.content) > MAX_CHARACTERS:
        problem = f"the text has {len(text.content):,} characters, the limit is {MAX_CHARACTERS:,}"
        raise ProviderError(problem, remedy="add it in parts")
    generator, schema = open_generator(), _schema(text.kinds)
    data = {
        "written_at": iso(text.at),
        "speaker": text.speaker or THE_USER,
        "entity_types": text.kinds.entity_types,
        "relation_types": text.kinds.relation_types,
        "text": text.content,
    }
    messages = [Message("system", TASK), Message("user", json.dumps(data, ensure_ascii=False))]
    for tries_left in reversed(range(_TRIES)):
        answer = generator.generate(messages, schema=schema, options=_OPTIONS).text
        try:
            return borne_out(json_of(answer), text)
        except ProviderError as error:
            if not tries_left:
                problem = f"{generator.name} answered twice with what is of no use: {error.args[0]}"
                raise ProviderError(problem, remedy="try again, or choose another model") from error
            fault = f"That answer cannot be used: {error.args[0]}. Give the whole answer once more, as one JSON object."
            messages += [Message("assistant", answer[:_MAX_ECHO_LENGTH]), Message("user", fault)]
    raise AssertionError


def _schema(kinds: Kinds) -> Mapping[str, Any]:
    """Return the JSON schema of an answer, in the strict form that providers require."""

    def object_of(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    string, date = {"type": "string"}, {"type": ["string", "null"]}
    entity = object_of(name=string, type={"type": "string", "enum": list(kinds.entity_types)})
    fact = object_of(
        source=string,
        type={"type": "string", "enum": list(kinds.relation_types)},
        target=string,
        quote=string,
        valid_from=date,
        valid_to=date,
        ended={"type": "boolean"},
    )
    return object_of(entities={"type": "array", "items": entity}, facts={"type": "array", "items": fact})
