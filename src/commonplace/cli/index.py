"""The command group `index`: build, status, upgrade and export."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli import options, rows
from commonplace.cli.app import FAILURE, SUCCESS, Group, ask, command
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import notify, own_store_notice, print_json, progress_bars, say, write_whole
from commonplace.cli.watch import watch as keep_watching
from commonplace.dataclasses import asdict
from commonplace.errors import RemovalError
from commonplace.formats.escaping import harmless_json
from commonplace.formats.json_values import plain
from commonplace.formats.yaml import FAULT_PREFIX
from commonplace.settings import Overrides, Settings, paths, save_overrides
from commonplace.types import EmbeddedKind, IndexReport

if TYPE_CHECKING:
    from commonplace.engine import Engine


def _report(report: IndexReport, root: str) -> rows.Rows:
    files = rows.counted(report.added + report.changed + report.unchanged, "file")
    counts = {"new": report.added, "changed": report.changed, "unchanged": report.unchanged, "removed": report.removed}
    changes = ", ".join(f"{number:,} {sort}" for sort, number in counts.items())
    written = f"{rows.counted(report.passages, 'passage')} written in {report.seconds:.1f}s"
    yield f"{root}: {files} indexed ({changes}), {written}"
    if report.skipped:
        yield rows.Line(f"{rows.INDENT}skipped: {rows.counts_text(dict(sorted(report.skipped.items())))}", "dim")
    front_matter = [problem for problem in report.problems if problem.reason.startswith(FAULT_PREFIX)]
    other_problems = [problem for problem in report.problems if not problem.reason.startswith(FAULT_PREFIX)]
    yield from rows.listed(
        other_problems, lambda fault: rows.Line(f"{fault.path}: {fault.reason}", "dim", 1), limit=rows.MAX_LISTED
    )
    for problem in front_matter[:1]:
        files = rows.counted(len({fault.path for fault in front_matter}), "file")
        parts = (f"front matter of {files} is not used in full, such as ", "; --json lists all")
        before, after = parts if len(front_matter) > 1 else ("", "")
        yield rows.Line(f"{rows.INDENT}{before}{problem.path}: {problem.reason}{after}", "dim")


def print_reports(
    invocation: Invocation, loaded: Settings, reports: Mapping[str, IndexReport], *, indent: int | None = 2
) -> None:
    """Print a report for each directory, followed by its notices."""
    if invocation.as_json:
        print_json(plain({"store": loaded.store.path, "roots": reports}), indent=indent)
        return
    for root, report in reports.items():
        rows.print_rows(_report(report, root))
        notify(report.notices, invocation)


@click.group(cls=Group)
def index() -> None:
    """Build, inspect and export the index of a project."""


@command(index)
@click.argument("roots", nargs=-1, metavar="[ROOT]...", callback=options.non_empty)
@click.option("--watch", is_flag=True, help="Keep running, and index again whenever files change.")
@click.option("--force", is_flag=True, help="Read every file again, changed or not.")
@click.option(
    "--config",
    type=options.FILE,
    help="Take the settings of this auto-retrieval document (YAML or JSON); later commands use them too.",
)
@click.option("--no-config", is_flag=True, help="Forget the settings of an earlier --config.")
@options.globs("--include", help="Index these files instead of the usual ones.")
@options.text("--embedder", metavar="NAME", help="Embed files with this, as `index upgrade --for artifacts` does.")
@click.option("--yes", is_flag=True, help="Do not ask before more than half of what is indexed is removed.")
def build(
    invocation: Invocation, /, *, roots: tuple[str, ...], config: Path | None, no_config: bool, **given: Any
) -> int:
    """Index new, changed and deleted files below each ROOT.

    Without a ROOT, the whole project is indexed. Before more than half of what is indexed is removed, it asks; without
    a terminal, and with --json, it needs --yes.

    With --watch, one ROOT is followed: a failed run is tried again, and if a directory disappears, nothing is removed.

    Example: commonplace index build src --watch
    """
    from commonplace.engine.index_api import refuse_unfit_roots

    watch, force, include = given["watch"], given["force"], given["include"]
    if watch and len(roots) > 1:
        raise click.UsageError("--watch follows one ROOT; start another process for each of the others")
    if config is not None and no_config:
        raise click.UsageError("--config and --no-config exclude each other")
    overrides, remote = _overrides(config, no_config=no_config)
    loaded = invocation.settings(overrides, index_include=include or None, embedder_artifacts=remote)
    directories = [Path(root) for root in roots] or [loaded.project or Path.cwd()]
    refuse_unfit_roots(directories, loaded, include)
    notify(own_store_notice(loaded), invocation)

    def indexed() -> None:
        if overrides is not None:
            # Saved only now: a document whose build failed must not affect later builds and searches.
            save_overrides(paths.directory_of(loaded.store.path), overrides.values)

    if given["embedder"] is not None:
        with progress_bars(invocation) as progress, invocation.open(loaded, create=True, progress=progress) as engine:
            engine.index_upgrade(given["embedder"], ["artifacts"])
    if watch:
        keep_watching(invocation, loaded, directories[0], force=force, on_indexed=indexed)
        return SUCCESS
    reports = _reports(invocation, loaded, directories, force=force, may_remove=directories if given["yes"] else ())
    if reports is None:
        return FAILURE
    indexed()
    print_reports(invocation, loaded, reports)
    return SUCCESS


def _reports(
    invocation: Invocation, loaded: Settings, directories: Sequence[Path], *, force: bool, may_remove: Sequence[Path]
) -> dict[str, IndexReport] | None:
    """Index each directory; return None if the user declined to remove more than half of one."""
    reports: dict[str, IndexReport] = {}
    directory = directories[0]
    try:
        with progress_bars(invocation) as progress, invocation.open(loaded, create=True, progress=progress) as engine:
            for directory in directories:
                reports[str(directory)] = engine.index(directory, force=force, keep_most=directory not in may_remove)
            engine.embed_pending()
    except RemovalError as error:
        if not options.can_ask(invocation):
            raise
        # Ask after the store and the progress bars are closed.
        invocation.close()
        say(f"{error.args[0]}.", err=True)
        if not click.confirm("Remove them?", err=True):
            say("Nothing was removed.", err=True)
            return None
        return _reports(invocation, loaded, directories, force=force, may_remove=(*may_remove, directory))
    return reports


def _overrides(config: Path | None, *, no_config: bool) -> tuple[Overrides | None, str | None]:
    """Return the settings that replace those of the store, and the remote embedder that a document names.

    The remote embedder is used for this build alone, like a flag: a file in the project may not choose it for later
    builds, because texts leave the machine, and the store keeps the embedder that it was built with.
    """
    if no_config:
        return Overrides({}, "--no-config"), None
    if config is None:
        return None, None
    from commonplace.formats.auto_retrieval import read_auto_retrieval
    from commonplace.models.registry import is_remote

    values = dict(read_auto_retrieval(config))
    remote = values.get("embedder.artifacts")
    if not isinstance(remote, str) or not is_remote(remote):
        return Overrides(values, str(config)), None
    del values["embedder.artifacts"]
    return Overrides(values, str(config)), remote


@ask(index)
def status(engine: Engine, /) -> rows.Answer:
    """Show what the store holds and the state of its index.

    Example: commonplace index status
    """
    result = engine.index_status()
    # Searches return the same results in every state.
    state = shown = "up to date"
    if result.fault:
        state, shown = "faulty", f"the stored index {result.fault}; the next search rebuilds it"
    elif result.indexed_change < result.change:
        waiting = rows.counted(result.waiting, "passage")
        state, shown = "behind", f"behind; {waiting} searched directly until the index holds them"
    left_out = [
        f"of {report.root}: {rows.counts_text(report.skipped) or rows.counted(len(report.problems), 'problem')}"
        for report in result.left_out
    ]
    artifacts = rows.counted(result.counts["artifacts"], "artifact")
    passages = rows.counted(result.counts["passages"], "passage")
    disputed = f", {result.graph.disputed:,} of them disputed" if result.graph.disputed else ""
    fields = {
        "store": f"{result.store} ({rows.size_text(result.store_bytes)})",
        "namespace": result.namespace,
        "holds": f"{artifacts}, {passages}, {rows.size_text(result.counts['text_bytes'])} of text",
        "graph": f"{rows.holdings(asdict(result.graph))}{disputed}",
        "embedder": result.embedder,
    }
    if result.unembedded:
        number = rows.counted(result.unembedded, "passage")
        fields["unembedded"] = f"{number} found by words until their vectors are made (`index build` makes them)"
    if result.upgrade is not None and result.upgrade.total:
        total = rows.counted(result.upgrade.total, "passage")
        fields["upgrade"] = f"to {result.upgrade.embedding}, {result.upgrade.done:,} of {total} embedded"
    fields["skipped"] = "; ".join(left_out)
    change = f"change {result.indexed_change} of {result.change}"
    fields["index"] = f"{shown} ({rows.size_text(result.index_bytes)}, {change})"
    return {**asdict(result), "state": state}, [rows.Fields(fields)]


@ask(index, is_long=True)
@options.text("--embedder", metavar="NAME", required=True, help="The new one; `default`: what the settings name.")
@options.choice(
    "--for",
    "kinds",
    of=("memories", "knowledge", "graph", "artifacts"),
    many=True,
    help="Only these; the others keep theirs. [default: all]",
)
def upgrade(engine: Engine, /, embedder: str, kinds: tuple[EmbeddedKind, ...]) -> rows.Answer:
    """Change the embedder of a store.

    Every text in all namespaces is embedded again while searches use the old vectors; then all are switched at once. An
    interrupted run continues when it is started again; name the present embedder to cancel it. An embedder behind an
    API receives every text of the store.

    Example: commonplace index upgrade --embedder minilm --for memories
    """
    report = engine.index_upgrade(embedder, kinds or None)
    lines = [f"Cancelled the change to {report.given_up}."] if report.given_up else []
    if report.before == report.embedder:
        lines.append(f"The vectors are made by {report.embedder} already.")
    else:
        resumed = f", {report.resumed:,} from an earlier run" if report.resumed else ""
        count = rows.counted(report.passages + report.resumed, "passage")
        lines.append(f"{report.before} → {report.embedder}: {count}{resumed}, in {report.seconds:.1f}s")
    return {"store": engine.settings.store.path, **asdict(report)}, lines


@command(index, click.option("--output", type=options.FILE, help="Write the document to this file."))
def export(invocation: Invocation, output: Path | None) -> None:
    """Print the artifacts as one JSON document.

    This is the artifact index of the auto-retrieval contract. The settings `index.export_path` and
    `index.export_embeddings` may name files below the project instead.

    Example: commonplace index export --output index.json
    """
    loaded = invocation.settings()

    def target_of(name: str, file: str = "") -> Path | None:
        # The file below the project that a setting names, or None.
        configured: str = getattr(loaded.index, name)
        if not configured:
            return None
        base, store = loaded.project or Path.cwd(), paths.directory_of(loaded.store.path)
        setting, origin = f"index.{name}", loaded.origins.get(f"index.{name}", "default")
        return paths.export_target(base, store, str(Path(configured, file)), setting=setting, origin=origin)

    target, vectors = output or target_of("export_path"), target_of("export_embeddings", paths.VECTORS_FILE)
    with invocation.open(loaded) as engine:
        document = engine.export_index()
    written, remedy = dict[str, Any](), "name another --output"
    if vectors is not None:
        lines = [json.dumps({"path": item["path"], "embedding": item["embedding"]}) for item in document["artifacts"]]
        write_whole(vectors, "".join(f"{line}\n" for line in lines), remedy, engine.directory, makes_parent=True)
        written["embeddings"] = str(vectors)
    if target is None:
        print_json(document, indent=None)
        return
    write_whole(target, harmless_json(document) + "\n", remedy, engine.directory, makes_parent=output is None)
    written["index"] = str(target)
    value = {"artifacts": len(document["artifacts"]), "written": written}
    rows.emit(invocation, value, f"{value['artifacts']:,} artifacts written to {target}")
