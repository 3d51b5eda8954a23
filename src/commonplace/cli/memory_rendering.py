"""Print memories, links and receipts for a person. It decides how things look, never what they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.cli.rendering import older, print_grounds, print_held_back, print_snippet, print_stages, rating
from commonplace.cli.screen import counted
from commonplace.cli.sentences import (
    INDENT,
    broken,
    print_beginning,
    print_head,
    print_under,
    wrapped,
)
from commonplace.text.escaping import harmless, harmless_line

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console

    from commonplace.memories.memory import Memory
    from commonplace.search.result import SearchResult
    from commonplace.search.trace import Receipt
    from commonplace.types import Link

_DONE = {
    "added": "Remembered",
    "touched": "Remembered before; touched",
    "reviewed": "Reviewed",
    "updated": "Updated",
    "unchanged": "Unchanged",
    "archived": "Archived",
    "restored": "Restored",
    "read": "Memory",
}
_FACT_COLUMNS = 14
_TRY = "Try other words, fewer filters, or --min-score 0 to see everything that was ranked."


def print_outcome(memory: Memory, target: Console) -> None:
    """Print in one line what was done with a memory, and its id."""
    done = "Touched" if memory.outcome == "touched" and not memory.notices else _DONE[memory.outcome]
    target.print(f"{done}: {harmless_line(memory.id)} ({memory.tier})", style="bold")


def print_memory(memory: Memory, target: Console) -> None:
    """Print a whole memory with all that is known of it."""
    from rich.text import Text

    for line in wrapped(Text(harmless(memory.content)), target.width):
        target.print(line)
    target.print()
    for name, value in _facts(memory):
        for number, part in enumerate(broken(value, target.width - _FACT_COLUMNS)):
            target.print(Text.assemble((f"{'' if number else name:>{_FACT_COLUMNS - 2}}  ", "dim"), part))


def print_list(memories: Sequence[Memory], target: Console, *, is_filtered: bool = False) -> None:
    """Print memories one below the other: its id, what is known of it, and the first lines of its text.

    Args:
        is_filtered: only some were asked for.
    """
    if not memories:
        target.print("No such memories." if is_filtered else "No memories. Keep one with `commonplace remember`.")
    for memory in memories:
        print_head(harmless_line(memory.id), _known(memory), target)
        print_beginning(memory.content, target)


def print_recalled(
    result: SearchResult, target: Console, *, receipts: Sequence[Receipt] = (), has_stages: bool = False
) -> None:
    """Print the memories that were found, best first, each with its score and the part of its text that matches.

    Args:
        receipts: one for each hit, to be printed beneath it.
        has_stages: print also how many candidates each stage had, and how long it took.
    """
    from commonplace.search.times import moment

    if has_stages:
        print_stages(result, target)
    for rank, hit in enumerate(result.hits, 1):
        when = "" if hit.at is None else told(moment(hit.at))
        tags = " ".join(f"#{tag}" for tag in hit.tags)
        known = (rating(hit), older(hit), hit.tier, when, hit.source, tags)
        print_head(harmless_line(hit.owner_id), known, target, before=f"{rank}. ")
        print_snippet(hit, result.query, target)
        if receipts:
            print_grounds(rank, receipts[rank - 1], result, target)
    if not result.hits:
        target.print("No memory is about this.", style="bold")
        if result.trace.candidates:
            print_under(_TRY, target, "dim")
        print_held_back(result, target)
        return
    print_held_back(result, target)
    target.print(f"{counted(len(result.hits), 'memory', 'memories')} in {result.latency_ms} ms", style="dim")


def print_versions(versions: Sequence[Memory], target: Console) -> None:
    """Print every version of a memory, oldest first."""
    from rich.text import Text

    for memory in versions:
        until = "now" if memory.expired_at is None else told(memory.expired_at)
        target.print(f"Version {memory.version}, {told(memory.updated_at)} until {until}", style="bold")
        for line in wrapped(Text(harmless(memory.content)), target.width):
            target.print(Text(INDENT) + line)


def print_links(links: Sequence[Link], target: Console) -> None:
    """Print links, one a line."""
    for link in links:
        source, target_id = harmless_line(link.source), harmless_line(link.target)
        target.print(f"{source} → {target_id}  {harmless_line(link.type)} ({link.strength:.2f})")
    if not links:
        target.print("No links.")


def told(moment: datetime) -> str:
    """Return a time as people of this machine write it: local, to the minute."""
    try:
        return moment.astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):  # the first and the last day there is, east or west of Greenwich
        return moment.strftime("%Y-%m-%d %H:%M")


def _known(memory: Memory) -> tuple[str, ...]:
    tags = " ".join(f"#{tag}" for tag in memory.tags)
    status = "" if memory.status == "active" else memory.status
    return (memory.tier, status, told(memory.at), f"retention {memory.retention:.2f}", memory.source, tags)


def _facts(memory: Memory) -> list[tuple[str, str]]:
    used = f"{counted(memory.use_count, 'use')}, last {told(memory.last_used)}"
    facts = [
        ("id", memory.id),
        ("tier", f"{memory.tier} ({memory.status})"),
        ("at", told(memory.at)),
        ("stored", f"{told(memory.created_at)}, version {memory.version} since {told(memory.updated_at)}"),
        ("expired", "" if memory.expired_at is None else told(memory.expired_at)),
        ("retention", f"{memory.retention:.3f}; {used}; strength {memory.strength:.1f}"),
        ("category", memory.category),
        ("tags", ", ".join(memory.tags)),
        ("entities", ", ".join(memory.entities)),
        ("source", memory.source),
        ("origin", f"{memory.origin}, trust {memory.trust:.2f}"),
        ("session", f"{memory.session}, turn {memory.position + 1}" if memory.session else ""),
        ("made from", ", ".join(memory.derived_from)),
        ("reviews", str(memory.review_count or "")),
        ("note", memory.vault_path),
        ("forced", "yes" if memory.is_forced else ""),
        ("metadata", json.dumps(dict(memory.metadata), ensure_ascii=False) if memory.metadata else ""),
    ]
    return [(name, value) for name, value in facts if value]
