"""Lexical search: Tantivy nominates passages by their analysed terms, and `commonplace.ranking.bm25` scores them.

Tantivy keeps a field's length in one byte, and its mean lengths are those of all namespaces, so it only says which
passages are worth scoring. A term is listed under its namespace's code: what other namespaces hold costs nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import DocAddress, Occur, Query

from commonplace.errors import IndexFaultError
from commonplace.index.contract import Scope, Scored
from commonplace.index.dense import best
from commonplace.index.files import Manifest, unreadable
from commonplace.ranking.arrays import within
from commonplace.ranking.bm25 import NAMES, Statistics, TermRows, inverse_document_frequency
from commonplace.text.languages import ENGLISH, NATURAL_LANGUAGES
from commonplace.text.tokens import FIELDS

LEXICAL = "lexical"
"""Tantivy's directory in a generation."""
MAX_TERMS = 64
"""Of a longer query only its rarest terms are searched, so that a pasted page costs no more than a paragraph."""
NO_PHASE = "*"
"""Stands in the phase field of a passage without one, which passes every phase filter."""

_TOKENIZER = "analysed"
_SYSTEM_ERROR = re.compile(r"\bOs \{ code: (\d+)")
"""How Tantivy's messages tell the system's error number; they carry it nowhere else."""
_SPARE_HITS = 64
"""Nominated beyond the limit: what Tantivy's lengths put a little too low is among them, and ties at its edge."""
_MAX_OWNERS = 2_000
"""A set of more owners costs Tantivy milliseconds; hits are then fetched in growing numbers and looked up in it."""
_GROWTH = 8
_MAX_HELD = 10_000
"""So many terms' frequencies are kept, some 2 MB; then it begins anew."""
_FEW_NUMBERS = 256
"""So many numbers Tantivy finds sooner one by one: a set costs it .4 ms to begin with, each number less than 2 µs."""
_SCORE_DIGITS = 5
"""Tantivy's sums of the same scores in another order differ beyond these decimals: equal texts must tie."""


def schema() -> tantivy.Schema:
    """Return the schema of the lexical part; changing it means a new `manifest.SCHEMA`."""
    builder = tantivy.SchemaBuilder()
    for field in FIELDS:
        builder.add_text_field(field, tokenizer_name=_TOKENIZER, index_option="freq")
    for field in ("kind", "type", "phase", "tag", "language"):
        builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
    # Signed, because deleting by a term of an unsigned field silently deletes nothing.
    for field in ("number", "owner", "namespace"):
        builder.add_integer_field(field, indexed=True, fast=field != "namespace")
    return builder.build()


def open_tantivy(directory: Path) -> tantivy.Index:
    """Open or create the Tantivy index of a generation, with its tokenizer.

    Raises:
        IndexFaultError: Tantivy cannot read it.
    """
    with faults():
        index = tantivy.Index(schema(), str(directory))
        index.register_tokenizer(_TOKENIZER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        index.config_reader("manual")
    return index


@contextmanager
def _lockable(directory: Path) -> Iterator[Path]:
    """Give a directory with the same files in which Tantivy can make its lock file, which it does even to read.

    Where the index itself cannot be written, that is a temporary one with links; what is open outlives it.
    """
    if os.access(directory, os.W_OK):
        yield directory
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="commonplace-") as place:
        for file in directory.iterdir():
            if file.suffix != ".lock":  # one of whoever may write there
                (Path(place) / file.name).symlink_to(file.absolute())
        yield Path(place)


