"""Explain an empty result: an empty store, or a filter that nothing passes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from difflib import get_close_matches
from shlex import quote
from typing import Final

from commonplace.dates.time import moment_of
from commonplace.search.request import kinds_of
from commonplace.search.result import SearchResult
from commonplace.store.filters import path_matcher
from commonplace.store.store import Store
from commonplace.types import Filter, Selection

DEFAULT_NAMESPACE: Final = "default"
NAMED: Final = 10
"""So many names are listed of what there is in place of a name that is not."""
NAMES: Final = {"artifact": "artifacts", "memory": "memories", "knowledge": "knowledge"}
MEMORIES_READ: Final = 1_000
"""The tags of the newest ones are those that somebody may have meant."""

_OF_ARTIFACTS: Final = {"types": ("type", "artifact"), "paths": ("path", "artifact")}
_OF_MEMORIES: Final = {"tiers": ("tier", "memory"), "sessions": ("session", "memory"), "sources": ("source", "memory")}
_OF_ALL: Final = {"tags": ("tag", ""), "phases": ("phase", "")}


def diagnose(store: Store, found: SearchResult, has_others: bool) -> Iterator[str]:
    """Give a sentence for each reason why a result without hits could have none, with the command that helps.

    Args:
        has_others: the process has memories that are not stored.
    """
    namespace, wanted = found.namespace, found.wanted
    counts, kinds = store.counts(namespace), kinds_of(wanted)
    option = "" if namespace == DEFAULT_NAMESPACE else f" --namespace {quote(namespace)}"
    others = [] if counts["owners"] else [name for name in store.namespaces() if name and name != namespace]
    if others:
        yield f"namespace {namespace!r} holds nothing; the store has: {_listed(map(repr, others), len(others))}"
    is_bare = not any(counts[NAMES[kind]] for kind in kinds)
    if is_bare and "artifact" in kinds:
        yield f"the index holds no file: `commonplace index build{option}` reads those of a project"
    elif is_bare and "memory" in kinds and not has_others:
        yield f"nothing is remembered yet: `commonplace remember{option} TEXT` keeps a text"
    elif is_bare and kinds == {"knowledge"}:
        yield f"no knowledge is indexed yet: `commonplace knowledge index{option} AGENT.YAML` reads an agent's"
    elif not wanted.is_empty and not store.matching_owners(namespace, replace(wanted, as_of=None, valid_at=None)):
        yield from _filter_faults(store, namespace, wanted)
    elif "memory" in kinds and wanted.as_of is not None and wanted.valid_at is None:
        yield from _stored_later(store, namespace, wanted, wanted.as_of)


def _stored_later(store: Store, namespace: str, wanted: Filter, as_of: float) -> Iterator[str]:
    known = store.matching_owners(namespace, replace(wanted, kinds=("memory",)))
    happened = store.matching_owners(namespace, replace(wanted, kinds=("memory",), as_of=None, valid_at=as_of))
    later = len(set(happened) - set(known))
    if later:
        yield (
            f"as_of finds in what was stored by {moment_of(as_of):%Y-%m-%d %H:%M} UTC; of what had happened by then "
            f"{later:,} memor{'y was' if later == 1 else 'ies were'} stored later: valid_at (--valid-at) finds in them"
        )


def _filter_faults(store: Store, namespace: str, wanted: Filter) -> Iterator[str]:
    """Name each filter that nothing passes, or all where each lets something pass."""
    given = {name: of for name, of in {**_OF_ARTIFACTS, **_OF_MEMORIES, **_OF_ALL}.items() if getattr(wanted, name)}
    faults = [
        (name, of)
        for name, of in given.items()
        if not store.matching_owners(namespace, Filter(kinds=wanted.kinds, **{name: getattr(wanted, name)}))
    ]
    for name, (word, kind) in faults:
        values = getattr(wanted, name)
        if name == "paths":
            yield _path_fault(store, namespace, values)
        else:
            shown = " or ".join(map(repr, values))
            what = {"artifact": "no indexed file", "memory": "no memory"}.get(kind, "nothing that is stored")
            yield f"{what} has the {word} {shown}; {_instead(store, namespace, name, values, f'--{word}')}"
    if not faults:
        options = ", ".join(f"--{word}" for word, _ in given.values()) or "the filters"
        yield f"nothing that is stored passes {options} together; leave out one of them"


def _instead(store: Store, namespace: str, name: str, values: Collection[str], option: str) -> str:
    """Return what to write in place of a filter's values."""
    there = sorted(_present(store, namespace, name))
    close = [near for value in values for near in get_close_matches(value, there, 1)]
    if close:
        return f"did you mean {option} {quote(close[0])}?"
    return f"there is {_listed(there, len(there))}" if there else f"leave out {option}"


def _present(store: Store, namespace: str, name: str) -> set[str]:
    if name == "types":
        return set(store.artifact_types(namespace))
    owners = [owner for _, owner in store.artifacts(namespace)] if name in _OF_ALL else []
    memories = store.memories(namespace, Selection(limit=MEMORIES_READ))
    if name == "tags":
        return {tag for owner in (*owners, *(each.owner for each in memories)) for tag in owner.tags}
    if name == "phases":
        return {owner.phase for owner in owners} - {""}
    of = {"tiers": "tier", "sources": "source"}
    found = {getattr(each.record, of[name]) if name in of else each.owner.session for each in memories}
    return found - {""}


def _path_fault(store: Store, namespace: str, globs: Collection[str]) -> str:
    """Say that no path matches, and which one was meant: each part of a glob is held against those of the paths."""
    paths = [owner.path for _, owner in store.artifacts(namespace)]
    parts = {part for path in paths for part in path.split("/")}
    for glob in globs:
        meant = "/".join(
            part if part in parts or not part.strip("*?!") else next(iter(get_close_matches(part, parts, 1)), part)
            for part in glob.split("/")
        )
        if meant != glob and any(map(path_matcher([meant]), paths)):
            return f"no indexed path matches {glob!r}; did you mean --path {quote(meant)}?"
    tops = sorted({f"{top}/" if rest else top for top, _, rest in (path.partition("/") for path in paths)})
    shown = " or ".join(map(repr, globs))
    return f"no indexed path matches {shown}; there is {_listed(tops, len(tops))}"


def _listed(names: Collection[str] | Iterator[str], count: int) -> str:
    first = [name for name, _ in zip(names, range(NAMED), strict=False)]
    return f"{', '.join(first)}{', …' if count > NAMED else ''}"
