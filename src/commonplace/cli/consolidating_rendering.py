"""Print what agents did or would do, for a person to judge. It decides how things look, never what was done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.cli.escaping import harmless, harmless_line
from commonplace.cli.rendering import INDENT
from commonplace.cli.screen import counted
from commonplace.cli.sentences import LISTED, joined, print_beginning, print_head, print_more, print_under
from commonplace.errors import NotFoundError

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.consolidation.running import RunReport
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


@dataclass(frozen=True, slots=True)
class Known:
    """What the store tells of what a report names first.

    Attributes:
        texts: the words of memories, by id.
        fates: what became of an item, by its issue; "" is of those that have none.
        reasons: why an issue waits, by its id.
    """

    texts: Mapping[str, str]
    fates: Mapping[str, str]
    reasons: Mapping[str, str]


def known_of(engine: Engine, report: RunReport) -> Known:
    """Return what the store tells of what a report names, as far as it is shown and still there."""
    texts: dict[str, str] = {}
    fates = {"": "" if report.dry_run else "left as it is"}
    reasons: dict[str, str] = {}
    for results in report.results.values():
        for result in results[:LISTED]:
            if result.beads_issue_id:
                issue = engine.ledger.show(result.beads_issue_id)
                fates[issue["id"]] = _fate_of(issue["status"], report)
                if issue["status"] == "open":
                    reasons[issue["id"]] = str(issue["notes"].get("why", ""))
            for id_ in _ids(result):
                with suppress(NotFoundError):
                    texts[id_] = engine.get(id_).content
    return Known(texts, fates, reasons)


def _fate_of(status: str, report: RunReport) -> str:
    if status == "open":
        return "waits" if report.dry_run else "waits for you"
    if status == "closed":
        return "undone" if report.lost else "done"
    return status


def _ids(result: Any) -> Iterable[str]:
    for name in _NAMES:
        value = getattr(result, name, ())
        yield from (value,) if isinstance(value, str) else value


def print_run(report: RunReport, known: Known, target: Console) -> None:
    """Print what was done, or would be: each agent's results with what the memories say, scores, reasons and diffs."""
    would = " (nothing is changed)" if report.dry_run else ""
    for agent, results in report.results.items():
        target.print(f"{agent} · {_HEADINGS[agent]}: {_what(agent, len(results))}{would}", style="bold")
        for result in results[:LISTED]:
            _PRINTERS[agent](result, known, target)
            if reason := known.reasons.get(result.beads_issue_id or ""):
                print_under(f"why: {harmless_line(reason)}", target, "dim")
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
    elif not report.dry_run and report.applied:
        target.print("Undo all of it:", style="dim")
        target.print(f"{INDENT}commonplace consolidate undo {report.run}", style="dim")


def _what(agent: str, count: int) -> str:
    if agent in ("cluster",):
        return counted(count, "group")
    return counted(count, "pair") if agent == "relations" else counted(count, "memory", "memories")


def _fate(result: Any, known: Known) -> str:
    """Say what became of it, by its issue."""
    issue = result.beads_issue_id or ""
    return ", ".join(part for part in (known.fates.get(issue, ""), f"issue {issue}" if issue else "") if part)


def _print_decay(result: Any, known: Known, target: Console) -> None:
    verb = {"gc": "archive", "reinforce": "reinforce", "consolidate": "merge with others", "promote": "keep for good"}
    told = (verb[result.action], f"retention {result.score:.2f}", f"urgency {result.urgency}", _fate(result, known))
    print_head(result.memory_id, told, target)
    print_beginning(known.texts.get(result.memory_id, ""), target)


def _print_cluster(result: Any, known: Known, target: Console) -> None:
    told = (f"cohesion {result.cohesion:.2f}", f"confidence {result.confidence:.2f}", _fate(result, known))
    print_head(f"{result.action} {len(result.memory_ids)}", told, target)
    for id_ in result.memory_ids:
        print_beginning(known.texts.get(id_, id_), target)


def _print_merge(result: Any, known: Known, target: Console) -> None:
    names = result.entities_preserved
    is_asked = not result.success and not result.beads_issue_id  # in a rehearsal: it would be somebody else's to do
    fate = "would wait for you" if is_asked else _fate(result, known)
    told = (f"of {len(result.source_ids)}", f"keeps {counted(names, 'name')}" if names else "", fate)
    print_head(result.new_memory_id, told, target)
    for line in result.content_diff.splitlines():
        style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
        target.print(f"{INDENT}{harmless(line)}", style=style)


def _print_promotion(result: Any, known: Known, target: Console) -> None:
    told = (result.vault_path, joined([each.replace("_", " ") for each in result.criteria_met]), _fate(result, known))
    print_head(result.memory_id, told, target)
    print_beginning(known.texts.get(result.memory_id, ""), target)


def _print_relation(result: Any, known: Known, target: Console) -> None:
    told = (f"strength {result.strength:.2f}", f"confidence {result.confidence:.2f}", _fate(result, known))
    print_head(f"{result.from_memory_id} ↔ {result.to_memory_id}", told, target)
    print_under(harmless_line(result.reasoning), target, "dim")
    for id_ in (result.from_memory_id, result.to_memory_id):
        print_beginning(known.texts.get(id_, ""), target)


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
    parts = [
        "would change nothing" if report.dry_run else f"{counted(report.applied, 'change')} applied",
        f"{counted(found, 'result')}",
        f"{counted(len(report.errors), 'failure')}" if report.errors else "",
        f"undone, since it lost {counted(len(report.lost), 'golden query', 'golden queries')}" if report.lost else "",
        f"run {report.run}",
    ]
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S} {', '.join(part for part in parts if part)}"
