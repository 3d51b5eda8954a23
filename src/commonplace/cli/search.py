"""The commands `search`, `recall`, `why` and `context`, which a client's hooks call too."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options, rows
from commonplace.cli.app import FAILURE, SUCCESS, command, opened, report
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import CALLER, console, notify, print_json, say
from commonplace.dataclasses import replace
from commonplace.errors import CommonplaceError, NotFoundError, StoreMissingError, UsageError
from commonplace.formats.escaping import harmless, harmless_line
from commonplace.types import RERANK_MODES, Hit
from commonplace.types.ledger import VERDICTS, Verdict

if TYPE_CHECKING:
    from rich.text import Text

    from commonplace.search.result import Receipt, Rejected, SearchResult
    from commonplace.settings import Settings

_MARKED: Final[Mapping[Verdict, str]] = {
    "right": "marked right: `commonplace health` says when this query no longer finds it",
    "wrong": "marked wrong: `commonplace health` says while this query shows it",
    "none": "its mark is removed",
}
_TITLES: Final = {"two-stage": "Two-stage", "bm25": "BM25", "semantic": "Semantic"}
_RECALL: Final = {"lexical": "BM25", "dense": "dense"}
_SECOND_STAGE: Final = {"two-stage": "late interaction", "bm25": "BM25", "semantic": "cosine"}
_TRY: Final = "Try other words, fewer filters, or --min-score 0 to see everything that was ranked"
_UNBOUND: Final = 10_000
_BRIEF_CHARACTERS: Final = 160
_MAX_HEADING: Final = 80
_MAX_REFERENCES: Final = 5


def _show(
    invocation: Invocation, result: SearchResult, form: str | None, receipts: Sequence[Receipt], *, of_memories: bool
) -> None:
    if form in ("brief", "paths-only") and not result.hits:
        notice = "; ".join(filter(None, ["nothing relevant found", _held_back(result)]))
        result = replace(result, notices=(*result.notices, notice))
    if form == "fenced" and not invocation.as_json:
        rows.emit_text(invocation, result, result.to_text())
        return

    answer_rows = (_recalled if of_memories else _results)(result, receipts, has_stages=invocation.is_verbose)
    if form == "brief":
        answer_rows = _brief(result)
    elif form == "paths-only":
        # Distinct paths, best first; the owner's id if there is no file.
        answer_rows = dict.fromkeys(hit.path or hit.owner_id for hit in result.hits)
    rows.emit(invocation, result, answer_rows, value={**result.to_dict(), "why": receipts} if form == "why" else None)


def _results(result: SearchResult, receipts: Sequence[Receipt], *, has_stages: bool) -> rows.Rows:
    from commonplace.search.result import reference

    yield rows.Line(f'{_TITLES[result.method]} retrieval for: "{result.query}"', "bold")
    if result.agent:
        yield f"Agent strategy: {result.agent} (types: {', '.join(result.wanted.types) or 'all'})"
    if has_stages:
        yield ""
        yield from _stages(result)
    if result.hits:
        yield "\nResults:"
    for rank, hit in enumerate(result.hits, 1):
        yield from hit_rows(rank, hit, result.query)
        yield from _explanation(rank, receipts, result)
    hint = f"Nothing relevant is indexed. {_TRY}; `commonplace index status` shows what is indexed."
    yield from _empty(result, "\nNothing relevant found.", hint)
    yield f"\nTotal latency: {result.latency_ms}ms"
    names = list(dict.fromkeys(f"@{harmless_line(reference(hit))}" for hit in result.hits))
    if names:
        yield from _names("References: ", names[:_MAX_REFERENCES] + ["…"] * (len(names) > _MAX_REFERENCES))


def _recalled(result: SearchResult, receipts: Sequence[Receipt], *, has_stages: bool) -> rows.Rows:
    from commonplace.dates.time import moment_of

    if has_stages:
        yield from _stages(result)
    ranks = {name: rank for rank, hit in enumerate(result.hits, 1) for name in (hit.id, hit.owner_id)}
    for rank, hit in enumerate(result.hits, 1):
        when = "" if hit.at is None else rows.local_time(moment_of(hit.at))
        # A newer memory ranks before the older one even if its score is lower.
        below = ranks.get(result.trace.moved.get(hit.id, ""))
        is_newer = below and (result.hits[below - 1].at or 0) < (hit.at or 0)
        newer = f"{'newer than' if is_newer else 'above'} hit {below}" if below else ""
        properties = (_rating(hit), newer, _older(hit, ranks), hit.tier, when, hit.source, rows.tagged(hit.tags))
        yield rows.Row(hit.owner_id, properties, before=f"{rank}. ")
        yield from _snippet(hit, result.query)
        yield from _explanation(rank, receipts, result)
    yield from _empty(result, "No memory is about this.", f"{_TRY}.")
    if result.hits:
        yield rows.Line(f"{rows.counted(len(result.hits), 'memory', 'memories')} in {result.latency_ms} ms", "dim")


def _names(before: str, names: Sequence[str], style: str = "") -> rows.Rows:
    first, *rest = [rows.styled(f"{name},", style=style) for name in names[:-1]] + [rows.styled(names[-1], style=style)]
    return rows.packed([rows.styled((before, style), first), *rest], " ", _room())


def _empty(result: SearchResult, title: str, hint: str) -> rows.Rows:
    if not result.hits:
        yield rows.Line(title, "bold")
        if result.trace.candidates:
            yield rows.Line(hint, "dim", 1)
    yield rows.Line(_held_back(result), "dim")


def _held_back(result: SearchResult) -> str:
    if (best := result.best_held_back) is None:
        return ""
    return f"{result.held_back} more below the minimum score, the best at {best:.2f}; --min-score 0 shows them"


def _brief(result: SearchResult) -> rows.Rows:
    from commonplace.search.result import excerpt

    room = _room()
    for rank, hit in enumerate(result.hits, 1):
        pieces = _head(rank, hit)
        head = rows.styled(" ").join(pieces if hit.path else pieces[:2])
        line = rows.styled(head, ": ", (excerpt(hit, result.query, limit=_BRIEF_CHARACTERS).text, "dim"))
        line.truncate(max(room, head.cell_len), overflow="ellipsis")
        yield line


def _stages(result: SearchResult) -> rows.Rows:
    stages = {stage.name: stage for stage in result.stages}

    def duration(*names: str) -> str:
        ms = sum(stages[name].ms for name in names if name in stages)
        return f"{ms:.0f}ms" if ms >= 10 else f"{ms:.1f}ms"

    recall = [f"{label} {stages[name].candidates}" for name, label in _RECALL.items() if name in stages]
    if recall:
        candidates = stages["signals"].candidates if "signals" in stages else 0
        yield f"Stage 1 ({', '.join(recall)}): {rows.counted(candidates, 'candidate')} ({duration('query', *_RECALL)})"
    source = "" if recall else ", remembered from a moment ago"
    ranking = duration(*(name for name in stages if name != "query" and name not in _RECALL))
    yield f"Stage 2 ({_SECOND_STAGE[result.method]}{source}): {rows.counted(len(result.hits), 'result')} ({ranking})"


def hit_rows(rank: int, hit: Hit, query: str) -> rows.Rows:
    """Yield one numbered hit with the matching part of its text, the matching words emphasised."""
    from commonplace.search.result import copies_named

    yield from rows.packed(_head(rank, hit), " ", _room())
    yield rows.Line(_older(hit, {}), "dim", 1)
    if hit.copies:
        yield from _names(f"{rows.INDENT}the same in ", [harmless_line(name) for name in copies_named(hit)], "dim")
    yield from _snippet(hit, query)


def _head(rank: int, hit: Hit) -> list[Text]:
    from commonplace.search.result import location

    name = harmless_line(hit.heading if hit.path else hit.kind)
    name = f"{name[: _MAX_HEADING - 1]}…" if len(name) > _MAX_HEADING else name
    head = [rows.styled(f"{rank}. ", (harmless_line(location(hit)), "cyan")), rows.styled(f"({_rating(hit)})")]
    return [*head, rows.styled(name, style="bold")] if name else head


def _rating(hit: Hit) -> str:
    return ", ".join(filter(None, (f"{hit.score:.2f}", hit.confidence)))


def _older(hit: Hit, ranks: Mapping[str, int]) -> str:
    from commonplace.search.result import replaced

    newer = hit.superseded_by or ""
    return f"{f'hit {ranks[newer]}' if newer in ranks else newer} {replaced(hit)} it" if newer else ""


def _room() -> int:
    """Return the number of columns of a line; in a pipe it is unlimited unless COLUMNS is set."""
    target, caller = console(), CALLER.get()
    environment = os.environ if caller is None else caller.environment
    return target.width if target.is_terminal or environment.get("COLUMNS") else _UNBOUND


def _snippet(hit: Hit, query: str) -> rows.Rows:
    """Yield the matching part of a hit: lines of code are cut to the width, others are wrapped."""
    from commonplace.search.result import excerpt, is_code

    passage = excerpt(hit, query)
    text = rows.styled(passage.text, style="dim")
    for start, end in passage.emphasis:
        text.stylize("bold not dim", start, end)
    width = rows.columns(_room())
    for line in text.split("\n"):
        if is_code(hit):
            line.truncate(width, overflow="ellipsis")
        for part in [line] if is_code(hit) else rows.wrapped(line, width):
            yield rows.styled(rows.INDENT) + part


def _explanation(rank: int, receipts: Sequence[Receipt], result: SearchResult) -> rows.Rows:
    for receipt in receipts[rank - 1 : rank]:
        yield rows.Line(f"It {receipt.explain(rank, result.hits)}", "italic", 1)
        added = [f"{term.name} {term.standardised * term.weight:+.2f}" for term in receipt.signals if term.weight]
        if added:
            yield rows.Line(f"added: {', '.join(added)}", "dim", 1)


def _receipt(receipt: Receipt, rank: int, result: SearchResult) -> rows.Rows:
    from commonplace.search.result import location

    hit = result.hits[rank - 1]
    yield rows.Line(f"{location(hit)} {receipt.explain(rank, result.hits)}", "bold")
    probability = "" if receipt.probability is None else f", probability {receipt.probability:.2f}"
    yield rows.Line(f"{rows.INDENT}score {receipt.score:.2f}{probability}", "dim")
    for line in rows.wrapped(rows.styled(harmless(hit.text), style="dim"), rows.columns(_room()))[: rows.MAX_LINES]:
        yield rows.styled(rows.INDENT) + line
    yield ""
    if receipt.reranked_by:
        yield f"{rows.INDENT}re-ranked by {receipt.reranked_by}; it was candidate {receipt.first_rank} before"
        yield ""
    names = max((len(signal.name) for signal in receipt.signals), default=0)
    for signal in receipt.signals:
        weighting = f"  standardised {signal.standardised:+.2f} × weight {signal.weight:g}" if signal.weight else ""
        evidence = f"  log-odds {signal.evidence:+.2f}" if signal.evidence else ""
        yield f"{rows.INDENT}{signal.name:<{names}}{signal.value:>9.3f}{weighting}{evidence}"
    yield f"\n{rows.INDENT}words found: {', '.join(receipt.matched_terms) or 'none'}"
    yield f"{rows.INDENT}words missing: {', '.join(receipt.missing_terms) or 'none'}"
    title = f"\nLeft out ({rows.counted(len(receipt.rejected), 'candidate')}):"

    def left_out(rejected: Rejected) -> rows.Line:
        return rows.Line(f"{rejected.rank}. {rejected.reference} ({rejected.score:.2f}): {rejected.reason}", level=1)

    yield from rows.listed(receipt.rejected, left_out, title, limit=rows.MAX_LISTED)


def _settings(invocation: Invocation, form: str | None, values: dict[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Return the settings with the options applied, and the options that override an agent's strategy."""
    if invocation.as_json and form in ("brief", "paths-only"):
        raise click.UsageError(f"--json prints whole hits: leave out --{form}, or --json")
    loaded = invocation.settings(
        search_method=values.pop("method", None),
        search_stage1_limit=values.pop("stage1_limit", None),
        search_limit=values.pop("limit"),
        search_min_score=values.pop("min_score"),
        models_reranker=values.pop("rerank", None),
    )
    names = ("limit", "min_score", "stage1_limit")
    return loaded, {
        name: getattr(loaded.search, name) for name in names if loaded.origins.get(f"search.{name}") == "flag"
    }


