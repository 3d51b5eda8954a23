"""A JSON client for remote models: retries, budget, concurrency, and errors as `ProviderError`."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import ProviderError
from commonplace.settings.schema import ModelSettings

if TYPE_CHECKING:
    from commonplace.models.http import Answer, Request
    from commonplace.models.providers import Address, Proxy
_log = logging.getLogger(__name__)

_AGAIN: Final = frozenset({408, 425, 429})
_HOPELESS: Final = ("insufficient_quota", "billing")
"""How a server's code or type of an error begins where waiting mends nothing. Its message may speak of anything."""
_MAX_SHOWN: Final = 300
_MIN_KEY_LENGTH: Final = 12
"""What is shorter keeps nobody out: it is a word such as `none`, for servers that want any, and may be in a text."""


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
        return self.input_tokens + self.output_tokens


class Budget:
    """Counts what a run spends, `usage`, and refuses what goes beyond. Safe for threads; 0 is no limit."""

    def __init__(self, max_calls: int = 0, max_tokens: int = 0) -> None:
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self.usage = Usage()

    def take_call(self) -> None:
        """Count a request that is about to be sent.

        Raises:
            ProviderError: the run has spent its calls or its tokens; nothing was sent.
        """
        with self._lock:
            usage = self.usage
            spent = (("calls", usage.calls, self._max_calls), ("tokens", usage.tokens, self._max_tokens))
            for unit, count, limit in spent:
                if limit and count >= limit:
                    raise ProviderError(
                        f"this run has spent {count} {unit} on models, the limit is {limit}",
                        remedy=f"raise models.max_{unit} (0 is no limit), or ask for less",
                    )
            self.usage = replace(usage, calls=usage.calls + 1)

    def count_tokens(self, input_tokens: int, output_tokens: int) -> None:
        """Count what an answer cost."""
        with self._lock:
            usage = self.usage
            self.usage = Usage(usage.calls, usage.input_tokens + input_tokens, usage.output_tokens + output_tokens)


def wait_before(attempt: int, share: float) -> float:
    """Return how many seconds to wait before the n-th retry, from 1; `share` is random, 0–1.

    Exponential backoff with equal jitter: half of the step is fixed, the other half random, so that many clients
    do not come back together and none comes back at once.
    """
    step = min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 16))
    return step / 2 + step / 2 * share


