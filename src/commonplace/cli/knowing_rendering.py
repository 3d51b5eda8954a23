"""Print what a knowledge service did and found, for a person. It decides how things look, never what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.screen import counted
from commonplace.cli.sentences import joined, print_beginning, print_head, print_under
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.knowledge.results import KnowledgeReport, KnowledgeStatus, Retrieval

_DEEDS = (("added", "added"), ("unchanged", "unchanged"), ("embedded", "embedded anew"), ("deleted", "deleted"))


def items(count: int) -> str:
    """Return how many maps, in words."""
    return counted(count, "item of knowledge", "items of knowledge")


def print_report(report: KnowledgeReport, target: Console) -> None:
    """Print what an agent knows now, and what that changed."""
    target.print(f"{harmless_line(report.agent)} knows {items(report.items)}", style="bold")
    counts = [f"{getattr(report, name):,} {words}" for name, words in _DEEDS if getattr(report, name)]
    print_under(joined(counts) or "nothing was there, and nothing came", target, "dim")
    if report.embedder:
        print_under(f"embedder {report.embedder}", target, "dim")


def print_retrieval(found: Retrieval, target: Console) -> None:
    """Print the texts that were found, with their scores."""
    name = harmless_line(found.agent)
    if not found.hits:
        target.print(f"{name} knows nothing about this.", style="bold")
        return
    by = f", re-ranked by {harmless_line(found.reranked_by)}" if found.reranked_by else ""
    target.print(f"{name} knows{by}:\n", style="bold")
    for rank, hit in enumerate(found.hits, 1):
        print_head(hit.id, (f"score {hit.score:.2f}",), target, before=f"{rank}. ")
        print_beginning(hit.content, target)
    target.print(f"\nTotal latency: {found.latency_ms}ms")


def print_status(found: KnowledgeStatus, target: Console) -> None:
    """Print the agents, one a line, and what their knowledge is found by."""
    for agent in found.agents:
        known = (
            items(agent.items),
            f"{agent.deleted:,} deleted" if agent.deleted else "",
            f"{agent.stale:,} to be embedded anew when it is created next" if agent.stale else "",
        )
        print_head(harmless_line(agent.agent), known, target)
    if not found.agents:
        target.print("No agent knows anything here.", style="bold")
    target.print(f"\nEmbedder {found.embedder or 'none'}; re-ranker {harmless_line(found.reranker or 'none')}")
    for notice in found.notices:
        print_under(f"note: {harmless_line(notice)}", target, "dim")
