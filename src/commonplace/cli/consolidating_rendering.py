"""Print what agents did or would do, for a person to judge. It decides how things look, never what was done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.cli.screen import counted
from commonplace.cli.sentences import INDENT, LISTED, joined, print_beginning, print_head, print_more, print_under
from commonplace.errors import NotFoundError
from commonplace.text.escaping import harmless, harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.consolidation.running import Outcome, RunReport
    from commonplace.consolidation.runs import ConsolidationRun
    from commonplace.consolidation.status import ConsolidationStatus
    from commonplace.consolidation.undoing import Undone
    from commonplace.engine import Engine

_NAMES = ("memory_id", "from_memory_id", "to_memory_id", "memory_ids", "source_ids", "new_memory_id")
_HEADINGS = {
    "decay": "fading",
    "cluster": "saying alike",
    "merge": "merging",
    "promote": "kept for good",
    "relations": "hanging together",
}


def texts_of(engine: Engine, report: RunReport) -> dict[str, str]:
    """Return the words of the memories that a report names, by id, as far as they are shown and still there."""
    texts: dict[str, str] = {}
    for results in report.results.values():
        for result in results[:LISTED]:
            for id_ in _ids(result):
                with suppress(NotFoundError):
                    texts[id_] = engine.get(id_, touch=False).content
    return texts


_FATES = {"applied": "done", "waiting": "waits for you", "left": "left as it is"}
_PREDICTED = {"applied": "would be done", "waiting": "would wait for you", "left": "would be left as it is"}


def _ids(result: Any) -> Iterable[str]:
    for name in _NAMES:
        value = getattr(result, name, ())
        yield from (value,) if isinstance(value, str) else value


def print_run(report: RunReport, texts: Mapping[str, str], target: Console) -> None:
    """Print what was done, or would be: each agent's results with what the memories say, scores, reasons and diffs."""
    would = " (nothing is changed)" if report.dry_run else ""
    for agent, results in report.results.items():
        target.print(f"{agent} · {_HEADINGS[agent]}: {_what(agent, len(results))}{would}", style="bold")
        for result, outcome in zip(results[:LISTED], report.outcomes[agent], strict=False):
            _PRINTERS[agent](result, _fate(result, outcome, report), texts, target)
            if outcome.why:
                print_under(f"why: {harmless_line(outcome.why)}", target, "dim")
        print_more(len(results), target)
    for failure in report.errors[:LISTED]:
        place = f" at {harmless_line(failure.item)}" if failure.item else ""
        print_under(f"{failure.agent} failed{place}: {harmless_line(failure.error)}", target, "red")
    print_more(len(report.errors), target)
    if report.skipped:
        more = counted(report.skipped, "more was", "more were")
        print_under(f"{more} looked at, and there was nothing to be done", target, "dim")
    for query in report.lost:
        print_under(f"lost: {harmless_line(query)}", target, "red")
    if report.lost:
        target.print("The run lost what was found before, and was undone.", style="bold red")
    elif report.dry_run:
        target.print(f"The run would make {counted(report.applied, 'change')}.", style="dim")
    elif report.applied:
        target.print("Undo all of it:", style="dim")
        target.print(f"{INDENT}commonplace consolidate undo {report.run}", style="dim")


def _what(agent: str, count: int) -> str:
    if agent in ("cluster",):
        return counted(count, "group")
    return counted(count, "pair") if agent == "relations" else counted(count, "memory", "memories")


def _fate(result: Any, outcome: Outcome, report: RunReport) -> str:
    """Say what became of it, or would, and in which issue that is told."""
    fate = (_PREDICTED if report.dry_run else _FATES)[outcome.decision]
    if report.lost and outcome.decision == "applied":
        fate = "undone"
    return f"{fate}, issue {result.beads_issue_id}" if result.beads_issue_id else fate


def _print_decay(result: Any, fate: str, texts: Mapping[str, str], target: Console) -> None:
    verb = {"gc": "archive", "reinforce": "reinforce", "consolidate": "merge with others", "promote": "keep for good"}
    told = (verb[result.action], f"retention {result.score:.2f}", f"urgency {result.urgency}", fate)
    print_head(result.memory_id, told, target)
    print_beginning(texts.get(result.memory_id, ""), target)


