"""The ASGI application: one route per operation, with access checks, limits, metrics and an access log."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import unquote

import anyio
from anyio import CapacityLimiter
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import iso
from commonplace.errors import CommonplaceError, UsageError
from commonplace.formats.json_values import plain, read_json
from commonplace.logs import LineFile
from commonplace.mcp.schema import Schema, integers, problems
from commonplace.mcp.tools import with_source
from commonplace.memory.idempotency import StoredAnswer
from commonplace.server.access import SECURITY_HEADERS, AccessControl, Caller
from commonplace.server.mcp import serve_mcp
from commonplace.server.openapi import LINES_TYPE, document
from commonplace.server.problems import Problem, problem_of, response_of
from commonplace.server.routes import MAX_KEY_CHARACTERS, OPERATIONS, Operation

if TYPE_CHECKING:
    from commonplace.engine import Engine

_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
PREFIX: Final = "/v1"
JSON_TYPE: Final = "application/json"
MAX_DEPTH: Final = 64
PROBLEMS_LISTED: Final = 5
MAX_WORKERS: Final = 8
MAX_IMPORT_BYTES: Final = 4 * 1024**3
IMPORT_TIMEOUT_S: Final = 3_600.0
Work: TypeAlias = Literal["admission", "call", "long call"]
"""Kinds of work; each has its own threads and its own queue. A long call may take minutes."""
_T = TypeVar("_T")
_STORES: Final = frozenset({"remember", "remember_many"})
"""Operations that store memories; the caller becomes the source of memories without one."""
_log = logging.getLogger("commonplace.server")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one server.

    Attributes:
        workers: how many calls of the engine run at a time. More than the number of processors take turns at one
            interpreter: each takes longer and the throughput falls, unless they wait for a database.
        long_workers: how many long calls, which may take minutes, run beside them.
        waiting: how many more calls may wait for a worker; further ones get a 503.
        long_waiting: how many more long calls may wait for a worker.
        max_body_bytes: maximum size of a request's body.
        body_timeout_s: how long a client may take to send a body.
    """

    workers: int = max(2, min(os.cpu_count() or 2, MAX_WORKERS))
    long_workers: int = 2
    waiting: int = 512
    long_waiting: int = 8
    max_body_bytes: int = 16 * 1024 * 1024
    body_timeout_s: float = 30.0


MAX_OPEN: Final = 64
"""Maximum number of open namespaces: beyond it the least recently used ones that no request uses are closed."""


@dataclass(slots=True)
class _OpenEngine:
    engine: Engine
    uses: int = 0


class EnginePool:
    """Open engines by namespace. Safe for threads.

    Args:
        open_engine: opens the store; called once, on first use.
    """

    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        self._open_engine = open_engine
        self._lock = threading.Lock()
        self._root: Engine | None = None
        self._open: OrderedDict[str, _OpenEngine] = OrderedDict()

    def root(self) -> Engine:
        """Return the engine that `open_engine` returned, in the namespace of the settings."""
        with self._lock:
            if self._root is None:
                self._root = self._open_engine()
            return self._root

    @contextmanager
    def use(self, namespace: str) -> Iterator[Engine]:
        """Yield the engine of a namespace, which stays open until the context exits.

        Raises:
            UsageError: the name is invalid.
        """
        root = self.root()
        with self._lock:
            entry = self._open.get(namespace)
            if entry is None:
                entry = self._open[namespace] = _OpenEngine(root.in_namespace(namespace, is_served=True))
            entry.uses += 1
            self._open.move_to_end(namespace)
            idle = [name for name, opened in self._open.items() if not opened.uses]
            surplus = [self._open.pop(name) for name in idle[: max(0, len(self._open) - MAX_OPEN)]]
        for evicted in surplus:
            evicted.engine.close()
        try:
            yield entry.engine
        finally:
            with self._lock:
                entry.uses -= 1

    def close(self) -> None:
        """Close all engines. No request may be in progress."""
        with self._lock:
            for entry in self._open.values():
                entry.engine.close()
            self._open.clear()
            if self._root is not None:
                self._root.close()
                self._root = None


