"""The memory service: add, update, use, archive and link memories, each in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from commonplace.dataclasses import dataclass, field, replace
from commonplace.dates.time import moment_of
from commonplace.errors import AdmissionError, EmbedderMismatchError, NotFoundError, UsageError, VersionConflictError
from commonplace.formats.fence import unfence
from commonplace.ingest.passages import Destination
from commonplace.memory import validate
from commonplace.memory.admission import Admission, admit, batches, first_version, source_of, write_version, writes_of
from commonplace.memory.supersession import expire_judged
from commonplace.memory.view import Memory, Outcome, memory_view
from commonplace.retention import RetentionPolicy
from commonplace.search.retrieve import Searcher
from commonplace.store.memories import MemoryChange
from commonplace.types import (
    CONFLICTS,
    HOLDS_BESIDE,
    RULE,
    SUPERSEDES,
    TIERS,
    Link,
    MemoryRecord,
    MemoryWrite,
    Owner,
    StoredMemory,
)

if TYPE_CHECKING:
    from commonplace.graph.episodes import MemoryFeed, Readings

_GRAPH_FIELDS: Final = frozenset({"content", "at", "source"})
"""Fields of a memory that the graph reads; an update of other fields extracts nothing."""
_UNVERSIONED: Final = "origin trust status use_count strength uses review_count promoted_at vault_path".split()
_SETTLING: Final = (SUPERSEDES, HOLDS_BESIDE)
"""Types of links by which a person settles which of two memories holds."""
MIN_CONFIDENCE: Final = 0.75
"""Strength below which a rule's link does not make a repeated memory count from its new date."""
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _with_current_embedder(method: _Method) -> _Method:
    """Retry a method with the store's current embedder if another process has changed it."""

    @wraps(method)
    def with_retry(self: MemoryService, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except EmbedderMismatchError:
            self._destination = self._destination.renewed()
            return method(self, *arguments)

    return cast("_Method", with_retry)


class _Repeat(NamedTuple):
    """A memory that was remembered again: its stored version, new time and new trust, and whether a date was given."""

    stored: StoredMemory
    at: float
    trust: float
    is_dated: bool


@dataclass(eq=False, repr=False)
class MemoryService:
    """Keeps the memories of one namespace. Safe for threads.

    Attributes:
        now: the clock, seconds since the epoch.
        searcher: returns the current searcher, which finds the source of a copied text; None skips that check.
        has_ultra: whether it keeps the ultra tier, the memories of one process, which are never stored.
        feed: returns the feed that updates the graph, or None; called only on writes, because it is slow to load.
        project: the directory whose files memories refer to.
    """

    _destination: Destination
    _policy: RetentionPolicy
    _now: Callable[[], float]
    _searcher: Callable[[], Searcher] | None = None
    max_bytes: int = field(default=validate.MAX_CONTENT_BYTES, kw_only=True)
    has_ultra: bool = field(default=False, kw_only=True)
    feed: Callable[[], MemoryFeed | None] = field(default=lambda: None, kw_only=True)
    project: Path | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._store, self._namespace = self._destination.store, self._destination.namespace
        self._is_chosen = False

    def remember(self, items: Sequence[Mapping[str, Any]], *, force: bool = False) -> list[Memory]:
        """Store memories in order; see `Engine.remember_many`."""
        new_memories = []
        for position, item in enumerate(items, 1):
            try:
                memory = self._checked(item, force=force)
                new_memories.append(memory if force or memory.session else self._without_recalled(memory))
            except UsageError as error:
                if len(items) == 1:
                    raise
                message = f"memory {position} of {len(items)}: {error.args[0]}; none of them was stored"
                raise type(error)(message, remedy=error.remedy) from error
        if not self._is_chosen:  # only after all checks: a refused memory must not fix the embedder for good
            if self._store.embedding() is None:
                self._destination = self._destination.renewed()
            self._is_chosen = True
        stored: list[Memory] = []
        for batch in batches(new_memories):
            stored += self._write_batch(batch, force)
        return stored

    @_with_current_embedder
    def update(self, id_: str, values: Mapping[str, Any], if_version: int | None = None) -> Memory:
        """Write the next version of a live memory; see `Engine.update`."""
        changed = {name: value for name, value in values.items() if value is not None}
        validate.reject_invalid_id(id_)
        while True:
            old = _existing(self._store.memory(self._namespace, id_), id_)
            if not changed:
                raise UsageError(f"nothing of memory {id_!r} is to be changed", remedy="name what should be new")
            if if_version is not None and old.record.version != if_version:
                raise VersionConflictError(
                    f"memory {id_!r} has version {old.record.version}, not {if_version}",
                    version=old.record.version,
                    remedy="read it again before you change it",
                )
            is_forced = old.record.is_forced
            memory = self._checked({**validate.input_fields(old.owner, old.record), **changed}, force=is_forced)
            write = self.write_of(*first_version(memory, self._now(), self.project, is_forced=is_forced))
            readings = None if _GRAPH_FIELDS.isdisjoint(changed) else self._extract([write])
            with self._changing() as change:
                current = _existing(change.find(id_), id_)
                if current.number != old.number:
                    continue  # somebody else changed it meanwhile: fields not named here must keep their current values
                now, record, previous = self._change_time(current), write.record, current.record
                # Fields that belong to no version come from the memory as it is now.
                record = replace(
                    record,
                    tier=record.tier if "tier" in changed else previous.tier,
                    entities=record.entities if "entities" in changed else previous.entities,
                    last_used=max(now, previous.last_used),
                    **{name: getattr(previous, name) for name in _UNVERSIONED},
                )
                stored = write_version(change, current, replace(write, record=record), now)
                if memory.content != current.record.content:
                    expire_judged(change, now, id_)
                self._update_graph(change, [id_], readings, [current])
            graph_notices = () if readings is None else readings.notices(stored.owner, stored.record)
            return self._view(stored, "updated", (*memory.notices, *graph_notices))

    def touch(self, id_: str, *, reinforce: bool = False, is_review: bool = False) -> Memory:
        """Count a use or a review of a memory; enough of them raise its tier."""

        def used(record: MemoryRecord) -> MemoryRecord:
            record = self._policy.used(record, self._now(), reinforce=reinforce)
            return replace(record, review_count=record.review_count + is_review)

        return self._revise(id_, used, "reviewed" if is_review else "touched")

    def set_tier(self, id_: str, tier: Any) -> Memory:
        """Move a live memory to another tier, without a new version."""
        chosen = validate.one_of("tier", tier, TIERS[1:])
        return self._revise(id_, lambda record: replace(record, tier=chosen, uses=()), "touched")  # type: ignore[arg-type]

    def _revise(self, id_: str, revised: Callable[[MemoryRecord], MemoryRecord], outcome: Outcome) -> Memory:
        with self._store.change_memories(self._namespace) as change:
            current = _existing(change.find(id_), id_)
            record = revised(current.record)
            change.revise(current.number, record)
        return self._view(replace(current, record=record), outcome)

    def archive(self, id_: str) -> Memory:
        """Archive a live memory; an archived one is left as it is."""
        with self._store.change_memories(self._namespace) as change:
            current = _existing(change.find(id_), id_, is_live=False)
            if current.expired_at is not None:
                return self._view(current, "unchanged")
            change.expire(current.number, replace(current.record, status="archived"), self._change_time(current))
            self._update_graph(change, [id_])
            archived = _existing(change.find(id_), id_, is_live=False)
        return self._view(archived, "archived")

    @_with_current_embedder
    def restore(self, id_: str) -> Memory:
        """Restore an archived memory, as a new version with the same text."""
        while True:
            archived = _existing(self._store.memory(self._namespace, id_), id_, is_live=False)
            if archived.expired_at is None:
                return self._view(archived, "unchanged")
            write = self.write_of(archived.owner, archived.record)
            readings = self._extract([write])
            with self._changing() as change:
                current = _existing(change.find(id_), id_, is_live=False)
                if current.number != archived.number:
                    continue
                now = self._now()
                record = replace(current.record, status="active", last_used=max(now, current.record.last_used))
                stored = write_version(change, current, replace(write, record=record), now)
                self._update_graph(change, [id_], readings)
            return self._view(stored, "restored")

    def link(self, source: str, target: str, type_: str, strength: float, *, by_agent: bool = False) -> Link:
        """Link two memories that exist; a link of the same type between them is replaced; see `Engine.link`."""
        if source == target:
            raise UsageError(f"memory {source!r} cannot be linked to itself", remedy="name two memories")
        name = validate.link_type(type_)
        if not name:
            raise UsageError("the type of a link is empty", remedy="give a type, such as related")
        link, feed = Link(source, target, name, validate.fraction("strength", strength), self._now()), self.feed()
        with self._store.change_memories(self._namespace) as change:
            memories = [_existing(change.find(id_), id_, is_live=False) for id_ in (source, target)]
            if name in _SETTLING:
                # Of two answers about the same memories, the later one counts.
                ends = {source, target}
                earlier = [each for each in change.links([source]) if {each.source, each.target} == ends]
                earlier = [each for each in earlier if each.origin != RULE and each.type in _SETTLING]
                if by_agent and any((each.source, each.type) != (source, name) for each in earlier):
                    raise UsageError(
                        f"which of {source!r:.80} and {target!r:.80} holds is settled already",
                        remedy="tell the user: `commonplace memory link` settles it anew",
                    )
                same = replace(link, created_at=earlier[-1].created_at) if earlier else None
                if earlier == [same] and all(memory.created_at <= earlier[0].created_at for memory in memories):
                    return earlier[0]  # removed and made again, it would end facts at another time
                self._remove(change, earlier)
                expire_judged(change, link.created_at, source, target)
            change.link(link)
            if feed is not None and name == SUPERSEDES:
                feed.overtake(change, target, source, link.strength)
        return link

    def unlink(self, source: str, target: str, type_: str | None) -> int:
        """Delete the links from one memory to another and reopen what they settled; return how many there were."""
        name = None if type_ is None else validate.link_type(type_)
        with self._store.change_memories(self._namespace) as change:
            links = self._store.links(self._namespace, [source], past=True)
            removed = [link for link in links if link.target == target and name in (None, link.type)]
            self._remove(change, removed)
        return len(removed)

    def _remove(self, change: MemoryChange, links: Sequence[Link]) -> None:
        """Delete links, and reopen what those of a person settled, unless either memory's text has changed since."""
        store, namespace, feed = self._store, self._namespace, self.feed()
        for link in sorted(links, key=lambda link: link.origin != RULE):  # a rule's first: it may be reopened
            change.unlink(link.source, link.target, link.type)
            if link.origin == RULE or link.type not in _SETTLING:
                continue
            if feed is not None:
                feed.hold_again(change, link.target, link.source)
            contents = {
                (id_, version.record.content)
                for id_ in (link.source, link.target)
                for version in store.versions(namespace, id_)
                if version.expired_at is None or version.expired_at > link.created_at
            }
            if len(contents) == 2 and len({id_ for id_, _ in contents}) == 2:
                for judged in store.links(namespace, [link.source], past=True):
                    if judged.expired_at == link.created_at and link.target in (judged.source, judged.target):
                        change.link(replace(judged, expired_at=None))

    def write_of(self, owner: Owner, record: MemoryRecord) -> MemoryWrite:
        """Return a version with passages made from its content."""
        return writes_of(self._destination, [(owner, record)])[0]

    def _changing(self, **expected: Any) -> AbstractContextManager[MemoryChange]:
        """Begin a change that writes vectors; see `MemoryStore.change_memories`."""
        return self._store.change_memories(self._namespace, made_by=self._destination.embedder.stamp, **expected)

    def _checked(self, item: Mapping[str, Any], *, force: bool) -> validate.NewMemory:
        memory = validate.without_secrets(
            validate.validate_memory(item, max_bytes=self.max_bytes, force=force, now=self._now())
        )
        if memory.tier == "ultra" and not self.has_ultra:
            raise UsageError(
                "the ultra tier is of one process and never stored",
                remedy="store it with `remember`, in a call of its own",
            )
        return memory

    @_with_current_embedder
    def _without_recalled(self, memory: validate.NewMemory) -> validate.NewMemory:
        """Remove recalled blocks; refuse a text that holds nothing else or copies a stored artifact or knowledge."""
        unfenced = unfence(memory.content)
        if unfenced.recalled:
            if not unfenced.text.strip():
                raise AdmissionError(
                    "the content is nothing but what was recalled from memory",
                    remedy="say what is new, or pass force=True",
                )
            count = len(unfenced.recalled)
            notice = f"what was recalled from memory was skipped: {count} passage{'' if count == 1 else 's'}"
            memory = replace(memory, content=unfenced.text, notices=(*memory.notices, notice))
            validate.reject_invalid(memory.content, max_bytes=self.max_bytes)
        searcher = self._searcher
        source = "" if searcher is None else source_of(memory.content, self._store, searcher(), self._namespace)
        if source:
            raise AdmissionError(
                f"the content is text of {source}, which is stored already",
                remedy="say what is new about it, or pass force=True",
            )
        return memory

    @_with_current_embedder
    def _write_batch(self, new_memories: Sequence[validate.NewMemory], force: bool) -> list[Memory]:
        begun = self._now()
        versions = [first_version(memory, begun, self.project, is_forced=force) for memory in new_memories]
        writes = writes_of(self._destination, versions)
        readings = self._extract(writes)
        has_given_ids = any(memory.id for memory in new_memories)
        admissions: list[Admission] = []
        repeats: dict[str, _Repeat] = {}
        feed = self.feed()
        with self._changing(writes=writes, has_given_ids=has_given_ids) as change:
            now = self._now()
            for memory, draft in zip(new_memories, writes, strict=True):
                sources = (change.find(id_) for id_ in draft.record.derived_from)
                # A derived memory is trusted no more than the least trusted of its sources.
                trust = min((source.record.trust for source in sources if source is not None), default=1.0)
                trust = min(trust, draft.record.trust)
                write = replace(draft, record=replace(draft.record, trust=trust, born_at=now, last_used=now))
                admission = admit(change, write, self._policy, self.write_of, given=memory, force=force)
                admissions.append(admission)
                stored, outcome, _ = admission
                if feed is not None and readings is not None and outcome != "unchanged" and stored.created_at >= now:
                    if outcome == "added":
                        feed.add(change, stored, readings)
                    else:
                        feed.follow(change, [stored.owner.id], readings, [stored] if outcome == "touched" else ())
                later = now if memory.at is None else memory.at
                if outcome == "touched" and later < stored.at and trust >= stored.record.trust:
                    if feed is not None and readings is not None and memory.content == stored.record.content:
                        feed.add_earlier(change, stored, later, readings)
                elif outcome == "touched" and later > stored.at and trust >= stored.record.trust:
                    repeat, before = _Repeat(stored, later, trust, memory.at is not None), repeats.get(stored.owner.id)
                    is_last = before is None or later >= before.at
                    repeats[stored.owner.id] = repeat if is_last else before._replace(stored=stored)  # type: ignore[union-attr]
        dated = self._redate(self._contested(repeats, {item.stored.owner.id for item in admissions})) if repeats else {}
        memories = []
        for memory, (stored, outcome, notices) in zip(new_memories, admissions, strict=True):
            latest = dated.get(stored.owner.id, stored) if outcome == "touched" else stored
            day = moment_of(latest.at).date().isoformat()
            date_notices = () if latest is stored else (f"it now has the date {day}",)
            graph_notices = () if readings is None else readings.notices(latest.owner, latest.record)
            memories.append(self._view(latest, outcome, (*memory.notices, *notices, *date_notices, *graph_notices)))
        return memories

    def _contested(self, repeats: Mapping[str, _Repeat], call_ids: Collection[str]) -> dict[str, _Repeat]:
        """Return the repeated memories that count from their new date.

        They were given a date, or a memory of another call supersedes or contests them by then; and none of those that
        do is trusted more.
        """
        statements = self._store.statements(self._namespace, [repeat.stored.number for repeat in repeats.values()])
        links = [edge for edge in self._store.links(self._namespace, [*repeats]) if edge.strength >= MIN_CONFIDENCE]
        rivals: dict[str, list[StoredMemory]] = {}
        for id_, repeat in repeats.items():
            linked = {link.source for link in links if link.target == id_ and link.type in (SUPERSEDES, CONFLICTS)}
            ids = linked | statements[repeat.stored.number].overtaken_by
            memories = filter(None, (self._store.memory(self._namespace, rival_id) for rival_id in ids))
            rivals[id_] = [memory for memory in memories if memory.at <= repeat.at]
        return {
            id_: repeat
            for id_, repeat in repeats.items()
            if (repeat.is_dated or any(memory.owner.id not in call_ids for memory in rivals[id_]))
            and all(memory.record.trust <= repeat.trust for memory in rivals[id_])
        }

    def _redate(self, repeats: Mapping[str, _Repeat]) -> dict[str, StoredMemory]:
        """Write the next versions of memories with their new dates; return by id those that nobody changed meanwhile.

        Judged links are taken back, and `SUPERSEDES` links from memories that are neither newer nor trusted more.
        """
        versions = [(replace(repeat.stored.owner, at=repeat.at), repeat.stored.record) for repeat in repeats.values()]
        if not versions:
            return {}
        writes = writes_of(self._destination, versions)
        readings, feed, redated = self._extract(writes), self.feed(), dict[str, StoredMemory]()
        with self._changing() as change:
            for (id_, repeat), write in zip(repeats.items(), writes, strict=True):
                latest = change.find(id_)
                if latest is None or latest.number != repeat.stored.number or latest.expired_at is not None:
                    continue  # somebody else changed it meanwhile
                stored = write_version(change, latest, replace(write, record=latest.record), self._change_time(latest))
                expire_judged(change, stored.created_at, id_)
                for link in change.links([id_]):
                    source = change.find(link.source) if link.target == id_ and link.type == SUPERSEDES else None
                    if source is not None and source.at <= repeat.at and source.record.trust <= repeat.trust:
                        change.unlink(link.source, id_, SUPERSEDES)
                if feed is not None and readings is not None:
                    feed.add(change, stored, readings)  # beside its earlier facts, which held then
                redated[id_] = stored
        return redated

    def _extract(self, writes: Sequence[MemoryWrite]) -> Readings | None:
        """Extract entities and facts from memories, before the transaction that writes them."""
        feed = self.feed()
        return None if feed is None else feed.read(writes, self._destination)

    def _update_graph(
        self,
        change: MemoryChange,
        ids: Sequence[str],
        readings: Readings | None = None,
        before: Sequence[StoredMemory] = (),
    ) -> None:
        feed = self.feed()
        if feed is not None:
            feed.follow(change, ids, readings, before)

    def _change_time(self, current: StoredMemory) -> float:
        """Return the time of a change: never before the version that it changes, even if the clock was set back."""
        return max(self._now(), current.created_at)

    def _view(self, stored: StoredMemory, outcome: Outcome, notices: tuple[str, ...] = ()) -> Memory:
        return memory_view(stored, self._namespace, self._now(), self._policy, outcome=outcome, notices=notices)


def _existing(memory: StoredMemory | None, id_: str, *, is_live: bool = True) -> StoredMemory:
    if memory is None:
        raise NotFoundError(f"there is no memory {id_!r:.80} in this namespace", remedy="see `commonplace list`")
    if is_live and memory.expired_at is not None:
        remedy = "bring it back with `commonplace memory restore`"
        raise NotFoundError(f"memory {id_!r:.80} is archived or not there", remedy=remedy)
    return memory
