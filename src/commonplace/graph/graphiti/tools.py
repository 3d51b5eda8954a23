"""The tools of Graphiti's MCP server as calls, with what they answer as values of ours. It knows no graph of our own.

Facts about them (github.com/getzep/graphiti, mcp_server): `add_memory` queues an episode and answers no id. A `uuid`
given to it names an episode that is there already; with a new one the episode is lost while the queue is worked off. So
none is given, and an episode of ours is known again by a mark in its name. A group's id holds letters, digits, `-` and
`_` alone. `add_triplet` takes new ids for its two ends, but none for the fact, and no times.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from commonplace.errors import ConfigError, ProviderError
from commonplace.formats.graphiti import EntityItem, RelationItem, read_entity, read_episode, read_relation
from commonplace.times import iso

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from commonplace.graph.graphiti.session import Session
    from commonplace.graph.graphiti.transports import Deadline
    from commonplace.types.graph import Episode

MOST_EPISODES: Final = 1_000
"""How many episodes of a group are looked through for one of ours."""
NEEDED: Final = frozenset({"add_memory", "search_nodes", "search_memory_facts", "get_episodes"})
_PLAIN: Final = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
_HASHED: Final = re.compile(r"h_[0-9a-f]{32}")
_MARK: Final = re.compile(r" ?\[commonplace:(?P<id>[^\[\]]+)\]$")
_LONGEST_NAME: Final = 120


@dataclass(frozen=True, slots=True)
class Triplet:
    """A fact as it is given to Graphiti."""

    source: str
    source_id: str
    type: str
    fact: str
    target: str
    target_id: str


class GraphitiTools:
    """Calls the tools. Whatever it cannot read of an answer is a `ProviderError`. Safe for threads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def within_limit(self) -> AbstractContextManager[Deadline]:
        """Let all calls of this thread in a `with` block take together as long as one may."""
        return self._session.within_limit()

    def check(self) -> frozenset[str]:
        """Return the names of the server's tools.

        Raises:
            ProviderError: it cannot be reached, or is none of Graphiti's.
        """
        found = self._session.tools()
        if missing := sorted(NEEDED - found):
            raise ProviderError(
                f"the MCP server has no tool {' and no '.join(missing)}",
                remedy="name one of Graphiti's in graph.graph_uri",
            )
        return found

    def add_memory(self, episode: Episode, content: str, group: str) -> None:
        """Queue an episode of ours."""
        self._session.call(
            "add_memory",
            {
                "name": marked(episode.name, episode.id),
                "episode_body": content,
                "group_id": group,
                "source": "text" if episode.source == "memory" else episode.source,
                "source_description": episode.source_description,
                "reference_time": iso(episode.reference_time),
            },
        )

    def add_triplet(self, triplet: Triplet, group: str) -> None:
        """Write a fact of ours."""
        self._session.call(
            "add_triplet",
            {
                "source_node_name": triplet.source,
                "source_node_uuid": triplet.source_id,
                "edge_name": triplet.type,
                "fact": triplet.fact,
                "target_node_name": triplet.target,
                "target_node_uuid": triplet.target_id,
                "group_id": group,
            },
        )

    def search_nodes(
        self, query: str, groups: Sequence[str], limit: int, *, types: Sequence[str] = (), now: float
    ) -> list[EntityItem]:
        """Return the entities that the server finds, in its order."""
        arguments: dict[str, Any] = {"query": query, "group_ids": list(groups), "max_nodes": limit}
        if types:
            arguments["entity_types"] = list(types)
        answer = self._session.call("search_nodes", arguments)
        return [_read(read_entity, each, path, now) for path, each in _items(answer, "nodes", limit)]

    def search_facts(
        self, query: str, groups: Sequence[str], limit: int, *, centre: str = "", now: float
    ) -> list[RelationItem]:
        """Return the facts that the server finds, in its order."""
        arguments: dict[str, Any] = {"query": query, "group_ids": list(groups), "max_facts": limit}
        if centre:
            arguments["center_node_uuid"] = centre
        answer = self._session.call("search_memory_facts", arguments)
        return [_read(read_relation, each, path, now) for path, each in _items(answer, "facts", limit)]

    def episodes(self, groups: Sequence[str], limit: int) -> list[Episode]:
        """Return episodes, in no order; the names of ours still bear their mark."""
        answer = self._session.call("get_episodes", {"group_ids": list(groups), "max_episodes": limit})
        return [_read(read_episode, each, path) for path, each in _items(answer, "episodes", limit)]

    def delete_episode(self, id_: str) -> None:
        """Delete an episode by the server's own id."""
        self._session.call("delete_episode", {"uuid": id_})

    def clear_group(self, group: str) -> None:
        """Delete all that the server has in one group."""
        self._session.call("clear_graph", {"group_ids": [group]})

    def close(self) -> None:
        """End the session."""
        self._session.close()


def marked(name: str, id_: str) -> str:
    """Return the name under which Graphiti keeps an episode of ours."""
    return f"{name[:_LONGEST_NAME]} [commonplace:{id_}]".lstrip()


def own_id(name: str) -> str:
    """Return the id of the episode of ours that has a name at Graphiti's; "" where it is none."""
    found = _MARK.search(name)
    return found["id"] if found else ""


def unmarked(episode: Episode) -> Episode:
    """Return an episode of ours under its own id and name; any other as it is."""
    id_ = own_id(episode.name)
    return replace(episode, id=id_, name=_MARK.sub("", episode.name)) if id_ else episode


def group_of(namespace: str, label: str, default: str) -> str:
    """Return the group at Graphiti's in which the group of a namespace is kept; no two have the same.

    Args:
        default: the group of what has no label.
    """
    kept = _part(label or default)
    return kept if namespace == "default" else f"{_part(namespace)}__{kept}"


def _part(name: str) -> str:
    if _PLAIN.fullmatch(name) and not _HASHED.fullmatch(name):
        return name
    return f"h_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _items(answer: Mapping[str, Any], name: str, limit: int) -> list[tuple[str, Any]]:
    found = answer.get(name)
    if not isinstance(found, list):
        raise ProviderError(f"Graphiti answered without {name}", remedy="check its version")
    return [(f"{name}[{place}]", each) for place, each in enumerate(found[:limit])]


def _read(read: Any, value: object, path: str, *more: float) -> Any:
    try:
        return read(value, path, *more)
    except ConfigError as error:
        raise ProviderError(f"Graphiti answered something else: {error.args[0]}", remedy="check its version") from error
