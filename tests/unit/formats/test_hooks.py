"""The events of clients' hooks, as their documentation shows them, and what a hook answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commonplace.errors import UsageError
from commonplace.formats import hooks
from commonplace.formats.hooks import HookEvent, answer, has_content, parse_event
from commonplace.text.words import word_lists

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
        (
            SUBAGENT,
            HookEvent("SubagentStart", "", "/home/user/my-project", "Explore", "abc123", "agent-abc123"),
            False,
        ),
        (PROMPT, HookEvent("UserPromptSubmit", "Write a factorial", "/home/user/my-project", "", "abc123"), True),
        (SESSION, HookEvent("SessionStart", "", "/home/user/my-project", "", "abc123", "", "startup"), True),
        (
            SESSION | {"agent_type": "critic", "source": "compact"},
            HookEvent("SessionStart", "", "/home/user/my-project", "critic", "abc123", "", "compact"),
            True,
        ),
        ({"hook_event_name": "PreCompact", "trigger": "auto"}, HookEvent("PreCompact"), False),
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
        (b"", "standard input is not JSON"),
        (b"\x89PNG\r\n\x1a\n\x00", "standard input is not JSON"),
        (b"[" * 100_000, "standard input is not JSON"),
        (b"7", "standard input is no hook event"),
        (b"[]", "standard input is no hook event"),
        (b'{"prompt": 7}', "standard input is no hook event"),
        (b'{"agent_type": ["critic"]}', "standard input is no hook event"),
        (b'{"session_id": 7}', "standard input is no hook event"),
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


@pytest.mark.parametrize(
    ("event", "prompts", "loses"),
    [
        (HookEvent("UserPromptSubmit"), True, False),
        (HookEvent("", "tea"), True, False),
        (HookEvent(), False, False),
        (HookEvent("SessionStart", source="startup"), False, False),
        (HookEvent("SessionStart", source="resume"), False, False),
        (HookEvent("SessionStart", source="compact"), False, True),
        (HookEvent("SessionStart", source="clear"), False, True),
        (HookEvent("PreCompact"), False, True),
        (HookEvent("PreCompress"), False, True),
    ],
)
def test_what_was_injected_is_lost_when_a_conversation_is_compacted(
    event: HookEvent, *, prompts: bool, loses: bool
) -> None:
    assert (event.is_prompt, event.loses_context) == (prompts, loses)


def test_agents_of_one_session_read_conversations_of_their_own() -> None:
    assert HookEvent(session="s", agent_id="a").conversation != HookEvent(session="s").conversation != ""
    assert HookEvent(agent_id="a").conversation == ""


CONTENTLESS = (
    "yes",
    "y",
    "ok",
    "OK, do it",
    "ok, do it!",
    "thanks, continue",
    "Thanks!",
    "thank you very much",
    "commit this please",
    "commit and push",
    "Please commit and push to main.",
    "go on",
    "go ahead",
    "looks good to me",
    "LGTM, ship it",
    "sounds good, let's do that",
    "no",
    "no, not that one",
    "try again",
    "run it again",
    "fix it",
    "can you fix that please?",
    "that's right",
    "perfect 👍",
    "👍",
    "...",
    "2",
    "option 2 please",
    "keep going",
    "what do you think?",
    "it still doesn't work",
    "undo that",
    "Great job, Claude. Now open a PR",
    "/compact",
    "ja, mach weiter",
    "Danke, passt so. Bitte committen!",
    "oui, vas-y",
    "d'accord, c'est parfait, merci",
    "sí, por favor, continúa",
    "好的，继续",
)
REAL = (
    "Who is my boss?",
    "who am I",
    "When do we deploy?",
    "where do I live",
    "how do we run the tests?",
    "run the tests",
    "Fix the login bug",
    "commit with a conventional prefix",
    "push to staging-2",
    "yes, but use Postgres",
    "Suggest a restaurant for our anniversary dinner.",
    "allergies?",
    "Write a factorial",
    "why is the build slow",
    "what did we decide about billing",
    "What do you know about me?",
    "do you remember my sister's name",
    "continue with the migration",
    "thanks, now refactor auth.ts",
    "no, the other database",
    "TypeError: 'NoneType' object is not iterable",
    "src/login.py",
    "auth",
    "levothyroxine dose",
    "Am I working nights or days?",
    "pick a gift for Tom",
    "ok deploy",
    "use tabs",
    "bump numpy to 2.1",
    "revert #412",
    "Wer ist meine Chefin?",
    "Wann fahren wir nach Bristol?",
    "Bitte den Kalender prüfen",
    "où est la clé du bureau ?",
    "qui est mon médecin",
    "¿Dónde vivo?",
    "¿cuál es la contraseña del wifi?",
    "我的老板是谁",
    "会議はいつですか",
    "내 생일이 언제야?",
)


def test_there_are_forty_of_each_kind() -> None:
    assert (len(set(CONTENTLESS)), len(set(REAL))) == (40, 40)


@pytest.mark.parametrize("prompt", CONTENTLESS)
def test_a_prompt_without_content_has_none(prompt: str) -> None:
    assert not has_content(prompt)


@pytest.mark.parametrize("prompt", REAL)
def test_a_prompt_that_asks_for_something_has_content(prompt: str) -> None:
    assert has_content(prompt)


@pytest.mark.parametrize(
    ("prompt", "has"), [("", False), (" \n", False), ("yes " * 500_000, False), ("yes " * 500_000 + "tea", True)]
)
def test_a_prompt_of_any_length_is_judged(prompt: str, *, has: bool) -> None:
    assert has_content(prompt) is has


@pytest.mark.parametrize("typed", ["CONTINÚA", "continua", "Plaît", "plait"])
def test_accents_and_capitals_make_no_difference(typed: str) -> None:
    assert not has_content(typed)


def test_every_word_of_the_table_is_without_content() -> None:
    """A word with a hyphen or an apostrophe in it would never be met."""
    for words in word_lists(Path(hooks.__file__).with_name("empty_prompts.txt")).values():
        assert not [word for word in words if not word.isalpha() or has_content(word)]
