"""Decide between a page's and the store's version of a memory, and write down the one that lost. It changes nothing.

The rule has three ways because each side is compared with what it said when both last agreed, not with the other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from commonplace.formats.journal_entry import Entry, PageKind, render_entry
from commonplace.formats.journal_marks import write_characters
from commonplace.text.digests import sha256

Verdict = Literal["same", "take file", "take store", "conflict"]


@dataclass(frozen=True, slots=True)
class ConflictCopy:
    """A file to put beside a page, for a person to read: it is never read as a page."""

    name: str
    text: str


def digest(entry: Entry) -> str:
    """Return the SHA-256 of what an entry means.

    The id does not count, nor do blanks that end a line, how many blank lines stand together, and the order of tags.
    """
    lines = [line.rstrip() for line in entry.text.strip().split("\n")]
    meaning = [
        entry.at_minutes,
        entry.day.isoformat() if entry.day else None,
        " ".join(entry.topic.split()),
        [line for line, before in zip(lines, ["", *lines], strict=False) if line or before],
        sorted(set(entry.tags)),
        sorted(set(entry.links)),
        entry.section,
    ]
    return sha256(json.dumps(meaning).encode("ascii")).hexdigest()


def merge(base: str, file: Entry | None, store: Entry | None, *, store_base: str | None = None) -> Verdict:
    """Return whose version of a memory holds.

    None stands for an entry that is not there: removed from the page, archived in the store, or never written to it. A
    block left without a word counts as removed. What only one side changed is taken from that side. Where both changed,
    the store is the truth, and a text that the file alone has is a conflict: keep it as a conflict copy.

    Args:
        base: the digest of what the file said when they last agreed, "" where they never did.
        store_base: what the store said then, if that was not the same: a note as a person wrote it has no time.
    """
    file = file if file and file.text.strip() else None
    seen = digest(file) if file else ""
    truth = digest(store) if store else ""
    is_edited = seen != base
    is_updated = truth != (base if store_base is None else store_base)
    if seen == truth or not (is_edited or is_updated):
        return "same"
    if not is_updated:
        return "take file"
    return "conflict" if file and is_edited else "take store"


def conflict_copy(
    page: str, lost: Entry, kept: Entry | None, when: datetime, *, kind: PageKind = "day"
) -> ConflictCopy:
    """Return the copy of an entry that lost: what happened, when, to which memory, and both versions.

    The same conflict gives the same name: `2026-11-21.conflict-1f0c3a9e.md`.

    Args:
        page: the file name of the page.
        kept: the store's version; None where the memory was archived.
        when: aware; written with its offset.
    """
    told_apart_by = sha256((lost.id + digest(lost)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    name = f"{page.removesuffix('.md')}.conflict-{told_apart_by}.md"
    written_id = write_characters(lost.id, "\n`")
    happened = (
        f"At {when.isoformat(sep=' ', timespec='minutes')} the memory `{written_id}` had been changed in {page} and in "
        f"the store. The store's version holds.\n\n"
        f"This file is not read. To have the page's version after all, put its entry back in {page}; then delete this "
        f"file."
    )
    truth = render_entry(kept, kind) if kept else "The memory was archived.\n"
    parts = (
        f"# Conflict in {page}",
        happened,
        "---",
        f"The page's version:\n\n{render_entry(lost, kind)}",
        "---",
        f"The store's version:\n\n{truth}",
    )
    return ConflictCopy(name, "\n\n".join(part.rstrip("\n") for part in parts) + "\n")
