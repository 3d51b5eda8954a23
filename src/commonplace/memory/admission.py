"""Admit memories: derive what searches need, and decide whether one is added, merged or stored as a new version.

Every writer of a version derives its passages, signature, dates and references here, so that equal content is found
alike however it was added. A reference to a file is `path@sha256:<hexadecimal>`, with the path below the project; files
are read, never written. Versions are read and written through a `MemoryChange`, inside its transaction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple
from uuid import uuid4

from commonplace.dataclasses import replace
from commonplace.dates import mentions
from commonplace.dates.time import moment_of
from commonplace.ingest.passages import Destination, PassageMaker
from commonplace.ingest.read import normalise
from commonplace.memory.validate import MAX_LABELS, TRUST, NewMemory
from commonplace.memory.view import Outcome
from commonplace.retention import RetentionPolicy
from commonplace.search.request import MAX_QUERY_CHARACTERS, Request
from commonplace.search.result import reference
from commonplace.search.retrieve import POOL_OWNERS, Searcher
from commonplace.store.memories import MemoryChange
from commonplace.store.rows import checked
from commonplace.store.store import Store
from commonplace.text.hashes import sha256
from commonplace.text.similarity import contained_share, is_near_duplicate, signature
from commonplace.types import TIERS, Filter, MemoryRecord, MemoryWrite, Owner, StoredMemory

MAX_FILES: Final = 10
"""Maximum number of files that a memory refers to; one that names more is a list, and refers to none of them."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""Size in bytes above which a file is not read."""
_DIGEST_MARK: Final = "@sha256:"
_PATH: Final = re.compile(r"(?<![\w/.:-])@?(?:\./)?(?=[\w.]*[/.])[\w.-]+(?:/[\w.-]+)*\.\w{1,8}(?![\w/])")
"""Matches a possible path: it has a suffix and may have directories; a line or a heading after it is left out."""
_MAX_SCANNED: Final = 20_000


def files_named(texts: Iterable[str], project: Path | None) -> tuple[str, ...]:
    """Return references to the project files that texts name, in order of appearance; none without a project."""
    if project is None:
        return ()
    named = dict.fromkeys(
        match[0].removeprefix("@").removeprefix("./") for text in texts for match in _PATH.finditer(text[:_MAX_SCANNED])
    )
    if not 0 < len(named) <= MAX_FILES:
        return ()
    digests = {path: _digest(project, path) for path in named}
    return tuple(f"{path}{_DIGEST_MARK}{digest}" for path, digest in digests.items() if digest)


def what_became(reference: str, project: Path) -> str:
    """Return what became of a file that was referred to, such as "a.py has changed".

    "" if it is unchanged, or the reference names no file.
    """
    path, mark, digest = reference.rpartition(_DIGEST_MARK)
    if not (mark and path and re.fullmatch(r"[0-9a-f]{64}", digest)):
        return ""
    current = _digest(project, path)
    if current is None:
        return f"{path} was deleted"
    return "" if current == digest else f"{path} has changed"


def _digest(project: Path, path: str) -> str | None:
    """Return the SHA-256 of a file below the project, "" if it cannot be read or is too large, None without a file."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        return None
    file = project / path
    try:
        if not (file.is_file() and file.resolve().is_relative_to(project.resolve())):
            return None
        return "" if file.stat().st_size > MAX_BYTES else sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


BATCH: Final = 256
"""Maximum number of versions in a batch, whose writing holds the store's write lock for some hundredths of a second."""
BATCH_CHARACTERS: Final = 131_072


def batches(new_memories: Sequence[NewMemory]) -> Iterator[list[NewMemory]]:
    """Yield memories in order, in batches small enough that other writers wait only briefly."""
    batch: list[NewMemory] = []
    characters = 0
    for memory in new_memories:
        characters += len(memory.content)
        if batch and (len(batch) == BATCH or characters > BATCH_CHARACTERS):
            yield batch
            batch, characters = [], len(memory.content)
        batch.append(memory)
    if batch:
        yield batch


