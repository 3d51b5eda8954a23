"""The pages: each is a template whose script calls the operations of `/v1`, and a few that exist only for the page."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

import commonplace
from commonplace.mcp.clients import CLIENTS, is_configured
from commonplace.server.access import ENTRANCE, PageSession
from commonplace.server.app import Service, call, json_object
from commonplace.server.problems import Problem
from commonplace.server.routes import Operation

if TYPE_CHECKING:
    from commonplace.engine import Engine

_HERE: Final = Path(__file__).parent
_TITLES: Final = ("Memories", "Recall", "Graph", "Review", "Runs", "Context", "Store")
PAGES: Final[Mapping[str, str]] = {"/": "Home", **{f"/{title.lower()}": title for title in _TITLES}}
"""The pages of the navigation, by path; a memory's own page is reached from these."""
INSTALL_TIMEOUT_S: Final = 60
_BELOW: Final = 10
"""How many candidates below the hits are listed with the reason for their omission."""
_RANKED: Final = 30
"""How many of the best hits are checked for omission from a context."""
_WEAK: Final = 3
"""Maximum number of weak memories in a context."""
_templates: Final = Environment(
    loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)


def page_routes(service: Service, session: PageSession) -> list[BaseRoute]:
    """Return the routes of the page."""
    titles = {**PAGES, "/memory": "Memory"}
    return [
        Route(ENTRANCE, partial(_enter, session), name="enter"),
        Route("/page/install", partial(_install, service, session), methods=["POST"], name="install"),
        Route("/page/edit", partial(_edit, service, session), methods=["POST"], name="edit"),
        *(Route(op.path, partial(_call, service, op), methods=[op.verb], name=op.id) for op in OPERATIONS),
        Mount("/static", StaticFiles(directory=_HERE / "static"), name="static"),
        *(
            Route(path, partial(_page, service, session, path, title), name=f"page {title.lower()}")
            for path, title in titles.items()
        ),
    ]


async def _enter(session: PageSession, request: Request) -> Response:
    """Exchange the token of the link for a cookie.

    The response is a page that leads on, not a redirect: after a link on another site the browser would not send a
    `SameSite=Strict` cookie with a redirected request.
    """
    if not session.opens(request.query_params.get("token", "")):
        return _locked()
    response = HTMLResponse(_templates.get_template("enter.html").render())
    response.set_cookie(session.cookie, session.secret, httponly=True, samesite="strict")
    return response


async def _edit(service: Service, session: PageSession, request: Request) -> Response:
    service.access.check_visitor(request)
    editing = json_object(await service.body(request)).get("editing")
    if not isinstance(editing, bool):
        raise Problem(400, "invalid-request", "editing is neither true nor false")
    session.is_editing = editing
    return Response(json.dumps({"editing": session.is_editing}), media_type="application/json")


async def _call(service: Service, operation: Operation, request: Request) -> Response:
    """Answer only the page: the token of one namespace must not see settings, paths and the findings of `doctor`."""
    service.access.check_visitor(request)
    return await call(service, operation, request)


def _store(engine: Engine) -> dict[str, Any]:
    settings = engine.settings
    clients = [(client, client.config_path(Path.cwd(), Path.home())) for client in CLIENTS.values()]
    return {
        "settings": [[key.dotted, settings.value(key), settings.origin(key)] for key in settings.all_keys()],
        "clients": [[client.name, client.title, str(file), is_configured(client, file)] for client, file in clients],
        "backups": engine.backups(),
    }


async def _install(service: Service, session: PageSession, request: Request) -> Response:
    """Write the MCP server of this store into the file of a client, as `commonplace mcp --install` does."""
    service.access.check_visitor(request)
    if not session.is_editing:
        raise Problem(403, "read-only", "the page is read-only", remedy="switch on Edit")
    name = str(json_object(await service.body(request)).get("client", ""))
    if name not in CLIENTS:
        raise Problem(400, "invalid-request", f"there is no client {name!r:.80}")

    def write() -> Response:
        engine = service.engines.root()
        options = ["--store", str(engine.directory), "--namespace", engine.namespace, "--no-server", "--json"]
        child = subprocess.run(
            [sys.executable, "-m", "commonplace", "mcp", *options, "--install", name, "--yes"],
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_TIMEOUT_S,
        )
        if child.returncode:
            raise Problem(409, "not-installed", child.stderr.strip() or f"the command ended with {child.returncode}")
        return JSONResponse({**json.loads(child.stdout), "then": CLIENTS[name].next_step})

    return await service.in_thread(write)


