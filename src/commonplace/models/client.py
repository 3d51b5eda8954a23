"""A JSON client for remote models: retries, budget, concurrency, and errors as `ProviderError`."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass, field
from commonplace.errors import ProviderError
from commonplace.settings.schema import ModelSettings

if TYPE_CHECKING:
    from commonplace.models.http import HttpAnswer
    from commonplace.models.providers import Endpoint
_log = logging.getLogger(__name__)

_TRANSIENT: Final = frozenset({408, 425, 429})
_PERMANENT: Final = ("insufficient_quota", "billing")
"""Prefixes of a server's error code or type for which a retry is useless. The error's message is not checked."""
_MAX_SHOWN: Final = 300
_MIN_KEY_LENGTH: Final = 12
"""Minimum length of a secret key: servers that accept any key get a word such as `none`, which occurs in texts."""

MIB: Final = 1024 * 1024
FIRST_WAIT_S: Final = 0.5
MAX_WAIT_S: Final = 8.0
MAX_ASKED_WAIT_S: Final = 30.0
"""Maximum seconds to wait if a server asks for it; a longer wait is raised as an error."""


class Budget:
    """Counts a run's calls and tokens, and refuses calls beyond the limits. Safe for threads; 0 is no limit.

    Attributes:
        calls: requests sent, retries included.
        tokens: sent and received, as counted by the servers.
    """

    def __init__(self, max_calls: int = 0, max_tokens: int = 0) -> None:
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self.calls = self.tokens = 0

    def take_call(self) -> None:
        """Count a request, before it is sent.

        Raises:
            ProviderError: the run has spent its calls or its tokens; nothing was sent.
        """
        with self._lock:
            for unit, number, limit in (
                ("calls", self.calls, self._max_calls),
                ("tokens", self.tokens, self._max_tokens),
            ):
                if limit and number >= limit:
                    raise ProviderError(
                        f"this run has spent {number} {unit} on models, the limit is {limit}",
                        remedy=f"raise models.max_{unit} (0 is no limit), or ask for less",
                    )
            self.calls += 1

    def count_tokens(self, tokens: int) -> None:
        with self._lock:
            self.tokens += tokens


def backoff(attempt: int, share: float) -> float:
    """Return how many seconds to wait before the n-th retry, from 1; `share` is random, 0–1.

    Exponential backoff with equal jitter: half of the step is fixed and half random, so that clients do not retry
    simultaneously and none retries at once.
    """
    step = min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 16))
    return step / 2 + step / 2 * share


def retry_after(header: str, now: float) -> float:
    """Return the seconds that a Retry-After header asks for, as a number or a date; 0 if it is neither."""
    text = header.strip()
    try:
        seconds = float(text)
    except ValueError:
        from email.utils import parsedate_to_datetime

        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - now)
        except (ValueError, OverflowError):
            return 0.0
    # Only Python parses `nan` and `inf` as numbers.
    return seconds if 0 <= seconds < float("inf") else 0.0


@dataclass(frozen=True, slots=True)
class Timing:
    """Sources of time and randomness, which tests replace."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    random: Callable[[], float] = lambda: os.urandom(1)[0] / 255


@dataclass(frozen=True, slots=True, repr=False)
class Access:
    """The address of a provider's server and the credentials for it.

    Attributes:
        key: the secret, "" for none; it appears in no message or repr, but in one of the headers.
        variable: the environment variable of the key, for messages.
    """

    provider: str
    address: Endpoint
    key: str = ""
    variable: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Access({self.provider}, {self.address}, {'with' if self.key else 'without'} a key)"


class _TransientError(ProviderError):
    """A transient error: retry after at least `min_wait_s` seconds."""

    min_wait_s = 0.0


