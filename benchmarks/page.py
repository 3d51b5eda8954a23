"""Measure the page in a real Chromium: how fast it loads, scrolls, recalls and draws a graph, over many memories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

import click

from benchmarks.output import embedder_option, json_option, keep_option, seed_option, show
from benchmarks.stores import fill, texts
from commonplace.benchmarks.data import questions_about
from commonplace.benchmarks.harness import check_counts, describe, latency, open_engine, workspace
from commonplace.errors import CommonplaceError
from commonplace.types import Progress

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAGES: Final = ("/", "/memories", "/recall", "/graph", "/review", "/runs", "/context", "/store")
ROUNDS, NODES, HUBS = 4, 200, 10
FRAMES: Final = 600
LATE: Final = "#waiting, #sources, #facets, #health, #doctor"
"""The parts of a page that go through all memories: they begin last, or when the rest is there to be used."""
EMBEDDER: Final = "hashing"
"""The usual one takes an hour for so many, and what is measured here does not depend on it."""
_FILLED: Final = """async (busy) => {
  while (document.querySelector(busy)) await new Promise(requestAnimationFrame);
}"""
_SCROLL: Final = """async (frames) => {
  const gaps = [], end = document.documentElement.scrollHeight - innerHeight;
  let last = performance.now();
  for (let frame = 1; frame <= frames; frame++) {
    scrollTo(0, (end * frame) / frames);
    await new Promise(requestAnimationFrame);
    gaps.push(performance.now() - last);
    last = performance.now();
  }
  return gaps;
}"""
_RECALL: Final = """async (query) => {
  const hits = document.getElementById("hits"), begun = performance.now();
  const drawn = new Promise((done) => new MutationObserver((_, watch) => {
    if (hits.querySelector("li") && !hits.matches("[aria-busy=true]")) { watch.disconnect(); done(); }
  }).observe(hits, { childList: true, attributes: true }));
  document.getElementById("query").value = query;
  document.getElementById("form").requestSubmit();
  await drawn;
  return performance.now() - begun;
}"""


@dataclass(frozen=True, slots=True)
class PageOptions:
    """What to measure, and over how many memories."""

    memories: int = 100_000
    embedder: str | None = None
    keep: Path | None = None
    store: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_counts(memories=self.memories)


def run(options: PageOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Fill a store, open its page, and return the JSON form of what each part took.

    Raises:
        UsageError: a number or the directory to keep is wrong.
        CommonplaceError: there is no browser, or the server failed.
    """
    from playwright.sync_api import sync_playwright

    browser = import_module("scripts.fetch_browser").find_browser()  # mypy knows the scripts by bare names
    os.environ.pop("COMMONPLACE_TEST_BROWSER", None)  # no setting of a store
    if browser is None:
        raise CommonplaceError("there is no browser", remedy="let `python scripts/fetch_browser.py` fetch one")
    embedder = options.embedder or EMBEDDER
    documents = list(texts(options.memories, options.seed))
    with nullcontext(options.store) if options.store else workspace(options.keep) as directory:
        os.environ["COMMONPLACE_GRAPH_REMEMBER"] = "off"
        filled = {"stored": float(options.memories)}
        if options.store is None:
            filled = fill(directory, documents, embedder, progress)
        with open_engine(directory, namespace="graph", embedder=embedder) as engine:
            for node in range(1, NODES):
                centre = 0 if node <= HUBS else 1 + node % HUBS
                engine.graph.add_triplet(f"Node {centre}", "RELATED_TO", f"Node {node}")
        with _page(directory) as link, sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            page = chromium.new_page(viewport={"width": 1280, "height": 800})
            page.goto(link)
            page.wait_for_url("**/")
            loads = {path: [_load(page, path) for _ in range(ROUNDS)] for path in PAGES}
            _load(page, "/memories")
            gaps = page.evaluate(_SCROLL, FRAMES)
            page.evaluate(_FILLED, "tr[data-waits=yes]")
            _load(page, "/recall")
            questions = questions_about(documents, 4 * ROUNDS, options.seed)
            answers = [page.evaluate(_RECALL, question) for question in questions]
            graph = latency([_load(page, "/graph?namespace=graph&entity=Node%200")[0] for _ in range(ROUNDS)])
            chromium.close()
    return {
        "benchmark": "page",
        "machine": describe(),
        "memories": filled,
        "load": {path: latency([filled for filled, _ in pairs]) for path, pairs in loads.items()},
        "load_with_late": {path: latency([all_ for _, all_ in pairs]) for path, pairs in loads.items()},
        "scroll": {"frames": FRAMES, **latency(gaps)},
        "recall": latency(answers[1:]),
        f"graph_of_{NODES}": graph,
    }


def _load(page: Page, path: str) -> tuple[float, float]:
    """Open a page, and return the milliseconds until all of it but `LATE` is filled, and until that is too."""
    begun = time.perf_counter()
    page.goto(urljoin(page.url, path))
    page.evaluate(_FILLED, f"[aria-busy=true]:not({LATE})")
    filled = time.perf_counter()
    page.evaluate(_FILLED, "[aria-busy=true]")
    return (filled - begun) * 1000, (time.perf_counter() - begun) * 1000


@contextmanager
def _page(store: Path) -> Iterator[str]:
    """Serve the page of a store, and yield its link."""
    command = [sys.executable, "-m", "commonplace", "ui", "--no-browser", "--json", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise CommonplaceError(f"the server ended with {process.wait()}")
        try:
            yield json.loads(line)["link"]
        finally:
            process.terminate()


@click.command()
@click.option("--memories", type=int, default=100_000, show_default=True, metavar="N", help="How many the store holds.")
@embedder_option
@keep_option
@click.option("--store", type=Path, help="A store that was kept: it is not filled again, and needs its --embedder.")
@seed_option
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure how fast the page loads, scrolls through all memories, recalls, and draws a graph of 200 nodes.

    Needs a Chromium: COMMONPLACE_TEST_BROWSER, an installed one, or that of `python scripts/fetch_browser.py`.
    """
    show(lambda: run(PageOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
