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
from commonplace.memory.admission import Admission, admit, batches, first_version, replaced, source_of, writes_of
from commonplace.memory.supersession import expire_judged
from commonplace.memory.view import Memory, Outcome, seen
from commonplace.retention import RetentionPolicy
from commonplace.search.retrieve import Searcher
from commonplace.store.memories import MemoryChange
from commonplace.types import (
    CONFLICTS,
    HOLDS_BESIDE,
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

_SAID: Final = frozenset({"content", "at", "source"})
"""What the graph takes of a memory."""
_OF_NO_VERSION: Final = "origin trust status use_count strength uses review_count promoted_at vault_path".split()
MIN_CONFIDENCE: Final = 0.75
"""A rule's link below it does not make a memory that is said again count from its new date."""
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _by_its_embedder(method: _Method) -> _Method:
    """Call a method again with the store's current embedder, if another process has changed it."""

    @wraps(method)
    def done(self: MemoryService, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except EmbedderMismatchError:
            self._destination = self._destination.renewed()
            return method(self, *arguments)

    return cast("_Method", done)


class _News(NamedTuple):
    """A memory that was said again, the time from which it counts, and who says so."""

    known: StoredMemory
    later: float
    trust: float
    is_dated: bool


@dataclass(eq=False, repr=False)
class MemoryService:
    """Keeps the memories of one namespace. Safe for threads.

    Attributes:
        now: the clock, seconds since the epoch.
        searcher: returns the searcher of now, which finds what a text was taken from; without one nothing was.
        has_ultra: whether it keeps the memories of one process, which are not stored.
        feed: returns what lets the graph follow; asked for when a memory is written, since it is much to load.
        project: the directory whose files memories speak of.
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
        news = []
        for place, item in enumerate(items, 1):
            try:
                new = self._checked(item, force=force)
                news.append(new if force or new.session else self._without_recalled(new))
            except UsageError as error:
                if len(items) == 1:
                    raise
                message = f"memory {place} of {len(items)}: {error.args[0]}; none of them was stored"
                raise type(error)(message, remedy=error.remedy) from error
        if not self._is_chosen:  # not before all are checked: what is refused must not choose an embedder for good
            if self._store.embedding() is None:
                self._destination = self._destination.renewed()
            self._is_chosen = True
        kept: list[Memory] = []
        for some in batches(news):
            kept += self._take_in(some, force)
        return kept

    @_by_its_embedder
    def update(self, id_: str, values: Mapping[str, Any], if_version: int | None = None) -> Memory:
        """Write the next version of a live memory; see `Engine.update`."""
        changed = {name: value for name, value in values.items() if value is not None}
        validate.reject_invalid_id(id_)
        while True:
            old = _known(self._store.memory(self._namespace, id_), id_)
            if not changed:
                raise UsageError(f"nothing of memory {id_!r} is to be changed", remedy="name what should be new")
            if if_version is not None and old.record.version != if_version:
                raise VersionConflictError(
                    f"memory {id_!r} has version {old.record.version}, not {if_version}",
                    version=old.record.version,
                    remedy="read it again before you change it",
                )
            is_forced = old.record.is_forced
            new = self._checked({**validate.as_given(old.owner, old.record), **changed}, force=is_forced)
            write = self.write_of(*first_version(new, self._now(), self.project, is_forced=is_forced))
            readings = None if _SAID.isdisjoint(changed) else self._read([write])
            with self._changing() as change:
                known = _known(change.find(id_), id_)
                if known.number != old.number:
                    continue  # somebody else changed it meanwhile: what is not named here stays as it is now
                now, record, was = self._moment(known), write.record, known.record
                # What belongs to no version comes from the memory as it is now.
                record = replace(
                    record,
                    tier=record.tier if "tier" in changed else was.tier,
                    entities=record.entities if "entities" in changed else was.entities,
                    last_used=max(now, was.last_used),
                    **{name: getattr(was, name) for name in _OF_NO_VERSION},
                )
                stored = replaced(change, known, replace(write, record=record), now)
                if new.content != known.record.content:
                    expire_judged(change, now, id_)
                self._follow(change, [id_], readings, [known])
            told = () if readings is None else readings.notices(stored.owner, stored.record)
            return self._seen(stored, "updated", (*new.notices, *told))

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
            known = _known(change.find(id_), id_)
            record = revised(known.record)
            change.revise(known.number, record)
        return self._seen(replace(known, record=record), outcome)

    def archive(self, id_: str) -> Memory:
        """Archive a live memory; an archived one is left as it is."""
        with self._store.change_memories(self._namespace) as change:
            known = _known(change.find(id_), id_, is_live=False)
            if known.expired_at is not None:
                return self._seen(known, "unchanged")
            change.expire(known.number, replace(known.record, status="archived"), self._moment(known))
            self._follow(change, [id_])
            archived = _known(change.find(id_), id_, is_live=False)
        return self._seen(archived, "archived")

    @_by_its_embedder
    def restore(self, id_: str) -> Memory:
        """Restore an archived memory, as a new version with the same text."""
        while True:
            archived = _known(self._store.memory(self._namespace, id_), id_, is_live=False)
            if archived.expired_at is None:
                return self._seen(archived, "unchanged")
            write = self.write_of(archived.owner, archived.record)
            readings = self._read([write])
            with self._changing() as change:
                known = _known(change.find(id_), id_, is_live=False)
                if known.number != archived.number:
                    continue
                now = self._now()
                record = replace(known.record, status="active", last_used=max(now, known.record.last_used))
                stored = replaced(change, known, replace(write, record=record), now)
                self._follow(change, [id_], readings)
            return self._seen(stored, "restored")

    def link(self, source: str, target: str, type_: str, strength: float) -> Link:
        """Link two memories that exist; a link of the same type between them is replaced."""
        if source == target:
            raise UsageError(f"memory {source!r} cannot be linked to itself", remedy="name two memories")
        name = validate.link_type(type_)
        if not name:
            raise UsageError("the type of a link is empty", remedy="give a type, such as related")
        link, feed = Link(source, target, name, validate.fraction("strength", strength), self._now()), self.feed()
        with self._store.change_memories(self._namespace) as change:
            for id_ in (source, target):
                _known(change.find(id_), id_, is_live=False)
            if name in (SUPERSEDES, HOLDS_BESIDE):
                expire_judged(change, link.created_at, source, target)
            change.link(link)
            if feed is not None and name == SUPERSEDES:
                feed.overtake(change, target, source, link.strength)
        return link

    def unlink(self, source: str, target: str, type_: str | None) -> int:
        """Delete the links from one memory to another, which opens what they settled; return how many there were."""
        name = None if type_ is None else validate.link_type(type_)
        known = self._store.links(self._namespace, [source], past=True)
        gone = {link.created_at for link in known if link.target == target and name in (None, link.type)}
        feed = self.feed()
        with self._store.change_memories(self._namespace) as change:
            count = change.unlink(source, target, name)
            if feed is not None and name in (None, SUPERSEDES):
                feed.hold_again(change, target, source)
            for link in known:
                if link.expired_at in gone and target in (link.source, link.target):
                    change.link(replace(link, expired_at=None))
        return count

    def write_of(self, owner: Owner, record: MemoryRecord) -> MemoryWrite:
        """Return a version with passages made from its content."""
        return writes_of(self._destination, [(owner, record)])[0]

    def _changing(self, **expected: Any) -> AbstractContextManager[MemoryChange]:
        """Begin a change that writes vectors; see `MemoryStore.change_memories`."""
        return self._store.change_memories(self._namespace, made_by=self._destination.embedder.stamp, **expected)

    def _checked(self, item: Mapping[str, Any], *, force: bool) -> validate.NewMemory:
        new = validate.without_secrets(
            validate.validate_memory(item, max_bytes=self.max_bytes, force=force, now=self._now())
        )
        if new.tier == "ultra" and not self.has_ultra:
            raise UsageError(
                "the ultra tier is of one process and never stored",
                remedy="store it with `remember`, in a call of its own",
            )
        return new

    @_by_its_embedder
    def _without_recalled(self, new: validate.NewMemory) -> validate.NewMemory:
        """Remove recalled blocks, and refuse a text that has nothing else."""
        opened = unfence(new.content)
        if opened.recalled:
            if not opened.text.strip():
                raise AdmissionError(
                    "the content is nothing but what was recalled from memory",
                    remedy="say what is new, or pass force=True",
                )
            count = len(opened.recalled)
            notice = f"what was recalled from memory was skipped: {count} passage{'' if count == 1 else 's'}"
            new = replace(new, content=opened.text, notices=(*new.notices, notice))
            validate.reject_invalid(new.content, max_bytes=self.max_bytes)
        searcher = self._searcher
        known = "" if searcher is None else source_of(new.content, self._store, searcher(), self._namespace)
        if known:
            raise AdmissionError(
                f"the content is text of {known}, which is stored already",
                remedy="say what is new about it, or pass force=True",
            )
        return new

    @_by_its_embedder
    def _take_in(self, news: Sequence[validate.NewMemory], force: bool) -> list[Memory]:
        begun = self._now()
        versions = [first_version(new, begun, self.project, is_forced=force) for new in news]
        writes = writes_of(self._destination, versions)
        readings = self._read(writes)
        has_given_ids = any(new.id for new in news)
        done: list[Admission] = []
        again: dict[str, _News] = {}
        feed = self.feed()
        with self._changing(writes=writes, has_given_ids=has_given_ids) as change:
            now = self._now()
            for new, given in zip(news, writes, strict=True):
                sources = (change.find(id_) for id_ in given.record.derived_from)
                # What is made of others is trusted as the least of them.
                trust = min((each.record.trust for each in sources if each is not None), default=1.0)
                trust = min(trust, given.record.trust)
                write = replace(given, record=replace(given.record, trust=trust, born_at=now, last_used=now))
                admission = admit(change, write, self._policy, self.write_of, has_given_id=bool(new.id), force=force)
                done.append(admission)
                known, outcome, _ = admission
                if feed is not None and readings is not None and outcome != "unchanged" and known.created_at >= now:
                    if outcome == "added":
                        feed.add(change, known, readings)
                    else:
                        feed.follow(change, [known.owner.id], readings, [known] if outcome == "touched" else ())
                later = now if new.at is None else new.at
                if outcome == "touched" and later > known.at and trust >= known.record.trust:
                    one, before = _News(known, later, trust, new.at is not None), again.get(known.owner.id)
                    is_last = before is None or later >= before.later
                    again[known.owner.id] = one if is_last else before._replace(known=known)  # type: ignore[union-attr]
        retold = self._retold(self._contested(again, {each.stored.owner.id for each in done})) if again else {}
        memories = []
        for new, (known, outcome, notices) in zip(news, done, strict=True):
            stored = retold.get(known.owner.id, known) if outcome == "touched" else known
            day = moment_of(stored.at).date().isoformat()
            counts = () if stored is known else (f"it now has the date {day}",)
            read = () if readings is None else readings.notices(stored.owner, stored.record)
            memories.append(self._seen(stored, outcome, (*new.notices, *notices, *counts, *read)))
        return memories

    def _contested(self, again: Mapping[str, _News], said: Collection[str]) -> dict[str, _News]:
        """Return of memories that were said again those that count from their new date, which is given or matters.

        It matters where something that was said before then overtook it, but not where all was said in one list. Who is
        trusted less moves nothing.
        """
        known = self._store.statements(self._namespace, [each.known.number for each in again.values()])
        links = [each for each in self._store.links(self._namespace, [*again]) if each.strength >= MIN_CONFIDENCE]
        by: dict[str, list[StoredMemory]] = {}
        for id_, each in again.items():
            linked = {link.source for link in links if link.target == id_ and link.type in (SUPERSEDES, CONFLICTS)}
            ids = linked | known[each.known.number].overtaken_by
            others = filter(None, (self._store.memory(self._namespace, other) for other in ids))
            by[id_] = [other for other in others if other.at <= each.later]
        return {
            id_: each
            for id_, each in again.items()
            if (each.is_dated or any(other.owner.id not in said for other in by[id_]))
            and all(other.record.trust <= each.trust for other in by[id_])
        }

    def _retold(self, news: Mapping[str, _News]) -> dict[str, StoredMemory]:
        """Write the next versions of memories, with their new dates; return by id what nobody changed meanwhile.

        Links by which what was said before stands before it are taken back.
        """
        versions = [(replace(each.known.owner, at=each.later), each.known.record) for each in news.values()]
        if not versions:
            return {}
        writes = writes_of(self._destination, versions)
        readings, feed, again = self._read(writes), self.feed(), dict[str, StoredMemory]()
        with self._changing() as change:
            for (id_, each), write in zip(news.items(), writes, strict=True):
                latest = change.find(id_)
                if latest is None or latest.number != each.known.number or latest.expired_at is not None:
                    continue  # somebody else changed it meanwhile
                stored = replaced(change, latest, replace(write, record=latest.record), self._moment(latest))
                expire_judged(change, stored.created_at, id_)
                for link in change.links([id_]):
                    other = change.find(link.source) if link.target == id_ and link.type == SUPERSEDES else None
                    if other is not None and other.at <= each.later and other.record.trust <= each.trust:
                        change.unlink(link.source, id_, SUPERSEDES)
                if feed is not None and readings is not None:
                    feed.add(change, stored, readings)  # beside what it said before, which was true then
                again[id_] = stored
        return again

    def _read(self, writes: Sequence[MemoryWrite]) -> Readings | None:
        """Extract what the graph takes from memories, before the transaction that writes them."""
        feed = self.feed()
        return None if feed is None else feed.read(writes, self._destination)

    def _follow(
        self,
        change: MemoryChange,
        ids: Sequence[str],
        readings: Readings | None = None,
        before: Sequence[StoredMemory] = (),
    ) -> None:
        feed = self.feed()
        if feed is not None:
            feed.follow(change, ids, readings, before)

    def _moment(self, known: StoredMemory) -> float:
        """Return the time of a change: never before the version that it changes, even if the clock was set back."""
        return max(self._now(), known.created_at)

    def _seen(self, stored: StoredMemory, outcome: Outcome, notices: tuple[str, ...] = ()) -> Memory:
        return seen(stored, self._namespace, self._now(), self._policy, outcome=outcome, notices=notices)


def _known(found: StoredMemory | None, id_: str, *, is_live: bool = True) -> StoredMemory:
    if found is None:
        raise NotFoundError(f"there is no memory {id_!r:.80} in this namespace", remedy="see `commonplace list`")
    if is_live and found.expired_at is not None:
        remedy = "bring it back with `commonplace memory restore`"
        raise NotFoundError(f"memory {id_!r:.80} is archived or not there", remedy=remedy)
    return found
