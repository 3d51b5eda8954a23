"""How values stand in the columns of the SQLite store, both ways. It knows bytes and tuples, no SQL.

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
