"""What the page asks beside the operations of `/v1`: answers that are put together for one part of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.server.operations import Operation

if TYPE_CHECKING:
    from commonplace.engine import Engine

BELOW: Final = 10
"""So many of those that are not shown are told beside the hits."""


def lab(
    engine: Engine,
    query: str,
    limit: int | None = None,
    kinds: Sequence[str] | None = None,
    method: str | None = None,
    as_of: str | None = None,
    also: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Search; return the hits, the next ones that are not shown with the reason of each, and what was said of them."""
    found = engine.search(query, limit, kinds, method, as_of=as_of, also=also)  # type: ignore[arg-type]
    most = max(len(found.hits), limit or 0) + BELOW
    every = engine.search(query, most, kinds, method, as_of=as_of, also=also, min_score=0.0)  # type: ignore[arg-type]
    shown = {hit.id for hit in found.hits}
    below = [hit.id for hit in every.hits if hit.id not in shown][:BELOW]
    rejected = {each.number: each.rejected for each in found.trace.candidates}
    asked = " ".join(query.split())
    return {
        "found": found,
        "below": [each for each in every.to_dict()["hits"] if each["id"] in below],
        "reasons": {id_: rejected.get(every.trace.numbers.get(id_, -1)) for id_ in below},
        "floor": found.trace.min_score,
        "golden": next((each for each in engine.golden_queries() if each.query == asked), None),
    }


PAGE_OPERATIONS: Final = (Operation("page_recall", "POST", "/page/recall", "read", lab, "Page"),)