def first_version(new: NewMemory, now: float, project: Path | None, *, is_forced: bool) -> tuple[Owner, MemoryRecord]:
    """Return the owner and record of a new memory's first version.

    Args:
        project: the directory whose files it may refer to.
    """
    origin = new.origin or "agent"
    owner = Owner(
        id=new.id or str(uuid4()),
        kind="memory",
        tags=new.tags,
        references=files_named((new.content, new.source), project),
        session=new.session,
        at=now if new.at is None else new.at,
    )
    record = MemoryRecord(
        content=new.content,
        tier=new.tier or ("medium" if new.session else "short"),
        category=new.category,
        entities=new.entities,
        source=new.source,
        origin=origin,
        trust=TRUST[origin] if new.trust is None else new.trust,
        metadata=new.metadata,
        born_at=now,
        last_used=now,
        derived_from=new.derived_from,
        is_forced=is_forced,
    )
    return owner, record


def writes_of(destination: Destination, versions: Sequence[tuple[Owner, MemoryRecord]]) -> list[MemoryWrite]:
    """Cut, tokenize and embed versions of memories, in order; either all are embedded now, or all later."""
    if destination.later_above is not None and len(versions) > 1:
        destination = replace(destination, later_above=0)
    maker = PassageMaker(destination)
    drafts = maker.complete([maker.prepare(owner, normalise(record.content), "markdown") for owner, record in versions])
    writes = []
    for (owner, record), write in zip(versions, drafts, strict=True):
        # Turns of a conversation are never compared or merged, so they need no signature.
        similarity = None if owner.session else signature(record.content)
        time = record.born_at if owner.at is None else owner.at
        intervals = ((mention.since, mention.until) for mention in mentions(record.content, now=moment_of(time)))
        writes.append(
            MemoryWrite(
                owner,
                write.passages,
                record,
                digest="" if similarity is None else similarity.digest,
                bands=() if similarity is None else similarity.bands,
                dates=tuple(dict.fromkeys(intervals)),
            )
        )
    return writes


_NUMBERS: Final = re.compile(r"\d+")
_MAX_COMPARED: Final = 32
_VERSIONED: Final = ("content", "source", "category", "metadata", "entities")
"""Fields of which a change makes a new version, as does a change of tags or session."""


class Admission(NamedTuple):
    """What was done with a write."""

    stored: StoredMemory
    outcome: Outcome
    notices: tuple[str, ...] = ()


def admit(
    change: MemoryChange,
    write: MemoryWrite,
    policy: RetentionPolicy,
    write_of: Callable[[Owner, MemoryRecord], MemoryWrite],
    *,
    given: NewMemory,
    force: bool,
) -> Admission:
    """Add a new memory, write the next version of a known id, or touch a memory that says the same, whoever wrote it.

    A turn of a conversation is never merged with another memory: what was said twice was said twice. With `force`, only
    ids are compared.

    Args:
        write: its record is born now.
        write_of: makes the passages of a memory again.
        given: what it was made from.
    """
    stored = change.find(given.id) if given.id else None
    if stored is not None:
        return _rewrite(change, stored, write, policy, given)
    if not force and not write.owner.session:
        # The memory with exactly the same words comes first, then the newest that says the same.
        content = write.record.content
        alike = [memory for memory in change.alike(write.digest, write.bands) if not memory.owner.session]
        twin = next((memory for memory in alike if memory.record.content == content), None)
        if twin is None:
            # Lines of one form, such as a log's, differ in nothing but their numbers.
            numbers = _NUMBERS.findall(content)
            near = [memory for memory in reversed(alike) if _NUMBERS.findall(memory.record.content) == numbers]
            near = near[:_MAX_COMPARED]
            twin = next((memory for memory in near if is_near_duplicate(content, memory.record.content)), None)
        if twin is not None:
            return _merge(change, twin, write, policy, write_of)
    return Admission(_add_version(change, write, write.record.born_at), "added")


def write_version(change: MemoryChange, current: StoredMemory, write: MemoryWrite, now: float) -> StoredMemory:
    """Write the next version of a memory; its version number and place in the session continue from the known one.

    It begins when the known one ends, even if the clock was set back meanwhile, so that no two versions overlap.
    """
    now = max(now, current.created_at if current.expired_at is None else current.expired_at)
    if current.expired_at is None:
        change.expire(current.number, current.record, now)
    record = replace(write.record, version=current.record.version + 1, born_at=current.record.born_at)
    is_same_session = write.owner.session == current.owner.session
    owner = replace(write.owner, position=current.owner.position) if is_same_session else write.owner
    return _add_version(change, replace(write, owner=owner, record=record, is_placed=is_same_session), now)


