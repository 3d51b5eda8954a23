"""Whatever people do to pages and agents to memories, both sides agree in the end, and nobody's words are lost."""

from __future__ import annotations

import itertools
import json
import random
import re
import tempfile
from pathlib import Path
from unittest.mock import patch
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.unit.journal.book import LONG, NOON, Book, zone

from commonplace.formats.journal import Entry, parse_page
from commonplace.formats.journal_edit import digest
from commonplace.journal.baseline import content_of
from commonplace.journal.pages import kind_of
from commonplace.settings.paths import is_page_name
from commonplace.types import Note

DAY = 86_400.0
WORD = re.compile(r"w[0-9]{4}w")
SHAPES = (
    "{0} is here.",
    "{0}\n\nSecond paragraph.",
    "# {0}\n\n## 09:00 No heading\n\nTags: #no\nLinks: [[no]]",
    "```\n## {0}\n```",
    "- {0}\n- another item\n",
    "{0} <!-- memory: x -->\n<!-- memory: {0} -->",
    "{0}   \n\n\n\nfar\tbelow\r\nand on",
    "   {0}: " + "long " * 30,
    "{0}",
    "~~~\n{0}",
)
MAKERS = ("memory.admission", "journal.import_edits")
PAGES = ("2026-11-20.md", "2026-11-21.md", LONG)
picks = st.integers(0, 10_000)
shapes = st.sampled_from(SHAPES)


def words(text: str) -> set[str]:
    return set(WORD.findall(text))


