"""Verify a deletion: search every file for what was deleted, and ask index and store for it."""

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
from commonplace.erasure.copies import FORGETTING, ErasureRuntime, Pending, Waiting, blank_where, lines_of
from commonplace.erasure.receipt import ELSEWHERE, LEFT, RECEIPT, UNPROVED, ForgetReceipt
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

_TELLING: Final = 6
"""A word with fewer characters, in the form in which it is indexed, is taken for anybody's."""
_RARE: Final = 8
_BATCH_BYTES: Final = 1 << 22


def clear_logs(place: ErasureRuntime, plan: Plan, *, dry_run: bool = False) -> int:
    """Blank, and count, the log lines that quote what is deleted, or name it by id, hash or a word of its own."""
    quoting = plan.traces.patterns().of_kinds(CONTENT, DIGEST, ID, shortest=MIN_PART_LENGTH)
    # On a server each namespace has its own words, and those of others are none of what goes.
    spaces = sorted(plan.passages) if place.store.is_on_server else place.store.namespaces(with_texts=True)

    def places(data: bytes) -> Iterator[int]:
        yield from quoting.offsets(data)
        asked = dict[int, set[str]]()
        for offset, line in lines_of(data):
            if b'"query"' in line:
                with suppress(ValueError, AttributeError):  # it is not one of our lines
                    asked[offset] = _telling(str(json.loads(line).get("query", "")), plan)
        lost = _lost(place, plan.passages, spaces, set().union(*asked.values()))
        yield from (offset for offset, words in asked.items() if not lost.isdisjoint(words))

    return blank_where(place, places, dry_run=dry_run)


def _telling(question: str, plan: Plan) -> set[str]:
    """Return the uncommon words of a query that occur in what is deleted."""
    return {word for word in analyse(question, natural_language(question)) if len(word) >= _TELLING} & plan.traces.terms


def quoting_queries(place: ErasureRuntime, namespace: str, ledger: LedgerReading, plan: Plan) -> list[str]:
    """Return the issues of golden queries that quote what is deleted, or have a word that nothing else has."""
    quoted = plan.traces.patterns().of_kinds(CONTENT, DIGEST, ID)
    found, asked = list[str](), dict[str, set[str]]()
    for issue in ledger.issues(IssueSelection()):
        query = split_notes(issue.notes)[0].get("query")
        if issue.issue_type == GOLDEN and isinstance(query, str):
            said = (query, *(event.why for event in ledger.events(issue.id)))
            if quoted.found(b"\0\0".join(forms_of(said))):
                found.append(issue.id)
            else:
                asked[issue.id] = _telling(query, plan)
    spaces = (namespace, *(texts_of(namespace, kind) for kind in GRAPH_KINDS))
    lost = _lost(place, plan.passages, spaces, set().union(*asked.values()))
    return [*found, *(id_ for id_, words in asked.items() if not lost.isdisjoint(words))]


def _lost(
    place: ErasureRuntime, going: Mapping[str, Collection[int]], spaces: Iterable[str], words: set[str]
) -> set[str]:
    """Return the words that these namespaces have only in deleted passages, which may still be in the index.

    Args:
        going: these passages, by namespace.
    """
    left, store = set(words), place.store
    if not words:
        return left
    try:
        with parts_of(store, place.index) as generation:
            heads = store.heads()
            # First the namespaces of what is deleted: most of their words occur there again.
            for space in sorted(spaces, key=lambda space: space not in going):
                gone, fresh, base = set(going.get(space, ())), list[int](), generation.head(space).change
                if space in heads and heads[space].change > base:
                    fresh = [each.number for each in store.tail(space, base) if each.number not in gone]
                    gone.update(store.deleted_since(space, base, heads[space].change))
                scope = Scope(space, dead=np.array(sorted(gone), np.int64))
                left -= {word for word in left if len(generation.lexical.search([word], scope, 1).numbers)}
                for entry in store.entries(space, fresh).values() if left and fresh else ():
                    left.difference_update(*fields_of(entry).values())
                if not left:
                    break
    except IndexFaultError:  # it is unknown who has them: rather a question too many goes
        return words
    return left


