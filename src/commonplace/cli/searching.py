"""The command `search`."""

from __future__ import annotations

from typing import Any

import click

from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.cli.values import also, filled, forms, from_flags, of_artifacts, score, time, whole_as_json
from commonplace.types import KINDS, RERANK_MODES


def _stage2(context: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    """Let `--limit` and `--stage2-topk`, which mean the same, not contradict each other."""
    seen = context.meta.setdefault("commonplace.limit", {})
    if value is not None:
        seen[parameter.name] = value
    if len(set(seen.values())) > 1:
        raise click.UsageError("--limit and --stage2-topk mean the same, but differ; give one of them")
    return value


@click.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@click.option("--stage1-topk", type=int, metavar="N", help="At most so many lexical and dense candidates, each.")
@click.option("--stage2-topk", type=int, metavar="N", callback=_stage2, help="How many results at most.")
@click.option("-n", "--limit", type=int, metavar="N", callback=_stage2, help="The same as --stage2-topk.")
@of_artifacts
@click.option("--tag", "tags", multiple=True, metavar="TAG", callback=filled, help="Only what has this tag.")
@click.option(
    "--as-of", metavar="TIME", callback=time, help="What was known then: ISO 8601, or words such as 'last Tuesday'."
)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only hits of this kind.")
@click.option(
    "--min-score",
    metavar="SCORE",
    callback=score,
    help="Hold back hits below it, 0 to 1; 0 shows all that was ranked, auto is a low floor.",
)
@click.option(
    "--rerank", type=click.Choice(RERANK_MODES), help="Have a language model re-rank: one call a hit, or one for all."
)
@also
@forms
@pass_invocation
def search(invocation: Invocation, /, query: tuple[str, ...], *, form: str | None, **options: Any) -> None:
    """Find the passages that answer QUERY, best first.

    Each is sure, likely or weak; what is weak may only be near. When nothing is relevant, it says so and prints no
    passage. -v prints its stages too, and how long they took.

    An option that can be given several times takes alternatives; different options must all hold. What is given here
    wins over the strategy of --agent.
    """
    from commonplace.cli.rendering import print_result, show
    from commonplace.cli.screen import progress_bars

    whole_as_json(form, as_json=invocation.as_json)
    limit = options["limit"]
    loaded = invocation.settings(
        search_method=options["method"],
        search_stage1_limit=options["stage1_topk"],
        search_limit=options["stage2_topk"] if limit is None else limit,
        search_min_score=options["min_score"],
        models_reranker=options["rerank"],
    )
    asked: dict[str, Any] = {
        name: options[name] or None for name in ("as_of", "kinds", "types", "phases", "tags", "paths", "agent", "also")
    }
    asked |= from_flags(loaded)
    with progress_bars(invocation) as progress, invocation.open(loaded, progress=progress) as engine:
        result = engine.search(" ".join(query), **asked)
        engine.log_retrieval(result)
        if asked["as_of"] is None:
            engine.count_use(result.hits)
        receipts = [engine.why(result, hit.id) for hit in result.hits] if form == "why" else []
    show(result, invocation, print_result, form=form, receipts=receipts)