async def _page(service: Service, session: PageSession, path: str, title: str, request: Request) -> Response:
    try:
        service.access.check_visitor(request)
    except Problem:
        return _locked()
    root = await service.in_thread(service.engines.root)
    requested = request.query_params.get("namespace")
    names = await service.in_thread(root.namespaces)
    name, namespace = title.lower(), requested or root.namespace
    variables: dict[str, Any] = {"title": title, "script": name, "path": path, "pages": PAGES, "csrf": session.csrf}
    variables |= {"namespace": namespace, "namespaces": sorted({*names, namespace}), "is_chosen": requested is not None}
    variables |= {"is_editing": session.is_editing, "version": commonplace.__version__}
    return HTMLResponse(_templates.get_template(f"{name}.html").render(variables))


def _locked() -> Response:
    return HTMLResponse(_templates.get_template("locked.html").render(), 401)


def _recall(
    engine: Engine,
    query: str,
    limit: int | None = None,
    kinds: Sequence[str] | None = None,
    method: str | None = None,
    as_of: str | None = None,
    also: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Search; return the hits, the next candidates with the reasons for their omission, the golden query, the words."""
    result = engine.search(query, limit, kinds, method, as_of=as_of, also=also)  # type: ignore[arg-type]
    depth = max(len(result.hits), limit or 0) + _BELOW
    ranking = engine.search(query, depth, kinds, method, as_of=as_of, also=also, min_score=0.0)  # type: ignore[arg-type]
    shown_ids = {hit.id for hit in result.hits}
    below = [hit.id for hit in ranking.hits if hit.id not in shown_ids][:_BELOW]
    rejected = {candidate.number: candidate.rejected for candidate in result.trace.candidates}
    receipts = [engine.why(ranking, hit.id) for hit in ranking.hits[:1]]
    normalized = " ".join(query.split())
    return {
        "found": result,
        "below": [hit_form for hit_form in ranking.to_dict()["hits"] if hit_form["id"] in below],
        "reasons": {
            id_: {
                "rejected": rejected.get(ranking.trace.numbers.get(id_, -1)),
                "missing": engine.why(ranking, id_).missing_terms,
            }
            for id_ in below
        },
        "words": [word for receipt in receipts for word in (*receipt.matched_terms, *receipt.missing_terms)],
        "floor": result.trace.min_score,
        "golden": next((golden for golden in engine.golden_queries() if golden.query == normalized), None),
    }


def _context(engine: Engine, task: str = "", max_tokens: int | None = None, is_hook: bool = False) -> dict[str, Any]:
    """Return the context of a task, or a hook's injection, token by token, with the omitted hits and the reasons."""
    build = engine.injection if is_hook else engine.context
    context = build(task, max_tokens, touch=False)
    ranking = None if context.found is None else engine.search(task, _RANKED, min_score=0.0)
    return {
        **context.to_dict(),
        "pieces": engine.cut_tokens(context.text),
        "shares": {hit.id: engine.count_tokens(hit.text) for hit in context.hits},
        "omitted": [] if ranking is None else list(_omitted(context, ranking, is_hook=is_hook)),
    }


def _omitted(context: Any, ranking: Any, *, is_hook: bool) -> Iterator[dict[str, Any]]:
    """Yield the best hits that a context omits, each with the reason."""
    included = {(hit.kind, hit.owner_id) for hit in context.hits}
    texts = {" ".join(hit.text.split()) for hit in context.hits}
    rejected = {candidate.number: candidate.rejected for candidate in context.found.trace.candidates}
    weak = sum(hit.confidence == "weak" for hit in context.hits)
    for hit, hit_form in zip(ranking.hits, ranking.to_dict()["hits"], strict=True):
        if (hit.kind, hit.owner_id) in included:
            continue
        reason: str | None = rejected.get(ranking.trace.numbers.get(hit.id, -1))
        if " ".join(hit.text.split()) in texts:
            reason = "same text as a better hit"
        elif reason is None and hit.confidence == "weak":
            reason = "too weak for a hook" if is_hook else "weak" if hit.kind != "memory" or weak >= _WEAK else None
        yield {**hit_form, "reason": reason or "no room"}


OPERATIONS: Final = (
    Operation("page_store", "GET", "/page/store", "read", _store, "Page"),
    # Read-only here: nothing is mended.
    Operation("page_doctor", "GET", "/page/doctor", "read", "doctor", "Page", {"mend": False, "secrets": False}),
    Operation("page_recall", "POST", "/page/recall", "read", _recall, "Page"),
    Operation("page_context", "POST", "/page/context", "read", _context, "Page"),
)
