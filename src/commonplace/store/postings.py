"""What recall reads in PostgreSQL, written in the transaction of the passages: term counts, postings, sign bits.

Each live passage has a row of term counts and one of the signs of its vector. The newest of a namespace, its tail, are
read as they are. When the tail is long, it is packed: a row for each term and segment, some thousand passages in the
order of their numbers, holds units of seven bytes, one for each passage and field with the term: the lower half of the
passage's number, uint32, the field's length, uint16, and the mark that `ranking.bm25` gives field and count. Some small
segments become one. A passage that goes is cut out of its segment at once.
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
from commonplace.store.statements import Statements, named
from commonplace.text.languages import ENGLISH, NATURAL_LANGUAGES
from commonplace.text.tokens import ANALYSIS, fields_of, many_words, passage_language
from commonplace.types import TokenEntry

if TYPE_CHECKING:
    from commonplace.store.postgres import Session

VERSION: Final = 2000 + ANALYSIS
"""The version of what these tables hold; the thousands rise with every change of the tables."""
TAIL: Final = 256
"""So many passages of a namespace are read whole; more are packed, or `LARGE` where a change adds as many at once."""
MERGED: Final = 12
"""So many segments become one, of which none is large, or as many as make a large one."""
LARGE: Final = 2_048
"""A segment of so many passages is left as it is; none has twice as many."""
MAX_NEWEST: Final = 200
LEAST_INDEXED: Final = 50_000
"""A namespace of so many passages gets an index of its vectors; in a smaller one the signs are searched as fast."""
_SEARCHED: Final = 200
"""So many vectors of an index are kept in view on the way to the nearest."""
_FEW: Final = 16
"""Most writes have no more passages."""
_AT_ONCE: Final = 1_000
_SPACES: Final = 8
"""So many namespaces are followed at once; most writes are to one, with the texts of its graph."""
SQL: Final = Statements("postings")
POSTING: Final = np.dtype([("number", "<u4"), ("length", "<u2"), ("mark", "u1")])

TABLES: Final = ("passage_terms", "passage_signs", "segments", "postings")


def signs_of(vector: bytes | NDArray[np.float32]) -> str:
    """Return a digit for each dimension, 1 where the value is positive; also as the database's function does."""
    values = np.frombuffer(vector, np.int8) if isinstance(vector, bytes) else vector
    return (np.greater(values, 0) + np.uint8(48)).astype(np.uint8).tobytes().decode()


def _signed(codes: NDArray[np.uint32]) -> list[int]:
    found: list[int] = codes.view(np.int32).tolist()
    return found


@many_words()
def rebuild(session: Session) -> None:
    """Rebuild what recall reads of all namespaces, which no other transaction writes to."""
    for name in TABLES:
        session.execute(f"DELETE FROM {name}")
    follow(session, [number for (number,) in session.execute("SELECT number FROM namespaces")])
    session.execute(SQL["stamp"], {"version": str(VERSION)})


def follow(session: Session, spaces: Iterable[int]) -> None:
    """Let what recall reads follow the changes that a transaction made in some namespaces."""
    ordered = sorted(spaces)
    for begin in range(0, len(ordered), _SPACES):
        values: dict[str, Any] = {"spaces": ordered[begin : begin + _SPACES], "limit": _FEW}
        # All are sent before the first is waited for.
        gone, tails = session.execute(SQL["gone"], values), session.execute(SQL["tails"], values)
        fresh = session.execute(SQL["fresh"], values)
        _cut_out(session, gone.fetchall())
        unpacked, added = dict(tails.fetchall()), Counter[int]()
        while rows := fresh.fetchall():
            entries = [build_entry(row[1:]) for row in rows]
            languages = list(map(passage_language, entries))
            new = {
                "spaces": [row[0] for row in rows],
                "numbers": [entry.number for entry in entries],
                "owners": [entry.owner_number for entry in entries],
                "kinds": [entry.kind for entry in entries],
                "signs": [signs_of(entry.vector) for entry in entries],
                "languages": languages,
                "terms": [pack(fields_of(*each)) for each in zip(entries, languages, strict=True)],
            }
            session.execute(SQL["add_terms"], new)
            session.execute(SQL["add_signs"], new)
            found = Counter(new["spaces"])
            added += found
            values["spaces"] = [space for space, count in found.items() if count == values["limit"]]
            if not values["spaces"]:
                break
            values["limit"] = _AT_ONCE
            fresh = session.execute(SQL["fresh"], values)
        for space, count in added.items():
            left, longest = unpacked[space] + count, LARGE if count > TAIL else TAIL
            while left > longest:
                left -= _pack(session, space)


