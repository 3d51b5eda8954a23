"""The pages: each is a template whose script calls the operations of `/v1`, and some that only the page has."""

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
"""The pages of the navigation by their path; a memory's own page is reached from the others."""
INSTALL_TIMEOUT_S: Final = 60
_BELOW: Final = 10
"""How many candidates below the hits are listed with the reason."""
_RANKED: Final = 30
"""How many of the best hits are listed if a context omits them."""
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
        *(Route(each.path, partial(_call, service, each), methods=[each.verb], name=each.id) for each in OPERATIONS),
        Mount("/static", StaticFiles(directory=_HERE / "static"), name="static"),
        *(
            Route(path, partial(_page, service, session, path, title), name=f"page {title.lower()}")
            for path, title in titles.items()
        ),
    ]


async def _enter(session: PageSession, request: Request) -> Response:
    """Turn the token of the link into a cookie.

    The page that comes first, not a redirection, leads on: after a link on another site the browser would not send a
    cookie of `SameSite=Strict` with a redirected request.
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
    """Answer the page alone: settings, paths and what `doctor` finds are nothing for the token of one namespace."""
    service.access.check_visitor(request)
    return await call(service, operation, request)


def _store(engine: Engine) -> dict[str, Any]:
    settings = engine.settings
    clients = [(each, each.place(Path.cwd(), Path.home())) for each in CLIENTS.values()]
    return {
        "settings": [[key.dotted, settings.value(key), settings.origin(key)] for key in settings.all_keys()],
        "clients": [[each.name, each.title, str(place), is_configured(each, place)] for each, place in clients],
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
        given = ["--store", str(engine.directory), "--namespace", engine.namespace, "--no-server", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "commonplace", "mcp", *given, "--install", name, "--yes"],
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_TIMEOUT_S,
        )
        if done.returncode:
            raise Problem(409, "not-installed", done.stderr.strip() or f"the command ended with {done.returncode}")
        return JSONResponse({**json.loads(done.stdout), "then": CLIENTS[name].then})

    return await service.in_thread(write)


async def _page(service: Service, session: PageSession, path: str, title: str, request: Request) -> Response:
    try:
        service.access.check_visitor(request)
    except Problem:
        return _locked()
    root = await service.in_thread(service.engines.root)
    chosen = request.query_params.get("namespace")
    spaces = await service.in_thread(root.namespaces)
    name, namespace = title.lower(), chosen or root.namespace
    shown: dict[str, Any] = {"title": title, "script": name, "path": path, "pages": PAGES, "csrf": session.csrf}
    shown |= {"namespace": namespace, "namespaces": sorted({*spaces, namespace}), "is_chosen": chosen is not None}
    shown |= {"is_editing": session.is_editing, "version": commonplace.__version__}
    return HTMLResponse(_templates.get_template(f"{name}.html").render(shown))


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
    """Search; return hits, the next candidates and why each is not shown, a person's marks, the words that count."""
    found = engine.search(query, limit, kinds, method, as_of=as_of, also=also)  # type: ignore[arg-type]
    most = max(len(found.hits), limit or 0) + _BELOW
    every = engine.search(query, most, kinds, method, as_of=as_of, also=also, min_score=0.0)  # type: ignore[arg-type]
    shown = {hit.id for hit in found.hits}
    below = [hit.id for hit in every.hits if hit.id not in shown][:_BELOW]
    rejected = {each.number: each.rejected for each in found.trace.candidates}
    words = [engine.why(every, hit.id) for hit in every.hits[:1]]
    asked = " ".join(query.split())
    return {
        "found": found,
        "below": [each for each in every.to_dict()["hits"] if each["id"] in below],
        "reasons": {
            id_: {
                "rejected": rejected.get(every.trace.numbers.get(id_, -1)),
                "missing": engine.why(every, id_).missing_terms,
            }
            for id_ in below
        },
        "words": [word for each in words for word in (*each.matched_terms, *each.missing_terms)],
        "floor": found.trace.min_score,
        "golden": next((each for each in engine.golden_queries() if each.query == asked), None),
    }


def _context(engine: Engine, task: str = "", max_tokens: int | None = None, is_hook: bool = False) -> dict[str, Any]:
    """Return the context of a task, or what a hook injects, token by token, and what is omitted and why."""
    call = engine.injection if is_hook else engine.context
    made = call(task, max_tokens, touch=False)
    every = None if made.found is None else engine.search(task, _RANKED, min_score=0.0)
    return {
        **made.to_dict(),
        "pieces": engine.cut_tokens(made.text),
        "shares": {hit.id: engine.count_tokens(hit.text) for hit in made.hits},
        "omitted": [] if every is None else list(_omitted(made, every, is_hook=is_hook)),
    }


def _omitted(made: Any, every: Any, *, is_hook: bool) -> Iterator[dict[str, Any]]:
    """Yield the best hits that a context omits, with the reason of each."""
    taken = {(hit.kind, hit.owner_id) for hit in made.hits}
    texts = {" ".join(hit.text.split()) for hit in made.hits}
    rejected = {each.number: each.rejected for each in made.found.trace.candidates}
    weak = sum(hit.confidence == "weak" for hit in made.hits)
    for hit, shown in zip(every.hits, every.to_dict()["hits"], strict=True):
        if (hit.kind, hit.owner_id) in taken:
            continue
        reason: str | None = rejected.get(every.trace.numbers.get(hit.id, -1))
        if " ".join(hit.text.split()) in texts:
            reason = "same text as a better hit"
        elif reason is None and hit.confidence == "weak":
            reason = "too weak for a hook" if is_hook else "weak" if hit.kind != "memory" or weak >= _WEAK else None
        yield {**shown, "reason": reason or "no room"}


OPERATIONS: Final = (
    Operation("page_store", "GET", "/page/store", "read", _store, "Page"),
    # It mends nothing here.
    Operation("page_doctor", "GET", "/page/doctor", "read", "doctor", "Page", {"mend": False, "secrets": False}),
    Operation("page_recall", "POST", "/page/recall", "read", _recall, "Page"),
    Operation("page_context", "POST", "/page/context", "read", _context, "Page"),
)
