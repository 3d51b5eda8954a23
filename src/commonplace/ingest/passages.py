"""Turn texts into passages with tokens and vectors, and write them to a store in short transactions."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import EmbedderMismatchError, UsageError
from commonplace.ingest.read import normalise
from commonplace.models.contract import Embedder, TokenizedText
from commonplace.models.registry import for_kind, is_broken, is_slow
from commonplace.ranking.arrays import quantise
from commonplace.redaction import redact
from commonplace.store.store import Store
from commonplace.text.chunk import chunk
from commonplace.text.hashes import sha1
from commonplace.text.languages import Language
from commonplace.text.tokens import many_words
from commonplace.types import Chunk, Document, IndexReport, Kind, NewPassage, Owner, OwnerWrite, Progress

PASSAGE_IDS: Final = uuid.UUID("6f1d0c0e-3a57-5d0b-9a36-1c8f2a7f5e21")
"""Namespace of the UUIDv5 of passages; it never changes, so that a rebuild gives the same ids."""

MAX_TOKENS: Final = 1 << 62
MAX_NAME_LENGTH: Final = 300
"""Maximum characters of a title or heading that are embedded; more would displace the passage's own text."""

WORDING: Final = 1
"""Which way of putting together what is embedded this is; it grows with every change of `passage_text`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large chunks and transactions are; a transaction holds the store's write lock while it lasts."""

    chunk_tokens: int = 512
    chunk_overlap: int = 50
    batch_owners: int = 256
    batch_bytes: int = 4_194_304


@dataclass(frozen=True, slots=True)
class Destination:
    """Where passages go and what makes them.

    Attributes:
        store: its embedding stamp must be the embedder's already.
        tokenize: the WordPiece ids of a text, uint16, shape (n,); those of two lines are the two lines' ids.
        at: from when on what is written counts as known, seconds since the epoch.
        renew: returns the destination with the store's current embedder.
        later_above: where the embedder is slow, memories with more tokens than this, and texts of graphs, are stored
            without vectors, which `embed_pending` makes; None makes all vectors at once.
    """

    store: Store
    embedder: Embedder
    tokenize: Callable[[str], NDArray[np.uint16]]
    namespace: str
    limits: Limits = field(default_factory=Limits)
    after_batch: Callable[[], None] = lambda: None
    at: float = 0.0
    renew: Callable[[], Destination] | None = None
    later_above: int | None = None

    def defers(self, kind: str, tokens: int = MAX_TOKENS) -> bool:
        """Return whether the vectors of an owner with this number of tokens are made later."""
        if self.later_above is None or kind in ("artifact", "knowledge"):
            return False
        embedder = for_kind(self.embedder, kind)
        return is_broken(embedder) or (tokens > self.later_above and is_slow(embedder))

    def renewed(self) -> Destination:
        """Return the same with the store's current embedder."""
        if self.renew is None:
            held = self.store.embedding()
            raise EmbedderMismatchError(f"the store changed its embedder to {held} meanwhile", remedy="open it again")
        return replace(self, embedder=self.renew().embedder)


def passage_text(title: str, heading: str, text: str) -> str:
    """Return what of a passage is tokenized and embedded: its owner's title and its heading, then its own text.

    What the first line says already, as words of their own, is not said twice.
    """
    return "\n".join([*_names(title, heading, text), text])


def _names(title: str, heading: str, text: str) -> list[str]:
    first = text.partition("\n")[0]
    return [name[:MAX_NAME_LENGTH] for name in dict.fromkeys((title, heading)) if name and not _says(first, name)]


def _says(line: str, name: str) -> bool:
    place = line.find(name)
    while place >= 0:
        end = place + len(name)
        if not (line[max(0, place - 1) : place].isalnum() or line[end : end + 1].isalnum()):
            return True
        place = line.find(name, place + 1)
    return False


