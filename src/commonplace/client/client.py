"""The engine's methods over HTTP: each call becomes one request to a server's `/v1`."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, BinaryIO, Final, Self, get_args, get_origin, get_type_hints
from urllib.parse import quote, urlencode, urlsplit

from commonplace import __version__
from commonplace.dates.time import iso
from commonplace.errors import NotFoundError, ProviderError, StoreError, UsageError
from commonplace.formats.json_values import View
from commonplace.server.problems import error_of
from commonplace.server.routes import OPERATIONS, Operation

TIMEOUT_S: Final = 60.0
_JSON: Final = "application/json"
_LINES: Final = "application/x-ndjson"
_LISTED: Final = "memories"
"""Member of a page of memories, which alone `list` returns, as the engine does."""


class Answer(dict[str, Any]):
    """A JSON object whose members are attributes too: `result.hits[0].text`. Times are ISO 8601 texts.

    Results of `graph` are of the engine's types instead.
    """

    _request: Mapping[str, Any] = MappingProxyType({})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(f"the answer has no {name!r}; it has {', '.join(self)}") from error


class _Calls:
    """One method for each operation of a service of the engine; the service "" is the engine itself."""

    def __init__(self, client: Client, service: str) -> None:
        self._client, self._service = client, service

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = _OF_METHOD.get((self._service, name))
        if operation is None:
            raise AttributeError(f"the server has no call {'.'.join(filter(None, (self._service, name)))!r}")
        return partial(self._call, name, operation)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for service, name in _OF_METHOD if service == self._service)})

    def _call(self, name: str, operation: Operation, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = inspect.signature(operation.function).bind(None, *args, **kwargs)
        except TypeError as error:
            raise UsageError(f"{name}: {error}", remedy="see the method of `commonplace.Engine`") from error
        inputs = dict(list(bound.arguments.items())[1:])
        answer = self._client._request(operation, inputs)
        if isinstance(answer, Answer):
            answer._request = inputs | ({"kinds": ["memory"]} if name == "recall" else {})
        try:
            if self._service == "graph":
                function = inspect.unwrap(operation.function)
                return _typed(eval(function.__annotations__["return"], function.__globals__), answer)  # noqa: S307 - ours
            member = operation.member or (_LISTED if name == "list" else "")
            return answer[member] if member else answer
        except KeyError as error:
            raise self._client._version_error(str(error)) from error


def _typed(kind: Any, value: Any) -> Any:
    """Return the value of a type of the graph's results from its JSON form."""
    arguments = get_args(kind)
    if value is None or get_origin(kind) is UnionType:
        return value if value is None else _typed(arguments[0], value)
    if get_origin(kind) in (list, tuple):
        return get_origin(kind)(_typed(arguments[0], item) for item in value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if isinstance(kind, type) and issubclass(kind, View):
        return kind(**{name: _typed(hint, value[name]) for name, hint in get_type_hints(kind).items()})
    return value


class Client(_Calls):
    """A store on a server; see `commonplace.connect`. Safe for threads; keeps connections until it is closed."""

    def __init__(
        self, url: str, token: str | None = None, *, namespace: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        super().__init__(self, "")
        parts = urlsplit(str(url))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise UsageError(f"{url!r:.100} is no address of a server", remedy="give one such as http://127.0.0.1:8765")
        self.url, self.namespace = url.rstrip("/"), namespace
        self._parts, self._token, self._timeout_s = parts, token, timeout_s
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []
        self.graph, self.knowledge, self.ledger = (
            _Calls(self, service) for service in ("graph", "knowledge", "ledger")
        )

    def __repr__(self) -> str:
        return f"<commonplace.Client {self.url!r}, namespace {self.namespace!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def why(self, result: Mapping[str, Any], hit_id: str) -> Answer:
        """Explain a hit of a result of `search` or `recall`, for which the server searches again.

        Raises:
            NotFoundError: the result has no such hit.
        """
        if not isinstance(result, Mapping) or "query" not in result:
            raise UsageError(f"result is {result!r:.80}", remedy="give what `search` returned")
        operation = OPERATIONS["why"]
        names = {parameter.name for parameter in operation.parameters}
        options = {name: value for name, value in getattr(result, "_request", {}).items() if name in names}
        answer: Answer = self._request(operation, {**options, "query": result["query"], "hit_id": hit_id})
        return answer

    def forget(self, id: str | Sequence[str] | None = None, **filters: Any) -> Answer:  # noqa: A002
        """Forget what an id, a list of ids, or one of `tag`, `source`, `session`, `path` and `agent` names.

        Args:
            id: one id or several, of memories, artifacts, or anything else that has one.
        """
        ids = {} if id is None else {"ids": [id] if isinstance(id, str) else list(id)}
        answer: Answer = self._request(OPERATIONS["forget"], {**ids, **filters})
        return answer

    def export(self, target: str | Path, *, kinds: Sequence[str] | None = None) -> Answer:
        """Write what the namespace holds as JSON lines, and return the last line: their number and SHA-256.

        Args:
            target: a new file, which appears only when complete.
            kinds: "artifact", "memory", "knowledge", "graph", "ledger"; default: all.

        Raises:
            StoreError: the file exists already, or cannot be written.
            ProviderError: the export arrived incomplete.
        """
        path = Path(target)
        try:
            with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as directory:
                draft = Path(directory) / path.name
                with draft.open("w+b") as file:
                    self._request(OPERATIONS["export"], {"kinds": kinds}, into=file)
                    # The last line says that the export is whole.
                    file.seek(-min(file.tell(), 1_000), os.SEEK_END)
                    lines = file.read().splitlines()
                end = Answer()
                with suppress(ValueError):
                    end = json.loads(lines[-1] if lines else b"", object_hook=Answer)
                if end.get("type") == "end":
                    os.link(draft, path)
                    return end
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}", remedy="name a new file") from error
        raise ProviderError("the export is cut off", remedy="export again")

    def import_(self, path: str | Path, **options: Any) -> Answer:
        """Import an export of Commonplace, or a file of another system.

        Args:
            options: `format`, `dry_run`, `on_conflict` and `skip_problems`, as for `Engine.import_`.

        Raises:
            NotFoundError: there is no such file.
        """
        try:
            with Path(path).open("rb") as file:
                answer: Answer = self._request(OPERATIONS["import"], options, file=file)
        except OSError as error:
            raise NotFoundError(f"cannot read {path}: {error.strerror}", remedy="name a file") from error
        return answer

    def close(self) -> None:
        """Close the idle connections; a later call opens a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _version_error(self, field: str) -> ProviderError:
        """Return the error for an answer that lacks a field, because the server has another version."""
        _, text = self._exchange("GET", f"{self._parts.path.rstrip('/')}/v1/openapi.json", None, {}, None)
        version = json.loads(text)["info"]["version"]
        message = f"the answer has no {field}: the server runs an older Commonplace, {version}, than this {__version__}"
        return ProviderError(message, remedy="update the server, or use a client of its version")

    def _request(
        self,
        operation: Operation,
        arguments: Mapping[str, Any],
        *,
        file: BinaryIO | None = None,
        into: BinaryIO | None = None,
    ) -> Any:
        """Send a request, with a file's lines instead of JSON if given; return the answer, or write it to `into`."""
        places = {parameter.name: parameter.kind for parameter in operation.parameters}
        path = operation.path
        query: dict[str, Any] = {}
        body: dict[str, Any] = {}
        headers = {"Content-Type": _LINES if file else _JSON}
        for name, value in arguments.items():
            if name == "if_version" and value is not None:
                headers["If-Match"] = f'"{value}"'
            elif places.get(name) == "path":
                path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
            elif places.get(name) == "query":
                many = isinstance(value, list | tuple)
                query |= {} if value is None else {name: [_plain(item) for item in value] if many else _plain(value)}
            elif name in places:
                body[name] = value
            elif name != "if_version":
                raise UsageError(f"{name!r} cannot be sent to a server", remedy=f"{operation.id} takes {list(places)}")
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        query |= {"namespace": self.namespace} if self.namespace else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if operation.takes_key:  # a retry after a lost answer must not repeat the change
            headers["Idempotency-Key"] = str(uuid.uuid4())
        target = f"{self._parts.path.rstrip('/')}/v1{path}{'?' + urlencode(query, doseq=True) if query else ''}"
        content: bytes | BinaryIO | None = file
        if file is None and operation.verb in ("POST", "PATCH"):
            content = json.dumps(body, default=_plain).encode()
        status, text = self._exchange(operation.verb, target, content, headers, into)
        return None if into and status < 400 else _answer(status, text)

    def _exchange(
        self, verb: str, target: str, body: bytes | BinaryIO | None, headers: Mapping[str, str], into: BinaryIO | None
    ) -> tuple[int, str]:
        """Send a request; retry once on a new connection if the server closed an idle one."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        opened = kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout_s)
        for connection in filter(None, (idle, opened)):
            try:
                if body is not None and not isinstance(body, bytes):
                    body.seek(0)
                connection.request(verb, target, body, dict(headers))
                response = connection.getresponse()
                if into is not None and response.status < 400:
                    into.seek(0)
                    into.truncate()
                    shutil.copyfileobj(response, into)
                answer = response.status, response.read().decode()
            except (OSError, HTTPException) as error:
                connection.close()
                if connection is not idle:
                    message = f"{self.url} did not answer: {error or type(error).__name__}"
                    raise ProviderError(message, remedy="start it with `commonplace serve`") from error
            else:
                with self._lock:
                    self._idle.append(connection)
                return answer
        raise AssertionError


def _answer(status: int, text: str) -> Any:
    value = None
    with suppress(ValueError):
        value = json.loads(text, object_hook=Answer)
    if isinstance(value, dict) and status < 400:
        return value["items"] if set(value) == {"items"} else value["result"] if set(value) == {"result"} else value
    if isinstance(value, dict) and "type" in value:
        raise error_of(value)
    raise ProviderError(f"the server answered {status} and no JSON: {text!r:.100}", status=status)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, set | tuple) else value


def _methods() -> Iterator[tuple[tuple[str, str], Operation]]:
    for operation in OPERATIONS.values():
        call = operation.call if isinstance(operation.call, str) else operation.call.__name__
        service, _, name = call.rpartition(".")
        if not operation.file:
            yield (service, "list" if name == "list_memories" else name), operation


_OF_METHOD: Final[Mapping[tuple[str, str], Operation]] = dict(_methods())
