"""The methods of the protocol, and the registry of tools, resources and prompts that they serve.

Up to 2025-11-25 a client sends `initialize` and the connection speaks the negotiated version. From 2026-07-28 every
request carries its version and client in `params._meta` (stateless), and nothing is inferred from an earlier request.
The form of a request shows which of the two it uses, so both are served side by side on one connection
(modelcontextprotocol.io/specification/2026-07-28/basic/versioning).

An error that a model can correct is a result with `isError`. A protocol error reports what only the client can correct,
such as an unknown tool or a malformed request (specification 2025-11-25 and later, server/tools, error handling).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from commonplace.dataclasses import dataclass, field
from commonplace.errors import CommonplaceError, NotFoundError
from commonplace.formats.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError, shorten
from commonplace.mcp.schema import Schema, integers, problems

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
class Terms:
    """The protocol version that a request is answered in, and the client that sent it.

    Attributes:
        client: the name that the client gives itself, or "". It labels the source of memories and is never trusted.
    """

    version: str
    client: str = ""

    @property
    def is_stateless(self) -> bool:
        """Return whether the request carries its own version and client, and needs no session."""
        return self.version in STATELESS_VERSIONS


def opened_session(params: Mapping[str, Any]) -> Terms:
    """Return the terms that an `initialize` request negotiates: its version, or our newest if that is unknown.

    Raises:
        ProtocolError: the request names no version.
    """
    requested_version = params.get("protocolVersion")
    if not isinstance(requested_version, str):
        raise ProtocolError(INVALID_PARAMS, "initialize names its protocolVersion, a string")
    version = requested_version if requested_version in SESSION_VERSIONS else SESSION_VERSIONS[-1]
    return Terms(version, _client(params.get("clientInfo")))


def is_stateless(params: Mapping[str, Any]) -> bool:
    """Return whether a request is stateless: only stateless requests may name a protocol version in `_meta`."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def stateless_terms(params: Mapping[str, Any]) -> Terms:
    """Return the terms that a stateless request states in `_meta`.

    Raises:
        ProtocolError: a required field is missing or malformed, or the version is not supported.
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


def terms_of(method: str, params: Mapping[str, Any], session: Terms) -> Terms:
    """Return the terms of a request: its own if it is stateless, else those of its session.

    Raises:
        ProtocolError: the request's own terms are malformed.
    """
    return stateless_terms(params) if is_stateless(params) or method == "server/discover" else session


def progress_token(params: Mapping[str, Any]) -> int | str | None:
    """Return the progress token of a request, or None; all versions name it alike."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None


