"""The command group `knowledge`: index, query and delete what agents know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from commonplace.cli import options
from commonplace.cli.app import Group, ask
from commonplace.cli.rows import Answer, Line, Row, counted, joined, listed, note

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.knowledge.results import AgentStatus

_ITEMS: Final = ("item of knowledge", "items of knowledge")


@click.group(cls=Group)
def knowledge() -> None:
    """Index and query what agents know."""


_file = click.argument("file", type=options.FILE, metavar="AGENT.YAML")


@ask(knowledge, _file, creates=True, is_long=True, fails=lambda report: not report.is_replaced)
def index(engine: Engine, /, file: Path) -> Answer:
    """Index the knowledge in an agent's file.

    The file names the agent and lists maps under `knowledge`. What is no longer in the file is deleted. If anything
    cannot be embedded, nothing is changed and the exit code is 1.

    Example: commonplace knowledge index travel-agent.yaml
    """
    report = engine.knowledge.create_agent(file).report
    changed = {"added": report.added, "unchanged": report.unchanged, "embedded again": report.embedded}
    counts = [f"{number:,} {words}" for words, number in {**changed, "deleted": report.deleted}.items() if number]
    rows = [
        Line(f"{report.agent} knows {counted(report.items, *_ITEMS) if report.items else 'nothing'}", "bold"),
        Line(joined(counts) or "nothing to index", "dim", 1),
        Line(f"embedder {report.embedder}" if report.embedder else "", "dim", 1),
    ]
    return report, rows if report.is_replaced else []


@ask(knowledge, click.argument("agent"), is_long=True)
@click.argument("text", nargs=-1, required=True)
@click.option("-n", "--limit", type=int, metavar="N", help="Maximum number of texts.")
def query(engine: Engine, /, agent: str, text: tuple[str, ...], limit: int | None) -> Answer:
    """Find what AGENT knows about TEXT, best first.

    If more is found than wanted and there is a key for a language model, that model re-ranks.

    Example: commonplace knowledge query TravelAgent "capital of Japan"
    """
    result = engine.knowledge.retrieve(agent, " ".join(text), limit)
    reranker = f", re-ranked by {result.reranked_by}" if result.reranked_by else ""
    hits = listed(result.hits, lambda hit: Row(hit.id, (f"score {hit.score:.2f}",), hit.content), is_numbered=True)
    rows = [Line(f"{result.agent} knows{reranker}:", "bold"), "", *hits, f"\nTotal latency: {result.latency_ms}ms"]
    return result, rows if result.hits else Line(f"{result.agent} knows nothing about this.", "bold")


@ask(knowledge, click.argument("agent"))
def delete(engine: Engine, /, agent: str) -> Answer:
    """Hide what AGENT knows.

    `commonplace store gc` (after 30 days) or `commonplace forget --agent` deletes it for good.

    Example: commonplace knowledge delete TravelAgent
    """
    notices = engine.knowledge.notices_of(agent)
    deleted = engine.knowledge.delete_agent_knowledge(agent)
    message = f"Deleted {counted(deleted, *_ITEMS)}" if deleted else f"Nothing to delete: {agent} knows nothing."
    return {"agent": agent, "deleted": deleted, "notices": notices}, Line(message, "bold")


@ask(knowledge, has_notices=True)
def status(engine: Engine, /) -> Answer:
    """Show agents, embedder and re-ranker.

    Example: commonplace knowledge status
    """
    state = engine.knowledge.status()

    def row(agent: AgentStatus) -> Row:
        stale = f"{agent.stale:,} to be embedded again when it is indexed next" if agent.stale else ""
        items = counted(agent.items, *_ITEMS) if agent.items else ""
        return Row(agent.agent, (items, f"{agent.deleted:,} deleted" if agent.deleted else "", stale))

    return state, [
        *listed(state.agents, row, "", "bold", none="No agent knows anything here."),
        f"\nEmbedder {state.embedder or 'none'}; re-ranker {state.reranker or 'none'}",
        *map(note, state.notices),
    ]
