"""What is kept of memories that become one, in exact values."""

from __future__ import annotations

from collections import Counter

import pytest

from commonplace.consolidation.text_merge import combined, confidence_of, dates_of, link_id, merged_id
from commonplace.retention import DAY_S
from commonplace.types import MemoryRecord, Owner, StoredMemory

MAY_8 = 1_778_198_400.0
"""2026-05-08, midnight."""


def _memory(id_: str, text: str = "text", at: float = MAY_8, **given: object) -> StoredMemory:
    record = MemoryRecord(text, born_at=at, last_used=at, **given)  # type: ignore[arg-type]
    return StoredMemory(1, Owner(id_, "memory", at=at), record, at)


@pytest.mark.parametrize(
    ("cohesion", "size", "expected"), [(0.9, 2, 0.72), (0.9, 4, 0.9), (0.9, 7, 0.81), (0.9, 10, 0.63)]
)
def test_confidence_is_cohesion_times_the_factor_of_the_size(cohesion: float, size: int, expected: float) -> None:
    assert confidence_of(cohesion, size, Counter()) == pytest.approx(expected)


def test_a_contradiction_leaves_half_the_confidence_at_most() -> None:
    assert confidence_of(1.0, 4, Counter({"number": 1})) == 0.5
    assert confidence_of(0.4, 4, Counter({"number": 1})) == 0.4


@pytest.mark.parametrize(
    ("strengths", "cohesion", "expected"),
    [
        ([1.0, 1.2], 0.8, 1.2 + 0.8 * 2 * 0.1),
        ([1.0] * 8, 0.9, 1.0 + 0.5),
        ([1.9, 1.0], 1.0, 2.0),
    ],
)
def test_strength_grows_with_cohesion_and_sources_up_to_a_limit(
    strengths: list[float], cohesion: float, expected: float
) -> None:
    memories = [_memory(str(place), strength=strength) for place, strength in enumerate(strengths)]
    assert combined(memories, "new", "text", cohesion)[1].strength == pytest.approx(expected)


def test_category_and_source_stand_where_all_that_have_one_agree() -> None:
    agreeing = [_memory("a", category="fact", source="mail"), _memory("b"), _memory("c", category="fact")]
    record = combined(agreeing, "new", "text", 1.0)[1]
    assert (record.category, record.source) == ("fact", "mail")
    record = combined([*agreeing, _memory("d", category="context", source="chat")], "new", "text", 1.0)[1]
    assert (record.category, record.source) == ("", "")


def test_of_two_metadata_that_of_the_longer_text_counts() -> None:
    memories = [_memory("a", "short", metadata='{"x": 1, "y": 1}'), _memory("b", "longer", metadata='{"x": 2}')]
    assert combined(memories, "new", "text", 1.0)[1].metadata == '{"x": 2, "y": 1}'


def test_a_merged_memory_is_active_new_and_in_no_vault() -> None:
    memories = [_memory("a", version=7, promoted_at=1.0, vault_path="vault/a.md"), _memory("b", is_forced=True)]
    record = combined(memories, "new", "text", 1.0)[1]
    assert (record.status, record.version, record.promoted_at, record.vault_path) == ("active", 1, None, "")
    assert record.is_forced


def test_dates_are_as_seen_from_each_source() -> None:
    memories = [_memory("a", "It rained yesterday."), _memory("b", "It rained yesterday.", at=MAY_8 + DAY_S)]
    assert dates_of(memories) == ((MAY_8 - DAY_S, MAY_8), (MAY_8, MAY_8 + DAY_S))


def test_ids_are_uuids_that_stay() -> None:
    assert merged_id(["b", "a"]) == merged_id(["a", "b"]) == "1a5b284c-d71c-5edf-9b80-110aec2b211f"
    assert link_id("new", "a") == "f665dc4d-4eb0-51f8-a807-1f3d43bad969"
    assert link_id("new", "a") != link_id("a", "new")
