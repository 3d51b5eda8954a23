"""Find secrets in what is stored, on pages and in logs, and put placeholders in their place.

What is stored is looked through item by item, as it is exported; what holds a secret is written anew without it, and
keeps its ids, times and uses. Secrets in names (an id, a session, a path) are only reported, since renaming would make
it another item. A secret that is recognised in one place is replaced everywhere, where its value looks random: a short
password may be an ordinary word.

Findings name the place, the kind and the count, never the secret. A killed run is known by its note in the store, and
the next one does what it left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from commonplace.dataclasses import dataclass, field, replace
from commonplace.erasure.copies import (
    LOCK,
    ErasureRuntime,
    Pending,
    blank_where,
    lines_of,
    pending_runs,
    rewrite_files,
    settle,
)
from commonplace.erasure.receipt import RECEIPT, ForgetReceipt, Problem, receipt_of
from commonplace.erasure.scan import Collector, Patterns, files_below
from commonplace.erasure.verify import search
from commonplace.errors import CommonplaceError, EmbedderMismatchError, StoreBusyError, StoreError
from commonplace.exchange.backup import BACKUP
from commonplace.exchange.items import ChangeItem, Item, Known, MemoryItem, OwnerItem, parts_of
from commonplace.files import sync
from commonplace.graph import redact
from commonplace.graph.runtime import Texts
from commonplace.ingest.passages import Destination
from commonplace.journal.folder import replace_file
from commonplace.locks import FileLock
from commonplace.logs import query_hash
from commonplace.redaction import Secret, find_secrets
from commonplace.redaction.patterns import is_disordered
from commonplace.settings.paths import DATABASE, INDEX, LOGS, PAGE_DRAFT, PAGES_LOCK
from commonplace.store.schema import WHOLE_STORE
from commonplace.store.store import Store

Finder = Callable[[str], Iterable[Secret]]


def known_secrets(kinds: Mapping[str, str]) -> Finder:
    """Return a finder of known secrets, given with their kinds, also without context; not inside a longer word."""
    telling = sorted(filter(is_disordered, kinds), key=len, reverse=True)
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, telling))})(?![^\W_])")

    def find(text: str) -> Iterator[Secret]:
        found = pattern.finditer(text) if telling else ()
        return (Secret(kinds[match[0]], *match.span()) for match in found)

    return find


nothing_known: Final = known_secrets({})


@dataclass(slots=True)
class Cleaner(redact.Cleaner):
    """Cleans texts, also of secrets that were found elsewhere.

    Attributes:
        known: finds secrets that were found elsewhere.
        kept: secrets that stay, for they are a part of something's name.
    """

    known: Finder = nothing_known
    kept: frozenset[str] = frozenset()

    def secrets(self, text: str) -> list[Secret]:
        found: list[Secret] = []
        for secret in sorted([*find_secrets(text), *self.known(text)], key=lambda each: (each.start, -each.end)):
            is_apart = secret.start >= (found[-1].end if found else 0)
            if is_apart and text[secret.start : secret.end] not in self.kept:
                found.append(secret)
        return found

    def all_texts(self, texts: Iterable[str]) -> list[str]:
        return list(map(self.text, texts))


def patterns_of(found: Iterable[str]) -> Patterns:
    """Return patterns that find secrets in files; secrets under eight bytes are too short."""
    collector = Collector()
    for secret in found:
        # Line by line: a page may have indented them. What frames a private key is no secret.
        lines = [line.strip() for line in secret.splitlines()]
        for line in [line for line in lines if is_disordered(line)] if len(lines) > 1 else lines:
            collector.add_content(line)
        collector.add_digest(query_hash(secret))
    return collector.patterns()


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that holds secrets.

    Attributes:
        where: how people name it, secrets left out.
        kinds: how many different secrets of each kind it holds.
        namespace: of what is stored.
        item: what it is, where it can be rewritten.
        is_name: they are a part of its name, which nobody but its owner can change.
    """

    where: str
    kinds: Mapping[str, int]
    namespace: str = ""
    item: Item | None = None
    is_name: bool = False


