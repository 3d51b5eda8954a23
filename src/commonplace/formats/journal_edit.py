"""Edit entries of a Markdown page by three-way merge and leave every other byte unchanged.

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
    canonical_section,
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

MergeResult = Literal["same", "take file", "take store", "conflict"]


def digest(entry: Entry) -> str:
    """Return the SHA-256 of the meaning of an entry.

    It ignores the id, trailing blanks, the number of consecutive blank lines, and the order of tags and links.
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


def merge(base: str, file: Entry | None, store: Entry | None, *, store_base: str | None = None) -> MergeResult:
    """Return which side's version of a memory prevails.

    None is an absent entry: removed from the page, archived in the store, or never written to it. A block without text
    counts as removed. If only one side changed, its version is taken. If both changed, the store's prevails, and an
    edited text in the file is a conflict: keep it as a conflict copy.

    Args:
        base: the baseline, the digest of the file's entry when both sides last agreed; "" if they never did.
        store_base: the store's digest then, if it differed: a note as a person wrote it has no time.
    """
    file = file if file and file.text.strip() else None
    file_digest = digest(file) if file else ""
    store_digest = digest(store) if store else ""
    is_edited = file_digest != base
    is_updated = store_digest != (base if store_base is None else store_base)
    if file_digest == store_digest or not (is_edited or is_updated):
        return "same"
    if not is_updated:
        return "take file"
    return "conflict" if file and is_edited else "take store"


