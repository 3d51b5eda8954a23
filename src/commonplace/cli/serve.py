"""The commands `serve`, `ui` and `token`: the HTTP server of a store, its page, and its access tokens."""

from __future__ import annotations

import atexit
import os
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from tempfile import mkstemp
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options
from commonplace.cli.app import Group, ask, command
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import console, hint, print_json
from commonplace.cli.rows import Answer, Line, Row, emit, listed, local_time
from commonplace.errors import CommonplaceError
from commonplace.settings.paths import LOGS, address_of, directory_of
from commonplace.types import SCOPES

_IN_TERMINAL: Final = frozenset({"elinks", "links", "lynx", "w3m", "www-browser"})

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.engine.tokens import Token
    from commonplace.server.run import ListenAddress


_SCOPES, _MAY = f"[{'|'.join(SCOPES)}]", "What it may do; several with commas, or given several times."
_port = click.IntRange(0, 65_535)


@command(None, makes_store=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option("--port", type=_port, default=8765, show_default=True, help="0 takes a free one.")
@click.option("--socket", "path", type=click.Path(path_type=Path), help="Listen on this Unix socket instead.")
@click.option("--allowed-host", multiple=True, help="Also answer under this name, as behind a proxy.")
@click.option("--rate-limit", type=click.IntRange(0), default=0, help="Requests a minute for a token. [default: none]")
def serve(invocation: Invocation, /, host: str, port: int, path: Path | None, **given: Any) -> None:
    """Serve the store over HTTP.

    The API is below /v1, the Model Context Protocol at /mcp. Until the store has a token, the server answers only this
    machine and asks for none. After `commonplace token create`, every request needs a token. Stop it with Ctrl-C. Needs
    `pip install 'commonplace[server]'`.

    Example: commonplace serve --port 8765
    """
    from commonplace.server.run import ListenAddress

    def ready(url: str) -> None:
        if invocation.as_json:
            print_json({"address": url}, indent=None)
            return
        console(stderr=True).print(f"Serving {invocation.settings().store.path} on {url}", style="bold")
        hint("API: /v1 (described by /v1/openapi.json) · MCP: /mcp · stop with Ctrl-C")
        # Tokens are not looked up here: that opens the engine, which is a third of an idle server's memory.
        base = "Only this machine is answered, without a token until the store has one (`commonplace token create`)."
        local_hint = f"{base} For other machines give --host too."
        remote_hint = "Every machine is answered that sends a token of the store (`commonplace token list`)."
        hint(local_hint if address.is_local else remote_hint)

    address = ListenAddress(host, port, path)
    _run(invocation, address, ready, allowed_hosts=given["allowed_host"], per_minute=given["rate_limit"])


@command(None)
@click.option("--port", type=_port, default=0, help="Listen on this port. [default: a free one]")
@click.option("--no-browser", is_flag=True, help="Print the link, but open no browser.")
def ui(invocation: Invocation, /, port: int, no_browser: bool) -> None:
    """Look at the memory in a browser.

    The page is read-only until Edit is switched on. It answers only this machine, by a link that works until Ctrl-C.
    Needs `pip install 'commonplace[server]'`.

    Example: commonplace ui
    """
    from commonplace.server.run import ListenAddress

    def ready(link: str) -> None:
        if invocation.as_json:
            print_json({"link": link}, indent=None)
        else:
            print(link, flush=True)  # noqa: T201 - whole, however narrow the terminal is
            hint("Open this link in a browser of this machine; stop with Ctrl-C.")
        if not no_browser:
            _open(link)

    _run(invocation, ListenAddress("127.0.0.1", port), ready, has_page=True)


def _open(link: str) -> None:
    """Open a link in the user's browser, in a thread; a browser that runs in the terminal is not started.

    The browser gets a file with a redirect to the link, which only this user can read: the link grants access, and
    anybody can read the arguments of a process.
    """
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if Path(getattr(browser, "name", "")).name in _IN_TERMINAL:
        return
    descriptor, name = mkstemp(prefix="commonplace-", suffix=".html")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={escape(link)}">\n')
    atexit.register(Path(name).unlink, missing_ok=True)
    Thread(target=browser.open, args=(Path(name).as_uri(),), daemon=True).start()


def _run(invocation: Invocation, address: ListenAddress, report: Callable[[str], None], **server_options: Any) -> None:
    from commonplace.cli.socket_server import Listener
    from commonplace.server.run import run

    loaded, listener = invocation.settings(), Listener()
    invocation.refuse_mistyped(loaded)

    def open_engine() -> Engine:
        engine = invocation.open(loaded, create=True)
        listener.begin(loaded, lambda: engine)  # for a store that did not exist before; otherwise it has begun
        return engine

    @contextmanager
    def serving(url: str, engine: Callable[[], Engine]) -> Iterator[None]:
        def open_early() -> None:
            with suppress(CommonplaceError):  # the first page reports it
                engine().consolidation_runs(1)  # loads most of what the page Home needs

        opening = Thread(target=open_early, daemon=True)
        if invocation.has_store(loaded):
            listener.begin(loaded, engine)
            if "has_page" in server_options:
                opening.start()  # meanwhile the browser starts
        report(url)
        try:
            yield
        finally:  # the engine is closed later: the thread and the listener may still use it
            if opening.ident is not None:
                opening.join()
            listener.end()

    run(
        open_engine,
        address,
        log=directory_of(loaded.store.path) / LOGS / "access.jsonl",
        serving=serving,
        waits_for_database=address_of(loaded.store.path) is not None,
        **server_options,
    )


@click.group(cls=Group)
def token() -> None:
    """Create, list and revoke the access tokens of a store.

    Example: commonplace token create --scope read,write
    """


@command(token, makes_store=True)
@click.option("--for", "namespaces", multiple=True, metavar="NAMESPACE", help="What it sees. [default: --namespace]")
@options.text("--scope", "scopes", metavar=_SCOPES, many=True, default=("read",), show_default=True, help=_MAY)
@click.option("--expires", metavar="TIME", help="A time, a date, or words such as 'in 30 days'. [default: never]")
def create(invocation: Invocation, /, **given: Any) -> None:
    """Create a token, and print it once.

    Only a digest of it is stored.

    Example: commonplace token create --for team --scope read,write
    """
    loaded = invocation.settings()
    names = given["namespaces"] or (loaded.store.namespace,)
    scopes = [scope for group in given["scopes"] for scope in group.split(",")]
    with invocation.open(loaded, create=True) as engine:
        created = engine.tokens.create(names, scopes, given["expires"])
    emit(invocation, created, created.secret)
    if not invocation.as_json:  # standard output has only the token, for `TOKEN=$(…)`
        hint("Shown once: keep it where only its user can read it.")
        hint(_about(created.token))


def _about(record: Token) -> str:
    ends = f" until {local_time(record.expires_at)}" if record.expires_at else ", never expires"
    return f"{', '.join(record.scopes)} in {', '.join(record.namespaces)}{ends}"


@ask(token, name="list")
def list_(engine: Engine, /) -> Answer:
    """List the tokens, without their secrets, oldest first.

    Example: commonplace token list
    """
    tokens = engine.tokens.all()
    rows = listed(tokens, lambda record: Row(record.id, (_about(record),)), none="There is no token.")
    return {"tokens": tokens}, rows


@ask(token, click.argument("id"))
def revoke(engine: Engine, /, id: str) -> Answer:  # noqa: A002 - the name of the argument
    """Revoke a token; it stops working at once, in every process.

    Example: commonplace token revoke 9cf90c15a945
    """
    revoked = engine.tokens.revoke(id)
    return revoked, Line(f"Revoked {revoked.id}", "bold")