def search(
    place: ErasureRuntime, names: Iterable[str], patterns: Patterns, waiting: Sequence[Waiting]
) -> tuple[Scan, set[bytes]]:
    """Search files; return what they hold that nothing stored has, and what of it is no trace since something has it.

    What is known to be a copy, or has to wait, is passed over.
    """

    progress = None if place.progress is None else partial(place.progress, "looking for what was forgotten")
    scanned = scan(place.directory, names, patterns, progress=progress)
    copies = {place.directory / each.path for each in known_backups(place.store)}
    waits = tuple(each.files for each in waiting)
    for name in [*scanned.hits, *(name for name, _ in scanned.unread)]:
        if place.directory / name in copies or (waits and name.startswith(waits)):
            scanned.hits.pop(name, None)
            scanned.unread = [each for each in scanned.unread if each[0] != name]
    # The receipt, which is in the database, names the ids.
    for name in _database(place) & scanned.hits.keys():
        scanned.hits[name] = {hit for hit in scanned.hits[name] if patterns.kind(hit) != ID}
    hits = scanned.all_hits()
    stored = still_stored(place.store, patterns.only(hits)) if hits else set()
    scanned.hits = {name: held - stored for name, held in scanned.hits.items() if held - stored}
    return scanned, hits & stored


def _database(place: ErasureRuntime) -> set[str]:
    """Return the names of the files of the database, as `scan` gives them."""
    root = place.directory.absolute()
    paths = [root.joinpath(path) for path in place.store.files()]
    return {path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root)}


def prove(place: ErasureRuntime, receipt: ForgetReceipt, plan: Plan, waiting: Sequence[Waiting]) -> ForgetReceipt:
    """Look through everything once, mend what can be mended, and look there again; return the receipt of that.

    A pattern that is also in what the store still holds is no trace. One that is left in the database file, where
    overwriting on deletion was not enough, is gone when the file was rewritten. What cannot be written stays found.

    Args:
        waiting: what cannot be done yet, so that what its files hold is no surprise.
    """
    patterns, log_lines = plan.traces.patterns(), receipt.counts["log_lines"]
    scanned, stored = search(place, files_below(place.directory), patterns, waiting)
    if place.store.is_on_server:
        scanned.sizes[place.store.place] = sum(map(len, stored_bytes(place.store)))
    left = scanned.hits
    logs, files = {name for name in left if name.startswith(f"{LOGS}/")}, left.keys() & _database(place)
    wanted = patterns.only(scanned.all_hits())
    with suppress(StoreError):
        if logs:
            log_lines += blank_where(place, wanted.offsets)
    with suppress(StoreError):
        if files:
            place.store.compact(thorough=True)
    if logs or files:
        again, _ = search(place, sorted(logs | files), wanted, waiting)
        left = {name: held for name, held in left.items() if name not in logs | files} | again.hits
    found = [(name, what) for name, held in sorted(left.items()) for what in sorted(set(map(patterns.kind, held)))]
    found += scanned.unread
    try:
        log_lines += clear_logs(place, plan)  # somebody may have asked for it since
    except StoreError as error:
        found.append((LOGS, f"questions with a word of it: {error.args[0]}"))
    if not any(each.files.startswith(INDEX) for each in waiting):
        found += [(INDEX, what) for what in _answers(place, receipt.namespace, plan)]
    return replace(
        receipt.counted(log_lines=log_lines),
        checked=tuple(sorted(scanned.sizes.items())),
        excluded_needles=len(stored),
        found=(*receipt.found, *found),
        notices=(*receipt.notices, *((LEFT,) if found else ())),
    )