def conflict_copy(
    page: str, page_entry: Entry, store_entry: Entry | None, when: datetime, *, kind: PageKind = "day"
) -> tuple[str, str]:
    """Return name and text of a file to put beside a page, for people; it is never parsed as a page.

    It states the event, the time and the memory, and holds both versions. The same conflict has the same name:
    `2026-11-21.conflict-1f0c3a9e.md`.

    Args:
        page: the file name of the page.
        store_entry: the store's version; None if the memory was archived.
        when: aware; written with its offset.
    """
    suffix = sha256((page_entry.id + digest(page_entry)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    memory = write_characters(page_entry.id, "\n`")
    store_text = render_entry(store_entry, kind) if store_entry else "The memory was archived.\n"
    text = (
        f"# Conflict in {page}\n\n"
        f"At {when.isoformat(sep=' ', timespec='minutes')} the memory `{memory}` "
        f"had been changed in {page} and in the store. The store's version stays.\n\n"
        f"This file is not read. To have the page's version after all, put its entry back in {page}; then delete this "
        f"file.\n\n---\n\nThe page's version:\n\n{render_entry(page_entry, kind)}\n"
        f"---\n\nThe store's version:\n\n{store_text}"
    )
    return f"{page.removesuffix('.md')}.conflict-{suffix}.md", text


Rank = tuple[float | int | str, ...]
_LAST: Final[Rank] = (inf,)
"""The rank of an entry without one: after all others of its day or minute."""
_NEVER: Final = -1
"""The time of a block without one and with none before it: earlier than any."""

_Lines = list[str]


@dataclass(frozen=True, slots=True)
class _PageEdit:
    """The edits of a page by line, counted from 0.

    Attributes:
        newline: the line end of the page.
        ranks: by memory, the order among entries of one day or minute.
        replaced: first line of a block → (end of the block, exclusive; lines that replace it).
        inserted: line → parts to put before it, each set off by blank lines.
    """

    newline: str
    kind: PageKind
    ranks: Mapping[str, Rank]
    replaced: dict[int, tuple[int, _Lines]] = field(default_factory=dict)
    inserted: dict[int, list[_Lines]] = field(default_factory=dict)

    def lines_of(self, rendered: str) -> _Lines:
        return [line.removesuffix("\n") + self.newline for line in split_lines(rendered)]

    def change(self, block: Block, entry: Entry | None) -> bool:
        """Record the change or removal of a block; return whether its entry moves to another section."""
        start, end = block.start_line - 1, block.end_line
        if entry is None or (self.kind == "long" and canonical_section(entry.section) != block.entry.section):
            self.replaced[start] = (end, [])
            return entry is not None
        comparable = replace(entry, topic="", day=None) if block.is_bullet else entry
        if digest(comparable) != digest(block.entry):
            old = split_lines(block.raw)
            last = max(number for number, line in enumerate(old) if number == 0 or not is_blank(line))
            new = self.lines_of(render_bullet(entry) if block.is_bullet else render_entry(entry, self.kind))
            if not _end(old[-1]):
                new[-1] = new[-1].removesuffix(self.newline)
            self.replaced[start] = (end, new + old[last + 1 :])
        return False

    def add(self, blocks: Sequence[Block], added: Iterable[Entry], end: int) -> None:
        """Record where entries go among blocks in line order; an entry without a time goes to the end."""

        def time_of(entry: Entry, default: int) -> int:
            time = entry.at_minutes if self.kind == "day" else entry.day.toordinal() if entry.day else None
            return default if time is None else time

        keys = ((time_of(block.entry, _NEVER), self.ranks.get(block.entry.id, ())) for block in blocks)
        latest = list(accumulate(keys, max))
        last = latest[-1][0] if latest else _NEVER
        timed = [((time_of(new_entry, last), self.ranks.get(new_entry.id, _LAST)), new_entry) for new_entry in added]
        for key, entry in sorted(timed, key=lambda pair: pair[0]):
            index = bisect_right(latest, key)
            line = blocks[index].start_line - 1 if index < len(blocks) else end
            self.inserted.setdefault(line, []).append(self.lines_of(render_entry(entry, self.kind)))

    def drop_sections(self, page: Page, lines: _Lines, filled: Collection[str]) -> None:
        """Record the removal of our sections that lose all blocks, unless they hold or receive anything else."""
        for section in page.sections:
            blocks = [block for block in page.blocks if section.start_line <= block.start_line <= section.end_line]
            ends = [self.replaced.get(block.start_line - 1, (0, [""])) for block in blocks]
            if section.name not in SECTIONS or section.name in filled or not blocks or any(new for _, new in ends):
                continue
            remaining = set(range(section.start_line + 1, section.end_line + 1))
            for block, (end, _) in zip(blocks, ends, strict=True):
                remaining.difference_update(range(block.start_line, end + 1))
            if all(is_blank(lines[number - 1]) for number in remaining):
                self.replaced[section.start_line - 1] = (section.end_line, [])

    def add_by_section(self, page: Page, added: Iterable[Entry], end: int) -> None:
        """Add each entry to the first section of its name; create missing sections, ours in their order."""
        by_name: dict[str, list[Entry]] = {}
        for entry in added:
            by_name.setdefault(canonical_section(entry.section), []).append(entry)
        sections = {section.name: section for section in reversed(page.sections)}
        # Insertions at the end of a section come before a new section at the same line.
        for name in filter(sections.__contains__, by_name):
            first, last = sections[name].start_line, sections[name].end_line
            self.add([block for block in page.blocks if first <= block.start_line <= last], by_name[name], last)
        missing = [name for name in by_name if name not in sections]
        for name in sorted(missing, key=lambda name: SECTIONS.index(name) if name in SECTIONS else len(SECTIONS)):
            # Ours goes after the nearest of our sections that precede it in order, else before the next one.
            line, rank = end, SECTIONS.index(name) if name in SECTIONS else None
            if rank is not None:
                before = [section.end_line for section in page.sections if section.name in SECTIONS[:rank]]
                after = [section.start_line - 1 for section in page.sections if section.name in SECTIONS[rank:]]
                line = before[-1] if before else after[0] if after else end
            self.inserted.setdefault(line, []).append(self.lines_of(f"## {write_topic(name)}\n"))
            self.add((), by_name[name], line)

    def applied(self, lines: _Lines) -> _Lines:
        """Return the lines of the page with all recorded edits applied."""
        result: _Lines = []
        number = 0
        while number <= len(lines):
            for part in self.inserted.get(number, ()):
                if result and not _end(result[-1]):
                    result[-1] += self.newline
                if result and not is_blank(result[-1]):
                    result.append(self.newline)
                result += part
            if number in self.inserted and number < len(lines) and not is_blank(lines[number]):
                result.append(self.newline)
            if number in self.replaced:
                number, replacement = self.replaced[number]
                result += replacement
                continue
            result += lines[number : number + 1]
            number += 1
        return result


def update_page(
    text: str,
    changes: Mapping[str, Entry | None],
    *,
    title: str,
    kind: PageKind = "day",
    ranks: Mapping[str, Rank] | None = None,
) -> str:
    """Return the page with the blocks of some memories replaced, removed (None) or added.

    A block with the same meaning stays unchanged. An entry without a block is added before the first later one, in the
    long-term page within its section, which is created if it is missing; an entry whose section has changed moves.
    Equal times and ranks keep the order of `changes`. An empty page gets `# title` first. A section of ours is removed
    with its last block, unless it contains something else.

    Args:
        changes: by memory id.
        ranks: by memory id, the order among entries of one day or minute; entries without a rank come last.
    """
    pending = dict(changes)
    added: list[Entry] = []
    page = parse_page(text, kind)
    mark = BOM if text.startswith(BOM) else ""
    lines = split_lines(text[len(mark) :])
    edits = _PageEdit((_end(lines[0]) if lines else "") or "\n", kind, ranks or {})
    for block, following in zip(page.blocks, chain(page.blocks[1:], (None,)), strict=False):
        if block.entry.id not in pending:
            continue
        entry = pending.pop(block.entry.id)
        if edits.change(block, entry) and entry is not None:
            added.append(entry)
        end, replacement = edits.replaced.get(block.start_line - 1, (0, [""]))
        stays = following is not None and pending.get(following.entry.id, following) is not None
        is_next = following is not None and following.start_line == block.end_line + 1
        if following and is_next and stays and following.is_bare and not replacement:
            # Otherwise it would join the text before the removed block; a section's heading separates them too.
            heading = write_topic(topic_of(following.entry.text))
            edits.replaced[block.start_line - 1] = (end, edits.lines_of(f"{'#' * LEVELS[kind]} {heading}\n\n"))
    added += [entry for entry in pending.values() if entry is not None]
    if not added and not edits.replaced:
        return text
    if all(is_blank(line) for line in lines):
        lines = edits.lines_of(f"# {title}\n")
    if kind == "day":
        edits.add(page.blocks, added, len(lines))
    else:
        edits.drop_sections(page, lines, {canonical_section(entry.section) for entry in added})
        edits.add_by_section(page, added, len(lines))
    return mark + "".join(edits.applied(lines))


def assign_ids(text: str, ids: Mapping[int, str], kind: PageKind = "day") -> str:
    """Return the page with id comments added to blocks, by their index in `parse_page`, and nothing else changed.

    The new comment replaces an existing one, which a copy of another block has.
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
        # Kept in one list element, so that the numbers of the lines below stay valid.
        lines[last] = f"{lines[last].removesuffix(end)}{end or newline}{comment}{end}"
    return mark + "".join(lines)


def _end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
