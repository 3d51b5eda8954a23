"""A language model that says what it was told to say: for tests, demonstrations and dry runs. It opens nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commonplace.errors import ProviderError
from commonplace.models.contract import Generated

if TYPE_CHECKING:
    from commonplace.models.contract import Message


@dataclass(frozen=True, slots=True)
class Call:
    """What a scripted model was asked."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None
    options: Mapping[str, Any]
    total_s: float | None = None


Reply = str | Exception
Rule = Callable[[Call], Reply]


class ScriptedGenerator:
    """Answers with given replies, one after the other, or by a rule. Safe for threads.

    A reply that is an exception is raised.

    Attributes:
        calls: what was asked so far, in order.
    """

    def __init__(self, replies: Iterable[Reply] | Rule, name: str = "scripted:replies") -> None:
        """Take the replies or the rule.

        Args:
            replies: when they are used up, the next call is a ProviderError.
        """
        self._rule = replies if callable(replies) else None
        self._replies = iter(() if callable(replies) else tuple(replies))
        self._name = name
        self._lock = threading.Lock()
        self.calls: list[Call] = []

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self._name

    def generate(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        total_s: float | None = None,
    ) -> Generated:
        """Return the next reply; its tokens are counted as words.

        Raises:
            ProviderError: there is no reply left.
        """
        call = Call(tuple(messages), schema, dict(options or {}), total_s)
        with self._lock:
            self.calls.append(call)
            reply = self._rule(call) if self._rule else next(self._replies, None)
        if reply is None:
            raise ProviderError(
                f"the scripted model has no reply for call {len(self.calls)}", remedy="give it one more"
            )
        if isinstance(reply, Exception):
            raise reply
        asked = sum(len(message.content.split()) for message in messages)
        return Generated(reply, self._name, asked, len(reply.split()))
