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
from commonplace.extract.model import Claim, Extraction, Found, outermost
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
"""A model may count a day in another timezone than ours, which is UTC."""


def moment(given: str, now: float, found: Sequence[Mention]) -> float | None:
    """Return the moment that a date names, its beginning; None where it is none, or none of those that were found.

    Args:
        given: ISO 8601, also a year or a month alone, or the words of the text.
    """
    try:
        at = moment_in_words("date", given, now, is_start=True)
    except UsageError:
        return None
    for each in found:
        ends = [end for end in (each.since, each.until) if isfinite(end)]  # of an open stretch there is one
        if ends and ends[0] - _DAY_S <= at <= ends[-1] + _DAY_S:
            return at
    return None


_APART: Final = lazy_pattern(r"[\s-]+")
_NO_ENTITY: Final = frozenset(
    "date time datetime duration number quantity amount money percent percentage age url".split()
)
_MEANT: Final = {
    name: type_ for type_, names in word_lists(Path(__file__).with_name("model_types.txt")).items() for name in names
}
"""The types of ours by what models call them."""
_OTHER_ENTITY: Final = "concept"
_OTHER_RELATION: Final = "RELATED_TO"


def entity_type(given: str, kinds: Kinds) -> str:
    """Return the type of ours that a model means, `concept` where it is none; "" for what is not an entity here."""
    name = _APART.sub("_", given.strip()).lower()
    if name in kinds.entity_types:
        return name
    return "" if name in _NO_ENTITY else _MEANT.get(name, _OTHER_ENTITY)


def relation_type(given: str, kinds: Kinds) -> str:
    """Return the type of ours that a model means, `RELATED_TO` where it is none."""
    name = _APART.sub("_", given.strip()).upper()
    return name if name in kinds.relation_types else _MEANT.get(name, _OTHER_RELATION)


MAX_ENTITIES: Final = 200
MAX_FACTS: Final = 300
"""More of one part of a text is no reading of it, but a fault."""
_MAX_SPANS: Final = 100
_MAX_FACT_LENGTH: Final = 300
_SURE: Final = 0.8
_LESS_SURE: Final = 0.6
"""One end of the fact is not named in its sentence: only the model says who it is."""

