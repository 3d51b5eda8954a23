"""Explain a hit of a result, or a result without hits: an empty store, or a filter that nothing passes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from shlex import quote
from typing import Final

from commonplace.dataclasses import replace
from commonplace.dates.time import moment_of
from commonplace.errors import NotFoundError
from commonplace.search.request import kinds_of
from commonplace.search.result import FIRST_STAGE, RERANK, Receipt, Rejected, SearchResult, SignalShare, reference
from commonplace.store.store import Store
from commonplace.text.tokens import analyse, fields_of
from commonplace.types import RULE, Filter, Selection

_WORDS: Final = re.compile(r"[\w.\-]+")
_PARTS: Final = re.compile(r"[^\W_]+")
_HUMPS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def explain(store: Store, result: SearchResult, hit_id: str) -> Receipt:
    """Return why a result holds a hit; see `Engine.why`."""
    index, hit = next(((index, hit) for index, hit in enumerate(result.hits) if hit.id == hit_id), (0, None))
    if hit is None:
        raise NotFoundError(f"the result has no hit {hit_id!r}", remedy="take an id from result.hits")
    number = result.trace.numbers[hit_id]
    candidate = next(item for item in result.trace.candidates if item.number == number)
    entry = store.entries(result.namespace, [number]).get(number)
    as_of = result.wanted.as_of
    links = store.links(result.namespace, [hit.owner_id], past=as_of is not None) if hit.superseded_by else []
    reasons = {
        (link.source, link.target): link.reason
        for link in links
        if link.origin == RULE
        and (as_of is None or link.created_at <= as_of < (inf if link.expired_at is None else link.expired_at))
    }
    terms = set() if entry is None else set(chain.from_iterable(fields_of(entry).values()))
    spellings = _spellings(" ".join((result.corrected or result.query, *result.also)))
    reranked = [SignalShare(name, hit.signals[name]) for name in (FIRST_STAGE, RERANK) if name in hit.signals]
    rejected = [item for item in result.trace.candidates if item.rejected is not None]
    owners = store.owners(result.namespace, [item.owner_number for item in rejected])
    matched, missing = (
        [word for word in result.trace.terms if terms.isdisjoint(word) is is_missing] for is_missing in (False, True)
    )
    return Receipt(
        hit_id=hit_id,
        reference=reference(hit),
        query=result.query,
        rank=index + 1 if result.reranked_by else candidate.rank,
        score=hit.score,
        min_score=result.trace.min_score,
        signals=(*candidate.signals.values(), *reranked),
        matched_terms=_distinct(spellings.get(word[0], word[0]) for word in matched),
        missing_terms=_distinct(spellings.get(word[0], word[0]) for word in missing),
        rejected=tuple(
            Rejected(owner.path or owner.id, item.rank, item.score, item.rejected)
            for item in rejected
            if item.rejected is not None and (owner := owners.get(item.owner_number)) is not None
        ),
        first_rank=candidate.rank,
        reranked_by=result.reranked_by,
        probability=hit.probability,
        confidence=hit.confidence,
        stands_before=result.trace.moved.get(hit_id, ""),
        superseded_by=hit.superseded_by,
        superseded_because=reasons.get((hit.superseded_by or "", hit.owner_id), ""),
    )


def _spellings(query: str) -> dict[str, str]:
    """Return the words of a query by their terms: for the term of a part of an identifier that part, else the word."""
    words, spelled = _WORDS.findall(query), dict[str, str]()
    for word in chain(words, _PARTS.findall(query), _HUMPS.findall(query)):
        terms = analyse(word)
        if len(terms) == 1:
            spelled.setdefault(terms[0], word.strip(".-_"))
    for word in words:
        for term in analyse(word)[:1]:
            if term not in word:  # a pair of characters of a script without spaces stands as it is
                spelled.setdefault(term, word.strip(".-_"))
    return spelled


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words, each once, without single characters of scripts without spaces that are in a pair as well."""
    unique = dict.fromkeys(words)
    pairs = "".join(word for word in unique if len(word) > 1)
    return tuple(word for word in unique if len(word) > 1 or word.isascii() or word not in pairs)


