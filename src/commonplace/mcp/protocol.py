"""What a server offers, as plain values with their handlers; the terms of a session; and how each method is answered.

Up to 2025-11-25 a client sends `initialize` and the connection speaks the version agreed on. From 2026-07-28 every
request carries its version and its client in `params._meta`, and nothing is inferred from an earlier one. A client
shows which it speaks by what it sends, so both are served side by side on one connection
(modelcontextprotocol.io/specification/2026-07-28/basic/versioning).

An error that a model can correct is a result with `isError`; a protocol error is for what only the client can correct,
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
from commonplace.formats.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError, shortened
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
    """What a request is answered by.

    Attributes:
        client: the name that the client gives itself, "" if none: a source of memories, never to be trusted.
    """

    version: str
    client: str = ""

    @property
    def is_stateless(self) -> bool:
        """Return whether the request says all there is to know."""
        return self.version in STATELESS_VERSIONS


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
    """Return whether a request claims the stateless era: only there `_meta` may hold a protocol version."""
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


def terms_of(method: str, params: Mapping[str, Any], session: Terms) -> Terms:
    """Return what a request is answered by: what it says of itself in the stateless era, else its session's.

    Raises:
        ProtocolError: what it says of itself is malformed.
    """
    return stateless_terms(params) if is_stateless(params) or method == "server/discover" else session


def progress_token(params: Mapping[str, Any]) -> int | str | None:
    """Return the token by which a request asks for progress, the same in both eras."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None


def _client(info: Any) -> str:
    name = info.get("name") if isinstance(info, dict) else ""
    return name if isinstance(name, str) else ""


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler may know of the request it serves.

    Attributes:
        terms: the version of the protocol that the request is answered by, and who asks.
        cancellation: set when the client no longer wants the answer; what the handler returns then is dropped.
        progress: `progress(done, total=None, message=None)` reports how far the request is; a call that does
            not raise `done` is dropped.
    """

    terms: Terms
    cancellation: threading.Event = field(default_factory=threading.Event)
    progress: Callable[..., None] = lambda *_: None


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
class Offer:
    """A tool, a resource or a prompt: how it is listed, in the protocol's own form, and what answers for it.

    Attributes:
        handler: that of a tool gets arguments that fit `inputSchema`, with defaults not filled in, and returns a
            `ToolResult`; that of a resource gets its address, that of a prompt its arguments, and both return a text.
    """

    form: Mapping[str, Any]
    handler: Callable[[Any, Context], Any]

    @property
    def name(self) -> str:
        """Return by what name it is called."""
        name: str = self.form["name"]
        return name


@dataclass(frozen=True, slots=True)
class Registry:
    """All that a server offers. What has none of a kind does not declare the kind.

    Attributes:
        name, version, title: what the server says it is; `instructions` say how a model should use it.
        resources: returns what can be read now; asked again for every list and every reading. None for no resources.
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


def call_tool(registry: Registry, params: Params, context: Context) -> dict[str, Any]:
    """Return the result of `tools/call`.

    Raises:
        ProtocolError: there is no such tool, or the arguments are no object.
    """
    named = {tool.name: tool for tool in registry.tools}
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or name not in named:
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name}; there are {', '.join(named)}")
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        raise ProtocolError(INVALID_PARAMS, "the arguments of a tool are an object")
    schema: Schema = named[name].form["inputSchema"]
    if wrong := list(islice(problems(arguments, schema), MAX_PROBLEMS)):
        listed = "".join(f"\n- {problem}" for problem in wrong)
        refusal = f"{name} was not run:{listed}\nCorrect this and call it again."
        result = ToolResult(text=shortened(refusal), is_error=True)
    else:
        try:
            result = named[name].handler(integers(arguments, schema), context)
        except CommonplaceError as error:
            result = ToolResult(text=shortened(str(error)), is_error=True)
        except Exception as error:
            # The skin's outermost edge: the model learns that it is not to blame, the log learns what happened.
            report_defect(f"the tool {name} failed", error)
            failure = f"{name} failed unexpectedly ({type(error).__name__}); other arguments or a later call may work"
            result = ToolResult(text=failure, is_error=True)
    text = result.text
    if text is None:  # a result for machines is repeated as text, for the clients and versions that read only that
        text = json.dumps(result.structured, ensure_ascii=False, separators=(",", ":"))
    form: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if result.structured is not None:
        form["structuredContent"] = result.structured
    if result.is_error:
        form["isError"] = True
    return form


