"""What carries messages to an MCP server and brings its answers back, and what can go wrong on the way. It opens none.

A message is a JSON-RPC object. A failure says whether the server may have done what it was asked: only then is it
dangerous to ask again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from commonplace.errors import ProviderError

LONGEST_ANSWER: Final = 8 * 1024 * 1024
"""In bytes; what Graphiti answers holds no embeddings."""


class UnansweredError(ProviderError):
    """Look before asking again: the server may have done what it was asked."""


class SessionEndedError(ProviderError):
    """Open a new session: the server knows this one no longer, and did nothing."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when to wait, by a clock that only goes forward."""

    at: float
    clock: Callable[[], float]

    @property
    def left_s(self) -> float:
        """How many seconds are left, 0 or more."""
        return max(0.0, self.at - self.clock())


class Transport(Protocol):
    """One way to one server."""

    def ask(self, message: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """Send a request and return the answer with its id.

        Raises:
            ProviderError: it was not sent, or was refused.
            SessionEndedError: the server knows this session no longer.
            UnansweredError: no answer came, or none that can be read.
        """
        ...

    def tell(self, message: Mapping[str, Any], deadline: Deadline) -> None:
        """Send a notification, which nobody answers."""
        ...

    def agree(self, version: str) -> None:
        """Take note of the protocol version that both sides speak from now on."""
        ...

    def close(self) -> None:
        """Give everything back; calling twice is harmless."""
        ...


def encoded(message: Mapping[str, Any]) -> bytes:
    """Return a message as bytes; a lone surrogate, which UTF-8 cannot hold, as the escape that JSON has."""
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()


def is_answer_to(value: object, id_: object) -> bool:
    """Tell whether a message is the answer to a request."""
    return isinstance(value, dict) and value.get("id") == id_ and ("result" in value or "error" in value)
