"""The command group `benchmark`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import commonplace
from commonplace.cli import options
from commonplace.cli.app import Group, command
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import console, print_json, progress_bars
from commonplace.errors import UsageError
from commonplace.types import METHODS, Progress

if TYPE_CHECKING:
    from commonplace.benchmarks.report import Sheet

Run = Callable[[Progress | None], dict[str, Any]]
FILE = options.FILE
_DIRECTORY = click.Path(file_okay=False, path_type=Path)
_AT_LEAST_1 = click.IntRange(min=1)
_WIDEST: Final = 10_000
"""Maximum columns of a table: rich would otherwise fit tables to the terminal's width and cut their words."""


def _methods_option(default: str) -> Callable[[Any], Any]:
    def methods(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in value.split(",") if part.strip())

    text = "Methods to measure, separated by commas."
    return click.option("--methods", metavar="NAMES", default=default, show_default=True, callback=methods, help=text)


embedder_option = click.option("--embedder", metavar="NAME", help="Measure with this embedder, not the usual one.")
keep_option = click.option("--keep", type=_DIRECTORY, help="Keep the store in this directory.")
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random sample.")
_plot_option = click.option("--plot", type=FILE, help="Also draw the figures into this PNG file.")
_vectors_option = click.option("--vectors-cache", type=_DIRECTORY, help="Keep vectors here; in a clone only.")


@click.group(cls=Group)
def benchmark() -> None:
    """Measure quality and speed, on your data or synthetic data."""


_quality = options.group(_methods_option(",".join(METHODS)), embedder_option, _plot_option)


@command(benchmark, _quality)
@click.option("--queries", type=FILE, required=True, help="BEIR queries, or JSON lines {query, relevant: [path]}.")
@click.option("--corpus", type=FILE, help="BEIR corpus.jsonl; without it the current index is asked.")
@click.option("--qrels", type=FILE, help="BEIR judgements, for --corpus.")
@click.option("--per-query", type=FILE, help="Write each method's result for each query, as JSON lines.")
def retrieval(invocation: Invocation, /, plot: Path | None, **given: Any) -> None:
    """Measure how well questions are answered, by method.

    Prints nDCG@10, precision@10, recall@10 and @100, MRR, latency, build time, index size and peak memory.

    Example: commonplace benchmark retrieval --queries queries.jsonl --methods bm25,two-stage
    """
    from commonplace.benchmarks.retrieval import RetrievalOptions, run

    if given["corpus"] is None:
        loaded = invocation.settings()
        given.update(store=Path(loaded.store.path), namespace=loaded.store.namespace)
    _measure(invocation, lambda progress: run(RetrievalOptions(**given), progress), plot)


@command(benchmark, click.argument("file", type=FILE), _quality)
@options.choice("--format", of=("locomo", "longmemeval"), required=True, help="Format of FILE.")
@click.option("--limit-conversations", type=_AT_LEAST_1, metavar="N", help="Maximum number of conversations.")
@_vectors_option
def conversations(invocation: Invocation, /, plot: Path | None, vectors_cache: Path | None, **given: Any) -> None:
    """Measure how much of the evidence in conversations is found.

    FILE holds conversations, questions, and the turns that answer each.

    Example: commonplace benchmark conversations locomo10.json --format locomo
    """
    from commonplace.benchmarks.conversations import ConversationOptions, run

    _measure(invocation, lambda progress: run(ConversationOptions(**given), progress), plot, vectors_cache)


@command(benchmark, click.argument("memories", type=FILE), click.argument("questions", type=FILE), embedder_option)
@click.option("--among", type=FILE, help="Also store 1,000 turns of this LoCoMo file, or of lines {content}.")
@_vectors_option
def recall(invocation: Invocation, /, vectors_cache: Path | None, **given: Any) -> None:
    """Measure how well questions find a person's memories.

    MEMORIES holds JSON lines {user, id, at, content, origin}, QUESTIONS {user, id, question, style, relevant, stale}.

    Example: commonplace benchmark recall memories.jsonl questions.jsonl
    """
    from commonplace.benchmarks.recall import RecallOptions, run

    _measure(invocation, lambda progress: run(RecallOptions(**given), progress), cache=vectors_cache)


