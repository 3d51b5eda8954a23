"""Tools, resources and prompts of a server as plain values with their handlers, and the terms of a session.

Up to 2025-11-25 a client sends `initialize` and the connection speaks the version agreed on. From 2026-07-28 every
request carries its version and its client in `params._meta`, and nothing is inferred from an earlier one. A client
shows which it speaks by what it sends, so both are served side by side on one connection
(modelcontextprotocol.io/specification/2026-07-28/basic/versioning). This module knows no method but `initialize`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from commonplace.dataclasses import dataclass, field
from commonplace.formats.jsonrpc import INVALID_PARAMS, ProtocolError
from commonplace.mcp.schema import Schema

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
    """What a client says it is: the source of what it stores without one, never to be trusted or acted on."""

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


def _client(info: Any) -> ClientInfo | None:
    if not isinstance(info, dict):
        return None
    name, version = info.get("name"), info.get("version")
    return ClientInfo(name, version) if isinstance(name, str) and isinstance(version, str) else None


Reporter: TypeAlias = Callable[[float, float | None, str | None], None]
"""Sends progress to the client, if it asked for it: how much is done, of how much, and what it is."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler may know of the request it serves.

    Attributes:
        protocol_version: the version of the protocol that the request is answered by.
        client: what the client says it is, or None.
        cancellation: set when the client no longer wants the answer; what the handler returns then is dropped.
        reporter: where `progress` goes.
    """

    protocol_version: str
    client: ClientInfo | None
    cancellation: threading.Event
    reporter: Reporter

    @property
    def is_cancelled(self) -> bool:
        """Tell whether the client no longer wants the answer."""
        return self.cancellation.is_set()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the request is; `done` must grow from call to call, others are dropped."""
        self.reporter(done, total, message)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool found.

    Attributes:
        structured: the result as a JSON object that fits the tool's output schema, if it has one.
        text: the same for a model to read; None for `structured` as JSON.
        is_error: whether the tool could not do what was asked; `text` then says what to do next.
    """

    structured: Mapping[str, Any] | None = None
    text: str | None = None
    is_error: bool = False


ToolHandler: TypeAlias = Callable[[Mapping[str, Any], Context], ToolResult]


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a model may call. The handler gets arguments that fit `input_schema`, with defaults not filled in.

    Attributes:
        hints: for the client's user, those that differ from the protocol's defaults, which assume the worst.
    """

    name: str
    title: str
    description: str
    input_schema: Schema
    handler: ToolHandler
    output_schema: Schema | None = None
    hints: Mapping[str, bool] = field(default_factory=dict)


ResourceHandler: TypeAlias = Callable[[str, Context], str]


@dataclass(frozen=True, slots=True)
class Resource:
    """A text that a client may read. The handler gets the address; what is not there, it raises."""

    uri: str
    name: str
    title: str
    description: str
    handler: ResourceHandler
    mime_type: str = "text/markdown"


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt; all are strings."""

    name: str
    description: str
    is_required: bool = False


PromptHandler: TypeAlias = Callable[[Mapping[str, str], Context], str]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text that a person asks for by name. The handler makes it of the arguments, the required ones among them."""

    name: str
    title: str
    description: str
    handler: PromptHandler
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What the server says it is, and how a model should use it."""

    name: str
    version: str
    title: str
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Registry:
    """All that a server offers. What has none of a kind does not declare the kind.

    Attributes:
        resources: returns what can be read now; asked anew for every list and every reading. None for no resources.
    """

    info: ServerInfo
    tools: tuple[Tool, ...] = ()
    resources: Callable[[], Sequence[Resource]] | None = None
    prompts: tuple[Prompt, ...] = ()
