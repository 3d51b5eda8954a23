"""Say in one line each what an extraction found, for tests to compare."""

from __future__ import annotations

from datetime import UTC, datetime

from commonplace.extract import Claim, Extraction, extract

WRITTEN = datetime(2026, 3, 10, tzinfo=UTC).timestamp()
"""A Tuesday."""


def extracted(text: str, *, speaker: str = "") -> Extraction:
    return extract(text, at=WRITTEN, speaker=speaker)


def claims(text: str, *, speaker: str = "") -> list[str]:
    """Return `source RELATION target`, with `since …`, `until …`, and `ended` or `once` where it is so."""
    found = extracted(text, speaker=speaker)
    return [_line(found, claim) for claim in found.claims]


def _line(found: Extraction, claim: Claim) -> str:
    line = f"{found.entities[claim.source].name} {claim.type} {found.entities[claim.target].name}"
    for word, moment in (("since", claim.valid_from), ("until", claim.valid_to)):
        if moment is not None:
            line += f" {word} {datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"
    return line + " ended" * claim.is_end + " once" * claim.is_former


def names(text: str) -> list[str]:
    """Return `name type` of each entity."""
    return [f"{entity.name} {entity.type}" for entity in extracted(text).entities]
