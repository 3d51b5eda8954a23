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
from numpy.typing import NDArray

from commonplace.ranking.bm25 import TermRows, fields_and_counts, pack
from commonplace.store import vector_index
from commonplace.store.connection import Connections
from commonplace.store.dialect import Database, claims
from commonplace.store.owners import ENTRY_COLUMNS, LIVE_VECTOR, build_entry
from commonplace.store.validate import META
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
_FEW: Final = 16
"""Most writes have no more passages."""
_AT_ONCE: Final = 1_000
_SPACES: Final = 8
"""So many namespaces are followed at once; most writes are to one, with the texts of its graph."""
POSTING: Final = np.dtype([("number", "<u4"), ("length", "<u2"), ("mark", "u1")])

TABLES: Final = ("passage_terms", "passage_signs", "segments", "postings")
_STAMP = """
    INSERT INTO meta VALUES ('recall', :version) ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""
_NEXT_SIGNS = """
    UPDATE passage_signs s SET next_signs = signs_of(x.vector) FROM next_vectors x
    WHERE x.namespace = s.namespace AND x.number = s.number
"""

_GONE = """
    WITH gone AS (
        SELECT d.namespace, d.number
        FROM unnest(:spaces::bigint[]) s (number)
            JOIN deletions d ON d.namespace = s.number
                AND d.change = (SELECT max(c.number) FROM changes c WHERE c.namespace = s.number)
    ), signs AS (
        DELETE FROM passage_signs s USING gone g WHERE s.namespace = g.namespace AND s.number = g.number
    )
    DELETE FROM passage_terms t USING gone g WHERE t.namespace = g.namespace AND t.number = g.number
    RETURNING t.namespace, t.number, t.terms
"""
# In a namespace numbers ascend: what is live and above all that are here is new. Spaces and limit are given as values,
# for the planner to know how few rows follow.
_FRESH = f"""
    SELECT p.namespace, {ENTRY_COLUMNS}, v.token_ids, v.vector
    FROM unnest(:spaces::bigint[]) s (number)
        CROSS JOIN LATERAL (
            SELECT namespace, number, token_ids, vector FROM passage_vectors
            WHERE namespace = s.number AND is_past = 0
                AND number > (SELECT coalesce(max(t.number), 0) FROM passage_terms t WHERE t.namespace = s.number)
            ORDER BY number LIMIT :limit
        ) v
        JOIN passages p ON p.namespace = v.namespace AND p.number = v.number
        JOIN owners o ON o.namespace = p.namespace AND o.number = p.owner
        JOIN namespaces n ON n.number = p.namespace
    ORDER BY v.number
"""
_SEGMENTS = "SELECT start, upto, passages, lengths FROM segments WHERE namespace = :space ORDER BY start"
_ADD_TERMS = """
    INSERT INTO passage_terms (namespace, number, language, terms)
    SELECT * FROM unnest(:spaces::bigint[], :numbers::bigint[], :languages::text[], :terms::bytea[])
"""
_ADD_SIGNS = """
    INSERT INTO passage_signs (namespace, number, owner, kind, signs)
    SELECT * FROM unnest(
        :spaces::bigint[], :numbers::bigint[], :owners::bigint[], :kinds::text[], :signs::text[]::bit varying[]
    )
"""
_UNPACKED_OF = """
    FROM passage_terms
    WHERE namespace = :space
        AND number > (SELECT coalesce(max(upto), 0) FROM segments WHERE namespace = :space)
"""
_TAIL = _UNPACKED_OF.replace(":space", "s.space")
_TAILS = f"SELECT s.space, (SELECT count(*) {_TAIL}) FROM unnest(:spaces::bigint[]) s (space)"
_UNPACKED = f"SELECT number, terms {_UNPACKED_OF} ORDER BY number LIMIT :limit"
_ADD_POSTINGS = """
    INSERT INTO postings (namespace, segment, term, units)
    SELECT :space, :segment, * FROM unnest(:terms::integer[], :units::bytea[])
"""
_MERGE_POSTINGS = """
    INSERT INTO postings (namespace, segment, term, units)
    SELECT namespace, :segment, term, string_agg(units, '' ORDER BY segment) FROM postings
    WHERE namespace = :space AND segment > :segment GROUP BY namespace, term
    ON CONFLICT (namespace, term, segment) DO UPDATE SET units = postings.units || excluded.units
"""
_DROP_MERGED = (
    "DELETE FROM postings WHERE namespace = :space AND segment > :segment",
    "DELETE FROM segments WHERE namespace = :space AND start > :segment",
)
_PUT_SEGMENT = """
    INSERT INTO segments (namespace, start, upto, passages, lengths)
    VALUES (:space, :segment, :upto, :passages, :lengths::bigint[])
    ON CONFLICT (namespace, start)
        DO UPDATE SET upto = excluded.upto, passages = excluded.passages, lengths = excluded.lengths
"""
_POSTINGS = """
    SELECT term, units FROM postings
    WHERE namespace = :space AND segment = :segment AND term = ANY(:terms::integer[])
