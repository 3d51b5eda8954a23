"""Make an extraction of what a language model says of a text, as far as the text bears it out. It asks no model.

Nothing comes of an answer that the text does not hold: a name stands there, a fact is said in a sentence of it that
names one of its two ends, a date is one that the text speaks of. So a model that is wrong, or was misled by the text,
can choose among what stands there, and add nothing to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from commonplace.errors import ProviderError
from commonplace.extract.hearsay import HEARSAY, is_passed_on
from commonplace.extract.result import Claim, Extraction, Found
from commonplace.extract.sentences import Stretch, stretches
from commonplace.graph.kinds import Kinds
from commonplace.graph.model_dates import Dates
from commonplace.graph.model_types import entity_type, relation_type
from commonplace.graph.naming import MAX_NAME_CHARACTERS, cleaned, normal

MOST_ENTITIES: Final = 200
MOST_FACTS: Final = 300
"""More of one part of a text is no reading of it, but a fault."""
_MOST_ALIASES: Final = 8
_MOST_SPANS: Final = 100
_LONGEST_FACT: Final = 300
_SURE: Final = 0.8
_LESS_SURE: Final = 0.6
"""One end of the fact is not named in its sentence: who is meant there, the model says alone."""

THE_USER: Final = "the user"
_SPEAKING: Final = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself)\b(?!['’/]?\w)|\bI(?=['’])")
_PRONOUNS: Final = frozenset(
    "i me my mine myself you your yours he him his she her hers it its we us our ours they them their theirs this that "
    "these those who whom which what someone somebody everyone one here there".split()
)
_LETTER: Final = re.compile(r"[^\W_]")


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


@dataclass(frozen=True, slots=True)
class Borne:
    """What of an answer the text bears out, and how many things of it were left out."""

    extraction: Extraction
    left_out: int = 0


def borne_out(answer: Any, text: Text) -> Borne:
    """Return what of a model's answer the text bears out.

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
    borne = reading.result()
    if borne.left_out and not borne.extraction.entities:
        raise ProviderError(
            f"none of the {len(entities):,} entities and {len(facts):,} facts of the answer are in the text, "
            'as objects with the texts "name" and "type", or "source", "type", "target" and "quote"'
        )
    return borne


def _lists(answer: Any) -> tuple[list[Any], list[Any]]:
    """Return the two lists of an answer."""
    if not isinstance(answer, Mapping):
        raise ProviderError("the answer is no JSON object")
    found = []
    for name, most in (("entities", MOST_ENTITIES), ("facts", MOST_FACTS)):
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
        self._dates = Dates(text.content, text.at)
        self._entities: list[Found] = []
        self._places: dict[str, int] = {}
        self._claims: dict[tuple[int, int, str, int, bool], Claim] = {}
        self._left_out = 0

    def entity(self, given: Any) -> None:
        """Take an entity."""
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
        """Take a fact."""
        claim = self._claim(given)
        if claim is None:
            self._left_out += 1
        else:
            self._claims.setdefault((claim.source, claim.target, claim.type, claim.span[0], claim.is_end), claim)

    def result(self) -> Borne:
        """Return what was kept, in the order of the text."""
        order = sorted(range(len(self._entities)), key=lambda place: self._entities[place].spans[0])
        moved = {place: number for number, place in enumerate(order)}
        claims = [replace(each, source=moved[each.source], target=moved[each.target]) for each in self._claims.values()]
        claims.sort(key=lambda each: (each.span, each.source, each.target, each.type))
        entities = tuple(self._entities[place] for place in order)
        return Borne(Extraction(entities, tuple(claims), self._dates.found), self._left_out)

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
        for alias in islice((each for each in aliases if isinstance(each, str)), _MOST_ALIASES):
            written, spans = self._named(alias)
            entity = self._entities[place]
            if spans and normal(alias) not in self._places:
                self._places[normal(alias)] = place
                self._entities[place] = replace(
                    entity, aliases=(*entity.aliases, written), spans=_outermost((*entity.spans, *spans))
                )

    def _named(self, name: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """Return a name as the text has it, and where; who speaks need not be named there."""
        kept = cleaned(name)
        if kept in (self._text.speaker or THE_USER,):
            spans = (*_spans(kept, self._content), *(match.span() for match in _SPEAKING.finditer(self._content)))
            return kept, _outermost(spans[:_MOST_SPANS])
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
        since, until = (self._dates.moment(_string(given, key)) for key in ("valid_from", "valid_to"))
        if since is not None and until is not None and until <= since:
            since = until = None
        fact = self._sentence(_string(given, "fact"), span, source, target, has_both=all(ends))
        kind = relation_type(type_, self._text.kinds)
        sure = _SURE if all(ends) else _LESS_SURE
        if is_passed_on(self._content, span, self._place_in(span, source, target)):
            sure = min(sure, HEARSAY)
        return Claim(source, target, kind, fact, span, since, until, is_end, sure)

    def _place_in(self, span: tuple[int, int], source: int, target: int) -> int:
        """Return where the last of two entities stands first in a sentence."""
        first = [
            next((start for start, end in self._entities[place].spans if span[0] <= start and end <= span[1]), span[0])
            for place in (source, target)
        ]
        return max(first)

    def _said(self, quote: str, source: int, target: int) -> tuple[int, int] | None:
        """Return where a fact is said: where the quote stands, else the first sentence that names both ends."""
        found = next(iter(_spans(quote, self._content)), None)
        if found is not None:
            holding = [each for each in self._sentences if each.start < found[1] and found[0] < each.end]
            return _around(holding, found)
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
        if has_both and len(own) <= _LONGEST_FACT:
            return own
        names = [self._entities[place].name for place in (source, target)]
        said = cleaned(given)
        if said and len(said) <= _LONGEST_FACT and all(name.casefold() in said.casefold() for name in names):
            return said
        return f"{names[0]}: {own[:_LONGEST_FACT]}" if not has_both else own[:_LONGEST_FACT]


def _around(holding: Sequence[Stretch], found: tuple[int, int]) -> tuple[int, int]:
    """Return a quote with the sentences that it is of, so that none is cut from what it depends on."""
    if not holding:
        return found
    return min(holding[0].start, found[0]), max(holding[-1].end, found[1])


def _spans(name: str, content: str) -> tuple[tuple[int, int], ...]:
    """Return where words stand in a text as whole words, spaces aside; in any case where not as written."""
    words = name.split()
    if not words:
        return ()
    left = r"(?<![A-Za-z0-9_])" if _is_plain(name[0]) else ""
    right = r"(?![A-Za-z0-9_])" if _is_plain(name.rstrip()[-1]) else ""
    pattern = left + r"\s+".join(map(re.escape, words)) + right
    for flags in (0, re.IGNORECASE):
        found = tuple(match.span() for match in islice(re.finditer(pattern, content, flags), _MOST_SPANS))
        if found:
            return found
    return ()


def _is_plain(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter == "_")


def _outermost(spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the spans that lie in no other, in order: a surname stands in the whole name, too."""
    kept: list[tuple[int, int]] = []
    for start, end in sorted(set(spans), key=lambda span: (span[0], -span[1])):
        if not kept or end > kept[-1][1]:
            kept.append((start, end))
    return tuple(kept)


def _is_within(spans: Sequence[tuple[int, int]], around: tuple[int, int]) -> bool:
    return any(around[0] <= start and end <= around[1] for start, end in spans)


def _string(given: Any, key: str) -> str:
    value = given.get(key) if isinstance(given, Mapping) else None
    return value if isinstance(value, str) else ""
