"""Read the files of other memory stores: mem0's export, cortexgraph's folder, the reference MCP memory server's file.

The fields are those that docs.mem0.ai lists for `get_all` and exports, and those of the other projects' documentation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from commonplace.errors import UsageError
from commonplace.formats.foreign.reader import (
    ForeignData,
    ForeignFact,
    ForeignMemory,
    Notes,
    first_of,
    json_lines,
    load_json,
    objects,
    plain_mapping,
    read_text,
)
from commonplace.types import STATUSES, Link

_MEM0_LISTS: Final = ("results", "memories")
MEM0_TEXTS: Final = ("memory", "text", "data")
_MEM0_KEYS: Final = frozenset({"id", *MEM0_TEXTS, "metadata", "categories", "created_at", "updated_at"})
CORTEXGRAPH: Final = "memories.jsonl"
_RELATIONS: Final = "relations.jsonl"
_DELETED: Final = ("_deleted", "deleted", "is_deleted", "tombstone")
_CORTEXGRAPH_KEYS: Final = frozenset("id content meta created_at last_used use_count strength status entities".split())


def read_mem0(path: Path) -> ForeignData:
    """Read a JSON export of mem0: a list of memories, or an object with one under `results` or `memories`.

    Users, agents and runs go into the metadata. The relations of its graph memory, under `relations`, become facts of
    the graph.
    """
    notes = Notes()
    document, fault = load_json(read_text(path))
    entries = mem0_entries(document)
    envelope = document if isinstance(document, Mapping) else {}
    count = envelope.get("count")
    if fault:
        notes.add(path.name, fault)
    elif entries is None:
        notes.add(path.name, f"holds neither a list nor an object with a list under {' or '.join(_MEM0_LISTS)}")
    elif envelope.get("next") or (isinstance(count, int) and count > len(entries)):
        summary = f"is one page of {count or 'several'}, with {len(entries)} memories"
        notes.add(path.name, f"{summary}; export the others too")
    memories: dict[str, ForeignMemory] = {}
    for location, entry in objects(entries or (), f"{path.name}:memory", notes):
        memory = _mem0_memory(entry, path.name, location, notes)
        if memory and memory.id in memories:
            notes.add(location, f"has the id {memory.id!r} of a memory before it and was skipped")
        elif memory:
            memories[memory.id] = memory

    relations = envelope.get("relations") or []
    if not isinstance(relations, list):
        notes.add(path.name, "relations is not a list and was skipped")
        relations = []
    facts: dict[tuple[str, str, str], ForeignFact] = {}
    for location, edge in objects(relations, f"{path.name}:relation", notes):
        source, type_, target = (
            notes.text(first_of(edge, keys), location, keys[0])
            for keys in (("source",), ("relationship", "relation", "relation_type"), ("target", "destination"))
        )
        # mem0's graph memory writes `_` for spaces in names.
        source, target = source.replace("_", " ").strip(), target.replace("_", " ").strip()
        if not (source and target):
            notes.add(location, "has no source or no target and was skipped")
            continue
        valid_from = notes.time(edge.get("created_at"), location, "created_at")
        source_type, target_type = (notes.text(edge.get(key), location, key) for key in ("source_type", "target_type"))
        fact = ForeignFact(location, source, type_, target, source_type, target_type, valid_from)
        facts.setdefault((source, type_, target), fact)
    return notes.result(path, "a mem0 export", memories.values(), facts=facts.values())


def mem0_entries(document: object) -> list[object] | None:
    """Return the list of memories in a document of mem0, or None if it has none."""
    if isinstance(document, Mapping):
        document = next((document[name] for name in _MEM0_LISTS if isinstance(document.get(name), list)), None)
    return document if isinstance(document, list) else None


def _mem0_memory(entry: Mapping[str, object], file: str, location: str, notes: Notes) -> ForeignMemory | None:
    if entry.get("deleted") is True or str(entry.get("event", "")).upper() == "DELETE":
        notes.notice(location, "is marked as deleted and was skipped")
        return None
    raw_text = first_of(entry, MEM0_TEXTS)
    content = notes.text(raw_text, location, "the memory") if isinstance(raw_text, str) else ""
    if not content.strip():
        notes.add(location, f"has no text under {', '.join(MEM0_TEXTS)} and was skipped")
        return None
    if expires := entry.get("expiration_date"):
        notes.notice(location, f"expires on {str(expires)[:60]}, which is kept in its metadata and not enforced")
    metadata = entry.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        metadata = {"metadata": metadata}
    extra = {name: value for name, value in entry.items() if name not in _MEM0_KEYS}
    extra_metadata = {f"mem0_{name}" if name in metadata else name: value for name, value in extra.items()}
    return ForeignMemory(
        id=notes.text(entry.get("id"), location, "id") or notes.make_id(file, content),
        content=content,
        tags=notes.words(entry.get("categories"), location, "categories"),
        created_at=notes.time(entry.get("created_at"), location, "created_at"),
        updated_at=notes.time(entry.get("updated_at"), location, "updated_at"),
        source="mem0",
        metadata=plain_mapping({**metadata, **extra_metadata}),
    )


def read_cortexgraph(path: Path) -> ForeignData:
    """Read a folder with `memories.jsonl` and `relations.jsonl`, or the first file with the second beside it.

    The files are append-only: the last line with an id counts, and a line may mark its id as deleted.
    """
    is_folder = path.is_dir()
    file = path / CORTEXGRAPH if is_folder else path
    notes = Notes()
    memories: dict[str, ForeignMemory] = {}
    for location, line in _live_lines(file, notes, follow=not is_folder):
        if memory := _cortexgraph_memory(line, location, notes):
            memories[memory.id] = memory
    links: list[Link] = []
    relations = file.with_name(_RELATIONS)
    try:
        lines = list(_live_lines(relations, notes, follow=False)) if os.path.lexists(relations) else []
    except UsageError as error:
        lines = []
        notes.add(_RELATIONS, str(error))
    for location, line in lines:
        source, target = (notes.text(line.get(name), location, name) for name in ("from_memory_id", "to_memory_id"))
        missing = next((end for end in (source, target) if end not in memories), None)
        if missing is not None:
            notes.add(location, f"links the memory {missing!r}, which is not there, and was skipped")
            continue
        if line.get("metadata"):
            notes.add(location, "its metadata was skipped: links have none")
        strength = min(1.0, notes.number(line.get("strength"), location, "strength", 1))
        type_ = notes.text(line.get("relation_type"), location, "relation_type")
        links.append(Link(source, target, type_ or "related", strength))
    return notes.result(path, "cortexgraph's memories", memories.values(), links)


def _live_lines(file: Path, notes: Notes, *, follow: bool) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the last line of each id with its location, in order of the ids' first lines, without deleted ones."""
    last_lines: dict[str, tuple[str, Mapping[str, object]]] = {}
    for location, value in json_lines(file.name, read_text(file, follow=follow), notes):
        id_ = value.get("id")
        if isinstance(id_, str) and id_:
            last_lines[id_] = (location, value)
        else:
            notes.add(location, "has no id and was skipped")
    for location, line in last_lines.values():
        if not (any(line.get(name) for name in _DELETED) or line.get("status") == "deleted"):
            yield location, line


