"""What each method of the protocol answers, from what is offered. It knows no threads, no streams and no ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from commonplace.errors import NotFoundError
from commonplace.formats.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError
from commonplace.mcp.calling import call_tool
from commonplace.mcp.describing import (
    capabilities_form,
    offers,
    prompt_form,
    resource_form,
    server_form,
    template_form,
    tool_form,
)
from commonplace.mcp.eras import SERVER_KEY, SESSION_RESOURCE_NOT_FOUND, STATELESS_VERSIONS, Terms
from commonplace.mcp.registry import Contents, Context, Registry, Resource

_LISTS_FRESH_MS = 300_000

Params: TypeAlias = Mapping[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Method:
    """How a method is answered.

    Attributes:
        answer: returns the result.
        kind: what the server must offer for the method to be there, or "".
        runs_handlers: whether it runs code of what is offered, which may take time.
        fresh_ms: how long a stateless client may keep the result; None where it is not to be kept at all.
        scope: for whom it may keep it.
    """

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
    method = (_STATELESS if terms.is_stateless else _SESSION).get(name)
    if method is None or (method.kind and not offers(registry, method.kind)):
        raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {name}")
    return method


def initialized(registry: Registry, terms: Terms) -> dict[str, Any]:
    """Return the answer to `initialize`."""
    return {
        "protocolVersion": terms.version,
        "capabilities": capabilities_form(registry),
        "serverInfo": server_form(registry.info),
        **_instructions(registry),
    }


def completed(method: Method, result: dict[str, Any], registry: Registry, terms: Terms) -> dict[str, Any]:
    """Return a result with what its era adds to it: in the stateless one it says what it is and whose."""
    if not terms.is_stateless:
        return result
    added: dict[str, Any] = {"resultType": "complete", "_meta": {SERVER_KEY: server_form(registry.info)}}
    if method.fresh_ms is not None:
        added |= {"ttlMs": method.fresh_ms, "cacheScope": method.scope}
    return {**result, **added}


def _instructions(registry: Registry) -> dict[str, str]:
    return {"instructions": registry.info.instructions} if registry.info.instructions else {}


def _discover(registry: Registry, _params: Params, _context: Context) -> dict[str, Any]:
    return {
        "supportedVersions": list(STATELESS_VERSIONS),
        "capabilities": capabilities_form(registry),
        **_instructions(registry),
    }


def _ping(_registry: Registry, _params: Params, _context: Context) -> dict[str, Any]:
    return {}


def _list(key: str, things: Sequence[_T], form: Callable[[_T], dict[str, Any]], params: Params) -> dict[str, Any]:
    """Every list is one page, so that no cursor is ever given out."""
    if params.get("cursor") is not None:
        raise ProtocolError(INVALID_PARAMS, "the list has one page and this cursor is none of ours; leave it out")
    return {key: [form(thing) for thing in things]}


def _list_tools(registry: Registry, params: Params, _context: Context) -> dict[str, Any]:
    return _list("tools", registry.tools, tool_form, params)


def _list_prompts(registry: Registry, params: Params, _context: Context) -> dict[str, Any]:
    return _list("prompts", registry.prompts, prompt_form, params)


def _list_templates(registry: Registry, params: Params, _context: Context) -> dict[str, Any]:
    return _list("resourceTemplates", registry.templates, template_form, params)


def _list_resources(registry: Registry, params: Params, _context: Context) -> dict[str, Any]:
    return _list("resources", _resources(registry), resource_form, params)


def _call(registry: Registry, params: Params, context: Context) -> dict[str, Any]:
    return call_tool(registry.tools, params, context)


def _read(registry: Registry, params: Params, context: Context) -> dict[str, Any]:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise ProtocolError(INVALID_PARAMS, "resources/read names a uri, a string")
    try:
        contents = _contents(uri, registry, context)
    except NotFoundError as error:
        # The old code is never to be sent to a stateless client, and old clients look for it.
        stateless = context.protocol_version in STATELESS_VERSIONS
        code = INVALID_PARAMS if stateless else SESSION_RESOURCE_NOT_FOUND
        raise ProtocolError(code, f"Resource not found: {error}", data={"uri": uri}) from error
    form: dict[str, Any] = {"uri": uri, "mimeType": contents.mime_type}
    if isinstance(contents.data, str):
        form["text"] = contents.data
    else:
        from base64 import b64encode

        form["blob"] = b64encode(contents.data).decode("ascii")
    return {"contents": [form]}


def _resources(registry: Registry) -> Sequence[Resource]:
    return registry.resources() if registry.resources is not None else ()


def _contents(uri: str, registry: Registry, context: Context) -> Contents:
    for resource in _resources(registry):
        if resource.uri == uri:
            return resource.handler(uri, {}, context)
    for template in registry.templates:
        variables = template.variables_of(uri)
        if variables is not None:
            return template.handler(uri, variables, context)
    raise NotFoundError(f"there is no {uri}")


def _get_prompt(registry: Registry, params: Params, context: Context) -> dict[str, Any]:
    prompts = {prompt.name: prompt for prompt in registry.prompts}
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or name not in prompts:
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {name}; there are {', '.join(prompts)}")
    prompt = prompts[name]
    if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
        raise ProtocolError(INVALID_PARAMS, "the arguments of a prompt are an object of strings")
    if missing := [one.name for one in prompt.arguments if one.is_required and one.name not in arguments]:
        raise ProtocolError(INVALID_PARAMS, f"the prompt {name} needs {', '.join(missing)}")
    messages = prompt.handler(arguments, context)
    told = [{"role": one.role, "content": {"type": "text", "text": one.text}} for one in messages]
    return {"description": prompt.description, "messages": told}


_BOTH: Mapping[str, Method] = {
    "tools/list": Method(_list_tools, "tools", fresh_ms=_LISTS_FRESH_MS),
    "tools/call": Method(_call, "tools", runs_handlers=True),
    "resources/list": Method(_list_resources, "resources", runs_handlers=True, fresh_ms=0, scope="private"),
    "resources/templates/list": Method(_list_templates, "resources", fresh_ms=_LISTS_FRESH_MS),
    "resources/read": Method(_read, "resources", runs_handlers=True, fresh_ms=0, scope="private"),
    "prompts/list": Method(_list_prompts, "prompts", fresh_ms=_LISTS_FRESH_MS),
    "prompts/get": Method(_get_prompt, "prompts", runs_handlers=True),
}
_SESSION: Mapping[str, Method] = {"ping": Method(_ping), **_BOTH}
_STATELESS: Mapping[str, Method] = {"server/discover": Method(_discover, fresh_ms=_LISTS_FRESH_MS), **_BOTH}