@dataclass(slots=True)
class Found:
    """What was found so far.

    Attributes:
        known: finds secrets that were found before.
        secrets: the kind of each.
        named: secrets in names.
    """

    known: Finder
    holders: list[Holder] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)

    def look(self, where: str, clean: Callable[[Cleaner], object], *, kept: Collection[str] = (), **about: Any) -> None:
        """Take in what a cleaner finds in something, if it finds anything, as its `Holder`."""
        cleaner = Cleaner(known=self.known, kept=frozenset(kept))
        clean(cleaner)
        if cleaner.kinds:
            counts = dict(sorted(Counter(cleaner.kinds.values()).items()))
            holder = Holder(Cleaner(known=self.known).text(where), counts, **about)
            self.holders.append(holder)
            if holder.is_name:
                self.named |= cleaner.kinds.keys()
            else:
                self.secrets |= cleaner.kinds

    def look_at_names(self, where: str, names: Iterable[str]) -> None:
        self.look(f"the name of {where}", partial(Cleaner.all_texts, texts=names), is_name=True)

    def problems(self, *, mended: bool, but: Collection[str] = ()) -> Iterator[Problem]:
        """Yield what holds secrets, or held them; `but` are those that still do."""
        for holder in self.holders:
            is_mended = mended and not holder.is_name and holder.where not in but
            is_file = isinstance(holder.item, OwnerItem) and bool(holder.item.owner.path)
            remedy = _NAMED if holder.is_name else _MEND if not is_mended else _FILE if is_file else _CHANGE
            for kind, number in holder.kinds.items():
                times = "a secret" if number == 1 else f"{number} secrets"
                yield Problem(PART, f"{holder.where} holds {times} of the kind {kind}", remedy, is_mended)


PART: Final = "secrets"
"""What the problems of a report are filed under."""

_PAGE: Final = ".md"
"""How the name of a page ends."""
_LOCK_WAIT_S: Final = 60.0
_CHANGE: Final = "change the secret where it is used; older backups still hold it"
_FILE: Final = f"take it out of the file, which was left as it is, and {_CHANGE}"
_MEND: Final = f"run `commonplace doctor --secrets` where the store can be written, and {_CHANGE.partition(';')[0]}"
_END_PROGRAMS: Final = "end every program that has the store open, then run `commonplace doctor --secrets` again"
_NO_FILE: Final = "it is no file of the store: remove it, or edit it"
_NAMED: Final = "names are not replaced: delete it or rename it, and change the secret where it is used"


def interrupted_run(store: Store) -> Pending | None:
    """Return a run that ended before it had replaced what it found."""
    for run in pending_runs(store, WHOLE_STORE):
        receipts = store.notes(WHOLE_STORE, RECEIPT, run.id)
        if not run.is_namespace and not (receipts and receipt_of(receipts[0]).checked):
            return run
    return None