class Service:
    """Answers requests by calling engines in bounded pools of threads."""

    def __init__(
        self, engines: EnginePool, access: AccessControl, limits: Limits = Limits(), log: LineFile | None = None
    ) -> None:
        self.engines, self.access, self.limits = engines, access, limits
        self._log = log
        self.registry = CollectorRegistry()
        labels = "operation", "method", "status"
        self._requests = Counter("commonplace_requests", "Requests answered.", labels, registry=self.registry)
        name, about = "commonplace_request_seconds", "Time to the end of the answer."
        self._seconds = Histogram(name, about, labels[:1], buckets=_BUCKETS_S, registry=self.registry)
        self._sizes: Mapping[Work, tuple[int, int]] = {
            "admission": (limits.workers, limits.waiting),
            "call": (limits.workers, limits.waiting),
            "long call": (limits.long_workers, limits.long_waiting),
        }
        self._pools: Mapping[Work, CapacityLimiter] = {}
        self._active = dict.fromkeys(self._sizes, 0)
        self._lock = threading.Lock()
        self._in_progress: set[tuple[str, str]] = set()

    def record(self, operation: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request, and log it without its contents."""
        self._requests.labels(operation, method, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)
        if self._log is not None:
            with suppress(OSError):  # a full disk must not fail the request
                fields = {"operation": operation, "method": method, "status": status, "ms": round(seconds * 1e3, 1)}
                self._log.write({"at": iso(datetime.now(UTC)), **fields})

    async def in_thread(self, work: Callable[[], _T], pool: Work = "call") -> _T:
        """Call `work` in a thread of a pool, and return its result.

        Raises:
            Problem: too many requests are waiting for a thread, or the work failed unexpectedly.
        """
        if not self._pools:  # created here because limiters belong to the event loop
            self._pools = {name: CapacityLimiter(workers) for name, (workers, _) in self._sizes.items()}
        # Counted here: the limiter counts only tasks that have reached it, so any number could pass at once.
        workers, waiting = self._sizes[pool]
        if self._active[pool] >= workers + waiting:
            message, after = f"{waiting} requests are waiting", "30" if pool == "long call" else "1"
            raise Problem(503, "busy", message, remedy="try again", headers={"Retry-After": after})
        self._active[pool] += 1
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._pools[pool])
        except (CommonplaceError, Problem):
            raise
        except Exception as error:  # the outermost layer: the client gets an answer, the log the traceback
            _log.error("a request failed", exc_info=error)
            raise Problem(500, "defect", f"the request failed unexpectedly ({type(error).__name__})") from error
        finally:
            self._active[pool] -= 1

    async def admit(self, request: Request, scope: str | None) -> tuple[Caller, str]:
        """Return the caller and the namespace of a request, without reading its body.

        Args:
            scope: the scope that the request needs; None needs only a valid token.

        Raises:
            Problem: the caller is unknown, or lacks the scope or the namespace.
        """

        def work() -> tuple[Caller, str]:
            caller = self.access.caller(request)
            named = request.path_params.get("namespace")
            namespace = unquote(named) if named else request.query_params.get("namespace") or caller.namespace
            if scope is not None:
                caller.check(scope, namespace)
            return caller, namespace

        # A separate pool: in the pool of calls, each request would queue twice.
        return await self.in_thread(work, "admission")

    def once(self, engine: Engine, key: str, request: str, work: Callable[[], Response]) -> Response:
        """Return the result of `work`, or the stored answer to a request with the same key within the last day.

        Args:
            request: the request as a text, equal for equal requests.

        Raises:
            Problem: a request with this key is in progress, or the key was used for another request.
        """
        name, digest = (hashlib.sha256(text.encode()).hexdigest() for text in (key, request))
        request_key = (engine.namespace, name)
        with self._lock:
            if request_key in self._in_progress:
                message = "a request with this Idempotency-Key is being answered"
                raise Problem(409, "in-progress", message, remedy="wait for its answer", headers={"Retry-After": "1"})
            self._in_progress.add(request_key)
        try:
            stored = engine.answers.find(name)
            if stored is None:
                response = work()
                try:
                    engine.answers.keep(name, StoredAnswer(digest, response.status_code, bytes(response.body).decode()))
                except CommonplaceError as error:  # the request itself has succeeded
                    _log.warning("an answer could not be kept for its Idempotency-Key: %s", error)
                return response
            if stored.request != digest:
                message = "this Idempotency-Key came with another request"
                raise Problem(422, "idempotency-key-reused", message, remedy="use a new key for a new request")
            return Response(stored.body, stored.status, {"Idempotent-Replayed": "true"}, JSON_TYPE)
        finally:
            with self._lock:
                self._in_progress.discard(request_key)

    async def body(self, request: Request) -> bytes:
        """Return the body of a request.

        Raises:
            Problem: its content type is not JSON, it is too large, or it does not arrive in time.
        """
        return b"".join([part async for part in self.parts(request, JSON_TYPE, self.limits)])

    async def parts(self, request: Request, kind: str, limits: Limits) -> AsyncIterator[bytes]:
        """Yield the body of a request as it arrives.

        Args:
            kind: the required content type; web pages of other sites cannot send it without permission.

        Raises:
            Problem: its content type is another, it is too large, or it does not arrive in time.
        """
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != kind:
            state = f"is {content_type!r:.80}" if content_type else "is missing"
            raise Problem(415, "wrong-content-type", f"Content-Type {state}", remedy=f"send {kind}")
        limit = limits.max_body_bytes
        too_large = Problem(413, "too-large", f"the body has more than {limit:,} bytes", remedy="send less at a time")
        if int(request.headers.get("content-length") or 0) > limit:
            raise too_large
        size = 0
        try:
            async with asyncio.timeout(limits.body_timeout_s):
                async for part in request.stream():
                    size += len(part)
                    if size > limit:
                        raise too_large
                    yield part
        except TimeoutError as error:
            message = f"the body did not come within {limits.body_timeout_s:g} s"
            raise Problem(408, "too-slow", message, headers={"Connection": "close"}) from error


def application(service: Service) -> ASGIApp:
    """Return the ASGI application of a service; the caller closes the pool of engines."""
    page: list[BaseRoute] = []
    if service.access.page is not None:
        from commonplace.server.page.views import page_routes

        page = page_routes(service, service.access.page)
    routes = [
        *page,
        Route("/healthz", _alive, name="alive"),
        Route("/readyz", partial(_ready, service), name="ready"),
        Route("/metrics", partial(_metrics, service), name="metrics"),
        Route(f"{PREFIX}/openapi.json", _openapi, name="openapi"),
        Route("/mcp", partial(serve_mcp, service), methods=["GET", "POST", "DELETE"], name="mcp"),
        *(
            Route(f"{PREFIX}{op.path}", partial(call, service, op), methods=[op.verb], name=op.id)
            for op in OPERATIONS.values()
        ),
    ]
    handlers: Mapping[Any, Any] = {HTTPException: _http_error, Problem: _as_problem, CommonplaceError: _as_problem}
    return Middleware(Starlette(routes=routes, exception_handlers=handlers), service)


class Middleware:
    """Checks the host and origin of each request, counts it, and logs a line."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Routes are matched before percent signs are decoded: an id may hold a slash.
        scope["path"] = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        started, status = time.perf_counter(), 500

        async def send_recording(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._service.access.page is not None:
                    message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        try:
            try:
                self._service.access.check_source(Headers(scope=scope))
            except Problem as problem:
                await response_of(problem)(scope, receive, send_recording)
                return
            await self._app(scope, receive, send_recording)
        finally:
            duration = time.perf_counter() - started
            name = getattr(scope.get("route"), "name", None) or "unknown"
            self._service.record(name, scope["method"], status, duration)


async def call(service: Service, operation: Operation, request: Request) -> Response:
    """Answer a request for an operation."""
    caller, namespace = await service.admit(request, operation.scope)
    if operation.file:
        return await _transfer(service, operation, request, namespace)
    body = await service.body(request) if operation.verb in ("POST", "PATCH") else b""
    work = partial(_answer, service, operation, request, body, caller, namespace)
    return await service.in_thread(work, "long call" if operation.is_long(len(body)) else "call")


def _answer(
    service: Service, operation: Operation, request: Request, body: bytes, caller: Caller, namespace: str
) -> Response:
    arguments = _arguments(operation, request, json_object(body))
    if caller.is_visitor and "touch" in operation.argument_schema["properties"]:
        arguments["touch"] = False
    if caller.source and operation.id in _STORES:
        if "items" in arguments:
            arguments["items"] = [with_source(item, caller.source) for item in arguments["items"]]
        else:
            arguments = {**with_source(arguments, caller.source)}
    if operation.id == "forget_namespace":
        caller.check(operation.scope, arguments["name"])
    if operation.id == "list_namespaces" and caller.namespaces is not None:
        return _json({"namespaces": sorted(caller.namespaces)}, operation)
    with service.engines.use(namespace) as engine:
        key = request.headers.get("idempotency-key") if operation.takes_key else None
        if key is None:
            return _json(operation.run(engine, arguments), operation)
        if not 1 <= len(key) <= MAX_KEY_CHARACTERS:
            raise UsageError(f"Idempotency-Key has {len(key)} characters", remedy=f"give 1 to {MAX_KEY_CHARACTERS}")
        fingerprint = json.dumps([caller.name, operation.id, arguments], sort_keys=True, default=str)
        return service.once(engine, key, fingerprint, lambda: _json(operation.run(engine, arguments), operation))


async def _transfer(service: Service, operation: Operation, request: Request, namespace: str) -> Response:
    arguments = _arguments(operation, request, {})
    directory = tempfile.TemporaryDirectory(prefix="commonplace-")
    file = Path(directory.name) / "lines.jsonl"
    try:
        if operation.verb == "POST":
            limits = replace(service.limits, max_body_bytes=MAX_IMPORT_BYTES, body_timeout_s=IMPORT_TIMEOUT_S)
            with file.open("wb") as stream:
                async for part in service.parts(request, LINES_TYPE, limits):
                    stream.write(part)

        def work() -> Response:
            with service.engines.use(namespace) as engine:
                return _json(operation.run(engine, {**arguments, operation.file: file}), operation)

        answer = await service.in_thread(work, "long call")
    except BaseException:
        directory.cleanup()
        raise
    if operation.verb == "POST":
        directory.cleanup()
        return answer
    return FileResponse(file, media_type=LINES_TYPE, background=BackgroundTask(directory.cleanup))


def _arguments(operation: Operation, request: Request, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request, checked against the operation's schema."""
    arguments: dict[str, Any] = {}
    schemas = {parameter.name: parameter.schema for parameter in operation.parameters if parameter.kind == "query"}
    for name in request.query_params:
        if name != "namespace" or name in schemas:
            texts = request.query_params.getlist(name)
            arguments[name] = _value(texts, schemas[name]) if name in schemas else texts[-1]
    arguments |= body
    arguments |= {name: unquote(value) for name, value in request.path_params.items() if name != "namespace"}
    schema = operation.argument_schema
    if faults := list(islice(problems(arguments, schema), PROBLEMS_LISTED)):
        raise UsageError("; ".join(faults), remedy=f"see {PREFIX}/openapi.json")
    version = request.headers.get("if-match") if operation.takes_version else None
    if version is not None:
        number = version.strip().strip('"')
        if not number.isdecimal():
            raise UsageError(f"If-Match is {version!r:.80}", remedy='give the ETag of a memory, as "3"')
        arguments["if_version"] = int(number)
    checked: dict[str, Any] = integers(arguments, schema)
    return checked


def _value(texts: list[str], schema: Schema) -> Any:
    """Convert a query parameter to the type of its schema; text of another type is left for validation to reject."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "array" in kinds:
        return texts
    text = texts[-1]
    if "boolean" in kinds:
        return {"true": True, "false": False}.get(text, text)
    if "string" in kinds:
        return text
    try:
        return int(text) if "integer" in kinds else float(text)
    except ValueError:
        return text


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a body as a JSON object; an empty body is an empty object.

    Raises:
        Problem: the body is not a JSON object, or is nested too deep.
    """
    if not body.strip():
        return {}
    try:
        value = read_json(body)
    except (ValueError, RecursionError) as error:
        raise Problem(400, "invalid-json", f"the body is no JSON: {error}", remedy="send one JSON object") from error
    if not isinstance(value, dict):
        raise Problem(400, "invalid-json", "the body is no JSON object", remedy="send one JSON object")
    depth, level = 0, [value]
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            message = f"the body is nested more than {MAX_DEPTH} deep"
            raise Problem(400, "too-deep", message, remedy="send a flatter object")
        inner = [node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list)]
        level = list(chain.from_iterable(inner))
    return value


def _json(value: Any, operation: Operation) -> Response:
    form = plain(value)
    if isinstance(form, list):
        form = {"items": form}
    elif not isinstance(form, dict):
        form = {"result": form}
    headers = {"ETag": f'"{form["version"]}"'} if operation.has_version and "version" in form else None
    return Response(json.dumps(form, ensure_ascii=False), operation.status, headers=headers, media_type=JSON_TYPE)


async def _alive(_: Request) -> Response:
    return Response('{"status":"alive"}', media_type=JSON_TYPE)


async def _ready(service: Service, _: Request) -> Response:
    def check() -> Response:
        try:
            service.engines.root().namespaces()
        except CommonplaceError as error:
            cause = problem_of(error)
            raise Problem(503, cause.name, str(cause), remedy=cause.remedy, headers={"Retry-After": "1"}) from error
        return Response('{"status":"ready"}', media_type=JSON_TYPE)

    return await service.in_thread(check)


async def _metrics(service: Service, request: Request) -> Response:
    await service.admit(request, None)
    return Response(generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)


async def _openapi(_: Request) -> Response:
    return Response(json.dumps(document(), ensure_ascii=False), media_type=JSON_TYPE)


async def _http_error(request: Request, error: HTTPException) -> Response:
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        message, headers = f"{request.method} is not for this path", error.headers or {}
        remedy = f"send {headers.get('Allow', 'another method')}"
        return response_of(Problem(405, "wrong-method", message, remedy=remedy, headers=headers))
    remedy = f"see {PREFIX}/openapi.json for the paths that there are"
    return response_of(Problem(error.status_code, "unknown-path", "there is nothing at this path", remedy=remedy))


async def _as_problem(_: Request, error: Problem | CommonplaceError) -> Response:
    return response_of(error)
