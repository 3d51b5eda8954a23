"""Export and import as streams of JSON lines."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from commonplace.formats.plain import plain
from commonplace.server.openapi import LINES_TYPE
from commonplace.server.problems import Problem

if TYPE_CHECKING:
    from commonplace.server.app import Service

MAX_IMPORT_BYTES: Final = 4 * 1024**3
IMPORT_TIMEOUT_S: Final = 3_600.0
_FLAGS: Final = {"true": True, "false": False}


async def export_lines(service: Service, request: Request) -> Response:
    """Answer with what a namespace holds, from one state of the store."""

    def work() -> Response:
        caller = service.access.caller(request)
        namespace = request.query_params.get("namespace") or caller.namespace
        caller.check("read", namespace)
        kinds = request.query_params.getlist("kinds") or None
        directory = tempfile.TemporaryDirectory(prefix="commonplace-")
        path = Path(directory.name) / "export.jsonl"
        try:
            with service.engines.use(namespace) as engine:
                engine.export(path, kinds=kinds)
        except BaseException:
            directory.cleanup()
            raise
        return FileResponse(path, media_type=LINES_TYPE, background=BackgroundTask(directory.cleanup))

    return await service.in_thread(work)


async def import_lines(service: Service, request: Request) -> Response:
    """Take in an export, or the file of another system; everything is checked before anything is written."""

    def work(path: Path) -> Response:
        caller = service.access.caller(request)
        namespace = request.query_params.get("namespace") or caller.namespace
        caller.check("write", namespace)
        with service.engines.use(namespace) as engine:
            report = engine.import_(path, **_options(request))
        return Response(json.dumps(plain(report), ensure_ascii=False), media_type="application/json")

    async with _received(service, request) as path:
        return await service.in_thread(lambda: work(path))


@asynccontextmanager
async def _received(service: Service, request: Request) -> AsyncIterator[Path]:
    limits = replace(service.limits, max_body_bytes=MAX_IMPORT_BYTES, body_timeout_s=IMPORT_TIMEOUT_S)
    with tempfile.TemporaryDirectory(prefix="commonplace-") as directory:
        path = Path(directory) / "import.jsonl"
        with path.open("wb") as file:
            async for part in service.parts(request, LINES_TYPE, limits):
                file.write(part)
        yield path


def _options(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in request.query_params.items():
        if name in ("format", "on_conflict"):
            found[name] = text
        elif name in ("dry_run", "skip_problems") and text in _FLAGS:
            found[name] = _FLAGS[text]
        elif name != "namespace":
            message = f"{name}={text!r:.80} is not known here"
            remedy = "there are namespace, format, on_conflict, and dry_run and skip_problems, true or false"
            raise Problem(400, "invalid-request", message, remedy=remedy)
    return found