def _client(info: Any) -> str:
    name = info.get("name") if isinstance(info, dict) else ""
    return name if isinstance(name, str) else ""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The request that a handler serves.

    Attributes:
        terms: the protocol version of the answer, and the client.
        cancellation: set when the client cancels the request; the handler's result is then dropped.
        progress: `progress(done, total=None, message=None)` reports the progress of the request; a call that does
            not increase `done` is dropped.
    """

    terms: Terms
    cancellation: threading.Event = field(default_factory=threading.Event)
    progress: Callable[..., None] = lambda *_: None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool.

    Attributes:
        structured: the result as a JSON object that fits the tool's output schema, if it has one.
        text: the same for a model to read; None for `structured` as JSON.
        is_error: whether the tool failed; `text` then says what to do next.
    """

    structured: Mapping[str, Any] | None = None
    text: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool, a resource or a prompt: the form in which the protocol lists it, and its handler.

    Attributes:
        handler: a tool's handler gets arguments that fit `inputSchema`, without defaults filled in, and returns a
            `ToolResult`; a resource's handler gets its URI, a prompt's its arguments, and both return a text.
    """

    form: Mapping[str, Any]
    handler: Callable[[Any, CallContext], Any]

    @property
    def name(self) -> str:
        """Return the name by which clients call it."""
        return str(self.form["name"])


@dataclass(frozen=True, slots=True)
class Registry:
    """All that a server offers. A kind without offers is not declared as a capability.

    Attributes:
        name, version, title: what the server reports about itself; `instructions` tell a model how to use it.
        resources: returns the resources that can be read now; called for every list and every read. None for none.
    """

    name: str
    version: str
    title: str
    instructions: str = ""
    tools: tuple[Offer, ...] = ()
    resources: Callable[[], Sequence[Offer]] | None = None
    prompts: tuple[Offer, ...] = ()


Params: TypeAlias = Mapping[str, Any]
MAX_PROBLEMS = 5


def call_tool(registry: Registry, params: Params, context: CallContext) -> dict[str, Any]:
    """Return the result of `tools/call`.

    Raises:
        ProtocolError: there is no such tool, or the arguments are not an object.
    """
    named = {tool.name: tool for tool in registry.tools}
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or name not in named:
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name}; there are {', '.join(named)}")
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        raise ProtocolError(INVALID_PARAMS, "the arguments of a tool are an object")
    schema: Schema = named[name].form["inputSchema"]
    if faults := list(islice(problems(arguments, schema), MAX_PROBLEMS)):
        listed = "".join(f"\n- {problem}" for problem in faults)
        refusal = f"{name} was not run:{listed}\nCorrect this and call it again."
        result = ToolResult(text=shorten(refusal), is_error=True)
    else:
        try:
            result = named[name].handler(integers(arguments, schema), context)
        except CommonplaceError as error:
            result = ToolResult(text=shorten(str(error)), is_error=True)
        except Exception as error:
            # The outermost layer: the model learns that it is not to blame, the log gets the traceback.
            report_defect(f"the tool {name} failed", error)
            failure = f"{name} failed unexpectedly ({type(error).__name__}); other arguments or a later call may work"
            result = ToolResult(text=failure, is_error=True)
    text = result.text
    if text is None:  # repeat a structured result as text, for the clients and versions that read only text
        text = json.dumps(result.structured, ensure_ascii=False, separators=(",", ":"))
    form: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if result.structured is not None:
        form["structuredContent"] = result.structured
    if result.is_error:
        form["isError"] = True
    return form


def report_defect(subject: str, error: Exception) -> None:
    """Log an unexpected error, a defect of ours, with its traceback."""
    import logging

    logging.getLogger("commonplace.mcp").error(subject, exc_info=error)


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the protocol.

    Attributes:
        answer: returns the result of the method.
        kind: the kind of offer that the server needs for the method to exist ("tools", "resources", "prompts"), or "".
        runs_handlers: whether the method runs handlers, which may take time.
        fresh_ms: how long a stateless client may cache the result, in milliseconds; None to send no cache fields.
        scope: the `cacheScope` of the result, "public" or "private".
    """

    name: str
    answer: Callable[[Registry, Params, CallContext], dict[str, Any]]
    kind: str = ""
    runs_handlers: bool = False
    fresh_ms: int | None = None
    scope: str = "public"


def method_of(name: str, registry: Registry, terms: Terms) -> Method:
    """Return the method of a name.

    Raises:
        ProtocolError: the protocol version has no such method, or the server offers nothing of the method's kind.
    """
    method = _METHODS.get(name)
    of_the_other_era = "ping" if terms.is_stateless else "server/discover"
    if method is None or name == of_the_other_era or (method.kind and not getattr(registry, method.kind)):
        raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {name}")
    return method


def initialized(registry: Registry, terms: Terms) -> dict[str, Any]:
    """Return the answer to `initialize`."""
    return {"protocolVersion": terms.version, **_offer(registry), "serverInfo": _server_form(registry)}


def _server_form(registry: Registry) -> dict[str, str]:
    return {"name": registry.name, "title": registry.title, "version": registry.version}


def _offer(registry: Registry) -> dict[str, Any]:
    kinds: dict[str, Any] = {kind: {} for kind in ("tools", "resources", "prompts") if getattr(registry, kind)}
    return {"capabilities": kinds, **({"instructions": registry.instructions} if registry.instructions else {})}