def _cortexgraph_memory(line: Mapping[str, object], location: str, notes: Notes) -> ForeignMemory | None:
    content = notes.text(line.get("content"), location, "content")
    if not content.strip():
        notes.add(location, "has no content and was skipped")
        return None
    meta = line.get("meta") or {}
    if not isinstance(meta, Mapping):
        notes.add(location, "meta is not an object and was skipped")
        meta = {}
    status = next((status for status in STATUSES if status == line.get("status", "active")), None)
    if status is None:
        notes.add(location, f"has the unknown status {str(line['status'])[:60]!r} and was taken as active")
    unknown = {
        name: value for name, value in line.items() if name not in _CORTEXGRAPH_KEYS and not name.startswith("embed")
    }
    if any(name.startswith("embed") and value for name, value in line.items()):
        notes.notice(location, "its embedding was skipped: a new one is made")
    metadata = {name: value for name, value in meta.items() if name not in {"tags", "source", "extra"}}
    extra = meta.get("extra")
    metadata |= extra if isinstance(extra, Mapping) else {"extra": extra}
    return ForeignMemory(
        id=notes.text(line["id"], location, "id"),
        content=content,
        tags=notes.words(meta.get("tags"), location, "tags"),
        entities=notes.words(line.get("entities"), location, "entities"),
        created_at=notes.time(line.get("created_at"), location, "created_at"),
        last_used=notes.time(line.get("last_used"), location, "last_used"),
        use_count=int(notes.number(line.get("use_count"), location, "use_count", 0)),
        strength=notes.number(line.get("strength"), location, "strength", 1),
        status=status or "active",
        source=notes.text(meta.get("source"), location, "source"),
        metadata=plain_mapping({**metadata, **unknown}),
    )


