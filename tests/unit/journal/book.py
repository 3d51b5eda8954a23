"""A store of memories with a journal over it, at a time of the test's choosing, and its pages as files."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from commonplace.formats.journal import parse_page
from commonplace.ingest.passages import Destination
from commonplace.journal.folder import Folder
from commonplace.journal.sync import JournalRuntime, JournalSync, SyncReport
from commonplace.memory.service import MemoryService
from commonplace.memory.view import Memory
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.retention import RetentionPolicy
from commonplace.store.store import Store
from commonplace.types import Selection, StoredMemory

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC).timestamp()
TODAY = "2026-11-21.md"
YESTERDAY = "2026-11-20.md"
LONG = "MEMORY.md"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEADING = re.compile(r"^(## [0-9]{2}:[0-9]{2}) .*$", re.MULTILINE)


@lru_cache(maxsize=1)
def model() -> StaticEmbedder:
    """Return the tokenizer's table, loaded once."""
    return StaticEmbedder.load()


@contextmanager
def zone(name: str) -> Iterator[None]:
    """Take this machine to another time zone, POSIX names such as `EST5` included."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        del os.environ["TZ"]
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


@dataclass
class Clock:
    """A clock that stands still until it is moved; the stopwatch goes with it."""

    at: float = NOON

    def __call__(self) -> float:
        return self.at


@dataclass
class Book:
    """One process's view of a store's directory."""

    directory: Path
    namespace: str = "default"
    clock: Clock = field(default_factory=Clock)
    max_bytes: int = 1024 * 1024
    saves: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.store = Store.open(self.directory / "store.db", create=True)
        embedder = HashingEmbedder()
        if not self.store.is_read_only:
            self.store.set_embedding(embedder.stamp)
        destination = Destination(self.store, embedder, model().tokenize, self.namespace)
        fading = RetentionPolicy()
        self.keeper = MemoryService(destination, fading, self.clock, max_bytes=self.max_bytes)
        self.ground = JournalRuntime(
            directory=self.directory,
            namespace=self.namespace,
            store=self.store,
            service=lambda: self.keeper,
            count_tokens=lambda text: len(model().tokenize(text)),
            retention=fading,
            now=self.clock,
            max_bytes=self.max_bytes,
        )
        self.journal = self.fresh_journal()
        self.folder = Folder(self.directory, self.namespace)

    def fresh_journal(self) -> JournalSync:
        """Return the journal of a process that has just started."""
        return JournalSync(self.ground, stopwatch=self.clock, wall_ns=lambda: 0)

    def remember(self, content: str, *, force: bool = False, **values: Any) -> Memory:
        """Keep one memory, as the engine would."""
        return self.keeper.remember([{"content": content, **values}], force=force)[0]

    def sync(self) -> SyncReport:
        return self.journal.sync()

    def flush(self) -> None:
        """Let a process come and go: what is due is written, what is news is read, the rest is left alone."""
        journal = self.fresh_journal()
        journal.import_edits()
        journal.flush()

    def page(self, name: str = TODAY) -> str:
        return self.folder.path(name).read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """Save a page as an editor does, at a time of its own."""
        path = self.folder.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        Book.saves += 1
        os.utime(path, ns=(Book.saves * 1_000_000_000, Book.saves * 1_000_000_000))

    def edit(self, old: str, new: str, name: str = TODAY) -> None:
        """Replace words on a page that are there once."""
        text = self.page(name)
        assert text.count(old) == 1, (old, text)
        self.write(name, text.replace(old, new))

    def get(self, id_: str) -> StoredMemory:
        found = self.store.memory(self.namespace, id_)
        assert found is not None
        return found

    def all(self) -> list[StoredMemory]:
        return self.store.memories(self.namespace, Selection(order="id"))

    def contents(self) -> list[str]:
        """Return what live memories say, sorted."""
        return sorted(each.record.content for each in self.all() if each.expired_at is None)

    def files(self) -> dict[str, str]:
        """Return every Markdown file of the store by its path."""
        found = [*self.directory.glob("*.md"), *(self.directory / "memory").rglob("*.md")]
        return {path.relative_to(self.directory).as_posix(): path.read_text(encoding="utf-8") for path in found}

    def is_settled(self) -> bool:
        """Return whether a sync has nothing left to do."""
        files = self.files()
        report = self.sync()
        return not self.store.due(self.namespace) and self.files() == files and quiet(report) == SyncReport()


def quiet(report: SyncReport) -> SyncReport:
    """Return a report without what is only read or told."""
    return replace(report, pages_read=0, notices=())


def prepare(directory: Path) -> None:
    """Leave a store and pages on which both sides have changed in every way there is."""
    book = Book(directory)
    for number, name in enumerate("edited removed moved both archived updated linked renamed raised secret".split()):
        book.remember(f"Of {name}: the {number}. thing.", id=name, tags=[name], at=NOON + 60 * number)
    for name in ("kept", "fallen"):
        book.remember(f"For long: {name}.", id=name, tier="long", category="decision")
    book.remember("Of yesterday.", id="yesterday", at=NOON - 86_400)
    book.sync()
    book.clock.at += 3600
    book.remember("Came later.", id="later", at=NOON + 1200)
    book.sync()
    blocks = {block.entry.id: block.raw for block in parse_page(book.page()).blocks}
    page = book.page()
    for old, new in (
        ("Of edited: the 0. thing.\n", "By hand: the 0. thing.\n\nAnd more.\n"),
        (blocks["removed"], ""),
        (blocks["moved"], ""),
        ("Of both: the 3. thing.\n", "By hand: the 3. thing.\n"),
        ("Tags: #linked", "Tags: #linked\nLinks: [[edited]]"),
        (blocks["later"], ""),
        ("Of secret: the 9. thing.\n", "The key is AKIAIOSFODNN7EXAMPLE.\n"),
    ):
        assert old in page, old
        page = page.replace(old, new)
    book.write(TODAY, f"{page}\n{blocks['edited'].replace('edited', 'copied', 1)}\n## 18:00 Note\n\nA new note.\n")
    book.write(
        LONG, f"{book.page(LONG)}\n## Lessons\n\n{blocks['moved'].replace('## 12:02', '### 2026-11-21')}\n- An item\n"
    )
    book.write("2026-11-22.md", "## 09:00 Tomorrow\n\nTags: #plan\n<!-- memory: unknown -->\n")
    book.folder.path(YESTERDAY).unlink()
    book.keeper.update("both", {"content": "In the store: the 3. thing."})
    book.keeper.update("updated", {"content": "In the store: the 5. thing.", "at": NOON + 2 * 86_400})
    book.keeper.update("renamed", {"content": "In the store: the 7. thing.", "tags": []})
    book.keeper.archive("archived")
    book.keeper.set_tier("raised", "medium")
    book.keeper.set_tier("fallen", "short")
    book.keeper.link("kept", "both", "related", 1.0)
    book.remember("New in the store.", id="fresh")
    book.store.close()


def outcome(directory: Path) -> dict[str, Any]:
    """Return what there is after two more runs, but for ids that are made."""
    book = Book(directory)
    book.clock.at += 3600
    book.sync()
    assert book.is_settled(), "the next run finishes it"
    found = {
        "memories": sorted(
            (
                each.record.content,
                each.record.tier,
                each.record.status,
                each.owner.tags,
                each.owner.at,
                [version.record.content for version in book.store.versions("default", each.owner.id)],
            )
            for each in book.all()
        ),
        "links": [(link.source, link.target) for link in book.store.links("default")],
        "files": {name: alike(text) for name, text in book.files().items()},
    }
    book.store.close()
    assert not list(directory.rglob("*draft*"))
    return found


def alike(text: str) -> str:
    """Return a page without what a killed run may leave otherwise: ids and times that are made, and our headings."""
    return _HEADING.sub(r"\1", _UUID.sub("<id>", re.sub(r"At [-0-9]+ [:0-9+]+", "At some time", text)))