_RERANK: Final = "Re-rank by a language model: single, a call for each hit; batch (if no word follows), one for all."
_QUOTE: Final = "put a query of several words in quotation marks"

_memory_options = options.group(
    options.as_of,
    options.valid_at,
    options.tags,
    options.tiers,
    options.place,
    options.min_trust,
    click.option("-n", "--limit", type=int, metavar="N", help="Maximum number of results."),
    options.min_score,
)


@command(
    None,
    options.query,
    options.artifacts,
    options.tags,
    options.as_of,
    options.kinds,
    options.min_score,
    options.also,
    options.forms,
)
@click.option("--stage1-topk", "stage1_limit", type=int, metavar="N", help="Maximum candidates by words or vectors.")
@click.option("-n", "--limit", "--stage2-topk", "limit", type=int, metavar="N", help="Maximum number of results.")
@options.choice("--rerank", of=RERANK_MODES, is_flag=False, flag_value="batch", help=_RERANK)
def search(invocation: Invocation, /, query: tuple[str, ...], *, form: str | None, **values: Any) -> None:
    """Find the passages that answer QUERY, best first.

    Each hit is sure, likely or weak; a weak one may be only loosely related. Repeat an option to allow alternatives;
    different options must all match. They override --agent's strategy. --rerank sends query and passages to the model.

    Example: commonplace search "when does a session expire" --type code --limit 5
    """
    loaded, flags = _settings(invocation, form, values)
    filters: dict[str, Any] = {name: value or None for name, value in values.items()}
    with opened(invocation, loaded, is_long=True) as engine:
        result = engine.search(" ".join(query), **filters, **flags)
        engine.log_retrieval(result)
        if not values["as_of"]:
            engine.count_use(result.hits)
        receipts = [engine.why(result, hit.id) for hit in result.hits] if form == "why" else []
    _show(invocation, result, form, receipts, of_memories=False)


