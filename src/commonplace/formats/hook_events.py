"""Read the event that an agent's client writes to a hook, and write what the hook answers. It knows no memory.

The events and their fields are those of Claude Code and Codex; `BeforeAgent` is Gemini CLI's name for a prompt. Clients
take the answer to a session's start or a prompt as plain text, and any other only as JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from commonplace.errors import UsageError

TEXT_EVENTS: Final = ("SessionStart", "UserPromptSubmit")
JSON_EVENTS: Final = ("SubagentStart", "BeforeAgent")
EVENTS: Final = (*TEXT_EVENTS, *JSON_EVENTS)
"""Those that take a context."""
_FIELDS: Final = ("hook_event_name", "prompt", "cwd", "agent_type")


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What happened in a client.

    Attributes:
        name: one of `EVENTS`, or "" where the client names none.
        prompt: what is to be done; "" where nobody has said so yet.
        directory: in which the client works, "" where it does not say.
        agent: of what type the agent is that begins or asks, "" for the client's own.
    """

    name: str = ""
    prompt: str = ""
    directory: str = ""
    agent: str = ""

    @property
    def takes_text(self) -> bool:
        return not self.name or self.name in TEXT_EVENTS


def parse_event(data: bytes) -> HookEvent:
    """Return the event that is written as one JSON object.

    Raises:
        UsageError: it is none, or one that takes no context.
    """
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"standard input is no JSON: {error}", remedy="pass the event as the client wrote it"
        ) from error
    fields = [event.get(name) or "" for name in _FIELDS] if isinstance(event, dict) else [None]
    if not all(isinstance(field, str) for field in fields):
        raise UsageError("standard input is no hook event", remedy='pass an object such as {"prompt": "…"}')
    found = HookEvent(*fields)
    if found.name and found.name not in EVENTS:
        raise UsageError(
            f"the event {found.name!r:.80} takes no context", remedy=f"register the hook for {', '.join(EVENTS)}"
        )
    return found


def answer(event: HookEvent, context: str) -> dict[str, Any]:
    """Return the JSON that a hook prints so that the client adds a context to the conversation."""
    return {"hookSpecificOutput": {"hookEventName": event.name or TEXT_EVENTS[-1], "additionalContext": context}}
