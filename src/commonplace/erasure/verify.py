"""Verify a deletion: search every file for what was deleted, and ask index and store for it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Final

import numpy as np

from commonplace.dataclasses import asdict, dataclass
from commonplace.erasure.plan import Plan
from commonplace.erasure.receipt import BACKUP, ELSEWHERE, LEFT, RECEIPT, UNPROVED, ForgetReceipt
from commonplace.erasure.resume import (
    FORGETTING,
    LOGS,
    STEPS,
    TELLING,
    ErasureRuntime,
    Pending,
    blank_questions,
    blank_where,
)
from commonplace.erasure.scan import CONTENT, DIGEST, ID, LABEL, Patterns, Scan, files_below, forms, scan, texts_in
from commonplace.errors import IndexFaultError, StoreError
from commonplace.formats.beads import split_notes
from commonplace.formats.journal import SECTIONS, Entry
from commonplace.formats.journal_edit import conflict_copy
from commonplace.graph.graphiti.outbox import GROUPS, WAITING
from commonplace.index.contract import Scope
from commonplace.index.files import IN_USE, ChunkRecord, FileRecord, Manifest, encode
from commonplace.ledger.rules import GOLDEN
from commonplace.search.recall import Parts, parts_of
from commonplace.settings import Settings
from commonplace.settings.paths import LONG_TERM_PAGE
from commonplace.store.database import begin_store
from commonplace.store.graph_rules import texts_of
from commonplace.store.ledger import LedgerReading
from commonplace.store.rows import Values
from commonplace.store.schema import TABLES
from commonplace.store.store import Store
from commonplace.store.writes import STAMP_KEYS
from commonplace.text.languages import natural_language
from commonplace.text.tokens import analyse, fields_of
from commonplace.types import GRAPH_KINDS, Embedding
from commonplace.types.ledger import IssueSelection

_RARE: Final = 8
"""A word that more passages hold than this is certainly held by one that remains, or the passages asked for tell."""
_BATCH_BYTES: Final = 1 << 22
_OF_ITSELF: Final = ("notes", "mirror_blocks", "mirror_pages")
"""The tables of what the store knows of itself: a word of theirs may be what was forgotten."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What the search for traces came to.

    Attributes:
        found: (file, what).
        log_lines: how many lines of logs were blanked on the way.
    """

    checked: tuple[tuple[str, int], ...]
    found: tuple[tuple[str, str], ...]
    excluded: int
    log_lines: int


def prove(place: ErasureRuntime, namespace: str, plan: Plan, *, is_compact: bool) -> Proof:
    """Look through everything once, mend what can be mended, and look there again.

    A pattern that also stands in what the store still holds is no trace. One that is left in the database file, where
    overwriting on deletion was not enough, is gone when the file was written anew. What cannot be written stays found.

    Args:
        is_compact: the database's log was emptied; where it could not be, what it holds is no surprise.
    """
    root, patterns, terms = place.directory.absolute(), plan.traces.patterns(), sorted(plan.traces.terms)
    paths = [root.joinpath(path) for path in place.store.files()]
    database = {path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root)}

    def tell(done: int, total: int) -> None:
        if place.progress is not None:
            place.progress("looking for what was forgotten", done, total)

    def look(names: Sequence[str], wanted: Patterns) -> Scan:
        scanned = scan(place.directory, names, wanted, progress=tell)
        for name in database & scanned.hits.keys():
            # The receipt, which stands in the database, names the ids.
            scanned.hits[name] = {hit for hit in scanned.hits[name] if patterns.kind(hit) != ID}
        return scanned

    scanned, blanked = look(files_below(place.directory), patterns), 0
    if place.store.is_on_server:
        scanned.sizes[place.store.place] = sum(map(len, _held(place.store)))
    hits = scanned.all_hits()
    remaining = still_stored(place.store, patterns.only(hits)) if hits else set()
    left = {name: each - remaining for name, each in scanned.hits.items()}
    wanted = patterns.only(set().union(*left.values()))
    logs = {name for name, each in left.items() if each and name.startswith(f"{LOGS}/")}
    files = {name for name, each in left.items() if each and is_compact and name in database}
    with suppress(StoreError):
        if logs:
            blanked = blank_where(place, wanted.offsets)
    with suppress(StoreError):
        if files:
            place.store.compact(thorough=True)
    if logs or files:
        again = look(sorted(logs | files), wanted).hits
        left |= {name: again.get(name, set()) - remaining for name in logs | files}
    found = [(name, what) for name, each in sorted(left.items()) for what in sorted(set(map(patterns.kind, each)))]
    found += scanned.unread
    try:
        blanked += blank_questions(place, terms)
    except StoreError as error:
        found.append((LOGS, f"questions with a word of it: {error.args[0]}"))
    with parts_of(place.store, place.index) as generation:
        found += [("index", what) for what in _asked(place, generation, namespace, plan)]
    return Proof(tuple(sorted(scanned.sizes.items())), tuple(found), len(hits & remaining), blanked)


def _asked(place: ErasureRuntime, generation: Parts, namespace: str, plan: Plan) -> Iterator[str]:
    """Yield what the index still answers of what went, though no file betrays it: terms are packed in its files."""
    store, terms, of_texts = place.store, sorted(plan.traces.terms), {namespace: set(plan.passages)}
    for space, numbers in plan.texts.items():
        of_texts[space] = set(store.deleted_since(space, 0, store.change(space))).intersection(numbers)
    groups = [(space, sorted(numbers)) for space, numbers in sorted(of_texts.items()) if numbers]
    found = ((gone, generation.lexical.search(terms, Scope(space), 1 << 62).numbers) for space, gone in groups)
    if any(not set(numbers.tolist()).isdisjoint(gone) for gone, numbers in found):
        yield "a passage of it"
    if any(_is_listed(place, generation, *each) for each in groups):
        yield "its vector"
    # On a server each namespace has its own words, and those of others are none of what went.
    namespaces = sorted(of_texts) if store.is_on_server else store.namespaces(with_texts=True)
    rare = [term for term, n in generation.lexical.listed(terms, namespaces).items() if 0 < n <= _RARE]
    if any(not _is_held(place, generation, namespaces, term, of_texts) for term in rare):
        yield "a word that nothing else has"


def _is_listed(place: ErasureRuntime, generation: Parts, space: str, gone: Sequence[int]) -> bool:
    """Return whether the signs of a vector are left of one of the passages that went."""
    if place.store.postings is not None:
        return bool(place.store.postings.owners(space, gone))
    return bool((generation.dense.owners(np.array(gone, np.int64)) >= 0).any())


def _is_held(
    place: ErasureRuntime, generation: Parts, namespaces: Sequence[str], term: str, gone: Mapping[str, set[int]]
) -> bool:
    """Return whether a passage that remains has a word of the dictionary."""
    for namespace in namespaces:
        numbers = generation.lexical.search([term], Scope(namespace), _RARE).numbers.tolist()
        left = [number for number in numbers if number not in gone.get(namespace, ())]
        entries = place.store.entries(namespace, left)
        # What was deleted by others since is not what was forgotten, and leaves the index with the next update.
        if len(entries) < len(left) or any(term in words for e in entries.values() for words in fields_of(e).values()):
            return True
    return False


def quoting_queries(place: ErasureRuntime, namespace: str, ledger: LedgerReading, plan: Plan) -> tuple[str, ...]:
    """Return the issues of golden queries that quote what is to go, or have a telling word that nothing else has."""
    quoted = plan.traces.patterns().of_kinds(CONTENT, DIGEST, ID)
    known = {term for term in plan.traces.terms if len(term) >= TELLING}
    found, asked = [], dict[str, set[str]]()
    for issue in ledger.issues(IssueSelection()):
        query = split_notes(issue.notes)[0].get("query")
        if issue.issue_type == GOLDEN and isinstance(query, str):
            said = (query, *(event.why for event in ledger.events(issue.id)))
            if quoted.found(b"\0\0".join(_forms(said))):
                found.append(issue.id)
            else:
                asked[issue.id] = known.intersection(analyse(query, natural_language(query)))
    lost = words = set().union(*asked.values())
    with suppress(IndexFaultError):  # nobody can tell then who has them: a query too many goes
        lost = _words_that_go(place, namespace, plan, words) if words else words
    return (*found, *(id_ for id_, words in asked.items() if not lost.isdisjoint(words)))


def _words_that_go(place: ErasureRuntime, namespace: str, plan: Plan, words: set[str]) -> set[str]:
    """Return those of these words that the namespace has only in what is to go, and may still be in the index."""
    left, going, store = set(words), {namespace: plan.passages, **plan.texts}, place.store
    with parts_of(store, place.index) as generation:
        for space in (namespace, *(texts_of(namespace, kind) for kind in GRAPH_KINDS)):
            base, upto, gone = generation.head(space).change, store.change(space), set(going.get(space, ()))
            dead = np.array(sorted({*gone, *store.deleted_since(space, base, upto)}), np.int64)
            scope = Scope(space, dead=dead)
            left -= {word for word in left if len(generation.lexical.search([word], scope, 1).numbers)}
            fresh = [each.number for each in store.tail(space, base) if each.number not in gone]
            for entry in store.entries(space, fresh).values() if left else ():
                left.difference_update(*fields_of(entry).values())
    return left


def own_words() -> bytes:
    """Return what a store's files hold of themselves: names of tables, entries, headings, the sentences of receipts."""
    _, copy = conflict_copy(LONG_TERM_PAGE, Entry("", None, "", ""), None, datetime.fromtimestamp(0, UTC))
    receipt = ForgetReceipt("", 0.0, outside=(ELSEWHERE,), notices=(LEFT, UNPROVED))
    notes = [f"{note.kind} {note.body}" for note in (receipt.note(), Pending("", 0.0, "", STEPS).note())]
    said = [LONG_TERM_PAGE, *SECTIONS, copy, json.dumps(asdict(Settings())), *STAMP_KEYS, *notes]
    said.append("SQLite format 3")  # how the file of a database begins
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        begin_store(db, "")
        said += [f"{name} {sql}" for name, sql in db.execute("SELECT name, sql FROM sqlite_schema")]
    chunk, file = ChunkRecord("", 0, 0, ""), FileRecord(0, 0, 0)
    index = encode(Manifest("", Embedding("", "", 0), chunks=(chunk,), files={IN_USE: file}))
    return b"\0\0".join([*(text.encode() for text in said), index])


