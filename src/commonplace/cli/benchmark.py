"""The command group `benchmark`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from commonplace.cli.app import Group, command
from commonplace.cli.main import Invocation
from commonplace.cli.output import console, print_json, progress_bars, say
from commonplace.types import METHODS, Progress

_FILE = click.Path(dir_okay=False, path_type=Path)
_DIRECTORY = click.Path(file_okay=False, path_type=Path)
_WIDEST: Final = 10_000
"""Columns of a table at most: rich makes none wider than what it takes for the terminal, which cuts its words."""


def _methods(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _methods_option(default: str) -> Callable[[Any], Any]:
    text = "Methods to measure, separated by commas."
    return click.option("--methods", metavar="NAMES", default=default, show_default=True, callback=_methods, help=text)


_embedder_option = click.option(
    "--embedder", metavar="NAME", help="Measure with this embedder instead of the usual one."
)


@click.group(cls=Group)
def benchmark() -> None:
    """Measure quality and speed, on your data or made-up data."""


@command(benchmark)
@click.option("--queries", type=_FILE, required=True, help="BEIR queries, or JSON lines {query, relevant: [path]}.")
@click.option("--corpus", type=_FILE, help="BEIR corpus.jsonl; without it the current index is asked.")
@click.option("--qrels", type=_FILE, help="BEIR judgements, for --corpus.")
@_methods_option(",".join(METHODS))
@_embedder_option
@click.option("--keep", type=_DIRECTORY, help="Leave the store that was built in this directory.")
@click.option("--limit-queries", type=click.IntRange(min=1), metavar="N", help="Ask only so many, drawn with --seed.")
@click.option("--seed", type=int, default=0, show_default=True, help="Draw the same again.")
@click.option(
    "--per-query", type=_FILE, help="Write what each method made of each query into this file, as JSON lines."
)
@click.option("--plot", type=_FILE, help="Also draw the figures into this PNG file.")
def retrieval(invocation: Invocation, /, plot: Path | None, **options: Any) -> None:
    """Measure how well questions are answered, by method.

    Prints nDCG@10, precision@10, recall@10 and @100, MRR, latency, build time, index size and peak memory.

    Example: commonplace benchmark retrieval --queries queries.jsonl --methods bm25,two-stage
    """
    from commonplace.benchmarks.retrieval import RetrievalOptions, run

    if options["corpus"] is None:
        loaded = invocation.settings()
        options.update(store=Path(loaded.store.path), namespace=loaded.store.namespace)
    _measure(invocation, lambda progress: run(RetrievalOptions(**options), progress), plot)


@command(benchmark)
@click.argument("file", type=_FILE)
@click.option("--format", type=click.Choice(("locomo", "longmemeval")), required=True, help="How FILE is laid out.")
@_methods_option(",".join(METHODS))
@_embedder_option
@click.option("--limit-conversations", type=click.IntRange(min=1), metavar="N", help="Take only the first so many.")
@click.option("--plot", type=_FILE, help="Also draw the figures into this PNG file.")
def conversations(invocation: Invocation, /, plot: Path | None, **options: Any) -> None:
    """Measure how much of the evidence in conversations is found.

    FILE holds conversations with questions about them and the turns that answer each.

    Example: commonplace benchmark conversations locomo10.json --format locomo
    """
    from commonplace.benchmarks.conversations import ConversationOptions, run

    _measure(invocation, lambda progress: run(ConversationOptions(**options), progress), plot)


@command(benchmark)
@click.argument("memories", type=_FILE)
@click.argument("questions", type=_FILE)
@click.option("--among", type=_FILE, help="Store 1,000 turns of this talk beside: a LoCoMo file, or lines {content}.")
@_embedder_option
def recall(invocation: Invocation, /, **options: Any) -> None:
    """Measure what people find of their own memories.

    MEMORIES holds JSON lines {user, id, at, content, origin}, QUESTIONS {user, id, question, style, relevant, stale}.
    Each user's memories are stored in a new store, and each question is asked for five hits with default settings.
    Prints by style how often a relevant memory is first and among the five, how many questions get nothing, and how
    often an overtaken memory stands above the newest.

    Example: commonplace benchmark recall memories.jsonl questions.jsonl
    """
    from commonplace.benchmarks.recall import RecallOptions, run

    _measure(invocation, lambda progress: run(RecallOptions(**options), progress), None)


@command(benchmark)
@click.option(
    "--size",
    type=click.Choice(("quick", "small", "full")),
    default="small",
    show_default=True,
    help="How much is measured.",
)
@click.option("--quick", "size", flag_value="quick", help="The same as --size quick, which only shows that it works.")
@click.option(
    "--data",
    multiple=True,
    envvar="COMMONPLACE_DATA",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A directory of labelled sets; may be given again.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draw the same again.")
@click.option("--markdown", "is_markdown", is_flag=True, help="Print the table as Markdown.")
def figures(invocation: Invocation, /, is_markdown: bool, **options: Any) -> None:
    """Measure the figures to reach, beside their targets.

    Runs the other benchmarks, each in a process of its own, and prints what the contracts ask for, what is aimed at,
    what was measured, and whether that is reached. With --data also how well documents and turns of conversations are
    found: of each directory in it that has corpus.jsonl, queries.jsonl and qrels.tsv, and of locomo10.json.

    Example: commonplace benchmark figures --quick
    """
    from commonplace.benchmarks.figures import FigureOptions, markdown, run

    def measured(progress: Progress | None) -> dict[str, Any]:
        return run(FigureOptions(**options), progress)

    if not is_markdown:
        _measure(invocation, measured, None)
        return
    with progress_bars(invocation) as progress:
        table = markdown(measured(progress))
    say(table.rstrip())


@command(benchmark)
@click.option(
    "--passages", type=int, default=10_000, show_default=True, metavar="N", help="Size of the made-up corpus."
)
@click.option("--corpus", type=_FILE, help="Use this BEIR corpus.jsonl instead of a made-up one.")
@click.option("--queries", type=int, default=300, show_default=True, metavar="N", help="How many questions are asked.")
@_methods_option("two-stage")
@_embedder_option
@click.option("--baselines/--no-baselines", "has_baselines", default=True, help="Also measure Tantivy, FTS5 and NumPy.")
@click.option("--built", type=_DIRECTORY, help="Ask the store that an earlier run kept here; build none.")
@click.option("--keep", type=_DIRECTORY, help="Leave the store that was built in this directory.")
@click.option("--seed", type=int, default=0, show_default=True, help="Draw the same again.")
@click.option("--plot", type=_FILE, help="Also draw the figures into this PNG file.")
def latency(invocation: Invocation, /, plot: Path | None, **options: Any) -> None:
    """Measure how fast a corpus is indexed and searched.

    Prints build time, latency by stage, memory and size, and the same for simpler means.

    Example: commonplace benchmark latency --passages 100000
    """
    from commonplace.benchmarks.latency import LatencyOptions, run

    _measure(invocation, lambda progress: run(LatencyOptions(**options), progress), plot)


@command(benchmark)
@click.option(
    "--memories", type=int, default=10_000, show_default=True, metavar="N", help="How many are stored before."
)
@click.option("--searches", type=int, default=1_000, show_default=True, metavar="N", help="How often is searched.")
@click.option(
    "--calls", type=int, default=200, show_default=True, metavar="N", help="How often each other tool is called."
)
@_embedder_option
@click.option("--keep", type=_DIRECTORY, help="Leave the store that was filled in this directory.")
@click.option("--seed", type=int, default=0, show_default=True, help="Draw the same again.")
def mcp(invocation: Invocation, /, **options: Any) -> None:
    """Measure what a server for one agent costs.

    Prints its start, each tool, its memory, and how much a model reads of it, beside what no server could do without.

    Example: commonplace benchmark mcp --memories 1000
    """
    from commonplace.benchmarks.mcp import ServerOptions, run

    _measure(invocation, lambda progress: run(ServerOptions(**options), progress), None)


def _measure(
    invocation: Invocation,
    run: Callable[[Progress | None], dict[str, Any]],
    plot: Path | None,
) -> None:
    from commonplace.benchmarks.report import check_plot
    from commonplace.benchmarks.report import plot as draw

    if plot is not None:
        check_plot(plot)
    with progress_bars(invocation) as progress:
        figures = run(progress)
    if plot is not None:
        draw(figures, plot)
    if invocation.as_json:
        print_json(figures)
    else:
        _print_figures(figures)


def _print_figures(figures: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    from commonplace.benchmarks.report import sheets

    target = console()
    unbound = target.options.update(max_width=_WIDEST)
    machine = ", ".join(f"{name} {value}" for name, value in figures["machine"].items())
    embedder = f"Embedder {figures['embedder']}; " if "embedder" in figures else ""
    target.print(f"{embedder}{machine}\n")
    for sheet in sheets(figures):
        table = Table(title=sheet.title, title_justify="left", box=box.SIMPLE_HEAD)
        for number, column in enumerate(sheet.columns):
            table.add_column(column, justify="right" if number else "left", no_wrap=True)
        for row in sheet.rows:
            table.add_row(*row)
        target.width = max(target.width, target.measure(table, options=unbound).maximum)
        target.print(table, no_wrap=True, crop=False)
