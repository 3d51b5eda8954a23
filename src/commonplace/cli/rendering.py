"""Print a search's result for a person. It decides how things look, never what was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from commonplace.cli.screen import counted
from commonplace.text.escaping import harmless, harmless_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from commonplace.search.result import SearchResult
    from commonplace.types import Hit, Stage

INDENT = "   "
REFERENCES_SHOWN = 5
_TITLES = {"two-stage": "Two-stage", "bm25": "BM25", "semantic": "Semantic"}
_RECALL = {"lexical": "BM25", "dense": "dense"}
_SECOND_STAGE = {"two-stage": "late interaction", "bm25": "BM25", "semantic": "cosine"}

NOTHING = (
    "Nothing in the index is about this. Try other words, fewer filters, or --min-score 0 to see everything that was "
    "ranked; `commonplace index status` says what the index holds."
)
NARROWEST, WIDEST = 40, 110
"""Columns that running text is fitted into, whatever the terminal's width."""

Name = Callable[["Hit"], str]


def print_result(result: SearchResult, target: Console, *, name: Name | None = None) -> None:
    """Print header, stages, numbered hits with snippets, total latency and references.

    Args:
        name: how a hit is called; None is its reference.
    """
    from commonplace.search.result import reference

    naming = name or reference
    told = [harmless_line(naming(hit)) for hit in result.hits]
    target.print(f'{_TITLES[result.method]} retrieval for: "{harmless_line(result.query)}"', style="bold")
    if result.agent:
        types = ", ".join(result.wanted.types) or "all"
        target.print(f"Agent strategy: {harmless_line(result.agent)} (types: {types})")
    target.print()
    print_stages(result, target)
    if not result.hits:
        print_nothing(result, target)
    else:
        target.print("\nResults:")
        for rank, hit in enumerate(result.hits, 1):
            print_hit(rank, hit, result.query, target, told[rank - 1])
    print_held_back(result, target)
    target.print(f"\nTotal latency: {result.latency_ms}ms")
    names = list(dict.fromkeys(f"@{name}" for name in told))
    if names:
        more = ", …" if len(names) > REFERENCES_SHOWN else ""
        target.print(f"References: {', '.join(names[:REFERENCES_SHOWN])}{more}")


def print_stages(result: SearchResult, target: Console) -> None:
    """Print one line for the recall of candidates and one for their ranking."""
    stages = {stage.name: stage for stage in result.stages}
    recall = [f"{label} {stages[name].candidates}" for name, label in _RECALL.items() if name in stages]
    if recall:
        found = stages["signals"].candidates if "signals" in stages else 0
        took = _ms(stages, "query", *_RECALL)
        target.print(f"Stage 1 ({', '.join(recall)}): {counted(found, 'candidate')} ({took})")
    took = _ms(stages, *(name for name in stages if name != "query" and name not in _RECALL))
    again = "" if recall else ", remembered from a moment ago"
    results = counted(len(result.hits), "result")
    target.print(f"Stage 2 ({_SECOND_STAGE[result.method]}{again}): {results} ({took})")


def print_nothing(result: SearchResult, target: Console) -> None:
    """Say that nothing was found, and what a person can try; a notice says so where there was nothing to rank."""
    from rich.text import Text

    target.print("\nNothing relevant found.", style="bold")
    if not result.trace.candidates:
        return
    for line in wrapped(Text(NOTHING, style="dim"), target.width):
        target.print(Text(INDENT) + line)


def print_hit(rank: int, hit: Hit, query: str, target: Console, name: str) -> None:
    """Print one numbered hit with the part of its text that matches, the matching words emphasised."""
    from rich.text import Text

    target.print(Text.assemble(f"{rank}. ", (name, "cyan"), f" ({said(hit)})"))
    for line in snippet_lines(hit, query, columns(target.width)):
        target.print(Text(INDENT) + line)


def said(hit: Hit) -> str:
    """Return the score of a hit, the word for it, the newer memory that may have overtaken it, and its copies."""
    older = f"older: {harmless_line(hit.superseded_by)} is newer" if hit.superseded_by else ""
    copies = f"the same in {', '.join(map(harmless_line, hit.copies))}" if hit.copies else ""
    return ", ".join(filter(None, (f"{hit.score:.2f}", hit.confidence, older, copies)))


def print_held_back(result: SearchResult, target: Console) -> None:
    """Say how many lie below the floor, where any do."""
    if result.best_held_back is not None:
        told = f"{result.held_back} more below the floor, the best at {result.best_held_back:.2f}"
        target.print(f"{told}; --min-score 0 shows them", style="dim")


def snippet_lines(hit: Hit, query: str, width: int) -> list[Text]:
    """Return the snippet of a hit as styled lines no wider than `width`: code as written, prose re-wrapped."""
    from rich.text import Text

    from commonplace.text.snippets import snippet

    is_code = hit.type in ("code", "test") and hit.path.rpartition(".")[2] not in ("md", "rst", "txt")
    chosen = snippet(harmless(hit.text), query, keep_lines=is_code)
    text = Text(chosen.text, style="dim")
    for start, end in chosen.emphasis:
        text.stylize("bold not dim", start, end)
    if is_code:
        lines = list(text.split("\n"))
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return lines
    return _fitted(text, width)


def wrapped(text: Text, width: int) -> list[Text]:
    """Return running text as lines for a terminal of that width, a little narrower for the indent before them."""
    return _fitted(text, columns(width))


def columns(width: int) -> int:
    """Return how many columns running text gets below its heading, on a terminal of that width."""
    return max(NARROWEST, min(width, WIDEST)) - len(INDENT)


def _fitted(text: Text, width: int) -> list[Text]:
    from rich.console import Console

    lines = list(text.wrap(Console(width=width), width))
    for line in lines:
        line.rstrip()
    return lines


def _ms(stages: dict[str, Stage], *names: str) -> str:
    took = sum(stages[name].ms for name in names if name in stages)
    return f"{took:.0f}ms" if took >= 10 else f"{took:.1f}ms"
