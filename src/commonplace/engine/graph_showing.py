"""The call of `engine.graph` that makes pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commonplace.engine.graph_asking import GraphAsking

if TYPE_CHECKING:
    from commonplace.formats.drawing import Drawing
    from commonplace.memories.times import Moment

READABLE: Final = 60
"""So many entities a person can still take in."""


class GraphShowing(GraphAsking):
    """The part of `Graph` that shows."""

    def show(
        self,
        entity: str,
        depth: int = 2,
        limit: int = READABLE,
        *,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        include_past: bool = False,
    ) -> Drawing:
        """Return a drawing of what lies about an entity, for `formats.drawing.to_svg` and its neighbours.

        Args:
            entity: its id or one of its names.
            depth, limit: as for `neighbourhood`.
            as_of, valid_at: as for `search_edges`.
            include_past: also facts that have ended, drawn as such.

        Raises:
            NotFoundError: there is no such entity.
            UsageError: a number is out of its range.
        """
        from commonplace.graph.picturing import picture

        times = self._times(as_of, valid_at)
        found = self.neighbourhood(entity, depth, limit, as_of=as_of, valid_at=valid_at, include_past=include_past)
        asked = times.as_of if times.valid_at is None else times.valid_at
        return picture(found, seen_at=times.now if asked is None else asked, as_of=asked)