THE_USER: Final = "the user"
_SPEAKING: Final = lazy_pattern(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself)\b(?!['’/]?\w)|\bI(?=['’])")
_PRONOUNS: Final = frozenset(
    "i me my mine myself you your yours he him his she her hers it its we us our ours they them their theirs this that "
    "these those who whom which what someone somebody everyone one here there".split()
)
_LETTER: Final = lazy_pattern(r"[^\W_]")
_PLAIN: Final = lazy_pattern("[A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Text:
    """A text that a model read, and what it must be seen with.

    Attributes:
        at: when it was written, seconds since the epoch.
        speaker: who `I` is, "" for the user.
    """

    content: str
    at: float
    kinds: Kinds
    speaker: str = ""


def borne_out(answer: Any, text: Text) -> tuple[Extraction, int]:
    """Return what of a model's answer the text bears out, and how many things of it were skipped.

    Raises:
        ProviderError: it is not of the form that was asked for, holds too much, or nothing of it is borne out. The
            message says which, for the model to be told.
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
    kept = [reading.entity(each) for each in entities] + [reading.fact(each) for each in facts]
    found, left_out = reading.extraction(), kept.count(False)
    if left_out and not found.entities:
        raise ProviderError(
            f"none of the {len(entities):,} entities and {len(facts):,} facts of the answer are in the text, "
            'as objects with the texts "name" and "type", or "source", "type", "target" and "quote"'
        )
    return found, left_out


class _Reading:
    """Takes the parts of an answer one by one, and keeps those that the text supports."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._content = text.content
        self._sentences = [(each.start, each.end) for each in stretches(text.content)]
        now = datetime.fromtimestamp(text.at, UTC)
        self._dates = mentions(text.content, now=now)
        # The model may know better than we do which `May` it is.
        later = mentions(text.content, now=now, prefer="future") if self._dates else ()
        self._meant = (*self._dates, *later)
        self._entities: list[Found] = []
        self._places: dict[str, int] = {}
        self._claims: dict[tuple[int, int, str, int, bool], Claim] = {}

    def entity(self, given: Any) -> bool:
        """Take an entity; return False for what is not in the text."""
        name, type_ = _strings(given, "name", "type")
        kind = entity_type(type_, self._text.kinds) if name and type_ else ""
        # A date or a number is no entity here, and no mistake either.
        return self._place(name, kind) is not None if kind else bool(name and type_)

    def fact(self, given: Any) -> bool:
        """Take a fact; return False for what the text does not say."""
        source_name, target_name, type_, quote = _strings(given, "source", "target", "type", "quote")
        if not (source_name and target_name and type_):
            return False
        source, target = (self._place(name, "concept") for name in (source_name, target_name))
        if source is None or target is None or source == target:
            return False
        of_ends = [self._entities[place].spans for place in (source, target)]
        # It is said in the sentences of its quote, else in the first sentence that names both ends.
        spans = (each for each in self._sentences if all(any(_holds(each, one) for one in some) for some in of_ends))
        span = next(spans, None)
        if quoted := _spans(quote, self._content)[:1]:
            start, end = quoted[0]
            around = [each for each in self._sentences if each[0] < end and start < each[1]]
            span = min([start, *(each[0] for each in around)]), max([end, *(each[1] for each in around)])
        if span is None or self._content[slice(*span)].rstrip().endswith("?"):
            return False
        within = [[one[0] for one in some if _holds(span, one)] for some in of_ends]
        if not any(within):
            return False
        sure = _SURE if all(within) else _LESS_SURE
        if is_passed_on(self._content, span, max(some[0] for some in within if some)):
            sure = min(sure, HEARSAY)
        since, until = (moment(each, self._text.at, self._meant) for each in _strings(given, "valid_from", "valid_to"))
        if since is not None and until is not None and until <= since:
            since = until = None
        own = cleaned(self._content[slice(*span)])[:_MAX_FACT_LENGTH]
        # A sentence that names only one end is not understood by itself.
        fact = own if all(within) else f"{self._entities[source].name}: {own}"
        kind, is_end = relation_type(type_, self._text.kinds), given.get("ended") is True
        claim = Claim(source, target, kind, fact, span, since, until, is_end, sure)
        self._claims.setdefault((source, target, kind, span[0], is_end), claim)
        return True

    def extraction(self) -> Extraction:
        """Return what was kept, in the order of the text."""
        order = sorted(range(len(self._entities)), key=lambda place: self._entities[place].spans[0])
        moved = {place: number for number, place in enumerate(order)}
        claims = [replace(each, source=moved[each.source], target=moved[each.target]) for each in self._claims.values()]
        claims.sort(key=lambda each: (each.span, each.source, each.target, each.type))
        return Extraction(tuple(self._entities[place] for place in order), tuple(claims), self._dates)

    def _place(self, name: str, type_: str) -> int | None:
        """Return the place of an entity that the text names, None where it does not."""
        known = self._places.get(normal(name))
        if known is not None:
            if self._entities[known].type == "concept":
                self._entities[known] = replace(self._entities[known], type=type_)
            return known
        kept = cleaned(name)
        spans = _spans(kept, self._content)
        if kept == (self._text.speaker or THE_USER):  # who speaks need not be named
            spans = outermost((*spans, *(match.span() for match in _SPEAKING.finditer(self._content)))[:_MAX_SPANS])
        elif len(kept) > MAX_NAME_CHARACTERS or not _LETTER.search(kept) or kept.casefold() in _PRONOUNS:
            return None
        elif spans:
            kept = cleaned(self._content[slice(*spans[0])])
        if not spans:
            return None
        self._places[normal(name)] = len(self._entities)
        self._entities.append(Found(kept, type_, spans, (), _SURE))
        return len(self._entities) - 1


def _holds(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _spans(name: str, content: str) -> tuple[tuple[int, int], ...]:
    """Return where words occur in a text as whole words, spaces aside; in any case of letters if not as written."""
    words = name.split()
    if not words:
        return ()
    left = r"(?<![A-Za-z0-9_])" if _PLAIN.match(name) else ""
    right = r"(?![A-Za-z0-9_])" if _PLAIN.match(name.rstrip()[-1]) else ""
    pattern = left + r"\s+".join(map(re.escape, words)) + right
    for flags in (0, re.IGNORECASE):
        found = tuple(match.span() for match in islice(re.finditer(pattern, content, flags), _MAX_SPANS))
        if found:
            return found
    return ()


def _strings(given: Any, *names: str) -> list[str]:
    values = [given.get(name) if isinstance(given, Mapping) else None for name in names]
    return [value if isinstance(value, str) else "" for value in values]


MAX_CHARACTERS: Final = 12_000
"""Of a text that a model reads: what it finds in more would not fit into one answer."""
_TRIES: Final = 2
_MAX_ECHO_LENGTH: Final = 4_000
_OPTIONS: Final = {"temperature": 0.0}

TASK: Final = Path(__file__).with_name("extraction_prompt.txt").read_text(encoding="utf-8").rstrip("\n")


@dataclass(frozen=True, slots=True)
class Understood:
    """What an episode says, by whom it was read, and whether that is less than was wanted."""

    extraction: Extraction
    is_degraded: bool = False
    notices: tuple[str, ...] = ()


def read(text: Text, source: EpisodeSource, open_generator: Callable[[], Generator] | None) -> Understood:
    """Return what an episode says by a language model, or by the rules if that fails, with a notice.

    JSON is read by the rules: its keys say more than any reader could guess.

    Args:
        open_generator: called where there is something to ask; None leaves all to the rules.

    Raises:
        UsageError: the model's name is malformed, or the source is JSON, and the content is not.
    """
    notices: tuple[str, ...] = ()
    if open_generator is not None and source != "json" and text.content.strip():
        try:
            found, left_out = _ask(open_generator, text)
        except ProviderError as error:
            notices = (f"the text was read by the rules, for the language model did not: {error}",)
        else:
            told = f"{left_out} of the things that the language model named are not in the text, and were skipped"
            return Understood(found, False, (told,) if left_out else ())
    by_rules = understand(text.content, source, text.at, text.kinds, speaker=text.speaker)
    return Understood(by_rules, bool(notices), notices)


def _ask(open_generator: Callable[[], Generator], text: Text) -> tuple[Extraction, int]:
    if len(text.content) > MAX_CHARACTERS:
        told = f"the text has {len(text.content):,} characters, the limit is {MAX_CHARACTERS:,}"
        raise ProviderError(told, remedy="add it in parts")
    generator, schema = open_generator(), _schema(text.kinds)
    data = {
        "written_at": iso(text.at),
        "speaker": text.speaker or THE_USER,
        "entity_types": text.kinds.entity_types,
        "relation_types": text.kinds.relation_types,
        "text": text.content,
    }
    messages = [Message("system", TASK), Message("user", json.dumps(data, ensure_ascii=False))]
    for left in reversed(range(_TRIES)):
        answer = generator.generate(messages, schema=schema, options=_OPTIONS).text
        try:
            return borne_out(json_of(answer), text)
        except ProviderError as error:
            if not left:
                raise ProviderError(
                    f"{generator.name} answered twice with what is of no use: {error.args[0]}",
                    remedy="try again, or choose another model",
                ) from error
            fault = f"That answer cannot be used: {error.args[0]}. Give the whole answer once more, as one JSON object."
            messages += [Message("assistant", answer[:_MAX_ECHO_LENGTH]), Message("user", fault)]
    raise AssertionError


def _schema(kinds: Kinds) -> Mapping[str, Any]:
    """Return the JSON schema of an answer, in the strict form that providers take."""

    def object_of(**properties: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

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
