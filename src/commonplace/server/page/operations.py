"""What the page asks beside the operations of `/v1`: answers that are put together for one part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.server.operations import Operation

if TYPE_CHECKING:
    from commonplace.engine import Engine

BELOW: Final = 10
"""So many of those that are not shown are told beside the hits."""
RANKED: Final = 30
"""So many of the best are told of when they are not in a context."""
WEAK: Final = 3
"""So many weak memories are in a context at most."""


def lab(
    engine: Engine,
    query: str,
    limit: int | None = None,
    kinds: Sequence[str] | None = None,
    method: str | None = None,
    as_of: str | None = None,
    also: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Search; return the hits, the next ones that are not shown with the reason of each, and what was said of them.

    `words` are those of the query that count.
    """
    found = engine.search(query, limit, kinds, method, as_of=as_of, also=also)  # type: ignore[arg-type]
    most = max(len(found.hits), limit or 0) + BELOW
    every = engine.search(query, most, kinds, method, as_of=as_of, also=also, min_score=0.0)  # type: ignore[arg-type]
    shown = {hit.id for hit in found.hits}
    below = [hit.id for hit in every.hits if hit.id not in shown][:BELOW]
    rejected = {each.number: each.rejected for each in found.trace.candidates}
    words = [engine.why(every, hit.id) for hit in every.hits[:1]]
    asked = " ".join(query.split())
    return {
        "found": found,
        "below": [each for each in every.to_dict()["hits"] if each["id"] in below],
        "reasons": {
            id_: {
                "rejected": rejected.get(every.trace.numbers.get(id_, -1)),
                "missing": engine.why(every, id_).missing_terms,
            }
            for id_ in below
        },
        "words": [word for each in words for word in (*each.matched_terms, *each.missing_terms)],
        "floor": found.trace.min_score,
        "golden": next((each for each in engine.golden_queries() if each.query == asked), None),
    }


def reading(engine: Engine, task: str = "", max_tokens: int | None = None, is_hook: bool = False) -> dict[str, Any]:
    """Return what an agent gets for a task, or a hook adds to it, token by token, and what is left out and why."""
    call = engine.injection if is_hook else engine.context
    made = call(task, max_tokens, touch=False)
    every = None if made.found is None else engine.search(task, RANKED, min_score=0.0)
    return {
        **made.to_dict(),
        "pieces": engine.cut_tokens(made.text),
        "shares": {hit.id: engine.count_tokens(hit.text) for hit in made.hits},
        "omitted": [] if every is None else list(_omitted(made, every, is_hook=is_hook)),
    }


def _omitted(made: Any, every: Any, *, is_hook: bool) -> Iterator[dict[str, Any]]:
    """Yield the best of what was ranked and is not in a context, with the reason of each."""
    taken = {(hit.kind, hit.owner_id) for hit in made.hits}
    texts = {" ".join(hit.text.split()) for hit in made.hits}
    rejected = {each.number: each.rejected for each in made.found.trace.candidates}
    weak = sum(hit.confidence == "weak" for hit in made.hits)
    for hit, shown in zip(every.hits, every.to_dict()["hits"], strict=True):
        if (hit.kind, hit.owner_id) in taken:
            continue
        reason: str | None = rejected.get(every.trace.numbers.get(hit.id, -1))
        if " ".join(hit.text.split()) in texts:
            reason = "same text as a better hit"
        elif reason is None and hit.confidence == "weak":
            reason = "too weak for a hook" if is_hook else "weak" if hit.kind != "memory" or weak >= WEAK else None
        yield {**shown, "reason": reason or "no room"}


PAGE_OPERATIONS: Final = (
    Operation("page_recall", "POST", "/page/recall", "read", lab, "Page"),
    Operation("page_context", "POST", "/page/context", "read", reading, "Page"),
)
