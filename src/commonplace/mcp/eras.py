"""The two eras of the protocol: a session that a handshake opens, and requests that each say all there is to know.

Up to 2025-11-25 a client sends `initialize` and the connection speaks the version agreed on. From 2026-07-28 every
request carries its version and its client in `params._meta`, and nothing is inferred from an earlier one. A client
shows which it speaks by what it sends, so both are served side by side on one connection
(modelcontextprotocol.io/specification/2026-07-28/basic/versioning). This module knows no method but `initialize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commonplace.formats.jsonrpc import INVALID_PARAMS, ProtocolError

SESSION_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS = ("2026-07-28",)
BATCH_VERSIONS = ("2025-03-26",)

UNSUPPORTED_VERSION = -32022
SESSION_RESOURCE_NOT_FOUND = -32002

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = f"{_PREFIX}protocolVersion"
CAPABILITIES_KEY = f"{_PREFIX}clientCapabilities"
CLIENT_KEY = f"{_PREFIX}clientInfo"
SERVER_KEY = f"{_PREFIX}serverInfo"


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """What a client says it is; for logs, never to be trusted or acted on."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What a request is answered by: the version, and who asks where that is known."""

    version: str
    client: ClientInfo | None

    @property
    def is_stateless(self) -> bool:
        """Tell whether the request says all there is to know."""
        return self.version in STATELESS_VERSIONS

    @property
    def has_batches(self) -> bool:
        """Tell whether several messages may come in one line."""
        return self.version in BATCH_VERSIONS


def opened_session(params: Mapping[str, Any]) -> Terms:
    """Return what an `initialize` request agrees on: its version, or our newest for one that we do not speak.

    Raises:
        ProtocolError: it names no version.
    """
    asked = params.get("protocolVersion")
    if not isinstance(asked, str):
        raise ProtocolError(INVALID_PARAMS, "initialize names its protocolVersion, a string")
    version = asked if asked in SESSION_VERSIONS else SESSION_VERSIONS[-1]
    return Terms(version, _client(params.get("clientInfo")))


def is_stateless(params: Mapping[str, Any]) -> bool:
    """Tell whether a request claims the stateless era: only there `_meta` may hold a protocol version."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def stateless_terms(params: Mapping[str, Any]) -> Terms:
    """Return what a stateless request says of itself.

    Raises:
        ProtocolError: a required field is missing or malformed, or the version is none of ours.
    """
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        raise ProtocolError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"{VERSION_KEY} is a string")
    if version not in STATELESS_VERSIONS:
        data = {"supported": list(STATELESS_VERSIONS), "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data=data)
    if not isinstance(meta[CAPABILITIES_KEY], dict):
        raise ProtocolError(INVALID_PARAMS, f"{CAPABILITIES_KEY} is an object")
    return Terms(version, _client(meta.get(CLIENT_KEY)))


def progress_token(params: Mapping[str, Any]) -> int | str | None:
    """Return the token by which a request asks for progress, the same in both eras."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None


def _client(told: Any) -> ClientInfo | None:
    if not isinstance(told, dict):
        return None
    name, version = told.get("name"), told.get("version")
    return ClientInfo(name, version) if isinstance(name, str) and isinstance(version, str) else None
