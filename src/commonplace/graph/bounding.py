"""Keep what one episode brings within bounds: it is written in one transaction, for which other writers wait.

It knows what an extraction is, no store.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from commonplace.extract.result import Cancellation, Claim, Extraction

MOST_ENTITIES: Final = 1_000
MOST_FACTS: Final = 1_000
"""An episode that says more is a document, and its parts say more of each thing."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """What of an extraction goes into the graph, and what is to be said of the rest."""

    extraction: Extraction
    notices: tuple[str, ...] = ()


def bounded(extraction: Extraction) -> Bounded:
    """Return the first facts of an extraction, with what they are about, and the entities that are named most often.

    What is kept stays in its order; of entities that are named equally often the first come first.
    """
    entities, claims = extraction.entities, extraction.claims
    if len(entities) <= MOST_ENTITIES and len(claims) <= MOST_FACTS:
        return Bounded(extraction)
    kept, ends = _first(claims)
    often = sorted(range(len(entities)), key=lambda place: (place not in ends, -len(entities[place].spans), place))
    places = {old: new for new, old in enumerate(sorted(often[:MOST_ENTITIES]))}
    moved = tuple(replace(each, source=places[each.source], target=places[each.target]) for each in kept)
    notices = [
        f"the graph took {most:,} of the {found:,} {what} in it: give it in parts to have them all"
        for what, most, found in (("facts", len(kept), len(claims)), ("entities", len(places), len(entities)))
        if most < found
    ]
    chosen = tuple(entities[place] for place in places)
    # Of whom nobody can tell any more, it would be taken for anybody's.
    left = [each for each in extraction.cancellations[:MOST_FACTS] if _ends(each) <= places.keys()]
    called_off = tuple(each.moved(places) for each in left)
    return Bounded(replace(extraction, entities=chosen, claims=moved, cancellations=called_off), tuple(notices))


def _ends(called_off: Cancellation) -> set[int]:
    return {each for each in (called_off.source, called_off.target, called_off.kept) if each is not None}


def _first(claims: tuple[Claim, ...]) -> tuple[list[Claim], set[int]]:
    """Return the first claims that are within the bounds, and the places of the entities that they are about."""
    kept: list[Claim] = []
    ends: set[int] = set()
    for claim in claims:
        new = {claim.source, claim.target} - ends
        if len(kept) < MOST_FACTS and len(ends) + len(new) <= MOST_ENTITIES:
            kept.append(claim)
            ends |= new
    return kept, ends