"""
_SET_POSTINGS = """
    UPDATE postings p SET units = u.units FROM unnest(:terms::integer[], :units::bytea[]) u (term, units)
    WHERE p.namespace = :space AND p.segment = :segment AND p.term = u.term
"""
_DROP_POSTINGS = """
    DELETE FROM postings WHERE namespace = :space AND segment = :segment AND term = ANY(:terms::integer[])
"""


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
    session.execute(_NEXT_SIGNS)
    session.execute(_STAMP, {"version": str(VERSION)})


def follow(session: Session, spaces: Iterable[int]) -> None:
    """Let what recall reads follow the changes that a transaction made in some namespaces."""
    ordered = sorted(spaces)
    for begin in range(0, len(ordered), _SPACES):
        values: dict[str, Any] = {"spaces": ordered[begin : begin + _SPACES], "limit": _FEW}
        # All are sent before the first is waited for.
        gone, tails = session.execute(_GONE, values), session.execute(_TAILS, values)
        fresh = session.execute(_FRESH, values)
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
            session.execute(_ADD_TERMS, new)
            session.execute(_ADD_SIGNS, new)
            found = Counter(new["spaces"])
            added += found
            values["spaces"] = [space for space, count in found.items() if count == values["limit"]]
            if not values["spaces"]:
                break
            values["limit"] = _AT_ONCE
            fresh = session.execute(_FRESH, values)
        for space, count in added.items():
            left, longest = unpacked[space] + count, LARGE if count > TAIL else TAIL
            while left > longest:
                left -= _pack(session, space)


def _pack(session: Session, space: int) -> int:
    """Make a segment of the tail of a namespace, and one of the last where they are enough; return its passages."""
    rows = session.execute(_UNPACKED, {"space": space, "limit": LARGE}).fetchall()
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
    session.execute(_ADD_POSTINGS, {"space": space, "segment": made.start, "terms": _signed(distinct), "units": parts})
    session.execute(_PUT_SEGMENT, made.values(space))
    last: list[_Segment] = []
    for each in reversed(_segments(session, space)):
        if each.passages >= LARGE or made.upto - each.start >= 2**32:
            break
        last.append(each)
    if len(last) >= MERGED or sum(each.passages for each in last) >= LARGE:
        start, count, lengths = last[-1].start, sum(each.passages for each in last), sum(each.lengths for each in last)
        merged = _Segment(start, made.upto, count, np.asarray(lengths)).values(space)
        session.execute(_MERGE_POSTINGS, merged)
        for sql in _DROP_MERGED:
            session.execute(sql, merged)
        session.execute(_PUT_SEGMENT, merged)
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
    found = session.execute(_SEGMENTS, {"space": space}).fetchall()
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
            for term, data in session.execute(_POSTINGS, {**own, "terms": _signed(np.unique(lost.units()[1]))}):
                held = np.frombuffer(data, POSTING)
                kept[term] = held[np.isin(held["number"], numbers, invert=True)].tobytes()
            filled = {term: data for term, data in kept.items() if data}
            session.execute(_SET_POSTINGS, {**own, "terms": list(filled), "units": list(filled.values())})
            session.execute(_DROP_POSTINGS, {**own, "terms": [term for term in kept if term not in filled]})
            session.execute(_PUT_SEGMENT, own)


_SPACE = "(SELECT number FROM namespaces WHERE name = :namespace)"
_OTHERS: Final = [language for language in NATURAL_LANGUAGES if language != ENGLISH]
_LANGUAGES = f"""
    SELECT l FROM unnest(:languages::text[]) l
    WHERE EXISTS (SELECT 1 FROM passage_terms WHERE namespace = {_SPACE} AND language = l AND language != 'english')
"""
_ALL_SEGMENTS = f"""
    SELECT NULL::integer, s.start, s.passages, NULL::bytea, s.lengths FROM segments s WHERE s.namespace = {_SPACE}
    UNION ALL
    SELECT NULL::integer, t.number, 0, t.terms, NULL::bigint[] FROM passage_terms t
    WHERE t.namespace = {_SPACE}
        AND t.number > (SELECT coalesce(max(upto), 0) FROM segments WHERE namespace = {_SPACE})
    UNION ALL
"""
_OF_TERMS = f"""
    SELECT p.term, p.segment, 0::bigint, p.units, NULL::bigint[] FROM postings p
    WHERE p.namespace = {_SPACE} AND p.term = ANY(:terms::integer[])
"""
_IN_SCOPE = f"""
    FROM passage_signs s
    WHERE s.namespace = {_SPACE} AND length({{signs}}) = length(:signs::bit varying)
        AND (:kinds::text[] IS NULL OR s.kind = ANY(:kinds::text[]))
        AND (:owners::bigint[] IS NULL OR s.owner = ANY(:owners::bigint[]))
        AND (:passed_over::bigint[] IS NULL OR s.owner != ALL(:passed_over::bigint[]))
