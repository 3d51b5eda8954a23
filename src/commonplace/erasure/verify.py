"""Verify a deletion: scan every file for the patterns, query index and store, and resume unfinished runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from commonplace.erasure.plan import Plan
from commonplace.erasure.receipt import RECEIPT, STORE_SPACE, UNPROVED, ForgetReceipt, receipt_of
from commonplace.erasure.scan import CONTENT, DIGEST, ID, MIN_PART_LENGTH, Needles, Scan, files_below, scan
from commonplace.erasure.steps import (
    DATABASE,
    DRAFTS,
    FINISHES,
    FORGETTING,
    GENERATIONS,
    INDEX,
    LOGS,
    ErasureRuntime,
    Pending,
    Waiting,
    pending_of,
    take,
)
from commonplace.erasure.still_stored import still_stored
from commonplace.errors import StoreError
from commonplace.index.contract import Scope
from commonplace.index.generations import Generation
from commonplace.locks import FileLock
from commonplace.logs import blank_lines
from commonplace.text.languages import natural_language
from commonplace.text.tokens import analyse, fields_of
from commonplace.types import Filter

_RARE = 8
"""A word that more passages hold than this is certainly held by one that remains, or the passages asked for tell."""
_VECTORS_ASKED = 64
_TELLING = 6
"""A word with fewer characters, in the form in which it is indexed, is taken for anybody's."""
_NEAREST = 10


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


def clear_logs(place: ErasureRuntime, needles: Needles, *, dry_run: bool = False) -> int:
    """Blank the log lines that quote what goes, or name it by id or hash; return how many there are.

    This comes before anything is erased: a run that is killed later cannot know any more what to look for.

    Raises:
        StoreError: a log cannot be read or written.
    """
    quoting = needles.of_kinds(CONTENT, DIGEST, ID, shortest=MIN_PART_LENGTH)
    return _blank(place, quoting, dry_run=dry_run)


def prove(place: ErasureRuntime, namespace: str, plan: Plan, *, is_compact: bool) -> Proof:
    """Look through everything once, mend what can be mended, and look there again.

    A needle that also stands in what the store still holds is no trace. One that is left in the database file, where
    overwriting on deletion was not enough, is gone when the file was written anew. What cannot be written stays found.

    Args:
        is_compact: the database's log was emptied; where it could not be, what it holds is no surprise.
    """
    database = _database_files(place)
    scanned = _scan(place, files_below(place.directory), plan.needles, database)
    hits = scanned.all_hits()
    remaining = still_stored(place.store, plan.needles.only(hits)) if hits else set()
    left, blanked = _without(scanned, remaining), 0
    wanted = plan.needles.only(set().union(*left.values()))
    mendable = {name for name in left if name.startswith(f"{LOGS}/") or (is_compact and name in database)}
    if any(name.startswith(f"{LOGS}/") for name in mendable):
        with suppress(StoreError):
            blanked = _blank(place, wanted)
    if any(name in database for name in mendable):
        with suppress(StoreError):
            place.store.compact(thorough=True)
    if mendable:
        rescanned = _scan(place, sorted(mendable), wanted, database)
        left = {name: each for name, each in left.items() if name not in mendable} | _without(rescanned, remaining)
    found = [
        (name, what) for name, hits in sorted(left.items()) for what in sorted({plan.needles.kind(hit) for hit in hits})
    ]
    found += scanned.unread
    try:
        blanked += _blank_questions(place, plan)
    except StoreError as error:
        found.append((LOGS, f"questions with a word of it: {error.args[0]}"))
    with place.index.reading() as generation:
        found += [("index", what) for what in _asked(place, generation, namespace, plan)]
    return Proof(tuple(sorted(scanned.sizes.items())), tuple(found), len(hits & remaining), blanked)


def _scan(place: ErasureRuntime, names: Sequence[str], needles: Needles, database: set[str]) -> Scan:
    def tell(done: int, total: int) -> None:
        if place.progress is not None:
            place.progress("looking for what was forgotten", done, total)

    scanned = scan(place.directory, names, needles, progress=tell)
    for name in database & scanned.hits.keys():
        # The receipt, which stands in the database, names the ids.
        scanned.hits[name] = {hit for hit in scanned.hits[name] if needles.kind(hit) != ID}
    scanned.hits = {name: hits for name, hits in scanned.hits.items() if hits}
    return scanned


def _without(scanned: Scan, remaining: set[bytes]) -> dict[str, set[bytes]]:
    return {name: left for name, hits in scanned.hits.items() if (left := hits - remaining)}


def _database_files(place: ErasureRuntime) -> set[str]:
    root = place.directory.absolute()
    paths = [root.joinpath(path) for path in place.store.files()]
    return {path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root)}


def _blank(place: ErasureRuntime, needles: Needles, *, dry_run: bool = False) -> int:
    def places(data: bytes) -> list[int]:
        return [offset for offset, _ in needles.places(data)]

    return _blank_lines(place, places, dry_run=dry_run) if len(needles) else 0


