"""The command group `knowledge`: index, query and delete what agents know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.app import FAILURE, SUCCESS, Command, Group, pass_invocation
from commonplace.cli.main import Invocation
from commonplace.cli.output import (
    console,
    counted,
    joined,
    notify,
    print_beginning,
    print_head,
    print_json,
    print_under,
    progress_bars,
    say,
)
from commonplace.errors import StoreError
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.knowledge.config import MemoryConfig
    from commonplace.knowledge.results import KnowledgeReport, KnowledgeStatus, Retrieval
    from commonplace.knowledge.service import KnowledgeService


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


MAX_CONFIG_BYTES = 1024 * 1024

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _config_option(function: Callable[..., Any]) -> Callable[..., Any]:
    text = "A MemoryConfig as JSON, in place of the settings."
    return click.option("--config", type=_FILE, help=text)(function)


@click.group(cls=Group)
def knowledge() -> None:
    """Index and ask what an agent knows."""


@knowledge.command(cls=Command)
@click.argument("file", type=_FILE, metavar="AGENT.YAML")
@_config_option
@pass_invocation
def index(invocation: Invocation, /, file: Path, config: Path | None) -> int:
    """Make the knowledge in an agent's file what the agent knows.

    The file names the agent and lists maps under `knowledge`. What is indexed already stays as it is, and what is not
    in the file any more is deleted. The exit code is 1 where something could not be embedded, and nothing was changed.
    """

    with _service(invocation, config, create=True) as service:
        report = service.create_agent(file).report
    if invocation.as_json:
        print_json(report.to_dict())
    elif report.is_replaced:
        print_report(report, console())
    notify(report.notices, invocation)
    return SUCCESS if report.is_replaced else FAILURE


@knowledge.command(cls=Command)
@click.argument("agent")
@click.argument("text", nargs=-1, required=True)
@click.option("-n", "--limit", type=int, metavar="N", help="How many texts at most.")
@click.option(
    "--min-score", type=float, default=0.0, metavar="SCORE", help="Leave out what is found with less, 0 to 1."
)
@click.option("--no-rerank", is_flag=True, help="Ask no model, and leave the order in which it was found.")
@click.option("--fenced", is_flag=True, help="Print the texts as labelled data, to be given to a model.")
@_config_option
@pass_invocation
def query(
    invocation: Invocation,
    /,
    agent: str,
    text: tuple[str, ...],
    config: Path | None,
    limit: int | None,
    min_score: float,
    no_rerank: bool,
    fenced: bool,
) -> None:
    """Find what AGENT knows about TEXT, best first.

    Where there is more to choose from than is wanted, and a key for it, a language model puts it into a better order.
    """

    with _service(invocation, config) as service:
        found = service.retrieve(agent, " ".join(text), limit, min_score=min_score, rerank=not no_rerank)
    notify(found.notices, invocation)
    if invocation.as_json:
        print_json(found.to_dict())
    elif fenced:
        say(found.to_text())
    else:
        print_retrieval(found, console())


@knowledge.command(cls=Command)
@click.argument("agent")
@pass_invocation
def delete(invocation: Invocation, /, agent: str) -> None:
    """Delete what AGENT knows, so that it is not found.

    It is kept aside until `commonplace gc`, or `commonplace forget --agent`, deletes it for good.
    """

    with _service(invocation, None) as service:
        notices = service.notices_of(agent)
        gone = service.delete_agent_knowledge(agent)
    notify(notices, invocation)
    if invocation.as_json:
        print_json({"agent": agent, "deleted": gone, "notices": notices})
    else:
        console().print(f"Deleted {items(gone)}", style="bold")


@knowledge.command(cls=Command)
@_config_option
@pass_invocation
def status(invocation: Invocation, /, config: Path | None) -> None:
    """Say which agents know something, and what it is found by."""

    with _service(invocation, config) as service:
        found = service.status()
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        print_status(found, console())


def _refuse_absent(config: MemoryConfig) -> None:
    """Refuse the store of a configuration where there is none: a question makes none.

    Raises:
        StoreError: there is none.
    """
    from commonplace.settings.paths import DATABASE, sqlite_directory

    if not (config.sqlite_enabled and config.sqlite_path):
        return
    directory = sqlite_directory(config.sqlite_path)
    if not (directory / DATABASE).is_file():
        raise StoreError(
            f"there is no store at {directory}",
            remedy="correct sqlitePath, or make it with `commonplace knowledge index`",
        )


@contextmanager
def _service(invocation: Invocation, config: Path | None, *, create: bool = False) -> Iterator[KnowledgeService]:
    """Give the service of a store, with a configuration of its own where a file holds one."""

    chosen = None
    if config is not None:
        from commonplace.formats.yaml import read_document
        from commonplace.knowledge.config import MemoryConfig

        chosen = MemoryConfig.from_json(read_document(config, MAX_CONFIG_BYTES, "a configuration"))
        if not create:
            _refuse_absent(chosen)
    loaded = invocation.settings()
    with progress_bars(invocation) as progress, invocation.open(loaded, create=create, progress=progress) as engine:
        yield engine.knowledge if chosen is None else engine.knowledge_service(chosen)