"""
_HOW_MANY = f"SELECT count(*) FROM (SELECT 1 {_IN_SCOPE} LIMIT :exact + 1) s"
_NEAREST = f"""
    SELECT s.number, s.owner {_IN_SCOPE}
    ORDER BY bit_count({{signs}} # :signs::bit varying), s.number LIMIT :limit
"""
_VECTORS = f"""
    SELECT x.number, x.owner, {LIVE_VECTOR} FROM ({{nearest}}) x
        JOIN passage_vectors v ON v.namespace = {_SPACE} AND v.number = x.number
"""
_ENTRIES = f"""
    SELECT t.terms, v.number, v.owner, v.token_ids, {LIVE_VECTOR}, o.kind, o.at, o.session
    FROM passage_vectors v JOIN owners o ON o.namespace = v.namespace AND o.number = v.owner
        LEFT JOIN passage_terms t ON t.namespace = v.namespace AND t.number = v.number
    WHERE v.number = ANY(:numbers::bigint[]) AND v.namespace = {_SPACE}
"""
_OWNERS = f"SELECT number, owner FROM passage_signs WHERE namespace = {_SPACE} AND number = ANY(:numbers::bigint[])"
# By the index of passages: that of the signs has no owners in it.
_OF_OWNERS = f"""
    SELECT s.number FROM passages p JOIN passage_signs s ON s.namespace = p.namespace AND s.number = p.number
    WHERE p.namespace = {_SPACE} AND p.owner = ANY(:owners::bigint[])
"""
_NEWEST = f"SELECT number FROM passage_signs WHERE namespace = {_SPACE} ORDER BY number DESC LIMIT :limit"


class PostingsReader:
    """What a search asks of the passages of a store in PostgreSQL. Each call sees what the thread's snapshot does."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @property
    def claims(self) -> list[tuple[str, str]]:
        """What must hold besides: each statement counts where it fails."""
        return claims("recall_claims")

    def rebuild(self) -> None:
        """Rebuild what a search reads; writers wait for it."""
        with self._connections.writing() as db:
            rebuild(cast("Session", db))

    def blocks(self, namespace: str, codes: NDArray[np.uint32], *, is_first: bool) -> list[Any]:
        """Return term, first number, passages, units and lengths of terms; at first of the tail and segments, too."""
        sql = f"{_ALL_SEGMENTS} {_OF_TERMS}" if is_first else _OF_TERMS
        return self._connections.rows(sql, {"namespace": namespace, "terms": _signed(codes)})

    def ahead(self, namespace: str, db: Database) -> None:
        """Send what every search asks with what it asks first, which is not waited for twice."""
        cast("Session", db).ahead([(_LANGUAGES, {"namespace": namespace, "languages": _OTHERS})])

    def languages(self, namespace: str) -> list[str]:
        """Return the languages, but English, in which passages of a namespace are stemmed."""
        values = {"namespace": namespace, "languages": _OTHERS}
        return [language for (language,) in self._connections.rows(_LANGUAGES, values)]

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
        is_switched = self._is_switched()
        signs = "coalesce(s.next_signs, s.signs)" if is_switched else "s.signs"
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
            [(held,)] = self._connections.rows(_HOW_MANY.format(signs=signs), values)
        values["limit"] = exact if held <= exact else limit
        sql = _VECTORS.format(nearest=_NEAREST.format(signs=signs))
        if is_ahead:
            self._connections.ahead([(sql, values)], namespace)
            return []
        return self._connections.rows(sql, values)

    def indexed(self, namespace: str, vector: NDArray[np.float32], limit: int) -> list[tuple[int, int, bytes]] | None:
        """Return number, owner and vector of the nearest passages by an index of vectors; None where there is none."""
        if self._is_switched():
            return None
        return vector_index.nearest(self._connections.rows, namespace, vector, limit)

    def _is_switched(self) -> bool:
        """Return whether the vectors of another embedder wait to be moved."""
        return "switched_from" in dict(self._connections.known(META, lambda: self._connections.rows(META)))

    def entries(self, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[bytes, TokenEntry]]:
        """Yield term counts, token ids and vectors of the passages that exist in a namespace; b"" for a past one."""
        for terms, *row in self._connections.rows(_ENTRIES, {"namespace": namespace, "numbers": list(numbers)}):
            yield terms or b"", TokenEntry(*row)

    def owners(self, namespace: str, numbers: Sequence[int]) -> dict[int, int]:
        """Return the owners of passages."""
        return dict(self._connections.rows(_OWNERS, {"namespace": namespace, "numbers": list(numbers)}))

    def passages_of(self, namespace: str, owners: Sequence[int]) -> NDArray[np.int64]:
        """Return the live passages of owners, ascending."""
        found = self._connections.rows(_OF_OWNERS, {"namespace": namespace, "owners": list(owners)})
        return np.sort(np.fromiter(chain.from_iterable(found), np.int64, len(found)))

    def newest(self, namespace: str) -> list[int]:
        """Return the numbers of the newest passages."""
        found = self._connections.rows(_NEWEST, {"namespace": namespace, "limit": MAX_NEWEST})
        return [number for (number,) in found]
