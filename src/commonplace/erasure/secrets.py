"""Find secrets in what is stored, on pages and in logs, and put placeholders in their place.

A memory is rewritten with all its versions, other owners passage by passage, and offsets into the words of an episode
are shifted; ids, times and uses stay. Secrets in names (an id, a session, a path) are only reported, since renaming
would make it another item. A secret that is recognised in one place is replaced everywhere, where its value looks
random: a short password may be an ordinary word.

Findings name the place, the kind and the count, never the secret. A killed run is known by its note in the store, and
the next one does what it left.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from commonplace.dataclasses import dataclass, field, replace
from commonplace.erasure.receipt import BACKUP, RECEIPT, STORE_SPACE, ForgetReceipt
from commonplace.erasure.resume import (
    DATABASE,
    DRAFTS,
    FORGETTING,
    GENERATIONS,
    INDEX,
    LOCK,
    LOGS,
    ErasureRuntime,
    Finding,
    Pending,
    Waiting,
    blank_where,
    lines_of,
    pending_of,
    settle,
    take,
)
from commonplace.erasure.scan import Collector, Patterns, files_below, scan
from commonplace.erasure.verify import still_stored
from commonplace.errors import CommonplaceError, EmbedderMismatchError, StoreBusyError, StoreError
from commonplace.exchange.items import EntityItem, GraphItem, RelationItem
from commonplace.files import sync
from commonplace.graph import redact
from commonplace.graph.runtime import Texts
from commonplace.index.files import write_file
from commonplace.ingest.passages import Destination, PassageMaker
from commonplace.ingest.read import normalise
from commonplace.knowledge.config import NoVectors
from commonplace.knowledge.maps import digest_of
from commonplace.ledger.erase import cleaned as cleaned_issue
from commonplace.ledger.erase import rewrite
from commonplace.locks import FileLock
from commonplace.logs import query_hash
from commonplace.memory.content import writes_of
from commonplace.redaction import Secret, find_secrets, with_placeholders
from commonplace.redaction.patterns import is_disordered
from commonplace.settings.paths import PAGE_DRAFT, PAGES_LOCK
from commonplace.store.graph import GraphReading
from commonplace.store.graph_rules import namespace_of, texts_of
from commonplace.store.memories import MemoryChange
from commonplace.store.owners import cut_owners, plain_owners
from commonplace.store.rows import names_of
from commonplace.store.schema import SCHEMA
from commonplace.store.store import Store
from commonplace.types import GRAPH_KINDS, Chunk, Filter, Link, Note, Owner, Selection, StoredMemory
from commonplace.types.graph import Episode, GraphFilter
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord, KnowledgeWrite, StoredKnowledge
from commonplace.types.ledger import Issue, IssueEvent, IssueSelection


class Known:
    """Secrets that were found somewhere, to be found again where nothing else tells them.

    Args:
        kinds: the kind of each.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        telling = {value: kind for value, kind in kinds.items() if is_disordered(value)}
        self._patterns = Patterns({value.encode("utf-8", "surrogatepass"): kind for value, kind in telling.items()})

    def find(self, text: str) -> Iterator[Secret]:
        """Yield where they stand, in no order, some perhaps in others; a part of a longer word is none of them."""
        if not len(self._patterns):
            return
        data = text.encode("utf-8", "surrogatepass")
        for offset, pattern in self._patterns.places(data):
            start = len(data[:offset].decode("utf-8", "surrogatepass"))
            end = start + len(pattern.decode("utf-8", "surrogatepass"))
            if not (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])):
                yield Secret(self._patterns.kind(pattern), start, end)


NOTHING = Known({})


