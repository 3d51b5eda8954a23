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
    PendingRun,
    blank_logs,
    lines_of,
    pending_runs,
    rewrite_files,
    store_receipt,
)
from commonplace.erasure.receipt import RECEIPT, ForgetReceipt, Problem, receipt_of
from commonplace.erasure.scan import Collector, Patterns, files_below
from commonplace.erasure.verify import search
from commonplace.errors import CommonplaceError, EmbedderMismatchError, StoreBusyError, StoreError
from commonplace.exchange.backup import BACKUP
from commonplace.exchange.items import ChangeItem, Item, MemoryItem, NamespaceReader, OwnerItem, parts_of
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


find_nothing: Final = known_secrets({})


@dataclass(slots=True)
class Redactor(redact.Cleaner):
    """Cleans texts, also from secrets that were found elsewhere.

    Attributes:
        finder: finds secrets that were found elsewhere.
        skip: secrets that are not replaced because they are part of a name.
    """

    finder: Finder = find_nothing
    skip: frozenset[str] = frozenset()

    def secrets(self, text: str) -> list[Secret]:
        chosen: list[Secret] = []
        for secret in sorted([*find_secrets(text), *self.finder(text)], key=lambda match: (match.start, -match.end)):
            is_apart = secret.start >= (chosen[-1].end if chosen else 0)
            if is_apart and text[secret.start : secret.end] not in self.skip:
                chosen.append(secret)
        return chosen

    def all_texts(self, texts: Iterable[str]) -> list[str]:
        return list(map(self.text, texts))


