"""The commands that find memories and explain what was found: `recall` and `why`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.cli.values import also, filled, forms, from_flags, of_artifacts, score, time, whole_as_json
from commonplace.errors import CommonplaceError, UsageError
from commonplace.types import KINDS, TIERS

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.search.result import SearchResult

_QUOTE: Final = "put a query of several words in quotation marks"


def _of_memories(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose among memories."""
    for option in reversed(
        (
            click.option(
                "--as-of", metavar="TIME", callback=time, help="What was known then: ISO 8601, or 'last Tuesday'."
            ),
            click.option("--valid-at", metavar="TIME", callback=time, help="What was true then, whenever stored."),
            click.option("--tag", "tags", multiple=True, metavar="TAG", callback=filled, help="Only with this tag."),
            click.option("--tier", "tiers", multiple=True, type=click.Choice(TIERS[1:]), help="Only this tier."),
            click.option("--session", "sessions", multiple=True, metavar="NAME", callback=filled, help="Only of this."),
            click.option("--source", "sources", multiple=True, metavar="TEXT", callback=filled, help="Only from this."),
            click.option("--min-trust", type=float, default=0.0, metavar="SHARE", help="Only what is trusted as far."),
            click.option("-n", "--limit", type=int, metavar="N", help="How many results at most."),
            click.option("--min-score", metavar="SCORE", callback=score, help="Hold back hits below it, 0 to 1."),
        )
    ):
        function = option(function)
    return function


@click.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@_of_memories
@also
@forms
@click.option("--fenced", "form", flag_value="fenced", help="Print the memories as labelled data, to give to a model.")
@pass_invocation
def recall(invocation: Invocation, /, query: tuple[str, ...], *, form: str | None, **options: Any) -> None:
    """Find the memories that answer QUERY, best first.

    A newer one stands before the one that it may have overtaken. Each is sure, likely or weak; what is weak may only be
    near. Dates in it, such as "last May", lead to memories of that time. Those that are sure or likely count as used.
    """
    from commonplace.cli.keeping import hidden_memories
    from commonplace.cli.memory_rendering import print_recalled
    from commonplace.cli.rendering import show
    from commonplace.cli.screen import counted, progress_bars

    whole_as_json(form, as_json=invocation.as_json)
    loaded = invocation.settings(search_limit=options.pop("limit"), search_min_score=options.pop("min_score"))
    with progress_bars(invocation) as progress, invocation.open(loaded, progress=progress) as engine:
        result = engine.recall(" ".join(query), **options)
        engine.log_retrieval(result, "recall")
        receipts = [engine.why(result, hit.id) for hit in result.hits] if form == "why" else []
        is_bare = not result.hits and not engine.list(statuses=(), limit=1)
    hidden: tuple[str, ...] = ()
    with suppress(CommonplaceError):  # a fault of another store is none of this answer
        hidden = hidden_memories(loaded) if is_bare else ()
    if hidden:
        count = counted(len(hidden), "memory", "memories")
        told = (
            f"your own store holds {count} that a project does not find: `commonplace init --move-memories` moves them"
        )
        result = replace(result, notices=(*result.notices, told))
    show(result, invocation, print_recalled, form=form, receipts=receipts)


def _only_one(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> str | None:
    """Take at most one HIT: more are words of a query that was not quoted, as other commands take it."""
    if len(value) > 1:
        raise UsageError("QUERY and HIT are one argument each", remedy=_QUOTE)
    return value[0] if value else None


@click.command(cls=Command)
@click.argument("query")
@click.argument("hit", nargs=-1, metavar="[HIT]", callback=_only_one)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only hits of this kind.")
@of_artifacts
@_of_memories
@also
@pass_invocation
def why(invocation: Invocation, /, query: str, hit: str | None, **options: Any) -> None:
    """Explain why QUERY finds HIT.

    HIT is its rank, as `search` prints it with the same options (or `recall`, with --kind memory), or the id of a
    memory, artifact or passage; without one, the best hit is explained.

    It says in a sentence why the hit stands there, and shows each signal and what it added, the words that matched, and
    what was left out.
    """
    from commonplace.cli.rendering import print_receipt
    from commonplace.cli.screen import console, notify, print_json
    from commonplace.errors import NotFoundError

    method, limit, min_score = (options.pop(name) for name in ("method", "limit", "min_score"))
    loaded = invocation.settings(search_method=method, search_limit=limit, search_min_score=min_score)
    asked: dict[str, Any] = {name: None if value == () else value for name, value in options.items()} | from_flags(
        loaded
    )
    with invocation.open(loaded) as engine:
        result = engine.search(query, **asked)
        rank = _rank(engine, result, hit)
        if rank is None:
            message = "nothing was found" if not result.hits else f"{hit!r} is not among the {len(result.hits)} hits"
            remedy = "ask for more with --limit and --min-score 0"
            raise NotFoundError(message, remedy=remedy if hit is None else f"{remedy}; {_QUOTE}")
        receipt = engine.why(result, result.hits[rank - 1].id)
    notify(result.notices, invocation)
    if invocation.as_json:
        print_json(asdict(receipt))
    else:
        print_receipt(rank, receipt, result, console())


def _rank(engine: Engine, result: SearchResult, hit: str | None) -> int | None:
    """Return the rank of the hit that is named by an id, which may be abbreviated, a path or its rank, else None."""
    ranks = {str(rank): rank for rank in range(len(result.hits), 0, -1)}
    for rank, each in reversed(list(enumerate(result.hits, 1))):
        ranks |= dict.fromkeys((each.id, each.owner_id, each.path), rank)
    if not ranks or hit is None:
        return 1 if ranks else None
    return ranks[hit] if hit in ranks else ranks.get(engine.resolve_id(hit))
