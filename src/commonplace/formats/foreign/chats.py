"""Read conversations: exports of ChatGPT and Claude, and chat messages as JSON or JSON Lines.

Each message of a person or a model becomes a memory with its conversation as session and its position there. Messages
have the form of the chat APIs (`role`, `content`); Claude Code's transcripts hold them under `message`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.formats.foreign.reader import (
    ForeignData,
    ForeignMemory,
    Notes,
    first_of,
    json_lines,
    load_json,
    objects,
    plain_mapping,
    read_text,
)
from commonplace.types import ORIGIN_OF_ROLE, TEXT_PARTS

_ORIGINS: Final = {role: origin for role, origin in ORIGIN_OF_ROLE.items() if origin != "tool"}
"""Role of a message → origin of its memory; messages of systems and tools are left out."""
# Tuples: a file may hold a list or an object in place of a word, and a set cannot be asked for unhashable values.
_ROLES: Final = tuple(_ORIGINS)
_TEXT_CONTENT_TYPES: Final = ("text", "multimodal_text")
CHATGPT, CLAUDE = "mapping", "chat_messages"
"""Key of the messages in a conversation of either export."""
_IDS: Final = ("id", "uuid", "message_id")
_SESSIONS: Final = ("session", "session_id", "sessionId", "conversation_id", "conversation", "thread_id", "chat_id")
_TIMES: Final = ("timestamp", "created_at", "create_time", "time", "ts", "date")


@dataclass(frozen=True, slots=True)
class _Message:
    """A message with the unchecked values of its file, of any type."""

    role: object
    content: object
    id: object = None
    at: object = None
    name: object = None


class _ChatReader:
    def __init__(self, file: str, source: str) -> None:
        self.notes = Notes()
        self._file = file
        self._source = source
        self._memories: dict[str, ForeignMemory] = {}
        self._positions: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count something other than a message of a person or a model."""
        self._left_out[what] += count

    def add(self, message: _Message, session: str, location: str, title: object = None) -> None:
        """Add the next message of a conversation, which may have a title."""
        role = message.role.lower() if isinstance(message.role, str) else ""
        if role not in _ORIGINS:
            self.leave_out(f"messages of the role {role[:40]!r}" if role else "entries without a role")
            return
        content = message.content if isinstance(message.content, str) else None
        if isinstance(message.content, list):
            # A text part is a string, or an object that holds one.
            parts = [
                part.get("text") if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS else part
                for part in message.content
            ]
            texts = [part for part in parts if isinstance(part, str)]
            if len(texts) < len(parts):
                self.leave_out("parts other than text (images, tool calls)", len(parts) - len(texts))
            content = "\n\n".join(text for text in texts if text.strip())
        text = self.notes.text(content, location, "a message").strip()
        if not text:
            self.leave_out("messages without text")
            return
        id_ = self.notes.text(message.id, location, "id")
        prior = self._memories.get(id_)
        if prior is not None and (prior.session, prior.origin, prior.content) == (session, _ORIGINS[role], text):
            self.leave_out("messages that came twice")
            return
        if not id_ or prior is not None:  # some files number the messages of each conversation
            id_ = self.notes.make_id(f"{self._file} {session}", text)
        self._memories[id_] = ForeignMemory(
            id=id_,
            content=text,
            created_at=self.notes.time(message.at, location, "the time of a message"),
            source=self.notes.text(message.name, location, "name") or self._source,
            session=session,
            position=self._positions[session],
            origin=_ORIGINS[role],
            metadata=plain_mapping({"role": role, "conversation": title}),
        )
        self._positions[session] += 1

    def result(self, path: Path) -> ForeignData:
        """Return the memories; see `Notes.result`."""
        if self._left_out:
            summary = "; ".join(f"{what}: {count:,}" for what, count in sorted(self._left_out.items()))
            # Without any memory, what was left out is the reason, hence a problem.
            (self.notes.notice if self._memories else self.notes.add)(self._file, f"left out: {summary}")
        return self.notes.result(path, "conversations", self._memories.values())


