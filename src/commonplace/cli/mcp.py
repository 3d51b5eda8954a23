"""The command `mcp`: serve agents over the Model Context Protocol, and configure MCP clients."""

from __future__ import annotations

import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import click

from commonplace.cli import options
from commonplace.cli.app import FAILURE, SUCCESS, command
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import hint, print_json, say, write_whole
from commonplace.cli.rows import Line, emit
from commonplace.errors import StoreError, UsageError
from commonplace.mcp.clients import CLIENTS, NAME, configured, fallback, snippet


@command(None)
@options.choice("--print-config", of=list(CLIENTS), help="Print what to write to a client's file.")
@options.choice("--install", of=list(CLIENTS), help="Show the change to a client's file, ask, and write it.")
@click.option("--watch", is_flag=True, help="Index the project again whenever its files change.")
@click.option("--yes", is_flag=True, help="Do not ask before writing.")
def mcp(invocation: Invocation, /, print_config: str | None, install: str | None, watch: bool, yes: bool) -> int:
    """Serve agents over the Model Context Protocol.

    A client starts it and speaks on standard input and output. It uses the nearest project store, or else your user
    store (in your data directory). If the store does not exist, the first tool call creates it.

    Example: commonplace mcp --install claude-code
    """
    invocation.watches = watch
    if print_config and install:
        raise click.UsageError("--print-config and --install exclude each other: give one")
    if print_config:
        return _print_config(print_config, invocation)
    if install:
        return _install(install, invocation, is_agreed=yes)
    from commonplace.cli.main import serve

    return serve(invocation)


def _print_config(name: str, invocation: Invocation) -> int:
    client = CLIENTS[name]
    file = client.config_path(Path.cwd(), Path.home())
    text = snippet(client, _command(invocation))
    if invocation.as_json:
        print_json({"client": client.name, "path": str(file), "snippet": text})
        return SUCCESS
    hint(f"For {client.title}, in {file}:")
    say(text.rstrip("\n"))
    hint(f"{client.next_step} `commonplace mcp --install {client.name}` writes it for you.")
    return SUCCESS


def _install(name: str, invocation: Invocation, *, is_agreed: bool) -> int:
    import difflib
    import shutil

    client = CLIENTS[name]
    file = client.config_path(Path.cwd(), Path.home())
    report: dict[str, Any] = {"client": name, "path": str(file), "changed": False, "backup": None}
    try:
        current = file.read_text("utf-8")
    except FileNotFoundError:
        current = ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", remedy=f"correct it, or {fallback(client)}") from error
    updated = configured(current, client, _command(invocation), name=str(file))
    if updated == current:
        emit(invocation, report, f"The server is already configured for {client.title}: {file}")
        return SUCCESS
    if file.exists() and not file.stat().st_mode & 0o222:  # a rename would replace it all the same
        raise StoreError(f"{file} is read-only", remedy=f"make it writable, or {fallback(client)}")
    if not invocation.as_json:
        origin = str(file) if current else "/dev/null"
        say("\n".join(difflib.unified_diff(current.splitlines(), updated.splitlines(), origin, str(file), lineterm="")))
    if not is_agreed:
        options.refuse_unasked(invocation, "write the file")
        if not click.confirm("Write this?", default=True):
            hint("Nothing was written.")
            return FAILURE
    if current:
        # Keep the old file beside the new one, under an unused name.
        timestamp = time.strftime("%Y%m%d-%H%M%S")
        names = (f"{file.name}.{timestamp}{'' if number == 1 else f'-{number}'}.bak" for number in count(1))
        backup = next(path for candidate in names if not (path := file.with_name(candidate)).exists())
        try:
            shutil.copy2(file, backup)
        except OSError as error:
            raise StoreError(f"{backup} cannot be written: {error.strerror}", remedy=fallback(client)) from error
        report["backup"] = str(backup)
    write_whole(file, updated, fallback(client), makes_parent=True)
    report["changed"] = True
    emit(invocation, report, [f"Written: {file}", f"The old one is kept: {report['backup']}" if current else Line("")])
    if not invocation.as_json:
        hint(client.next_step)
    return SUCCESS


def _command(invocation: Invocation) -> list[str]:
    """Return the command line that starts this program as a server, by its full path: clients may lack the PATH."""
    import shutil

    candidates = (Path(sys.argv[0]), Path(sys.executable).with_name(NAME), Path(shutil.which(NAME) or ""))
    program = next((candidate for candidate in candidates if candidate.name == NAME and candidate.is_file()), None)
    if program is None:
        raise UsageError(f"the program {NAME!r} is not on the PATH", remedy="install commonplace, then try again")
    store = ["--store", str(Path(invocation.store).expanduser().absolute())] if invocation.store else []
    namespace = ["--namespace", invocation.namespace] if invocation.namespace else []
    watch = ["--watch"] if invocation.watches else []
    return [str(program.absolute()), "mcp", *store, *namespace, *watch]
