"""Pack and unpack values of SQLite columns.

A text is stored as TEXT. Three sorts of text are stored as a BLOB whose first byte tells which: canonical UUIDs and
SHA-256 sums because that takes half the room, and texts with lone surrogates because SQLite's UTF-8 cannot hold them.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from commonplace.types import Chunk, FileStamp, IndexEntry, Owner, Passage

_UUID_TAG = b"U"
_HASH_TAG = b"H"
_SURROGATES_TAG = b"S"

_is_uuid = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
_is_hash = re.compile(r"[0-9a-f]{64}").fullmatch

Row = tuple[Any, ...]
"""One row as the driver gives it: the columns' types are the schema's, which no type checker sees."""


def pack_text(text: str) -> str | bytes:
    """Return a text as it is stored, whatever code points it has."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES_TAG + text.encode("utf-8", "surrogatepass")
    return text


def pack_id(text: str) -> str | bytes:
    """Return an id as it is stored: a canonical UUID takes 17 bytes."""
    if len(text) == 36 and _is_uuid(text):
        return _UUID_TAG + bytes.fromhex(text.replace("-", ""))
    return pack_text(text)


def pack_hash(text: str) -> str | bytes:
    """Return a SHA-256 sum as it is stored: lower-case hexadecimal takes 33 bytes."""
    if _is_hash(text):
        return _HASH_TAG + bytes.fromhex(text)
    return pack_text(text)


def pack_texts(texts: tuple[str, ...]) -> str | bytes:
    """Return a tuple of texts as it is stored: JSON, or "" for none."""
    return pack_text(json.dumps(texts, ensure_ascii=False, separators=(",", ":"))) if texts else ""


def unpack(value: str | bytes) -> str:
    """Return the text that any of the packing functions was given."""
    if isinstance(value, str):
        return value
    if value[:1] == _UUID_TAG:
        digits = value.hex()
        return f"{digits[2:10]}-{digits[10:14]}-{digits[14:18]}-{digits[18:22]}-{digits[22:]}"
    return value[1:].decode("utf-8", "surrogatepass") if value[:1] == _SURROGATES_TAG else value[1:].hex()


def unpack_texts(value: str | bytes) -> tuple[str, ...]:
    """Return the tuple that `pack_texts` was given."""
    return _listed(unpack(value))


