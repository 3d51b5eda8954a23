"""Tell whose memories lie at a path, by the names of files and the form of the first entries, and read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.foreign import basic_memory, cortexgraph, mem0, openclaw
from commonplace.formats.foreign.files import load_json, markdown_files, read_text
from commonplace.formats.foreign.notes import front_and_body, items_of
from commonplace.formats.foreign.records import Foreign

READERS: Final[Mapping[str, Callable[[Path], Foreign]]] = MappingProxyType(
    {
        "basic-memory": basic_memory.read,
        "cortexgraph": cortexgraph.read,
        "mem0": mem0.read,
        "openclaw": openclaw.read,
    }
)
"""How each format is read, by its name."""

LOOKED_FOR: Final = (
    "a JSON file with a list of memories, or one under results or memories (mem0), "
    "a memories.jsonl or a folder that holds one (cortexgraph), "
    "a folder with MEMORY.md or memory/YYYY-MM-DD.md (openclaw), "
    "a folder of Markdown notes with permalinks, observations or relations (basic-memory)"
)
_NOTES_LOOKED_AT: Final = 200


def detect(path: Path) -> str:
    """Return the name of the format, a key of `READERS`.

    Raises:
        NotFoundError: there is nothing at the path.
        UsageError: it is none of them; the message says what was looked for.
    """
    if not path.exists():
        raise NotFoundError(f"there is nothing at {path}", remedy="check the path")
    name = _of_folder(path) if path.is_dir() else _of_file(path)
    if not name:
        message = f"{path} is in no known format; looked for {LOOKED_FOR}"
        remedy = f"name the format: {', '.join(READERS)}; Graphiti's graph is for `commonplace graph import`"
        raise UsageError(message, remedy=remedy)
    return name


def _of_folder(folder: Path) -> str:
    if (folder / cortexgraph.MEMORIES).is_file():
        return "cortexgraph"
    days = folder / openclaw.DAYS
    if any((folder / name).is_file() for name in openclaw.LONG_TERM):
        return "openclaw"
    if days.is_dir() and any(openclaw.DAY.fullmatch(entry.name) for entry in days.iterdir()):
        return "openclaw"
    looked_at = islice(markdown_files(folder, []), _NOTES_LOOKED_AT)
    return "basic-memory" if any(_is_note(folder / name) for name in looked_at) else ""


def _is_note(file: Path) -> bool:
    try:
        front, lines = front_and_body(read_text(file))
    except (NotFoundError, UsageError):
        return False
    if "permalink" in front.values:
        return True
    forms = (basic_memory.OBSERVATION, basic_memory.RELATION)
    return any(item.is_entry and any(form.fullmatch(item.text) for form in forms) for item in items_of(lines))


def _of_file(file: Path) -> str:
    text = read_text(file)
    if file.suffix.lower() == ".jsonl":
        first = next((line for line in text.split("\n") if line.strip()), "")
        value, _ = load_json(first)
        return "cortexgraph" if isinstance(value, Mapping) and {"id", "content"} <= value.keys() else ""
    value, _ = load_json(text)
    entries = mem0.entries_of(value)
    if entries is None:
        return ""
    is_known = not entries or (isinstance(entries[0], Mapping) and not entries[0].keys().isdisjoint(mem0.TEXTS))
    return "mem0" if is_known else ""
