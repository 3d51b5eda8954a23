"""Read conversations: exports of ChatGPT and Claude, and chat messages as JSON or JSON Lines.

Each message that a person or a model wrote is a memory with its conversation as session and its place there. Messages
have the form of the chat APIs (`role`, `content`); in Claude Code's transcripts they are under `message`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.formats.foreign.reader import (
    Foreign,
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
"""Whose message is kept, by its role; those of systems and tools are not."""
# Tuples, since a file may hold a list or an object where a word belongs, of which no set can say whether it has it.
_ROLES: Final = tuple(_ORIGINS)
_TEXT_MESSAGES: Final = ("text", "multimodal_text")
CHATGPT, CLAUDE = "mapping", "chat_messages"
"""Under which keys their conversations have the messages."""
_IDS: Final = ("id", "uuid", "message_id")
_SESSIONS: Final = ("session", "session_id", "sessionId", "conversation_id", "conversation", "thread_id", "chat_id")
_TIMES: Final = ("timestamp", "created_at", "create_time", "time", "ts", "date")


@dataclass(frozen=True, slots=True)
class _Message:
    """A message as a file has it: values of any type, unchecked."""

    role: object
    content: object
    id: object = None
    at: object = None
    name: object = None


class _Talk:
    """Makes memories of messages, and counts what is left out."""

    def __init__(self, file: str, source: str) -> None:
        self.notes = Notes()
        self._file = file
        self._source = source
        self._memories: dict[str, ForeignMemory] = {}
        self._positions: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count something that is no message of a person or a model."""
        self._left_out[what] += count

    def add(self, message: _Message, session: str, where: str, title: object = None) -> None:
        """Take the next message of a conversation, which may have a title."""
        role = message.role.lower() if isinstance(message.role, str) else ""
        if role not in _ORIGINS:
            self.leave_out(f"messages of the role {role[:40]!r}" if role else "entries without a role")
            return
        content = message.content if isinstance(message.content, str) else None
        if isinstance(message.content, list):
            # Some of the parts are texts, or objects that hold one.
            parts = [
                part.get("text") if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS else part
                for part in message.content
            ]
            texts = [part for part in parts if isinstance(part, str)]
            if len(texts) < len(parts):
                self.leave_out("parts other than text (images, tool calls)", len(parts) - len(texts))
            content = "\n\n".join(text for text in texts if text.strip())
        text = self.notes.text(content, where, "a message").strip()
        if not text:
            self.leave_out("messages without text")
            return
        id_ = self.notes.text(message.id, where, "id")
        known = self._memories.get(id_)
        if known is not None and (known.session, known.origin, known.content) == (session, _ORIGINS[role], text):
            self.leave_out("messages that came twice")
            return
        if not id_ or known is not None:  # some files number the messages of each conversation
            id_ = self.notes.made_id(f"{self._file} {session}", text)
        self._memories[id_] = ForeignMemory(
            id=id_,
            content=text,
            created_at=self.notes.time(message.at, where, "the time of a message"),
            source=self.notes.text(message.name, where, "name") or self._source,
            session=session,
            position=self._positions[session],
            origin=_ORIGINS[role],
            metadata=plain_mapping({"role": role, "conversation": title}),
        )
        self._positions[session] += 1

    def result(self, path: Path) -> Foreign:
        """Return what was taken; see `Notes.result`."""
        if self._left_out:
            told = "; ".join(f"{what}: {count:,}" for what, count in sorted(self._left_out.items()))
            # Where nothing was taken in, what was left out is the reason.
            (self.notes.notice if self._memories else self.notes.add)(self._file, f"left out: {told}")
        return self.notes.result(path, "conversations", self._memories.values())


