"""What an agent's strategy wishes of a search, fitted to what is indexed, and the results of its parts as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import UsageError
from commonplace.search.request import Request
from commonplace.search.result import types_of
from commonplace.settings.agents import DEFAULT_AGENT, Strategy, agent_name
from commonplace.types import ARTIFACT_TYPES

MAX_NAME_CHARACTERS = 100
"""Of an agent's name, as in the settings."""
STAND_INS: Final[Mapping[str, tuple[str, ...]]] = {
    "requirement": ("documentation", "code"),
    "architecture": ("documentation", "code"),
}
"""Where else a project tells what it has no files of a type for, the nearest first."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is wished of a search; None leaves it to the settings or, of a filter, restricts nothing.

    Attributes:
        agent: whose strategy it is, in the spelling of settings; "" is nobody's.
        own: the names of the wishes that a call stated itself, which no index changes.
        notices: what people are to know of it.
    """

    limit: int | None = None
    min_score: float | None = None
    types: Sequence[str] | None = None
    phases: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    agent: str = ""
    own: frozenset[str] = field(default=frozenset(), compare=False)
    notices: tuple[str, ...] = ()

    def under(self, **said: Any) -> Wishes:
        """Return these wishes with what a call says itself in their place; an empty list lifts a filter."""
        own = {name: value for name, value in said.items() if value is not None}
        return replace(self, own=self.own | own.keys(), **own)

    def fitted(self, held: Mapping[str, bool]) -> tuple[Wishes, ...]:
        """Return these wishes as an index can meet them, each for types of its own; the first has all notices.

        A project without files of a type that is wished for tells elsewhere what they would say, and that is found in
        their place. Tags are asked only of types of which some artifact has tags: nobody tags source code. No types are
        all of them, and memories and knowledge.

        Args:
            held: the types of the artifacts that there are, and whether some artifact of the type has tags.
        """
        fit = self if "types" in self.own else self._with_stand_ins(held)
        asked = fit.types or tuple(each for each in ARTIFACT_TYPES if each in held)
        untagged = tuple(each for each in asked if held.get(each) is False)
        if "tags" in self.own or not (fit.tags and untagged):
            return (fit,)
        told = f"no {' and no '.join(untagged)} has a tag, so agent {self.agent} finds what has none"
        notices = (*fit.notices, told)
        tagged = tuple(each for each in fit.types or () if each not in untagged)
        free = replace(fit, types=untagged, tags=())
        if fit.types and not any(each in held for each in tagged):
            return (replace(free, types=fit.types, notices=notices),)
        return replace(fit, types=tagged, notices=notices), free

    def _with_stand_ins(self, held: Mapping[str, bool]) -> Wishes:
        wished = tuple(self.types or ())
        lacking = [each for each in wished if each in STAND_INS and each not in held] if held else []
        nearest = (next((other for other in STAND_INS[each] if other in held), None) for each in lacking)
        added = tuple(dict.fromkeys(each for each in nearest if each and each not in wished))
        if not added:
            return self
        told = f"no {' and no '.join(lacking)} is indexed, so agent {self.agent} finds {' and '.join(added)} too"
        return replace(self, types=(*wished, *added), notices=(*self.notices, told))


def wishes_of(agent: str | None, known: Mapping[str, Strategy]) -> Wishes:
    """Return what an agent wishes of a search; one without a strategy has that of `default`, and the notices say so.

    Args:
        agent: in either spelling, `test_engineer` or `test-engineer`; None is nobody.

    Raises:
        UsageError: it is no name, or longer than one may be.
    """
    if agent is None:
        return Wishes()
    if not isinstance(agent, str) or not agent.strip() or len(agent) > MAX_NAME_CHARACTERS:
        raise UsageError(
            f"agent is {agent!r:.80}", remedy=f"name one, in 1 to {MAX_NAME_CHARACTERS} characters: {', '.join(known)}"
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


def about(parts: Sequence[Wishes], hits: Sequence[object]) -> tuple[str, ...]:
    """Return the notices of a search for these wishes that found these hits; none may be the strategy's doing."""
    wishes = parts[0]
    if hits or not wishes.agent:
        return wishes.notices
    types = types_of(part.types or () for part in parts)
    limits = (
        types and f"of the types {', '.join(types)}",
        wishes.phases and f"of the phases {', '.join(wishes.phases)} or of none",
        wishes.tags and f"with one of the tags {', '.join(wishes.tags)}",
        wishes.min_score and f"scored {wishes.min_score:.2f} or more",
    )
    told = ", ".join(str(limit) for limit in limits if limit)
    return (*wishes.notices, f"agent {wishes.agent} finds only what is {told}") if told else wishes.notices


def for_part(request: Request, part: Wishes) -> Request:
    """Return a request with the types and tags of a part of the wishes behind it."""
    return replace(request, wanted=replace(request.wanted, types=tuple(part.types or ()), tags=tuple(part.tags or ())))