def _pack(session: Session, space: int) -> int:
    """Make a segment of the tail of a namespace, and one of the last where they are enough; return its passages."""
    rows = session.execute(SQL["unpacked"], {"space": space, "limit": LARGE}).fetchall()
    numbers = np.array([row[0] for row in rows], np.int64)
    terms = TermRows([row[1] for row in rows])
    places, codes, marks = terms.units()
    units = np.empty(len(codes), POSTING)
    units["number"] = numbers[places] & 0xFFFFFFFF
    units["length"] = np.minimum(terms.lengths[places, fields_and_counts(marks)[0]], 0xFFFF)
    units["mark"] = marks
    order = np.argsort(codes, kind="stable")
    distinct, begins = np.unique(codes[order], return_index=True)
    data, size = units[order].tobytes(), units.itemsize
    parts = [data[size * begin : size * end] for begin, end in pairwise([*begins.tolist(), len(units)])]
    made = _Segment(int(numbers[0]), int(numbers[-1]), len(rows), terms.lengths.sum(axis=0))
    session.execute(
        SQL["add_postings"], {"space": space, "segment": made.start, "terms": _signed(distinct), "units": parts}
    )
    session.execute(SQL["put_segment"], made.values(space))
    last: list[_Segment] = []
    for each in reversed(_segments(session, space)):
        if each.passages >= LARGE or made.upto - each.start >= 2**32:
            break
        last.append(each)
    if len(last) >= MERGED or sum(each.passages for each in last) >= LARGE:
        start, count, lengths = last[-1].start, sum(each.passages for each in last), sum(each.lengths for each in last)
        merged = _Segment(start, made.upto, count, np.asarray(lengths)).values(space)
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


def _segments(session: Session, space: int) -> list[_Segment]:
    found = session.execute(SQL["segments"], {"space": space}).fetchall()
    return [_Segment(start, upto, count, np.array(lengths, np.int64)) for start, upto, count, lengths in found]


def _cut_out(session: Session, rows: Sequence[tuple[int, int, bytes]]) -> None:
    """Take passages that went out of the postings, by namespace, number and term counts."""
    of_spaces: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for space, number, terms in rows:
        of_spaces[space].append((number, terms))
    for space, gone in of_spaces.items():
        for segment in _segments(session, space):
            mine = [(number, terms) for number, terms in gone if segment.start <= number <= segment.upto]
            if not mine:
                continue
            lost = TermRows([terms for _, terms in mine])
            left = segment._replace(
                passages=segment.passages - len(mine), lengths=segment.lengths - lost.lengths.sum(axis=0)
            )
            numbers = np.array([number & 0xFFFFFFFF for number, _ in mine], np.uint32)
            own = left.values(space)
            kept = {}
            for term, data in session.execute(SQL["postings"], {**own, "terms": _signed(np.unique(lost.units()[1]))}):
                held = np.frombuffer(data, POSTING)
                kept[term] = held[np.isin(held["number"], numbers, invert=True)].tobytes()
            filled = {term: data for term, data in kept.items() if data}
            session.execute(SQL["set_postings"], {**own, "terms": list(filled), "units": list(filled.values())})
            session.execute(SQL["drop_postings"], {**own, "terms": [term for term in kept if term not in filled]})
            session.execute(SQL["put_segment"], own)


_OTHERS: Final = [language for language in NATURAL_LANGUAGES if language != ENGLISH]