DEFAULT_NAMESPACE: Final = "default"
NAMED: Final = 10
"""Maximum number of existing names listed in place of an unknown one."""
NAMES: Final = {"artifact": "artifacts", "memory": "memories", "knowledge": "knowledge"}
MEMORIES_READ: Final = 1_000
"""Number of newest memories whose tags are listed in place of an unknown one."""
_FILTERS: Final = {
    "types": ("type", "no indexed file"),
    "paths": ("path", "no indexed file"),
    "tiers": ("tier", "no memory"),
    "sessions": ("session", "no memory"),
    "sources": ("source", "no memory"),
    "tags": ("tag", "nothing that is stored"),
    "phases": ("phase", "nothing that is stored"),
}
"""Name of each filter on the command line, and the subject of the sentence that says that nothing passes it."""


def diagnose(store: Store, result: SearchResult, has_others: bool, is_served: bool = False) -> Iterator[str]:
    """Yield a sentence for each possible reason why a result has no hits, with the command that helps.

    Args:
        has_others: the process has memories that are not stored.
        is_served: the caller must not learn of other namespaces.
    """
    namespace, wanted = result.namespace, result.wanted
    counts, kinds = store.counts(namespace), kinds_of(wanted)
    option = "" if namespace == DEFAULT_NAMESPACE else f" --namespace {quote(namespace)}"
    namespaces = []
    if not (is_served or counts["owners"]):
        namespaces = [name for name in store.namespaces() if name and name != namespace]
    if namespaces:
        yield f"namespace {namespace!r} holds nothing; the store has: {_listed([repr(name) for name in namespaces])}"
    is_bare = not any(counts[NAMES[kind]] for kind in kinds)
    if is_bare and "artifact" in kinds:
        yield f"the index holds no file: `commonplace index build{option}` reads those of a project"
    elif is_bare and "memory" in kinds and not has_others:
        yield f"nothing is remembered yet: `commonplace remember{option} TEXT` stores a text"
    elif is_bare and kinds == {"knowledge"}:
        yield f"no knowledge is indexed yet: `commonplace knowledge index{option} AGENT.YAML` reads an agent's"
    elif not wanted.is_empty and not store.matching_owners(namespace, replace(wanted, as_of=None, valid_at=None)):
        yield from _filter_faults(store, namespace, wanted)
    elif "memory" in kinds and wanted.as_of is not None and wanted.valid_at is None:
        memory_filter = replace(wanted, kinds=("memory",))
        known = set(store.matching_owners(namespace, memory_filter))
        happened = store.matching_owners(namespace, replace(memory_filter, as_of=None, valid_at=wanted.as_of))
        later, moment = len(set(happened) - known), f"{moment_of(wanted.as_of):%Y-%m-%d %H:%M} UTC"
        if later:
            yield (
                f"as_of finds in what was stored by {moment}; of what had happened "
                f"by then {later:,} memor{'y was' if later == 1 else 'ies were'} stored later: valid_at (--valid-at) "
                "finds in them"
            )
        elif not known:
            is_filtered = not replace(wanted, kinds=(), as_of=None).is_empty
            passing = " that passes the filters" if is_filtered else ""
            yield f"no memory{passing} had been stored by {moment}: leave out as_of (--as-of)"


def _filter_faults(store: Store, namespace: str, filters: Filter) -> Iterator[str]:
    """Name each filter that nothing passes, with the types, paths or tags that exist; else all filters together."""
    active = {name: label for name, label in _FILTERS.items() if getattr(filters, name)}
    has_fault = False
    for name, (word, subject) in active.items():
        values = getattr(filters, name)
        if store.matching_owners(namespace, Filter(kinds=filters.kinds, **{name: values})):
            continue
        has_fault = True
        existing = set(store.artifact_types(namespace)) if name == "types" else set()
        owners = [owner for _, owner in store.artifacts(namespace)] if name in ("paths", "tags") else []
        if name == "paths":
            tops = (owner.path.partition("/") for owner in owners)
            existing = {f"{top}/" if tail else top for top, _, tail in tops}
        elif name == "tags":
            owners += [memory.owner for memory in store.memories(namespace, Selection(limit=MEMORIES_READ))]
            existing = {tag for owner in owners for tag in owner.tags}
        remedy = f"there is {_listed(sorted(existing))}" if existing else f"leave out --{word}"
        yield f"{subject} has the {word} {' or '.join(map(repr, values))}; {remedy}"
    if not has_fault:
        options = ", ".join(f"--{word}" for word, _ in active.values()) or "the filters"
        yield f"nothing that is stored passes {options} together; leave out one of them"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''}"
