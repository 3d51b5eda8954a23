"""Lexical search: BM25 over analysed terms with Tantivy.

Tantivy keeps a field's length in one byte, so scores differ from the exact ones by some percent. Its statistics
include deleted passages until their segment is merged, and span all namespaces.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import DocAddress, Occur, Query

from commonplace.errors import IndexFaultError
from commonplace.index.contract import LexicalStatistics, Scope, Scored
from commonplace.index.dense import best
from commonplace.index.files import Manifest, unreadable
from commonplace.ranking.arrays import within
from commonplace.ranking.bm25 import inverse_document_frequency
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
"""Hits fetched beyond the limit, so that ties at its edge are broken by number and not by place."""
_MAX_OWNERS = 2_000
"""A set of more owners costs Tantivy milliseconds; hits are then fetched in growing numbers and looked up in it."""
_GROWTH = 8
_FEW_NUMBERS = 256
"""So many numbers Tantivy finds sooner one by one: a set costs it .4 ms to begin with, each number less than 2 µs."""
_SCORE_DIGITS = 5
"""Sums of the same scores in another order differ beyond these decimals: equal texts must tie."""


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


def raw_term(value: str) -> str:
    """Return the value as Tantivy can hold it: lone surrogates written out, at most 1,000 characters."""
    return value.encode("utf-8", "backslashreplace").decode()[:1_000]


class TantivyLexicalIndex:
    """The lexical part of one generation: a `LexicalIndex`. Safe for threads."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        """Open the files of a generation.

        Raises:
            IndexFaultError: Tantivy cannot read them.
        """
        self._mean_lengths = dict(manifest.mean_lengths)
        self._counted = manifest.counted
        self._codes = {name: code for code, name in enumerate(manifest.namespaces)}
        self._languages: dict[str, frozenset[str]] = {}
        with _lockable(directory) as place:
            index = open_tantivy(place)
            self._schema = index.schema
            with faults():
                index.reload()
                self._searcher = index.searcher()

    def search(self, terms: Sequence[str], scope: Scope, limit: int) -> Scored:
        """Return the best passages that hold any of the terms; see `LexicalIndex.search`."""
        with faults():
            query = self._query(terms, scope, ())
            return self._run(query, scope, limit) if query is not None and limit > 0 else _nothing()

    def score(self, terms: Sequence[str], numbers: Collection[int], scope: Scope) -> dict[int, float]:
        """Return the scores of the given passages that match; see `LexicalIndex.score`."""
        with faults():
            wanted = self._any_of("number", [int(number) for number in numbers])
            query = self._query(terms, scope, (wanted,)) if len(numbers) else None
            found = self._run(query, scope, len(numbers)) if query is not None else _nothing()
        return dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))

    def statistics(self, terms: Sequence[str]) -> LexicalStatistics:
        """Return the statistics for the terms, deleted passages included until they are merged away."""
        with faults():
            distinct = dict.fromkeys(terms)
            frequencies = {field: {term: self._searcher.doc_freq(field, term) for term in distinct} for field in FIELDS}
        return LexicalStatistics(self._counted, self._mean_lengths, frequencies)

    def similar(self, term: str, distance: int, scope: Scope, limit: int) -> Sequence[int]:
        """Return passages with a term that is spelled almost like the given one; see `LexicalIndex.similar`."""
        with faults():
            each = [Query.fuzzy_term_query(self._schema, field, term, distance=distance) for field in FIELDS]
            query = self._within(Query.boolean_query([(Occur.Should, clause) for clause in each]), scope, ())
            return self._run(query, scope, limit).numbers.tolist() if query is not None and limit > 0 else ()

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

    def _run(self, query: Query, scope: Scope, limit: int) -> Scored:
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
                return best(numbers, scores, limit)
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

    def _query(self, terms: Sequence[str], scope: Scope, filters: Sequence[Query]) -> Query | None:
        """Return the whole query, None where nothing can match."""
        clauses = self._clauses(terms, scope.fields)
        if not clauses:
            return None
        return self._within(Query.boolean_query([(Occur.Should, clause) for clause in clauses]), scope, filters)

    def _within(self, matching: Query, scope: Scope, filters: Sequence[Query]) -> Query | None:
        """Return what matches and is in scope, None where nothing is in it."""
        code = self._codes.get(scope.namespace)
        if code is None:
            return None
        restrictions = [*filters, *self._restrictions(scope, code)]
        if not restrictions:
            return matching
        # Constant scores of 0: a filter must not change the order.
        return Query.boolean_query(
            [(Occur.Must, matching), *((Occur.Must, Query.const_score_query(each, 0.0)) for each in restrictions)]
        )

    def _clauses(self, terms: Sequence[str], fields: Collection[str]) -> list[Query]:
        """Return one weighted query for each term and field of those that holds it, of the rarest terms only."""
        held: dict[str, dict[str, int]] = {}
        counts = Counter(terms)
        for term in counts:
            frequencies = {field: self._searcher.doc_freq(field, term) for field in FIELDS}
            if any(frequencies.values()):
                held[term] = frequencies
        rarest = sorted(held, key=lambda term: (sum(held[term].values()), term))[:MAX_TERMS]
        return [
            self._weighted(term, field, counts[term] * self._share_of_rarity(held[term], field))
            for term in rarest
            for field, frequency in held[term].items()
            if frequency and field in fields
        ]

    def _share_of_rarity(self, frequencies: Mapping[str, int], field: str) -> float:
        """Return what makes of a term's rarity in one field, which Tantivy counts with, its rarity in a passage."""
        most = max(frequencies.values())
        if frequencies[field] == most:
            return 1.0
        rarity, in_field = (inverse_document_frequency(self._counted, each) for each in (most, frequencies[field]))
        return rarity / in_field

    def _weighted(self, term: str, field: str, share: float) -> Query:
        query, weight = Query.term_query(self._schema, field, term, index_option="freq"), FIELDS[field] * share
        return query if weight == 1.0 else Query.boost_query(query, weight)

    def _restrictions(self, scope: Scope, code: int) -> list[Query]:
        wanted = scope.filter
        restrictions: list[Query] = []
        if len(self._codes) > 1:
            restrictions.append(Query.term_query(self._schema, "namespace", code, index_option="basic"))
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
        each = (Query.term_query(self._schema, field, number, index_option="basic") for number in numbers)
        return Query.boolean_query([(Occur.Should, query) for query in each])


def _has_many_owners(scope: Scope) -> bool:
    return scope.filter.needs_owners and scope.owners is not None and len(scope.owners) > _MAX_OWNERS


def _is_sifted(scope: Scope) -> bool:
    """Tell whether hits must be looked up in sets: to exclude even one by query costs more than fetching 1,000 more."""
    return any(left_out is not None and len(left_out) for left_out in (scope.dead, scope.passed_over)) or (
        _has_many_owners(scope)
    )


def _nothing() -> Scored:
    return Scored(np.empty(0, np.int64), np.empty(0, np.float32))