def _blank_lines(place: ErasureRuntime, places: Callable[[bytes], list[int]], *, dry_run: bool = False) -> int:
    try:
        return blank_lines(place.directory / LOGS, places, dry_run=dry_run)
    except OSError as error:
        raise StoreError(
            f"the log {error.filename} cannot be written: {error.strerror}", remedy="make it readable and writable"
        ) from error


def _blank_questions(place: ErasureRuntime, plan: Plan) -> int:
    """Blank the logged questions with a word that only what was forgotten had: a name gives it away as well."""
    lost = _lost(place, plan.terms)

    def places(data: bytes) -> list[int]:
        return [offset for offset, words in _questions(data) if not lost.isdisjoint(words)]

    return _blank_lines(place, places) if lost else 0


def clear_unknown_questions(place: ErasureRuntime) -> int:
    """Blank the logged questions with a word that nothing has, whoever had it; return how many there were.

    So ends a run that was cut short: what it forgot is not known any more, and the index holds none of its words.
    """

    def places(data: bytes) -> list[int]:
        asked = list(_questions(data))
        lost = _lost(place, {word for _, words in asked for word in words})
        return [offset for offset, words in asked if not lost.isdisjoint(words)]

    return _blank_lines(place, places)


def _lost(place: ErasureRuntime, terms: Collection[str]) -> set[str]:
    """Return the telling ones of these terms that no passage of the index has."""
    telling = [term for term in terms if len(term) >= _TELLING]
    with place.index.reading() as generation:
        frequencies = generation.lexical.statistics(telling).frequencies
    return {term for term in telling if not any(held.get(term) for held in frequencies.values())}


