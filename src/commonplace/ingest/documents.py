"""Index texts that are not files, under ids of the caller's; it knows no paths."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.ingest.passages import Destination, PassageWriter
from commonplace.ingest.reading import normalise
from commonplace.types import IndexReport, Kind, Owner

if TYPE_CHECKING:
    from commonplace.store.contract import Store
    from commonplace.types import Document, Progress

_TEXTS = ("id", "text", "title", "session")
DOCUMENT_KINDS: tuple[Kind, ...] = ("artifact", "knowledge")


def index_documents(
    destination: Destination, documents: Iterable[Document], *, progress: Progress | None = None
) -> IndexReport:
    """Write documents; one whose kind and id exist is replaced.

    A session may be given in parts: documents that it does not hold yet take the places after its last one, in the
    order they arrive; one that it holds keeps its place. A session has one writer at a time: two that add to it at
    once may give the same places.

    Returns:
        A report; `added` and `changed` are told apart by how many owners the namespace holds before and after.

    Raises:
        UsageError: a document has no id, an unknown kind, or something other than a text where a text belongs.
            Batches before it are written.
    """
    begun = time.perf_counter()
    store, namespace = destination.store, destination.namespace
    before = store.counts(namespace)["owners"]
    writer = PassageWriter(destination)
    places = _Places(store, namespace)
    done = 0
    for document in documents:
        _refuse_unfit(document, done + 1)
        owner = _owner(document, places.of(document) if document.session else 0)
        writer.add(writer.prepare(owner, normalise(document.text), "markdown"))
        done += 1
        if progress and done % 256 == 0:
            progress("Indexing documents", done, 0)
    writer.flush()
    if progress:
        progress("Indexing documents", done, done)
    added = min(done, max(0, store.counts(namespace)["owners"] - before))
    return IndexReport(
        added=added,
        changed=done - added,
        passages=writer.passages,
        seconds=time.perf_counter() - begun,
        change=store.change(),
    )


class _Places:
    """Positions of documents in their sessions, those of the store and those given since."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._next: dict[str, int] = {}
        # What was given is not in the store before its batch is full.
        self._given: dict[tuple[str, str], tuple[str, int]] = {}

    def of(self, document: Document) -> int:
        """Return the position of a document that has a session."""
        id_, kind, session = document.id, document.kind, document.session
        place = self._given.get((kind, id_)) or self._store.places(self._namespace, kind, [id_]).get(id_)
        if place is None or place[0] != session:
            if session not in self._next:
                self._next[session] = self._store.last_position(self._namespace, session) + 1
            place = session, self._next[session]
            self._next[session] += 1
        self._given[kind, id_] = place
        return place[1]


def _refuse_unfit(document: Document, count: int) -> None:
    for name in _TEXTS:
        value = getattr(document, name)
        if not isinstance(value, str):
            raise UsageError(
                f"the {name} of document {count} is {type(value).__name__}, not str", remedy="give texts, decoded"
            )
    if not document.id:
        raise UsageError(f"document {count} has no id", remedy="give each document an id of its own")
    if document.kind not in DOCUMENT_KINDS:
        raise UsageError(
            f"document {document.id!r} has the kind {document.kind!r}",
            remedy=f"give one of {', '.join(DOCUMENT_KINDS)}; memories are stored with `remember`",
        )
    tags: object = document.tags
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise UsageError(f"the tags of document {document.id!r} are {tags!r}", remedy="give a tuple of texts")


def _owner(document: Document, position: int) -> Owner:
    return Owner(
        id=document.id,
        kind=document.kind,
        title=" ".join(document.title.split()),
        tags=tuple(document.tags),
        session=document.session,
        position=position,
        at=document.at,
    )
