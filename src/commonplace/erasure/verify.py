"""Verify a deletion: search every file for the deleted data, and query index and store for it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Final

import numpy as np

from commonplace.dataclasses import asdict, replace
from commonplace.erasure.copies import FORGETTING, ErasureRuntime, Obstacle, PendingRun, blank_logs, lines_of
from commonplace.erasure.receipt import COPIES_ELSEWHERE, RECEIPT, TRACES, UNVERIFIED, ForgetReceipt
from commonplace.erasure.scan import (
    CONTENT,
    DIGEST,
    ID,
    LABEL,
    MIN_PART_LENGTH,
    Patterns,
    Scan,
    files_below,
    forms_of,
    scan,
    stored_bytes,
)
from commonplace.erasure.select import Plan
from commonplace.errors import IndexFaultError, StoreError
from commonplace.exchange.backup import BACKUP, known_backups
from commonplace.formats.beads import split_notes
from commonplace.formats.journal import SECTIONS, Entry
from commonplace.formats.journal_edit import conflict_copy
from commonplace.graph.graphiti.outbox import GROUPS, WAITING
from commonplace.index.contract import Scope
from commonplace.index.files import IN_USE, ChunkRecord, FileRecord, Manifest, encode
from commonplace.ledger.rules import GOLDEN
from commonplace.search.recall import parts_of
from commonplace.settings import Settings
from commonplace.settings.paths import INDEX, LOGS, LONG_TERM_PAGE
from commonplace.store.dialect import initial_sql
from commonplace.store.ledger import LedgerReading
from commonplace.store.schema import texts_of
from commonplace.store.store import Store
from commonplace.store.validate import STAMP_KEYS
from commonplace.text.languages import natural_language
from commonplace.text.tokens import analyse, fields_of
from commonplace.types import GRAPH_KINDS, Embedding
from commonplace.types.ledger import IssueSelection

_MIN_REVEALING: Final = 6
"""Least characters of an indexed term that may reveal a text; shorter terms count as common."""
_MAX_RARE: Final = 8
_BATCH_BYTES: Final = 1 << 22


def clear_logs(runtime: ErasureRuntime, plan: Plan, *, dry_run: bool = False) -> int:
    """Blank and count the log lines that quote deleted data or contain an id, a hash or a unique word of it."""
    quoting = plan.traces.patterns().of_kinds(CONTENT, DIGEST, ID, shortest=MIN_PART_LENGTH)
    # On a server each namespace has its own terms, and deletions do not affect those of others.
    namespaces = sorted(plan.passages) if runtime.store.is_on_server else runtime.store.namespaces(with_texts=True)

    def quoting_offsets(data: bytes) -> Iterator[int]:
        yield from quoting.offsets(data)
        queries = dict[int, set[str]]()
        for offset, line in lines_of(data):
            if b'"query"' in line:
                with suppress(ValueError, AttributeError):  # the line is not one of Commonplace
                    queries[offset] = _revealing_terms(str(json.loads(line).get("query", "")), plan)
        unique = _unique_terms(runtime, plan.passages, namespaces, set().union(*queries.values()))
        yield from (offset for offset, words in queries.items() if not unique.isdisjoint(words))

    return blank_logs(runtime, quoting_offsets, dry_run=dry_run)


def _revealing_terms(query: str, plan: Plan) -> set[str]:
    """Return the uncommon terms of a query that occur in deleted data."""
    return {word for word in analyse(query, natural_language(query)) if len(word) >= _MIN_REVEALING} & plan.traces.terms


def quoting_queries(runtime: ErasureRuntime, namespace: str, ledger: LedgerReading, plan: Plan) -> list[str]:
    """Return the ids of golden-query issues that quote deleted data or contain a term of it that nothing else has."""
    quoted = plan.traces.patterns().of_kinds(CONTENT, DIGEST, ID)
    ids, terms_of = list[str](), dict[str, set[str]]()
    for issue in ledger.issues(IssueSelection()):
        query = split_notes(issue.notes)[0].get("query")
        if issue.issue_type == GOLDEN and isinstance(query, str):
            texts = (query, *(event.why for event in ledger.events(issue.id)))
            if quoted.find(b"\0\0".join(forms_of(texts))):
                ids.append(issue.id)
            else:
                terms_of[issue.id] = _revealing_terms(query, plan)
    namespaces = (namespace, *(texts_of(namespace, kind) for kind in GRAPH_KINDS))
    unique = _unique_terms(runtime, plan.passages, namespaces, set().union(*terms_of.values()))
    return [*ids, *(id_ for id_, words in terms_of.items() if not unique.isdisjoint(words))]


def _unique_terms(
    runtime: ErasureRuntime, deleted: Mapping[str, Collection[int]], namespaces: Iterable[str], words: set[str]
) -> set[str]:
    """Return the terms that only deleted passages of these namespaces contain; the index may still have them.

    Args:
        deleted: the numbers of these passages, by namespace.
    """
    remaining, store = set(words), runtime.store
    if not words:
        return remaining
    try:
        with parts_of(store, runtime.index) as generation:
            heads = store.heads()
            # The namespaces of deleted passages come first: they contain most of the terms again.
            for namespace in sorted(namespaces, key=lambda namespace: namespace not in deleted):
                dead, fresh, base = set(deleted.get(namespace, ())), list[int](), generation.head(namespace).change
                if namespace in heads and heads[namespace].change > base:
                    fresh = [row.number for row in store.tail(namespace, base) if row.number not in dead]
                    dead.update(store.deleted_since(namespace, base, heads[namespace].change))
                scope = Scope(namespace, dead=np.array(sorted(dead), np.int64))
                remaining -= {word for word in remaining if len(generation.lexical.search([word], scope, 1).numbers)}
                for entry in store.entries(namespace, fresh).values() if remaining and fresh else ():
                    remaining.difference_update(*fields_of(entry).values())
                if not remaining:
                    break
    except IndexFaultError:  # it is unknown who has the terms: deleting one query too many is safer
        return words
    return remaining


def search(
    runtime: ErasureRuntime, names: Iterable[str], patterns: Patterns, obstacles: Sequence[Obstacle]
) -> tuple[Scan, set[bytes]]:
    """Search files; return the scan with the traces, and the patterns that are no traces, since the store has them.

    Known backups and files that have to wait are skipped.
    """

    progress = None if runtime.progress is None else partial(runtime.progress, "looking for what was forgotten")
    scanned = scan(runtime.directory, names, patterns, progress=progress)
    copies = {runtime.directory / backup.path for backup in known_backups(runtime.store)}
    prefixes = tuple(item.files for item in obstacles)
    for name in [*scanned.hits, *(name for name, _ in scanned.unread)]:
        if runtime.directory / name in copies or (prefixes and name.startswith(prefixes)):
            scanned.hits.pop(name, None)
            scanned.unread = [unread for unread in scanned.unread if unread[0] != name]
    # The receipt, which is in the database, contains the ids.
    for name in _database(runtime) & scanned.hits.keys():
        scanned.hits[name] = {hit for hit in scanned.hits[name] if patterns.kind(hit) != ID}
    hits = scanned.all_hits()
    stored = still_stored(runtime.store, patterns.only(hits)) if hits else set()
    scanned.hits = {name: file_hits - stored for name, file_hits in scanned.hits.items() if file_hits - stored}
    return scanned, hits & stored


def _database(runtime: ErasureRuntime) -> set[str]:
    """Return the names of the database's files, relative to the store as in `scan`."""
    root = runtime.directory.absolute()
    paths = [root.joinpath(path) for path in runtime.store.files()]
    return {path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root)}


