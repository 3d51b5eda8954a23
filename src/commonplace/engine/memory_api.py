"""Take in, find, list and read memories, and read pages and artifacts, for an engine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import Moment, moment_in_words, moment_of
from commonplace.engine.runtime import Service, made_once
from commonplace.errors import NotFoundError, UsageError
from commonplace.memory.validate import one_of, path_value, reject_invalid_id, validate_memory
from commonplace.memory.view import MIN_TRUST_TO_PROMOTE, Memory
from commonplace.redaction import redact
from commonplace.retention import DAY_S, NEXT_TIER
from commonplace.settings import Settings
from commonplace.types import KINDS, RULE, TIERS, Filter, Link, Selection, StoredMemory, Tier

if TYPE_CHECKING:
    from commonplace.exchange.read import Source
    from commonplace.journal.pages import PageReader

MIN_ABBREVIATION: Final = 4
"""Characters; fewer would be mistyped ids that happen to begin another."""
MAX_DEPTH: Final = 4
MAX_NEIGHBOURS: Final = 500
PROJECTED_AT_ONCE = 256
"""So many memories given at once go into the index when they are stored; fewer wait for the next search or update."""

LIVE: Final = ("active", "promoted")


def refuse_unfit_memory(values: Mapping[str, Any], settings: Settings, now: float, *, force: bool) -> None:
    """Refuse what `Engine.remember` would refuse, so that no store need be made for it.

    Raises:
        UsageError: a value is of the wrong kind, empty, too large or out of its range.
    """
    validate_memory(values, max_bytes=settings.memory.max_bytes, force=force, now=now)


def refuse_unfit_import(path: Path, settings: Settings, *, format_: str = "auto", skip_problems: bool = False) -> None:
    """Refuse what `Engine.import_` would refuse with nothing stored, so that no store need be made for it.

    Raises:
        NotFoundError: there is no such file.
        StoreVersionError: a newer Commonplace wrote the export.
        UsageError: the file is damaged, cut off or of an unknown format, or something in it cannot be kept.
    """
    from commonplace.exchange.import_ import refuse_unfit

    refuse_unfit(source_of_import(path, format_, settings, 0.0), skip_problems=skip_problems)


def source_of_import(path: str | Path, format_: str, settings: Settings, now: float) -> Source:
    """Open a file as a source of an import."""
    from commonplace.exchange.read import source_of
    from commonplace.graph.kinds import kinds_of

    kinds = kinds_of(settings.graph)
    max_bytes = settings.memory.max_bytes
    return source_of(path_value("path", path).expanduser(), format_, kinds=kinds, now=now, max_bytes=max_bytes)


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """Live memories by tier, archived ones, and links."""

    ultra: int
    short: int
    medium: int
    long: int
    archived: int
    links: int


@dataclass(frozen=True, slots=True)
class MemoryFacets:
    """How many memories a list has, by the values of their fields."""

    total: int
    counts: Mapping[str, Mapping[str, int]]


PAST_STEPS: Final = 12
"""Of the time between two uses, so many parts are shown."""


@dataclass(frozen=True, slots=True)
class Fading:
    """The retention of a memory at a time."""

    at: datetime
    retention: float


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Linked memories, nearest first, with their links."""

    memories: tuple[Memory, ...]
    links: tuple[Link, ...]


_REFERENCE = re.compile(r"@?(?P<path>.+?)(?::(?P<first>[1-9][0-9]{0,8})-[0-9]+)?", re.DOTALL)

MEMORY_PREFIX = "memory:"
"""`memory:ID` names a memory, or another owner without a file, that stands on no page."""

ARTIFACT_PREFIX = "./"
"""`./MEMORY.md` names an artifact whose path is a page's name, too."""

