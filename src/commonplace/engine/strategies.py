"""What the strategy of an agent asks of a search, where the call does not say otherwise. It searches nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from commonplace.errors import UsageError
from commonplace.settings.agents import DEFAULT_AGENT, Strategy, agent_name
from commonplace.types import Stage

if TYPE_CHECKING:
    from commonplace.search.result import SearchResult
    from commonplace.types import Hit


MOST_CHARACTERS = 100
"""Of an agent's name, as in the settings."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is wished of a search; None leaves it to the settings or, of a filter, restricts nothing.

    Attributes:
        agent: whose strategy it is, in the spelling of settings; "" is nobody's.
        notices: what people are to know of it.
    """

    limit: int | None = None
    min_score: float | None = None
    types: Sequence[str] | None = None
    phases: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    agent: str = ""
    notices: tuple[str, ...] = ()

    def under(self, **said: Any) -> Wishes:
        """Return these wishes with what a call says itself in their place; an empty list lifts a filter."""
        return replace(self, **{name: value for name, value in said.items() if value is not None})

    def about(self, hits: Sequence[object]) -> tuple[str, ...]:
        """Return the notices of a search that found these hits: where there is none, the strategy may be why."""
        if hits or not self.agent:
            return self.notices
        limits = (
            self.types and f"of the types {', '.join(self.types)}",
            self.phases and f"of the phases {', '.join(self.phases)} or of none",
            self.tags and f"with one of the tags {', '.join(self.tags)}",
            self.min_score and f"scored {self.min_score:.2f} or more",
        )
        told = ", ".join(str(limit) for limit in limits if limit)
        return (*self.notices, f"agent {self.agent} finds only what is {told}") if told else self.notices


def wishes_of(agent: str | None, known: Mapping[str, Strategy]) -> Wishes:
    """Return what an agent wishes of a search; one without a strategy has that of `default`, and the notices say so.

    Args:
        agent: in either spelling, `test_engineer` or `test-engineer`; None is nobody.

    Raises:
        UsageError: it is no name, or longer than one may be.
    """
    if agent is None:
        return Wishes()
    if not isinstance(agent, str) or not agent.strip() or len(agent) > MOST_CHARACTERS:
        raise UsageError(
            f"agent is {agent!r:.80}", remedy=f"name one, in 1 to {MOST_CHARACTERS} characters: {', '.join(known)}"
        )
    name = agent_name(agent)
    notices: tuple[str, ...] = ()
    if name not in known:
        notices = (
            f"there is no strategy for agent {name!r:.80}, so {DEFAULT_AGENT!r} is used; there are: {', '.join(known)}",
        )
        name = DEFAULT_AGENT
    strategy = known[name]
    return Wishes(
        limit=strategy.top_k,
        min_score=strategy.threshold,
        types=strategy.context_types,
        phases=strategy.phase_filter,
        tags=strategy.tag_filter,
        agent=name,
        notices=notices,
    )


def joined(results: Sequence[SearchResult], limit: int) -> SearchResult:
    """Return results of searches for one query as one: the best hits of all, ties by id, and what all of them took.

    The filter and the trace are the first's.
    """
    hits = sorted((hit for each in results for hit in each.hits), key=lambda hit: (-hit.score, hit.id))
    stages: dict[str, Stage] = {}
    for stage in (stage for each in results for stage in each.stages):
        before = stages.get(stage.name, Stage(stage.name, 0, 0.0))
        stages[stage.name] = Stage(stage.name, before.candidates + stage.candidates, before.ms + stage.ms)
    return replace(
        results[0],
        hits=tuple(hits[:limit]),
        stages=tuple(stages.values()),
        latency_ms=sum(each.latency_ms for each in results),
        degraded=any(each.degraded for each in results),
        notices=tuple(dict.fromkeys(notice for each in results for notice in each.notices)),
    )


def of_the_first_owners(hits: Sequence[Hit], most: int) -> tuple[Hit, ...]:
    """Return the hits of the first owners, at most so many of them, in their order."""
    owners = set(list(dict.fromkeys((hit.kind, hit.owner_id) for hit in hits))[:most])
    return tuple(hit for hit in hits if (hit.kind, hit.owner_id) in owners)
