"""The calls of an engine that read what search results name: lines of a page, of an artifact, of a memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from commonplace.engine.workings import Workings
from commonplace.errors import NotFoundError, UsageError
from commonplace.ingest.reading import normalise
from commonplace.memories.intake import whole
from commonplace.mirror.reading import PageReader
from commonplace.redaction import redact
from commonplace.types import Filter

if TYPE_CHECKING:
    from commonplace.mirror.reading import PagePlace

_REFERENCE = re.compile(r"@?(?P<path>.+?)(?::(?P<first>[1-9][0-9]{0,8})-[0-9]+)?", re.DOTALL)

MEMORY_PREFIX = "memory:"
"""`memory:ID` names a memory, or another owner without a file, that stands on no page."""

ARTIFACT_PREFIX = "./"
"""`./MEMORY.md` names an artifact whose path is a page's name, too."""

LINES = 200
MOST_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a text, secrets replaced by placeholders.

    Attributes:
        first_line, last_line: from 1, both included; an empty text has one line.
        total_lines: of the whole text.
    """

    path: str
    text: str
    first_line: int
    last_line: int
    total_lines: int


class Reading(Workings):
    """The part of `Engine` that reads."""

    def pages(self) -> list[str]:
        """Return the names of the Markdown pages: the long-term page, then the days, the newest first."""
        self._pick_up()
        return self._page_reader.names()

    def snippet(self, text: str, query: str, limit: int = 300) -> str:
        """Return the part of a text that answers a query best, on one line, with invisible characters written out."""
        from commonplace.text.escaping import visible
        from commonplace.text.snippets import snippet

        return snippet(visible(text), query, limit=limit).text

    def places(self, ids: Iterable[str]) -> dict[str, PagePlace]:
        """Return where memories stand on Markdown pages; those that stand on none are absent."""
        return self._page_reader.places(ids)

    def memory_at(self, path: str, line: int) -> str | None:
        """Return the id of the memory that stands on a line of a Markdown page, from 1; None where none does."""
        whole("line", line, 1, 10**9)
        return self._page_reader.memory_at(path, line) if isinstance(path, str) else None

    def read(self, path: str, first: int = 1, lines: int = LINES, *, touch: bool = False) -> Excerpt:
        """Return some lines of a Markdown page, of an indexed artifact, or of a memory.

        Nothing else can be read, and no file but a page is opened: an artifact's lines are those that were indexed.

        Args:
            path: `MEMORY.md`, `memory/2026-11-21.md`, an artifact's path as a search names it, or `memory:ID`. Where a
                page and an artifact have one name, that of the artifact has `./` before it. Also a memory's id alone,
                and a reference, `@PATH` or `PATH:3-8`, which is read from its first line on.
            first: from 1.
            lines: at most so many, 1–2,000.
            touch: count the memory as used, of a page that on the first line, at most once an hour.

        Raises:
            NotFoundError: there is no such page, artifact or memory, or it has fewer lines.
            UsageError: a number is out of its range.
        """
        whole("first", first, 1, 10**9)
        whole("lines", lines, 1, MOST_LINES)
        if not isinstance(path, str):
            raise UsageError(f"path is {path!r:.80}", remedy="name a path that a search returned")
        self._pick_up()
        text = self._text(path)
        if text is None:
            path, first, text = self._referred(path, first)
        if text is None:
            raise NotFoundError(
                f"there is no page, artifact or memory {path!r:.200}", remedy="name a path that a search returned"
            )
        # As a whole: the middle of a key alone does not tell what it is. Placeholders keep the line breaks.
        every = redact(normalise(text)).text.removesuffix("\n").split("\n")
        if first > len(every):
            raise NotFoundError(
                f"{path!r:.200} ends with line {len(every):,}, line {first:,} was asked for",
                remedy="begin at a line that it has",
            )
        if touch:
            is_memory = path.startswith(MEMORY_PREFIX)
            id_ = path.removeprefix(MEMORY_PREFIX) if is_memory else self._page_reader.memory_at(path, first)
            self._used([id_] if id_ else [])
        chosen = every[first - 1 : first - 1 + lines]
        return Excerpt(path, "\n".join(chosen), first, first - 1 + len(chosen), len(every))

    def _text(self, path: str) -> str | None:
        if path.startswith(MEMORY_PREFIX):
            return self._said(path.removeprefix(MEMORY_PREFIX))
        if path.startswith(ARTIFACT_PREFIX):
            return self._indexed(path.removeprefix(ARTIFACT_PREFIX))
        page = self._page_reader.text(path)
        return page if page is not None else self._indexed(path)

    def _referred(self, reference: str, first: int) -> tuple[str, int, str | None]:
        """Return the path that a reference names, where to begin, and the text there."""
        found = _REFERENCE.fullmatch(reference)
        if found is None:
            return reference, first, None
        begin = max(first, int(found["first"] or 1))
        for path in (found["path"], f"{MEMORY_PREFIX}{found['path']}"):
            text = self._text(path)
            if text is not None:
                return path, begin, text
        return reference, first, None

    def _said(self, id_: str) -> str | None:
        """Return what a memory says, or a document that is no file."""
        stored = self._ultra.find(id_) if self._has_ultra else None
        stored = stored or self._store.memory(self.namespace, id_)
        if stored is not None:
            return stored.record.content
        others = self._store.matching_owners(self.namespace, Filter(kinds=("knowledge", "artifact")))
        numbers = [number for number, owner in self._store.owners(self.namespace, others).items() if owner.id == id_]
        return self._put_together(numbers) if numbers else None

    def _indexed(self, path: str) -> str | None:
        """Return an artifact as its passages have it; blank lines between them are blank here too."""
        numbers = [number for number, owner in self._store.artifacts(self.namespace) if owner.path == path]
        return self._put_together(numbers) if numbers else None

    def _put_together(self, numbers: Sequence[int]) -> str:
        """Return the text of an owner's passages."""
        passages = self._store.passages(self.namespace, self._store.passages_of(self.namespace, numbers))
        lines: dict[int, str] = {}
        for passage in passages.values():
            for place, line in enumerate(passage.chunk.text.split("\n"), passage.chunk.start_line):
                # A line that alone was too long for a passage goes on in the next one.
                known = lines.get(place, "")
                lines[place] = known if known.endswith(line) else known + line
        return "\n".join(lines.get(place, "") for place in range(1, max(lines, default=0) + 1))

    @cached_property
    def _page_reader(self) -> PageReader:
        return PageReader(self.directory, self.namespace, self._store)
