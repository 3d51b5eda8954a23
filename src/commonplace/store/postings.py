"""The tables that recall reads in PostgreSQL: term counts, postings and sign bits, written with the passages.

Each live passage has a row of term counts and a row with the signs of its vector. Searches read the rows of a
namespace's newest passages, its tail, one by one. A long tail is packed into a segment: some thousand passages in the
order of their numbers. A row per term and segment then holds a unit of seven bytes for each passage and field with the
term: the lower half of the passage's number (uint32), the field's length (uint16) and the mark of `ranking.bm25` for
field and count (uint8). Small segments are merged. A deleted passage is removed from its segment at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
import psycopg
from numpy.typing import NDArray

from commonplace.ranking.bm25 import TermRows, fields_and_counts, pack
from commonplace.store import rights
from commonplace.store.connection import EVERY, Connections
from commonplace.store.dialect import Database
from commonplace.store.owners import build_entry
from commonplace.store.statements import Statements, named_statements
from commonplace.text.languages import ENGLISH, NATURAL_LANGUAGES
from commonplace.text.tokens import ANALYSIS, fields_of, many_words, passage_language
from commonplace.types import TokenEntry

if TYPE_CHECKING:
    from commonplace.store.postgres import Session

VERSION: Final = 2000 + ANALYSIS
"""Version of the contents of these tables; a change of the tables increases the thousands."""
TAIL: Final = 256
"""Largest tail of a namespace, in passages, that is not packed; `LARGE` if one change adds more than this."""
MERGED: Final = 12
"""Number of small segments that are merged into one; fewer are merged if together they make a large one."""
LARGE: Final = 2_048
"""Passages from which on a segment is never merged; no segment has twice as many."""
MAX_NEWEST: Final = 200
LEAST_INDEXED: Final = 50_000
"""Passages from which on a namespace gets a vector index; in smaller ones, searching the signs is as fast."""
_EF_SEARCH: Final = 200
"""Least size of the candidate list of an HNSW search (`ef_search`)."""
_FEW: Final = 16
"""Passages in the first batch after a change; most writes have no more."""
_AT_ONCE: Final = 1_000
_NAMESPACES_PER_BATCH: Final = 8
"""Namespaces per batch; most writes are to one namespace and those with the texts of its graph."""
SQL: Final = Statements("postings")
POSTING: Final = np.dtype([("number", "<u4"), ("length", "<u2"), ("mark", "u1")])

TABLES: Final = ("passage_terms", "passage_signs", "segments", "postings")


def signs_of(vector: bytes | NDArray[np.float32]) -> str:
    """Return a digit per dimension, 1 if the value is positive, else 0; the database has the same function."""
    values = np.frombuffer(vector, np.int8) if isinstance(vector, bytes) else vector
    return (np.greater(values, 0) + np.uint8(48)).astype(np.uint8).tobytes().decode()


def _int32(codes: NDArray[np.uint32]) -> list[int]:
    values: list[int] = codes.view(np.int32).tolist()
    return values


@many_words()
def rebuild(session: Session) -> None:
    """Rebuild these tables for all namespaces; no other transaction may write meanwhile."""
    for name in TABLES:
        session.execute(f"DELETE FROM {name}")
    follow(session, [number for (number,) in session.execute("SELECT number FROM namespaces")])
    session.execute(SQL["stamp"], {"version": str(VERSION)})


def follow(session: Session, spaces: Iterable[int]) -> None:
    """Update these tables after a transaction changed these namespaces."""
    ordered = sorted(spaces)
    for begin in range(0, len(ordered), _NAMESPACES_PER_BATCH):
        values: dict[str, Any] = {"spaces": ordered[begin : begin + _NAMESPACES_PER_BATCH], "limit": _FEW}
        # All queries are sent before the first result is awaited.
        deletions, tails = session.execute(SQL["gone"], values), session.execute(SQL["tails"], values)
        fresh = session.execute(SQL["fresh"], values)
        _remove(session, deletions.fetchall())
        unpacked, added = dict(tails.fetchall()), Counter[int]()
        while rows := fresh.fetchall():
            entries = [build_entry(row[1:]) for row in rows]
            languages = list(map(passage_language, entries))
            columns = {
                "spaces": [row[0] for row in rows],
                "numbers": [entry.number for entry in entries],
                "owners": [entry.owner_number for entry in entries],
                "kinds": [entry.kind for entry in entries],
                "signs": [signs_of(entry.vector) for entry in entries],
                "languages": languages,
                "terms": [pack(fields_of(*pair)) for pair in zip(entries, languages, strict=True)],
            }
            session.execute(SQL["add_terms"], columns)
            session.execute(SQL["add_signs"], columns)
            counts = Counter(columns["spaces"])
            added += counts
            values["spaces"] = [namespace_id for namespace_id, count in counts.items() if count == values["limit"]]
            if not values["spaces"]:
                break
            values["limit"] = _AT_ONCE
            fresh = session.execute(SQL["fresh"], values)
        for namespace_id, count in added.items():
            remaining, longest = unpacked[namespace_id] + count, LARGE if count > TAIL else TAIL
            while remaining > longest:
                remaining -= _pack(session, namespace_id)


def _pack(session: Session, namespace_id: int) -> int:
    """Pack the tail of a namespace into a segment, and merge small segments if due; return how many passages."""
    rows = session.execute(SQL["unpacked"], {"space": namespace_id, "limit": LARGE}).fetchall()
    numbers = np.array([row[0] for row in rows], np.int64)
    terms = TermRows([row[1] for row in rows])
    indexes, codes, marks = terms.units()
    units = np.empty(len(codes), POSTING)
    units["number"] = numbers[indexes] & 0xFFFFFFFF
    units["length"] = np.minimum(terms.lengths[indexes, fields_and_counts(marks)[0]], 0xFFFF)
    units["mark"] = marks
    order = np.argsort(codes, kind="stable")
    unique, begins = np.unique(codes[order], return_index=True)
    data, size = units[order].tobytes(), units.itemsize
    parts = [data[size * begin : size * end] for begin, end in pairwise([*begins.tolist(), len(units)])]
    segment = _Segment(int(numbers[0]), int(numbers[-1]), len(rows), terms.lengths.sum(axis=0))
    session.execute(
        SQL["add_postings"], {"space": namespace_id, "segment": segment.start, "terms": _int32(unique), "units": parts}
    )
    session.execute(SQL["put_segment"], segment.values(namespace_id))
    last: list[_Segment] = []
    for seg in reversed(_segments(session, namespace_id)):
        if seg.passages >= LARGE or segment.upto - seg.start >= 2**32:
            break
        last.append(seg)
    if len(last) >= MERGED or sum(seg.passages for seg in last) >= LARGE:
        start, count, lengths = last[-1].start, sum(seg.passages for seg in last), sum(seg.lengths for seg in last)
        merged = _Segment(start, segment.upto, count, np.asarray(lengths)).values(namespace_id)
        session.execute(SQL["merge_postings"], merged)
        session.execute(SQL["drop_merged_postings"], merged)
        session.execute(SQL["drop_merged_segments"], merged)
        session.execute(SQL["put_segment"], merged)
    return len(rows)


class _Segment(NamedTuple):
    start: int
    upto: int
    passages: int
    lengths: NDArray[np.int64]

    def values(self, space: int) -> dict[str, Any]:
        return {
            "space": space, "segment": self.start, "upto": self.upto, "passages": self.passages,
            "lengths": self.lengths.tolist(),
        }  # fmt: skip


def _segments(session: Session, namespace_id: int) -> list[_Segment]:
    rows = session.execute(SQL["segments"], {"space": namespace_id}).fetchall()
    return [_Segment(start, upto, count, np.array(lengths, np.int64)) for start, upto, count, lengths in rows]


def _remove(session: Session, rows: Sequence[tuple[int, int, bytes]]) -> None:
    """Remove deleted passages, given as (namespace, number, term counts), from the postings."""
    by_namespace: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for namespace_id, number, terms in rows:
        by_namespace[namespace_id].append((number, terms))
    for namespace_id, deleted in by_namespace.items():
        for segment in _segments(session, namespace_id):
            removed = [(number, terms) for number, terms in deleted if segment.start <= number <= segment.upto]
            if not removed:
                continue
            counts = TermRows([terms for _, terms in removed])
            remaining = segment._replace(
                passages=segment.passages - len(removed), lengths=segment.lengths - counts.lengths.sum(axis=0)
            )
            numbers = np.array([number & 0xFFFFFFFF for number, _ in removed], np.uint32)
            key = remaining.values(namespace_id)
            units = {}
            for term, data in session.execute(SQL["postings"], {**key, "terms": _int32(np.unique(counts.units()[1]))}):
                stored = np.frombuffer(data, POSTING)
                units[term] = stored[np.isin(stored["number"], numbers, invert=True)].tobytes()
            nonempty = {term: data for term, data in units.items() if data}
            session.execute(SQL["set_postings"], {**key, "terms": list(nonempty), "units": list(nonempty.values())})
            session.execute(SQL["drop_postings"], {**key, "terms": [term for term in units if term not in nonempty]})
            session.execute(SQL["put_segment"], key)


_OTHER_LANGUAGES: Final = [language for language in NATURAL_LANGUAGES if language != ENGLISH]


def make_vector_indexes(connection: psycopg.Connection[Any]) -> None:
    """Create the missing vector indexes (HNSW) of large namespaces if the database has pgvector, without blocking.

    Each index covers one namespace and one number of dimensions, so that writes elsewhere do not pay for it.

    Args:
        connection: one of the owner of the tables, outside a transaction.
    """
    if connection.execute(SQL["has_pgvector"]).fetchall() == [(False,)]:
        return
    connection.execute(SQL["halfvec_of"])
    with connection.transaction():
        connection.execute(rights.ENTER, [rights.scope_of(EVERY)])
        large = connection.execute(SQL["large"], [LEAST_INDEXED]).fetchall()
    for namespace_id, dimensions, table in large:
        name = f"vectors_{namespace_id}_{dimensions}"
        if connection.execute(SQL["is_broken"], [name]).fetchall() == [(True,)]:  # an interrupted build left it
            connection.execute(f"DROP INDEX {name}")
        connection.execute(
            f"""
            CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table}
            USING hnsw ((halfvec_of(vector)::halfvec({dimensions})) halfvec_cosine_ops)
            WHERE namespace = {namespace_id} AND is_past = 0 AND length(vector) = {dimensions}
            """
        )


class PostingsReader:
    """The reads of a search in a PostgreSQL store. Each call sees the state of the thread's snapshot."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @property
    def claims(self) -> list[tuple[str, str]]:
        """Further (claim, statement) pairs of the integrity check; a statement counts the violations."""
        return list(named_statements("recall_consistency"))

    def rebuild(self) -> None:
        """Rebuild the tables that searches read; writers wait meanwhile."""
        with self._connections.writing() as db:
            rebuild(cast("Session", db))

    def blocks(self, namespace: str, codes: NDArray[np.uint32], *, is_first: bool) -> list[Any]:
        """Return (term, first number, passages, units, lengths) of terms; if `is_first`, also of tail and segments."""
        sql = SQL["all_of_terms" if is_first else "of_terms"]
        return self._connections.rows(sql, {"namespace": namespace, "terms": _int32(codes)})

    def ahead(self, namespace: str, db: Database) -> None:
        """Send the query of every search together with its first one, which saves a round trip."""
        cast("Session", db).ahead([(SQL["languages"], {"namespace": namespace, "languages": _OTHER_LANGUAGES})])

    def languages(self, namespace: str) -> list[str]:
        """Return the languages, except English, in which passages of a namespace are stemmed."""
        values = {"namespace": namespace, "languages": _OTHER_LANGUAGES}
        return [language for (language,) in self._connections.rows(SQL["languages"], values)]

    def nearest(  # noqa: PLR0913 - the options of a search
        self,
        namespace: str,
        vector: NDArray[np.float32],
        limit: int,
        exact: int,
        held: int,
        *,
        kinds: Sequence[str] | None = None,
        owners: NDArray[np.int64] | None = None,
        passed_over: NDArray[np.int64] | None = None,
        is_ahead: bool = False,
    ) -> list[tuple[int, int, bytes]]:
        """Return (number, owner, vector) of the passages whose vectors' signs differ least; ties by number.

        Args:
            limit: the maximum; ignored if at most `exact` passages pass the filters, all of which are returned.
            held: the number of passages in the namespace.
            is_ahead: send the query ahead for the same call later; return [] without waiting.
        """
        values = {
            "namespace": namespace,
            "signs": signs_of(vector),
            "limit": limit,
            "exact": exact,
            "kinds": None if kinds is None else list(kinds),
            "owners": None if owners is None else owners.tolist(),
            "passed_over": None if passed_over is None or not len(passed_over) else passed_over.tolist(),
        }
        if held > exact and any(values[name] is not None for name in ("kinds", "owners", "passed_over")):
            if is_ahead:
                return []
            [(held,)] = self._connections.rows(SQL["how_many"], values)
        values["limit"] = exact if held <= exact else limit
        if is_ahead:
            self._connections.ahead([(SQL["vectors"], values)], namespace)
            return []
        return self._connections.rows(SQL["vectors"], values)

    def indexed(self, namespace: str, vector: NDArray[np.float32], limit: int) -> list[tuple[int, int, bytes]] | None:
        """Return (number, owner, vector) of the nearest passages by a vector index; None if there is no index."""
        ef_search = max(_EF_SEARCH, min(limit, 1_000))
        parameters = {"namespace": namespace, "dimensions": str(len(vector)), "searched": str(ef_search)}
        for number, *_ in self._connections.rows(SQL["vector_index"], parameters):
            sql = SQL["nearest_of_index"].format(number=int(number), dimensions=len(vector))
            values = {"namespace": namespace, "vector": str(vector.tolist()), "limit": limit}
            return self._connections.rows(sql, values)
        return None

    def entries(self, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[bytes, TokenEntry]]:
        """Yield (term counts, tokens) of the passages that exist in a namespace; the counts of past ones are b""."""
        for terms, *row in self._connections.rows(SQL["entries"], {"namespace": namespace, "numbers": list(numbers)}):
            yield terms or b"", TokenEntry(*row)

    def owners(self, namespace: str, numbers: Sequence[int]) -> dict[int, int]:
        """Return the owner's number of passages, by passage number."""
        return dict(self._connections.rows(SQL["owners"], {"namespace": namespace, "numbers": list(numbers)}))

    def passages_of(self, namespace: str, owners: Sequence[int]) -> NDArray[np.int64]:
        """Return the numbers of the live passages of owners, ascending."""
        rows = self._connections.rows(SQL["of_owners"], {"namespace": namespace, "owners": list(owners)})
        return np.sort(np.fromiter(chain.from_iterable(rows), np.int64, len(rows)))

    def newest(self, namespace: str) -> list[int]:
        """Return the numbers of the newest passages, at most `MAX_NEWEST`."""
        rows = self._connections.rows(SQL["newest"], {"namespace": namespace, "limit": MAX_NEWEST})
        return [number for (number,) in rows]