@command(None, options.query, _memory_options, options.also, options.forms)
@click.option("--fenced", "form", flag_value="fenced", help="Print the memories as labelled data for a model.")
def recall(invocation: Invocation, /, query: tuple[str, ...], *, form: str | None, **values: Any) -> None:
    """Find the memories that answer QUERY, best first.

    Each is sure, likely or weak; a weak one may be only loosely related. A newer memory ranks before one that it may
    have superseded. Dates in the query, such as "last May", favour memories of that time. The first three hits count as
    used if they are sure or likely.

    Example: commonplace recall "which database does billing use" --as-of 2026-01-01
    """
    loaded, _ = _settings(invocation, form, values)
    with opened(invocation, loaded, is_long=True) as engine:
        result = engine.recall(" ".join(query), **values)
        engine.log_retrieval(result, "recall")
        receipts = [engine.why(result, hit.id) for hit in result.hits] if form == "why" else []
        is_bare = not result.hits and not engine.list(statuses=(), limit=1)
    if is_bare:
        from commonplace.engine.open import hidden_memories

        with suppress(CommonplaceError):  # a damaged user store does not concern this search
            if hidden := hidden_memories(loaded):
                count = rows.counted(len(hidden), "memory", "memories")
                move = "`commonplace init --move-memories` moves them"
                notice = f"your user store holds {count} that a project does not find: {move}"
                result = replace(result, notices=(*result.notices, notice))
    _show(invocation, result, form, receipts, of_memories=True)


