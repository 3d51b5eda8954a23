"""Read the files of other memory stores: mem0's export, cortexgraph's folder, the reference MCP memory server's file.

Fields are those of docs.mem0.ai for `get_all` and exports, and of the projects' public documentation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from commonplace.errors import UsageError
from commonplace.formats.foreign.reader import (
    Foreign,
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
_MEM0_OWN: Final = frozenset({"id", *MEM0_TEXTS, "metadata", "categories", "created_at", "updated_at"})
CORTEXGRAPH: Final = "memories.jsonl"
_RELATIONS: Final = "relations.jsonl"
_DELETED: Final = ("_deleted", "deleted", "is_deleted", "tombstone")
_CORTEXGRAPH_OWN: Final = frozenset("id content meta created_at last_used use_count strength status entities".split())


def read_mem0(path: Path) -> Foreign:
    """Read a JSON export of mem0: a list of memories, or an object that holds one under `results` or `memories`.

    What it says of users, agents and runs is in the metadata. Relations of its graph memory, under `relations`, become
    facts of the graph.
    """
    notes = Notes()
    document, fault = load_json(read_text(path))
    entries = mem0_entries(document)
    top = document if isinstance(document, Mapping) else {}
    count = top.get("count")
    if fault:
        notes.add(path.name, fault)
    elif entries is None:
        notes.add(path.name, f"holds neither a list nor an object with a list under {' or '.join(_MEM0_LISTS)}")
    elif top.get("next") or (isinstance(count, int) and count > len(entries)):
        what = f"is one page of {count or 'several'}, with {len(entries)} memories"
        notes.add(path.name, f"{what}; export the others too")
    memories: dict[str, ForeignMemory] = {}
    for where, entry in objects(entries or (), f"{path.name}:memory", notes):
        memory = _mem0_memory(entry, path.name, where, notes)
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


def mem0_entries(document: object) -> list[object] | None:
    """Return the list of memories in a document, or None if there is none where mem0 has it."""
    if isinstance(document, Mapping):
        document = next((document[name] for name in _MEM0_LISTS if isinstance(document.get(name), list)), None)
    return document if isinstance(document, list) else None


def _mem0_memory(entry: Mapping[str, object], file: str, where: str, notes: Notes) -> ForeignMemory | None:
    if entry.get("deleted") is True or str(entry.get("event", "")).upper() == "DELETE":
        notes.notice(where, "is marked as deleted and was skipped")
        return None
    said = first_of(entry, MEM0_TEXTS)
    content = notes.text(said, where, "the memory") if isinstance(said, str) else ""
    if not content.strip():
        notes.add(where, f"has no text under {', '.join(MEM0_TEXTS)} and was skipped")
        return None
    if expires := entry.get("expiration_date"):
        notes.notice(where, f"expires on {str(expires)[:60]}, which is kept in its metadata and not enforced")
    metadata = entry.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        metadata = {"metadata": metadata}
    others = {name: value for name, value in entry.items() if name not in _MEM0_OWN}
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


def read_cortexgraph(path: Path) -> Foreign:
    """Read the folder that holds `memories.jsonl` and `relations.jsonl`, or the first with the other beside it.

    The files are append-only: of several lines with one id the last counts, and a line may say that its id is deleted.
    """
    is_folder = path.is_dir()
    file = path / CORTEXGRAPH if is_folder else path
    notes = Notes()
    memories: dict[str, ForeignMemory] = {}
    for where, line in _live_lines(file, notes, follow=not is_folder):
        if memory := _cortexgraph_memory(line, where, notes):
            memories[memory.id] = memory
    links: list[Link] = []
    relations = file.with_name(_RELATIONS)
    try:
        found = list(_live_lines(relations, notes, follow=False)) if os.path.lexists(relations) else []
    except UsageError as error:
        found = []
        notes.add(_RELATIONS, str(error))
    for where, line in found:
        source, target = (notes.text(line.get(name), where, name) for name in ("from_memory_id", "to_memory_id"))
        missing = next((end for end in (source, target) if end not in memories), None)
        if missing is not None:
            notes.add(where, f"links the memory {missing!r}, which is not there, and was skipped")
            continue
        if line.get("metadata"):
            notes.add(where, "its metadata was skipped: links have none")
        strength = min(1.0, notes.number(line.get("strength"), where, "strength", 1))
        type_ = notes.text(line.get("relation_type"), where, "relation_type")
        links.append(Link(source, target, type_ or "related", strength))
    return notes.result(path, "cortexgraph's memories", memories.values(), links)


def _live_lines(file: Path, notes: Notes, *, follow: bool) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the last line of each id with its place, in the order in which the ids first came, without deleted ones."""
    last: dict[str, tuple[str, Mapping[str, object]]] = {}
    for where, value in json_lines(file.name, read_text(file, follow=follow), notes):
        id_ = value.get("id")
        if isinstance(id_, str) and id_:
            last[id_] = (where, value)
        else:
            notes.add(where, "has no id and was skipped")
    for where, line in last.values():
        if not (any(line.get(name) for name in _DELETED) or line.get("status") == "deleted"):
            yield where, line


