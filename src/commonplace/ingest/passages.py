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
"""UUIDv5 namespace of passage ids; it never changes, so that a rebuild gives the same ids."""

MAX_TOKENS: Final = 1 << 62
MAX_NAME_LENGTH: Final = 300
"""Maximum characters of a title or heading that are embedded; more would displace the passage's text."""

WORDING: Final = 1
"""Version of the embedded text; raise it with every change to `passage_text`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of chunks and transactions; a transaction holds the store's write lock while it runs."""

    chunk_tokens: int = 512
    chunk_overlap: int = 50
    batch_owners: int = 256
    batch_bytes: int = 4_194_304


@dataclass(frozen=True, slots=True)
class Destination:
    """The store, embedder and limits that passages are made for.

    Attributes:
        store: its embedding stamp must already equal the embedder's.
        tokenize: returns a text's WordPiece ids, uint16, shape (n,); the ids of two lines are those of each in turn.
        at: when the written owners become known, in seconds since the epoch.
        renew: returns the destination with the store's current embedder.
        later_above: with a slow embedder, memories with more tokens than this, and texts of graphs, are stored without
            vectors, which `embed_pending` makes later; None makes all vectors at once.
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
        """Return whether the vectors of an owner with this many tokens are made later."""
        if self.later_above is None or kind in ("artifact", "knowledge"):
            return False
        embedder = for_kind(self.embedder, kind)
        return is_broken(embedder) or (tokens > self.later_above and is_slow(embedder))

    def renewed(self) -> Destination:
        """Return this destination with the store's current embedder."""
        if self.renew is None:
            stamp = self.store.embedding()
            raise EmbedderMismatchError(f"the store changed its embedder to {stamp} meanwhile", remedy="open it again")
        return replace(self, embedder=self.renew().embedder)


def passage_text(title: str, heading: str, text: str) -> str:
    """Return the text of a passage that is tokenized and embedded: its owner's title, its heading, then its text.

    A title or heading that occurs in the text's first line as whole words is left out.
    """
    return "\n".join([*_names(title, heading, text), text])


def _names(title: str, heading: str, text: str) -> list[str]:
    first = text.partition("\n")[0]
    return [name[:MAX_NAME_LENGTH] for name in dict.fromkeys((title, heading)) if name and not _has(first, name)]


def _has(line: str, name: str) -> bool:
    position = line.find(name)
    while position >= 0:
        end = position + len(name)
        if not (line[max(0, position - 1) : position].isalnum() or line[end : end + 1].isalnum()):
            return True
        position = line.find(name, position + 1)
    return False