def passage_id(namespace: str, owner: Owner, ordinal: int) -> str:
    """Return the id of an owner's passage, the same whenever it is indexed again."""
    name = f"{namespace}\n{owner.kind}\n{owner.id}\n{ordinal}".encode("utf-8", "surrogatepass")
    # As uuid5 makes it, which takes no id that has a lone surrogate.
    digest = sha1(PASSAGE_IDS.bytes + name, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


@dataclass(frozen=True, slots=True)
class PreparedOwner:
    """An owner, its text cut and tokenized, that only lacks vectors. `size`: about how many bytes it has."""

    owner: Owner
    chunks: tuple[Chunk, ...]
    texts: tuple[TokenizedText, ...]
    size: int


class PassageMaker:
    """Cuts, tokenizes and embeds the texts of owners; it writes nothing."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._tokenized = cache(destination.tokenize)  # what is counted while a text is cut, its passages hold again

    def prepare(self, owner: Owner, text: str, language: Language) -> PreparedOwner:
        r"""Cut and tokenize a text ("\n" its only line end) for an owner."""
        limits = self._destination.limits
        self._tokenized.cache_clear()
        chunks = chunk(
            text,
            language=language,
            max_tokens=limits.chunk_tokens,
            overlap=limits.chunk_overlap,
            count_tokens=lambda piece: len(self._tokenized(piece)),
        )
        return self.keep(owner, chunks)

    def keep(self, owner: Owner, chunks: Sequence[Chunk]) -> PreparedOwner:
        """Tokenize the passages that an owner was cut into before."""
        texts: list[TokenizedText] = []
        for piece in chunks:
            # Line by line, so that what was counted while cutting is not tokenized again.
            lines = [*_names(owner.title, piece.heading, piece.text), piece.text]
            parts = [self._tokenized(line) for line in lines]
            texts.append(TokenizedText("\n".join(lines), parts[0] if len(parts) == 1 else np.concatenate(parts)))
        size = sum(len(tokenized.text) + tokenized.token_ids.nbytes for tokenized in texts)
        return PreparedOwner(owner, tuple(chunks), tuple(texts), size)

    def complete(self, prepared: Sequence[PreparedOwner]) -> list[OwnerWrite]:
        """Return the owners with passages that are ready to be written; those of one kind are embedded at once.

        A passage whose vector is made later has b"" for it.
        """
        destination = self._destination
        later = [
            destination.defers(item.owner.kind, sum(len(text.token_ids) for text in item.texts)) for item in prepared
        ]
        now = [item for item, is_later in zip(prepared, later, strict=True) if not is_later]
        made: dict[str, Iterator[bytes]] = {}
        for kind in dict.fromkeys(item.owner.kind for item in now):
            texts = [text for item in now if item.owner.kind == kind for text in item.texts]
            embedder = for_kind(destination.embedder, kind)
            made[kind] = iter([row.tobytes() for row in quantise(embedder.embed(texts))] if texts else [])
        return [
            OwnerWrite(
                item.owner,
                tuple(
                    NewPassage(
                        id=passage_id(destination.namespace, item.owner, ordinal),
                        chunk=piece,
                        token_ids=text.token_ids.astype("<u2", copy=False).tobytes(),
                        vector=b"" if is_later else next(made[item.owner.kind]),
                    )
                    for ordinal, (piece, text) in enumerate(zip(item.chunks, item.texts, strict=True))
                ),
            )
            for item, is_later in zip(prepared, later, strict=True)
        ]


class PassageWriter:
    """Collect owners, replace secrets in them, and write them when a batch is full; call `flush` at the end."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._maker = PassageMaker(destination)
        self.pending: list[PreparedOwner] = []
        self._bytes = 0
        self.passages = 0

    def prepare(self, owner: Owner, text: str, language: Language) -> PreparedOwner:
        r"""Cut and tokenize a text ("\n" its only line end) for an owner; nothing is written."""
        title, summary = redact(owner.title).text, redact(owner.summary).text
        if (title, summary) != (owner.title, owner.summary):
            owner = replace(owner, title=title, summary=summary)
        return self._maker.prepare(owner, redact(text).text, language)

    def add(self, prepared: PreparedOwner) -> None:
        """Take an owner, and write the batch if that fills it."""
        limits = self._destination.limits
        self.pending.append(prepared)
        self._bytes += prepared.size
        if len(self.pending) >= limits.batch_owners or self._bytes >= limits.batch_bytes:
            self.flush()

    def flush(self) -> None:
        """Embed and write what is pending, in one transaction; do nothing if nothing is."""
        if not self.pending:
            return
        pending = self.pending
        try:
            self._put(pending)
        except EmbedderMismatchError:
            # Somebody changed the store's embedder after this run began.
            self._destination = self._destination.renewed()
            self._maker = PassageMaker(self._destination)
            self._put(pending)
        self._destination.after_batch()
        self.passages += sum(len(item.chunks) for item in pending)
        self.pending, self._bytes = [], 0

    def _put(self, pending: Sequence[PreparedOwner]) -> None:
        to = self._destination
        to.store.put_owners(to.namespace, self._maker.complete(pending), at=to.at, made_by=to.embedder.stamp)


DOCUMENT_KINDS: tuple[Kind, ...] = ("artifact", "knowledge")


@many_words()  # which a store on a server analyses as they are written
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
    next_places: dict[str, int] = {}
    # What was given is not in the store before its batch is full.
    given: dict[tuple[str, str], tuple[str, int]] = {}
    done = 0
    for document in documents:
        _refuse_unfit(document, done + 1)
        id_, kind, session = document.id, document.kind, document.session
        position = 0
        if session:
            place = given.get((kind, id_)) or store.places(namespace, kind, [id_]).get(id_)
            if place is None or place[0] != session:
                if session not in next_places:
                    next_places[session] = store.last_position(namespace, session) + 1
                place = session, next_places[session]
                next_places[session] += 1
            given[kind, id_] = place
            position = place[1]
        title = " ".join(document.title.split())
        tags = tuple(document.tags)
        owner = Owner(id_, kind, title=title, tags=tags, session=session, position=position, at=document.at)
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
        change=store.change(namespace),
    )


def _refuse_unfit(document: object, count: int) -> None:
    if not isinstance(document, Document):
        raise UsageError(f"document {count} is {document!r:.80}", remedy="give a commonplace.Document")
    for name in ("id", "text", "title", "session"):
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
