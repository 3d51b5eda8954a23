"""Parse the events of agent clients' hooks and write the answers.

The events and their fields are those of Claude Code and Codex; `BeforeAgent` is Gemini CLI's name for a prompt,
`PreCompress` that for `PreCompact`. Clients take the answer to a session's start or a prompt as plain text, and any
other only as JSON.
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
"""Those that take a context."""
PROMPTS: Final = ("UserPromptSubmit", "BeforeAgent")
COMPACTIONS: Final = ("PreCompact", "PreCompress")
"""Those that say that a conversation is about to lose what was injected into it."""
_LOSING_SOURCES: Final = ("compact", "clear")
"""Of the start of a session: what was in the conversation before is gone."""
_FIELDS: Final = ("hook_event_name", "prompt", "cwd", "agent_type", "session_id", "agent_id", "source")

_ASKING: Final = frozenset({"who", "whom", "whose", "where", "when", "which", "how"})
"""Common as they are, these ask for something where more is said: "who am I", but not "how so"."""
_MIN_WORDS: Final = 3
_MAX_DIGITS: Final = 2
_WORD: Final = re.compile(r"[^\W_]+")
_SLASH_COMMAND: Final = re.compile(r"\s*/[\w:.-]+\s*")


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What happened in a client.

    Attributes:
        name: one of `EVENTS`, or "" if the client names none.
        prompt: the user's prompt; "" before the first one.
        directory: in which the client works, "" if it does not say.
        agent: of what type the agent is that begins or asks, "" for the client's own.
        session: of the client, "" if it does not say. An agent that is one of several in it has an `agent_id`, for
            it reads a conversation of its own.
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
        """The name of the conversation that the answer goes into, "" if the client names no session."""
        return f"{self.session}\n{self.agent_id}" if self.session else ""

    @property
    def is_prompt(self) -> bool:
        """Whether there is a prompt, even one of white space only."""
        return bool(self.prompt) or self.name in PROMPTS

    @property
    def is_compaction(self) -> bool:
        """Whether nothing is asked for: what was injected is about to be lost."""
        return self.name in COMPACTIONS

    @property
    def loses_context(self) -> bool:
        """Whether what was injected into the conversation before is not in it any more."""
        return self.is_compaction or self.source in _LOSING_SOURCES

    @property
    def takes_text(self) -> bool:
        return not self.name or self.name in TEXT_EVENTS


def parse_event(data: bytes) -> HookEvent:
    """Return the event that is written as one JSON object.

    Raises:
        UsageError: it is no event, or one that takes no context and is no compaction.
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
    found = HookEvent(*fields)
    if found.name and found.name not in (*EVENTS, *COMPACTIONS):
        raise UsageError(
            f"the event {found.name!r:.80} takes no context",
            remedy=f"register the hook for {', '.join((*EVENTS, *COMPACTIONS))}",
        )
    return found


def answer(event: HookEvent, context: str) -> dict[str, Any]:
    """Return the JSON that a hook prints so that the client adds a context to the conversation."""
    return {"hookSpecificOutput": {"hookEventName": event.name or TEXT_EVENTS[-1], "additionalContext": context}}


def has_content(prompt: str) -> bool:
    """Return whether a prompt says anything that a memory could be found by: "ok, commit this please" does not.

    It does as soon as one word is neither a stop word nor in empty_prompts.txt, nor the number of an option. A
    command of the client itself, such as `/compact`, does not.
    """
    if _SLASH_COMMAND.fullmatch(prompt):
        return False
    asks = False
    for number, found in enumerate(_WORD.finditer(prompt), start=1):
        word = _folded(found[0])
        asks = asks or word in _ASKING
        if asks and number >= _MIN_WORDS:
            return True
        if word not in _without_content() and not (word.isdecimal() and len(word) <= _MAX_DIGITS):
            return True
    return False


def _folded(word: str) -> str:
    """Return a word in small letters without accents, as people type it."""
    bare = (each for each in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(each))
    return unicodedata.normalize("NFC", "".join(bare))


@cache
def _without_content() -> frozenset[str]:
    lists = word_lists(Path(__file__).with_name("empty_prompts.txt"))
    return STOP_WORDS.union(_folded(word) for words in lists.values() for word in words)
