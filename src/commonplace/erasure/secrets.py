"""Find secrets in the store, on pages and in logs, and replace them by placeholders.

The store is searched item by item, as in an export; an item with a secret is rewritten without it and keeps its ids,
times and uses. Secrets in names (an id, a session, a path) are only reported, since renaming would make it another
item. A secret that is recognised in one place is replaced everywhere if its value looks random: a short password may be
an ordinary word.

Findings state the place, the kind and the count, never the secret. A note in the store marks a killed run, which the
next one finishes.
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
    """Return a finder of known secrets (with their kinds) that needs no context and ignores parts of longer words."""
    distinctive = sorted(filter(is_disordered, kinds), key=len, reverse=True)
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, distinctive))})(?![^\W_])")

    def find(text: str) -> Iterator[Secret]:
        matches = pattern.finditer(text) if distinctive else ()
        return (Secret(kinds[match[0]], *match.span()) for match in matches)

    return find


nothing_known: Final = known_secrets({})


@dataclass(slots=True)
class Cleaner(redact.Cleaner):
    """Cleans texts, also from secrets that were found elsewhere.

    Attributes:
        known: finds secrets that were found elsewhere.
        kept: secrets that are not replaced because they are part of a name.
    """

    known: Finder = nothing_known
    kept: frozenset[str] = frozenset()

    def secrets(self, text: str) -> list[Secret]:
        chosen: list[Secret] = []
        for secret in sorted([*find_secrets(text), *self.known(text)], key=lambda match: (match.start, -match.end)):
            is_apart = secret.start >= (chosen[-1].end if chosen else 0)
            if is_apart and text[secret.start : secret.end] not in self.kept:
                chosen.append(secret)
        return chosen

    def all_texts(self, texts: Iterable[str]) -> list[str]:
        return list(map(self.text, texts))


def patterns_of(found: Iterable[str]) -> Patterns:
    """Return patterns that find secrets in files; secrets under eight bytes are too short."""
    collector = Collector()
    for secret in found:
        # Line by line: a page may indent them. The frame of a private key is no secret.
        lines = [line.strip() for line in secret.splitlines()]
        for line in [line for line in lines if is_disordered(line)] if len(lines) > 1 else lines:
            collector.add_content(line)
        collector.add_digest(query_hash(secret))
    return collector.patterns()


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that contains secrets.

    Attributes:
        where: its description for people, without secrets.
        kinds: the number of different secrets by kind.
        namespace: its namespace, if it is in the store.
        item: the item, if it can be rewritten.
        is_name: the secrets are part of its name, which only its owner can change.
    """

    where: str
    kinds: Mapping[str, int]
    namespace: str = ""
    item: Item | None = None
    is_name: bool = False


@dataclass(slots=True)
class Found:
    """The findings of a search so far.

    Attributes:
        known: finds secrets that an earlier pass found.
        secrets: the kind of each secret outside names.
        named: secrets in names.
    """

    known: Finder
    holders: list[Holder] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)

    def look(self, where: str, clean: Callable[[Cleaner], object], *, kept: Collection[str] = (), **about: Any) -> None:
        """Apply a cleaner with `clean`; if it finds secrets, add them and a `Holder` with the fields `about`."""
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
        """Yield a problem per holder and kind; with `mended` as repaired, except names and the holders in `but`."""
        for holder in self.holders:
            is_mended = mended and not holder.is_name and holder.where not in but
            is_file = isinstance(holder.item, OwnerItem) and bool(holder.item.owner.path)
            remedy = _NAMED if holder.is_name else _MEND if not is_mended else _FILE if is_file else _CHANGE
            for kind, number in holder.kinds.items():
                times = "a secret" if number == 1 else f"{number} secrets"
                yield Problem(PART, f"{holder.where} holds {times} of the kind {kind}", remedy, is_mended)


PART: Final = "secrets"
"""The part of a `doctor` report that contains these problems."""

_PAGE: Final = ".md"
"""The suffix of the name of a page."""
_LOCK_WAIT_S: Final = 60.0
_CHANGE: Final = "change the secret where it is used; older backups still hold it"
_FILE: Final = f"take it out of the file, which was left as it is, and {_CHANGE}"
_MEND: Final = f"run `commonplace doctor --secrets` where the store can be written, and {_CHANGE.partition(';')[0]}"
_END_PROGRAMS: Final = "end every program that has the store open, then run `commonplace doctor --secrets` again"
_NO_FILE: Final = "it is no file of the store: remove it, or edit it"
_NAMED: Final = "names are not replaced: delete it or rename it, and change the secret where it is used"


