"""Results of an extraction: entities, claims, dates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from commonplace.dataclasses import dataclass, replace
from commonplace.dates import Mention

UNMARKED: Final = "nothing says that it has changed"
SENSITIVE: Final = "health, doses, money and access are for a person to settle"
UNSURE: Final = "the words leave open whether it has changed, and for whom"
BESIDE: Final = "it may hold beside others"
AT_TIMES: Final = "it holds again and again, and not in between"
"""Reasons why a newer value does not end an older one. With `UNMARKED`, `SENSITIVE` and `UNSURE` both are disputed,
with `BESIDE` both hold; a value with `AT_TIMES` neither ends another one nor is ended by it.
"""


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity that a text names.

    Attributes:
        name: for display, the longest plain form in the text: `auth.ts`, `Mira Okafor`, `billing service`.
        type: one of `ENTITY_TYPES` or a type of the caller.
        spans: of its mentions, pronouns included, in characters, half-open, in order.
        aliases: other forms in this text: `the auth module`, `Okafor`.
        confidence: from 0 to 1.
    """

    name: str
    type: str
    spans: tuple[tuple[int, int], ...]
    aliases: tuple[str, ...] = ()
    confidence: float = 1.0


def outermost(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the spans that are not within another one, in order; a surname also occurs in the full name."""
    outer: list[tuple[int, int]] = []
    for start, end in sorted(set(spans), key=lambda span: (span[0], -span[1])):
        if not outer or start >= outer[-1][1]:
            outer.append((start, end))
    return tuple(outer)


_ENDS: Final = ("source", "target", "successor")
Statement = TypeVar("Statement", bound="_OfEntities")


class _OfEntities:
    """A statement of a text about entities, given as indexes in `Extraction.entities`; None if not stated."""

    __slots__ = ()
    span: tuple[int, int]

    @property
    def ends(self) -> set[int]:
        """The indexes of the entities that it is about."""
        return {end for name in _ENDS if (end := getattr(self, name, None)) is not None}

    def moved(self: Statement, places: Mapping[int, int], by: int = 0) -> Statement:
        """Return a copy with new indexes of its entities, and its span moved by `by` characters."""
        ends = {name: places.get(end) for name in _ENDS if (end := getattr(self, name, None)) is not None}
        return replace(self, span=(self.span[0] + by, self.span[1] + by), **ends)  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class Claim(_OfEntities):
    """A fact between two entities.

    Attributes:
        source, target: indexes in `Extraction.entities`.
        type: one of `RELATION_TYPES`.
        fact: the sentence that states it, understandable by itself.
        span: of that sentence in the text, in characters, half-open.
        valid_from, valid_to: when it holds in the world, seconds since the epoch, half-open; None is unknown or open.
        is_end: the text says that the fact ends, at `valid_to` or by the time of the text.
        confidence: from 0 to 1.
        is_former: the text says that it held once, from `valid_from` to `valid_to` if known, not whether it still does.
        aspect: the attribute of the source that has one value at a time (`editor`); "" if the type alone decides.
        doubt: why it must not end an older fact by rule, "" if it may.
        is_return: what had ended holds again: `switched back to Vim`.
    """

    source: int
    target: int
    type: str
    fact: str
    span: tuple[int, int]
    valid_from: float | None = None
    valid_to: float | None = None
    is_end: bool = False
    confidence: float = 1.0
    is_former: bool = False
    aspect: str = ""
    doubt: str = ""
    is_return: bool = False


@dataclass(frozen=True, slots=True)
class Departure(_OfEntities):
    """Something that is no longer used, owned or done; the text need not say by whom.

    Attributes:
        target: index in `Extraction.entities` of what is gone.
        successor: index of what replaces it, None if the text does not say.
        source: index of the person who left it, None if it is gone for everybody.
        type, aspect: of the facts that end; "" for any.
        is_own: the speaker left it, so it is gone for the speaker's things too.
        fact, span, doubt, valid_to: as in a `Claim`.
    """

    target: int
    fact: str
    span: tuple[int, int]
    successor: int | None = None
    source: int | None = None
    doubt: str = ""
    is_own: bool = False
    valid_to: float | None = None
    type: str = ""
    aspect: str = ""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The entities of a text, in the order of first mention, and its claims, dates and departures, in its order."""

    entities: tuple[ExtractedEntity, ...] = ()
    claims: tuple[Claim, ...] = ()
    dates: tuple[Mention, ...] = ()
    departures: tuple[Departure, ...] = ()

    @property
    def stated(self) -> set[int]:
        """The indexes of the entities that claims or departures are about."""
        statements = (*self.claims, *self.departures)
        return {end for statement in statements for end in statement.ends}

    def only(self, kept_indexes: Iterable[int]) -> Extraction:
        """Return a copy with only the entities of these indexes, and the claims and departures about them alone."""
        indexes = {old: new for new, old in enumerate(sorted(kept_indexes))}
        return replace(
            self,
            entities=tuple(self.entities[index] for index in indexes),
            claims=tuple(claim.moved(indexes) for claim in self.claims if claim.ends <= indexes.keys()),
            departures=tuple(departure.moved(indexes) for departure in self.departures if departure.target in indexes),
        )
