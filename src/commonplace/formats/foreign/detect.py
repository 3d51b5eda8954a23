"""Detect which system wrote a file or folder, by file names and first entries; the reader of each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.foreign import chats, markdown, stores
from commonplace.formats.foreign.reader import ForeignData, Notes, load_json, markdown_files, read_text

READERS: Final[Mapping[str, Callable[[Path], ForeignData]]] = {
    "basic-memory": markdown.read_basic_memory,
    "chat": chats.read_messages,
    "chatgpt": chats.read_chatgpt,
    "claude": chats.read_claude,
    "cortexgraph": stores.read_cortexgraph,
    "markdown": markdown.read_notes,
    "mcp-memory": stores.read_mcp_memory,
    "mem0": stores.read_mem0,
    "openclaw": markdown.read_openclaw,
}
"""Readers by format; they raise NotFoundError for a missing path, UsageError if nothing in it can be read."""

KNOWN_FORMATS: Final = (
    "a JSON file with a list of memories, or one under results or memories (mem0), "
    "conversations.json of ChatGPT (chatgpt) or Claude (claude), "
    "messages with a role and a content as JSON or JSON Lines (chat), "
    "the MCP memory server's JSON Lines of entities and relations (mcp-memory), "
    "a memories.jsonl or a folder that holds one (cortexgraph), "
    "a folder with MEMORY.md or memory/YYYY-MM-DD.md (openclaw), "
    "a folder of Markdown notes (markdown), with permalinks, observations or relations (basic-memory)"
)
_JSON_SUFFIXES: Final = (".json", ".jsonl")
_CONVERSATIONS: Final = "conversations.json"
_MAX_NOTES_CHECKED: Final = 200


def detect(path: Path) -> str:
    """Return the name of the format, a key of `READERS`.

    Raises:
        NotFoundError: the path does not exist.
        UsageError: the format is unknown, and the message lists those that are read; or its JSON is damaged.
    """
    if not path.exists():
        raise NotFoundError(f"there is nothing at {path}", remedy="check the path")
    name = _folder_format(path) if path.is_dir() else _file_format(path)
    if not name:
        message = f"{path} is in no known format; looked for {KNOWN_FORMATS}"
        remedy = f"name the format: {', '.join(READERS)}; Graphiti's graph is for `commonplace graph import`"
        if (path / _CONVERSATIONS).is_file():
            # An unpacked export of ChatGPT or Claude: pictures and pages surround the one file.
            remedy = f"name the file: {path / _CONVERSATIONS}"
        raise UsageError(message, remedy=remedy)
    return name


def _folder_format(folder: Path) -> str:
    if (folder / stores.CORTEXGRAPH).is_file():
        return "cortexgraph"
    days = folder / markdown.OPENCLAW_DAYS
    if any((folder / name).is_file() for name in markdown.OPENCLAW_LONG_TERM):
        return "openclaw"
    if days.is_dir() and any(markdown.OPENCLAW_DAY.fullmatch(entry.name) for entry in days.iterdir()):
        return "openclaw"
    note_names = list(islice(markdown_files(folder, Notes()), _MAX_NOTES_CHECKED))
    # Obsidian's notes have the same links as basic-memory's; only its `.obsidian` folder tells them apart.
    for name in () if (folder / ".obsidian").is_dir() else note_names:
        note = markdown.read_note(folder, name, Notes())
        if note is None:
            continue
        front, lines = note
        entries = [item.text for item in markdown.items_of(lines) if item.is_entry]
        forms = (markdown.OBSERVATION, markdown.RELATION)
        if "permalink" in front.values or any(form.fullmatch(text) for text in entries for form in forms):
            return "basic-memory"
    return "markdown" if note_names else ""


def _file_format(file: Path) -> str:
    text = read_text(file)
    value, fault = load_json(text)
    if fault:
        # JSON Lines are recognised by their first line, not by the file name.
        first_line = next((line for line in text.split("\n") if line.strip()), "")
        value, line_fault = load_json(first_line)
        if line_fault and file.suffix.lower() in _JSON_SUFFIXES:
            remedy = "check that it is complete, or name the right file"
            raise UsageError(f"{file} cannot be read: {fault if first_line else 'it is empty'}", remedy=remedy)
    entries = stores.mem0_entries(value)
    first = entries[0] if entries else value
    if chats.is_export(chats.CHATGPT, value):
        return "chatgpt"
    if chats.is_export(chats.CLAUDE, value):
        return "claude"
    if stores.is_mcp_entry(value):
        return "mcp-memory"
    if chats.is_messages(value):
        return "chat"
    if isinstance(first, Mapping) and {"id", "content"} <= first.keys() and file.suffix.lower() == ".jsonl":
        return "cortexgraph"
    has_text = isinstance(first, Mapping) and not first.keys().isdisjoint(stores.MEM0_TEXTS)
    return "mem0" if entries is not None and (not entries or has_text) else ""
