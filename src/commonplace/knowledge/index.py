"""Replace an agent's knowledge: embed new maps first, then write all changes in one transaction.

A map that is there already stays as it is, with its id; one that is not given any more is softly deleted.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import uuid4

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import EmbedderMismatchError, ProviderError
from commonplace.ingest.passages import PassageMaker, passage_id
from commonplace.ingest.read import normalise
from commonplace.knowledge.config import KnowledgeRuntime, Means, NoVectors, Vectors
from commonplace.knowledge.maps import CheckedMaps, KnowledgeMap, checked_maps
from commonplace.knowledge.results import KnowledgeReport
from commonplace.ranking.arrays import quantise
from commonplace.store.knowledge import KnowledgeChange
from commonplace.text.characters import MENDED
from commonplace.types import NewPassage, Owner
from commonplace.types.knowledge import KnowledgeRecord, KnowledgeWrite, StoredKnowledge

_AT_ONCE: Final = 256
LEXICAL: Final = "no vectors are made, for vectorEnabled is false: the knowledge is found by its words alone"


def embedder_of(ground: KnowledgeRuntime, means: Means) -> str:
    """Return the name of what makes the vectors now, "" for nothing."""
    if not means.config.vector_enabled or means.no_vectors:
        return ""
    if means.vectors is not None:
        return means.vectors.name
    return ground.embedder()


def replace_knowledge(ground: KnowledgeRuntime, means: Means, agent: str, given: object) -> KnowledgeReport:
    """Make these maps the knowledge of an agent; see `KnowledgeService.index_knowledge`."""
    begun = time.perf_counter()
    checked = checked_maps(agent, given)
    try:
        report = _replace(ground, means, agent, checked)
    except EmbedderMismatchError:
        # Somebody changed the store's embedder after these vectors were made.
        report = _replace(ground, means, agent, checked)
    return replace(report, seconds=time.perf_counter() - begun)


def _replace(ground: KnowledgeRuntime, means: Means, agent: str, checked: CheckedMaps) -> KnowledgeReport:
    wanted = [each for each in checked.maps if each.content]
    maker = _Maker(ground, means)
    known = ground.store.knowledge(ground.namespace).items(agent)
    maker.make([new for new in _compared(wanted, known, maker) if new.needs_vectors])
    while True:
        # Nobody else can write inside the block: what is compared there is what is replaced.
        with ground.store.change_memories(ground.namespace, made_by=maker.destination.embedder.stamp) as change:
            compared = _compared(wanted, change.knowledge.items(agent), maker)
            unmade = [new for new in compared if new.needs_vectors and new.map not in maker.made]
            if not unmade:
                gone = _replaced(change.knowledge, agent, compared, maker, ground.now())
                break
        maker.make(unmade)  # another process took something away meanwhile
    added = sum(each.known is None for each in compared)
    embedded = sum(each.needs_vectors for each in compared) - added
    ground.after(added + embedded + gone)
    return KnowledgeReport(
        agent=agent,
        added=added,
        unchanged=len(compared) - added - embedded,
        embedded=embedded,
        deleted=gone,
        skipped=len(checked.maps) - len(wanted),
        embedder=maker.embedder,
        degraded=bool(means.no_vectors),
        notices=tuple(_notices(means, len(checked.maps) - len(wanted), checked)),
        change=ground.store.change(ground.namespace),
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """A map beside the item that it is already; `needs_vectors` where there is none or another embedder made its."""

    map: KnowledgeMap
    known: StoredKnowledge | None
    needs_vectors: bool


def is_stale(item: StoredKnowledge, embedder: str, vectors: Vectors | None) -> bool:
    """Return whether an item has vectors of another embedder, or none, and so is to be embedded anew.

    Where nothing embeds now, what there is stays: the embedder may be back at the next creation.
    """
    dimensions = 0 if vectors is None else vectors.dimensions
    is_other = item.record.embedder != embedder or (dimensions and len(item.record.vector) != dimensions)
    return bool(embedder and is_other)


def _compared(wanted: Sequence[KnowledgeMap], known: Sequence[StoredKnowledge], maker: _Maker) -> list[_Compared]:
    """Return each map with an item that holds the same; of equal ones each has its own."""
    waiting: defaultdict[str, deque[StoredKnowledge]] = defaultdict(deque)
    for stored in known:
        waiting[stored.record.digest].append(stored)
    found = []
    for each in wanted:
        item = waiting[each.digest].popleft() if waiting[each.digest] else None
        is_wanting = item is None or is_stale(item, maker.embedder, maker.means.vectors)
        found.append(_Compared(each, item, is_wanting))
    return found


class _Maker:
    """Cuts and embeds texts before anything is written.

    Attributes:
        destination: where passages go; without vectors it embeds nothing.
        made: the passages of each map, without an owner, and its own vector where there is one.
    """

    def __init__(self, ground: KnowledgeRuntime, means: Means) -> None:
        self.ground, self.means = ground, means
        self.made: dict[KnowledgeMap, tuple[tuple[NewPassage, ...], bytes]] = {}
        # First the destination, which takes up the store's embedder of now: its name is told only then.
        found = ground.destination()
        self.embedder = embedder_of(ground, means)
        self.destination = found if self.embedder else replace(found, embedder=NoVectors(found.embedder.stamp))

    def make(self, compared: Sequence[_Compared]) -> None:
        """Make what is needed for these maps."""
        maps = list(dict.fromkeys(each.map for each in compared))
        for begin in range(0, len(maps), _AT_ONCE):
            part = maps[begin : begin + _AT_ONCE]
            try:
                self.made.update(zip(part, self._made(part), strict=True))
            except ProviderError as error:
                raise ProviderError(
                    f"the knowledge was not replaced, for it could not be embedded: {error.args[0]}",
                    status=error.status,
                    remedy=error.remedy,
                ) from error
            if self.ground.progress:
                self.ground.progress("Embedding knowledge", begin + len(part), len(maps))

    def _made(self, maps: Sequence[KnowledgeMap]) -> list[tuple[tuple[NewPassage, ...], bytes]]:
        own = [b""] * len(maps)
        if self.embedder and self.means.vectors is not None:
            own = [row.tobytes() for row in quantise(self.means.vectors.of([each.content for each in maps]))]
        maker = PassageMaker(self.destination)
        prepared = [maker.prepare(Owner("", "knowledge"), normalise(each.content), "text") for each in maps]
        return [(write.passages, vector) for write, vector in zip(maker.complete(prepared), own, strict=True)]


def _replaced(change: KnowledgeChange, agent: str, compared: Sequence[_Compared], maker: _Maker, now: float) -> int:
    """Write what is new or newly embedded, delete what is not given any more, and return how much that was."""
    kept = {each.known.number for each in compared if each.known is not None}
    gone = change.expire([item.number for item in change.items(agent) if item.number not in kept], now)
    for each in compared:
        if each.needs_vectors:
            write = _write(maker, agent, each)
            change.put(write, created_at=now if each.known is None else each.known.created_at, updated_at=now)
    return gone


def _write(maker: _Maker, agent: str, compared: _Compared) -> KnowledgeWrite:
    item, (made, vector) = compared.map, maker.made[compared.map]
    owner = Owner(str(uuid4()), "knowledge") if compared.known is None else compared.known.owner
    passages = tuple(
        replace(passage, id=passage_id(maker.ground.namespace, owner, ordinal)) for ordinal, passage in enumerate(made)
    )
    record = KnowledgeRecord(agent, item.content, item.metadata, item.digest, maker.embedder, vector)
    return KnowledgeWrite(owner, passages, record)


def _notices(means: Means, skipped: int, checked: CheckedMaps) -> Iterator[str]:
    if means.no_vectors:
        yield f"no vectors are made, and the knowledge is found by its words alone: {means.no_vectors}"
    elif not means.config.vector_enabled:
        yield LEXICAL
    if skipped:
        yield f"{skipped} of the maps hold no text, and were skipped"
    if checked.secrets:
        yield f"what looks like a secret was replaced: {', '.join(checked.secrets)}"
    if checked.is_mended:
        yield MENDED
