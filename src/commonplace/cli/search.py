"""The commands `search`, `recall` and `why`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli.app import command
from commonplace.cli.input import (
    SHORT_FORMS,
    also_option,
    artifact_options,
    as_of_option,
    flag_values,
    form_options,
    min_score_option,
    options,
    refuse_short_json,
    text_option,
    valid_at_option,
)
from commonplace.cli.main import Invocation
from commonplace.cli.output import (
    INDENT,
    MAX_LINES,
    MAX_LISTED,
    Line,
    Row,
    broken,
    columns,
    console,
    counted,
    joined,
    local_time,
    more,
    notify,
    print_json,
    print_packed,
    print_rows,
    progress_bars,
    say,
    wrapped,
)
from commonplace.errors import CommonplaceError, NotFoundError, UsageError
from commonplace.text.escaping import harmless, harmless_line
from commonplace.types import KINDS, RERANK_MODES, TIERS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from commonplace.engine import Engine
    from commonplace.search.result import Receipt, SearchResult
    from commonplace.types import Hit, Stage

REFERENCES_SHOWN = 5
_TITLES = {"two-stage": "Two-stage", "bm25": "BM25", "semantic": "Semantic"}
_RECALL = {"lexical": "BM25", "dense": "dense"}
_SECOND_STAGE = {"two-stage": "late interaction", "bm25": "BM25", "semantic": "cosine"}

NOTHING = (
    "Nothing in the index is about this. Try other words, fewer filters, or --min-score 0 to see everything that was "
    "ranked; `commonplace index status` says what the index holds."
)
_UNBOUND = 10_000
_BRIEF_CHARACTERS = 160
_LEAST_BRIEF = 16
_LONGEST_HEADING = 80
_WORDS_NAMED = 8
_GROUND = 0.25
"""What a signal must add to be a ground: a quarter of how far candidates differ from each other."""

_HANGING = re.compile(r"\s*(?:(?:[-*+•>]|\d{1,3}[.)])\s+)*")
"""What the further lines of a broken line are indented by: its own indentation and the marks of a list or quotation."""

_BESIDE_CODE = ("@", "#", "//", "/*", "*", '"', "'")
_GROUNDS = {
    "dense": "its meaning is near to the query's",
    "time": "it is of the time that the query names",
    "speaker": "the one whom the query asks about says it",
    "neighbours": "what stands next to it fits too",
    "retention": "it was used often or lately",
}
_LIKELY = {"sure": "it is surely relevant", "likely": "it is likely to be relevant", "weak": "it may only be near"}


def show(
    result: SearchResult,
    invocation: Invocation,
    print_whole: Callable[..., None],
    *,
    form: str | None,
    receipts: Sequence[Receipt],
) -> None:
    """Print a result in the form that was asked for, and its notices on standard error.

    Args:
        print_whole: prints it where no short form was asked for; see `print_result`.
        receipts: one for each hit where the form is "why", else none.
    """
    nothing = (
        ()
        if result.hits or form not in SHORT_FORMS
        else ("; ".join(filter(None, ["nothing relevant found", held_back(result)])),)
    )
    notify((*result.notices, *nothing), invocation)
    if invocation.as_json:
        grounds = {"why": [asdict(receipt) for receipt in receipts]} if form == "why" else {}
        print_json({**result.to_dict(), **grounds})
    elif form == "fenced":
        say(result.to_text())
    elif form in SHORT_FORMS:
        (print_brief if form == "brief" else print_places)(result, console())
    else:
        print_whole(result, console(), receipts=receipts, has_stages=invocation.is_verbose)


def print_result(
    result: SearchResult, target: Console, *, receipts: Sequence[Receipt] = (), has_stages: bool = False
) -> None:
    """Print header, numbered hits with snippets, total latency and references.

    Args:
        receipts: one for each hit, to be printed beneath it.
        has_stages: print also how many candidates each stage had, and how long it took.
    """
    from rich.text import Text

    from commonplace.search.result import reference

    target.print(f'{_TITLES[result.method]} retrieval for: "{harmless_line(result.query)}"', style="bold")
    if result.agent:
        types = ", ".join(result.wanted.types) or "all"
        target.print(f"Agent strategy: {harmless_line(result.agent)} (types: {types})")
    if has_stages:
        target.print()
        print_stages(result, target)
    if not result.hits:
        print_nothing(result, target)
    else:
        target.print("\nResults:")
        for rank, hit in enumerate(result.hits, 1):
            print_hit(rank, hit, result.query, target)
            if receipts:
                print_grounds(rank, receipts[rank - 1], result, target)
    print_held_back(result)
    target.print(f"\nTotal latency: {result.latency_ms}ms")
    names = list(dict.fromkeys(f"@{harmless_line(reference(hit))}" for hit in result.hits))
    if names:
        named = [*names[:REFERENCES_SHOWN], *["…"][: len(names) - REFERENCES_SHOWN]]
        pieces = [Text(f"{name}{',' * (place < len(named))}") for place, name in enumerate(named, 1)]
        pieces[0] = Text("References: ") + pieces[0]
        print_packed(pieces, target, Text(" "), room(target))


def print_brief(result: SearchResult, target: Console) -> None:
    """Print one line a hit: rank, place, score and the words about it that match, as far as the terminal has room."""
    from rich.text import Text

    from commonplace.text.snippet import snippet

    for rank, hit in enumerate(result.hits, 1):
        head = _head(rank, hit)
        line = Text(" ").join(head if hit.path else head[:2])
        if line.cell_len > room(target):
            line = Text(" ").join(head[:2])
        left = min(room(target) - line.cell_len - 2, _BRIEF_CHARACTERS)
        if left >= _LEAST_BRIEF:
            shown = Text(snippet(harmless(hit.text), result.query, limit=left).text, "dim")
            shown.truncate(left)
            line = Text.assemble(line, ": ", shown)
        target.print(line)


def print_places(result: SearchResult, target: Console) -> None:
    """Print each file that was found once, best first, and of what is in no file its id, one a line."""
    for name in dict.fromkeys(hit.path or hit.owner_id for hit in result.hits):
        target.print(harmless_line(name))


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
    target.print("\nNothing relevant found.", style="bold")
    if result.trace.candidates:
        print_rows([Line(NOTHING, "dim", 1)])


def print_hit(rank: int, hit: Hit, query: str, target: Console) -> None:
    """Print one numbered hit with the part of its text that matches, the matching words emphasised."""
    from rich.text import Text

    from commonplace.search.result import copies_named

    print_packed(_head(rank, hit), target, Text(" "), room(target))
    if hit.superseded_by:
        print_rows([Line(older(hit), "dim", 1)])
    if hit.copies:
        names = [Text(f"{harmless_line(name)},", "dim") for name in copies_named(hit)]
        names[-1].right_crop(1)
        names[0] = Text(f"{INDENT}the same in ", "dim") + names[0]
        print_packed(names, target, Text(" "), room(target))
    print_snippet(hit, query, target)


def _head(rank: int, hit: Hit) -> list[Text]:
    """Return the head of a hit in pieces: rank and place, score, and its symbol or heading."""
    from rich.text import Text

    name = harmless_line(hit.heading if hit.path else hit.kind)
    name = f"{name[: _LONGEST_HEADING - 1]}…" if len(name) > _LONGEST_HEADING else name
    head = [Text.assemble(f"{rank}. ", (harmless_line(place(hit)), "cyan")), Text(f"({rating(hit)})")]
    return [*head, Text(name, "bold")] if name else head


def place(hit: Hit) -> str:
    """Return where a hit stands as editors open it, `path:line`; the owner's id where there is no file.

    The line is that of the symbol's declaration, else the first one of the passage.
    """
    if not hit.path or hit.lines is None:
        return hit.path or hit.owner_id
    symbol = re.split(r"\W", hit.heading)[-1] if _is_code(hit) else ""
    rows = hit.text.split("\n") if symbol else []
    named = re.compile(rf"(?<!\w){re.escape(symbol)}(?!\w)")
    declared = (at for at, row in enumerate(rows) if not row.strip().startswith(_BESIDE_CODE) and named.search(row))
    return f"{hit.path}:{hit.lines[0] + next(declared, 0)}"


def rating(hit: Hit) -> str:
    """Return the score of a hit, and the word for it."""
    return ", ".join(filter(None, (f"{hit.score:.2f}", hit.confidence)))


def older(hit: Hit) -> str:
    """Return the words for a newer memory that may have overtaken the hit, "" where there is none."""
    return f"older: {harmless_line(hit.superseded_by)} is newer" if hit.superseded_by else ""


def print_held_back(result: SearchResult) -> None:
    """Say how many lie below the floor, where any do."""
    if result.best_held_back is not None:
        print_rows([Line(held_back(result), "dim", 0)])


def held_back(result: SearchResult) -> str:
    """Return the words for how many lie below the floor, "" where none do."""
    if result.best_held_back is None:
        return ""
    return f"{result.held_back} more below the floor, the best at {result.best_held_back:.2f}; --min-score 0 shows them"


def room(target: Console) -> int:
    """Return how many columns a line may take: in a pipe, which wraps nothing, any number unless COLUMNS is set."""
    return target.width if target.is_terminal or os.environ.get("COLUMNS") else _UNBOUND


def print_snippet(hit: Hit, query: str, target: Console) -> None:
    """Print the part of a hit that matches: its lines as they are, cut where they are code and wrapped where not."""
    from rich.text import Text

    from commonplace.text.snippet import snippet

    is_code = _is_code(hit)
    text = hit.text if is_code else _body(hit)
    chosen = snippet(harmless(text), query, layout="code" if is_code else "text")
    styled = Text(chosen.text, style="dim")
    for start, end in chosen.emphasis:
        styled.stylize("bold not dim", start, end)
    width = columns(room(target))
    for line in styled.split("\n"):
        if is_code:
            line.truncate(width, overflow="ellipsis")
        for part in [line] if is_code else _hanging(line, width):
            target.print(Text(INDENT) + part)


def _is_code(hit: Hit) -> bool:
    return hit.type in ("code", "test") and hit.path.rpartition(".")[2] not in ("md", "rst", "txt")


def _body(hit: Hit) -> str:
    """Return the text without its front matter and the heading that is printed above it, unless it has nothing else."""
    from commonplace.text.markdown import front_matter_end, plain_heading

    lines = hit.text.split("\n") if hit.path else []
    lines = "\n".join(lines[front_matter_end(lines) :]).strip("\n").split("\n")
    is_told = hit.heading and plain_heading(lines[0].strip("# ")) == hit.heading
    return "\n".join(lines[1:] if is_told else lines).strip("\n") or hit.text


def _hanging(line: Text, width: int) -> list[Text]:
    """Return a line of text as lines of that width, the further ones below its first word."""
    from rich.text import Text

    found = _HANGING.match(line.plain)
    margin = found.end() if found and found.end() <= width // 3 else 0
    first, *rest = wrapped(line[margin:], width - margin) or [Text()]
    return [line[:margin] + first, *(Text(" " * margin) + part for part in rest)]


def print_grounds(rank: int, receipt: Receipt, result: SearchResult, target: Console) -> None:
    """Print beneath a hit why it stands there: the sentence, and what each signal added."""
    _print_reason("It", reason(receipt, rank, result), target, "italic", level=1)
    added = [f"{each.name} {each.standardised * each.weight:+.2f}" for each in receipt.signals if each.weight]
    if added:
        print_rows([Line(f"added: {', '.join(added)}", "dim", 1)])


def print_receipt(rank: int, receipt: Receipt, result: SearchResult, target: Console) -> None:
    """Print why a hit was found: a sentence, the passage, what each signal added, the words, and what was left out.

    Args:
        rank: of the hit as it is printed.
    """
    from rich.text import Text

    hit = result.hits[rank - 1]
    _print_reason(harmless_line(place(hit)), reason(receipt, rank, result), target, "bold", level=0)
    likely = "" if receipt.probability is None else f", probability {receipt.probability:.2f}"
    target.print(f"{INDENT}score {receipt.score:.2f}{likely}", style="dim")
    for line in wrapped(Text(harmless(hit.text), style="dim"), columns(room(target)))[:MAX_LINES]:
        target.print(Text(INDENT) + line)
    target.print()
    if receipt.reranked_by:
        name = harmless_line(receipt.reranked_by)
        target.print(f"{INDENT}re-ranked by {name}; it was candidate {receipt.first_rank} before\n")
    names = max((len(share.name) for share in receipt.signals), default=0)
    for share in receipt.signals:
        weighed = f"  standardised {share.standardised:+.2f} × weight {share.weight:g}" if share.weight else ""
        adds = f"  log-odds {share.evidence:+.2f}" if share.evidence else ""
        target.print(f"{INDENT}{share.name:<{names}}{share.value:>9.3f}{weighed}{adds}")
    matched = ", ".join(map(harmless_line, receipt.matched_terms)) or "none"
    missing = ", ".join(map(harmless_line, receipt.missing_terms)) or "none"
    target.print(f"\n{INDENT}words found: {matched}\n{INDENT}words missing: {missing}")
    if receipt.rejected:
        target.print(f"\nLeft out ({counted(len(receipt.rejected), 'candidate')}):")
        for left in receipt.rejected[:MAX_LISTED]:
            print_rows([Line(f"{left.rank}. {left.reference} ({left.score:.2f}): {left.reason}", "", 1)])
        print_rows(more(len(receipt.rejected)))


def _print_reason(subject: str, told: str, target: Console, style: str, *, level: int) -> None:
    indent = INDENT * level
    whole = subject.replace(" ", "\xa0")  # no line ends inside a path
    for line in broken(f"{whole} {told}", target.width - len(indent)):
        target.print(f"{indent}{line}".replace("\xa0", " "), style=style)


def reason(receipt: Receipt, rank: int, result: SearchResult) -> str:
    """Return in words why a hit has its rank, without a subject: "is hit 1 of 3 because …".

    What adds most to its place among the candidates is named first; that it lacks the query's words, at the end.
    """
    ranks = {each.id: at for at, each in enumerate(result.hits, 1)}
    ranks |= {each.owner_id: at for at, each in enumerate(result.hits, 1)}

    def named(id_: str) -> str:
        return f"hit {ranks[id_]}" if id_ in ranks else harmless_line(id_)

    if receipt.reranked_by:
        by = harmless_line(receipt.reranked_by)
        because = f"because {by} put it there; it was candidate {receipt.first_rank} before"
    elif receipt.stands_before:
        because = f"because it is newer than {named(receipt.stands_before)}, which it may have overtaken"
    else:
        because = _because(receipt)
    likely = f"; {_LIKELY[receipt.confidence]}" if receipt.confidence else ""
    passed = f"; {named(receipt.superseded_by)} is newer and stands before it" if receipt.superseded_by else ""
    return f"is hit {rank} of {len(result.hits)} {because}{likely}{passed}."


def _because(receipt: Receipt) -> str:
    """Return the grounds of the ranking, from what each signal added."""
    added = {each.name: each.standardised * each.weight for each in receipt.signals if each.weight}
    shares = added or {each.name: each.value for each in receipt.signals}
    has, lacks = _words(receipt)
    by_words = shares.get("lexical", 0.0) + shares.get("late", 0.0)
    weighed = [(value, _GROUNDS[name]) for name, value in shares.items() if name in _GROUNDS]
    weighed.append((by_words, has or "it has words much like the query's"))
    grounds = [ground for value, ground in sorted(weighed, reverse=True) if value >= _GROUND]
    because = f"because {joined(grounds)}" if grounds else "because the others fit the query still less"
    return f"{because}, though {lacks}" if lacks else because


def _words(receipt: Receipt) -> tuple[str, str]:
    """Return what a passage holds of the query's words, and what is to be read_text where it holds none."""
    found, count = receipt.matched_terms, len(receipt.matched_terms) + len(receipt.missing_terms)
    named = ", ".join([*map(harmless_line, found[:_WORDS_NAMED]), *["…"][: len(found) - _WORDS_NAMED]])
    if not found:
        return "", "it holds none of the query's words" if count > 1 else "it does not hold the query's word"
    if len(found) < count:
        return f"it holds {len(found)} of the query's {count} words ({named})", ""
    every = {1: "the query's word", 2: "both words of the query"}.get(count, f"all {count} words of the query")
    return f"it holds {every} ({named})", ""