def is_mcp_entry(value: object) -> bool:
    """Return whether a line is an entity or a relation of the MCP memory server."""
    if not isinstance(value, Mapping):
        return False
    is_entity = value.get("type") == "entity" and "name" in value
    return is_entity or (value.get("type") == "relation" and {"from", "to"} <= value.keys())


def read_mcp_memory(path: Path) -> ForeignData:
    """Read the JSON Lines of the reference MCP memory server: entities with observations, and relations.

    Each observation becomes a memory about its entity, each relation a fact of the graph. `_` in names becomes a space.
    The observations of an entity that occurs twice are combined.
    """
    notes = Notes()
    memories: list[ForeignMemory] = []
    relations: dict[tuple[str, str, str], str] = {}
    types: dict[str, str] = {}
    without_texts: dict[str, str] = {}
    for location, line in json_lines(path.name, read_text(path), notes):
        if line.get("type") == "entity":
            name = notes.text(line.get("name"), location, "name").strip()
            if not name:
                notes.add(location, "is an entity without a name and was skipped")
                continue
            types[name] = notes.text(line.get("entityType"), location, "entityType")
            observations = line.get("observations") or []
            if not isinstance(observations, list):
                notes.add(location, "observations is not a list and was skipped")
                observations = []
            texts = [notes.text(observation, location, "an observation").strip() for observation in observations]
            memories += [_observation(name, types[name], text, notes) for text in texts if text]
            if not any(texts):
                without_texts[name] = location
        elif line.get("type") == "relation":
            source, type_, target = (
                notes.text(line.get(key), location, key).strip() for key in ("from", "relationType", "to")
            )
            if source and target:
                relations[source, type_, target] = location
            else:
                notes.add(location, "is a relation without from or to and was skipped")
        else:
            notes.add(location, "is neither an entity nor a relation and was skipped")
    ends = {end for source, _, target in relations for end in (source, target)}
    for name, location in without_texts.items():
        if name not in ends:
            notes.notice(location, f"the entity {name[:60]!r} has neither observations nor relations: nothing to keep")
    facts = (
        ForeignFact(location, _with_spaces(head), type_, _with_spaces(tail), types.get(head, ""), types.get(tail, ""))
        for (head, type_, tail), location in relations.items()
    )
    return notes.result(path, "the MCP memory server's graph", memories, facts=facts)


def _observation(name: str, type_: str, text: str, notes: Notes) -> ForeignMemory:
    spaced_name = _with_spaces(name)
    return ForeignMemory(
        id=notes.make_id(name, text),
        content=text if text.casefold().startswith(spaced_name.casefold()) else f"{spaced_name}: {text}",
        entities=(spaced_name,),
        source="mcp-memory",
        metadata=plain_mapping({"entity": name, "entity_type": type_}),
    )


def _with_spaces(name: str) -> str:
    return name.replace("_", " ").strip() or name
