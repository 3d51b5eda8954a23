"""The page's door: who may come in, what it may change, and that nothing of a store becomes markup."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import closing
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from click.testing import CliRunner
from tests.hostile import HOSTILE
from tests.serving import serving
from tests.surfaces.test_http import OFFICE, problem

import commonplace
from commonplace.cli import serve
from commonplace.cli.app import cli
from commonplace.cli.invocation import Invocation
from commonplace.engine import Engine
from commonplace.server.access import CSRF_HEADER, PageSession
from commonplace.server.app import EnginePool

HERE = Path(commonplace.__file__).parent / "server" / "page"
PAGES = ("/", "/memories", "/memory?id=x", "/recall", "/graph", "/review", "/runs", "/context", "/store")
MAX_JAVASCRIPT_LINES = 2_500


@pytest.fixture
def session() -> PageSession:
    return PageSession()


@pytest.fixture
def client(tmp_path: Path, session: PageSession) -> Iterator[httpx.Client]:
    """A client that has not opened the link."""
    with serving(tmp_path / "store", page=session) as client:
        yield client


@pytest.fixture
def visitor(client: httpx.Client, session: PageSession) -> httpx.Client:
    """A client that has opened the link, and sends the page's token with what it asks for."""
    assert client.get(session.path).status_code == 200
    client.headers[CSRF_HEADER] = session.csrf
    return client


def switch(visitor: httpx.Client, editing: object) -> httpx.Response:
    return visitor.post("/page/edit", json={"editing": editing})


def test_the_link_s_token_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(
    client: httpx.Client, session: PageSession
) -> None:
    response = client.get(session.path)
    cookie = response.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert client.get("/").status_code == 200
    token = session.path.partition("=")[2]
    assert token not in cookie + client.get("/").text + response.text