@contextmanager
def faults() -> Iterator[None]:
    """Turn what Tantivy raises into `IndexFaultError`, or into `StoreError` where the system refused to read or write.

    Its panics do not even derive from Exception.
    """
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        code = _SYSTEM_ERROR.search(str(error))
        if code:
            raise unreadable(int(code[1]), os.strerror(int(code[1]))) from error
        raise IndexFaultError(f"was damaged: {error}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise IndexFaultError(f"was damaged: {error}") from error


def language_term(code: int, language: str) -> str:
    """Return what the language field of a passage holds: a language counts for its namespace alone."""
    return f"{code} {language}"


def own_terms(code: int, terms: Sequence[str]) -> str:
    """Return what a field of a passage holds: its terms, under the code of its namespace."""
    return f"{code}:" + f" {code}:".join(terms)


def raw_term(value: str) -> str:
    """Return the value as Tantivy can hold it: lone surrogates written out, at most 1,000 characters."""
    return value.encode("utf-8", "backslashreplace").decode()[:1_000]


class TantivyLexicalIndex:
    """The lexical part of one generation: a `LexicalIndex`. Safe for threads."""

    def __init__(
        self, directory: Path, manifest: Manifest, rows: Callable[[NDArray[np.int64], int | None], Sequence[bytes]]
    ) -> None:
        """Open the files of a generation.

        Args:
            rows: returns the term counts of passages, b"" for one that is gone, or of another namespace than the code.

        Raises:
            IndexFaultError: Tantivy cannot read them.
        """
        self._rows = rows
        self._codes = {name: code for code, name in enumerate(manifest.namespaces)}
        self._totals = np.array(manifest.statistics, np.int64).reshape(-1, 1 + len(NAMES))
        self._languages: dict[str, frozenset[str]] = {}
        self._held: dict[tuple[int, str], tuple[int, ...]] = {}
        self._last_dead: tuple[NDArray[np.int64], int, TermRows] | None = None
        with _lockable(directory) as place:
            index = open_tantivy(place)
            self._schema = index.schema
            with faults():
                index.reload()
                self._searcher = index.searcher()
                segments = json.loads((place / "meta.json").read_bytes())["segments"]
        self._size = sum(segment["max_doc"] for segment in segments)
        self._has_deleted = any(segment["deletes"] for segment in segments)

    def search(self, terms: Sequence[str], scope: Scope, limit: int, statistics: Statistics | None = None) -> Scored:
        """Return the best passages that hold any of the terms; see `LexicalIndex.search`."""
        return self._best(terms, scope, limit, (), statistics)

    def score(self, terms: Sequence[str], numbers: Collection[int], scope: Scope) -> dict[int, float]:
        """Return the scores of the given passages that match; see `LexicalIndex.score`."""
        among = (self._any_of("number", [int(number) for number in numbers]),)
        found = self._best(terms, scope, len(numbers), among, None)
        return dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))

    def rows(self, numbers: NDArray[np.int64]) -> Sequence[bytes]:
        """Return the term counts of passages; see `LexicalIndex.rows`."""
        return self._rows(numbers, None)

    def statistics(self, terms: Sequence[str], scope: Scope) -> Statistics:
        """Return the statistics of the scope's namespace; see `LexicalIndex.statistics`."""
        code, distinct = self._codes.get(scope.namespace, -1), dict.fromkeys(terms)
        totals = self._totals[code] if code >= 0 else np.zeros(1 + len(NAMES), np.int64)
        with faults():
            held = {term: self._frequencies(code, term) for term in distinct}
        found = Statistics(int(totals[0]), totals[1:], held)
        if scope.dead is None or not len(scope.dead):
            return found
        return found - self._dead_rows(scope.dead, code).find(distinct).statistics

    def listed(self, terms: Sequence[str], namespaces: Iterable[str]) -> dict[str, int]:  # noqa: ARG002 - one for all
        """Return how many entries the dictionary has of each term; see `LexicalIndex.listed`."""
        with faults():
            return {
                term: sum(
                    self._searcher.doc_freq(field, own_terms(code, [term]))
                    for code in self._codes.values()
                    for field in FIELDS
                )
                for term in terms
            }

    def similar(self, term: str, distance: int, scope: Scope, limit: int) -> Sequence[int]:
        """Return passages with a term that is spelled almost like the given one; see `LexicalIndex.similar`."""
        code = self._codes.get(scope.namespace)
        if code is None or limit <= 0:
            return ()
        own = own_terms(code, [term])
        with faults():
            each = [Query.fuzzy_term_query(self._schema, field, own, distance=distance) for field in FIELDS]
            of_namespace = Query.term_query(self._schema, "namespace", code, index_option="basic")
            query = self._within(_any(each), scope, (of_namespace,))
            found: list[int] = self._run(query, scope, limit).numbers[:limit].tolist()
        return found

    def languages(self, namespace: str) -> frozenset[str]:
        """Return the languages but English of a namespace's passages; see `LexicalIndex.languages`."""
        known = self._languages.get(namespace)
        if known is None:
            code = self._codes.get(namespace, -1)
            with faults():
                known = self._languages[namespace] = frozenset(
                    language
                    for language in NATURAL_LANGUAGES
                    if language != ENGLISH and self._searcher.doc_freq("language", language_term(code, language))
                )
        return known

    def _dead_rows(self, dead: NDArray[np.int64], code: int) -> TermRows:
        """Return the term counts of a namespace's passages among those that the store deleted; the last are kept."""
        last = self._last_dead
        if last is None or last[0] is not dead or last[1] != code:
            last = self._last_dead = dead, code, TermRows([row for row in self._rows(dead, code) if row])
        return last[2]

    def _frequencies(self, code: int, term: str) -> tuple[int, ...]:
        """Return how many passages of a namespace hold a term, by field; these are kept."""
        known = self._held.get((code, term))
        if known is None:
            own = own_terms(code, [term])
            known = tuple(self._frequency(field, own) for field in NAMES)
            if len(self._held) >= _MAX_HELD:
                self._held.clear()
            self._held[code, term] = known
        return known

    def _frequency(self, field: str, term: str) -> int:
        """Return how many passages hold a term in a field; Tantivy's dictionary counts those that were deleted."""
        listed = self._searcher.doc_freq(field, term)
        if not listed or not self._has_deleted:
            return listed
        query = Query.term_query(self._schema, field, term, index_option="basic")
        found: Any = self._searcher.search(query, 1, count=True)  # its count is missing in the stubs
        return int(found.count)

    def _best(
        self,
        terms: Sequence[str],
        scope: Scope,
        limit: int,
        among: Sequence[Query],
        statistics: Statistics | None,
    ) -> Scored:
        code = self._codes.get(scope.namespace)
        if code is None or limit <= 0:
            return _nothing()
        statistics = statistics or self.statistics(terms, scope)
        asked = statistics.rarest(terms, MAX_TERMS)
        with faults():
            clauses = self._clauses(asked, statistics, scope.fields, code)
            if not clauses:
                return _nothing()
            found = self._run(self._within(_any(clauses), scope, among), scope, limit)
        scores = TermRows(self.rows(found.numbers)).find(asked).scores(asked, statistics, scope.fields)
        return best(found.numbers[scores > 0], scores[scores > 0], limit)

    def _run(self, query: Query, scope: Scope, limit: int) -> Scored:
        """Return Tantivy's best in scope, as many as the limit and some more."""
        enough = limit + _SPARE_HITS
        fetched = enough + (_SPARE_HITS if _is_sifted(scope) else 0)
        while True:
            hits = self._searcher.search(query, fetched, count=False).hits
            addresses = [address for _, address in hits]
            numbers = np.array(self._searcher.fast_field_values("number", addresses), dtype=np.int64)
            scores = np.array([score for score, _ in hits], dtype=np.float32).round(_SCORE_DIGITS)
            if _is_sifted(scope):
                passed = self._sift(numbers, addresses, scope)
                numbers, scores = numbers[passed], scores[passed]
            if len(hits) < fetched or len(numbers) >= enough:
                return best(numbers, scores, enough)
            fetched *= _GROWTH

    def _sift(self, numbers: NDArray[np.int64], addresses: list[DocAddress], scope: Scope) -> NDArray[np.bool_]:
        """Return which hits pass what the query itself does not ask for: bool, shape (len(numbers),)."""
        passed = np.ones(len(numbers), dtype=np.bool_)
        if scope.dead is not None:
            passed &= ~within(numbers, scope.dead)
        if scope.passed_over is not None or _has_many_owners(scope):
            owners = np.array(self._searcher.fast_field_values("owner", addresses), dtype=np.int64)
            if scope.passed_over is not None:
                passed &= ~within(owners, scope.passed_over)
            if scope.owners is not None and _has_many_owners(scope):
                passed &= within(owners, scope.owners)
        return passed

    def _within(self, matching: Query, scope: Scope, filters: Sequence[Query]) -> Query:
        """Return what matches and is in scope; constant scores of 0, for a filter must not change the order."""
        restrictions = [*filters, *self._restrictions(scope)]
        if not restrictions:
            return matching
        return Query.boolean_query(
            [(Occur.Must, matching), *((Occur.Must, Query.const_score_query(each, 0.0)) for each in restrictions)]
        )

    def _clauses(
        self, asked: Mapping[str, int], statistics: Statistics, fields: Collection[str], code: int
    ) -> list[Query]:
        """Return one weighted query for each term and field of those that holds it."""
        clauses = []
        for term, times in asked.items():
            rarity, own = statistics.rarity(term), own_terms(code, [term])
            for field in fields:
                listed = self._searcher.doc_freq(field, own)
                if listed:
                    # Tantivy multiplies by the rarity that it sees itself.
                    weight = times * FIELDS[field] * rarity / inverse_document_frequency(self._size, listed)
                    query = Query.term_query(self._schema, field, own, index_option="freq")
                    clauses.append(Query.boost_query(query, weight))
        return clauses

    def _restrictions(self, scope: Scope) -> list[Query]:
        wanted = scope.filter
        restrictions: list[Query] = []
        phases = (*wanted.phases, NO_PHASE) if wanted.phases else ()
        for field, values in (("kind", wanted.kinds), ("type", wanted.types), ("phase", phases), ("tag", wanted.tags)):
            if values:
                restrictions.append(Query.term_set_query(self._schema, field, [raw_term(value) for value in values]))
        if wanted.needs_owners and scope.owners is not None and not _has_many_owners(scope):
            restrictions.append(self._any_of("owner", scope.owners.tolist()))
        return restrictions

    def _any_of(self, field: str, numbers: Sequence[int]) -> Query:
        """Return what matches passages of which a field holds one of the numbers."""
        if len(numbers) > _FEW_NUMBERS:
            return Query.term_set_query(self._schema, field, numbers)
        return _any([Query.term_query(self._schema, field, number, index_option="basic") for number in numbers])


def _any(queries: Sequence[Query]) -> Query:
    return Query.boolean_query([(Occur.Should, query) for query in queries])


def _has_many_owners(scope: Scope) -> bool:
    return scope.filter.needs_owners and scope.owners is not None and len(scope.owners) > _MAX_OWNERS


def _is_sifted(scope: Scope) -> bool:
    """Tell whether hits must be looked up in sets: to exclude even one by query costs more than fetching 1,000 more."""
    return any(left_out is not None and len(left_out) for left_out in (scope.dead, scope.passed_over)) or (
        _has_many_owners(scope)
    )


def _nothing() -> Scored:
    return Scored(np.empty(0, np.int64), np.empty(0, np.float32))
