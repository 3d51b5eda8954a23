"""Find what holds secrets in agents' knowledge and contexts, and write it anew without them. It knows no file.

Ids and times stay. A vector of an embedder of somebody's own goes: it was made of the words that held the secret.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from commonplace.engine.secrets_cleaning import Cleaner, Known
from commonplace.ingest.passages import PassageMaker
from commonplace.ingest.reading import normalise
from commonplace.knowledge.embedding import NoVectors
from commonplace.knowledge.maps import digest_of
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord, KnowledgeWrite

if TYPE_CHECKING:
    from commonplace.ingest.passages import Destination
    from commonplace.store.contract import Store


@dataclass(frozen=True, slots=True)
class KnowledgePart:
    """An item or a context that was looked at.

    Attributes:
        what: how people name it, the agent's name left out.
        names: of the agent, and of the item.
        cleaner: which secrets were found in it.
        mend: writes it anew without them.
    """

    what: str
    agent: str
    names: tuple[str, ...]
    cleaner: Cleaner
    mend: Callable[[], None]


class KnowledgeSecrets:
    """The knowledge of one namespace.

    Args:
        destination: what makes passages; asked for when something is written anew.
        known: secrets that were found before.
    """

    def __init__(self, store: Store, namespace: str, destination: Callable[[], Destination], known: Known) -> None:
        self._store = store
        self._namespace = namespace
        self._destination = destination
        self._known = known

    def parts(self) -> Iterator[KnowledgePart]:
        """Yield every item, deleted ones too, and every context, with the secrets that it holds; nothing is written."""
        knowledge = self._store.knowledge(self._namespace)
        for item in (*knowledge.items(), *knowledge.items(deleted=True)):
            cleaner = Cleaner(self._known)
            _cleaned(item.record, cleaner)
            names = (item.record.agent, item.owner.id)
            mend = partial(self._mend_item, item.number)
            yield KnowledgePart("an item of knowledge", item.record.agent, names, cleaner, mend)
        for context in knowledge.contexts():
            cleaner = Cleaner(self._known)
            _cleaned_context(context, cleaner)
            mend = partial(self._mend_context, context.name)
            yield KnowledgePart("the context", context.name, (context.name,), cleaner, mend)

    def _mend_item(self, number: int) -> None:
        destination = replace(self._destination(), namespace=self._namespace)
        stamp = destination.embedder.stamp
        with self._store.change_memories(self._namespace, made_by=stamp) as change:
            item = change.knowledge.of_numbers([number]).get(number)
            cleaner = Cleaner(self._known)
            record = None if item is None else _cleaned(item.record, cleaner)
            if item is None or record is None or not cleaner.kinds:
                return
            if not record.embedder:
                destination = replace(destination, embedder=NoVectors(stamp))
            maker = PassageMaker(destination)
            (made,) = maker.complete([maker.prepare(item.owner, normalise(record.content), "text")])
            record = replace(record, embedder=str(stamp.of("knowledge")) if record.embedder else "", vector=b"")
            if item.deleted_at is not None:
                change.knowledge.erase([number])
            change.knowledge.put(
                KnowledgeWrite(item.owner, made.passages, record),
                created_at=item.created_at,
                updated_at=item.updated_at,
                deleted_at=item.deleted_at,
            )

    def _mend_context(self, name: str) -> None:
        with self._store.change_memories(self._namespace) as change:
            context = change.knowledge.context(name)
            if context is not None:
                change.knowledge.put_context(_cleaned_context(context, Cleaner(self._known)))


def _cleaned(record: KnowledgeRecord, cleaner: Cleaner) -> KnowledgeRecord:
    metadata = json.dumps(cleaner.value(json.loads(record.metadata)), sort_keys=True)
    content = cleaner.text(record.content)
    return replace(record, content=content, metadata=metadata, digest=digest_of(record.agent, metadata))


def _cleaned_context(context: ContextRecord, cleaner: Cleaner) -> ContextRecord:
    return replace(context, metadata=json.dumps(cleaner.value(json.loads(context.metadata)), sort_keys=True))