@dataclass(frozen=True, slots=True)
class Secrets:
    """Looks through all namespaces of one store, and the Markdown and the logs below its directory.

    Attributes:
        destination: what makes passages; called when something is rewritten.
        sync: brings the Markdown of a namespace and its memories together, where it has any.
    """

    place: ErasureRuntime
    destination: Callable[[], Destination]
    sync: Callable[[str], None]

    def examine(self, *, mend: bool) -> list[Problem]:
        """Return what holds secrets; with `mend`, rewrite it without them and remove every copy.

        What cannot be read or mended is a problem too, not an error.
        """
        found, place = Found(nothing_known), self.place
        try:
            if not mend or place.store.is_read_only:
                return list(self._look().problems(mended=False))
            with place.store.lock(place.directory / LOCK).hold(_LOCK_WAIT_S):
                found, begun = self._look(), interrupted_run(place.store)
                if begun is None and all(holder.is_name for holder in found.holders):
                    return list(found.problems(mended=False))
                if damage := place.store.check():
                    damaged = f"nothing was replaced in a damaged store: {damage[0]}"
                    return [*found.problems(mended=False), Problem(PART, damaged, "restore a backup")]
                return self._mend(found, begun)
        except CommonplaceError as error:
            return [*found.problems(mended=False), Problem.of(PART, error)]

    def _look(self, known: Finder = nothing_known) -> Found:
        """Return what holds secrets, also those that are only known from elsewhere."""
        found, store = Found(known), self.place.store
        for namespace in store.namespaces():
            found.look_at_names(f"namespace {namespace!r}", (namespace,))
            with store.snapshot():
                for item in chain.from_iterable(part.items for part in parts_of(store, namespace)):
                    where = f"{item.name} of namespace {namespace!r}"
                    found.look_at_names(where, item.names())
                    found.look(where, item.cleaned, namespace=namespace, item=item)
            for note in store.notes(namespace, RECEIPT):
                found.look(f"the receipt {note.id}", partial(Cleaner.record, record=note), namespace=namespace)
            for note in store.notes(namespace, BACKUP):
                found.look_at_names(f"a backup of namespace {namespace!r}", (note.id, note.body))
        self._look_at_files(found, found.named)
        return self._look(known_secrets(found.secrets)) if found.secrets and known is nothing_known else found

    def _look_at_files(self, found: Found, kept: Collection[str]) -> None:
        """Add the pages and logs that hold secrets, but for ids, which are a memory's name there too."""
        directory = self.place.directory
        for name in files_below(directory):
            is_log = name.startswith(f"{LOGS}/") and ".jsonl" in name
            if is_log or name.endswith(_PAGE):
                data = _read(directory / name)
                texts = [_text(piece) for piece in (data.splitlines() if is_log else [data])]
                where = f"the {'log' if is_log else 'page'} {name}"
                found.look(where, partial(Cleaner.all_texts, texts=texts), kept=kept)

    def _mend(self, found: Found, begun: Pending | None) -> list[Problem]:
        """Erase what was found as forgetting does: logs, store, pages, index and files, which are searched then."""
        place, patterns = self.place, patterns_of(found.secrets)

        def places(data: bytes) -> Iterator[int]:
            """Yield where a line of a log holds one of these secrets, or any other."""
            yield from patterns.offsets(data)
            yield from (offset for offset, line in lines_of(data) if find_secrets(_text(line)))

        # Before anything is replaced: a run that is killed later cannot know any more what to look for.
        blank_where(place, places)
        pending = begun or Pending(str(uuid4()), place.clock(), WHOLE_STORE)
        receipt = ForgetReceipt(WHOLE_STORE, pending.at, pending.id, counts={"secrets": len(found.secrets)})
        with place.store.change_memories(WHOLE_STORE) as change:
            change.put(receipt.note())
            change.put(pending.note())
        problems = self._replace(found)
        waiting = rewrite_files(place, thorough=True)
        place.forget_caches()
        blank_where(place, places)
        still = Found(found.known)
        self._look_at_files(still, found.named)
        scanned, stored = search(place, files_below(place.directory), patterns, waiting)
        left = list[Problem]()
        for name in sorted(scanned.hits):
            if not name.endswith(_PAGE):  # pages are among what still holds a secret
                is_of_store = Path(name).name.startswith(DATABASE) or name.startswith(f"{INDEX}/")
                remedy = _END_PROGRAMS if is_of_store else _NO_FILE
                left.append(Problem(PART, f"the file {name} still holds a secret", remedy))
        for name, why in scanned.unread:
            left.append(Problem(PART, f"the file {name} may hold a secret: {why}", "make it readable, or remove it"))
        not_in_names = found.secrets.keys() - found.named
        count = sum(secret.encode("utf-8", "surrogatepass") in stored for secret in not_in_names)
        if count:
            also = "one of these secrets is also" if count == 1 else f"{count} of these secrets are also"
            problem = f"{also} in texts that do not name it as one, and was left there"
            left.append(Problem(PART, problem, "find these texts with `commonplace search`, and update or forget them"))
        receipt = replace(
            receipt,
            checked=tuple(sorted(scanned.sizes.items())),
            found=tuple((PART, each.problem) for each in left),
        )
        settle(place, receipt, pending, waiting)
        if begun is not None:
            problems.append(Problem(PART, "an earlier run was ended before it had replaced all", _CHANGE, mended=True))
        return [*found.problems(mended=True, but={holder.where for holder in still.holders}), *problems, *left]

    def _replace(self, found: Found) -> list[Problem]:
        """Rewrite what is stored, sync the pages, and clean what people wrote on them."""
        store, directory = self.place.store, self.place.directory
        spaces = {holder.namespace for holder in found.holders if isinstance(holder.item, MemoryItem)}
        # Edits that were not imported yet come first: afterwards both sides would have changed.
        problems = _tried(self.sync, sorted(spaces))
        for holder in found.holders:
            if holder.item is not None:
                try:
                    self._rewrite(holder.namespace, holder.item, found.known)
                except EmbedderMismatchError:  # another process changed the store's embedder meanwhile
                    self._rewrite(holder.namespace, holder.item, found.known)
        for namespace in {holder.namespace for holder in found.holders}:
            for note in store.notes(namespace, RECEIPT):
                clean = Cleaner(known=found.known).record(note)
                if clean != note:
                    with store.change_memories(namespace) as change:
                        change.put(clean)
        due = {namespace for namespace in store.namespaces() if store.due(namespace)}
        problems += _tried(self.sync, sorted(spaces | due))
        with FileLock(directory / PAGES_LOCK).hold(_LOCK_WAIT_S):
            names = files_below(directory)
            for name in names:
                if name.endswith(_PAGE + PAGE_DRAFT):  # left by a process that was killed while it wrote a page
                    with suppress(OSError):
                        (directory / name).unlink()
            pages = [directory / name for name in names if name.endswith(_PAGE)]
            return [*problems, *_tried(partial(_clean, known=found.known, kept=frozenset(found.named)), pages)]

    def _rewrite(self, namespace: str, item: Item, known: Finder) -> None:
        """Write an item without secrets, as it is now."""
        texts, cleaner = Texts(replace(self.destination(), namespace=namespace)), Cleaner(known=known)
        store = self.place.store
        if isinstance(item, OwnerItem):
            if (was := item.stored(Known(store, namespace))) is not None:
                was.cleaned(cleaner).put_owner(texts)
            return
        with store.change_memories(namespace, made_by=texts.destination.embedder.stamp) as change:
            # Nobody else can write now: what is read here is what is replaced.
            stored = item.stored(Known(store, namespace, change))
            if isinstance(stored, ChangeItem):
                [clean] = stored.prepared([stored.cleaned(cleaner)], texts)
                clean.mend(change, texts, stored)


def _tried(act: Callable[[Any], object], on: Iterable[Any]) -> list[Problem]:
    """Do something with each, and return what went wrong."""
    problems = []
    for each in on:
        try:
            act(each)
        except CommonplaceError as error:
            problems.append(Problem.of(PART, error))
    return problems


def _clean(path: Path, known: Finder, kept: frozenset[str]) -> None:
    """Rewrite a page atomically, unless it changed since it was read."""
    data = _read(path)
    text = _text(data)
    clean = Cleaner(known=known, kept=kept).text(text).encode("utf-8", "surrogateescape")
    if clean == data:
        return
    try:
        status = replace_file(path, path.with_name(path.name + PAGE_DRAFT), clean, lambda: path.read_bytes() == data)
        if status is None:
            raise StoreBusyError(f"{path} is being changed", remedy="close it, and try again")
        sync(path.parent)
    except OSError as error:
        why = f"{path} cannot be written: {error.strerror}"
        raise StoreError(why, remedy="make it writable, or edit it") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", remedy="make it readable, or remove it") from error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
