"""Read the JSON Lines files of cortexgraph: `memories.jsonl` and `relations.jsonl`.

The files are append-only: of several lines with one id the last counts, and a line may say that its id is deleted.
Fields as the project's public documentation describes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from commonplace.errors import UsageError
from commonplace.formats.foreign.reader import (
    Foreign,
    ForeignLink,
    ForeignMemory,
    Notes,
    json_lines,
    plain_mapping,
    read_text,
)
from commonplace.types import STATUSES

MEMORIES: Final = "memories.jsonl"
RELATIONS: Final = "relations.jsonl"
_DELETED: Final = ("_deleted", "deleted", "is_deleted", "tombstone")
_OWN: Final = frozenset("id content meta created_at last_used use_count strength status entities".split())


def read(path: Path) -> Foreign:
    """Read the folder that holds both files, or the file of memories with the other beside it."""
    is_folder = path.is_dir()
    file = path / MEMORIES if is_folder else path
    notes = Notes()
    memories: dict[str, ForeignMemory] = {}
    for where, line in _live_lines(file, notes, follow=not is_folder):
        if memory := _memory(line, where, notes):
            memories[memory.id] = memory
    links: list[ForeignLink] = []
    relations = file.with_name(RELATIONS)
    try:
        found = list(_live_lines(relations, notes, follow=False)) if os.path.lexists(relations) else []
    except UsageError as error:
        found = []
        notes.add(RELATIONS, str(error))
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
        links.append(ForeignLink(source, target, type_ or "related", strength))
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


def _memory(line: Mapping[str, object], where: str, notes: Notes) -> ForeignMemory | None:
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
    others = {name: value for name, value in line.items() if name not in _OWN and not name.startswith("embed")}
    if any(name.startswith("embed") and value for name, value in line.items()):
        notes.tell(where, "its embedding was skipped: a new one is made")
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