@pytest.mark.parametrize("path", [*PAGES, "/enter", "/enter?token=x", "/enter?token=%C3%A9"])
def test_without_the_link_there_is_no_page(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 401
    assert "set-cookie" not in response.headers
    assert "csrf" not in response.text


def test_without_the_link_nothing_is_answered_though_the_store_has_no_token(client: httpx.Client) -> None:
    """Any program or user of this machine can reach the port."""
    posts = ("/v1/recall", "/mcp", "/page/edit", "/page/recall", "/page/context")
    for verb, path in (("GET", "/v1/memories"), *(("POST", each) for each in posts)):
        assert problem(client.request(verb, path, json={"query": "x"} if verb == "POST" else None), 401, "no-token")


def test_another_page_s_cookie_opens_nothing(visitor: httpx.Client, tmp_path: Path) -> None:
    with serving(tmp_path / "store", page=PageSession()) as other:
        other.cookies.update(visitor.cookies)
        assert other.get("/").status_code == 401


def test_a_token_of_the_store_is_good_beside_the_page(client: httpx.Client, tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        secret = book.tokens.create([book.namespace], ["read"]).secret
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.post("/v1/recall", json={"query": "x"}, headers=headers).status_code == 200


def test_nothing_is_changed_before_edit_is_switched_on(visitor: httpx.Client) -> None:
    body = {"content": OFFICE}
    problem(visitor.post("/v1/memories", json=body), 403, "read-only")
    assert switch(visitor, True).json() == {"editing": True}
    made = visitor.post("/v1/memories", json=body)
    assert made.status_code == 201
    switch(visitor, False)
    problem(visitor.delete(f"/v1/memories/{made.json()['id']}"), 403, "read-only")
    problem(switch(visitor, "yes"), 400, "invalid-request")
    problem(visitor.post("/page/edit", content=b"{", headers={"Content-Type": "application/json"}), 400, "invalid-json")


def test_what_is_said_of_a_hit_needs_edit_and_the_lab_does_not(visitor: httpx.Client, tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        book.remember(OFFICE, id="office")
    mark = {"query": "office", "id": "office", "verdict": "right"}
    problem(visitor.post("/v1/golden", json=mark), 403, "read-only")
    switch(visitor, True)
    assert visitor.post("/v1/golden", json=mark).json()["relevant"] == ["office"]
    switch(visitor, False)
    answer = visitor.post("/page/recall", json={"query": " office "}).json()
    assert answer["golden"]["relevant"] == ["office"]
    assert [each["owner_id"] for each in answer["found"]["hits"]] == ["office"]
    read = visitor.post("/page/context", json={"task": "office"}).json()
    assert sum(number for _, number in read["pieces"]) == read["tokens"] > 0
    assert visitor.get("/v1/memories/office").json()["use_count"] == 0
    problem(visitor.post("/page/recall", json={"query": "x", "min_score": 0}), 400, "invalid-request")


def test_the_lab_says_which_words_of_a_query_count_and_what_is_not_shown_lacks(
    visitor: httpx.Client, tmp_path: Path
) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        book.remember("The database for billing is SQLite", id="billing")
        book.remember("The office has a piano", id="piano")
    answer = visitor.post("/page/recall", json={"query": "which database does billing use?", "limit": 1}).json()
    assert set(answer["words"]) == {"database", "billing", "use"}
    ((_, reason),) = answer["reasons"].items()
    assert set(reason["missing"]) == {"database", "billing", "use"}


def test_what_is_more_than_a_look_carries_the_page_s_own_token(visitor: httpx.Client) -> None:
    switch(visitor, True)
    assert visitor.get("/v1/memories", headers={CSRF_HEADER: ""}).status_code == 200
    posts = ("/v1/recall", "/v1/golden", "/page/edit", "/page/recall", "/page/context")
    for verb, path in (("DELETE", "/v1/memories/x"), *(("POST", each) for each in posts)):
        body = {"query": "x"} if verb == "POST" else None
        for given in ("", "x", "\u00e9"):
            response = visitor.request(verb, path, json=body, headers={CSRF_HEADER: given.encode()})
            problem(response, 403, "no-csrf-token")
    problem(httpx.post(f"{visitor.base_url}/page/edit", json={"editing": True}), 401, "no-token")


def test_a_foreign_origin_is_refused_with_the_cookie_too(visitor: httpx.Client) -> None:
    for origin in ("http://evil.example", "null"):
        response = visitor.post("/v1/recall", json={"query": "x"}, headers={"Origin": origin})
        assert problem(response, 403, "foreign-origin")


@pytest.mark.parametrize("path", [*PAGES, "/static/page.js", "/v1/memories", "/nothing"])
def test_every_answer_forbids_what_is_not_ours(visitor: httpx.Client, path: str) -> None:
    headers = visitor.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")


class Outline(HTMLParser):
    """The elements of a page with the names of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))


def test_a_namespace_s_name_never_becomes_markup(visitor: httpx.Client) -> None:
    for path in PAGES:
        usual = Outline(visitor.get(path, params={"namespace": "other"}).text).elements
        assert ("script", "src") in usual
        for name in HOSTILE:
            assert Outline(visitor.get(path, params={"namespace": name}).text).elements == usual, (path, name)


def test_pages_hold_no_script_or_style_of_their_own(visitor: httpx.Client) -> None:
    for path in PAGES:
        text = visitor.get(path).text
        assert not re.findall(r"<script(?![^>]*src=)[^>]*>|<style|\sstyle=|\son[a-z]+=|https?://", text)


def test_the_scripts_make_no_markup_from_text_and_stay_small() -> None:
    text = "".join(path.read_text() for path in (HERE / "static").glob("*.js"))
    assert not re.findall(r"innerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser", text)
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert text.count("\n") <= MAX_JAVASCRIPT_LINES


def test_the_store_s_page_tells_settings_with_their_origins_and_what_doctor_finds(visitor: httpx.Client) -> None:
    told = visitor.get("/page/store").json()
    assert ["search.limit", 10, "default"] in told["settings"]
    assert told["backups"] == []
    assert "codex" in [name for name, *_ in told["clients"]]
    assert visitor.get("/page/doctor").json()["findings"] == []
    install = {"client": "none"}
    problem(visitor.post("/page/install", json=install), 403, "read-only")
    switch(visitor, True)
    problem(visitor.post("/page/install", json=install), 400, "invalid-request")
    problem(visitor.post("/page/install", json=install, headers={CSRF_HEADER: "x"}), 403, "no-csrf-token")
    visitor.cookies.clear()
    for path in ("/page/store", "/page/doctor"):
        problem(visitor.get(path), 401, "no-token")
    problem(visitor.post("/page/install", json=install), 401, "no-token")


def test_a_token_does_not_reach_what_the_page_alone_shows(client: httpx.Client, tmp_path: Path) -> None:
    """Settings, paths of this machine and what doctor finds concern all namespaces, not the one of a token."""
    with commonplace.open(tmp_path / "store") as book:
        secret = book.tokens.create(["default"], ["read", "admin"]).secret
    for path in ("/page/store", "/page/doctor"):
        problem(client.get(path, headers={"Authorization": f"Bearer {secret}"}), 401, "no-token")


def test_files_beside_the_page_s_are_not_served(visitor: httpx.Client) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())

    def status(path: str) -> int:
        """Ask for a path as it stands: httpx would resolve its dots."""
        connection = HTTPConnection(str(visitor.base_url.host), visitor.base_url.port, timeout=60)
        with closing(connection):
            connection.request("GET", path, headers={"Cookie": cookie})
            return connection.getresponse().status

    assert status("/static/page.js") == 200
    for path in ("/static/../views.py", "/static/%2e%2e/views.py", "/static/..%2fviews.py", "/static//", "/static/"):
        assert status(path) == 404


def test_the_command_prints_a_link_and_ends_when_told_to(tmp_path: Path) -> None:
    commonplace.open(tmp_path / "store", embedder="hashing").close()
    command = [sys.executable, "-m", "commonplace", "ui", "--no-browser", "--store", str(tmp_path / "store")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        try:
            assert link.startswith("http://127.0.0.1:")
            with httpx.Client(timeout=60) as client:
                assert client.get(link).status_code == 200
                home = client.get(httpx.URL(link).join("/"))
            assert (home.status_code, "What do you want to find?" in home.text) == (200, True)
        finally:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode in (0, 130)
    log = (tmp_path / "store" / "logs" / "access.jsonl").read_text()
    assert "enter" in log
    assert link.partition("token=")[2] not in log


@pytest.mark.parametrize("has_store", [True, False])
def test_the_store_is_opened_while_the_browser_starts_and_none_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_store: bool
) -> None:
    store = tmp_path / "store"
    if has_store:
        commonplace.open(store, embedder="hashing").close()
    opened: Queue[Path] = Queue()
    usual = Invocation.open

    def spied(self: Invocation, *given: Any, **options: Any) -> Any:
        opened.put(store)
        return usual(self, *given, **options)

    monkeypatch.setattr(Invocation, "open", spied)

    def run(open_engine: Callable[[], Engine], *_: object, serving: Callable[..., Any], **__: object) -> None:
        with closing(EnginePool(open_engine)) as engines, serving("http://127.0.0.1:1/enter", engines.root):
            assert not has_store or opened.get(timeout=60) == store

    monkeypatch.setattr("commonplace.server.run.run", run)
    monkeypatch.setenv("COMMONPLACE_STORE", str(store))
    done = CliRunner().invoke(cli, ["ui", "--no-browser"])
    assert (done.exit_code, done.exception) == (0, None), done.output
    assert opened.empty()
    assert store.exists() == has_store


def test_looking_counts_nothing_as_used(visitor: httpx.Client) -> None:
    """Nor does it while Edit is on: what a person looks at is none of an agent's uses."""
    switch(visitor, True)
    visitor.post("/v1/memories", json={"content": "Invoices are kept in Postgres.", "id": "kept"})
    for editing in (True, False):
        switch(visitor, editing)
        for path in ("recall", "context", "injection"):
            body = {"recall": "query", "context": "task", "injection": "prompt"}[path]
            assert "Postgres" in visitor.post(f"/v1/{path}", json={body: "where are invoices kept in Postgres"}).text
    visitor.get("/v1/memories/kept")
    assert visitor.get("/v1/memories/kept").json()["use_count"] == 0


def test_what_an_agent_asks_beside_the_page_counts_as_used(client: httpx.Client, tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        book.remember("Invoices are kept in Postgres.", id="kept")
        secret = book.tokens.create([book.namespace], ["read"]).secret
    agent = {"Authorization": f"Bearer {secret}"}
    asked = client.post("/v1/context", json={"task": "where are invoices kept in Postgres"}, headers=agent)
    assert "Postgres" in asked.text
    assert client.get("/v1/memories/kept", params={"touch": "false"}, headers=agent).json()["use_count"] == 1


def test_a_namespace_is_not_dropped_from_the_page(visitor: httpx.Client) -> None:
    switch(visitor, True)
    assert problem(visitor.delete("/v1/namespaces/default"), 403, "read-only")


def test_a_bulk_of_one_moment_is_read_to_its_end(visitor: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a bulk may tell of one time, so that the place within it grows with each page."""
    monkeypatch.setattr("commonplace.engine.engine.MAX_LISTED", 10)
    switch(visitor, True)
    items = [{"content": f"note {number}", "id": f"n{number}", "at": "2026-01-01"} for number in range(25)]
    visitor.post("/v1/memories/bulk", json={"items": items, "force": True})
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = visitor.get("/v1/memories", params={"limit": 9, "cursor": cursor} if cursor else {"limit": 9}).json()
        seen += [each["id"] for each in page["memories"]]
        cursor = page["next_cursor"]
    assert sorted(seen) == sorted(each["id"] for each in items)


def test_the_browser_gets_the_link_by_a_file_of_the_user_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Queue[str] = Queue()
    monkeypatch.setattr(webbrowser, "get", lambda: SimpleNamespace(name="firefox", open=opened.put))
    serve._open("http://127.0.0.1:1/enter?token=secret")
    address = opened.get(timeout=60)
    file = Path(urlsplit(address).path)
    assert "secret" not in address
    assert file.stat().st_mode & 0o777 == 0o600
    assert 'content="0;url=http://127.0.0.1:1/enter?token=secret"' in file.read_text()
    monkeypatch.setattr(webbrowser, "get", lambda: SimpleNamespace(name="/usr/bin/w3m", open=opened.put))
    serve._open("http://127.0.0.1:1/enter?token=secret")
    assert opened.empty()