def verify(runtime: ErasureRuntime, receipt: ForgetReceipt, plan: Plan, obstacles: Sequence[Obstacle]) -> ForgetReceipt:
    """Search everything once, clean logs and database where traces were found, search these again; return the receipt.

    A pattern that the store still contains elsewhere is no trace. If overwriting on deletion left one in the database
    file, rewriting the file removes it. Traces in files that cannot be written remain in the receipt.

    Args:
        obstacles: what cannot be done yet; traces in its files are expected and ignored.
    """
    patterns, log_lines = plan.traces.patterns(), receipt.counts["log_lines"]
    scanned, stored = search(runtime, files_below(runtime.directory), patterns, obstacles)
    if runtime.store.is_on_server:
        scanned.sizes[runtime.store.place] = sum(map(len, stored_bytes(runtime.store)))
    hits = scanned.hits
    logs, files = {name for name in hits if name.startswith(f"{LOGS}/")}, hits.keys() & _database(runtime)
    remaining = patterns.only(scanned.all_hits())
    with suppress(StoreError):
        if logs:
            log_lines += blank_logs(runtime, remaining.offsets)
    with suppress(StoreError):
        if files:
            runtime.store.compact(thorough=True)
    if logs or files:
        rescanned, _ = search(runtime, sorted(logs | files), remaining, obstacles)
        hits = {name: hit for name, hit in hits.items() if name not in logs | files} | rescanned.hits
    traces = [(name, kind) for name, hit in sorted(hits.items()) for kind in sorted(set(map(patterns.kind, hit)))]
    traces += scanned.unread
    try:
        log_lines += clear_logs(runtime, plan)  # a search may have logged a query for it since
    except StoreError as error:
        traces.append((LOGS, f"questions with a word of it: {error.args[0]}"))
    if not any(item.files.startswith(INDEX) for item in obstacles):
        traces += [(INDEX, kind) for kind in _index_traces(runtime, receipt.namespace, plan)]
    return replace(
        receipt.counted(log_lines=log_lines),
        checked=tuple(sorted(scanned.sizes.items())),
        excluded_needles=len(stored),
        found=(*receipt.found, *traces),
        notices=(*receipt.notices, *((TRACES,) if traces else ())),
    )


