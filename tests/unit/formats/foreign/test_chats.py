"""Conversations of ChatGPT, Claude, chat APIs and Claude Code, whole and broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import UsageError
from commonplace.formats.foreign import chats
from commonplace.formats.foreign.reader import ForeignData


def node(id_: str, parent: str | None, role: str, *parts: object, **more: Any) -> dict[str, Any]:
    message = {
        "id": id_,
        "author": {"role": role},
        "create_time": 1772355600.5,
        "content": {"content_type": more.pop("content_type", "text"), "parts": list(parts)},
        **more,
    }
    return {"id": id_, "message": message, "parent": parent, "children": []}


CHATGPT: list[dict[str, Any]] = [
    {
        "title": "Coffee",
        "id": "c1",
        "current_node": "m4",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
            "s": node("s", "root", "system", ""),
            "m1": node(
                "m1", "s", "user", "Which grinder?", {"asset_pointer": "file://x"}, content_type="multimodal_text"
            ),
            "m2": node("m2", "m1", "assistant", "First answer."),
            "m3": node("m3", "m1", "assistant", "Second answer."),
            "t": node("t", "m3", "assistant", "search()", recipient="browser"),
            "m4": node("m4", "t", "user", "Thanks, the second."),
        },
    }
]


TRANSCRIPT = (
    '{"type": "user", "sessionId": "s", "uuid": "1", "message": {"role": "user", "content": "A"}}\n'
    '{"type": "assistant", "sessionId": "s", "uuid": "2", "message": {"role": "assistant", "id": "m",'
    ' "content": [{"type": "tool_use"}, {"type": "text", "text": "B"}]}}\n'
)


def written(tmp_path: Path, value: object, name: str = "conversations.json") -> Path:
    file = tmp_path / name
    file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return file


def turns(read: ForeignData) -> list[tuple[str, str, int, str]]:
    return [(each.content, each.session, each.position, each.origin) for each in read.memories]


def test_chatgpt_s_open_branch_is_read_in_order(tmp_path: Path) -> None:
    """An answer that was made again stands in the file too; what the conversation went on with is what was said."""
    read = chats.read_chatgpt(written(tmp_path, CHATGPT))
    assert read.problems == ()
    assert turns(read) == [
        ("Which grinder?", "c1", 0, "user"),
        ("Second answer.", "c1", 1, "agent"),
        ("Thanks, the second.", "c1", 2, "user"),
    ]
    assert read.memories[0].id == "m1"
    assert read.memories[0].created_at == 1772355600.5
    assert read.memories[0].metadata == {"role": "user", "conversation": "Coffee"}
    [notice] = read.notices
    assert "messages of abandoned branches: 1" in notice.reason
    assert "parts other than text (images, tool calls): 1" in notice.reason
    assert "thoughts, tool calls and hidden messages: 1" in notice.reason
    assert "messages of the role 'system': 1" in notice.reason


def test_a_mapping_that_goes_round_in_circles_ends(tmp_path: Path) -> None:
    """A damaged export must not hold up the import for ever."""
    mapping = {"a": node("a", "b", "user", "A"), "b": node("b", "a", "user", "B")}
    read = chats.read_chatgpt(written(tmp_path, [{"id": "c", "mapping": mapping}]))
    assert [each.content for each in read.memories] == ["A", "B"]


def test_claude_s_conversations_are_read(tmp_path: Path) -> None:
    """The text stands in the parts of the content, in older exports beside them."""
    messages = [
        {"uuid": "1", "sender": "human", "text": "old", "content": [], "created_at": "2026-03-01T09:00:00Z"},
        {
            "uuid": "2",
            "sender": "assistant",
            "text": "",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "An answer."}],
            "attachments": [{"file_name": "a.pdf"}],
        },
    ]
    read = chats.read_claude(written(tmp_path, [{"uuid": "c", "name": "Talk", "chat_messages": messages}]))
    assert turns(read) == [("old", "c", 0, "user"), ("An answer.", "c", 1, "agent")]
    assert read.memories[0].created_at == 1772355600.0
    assert "attached files: 1" in read.notices[0].reason


@pytest.mark.parametrize(
    "value",
    [
        '{"role": "user", "content": "A", "thread_id": "s"}\n{"role": "assistant", "content": "B", "thread_id": "s"}\n',
        [{"role": "user", "content": "A", "session": "s"}, {"role": "assistant", "content": "B", "session": "s"}],
        {"id": "s", "messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]},
        '{"id": "s", "messages": [{"role": "user", "content": "A"}, {"role": "model", "content": "B"}]}\n',
        TRANSCRIPT,
    ],
)
def test_messages_are_read_in_every_usual_form(tmp_path: Path, value: object) -> None:
    """JSON Lines, a list, conversations with messages, and Claude Code's transcripts say the same."""
    read = chats.read_messages(written(tmp_path, value, "talk.jsonl"))
    assert read.problems == ()
    assert turns(read) == [("A", "s", 0, "user"), ("B", "s", 1, "agent")]