def report_defect(what: str, error: Exception) -> None:
    """Log a defect of ours with its traceback."""
    import logging

    logging.getLogger("commonplace.mcp").error(what, exc_info=error)


@dataclass(frozen=True, slots=True)
class Method:
    """What is known of a method.

    Attributes:
        answer: returns its result.
        kind: what the server must offer for the method to be there, or "".
        runs_handlers: whether it runs code of what is offered, which may take time.
        fresh_ms: how long a stateless client may keep the result; None where it is not to be kept at all.
        scope: for whom it may keep it.
    """

    name: str
    answer: Callable[[Registry, Params, Context], dict[str, Any]]
    kind: str = ""
    runs_handlers: bool = False
    fresh_ms: int | None = None
    scope: str = "public"


def method_of(name: str, registry: Registry, terms: Terms) -> Method:
    """Return the method of that name.

    Raises:
        ProtocolError: this version has none of that name, or the server offers nothing that it is about.
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


def respond(registry: Registry, method: Method, params: Params, context: Context) -> dict[str, Any]:
    """Return the result of a method, with what its era adds: in the stateless one it says what it is and whose.

    Raises:
        CommonplaceError: the request is malformed, names something that is not there, or a handler failed.
    """
    if method.name.endswith("/list") and params.get("cursor") is not None:
        # A list is one page, so that no cursor is ever given out.
        raise ProtocolError(INVALID_PARAMS, "the list has one page and this cursor is none of ours; leave it out")
    result = method.answer(registry, params, context)
    if context.terms.is_stateless:
        result |= {"resultType": "complete", "_meta": {SERVER_KEY: _server_form(registry)}}
        if method.fresh_ms is not None:
            result |= {"ttlMs": method.fresh_ms, "cacheScope": method.scope}
    return result


def _read(registry: Registry, params: Params, context: Context) -> dict[str, Any]:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise ProtocolError(INVALID_PARAMS, "resources/read names a uri, a string")
    try:
        resource = _resource(registry, uri)
        text = resource.handler(uri, context)
    except NotFoundError as error:
        # The old code is never to be sent to a stateless client, and old clients look for it.
        code = INVALID_PARAMS if context.terms.is_stateless else SESSION_RESOURCE_NOT_FOUND
        raise ProtocolError(code, f"Resource not found: {error}", data={"uri": uri}) from error
    return {"contents": [{"uri": uri, "mimeType": resource.form["mimeType"], "text": text}]}


def _list(kind: str, offers: Sequence[Offer]) -> dict[str, Any]:
    return {kind: [each.form for each in offers]}


def _list_resources(registry: Registry, _: Params, __: Context) -> dict[str, Any]:
    return _list("resources", _resources(registry))


def _resources(registry: Registry) -> Sequence[Offer]:
    return registry.resources() if registry.resources is not None else ()


def _resource(registry: Registry, uri: str) -> Offer:
    found = next((each for each in _resources(registry) if each.form["uri"] == uri), None)
    if found is None:
        raise NotFoundError(f"there is no {uri}")
    return found


def _get_prompt(registry: Registry, params: Params, context: Context) -> dict[str, Any]:
    prompts = {prompt.name: prompt for prompt in registry.prompts}
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or name not in prompts:
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {name}; there are {', '.join(prompts)}")
    prompt = prompts[name]
    if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
        raise ProtocolError(INVALID_PARAMS, "the arguments of a prompt are an object of strings")
    required = [each["name"] for each in prompt.form["arguments"] if each["required"]]
    if missing := [each for each in required if each not in arguments]:
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
        # Clients ask for templates where there are resources.
        Method("resources/templates/list", lambda *_: {"resourceTemplates": []}, "resources", fresh_ms=_FRESH_MS),
        Method("resources/read", _read, "resources", runs_handlers=True, fresh_ms=0, scope="private"),
        Method("prompts/list", lambda registry, *_: _list("prompts", registry.prompts), "prompts", fresh_ms=_FRESH_MS),
        Method("prompts/get", _get_prompt, "prompts", runs_handlers=True),
    )
}