def _ms(stages: dict[str, Stage], *names: str) -> str:
    took = sum(stages[name].ms for name in names if name in stages)
    return f"{took:.0f}ms" if took >= 10 else f"{took:.1f}ms"


_TRY = "Try other words, fewer filters, or --min-score 0 to see everything that was ranked."


def print_recalled(
    result: SearchResult, target: Console, *, receipts: Sequence[Receipt] = (), has_stages: bool = False
) -> None:
    """Print the memories that were found, best first, each with its score and the part of its text that matches.

    Args:
        receipts: one for each hit, to be printed beneath it.
        has_stages: print also how many candidates each stage had, and how long it took.
    """
    from commonplace.dates.time import moment_of

    if has_stages:
        print_stages(result, target)
    for rank, hit in enumerate(result.hits, 1):
        when = "" if hit.at is None else local_time(moment_of(hit.at))
        tags = " ".join(f"#{tag}" for tag in hit.tags)
        known = (rating(hit), older(hit), hit.tier, when, hit.source, tags)
        print_rows([Row(hit.owner_id, known, before=f"{rank}. ")])
        print_snippet(hit, result.query, target)
        if receipts:
            print_grounds(rank, receipts[rank - 1], result, target)
    if not result.hits:
        target.print("No memory is about this.", style="bold")
        if result.trace.candidates:
            print_rows([Line(_TRY, "dim", 1)])
        print_held_back(result)
        return
    print_held_back(result)
    target.print(f"{counted(len(result.hits), 'memory', 'memories')} in {result.latency_ms} ms", style="dim")


