"""Owners and their passages: the queries, and what they give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from commonplace.store.dialect import SPACE, among, among_numbers, each, selected
from commonplace.store.rows import Row, form_of, unlisted
from commonplace.store.schema import SCHEMA
from commonplace.types import Chunk, FileStamp, Filter, IndexEntry, Owner, Passage

if TYPE_CHECKING:
    from commonplace.store.store import Store

_OWNER = form_of(Owner)
_STAMP = form_of(FileStamp)
_CHUNK = form_of(Chunk)
_TEXT = SCHEMA["passages"]["text"]
_WIDTH = len(_OWNER.columns)


def build_owner(row: Row) -> Owner:
    """Build an owner from the columns of `OWNERS`, but for the number: its own, and those of a stamp or NULLs."""
    stamp = None if row[_WIDTH] is None else _STAMP.build(row[_WIDTH:])
    values = [*_OWNER.decode(row[:_WIDTH]), stamp]
    return Owner(*values)


def build_passage(row: Row) -> Passage:
    """Build a passage from the columns of `PASSAGES`."""
    number, id_, owner, ordinal, *chunk = row
    return Passage(number, id_, owner, ordinal, _CHUNK.build(chunk))


def build_entry(row: Row) -> IndexEntry:
    """Build an index entry from the columns of `ENTRIES`."""
    values = list(row)
    values[6] = unlisted(row[6])
    return IndexEntry(*values)


LIVE_VECTOR: Final = """CASE WHEN EXISTS (SELECT 1 FROM meta WHERE key = 'switched_from')
            THEN coalesce((
                SELECT x.vector FROM next_vectors x WHERE x.namespace = v.namespace AND x.number = v.number
            ), v.vector)
            ELSE v.vector END"""
"""The vector of a passage `v`. After a change of embedder it waits beside the old one until it is moved there."""

_OLD = "(SELECT value FROM meta WHERE key = 'switched_from')"
_NEW = "(SELECT value FROM meta WHERE key = 'switched_to')"
_OLD_KNOWLEDGE = "(SELECT value FROM meta WHERE key = 'switched_from_knowledge')"
_NEW_KNOWLEDGE = "(SELECT value FROM meta WHERE key = 'switched_to_knowledge')"
LIVE_STAMP = f"""CASE WHEN k.embedder != '' AND k.embedder = {_OLD_KNOWLEDGE}
            THEN {_NEW_KNOWLEDGE} ELSE k.embedder END"""
LIVE_RECIPE = f"""CASE WHEN {_OLD} != '' AND instr(s.recipe, {_NEW}) = 0
            THEN replace(s.recipe, {_OLD}, {_NEW}) ELSE s.recipe END"""
"""The embedder of a knowledge item `k` and the recipe of a file's stamp `s`, which still name the old one till then."""

STAMP_COLUMNS = f"s.sha256, s.size, s.mtime_ns, {LIVE_RECIPE}"

OWNERS = f"""
    SELECT o.number, {_OWNER.names("o")}, {STAMP_COLUMNS}
    FROM {each("numbers")} j
        CROSS JOIN owners o ON o.number = j.value
        LEFT JOIN file_stamps s ON s.namespace = o.namespace AND s.owner = o.number
    WHERE o.namespace = {SPACE}
"""

ARTIFACTS = f"""
    SELECT o.number, {_OWNER.names("o")}, {STAMP_COLUMNS}
    FROM owners o INDEXED BY owners_by_filter
        LEFT JOIN file_stamps s ON s.namespace = o.namespace AND s.owner = o.number
    WHERE o.namespace = {SPACE}
        AND o.kind = 'artifact' AND o.path != '' AND o.expired_at IS NULL
"""

PASSAGE_COLUMNS = f"p.number, p.id, p.owner, p.ordinal, {_CHUNK.names('p')}"
PASSAGE_WIDTH: Final = 4 + len(_CHUNK.columns)

PASSAGES = f"""
    SELECT {PASSAGE_COLUMNS}
    FROM {each("numbers")} j
        CROSS JOIN passages p ON p.number = j.value
    WHERE p.namespace = {SPACE}
"""

REPEATED_HEADINGS = f"""
    SELECT p.number
    FROM {each("numbers")} j
        CROSS JOIN passages p ON p.number = j.value
    WHERE p.namespace = {SPACE} AND p.heading != ''
        AND (
            SELECT coalesce(nullif(count(*) FILTER (WHERE instr({selected(_TEXT, "q")}, q.heading) > 0), 0), count(*))
            FROM passages q
            WHERE q.namespace = p.namespace AND q.owner = p.owner AND q.heading = p.heading
        ) > 1
"""