class Mirroring(RuleBasedStateMachine):
    """A store and its pages, and every word that must still be somewhere."""

    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory()
        made = (UUID(int=number) for number in itertools.count(1))
        # The same in every run of an example, so that the example is the same.
        self._patches = [patch(f"commonplace.{where}.uuid4", lambda: next(made)) for where in MAKERS]
        for each in self._patches:
            each.start()
        self.book = Book(Path(self._place.name))
        self.stored: set[str] = set()
        self.typed: set[str] = set()
        self.forgotten: set[str] = set()
        self.forgotten_ids: set[str] = set()
        self.saved: list[tuple[str, str]] = []
        self._words = 0

    def teardown(self) -> None:
        try:
            self.sync()
            self.sync()
            self.agree()
        finally:
            self.book.store.close()
            self._place.cleanup()
            for each in self._patches:
                each.stop()

    def text(self, shape: str) -> str:
        """Return a text with a word that no other has."""
        self._words += 1
        return shape.format(f"w{self._words:04}w")

    def one(self, pick: int, *, live: bool = True) -> str:
        found = [each.owner.id for each in self.book.all() if (each.expired_at is None) == live]
        return found[pick % len(found)] if found else ""

    def pages(self) -> list[str]:
        return [name for name in PAGES if self.book.folder.path(name).exists()]

    def save(self, name: str, text: str) -> None:
        """Save a page as a person: what they take away that nobody has read yet is theirs to take."""
        path = self.book.folder.path(name)
        before = path.read_bytes().decode() if path.exists() else ""
        self.saved.append((name, before))
        self.typed -= words(before) - words(text)
        blocks = parse_page(text, kind_of(name)).blocks
        doomed = [words(block.raw) for block in blocks if block.entry.id in self.forgotten_ids]
        self.typed |= words(text) - self.forgotten - set().union(*doomed)
        self.book.write(name, text)

    # What agents do.

    @initialize(count=st.integers(0, 3))
    def begin(self, count: int) -> None:
        for number in range(count):
            self.remember(SHAPES[number], "short", number)

    @rule(shape=shapes, tier=st.sampled_from(["short", "short", "long", "medium"]), pick=picks)
    def remember(self, shape: str, tier: str, pick: int) -> None:
        at = NOON + (pick % 3 - 1) * DAY / 2 + 60 * (pick % 7)
        text = self.text(shape)
        self.book.remember(text, tier=tier, at=at, tags=["t"][: pick % 2], category=["", "decision"][pick % 2])
        self.stored |= words(text)

    @rule(pick=picks, shape=shapes)
    def update(self, pick: int, shape: str) -> None:
        if id_ := self.one(pick):
            text = self.text(shape)
            self.book.keeper.update(id_, {"content": text})
            self.stored |= words(text)

    @rule(pick=picks)
    def retag_or_move_in_time(self, pick: int) -> None:
        if id_ := self.one(pick):
            self.book.keeper.update(id_, [{"tags": [f"t{pick % 5}"]}, {"at": NOON - DAY * (pick % 2)}][pick % 2])

    @rule(pick=picks)
    def touch(self, pick: int) -> None:
        if id_ := self.one(pick):
            for _ in range(1 + 2 * (pick % 2)):
                self.book.keeper.touch(id_)

    @rule(pick=picks, tier=st.sampled_from(["short", "medium", "long"]))
    def set_tier(self, pick: int, tier: str) -> None:
        if id_ := self.one(pick):
            self.book.keeper.set_tier(id_, tier)

    @rule(pick=picks)
    def archive(self, pick: int) -> None:
        if id_ := self.one(pick):
            self.book.keeper.archive(id_)

    @rule(pick=picks)
    def restore(self, pick: int) -> None:
        if id_ := self.one(pick, live=False):
            self.book.keeper.restore(id_)

    @rule(pick=picks)
    def link(self, pick: int) -> None:
        source, target = self.one(pick), self.one(pick // 7)
        if source != target:
            self.book.keeper.link(source, target, "related", 1.0)

    @rule(pick=picks)
    def forget(self, pick: int) -> None:
        """Forget as the engine does: erase, leave a receipt, remove the blocks."""
        id_ = self.one(pick)
        if not id_:
            return
        kept = self.on_disk()
        gone = set().union(*(words(each.record.content) for each in self.book.store.versions("default", id_)))
        with self.book.store.change_memories("default") as change:
            change.erase([id_])
            receipt = json.dumps({"namespace": "default", "ids": [id_]})
            change.put(Note("receipt", f"r{self._words}-{pick}-{id_}", NOON, receipt))
        self.book.journal.forget("default", [id_])
        gone |= kept - self.on_disk()
        self.forgotten |= gone
        self.forgotten_ids.add(id_)
        self.stored -= gone
        self.typed -= gone

    # What people do.

    @rule(pick=picks, shape=shapes, name=st.sampled_from(PAGES))
    def add_note(self, pick: int, shape: str, name: str) -> None:
        text = self.book.page(name) if name in self.pages() else "# Mine\n\n"
        blocks = parse_page(text, kind_of(name)).blocks
        heading = ["## 10:00", "## "][pick % 2] if name != LONG else "## Decisions\n\n###"
        note = f"{heading} Note\n\n{self.text(shape)}\n\n"
        at = text.index(blocks[pick % len(blocks)].raw) if blocks and pick % 3 and name != LONG else len(text)
        self.save(name, f"{text[:at].rstrip()}\n\n{note}{text[at:]}")

    @rule(pick=picks, new=st.booleans())
    def edit(self, pick: int, new: bool) -> None:
        self.on_block(pick, lambda raw: self.edited(raw, new))

    def edited(self, raw: str, new: bool) -> str:
        found = WORD.search(raw)
        if new or not found:
            lines = raw.split("\n")
            return "\n".join([*lines[:2], self.text("{0} typed"), *lines[2:]])
        return raw.replace(found.group(), self.text("{0}"))

    @rule(pick=picks)
    def remove_block(self, pick: int) -> None:
        self.on_block(pick, lambda _: "")

    @rule(pick=picks)
    def duplicate_block(self, pick: int) -> None:
        self.on_block(pick, lambda raw: f"{raw.rstrip()}\n\n{raw}")

    @rule(pick=picks)
    def move_block(self, pick: int) -> None:
        moved: list[str] = []
        name = self.on_block(pick, lambda raw: moved.append(raw) or "")  # type: ignore[func-returns-value]
        other = PAGES[pick % len(PAGES)]
        if moved:
            raw = moved[0]
            if (name == LONG) != (other == LONG):
                old, new = ("### ", "## ") if name == LONG else ("## ", "### ")
                raw = re.sub(f"^{old}", new, raw, count=1)
            self.save(other, (self.book.page(other) if other in self.pages() else "") + f"\n{raw}")

    @rule(pick=picks)
    def reorder(self, pick: int) -> None:
        for name in self.pages():
            blocks = [block.raw.rstrip() for block in parse_page(self.book.page(name), kind_of(name)).blocks]
            if name != LONG and blocks:
                random.Random(pick).shuffle(blocks)
                page = parse_page(self.book.page(name), "day")
                self.save(name, page.preamble.rstrip() + "\n\n" + "\n\n".join(blocks) + "\n")

    @rule(pick=picks)
    def change_white_space(self, pick: int) -> None:
        for name in self.pages():
            text = self.book.page(name)
            self.save(
                name,
                [text.replace("\n", "\r\n"), text.replace("\n\n", " \n\n"), text + "\n\n", "\ufeff" + text][pick % 4],
            )

    @rule(pick=picks)
    def write_beside(self, pick: int) -> None:
        for name in self.pages()[: pick % 2 + 1]:
            self.save(name, self.text("Dear diary, {0}.\n\n") + self.book.page(name))

    @rule(pick=picks)
    def delete_page(self, pick: int) -> None:
        if names := self.pages():
            name = names[pick % len(names)]
            self.typed -= words(self.book.page(name))
            self.book.folder.path(name).unlink()

    @precondition(lambda self: self.saved)
    @rule(pick=picks)
    def save_an_old_state(self, pick: int) -> None:
        """Save what an editor has had open for a while."""
        name, text = self.saved[pick % len(self.saved)]
        self.save(name, text)

    @precondition(lambda self: self.pages())
    @rule(pick=picks, shape=shapes)
    def open_an_editor(self, pick: int, shape: str) -> None:
        name = self.pages()[pick % len(self.pages())]
        note = f"\n## 11:00 Typed\n\n{self.text(shape)}\n" if name != LONG else ""
        self.saved.append((name, self.book.page(name) + note))

    def on_block(self, pick: int, change) -> str:  # type: ignore[no-untyped-def]
        names = self.pages()
        if not names:
            return ""
        name = names[pick % len(names)]
        text = self.book.folder.path(name).read_bytes().decode()
        blocks = parse_page(text, kind_of(name)).blocks
        if blocks:
            raw = blocks[pick // 3 % len(blocks)].raw
            at = text.index(raw)
            self.save(name, text[:at] + change(raw) + text[at + len(raw) :])
        return name

    # And what holds.

    @rule(seconds=st.integers(0, 100_000))
    def sync(self, seconds: int = 0) -> None:
        self.book.clock.at += seconds
        self.book.sync()
        self.nothing_is_lost()

    @rule(seconds=st.integers(0, 100))
    def call(self, seconds: int) -> None:
        self.book.clock.at += seconds
        self.book.flush()
        self.nothing_is_lost()

    def versions(self) -> set[str]:
        ids = [each.owner.id for each in self.book.all()]
        return set().union(
            *(words(each.record.content) for id_ in ids for each in self.book.store.versions("default", id_))
        )

    def on_disk(self) -> set[str]:
        return set().union(*(words(text) for text in self.book.files().values()))

    def nothing_is_lost(self) -> None:
        versions = self.versions()
        assert self.stored <= versions
        assert self.typed <= versions | self.on_disk()
        self.stored |= versions - self.forgotten

    def agree(self) -> None:
        book = self.book
        assert book.is_settled()
        live = {each.owner.id: each for each in book.all() if each.expired_at is None}
        seen: set[str] = set()
        for name in filter(is_page_name, (path.rsplit("/", 1)[-1] for path in book.files())):
            for block in parse_page(book.page(name), kind_of(name)).blocks:
                id_ = block.entry.id
                assert id_ in live, (name, block.raw)
                assert id_ not in seen, (name, block.raw)
                seen.add(id_)
                stored = live[id_]
                assert stored.record.tier == ("long" if name == LONG else "short")
                said = content_of(block.entry, stored)
                assert digest(Entry("", None, "", said)) == digest(Entry("", None, "", stored.record.content))
                assert set(block.entry.tags) == set(stored.owner.tags)
        assert seen >= {id_ for id_, each in live.items() if each.record.tier == "short"}


class TestMirroring(Mirroring.TestCase):  # type: ignore[name-defined,misc]
    """Run it, in a time zone that is the same everywhere."""

    settings = settings(max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))

    def runTest(self) -> None:
        with zone("UTC"):
            super().runTest()
