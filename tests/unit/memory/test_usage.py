"""What counts as a use of a memory, and that use keeps it alive and carries it up."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.unit.clock import Clock
from tests.unit.permissions import without_rights

import commonplace
from commonplace.engine import Engine
from commonplace.errors import StoreBusyError
from commonplace.memory.usage import ONCE_IN_S, Use, UseCounter
from commonplace.settings import load
from commonplace.types import Hit

HOUR = 1 / 24
OFFICE = "The office is in Madrid, near the river"


def uses(book: Engine, id_: str) -> int:
    return book.get(id_, touch=False).use_count


class TestRecall:
    def test_sixty_daily_recalls_are_sixty_uses_and_the_memory_is_not_archived(
        self, book: Engine, clock: Clock
    ) -> None:
        """What somebody asks for every day must neither fade nor stay in the tier of a passing note."""
        asked, other = book.remember(OFFICE), book.remember("A ladder stands behind the third door")
        for _ in range(60):
            clock.move(days=1)
            book.recall(OFFICE)
        book.consolidate(["decay"], rate_limit=0)
        book.decay("short")
        kept, faded = book.get(asked.id), book.get(other.id)
        assert (kept.use_count, kept.status, kept.tier) == (60, "active", "long")
        assert (faded.use_count, faded.status) == (0, "archived")

    def test_eight_recalls_two_hours_apart_are_eight_uses(self, book: Engine, clock: Clock) -> None:
        memory = book.remember(OFFICE)
        for _ in range(8):
            clock.move(days=2 * HOUR)
            book.recall(OFFICE)
        assert uses(book, memory.id) == 8

    def test_a_recall_within_the_hour_of_a_touch_or_a_get_is_no_further_use(self, book: Engine, clock: Clock) -> None:
        memory = book.remember(OFFICE)
        book.touch(memory.id)
        clock.move(days=HOUR / 2)
        book.recall(OFFICE)
        book.get(memory.id)
        assert uses(book, memory.id) == 1

    def test_two_processes_at_once_count_one_use_in_the_hour(self, book: Engine, clock: Clock) -> None:
        memory = book.remember(OFFICE)
        with commonplace.open(book.directory, embedder="hashing", clock=clock) as other:
            for _ in range(8):
                clock.move(days=2 * HOUR)
                book.recall(OFFICE)
                other.recall(OFFICE)
        assert uses(book, memory.id) == 8

    def test_looking_only_and_the_past_count_nothing(self, book: Engine, clock: Clock) -> None:
        memory = book.remember(OFFICE)
        clock.move(days=1)
        book.recall(OFFICE, touch=False)
        book.recall(OFFICE, as_of=clock())
        book.search(OFFICE)
        book.get(memory.id, as_of=clock())
        book.get(memory.id, touch=False)
        book.versions(memory.id)
        book.list()
        assert uses(book, memory.id) == 0

    def test_golden_queries_count_nothing(self, book: Engine, clock: Clock, tmp_path: Path) -> None:
        memory = book.remember(OFFICE)
        golden = tmp_path / "golden.jsonl"
        golden.write_text(f'{{"query": "{OFFICE}", "relevant": ["{memory.id}"]}}\n', encoding="utf-8")
        clock.move(days=1)
        book.consolidate(["promote"], golden=golden)
        assert uses(book, memory.id) == 0

    def test_use_carries_a_memory_of_the_process_into_the_store(self, book: Engine, clock: Clock) -> None:
        memory = book.remember(OFFICE, tier="ultra")
        for _ in range(3):
            clock.move(days=1)
            book.recall(OFFICE)
        assert book.get(memory.id).tier == "short"
        assert book.memory_counts().ultra == 0


class TestHits:
    @pytest.fixture
    def count(self, book: Engine) -> Callable[..., list[int]]:
        """Return a function that counts an answer of hits on four memories, and returns how often each was used."""
        kept = book.remember_many([{"content": f"The number of the door is {n}"} for n in range(4)], force=True)

        def run(*given: dict[str, object]) -> list[int]:
            book.count_use([hit_of(memory.id, **each) for memory, each in zip(kept, given, strict=False)])
            return [uses(book, memory.id) for memory in kept]

        return run

    def test_likely_and_sure_hits_among_the_first_three_are_used(self, count: Callable[..., list[int]]) -> None:
        sure, likely = {"confidence": "sure"}, {"confidence": "likely"}
        assert count(sure, likely, sure, sure) == [1, 1, 1, 0]

    def test_weak_overtaken_and_other_hits_are_not_used(self, count: Callable[..., list[int]]) -> None:
        """What may answer nothing, and what is no longer so, must not be kept alive by being shown."""
        overtaken = {"confidence": "sure", "superseded_by": "newer"}
        assert count({"confidence": "weak"}, overtaken, {"confidence": "sure", "kind": "artifact"}) == [0, 0, 0, 0]


class TestContext:
    def test_all_that_a_context_injects_is_used_but_what_is_weak(self, book: Engine) -> None:
        book.remember_many([{"content": OFFICE, "id": "office"}, {"content": "The museum is in Paris", "id": "museum"}])
        made = book.context(OFFICE, min_score=0.0)
        assert {hit.owner_id: hit.confidence for hit in made.hits} == {"office": "sure", "museum": "weak"}
        assert (uses(book, "office"), uses(book, "museum")) == (1, 0)

    def test_what_the_start_of_a_session_injects_is_used(self, book: Engine) -> None:
        kept = book.remember_many([{"content": f"Rule {n} of the house"} for n in range(5)], force=True)
        book.injection(conversation="one")
        assert [uses(book, memory.id) for memory in kept] == [1] * 5

    def test_what_was_injected_into_two_conversations_within_the_hour_is_used_once(self, book: Engine) -> None:
        memory = book.remember(OFFICE)
        book.injection(OFFICE, conversation="one")
        book.injection(OFFICE, conversation="two")
        assert uses(book, memory.id) == 1


class TestReading:
    def test_getting_a_memory_is_a_use_at_most_once_an_hour(self, book: Engine, clock: Clock) -> None:
        memory = book.remember(OFFICE)
        for _ in range(4):
            clock.move(days=HOUR / 2)
            book.get(memory.id)
        assert uses(book, memory.id) == 2

    def test_getting_an_archived_memory_leaves_it_archived_and_unused(self, book: Engine) -> None:
        memory = book.remember(OFFICE)
        book.archive(memory.id)
        book.get(memory.id)
        found = book.get(memory.id)
        assert (found.status, found.use_count) == ("archived", 0)


class TestWriting:
    def test_closing_writes_all_that_is_pending(self, book: Engine, clock: Clock) -> None:
        memory = book.remember(OFFICE)
        with commonplace.open(book.directory, embedder="hashing", clock=clock) as other:
            other.recall(OFFICE)
        assert uses(book, memory.id) == 1

    def test_a_use_makes_no_page_due(self, book: Engine) -> None:
        """A page that is written again for every question costs each of them more than the search itself."""
        memory = book.remember(OFFICE)
        book.sync()
        page = next(book.directory.glob("memory/*.md"))
        before = page.stat().st_mtime_ns
        book.recall(OFFICE)
        assert uses(book, memory.id) == 1
        assert book.sync().pages_written == 0
        assert page.stat().st_mtime_ns == before

    def test_a_store_that_cannot_be_written_answers_and_counts_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        """People search what others keep: a mounted snapshot, a shared directory."""
        place = Path(tempfile.mkdtemp())
        try:
            with commonplace.open(place, embedder="hashing") as book:
                memory = book.remember(OFFICE)
            caplog.clear()
            _allow(place, files=0o444, directories=0o555)
            loaded = load({"store.path": str(place)})
            with without_rights(), commonplace.open(place, embedder="hashing", settings=loaded) as book:
                assert [hit.owner_id for hit in book.recall(OFFICE).hits] == [memory.id]
                assert book.get(memory.id).use_count == 0
                assert book.context(OFFICE).hits
            assert [each for each in caplog.messages if "could not be counted" in each] == []
        finally:
            _allow(place, files=0o644, directories=0o755)
            shutil.rmtree(place)

    def test_uses_that_could_not_be_written_are_written_with_the_next(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another process may hold the store for long; the question was answered all the same."""
        monkeypatch.setattr("commonplace.memory.usage.WRITE_AFTER_S", 600.0)
        written: list[Use] = []
        is_busy = True

        def write(some: Sequence[Use]) -> None:
            if is_busy:
                raise StoreBusyError("the store is busy", remedy="try again")
            written.extend(some)

        counter = UseCounter(write)
        counter.count(["a"], 0.0)
        counter.write()
        assert "the use of 1 memories could not be counted: the store is busy" in caplog.text
        is_busy = False
        counter.count(["a", "b"], 1.0)
        counter.close()
        assert written == [Use("a", 0.0), Use("b", 1.0)]

    def test_uses_are_written_by_themselves_and_the_thread_ends(self) -> None:
        """A server may be killed at any time, and must not hold a thread for what it did yesterday."""
        is_written = threading.Event()
        written: list[Use] = []

        def write(some: Sequence[Use]) -> None:
            written.extend(some)
            is_written.set()

        before = threading.enumerate()
        counter = UseCounter(write)
        counter.count(["a"], 0.0)
        started = [each for each in threading.enumerate() if each.name == "uses" and each not in before]
        assert is_written.wait(30)
        for thread in started:
            thread.join(30)
            assert not thread.is_alive()
        counter.count(["a"], ONCE_IN_S)
        counter.close()
        assert written == [Use("a", 0.0), Use("a", ONCE_IN_S)]


def _allow(place: Path, files: int, directories: int) -> None:
    for path in [place, *place.rglob("*")]:
        path.chmod(directories if path.is_dir() else files)


def hit_of(id_: str, **given: object) -> Hit:
    return Hit(**{"id": id_, "owner_id": id_, "kind": "memory", "text": "", "score": 1.0, "signals": {}, **given})  # type: ignore[arg-type]