@command(None, options.kinds, options.artifacts, _memory_options, options.also)
@click.argument("query")
@click.argument("hits", nargs=-1, metavar="[HIT]")
@options.choice("--mark", of=VERDICTS, help="Mark HIT, a memory, as right or wrong for QUERY; none removes the mark.")
def why(invocation: Invocation, /, query: str, hits: tuple[str, ...], *, mark: Verdict | None, **values: Any) -> None:
    """Explain why QUERY finds HIT.

    HIT is a rank, an id or a path; the default is rank 1. Ranks are those that `search` prints with the same options,
    or `recall` with --kind memory.

    --mark makes QUERY a golden query: `commonplace health` fails if a right memory is missed or a wrong one is shown.

    Example: commonplace why "when does a session expire" 2
    """
    if len(hits) > 1:  # words of an unquoted query, which other commands accept
        raise UsageError("QUERY and HIT are one argument each", remedy=_QUOTE)
    loaded, flags = _settings(invocation, None, values)
    filters: dict[str, Any] = {name: None if value == () else value for name, value in values.items()}
    with invocation.open(loaded) as engine:
        result = engine.search(query, **filters, **flags)
        # A hit is named by its rank, a path or an id, which may be abbreviated; a path means its best hit.
        ranks: dict[str | None, int] = {str(rank): rank for rank in range(1, len(result.hits) + 1)}
        for rank, candidate in reversed(list(enumerate(result.hits, 1))):
            ranks |= dict.fromkeys((candidate.id, candidate.owner_id, candidate.path), rank)
        target = hits[0] if hits else None
        if target is None or not ranks:
            position = 1 if ranks else None
        else:
            position = ranks.get(target) or ranks.get(engine.resolve_id(target))
        if position is None:
            message = "nothing was found" if not result.hits else f"{target!r} is not among the {len(result.hits)} hits"
            remedy = "ask for more with --limit and --min-score 0"
            raise NotFoundError(message, remedy=f"{remedy}; {_QUOTE}" if hits else remedy)
        receipt = engine.why(result, result.hits[position - 1].id)
        if mark is not None:
            engine.mark(query, result.hits[position - 1].owner_id, mark)
    mark_notice = () if mark is None else (_MARKED[mark],)
    notify((*result.notices, *mark_notice), invocation)
    rows.emit(invocation, receipt, _receipt(receipt, position, result))


_MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
_NOTHING: Final = "nothing stored is relevant to this task"
_NO_ROOM: Final = "nothing relevant fits in the token budget; raise --max-tokens"
_NOTHING_YET: Final = "nothing is remembered yet; name a task to find what is indexed"


@command(None, options.kinds, options.tags, options.min_trust)
@click.argument("task", nargs=-1)
@options.number("--max-tokens", "Token budget. [default: context.max_tokens, 50000]")
@click.option("--agent", metavar="NAME", callback=options.non_empty, help="Use the search strategy of this agent.")
@click.option("-n", "--limit", type=int, metavar="N", help="Maximum number of passages. [default: 30, or the agent's]")
@click.option("--stdin-json", is_flag=True, help="Read a client's hook event, and print what to inject.")
def context(invocation: Invocation, /, task: tuple[str, ...], stdin_json: bool, **given: Any) -> int:
    """Print what is worth knowing before TASK.

    The text is fenced and labelled as data. Without TASK it has memories of the tier `long`, then the newest others.

    With --stdin-json it answers a client's hook; the event on standard input names prompt, directory and agent. For a
    prompt it prints at most 500 tokens of likely relevant memories that the session has not seen, or nothing; when a
    session starts, at most 2,000 tokens. Files are included with --kind artifact, or if the agent has a strategy. The
    exit code is never 2, which would stop the client.

    Example: commonplace context "write login tests" --max-tokens 4000
    """
    if stdin_json:
        return _answer_hook(invocation, task, given)
    with opened(invocation) as engine:
        result = engine.context(" ".join(task), **given)
        engine.log_retrieval(result, "context")
    empty_notice = _NOTHING if result.task.strip() else _NOTHING_YET
    rows.emit_text(invocation, result, result.text, _NO_ROOM if result.left_out else empty_notice)
    return SUCCESS


def _answer_hook(invocation: Invocation, task: tuple[str, ...], filters: dict[str, Any]) -> int:
    from commonplace.formats.hooks import answer, has_content, parse_event

    try:
        if task:
            raise UsageError("a task and --stdin-json are given", remedy="give one; the event holds the task")
        event = parse_event(_event(invocation))
        # Checked before anything is opened: most prompts are without content.
        if event.is_prompt and not has_content(event.prompt):
            return SUCCESS
        if event.directory:
            # Not chdir: a server answers for other processes and keeps its own directory.
            invocation.directory = directory = (invocation.directory or Path.cwd()) / event.directory
            try:
                os.stat(f"{directory}/.")  # noqa: PTH116 - a path leaves out the dot, which asks whether it can be entered
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is no path"
                raise UsageError(
                    f"the working directory of the event, {event.directory!r:.80}, cannot be entered: {reason}",
                    remedy="pass the event as the client wrote it, from a directory that is there",
                ) from error
        loaded = invocation.settings()
        if loaded.context.on_start == "off":
            return SUCCESS
        from commonplace.settings.agents import strategy_name

        agent = filters.pop("agent") or strategy_name(event.agent, loaded.agents)
        with invocation.open(loaded) as engine:
            if event.loses_context and event.conversation:
                engine.clear_injected(event.conversation)
            if event.is_compaction:
                return SUCCESS
            injection = engine.injection(event.prompt, agent=agent, conversation=event.conversation, **filters)
            engine.log_retrieval(injection, "context")
        notify(injection.notices, invocation)
    except (CommonplaceError, OSError) as error:
        if isinstance(error, StoreMissingError) and invocation.store is None:
            return SUCCESS
        report(error, invocation, FAILURE)
        return FAILURE

    if injection.text and event.takes_text and not invocation.as_json:
        say(injection.text)
    elif injection.text:
        print_json(answer(event, injection.text), indent=None)
    return SUCCESS


def _event(invocation: Invocation) -> bytes:
    if invocation.caller is not None:
        return invocation.caller.stdin.encode(errors="surrogateescape")
    if sys.stdin.isatty():
        say("Reading the event of a hook; Ctrl-D ends it.", err=True)
    data = options.read_bytes(options.PIPE, _MAX_EVENT_BYTES)[1]
    if data is None:
        raise UsageError(f"the event has more than {_MAX_EVENT_BYTES:,} bytes", remedy="pass the client's own event")
    return data