_QUOTE: Final = "put a query of several words in quotation marks"

_query = click.argument("query", nargs=-1, required=True)
_kind = click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only hits of this kind.")
_memory_options = options(
    as_of_option,
    valid_at_option,
    text_option("--tag", "tags", metavar="TAG", many=True, help="Only with this tag."),
    click.option("--tier", "tiers", multiple=True, type=click.Choice(TIERS[1:]), help="Only this tier."),
    text_option("--session", "sessions", metavar="NAME", many=True, help="Only from this conversation."),
    text_option("--source", "sources", many=True, help="Only from this source."),
    click.option("--min-trust", type=float, default=0.0, metavar="SHARE", help="Only with at least this trust."),
    click.option("-n", "--limit", type=int, metavar="N", help="Maximum number of results."),
    min_score_option,
)


def _stage2(context: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    """Let `--limit` and `--stage2-topk`, which mean the same, not contradict each other."""
    seen = context.meta.setdefault("commonplace.limit", {})
    if value is not None:
        seen[parameter.name] = value
    if len(set(seen.values())) > 1:
        raise click.UsageError("--limit and --stage2-topk mean the same, but differ; give one of them")
    return value


@command()
@_query
@click.option("--stage1-topk", type=int, metavar="N", help="Maximum number of lexical and dense candidates, each.")
@click.option("--stage2-topk", type=int, metavar="N", callback=_stage2, help="Maximum number of results.")
@click.option("-n", "--limit", type=int, metavar="N", callback=_stage2, help="The same as --stage2-topk.")
@artifact_options
@text_option("--tag", "tags", metavar="TAG", many=True, help="Only with this tag.")
@as_of_option
@_kind
@min_score_option
@click.option("--rerank", type=click.Choice(RERANK_MODES), help="Re-rank by a language model: one call a hit, or one.")
@also_option
@form_options
def search(invocation: Invocation, /, query: tuple[str, ...], *, form: str | None, **values: Any) -> None:
    """Find the passages that answer QUERY, best first.

    Each hit is sure, likely or weak; a weak one may only be near. If nothing is relevant, it says so and prints no
    passage. -v also prints the stages and how long they took.

    Repeat an option to allow alternatives; different options must all match. Options win over the strategy of --agent.

    Example: commonplace search "when does a session expire" --type code --limit 5
    """
    refuse_short_json(form, as_json=invocation.as_json)
    limit = values["limit"]
    loaded = invocation.settings(
        search_method=values["method"],
        search_stage1_limit=values["stage1_topk"],
        search_limit=values["stage2_topk"] if limit is None else limit,
        search_min_score=values["min_score"],
        models_reranker=values["rerank"],
    )
    names = ("as_of", "kinds", "types", "phases", "tags", "paths", "agent", "also")
    asked: dict[str, Any] = {name: values[name] or None for name in names} | flag_values(loaded)
    with progress_bars(invocation) as progress, invocation.open(loaded, progress=progress) as engine:
        result = engine.search(" ".join(query), **asked)
        engine.log_retrieval(result)
        if asked["as_of"] is None:
            engine.count_use(result.hits)
        receipts = [engine.why(result, hit.id) for hit in result.hits] if form == "why" else []
    show(result, invocation, print_result, form=form, receipts=receipts)


@command()
@_query
@_memory_options
@also_option
@form_options
@click.option("--fenced", "form", flag_value="fenced", help="Print the memories as labelled data for a model.")
def recall(invocation: Invocation, /, query: tuple[str, ...], *, form: str | None, **values: Any) -> None:
    """Find the memories that answer QUERY, best first.

    A newer memory ranks before one that it may have superseded. Each is sure, likely or weak; a weak one may only be
    near. Dates in the query, such as "last May", lead to memories of that time. Sure and likely hits count as used.

    Example: commonplace recall "which database does billing use" --as-of 2026-01-01
    """
    refuse_short_json(form, as_json=invocation.as_json)
    loaded = invocation.settings(search_limit=values.pop("limit"), search_min_score=values.pop("min_score"))
    with progress_bars(invocation) as progress, invocation.open(loaded, progress=progress) as engine:
        result = engine.recall(" ".join(query), **values)
        engine.log_retrieval(result, "recall")
        receipts = [engine.why(result, hit.id) for hit in result.hits] if form == "why" else []
        is_bare = not result.hits and not engine.list(statuses=(), limit=1)
    hidden: tuple[str, ...] = ()
    if is_bare:
        from commonplace.cli.store import hidden_memories

        with suppress(CommonplaceError):  # a fault of another store is none of this answer
            hidden = hidden_memories(loaded)
    if hidden:
        count = counted(len(hidden), "memory", "memories")
        move = "`commonplace init --move-memories` moves them"
        notice = f"your own store holds {count} that a project does not find: {move}"
        result = replace(result, notices=(*result.notices, notice))
    show(result, invocation, print_recalled, form=form, receipts=receipts)


def _only_one(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> str | None:
    """Take at most one HIT: more are words of a query that was not quoted, as other commands take it."""
    if len(value) > 1:
        raise UsageError("QUERY and HIT are one argument each", remedy=_QUOTE)
    return value[0] if value else None


@command()
@click.argument("query")
@click.argument("hit", nargs=-1, metavar="[HIT]", callback=_only_one)
@_kind
@artifact_options
@_memory_options
@also_option
def why(invocation: Invocation, /, query: str, hit: str | None, **values: Any) -> None:
    """Explain why QUERY finds HIT.

    HIT is its rank, as `search` prints it with the same options (or `recall`, with --kind memory), or the id of a
    memory, artifact or passage; the default is the best hit.

    It prints a sentence, each signal and what it added, the words that matched, and what was left out.

    Example: commonplace why "when does a session expire" 2
    """
    method, limit, min_score = (values.pop(name) for name in ("method", "limit", "min_score"))
    loaded = invocation.settings(search_method=method, search_limit=limit, search_min_score=min_score)
    asked: dict[str, Any] = {name: None if value == () else value for name, value in values.items()}
    with invocation.open(loaded) as engine:
        result = engine.search(query, **asked | flag_values(loaded))
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
