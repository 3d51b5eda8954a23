"""The calls of an engine that take in, read, change and use memories. It parses and passes on; the rules are below."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from commonplace.dates.time import Moment, moment_in_words
from commonplace.engine.runtime import Workings
from commonplace.errors import NotFoundError, UsageError
from commonplace.ingest.read import normalise
from commonplace.journal.pages import PagePlace, PageReader
from commonplace.memory.service import MAX_DEPTH, MAX_NEIGHBOURS, outward
from commonplace.memory.usage import Use
from commonplace.memory.validate import (
    boolean,
    int_in,
    labels,
    moment,
    one_of,
    reject_invalid_id,
    series,
    short_text,
    texts,
)
from commonplace.memory.view import Memory, seen
from commonplace.redaction import redact
from commonplace.text.escaping import visible
from commonplace.types import KINDS, STATUSES, TIERS, Filter, Link, Selection, StoredMemory

Memories = list[Memory]
"""What lists of memories are called inside a class that has a method `list`."""

PROJECTED_AT_ONCE = 256
"""So many memories given at once go into the index when they are stored; fewer wait for the next search or update."""

MAX_LISTED = 10_000
MIN_ABBREVIATION = 4
"""Characters; fewer would be mistyped ids that happen to begin another."""
MAX_OFFSET = 10**9


class Remembering(Workings):
    """The part of `Engine` that is about memories."""

    def remember(  # noqa: PLR0913 - the options of a facade
        self,
        content: str,
        tier: str | None = None,
        tags: Sequence[str] = (),
        source: str = "",
        at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        category: str = "",
        *,
        id: str | None = None,  # noqa: A002 - the name of the field
        session: str = "",
        entities: Sequence[str] = (),
        origin: str | None = None,
        trust: float | None = None,
        derived_from: Sequence[str] = (),
        force: bool = False,
    ) -> Memory:
        """Keep a text, and return when it is durable; every process finds it from then on.

        Secrets are replaced by placeholders. What is remembered already, exactly or in nearly the same words, is
        touched instead: the memory that is returned says so in `outcome` and `notices`. A known `id` with other words
        makes the next version of that memory. Blocks that were recalled are cut out. What it says of what it names goes
        into the graph in the same transaction, unless the setting graph.remember is off.

        Args:
            content: at most 1 MiB of UTF-8, by the setting memory.max_bytes.
            tier: "ultra" (this process only), "short", "medium" or "long"; None is short, and medium in a session.
            tags: at most 100, each at most 200 characters.
            source: who or what it came from.
            at: when it happened: an ISO 8601 text, a datetime, seconds, or words such as "yesterday", which mean its
                beginning; None is now. Dates in the text are read as seen from then.
            metadata: what JSON can hold, at most 64 KiB.
            category: chooses the half-life: decision, preference, fact, context, ….
            id: an id of yours, kept verbatim; None makes a UUID.
            session: a conversation; memories of one session keep their order and are never joined.
            entities: names of what it is about.
            origin: "user", "agent" (the default), "tool", "document" or "web".
            trust: 0–1; None follows from the origin. A derived memory has at most its sources' trust.
            derived_from: ids of the memories it was made from.
            force: take it even if it repeats what is stored, or looks binary; the memory records that.

        Raises:
            AdmissionError: the text is a passage of an indexed artifact, or nothing but what was recalled.
            UsageError: a value is of the wrong kind, empty, too large or out of its range. Nothing was stored.
        """
        item = {
            "content": content,
            "tier": tier,
            "tags": tags,
            "source": source,
            "at": at,
            "metadata": metadata,
            "category": category,
            "id": id,
            "session": session,
            "entities": entities,
            "origin": origin,
            "trust": trust,
            "derived_from": derived_from,
        }
        return self.remember_many([item], force=force)[0]

    def remember_many(self, items: Iterable[Mapping[str, Any]], *, force: bool = False, wait: bool = True) -> Memories:
        """Keep many texts, in their order, and return one memory for each.

        All are checked before any is stored; 256 at a time, or 128 KiB of text, are one transaction. They are durable
        and found by their words before they are embedded.

        Args:
            items: mappings with `content` and any of the other arguments of `remember`, or chat messages: with `role`
                (user, assistant, tool), which gives the origin, and `content` as a text or a list of text parts.
            force: as for `remember`.
            wait: return when they can be found by meaning too; otherwise that is done beside what follows.

        Raises:
            AdmissionError: as for `remember`; the message says which one.
            UsageError: likewise.
        """
        boolean("force", force)
        given = list(series("items", items))
        self._before()
        in_process = [isinstance(item, Mapping) and item.get("tier") == "ultra" for item in given]
        if any(in_process):
            if not all(in_process):
                raise UsageError(
                    "some of the memories are of the tier ultra", remedy="give those in a call of their own"
                )
            return self._ultra.remember(given, force=force)
        kept = self._keeper.remember(given, force=force)
        if wait and len(given) > 1:
            self._backlog.drain(self._progress)
        if len(given) > PROJECTED_AT_ONCE:
            self._upkeep.project()
            self._tokens.release()
        self._after()
        return kept

    def resolve_id(self, abbreviation: str) -> str:
        """Return the id of the memory that begins with some characters, as git takes them.

        What is no beginning, and the whole id of anything else, comes back as given.

        Args:
            abbreviation: a whole id, or its first characters, at least 4.

        Raises:
            UsageError: several memories begin so.
        """
        reject_invalid_id(abbreviation)
        if len(abbreviation) < MIN_ABBREVIATION or self._store.memory(self.namespace, abbreviation) is not None:
            return abbreviation
        self._before()
        if any(self._store.owner_numbers(self.namespace, kind, [abbreviation]) for kind in KINDS):
            return abbreviation
        stored = (id_ for _, id_, _ in self._store.memory_digests(self.namespace))
        ids = sorted(id_ for id_ in stored if id_.startswith(abbreviation))
        if len(ids) > 1:
            more = f" and {len(ids) - 5:,} more" if len(ids) > 5 else ""
            raise UsageError(
                f"{abbreviation!r} begins the ids of {len(ids):,} memories: {', '.join(ids[:5])}{more}",
                remedy="give more characters",
            )
        return ids[0] if ids else abbreviation

    def get(self, id: str, *, as_of: Moment | None = None, touch: bool | None = None) -> Memory:  # noqa: A002
        """Return a memory by its id, live or archived, and count that as a use, at most once an hour.

        Args:
            as_of: the version that was known at that time, which may be said in words as for `search`. Its words are
                those of then; its status, tier and use, which make no version, are those it had when it was replaced.
            touch: True counts one more use now, as `touch` does; False counts nothing, for who only looks at it.

        Raises:
            NotFoundError: there is none of that id, or there was none at that time.
        """
        reject_invalid_id(id)
        self._before()
        if touch and as_of is None:
            return self.touch(id)
        stored = self._ultra.find(id) if self._has_ultra else None
        if stored is None:
            stored = (
                self._store.memory(self.namespace, id)
                if as_of is None
                else self._known(id, moment_in_words("as_of", as_of, self._now()))
            )
        if stored is None:
            when = "" if as_of is None else f" that was known at {as_of}"
            raise NotFoundError(
                f"there is no memory {id!r:.80}{when} in namespace {self.namespace!r}", remedy="see `commonplace list`"
            )
        if touch is None and as_of is None:
            self._used([id])
        return self._seen(stored)

    def versions(self, id: str) -> Memories:  # noqa: A002
        """Return every version of a memory, oldest first.

        Raises:
            NotFoundError: there is none of that id.
        """
        reject_invalid_id(id)
        found = self._store.versions(self.namespace, id)
        if not found:
            raise NotFoundError(
                f"there is no memory {id!r:.80} in namespace {self.namespace!r}", remedy="see `commonplace list`"
            )
        return [self._seen(stored) for stored in found]

    def update(  # noqa: PLR0913 - the options of a facade
        self,
        id: str,  # noqa: A002
        content: str | None = None,
        *,
        tags: Sequence[str] | None = None,
        tier: str | None = None,
        source: str | None = None,
        at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        category: str | None = None,
        entities: Sequence[str] | None = None,
    ) -> Memory:
        """Write the next version of a memory; what is None stays. The old version stays readable by `as_of`.

        Raises:
            NotFoundError: there is no live memory of that id.
            UsageError: nothing is to change, or a value is not as `remember` wants it.
        """
        values = {
            "content": content,
            "tags": tags,
            "tier": tier,
            "source": source,
            "at": at,
            "metadata": metadata,
            "category": category,
            "entities": entities,
        }
        self._before()
        changed = [name for name, value in values.items() if value is not None]
        updated = self._keeper.set_tier(id, tier) if changed == ["tier"] else self._keeper.update(id, values)
        self._after()
        return updated

    def touch(self, id: str, *, reinforce: bool = False) -> Memory:  # noqa: A002
        """Count one more use of a memory; three in seven days move it to the next tier, unless it is not trusted.

        Args:
            reinforce: also raise its strength by 0.1, up to 2.

        Raises:
            NotFoundError: there is no live memory of that id.
        """
        reject_invalid_id(id)
        self._before()
        if self._has_ultra and self._ultra.find(id) is not None:
            return self._risen(self._ultra.touch(id, reinforce=reinforce))
        touched = self._keeper.touch([id], reinforce=reinforce)[0]
        self._after()
        return touched

    def review(self, id: str) -> Memory:  # noqa: A002
        """Say that a person looked at a memory and found it right: it counts as a review, and as a use.

        Three reviews are a reason to promote it, as `consolidate` does.

        Raises:
            NotFoundError: there is no live memory of that id that is stored.
        """
        reject_invalid_id(id)
        self._before()
        reviewed = self._keeper.touch([id], is_review=True)[0]
        self._after()
        return reviewed

    def archive(self, id: str) -> Memory:  # noqa: A002
        """Take a memory out of finding; `restore_memory` brings it back, `gc` deletes it after 30 days.

        Raises:
            NotFoundError: there is none of that id.
        """
        reject_invalid_id(id)
        self._before()
        archived = self._keeper.archive([id])[0]
        self._after()
        return archived

    def restore_memory(self, id: str) -> Memory:  # noqa: A002
        """Let an archived memory be found again, as a new version with the same words.

        Raises:
            NotFoundError: there is none of that id.
        """
        reject_invalid_id(id)
        self._before()
        restored = self._keeper.restore(id)
        self._after()
        return restored

    def link(self, source: str, target: str, type: str = "related", strength: float = 1.0) -> Link:  # noqa: A002
        """Link a memory to another one, in the place of a link of the same type between them.

        Args:
            strength: 0–1.

        Raises:
            NotFoundError: one of them is not there.
            UsageError: they are one, or a value is out of its range.
        """
        reject_invalid_id(source)
        reject_invalid_id(target)
        self._before()
        link = self._keeper.link(source, target, type, strength)
        self._after()
        return link

    def unlink(self, source: str, target: str, type: str | None = None) -> int:  # noqa: A002
        """Delete the links from one memory to another, of one type or of all; return how many there were."""
        reject_invalid_id(source)
        reject_invalid_id(target)
        if type is not None:
            short_text("type", type)
        self._before()
        gone = self._keeper.unlink(source, target, type)
        self._after()
        return gone

    def links(self, id: str | None = None) -> list[Link]:  # noqa: A002
        """Return the links that start or end at a memory, or all of the namespace, by source, target and type."""
        if id is not None:
            reject_invalid_id(id)
        return self._store.links(self.namespace, None if id is None else [id])

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
        """Return memories, the newest first by the time they tell of; ties by id.

        Args:
            statuses: "active", "promoted", "archived"; an empty list is all.
            since, until: half-open; over the memories' own times. Words, such as "yesterday", mean its beginning.
            limit: 1–10,000.

        Raises:
            UsageError: a value is out of its range.
        """
        int_in("limit", limit, 1, MAX_LISTED)
        int_in("offset", offset, 0, MAX_OFFSET)
        selection = Selection(
            tiers=tuple(one_of("tiers", tier, TIERS) for tier in labels("tiers", tiers)),  # type: ignore[misc]
            statuses=tuple(one_of("statuses", status, STATUSES) for status in labels("statuses", statuses)),  # type: ignore[misc]
            tags=labels("tags", tags),
            sources=texts("sources", sources),
            sessions=texts("sessions", sessions),
            categories=tuple(category.lower() for category in labels("categories", categories)),
            since=None if since is None else moment("since", since, self._now()),
            until=None if until is None else moment("until", until, self._now()),
            limit=limit + offset,
        )
        self._before()
        found = self._store.memories(self.namespace, selection)
        if self._has_ultra:
            found += self._ultra.all(selection)
            found.sort(key=lambda each: (-(each.owner.at or 0.0), each.owner.id))
        return [self._seen(stored) for stored in found[offset : offset + limit]]

    def _write_uses(self, uses: Sequence[Use]) -> None:
        """Write that memories were used, those of this process too."""
        super()._write_uses(uses)
        if self._has_ultra:
            for risen in self._ultra.count_uses(uses):
                self._risen(self._seen(risen))

    def _risen(self, memory: Memory) -> Memory:
        """Store a memory of this process that was used often enough, and return it."""
        if memory.tier == "ultra":
            return memory
        names = ("content", "tier", "tags", "source", "at", "metadata", "category", "id", "entities", "origin", "trust")
        item = {name: getattr(memory, name) for name in names}
        stored = self.remember_many([item])[0]
        self._ultra.erase([memory.id])
        return stored

    def _known(self, id_: str, as_of: float | None) -> StoredMemory | None:
        if as_of is None:
            return self._store.memory(self.namespace, id_)
        return next(
            (
                version
                for version in self._store.versions(self.namespace, id_)
                if version.created_at <= as_of and (version.expired_at is None or as_of < version.expired_at)
            ),
            None,
        )

    def _seen(self, stored: StoredMemory) -> Memory:
        return seen(stored, self.namespace, self._now(), self._fading)


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Memories that hang together: the one that was asked about, then the others, nearest first; links by strength."""

    memories: tuple[Memory, ...]
    links: tuple[Link, ...]


