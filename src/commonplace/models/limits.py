"""Spending limits of a run on remote models, and its retry delays."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commonplace.errors import ProviderError

if TYPE_CHECKING:
    from commonplace.settings.schema import ModelSettings

MIB: Final = 1024 * 1024
FIRST_WAIT_S: Final = 0.5
MAX_WAIT_S: Final = 8.0
MAX_ASKED_WAIT_S: Final = 30.0
"""A server that asks for a longer wait than this is told to the caller instead of waited for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How a remote model is asked.

    Attributes:
        connect_s, read_s: seconds for a connection, and without a byte.
        total_s: seconds for one call, with its retries and waits.
        retries: how often a request is sent again after the first time.
        concurrency: requests under way at the same time.
        max_bytes: of one answer.
    """

    connect_s: float = 10.0
    read_s: float = 60.0
    total_s: float = 120.0
    retries: int = 3
    concurrency: int = 4
    max_bytes: int = 16 * MIB


def limits_of(settings: ModelSettings) -> Limits:
    """Return the limits that the settings state."""
    return Limits(
        connect_s=min(Limits().connect_s, settings.timeout_s),
        read_s=settings.timeout_s,
        total_s=settings.total_timeout_s,
        retries=settings.retries,
        concurrency=settings.concurrency,
    )


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent: requests sent, retries included, and the tokens that the servers counted."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens


class Budget:
    """Counts what a run spends, and refuses what goes beyond. Safe for threads; 0 is no limit."""

    def __init__(self, max_calls: int = 0, max_tokens: int = 0) -> None:
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._usage = Usage()

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        return self._usage

    def take_call(self) -> None:
        """Count a request that is about to be sent.

        Raises:
            ProviderError: the run has spent its calls or its tokens; nothing was sent.
        """
        with self._lock:
            usage = self._usage
            if self._max_calls and usage.calls >= self._max_calls:
                raise _exhausted(usage.calls, "calls", "max_calls", self._max_calls)
            if self._max_tokens and usage.tokens >= self._max_tokens:
                raise _exhausted(usage.tokens, "tokens", "max_tokens", self._max_tokens)
            self._usage = Usage(usage.calls + 1, usage.input_tokens, usage.output_tokens)

    def count_tokens(self, input_tokens: int, output_tokens: int) -> None:
        """Count what an answer cost."""
        with self._lock:
            usage = self._usage
            self._usage = Usage(usage.calls, usage.input_tokens + input_tokens, usage.output_tokens + output_tokens)


def _exhausted(spent: int, unit: str, key: str, limit: int) -> ProviderError:
    return ProviderError(
        f"this run has spent {spent} {unit} on models, the limit is {limit}",
        remedy=f"raise models.{key} (0 is no limit), or ask for less",
    )


def wait_before(attempt: int, share: float) -> float:
    """Return how many seconds to wait before the n-th retry, from 1.

    Exponential backoff with equal jitter: half of the step is fixed, the other half random, so that many clients
    do not come back together and none comes back at once.

    Args:
        share: random, 0–1.
    """
    step = min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 16))
    return step / 2 + step / 2 * share


def asked_wait(header: str, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or as a date; None where it says neither.

    Args:
        now: seconds since the epoch, which a date is compared with.
    """
    text = header.strip()
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        # `nan` and `inf` are numbers to Python alone.
        return seconds if 0 <= seconds < float("inf") else None
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
