"""The calls of an engine that keep account of what is looked for: a log of retrievals, and what it says in sum.

A search does not log itself: only who answers a question of a person's or an agent's knows that it was one.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from commonplace.engine.layout import LOGS
from commonplace.engine.workings import Workings
from commonplace.errors import StoreError, UsageError

if TYPE_CHECKING:
    from commonplace.logs import RetrievalLog
    from commonplace.memories.times import Moment
    from commonplace.search.context import Context
    from commonplace.search.result import SearchResult
    from commonplace.search.retrievals import RetrievalSummary
    from commonplace.types import Hit

Used = Literal["memory", "artifact"]


class Retrievals(Workings):
    """The part of `Engine` that keeps account of what is looked for."""

    def log_retrieval(self, result: SearchResult | Context, call: str = "search") -> None:
        """Write a line about a search, or about the one behind a context, to the store's log of retrievals.

        It holds the query by hash or text, or nothing is written, as the setting `log.queries` says; of what was found
        the paths of artifacts, and names of memories that give nothing away. A log that cannot be written is none.

        Args:
            call: how it was asked for, in a word.
        """
        from commonplace.search.context import Context
        from commonplace.search.retrievals import fields_of

        found = result.found if isinstance(result, Context) else result
        if found is not None:
            fields = fields_of(found, call, [_key(hit) for hit in result.hits])
            self._retrieval_log.write(found.query, fields, now=self._now())

    def log_use(self, name: str, kind: Used = "memory") -> None:
        """Write a line that something was opened or touched, which a search may have found before.

        Args:
            name: the id of a memory, or the path of an artifact.
        """
        if not isinstance(name, str) or not name:
            raise UsageError(f"name is {name!r:.80}", remedy="give an id or a path")
        used = name if kind == "artifact" else _name(kind, name)
        self._retrieval_log.write_use({"namespace": self.namespace, "used": used}, now=self._now())

    def retrievals(self, since: Moment | None = None) -> RetrievalSummary:
        """Return what the log says of this namespace: searches, latencies, what was found most, and what was used.

        Args:
            since: leave out what was earlier; words such as "last Tuesday" mean its beginning.

        Raises:
            UsageError: the time cannot be read.
            StoreError: the log cannot be read.
        """
        from commonplace.memories.times import moment_in_words
        from commonplace.search.retrievals import summarise

        start = -math.inf if since is None else moment_in_words("since", since, self._now(), is_start=True)
        try:
            return summarise(self._retrieval_log.lines(), namespace=self.namespace, since=start)
        except OSError as error:
            raise StoreError(
                f"the log {error.filename} cannot be read: {error.strerror}", remedy="make it readable"
            ) from error

    @cached_property
    def _retrieval_log(self) -> RetrievalLog:
        from commonplace.logs import RetrievalLog, Rotation

        log = self.settings.log
        return RetrievalLog(self.directory / LOGS, queries=log.queries, rotation=Rotation(log.max_bytes, log.keep))


def _key(hit: Hit) -> str:
    """Return what the log calls a hit."""
    return hit.path if hit.kind == "artifact" and hit.path else _name(hit.kind, hit.owner_id)


def _name(kind: str, id_: str) -> str:
    from commonplace.logs import query_hash

    return f"{kind}:{query_hash(id_)}"