@command(benchmark, seed_option)
@options.choice("--size", of=("quick", "small", "full"), default="small", help="Amount of data; quick is only a trial.")
@click.option(
    "--data",
    multiple=True,
    envvar="COMMONPLACE_DATA",
    type=_DIRECTORY,
    help="Directory of labelled sets; may be repeated.",
)
def figures(invocation: Invocation, /, **given: Any) -> None:
    """Measure all figures, beside their targets.

    With --data, each directory in it with corpus.jsonl, queries.jsonl and qrels.tsv is measured too, and locomo10.json.

    Example: commonplace benchmark figures --size quick
    """
    module = _of_clone("figures")
    _measure(
        invocation,
        lambda progress: module.run(module.FigureOptions(**given), progress),
        show=lambda result: print_figures(result, [module.sheet(result)]),
    )


@command(benchmark, _methods_option("two-stage"), embedder_option, seed_option, _plot_option)
@options.number("--passages", "Size of the synthetic corpus.", 10_000)
@click.option("--corpus", type=FILE, help="Use this BEIR corpus.jsonl instead of a synthetic one.")
@options.number("--queries", "Number of queries.", 300)
def latency(invocation: Invocation, /, plot: Path | None, **given: Any) -> None:
    """Measure how fast a corpus is indexed and searched.

    Prints build time, latency by stage, memory and size.

    Example: commonplace benchmark latency --passages 100000
    """
    from commonplace.benchmarks.latency import LatencyOptions, run

    _measure(invocation, lambda progress: run(LatencyOptions(**given), progress), plot)


@command(benchmark, embedder_option, keep_option, seed_option)
@options.number("--memories", "Number of memories stored first.", 10_000)
@options.number("--searches", "Number of searches.", 1_000)
@options.number("--calls", "Number of calls of each other tool.", 200)
@click.option("--soak", type=int, default=0, metavar="N", help="Number of mixed calls that follow; 20000 show a leak.")
def mcp(invocation: Invocation, /, **given: Any) -> None:
    """Measure start, latency and memory of the MCP server.

    Prints the start time, the latency of each tool, the memory, and the tokens that a model reads.

    Example: commonplace benchmark mcp --memories 1000
    """
    module = _of_clone("mcp")
    _measure(invocation, lambda progress: module.run(module.ServerOptions(**given), progress))


def _of_clone(name: str) -> Any:
    clone = Path(commonplace.__file__).parents[2]
    if not (clone / "benchmarks" / f"{name}.py").is_file():
        feature = "--vectors-cache" if name == "vectors" else "this benchmark"
        raise UsageError(f"{feature} comes with the sources", remedy="run it in a clone of the repository")
    sys.path.append(str(clone))
    return import_module(f"benchmarks.{name}")


def _measure(
    invocation: Invocation,
    run: Run,
    target: Path | None = None,
    cache: Path | None = None,
    show: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    from commonplace.benchmarks.report import check_plot, plot

    if target is not None:
        check_plot(target)
    cache_context = nullcontext() if cache is None else _of_clone("vectors").vectors_cache(cache)
    with cache_context, progress_bars(invocation) as progress:
        figures = run(progress)
    if target is not None:
        plot(figures, target)
    (print_json if invocation.as_json else show or print_figures)(figures)


def print_figures(figures: dict[str, Any], tables: Sequence[Sheet] | None = None) -> None:
    """Print the figures of a benchmark as tables, by default one for each part, each as wide as it needs."""
    from rich import box
    from rich.table import Table

    from commonplace.benchmarks.report import sheets

    target = console()
    machine = ", ".join(f"{name} {value}" for name, value in figures.get("machine", {}).items())
    embedder = f"Embedder {figures['embedder']}; " if "embedder" in figures else ""
    target.print(f"{embedder}{machine}\n")
    for sheet in sheets(figures) if tables is None else tables:
        table = Table(title=sheet.title, title_justify="left", box=box.SIMPLE_HEAD)
        for number, column in enumerate(sheet.columns):
            table.add_column(column, justify="right" if number else "left", no_wrap=True)
        for row in sheet.rows:
            table.add_row(*row)
        target.width = max(
            target.width, target.measure(table, options=target.options.update(max_width=_WIDEST)).maximum
        )
        target.print(table, no_wrap=True, crop=False)