def test_messages_without_ids_get_the_same_ones_at_every_reading(tmp_path: Path) -> None:
    """Importing a log that has grown must add what is new alone."""
    one = '{"role": "user", "content": "A"}\n{"role": "user", "content": "A"}\n'
    before = chats.read_messages(written(tmp_path, one, "talk.jsonl"))
    after = chats.read_messages(written(tmp_path, one + '{"role": "user", "content": "B"}\n', "talk.jsonl"))
    assert [each.id for each in after.memories[:2]] == [each.id for each in before.memories]
    assert len({each.id for each in after.memories}) == 3


def test_what_is_no_message_is_counted_and_a_damaged_line_named(tmp_path: Path) -> None:
    """A person must learn what an import left behind."""
    lines = '{"role": "user", "content": "A"}\n{"role": "tool", "content": "x"}\n{"type": "summary"}\n{"role": \n7\n'
    read = chats.read_messages(written(tmp_path, lines, "talk.jsonl"))
    assert turns(read) == [("A", "talk.jsonl", 0, "user")]
    assert [each.path for each in read.problems] == ["talk.jsonl:4", "talk.jsonl:5"]
    assert read.notices[0].reason == "left out: entries without a role: 1; messages of the role 'tool': 1"


@pytest.mark.parametrize("value", ['{"role": "system", "content": "A"}\n', '{"role": "user", "content": []}\n', "7"])
def test_a_file_without_messages_is_refused(tmp_path: Path, value: str) -> None:
    """An import that brings nothing must not look like a success."""
    with pytest.raises(UsageError, match=r"nothing in .* could be read as conversations"):
        chats.read_messages(written(tmp_path, value, "talk.jsonl"))


@pytest.mark.parametrize("name", ["id", "uuid"])
def test_each_message_of_a_conversation_has_an_id_of_its_own(tmp_path: Path, name: str) -> None:
    """The conversation's id is that of none of its messages, and two conversations may both count from 1."""
    messages = [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]
    counted = [{"id": number, **each} for number, each in enumerate(messages, 1)]
    talks = [{name: "s", "messages": messages}, {name: "t", "messages": counted}, {name: "u", "messages": counted}]
    read = chats.read_messages(written(tmp_path, talks, "talk.json"))
    assert turns(read) == [
        (text, session, position, origin)
        for session in "stu"
        for position, (text, origin) in enumerate([("A", "user"), ("B", "agent")])
    ]
    assert len({each.id for each in read.memories}) == 6
    assert read.notices == ()


def test_two_messages_with_one_id_are_both_kept_unless_they_say_the_same(tmp_path: Path) -> None:
    """A reply may bear the id of what it answers; a line that was written twice is one message."""
    line = {"id": "1", "role": "user", "content": "A"}
    read = chats.read_messages(
        written(tmp_path, [line, {**line, "role": "assistant", "content": "B"}, line], "talk.json")
    )
    assert [each.content for each in read.memories] == ["A", "B"]
    assert read.notices[0].reason == "left out: messages that came twice: 1"


@pytest.mark.parametrize("odd", [["text"], {"a": 1}, 7, None])
def test_values_of_a_kind_that_nobody_expects_leave_out_one_message_alone(tmp_path: Path, odd: object) -> None:
    """A damaged or foreign file must not end the import with an error of Python's."""
    mapping = {
        "a": {"message": {"author": {"role": odd}, "content": {"content_type": "text", "parts": ["A"]}}},
        "b": {**node("b", "a", "user", "B", content_type=odd), "parent": "a"},
        "c": node("c", "b", "user", {"type": odd, "text": "no"}, "C"),
    }
    read = chats.read_chatgpt(written(tmp_path, [{"id": "s", "mapping": mapping}]))
    assert turns(read) == [("C", "s", 0, "user")]
    parts = [{"type": odd, "text": "no"}, {"type": "text", "text": "D"}]
    read = chats.read_messages(written(tmp_path, [{"role": "user", "content": parts}]))
    assert [each.content for each in read.memories] == ["D"]
