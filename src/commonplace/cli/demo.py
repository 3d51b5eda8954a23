"""The command `demo`."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import commonplace
from commonplace.cli import options
from commonplace.cli.app import command
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import notify, progress_bars
from commonplace.cli.rows import Line, Rows, counted, emit, styled
from commonplace.cli.search import hit_rows
from commonplace.dataclasses import replace
from commonplace.errors import UsageError
from commonplace.formats.escaping import harmless_line
from commonplace.types import IndexReport

if TYPE_CHECKING:
    from commonplace.search.result import SearchResult

HITS = 3
_MAX_BYTES = 1024 * 1024


@command(None, makes_store=True)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(file_okay=False, path_type=Path))
@click.option("--questions", type=options.FILE, help="Ask the questions of this file, one a line.")
def demo(invocation: Invocation, /, paths: tuple[Path, ...], questions: Path | None) -> None:
    """Index a directory and answer questions about it.

    Without PATH it indexes Commonplace's own sources, which the built-in questions are about. The store is in the
    user's cache directory unless --store names one.

    Example: commonplace demo ~/projects/billing --questions questions.txt
    """
    from importlib.resources import files

    import platformdirs

    from commonplace.engine.index_api import refuse_missing

    default_store = Path(platformdirs.user_cache_dir("commonplace", appauthor=False)) / "demo" / "store"
    store = invocation.store = invocation.store or str(default_store)
    roots = tuple(path.absolute() for path in paths) or (Path(commonplace.__file__).parent,)
    text = (files("commonplace.cli") / "demo.questions").read_text() if questions is None else None
    lines = [line.strip() for line in (text or options.read_text((), questions, _MAX_BYTES) or "").splitlines()]
    queries = [line for line in lines if line and not line.startswith("#")]
    if not queries:
        raise UsageError(f"{questions} has no questions", remedy="write one question a line")
    refuse_missing(roots)  # before a store is made
    with progress_bars(invocation) as progress, invocation.open(create=True, progress=progress) as engine:
        reports = {str(root): engine.index(root) for root in roots}
        results = [engine.search(question, limit=HITS) for question in queries]
        passages = engine.index_status().counts["passages"]
    for result in results:
        notify(result.notices, invocation)
    value = {"store": store, "roots": reports, "answers": results}
    emit(invocation, value, _rows(value, passages))


def _rows(value: Mapping[str, Any], passages: int) -> Rows:
    reports: Mapping[str, IndexReport] = value["roots"]
    results: Sequence[SearchResult] = value["answers"]
    yield Line("Indexing", "bold")
    for root, report in reports.items():
        files = counted(report.added + report.changed + report.unchanged, "file")
        changes = f"{report.added + report.changed:,} new or changed, {counted(report.passages, 'passage')} written"
        yield f"  {root}: {files}, {changes}, {report.seconds:.1f}s"
    for result in results:
        yield ""
        yield styled((f"? {harmless_line(result.query)}", "bold"), (f"   {result.latency_ms}ms", "dim"))
        if not result.hits:
            yield "   Nothing relevant found."
        for rank, hit in enumerate(result.hits, 1):
            path = Path(hit.path).absolute()  # paths are relative to the project, or absolute without one
            display_path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
            yield from hit_rows(rank, replace(hit, path=str(display_path)), result.query)
    times = sorted(result.latency_ms for result in results)
    scope = f"{counted(len(results), 'question')} to {counted(passages, 'passage')}"
    latencies = f"{times[len(times) // 2]}ms median, {times[-1]}ms maximum"
    yield Line(f"\n{scope}: {latencies}. No server, no key, no network.", "bold")
    # Suggest commands that work in this shell.
    is_on_path = shutil.which("commonplace") is not None
    program = "commonplace" if is_on_path else shlex.quote(sys.argv[0])
    program_path = "commonplace" if is_on_path else shlex.quote(str(Path(sys.argv[0]).absolute()))
    yield f'Try next:  {program} search --store {shlex.quote(value["store"])} "your own question"'
    yield f"In your own project:  {program_path} init && {program_path} index build"
