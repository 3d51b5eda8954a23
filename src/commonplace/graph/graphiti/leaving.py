"""Take a whole namespace away from Graphiti when it is forgotten here: its groups, or what is ours in a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commonplace.errors import ProviderError
from commonplace.graph.graphiti.backend import told
from commonplace.graph.graphiti.tools import MOST_EPISODES, own_id
from commonplace.types.graph import GraphFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commonplace.graph.graphiti.tools import GraphitiTools
    from commonplace.store.graph_contract import GraphReading

ITS_OWN: Final = "main"
"""Where Graphiti keeps what comes without a group: everybody's."""
_NOT_ALONE: Final = "what Graphiti was told in its group {}, which is not this namespace's alone"


@dataclass(frozen=True, slots=True)
class Left:
    """What became of a namespace there.

    Attributes:
        notices: what went.
        outside: what stays, and who can delete it.
    """

    notices: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()


def to_leave(groups: Sequence[str]) -> Left:
    """Return what is said of groups that are not left yet."""
    return Left(outside=(f"what Graphiti was told of this namespace, in {_named(groups)}: it is told to delete it",))


def cannot_leave(groups: Sequence[str], why: str) -> Left:
    """Return what is said where nobody can be asked to delete anything."""
    return Left(outside=(_unreached(groups, why),))


def leave(tools: GraphitiTools, graph: GraphReading, groups: Mapping[str, str], sent: int) -> Left:
    """Delete there what a namespace has told it, while the namespace is still here.

    A group is cleared where it is the namespace's alone: not Graphiti's own, and every episode in it is one of ours. Of
    any other group our episodes are deleted, and what they alone support.

    Args:
        groups: ours, by what Graphiti calls them.
        sent: how many episodes it was told of.
    """
    notices: list[str] = []
    outside: list[str] = []
    waiting = list(groups)
    seen = 0
    try:
        has = tools.check()
        while waiting:
            group = waiting[0]
            listed = tools.episodes([group], MOST_EPISODES)
            ours = _ours(graph, {each.id: own_id(each.name) for each in listed})
            is_alone = group != ITS_OWN and len(ours) == len(listed) < MOST_EPISODES
            if is_alone and "clear_graph" in has:
                tools.clear_group(group)
                notices.append(f"Graphiti has cleared its group {group}")
            else:
                has_facts = bool(graph.list_relations(GraphFilter(groups=(groups[group],), with_past=True), limit=1))
                deleted = _deleted(tools, ours if "delete_episode" in has else [])
                if ours or has_facts:
                    outside.append(f"{_NOT_ALONE.format(group)}: {deleted}")
            seen += len(ours)
            waiting.pop(0)
    except ProviderError as error:
        outside.append(_unreached(waiting, told(error)))
    else:
        if seen < sent:
            outside.append(
                f"what Graphiti was told and does not show ({sent - seen} of {sent} episodes): it may still be reading,"
                " so look there again in ten minutes"
            )
    return Left(tuple(notices), tuple(outside))


def _deleted(tools: GraphitiTools, ours: Sequence[str]) -> str:
    """Delete episodes of a group that is not ours alone, and say so."""
    for id_ in ours:
        tools.delete_episode(id_)
    many = "1 episode was" if len(ours) == 1 else f"{len(ours)} episodes were"
    return f"{many} deleted there; look whether facts that were given without one are left"


def _ours(graph: GraphReading, listed: Mapping[str, str]) -> list[str]:
    """Return the ids there of what the namespace has told; a fact is told as an episode where no tool takes facts."""
    ids = [id_ for id_ in listed.values() if id_]
    known = graph.episodes(ids).keys() | graph.relations(ids).keys()
    return [theirs for theirs, id_ in listed.items() if id_ in known]


def _unreached(groups: Sequence[str], why: str) -> str:
    return f"what Graphiti was told of this namespace, in {_named(groups)}: delete it there. {why}"


def _named(groups: Sequence[str]) -> str:
    return f"its group {groups[0]}" if len(groups) == 1 else f"its groups {', '.join(groups)}"
