"""The calls of an engine that take in, read, change and use memories. It parses and passes on; the rules are below."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from commonplace.dates.time import Moment, moment_in_words
from commonplace.engine.runtime import Runtime
from commonplace.errors import NotFoundError, UsageError
from commonplace.ingest.read import normalise
from commonplace.journal.pages import PagePlace, PageReader
from commonplace.memory.service import MAX_DEPTH, MAX_NEIGHBOURS, outward
from commonplace.memory.validate import (
    boolean,
    fraction,
    int_in,
    labels,
    moment,
    one_of,
    reject_invalid_id,
    series,
    short_text,
    texts,
)
from commonplace.memory.view import MIN_TRUST_TO_PROMOTE, Memory, seen
from commonplace.redaction import redact
from commonplace.retention import NEXT_TIER
from commonplace.text.escaping import visible
from commonplace.types import KINDS, STATUSES, TIERS, Filter, Link, Selection, StoredMemory, Tier

if TYPE_CHECKING:
    from commonplace.memory.decay import DecayReport

Memories = list[Memory]
"""What lists of memories are called inside a class that has a method `list`."""

PROJECTED_AT_ONCE = 256
"""So many memories given at once go into the index when they are stored; fewer wait for the next search or update."""

MAX_LISTED = 10_000
MIN_ABBREVIATION = 4
"""Characters; fewer would be mistyped ids that happen to begin another."""
MAX_OFFSET = 10**9


_LIVE = tuple(status for status in STATUSES if status != "archived")


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How many memories a namespace holds: live ones by tier, the archived ones, and links."""

    ultra: int
    short: int
    medium: int
    long: int
    archived: int
    links: int


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Memories that hang together: the one that was asked about, then the others, nearest first; links by strength."""

    memories: tuple[Memory, ...]
    links: tuple[Link, ...]


class MemoryApi:
    """Takes in, reads, changes and uses memories. Safe for threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._namespace = runtime.namespace

    def remember_many(self, items: Iterable[Mapping[str, Any]], *, force: bool = False, wait: bool = True) -> Memories:
        boolean("force", force)
        given = list(series("items", items))
        self._runtime.before()
        in_process = [isinstance(item, Mapping) and item.get("tier") == "ultra" for item in given]
        if any(in_process):
            if not all(in_process):
                raise UsageError(
                    "some of the memories are of the tier ultra", remedy="give those in a call of their own"
                )
            return self._runtime.ultra.remember(given, force=force)
        kept = self._runtime.memory.remember(given, force=force)
        if wait and len(given) > 1:
            self._runtime.backlog.drain(self._runtime.progress)
        if len(given) > PROJECTED_AT_ONCE:
            self._runtime.maintenance.project()
            self._runtime.tokens.release()
        self._runtime.after()
        return kept

    def resolve_id(self, abbreviation: str) -> str:
        reject_invalid_id(abbreviation)
        if len(abbreviation) < MIN_ABBREVIATION or self._store.memory(self._namespace, abbreviation) is not None:
            return abbreviation
        self._runtime.before()
        if any(self._store.owner_numbers(self._namespace, kind, [abbreviation]) for kind in KINDS):
            return abbreviation
        stored = (id_ for _, id_, _ in self._store.memory_digests(self._namespace))
        ids = sorted(id_ for id_ in stored if id_.startswith(abbreviation))
        if len(ids) > 1:
            more = f" and {len(ids) - 5:,} more" if len(ids) > 5 else ""
            raise UsageError(
                f"{abbreviation!r} begins the ids of {len(ids):,} memories: {', '.join(ids[:5])}{more}",
                remedy="give more characters",
            )
        return ids[0] if ids else abbreviation

    def get(self, id: str, *, as_of: Moment | None = None, touch: bool | None = None) -> Memory:  # noqa: A002
        reject_invalid_id(id)
        self._runtime.before()
        if touch and as_of is None:
            return self.touch(id)
        stored = self._runtime.ultra.find(id) if self._runtime.has_ultra else None
        if stored is None:
            stored = (
                self._store.memory(self._namespace, id)
                if as_of is None
                else self._known(id, moment_in_words("as_of", as_of, self._runtime.now()))
            )
        if stored is None:
            when = "" if as_of is None else f" that was known at {as_of}"
            raise NotFoundError(
                f"there is no memory {id!r:.80}{when} in namespace {self._namespace!r}", remedy="see `commonplace list`"
            )
        if touch is None and as_of is None:
            self._runtime.count_uses([id])
        return self._runtime.seen(stored)

    def versions(self, id: str) -> Memories:  # noqa: A002
        reject_invalid_id(id)
        found = self._store.versions(self._namespace, id)
        if not found:
            raise NotFoundError(
                f"there is no memory {id!r:.80} in namespace {self._namespace!r}", remedy="see `commonplace list`"
            )
        return [self._runtime.seen(stored) for stored in found]

    def update(self, id_: str, values: Mapping[str, Any], if_version: int | None = None) -> Memory:
        self._runtime.before()
        changed = [name for name, value in values.items() if value is not None]
        is_tier = changed == ["tier"] and if_version is None
        memory = self._runtime.memory
        updated = memory.set_tier(id_, values["tier"]) if is_tier else memory.update(id_, values, if_version)
        self._runtime.after()
        return updated

    def touch(self, id: str, *, reinforce: bool = False) -> Memory:  # noqa: A002
        reject_invalid_id(id)
        self._runtime.before()
        if self._runtime.has_ultra and self._runtime.ultra.find(id) is not None:
            return self._runtime.keep_risen(self._runtime.ultra.touch(id, reinforce=reinforce))
        touched = self._runtime.memory.touch([id], reinforce=reinforce)[0]
        self._runtime.after()
        return touched

    def review(self, id: str) -> Memory:  # noqa: A002
        reject_invalid_id(id)
        self._runtime.before()
        reviewed = self._runtime.memory.touch([id], is_review=True)[0]
        self._runtime.after()
        return reviewed

    def archive(self, id: str) -> Memory:  # noqa: A002
        reject_invalid_id(id)
        self._runtime.before()
        archived = self._runtime.memory.archive([id])[0]
        self._runtime.after()
        return archived

    def restore_memory(self, id: str) -> Memory:  # noqa: A002
        reject_invalid_id(id)
        self._runtime.before()
        restored = self._runtime.memory.restore(id)
        self._runtime.after()
        return restored

    def link(self, source: str, target: str, type: str = "related", strength: float = 1.0) -> Link:  # noqa: A002
        reject_invalid_id(source)
        reject_invalid_id(target)
        self._runtime.before()
        link = self._runtime.memory.link(source, target, type, strength)
        self._runtime.after()
        return link

    def unlink(self, source: str, target: str, type: str | None = None) -> int:  # noqa: A002
        reject_invalid_id(source)
        reject_invalid_id(target)
        if type is not None:
            short_text("type", type)
        self._runtime.before()
        gone = self._runtime.memory.unlink(source, target, type)
        self._runtime.after()
        return gone

    def links(self, id: str | None = None) -> list[Link]:  # noqa: A002
        if id is not None:
            reject_invalid_id(id)
        return self._store.links(self._namespace, None if id is None else [id])

    def list(  # noqa: PLR0913 - the options of a facade
        self,
        *,
        tiers: Sequence[str] = (),
        statuses: Sequence[str] = ("active", "promoted"),
        tags: Sequence[str] = (),
        sources: Sequence[str] = (),
        sessions: Sequence[str] = (),
        categories: Sequence[str] = (),
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Memories:
        int_in("limit", limit, 1, MAX_LISTED)
        int_in("offset", offset, 0, MAX_OFFSET)
        selection = Selection(
            tiers=tuple(one_of("tiers", tier, TIERS) for tier in labels("tiers", tiers)),  # type: ignore[misc]
            statuses=tuple(one_of("statuses", status, STATUSES) for status in labels("statuses", statuses)),  # type: ignore[misc]
            tags=labels("tags", tags),
            sources=texts("sources", sources),
            sessions=texts("sessions", sessions),
            categories=tuple(category.lower() for category in labels("categories", categories)),
            since=None if since is None else moment("since", since, self._runtime.now()),
            until=None if until is None else moment("until", until, self._runtime.now()),
            limit=limit + offset,
        )
        self._runtime.before()
        found = self._store.memories(self._namespace, selection)
        if self._runtime.has_ultra:
            found += self._runtime.ultra.all(selection)
            found.sort(key=lambda each: (-(each.owner.at or 0.0), each.owner.id))
        return [self._runtime.seen(stored) for stored in found[offset : offset + limit]]

    def _known(self, id_: str, as_of: float | None) -> StoredMemory | None:
        if as_of is None:
            return self._store.memory(self._namespace, id_)
        return next(
            (
                version
                for version in self._store.versions(self._namespace, id_)
                if version.created_at <= as_of and (version.expired_at is None or as_of < version.expired_at)
            ),
            None,
        )

    def neighbourhood(self, id: str, *, depth: int = 2, limit: int = 50) -> Neighbourhood:  # noqa: A002
        int_in("depth", depth, 1, MAX_DEPTH)
        int_in("limit", limit, 1, MAX_NEIGHBOURS)
        reject_invalid_id(id)
        self._runtime.before()
        found: dict[str, StoredMemory] = {}

        def live(some: Sequence[str]) -> dict[str, StoredMemory]:
            chosen = Selection(ids=tuple(some), statuses=("active", "promoted"), order="id")
            stored = self._store.memories(self._namespace, chosen)
            found.update({each.owner.id: each for each in stored if each.expired_at is None})
            return found

        if id not in live([id]):
            raise NotFoundError(f"there is no memory {id!r:.80} in this namespace", remedy="see `commonplace list`")
        ids, links = outward(id, lambda some: self._store.links(self._namespace, some), live, depth=depth, limit=limit)
        now = self._runtime.now()
        return Neighbourhood(
            tuple(seen(found[each], self._namespace, now, self._runtime.retention) for each in ids), links
        )

    def decay(self, tier: str = "short", threshold: float = 0.3) -> DecayReport:
        from commonplace.memory.decay import decay

        floor = fraction("threshold", threshold)
        self._runtime.before()
        report = decay(
            self._store,
            self._namespace,
            self._runtime.retention,
            self._runtime.now(),
            tier=tier,
            threshold=floor,
            feed=self._runtime.feed,
        )
        self._runtime.after()
        return report

    def raise_tier(self, id: str, tier: str | None = None) -> Memory:  # noqa: A002 - the name of the field
        memory = self.get(id, touch=False)
        wanted = NEXT_TIER.get(memory.tier) if tier is None else one_of("tier", tier, TIERS)
        if wanted is None or TIERS.index(wanted) <= TIERS.index(memory.tier):
            raise UsageError(
                f"memory {id!r:.80} is {memory.tier} already"
                if wanted in (None, memory.tier)
                else f"memory {id!r:.80} is {memory.tier}, which is above {wanted}",
                remedy=f"tiers are, from low to high, {', '.join(TIERS)}; use `update` to lower one",
            )
        if memory.trust < MIN_TRUST_TO_PROMOTE:
            raise UsageError(
                f"memory {id!r:.80} is trusted {memory.trust:.2f}, and one below {MIN_TRUST_TO_PROMOTE} is not raised",
                remedy="let a person confirm it with `update`",
            )
        chosen: Tier = wanted  # type: ignore[assignment] # one of them
        return (
            self._runtime.keep_risen(replace(memory, tier=chosen))
            if memory.tier == "ultra"
            else self.update(id, {"tier": chosen})
        )

    def memory_counts(self) -> MemoryCounts:
        self._runtime.before()
        live = {
            tier: self._store.count_memories(self._namespace, Selection(tiers=(tier,), statuses=_LIVE))
            for tier in TIERS[1:]
        }
        archived = self._store.count_memories(self._namespace, Selection(statuses=("archived",)))
        ultra = len(self._runtime.ultra.all(Selection(statuses=_LIVE))) if self._runtime.has_ultra else 0
        return MemoryCounts(ultra, live["short"], live["medium"], live["long"], archived, len(self.links()))


_REFERENCE = re.compile(r"@?(?P<path>.+?)(?::(?P<first>[1-9][0-9]{0,8})-[0-9]+)?", re.DOTALL)

MEMORY_PREFIX = "memory:"
"""`memory:ID` names a memory, or another owner without a file, that stands on no page."""

ARTIFACT_PREFIX = "./"
"""`./MEMORY.md` names an artifact whose path is a page's name, too."""

LINES = 200
MOST_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a text, secrets replaced by placeholders.

    Attributes:
        first_line, last_line: from 1, both included; an empty text has one line.
        total_lines: of the whole text.
    """

    path: str
    text: str
    first_line: int
    last_line: int
    total_lines: int


class ReadApi:
    """Reads pages, artifacts and memories. Safe for threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._namespace = runtime.namespace

    def pages(self) -> list[str]:
        self._runtime.pick_up()
        return self._page_reader.names()

    def snippet(self, text: str, query: str, limit: int = 300) -> str:
        from commonplace.text.snippet import snippet

        return snippet(visible(text), query, limit=limit).text

    def places(self, ids: Iterable[str]) -> dict[str, PagePlace]:
        return self._page_reader.places(ids)

    def memory_at(self, path: str, line: int) -> str | None:
        int_in("line", line, 1, 10**9)
        return self._page_reader.memory_at(path, line) if isinstance(path, str) else None

    def read(self, path: str, first: int = 1, lines: int = LINES, *, touch: bool = False) -> Excerpt:
        int_in("first", first, 1, 10**9)
        int_in("lines", lines, 1, MOST_LINES)
        if not isinstance(path, str):
            raise UsageError(f"path is {path!r:.80}", remedy="name a path that a search returned")
        self._runtime.pick_up()
        text = self._text(path)
        if text is None:
            path, first, text = self._referred(path, first)
        if text is None:
            raise NotFoundError(
                f"there is no page, artifact or memory {path!r:.200}", remedy="name a path that a search returned"
            )
        # As a whole: the middle of a key alone does not tell what it is. Placeholders keep the line breaks.
        every = redact(normalise(text)).text.removesuffix("\n").split("\n")
        if first > len(every):
            raise NotFoundError(
                f"{path!r:.200} ends with line {len(every):,}, line {first:,} was asked for",
                remedy="begin at a line that it has",
            )
        if touch:
            is_memory = path.startswith(MEMORY_PREFIX)
            id_ = path.removeprefix(MEMORY_PREFIX) if is_memory else self._page_reader.memory_at(path, first)
            self._runtime.count_uses([id_] if id_ else [])
        chosen = every[first - 1 : first - 1 + lines]
        return Excerpt(path, "\n".join(chosen), first, first - 1 + len(chosen), len(every))

    def _text(self, path: str) -> str | None:
        if path.startswith(MEMORY_PREFIX):
            return self._said(path.removeprefix(MEMORY_PREFIX))
        if path.startswith(ARTIFACT_PREFIX):
            return self._indexed(path.removeprefix(ARTIFACT_PREFIX))
        page = self._page_reader.text(path)
        return page if page is not None else self._indexed(path)

    def _referred(self, reference: str, first: int) -> tuple[str, int, str | None]:
        """Return the path that a reference names, where to begin, and the text there."""
        found = _REFERENCE.fullmatch(reference)
        if found is None:
            return reference, first, None
        begin = max(first, int(found["first"] or 1))
        for path in (found["path"], f"{MEMORY_PREFIX}{found['path']}"):
            text = self._text(path)
            if text is not None:
                return path, begin, text
        return reference, first, None

    def _said(self, id_: str) -> str | None:
        """Return what a memory says, or a document that is no file."""
        stored = self._runtime.ultra.find(id_) if self._runtime.has_ultra else None
        stored = stored or self._store.memory(self._namespace, id_)
        if stored is not None:
            return stored.record.content
        others = self._store.matching_owners(self._namespace, Filter(kinds=("knowledge", "artifact")))
        numbers = [number for number, owner in self._store.owners(self._namespace, others).items() if owner.id == id_]
        return self._put_together(numbers) if numbers else None

    def _indexed(self, path: str) -> str | None:
        """Return an artifact as its passages have it; blank lines between them are blank here too."""
        numbers = [number for number, owner in self._store.artifacts(self._namespace) if owner.path == path]
        return self._put_together(numbers) if numbers else None

    def _put_together(self, numbers: Sequence[int]) -> str:
        """Return the text of an owner's passages."""
        passages = self._store.passages(self._namespace, self._store.passages_of(self._namespace, numbers))
        lines: dict[int, str] = {}
        for passage in passages.values():
            for place, line in enumerate(passage.chunk.text.split("\n"), passage.chunk.start_line):
                # A line that alone was too long for a passage goes on in the next one.
                known = lines.get(place, "")
                lines[place] = known if known.endswith(line) else known + line
        return "\n".join(lines.get(place, "") for place in range(1, max(lines, default=0) + 1))

    @cached_property
    def _page_reader(self) -> PageReader:
        return PageReader(self._runtime.directory, self._namespace, self._store)