def _questions(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield (offset, words) of the lines of a log that quote a question."""
    offset = 0
    for line in data.splitlines(keepends=True):
        if b'"query"' in line:
            question = _question(line)
            yield offset, analyse(question, natural_language(question))
        offset += len(line)


def _question(line: bytes) -> str:
    try:
        return str(json.loads(line).get("query", ""))
    except (ValueError, AttributeError):
        return ""  # not one of our lines


def _asked(place: ErasureRuntime, generation: Generation, namespace: str, plan: Plan) -> Iterator[str]:
    """Yield what the index still answers of what went, though no file betrays it: terms are packed in its files."""
    deleted = set(place.store.deleted_since(plan.change, place.store.change()))
    of_texts: defaultdict[str, set[int]] = defaultdict(set)
    for space, numbers in plan.gone.passages:
        of_texts[space] |= deleted.intersection(numbers)
    groups = [(namespace, set(plan.passages), plan.vectors)]
    groups += [(space, numbers, plan.gone.vectors) for space, numbers in sorted(of_texts.items()) if numbers]
    scopes = [(Scope(space, Filter()), numbers, vectors) for space, numbers, vectors in groups]
    if any(generation.lexical.score(plan.terms, sorted(numbers), scope) for scope, numbers, _ in scopes):
        yield "a passage of it"
    if any(_answers(generation, *each) for each in scopes):
        yield "its vector"
    if _lingers(place, generation, plan, set().union(*(numbers for _, numbers, _ in scopes))):
        yield "a word that nothing else has"


def _answers(generation: Generation, scope: Scope, gone: Set[int], vectors: Sequence[bytes]) -> bool:
    """Tell whether one of the passages that went is among those that are nearest to a vector of them."""
    for vector in vectors[:_VECTORS_ASKED]:
        values = np.frombuffer(vector, np.int8).astype(np.float32)
        norm = float(np.linalg.norm(values))
        if norm:
            nearest = generation.dense.search((values / np.float32(norm)).astype(np.float32), scope, _NEAREST)
            if not gone.isdisjoint(nearest.numbers.tolist()):
                return True
    return False


def _lingers(place: ErasureRuntime, generation: Generation, plan: Plan, gone: set[int]) -> bool:
    """Tell whether the dictionary has a word of which no passage is left."""
    frequencies = generation.lexical.statistics(plan.terms).frequencies
    totals = {term: sum(held.get(term, 0) for held in frequencies.values()) for term in plan.terms}
    namespaces = place.store.namespaces(with_texts=True)
    return any(not _is_held(place, generation, namespaces, term, gone) for term, n in totals.items() if 0 < n <= _RARE)


def _is_held(
    place: ErasureRuntime, generation: Generation, namespaces: Sequence[str], term: str, gone: set[int]
) -> bool:
    for namespace in namespaces:
        for number in generation.lexical.search([term], Scope(namespace, Filter()), _RARE).numbers.tolist():
            if number in gone:
                continue
            entry = place.store.entries(namespace, [number]).get(number)
            # What was deleted by others since is not what was forgotten, and leaves the index with the next update.
            if entry is None or any(term in found for found in fields_of(entry).values()):
                return True
    return False


LOCK = "forgetting.lock"
"""Held, in the store's directory, by the one process that forgets."""
_SHARED = frozenset({INDEX, GENERATIONS, DATABASE, DRAFTS})
"""The steps that are the same whatever was forgotten."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A forgetting that was found unfinished. `mended` tells whether it is finished now."""

    problem: str
    remedy: str
    mended: bool = False


def finish_waiting(place: ErasureRuntime, *, mend: bool = True) -> list[Unfinished]:
    """Finish what earlier runs could not; an empty list where nothing is unfinished.

    Args:
        mend: else only tell what there is.

    Raises:
        StoreError: the store cannot be written.
    """
    if not place.store.notes(None, FORGETTING):
        return []
    if not mend or place.store.is_read_only:
        pending = pending_of(place.store.notes(None, FORGETTING))
        return [
            Unfinished(_problem(each), "run `commonplace doctor` where the store can be written") for each in pending
        ]
    lock = FileLock(place.directory / LOCK)
    if not lock.acquire(0.0):
        return [Unfinished("another process is forgetting at this moment", "wait for it, then look again")]
    try:
        return finish_held(place)
    finally:
        lock.release()


def finish_held(place: ErasureRuntime) -> list[Unfinished]:
    """Do the same for a caller that holds the lock."""
    found: list[Unfinished] = []
    shared: dict[str, Waiting] = {}
    for each in pending_of(place.store.notes(None, FORGETTING)):
        if shared.keys() >= set(each.steps):
            # What had to wait for one run has to for the others: nobody is kept once more for each of them.
            found.append(_unfinished(each, [shared[step] for step in each.steps]))
        else:
            unfinished, waiting = _finish(place, each)
            found.append(unfinished)
            shared |= {left.step: left for left in waiting if left.step in _SHARED}
    if found:
        place.forget_caches()
    return found


def settle(
    place: ErasureRuntime, receipt: ForgetReceipt, pending: Pending, waiting: Sequence[Waiting]
) -> ForgetReceipt:
    """Write what became of a run: its receipt, and what is pending where something waits; return the receipt.

    Where it cannot be written, all steps stay pending, and the receipt says so.
    """
    steps = tuple(dict.fromkeys(each.step for each in waiting))
    receipt = replace(
        receipt,
        waiting=tuple(dict.fromkeys(map(str, waiting))),
        verified=pending.is_proved and pending.is_clean and not steps,
    )
    try:
        with place.store.change_memories(_space(pending)) as change:
            change.put_note(receipt.note())
            if steps:
                change.put_note(replace(pending, steps=steps).note())
            else:
                change.drop_note(FORGETTING, pending.id)
    except StoreError as error:
        unwritten = Waiting(DATABASE, "store.db", f"the receipt was not written: {error.args[0]}")
        return replace(receipt, waiting=(*receipt.waiting, str(unwritten)), verified=False)
    return receipt


def _space(pending: Pending) -> str:
    """Return the namespace in which the notes of a run stand."""
    return STORE_SPACE if pending.is_namespace else pending.namespace


def _finish(place: ErasureRuntime, pending: Pending) -> tuple[Unfinished, Sequence[Waiting]]:
    notes = [note for note in place.store.notes(_space(pending), RECEIPT) if note.id == pending.id]
    is_marked = any(note.id == pending.id for note in place.store.notes(pending.namespace, FORGETTING))
    if not notes or (pending.is_namespace and is_marked):
        return _called_off(place, pending), ()
    receipt = receipt_of(notes[0])
    if not pending.is_proved:
        receipt = replace(receipt, notices=tuple(dict.fromkeys((*receipt.notices, UNPROVED))))
    counts = dict(receipt.counts)
    waiting = take(place, pending, counts, thorough=True, is_patient=True)
    if not pending.is_proved and not any(each.step == INDEX for each in waiting):
        counts["log_lines"] = counts.get("log_lines", 0) + clear_unknown_questions(place)
    receipt = settle(place, replace(receipt, counts=counts), pending, waiting)
    if waiting:
        return _unfinished(pending, waiting), waiting
    if receipt.waiting:
        why = receipt.waiting[0].removesuffix(FINISHES)
        return Unfinished(f"{_problem(pending)}: {why}", "see that there is room on the disk"), ()
    return Unfinished(_problem(pending), "finish it", mended=True), ()


def _unfinished(pending: Pending, waiting: Sequence[Waiting]) -> Unfinished:
    return Unfinished(f"{_problem(pending)}: {str(waiting[0]).removesuffix(FINISHES)}", waiting[0].remedy)


def _called_off(place: ErasureRuntime, pending: Pending) -> Unfinished:
    """Drop the notes of a run that was ended before it erased anything."""
    for space in dict.fromkeys((pending.namespace, _space(pending))):
        if space in place.store.namespaces():
            with place.store.change_memories(space) as change:
                change.drop_note(FORGETTING, pending.id)
                change.drop_note(RECEIPT, pending.id)
    return Unfinished(
        f"to forget namespace {pending.namespace!r} was begun, and nothing was erased", "forget it again", mended=True
    )


def _problem(pending: Pending) -> str:
    what = f"namespace {pending.namespace!r}" if pending.is_namespace else "what was forgotten"
    return f"copies of {what} are not all gone yet (receipt {pending.id})"
