"""Records of a graph for property tests: each field is drawn from what a test has for values of its kind."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from hypothesis import strategies as st

from commonplace.types import ORIGINS
from commonplace.types.graph import EPISODE_SOURCES, Entity, Episode, Relation

Record = TypeVar("Record", Episode, Entity, Relation)

_IDS = frozenset({"id", "source", "target", "memory", "merged_into"})
_SHARES = frozenset({"trust", "confidence"})
_CHOICES: dict[tuple[type, str], st.SearchStrategy[Any]] = {
    (Episode, "source"): st.sampled_from(EPISODE_SOURCES),
    (Episode, "origin"): st.sampled_from(ORIGINS),
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """What values of each kind are drawn from."""

    ids: st.SearchStrategy[str]
    texts: st.SearchStrategy[str]
    times: st.SearchStrategy[float]
    maybe: st.SearchStrategy[float | None]
    shares: st.SearchStrategy[float]
    numbers: st.SearchStrategy[int]

    def records(self, kind: type[Record], **own: st.SearchStrategy[Any]) -> st.SearchStrategy[Record]:
        """Return records of a kind, all of whose fields are drawn; `own` fields from elsewhere."""
        drawn = {each.name: self._of(kind, each.name, str(each.type)) for each in fields(kind)}
        return st.builds(kind, **{**drawn, **own})

    def _of(self, kind: type, name: str, type_: str) -> st.SearchStrategy[Any]:
        if (kind, name) in _CHOICES:
            return _CHOICES[kind, name]
        if name in _IDS or name in _SHARES:
            return self.ids if name in _IDS else self.shares
        kinds = {"str": self.texts, "float": self.times, "float | None": self.maybe, "int": self.numbers}
        return {**kinds, "bool": st.booleans()}[type_]
