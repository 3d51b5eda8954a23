"""The Model Context Protocol over HTTP: one message per request, answered as JSON, without sessions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from commonplace.dataclasses import replace
from commonplace.formats import jsonrpc
from commonplace.mcp import protocol
from commonplace.mcp.registry import registry_of
from commonplace.mcp.server import answer
from commonplace.server.access import Caller
from commonplace.server.problems import Problem

if TYPE_CHECKING:
    from commonplace.server.app import Service

_JSON: Final = "application/json"
_FORGETS: Final = b'"memory_forget"'
"""Marks a message as a call of the slow tool; searched for in the bytes, before the message is parsed."""
_HEADER: Final = "mcp-protocol-version"
_ASSUMED_VERSION: Final = "2025-03-26"
"""Version of a client that sends no header (specification 2025-06-18, basic/transports, protocol version header)."""


async def serve_mcp(service: Service, request: Request) -> Response:
    """Answer a request for `/mcp`."""
    if request.method != "POST":
        message = "this server has no streams and no sessions: every message is a POST"
        raise Problem(405, "wrong-method", message, headers={"Allow": "POST"})
    caller, namespace = await service.admit(request, "read")
    body = await service.body(request)
    work = partial(_respond, service, caller, namespace, body, request.headers.get(_HEADER))
    return await service.in_thread(work, "long call" if _FORGETS in body else "call")


def _respond(service: Service, caller: Caller, namespace: str, body: bytes, version: str | None) -> Response:
    """Answer a message in the protocol version that the header names."""
    try:
        message = jsonrpc.read_message(jsonrpc.decode(body))
    except jsonrpc.ProtocolError as error:
        return Response(jsonrpc.encode(jsonrpc.error_of(None, error)), 400, media_type=_JSON)
    if isinstance(message, jsonrpc.Malformed):
        return Response(jsonrpc.encode(jsonrpc.error_of(message.id, message.error)), 400, media_type=_JSON)
    if message is None or message.id is None:
        return Response(status_code=202)
    with service.engines.use(namespace) as engine:
        registry = registry_of(lambda _: engine)
        registry = replace(registry, tools=tuple(tool for tool in registry.tools if _scope(tool) in caller.scopes))
        try:
            if message.method == "initialize":
                opened = protocol.initialized(registry, protocol.opened_session(message.params))
                return Response(jsonrpc.encode(jsonrpc.result_of(message.id, opened)), media_type=_JSON)
            supported = (*protocol.SESSION_VERSIONS, *protocol.STATELESS_VERSIONS)
            if version is not None and version not in supported:
                detail = f"MCP-Protocol-Version is {version!r:.80}"
                raise Problem(400, "unknown-protocol-version", detail, remedy=f"send one of {', '.join(supported)}")
            session = protocol.Terms(version if version in protocol.SESSION_VERSIONS else _ASSUMED_VERSION)
            terms = protocol.terms_of(message.method, message.params, session)
            method = protocol.method_of(message.method, registry, terms)
        except jsonrpc.ProtocolError as error:
            return Response(jsonrpc.encode(jsonrpc.error_of(message.id, error)), media_type=_JSON)
        # Prefer the token's name: a client can call itself anything.
        context = protocol.CallContext(replace(terms, client=caller.source) if caller.source else terms)
        return Response(answer(registry, message, message.id, method, context), media_type=_JSON)


def _scope(tool: protocol.Offer) -> str:
    hints = tool.form.get("annotations", {})
    changes = "forget" if hints.get("destructiveHint", True) else "write"
    return "read" if hints.get("readOnlyHint") else changes