TOKEN_COLUMNS: Final = f"v.number, v.owner, v.token_ids, {LIVE_VECTOR}, o.kind, o.at, o.session"
_TOKENS_OF: Final = f"""
    SELECT {TOKEN_COLUMNS}
    FROM {{}} j
        CROSS JOIN passage_vectors v ON v.number = j.value
        CROSS JOIN owners o ON o.namespace = v.namespace AND o.number = v.owner
    WHERE v.namespace = {SPACE}
"""
TOKENS = _TOKENS_OF.format(each("numbers"))

VECTORS = f"""
    SELECT v.number, {LIVE_VECTOR}
    FROM {each("numbers")} j CROSS JOIN passage_vectors v ON v.number = j.value
    WHERE v.namespace = {SPACE}
"""

HEAD = f"SELECT number, token FROM changes WHERE namespace = {SPACE} ORDER BY number DESC LIMIT 1"


def _first_after(change: str) -> str:
    """Return the number that the first passage after a change of a namespace has at least."""
    counted = f"SELECT next_passage FROM changes WHERE namespace = {SPACE} AND number <= :{change}"
    return f"coalesce(({counted} ORDER BY number DESC LIMIT 1), 0)"


_FIRST: Final = _first_after("change")

TAIL = f"""
    SELECT {TOKEN_COLUMNS}
    FROM passage_vectors v CROSS JOIN owners o ON o.namespace = v.namespace AND o.number = v.owner
    WHERE v.number >= {_FIRST} AND v.namespace = {SPACE} AND v.is_past = 0
    ORDER BY v.number
"""

TEXT: Final = selected(_TEXT, "p")
"""The text of a passage `p`."""
ENTRY_COLUMNS: Final = f"""p.number, p.owner, n.name, o.kind, o.type, o.phase, o.tags, o.title, o.path, p.heading,
        o.summary, {TEXT}"""

ENTRY_JOINS: Final = """CROSS JOIN passage_vectors v ON v.namespace = p.namespace AND v.number = p.number
        CROSS JOIN owners o ON o.namespace = p.namespace AND o.number = p.owner
        CROSS JOIN namespaces n ON n.number = p.namespace"""

ENTRIES = f"""
    SELECT {ENTRY_COLUMNS}, v.token_ids, {LIVE_VECTOR}
    FROM {each("numbers")} j CROSS JOIN passages p ON p.number = j.value {ENTRY_JOINS}
    WHERE n.name = :namespace
"""

BOUNDS = f"SELECT {_FIRST}, {_first_after('upto')}"
"""The number of the first passage of the changes after one up to another, and of the first after these."""
ENTRIES_BETWEEN = f"""
    SELECT {ENTRY_COLUMNS}, v.token_ids, {LIVE_VECTOR}
    FROM passages p NOT INDEXED {ENTRY_JOINS}
    WHERE p.namespace = {SPACE} AND p.number >= :first AND p.number < :last AND v.is_past = 0
    ORDER BY p.number
    LIMIT :limit
"""

_WRITTEN = f"""(
        SELECT count(*) FROM passage_vectors v
        WHERE v.namespace = {SPACE} AND v.is_past = 0 AND v.number >= {_FIRST}
    )"""
_DELETIONS = f"(SELECT count(*) FROM deletions WHERE namespace = {SPACE} AND change > :change)"
PENDING = f"SELECT {_WRITTEN}, {_DELETIONS}"


def _hop(name: str, numbers: str) -> str:
    """Return, for a WITH, a table of that name: each passage of a table of numbers `j`, and each `neighbour` of it."""
    return f"""
    {name}_asked AS (
        SELECT p.number, o.namespace, o.session, o.position
        FROM (
            SELECT 1 WHERE EXISTS (
                SELECT 1 FROM owners WHERE namespace = {SPACE} AND session != '' AND expired_at IS NULL
            )
        ) g
            CROSS JOIN {numbers} j
            CROSS JOIN passages p ON p.number = j.value
            CROSS JOIN owners o ON o.namespace = p.namespace AND o.number = p.owner
        WHERE o.namespace = {SPACE} AND o.session != '' AND o.expired_at IS NULL
    ),
    {name}_beside AS (
        SELECT a.number, a.namespace, a.session, (
            SELECT max(b.position) FROM owners b
            WHERE b.namespace = a.namespace AND b.session = a.session AND b.session != '' AND b.expired_at IS NULL
                AND b.position < a.position
        ) AS position
        FROM {name}_asked a
        UNION
        SELECT a.number, a.namespace, a.session, (
            SELECT min(b.position) FROM owners b
            WHERE b.namespace = a.namespace AND b.session = a.session AND b.session != '' AND b.expired_at IS NULL
                AND b.position > a.position
        ) AS position
        FROM {name}_asked a
    ),
    {name} AS (
        SELECT DISTINCT a.number, p.number AS neighbour
        FROM {name}_beside a
            CROSS JOIN owners o
                ON o.namespace = a.namespace AND o.session = a.session AND o.session != '' AND o.expired_at IS NULL
                    AND o.position = a.position
            CROSS JOIN passages p ON p.namespace = o.namespace AND p.owner = o.number
    )"""


