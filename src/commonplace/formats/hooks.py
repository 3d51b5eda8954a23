"""Parse the hook events of agent clients and write the answers.

The events and their fields are those of Claude Code and Codex; Gemini CLI calls a prompt `BeforeAgent` and a compaction
`PreCompress`. Clients accept plain text in answer to a session's start or a prompt, and only JSON for other events.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import UsageError
from commonplace.text.languages import STOP_WORDS
from commonplace.text.words import word_lists

TEXT_EVENTS: Final = ("SessionStart", "UserPromptSubmit")
JSON_EVENTS: Final = ("SubagentStart", "BeforeAgent")
EVENTS: Final = (*TEXT_EVENTS, *JSON_EVENTS)
"""The events that accept a context as answer."""
PROMPTS: Final = ("UserPromptSubmit", "BeforeAgent")
COMPACTIONS: Final = ("PreCompact", "PreCompress")
"""The events that announce that a conversation is about to lose the injected context."""
_LOSING_SOURCES: Final = ("compact", "clear")
"""Sources of a session start after which the conversation's earlier content is gone."""
_FIELDS: Final = ("hook_event_name", "prompt", "cwd", "agent_type", "session_id", "agent_id", "source")

_QUESTION_WORDS: Final = frozenset({"who", "whom", "whose", "where", "when", "which", "how"})
"""Question words; although they are stop words, a longer prompt with one asks something: "who am I", not "how so"."""
_MIN_WORDS: Final = 3
_MAX_DIGITS: Final = 2
_WORD: Final = re.compile(r"[^\W_]+")
_SLASH_COMMAND: Final = re.compile(r"\s*/[\w:.-]+\s*")


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event in a client.

    Attributes:
        name: one of `EVENTS` or `COMPACTIONS`, or "" if the client names none.
        prompt: the user's prompt; "" before the first one.
        directory: the client's working directory, or "" if unknown.
        agent: the type of the agent that starts or asks, "" for the client's own.
        session: the client's session, or "" if unknown.
        agent_id: one of several agents in a session, each with its own conversation, or "".
        source: why a session starts, in the client's words.
    """

    name: str = ""
    prompt: str = ""
    directory: str = ""
    agent: str = ""
    session: str = ""
    agent_id: str = ""
    source: str = ""

    @property
    def conversation(self) -> str:
        """The conversation that the answer goes into, "" if the client names no session."""
        return f"{self.session}\n{self.agent_id}" if self.session else ""

    @property
    def is_prompt(self) -> bool:
        """Whether there is a prompt, even an empty one."""
        return bool(self.prompt) or self.name in PROMPTS

    @property
    def is_compaction(self) -> bool:
        """Whether the event only announces that the injected context is about to be lost."""
        return self.name in COMPACTIONS

    @property
    def loses_context(self) -> bool:
        """Whether the conversation loses the context that was injected before."""
        return self.is_compaction or self.source in _LOSING_SOURCES

    @property
    def takes_text(self) -> bool:
        return not self.name or self.name in TEXT_EVENTS


def parse_event(data: bytes) -> HookEvent:
    """Return the event in a JSON object.

    Raises:
        UsageError: it is no event, or neither one of `EVENTS` nor a compaction.
    """
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"standard input is not JSON: {error}", remedy="pass the event as the client wrote it"
        ) from error
    fields = [event.get(name) or "" for name in _FIELDS] if isinstance(event, dict) else [None]
    if not all(isinstance(field, str) for field in fields):
        raise UsageError("standard input is no hook event", remedy='pass an object such as {"prompt": "…"}')
    hook_event = HookEvent(*fields)
    if hook_event.name and hook_event.name not in (*EVENTS, *COMPACTIONS):
        raise UsageError(
            f"the event {hook_event.name!r:.80} takes no context",
            remedy=f"register the hook for {', '.join((*EVENTS, *COMPACTIONS))}",
        )
    return hook_event


def answer(event: HookEvent, context: str) -> dict[str, Any]:
    """Return the JSON that a hook prints to make the client add a context to the conversation."""
    return {"hookSpecificOutput": {"hookEventName": event.name or TEXT_EVENTS[-1], "additionalContext": context}}


def has_content(prompt: str) -> bool:
    """Return whether a prompt says anything to search memories for: "ok, commit this please" does not.

    It does if a word is neither a stop word, nor in empty_prompts.txt, nor an option's number, or if it has three words
    or more with a question word. A command of the client itself, such as `/compact`, does not.
    """
    if _SLASH_COMMAND.fullmatch(prompt):
        return False
    asks = False
    for number, match in enumerate(_WORD.finditer(prompt), start=1):
        word = _fold(match[0])
        asks = asks or word in _QUESTION_WORDS
        if asks and number >= _MIN_WORDS:
            return True
        if word not in _empty_words() and not (word.isdecimal() and len(word) <= _MAX_DIGITS):
            return True
    return False


def _fold(word: str) -> str:
    """Return a word in lower case without accents, as people type it."""
    bare = (char for char in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", "".join(bare))


@cache
def _empty_words() -> frozenset[str]:
    lists = word_lists(Path(__file__).with_name("empty_prompts.txt"))
    return STOP_WORDS.union(_fold(word) for words in lists.values() for word in words)