def respond(registry: Registry, method: Method, params: Params, context: CallContext) -> dict[str, Any]:
    """Return the result of a method; a stateless result also has a type, the server's identity and cache fields.

    Raises:
        CommonplaceError: the request is malformed, names something that does not exist, or a handler failed.
    """
    if method.name.endswith("/list") and params.get("cursor") is not None:
        # A list is one page: the server never gives out a cursor.
        raise ProtocolError(INVALID_PARAMS, "the list has one page and this cursor is none of ours; leave it out")
    result = method.answer(registry, params, context)
    if context.terms.is_stateless:
        result |= {"resultType": "complete", "_meta": {SERVER_KEY: _server_form(registry)}}
        if method.fresh_ms is not None:
            result |= {"ttlMs": method.fresh_ms, "cacheScope": method.scope}
    return result


def _read(registry: Registry, params: Params, context: CallContext) -> dict[str, Any]:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise ProtocolError(INVALID_PARAMS, "resources/read names a uri, a string")
    try:
        resource = _resource(registry, uri)
        text = resource.handler(uri, context)
    except NotFoundError as error:
        # Older clients look for the old code; a stateless client must never be sent it.
        code = INVALID_PARAMS if context.terms.is_stateless else SESSION_RESOURCE_NOT_FOUND
        raise ProtocolError(code, f"Resource not found: {error}", data={"uri": uri}) from error
    return {"contents": [{"uri": uri, "mimeType": resource.form["mimeType"], "text": text}]}


def _list(kind: str, offers: Sequence[Offer]) -> dict[str, Any]:
    return {kind: [offer.form for offer in offers]}


def _list_resources(registry: Registry, _: Params, __: CallContext) -> dict[str, Any]:
    return _list("resources", _resources(registry))


def _resources(registry: Registry) -> Sequence[Offer]:
    return registry.resources() if registry.resources is not None else ()


def _resource(registry: Registry, uri: str) -> Offer:
    resource = next((offer for offer in _resources(registry) if offer.form["uri"] == uri), None)
    if resource is None:
        raise NotFoundError(f"there is no {uri}")
    return resource


def _get_prompt(registry: Registry, params: Params, context: CallContext) -> dict[str, Any]:
    prompts = {prompt.name: prompt for prompt in registry.prompts}
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or name not in prompts:
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {name}; there are {', '.join(prompts)}")
    prompt = prompts[name]
    if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
        raise ProtocolError(INVALID_PARAMS, "the arguments of a prompt are an object of strings")
    required = [argument["name"] for argument in prompt.form["arguments"] if argument["required"]]
    if missing := [parameter for parameter in required if parameter not in arguments]:
        raise ProtocolError(INVALID_PARAMS, f"the prompt {name} needs {', '.join(missing)}")
    message = {"role": "user", "content": {"type": "text", "text": prompt.handler(arguments, context)}}
    return {"description": prompt.form["description"], "messages": [message]}


_FRESH_MS = 300_000
_METHODS = {
    method.name: method
    for method in (
        Method("ping", lambda *_: {}),
        Method(
            "server/discover",
            lambda registry, *_: {"supportedVersions": list(STATELESS_VERSIONS), **_offer(registry)},
            fresh_ms=_FRESH_MS,
        ),
        Method("tools/list", lambda registry, *_: _list("tools", registry.tools), "tools", fresh_ms=_FRESH_MS),
        Method("tools/call", call_tool, "tools", runs_handlers=True),
        Method("resources/list", _list_resources, "resources", runs_handlers=True, fresh_ms=0, scope="private"),
        # Clients that see resources also request templates.
        Method("resources/templates/list", lambda *_: {"resourceTemplates": []}, "resources", fresh_ms=_FRESH_MS),
        Method("resources/read", _read, "resources", runs_handlers=True, fresh_ms=0, scope="private"),
        Method("prompts/list", lambda registry, *_: _list("prompts", registry.prompts), "prompts", fresh_ms=_FRESH_MS),
        Method("prompts/get", _get_prompt, "prompts", runs_handlers=True),
    )
}
