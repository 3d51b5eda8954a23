"""Explain a hit of a result: its signals, the words that matched, and what was rejected."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Final

from commonplace.errors import NotFoundError
from commonplace.search.rerank import FIRST_STAGE, RERANK
from commonplace.search.result import Candidate, Receipt, Rejected, SearchResult, SignalShare, reference
from commonplace.store.store import Store
from commonplace.text.tokens import analyse, fields_of

_WORDS: Final = re.compile(r"[\w.\-]+")
_PARTS: Final = re.compile(r"[^\W_]+")
_HUMPS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def explain(store: Store, result: SearchResult, hit_id: str) -> Receipt:
    """Return why a result holds a hit; see `Engine.why`."""
    place, hit = next(((place, hit) for place, hit in enumerate(result.hits) if hit.id == hit_id), (0, None))
    if hit is None:
        raise NotFoundError(f"the result has no hit {hit_id!r}", remedy="take an id from result.hits")
    number = result.trace.numbers[hit_id]
    candidate = next(item for item in result.trace.candidates if item.number == number)
    unfound = {name: value for name, value in candidate.standardised.items() if name not in candidate.signals}
    entry = store.entries(result.namespace, [number]).get(number)
    held = set() if entry is None else set(chain.from_iterable(fields_of(entry).values()))
    written = _written(" ".join((result.corrected or result.query, *result.also)))
    reranked = {name: hit.signals[name] for name in (FIRST_STAGE, RERANK) if name in hit.signals}
    matched, missing = (
        [word for word in result.trace.terms if held.isdisjoint(word) is is_missing] for is_missing in (False, True)
    )
    return Receipt(
        hit_id=hit_id,
        reference=reference(hit),
        query=result.query,
        rank=place + 1 if result.reranked_by else candidate.rank,
        score=hit.score,
        min_score=result.trace.min_score,
        signals=tuple(
            SignalShare(
                name,
                value,
                candidate.standardised.get(name, 0.0),
                candidate.weights.get(name, 0.0),
                value * candidate.evidence.get(name, 0.0),
            )
            for name, value in {**candidate.signals, **unfound, **reranked}.items()
        ),
        matched_terms=_distinct(written.get(word[0], word[0]) for word in matched),
        missing_terms=_distinct(written.get(word[0], word[0]) for word in missing),
        rejected=_rejected(store, result),
        first_rank=candidate.rank,
        reranked_by=result.reranked_by,
        probability=hit.probability,
        confidence=hit.confidence,
        stands_before=result.trace.moved.get(hit_id, ""),
        superseded_by=hit.superseded_by,
    )


def _written(query: str) -> dict[str, str]:
    """Return the words of a query by the terms that they give: a part of an identifier for its own, else the whole."""
    words = _WORDS.findall(query)
    parts = _PARTS.findall(query)
    humps = _HUMPS.findall(query)
    found: dict[str, str] = {}
    for word in chain(words, parts, humps):
        terms = analyse(word)
        if len(terms) == 1:
            found.setdefault(terms[0], word.strip(".-_"))
    for word in words:
        for term in analyse(word)[:1]:
            if term not in word:  # a pair of characters of a script without spaces stands as it is
                found.setdefault(term, word.strip(".-_"))
    return found


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words, each once, without the characters of a script without spaces that stand in a pair of them."""
    each = dict.fromkeys(words)
    pairs = "".join(word for word in each if len(word) > 1)
    return tuple(word for word in each if len(word) > 1 or word.isascii() or word not in pairs)


def _rejected(store: Store, result: SearchResult) -> tuple[Rejected, ...]:
    left: list[Candidate] = [item for item in result.trace.candidates if item.rejected is not None]
    owners = store.owners(result.namespace, [item.owner_number for item in left])
    return tuple(
        Rejected(owner.path or owner.id, item.rank, item.score, item.rejected)
        for item in left
        if item.rejected is not None and (owner := owners.get(item.owner_number)) is not None
    )
