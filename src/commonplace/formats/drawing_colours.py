"""The colours of a drawing: one for each type of entity, on light and on dark ground."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from commonplace.types.graph import ENTITY_TYPES


@dataclass(frozen=True, slots=True)
class Colours:
    """What fills a box and what lies about it, on light and on dark ground."""

    fill: str
    line: str
    dark_fill: str
    dark_line: str


PALETTE: Final = (
    Colours("#e3eefa", "#2f6fb3", "#16324f", "#6aa9e9"),
    Colours("#eeeef1", "#6b6b76", "#33333b", "#a9a9b5"),
    Colours("#fbe9de", "#b3541e", "#4a2611", "#ef9a66"),
    Colours("#e0f3e7", "#2e7d4f", "#143824", "#67c08b"),
    Colours("#f3e4f7", "#8a3fa0", "#3b1c45", "#c98adb"),
    Colours("#def3f4", "#0f7b83", "#0c3a3e", "#58c3cb"),
    Colours("#f8f0d0", "#8a6d00", "#3d3205", "#d6b83f"),
    Colours("#fbe3eb", "#b3305f", "#4a1428", "#ee84a8"),
    Colours("#e8e6fa", "#5a52b8", "#262254", "#a49df0"),
    Colours("#eef4d8", "#5f7a12", "#2c380b", "#a9c455"),
)
"""In the order of `ENTITY_TYPES`, so that a type has the same colour in every drawing."""


def colours_of(types: Iterable[str]) -> dict[str, int]:
    """Return the place in `PALETTE` of each type, sorted: users' own types take what the others leave, then share."""
    present = set(types)
    known = {type_: ENTITY_TYPES.index(type_) for type_ in ENTITY_TYPES if type_ in present}
    free = [place for place in range(len(PALETTE)) if place not in known.values()] or list(range(len(PALETTE)))
    own = {type_: free[number % len(free)] for number, type_ in enumerate(sorted(present - known.keys()))}
    return dict(sorted((known | own).items()))