class JsonClient:
    """Posts JSON to one server and returns its JSON answer. Safe for threads."""

    def __init__(
        self,
        access: Access,
        settings: ModelSettings | None = None,
        budget: Budget | None = None,
        timing: Timing | None = None,
        max_bytes: int = 16 * MIB,
    ) -> None:
        """Create a client of one server.

        Args:
            budget: shared by several clients; None creates one from the settings.
            max_bytes: maximum size of one answer.
        """
        self.access = access
        self.settings = limits = settings or ModelSettings()
        self.budget = budget or Budget(limits.max_calls, limits.max_tokens)
        self._timing = timing or Timing()
        self._max_bytes = max_bytes
        self._slots = threading.BoundedSemaphore(limits.concurrency)

    def deadline(self, total_s: float | None = None) -> float:
        """Return when a call that starts now must end, by this client's clock; the settings may shorten `total_s`."""
        limit_s = self.settings.total_timeout_s
        return self._timing.clock() + (limit_s if total_s is None else min(limit_s, total_s))

    def scrubbed(self, value: Any) -> Any:
        """Return a JSON value with the key removed from its texts: a server may echo the request."""
        if isinstance(value, str):
            return without_key(value, self.access.key)
        if isinstance(value, list):
            return [self.scrubbed(inner) for inner in value]
        if isinstance(value, dict):
            return {without_key(name, self.access.key): self.scrubbed(inner) for name, inner in value.items()}
        return value

    def post(self, path: str, document: Mapping[str, Any], *, deadline: float | None = None) -> dict[str, Any]:
        """Send a document and return the JSON object of the answer, with retries for transient errors.

        Args:
            deadline: when it must end, retries and waits included; None is as late as the settings allow.

        Raises:
            ProviderError: no answer, a refusal (see `status`), an answer that is no JSON object, or the run's budget
                is spent.
        """
        # A lone surrogate, which UTF-8 cannot encode, is sent as a JSON escape.
        body = json.dumps(document, allow_nan=False).encode()
        deadline = self.deadline() if deadline is None else deadline
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._attempt(path, body, deadline)
            except _TransientError as error:
                wait = max(error.min_wait_s, backoff(attempt, self._timing.random()))
                is_over = attempt > self.settings.retries or self._timing.clock() + wait >= deadline
                if is_over or error.min_wait_s > MAX_ASKED_WAIT_S:
                    raise
                _log.info("%s: trying again in %.1f s", error, wait)
            self._timing.sleep(wait)

    def _attempt(self, path: str, body: bytes, deadline: float) -> dict[str, Any]:
        from ssl import SSLCertVerificationError

        from commonplace.models.http import FAULTS, Timeouts, send

        clock, concurrency = self._timing.clock, self.settings.concurrency
        # One slot per attempt: a call that waits for its retry blocks no other.
        if not self._slots.acquire(timeout=max(0.0, deadline - clock())):
            raise self._error(f"was asked by {concurrency} others for too long", remedy="try again")
        try:
            self.budget.take_call()
            headers = {"User-Agent": "commonplace", "Content-Type": "application/json", **self.access.headers}
            timeouts = Timeouts(self.settings.timeout_s, deadline, clock)
            return self._read(send(self.access.address, path, headers, body, timeouts, self._max_bytes))
        except SSLCertVerificationError as fault:
            message = f"has a certificate that is not trusted ({fault.verify_message})"
            raise self._error(message, remedy="name your certificates in SSL_CERT_FILE") from fault
        except TimeoutError as fault:
            remedy = "try again, or raise models.timeout_s"
            raise self._error("did not answer in time", remedy=remedy, passes=True) from fault
        except FAULTS as fault:
            message = f"could not be reached ({getattr(fault, 'strerror', None) or type(fault).__name__})"
            raise self._error(message, remedy="check the network and the address", passes=True) from fault
        finally:
            self._slots.release()

    def _read(self, answer: HttpAnswer) -> dict[str, Any]:
        status = answer.status
        try:
            document = json.loads(answer.body)
        except (ValueError, RecursionError):
            document = None
        message = _message(document, self.access.key)
        if status != 200:
            details = document.get("error") if isinstance(document, dict) else None
            codes = [details.get(name) for name in ("code", "type")] if isinstance(details, dict) else []
            is_permanent = any(isinstance(code, str) and code.startswith(_PERMANENT) for code in codes)
            error = self._error(
                f"answered {status}{f': {message}' if message else ''}",
                status=status,
                remedy=self._help(answer),
                passes=(status in _TRANSIENT or status >= 500) and not is_permanent,
            )
            if isinstance(error, _TransientError):
                error.min_wait_s = retry_after(answer.headers.get("retry-after", ""), self._timing.now())
            raise error
        if not isinstance(document, dict):
            raise self._error("answered with no JSON object", status=200, remedy="check the address")
        if document.get("error"):  # some gateways report errors with status 200
            raise self._error(f"answered with an error: {message}", status=200, remedy="check the request")
        return document

    def _help(self, answer: HttpAnswer) -> str:
        status, variable = answer.status, self.access.variable
        if status in (401, 403):
            return f"check the key in {variable}" if variable else "check the address"
        if status == 404:
            return "check the model's name and the address"
        if 300 <= status < 400:
            return "name the address that it leads to; redirects are not followed"
        if status == 429:
            wait = answer.headers.get("retry-after", "")
            return f"try again in {wait} s" if wait.isdigit() else "try again later, or check the account's limits"
        return "try again later" if status >= 500 else "check the request"

    def _error(self, problem: str, *, remedy: str, status: int | None = None, passes: bool = False) -> ProviderError:
        kind = _TransientError if passes else ProviderError
        return kind(f"{self.access.provider} at {self.access.address} {problem}", status=status, remedy=remedy)


def batches_of(sizes: Sequence[int], max_items: int, max_size: int) -> list[tuple[int, int]]:
    """Return the (start, end) of each request's texts, within the limits on their number and total size."""
    batches, start, total = [], 0, 0
    for index, size in enumerate(sizes):
        if index > start and (index - start >= max_items or total + size > max_size):
            batches.append((start, index))
            start, total = index, 0
        total += size
    return [*batches, (start, len(sizes))] if sizes else []


def without_key(text: str, key: str) -> str:
    """Return a text without the key, unless the key is too short to be secret."""
    return text.replace(key, "[key]") if len(key) >= _MIN_KEY_LENGTH else text


def _message(document: object, key: str) -> str:
    """Return a server's error message on one line, from the form of OpenAI and Anthropic, Ollama or FastAPI.

    The key is removed before the text is cut, since half a key would not be found.
    """
    from commonplace.redaction import redact

    value = document
    for name in ("error", "message"):
        if isinstance(value, dict) and name in value:
            value = value[name]
    if isinstance(value, dict):
        value = value.get("detail", "")
    text = value if isinstance(value, str) else ""
    text = (text.replace(key, "[key]") if key else text)[: 10 * _MAX_SHOWN]
    line = "".join(character if character.isprintable() else " " for character in text)
    return redact(line).text[:_MAX_SHOWN]
