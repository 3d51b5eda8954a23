"""Index texts that are not files, under ids of the caller's; it knows no paths."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.ingest.passages import Destination, PassageWriter
from commonplace.ingest.reading import normalise
from commonplace.types import IndexReport, Owner

if TYPE_CHECKING:
    from commonplace.types import Document, Progress


def index_documents(
    destination: Destination, documents: Iterable[Document], *, progress: Progress | None = None
) -> IndexReport:
    """Write documents; one whose kind and id exist is replaced.

    A session is given whole, in one call: documents take their places in it in the order they arrive, from 0.

    Returns:
        A report; `added` and `changed` are told apart by how many owners the namespace holds before and after.

    Raises:
        UsageError: a document has no id. Batches before it are written.
    """
    begun = time.perf_counter()
    store, namespace = destination.store, destination.namespace
    before = store.counts(namespace)["owners"]
    writer = PassageWriter(destination)
    positions: Counter[str] = Counter()
    done = 0
    for document in documents:
        if not document.id:
            raise UsageError(f"document {done + 1} has no id", remedy="give each document an id of its own")
        owner = _owner(document, positions[document.session] if document.session else 0)
        writer.add(writer.prepare(owner, normalise(document.text), "markdown"))
        if document.session:
            positions[document.session] += 1
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


def _owner(document: Document, position: int) -> Owner:
    return Owner(
        id=document.id,
        kind=document.kind,
        title=" ".join(document.title.split()),
        tags=document.tags,
        session=document.session,
        position=position,
        at=document.at,
    )