LINES = 200
MAX_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a text, secrets replaced.

    Attributes:
        first_line, last_line: from 1, both included; an empty text has one line.
        total_lines: of the whole text.
    """

    path: str
    text: str
    first_line: int
    last_line: int
    total_lines: int


class MemoryApi(Service):
    """Takes in, finds, lists and reads memories, those of this process too, pages and artifacts. Safe for threads."""

    def remember(self, items: Sequence[Mapping[str, Any]], *, force: bool, wait: bool) -> list[Memory]:
        runtime = self._runtime
        in_process = [isinstance(item, Mapping) and item.get("tier") == "ultra" for item in items]
        if any(in_process):
            if not all(in_process):
                raise UsageError(
                    "some of the memories are of the tier ultra", remedy="give those in a call of their own"
                )
            return runtime.ultra.remember(items, force=force)
        kept = runtime.memory.remember(items, force=force)
        if wait and len(items) > 1:
            runtime.backlog.drain(runtime.progress)
        if len(items) > PROJECTED_AT_ONCE:
            runtime.maintenance.project()
            runtime.tokens.release()
        runtime.after()
        return kept

    def resolve_id(self, abbreviation: str) -> str:
        is_short = len(abbreviation) < MIN_ABBREVIATION
        if is_short or self._store.memory(self._namespace, abbreviation) is not None:
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

    def find(self, id_: str, as_of: float | None = None) -> StoredMemory | None:
        """Return a memory, or the version of it that was known at a time."""
        if self._runtime.has_ultra and (found := self._runtime.ultra.find(id_)) is not None:
            return found
        if as_of is None:
            return self._store.memory(self._namespace, id_)
        for each in self._store.versions(self._namespace, id_):
            if each.created_at <= as_of and (each.expired_at is None or as_of < each.expired_at):
                return each
        return None

    def touch(self, id_: str, *, reinforce: bool) -> Memory:
        if self._runtime.has_ultra and self._runtime.ultra.find(id_) is not None:
            return self._runtime.keep_risen(self._runtime.ultra.service.touch(id_, reinforce=reinforce))
        return self._runtime.memory.touch(id_, reinforce=reinforce)

    def list(self, selection: Selection) -> list[Memory]:
        """Return a page of selected memories, those of this process included."""
        end = None if selection.limit is None else selection.offset + selection.limit
        first = replace(selection, offset=0, limit=end)
        ultra = self._runtime.ultra.all(first) if self._runtime.has_ultra else []
        if ultra:
            found = sorted([*self._store.memories(self._namespace, first), *ultra], key=first.key)[
                selection.offset : end
            ]
        else:
            found = self._store.memories(self._namespace, selection)
        return [self._runtime.seen(stored) for stored in found]

    def facets(self, selection: Selection) -> MemoryFacets:
        """Count selected memories by their values, those of this process included."""
        counts = {name: Counter(some) for name, some in self._store.memory_facets(self._namespace, selection).items()}
        if self._runtime.has_ultra:
            for name, some in self._runtime.ultra.store.memory_facets(self._namespace, selection).items():
                counts[name].update(some)
        return MemoryFacets(
            counts["status"].total(), {name: dict(sorted(some.items())) for name, some in counts.items()}
        )

    def known(self, id_: str, as_of: Moment | None = None) -> StoredMemory:
        """Return the latest version of a memory, or the one that was known at a time."""
        reject_invalid_id(id_)
        at = None if as_of is None else moment_in_words("as_of", as_of, self._runtime.now())
        stored = self.find(id_, at)
        if stored is None:
            raise self.absent(id_, "" if as_of is None else f" that was known at {as_of}")
        return stored

    def absent(self, id_: str, when: str = "") -> NotFoundError:
        """Return the error for a missing memory."""
        what = f"there is no memory {id_!r:.80}{when} in namespace {self._namespace!r}"
        return NotFoundError(what, remedy="see `commonplace list`")

    def fading(self, stored: StoredMemory, days: int, *, past: bool = False) -> Sequence[Fading]:
        """Return the retention of a memory on each day after its last use, if it is not used again."""
        policy, record = self._runtime.retention, stored.record
        times = [(record, record.last_used + day * DAY_S) for day in range(days + 1)]
        uses = record.uses or (record.last_used,)
        # A correction counts as a use for the fading, but is not among the uses.
        moments = sorted({record.born_at, *uses, record.last_used}, reverse=True)
        for later, earlier in pairwise(moments) if past else ():
            count = record.use_count - sum(use >= later for use in uses)
            then = replace(record, last_used=earlier, use_count=max(0, count))
            steps = (earlier + (later - earlier) * step / PAST_STEPS for step in range(PAST_STEPS + 1))
            times = [*((then, at) for at in steps), *times]
        return [Fading(moment_of(at), min(1.0, policy.raw(then, at))) for then, at in times]

    def neighbourhood(self, id_: str, depth: int, limit: int) -> Neighbourhood:
        """Follow links from a memory; of equally near memories those with the stronger link come first, ties by id."""

        def live(ids: Sequence[str]) -> dict[str, StoredMemory]:
            chosen = Selection(ids=tuple(ids), statuses=LIVE, order="id")
            found = self._store.memories(self._namespace, chosen)
            return {each.owner.id: each for each in found if each.expired_at is None}

        reached = live([id_])
        if not reached:
            raise self.absent(id_)
        links: dict[tuple[str, str, str], Link] = {}
        edge = [id_]
        for _ in range(depth):
            strength: dict[str, float] = {}
            for link in self._store.links(self._namespace, edge) if edge else ():
                if link.origin == RULE:
                    continue  # alike, and not linked
                links[link.source, link.target, link.type] = link
                for end in (link.source, link.target):
                    strength[end] = max(strength.get(end, 0.0), link.strength)
            near = sorted(strength.keys() - reached.keys(), key=lambda end: (-strength[end], end))
            edge = []
            while near and len(reached) < limit:  # a hub may have any number of neighbours
                some, near = near[:MAX_NEIGHBOURS], near[MAX_NEIGHBOURS:]
                found = live(some)
                new = [end for end in some if end in found][: limit - len(reached)]
                reached |= {end: found[end] for end in new}
                edge += new
        among = [link for link in links.values() if link.source in reached and link.target in reached]
        among.sort(key=lambda link: (-link.strength, link.source, link.target, link.type))
        return Neighbourhood(tuple(map(self._runtime.seen, reached.values())), tuple(among))

    def raised_tier(self, memory: Memory, tier: str | None) -> Tier:
        """Return the tier that a memory moves to, the next one for None.

        Raises:
            UsageError: the tier is no higher one, or the memory is not trusted enough.
        """
        wanted = NEXT_TIER.get(memory.tier) if tier is None else one_of("tier", tier, TIERS)
        if wanted is None or TIERS.index(wanted) <= TIERS.index(memory.tier):
            raise UsageError(
                f"memory {memory.id!r:.80} is {memory.tier} already"
                if wanted in (None, memory.tier)
                else f"memory {memory.id!r:.80} is {memory.tier}, which is above {wanted}",
                remedy=f"tiers are, from low to high, {', '.join(TIERS)}; use `update` to lower one",
            )
        if memory.trust < MIN_TRUST_TO_PROMOTE:
            raise UsageError(
                f"memory {memory.id!r:.80} is trusted {memory.trust:.2f},"
                f" and one below {MIN_TRUST_TO_PROMOTE} is not raised",
                remedy="let a person confirm it with `update`",
            )
        return wanted  # type: ignore[return-value] # one of them

    def counts(self) -> MemoryCounts:
        counted = self._store.count_tiers(self._namespace)
        live = {tier: sum(counted.get((tier, status), 0) for status in LIVE) for tier in TIERS[1:]}
        archived = sum(count for (_, status), count in counted.items() if status == "archived")
        ultra = len(self._runtime.ultra.all(Selection(statuses=LIVE))) if self._runtime.has_ultra else 0
        links = self._store.count_links(self._namespace)
        return MemoryCounts(ultra=ultra, archived=archived, links=links, **live)

    @made_once
    def pages(self) -> PageReader:
        from commonplace.journal.pages import PageReader

        return PageReader(self._runtime.directory, self._namespace, self._store)

    def read(self, path: str, first: int, lines: int, *, touch: bool) -> Excerpt:
        text = self._text(path)
        found = _REFERENCE.fullmatch(path) if text is None else None
        for named in (found["path"], f"{MEMORY_PREFIX}{found['path']}") if found else ():
            text = self._text(named)
            if text is not None and found is not None:
                path, first = named, max(first, int(found["first"] or 1))
                break
        if text is None:
            raise NotFoundError(
                f"there is no page, artifact or memory {path!r:.200}", remedy="name a path that a search returned"
            )
        from commonplace.ingest.read import normalise

        # As a whole: the middle of a key alone does not tell what it is. Placeholders keep the line breaks.
        every = redact(normalise(text)).text.removesuffix("\n").split("\n")
        if first > len(every):
            raise NotFoundError(
                f"{path!r:.200} ends with line {len(every):,}, line {first:,} was asked for",
                remedy="begin at a line that it has",
            )
        if touch:
            is_memory = path.startswith(MEMORY_PREFIX)
            id_ = path.removeprefix(MEMORY_PREFIX) if is_memory else self.pages.memory_at(path, first)
            self._runtime.count_uses([id_] if id_ else [])
        chosen = every[first - 1 : first - 1 + lines]
        return Excerpt(path, "\n".join(chosen), first, first - 1 + len(chosen), len(every))

    def _text(self, path: str) -> str | None:
        """Return a page, what a memory says, or an artifact or document as its passages have it."""
        if path.startswith(MEMORY_PREFIX):
            id_ = path.removeprefix(MEMORY_PREFIX)
            if (stored := self.find(id_)) is not None:
                return stored.record.content
            others = self._store.matching_owners(self._namespace, Filter(kinds=("knowledge", "artifact")))
            owners = self._store.owners(self._namespace, others)
            return self._put_together([number for number, owner in owners.items() if owner.id == id_])
        page = None if path.startswith(ARTIFACT_PREFIX) else self.pages.text(path)
        if page is not None:
            return page
        path, artifacts = path.removeprefix(ARTIFACT_PREFIX), self._store.artifacts(self._namespace)
        return self._put_together([number for number, owner in artifacts if owner.path == path])

    def _put_together(self, numbers: Sequence[int]) -> str | None:
        """Join the passages of owners by their line numbers; return None without owners."""
        if not numbers:
            return None
        passages = self._store.passages(self._namespace, self._store.passages_of(self._namespace, numbers))
        lines: dict[int, str] = {}
        for passage in passages.values():
            for place, line in enumerate(passage.chunk.text.split("\n"), passage.chunk.start_line):
                # A line that alone was too long for a passage goes on in the next one.
                known = lines.get(place, "")
                lines[place] = known if known.endswith(line) else known + line
        return "\n".join(lines.get(place, "") for place in range(1, max(lines, default=0) + 1))
