"""The commands `index build`, `index status` and `index export`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.invocation import Command, Group, Invocation, pass_invocation

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.types import IndexReport

PROBLEMS_SHOWN = 10


@click.group(cls=Group)
def index() -> None:
    """Build, inspect and export the index of a project."""


@index.command(cls=Command)
@click.argument("roots", nargs=-1, metavar="[ROOT]...", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Read every file again, changed or not.")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Take the settings of this auto-retrieval document (YAML or JSON); later commands use them too.",
)
@click.option("--no-config", is_flag=True, help="Forget the settings of an earlier --config.")
@click.option("--include", multiple=True, metavar="GLOB", help="Index these files instead of the usual ones.")
@pass_invocation
def build(
    invocation: Invocation,
    roots: tuple[Path, ...],
    force: bool,
    config: Path | None,
    no_config: bool,
    include: tuple[str, ...],
) -> None:
    """Bring the files below each ROOT (default: the project) into the store: the new, the changed, the removed."""
    from commonplace.cli.screen import console, notify, print_json, progress_bars

    if config is not None and no_config:
        raise click.UsageError("--config and --no-config exclude each other")
    overrides = _stated(config)
    if config is not None or no_config:
        _keep(invocation, overrides)
    loaded = invocation.settings(index_include=include or None)
    if loaded.project is None and loaded.origins.get("store.path") == "default":
        notify(
            ("there is no project here, so the user's own store is used; `commonplace init` makes a project",),
            invocation,
        )
    places = roots or (loaded.project or Path.cwd(),)
    reports = {}
    with (
        progress_bars(invocation) as progress,
        invocation.open(loaded, create=True, progress=progress) as engine,
    ):
        for place in places:
            reports[str(place)] = engine.index(place, force=force)
    if invocation.as_json:
        print_json({"store": loaded.store.path, "roots": {place: asdict(found) for place, found in reports.items()}})
        return
    for root, found in reports.items():
        _print_report(root, found, console())


def _stated(config: Path | None) -> Mapping[str, object]:
    if config is None:
        return {}
    from commonplace.formats.auto_retrieval import read_auto_retrieval

    return read_auto_retrieval(config).overrides


def _keep(invocation: Invocation, overrides: Mapping[str, object]) -> None:
    """Leave a document's settings in the store, so that later builds and searches agree with this one."""
    from commonplace.settings import save_overrides

    # Loaded with them first, so that what contradicts the other settings is refused before it is kept.
    checked = invocation.settings(**{dotted.replace(".", "_"): value for dotted, value in overrides.items()})
    store = Path(checked.store.path)
    store.mkdir(parents=True, exist_ok=True)
    save_overrides(store, overrides)


def _print_report(place: str, found: IndexReport, target: Console) -> None:
    from commonplace.cli.screen import counted

    files = found.added + found.changed + found.unchanged
    target.print(
        f"{place}: {counted(files, 'file')} indexed "
        f"({found.added:,} new, {found.changed:,} changed, {found.unchanged:,} unchanged, {found.removed:,} removed), "
        f"{counted(found.passages, 'passage')} written in {found.seconds:.1f}s"
    )
    if found.skipped:
        target.print(
            "   skipped: " + ", ".join(f"{n:,} {why}" for why, n in sorted(found.skipped.items())), style="dim"
        )
    for problem in found.problems[:PROBLEMS_SHOWN]:
        target.print(f"   {problem.path}: {problem.reason}", style="dim")
    if len(found.problems) > PROBLEMS_SHOWN:
        target.print(f"   … and {len(found.problems) - PROBLEMS_SHOWN:,} more; --json lists all", style="dim")


@index.command(cls=Command)
@pass_invocation
def status(invocation: Invocation) -> None:
    """Say what the store holds, whether the index is up to date, and how large both are."""
    from commonplace.cli.screen import console, counted, print_json, size_of

    with invocation.open(invocation.settings()) as engine:
        found = engine.index_status()
    if invocation.as_json:
        print_json(asdict(found))
        return
    target = console()
    target.print(f"Store:      {found.store} ({size_of(found.store_bytes)})")
    target.print(f"Namespace:  {found.namespace}")
    artifacts, passages = found.counts.get("artifacts", 0), found.counts.get("passages", 0)
    size = size_of(found.counts.get("text_bytes", 0))
    target.print(f"Holds:      {counted(artifacts, 'artifact')}, {counted(passages, 'passage')}, {size} of text")
    target.print(f"Embedder:   {found.embedder}")
    if found.fault:
        state = f"the stored index {found.fault}; the next search rebuilds it"
    elif found.waiting:
        state = f"{counted(found.waiting, 'passage')} searched directly until the index holds them"
    else:
        state = "up to date"
    target.print(f"Index:      {state} ({size_of(found.index_bytes)}, change {found.indexed_change} of {found.change})")


@index.command(cls=Command)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, not to standard output."
)
@pass_invocation
def export(invocation: Invocation, output: Path | None) -> None:
    """Print the artifacts as one JSON document, in the form of the auto-retrieval contract's artifact index.

    Where an auto-retrieval document named `index_path` or `embeddings_path`, those are written.
    """
    from commonplace.cli.screen import print_json

    loaded = invocation.settings()
    with invocation.open(loaded) as engine:
        document = engine.export_index()
    base = loaded.project or Path.cwd()
    written: dict[str, Any] = {}
    if output is None and loaded.index.export_path:
        output = base / loaded.index.export_path
    if loaded.index.export_embeddings:
        vectors = base / loaded.index.export_embeddings / "embeddings.jsonl"
        lines = [json.dumps({"path": a["path"], "embedding": a["embedding"]}) for a in document["artifacts"]]
        _write(vectors, "".join(f"{line}\n" for line in lines))
        written["embeddings"] = str(vectors)
    if output is None:
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    _write(output, json.dumps(document, ensure_ascii=False) + "\n")
    written["index"] = str(output)
    if invocation.as_json:
        print_json({"artifacts": len(document["artifacts"]), "written": written})
    else:
        click.echo(f"{len(document['artifacts']):,} artifacts written to {output}")


def _write(path: Path, text: str) -> None:
    from commonplace.errors import UsageError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy="name another --output") from error
