"""The command group `knowledge`: index, query and delete what agents know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from commonplace.cli import options
from commonplace.cli.app import Group, ask, command, opened
from commonplace.cli.invocation import Invocation
from commonplace.cli.rows import Answer, Line, Row, counted, emit, joined, listed, note

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


@command(knowledge, click.argument("agent"))
@click.argument("text", nargs=-1, required=True)
@click.option("-n", "--limit", type=int, metavar="N", help="Maximum number of texts.")
def query(invocation: Invocation, /, agent: str, text: tuple[str, ...], limit: int | None) -> None:
    """Find what AGENT knows about TEXT, best first.

    If more is found than wanted and there is a key for a language model, that model re-ranks.

    Example: commonplace knowledge query TravelAgent "capital of Japan"
    """
    with opened(invocation, is_long=True) as engine:
        found = engine.knowledge.retrieve(agent, " ".join(text), limit)
    by = f", re-ranked by {found.reranked_by}" if found.reranked_by else ""
    hits = listed(found.hits, lambda hit: Row(hit.id, (f"score {hit.score:.2f}",), hit.content), is_numbered=True)
    rows = [Line(f"{found.agent} knows{by}:", "bold"), "", *hits, f"\nTotal latency: {found.latency_ms}ms"]
    emit(invocation, found, rows if found.hits else Line(f"{found.agent} knows nothing about this.", "bold"))


@ask(knowledge, click.argument("agent"))
def delete(engine: Engine, /, agent: str) -> Answer:
    """Hide what AGENT knows.

    `commonplace store gc` (after 30 days) or `commonplace forget --agent` deletes it for good.

    Example: commonplace knowledge delete TravelAgent
    """
    notices = engine.knowledge.notices_of(agent)
    deleted = engine.knowledge.delete_agent_knowledge(agent)
    said = f"Deleted {counted(deleted, *_ITEMS)}" if deleted else f"Nothing to delete: {agent} knows nothing."
    return {"agent": agent, "deleted": deleted, "notices": notices}, Line(said, "bold")


@ask(knowledge, has_notices=True)
def status(engine: Engine, /) -> Answer:
    """Show agents, embedder and re-ranker.

    Example: commonplace knowledge status
    """
    found = engine.knowledge.status()

    def row(each: AgentStatus) -> Row:
        stale = f"{each.stale:,} to be embedded again when it is indexed next" if each.stale else ""
        known = counted(each.items, *_ITEMS) if each.items else ""
        return Row(each.agent, (known, f"{each.deleted:,} deleted" if each.deleted else "", stale))

    return found, [
        *listed(found.agents, row, "", "bold", none="No agent knows anything here."),
        f"\nEmbedder {found.embedder or 'none'}; re-ranker {found.reranker or 'none'}",
        *map(note, found.notices),
    ]