def is_export(key: str, value: object) -> bool:
    """Return whether JSON is an export of conversations, each of which has its messages under that key."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping) and key in value[0]


def is_messages(value: object) -> bool:
    """Return whether JSON is a message, a conversation of messages, or a list of either."""
    one = next(iter(value), None) if isinstance(value, list) else value
    messages = one.get("messages") if isinstance(one, Mapping) else None
    for each in (one, *(messages if isinstance(messages, list) else ())):
        inner = each.get("message") if isinstance(each, Mapping) else None
        message = inner if isinstance(inner, Mapping) else each
        if isinstance(message, Mapping) and isinstance(message.get("role"), str) and "content" in message:
            return True
    return False


def read_chatgpt(path: Path) -> Foreign:
    """Read ChatGPT's export. Of a conversation that was tried again, the branch that was left open last is read."""
    talk = _Talk(path.name, "chatgpt")
    for where, conversation, mapping in _conversations(path, CHATGPT, dict, talk.notes):
        branch = _branch(mapping, conversation.get("current_node"))
        messages = sum(isinstance(node, Mapping) and isinstance(node.get("message"), dict) for node in mapping.values())
        if messages > len(branch):
            talk.leave_out("messages of abandoned branches", messages - len(branch))
        session = talk.notes.text(first_of(conversation, ("id", "conversation_id")) or where, where, "id")
        for message in branch:
            author, content, metadata = message.get("author"), message.get("content"), message.get("metadata")
            role = author.get("role") if isinstance(author, Mapping) else None
            is_hidden = isinstance(metadata, Mapping) and metadata.get("is_visually_hidden_from_conversation") is True
            is_text = isinstance(content, Mapping) and content.get("content_type") in _TEXT_MESSAGES
            # A model's message to a tool is no answer to the person.
            if role in _ROLES and (is_hidden or not is_text or message.get("recipient") not in (None, "", "all")):
                talk.leave_out("thoughts, tool calls and hidden messages")
                continue
            parts = content.get("parts") if isinstance(content, Mapping) else None
            one = _Message(role, parts, message.get("id"), message.get("create_time"))
            talk.add(one, session, where, conversation.get("title"))
    return talk.result(path)


def read_claude(path: Path) -> Foreign:
    """Read Claude's export."""
    talk = _Talk(path.name, "claude")
    for where, conversation, messages in _conversations(path, CLAUDE, list, talk.notes):
        session = talk.notes.text(conversation.get("uuid") or where, where, "uuid")
        for message in messages:
            if not isinstance(message, Mapping):
                talk.leave_out("entries without a role")
                continue
            for name in ("attachments", "files"):
                beside = message.get(name)
                if isinstance(beside, list) and beside:
                    talk.leave_out("attached files", len(beside))
            content = message.get("content")
            content = content if isinstance(content, list) and content else message.get("text")
            one = _Message(message.get("sender"), content, message.get("uuid"), message.get("created_at"))
            talk.add(one, session, where, conversation.get("name"))
    return talk.result(path)


def read_messages(path: Path) -> Foreign:
    """Read messages with a role and a content: JSON Lines, or JSON, of messages or of conversations that hold them."""
    talk = _Talk(path.name, "chat")
    text = read_text(path)
    value, fault = load_json(text)
    values = value if isinstance(value, list) else [value]
    lines = json_lines(path.name, text, talk.notes) if fault else objects(values, f"{path.name}:entry", talk.notes)
    for where, line in lines:
        if line.get("isMeta") is True:
            talk.leave_out("entries without a role")
            continue
        inner = line.get("message")
        message = inner if isinstance(inner, Mapping) else line
        messages = message.get("messages")
        session = first_of(line, _SESSIONS)
        if isinstance(messages, list):
            whole = talk.notes.text(session or first_of(line, _IDS) or where, where, "id")
            for each in messages:
                if isinstance(each, Mapping):
                    talk.add(_message(each, line, first_of(each, _IDS)), whole, where)
        else:
            # In a transcript of Claude Code the pieces of one message share its id, and each line has its own.
            id_ = first_of(line, _IDS) if message is line else first_of(line, ("uuid",)) or first_of(message, _IDS)
            talk.add(_message(message, line, id_), talk.notes.text(session or path.name, where, "session"), where)
    return talk.result(path)


def _message(message: Mapping[str, object], line: Mapping[str, object], id_: object) -> _Message:
    at = first_of(message, _TIMES) or first_of(line, _TIMES)
    return _Message(message.get("role"), message.get("content"), id_, at, message.get("name"))


def _conversations(path: Path, key: str, kind: type, notes: Notes) -> Iterator[tuple[str, Mapping[str, object], Any]]:
    """Yield the conversations of a file with their places and with what each has its messages in, of that kind."""
    value, fault = load_json(read_text(path))
    if fault or not isinstance(value, list):
        notes.add(path.name, fault or "is not a list of conversations")
        return
    for number, each in enumerate(value, 1):
        where = f"{path.name}:conversation {number}"
        messages = each.get(key) if isinstance(each, Mapping) else None
        if isinstance(messages, kind):
            yield where, each, messages
        else:
            notes.add(where, f"has no {key} and was skipped")


def _branch(mapping: Mapping[str, object], last: object) -> list[Mapping[str, object]]:
    """Return the messages from the root to a node, or to the node that came last where none is named."""
    if not isinstance(last, str) or last not in mapping:
        last = next(reversed(list(mapping)), None)
    found: list[Mapping[str, object]] = []
    seen = set()
    while isinstance(last, str) and last not in seen:
        seen.add(last)
        node = mapping.get(last)
        if not isinstance(node, Mapping):
            break
        message = node.get("message")
        if isinstance(message, Mapping):
            found.append(message)
        last = node.get("parent")
    return found[::-1]