@dataclass(slots=True)
class Cleaner(redact.Cleaner):
    """Cleans texts, also of secrets that were found elsewhere.

    Attributes:
        known: secrets that were found elsewhere.
        kept: secrets that stay, for they are a part of something's name.
        parts: what single texts had of a secret that goes from one to the next.
    """

    known: Known = NOTHING
    kept: frozenset[str] = frozenset()
    parts: set[str] = field(default_factory=set)

    def counts(self) -> dict[str, int]:
        """Return how many different secrets of each kind were found, sorted by kind."""
        return dict(sorted(Counter(self.kinds.values()).items()))

    def secrets(self, text: str) -> list[Secret]:
        """Return the secrets in a text, in order, none overlapping another."""
        found: list[Secret] = []
        for secret in sorted([*find_secrets(text), *self.known.find(text)], key=lambda each: (each.start, -each.end)):
            is_apart = secret.start >= (found[-1].end if found else 0)
            if is_apart and text[secret.start : secret.end] not in self.kept:
                found.append(secret)
        return found

    def passages(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return the passages of one text without secrets, also without one that goes from a passage to the next."""
        cleaned = list(chunks)
        while True:
            before = cleaned
            cleaned = [replace(chunk, text=text) for chunk, text in zip(before, self._across(before), strict=True)]
            cleaned = [replace(each, text=self.text(each.text), heading=self.text(each.heading)) for each in cleaned]
            if cleaned == before:
                return cleaned

    def _across(self, chunks: Sequence[Chunk]) -> list[str]:
        texts = [chunk.text for chunk in chunks]
        whole, spans = _laid_out(chunks)
        secrets = self.find(whole)
        if not secrets:
            return texts
        for at, (begin, end) in enumerate(spans):
            inside = [
                Secret(secret.kind, max(secret.start, begin) - begin, min(secret.end, end) - begin)
                for secret in secrets
                if secret.start < end and secret.end > begin
            ]
            self.parts.update(texts[at][secret.start : secret.end] for secret in inside)
            texts[at] = with_placeholders(texts[at], inside)
        return texts


def patterns_of(found: Iterable[str]) -> Patterns:
    """Return what betrays secrets, or parts of them, in a file; those under eight bytes cannot be looked for."""
    collector = Collector()
    for secret in found:
        # Line by line: a page may have indented them. What frames a private key is no secret.
        lines = [line.strip() for line in secret.splitlines()]
        for line in [line for line in lines if is_disordered(line)] if len(lines) > 1 else lines:
            collector.add_content(line)
        collector.add_digest(query_hash(secret))
    return collector.patterns()


def _is_word(character: str) -> bool:
    return character.isalnum()


def _laid_out(chunks: Sequence[Chunk]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text that chunks were cut from, blank lines left out, and where each of them stands in it."""
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    end = 0
    for last, chunk in zip((None, *chunks), chunks, strict=False):
        shared = 0
        if last is not None and chunk.start_line > last.end_line:
            pieces.append("\n")
            end += 1
        elif last is not None:
            shared = _shared(last.text, chunk.text)
        pieces.append(chunk.text[shared:])
        begin, end = end - shared, end - shared + len(chunk.text)
        spans.append((begin, end))
    return "".join(pieces), spans


def _shared(before: str, after: str) -> int:
    """Return how many characters a text has at its end that the next one begins with."""
    first = after[:1]
    for start in range(max(0, len(before) - len(after)), len(before)):
        if before[start] == first and after.startswith(before[start:]):
            return len(before) - start
    return 0


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that holds secrets.

    Attributes:
        where: how people name it, secrets left out.
        kinds: how many different secrets of each kind it holds.
        namespace: of a memory, whose Markdown follows it; "" for anything else.
        mend: rewrites it without them; None where that is done elsewhere.
        is_name: they are a part of its name, which nobody but its owner can change.
        is_file: it was taken from a file, which still has them.
    """

    where: str
    kinds: Mapping[str, int] = field(default_factory=dict)
    namespace: str = ""
    mend: Callable[[], None] | None = None
    is_name: bool = False
    is_file: bool = False


@dataclass(slots=True)
class Found:
    """What was found so far.

    Attributes:
        secrets: the kind of each.
        parts: what passages have of secrets that go from one to the next.
        named: secrets in names.
    """

    holders: list[Holder] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)

    def add(self, cleaner: Cleaner, holder: Holder) -> None:
        """Take in what a cleaner found in something; nothing if it found nothing."""
        if cleaner.kinds:
            self.holders.append(replace(holder, kinds=cleaner.counts()))
            if holder.is_name:
                self.named |= cleaner.kinds.keys()
            else:
                self.secrets |= cleaner.kinds
                self.parts |= cleaner.parts


_EVER: Final = GraphFilter(with_past=True)


@dataclass(slots=True)
class StoredSecrets:
    """All that one namespace holds.

    Attributes:
        destination: makes passages; asked for when something is written anew.
        known: secrets that were found before, also to be found where nothing tells them.
        found: what is found is added to it.
    """

    store: Store
    namespace: str
    destination: Callable[[], Destination]
    known: Known
    found: Found

    def look(self) -> None:
        """Add what holds secrets; nothing is written."""
        store, namespace = self.store, self.namespace
        self._name(f"namespace {self._shown(namespace)}", (namespace,))
        for memory in store.memories(namespace, Selection(order="id")):
            self._memory(memory.owner.id)
        for number, owner in plain_owners(store, namespace, Filter()):
            self._other(namespace, number, owner)
        self._graph()
        knowledge = store.knowledge(namespace)
        for item in (*knowledge.items(), *knowledge.items(deleted=True)):
            self._item(item)
        for context in knowledge.contexts():
            self._context(context)
        ledger = store.ledger(namespace)
        issues = [issue.id for issue in ledger.issues(IssueSelection())]
        # Of an issue that another program keeps, only what was done on it stands here.
        for id_ in dict.fromkeys((*issues, *(event.issue for event in ledger.events()))):
            self._issue(id_)
        for link in store.links(namespace):
            self._link(link)
        for note in store.notes(namespace, RECEIPT):
            self._receipt(note)
        for note in store.notes(namespace, BACKUP):
            self._name(f"a backup of namespace {self._shown(namespace)}", (note.id, note.body))

    def _shown(self, name: str) -> str:
        return f"{Cleaner(self.known).text(name)!r:.200}"

    def _of(self, what: str, name: str = "", namespace: str = "") -> str:
        named = f"{what} {self._shown(name)}" if name else what
        return f"{named} of namespace {self._shown(namespace_of(namespace or self.namespace))}"

    def _name(self, where: str, names: Iterable[str]) -> None:
        cleaner = Cleaner(self.known)
        for name in names:
            cleaner.text(name)
        self.found.add(cleaner, Holder(f"the name of {where}", is_name=True))

    def _add(
        self,
        holder: Holder,
        names: Iterable[str],
        clean: Callable[[Cleaner], Any],
        write: Callable[[MemoryChange, Any, Cleaner], object],
    ) -> bool:
        """Look at one thing and at its names; return whether it holds a secret.

        Args:
            clean: reads it, and returns it without secrets.
            write: puts what was cleaned in its place.
        """

        def mend() -> None:
            try:
                attempt()
            except EmbedderMismatchError:
                attempt()  # another process changed the store's embedder meanwhile

        def attempt() -> None:
            stamp = self.destination().embedder.stamp
            with self.store.change_memories(self.namespace, made_by=stamp) as change:
                # Nobody else can write now: what is read here is what is replaced.
                cleaner = Cleaner(self.known)
                cleaned = clean(cleaner)
                if cleaner.kinds:
                    write(change, cleaned, cleaner)

        self._name(holder.where, names)
        cleaner = Cleaner(self.known)
        clean(cleaner)
        self.found.add(cleaner, replace(holder, mend=mend))
        return bool(cleaner.kinds)

    def _destination(self, namespace: str = "") -> Destination:
        return replace(self.destination(), namespace=namespace or self.namespace)

    def _memory(self, id_: str) -> None:
        """Look at every version of a memory; they are written anew together."""
        store, namespace = self.store, self.namespace

        def clean(cleaner: Cleaner) -> list[StoredMemory]:
            return [
                replace(version, owner=cleaner.record(version.owner), record=cleaner.record(version.record))
                for version in store.versions(namespace, id_)
            ]

        def write(change: MemoryChange, versions: list[StoredMemory], _: Cleaner) -> None:
            links = store.links(namespace, [id_])
            blocks = store.blocks(namespace, [id_])
            writes = writes_of(self._destination(), [(version.owner, version.record) for version in versions])
            change.erase([id_])
            for version, made in zip(versions, writes, strict=True):
                placed = replace(made, is_placed=True)
                change.add(placed, created_at=version.created_at, expired_at=version.expired_at)
            for link in links:
                change.link(link)
            for block in blocks:
                change.set_block(block)

        versions = store.versions(namespace, id_)
        names = {name for each in versions for name in (*names_of(each.owner), *names_of(each.record))}
        self._add(Holder(self._of("memory", id_), namespace=namespace), names, clean, write)

    def _other(self, namespace: str, number: int, owner: Owner) -> None:
        cleaner = Cleaner(self.known)
        what, name = ("the indexed file", owner.path) if owner.path else ("document", owner.id)
        if owner.kind in GRAPH_KINDS:
            what, name = f"the text of {owner.kind}", owner.id
        where = self._of(what, name, namespace)
        self._name(where, names_of(owner))
        self._read(namespace, number, cleaner)
        mend = partial(self._put, namespace, number)
        self.found.add(cleaner, Holder(where, mend=mend, is_file=bool(owner.path)))

    def _read(self, namespace: str, number: int, cleaner: Cleaner) -> tuple[Owner, list[Chunk]] | None:
        """Return an owner with its passages, all without secrets; None for one that is gone."""
        with self.store.snapshot():
            found = list(cut_owners(self.store, namespace, [number]))
        return next(((cleaner.record(owner), cleaner.passages(chunks)) for _, owner, chunks in found), None)

    def _put(self, namespace: str, number: int) -> None:
        """Write an artifact or document anew. Its stamp stays: its file is as it was."""
        destination = self._destination(namespace)
        cleaner = Cleaner(self.known)
        cleaned = self._read(namespace, number, cleaner)
        if cleaned is not None and cleaner.kinds:
            maker = PassageMaker(destination)
            [row] = self.store.table_rows(SCHEMA["owners"], number=[number])
            writes = maker.complete([maker.keep(*cleaned)])
            self.store.put_owners(namespace, writes, at=row["created_at"], made_by=destination.embedder.stamp)

    def _graph(self) -> None:
        """Look through a graph, and the texts by which its parts are found, which are made anew with them."""
        graph = self.store.graph(self.namespace)
        for episode in graph.list_episodes(_EVER):
            self._episode(graph, episode.id)
        mended = {("entity", each.id) for each in graph.list_entities(_EVER) if self._part(EntityItem, each.id)}
        mended |= {("relation", each.id) for each in graph.list_relations(_EVER) if self._part(RelationItem, each.id)}
        for texts in (texts_of(self.namespace, kind) for kind in GRAPH_KINDS):
            for number, owner in plain_owners(self.store, texts, Filter()):
                if (owner.kind, owner.id) not in mended:
                    self._other(texts, number, owner)

    def _episode(self, graph: GraphReading, id_: str) -> None:
        def clean(cleaner: Cleaner) -> Episode | None:
            known = graph.episodes([id_]).get(id_)
            return None if known is None else cleaner.record(known)

        holder = Holder(self._of("episode", id_))
        self._add(holder, (id_,), clean, lambda change, episode, _: change.graph.put_episode(episode))

    def _part(self, sort: type[EntityItem | RelationItem], id_: str) -> bool:

        def clean(cleaner: Cleaner) -> GraphItem | None:
            known = sort.of(self.store.graph(self.namespace), id_)
            return None if known is None else known.cleaned(cleaner)

        holder = Holder(self._of("entity" if sort is EntityItem else "fact", id_))
        return self._add(
            holder, (id_,), clean, lambda change, item, _: item.put(change.graph, Texts(self._destination()))
        )

    def _item(self, item: StoredKnowledge) -> None:
        def clean(cleaner: Cleaner) -> tuple[StoredKnowledge, KnowledgeRecord] | None:
            known = self.store.knowledge(self.namespace).of_numbers([item.number]).get(item.number)
            if known is None:
                return None
            record = cleaner.record(known.record)
            return known, replace(record, digest=digest_of(record.agent, record.metadata))

        def write(change: MemoryChange, cleaned: tuple[StoredKnowledge, KnowledgeRecord], _: Cleaner) -> None:
            known, record = cleaned
            destination = self._destination()
            stamp = destination.embedder.stamp
            if not record.embedder:
                destination = replace(destination, embedder=NoVectors(stamp))
            maker = PassageMaker(destination)
            (made,) = maker.complete([maker.prepare(known.owner, normalise(record.content), "text")])
            record = replace(record, embedder=str(stamp.of("knowledge")) if record.embedder else "", vector=b"")
            if known.deleted_at is not None:
                change.knowledge.erase([known.number])
            times = {name: getattr(known, name) for name in ("created_at", "updated_at", "deleted_at")}
            change.knowledge.put(KnowledgeWrite(known.owner, made.passages, record), **times)

        holder = Holder(self._of("an item of knowledge of agent", item.record.agent))
        self._add(holder, (*names_of(item.record), item.owner.id), clean, write)

    def _context(self, context: ContextRecord) -> None:
        def clean(cleaner: Cleaner) -> ContextRecord | None:
            known = self.store.knowledge(self.namespace).context(context.name)
            return None if known is None else cleaner.record(known)

        holder = Holder(self._of("the context of agent", context.name))
        self._add(holder, (context.name,), clean, lambda change, cleaned, _: change.knowledge.put_context(cleaned))

    def _issue(self, id_: str) -> None:
        ledger = self.store.ledger(self.namespace)

        def clean(cleaner: Cleaner) -> tuple[Issue | None, list[IssueEvent]]:
            issue, events = ledger.issue(id_), ledger.events(id_)
            if issue is not None:
                issue = cleaned_issue(issue, cleaner.text, cleaner.value)
                issue = replace(issue, labels=tuple(sorted(set(map(cleaner.text, issue.labels)))))
            return issue, [cleaner.record(event) for event in events]

        issue, events = ledger.issue(id_), ledger.events(id_)
        names = [name for each in (*([] if issue is None else [issue]), *events) for name in names_of(each)]
        holder = Holder(self._of("issue", id_))
        self._add(holder, names, clean, lambda change, cleaned, _: rewrite(change.ledger, id_, *cleaned))

    def _link(self, link: Link) -> None:
        def write(change: MemoryChange, cleaned: Link, _: Cleaner) -> None:
            if change.unlink(link.source, link.target, link.type):
                change.link(cleaned)

        holder = Holder(self._of("a link from memory", link.source))
        self._add(holder, (), lambda cleaner: cleaner.record(link), write)

    def _receipt(self, note: Note) -> None:
        holder = Holder(f"the receipt {note.id}")
        self._add(holder, (), lambda cleaner: cleaner.record(note), lambda change, cleaned, _: change.put_note(cleaned))


PART: Final = "secrets"
"""What the findings of a report are filed under."""

_PAGE: Final = ".md"
"""How the name of a page ends."""
_ATTEMPTS: Final = 5
_LOCK_WAIT_S: Final = 60.0
_CHANGE: Final = "change the secret where it is used; backups made before now still hold it"
_FILE: Final = f"take it out of the file, which was left as it is, and {_CHANGE}"
_MEND: Final = f"run `commonplace doctor --secrets` where the store can be written, and {_CHANGE.partition(';')[0]}"
_END_PROGRAMS: Final = "end every program that has the store open, then run `commonplace doctor --secrets` again"
_NO_FILE: Final = "it is no file of the store: remove it, or edit it"
_NAMED: Final = "a name is never replaced: forget it, or give it another one; and change the secret where it is used"


def was_cut_short(store: Store) -> bool:
    """Return whether a run was ended before it had replaced what it found."""
    return _begun(store) is not None


class Secrets:
    """Looks through all namespaces of one store, and the Markdown and the logs below its directory.

    Args:
        destination: what makes passages; asked for when something is written anew.
        sync: brings the Markdown of a namespace and its memories together, where it has any.
    """

    def __init__(
        self,
        place: ErasureRuntime,
        destination: Callable[[], Destination],
        sync: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._place = place
        self._store = place.store
        self._directory = place.directory
        self._destination = destination
        self._sync = sync

    def examine(self, *, mend: bool) -> list[Finding]:
        """Tell what holds secrets; with `mend`, write it anew without them, and let every copy go.

        What cannot be read or mended is a finding too, not an error.
        """
        found = Found()
        try:
            if not mend or self._store.is_read_only:
                found, _ = self._look()
                return list(_findings(found, mended=False))
            with self._store.lock(self._directory / LOCK).hold(_LOCK_WAIT_S):
                found, known = self._look()
                begun = _begun(self._store)
                if begun is None and all(holder.is_name for holder in found.holders):
                    return list(_findings(found, mended=False))
                damage = self._store.check()
                if damage:
                    told = Finding(f"nothing was replaced in a damaged store: {damage[0]}", "restore a backup")
                    return [*_findings(found, mended=False), told]
                return self._mend(found, known, begun)
        except CommonplaceError as error:
            return [*_findings(found, mended=False), Finding.of(error)]

    def _look(self) -> tuple[Found, Known]:
        """Return what holds secrets, also those that are only known from elsewhere."""
        found, known = self._look_for(NOTHING), NOTHING
        if found.secrets:
            known = Known(found.secrets)
            found = self._look_for(known)
        return found, known

    def _look_for(self, known: Known) -> Found:
        found = Found()
        for namespace in self._store.namespaces():
            StoredSecrets(self._store, namespace, self._destination, known, found).look()
        self._look_at_files(found, known)
        return found

    def _look_at_files(self, found: Found, known: Known) -> None:
        """Add the pages and logs that hold secrets, but for ids, which are a memory's name there too."""
        kept = frozenset(found.named)
        for name in files_below(self._directory):
            is_log = name.startswith(f"{LOGS}/") and ".jsonl" in name
            if not is_log and not name.endswith(_PAGE):
                continue
            cleaner, data = Cleaner(known, kept), _read(self._directory / name)
            for piece in data.splitlines() if is_log else [data]:
                cleaner.text(_text(piece))
            found.add(cleaner, Holder(f"the {'log' if is_log else 'page'} {Cleaner(known).text(name)}"))

    def _mend(self, found: Found, known: Known, begun: Pending | None) -> list[Finding]:
        place, patterns = self._place, patterns_of({*found.secrets, *found.parts})
        # Before anything is replaced: a run that is killed later cannot know any more what to look for.
        self._clear_logs(patterns)
        pending = begun or Pending(str(uuid4()), place.clock(), STORE_SPACE, (INDEX, GENERATIONS, DATABASE, DRAFTS))
        receipt = ForgetReceipt(STORE_SPACE, pending.at, pending.id, counts={"secrets": len(found.secrets)})
        with self._store.change_memories(STORE_SPACE) as change:
            change.put_note(receipt.note())
            change.put_note(pending.note())
        problems = self._replace(found, known)
        waiting = take(place, pending, {}, thorough=True)
        place.forget_caches()
        self._clear_logs(patterns)
        still = Found(named=found.named)
        self._look_at_files(still, known)
        left = list(self._left(found, patterns, waiting))
        settle(place, receipt, replace(pending, is_proved=True, is_clean=not left), waiting)
        if begun is not None:
            problems.append(Finding("an earlier run was ended before it had replaced all", _CHANGE, mended=True))
        return [*_findings(found, mended=True, but={holder.where for holder in still.holders}), *problems, *left]

    def _replace(self, found: Found, known: Known) -> list[Finding]:
        """Write anew what is stored, let the pages follow, and clean what nobody but people wrote there."""
        spaces = {holder.namespace for holder in found.holders if holder.namespace}
        # Edits that were not taken in yet come first: afterwards both sides would have changed.
        problems = self._brought_together(sorted(spaces))
        for holder in found.holders:
            if holder.mend is not None:
                holder.mend()
        due = {namespace for namespace in self._store.namespaces() if self._store.due(namespace)}
        problems += self._brought_together(sorted(spaces | due))
        with FileLock(self._directory / PAGES_LOCK).hold(_LOCK_WAIT_S):
            return [*problems, *self._clean_pages(known, frozenset(found.named))]

    def _brought_together(self, namespaces: Iterable[str]) -> list[Finding]:
        problems = []
        for namespace in namespaces:
            try:
                self._sync(namespace)
            except CommonplaceError as error:
                problems.append(Finding.of(error))
        return problems

    def _clean_pages(self, known: Known, kept: frozenset[str]) -> list[Finding]:
        """Put placeholders into every page that holds a secret; return what went wrong with single pages.

        What a process left that was killed while it wrote a page goes too; the caller holds the lock of the pages.
        """
        names, problems = files_below(self._directory), []
        for name in names:
            if name.endswith(_PAGE + PAGE_DRAFT):
                with suppress(OSError):
                    (self._directory / name).unlink()
        for name in names:
            try:
                if name.endswith(_PAGE):
                    _clean(self._directory / name, known, kept)
            except StoreError as error:
                problems.append(Finding.of(error))
        return problems

    def _clear_logs(self, patterns: Patterns) -> None:
        """Blank the lines of logs that hold a secret, one of these or any other.

        Raises:
            StoreError: a log cannot be read or written.
        """

        def places(data: bytes) -> Iterator[int]:
            yield from patterns.offsets(data)
            yield from (offset for offset, line in lines_of(data) if find_secrets(_text(line)))

        blank_where(self._place, places)

    def _left(self, found: Found, patterns: Patterns, waiting: Sequence[Waiting]) -> Iterator[Finding]:
        """Yield what holds one of the secrets still; what waits is told of as what was forgotten and waits."""
        directory = self._directory
        scanned = scan(directory, files_below(directory), patterns)
        hits = scanned.all_hits()
        stored = still_stored(self._store, patterns.only(hits)) if hits else set()
        passed = {directory / note.id for note in self._store.notes(None, BACKUP)}
        waits = tuple(each.files for each in waiting)
        for name, held in sorted(scanned.hits.items()):
            is_passed = directory / name in passed or name.endswith(_PAGE) or (waits and name.startswith(waits))
            if held - stored and not is_passed:
                is_of_store = Path(name).name.startswith("store.db") or name.startswith(f"{INDEX}/")
                yield Finding(f"the file {name} still holds a secret", _END_PROGRAMS if is_of_store else _NO_FILE)
        for name, why in scanned.unread:
            yield Finding(f"the file {name} may hold a secret: {why}", "make it readable, or remove it")
        told = sum(secret.encode("utf-8", "surrogatepass") in stored for secret in found.secrets.keys() - found.named)
        if told:
            also = "one of these secrets also stands" if told == 1 else f"{told} of these secrets also stand"
            yield Finding(
                f"{also} in texts that do not call it one, and was left there",
                "find these texts with `commonplace search`, and update or forget them",
            )


def _begun(store: Store) -> Pending | None:
    runs = [run for run in pending_of(store.notes(STORE_SPACE, FORGETTING)) if run.namespace == STORE_SPACE]
    return next((run for run in runs if not run.is_proved), None)


def _findings(found: Found, *, mended: bool, but: Collection[str] = ()) -> Iterator[Finding]:
    for holder in found.holders:
        is_mended = mended and not holder.is_name and holder.where not in but
        remedy = _NAMED if holder.is_name else _MEND if not is_mended else _FILE if holder.is_file else _CHANGE
        for kind, number in holder.kinds.items():
            times = "a secret" if number == 1 else f"{number} secrets"
            yield Finding(f"{holder.where} holds {times} of the kind {kind}", remedy, is_mended)


def _clean(path: Path, known: Known, kept: frozenset[str]) -> None:
    """Write a page anew, whole or not at all, and only if it is still what was read."""
    draft = path.with_name(path.name + PAGE_DRAFT)
    for _ in range(_ATTEMPTS):
        data = _read(path)
        text = _text(data)
        clean = Cleaner(known, kept).text(text)
        if clean == text:
            return
        try:
            write_file(draft, clean.encode("utf-8", "surrogateescape"))
            shutil.copymode(path, draft)
            if path.read_bytes() == data:
                draft.replace(path)
                sync(path.parent)
                return
        except OSError as error:
            raise _unwritten(path, error) from error
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
    raise StoreBusyError(f"{path} is being changed all the time", remedy="close it, and try again")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", remedy="make it readable, or remove it") from error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _unwritten(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be written: {error.strerror}", remedy="make it writable, or edit it")