def still_stored(store: Store, patterns: Patterns) -> set[bytes]:
    """Return the patterns that stand in a text, vector or list of token ids that any namespace still holds.

    Or in the files of any store whatever it holds, or in the name of a namespace that a receipt is of. Names also where
    the store tells of itself: a tag may be the same word as the id, page or path that a receipt gives.
    """
    found: set[bytes] = set()
    for batch in _batches(_held(store)):
        found |= patterns.found(batch)
        if len(found) == len(patterns):
            break
    if len(found) < len(patterns):
        found |= patterns.found(own_words())
        runs = (json.loads(note.body) for kind in (RECEIPT, FORGETTING) for note in store.notes(None, kind))
        found |= patterns.found(b"\0\0".join(_forms(str(run.get("namespace", "")) for run in runs)))
        found |= patterns.of_kinds(LABEL).found(b"\0\0".join(_noted(store)))
    return found


def _held(store: Store) -> Iterator[bytes]:
    """Yield everything that is stored but what the store notes of itself."""
    for table in TABLES:
        columns = [column for column in table.columns if column.is_erased]
        if columns and table.name not in _OF_ITSELF:
            before: Values = {}
            for row in store.table_rows(table):
                for column in columns:
                    value = row[column.name]
                    if value and value != before.get(column.name):  # of a kind or a tier, most rows have the same
                        yield from [value] if column.role == "bytes" else _forms(texts_in(column, value))
                before = row


def _noted(store: Store) -> Iterator[bytes]:
    """Yield what the store has of itself: receipts, what is pending, copies elsewhere, pages."""
    for kind in (RECEIPT, FORGETTING, BACKUP, WAITING, GROUPS):
        yield from (f"{note.id} {note.body}".encode("utf-8", "surrogatepass") for note in store.notes(None, kind))
    for namespace in store.namespaces():
        yield from _forms(page.page for page in store.pages(namespace))


def _forms(texts: Iterable[str]) -> Iterator[bytes]:
    return (form for text in texts for form in forms(text))


def _batches(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what is to be looked through in large blocks; no pattern reaches over a border, for it holds no NUL run."""
    batch, size = [], 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= _BATCH_BYTES:
            yield b"\0\0".join(batch)
            batch, size = [], 0
    yield b"\0\0".join(batch)