def _index_traces(runtime: ErasureRuntime, namespace: str, plan: Plan) -> Iterator[str]:
    """Yield the kinds of traces that the index still finds; a scan of its files misses them, since terms are packed."""
    store, terms, deleted = runtime.store, sorted(plan.traces.terms), dict[str, set[int]]()
    for name, numbers in plan.passages.items():
        # The plan lists all texts of the graph that might change: some of them still exist.
        deleted_numbers = set(numbers) if name == namespace else store.deleted_since(name, 0, store.change(name))
        deleted[name] = set(numbers).intersection(deleted_numbers)
    groups = [(name, sorted(numbers)) for name, numbers in sorted(deleted.items()) if numbers]
    with parts_of(store, runtime.index) as generation:
        results = [
            (generation.lexical.search(terms, Scope(name), 1 << 62).numbers, numbers) for name, numbers in groups
        ]
        if any(not set(passages.tolist()).isdisjoint(numbers) for passages, numbers in results):
            yield "a passage of it"
        if store.postings is not None:
            has_vector = any(store.postings.owners(name, numbers) for name, numbers in groups)
        else:
            masks = (generation.dense.owners(np.array(numbers, np.int64)) >= 0 for _, numbers in groups)
            has_vector = any(mask.any() for mask in masks)
        if has_vector:
            yield "its vector"
        namespaces = sorted(deleted) if store.is_on_server else store.namespaces(with_texts=True)
        counts = generation.lexical.listed(terms, namespaces).items()
    # A term with many passages certainly also has a remaining one, or the search above has found a deleted one.
    if _unique_terms(runtime, deleted, namespaces, {term for term, count in counts if 0 < count <= _MAX_RARE}):
        yield "a word that nothing else has"


def fixed_content() -> bytes:
    """Return the bytes that any store's files contain: names of tables and entries, headings, sentences of receipts."""
    _, copy = conflict_copy(LONG_TERM_PAGE, Entry("", None, "", ""), None, datetime.fromtimestamp(0, UTC))
    receipt = ForgetReceipt("", 0.0, outside=(COPIES_ELSEWHERE,), notices=(TRACES, UNVERIFIED))
    notes = [f"{note.kind} {note.body}" for note in (receipt.note(), PendingRun("", 0.0, "").note())]
    database = ["SQLite format 3", "sqlite_autoindex_", "sqlite_sequence", *initial_sql(), *STAMP_KEYS]
    texts = [*database, *notes, LONG_TERM_PAGE, *SECTIONS, copy, json.dumps(asdict(Settings()))]
    chunk, file = ChunkRecord("", 0, 0, ""), FileRecord(0, 0, 0)
    index = encode(Manifest("", Embedding("", "", 0), chunks=(chunk,), files={IN_USE: file}))
    return b"\0\0".join([*(text.encode() for text in texts), index])


def still_stored(store: Store, patterns: Patterns) -> set[bytes]:
    """Return the patterns that occur in a text, vector or list of token ids that any namespace still holds.

    This includes patterns in the fixed content of any store's files and in names of namespaces in receipts. Labels are
    also searched in the store's records about itself: a tag may equal an id, page or path in a receipt.
    """
    stored, batch, size = set[bytes](), list[bytes](), 0
    for piece in chain(stored_bytes(store), (None,)):
        # Pieces are searched in large blocks, joined by two NULs, which no pattern contains. None ends the last one.
        if piece is not None:
            batch.append(piece)
            size += len(piece)
        if size >= _BATCH_BYTES or piece is None:
            stored |= patterns.find(b"\0\0".join(batch))
            batch, size = [], 0
            if len(stored) == len(patterns):
                return stored
    runs = (json.loads(note.body) for kind in (RECEIPT, FORGETTING) for note in store.notes(None, kind))
    stored |= patterns.find(fixed_content())
    stored |= patterns.find(b"\0\0".join(forms_of(str(run.get("namespace", "")) for run in runs)))
    # The store's records about itself: receipts, pending runs, copies elsewhere, pages.
    notes = (note for kind in (RECEIPT, FORGETTING, BACKUP, WAITING, GROUPS) for note in store.notes(None, kind))
    own_records = [f"{note.id} {note.body}".encode("utf-8", "surrogatepass") for note in notes]
    own_records += forms_of(page.page for namespace in store.namespaces() for page in store.pages(namespace))
    return stored | patterns.of_kinds(LABEL).find(b"\0\0".join(own_records))