def _print_cluster(result: Any, fate: str, texts: Mapping[str, str], target: Console) -> None:
    told = (f"cohesion {result.cohesion:.2f}", f"confidence {result.confidence:.2f}", fate)
    print_head(f"{result.action} {len(result.memory_ids)}", told, target)
    for id_ in result.memory_ids:
        print_beginning(texts.get(id_, id_), target)


def _print_merge(result: Any, fate: str, _texts: Mapping[str, str], target: Console) -> None:
    names = result.entities_preserved
    told = (f"of {len(result.source_ids)}", f"keeps {counted(names, 'name')}" if names else "", fate)
    print_head(result.new_memory_id, told, target)
    for line in result.content_diff.splitlines():
        style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
        target.print(f"{INDENT}{harmless(line)}", style=style)


def _print_promotion(result: Any, fate: str, texts: Mapping[str, str], target: Console) -> None:
    told = (result.vault_path, joined([each.replace("_", " ") for each in result.criteria_met]), fate)
    print_head(result.memory_id, told, target)
    print_beginning(texts.get(result.memory_id, ""), target)


def _print_relation(result: Any, fate: str, texts: Mapping[str, str], target: Console) -> None:
    strength = f"strength {result.strength:.2f}" if result.strength else "by similar texts alone"
    told = (strength, f"confidence {result.confidence:.2f}", fate)
    print_head(f"{result.from_memory_id} ↔ {result.to_memory_id}", told, target)
    print_under(harmless_line(result.reasoning), target, "dim")
    for id_ in (result.from_memory_id, result.to_memory_id):
        print_beginning(texts.get(id_, ""), target)


_PRINTERS = {
    "decay": _print_decay,
    "cluster": _print_cluster,
    "merge": _print_merge,
    "promote": _print_promotion,
    "relations": _print_relation,
}


def print_status(found: ConsolidationStatus, target: Console) -> None:
    """Print what waits for each agent."""
    for agent, counts in found.agents.items():
        known = [f"{counts[name]:,} {name.replace('_', ' ')}" for name in counts if counts[name]]
        print_head(agent, known or ["nothing waits"], target)
    left = found.rate_limit_remaining
    limit = "no limit on operations" if left is None else f"{counted(left, 'operation')} left this minute"
    target.print(f"\n{found.total_pending:,} pending in all; {limit}")


def print_runs(found: Sequence[ConsolidationRun], target: Console) -> None:
    """Print each run on a line: when, which agents, what came of it, and whether it can be undone."""
    for each in found:
        is_undone = each.applied and each.undone and not each.standing
        known = (
            f"{each.at.astimezone():%Y-%m-%d %H:%M:%S}",
            ", ".join(each.agents),
            f"{counted(each.applied, 'change')} applied",
            "undone" if is_undone else f"{each.undone:,} undone" if each.undone else "",
            f"{each.proposed:,} proposed" if each.proposed else "",
            counted(each.errors, "failure") if each.errors else "",
            "only its changes are known" if each.proposed is None else "",
        )
        print_head(each.run, known, target)
    if any(each.standing for each in found):
        target.print("\nUndo what stands of one:", style="dim")
        target.print(f"{INDENT}commonplace consolidate undo RUN", style="dim")
    elif not found:
        target.print("no run has changed or proposed anything")


def print_undone(undone: Undone, target: Console) -> None:
    """Print what is as it was before."""
    target.print(
        f"Undid {counted(len(undone.issues), 'change')} of {counted(len(undone.memory_ids), 'memory', 'memories')}",
        style="bold",
    )
    for id_ in undone.issues[:LISTED]:
        print_under(id_, target, "dim")
    print_more(len(undone.issues), target)
    for notice in undone.notices:
        print_under(f"note: {harmless_line(notice)}", target, "yellow")


def line_of(report: RunReport) -> str:
    """Return one line that tells what a run came to, with the time."""
    found = sum(map(len, report.results.values()))
    changes = counted(report.applied, "change")
    parts = [
        f"would apply {changes}" if report.dry_run else f"{changes} applied",
        f"{counted(found, 'result')}",
        f"{counted(len(report.errors), 'failure')}" if report.errors else "",
        f"undone, since it lost {counted(len(report.lost), 'golden query', 'golden queries')}" if report.lost else "",
        f"run {report.run}",
    ]
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S} {', '.join(part for part in parts if part)}"