def interrupted_run(store: Store) -> Pending | None:
    """Return a run that ended before it had replaced what it found; None if there is none."""
    for run in pending_runs(store, WHOLE_STORE):
        receipts = store.notes(WHOLE_STORE, RECEIPT, run.id)
        if not run.is_namespace and not (receipts and receipt_of(receipts[0]).checked):
            return run
    return None


@dataclass(frozen=True, slots=True)
class Secrets:
    """Searches all namespaces of a store, and the Markdown and logs below its directory.

    Attributes:
        destination: returns what makes passages; called when something is rewritten.
        sync: synchronises the Markdown of a namespace with its memories, if it has any.
    """

    place: ErasureRuntime
    destination: Callable[[], Destination]
    sync: Callable[[str], None]

    def examine(self, *, mend: bool) -> list[Problem]:
        """Return what contains secrets; with `mend`, rewrite it without them and remove all copies.

        Data that cannot be read or repaired is a problem too, not an error.
        """
        findings, place = Found(nothing_known), self.place
        try:
            if not mend or place.store.is_read_only:
                return list(self._look().problems(mended=False))
            with place.store.lock(place.directory / LOCK).hold(_LOCK_WAIT_S):
                findings, interrupted = self._look(), interrupted_run(place.store)
                if interrupted is None and all(holder.is_name for holder in findings.holders):
                    return list(findings.problems(mended=False))
                if damage := place.store.check():
                    damaged = f"nothing was replaced in a damaged store: {damage[0]}"
                    return [*findings.problems(mended=False), Problem(PART, damaged, "restore a backup")]
                return self._mend(findings, interrupted)
        except CommonplaceError as error:
            return [*findings.problems(mended=False), Problem.of(PART, error)]

    def _look(self, known: Finder = nothing_known) -> Found:
        """Return what contains secrets, including those recognised only elsewhere."""
        findings, store = Found(known), self.place.store
        for namespace in store.namespaces():
            findings.look_at_names(f"namespace {namespace!r}", (namespace,))
            with store.snapshot():
                for item in chain.from_iterable(part.items for part in parts_of(store, namespace)):
                    where = f"{item.name} of namespace {namespace!r}"
                    findings.look_at_names(where, item.names())
                    findings.look(where, item.cleaned, namespace=namespace, item=item)
            for note in store.notes(namespace, RECEIPT):
                findings.look(f"the receipt {note.id}", partial(Cleaner.record, record=note), namespace=namespace)
            for note in store.notes(namespace, BACKUP):
                findings.look_at_names(f"a backup of namespace {namespace!r}", (note.id, note.body))
        self._look_at_files(findings, findings.named)
        return self._look(known_secrets(findings.secrets)) if findings.secrets and known is nothing_known else findings

    def _look_at_files(self, findings: Found, kept: Collection[str]) -> None:
        """Add the pages and logs that contain secrets other than `kept`, such as ids, which are names there too."""
        directory = self.place.directory
        for name in files_below(directory):
            is_log = name.startswith(f"{LOGS}/") and ".jsonl" in name
            if is_log or name.endswith(_PAGE):
                data = _read(directory / name)
                texts = [_text(piece) for piece in (data.splitlines() if is_log else [data])]
                where = f"the {'log' if is_log else 'page'} {name}"
                findings.look(where, partial(Cleaner.all_texts, texts=texts), kept=kept)

    def _mend(self, findings: Found, interrupted: Pending | None) -> list[Problem]:
        """Erase the secrets found as `forget` does: from logs, store, pages, index and files; then search the files."""
        place, patterns = self.place, patterns_of(findings.secrets)

        def secret_offsets(data: bytes) -> Iterator[int]:
            """Yield the offsets of log lines with one of these secrets, or any other."""
            yield from patterns.offsets(data)
            yield from (offset for offset, line in lines_of(data) if find_secrets(_text(line)))

        # Logs come first: after a kill, the run that finishes this one no longer knows what to search for.
        blank_where(place, secret_offsets)
        pending = interrupted or Pending(str(uuid4()), place.clock(), WHOLE_STORE)
        receipt = ForgetReceipt(WHOLE_STORE, pending.at, pending.id, counts={"secrets": len(findings.secrets)})
        with place.store.change_memories(WHOLE_STORE) as change:
            change.put(receipt.note())
            change.put(pending.note())
        problems = self._replace(findings)
        waiting = rewrite_files(place, thorough=True)
        place.forget_caches()
        blank_where(place, secret_offsets)
        recheck = Found(findings.known)
        self._look_at_files(recheck, findings.named)
        scanned, stored = search(place, files_below(place.directory), patterns, waiting)
        todo = list[Problem]()
        for name in sorted(scanned.hits):
            if not name.endswith(_PAGE):  # the second look at files reports pages
                is_of_store = Path(name).name.startswith(DATABASE) or name.startswith(f"{INDEX}/")
                remedy = _END_PROGRAMS if is_of_store else _NO_FILE
                todo.append(Problem(PART, f"the file {name} still holds a secret", remedy))
        for name, why in scanned.unread:
            todo.append(Problem(PART, f"the file {name} may hold a secret: {why}", "make it readable, or remove it"))
        not_in_names = findings.secrets.keys() - findings.named
        count = sum(secret.encode("utf-8", "surrogatepass") in stored for secret in not_in_names)
        if count:
            subject = "one of these secrets is also" if count == 1 else f"{count} of these secrets are also"
            problem = f"{subject} in texts that do not name it as one, and was left there"
            todo.append(Problem(PART, problem, "find these texts with `commonplace search`, and update or forget them"))
        receipt = replace(
            receipt,
            checked=tuple(sorted(scanned.sizes.items())),
            found=tuple((PART, entry.problem) for entry in todo),
        )
        settle(place, receipt, pending, waiting)
        if interrupted is not None:
            problems.append(Problem(PART, "an earlier run was ended before it had replaced all", _CHANGE, mended=True))
        return [*findings.problems(mended=True, but={holder.where for holder in recheck.holders}), *problems, *todo]

    def _replace(self, findings: Found) -> list[Problem]:
        """Rewrite items and receipts, sync the pages, and clean what people wrote on them."""
        store, directory = self.place.store, self.place.directory
        namespaces = {holder.namespace for holder in findings.holders if isinstance(holder.item, MemoryItem)}
        # Import pending edits first: afterwards both sides would have changed.
        problems = _tried(self.sync, sorted(namespaces))
        for holder in findings.holders:
            if holder.item is not None:
                try:
                    self._rewrite(holder.namespace, holder.item, findings.known)
                except EmbedderMismatchError:  # another process changed the store's embedder meanwhile
                    self._rewrite(holder.namespace, holder.item, findings.known)
        for namespace in {holder.namespace for holder in findings.holders}:
            for note in store.notes(namespace, RECEIPT):
                clean = Cleaner(known=findings.known).record(note)
                if clean != note:
                    with store.change_memories(namespace) as change:
                        change.put(clean)
        due = {namespace for namespace in store.namespaces() if store.due(namespace)}
        problems += _tried(self.sync, sorted(namespaces | due))
        with FileLock(directory / PAGES_LOCK).hold(_LOCK_WAIT_S):
            names = files_below(directory)
            for name in names:
                if name.endswith(_PAGE + PAGE_DRAFT):  # a process was killed while it wrote a page
                    with suppress(OSError):
                        (directory / name).unlink()
            pages = [directory / name for name in names if name.endswith(_PAGE)]
            return [*problems, *_tried(partial(_clean, known=findings.known, kept=frozenset(findings.named)), pages)]

    def _rewrite(self, namespace: str, item: Item, known: Finder) -> None:
        """Rewrite the current state of an item without secrets."""
        texts, cleaner = Texts(replace(self.destination(), namespace=namespace)), Cleaner(known=known)
        store = self.place.store
        if isinstance(item, OwnerItem):
            if (current := item.stored(Known(store, namespace))) is not None:
                current.cleaned(cleaner).put_owner(texts)
            return
        with store.change_memories(namespace, made_by=texts.destination.embedder.stamp) as change:
            # Nobody else can write now: exactly the state read here is replaced.
            stored = item.stored(Known(store, namespace, change))
            if isinstance(stored, ChangeItem):
                [clean] = stored.prepared([stored.cleaned(cleaner)], texts)
                clean.mend(change, texts, stored)


def _tried(action: Callable[[Any], object], items: Iterable[Any]) -> list[Problem]:
    """Apply an action to each item; return the errors as problems."""
    problems = []
    for item in items:
        try:
            action(item)
        except CommonplaceError as error:
            problems.append(Problem.of(PART, error))
    return problems


def _clean(path: Path, known: Finder, kept: frozenset[str]) -> None:
    """Rewrite a page without secrets, atomically; refuse if it changed since it was read."""
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
        reason = f"{path} cannot be written: {error.strerror}"
        raise StoreError(reason, remedy="make it writable, or edit it") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", remedy="make it readable, or remove it") from error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
