"""Replace an agent's knowledge: embed new maps first, then write all changes in one transaction.

A map that is there already stays as it is, with its id; one that is not given any more is softly deleted.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import uuid4

from commonplace.dataclasses import replace
from commonplace.errors import EmbedderMismatchError, ProviderError
from commonplace.ingest.passages import Destination, PassageMaker, passage_id
from commonplace.ingest.read import normalise
from commonplace.knowledge.config import KnowledgeRuntime, NoVectors, Vectors
from commonplace.knowledge.maps import CheckedMaps, KnowledgeMap, checked_maps
from commonplace.knowledge.results import KnowledgeReport
from commonplace.ranking.arrays import quantise
from commonplace.text.characters import MENDED
from commonplace.types import NewPassage, Owner
from commonplace.types.knowledge import KnowledgeRecord, KnowledgeWrite, StoredKnowledge

_AT_ONCE: Final = 256
LEXICAL: Final = "no vectors are made, for vectorEnabled is false: the knowledge is found by its words alone"

_Made = dict[KnowledgeMap, tuple[tuple[NewPassage, ...], bytes]]
"""The passages of maps, without an owner, and each map's own vector where there is one."""


class _Item(NamedTuple):
    """A map beside the item that it is already; `needs_vectors` where there is none or another embedder made its."""

    map: KnowledgeMap
    known: StoredKnowledge | None
    needs_vectors: bool


def replace_knowledge(runtime: KnowledgeRuntime, agent: str, given: object) -> KnowledgeReport:
    """Make these maps the knowledge of an agent; see `KnowledgeService.index_knowledge`."""
    begun = time.perf_counter()
    checked = checked_maps(agent, given)
    try:
        report = _replace(runtime, agent, checked)
    except EmbedderMismatchError:
        # Somebody changed the store's embedder after these vectors were made.
        report = _replace(runtime, agent, checked)
    return replace(report, seconds=time.perf_counter() - begun)


def _replace(runtime: KnowledgeRuntime, agent: str, checked: CheckedMaps) -> KnowledgeReport:
    store, namespace = runtime.store, runtime.namespace
    wanted = [each for each in checked.maps if each.content]
    # First the destination, which takes up the store's embedder of now: its name is told only then.
    destination = runtime.destination()
    embedder = runtime.embedder
    if not embedder:
        destination = replace(destination, embedder=NoVectors(destination.embedder.stamp))
    made: _Made = {}
    unmade = _beside(wanted, store.knowledge(namespace).items(agent), embedder, runtime.vectors)
    while True:
        _make(runtime, destination, [each.map for each in unmade if each.needs_vectors], made)
        # Nobody else can write inside the block: what is compared there is what is replaced.
        with store.change_memories(namespace, made_by=destination.embedder.stamp) as change:
            known, now = change.knowledge.items(agent), runtime.now()
            items = _beside(wanted, known, embedder, runtime.vectors)
            unmade = [each for each in items if each.needs_vectors and each.map not in made]
            if unmade:
                continue  # another process took something away meanwhile
            kept = {each.known.number for each in items if each.known is not None}
            gone = change.knowledge.expire([each.number for each in known if each.number not in kept], now)
            for map_, item, _ in filter(lambda each: each.needs_vectors, items):
                owner = Owner(str(uuid4()), "knowledge") if item is None else item.owner
                passages, vector = made[map_]
                ids = (passage_id(namespace, owner, ordinal) for ordinal in range(len(passages)))
                placed = tuple(replace(each, id=id_) for each, id_ in zip(passages, ids, strict=True))
                record = KnowledgeRecord(agent, map_.content, map_.metadata, map_.digest, embedder, vector)
                created_at = now if item is None else item.created_at
                change.knowledge.put(KnowledgeWrite(owner, placed, record), created_at=created_at, updated_at=now)
        break
    added = sum(each.known is None for each in items)
    embedded = sum(each.needs_vectors for each in items) - added
    runtime.after(added + embedded + gone)
    skipped = len(checked.maps) - len(wanted)
    return KnowledgeReport(
        agent=agent,
        added=added,
        unchanged=len(items) - added - embedded,
        embedded=embedded,
        deleted=gone,
        skipped=skipped,
        embedder=embedder,
        degraded=bool(runtime.no_vectors),
        notices=_notices(runtime, checked, skipped),
        change=store.change(namespace),
    )


def is_stale(item: StoredKnowledge, embedder: str, vectors: Vectors | None) -> bool:
    """Return whether an item has vectors of another embedder, or none, and so is to be embedded anew.

    Where nothing embeds now, what there is stays: the embedder may be back at the next creation.
    """
    dimensions = 0 if vectors is None else vectors.dimensions
    is_other = item.record.embedder != embedder or (dimensions and len(item.record.vector) != dimensions)
    return bool(embedder and is_other)


def _beside(
    wanted: Sequence[KnowledgeMap], known: Sequence[StoredKnowledge], embedder: str, vectors: Vectors | None
) -> list[_Item]:
    """Return each map with an item that holds the same; of equal ones each has its own."""
    waiting: defaultdict[str, deque[StoredKnowledge]] = defaultdict(deque)
    for stored in known:
        waiting[stored.record.digest].append(stored)
    items = ((each, waiting[each.digest].popleft() if waiting[each.digest] else None) for each in wanted)
    return [_Item(each, item, item is None or is_stale(item, embedder, vectors)) for each, item in items]


def _make(runtime: KnowledgeRuntime, destination: Destination, wanted: Sequence[KnowledgeMap], made: _Made) -> None:
    """Cut and embed maps, before anything is written."""
    maps, maker = list(dict.fromkeys(wanted)), PassageMaker(destination)
    for begin in range(0, len(maps), _AT_ONCE):
        part = maps[begin : begin + _AT_ONCE]
        try:
            vectors = [b""] * len(part)
            if runtime.embedder and runtime.vectors is not None:
                vectors = [row.tobytes() for row in quantise(runtime.vectors.of([each.content for each in part]))]
            prepared = [maker.prepare(Owner("", "knowledge"), normalise(each.content), "text") for each in part]
            writes = maker.complete(prepared)
        except ProviderError as error:
            raise ProviderError(
                f"the knowledge was not replaced, for it could not be embedded: {error.args[0]}",
                status=error.status,
                remedy=error.remedy,
            ) from error
        for each, write, vector in zip(part, writes, vectors, strict=True):
            made[each] = write.passages, vector
        if runtime.progress:
            runtime.progress("Embedding knowledge", begin + len(part), len(maps))


def _notices(runtime: KnowledgeRuntime, checked: CheckedMaps, skipped: int) -> tuple[str, ...]:
    notices = []
    if runtime.no_vectors:
        notices.append(f"no vectors are made, and the knowledge is found by its words alone: {runtime.no_vectors}")
    elif not runtime.config.vector_enabled:
        notices.append(LEXICAL)
    if skipped:
        notices.append(f"{skipped} of the maps hold no text, and were skipped")
    if checked.secrets:
        notices.append(f"what looks like a secret was replaced: {', '.join(checked.secrets)}")
    return (*notices, MENDED) if checked.is_mended else tuple(notices)