def make_vector_indexes(connection: psycopg.Connection[Any]) -> None:
    """Make the indexes of vectors (HNSW) that large namespaces lack, where the database has pgvector; no writer waits.

    An index is of one namespace and one number of dimensions, so that no write elsewhere pays for it.

    Args:
        connection: of the owner of the tables, outside a transaction.
    """
    if connection.execute(SQL["has_pgvector"]).fetchall() == [(False,)]:
        return
    connection.execute(SQL["halfvec_of"])
    with connection.transaction():
        connection.execute(rights.ENTER, [rights.scope_of(EVERY)])
        large = connection.execute(SQL["large"], [LEAST_INDEXED]).fetchall()
    for space, dimensions, table in large:
        name = f"vectors_{space}_{dimensions}"
        if connection.execute(SQL["is_broken"], [name]).fetchall() == [(True,)]:  # one that was begun, and cut off
            connection.execute(f"DROP INDEX {name}")
        connection.execute(
            f"""
            CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table}
            USING hnsw ((halfvec_of(vector)::halfvec({dimensions})) halfvec_cosine_ops)
            WHERE namespace = {space} AND is_past = 0 AND length(vector) = {dimensions}
            """
        )


class PostingsReader:
    """What a search asks of the passages of a store in PostgreSQL. Each call sees what the thread's snapshot does."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @property
    def claims(self) -> list[tuple[str, str]]:
        """What must hold besides: each statement counts where it fails."""
        return list(named("recall_consistency"))

    def rebuild(self) -> None:
        """Rebuild what a search reads; writers wait for it."""
        with self._connections.writing() as db:
            rebuild(cast("Session", db))

    def blocks(self, namespace: str, codes: NDArray[np.uint32], *, is_first: bool) -> list[Any]:
        """Return term, first number, passages, units and lengths of terms; at first of the tail and segments, too."""
        sql = SQL["all_of_terms" if is_first else "of_terms"]
        return self._connections.rows(sql, {"namespace": namespace, "terms": _signed(codes)})

    def ahead(self, namespace: str, db: Database) -> None:
        """Send what every search asks with what it asks first, which is not waited for twice."""
        cast("Session", db).ahead([(SQL["languages"], {"namespace": namespace, "languages": _OTHERS})])

    def languages(self, namespace: str) -> list[str]:
        """Return the languages, but English, in which passages of a namespace are stemmed."""
        values = {"namespace": namespace, "languages": _OTHERS}
        return [language for (language,) in self._connections.rows(SQL["languages"], values)]

    def nearest(  # noqa: PLR0913 - what a search may ask for
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
        """Return number, owner and vector of the passages whose vectors' signs differ least; ties by number.

        Args:
            limit: of so many, but of all where no more than `exact` are asked for.
            held: how many passages the namespace has.
            is_ahead: what is found will be asked for again, and is not waited for.
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
        """Return number, owner and vector of the nearest passages by an index of vectors; None where there is none."""
        searched = max(_SEARCHED, min(limit, 1_000))
        asked = {"namespace": namespace, "dimensions": str(len(vector)), "searched": str(searched)}
        for number, *_ in self._connections.rows(SQL["vector_index"], asked):
            sql = SQL["nearest_of_index"].format(number=int(number), dimensions=len(vector))
            values = {"namespace": namespace, "vector": str(vector.tolist()), "limit": limit}
            return self._connections.rows(sql, values)
        return None

    def entries(self, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[bytes, TokenEntry]]:
        """Yield term counts, token ids and vectors of the passages that exist in a namespace; b"" for a past one."""
        for terms, *row in self._connections.rows(SQL["entries"], {"namespace": namespace, "numbers": list(numbers)}):
            yield terms or b"", TokenEntry(*row)

    def owners(self, namespace: str, numbers: Sequence[int]) -> dict[int, int]:
        """Return the owners of passages."""
        return dict(self._connections.rows(SQL["owners"], {"namespace": namespace, "numbers": list(numbers)}))

    def passages_of(self, namespace: str, owners: Sequence[int]) -> NDArray[np.int64]:
        """Return the live passages of owners, ascending."""
        found = self._connections.rows(SQL["of_owners"], {"namespace": namespace, "owners": list(owners)})
        return np.sort(np.fromiter(chain.from_iterable(found), np.int64, len(found)))

    def newest(self, namespace: str) -> list[int]:
        """Return the numbers of the newest passages."""
        found = self._connections.rows(SQL["newest"], {"namespace": namespace, "limit": MAX_NEWEST})
        return [number for (number,) in found]