_OTHERS = f"(SELECT DISTINCT neighbour AS value FROM near WHERE neighbour NOT IN {among_numbers('numbers')})"
_BESIDE = f"WITH {_hop('near', each('numbers'))}, {_hop('far', _OTHERS)}"
NEIGHBOURS = f"""
    {_BESIDE}
    SELECT number, neighbour FROM near UNION SELECT number, neighbour FROM far ORDER BY 1, 2
"""
TOKENS_BESIDE = f"""
    {_BESIDE}, asked AS (SELECT value FROM {each("numbers")} j UNION SELECT neighbour FROM near)
    {_TOKENS_OF.format("asked")}
    UNION ALL
    SELECT number, neighbour, NULL, NULL, NULL, NULL, NULL
    FROM (SELECT number, neighbour FROM near UNION SELECT number, neighbour FROM far) b
"""
"""The rows of `TOKENS` for passages and for those next to them, and the pairs of `NEIGHBOURS`."""

PATHS = f"""
    SELECT number, path
    FROM owners INDEXED BY owners_by_path
    WHERE namespace = {SPACE} AND kind = 'artifact' AND path != ''
        AND expired_at IS NULL
"""

LIVE = f"""
    SELECT id, number, session, position FROM owners
    WHERE namespace = {SPACE} AND kind = :kind
        AND id IN {among("ids")} AND expired_at IS NULL
"""

LAST_POSITION = f"""
    SELECT max(position) FROM owners
    WHERE namespace = {SPACE} AND session = :session AND session != ''
        AND expired_at IS NULL
"""

COUNTS = f"""
    SELECT coalesce(sum(owners), 0), coalesce(sum(passages), 0), coalesce(sum(text_bytes), 0),
        coalesce(sum(owners) FILTER (WHERE kind = 'artifact'), 0),
        coalesce(sum(owners) FILTER (WHERE kind = 'memory'), 0),
        coalesce(sum(owners) FILTER (WHERE kind = 'knowledge'), 0)
    FROM counts
    WHERE :namespace IS NULL OR namespace = {SPACE}
"""

STATE_UPTO_DATE = f"""
    SELECT 'meta' AS what, key AS one, value AS two, 0 AS three, 0 AS four, 0.0 AS five FROM meta
    UNION ALL SELECT 'head', '', token, number, 0, 0.0 FROM ({HEAD}) h
    UNION ALL SELECT 'token', '', token, 0, 0, 0.0 FROM changes
        WHERE namespace = {SPACE} AND number = :change
    UNION ALL SELECT 'session', '', '', 1, 0, 0.0 WHERE EXISTS (
        SELECT 1 FROM owners WHERE namespace = {SPACE} AND session != '' AND expired_at IS NULL
    )
    UNION ALL SELECT 'count', kind, '', owners, passages, text_bytes FROM counts WHERE namespace = {SPACE}
    UNION ALL SELECT 'note', id, body, 0, 0, at FROM notes WHERE kind = :notes AND namespace = {SPACE}
"""
"""What every search asks of a namespace before it looks for anything, in one statement; where recall lacks nothing."""
STATE = f"{STATE_UPTO_DATE} UNION ALL SELECT 'pending', '', '', {_WRITTEN}, {_DELETIONS}, 0.0"


_OWNERS_A_READ: Final = 500


def plain_owners(store: Store, namespace: str, wanted: Filter) -> Iterator[tuple[int, Owner]]:
    """Yield (number, owner), ascending, of what passes a filter and has no record: no memory, no item of knowledge."""
    numbers = store.matching_owners(namespace, wanted)
    for begin in range(0, len(numbers), _OWNERS_A_READ):
        some = numbers[begin : begin + _OWNERS_A_READ]
        known = {*store.memory_records(namespace, some), *store.knowledge(namespace).of_numbers(some)}
        yield from sorted(
            (number, owner) for number, owner in store.owners(namespace, some).items() if number not in known
        )


def cut_owners(store: Store, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[int, Owner, tuple[Chunk, ...]]]:
    """Yield (number, owner, what it was cut into) of those of some numbers that exist, in their order."""
    for begin in range(0, len(numbers), _OWNERS_A_READ):
        some = numbers[begin : begin + _OWNERS_A_READ]
        owners, chunks = store.owners(namespace, some), defaultdict[int, list[Chunk]](list)
        passages = store.passages(namespace, store.passages_of(namespace, some))
        for passage in sorted(passages.values(), key=lambda passage: passage.ordinal):
            chunks[passage.owner_number].append(passage.chunk)
        yield from ((number, owners[number], tuple(chunks[number])) for number in some if number in owners)
