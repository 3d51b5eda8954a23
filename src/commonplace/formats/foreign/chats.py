"""Read conversations: exports of ChatGPT and Claude, and chat messages as JSON or JSON Lines.

Each message that a person or a model wrote is a memory with its conversation as session and its place there. Messages
have the form of the chat APIs (`role`, `content`); in Claude Code's transcripts they are under `message`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from commonplace.dataclasses import dataclass
from commonplace.formats.foreign.reader import (
    Foreign,
    ForeignMemory,
    Notes,
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


_Kind = TypeVar("_Kind", dict[str, object], list[object])


@dataclass(frozen=True, slots=True)
class _Message:
    """A message as a file has it; `role` and `content` are its values, unchecked."""

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

    def add(self, messages: Iterable[_Message], session: str, where: str, metadata: Mapping[str, object]) -> None:
        """Take the messages of one conversation, oldest first."""
        for message in messages:
            role = str(message.role).lower() if isinstance(message.role, str) else ""
            if role not in _ORIGINS:
                self.leave_out(f"messages of the role {role[:40]!r}" if role else "entries without a role")
                continue
            text = self.notes.text(self._text(message.content), where, "a message").strip()
            if not text:
                self.leave_out("messages without text")
                continue
            id_ = self.notes.text(message.id, where, "id")
            known = self._memories.get(id_)
            if known is not None and (known.session, known.origin, known.content) == (session, _ORIGINS[role], text):
                self.leave_out("messages that came twice")
                continue
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
                metadata=plain_mapping({"role": role, **metadata}),
            )
            self._positions[session] += 1

    def result(self, path: Path) -> Foreign:
        """Return what was taken; see `Notes.result`."""
        told = [f"{what}: {count:,}" for what, count in sorted(self._left_out.items())]
        if told:
            # Where nothing was taken in, what was left out is the reason.
            (self.notes.tell if self._memories else self.notes.add)(self._file, f"left out: {'; '.join(told)}")
        memories = tuple(self._memories.values())
        return self.notes.result(path, "conversations", memories)

    def _text(self, content: object) -> object:
        """Return the text of a message's content: a text, or a list of parts of which some are texts."""
        if not isinstance(content, list):
            return content if isinstance(content, str) else None
        texts = []
        for part in content:
            text = part.get("text") if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS else part
            if isinstance(text, str):
                texts.append(text)
            else:
                self.leave_out("parts other than text (images, tool calls)")
        return "\n\n".join(text for text in texts if text.strip())


def is_export(key: str, value: object) -> bool:
    """Return whether JSON is an export of conversations, each of which has its messages under that key."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping) and key in value[0]


def is_messages(value: object) -> bool:
    """Return whether JSON is a message, a conversation of messages, or a list of either."""
    one = next(iter(value), None) if isinstance(value, list) else value
    if not isinstance(one, Mapping):
        return False
    messages = one.get("messages")
    return _is_message(one) or (isinstance(messages, list) and any(map(_is_message, messages)))


def read_chatgpt(path: Path) -> Foreign:
    """Read ChatGPT's export. Of a conversation that was tried again, the branch that was left open last is read."""
    talk = _Talk(path.name, "chatgpt")
    for where, conversation, mapping in _conversations(path, CHATGPT, dict, talk.notes):
        branch = _branch(mapping, conversation.get("current_node"))
        messages = sum(isinstance(node, Mapping) and isinstance(node.get("message"), dict) for node in mapping.values())
        if messages > len(branch):
            talk.leave_out("messages of abandoned branches", messages - len(branch))
        session = talk.notes.text(_first(conversation, ("id", "conversation_id")) or where, where, "id")
        talk.add(_of_chatgpt(branch, talk), session, where, {"conversation": conversation.get("title")})
    return talk.result(path)


def read_claude(path: Path) -> Foreign:
    """Read Claude's export."""
    talk = _Talk(path.name, "claude")
    for where, conversation, messages in _conversations(path, CLAUDE, list, talk.notes):
        session = talk.notes.text(conversation.get("uuid") or where, where, "uuid")
        talk.add(_of_claude(messages, talk), session, where, {"conversation": conversation.get("name")})
    return talk.result(path)


def read_messages(path: Path) -> Foreign:
    """Read messages with a role and a content: JSON Lines, or JSON, of messages or of conversations that hold them."""
    talk = _Talk(path.name, "chat")
    for where, line in _lines(path, talk.notes):
        inner = line.get("message")
        message = inner if isinstance(inner, Mapping) else line
        if line.get("isMeta") is True:
            talk.leave_out("entries without a role")
            continue
        messages = message.get("messages")
        session = _first(line, _SESSIONS)
        if isinstance(messages, list):
            whole = talk.notes.text(session or _first(line, _IDS) or where, where, "id")
            entries = [each for each in messages if isinstance(each, Mapping)]
            talk.add([_message(each, line, _first(each, _IDS)) for each in entries], whole, where, {})
        else:
            # In a transcript of Claude Code the pieces of one message share its id, and each line has its own.
            id_ = _first(line, _IDS) if message is line else _first(line, ("uuid",)) or _first(message, _IDS)
            session = talk.notes.text(session or path.name, where, "session")
            talk.add([_message(message, line, id_)], session, where, {})
    return talk.result(path)


def _is_message(value: object) -> bool:
    if isinstance(value, Mapping) and isinstance(value.get("message"), Mapping):
        value = value["message"]
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and "content" in value


def _conversations(
    path: Path, key: str, kind: type[_Kind], notes: Notes
) -> Iterator[tuple[str, Mapping[str, object], _Kind]]:
    """Yield the conversations of a file with their places and with what each has its messages in."""
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


def _of_chatgpt(branch: Iterable[Mapping[str, object]], talk: _Talk) -> Iterator[_Message]:
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
        yield _Message(role, parts, message.get("id"), message.get("create_time"))


def _of_claude(messages: Iterable[object], talk: _Talk) -> Iterator[_Message]:
    for message in messages:
        if not isinstance(message, Mapping):
            talk.leave_out("entries without a role")
            continue
        for name in ("attachments", "files"):
            beside = message.get(name)
            if isinstance(beside, list) and beside:
                talk.leave_out("attached files", len(beside))
        content = message.get("content")
        yield _Message(
            message.get("sender"),
            content if isinstance(content, list) and content else message.get("text"),
            message.get("uuid"),
            message.get("created_at"),
        )


def _lines(path: Path, notes: Notes) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the entries of a file with their places: of JSON Lines, or of one JSON value."""
    text = read_text(path)
    value, fault = load_json(text)
    if fault:
        yield from json_lines(path.name, text, notes)
        return
    yield from objects(value if isinstance(value, list) else [value], f"{path.name}:entry", notes)


def _message(message: Mapping[str, object], line: Mapping[str, object], id_: object) -> _Message:
    return _Message(
        message.get("role"),
        message.get("content"),
        id_,
        _first(message, _TIMES) or _first(line, _TIMES),
        message.get("name"),
    )


def _first(values: Mapping[str, object], names: Iterable[str]) -> object:
    return next((values[name] for name in names if values.get(name)), None)
