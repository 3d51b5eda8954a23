"""Edit entries of a Markdown page by three-way merge and leave every other byte as it is.

Each side is compared with the baseline, not with the other side.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, chain
from math import inf
from typing import Final, Literal

from commonplace.dataclasses import dataclass, field, replace
from commonplace.formats.journal import (
    BOM,
    LEVELS,
    SECTIONS,
    Block,
    Entry,
    Page,
    PageKind,
    canonical,
    id_comment,
    id_in,
    is_blank,
    parse_page,
    render_bullet,
    render_entry,
    split_lines,
    topic_of,
    write_characters,
    write_topic,
)
from commonplace.text.hashes import sha256

Verdict = Literal["same", "take file", "take store", "conflict"]


def digest(entry: Entry) -> str:
    """Return the SHA-256 of what an entry means.

    The id does not count, nor do blanks that end a line, how many blank lines follow each other, and the order of tags.
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

    None is an entry that is absent: removed from the page, archived in the store, or never written to it. A
    block left without a word counts as removed. What only one side changed is taken from that side. Where both changed,
    the store is the truth, and a text that the file alone has is a conflict: keep it as a conflict copy.

    Args:
        base: the digest of what the file said when they last agreed, "" if they never did.
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
) -> tuple[str, str]:
    """Return name and text of a file to put beside a page, for a person to read; it is never read as a page.

    It says what happened, when, to which memory, and has both versions. The same conflict gives the same name:
    `2026-11-21.conflict-1f0c3a9e.md`.

    Args:
        page: the file name of the page.
        kept: the store's version; None if the memory was archived.
        when: aware; written with its offset.
    """
    told_apart_by = sha256((lost.id + digest(lost)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    memory = write_characters(lost.id, "\n`")
    truth = render_entry(kept, kind) if kept else "The memory was archived.\n"
    text = (
        f"# Conflict in {page}\n\n"
        f"At {when.isoformat(sep=' ', timespec='minutes')} the memory `{memory}` "
        f"had been changed in {page} and in the store. The store's version stays.\n\n"
        f"This file is not read. To have the page's version after all, put its entry back in {page}; then delete this "
        f"file.\n\n---\n\nThe page's version:\n\n{render_entry(lost, kind)}\n"
        f"---\n\nThe store's version:\n\n{truth}"
    )
    return f"{page.removesuffix('.md')}.conflict-{told_apart_by}.md", text


Rank = tuple[float | int | str, ...]
_LAST: Final[Rank] = (inf,)
"""The rank of what has none: behind all of its day or minute."""
_NEVER: Final = -1
"""The time of what has none and nothing before it: earlier than any."""

_Lines = list[str]


@dataclass(frozen=True, slots=True)
class _PageEdit:
    """What to do to the lines of a page, counted from 0.

    Attributes:
        newline: how the page ends its lines.
        ranks: by memory, the order among what is of one day or minute.
        replaced: first line of a block → (the line behind its last, what replaces it).
        inserted: line → what to put before it, each part set off by blank lines.
    """

    newline: str
    kind: PageKind
    ranks: Mapping[str, Rank]
    replaced: dict[int, tuple[int, _Lines]] = field(default_factory=dict)
    inserted: dict[int, list[_Lines]] = field(default_factory=dict)

    def lines_of(self, rendered: str) -> _Lines:
        return [line.removesuffix("\n") + self.newline for line in split_lines(rendered)]

    def change(self, block: Block, entry: Entry | None) -> bool:
        """Note what becomes of a block; return whether the entry has to go to another place."""
        start, end = block.start_line - 1, block.end_line
        if entry is None or (self.kind == "long" and canonical(entry.section) != block.entry.section):
            self.replaced[start] = (end, [])
            return entry is not None
        shown = replace(entry, topic="", day=None) if block.is_bullet else entry
        if digest(shown) != digest(block.entry):
            old = split_lines(block.raw)
            last = max(number for number, line in enumerate(old) if number == 0 or not is_blank(line))
            new = self.lines_of(render_bullet(entry) if block.is_bullet else render_entry(entry, self.kind))
            if not _end(old[-1]):
                new[-1] = new[-1].removesuffix(self.newline)
            self.replaced[start] = (end, new + old[last + 1 :])
        return False

    def add(self, blocks: Sequence[Block], added: Iterable[Entry], end: int) -> None:
        """Note where entries go among blocks that begin in ascending lines; what has no time goes to the end."""

        def time_of(entry: Entry, otherwise: int) -> int:
            time = entry.at_minutes if self.kind == "day" else entry.day.toordinal() if entry.day else None
            return otherwise if time is None else time

        there = ((time_of(block.entry, _NEVER), self.ranks.get(block.entry.id, ())) for block in blocks)
        latest = list(accumulate(there, max))
        last = latest[-1][0] if latest else _NEVER
        timed = [((time_of(each, last), self.ranks.get(each.id, _LAST)), each) for each in added]
        for key, entry in sorted(timed, key=lambda pair: pair[0]):
            index = bisect_right(latest, key)
            at = blocks[index].start_line - 1 if index < len(blocks) else end
            self.inserted.setdefault(at, []).append(self.lines_of(render_entry(entry, self.kind)))

    def drop_sections(self, page: Page, lines: _Lines, kept: Collection[str]) -> None:
        """Note that sections of ours go whose blocks all go, unless something else is in them, or comes into them."""
        for section in page.sections:
            blocks = [block for block in page.blocks if section.start_line <= block.start_line <= section.end_line]
            ends = [self.replaced.get(block.start_line - 1, (0, [""])) for block in blocks]
            if section.name not in SECTIONS or section.name in kept or not blocks or any(new for _, new in ends):
                continue
            rest = set(range(section.start_line + 1, section.end_line + 1))
            for block, (end, _) in zip(blocks, ends, strict=True):
                rest.difference_update(range(block.start_line, end + 1))
            if all(is_blank(lines[number - 1]) for number in rest):
                self.replaced[section.start_line - 1] = (section.end_line, [])

    def add_by_section(self, page: Page, added: Iterable[Entry], end: int) -> None:
        """Add each entry to the first section of its name; make the sections that are missing, ours in their order."""
        by_name: dict[str, list[Entry]] = {}
        for entry in added:
            by_name.setdefault(canonical(entry.section), []).append(entry)
        there = {section.name: section for section in reversed(page.sections)}
        # What ends a section comes before a new section at the same line.
        for name in filter(there.__contains__, by_name):
            first, last = there[name].start_line, there[name].end_line
            self.add([block for block in page.blocks if first <= block.start_line <= last], by_name[name], last)
        missing = [name for name in by_name if name not in there]
        for name in sorted(missing, key=lambda name: SECTIONS.index(name) if name in SECTIONS else len(SECTIONS)):
            # Ours comes behind the nearest of ours that comes before it, else before one of ours.
            at, rank = end, SECTIONS.index(name) if name in SECTIONS else None
            if rank is not None:
                before = [section.end_line for section in page.sections if section.name in SECTIONS[:rank]]
                after = [section.start_line - 1 for section in page.sections if section.name in SECTIONS[rank:]]
                at = before[-1] if before else after[0] if after else end
            self.inserted.setdefault(at, []).append(self.lines_of(f"## {write_topic(name)}\n"))
            self.add((), by_name[name], at)

    def applied(self, lines: _Lines) -> _Lines:
        """Return the lines of the page with all that was noted."""
        out: _Lines = []
        number = 0
        while number <= len(lines):
            for part in self.inserted.get(number, ()):
                if out and not _end(out[-1]):
                    out[-1] += self.newline
                if out and not is_blank(out[-1]):
                    out.append(self.newline)
                out += part
            if number in self.inserted and number < len(lines) and not is_blank(lines[number]):
                out.append(self.newline)
            if number in self.replaced:
                number, new = self.replaced[number]
                out += new
                continue
            out += lines[number : number + 1]
            number += 1
        return out


def with_changes(
    text: str,
    changes: Mapping[str, Entry | None],
    *,
    title: str,
    kind: PageKind = "day",
    ranks: Mapping[str, Rank] | None = None,
) -> str:
    """Return the page with the blocks of some memories replaced, removed (None) or added.

    A block that says the same already stays as it is. An entry without a block is added, in a day's page before the
    first that is later, in the long-term page likewise within its section, which is made if need be; an entry whose
    section has changed moves. Equal times keep the order given. An empty page gets `# title` first. A section of ours
    is removed with its last block, unless it contains something else.

    Args:
        changes: by the ids of memories.
        ranks: by memory, the order among what is of one day or minute; what has none comes last.
    """
    wanted = dict(changes)
    added: list[Entry] = []
    page = parse_page(text, kind)
    mark = BOM if text.startswith(BOM) else ""
    lines = split_lines(text[len(mark) :])
    edits = _PageEdit((_end(lines[0]) if lines else "") or "\n", kind, ranks or {})
    for block, following in zip(page.blocks, chain(page.blocks[1:], (None,)), strict=False):
        if block.entry.id not in wanted:
            continue
        entry = wanted.pop(block.entry.id)
        if edits.change(block, entry) and entry is not None:
            added.append(entry)
        end, new = edits.replaced.get(block.start_line - 1, (0, [""]))
        stays = following is not None and wanted.get(following.entry.id, following) is not None
        is_next = following is not None and following.start_line == block.end_line + 1
        if following and is_next and stays and following.is_bare and not new:
            # Else it would become a part of what precedes the block that goes; a section's heading parts them too.
            heading = write_topic(topic_of(following.entry.text))
            edits.replaced[block.start_line - 1] = (end, edits.lines_of(f"{'#' * LEVELS[kind]} {heading}\n\n"))
    added += [entry for entry in wanted.values() if entry is not None]
    if not added and not edits.replaced:
        return text
    if all(is_blank(line) for line in lines):
        lines = edits.lines_of(f"# {title}\n")
    if kind == "day":
        edits.add(page.blocks, added, len(lines))
    else:
        edits.drop_sections(page, lines, {canonical(entry.section) for entry in added})
        edits.add_by_section(page, added, len(lines))
    return mark + "".join(edits.applied(lines))


def assign_ids(text: str, ids: Mapping[int, str], kind: PageKind = "day") -> str:
    """Return the page with id comments for some blocks, by their index in `parse_page`, and nothing else changed.

    A block that had an id comment, as a copy of another has, gets the new one in its place.
    """
    mark = BOM if text.startswith(BOM) else ""
    lines = split_lines(text[len(mark) :])
    newline = (_end(lines[0]) if lines else "") or "\n"
    blocks = parse_page(text, kind).blocks
    for index, memory_id in ids.items():
        block = blocks[index]
        span = range(block.start_line - 1, block.end_line)
        comment = ("  " if block.is_bullet else "") + id_comment(memory_id)
        old = next((number for number in span if id_in(lines[number].rstrip("\r\n"))), None)
        if old is not None:
            lines[old] = comment + _end(lines[old])
            continue
        last = max(number for number in span if number == span.start or not is_blank(lines[number]))
        end = _end(lines[last])
        # Kept in one item of the list, so that the numbers of the lines below still hold.
        lines[last] = f"{lines[last].removesuffix(end)}{end or newline}{comment}{end}"
    return mark + "".join(lines)


def _end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
