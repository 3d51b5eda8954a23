"""Read the JSON Lines file of the reference MCP memory server: entities with observations, and relations.

Each observation is a memory about its entity, each relation a fact of the graph. Names have `_` for spaces there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from commonplace.formats.foreign.reader import (
    Foreign,
    ForeignFact,
    ForeignMemory,
    Notes,
    json_lines,
    plain_mapping,
    read_text,
)

SOURCE = "mcp-memory"


def is_entry(value: object) -> bool:
    """Return whether a line is an entity or a relation of such a file."""
    if not isinstance(value, Mapping):
        return False
    is_entity = value.get("type") == "entity" and "name" in value
    return is_entity or (value.get("type") == "relation" and {"from", "to"} <= value.keys())


def read(path: Path) -> Foreign:
    """Read the file; of an entity that comes twice the observations are taken together."""
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
            texts = [notes.text(each, where, "an observation").strip() for each in observations]
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
            notes.tell(where, f"the entity {name[:60]!r} has neither observations nor relations: nothing to keep")
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
        source=SOURCE,
        metadata=plain_mapping({"entity": name, "entity_type": type_}),
    )


def _spaced(name: str) -> str:
    return name.replace("_", " ").strip() or name
