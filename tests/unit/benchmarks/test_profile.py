"""The profile of a search: every part that it names exists, and the parts add up to the whole."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import profile
from benchmarks.profile import PARTS, REST, bandwidth

import commonplace
from commonplace.types import Document

QUESTIONS = ["where do bees find nectar", "moon and tides", "pendulum clock"]
TEXTS = ["Honey bees find nectar.", "The moon makes the tides.", "A pendulum keeps the time of a clock."]


def originals() -> list[object]:
    places = [place for each in PARTS.values() for place in each]
    return [eval(f"module.{path}", {"module": import_module(module)}) for module, path in places]


def test_every_part_adds_to_the_whole_and_nothing_stays_wrapped(tmp_path: Path) -> None:
    """A function that was renamed would fail here, and would otherwise count as rest."""
    before = originals()
    with commonplace.open(tmp_path / "store") as book:
        book.index_documents(Document(str(number), text) for number, text in enumerate(TEXTS))
        told = profile.profile(book, QUESTIONS, limit=10)
    assert originals() == before
    assert list(told["parts"]) == [*PARTS, REST]
    assert sum(part["mean_ms"] for part in told["parts"].values()) == pytest.approx(told["whole"]["mean_ms"], abs=0.02)
    assert sum(part["share"] for part in told["parts"].values()) == pytest.approx(1.0, abs=0.01)
    for part in ("embed it", "words: postings", "meaning: int8", "late interaction", "fusion", "texts of the hits"):
        assert told["parts"][part]["mean_ms"] > 0.0


def test_a_part_is_timed_without_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten ticks in all, of which four are the inner one's: the outer one has six."""
    ticks = iter([0.0, 3.0, 7.0, 10.0])
    monkeypatch.setattr(profile.time, "perf_counter", lambda: next(ticks))
    watch = profile._Watch()
    inner = watch.timed("inner", lambda: None)
    watch.timed("outer", inner)()
    assert watch.spent == {"inner": 4.0, "outer": 6.0}


def test_bytes_that_a_scan_reads_are_a_bit_a_dimension_and_eight_a_passage() -> None:
    told = bandwidth({"parts": {"meaning: sign bits": {"p50_ms": 0.5}}}, passages=1000, dimensions=256)
    assert told["read_bytes"] == 1000 * (32 + 8)
    assert told["scan_gigabytes_per_s"] == 0.08
    assert told["sum_gigabytes_per_s"] > 0.0
