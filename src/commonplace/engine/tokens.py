"""Access tokens of a store: who may do what on a server. Only the SHA-256 of a token is stored."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.dates.time import Moment, iso, moment_in_words, moment_of
from commonplace.engine.open import check_namespace
from commonplace.engine.runtime import Runtime
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.json_values import View
from commonplace.memory.validate import labels
from commonplace.store.schema import WHOLE_STORE
from commonplace.types import SCOPES, Note

PREFIX: Final = "cp"
_KIND: Final = "token"
_SECRET_BYTES, _ID_BYTES = 32, 6


@dataclass(frozen=True, slots=True)
class Token(View):
    """A token, without its secret.

    Attributes:
        id: its public part, by which it is revoked.
        namespaces: the namespaces that it may access, at least one; a request that names none uses the first.
        expires_at: None is never.
    """

    id: str
    namespaces: tuple[str, ...]
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made. `secret` is shown once: it is stored nowhere."""

    token: Token
    secret: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**self.token.to_dict(), "token": self.secret}


class Tokens:
    """The access tokens of a store, for all its namespaces. Safe for threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._store, self._now = runtime.store, runtime.now

    def create(
        self, namespaces: Sequence[str], scopes: Sequence[str] = ("read",), expires: Moment | None = None
    ) -> NewToken:
        """Make a token and return it with its secret, which is not stored.

        Args:
            namespaces: the namespaces that it may access; they need not exist yet.
            scopes: "read", "write", "forget" and "admin"; none includes another.
            expires: a future time: an ISO 8601 text, a datetime, seconds, or words, which mean their beginning: "next
                month" is its first day; default: never.

        Raises:
            UsageError: no namespace or scope is named, a scope is unknown, or the time is past.
        """
        names, allowed = labels("namespaces", namespaces), labels("scopes", scopes)
        if not names or not allowed:
            raise UsageError("a token needs a namespace and a scope", remedy="name at least one of each")
        for name in names:
            check_namespace(name)
        if unknown := [scope for scope in allowed if scope not in SCOPES]:
            raise UsageError(f"there is no scope {unknown[0]!r}", remedy=f"give {', '.join(SCOPES)}")
        now = self._now()
        ends = None if expires is None else moment_in_words("expires", expires, now, is_start=True)
        if ends is not None and ends <= now:
            raise UsageError(f"expires is {iso(moment_of(ends))}, which is past", remedy="give a time to come")
        id_, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        text = f"{PREFIX}_{id_}_{secret}"
        token = Token(id_, tuple(names), tuple(allowed), moment_of(now), None if ends is None else moment_of(ends))
        body = json.dumps({**token.to_dict(), "sha256": _digest(text)})
        with self._store.change_memories(WHOLE_STORE) as change:
            change.put(Note(_KIND, id_, now, body))
        return NewToken(token, text)

    def all(self) -> list[Token]:
        """Return all tokens that were not revoked, oldest first."""
        return [token for token, _ in self._read()]

    def revoke(self, id: str) -> Token:  # noqa: A002 - the name of the field
        """Revoke a token, at once and in every process; return it.

        Raises:
            NotFoundError: there is no token with that id.
        """
        token = next((token for token in self.all() if token.id == id), None)
        if token is None:
            raise NotFoundError(f"there is no token {id!r:.80}", remedy="list them with `commonplace token list`")
        with self._store.change_memories(WHOLE_STORE) as change:
            change.drop(Note, kind=_KIND, id=id)
        return token

    def find(self, text: str) -> Token | None:
        """Return the token that a client sent, even if expired, or None.

        All are compared, each in constant time.
        """
        digest = _digest(text)
        # Build the whole list: a loop that stops at the match would leak its position by the time it takes.
        return next(iter([token for token, stored in self._read() if hmac.compare_digest(digest, stored)]), None)

    def is_expired(self, token: Token) -> bool:
        """Whether a token has expired."""
        return token.expires_at is not None and token.expires_at.timestamp() <= self._now()

    def has_any(self) -> bool:
        """Whether the store has tokens, so that a server requires one."""
        return bool(self._store.notes(WHOLE_STORE, _KIND))

    def _read(self) -> list[tuple[Token, str]]:
        tokens = []
        for note in self._store.notes(WHOLE_STORE, _KIND):
            stored = json.loads(note.body)
            since, until = (
                stored[name] and datetime.fromisoformat(stored[name]) for name in ("created_at", "expires_at")
            )
            token = Token(stored["id"], tuple(stored["namespaces"]), tuple(stored["scopes"]), since, until)
            tokens.append((token, stored["sha256"]))
        return tokens


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