def patterns_of(secrets: Iterable[str]) -> Patterns:
    """Return patterns that find secrets in files; secrets under eight bytes are too short."""
    collector = Collector()
    for secret in secrets:
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
        label: its description for people, without secrets.
        kinds: the number of different secrets by kind.
        namespace: its namespace, if it is in the store.
        item: the item, if it can be rewritten.
        is_name: the secrets are part of its name, which only its owner can change.
    """

    label: str
    kinds: Mapping[str, int]
    namespace: str = ""
    item: Item | None = None
    is_name: bool = False


@dataclass(slots=True)
class Findings:
    """The findings of a search so far.

    Attributes:
        finder: finds secrets that an earlier pass found.
        secrets: the kind of each secret outside names.
        in_names: secrets in names.
    """

    finder: Finder
    holders: list[Holder] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    in_names: set[str] = field(default_factory=set)

    def add(self, label: str, clean: Callable[[Redactor], object], *, skip: Collection[str] = (), **about: Any) -> None:
        """Apply a cleaner with `clean`; if it finds secrets, add them and a `Holder` with the fields `about`."""
        cleaner = Redactor(finder=self.finder, skip=frozenset(skip))
        clean(cleaner)
        if cleaner.kinds:
            counts = dict(sorted(Counter(cleaner.kinds.values()).items()))
            holder = Holder(Redactor(finder=self.finder).text(label), counts, **about)
            self.holders.append(holder)
            if holder.is_name:
                self.in_names |= cleaner.kinds.keys()
            else:
                self.secrets |= cleaner.kinds

    def add_names(self, label: str, names: Iterable[str]) -> None:
        self.add(f"the name of {label}", partial(Redactor.all_texts, texts=names), is_name=True)

    def problems(self, *, mended: bool, unmended: Collection[str] = ()) -> Iterator[Problem]:
        """Yield a problem per holder and kind; with `mended` as repaired, except names and holders in `unmended`."""
        for holder in self.holders:
            is_mended = mended and not holder.is_name and holder.label not in unmended
            is_file = isinstance(holder.item, OwnerItem) and bool(holder.item.owner.path)
            remedy = _NAMED if holder.is_name else _MEND if not is_mended else _FILE if is_file else _CHANGE
            for kind, number in holder.kinds.items():
                times = "a secret" if number == 1 else f"{number} secrets"
                yield Problem(PART, f"{holder.label} holds {times} of the kind {kind}", remedy, is_mended)


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


def interrupted_run(store: Store) -> PendingRun | None:
    """Return a run that ended before it had replaced what it found; None if there is none."""
    for run in pending_runs(store, WHOLE_STORE):
        receipts = store.notes(WHOLE_STORE, RECEIPT, run.id)
        if not run.is_namespace and not (receipts and receipt_of(receipts[0]).checked):
            return run
    return None


@dataclass(frozen=True, slots=True)
class SecretScan:
    """Searches all namespaces of a store, and the Markdown and logs below its directory.

    Attributes:
        destination: returns what makes passages; called when something is rewritten.
        sync: synchronises the Markdown of a namespace with its memories, if it has any.
    """

    runtime: ErasureRuntime
    destination: Callable[[], Destination]
    sync: Callable[[str], None]

    def examine(self, *, mend: bool) -> list[Problem]:
        """Return what contains secrets; with `mend`, rewrite it without them and remove all copies.

        Data that cannot be read or repaired is a problem too, not an error.
        """
        findings, runtime = Findings(find_nothing), self.runtime
        try:
            if not mend or runtime.store.is_read_only:
                return list(self._look().problems(mended=False))
            with runtime.store.lock(runtime.directory / LOCK).hold(_LOCK_WAIT_S):
                findings, interrupted = self._look(), interrupted_run(runtime.store)
                if interrupted is None and all(holder.is_name for holder in findings.holders):
                    return list(findings.problems(mended=False))
                if damage := runtime.store.check():
                    damaged = f"nothing was replaced in a damaged store: {damage[0]}"
                    return [*findings.problems(mended=False), Problem(PART, damaged, "restore a backup")]
                return self._mend(findings, interrupted)
        except CommonplaceError as error:
            return [*findings.problems(mended=False), Problem.of(PART, error)]

    def _look(self, finder: Finder = find_nothing) -> Findings:
        """Return what contains secrets, including those recognised only elsewhere."""
        findings, store = Findings(finder), self.runtime.store
        for namespace in store.namespaces():
            findings.add_names(f"namespace {namespace!r}", (namespace,))
            with store.snapshot():
                for item in chain.from_iterable(part.items for part in parts_of(store, namespace)):
                    label = f"{item.name} of namespace {namespace!r}"
                    findings.add_names(label, item.names())
                    findings.add(label, item.cleaned, namespace=namespace, item=item)
            for note in store.notes(namespace, RECEIPT):
                findings.add(f"the receipt {note.id}", partial(Redactor.record, record=note), namespace=namespace)
            for note in store.notes(namespace, BACKUP):
                findings.add_names(f"a backup of namespace {namespace!r}", (note.id, note.body))
        self._look_at_files(findings, findings.in_names)
        return self._look(known_secrets(findings.secrets)) if findings.secrets and finder is find_nothing else findings

    def _look_at_files(self, findings: Findings, skip: Collection[str]) -> None:
        """Add the pages and logs that contain secrets other than `skip`, such as ids, which are names there too."""
        directory = self.runtime.directory
        for name in files_below(directory):
            is_log = name.startswith(f"{LOGS}/") and ".jsonl" in name
            if is_log or name.endswith(_PAGE):
                data = _read(directory / name)
                texts = [_text(piece) for piece in (data.splitlines() if is_log else [data])]
                label = f"the {'log' if is_log else 'page'} {name}"
                findings.add(label, partial(Redactor.all_texts, texts=texts), skip=skip)

    def _mend(self, findings: Findings, interrupted: PendingRun | None) -> list[Problem]:
        """Erase the secrets found as `forget` does: from logs, store, pages, index and files; then search the files."""
        runtime, patterns = self.runtime, patterns_of(findings.secrets)

        def secret_offsets(data: bytes) -> Iterator[int]:
            """Yield the offsets of log lines with one of these secrets, or any other."""
            yield from patterns.offsets(data)
            yield from (offset for offset, line in lines_of(data) if find_secrets(_text(line)))

        # Logs come first: after a kill, the run that finishes this one no longer knows what to search for.
        blank_logs(runtime, secret_offsets)
        pending = interrupted or PendingRun(str(uuid4()), runtime.clock(), WHOLE_STORE)
        receipt = ForgetReceipt(WHOLE_STORE, pending.at, pending.id, counts={"secrets": len(findings.secrets)})
        with runtime.store.change_memories(WHOLE_STORE) as change:
            change.put(receipt.note())
            change.put(pending.note())
        problems = self._replace(findings)
        waiting = rewrite_files(runtime, thorough=True)
        runtime.forget_caches()
        blank_logs(runtime, secret_offsets)
        rescan = Findings(findings.finder)
        self._look_at_files(rescan, findings.in_names)
        scanned, stored = search(runtime, files_below(runtime.directory), patterns, waiting)
        todo = list[Problem]()
        for name in sorted(scanned.hits):
            if not name.endswith(_PAGE):  # the second look at files reports pages
                is_of_store = Path(name).name.startswith(DATABASE) or name.startswith(f"{INDEX}/")
                remedy = _END_PROGRAMS if is_of_store else _NO_FILE
                todo.append(Problem(PART, f"the file {name} still holds a secret", remedy))
        for name, reason in scanned.unread:
            todo.append(Problem(PART, f"the file {name} may hold a secret: {reason}", "make it readable, or remove it"))
        not_in_names = findings.secrets.keys() - findings.in_names
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
        store_receipt(runtime, receipt, pending, waiting)
        if interrupted is not None:
            problems.append(Problem(PART, "an earlier run was ended before it had replaced all", _CHANGE, mended=True))
        return [*findings.problems(mended=True, unmended={holder.label for holder in rescan.holders}), *problems, *todo]

    def _replace(self, findings: Findings) -> list[Problem]:
        """Rewrite items and receipts, sync the pages, and clean what people wrote on them."""
        store, directory = self.runtime.store, self.runtime.directory
        namespaces = {holder.namespace for holder in findings.holders if isinstance(holder.item, MemoryItem)}
        # Import pending edits first: afterwards both sides would have changed.
        problems = _run(self.sync, sorted(namespaces))
        for holder in findings.holders:
            if holder.item is not None:
                try:
                    self._rewrite(holder.namespace, holder.item, findings.finder)
                except EmbedderMismatchError:  # another process changed the store's embedder meanwhile
                    self._rewrite(holder.namespace, holder.item, findings.finder)
        for namespace in {holder.namespace for holder in findings.holders}:
            for note in store.notes(namespace, RECEIPT):
                clean = Redactor(finder=findings.finder).record(note)
                if clean != note:
                    with store.change_memories(namespace) as change:
                        change.put(clean)
        due = {namespace for namespace in store.namespaces() if store.due(namespace)}
        problems += _run(self.sync, sorted(namespaces | due))
        with FileLock(directory / PAGES_LOCK).hold(_LOCK_WAIT_S):
            names = files_below(directory)
            for name in names:
                if name.endswith(_PAGE + PAGE_DRAFT):  # a process was killed while it wrote a page
                    with suppress(OSError):
                        (directory / name).unlink()
            pages = [directory / name for name in names if name.endswith(_PAGE)]
            return [*problems, *_run(partial(_clean, finder=findings.finder, skip=frozenset(findings.in_names)), pages)]

    def _rewrite(self, namespace: str, item: Item, finder: Finder) -> None:
        texts, cleaner = Texts(replace(self.destination(), namespace=namespace)), Redactor(finder=finder)
        store = self.runtime.store
        if isinstance(item, OwnerItem):
            if (current := item.stored(NamespaceReader(store, namespace))) is not None:
                current.cleaned(cleaner).put_owner(texts)
            return
        with store.change_memories(namespace, made_by=texts.destination.embedder.stamp) as change:
            # Nobody else can write now: exactly the state read here is replaced.
            stored = item.stored(NamespaceReader(store, namespace, change))
            if isinstance(stored, ChangeItem):
                [clean] = stored.prepared([stored.cleaned(cleaner)], texts)
                clean.mend(change, texts, stored)


def _run(action: Callable[[Any], object], items: Iterable[Any]) -> list[Problem]:
    problems = []
    for item in items:
        try:
            action(item)
        except CommonplaceError as error:
            problems.append(Problem.of(PART, error))
    return problems


def _clean(path: Path, finder: Finder, skip: frozenset[str]) -> None:
    """Rewrite a page without secrets, atomically; refuse if it changed since it was read."""
    data = _read(path)
    text = _text(data)
    clean = Redactor(finder=finder, skip=skip).text(text).encode("utf-8", "surrogateescape")
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
