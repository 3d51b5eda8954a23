"""Memories are merged, and come back: what an agent would do, the diff, the ledger entry, and the undo.

Run it anywhere: python a_merge_and_back.py. It needs no key and leaves nothing behind.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import commonplace

SAID = (
    "Mira prefers short commit messages in the imperative.",
    "Commit messages: Mira prefers them short, in the imperative.",
    "Mira prefers commit messages that are short and in the imperative.",
)


def say(title: str, *lines: object) -> None:
    """Print a heading and indented lines."""
    print(f"\n{title}")
    for line in lines:
        print(f"    {line}")


def lasting(memory: commonplace.Memory) -> dict[str, object]:
    """Return a memory without the values that change every second."""
    passing = ("outcome", "retention", "retention_raw")
    return {name: value for name, value in memory.to_dict().items() if name not in passing}


with TemporaryDirectory() as directory, commonplace.open(Path(directory) / "store") as book:
    # The same words again would only touch the old memory; these differ each time.
    kept = [book.remember(text, tags=["style", f"day-{day}"]) for day, text in enumerate(SAID, 1)]
    book.remember("The integration tests need a running Redis on port 6380.")
    say("Four memories, three of them duplicates:", *(memory.content for memory in book.list()))

    rehearsed = book.consolidate(["cluster", "merge"], dry_run=True)
    [group] = rehearsed.results["cluster"]
    [merge] = rehearsed.results["merge"]
    say(
        f"What the agents would do: merge {len(group.memory_ids)}, which are alike by {group.cohesion:.2f}:",
        *merge.content_diff.splitlines()[2:],
    )

    report = book.consolidate(["cluster", "merge"])
    [merge] = report.results["merge"]
    merged = book.get(merge.new_memory_id)
    say("Done. Now there are two:", *(memory.content.replace("\n", " ") for memory in book.list()))
    say("The merged one has the tags of all:", ", ".join(merged.tags))
    history = book.ledger.history(merge.beads_issue_id)
    say("In the ledger:", *(f"{event.act:<9} {event.why}".rstrip() for event in history))

    undone = book.undo_consolidation(report.run)
    say("Undone:", *(memory.content for memory in book.list()))
    changed = [memory.id for memory in kept if lasting(book.get(memory.id)) != lasting(memory)]
    say(f"Changes undone: {len(undone.issues)}. Memories that differ from before: {len(changed)}")