def _answers(place: ErasureRuntime, namespace: str, plan: Plan) -> Iterator[str]:
    """Yield what the index still finds; a scan of its files cannot show that, since terms are packed."""
    store, terms, gone = place.store, sorted(plan.traces.terms), dict[str, set[int]]()
    for space, numbers in plan.passages.items():
        # Of the graph's texts, those were read that might change: some are still there.
        is_gone = set(numbers) if space == namespace else store.deleted_since(space, 0, store.change(space))
        gone[space] = set(numbers).intersection(is_gone)
    groups = [(space, sorted(numbers)) for space, numbers in sorted(gone.items()) if numbers]
    with parts_of(store, place.index) as generation:
        found = [
            (generation.lexical.search(terms, Scope(space), 1 << 62).numbers, numbers) for space, numbers in groups
        ]
        if any(not set(passages.tolist()).isdisjoint(numbers) for passages, numbers in found):
            yield "a passage of it"
        if store.postings is not None:
            has_vector = any(store.postings.owners(space, numbers) for space, numbers in groups)
        else:
            kept = (generation.dense.owners(np.array(numbers, np.int64)) >= 0 for _, numbers in groups)
            has_vector = any(each.any() for each in kept)
        if has_vector:
            yield "its vector"
        spaces = sorted(gone) if store.is_on_server else store.namespaces(with_texts=True)
        listed = generation.lexical.listed(terms, spaces).items()
    # A word that many passages hold is certainly held by one that remains, or the passages asked for show it.
    if _lost(place, gone, spaces, {term for term, count in listed if 0 < count <= _RARE}):
        yield "a word that nothing else has"


def own_words() -> bytes:
    """Return what a store's files hold of themselves: names of tables, entries, headings, the sentences of receipts."""
    _, copy = conflict_copy(LONG_TERM_PAGE, Entry("", None, "", ""), None, datetime.fromtimestamp(0, UTC))
    receipt = ForgetReceipt("", 0.0, outside=(ELSEWHERE,), notices=(LEFT, UNPROVED))
    notes = [f"{note.kind} {note.body}" for note in (receipt.note(), Pending("", 0.0, "").note())]
    database = ["SQLite format 3", "sqlite_autoindex_", "sqlite_sequence", *initial_sql(), *STAMP_KEYS]
    said = [*database, *notes, LONG_TERM_PAGE, *SECTIONS, copy, json.dumps(asdict(Settings()))]
    chunk, file = ChunkRecord("", 0, 0, ""), FileRecord(0, 0, 0)
    index = encode(Manifest("", Embedding("", "", 0), chunks=(chunk,), files={IN_USE: file}))
    return b"\0\0".join([*(text.encode() for text in said), index])


def still_stored(store: Store, patterns: Patterns) -> set[bytes]:
    """Return the patterns that are in a text, vector or list of token ids that any namespace still holds.

    Or in the files of any store whatever it holds, or in the name of a namespace that a receipt is of. Names also where
    the store describes itself: a tag may be the same word as the id, page or path that a receipt gives.
    """
    found, batch, size = set[bytes](), list[bytes](), 0
    for piece in chain(stored_bytes(store), (None,)):
        # In large blocks, of which no pattern reaches over a border, for it holds no run of NUL. None ends the last.
        if piece is not None:
            batch.append(piece)
            size += len(piece)
        if size >= _BATCH_BYTES or piece is None:
            found |= patterns.found(b"\0\0".join(batch))
            batch, size = [], 0
            if len(found) == len(patterns):
                return found
    runs = (json.loads(note.body) for kind in (RECEIPT, FORGETTING) for note in store.notes(None, kind))
    found |= patterns.found(own_words())
    found |= patterns.found(b"\0\0".join(forms_of(str(run.get("namespace", "")) for run in runs)))
    # What the store has of itself: receipts, what is pending, copies elsewhere, pages.
    notes = (note for kind in (RECEIPT, FORGETTING, BACKUP, WAITING, GROUPS) for note in store.notes(None, kind))
    noted = [f"{note.id} {note.body}".encode("utf-8", "surrogatepass") for note in notes]
    noted += forms_of(page.page for namespace in store.namespaces() for page in store.pages(namespace))
    return found | patterns.of_kinds(LABEL).found(b"\0\0".join(noted))
