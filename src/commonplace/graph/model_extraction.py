"""Extract entities and facts with a language model, checked against the text; fall back to rules.

The text enters the prompt as a JSON string, labelled as data.

Every part of an answer must be supported by the text: each name occurs in it, each fact in a sentence that names one of
its ends, each date among the dates found. So a wrong or misled model can select from the text but add nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from commonplace.graph.extraction import Together, understand
from commonplace.graph.kinds import Kinds
from commonplace.graph.names import MAX_NAME_CHARACTERS, cleaned, normal
from commonplace.models.contract import Generator, Message
from commonplace.models.llm import json_of
from commonplace.patterns import late_pattern
from commonplace.text.sentences import stretches
from commonplace.text.words import word_lists
from commonplace.types.graph import EpisodeSource

_DAY_S: Final = 86_400.0
"""A model may count a day in another timezone than ours, which is UTC."""


def moment(given: str, now: datetime, found: Sequence[Mention]) -> float | None:
    """Return the moment that a date names, its beginning; None where it is none, or none of those that were found.

    Args:
        given: ISO 8601, also a year or a month alone, or the words of the text.
    """
    try:
        at = moment_in_words("date", given, now.timestamp(), is_start=True)
    except UsageError:
        return None
    return at if any(_is_of(at, each) for each in found) else None


def _is_of(at: float, date: Mention) -> bool:
    """Return whether a moment is one that a date of the text may mean; of an open stretch it is its one end alone."""
    if isfinite(date.since) and isfinite(date.until):
        return date.since - _DAY_S <= at <= date.until + _DAY_S
    end = date.since if isfinite(date.since) else date.until
    return abs(at - end) <= _DAY_S


_APART: Final = late_pattern(r"[\s-]+")
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
_MAX_ALIASES: Final = 8
_MAX_SPANS: Final = 100
_MAX_FACT_LENGTH: Final = 300
_SURE: Final = 0.8
_LESS_SURE: Final = 0.6
"""One end of the fact is not named in its sentence: who is meant there, the model says alone."""

THE_USER: Final = "the user"
_SPEAKING: Final = late_pattern(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself)\b(?!['’/]?\w)|\bI(?=['’])")
_PRONOUNS: Final = frozenset(
    "i me my mine myself you your yours he him his she her hers it its we us our ours they them their theirs this that "
    "these those who whom which what someone somebody everyone one here there".split()
)
_LETTER: Final = late_pattern(r"[^\W_]")


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
    entities, facts = _lists(answer)
    reading = _Reading(text)
    for each in entities:
        reading.entity(each)
    for each in facts:
        reading.fact(each)
    found, left_out = reading.result()
    if left_out and not found.entities:
        raise ProviderError(
            f"none of the {len(entities):,} entities and {len(facts):,} facts of the answer are in the text, "
            'as objects with the texts "name" and "type", or "source", "type", "target" and "quote"'
        )
    return found, left_out


def _lists(answer: Any) -> tuple[list[Any], list[Any]]:
    if not isinstance(answer, Mapping):
        raise ProviderError("the answer is not a JSON object")
    found = []
    for name, most in (("entities", MAX_ENTITIES), ("facts", MAX_FACTS)):
        value = answer.get(name)
        if not isinstance(value, list):
            raise ProviderError(f'the answer has no list "{name}"')
        if len(value) > most:
            raise ProviderError(f"the answer has {len(value):,} {name}, the limit is {most}")
        found.append(value)
    return found[0], found[1]


class _Reading:
    """Takes the parts of an answer one by one, and keeps what stands in the text."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._content = text.content
        self._sentences = list(stretches(text.content))
        self._now = datetime.fromtimestamp(text.at, UTC)
        self._dates = mentions(text.content, now=self._now)
        # Which `May` is meant, the model may know better than we do.
        later = mentions(text.content, now=self._now, prefer="future") if self._dates else ()
        self._meant = (*self._dates, *later)
        self._entities: list[Found] = []
        self._places: dict[str, int] = {}
        self._claims: dict[tuple[int, int, str, int, bool], Claim] = {}
        self._left_out = 0

    def entity(self, given: Any) -> None:
        name, type_ = (_string(given, key) for key in ("name", "type"))
        aliases = given.get("aliases") if isinstance(given, Mapping) else None
        if name and type_:
            kind = entity_type(type_, self._text.kinds)
            place = self._place(name, kind) if kind else None
            if place is not None:
                self._name_also(place, aliases if isinstance(aliases, list) else [])
                return
            if not kind:
                return  # a date or a number, which is no entity here
        self._left_out += 1

    def fact(self, given: Any) -> None:
        claim = self._claim(given)
        if claim is None:
            self._left_out += 1
        else:
            self._claims.setdefault((claim.source, claim.target, claim.type, claim.span[0], claim.is_end), claim)

    def result(self) -> tuple[Extraction, int]:
        """Return what was kept, in the order of the text, and how many things were not."""
        order = sorted(range(len(self._entities)), key=lambda place: self._entities[place].spans[0])
        moved = {place: number for number, place in enumerate(order)}
        claims = [replace(each, source=moved[each.source], target=moved[each.target]) for each in self._claims.values()]
        claims.sort(key=lambda each: (each.span, each.source, each.target, each.type))
        entities = tuple(self._entities[place] for place in order)
        return Extraction(entities, tuple(claims), self._dates), self._left_out

    def _place(self, name: str, type_: str) -> int | None:
        """Return the place of an entity that the text names, None where it does not."""
        known = self._places.get(normal(name))
        if known is not None:
            if self._entities[known].type == "concept":
                self._entities[known] = replace(self._entities[known], type=type_)
            return known
        written, spans = self._named(name)
        if not spans:
            return None
        self._places[normal(name)] = len(self._entities)
        self._entities.append(Found(written, type_, spans, (), _SURE))
        return len(self._entities) - 1

    def _name_also(self, place: int, aliases: Sequence[Any]) -> None:
        for alias in islice((each for each in aliases if isinstance(each, str)), _MAX_ALIASES):
            written, spans = self._named(alias)
            entity = self._entities[place]
            if spans and normal(alias) not in self._places:
                self._places[normal(alias)] = place
                self._entities[place] = replace(
                    entity, aliases=(*entity.aliases, written), spans=outermost((*entity.spans, *spans))
                )

    def _named(self, name: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """Return a name as the text has it, and where; who speaks need not be named there."""
        kept = cleaned(name)
        if kept in (self._text.speaker or THE_USER,):
            spans = (*_spans(kept, self._content), *(match.span() for match in _SPEAKING.finditer(self._content)))
            return kept, outermost(spans[:_MAX_SPANS])
        if len(kept) > MAX_NAME_CHARACTERS or not _LETTER.search(kept) or kept.casefold() in _PRONOUNS:
            return kept, ()
        spans = _spans(kept, self._content)
        return (cleaned(self._content[slice(*spans[0])]) if spans else kept), spans

    def _claim(self, given: Any) -> Claim | None:
        source_name, target_name, type_ = (_string(given, key) for key in ("source", "target", "type"))
        if not (source_name and target_name and type_):
            return None
        source, target = (self._place(name, "concept") for name in (source_name, target_name))
        if source is None or target is None or source == target:
            return None
        span = self._said(_string(given, "quote"), source, target)
        if span is None or self._content[slice(*span)].rstrip().endswith("?"):
            return None
        ends = [_is_within(self._entities[place].spans, span) for place in (source, target)]
        if not any(ends):
            return None
        is_end = given.get("ended") is True
        since, until = (moment(_string(given, key), self._now, self._meant) for key in ("valid_from", "valid_to"))
        if since is not None and until is not None and until <= since:
            since = until = None
        fact = self._sentence(_string(given, "fact"), span, source, target, has_both=all(ends))
        kind = relation_type(type_, self._text.kinds)
        sure = _SURE if all(ends) else _LESS_SURE
        spans = (self._entities[place].spans for place in (source, target))
        last = max(next((at for at, end in some if span[0] <= at and end <= span[1]), span[0]) for some in spans)
        if is_passed_on(self._content, span, last):
            sure = min(sure, HEARSAY)
        return Claim(source, target, kind, fact, span, since, until, is_end, sure)

    def _said(self, quote: str, source: int, target: int) -> tuple[int, int] | None:
        """Return where a fact is said: where the quote stands, else the first sentence that names both ends."""
        found = next(iter(_spans(quote, self._content)), None)
        if found is not None:
            # With the sentences that it is of, so that none is cut from what it depends on.
            holding = [each for each in self._sentences if each.start < found[1] and found[0] < each.end]
            return min([found[0], *(each.start for each in holding)]), max([found[1], *(each.end for each in holding)])
        one, other = (self._entities[place].spans for place in (source, target))
        return next(
            (
                (each.start, each.end)
                for each in self._sentences
                if _is_within(one, (each.start, each.end)) and _is_within(other, (each.start, each.end))
            ),
            None,
        )

    def _sentence(self, given: str, span: tuple[int, int], source: int, target: int, *, has_both: bool) -> str:
        """Return a sentence that can be understood by itself: the text's own, the model's, or one of the names."""
        own = cleaned(self._content[slice(*span)])
        if has_both and len(own) <= _MAX_FACT_LENGTH:
            return own
        names = [self._entities[place].name for place in (source, target)]
        said = cleaned(given)
        if said and len(said) <= _MAX_FACT_LENGTH and all(name.casefold() in said.casefold() for name in names):
            return said
        return f"{names[0]}: {own[:_MAX_FACT_LENGTH]}" if not has_both else own[:_MAX_FACT_LENGTH]


def _spans(name: str, content: str) -> tuple[tuple[int, int], ...]:
    """Return where words stand in a text as whole words, spaces aside; in any case where not as written."""
    words = name.split()
    if not words:
        return ()
    left = r"(?<![A-Za-z0-9_])" if _is_plain(name[0]) else ""
    right = r"(?![A-Za-z0-9_])" if _is_plain(name.rstrip()[-1]) else ""
    pattern = left + r"\s+".join(map(re.escape, words)) + right
    for flags in (0, re.IGNORECASE):
        found = tuple(match.span() for match in islice(re.finditer(pattern, content, flags), _MAX_SPANS))
        if found:
            return found
    return ()


def _is_plain(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter == "_")


def _is_within(spans: Sequence[tuple[int, int]], around: tuple[int, int]) -> bool:
    return any(around[0] <= start and end <= around[1] for start, end in spans)


def _string(given: Any, key: str) -> str:
    value = given.get(key) if isinstance(given, Mapping) else None
    return value if isinstance(value, str) else ""


PART_CHARACTERS: Final = 6_000
"""So much of a text a model reads at once, so that what it finds fits into one answer."""
MAX_PARTS: Final = 16
_TRIES: Final = 2
_MAX_ECHO_LENGTH: Final = 4_000
_OPTIONS: Final = {"temperature": 0.0}
_CUTS: Final = ("\n\n", "\n", ". ", " ")

TASK: Final = Path(__file__).with_name("task.txt").read_text(encoding="utf-8").rstrip("\n")


@dataclass(frozen=True, slots=True)
class Understood:
    """What an episode says, by whom it was read, and whether that is less than was wanted."""

    extraction: Extraction
    is_degraded: bool = False
    notices: tuple[str, ...] = ()


def read(text: Text, source: EpisodeSource, open_generator: Callable[[], Generator] | None) -> Understood:
    """Return what an episode says by a language model, or by the rules where that fails, which a notice tells.

    JSON is read by the rules: its keys say more than any reader could guess.

    Args:
        open_generator: called where there is something to ask; None leaves all to the rules.

    Raises:
        UsageError: the model's name is malformed, or the source is JSON, and the content is not.
    """
    notices: tuple[str, ...] = ()
    if open_generator is not None and source != "json" and text.content.strip():
        try:
            found, left_out = _by_model(text, open_generator)
        except ProviderError as error:
            notices = (f"the text was read by the rules, for the language model did not: {error}",)
        else:
            told = f"{left_out} of the things that the language model named are not in the text, and were skipped"
            return Understood(found, False, (told,) if left_out else ())
    by_rules = understand(text.content, source, text.at, text.kinds, speaker=text.speaker)
    return Understood(by_rules, bool(notices), notices)


def _by_model(text: Text, open_generator: Callable[[], Generator]) -> tuple[Extraction, int]:
    parts = list(_parts(text.content))
    if len(parts) > MAX_PARTS:
        told = f"the text has {len(text.content):,} characters, too many for {MAX_PARTS} calls"
        raise ProviderError(told, remedy="add it in parts")
    generator = open_generator()
    together, left_out = Together(), 0
    for begin, end in parts:
        found, skipped = _ask(generator, replace(text, content=text.content[begin:end]))
        together.add(found, begin)
        left_out += skipped
    return together.extraction(), left_out


def _ask(generator: Generator, text: Text) -> tuple[Extraction, int]:
    messages = [Message("system", TASK), Message("user", json.dumps(_data(text), ensure_ascii=False))]
    schema = _schema(text.kinds)
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


def _data(text: Text) -> dict[str, Any]:
    return {
        "written_at": iso(text.at),
        "speaker": text.speaker or THE_USER,
        "entity_types": text.kinds.entity_types,
        "relation_types": text.kinds.relation_types,
        "text": text.content,
    }


def _schema(kinds: Kinds) -> Mapping[str, Any]:
    """Return the JSON schema of an answer, in the strict form that providers take."""
    string, date = {"type": "string"}, {"type": ["string", "null"]}
    entity = {
        "name": string,
        "type": {"type": "string", "enum": kinds.entity_types},
        "aliases": {"type": "array", "items": string},
    }
    fact = {
        "source": string,
        "type": {"type": "string", "enum": kinds.relation_types},
        "target": string,
        "fact": string,
        "quote": string,
        "valid_from": date,
        "valid_to": date,
        "ended": {"type": "boolean"},
    }
    lists = {name: {"type": "array", "items": _object(each)} for name, each in (("entities", entity), ("facts", fact))}
    return _object(lists)


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _parts(content: str) -> Iterator[tuple[int, int]]:
    """Yield where a text is cut so that no part is too long: between paragraphs, lines, sentences or words."""
    begin = 0
    while begin < len(content):
        end = begin + PART_CHARACTERS
        if end < len(content):
            cuts = ((content.rfind(cut, begin + PART_CHARACTERS // 2, end), len(cut)) for cut in _CUTS)
            end = next((at + length for at, length in cuts if at >= 0), end)
        if content[begin:end].strip():
            yield begin, min(end, len(content))
        begin = end