class Relating(Workings):
    """The part of `Engine` that follows links."""

    def neighbourhood(self, id: str, *, depth: int = 2, limit: int = 50) -> Neighbourhood:  # noqa: A002
        """Return the live memories that a memory is linked to, in either direction, and those that these are.

        Args:
            depth: how many links away, 1–4.
            limit: how many memories at most, 1–500, this one among them.

        Raises:
            NotFoundError: there is no live memory of that id.
            UsageError: a number is out of its range.
        """
        int_in("depth", depth, 1, MAX_DEPTH)
        int_in("limit", limit, 1, MAX_NEIGHBOURS)
        reject_invalid_id(id)
        self._before()
        found: dict[str, StoredMemory] = {}

        def live(some: Sequence[str]) -> dict[str, StoredMemory]:
            chosen = Selection(ids=tuple(some), statuses=("active", "promoted"), order="id")
            stored = self._store.memories(self.namespace, chosen)
            found.update({each.owner.id: each for each in stored if each.expired_at is None})
            return found

        if id not in live([id]):
            raise NotFoundError(f"there is no memory {id!r:.80} in this namespace", remedy="see `commonplace list`")
        ids, links = outward(id, lambda some: self._store.links(self.namespace, some), live, depth=depth, limit=limit)
        now = self._now()
        return Neighbourhood(tuple(seen(found[each], self.namespace, now, self._fading) for each in ids), links)


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