def is_export(key: str, value: object) -> bool:
    """Return whether JSON is a list of conversations that have their messages under that key."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping) and key in value[0]


def is_messages(value: object) -> bool:
    """Return whether JSON is a message, a conversation, or a list of either."""
    candidate = next(iter(value), None) if isinstance(value, list) else value
    messages = candidate.get("messages") if isinstance(candidate, Mapping) else None
    for entry in (candidate, *(messages if isinstance(messages, list) else ())):
        nested = entry.get("message") if isinstance(entry, Mapping) else None
        message = nested if isinstance(nested, Mapping) else entry
        if isinstance(message, Mapping) and isinstance(message.get("role"), str) and "content" in message:
            return True
    return False


def read_chatgpt(path: Path) -> ForeignData:
    """Read ChatGPT's export. If a conversation has branches, only the current one is read."""
    reader = _ChatReader(path.name, "chatgpt")
    for location, conversation, mapping in _conversations(path, CHATGPT, dict, reader.notes):
        branch = _branch(mapping, conversation.get("current_node"))
        messages = sum(isinstance(node, Mapping) and isinstance(node.get("message"), dict) for node in mapping.values())
        if messages > len(branch):
            reader.leave_out("messages of abandoned branches", messages - len(branch))
        session = reader.notes.text(first_of(conversation, ("id", "conversation_id")) or location, location, "id")
        for entry in branch:
            author, content, metadata = entry.get("author"), entry.get("content"), entry.get("metadata")
            role = author.get("role") if isinstance(author, Mapping) else None
            is_hidden = isinstance(metadata, Mapping) and metadata.get("is_visually_hidden_from_conversation") is True
            is_text = isinstance(content, Mapping) and content.get("content_type") in _TEXT_CONTENT_TYPES
            # A model's message to a tool is not an answer to the person.
            if role in _ROLES and (is_hidden or not is_text or entry.get("recipient") not in (None, "", "all")):
                reader.leave_out("thoughts, tool calls and hidden messages")
                continue
            parts = content.get("parts") if isinstance(content, Mapping) else None
            message = _Message(role, parts, entry.get("id"), entry.get("create_time"))
            reader.add(message, session, location, conversation.get("title"))
    return reader.result(path)


def read_claude(path: Path) -> ForeignData:
    """Read Claude's export."""
    reader = _ChatReader(path.name, "claude")
    for location, conversation, messages in _conversations(path, CLAUDE, list, reader.notes):
        session = reader.notes.text(conversation.get("uuid") or location, location, "uuid")
        for entry in messages:
            if not isinstance(entry, Mapping):
                reader.leave_out("entries without a role")
                continue
            for name in ("attachments", "files"):
                attachments = entry.get(name)
                if isinstance(attachments, list) and attachments:
                    reader.leave_out("attached files", len(attachments))
            content = entry.get("content")
            content = content if isinstance(content, list) and content else entry.get("text")
            message = _Message(entry.get("sender"), content, entry.get("uuid"), entry.get("created_at"))
            reader.add(message, session, location, conversation.get("name"))
    return reader.result(path)


def read_messages(path: Path) -> ForeignData:
    """Read messages with role and content, or conversations of them, from JSON Lines or JSON."""
    reader = _ChatReader(path.name, "chat")
    text = read_text(path)
    value, fault = load_json(text)
    values = value if isinstance(value, list) else [value]
    lines = json_lines(path.name, text, reader.notes) if fault else objects(values, f"{path.name}:entry", reader.notes)
    for location, line in lines:
        if line.get("isMeta") is True:
            reader.leave_out("entries without a role")
            continue
        nested = line.get("message")
        body = nested if isinstance(nested, Mapping) else line
        messages = body.get("messages")
        session = first_of(line, _SESSIONS)
        if isinstance(messages, list):
            session_text = reader.notes.text(session or first_of(line, _IDS) or location, location, "id")
            for entry in messages:
                if isinstance(entry, Mapping):
                    reader.add(_parse(entry, line, first_of(entry, _IDS)), session_text, location)
        else:
            # In Claude Code's transcripts the parts of a message share its id, and each line has its own `uuid`.
            id_ = first_of(line, _IDS) if body is line else first_of(line, ("uuid",)) or first_of(body, _IDS)
            reader.add(_parse(body, line, id_), reader.notes.text(session or path.name, location, "session"), location)
    return reader.result(path)


def _parse(message: Mapping[str, object], line: Mapping[str, object], id_: object) -> _Message:
    timestamp = first_of(message, _TIMES) or first_of(line, _TIMES)
    return _Message(message.get("role"), message.get("content"), id_, timestamp, message.get("name"))


def _conversations(path: Path, key: str, kind: type, notes: Notes) -> Iterator[tuple[str, Mapping[str, object], Any]]:
    """Yield location, conversation and messages, of type `kind` under `key`, of each conversation in a file."""
    value, fault = load_json(read_text(path))
    if fault or not isinstance(value, list):
        notes.add(path.name, fault or "is not a list of conversations")
        return
    for number, conversation in enumerate(value, 1):
        location = f"{path.name}:conversation {number}"
        messages = conversation.get(key) if isinstance(conversation, Mapping) else None
        if isinstance(messages, kind):
            yield location, conversation, messages
        else:
            notes.add(location, f"has no {key} and was skipped")


def _branch(mapping: Mapping[str, object], node_id: object) -> list[Mapping[str, object]]:
    """Return the messages from the root to a node, or to the mapping's last node if there is no such node."""
    if not isinstance(node_id, str) or node_id not in mapping:
        node_id = next(reversed(list(mapping)), None)
    branch: list[Mapping[str, object]] = []
    seen = set()
    while isinstance(node_id, str) and node_id not in seen:
        seen.add(node_id)
        node = mapping.get(node_id)
        if not isinstance(node, Mapping):
            break
        message = node.get("message")
        if isinstance(message, Mapping):
            branch.append(message)
        node_id = node.get("parent")
    return branch[::-1]
