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
"""Why a newer value ends no older one: with the last both hold, with the others both are disputed."""


@dataclass(frozen=True, slots=True)
class Found:
    """An entity that a text names.

    Attributes:
        name: as it is to be shown, the longest plain form in the text: `auth.ts`, `Mira Okafor`, `billing service`.
        type: one of `ENTITY_TYPES` or of the caller's own.
        spans: where it is mentioned, pronouns included, in characters, half-open, in order.
        aliases: other forms in this text that mean the same: `the auth module`, `Okafor`.
        confidence: from 0 to 1.
    """

    name: str
    type: str
    spans: tuple[tuple[int, int], ...]
    aliases: tuple[str, ...] = ()
    confidence: float = 1.0


def outermost(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the spans within no other, in order: a surname also occurs in the whole name."""
    kept: list[tuple[int, int]] = []
    for start, end in sorted(set(spans), key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return tuple(kept)


_ENDS: Final = ("source", "target", "successor")
Statement = TypeVar("Statement", bound="_OfEntities")


class _OfEntities:
    """What a text says of entities: by their places in `Extraction.entities`, None if it does not say."""

    __slots__ = ()
    span: tuple[int, int]

    @property
    def ends(self) -> set[int]:
        """The places of the entities that it names."""
        return {end for name in _ENDS if (end := getattr(self, name, None)) is not None}

    def moved(self: Statement, places: Mapping[int, int], by: int = 0) -> Statement:
        """Return it with the new places of its entities, in a text that begins a number of characters later."""
        ends = {name: places.get(end) for name in _ENDS if (end := getattr(self, name, None)) is not None}
        return replace(self, span=(self.span[0] + by, self.span[1] + by), **ends)  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class Claim(_OfEntities):
    """A fact between two entities.

    Attributes:
        source, target: places in `Extraction.entities`.
        type: one of `RELATION_TYPES`.
        fact: the sentence that says it, understandable by itself.
        span: the place of that sentence in the text, in characters, half-open.
        valid_from, valid_to: seconds since the epoch, in the world, half-open; None is unknown or open.
        is_end: the text says that the fact ends, at `valid_to` or by the time of the text.
        confidence: from 0 to 1.
        is_former: the text says that it was so once, from `valid_from` to `valid_to` where they are known; not what is.
        aspect: of what the source has one target at a time; "" if the type alone decides.
        doubt: why a rule must not end an older fact by it, "" if it may.
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


@dataclass(frozen=True, slots=True)
class Departure(_OfEntities):
    """Something that is used, owned or done no longer, by whom the text need not say.

    Attributes:
        target: the place of what is gone in `Extraction.entities`.
        successor: the place of what replaces it, None if the text does not say.
        source: the place of the person who left it, None if it is gone for all.
        is_own: the speaker left it, so that it is gone for their things too.
        fact, span, doubt, valid_to: as those of a `Claim`.
    """

    target: int
    fact: str
    span: tuple[int, int]
    successor: int | None = None
    source: int | None = None
    doubt: str = ""
    is_own: bool = False
    valid_to: float | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that was found in one text.

    Attributes:
        entities: in the order of their first mention.
        claims: in the order of the text.
        dates: the dates that the text speaks of, in order.
        departures: in the order of the text.
    """

    entities: tuple[Found, ...] = ()
    claims: tuple[Claim, ...] = ()
    dates: tuple[Mention, ...] = ()
    departures: tuple[Departure, ...] = ()

    @property
    def stated(self) -> set[int]:
        """The places of the entities that something is said of."""
        said = (*self.claims, *self.departures)
        return {end for each in said for end in each.ends}

    def only(self, kept: Iterable[int]) -> Extraction:
        """Return it with the entities of some places alone, and what is said of them alone."""
        places = {old: new for new, old in enumerate(sorted(kept))}
        return replace(
            self,
            entities=tuple(self.entities[place] for place in places),
            claims=tuple(claim.moved(places) for claim in self.claims if claim.ends <= places.keys()),
            departures=tuple(departure.moved(places) for departure in self.departures if departure.target in places),
        )