def _rewrite(
    change: MemoryChange, stored: StoredMemory, write: MemoryWrite, policy: RetentionPolicy, given: NewMemory
) -> Admission:
    """Write a known id again: touch the memory if it has the same meaning, else write its next version.

    Tier, tags, entities, category, source and metadata stay as they are unless given.
    """
    old, new, now = stored.record, write.record, write.record.born_at
    write = replace(write, owner=replace(write.owner, tags=given.tags or stored.owner.tags))
    new = replace(
        new,
        tier=given.tier or old.tier,
        entities=new.entities or old.entities,
        category=new.category or old.category,
        source=new.source or old.source,
        metadata=old.metadata if new.metadata == "{}" else new.metadata,
    )
    is_same = all(getattr(old, name) == getattr(new, name) for name in _VERSIONED)
    is_same = is_same and (stored.owner.tags, stored.owner.session) == (write.owner.tags, write.owner.session)
    if stored.expired_at is None and is_same:
        if write.owner.session:
            return Admission(stored, "unchanged")
        touched = policy.used(old, now)
        change.revise(stored.number, touched)
        notice = "it was remembered under this id before, with the same words"
        return Admission(replace(stored, record=touched), "touched", (notice,))
    record = replace(
        new,
        use_count=old.use_count,
        strength=old.strength,
        uses=old.uses,
        last_used=max(old.last_used, now),
        review_count=old.review_count,
    )
    return Admission(write_version(change, stored, replace(write, record=record), now), "updated")


def _merge(
    change: MemoryChange,
    twin: StoredMemory,
    write: MemoryWrite,
    policy: RetentionPolicy,
    write_of: Callable[[Owner, MemoryRecord], MemoryWrite],
) -> Admission:
    """Touch a memory that says the same; add the new one's entities and tags, and its tier and trust if higher.

    Tags are searched, so new ones make a new version.
    """
    old, new, owner, now = twin.record, write.record, twin.owner, write.record.born_at
    likeness = "exactly" if old.content == new.content else "in nearly the same words"
    notice = f"this was remembered before, {likeness}, as {owner.id}; that memory was touched"
    record = replace(policy.used(old, now), entities=tuple(dict.fromkeys((*old.entities, *new.entities))))
    if TIERS.index(new.tier) > TIERS.index(record.tier):
        record = replace(record, tier=new.tier)
    if new.trust > record.trust:
        record = replace(record, trust=new.trust, origin=new.origin)
    change.revise(twin.number, record)
    joined = replace(twin, record=record)
    missing = [tag for tag in write.owner.tags if tag not in owner.tags][: max(0, MAX_LABELS - len(owner.tags))]
    if not missing:
        return Admission(joined, "touched", (notice,))
    stored = write_version(change, joined, write_of(replace(owner, tags=(*owner.tags, *missing)), record), now)
    return Admission(stored, "touched", (notice, f"it gained the tags {', '.join(missing)}"))


def _add_version(change: MemoryChange, write: MemoryWrite, now: float) -> StoredMemory:
    number = change.add(write, created_at=now)
    if not write.owner.session:
        return StoredMemory(number, checked(write.owner), checked(write.record), now)
    stored = change.find(write.owner.id)  # with its place in the session
    assert stored is not None
    return stored


MIN_WORDS: Final = 8
"""Number of words below which a text is not looked up: a file may hold it by chance."""
MIN_SHARE: Final = 0.9
_PASSAGES: Final = 5
_QUERY_CHARACTERS: Final = 2_000


def source_of(text: str, store: Store, searcher: Searcher, namespace: str) -> str:
    """Return the reference of the artifact or knowledge that holds nine tenths of a text, "" if none does."""
    if len(text.split(maxsplit=MIN_WORDS)) < MIN_WORDS or len(text) > MAX_QUERY_CHARACTERS:
        return ""
    counts = store.counts(namespace)
    if not counts["artifacts"] and not counts["knowledge"]:
        return ""
    request = Request(
        query=text[:_QUERY_CHARACTERS],
        namespace=namespace,
        limit=_PASSAGES,
        method="bm25",
        wanted=Filter(kinds=("artifact", "knowledge")),
        min_score=0.0,
        stage1_limit=POOL_OWNERS,  # with fewer, recall would take a second round
        per_owner=_PASSAGES,
    )
    hits = searcher.search(request).hits
    for hit in hits:
        if contained_share(text, hit.text) >= MIN_SHARE:
            return reference(hit)
    # A recalled text may consist of several passages, one after the other.
    joined_text = "\n".join(hit.text for hit in hits)
    return reference(hits[0]) if hits and contained_share(text, joined_text) >= MIN_SHARE else ""
