"""The command group `knowledge`: index, query and delete what agents know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options
from commonplace.cli.app import FAILURE, SUCCESS, Group, ask, command, opened
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import notify, say
from commonplace.cli.rows import NOTE, Each, Line, Row, emit, joined

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.knowledge.results import KnowledgeStatus

_ITEMS: Final = "n item of knowledge|items of knowledge"
_CHANGES: Final = {"added": "added", "unchanged": "unchanged", "embedded": "embedded again", "deleted": "deleted"}


@click.group(cls=Group)
def knowledge() -> None:
    """Index and query what agents know."""


@command(knowledge, click.argument("file", type=options.FILE, metavar="AGENT.YAML"))
def index(invocation: Invocation, /, file: Path) -> int:
    """Index the knowledge in an agent's file.

    The file names the agent and lists maps under `knowledge`. What is no longer in the file is deleted. If anything
    cannot be embedded, nothing is changed and the exit code is 1.

    Example: commonplace knowledge index travel-agent.yaml
    """
    with opened(invocation, create=True, is_long=True) as engine:
        report = engine.knowledge.create_agent(file).report
    counts = [f"{getattr(report, name):,} {words}" for name, words in _CHANGES.items() if getattr(report, name)]
    view = [
        Line(f"{{agent}} knows {{items:{_ITEMS}}}" if report.items else "{agent} knows nothing", "bold"),
        Line(joined(counts) or "nothing to index", "dim", 1),
        Line("embedder {embedder}", "dim", 1),
    ]
    emit(invocation, report, view if report.is_replaced else [])
    return SUCCESS if report.is_replaced else FAILURE


@command(knowledge, click.argument("agent"))
@click.argument("text", nargs=-1, required=True)
@click.option("-n", "--limit", type=int, metavar="N", help="Maximum number of texts.")
@click.option("--min-score", type=float, default=0.0, metavar="SCORE", help="Hide texts below this score, 0 to 1.")
@click.option("--no-rerank", is_flag=True, help="Do not ask a model to re-rank.")
@click.option("--fenced", is_flag=True, help="Print the texts as labelled data for a model.")
def query(invocation: Invocation, /, agent: str, text: tuple[str, ...], fenced: bool, **values: Any) -> None:
    """Find what AGENT knows about TEXT, best first.

    If more is found than wanted and there is a key for a language model, that model re-ranks.

    Example: commonplace knowledge query TravelAgent "capital of Japan"
    """
    with opened(invocation, is_long=True) as engine:
        limit, rerank = values["limit"], not values["no_rerank"]
        found = engine.knowledge.retrieve(agent, " ".join(text), limit, min_score=values["min_score"], rerank=rerank)
    if fenced and not invocation.as_json:
        notify(found.notices, invocation)
        say(found.to_text())
    else:
        by = f", re-ranked by {found.reranked_by}" if found.reranked_by else ""
        view = [
            Line(f"{found.agent} knows{by}:" if found.hits else f"{found.agent} knows nothing about this.", "bold"),
            lambda _: [""],
            Each("hits", Row("{id}", ("score {score:.2f}",), "{content}"), is_numbered=True),
            "\nTotal latency: {latency_ms}ms",
        ]
        emit(invocation, found, view if found.hits else view[:1])


@ask(knowledge, Line(f"Deleted {{deleted:{_ITEMS}}}", "bold"), click.argument("agent"))
def delete(engine: Engine, /, agent: str) -> dict[str, Any]:
    """Delete what AGENT knows, so that it is not found.

    `commonplace store gc`, or `commonplace forget --agent`, deletes it for good.

    Example: commonplace knowledge delete TravelAgent
    """
    notices = engine.knowledge.notices_of(agent)
    return {"agent": agent, "deleted": engine.knowledge.delete_agent_knowledge(agent), "notices": notices}


_KNOWN: Final = (
    f"{{items:{_ITEMS}}}",
    "{deleted:!0} deleted",
    "{stale:!0} to be embedded again when it is indexed next",
)
_STATUS: Final = [
    Each("agents", Row("{agent}", _KNOWN), none="No agent knows anything here.", style="bold"),
    lambda found: f"\nEmbedder {found.embedder or 'none'}; re-ranker {found.reranker or 'none'}",
    Each("notices", NOTE),
]


@ask(knowledge, _STATUS, has_notices=True)
def status(engine: Engine, /) -> KnowledgeStatus:
    """Show agents, embedder and re-ranker.

    Example: commonplace knowledge status
    """
    return engine.knowledge.status()