def _cortexgraph_memory(line: Mapping[str, object], where: str, notes: Notes) -> ForeignMemory | None:
    content = notes.text(line.get("content"), where, "content")
    if not content.strip():
        notes.add(where, "has no content and was skipped")
        return None
    meta = line.get("meta") or {}
    if not isinstance(meta, Mapping):
        notes.add(where, "meta is not an object and was skipped")
        meta = {}
    status = next((status for status in STATUSES if status == line.get("status", "active")), None)
    if status is None:
        notes.add(where, f"has the unknown status {str(line['status'])[:60]!r} and was taken as active")
    others = {
        name: value for name, value in line.items() if name not in _CORTEXGRAPH_OWN and not name.startswith("embed")
    }
    if any(name.startswith("embed") and value for name, value in line.items()):
        notes.notice(where, "its embedding was skipped: a new one is made")
    kept = {name: value for name, value in meta.items() if name not in {"tags", "source", "extra"}}
    extra = meta.get("extra")
    kept |= extra if isinstance(extra, Mapping) else {"extra": extra}
    return ForeignMemory(
        id=notes.text(line["id"], where, "id"),
        content=content,
        tags=notes.words(meta.get("tags"), where, "tags"),
        entities=notes.words(line.get("entities"), where, "entities"),
        created_at=notes.time(line.get("created_at"), where, "created_at"),
        last_used=notes.time(line.get("last_used"), where, "last_used"),
        use_count=int(notes.number(line.get("use_count"), where, "use_count", 0)),
        strength=notes.number(line.get("strength"), where, "strength", 1),
        status=status or "active",
        source=notes.text(meta.get("source"), where, "source"),
        metadata=plain_mapping({**kept, **others}),
    )


def is_mcp_entry(value: object) -> bool:
    """Return whether a line is an entity or a relation of the MCP memory server."""
    if not isinstance(value, Mapping):
        return False
    is_entity = value.get("type") == "entity" and "name" in value
    return is_entity or (value.get("type") == "relation" and {"from", "to"} <= value.keys())


def read_mcp_memory(path: Path) -> Foreign:
    """Read the JSON Lines of the reference MCP memory server: entities with observations, and relations.

    Each observation is a memory about its entity, each relation a fact of the graph. Names have `_` for spaces there.
    Of an entity that comes twice the observations are taken together.
    """
    notes = Notes()
    memories: list[ForeignMemory] = []
    relations: dict[tuple[str, str, str], str] = {}
    types: dict[str, str] = {}
    silent: dict[str, str] = {}
    for where, line in json_lines(path.name, read_text(path), notes):
        if line.get("type") == "entity":
            name = notes.text(line.get("name"), where, "name").strip()
            if not name:
                notes.add(where, "is an entity without a name and was skipped")
                continue
            types[name] = notes.text(line.get("entityType"), where, "entityType")
            observations = line.get("observations") or []
            if not isinstance(observations, list):
                notes.add(where, "observations is not a list and was skipped")
                observations = []
            texts = [notes.text(observation, where, "an observation").strip() for observation in observations]
            memories += [_observation(name, types[name], text, notes) for text in texts if text]
            if not any(texts):
                silent[name] = where
        elif line.get("type") == "relation":
            source, type_, target = (
                notes.text(line.get(key), where, key).strip() for key in ("from", "relationType", "to")
            )
            if source and target:
                relations[source, type_, target] = where
            else:
                notes.add(where, "is a relation without from or to and was skipped")
        else:
            notes.add(where, "is neither an entity nor a relation and was skipped")
    ends = {end for source, _, target in relations for end in (source, target)}
    for name, where in silent.items():
        if name not in ends:
            notes.notice(where, f"the entity {name[:60]!r} has neither observations nor relations: nothing to keep")
    facts = (
        ForeignFact(where, _spaced(one), type_, _spaced(other), types.get(one, ""), types.get(other, ""))
        for (one, type_, other), where in relations.items()
    )
    return notes.result(path, "the MCP memory server's graph", memories, facts=facts)


def _observation(name: str, type_: str, text: str, notes: Notes) -> ForeignMemory:
    shown = _spaced(name)
    return ForeignMemory(
        id=notes.made_id(name, text),
        content=text if text.casefold().startswith(shown.casefold()) else f"{shown}: {text}",
        entities=(shown,),
        source="mcp-memory",
        metadata=plain_mapping({"entity": name, "entity_type": type_}),
    )


def _spaced(name: str) -> str:
    return name.replace("_", " ").strip() or name
