"""The events of clients' hooks, as their documentation shows them, and what a hook answers."""

from __future__ import annotations

import json

import pytest

from commonplace.errors import UsageError
from commonplace.formats.hook_events import HookEvent, answer, parse_event

COMMON = {
    "session_id": "abc123",
    "transcript_path": "/home/user/.claude/projects/x.jsonl",
    "cwd": "/home/user/my-project",
}
SUBAGENT = {**COMMON, "hook_event_name": "SubagentStart", "agent_id": "agent-abc123", "agent_type": "Explore"}
PROMPT = {**COMMON, "permission_mode": "default", "hook_event_name": "UserPromptSubmit", "prompt": "Write a factorial"}
SESSION = {**COMMON, "hook_event_name": "SessionStart", "source": "startup", "model": "claude-sonnet-4-5-20250929"}


@pytest.mark.parametrize(
    ("event", "found", "takes_text"),
    [
        (SUBAGENT, HookEvent("SubagentStart", "", "/home/user/my-project", "Explore"), False),
        (PROMPT, HookEvent("UserPromptSubmit", "Write a factorial", "/home/user/my-project"), True),
        (SESSION, HookEvent("SessionStart", "", "/home/user/my-project"), True),
        (SESSION | {"agent_type": "critic"}, HookEvent("SessionStart", "", "/home/user/my-project", "critic"), True),
        ({"hook_event_name": "BeforeAgent", "prompt": "Hi", "timestamp": "t"}, HookEvent("BeforeAgent", "Hi"), False),
        ({"prompt": "Hi"}, HookEvent("", "Hi"), True),
        ({"prompt": None, "cwd": None, "agent_type": None}, HookEvent(), True),
    ],
)
def test_an_event_tells_what_is_asked_and_by_whom(
    event: dict[str, object], found: HookEvent, *, takes_text: bool
) -> None:
    assert parse_event(json.dumps(event).encode()) == found
    assert found.takes_text == takes_text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "standard input is no JSON"),
        (b"\x89PNG\r\n\x1a\n\x00", "standard input is no JSON"),
        (b"[" * 100_000, "standard input is no JSON"),
        (b"7", "standard input is no hook event"),
        (b"[]", "standard input is no hook event"),
        (b'{"prompt": 7}', "standard input is no hook event"),
        (b'{"agent_type": ["critic"]}', "standard input is no hook event"),
        (b'{"hook_event_name": "Stop"}', "the event 'Stop' takes no context"),
    ],
)
def test_what_is_no_event_that_takes_a_context_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_event(data)


def test_an_answer_names_its_event() -> None:
    """Clients refuse one that does not."""
    told = {"hookEventName": "SubagentStart", "additionalContext": "Tea."}
    assert answer(HookEvent("SubagentStart"), "Tea.") == {"hookSpecificOutput": told}
    assert answer(HookEvent(), "Tea.")["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
