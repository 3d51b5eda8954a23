"""How memories stand in the columns of the SQLite store, both ways. It knows bytes and tuples, no SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable

from commonplace.store.rows import Row, pack_text, pack_texts, unpack, unpack_owner, unpack_texts
from commonplace.types import Link, MemoryRecord, StoredMemory

_NO_STAMP = (None, None, None, None)


def pack_record(record: MemoryRecord) -> Row:
    """Return the columns of a record in the order of `memory_queries.ADD`, from `content` on."""
    return (
        pack_text(record.content),
        record.tier,
        record.status,
        pack_text(record.category),
        pack_texts(record.entities),
        pack_text(record.source),
        record.origin,
        record.trust,
        pack_text(record.metadata),
        record.version,
        record.born_at,
        record.last_used,
        record.use_count,
        record.strength,
        json.dumps(record.uses) if record.uses else "",
        record.review_count,
        pack_texts(record.derived_from),
        int(record.is_forced),
        record.promoted_at,
        pack_text(record.vault_path),
    )


def unpack_memory(row: Row) -> StoredMemory:
    """Build a version of a memory from the columns of `memory_queries`."""
    number, created_at, expired_at = row[:3]
    (
        content,
        tier,
        status,
        category,
        entities,
        source,
        origin,
        trust,
        metadata,
        version,
        born_at,
        last_used,
        use_count,
        strength,
        uses,
        review_count,
        derived_from,
        is_forced,
        promoted_at,
        vault_path,
    ) = row[3:23]
    record = MemoryRecord(
        content=unpack(content),
        tier=tier,
        status=status,
        category=unpack(category),
        entities=unpack_texts(entities),
        source=unpack(source),
        origin=origin,
        trust=trust,
        metadata=unpack(metadata),
        version=version,
        born_at=born_at,
        last_used=last_used,
        use_count=use_count,
        strength=strength,
        uses=tuple(json.loads(uses)) if uses else (),
        review_count=review_count,
        derived_from=unpack_texts(derived_from),
        is_forced=bool(is_forced),
        promoted_at=promoted_at,
        vault_path=unpack(vault_path),
    )
    return StoredMemory(number, unpack_owner((*row[23:], *_NO_STAMP)), record, created_at, expired_at)


def unpack_link(row: Row) -> Link:
    """Build a link from the columns of `memory_queries.LINKS`."""
    source, target, type_, strength, created_at = row
    return Link(unpack(source), unpack(target), unpack(type_), strength, created_at)


def hex_json(packed: Iterable[str | bytes]) -> str | None:
    """Return packed values as the JSON list of hexadecimal digits that the queries compare with, None for none."""
    values = [(value.encode() if isinstance(value, str) else value).hex().upper() for value in packed]
    return json.dumps(values) if values else None