class Reading(Workings):
    """The part of `Engine` that reads."""

    def pages(self) -> list[str]:
        """Return the names of the Markdown pages: the long-term page, then the days, the newest first."""
        self._pick_up()
        return self._page_reader.names()

    def snippet(self, text: str, query: str, limit: int = 300) -> str:
        """Return the part of a text that answers a query best, on one line, with invisible characters written out."""
        from commonplace.text.snippet import snippet

        return snippet(visible(text), query, limit=limit).text

    def places(self, ids: Iterable[str]) -> dict[str, PagePlace]:
        """Return where memories stand on Markdown pages; those that stand on none are absent."""
        return self._page_reader.places(ids)

    def memory_at(self, path: str, line: int) -> str | None:
        """Return the id of the memory that stands on a line of a Markdown page, from 1; None where none does."""
        int_in("line", line, 1, 10**9)
        return self._page_reader.memory_at(path, line) if isinstance(path, str) else None

    def read(self, path: str, first: int = 1, lines: int = LINES, *, touch: bool = False) -> Excerpt:
        """Return some lines of a Markdown page, of an indexed artifact, or of a memory.

        Nothing else can be read, and no file but a page is opened: an artifact's lines are those that were indexed.

        Args:
            path: `MEMORY.md`, `memory/2026-11-21.md`, an artifact's path as a search names it, or `memory:ID`. Where a
                page and an artifact have one name, that of the artifact has `./` before it. Also a memory's id alone,
                and a reference, `@PATH` or `PATH:3-8`, which is read from its first line on.
            first: from 1.
            lines: at most so many, 1–2,000.
            touch: count the memory as used, of a page that on the first line, at most once an hour.

        Raises:
            NotFoundError: there is no such page, artifact or memory, or it has fewer lines.
            UsageError: a number is out of its range.
        """
        int_in("first", first, 1, 10**9)
        int_in("lines", lines, 1, MOST_LINES)
        if not isinstance(path, str):
            raise UsageError(f"path is {path!r:.80}", remedy="name a path that a search returned")
        self._pick_up()
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
            self._used([id_] if id_ else [])
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
        stored = self._ultra.find(id_) if self._has_ultra else None
        stored = stored or self._store.memory(self.namespace, id_)
        if stored is not None:
            return stored.record.content
        others = self._store.matching_owners(self.namespace, Filter(kinds=("knowledge", "artifact")))
        numbers = [number for number, owner in self._store.owners(self.namespace, others).items() if owner.id == id_]
        return self._put_together(numbers) if numbers else None

    def _indexed(self, path: str) -> str | None:
        """Return an artifact as its passages have it; blank lines between them are blank here too."""
        numbers = [number for number, owner in self._store.artifacts(self.namespace) if owner.path == path]
        return self._put_together(numbers) if numbers else None

    def _put_together(self, numbers: Sequence[int]) -> str:
        """Return the text of an owner's passages."""
        passages = self._store.passages(self.namespace, self._store.passages_of(self.namespace, numbers))
        lines: dict[int, str] = {}
        for passage in passages.values():
            for place, line in enumerate(passage.chunk.text.split("\n"), passage.chunk.start_line):
                # A line that alone was too long for a passage goes on in the next one.
                known = lines.get(place, "")
                lines[place] = known if known.endswith(line) else known + line
        return "\n".join(lines.get(place, "") for place in range(1, max(lines, default=0) + 1))

    @cached_property
    def _page_reader(self) -> PageReader:
        return PageReader(self.directory, self.namespace, self._store)
