"""What a server offers: tools, resources and prompts as plain values, each with the function that serves it.

It knows the words by which the protocol describes them, and nothing of how they are asked for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from commonplace.errors import ConfigError
from commonplace.mcp.eras import ClientInfo
from commonplace.mcp.schema import Schema, check_schema

_VARIABLE = re.compile(r"\{(\w+)\}")


class Reporter(Protocol):
    """Sends progress to the client, if it asked for it."""

    def __call__(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the request is."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler may know of the request it serves.

    Attributes:
        protocol_version: the version of the protocol that the request is answered by.
        client: what the client says it is, or None; for logs only.
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


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """Hints for the client's user; each tool says them all, as the protocol's defaults assume the worst."""

    read_only: bool
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False


ToolHandler: TypeAlias = Callable[[Mapping[str, Any], Context], ToolResult]


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a model may call. The handler gets arguments that fit `input_schema`, with defaults not filled in.

    Raises:
        ConfigError: a schema says what is not checked here, or is not about an object.
    """

    name: str
    title: str
    description: str
    input_schema: Schema
    handler: ToolHandler
    output_schema: Schema | None = None
    annotations: ToolAnnotations | None = None

    def __post_init__(self) -> None:
        for schema in (self.input_schema, self.output_schema):
            if schema is None:
                continue
            check_schema(schema, self.name)
            if schema.get("type") != "object":
                raise ConfigError("the arguments and the result of a tool are objects", path=self.name)


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a resource: a text, or bytes."""

    data: str | bytes
    mime_type: str


ResourceHandler: TypeAlias = Callable[[str, Mapping[str, str], Context], Contents]


@dataclass(frozen=True, slots=True)
class Resource:
    """Something a client may read. The handler gets the address and no variables; what is not there, it raises."""

    uri: str
    name: str
    title: str
    description: str
    handler: ResourceHandler
    mime_type: str = "text/markdown"
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceTemplate:
    """Resources whose address has variables: `notes://{day}`, each of one path segment, percent-decoded."""

    uri_template: str
    name: str
    title: str
    description: str
    handler: ResourceHandler
    mime_type: str = "text/markdown"

    def variables_of(self, uri: str) -> Mapping[str, str] | None:
        """Return the variables of an address, or None where it is none of the template's."""
        from urllib.parse import unquote

        pieces = _VARIABLE.split(self.uri_template)
        pattern = "".join(
            f"(?P<{piece}>[^/?#]+)" if place % 2 else re.escape(piece) for place, piece in enumerate(pieces)
        )
        found = re.fullmatch(pattern, uri)
        return {name: unquote(value) for name, value in found.groupdict().items()} if found else None


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt; all are strings."""

    name: str
    description: str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    text: str
    role: Literal["user", "assistant"] = "user"


PromptHandler: TypeAlias = Callable[[Mapping[str, str], Context], Sequence[PromptMessage]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text that a person asks for by name. The handler gets the arguments, the required ones among them."""

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

    Raises:
        ConfigError: two tools, or two prompts, have one name.
    """

    info: ServerInfo
    tools: tuple[Tool, ...] = ()
    resources: Callable[[], Sequence[Resource]] | None = None
    templates: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()

    def __post_init__(self) -> None:
        for kind, names in (
            ("tools", [tool.name for tool in self.tools]),
            ("prompts", [one.name for one in self.prompts]),
        ):
            if len(set(names)) < len(names):
                raise ConfigError("two have one name", path=kind)