def passage_id(namespace: str, owner: Owner, ordinal: int) -> str:
    """Return the id of an owner's passage; it stays the same when the owner is indexed again."""
    name = f"{namespace}\n{owner.kind}\n{owner.id}\n{ordinal}".encode("utf-8", "surrogatepass")
    # The same as uuid5, which accepts no lone surrogates.
    digest = sha1(PASSAGE_IDS.bytes + name, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


@dataclass(frozen=True, slots=True)
class PreparedOwner:
    """An owner whose text is cut and tokenized, without vectors yet. `size`: its approximate size in bytes."""

    owner: Owner
    chunks: tuple[Chunk, ...]
    texts: tuple[TokenizedText, ...]
    size: int


class PassageMaker:
    """Cuts, tokenizes and embeds the texts of owners; it writes nothing."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._tokenized = cache(destination.tokenize)  # the lines counted while a text is cut recur in its passages

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
        """Tokenize the passages of an owner that is already cut."""
        texts: list[TokenizedText] = []
        for piece in chunks:
            # Line by line: lines counted while cutting are cached.
            lines = [*_names(owner.title, piece.heading, piece.text), piece.text]
            parts = [self._tokenized(line) for line in lines]
            texts.append(TokenizedText("\n".join(lines), parts[0] if len(parts) == 1 else np.concatenate(parts)))
        size = sum(len(tokenized.text) + tokenized.token_ids.nbytes for tokenized in texts)
        return PreparedOwner(owner, tuple(chunks), tuple(texts), size)

    def complete(self, prepared: Sequence[PreparedOwner]) -> list[OwnerWrite]:
        """Return the owners with passages ready to write; owners of one kind are embedded in one call.

        A passage whose vector is made later has the vector b"".
        """
        destination = self._destination
        later = [
            destination.defers(item.owner.kind, sum(len(text.token_ids) for text in item.texts)) for item in prepared
        ]
        now = [item for item, is_later in zip(prepared, later, strict=True) if not is_later]
        vectors: dict[str, Iterator[bytes]] = {}
        for kind in dict.fromkeys(item.owner.kind for item in now):
            texts = [text for item in now if item.owner.kind == kind for text in item.texts]
            embedder = for_kind(destination.embedder, kind)
            vectors[kind] = iter([row.tobytes() for row in quantise(embedder.embed(texts))] if texts else [])
        return [
            OwnerWrite(
                item.owner,
                tuple(
                    NewPassage(
                        id=passage_id(destination.namespace, item.owner, ordinal),
                        chunk=piece,
                        token_ids=text.token_ids.astype("<u2", copy=False).tobytes(),
                        vector=b"" if is_later else next(vectors[item.owner.kind]),
                    )
                    for ordinal, (piece, text) in enumerate(zip(item.chunks, item.texts, strict=True))
                ),
            )
            for item, is_later in zip(prepared, later, strict=True)
        ]


class PassageWriter:
    """Redacts secrets in owners and writes them whenever a batch is full; call `flush` at the end."""

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
        """Add an owner to the batch, and write the batch if it is full."""
        limits = self._destination.limits
        self.pending.append(prepared)
        self._bytes += prepared.size
        if len(self.pending) >= limits.batch_owners or self._bytes >= limits.batch_bytes:
            self.flush()

    def flush(self) -> None:
        """Embed and write the pending owners, if any, in one transaction."""
        if not self.pending:
            return
        pending = self.pending
        try:
            self._put(pending)
        except EmbedderMismatchError:
            # The store's embedder changed after this run began.
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


@many_words()  # a store on a server analyses words on writing
def index_documents(
    destination: Destination, documents: Iterable[Document], *, progress: Progress | None = None
) -> IndexReport:
    """Write documents; a document replaces the stored one of the same kind and id.

    A session may arrive in parts: new documents get the positions after its last one, in order of arrival; a document
    it already holds keeps its position. A session must have one writer at a time: two concurrent writers may assign
    the same positions.

    Returns:
        A report; `added` and `changed` are derived from the namespace's number of owners before and after.

    Raises:
        UsageError: a document has no id, an unknown kind, or a field that is not a text as it must be. Batches before
            it stay written.
    """
    started = time.perf_counter()
    store, namespace = destination.store, destination.namespace
    before = store.counts(namespace)["owners"]
    writer = PassageWriter(destination)
    next_positions: dict[str, int] = {}
    # A document is not in the store before its batch is written.
    assigned: dict[tuple[str, str], tuple[str, int]] = {}
    count = 0
    for document in documents:
        _refuse_unfit(document, count + 1)
        id_, kind, session = document.id, document.kind, document.session
        position = 0
        if session:
            place = assigned.get((kind, id_)) or store.places(namespace, kind, [id_]).get(id_)
            if place is None or place[0] != session:
                if session not in next_positions:
                    next_positions[session] = store.last_position(namespace, session) + 1
                place = session, next_positions[session]
                next_positions[session] += 1
            assigned[kind, id_] = place
            position = place[1]
        title = " ".join(document.title.split())
        tags = tuple(document.tags)
        owner = Owner(id_, kind, title=title, tags=tags, session=session, position=position, at=document.at)
        writer.add(writer.prepare(owner, normalise(document.text), "markdown"))
        count += 1
        if progress and count % 256 == 0:
            progress("Indexing documents", count, 0)
    writer.flush()
    if progress:
        progress("Indexing documents", count, count)
    added = min(count, max(0, store.counts(namespace)["owners"] - before))
    return IndexReport(
        added=added,
        changed=count - added,
        passages=writer.passages,
        seconds=time.perf_counter() - started,
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
