"""Access control: tokens with their namespaces and scopes, visitors of the page, and foreign hosts and origins."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from starlette.datastructures import Headers
from starlette.requests import Request

from commonplace.dataclasses import dataclass
from commonplace.server.problems import Problem
from commonplace.types import SCOPES

if TYPE_CHECKING:
    from commonplace.engine import Engine

CSRF_HEADER: Final = "X-CSRF-Token"
ENTRANCE: Final = "/enter"
_SECRET_BYTES, _NAME_BYTES = 32, 4

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Headers of every response of a server that serves the page."""
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="commonplace"'}
_REMEDY: Final = "make one with `commonplace token create`"
_PAGE: Final = "page"
_LINK: Final = "open the link that `commonplace ui` printed"
_SAFE: Final = ("GET", "HEAD")
_EDITING: Final = ("read", "write", "forget")


class PageSession:
    """The secrets of one page, which live as long as its process, and whether editing is switched on.

    Attributes:
        cookie: name of the session cookie, different for each process because browsers share cookies between ports.
        csrf: token embedded in the page, where no other site can read it; requests that change something carry it.
    """

    def __init__(self) -> None:
        self._token, self.secret, self.csrf = (secrets.token_urlsafe(_SECRET_BYTES) for _ in range(3))
        self.cookie = f"commonplace_{secrets.token_hex(_NAME_BYTES)}"
        self.is_editing = False

    @property
    def path(self) -> str:
        """The path of the link that opens the page."""
        return f"{ENTRANCE}?{urlencode({'token': self._token})}"

    def opens(self, token: str) -> bool:
        """Return whether a token is that of this page's link."""
        return _same(token, self._token)


def _same(secret: str, expected: str) -> bool:
    return hmac.compare_digest(secret.encode(), expected.encode())


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    Attributes:
        name: id of the token, "page" for a visitor of the page, or "" without a token.
        scopes: the scopes of the token.
        namespaces: the namespaces that it can reach; None is all.
        namespace: the namespace of requests that name none.
    """

    name: str
    scopes: Collection[str]
    namespaces: Collection[str] | None
    namespace: str

    @property
    def is_visitor(self) -> bool:
        """Whether the request comes from the page, where showing a memory does not count as a use."""
        return self.name == _PAGE

    @property
    def source(self) -> str:
        """The source of memories that the caller stores without a source; "" for the page or without a token."""
        return "" if self.is_visitor or not self.name else f"token {self.name}"

    def check(self, scope: str, namespace: str) -> None:
        """Check that the caller has a scope and can reach a namespace.

        Raises:
            Problem: the caller lacks the scope or the namespace.
        """
        if self.namespaces is not None and namespace not in self.namespaces:
            message = f"this token does not reach the namespace {namespace!r:.80}"
            raise Problem(403, "forbidden-namespace", message, remedy=f"use one of {', '.join(self.namespaces)}")
        if scope not in self.scopes and self.is_visitor:
            raise Problem(403, "read-only", "the page is read-only", remedy="switch on Edit")
        if scope not in self.scopes:
            message = f"this token has no scope {scope!r}; it has {', '.join(self.scopes) or 'none'}"
            raise Problem(403, "missing-scope", message, remedy=f"{_REMEDY[:-1]} --scope {scope}`")


class AccessControl:
    """Authenticates and authorises requests. Safe for threads.

    Args:
        engine: returns the engine of the store, which has the tokens.
        hosts: accepted names in `Host`; None accepts any.
        is_local: only users of this machine can reach the server, so a store without tokens is open.
        per_minute: how many requests a token may send per minute; 0 is unlimited.
        page: the page, if it is served: its visitors need no token, everybody else does.
    """

    def __init__(
        self,
        engine: Callable[[], Engine],
        *,
        hosts: Collection[str] | None,
        is_local: bool,
        per_minute: int = 0,
        page: PageSession | None = None,
    ) -> None:
        self._engine, self._hosts, self._is_local, self._per_minute = engine, hosts, is_local, per_minute
        self.page = page
        self._lock = threading.Lock()
        self._windows: dict[str, tuple[int, int]] = {}

    def check_source(self, headers: Headers) -> None:
        """Reject requests that another site's page may have sent.

        Raises:
            Problem: the host or the origin is foreign.
        """
        host = headers.get("host", "")
        name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
        if self._hosts is not None and name.lower() not in self._hosts:
            message = f"Host is {host!r:.80}"
            raise Problem(421, "foreign-host", message, remedy="use the server's own address, or --allowed-host")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            message = f"Origin is {origin!r:.80}"
            raise Problem(403, "foreign-origin", message, remedy="send requests from the server's own pages, or none")

    def caller(self, request: Request) -> Caller:
        """Return the sender of a request.

        Raises:
            Problem: the request has no valid token, or the token has sent too many requests.
        """
        engine = self._engine()
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        if self.page is not None and not text:
            self.check_visitor(request)
            return Caller(_PAGE, _EDITING if self.page.is_editing else ("read",), None, engine.namespace)
        if not text and self._is_local and not engine.tokens.has_any():
            return Caller("", SCOPES, None, engine.namespace)
        if kind.lower() != "bearer" or not text:
            raise Problem(401, "no-token", "the request has no token", remedy=_REMEDY, headers=_CHALLENGE)
        token = engine.tokens.find(text.strip())
        if token is None:
            raise Problem(401, "unknown-token", "the token is unknown or revoked", remedy=_REMEDY, headers=_CHALLENGE)
        if engine.tokens.is_expired(token):
            message = f"the token expired at {token.expires_at}"
            raise Problem(401, "expired-token", message, remedy=_REMEDY, headers=_CHALLENGE)
        if self._per_minute:
            minute = int(time.monotonic() // 60)
            with self._lock:
                last_minute, count = self._windows.get(token.id, (minute, 0))
                count = count + 1 if last_minute == minute else 1
                self._windows[token.id] = (minute, count)
            if count > self._per_minute:
                message = f"this token has sent {self._per_minute:,} requests in this minute"
                raise Problem(429, "too-many-requests", message, remedy="wait", headers={"Retry-After": "60"})
        return Caller(token.id, token.scopes, token.namespaces, token.namespaces[0])

    def check_visitor(self, request: Request) -> None:
        """Reject browsers that have not opened the page's link, and requests that another site may have caused.

        Raises:
            Problem: the cookie, or the CSRF token of a request other than GET and HEAD, is missing or wrong.
        """
        page = self.page
        if page is None or not _same(request.cookies.get(page.cookie, ""), page.secret):
            raise Problem(401, "no-token", "this browser has not opened the page's link", remedy=_LINK)
        if request.method not in _SAFE and not _same(request.headers.get(CSRF_HEADER, ""), page.csrf):
            raise Problem(403, "no-csrf-token", f"{CSRF_HEADER} is missing or wrong", remedy="load the page again")