@lru_cache(maxsize=1024)
def _listed(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()


def text_bytes(text: str) -> int:
    """Return the length of a text in UTF-8, lone surrogates counted as three bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def pack_owner(owner: Owner) -> Row:
    """Return id, type, phase, path, root, session, position, at, title, tags, references, summary, as stored."""
    return (
        pack_id(owner.id),
        pack_text(owner.type),
        pack_text(owner.phase),
        pack_text(owner.path),
        pack_text(owner.root),
        pack_id(owner.session),
        owner.position,
        owner.at,
        pack_text(owner.title),
        pack_texts(owner.tags),
        pack_texts(owner.references),
        pack_text(owner.summary),
    )


def pack_stamp(stamp: FileStamp) -> Row:
    """Return the columns of a file stamp in the order of `file_stamps`, but for the owner."""
    return pack_hash(stamp.sha256), stamp.size, stamp.mtime_ns, pack_text(stamp.recipe)


def unpack_owner(row: Row) -> Owner:
    """Build an owner from the columns of `queries.OWNERS`, but for the number."""
    # Ten thousand owners are read to compare a directory with them, and most of their values are ready.
    values: list[Any] = [unpack(value) if type(value) is bytes else value for value in row]
    id_, kind, title, summary, tags, type_, phase, references, path, root, session, position, at, *stamp = values
    return Owner(
        id_,
        kind,
        title,
        summary,
        _listed(tags),
        type_,
        phase,
        _listed(references),
        path,
        root,
        session,
        position,
        at,
        None if stamp[0] is None else FileStamp(*stamp),
    )


def unpack_passage(row: Row) -> Passage:
    """Build a passage from the columns of `queries.PASSAGES`."""
    number, id_, owner, ordinal, text, start_line, end_line, heading = row
    return Passage(number, unpack(id_), owner, ordinal, Chunk(unpack(text), start_line, end_line, unpack(heading)))


def unpack_entry(row: Row) -> IndexEntry:
    """Build an index entry from the columns of `queries.ENTRIES`."""
    number, owner, name, kind, type_, phase, tags, title, path, heading, summary, text, token_ids, vector = row
    return IndexEntry(
        number,
        owner,
        unpack(name),
        kind,
        unpack(type_),
        unpack(phase),
        unpack_texts(tags),
        unpack(title),
        unpack(path),
        unpack(heading),
        unpack(summary),
        unpack(text),
        token_ids,
        vector,
    )


LIVE_VECTOR = """CASE WHEN EXISTS (SELECT 1 FROM meta WHERE key = 'switched_from')
            THEN coalesce((SELECT x.vector FROM next_vectors x WHERE x.number = v.number), v.vector)
            ELSE v.vector END"""
"""The vector of a passage `v`. After a change of embedder it waits beside the old one until it is moved there."""

_OLD = "(SELECT value FROM meta WHERE key = 'switched_from')"
_NEW = "(SELECT value FROM meta WHERE key = 'switched_to')"
_OLD_KNOWLEDGE = "(SELECT value FROM meta WHERE key = 'switched_from_knowledge')"
_NEW_KNOWLEDGE = "(SELECT value FROM meta WHERE key = 'switched_to_knowledge')"
LIVE_STAMP = f"""CASE WHEN k.embedder != '' AND k.embedder = {_OLD_KNOWLEDGE}
            THEN {_NEW_KNOWLEDGE} ELSE k.embedder END"""
LIVE_RECIPE = f"""CASE WHEN {_OLD} != '' AND NOT instr(s.recipe, {_NEW})
            THEN replace(s.recipe, {_OLD}, {_NEW}) ELSE s.recipe END"""
"""The embedder of a knowledge item `k` and the recipe of a file's stamp `s`, which still name the old one till then."""

OWNERS = f"""
    SELECT o.number, o.id, o.kind, o.title, o.summary, o.tags, o.type, o.phase, o."references", o.path, o.root,
        o.session, o.position, o.at, s.sha256, s.size, s.mtime_ns, {LIVE_RECIPE}
    FROM json_each(:numbers) j
        CROSS JOIN owners o ON o.number = j.value
        LEFT JOIN file_stamps s ON s.owner = o.number
    WHERE o.namespace = (SELECT number FROM namespaces WHERE name = :namespace)
"""  # noqa: S608 - SQL of ours

ARTIFACTS = f"""
    SELECT o.number, o.id, o.kind, o.title, o.summary, o.tags, o.type, o.phase, o."references", o.path, o.root,
        o.session, o.position, o.at, s.sha256, s.size, s.mtime_ns, {LIVE_RECIPE}
    FROM owners o INDEXED BY owners_by_filter
        LEFT JOIN file_stamps s ON s.owner = o.number
    WHERE o.namespace = (SELECT number FROM namespaces WHERE name = :namespace)
        AND o.kind = 'artifact' AND o.path != '' AND o.expired_at IS NULL
"""  # noqa: S608 - SQL of ours

ARTIFACT_TYPES = """
    SELECT o.type, max(o.tags != '')
    FROM owners o INDEXED BY owners_by_filter
    WHERE o.namespace = (SELECT number FROM namespaces WHERE name = :namespace)
        AND o.kind = 'artifact' AND o.expired_at IS NULL
    GROUP BY o.type
"""

PASSAGES = """
    SELECT p.number, p.id, p.owner, p.ordinal, p.text, p.start_line, p.end_line, p.heading
    FROM json_each(:numbers) j
        CROSS JOIN passages p ON p.number = j.value
    WHERE p.namespace = (SELECT number FROM namespaces WHERE name = :namespace)
"""

PASSAGES_OF = """
    SELECT p.number
    FROM json_each(:numbers) j
        CROSS JOIN passages p ON p.owner = j.value
    WHERE p.namespace = (SELECT number FROM namespaces WHERE name = :namespace)
"""

REPEATED_HEADINGS = """
    SELECT p.number
    FROM json_each(:numbers) j
        CROSS JOIN passages p ON p.number = j.value
    WHERE p.namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND p.heading != ''
        AND (
            SELECT coalesce(nullif(sum(instr(q.text, q.heading) > 0), 0), count(*))
            FROM passages q
            WHERE q.owner = p.owner AND q.heading = p.heading
        ) > 1
"""

TOKENS = f"""
    SELECT v.number, v.owner, v.token_ids, {LIVE_VECTOR}, o.kind
    FROM json_each(:numbers) j
        CROSS JOIN passage_vectors v ON v.number = j.value
        CROSS JOIN owners o ON o.number = v.owner
    WHERE v.namespace = (SELECT number FROM namespaces WHERE name = :namespace)
"""  # noqa: S608 - SQL of ours

TAIL = f"""
    SELECT v.number, v.owner, v.token_ids, {LIVE_VECTOR}, o.kind
    FROM passage_vectors v
        CROSS JOIN owners o ON o.number = v.owner
    WHERE v.number >= coalesce(
            (SELECT next_passage FROM changes WHERE number <= :change ORDER BY number DESC LIMIT 1), 1
        )
        AND v.namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND v.is_past = 0
    ORDER BY v.number
"""  # noqa: S608 - SQL of ours

ENTRIES = f"""
    SELECT p.number, p.owner, n.name, o.kind, o.type, o.phase, o.tags, o.title, o.path, p.heading, o.summary, p.text,
        v.token_ids, {LIVE_VECTOR}
    FROM json_each(:numbers) j
        CROSS JOIN passages p ON p.number = j.value
        CROSS JOIN passage_vectors v ON v.number = p.number
        CROSS JOIN owners o ON o.number = p.owner
        CROSS JOIN namespaces n ON n.number = p.namespace
    WHERE n.name = :namespace
"""  # noqa: S608 - SQL of ours

ENTRIES_BETWEEN = f"""
    SELECT p.number, p.owner, n.name, o.kind, o.type, o.phase, o.tags, o.title, o.path, p.heading, o.summary, p.text,
        v.token_ids, {LIVE_VECTOR}
    FROM passages p
        CROSS JOIN passage_vectors v ON v.number = p.number
        CROSS JOIN owners o ON o.number = p.owner
        CROSS JOIN namespaces n ON n.number = p.namespace
    WHERE p.number >= :first AND p.number < :end AND v.is_past = 0
    ORDER BY p.number
    LIMIT :limit
"""  # noqa: S608 - SQL of ours

NUMBERS_OF_CHANGES = """
    SELECT
        coalesce((SELECT next_passage FROM changes WHERE number <= :change ORDER BY number DESC LIMIT 1), 1),
        coalesce((SELECT next_passage FROM changes WHERE number <= :upto ORDER BY number DESC LIMIT 1), 1)
"""
"""First passage number of the changes (change, upto] and the one after their last: numbers ascend with changes."""

PENDING = """
    SELECT
        (
            SELECT count(*) FROM passage_vectors v
            WHERE v.namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND v.is_past = 0
                AND v.number >= coalesce(
                    (SELECT next_passage FROM changes WHERE number <= :change ORDER BY number DESC LIMIT 1), 1
                )
        ),
        (SELECT count(*) FROM deletions WHERE change > :change)
"""

DELETED = "SELECT number FROM deletions WHERE change > :change AND change <= :upto ORDER BY number"

HAS_SESSIONS = """
    SELECT EXISTS (
        SELECT 1 FROM owners
        WHERE namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND session != ''
            AND expired_at IS NULL
    )
"""

NEIGHBOURS = """
    WITH asked AS (
        SELECT p.number, o.namespace, o.session, o.position
        FROM json_each(:numbers) j
            CROSS JOIN passages p ON p.number = j.value
            CROSS JOIN owners o ON o.number = p.owner
        WHERE o.namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND o.session != ''
            AND o.expired_at IS NULL
    ),
    beside AS (
        SELECT a.number, a.namespace, a.session, (
            SELECT max(b.position) FROM owners b
            WHERE b.namespace = a.namespace AND b.session = a.session AND b.session != '' AND b.expired_at IS NULL
                AND b.position < a.position
        ) AS position
        FROM asked a
        UNION
        SELECT a.number, a.namespace, a.session, (
            SELECT min(b.position) FROM owners b
            WHERE b.namespace = a.namespace AND b.session = a.session AND b.session != '' AND b.expired_at IS NULL
                AND b.position > a.position
        ) AS position
        FROM asked a
    )
    SELECT DISTINCT a.number, p.number
    FROM beside a
        CROSS JOIN owners o
            ON o.namespace = a.namespace AND o.session = a.session AND o.session != '' AND o.expired_at IS NULL
                AND o.position = a.position
        CROSS JOIN passages p ON p.owner = o.number
    ORDER BY 1, 2
"""

MATCHING = """
    SELECT o.number
    FROM owners o INDEXED BY owners_by_filter
    WHERE o.namespace = (SELECT number FROM namespaces WHERE name = :namespace)
        AND (:kinds IS NULL OR instr(:kinds, o.kind))
        AND (:types IS NULL OR hex(CAST(o.type AS BLOB)) IN (SELECT value FROM json_each(:types)))
        AND (:phases IS NULL OR o.phase = '' OR hex(CAST(o.phase AS BLOB)) IN (SELECT value FROM json_each(:phases)))
        AND o.expired_at IS NULL AND (:as_of IS NULL OR o.created_at <= :as_of)
"""
"""The wanted values come as JSON lists of hexadecimal digits: JSON in SQLite ends a string at a NUL.

Kinds are few and none is part of another: they come as one text, and each of a hundred thousand owners costs little.
"""

MATCHING_PAST = """
    SELECT o.number
    FROM owners o INDEXED BY owners_past
    WHERE o.namespace = (SELECT number FROM namespaces WHERE name = :namespace)
        AND (:kinds IS NULL OR instr(:kinds, o.kind))
        AND (:types IS NULL OR hex(CAST(o.type AS BLOB)) IN (SELECT value FROM json_each(:types)))
        AND (:phases IS NULL OR o.phase = '' OR hex(CAST(o.phase AS BLOB)) IN (SELECT value FROM json_each(:phases)))
        AND o.expired_at > :as_of AND o.created_at <= :as_of
"""

PATHS = """
    SELECT number, path
    FROM owners INDEXED BY owners_by_path
    WHERE namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND kind = 'artifact' AND path != ''
        AND expired_at IS NULL
"""

PLACE = """
    SELECT session, position FROM owners
    WHERE namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND kind = :kind AND id = :id
        AND expired_at IS NULL
"""

NUMBER = """
    SELECT number FROM owners
    WHERE namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND kind = :kind AND id = :id
        AND expired_at IS NULL
"""

LAST_POSITION = """
    SELECT max(position) FROM owners
    WHERE namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND session = :session AND session != ''
        AND expired_at IS NULL
"""

TAGGED = """
    SELECT owner FROM owner_tags
    WHERE namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND tag = :tag
"""

COUNTS = """
    SELECT coalesce(sum(owners), 0), coalesce(sum(passages), 0), coalesce(sum(text_bytes), 0),
        coalesce(sum(owners) FILTER (WHERE kind = 'artifact'), 0),
        coalesce(sum(owners) FILTER (WHERE kind = 'memory'), 0),
        coalesce(sum(owners) FILTER (WHERE kind = 'knowledge'), 0)
    FROM counts
    WHERE :namespace IS NULL OR namespace = (SELECT number FROM namespaces WHERE name = :namespace)
"""
