"""How agents' knowledge stands in the columns of the SQLite store, both ways. It knows bytes and tuples, no SQL."""

from __future__ import annotations

from commonplace.store.rows import Row, pack_hash, pack_text, unpack, unpack_owner
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord, StoredKnowledge

_NO_STAMP = (None, None, None, None)


def pack_item(record: KnowledgeRecord, updated_at: float) -> Row:
    """Return the columns of an item in the order of `knowledge_queries.ADD`, from `agent` on."""
    return (
        pack_text(record.agent),
        pack_text(record.content),
        pack_text(record.metadata),
        pack_hash(record.digest),
        pack_text(record.embedder),
        record.vector,
        updated_at,
    )


def unpack_item(row: Row) -> StoredKnowledge:
    """Build an item from the columns of `knowledge_queries`."""
    number, created_at, updated_at, deleted_at, agent, content, metadata, digest, embedder, vector = row[:10]
    record = KnowledgeRecord(
        unpack(agent), unpack(content), unpack(metadata), unpack(digest), unpack(embedder), bytes(vector)
    )
    return StoredKnowledge(number, unpack_owner((*row[10:], *_NO_STAMP)), record, created_at, updated_at, deleted_at)


def pack_context(context: ContextRecord) -> Row:
    """Return the columns of a context, from `name` on."""
    return pack_text(context.name), context.last_cursor, pack_text(context.metadata), context.updated_at


def unpack_context(row: Row) -> ContextRecord:
    """Build a context from the columns of `knowledge_queries`."""
    name, last_cursor, metadata, updated_at = row
    return ContextRecord(unpack(name), last_cursor, unpack(metadata), updated_at)
