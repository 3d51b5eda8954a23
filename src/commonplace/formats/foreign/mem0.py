"""Read a JSON export of mem0: a list of memories, or an object that holds one under `results` or `memories`.

Relations of its graph memory, under `relations`, become facts of the graph.

Fields as docs.mem0.ai describes them for `get_all` and memory exports.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from commonplace.formats.foreign.reader import (
    Foreign,
    ForeignFact,
    ForeignMemory,
    Notes,
    first_of,
    load_json,
    objects,
    plain_mapping,
    read_text,
)

LISTS: Final = ("results", "memories")
TEXTS: Final = ("memory", "text", "data")
_OWN: Final = frozenset({"id", *TEXTS, "metadata", "categories", "created_at", "updated_at"})


def read(path: Path) -> Foreign:
    """Read an export; what it says of users, agents and runs is in the metadata."""
    notes = Notes()
    document, fault = load_json(read_text(path))
    entries = entries_of(document)
    top = document if isinstance(document, Mapping) else {}
    count = top.get("count")
    if fault:
        notes.add(path.name, fault)
    elif entries is None:
        notes.add(path.name, f"holds neither a list nor an object with a list under {' or '.join(LISTS)}")
    elif top.get("next") or (isinstance(count, int) and count > len(entries)):
        what = f"is one page of {count or 'several'}, with {len(entries)} memories"
        notes.add(path.name, f"{what}; export the others too")
    memories: dict[str, ForeignMemory] = {}
    for where, entry in objects(entries or (), f"{path.name}:memory", notes):
        memory = _memory(entry, path.name, where, notes)
        if memory and memory.id in memories:
            notes.add(where, f"has the id {memory.id!r} of a memory before it and was skipped")
        elif memory:
            memories[memory.id] = memory

    relations = top.get("relations") or []
    if not isinstance(relations, list):
        notes.add(path.name, "relations is not a list and was skipped")
        relations = []
    facts: dict[tuple[str, str, str], ForeignFact] = {}
    for where, each in objects(relations, f"{path.name}:relation", notes):
        source, type_, target = (
            notes.text(first_of(each, keys), where, keys[0])
            for keys in (("source",), ("relationship", "relation", "relation_type"), ("target", "destination"))
        )
        # Its graph memory writes names with `_` for spaces.
        source, target = source.replace("_", " ").strip(), target.replace("_", " ").strip()
        if not (source and target):
            notes.add(where, "has no source or no target and was skipped")
            continue
        at = notes.time(each.get("created_at"), where, "created_at")
        source_type, target_type = (notes.text(each.get(key), where, key) for key in ("source_type", "target_type"))
        fact = ForeignFact(where, source, type_, target, source_type, target_type, at)
        facts.setdefault((source, type_, target), fact)
    return notes.result(path, "a mem0 export", memories.values(), facts=facts.values())


def entries_of(document: object) -> list[object] | None:
    """Return the list of memories in a document, or None if there is none where mem0 has it."""
    if isinstance(document, Mapping):
        document = next((document[name] for name in LISTS if isinstance(document.get(name), list)), None)
    return document if isinstance(document, list) else None


def _memory(entry: Mapping[str, object], file: str, where: str, notes: Notes) -> ForeignMemory | None:
    if entry.get("deleted") is True or str(entry.get("event", "")).upper() == "DELETE":
        notes.tell(where, "is marked as deleted and was skipped")
        return None
    content = notes.text(first_of(entry, TEXTS), where, "the memory")
    if not content.strip():
        notes.add(where, f"has no text under {', '.join(TEXTS)} and was skipped")
        return None
    if expires := entry.get("expiration_date"):
        notes.tell(where, f"expires on {str(expires)[:60]}, which is kept in its metadata and not enforced")
    metadata = entry.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        metadata = {"metadata": metadata}
    others = {name: value for name, value in entry.items() if name not in _OWN}
    clashing = {f"mem0_{name}" if name in metadata else name: value for name, value in others.items()}
    return ForeignMemory(
        id=notes.text(entry.get("id"), where, "id") or notes.made_id(file, content),
        content=content,
        tags=notes.words(entry.get("categories"), where, "categories"),
        created_at=notes.time(entry.get("created_at"), where, "created_at"),
        updated_at=notes.time(entry.get("updated_at"), where, "updated_at"),
        source="mem0",
        metadata=plain_mapping({**metadata, **clashing}),
    )
