"""Access to the page: opening its link turns the link's token into a cookie."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

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
"""Sent with whatever a server that has the page answers."""


class PageSession:
    """The secrets of one page, which live as long as its process, and whether it may change anything.

    Attributes:
        cookie: its name, another one for each process: browsers do not tell ports apart.
        csrf: stands in the page, where no other site can read it; requests that are more than a look carry it.
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
        """Whether a link has the token of this page."""
        return _same(token, self._token)

    def is_visitor(self, cookies: Mapping[str, str]) -> bool:
        """Whether a request comes from a browser that has opened the link."""
        return _same(cookies.get(self.cookie, ""), self.secret)

    def is_own(self, csrf: str) -> bool:
        """Whether a request comes from a page of ours."""
        return _same(csrf, self.csrf)


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(), known.encode())