def asked_wait(header: str, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or as a date; None where it says neither."""
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


def _chance() -> float:
    # Imported late: every process that opens a store loads this module, and few wait for a server.
    from random import random

    return random()  # noqa: S311 - not a secret


@dataclass(frozen=True, slots=True)
class Waiting:
    """Time and chance, so that tests need neither."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    random: Callable[[], float] = _chance


@dataclass(frozen=True, slots=True, repr=False)
class Access:
    """Where a provider's server is and how it knows us.

    Attributes:
        key: the secret, "" for none; it is in no message and no representation.
        key_header: the header that carries it, and what stands before it there.
        variable: where the key comes from, for messages.
        headers: further ones.
    """

    provider: str
    address: Address
    key: str = ""
    key_header: tuple[str, str] = ("Authorization", "Bearer ")
    variable: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    proxy: Proxy | None = None

    def __repr__(self) -> str:
        return f"Access({self.provider}, {self.address}, {'with' if self.key else 'without'} a key)"


class JsonClient:
    """Posts JSON to one server and returns the JSON it answers with. Safe for threads."""

    def __init__(
        self,
        access: Access,
        limits: Limits | None = None,
        budget: Budget | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        self.access = access
        self.limits = limits or Limits()
        self.budget = budget or Budget()
        self._waiting = waiting or Waiting()
        self._slots = threading.BoundedSemaphore(self.limits.concurrency)

    def __repr__(self) -> str:
        return f"JsonClient({self.access!r})"

    def deadline(self, total_s: float | None = None) -> float:
        """Return when a call that begins now has to end, by this client's clock; the limits may allow less."""
        limit_s = self.limits.total_s
        return self._waiting.clock() + (limit_s if total_s is None else min(limit_s, total_s))

    def scrubbed(self, value: Any) -> Any:
        """Return a value of JSON whose texts do not hold the key: a server may send back what it was sent."""
        if isinstance(value, str):
            return without_key(value, self.access.key)
        if isinstance(value, list):
            return [self.scrubbed(inner) for inner in value]
        if isinstance(value, dict):
            return {without_key(name, self.access.key): self.scrubbed(inner) for name, inner in value.items()}
        return value

    def post(self, path: str, document: Mapping[str, Any], *, deadline: float | None = None) -> dict[str, Any]:
        """Send a document and return the object in the answer, after the retries that are worth making.

        Args:
            deadline: until when it may take, retries and waits included; None is as long as the limits allow.

        Raises:
            ProviderError: no answer, one that says no (`status` tells), or one that is no JSON object; or the budget
                of the run is spent.
        """
        request = self._request(path, document)
        deadline = self.deadline() if deadline is None else deadline
        attempt = 0
        while True:
            outcome = self._attempt(request, deadline)
            if isinstance(outcome, dict):
                return outcome
            attempt += 1
            wait = self._wait(outcome, attempt, deadline)
            if wait is None:
                raise outcome.error
            _log.info("%s: trying again in %.1f s", outcome.error, wait)
            self._waiting.sleep(wait)

    def _wait(self, failure: _Failure, attempt: int, deadline: float) -> float | None:
        """Return the seconds to wait before the next attempt; None where there is to be none."""
        asked_s = failure.asked_s or 0.0
        if not failure.is_passing or attempt > self.limits.retries or asked_s > MAX_ASKED_WAIT_S:
            return None
        wait = max(asked_s, wait_before(attempt, self._waiting.random()))
        return None if self._waiting.clock() + wait >= deadline else wait

    def _request(self, path: str, document: Mapping[str, Any]) -> Request:
        from commonplace.models.http import Request

        access = self.access
        headers = {"User-Agent": "commonplace", **access.headers}
        if access.key:
            name, before = access.key_header
            headers[name] = before + access.key
        # A lone surrogate, which Python's texts can hold and UTF-8 cannot, goes out as the escape that JSON has.
        body = json.dumps(document, allow_nan=False).encode()
        return Request(access.address, path, headers, body, access.proxy)

    def _attempt(self, request: Request, deadline: float) -> dict[str, Any] | _Failure:
        from commonplace.models.http import FAULTS, Patience, send

        limits, clock = self.limits, self._waiting.clock
        if not self._slots.acquire(timeout=max(0.0, deadline - clock())):
            return _Failure(self._error(f"was asked by {limits.concurrency} others for too long", remedy="try again"))
        try:
            self.budget.take_call()
            patience = Patience(limits.connect_s, limits.read_s, deadline, clock)
            return self._read(send(request, patience, limits.max_bytes))
        except FAULTS as fault:
            return self._fault(fault)
        finally:
            self._slots.release()

    def _fault(self, fault: Exception) -> _Failure:
        import ssl

        if isinstance(fault, TimeoutError):
            message, remedy = "did not answer in time", "try again, or raise models.timeout_s"
        elif isinstance(fault, ssl.SSLCertVerificationError):
            message = f"has a certificate that is not trusted ({fault.verify_message})"
            remedy = "name your certificates in SSL_CERT_FILE"
        else:
            told = getattr(fault, "strerror", None) or type(fault).__name__
            message, remedy = f"could not be reached ({told})", "check the network and the address"
        error = self._error(message, remedy=remedy)
        error.__cause__ = fault
        return _Failure(error, is_passing=not isinstance(fault, ssl.SSLCertVerificationError))

    def _read(self, answer: Answer) -> dict[str, Any] | _Failure:
        status, document = answer.status, _json(answer.body)
        message = _message(document, self.access.key)
        if status == 200 and not isinstance(document, dict):
            return _Failure(self._error("answered with no JSON object", status=200, remedy="check the address"))
        if status == 200 and document.get("error"):
            # Some gateways say so with the status of success.
            return _Failure(self._error(f"answered with an error: {message}", status=200, remedy="check the request"))
        if status == 200:
            return dict(document)
        what = f"answered {status}{f': {message}' if message else ''}"
        error = self._error(what, status=status, remedy=self._help(answer))
        is_passing = (status in _AGAIN or status >= 500) and not _is_hopeless(document)
        return _Failure(error, is_passing, asked_wait(answer.headers.get("retry-after", ""), self._waiting.now()))

    def _help(self, answer: Answer) -> str:
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

    def _error(self, what: str, *, status: int | None = None, remedy: str = "") -> ProviderError:
        return ProviderError(f"{self.access.provider} at {self.access.address} {what}", status=status, remedy=remedy)


@dataclass(frozen=True, slots=True)
class _Failure:
    """An attempt without a result. `asked_s`: how long the server asked to wait."""

    error: ProviderError
    is_passing: bool = False
    asked_s: float | None = None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _is_hopeless(document: object) -> bool:
    error = document.get("error") if isinstance(document, dict) else None
    told = [error.get(name) for name in ("code", "type")] if isinstance(error, dict) else []
    return any(isinstance(each, str) and each.startswith(_HOPELESS) for each in told)


def batches_of(sizes: Sequence[int], most: int, most_size: int) -> list[tuple[int, int]]:
    """Return where each request's texts begin and end: so many at most, and of so much size together."""
    found, start, total = [], 0, 0
    for place, size in enumerate(sizes):
        if place > start and (place - start >= most or total + size > most_size):
            found.append((start, place))
            start, total = place, 0
        total += size
    return [*found, (start, len(sizes))] if sizes else []


def without_key(text: str, key: str) -> str:
    """Return a text without a key, unless that is too short to be one."""
    return text.replace(key, "[key]") if len(key) >= _MIN_KEY_LENGTH else text


def _message(document: object, key: str) -> str:
    """Return what a server says went wrong, on one line: OpenAI's and Anthropic's form, Ollama's, FastAPI's.

    The key is taken out before anything is cut, as half of it would not be found.
    """
    from commonplace.redaction import redact

    found = document
    for name in ("error", "message"):
        if isinstance(found, dict) and name in found:
            found = found[name]
    if isinstance(found, dict):
        found = found.get("detail", "")
    text = found if isinstance(found, str) else ""
    text = (text.replace(key, "[key]") if key else text)[: 10 * _MAX_SHOWN]
    line = "".join(character if character.isprintable() else " " for character in text)
    return redact(line).text[:_MAX_SHOWN]
