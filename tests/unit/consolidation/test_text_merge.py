"""How several texts become one, and how a text falls into what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from numpy.typing import NDArray

from commonplace.consolidation.text_merge import (
    Conflict,
    MergedText,
    MergeSource,
    confidence_of,
    conflict,
    contradictions,
    dates_of,
    diff,
    features_of,
    link_id,
    merge,
    merged_id,
    merged_memory,
)
from commonplace.retention import DAY_S
from commonplace.text.sentences import units_of
from commonplace.types import MemoryRecord, Owner, StoredMemory


def _at(day: int) -> datetime:
    return datetime(2026, 5, day, 12, tzinfo=UTC)


def _merge(*texts: str, is_one_day: bool = True) -> MergedText:
    return merge([MergeSource(f"m{day}", text, _at(1 if is_one_day else day)) for day, text in enumerate(texts, 1)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One thing. Another thing!  A third?", ["One thing.", "Another thing!", "A third?"]),
        ("Lunch at 1 p.m. with Dr. Who.", ["Lunch at 1 p.m. with Dr. Who."]),
        ("# Title\n\nText.", ["# Title", "Text."]),
        ("- one\n- [ ] two\n  3. three", ["- one", "- [ ] two", "3. three"]),
        ("A list:\n* one\n* two. Really.", ["A list:", "* one", "* two.", "Really."]),
        ("Run\n\n```sh\nmake\n\n# all\n```\nnow.", ["Run", "```sh\nmake\n\n# all\n```", "now."]),
        ("~~~\nnever closed\n", ["~~~\nnever closed"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nText", ["| a | b |\n|---|---|\n| 1 | 2 |", "Text"]),
        ("> quoted\n\nText", ["> quoted", "Text"]),
        ("", []),
        (" \n\t", []),
        ("…", ["…"]),
    ],
)
def test_a_text_falls_into_sentences_items_headings_and_blocks(text: str, expected: list[str]) -> None:
    assert [unit.text for unit in units_of(text)] == expected


def test_units_and_what_stands_between_them_are_the_text() -> None:
    text = "  # Head\n\n- one. Two.\n\n```\ncode\n```\n\nEnd"
    assert "".join(unit.gap + unit.text for unit in units_of(text)) == text


def test_the_longest_is_kept_as_it_is_where_it_contains_all_others() -> None:
    longest = "Ruff lints the code.\nRuff  lints the code. Mypy checks the types of it."
    assert _merge("ruff lints the code", longest, "checks the types").text == longest


def test_else_the_longest_comes_first_and_what_the_others_add_behind_it() -> None:
    merged = _merge(
        "Ruff lints. Mypy checks types.", "Ruff lints. The release is cut on Fridays by Maria.", "It rains."
    )
    assert merged.text == ("Ruff lints. The release is cut on Fridays by Maria.\n\nMypy checks types.\n\nIt rains.")


def _merge_alike(similarity: float, *texts: str) -> str:
    """Merge texts of one day whose sentences are all alike by the same."""
    sources = [MergeSource(f"m{number}", text, _at(1)) for number, text in enumerate(texts)]
    return merge(sources, lambda said: np.full((len(said), len(said)), similarity, np.float32)).text


@pytest.mark.parametrize(
    ("similarity", "kept", "again"),
    [
        (0.9, "Mira prefers commit messages to be short.", "Mira likes brief commit messages."),
        (0.75, "Mira prefers commit messages that are short.", "Commit messages: Mira prefers them short."),
        (0.75, "Acme's office is located in Madrid.", "The office of Acme is in Madrid."),
    ],
)
def test_a_sentence_that_says_what_another_source_says_is_not_glued_on(
    similarity: float, kept: str, again: str
) -> None:
    """A merge that says the same thing thrice is worse to read than what it was made of."""
    assert _merge_alike(similarity, again, kept) == kept


@pytest.mark.parametrize(
    ("similarity", "first", "second"),
    [
        (0.89, "Mira prefers commit messages to be short.", "Mira likes brief commit messages."),
        (1.0, "The database of the shop keeps 30 backups.", "The shop's database keeps backups."),
        (1.0, "The office that Acme rents is in a city.", "Acme rents an office in Madrid."),
        (1.0, "The release is planned for March.", "The release is a plan."),
    ],
)
def test_a_sentence_that_adds_something_is_kept(similarity: float, first: str, second: str) -> None:
    """Another number, name or time, or a thing that only one says, is what somebody may look for."""
    assert _merge_alike(similarity, first, second) == f"{first}\n\n{second}"


def test_a_sentence_is_left_out_where_a_shorter_source_says_it_and_more() -> None:
    longest = "Ruff lints the code. Maria cuts the release in spring."
    said = {
        ("Ruff lints the code.", "Ruff lints the code and sorts the imports."): 0.95,
        ("Ruff lints the code and sorts the imports.", "Ruff lints the code."): 0.95,
    }

    def likeness(units: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[said.get((one, other), float(one == other)) for other in units] for one in units], np.float32)

    both = "Ruff lints the code and sorts the imports."
    sources = [MergeSource("a", longest, _at(1)), MergeSource("b", both, _at(1))]
    assert merge(sources, likeness).text == f"Maria cuts the release in spring.\n\n{both}"


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("The import runs on staging-2.", "The import runs on staging-3.", True),
        ("Feature flags are enabled in production.", "Feature flags are disabled in production.", True),
        ("A cook slices onions in the kitchen.", "A cook cuts onions in the kitchen.", False),
        (
            "It runs on staging-2. It is slow. Ada wrote it. Bob reads it.",
            "It runs on staging-3. Tea is hot. Go on.",
            False,
        ),
    ],
)
def test_texts_contradict_each_other_where_that_is_most_of_what_they_say(one: str, other: str, is_one: bool) -> None:
    sources = [MergeSource("a", one, _at(1)), MergeSource("b", other, _at(1))]
    assert (("a", "b") in contradictions(sources, [("a", "b")])) is is_one


def test_a_sentence_that_two_texts_have_stands_once_however_it_is_written() -> None:
    merged = _merge("RUFF lints the code! Tests run in parallel.", "We use uv for packages here. Ruff lints the code.")
    assert merged.text == "We use uv for packages here. Ruff lints the code.\n\nTests run in parallel."


def test_part_of_a_word_is_not_contained() -> None:
    assert _merge("cat food", "We buy concat foods for it").text == "We buy concat foods for it\n\ncat food"


def test_lists_and_code_survive_with_their_headings() -> None:
    one = "# Groceries\n\n- milk\n- brown bread from the bakery\n\n```python\nbuy('milk')\n```"
    other = "# Groceries\n\n- Milk\n- eggs\n\n```python\nfor egg in basket:\n    boil(egg)\n```"
    assert (
        _merge(one, other).text
        == f"{one}\n\n# Groceries\n\n- eggs\n\n```python\nfor egg in basket:\n    boil(egg)\n```"
    )


def test_items_go_on_with_a_list_that_ends_the_text() -> None:
    assert _merge("- milk\n- bread and butter", "- milk\n- eggs").text == "- milk\n- bread and butter\n- eggs"


def test_values_that_contradict_each_other_are_both_kept_with_their_dates() -> None:
    merged = _merge("The deploy is on Monday. Maria does it.", "The deploy is on Friday.", is_one_day=False)
    assert (
        merged.text == "The deploy is on Monday. (2026-05-01) Maria does it.\n\nThe deploy is on Friday. (2026-05-02)"
    )
    assert merged.conflicts == {"time": 1}


def test_what_denies_another_is_not_contained_in_it() -> None:
    merged = _merge("Deploy on Monday.", "Do not deploy on Monday.", is_one_day=False)
    assert merged.text == "Do not deploy on Monday. (2026-05-02)\n\nDeploy on Monday. (2026-05-01)"
    assert merged.conflicts == {"negation": 1}


def test_a_block_of_code_that_contradicts_another_keeps_its_shape() -> None:
    merged = _merge("```\nport = 80\n```", "```\nport = 8080\n```", is_one_day=False)
    assert merged.text == "```\nport = 8080\n```\n\n(2026-05-02)\n\n```\nport = 80\n```\n\n(2026-05-01)"


def test_a_time_told_by_its_own_date_keeps_that_date_where_the_sources_are_of_different_days() -> None:
    merged = _merge("Anna moved to Rome yesterday. She found a flat near the river.", "It rained.", is_one_day=False)
    assert merged.text == ("Anna moved to Rome yesterday. (2026-05-01) She found a flat near the river.\n\nIt rained.")


def test_a_time_told_by_its_own_date_needs_none_where_all_sources_are_of_one_day() -> None:
    assert _merge("Anna moved to Rome yesterday.", "It rained.").text == "Anna moved to Rome yesterday.\n\nIt rained."


def test_the_same_words_of_another_day_are_another_event() -> None:
    merged = _merge("Anna went running today.", "Anna went running today.", is_one_day=False)
    assert merged.text == "Anna went running today. (2026-05-01)\n\nAnna went running today. (2026-05-02)"


def test_the_diff_leads_from_the_sources_to_the_merged_text() -> None:
    sources = [MergeSource("a", "one\ntwo", _at(1)), MergeSource("b", "three", _at(1))]
    assert diff(sources, "one\ntwo\n\nthree", "new").splitlines() == [
        "--- a, b",
        "+++ new",
        "@@ -1,3 +1,4 @@",
        " one",
        " two",
        "+",
        " three",
    ]


def test_equal_texts_are_merged_into_themselves_without_a_diff() -> None:
    sources = [MergeSource("a", "one", _at(1)), MergeSource("b", "one", _at(1))]
    merged = merge(sources)
    assert (merged.text, diff(sources[:1], merged.text, "new")) == ("one", "")


@pytest.mark.parametrize(
    ("short", "long"),
    [("a beta", "We ship it as a beta-like thing"), ("cut by 5", "It is cut by 5% each year"), ("💥", "Nothing of it")],
)
def test_signs_count_in_what_is_contained(short: str, long: str) -> None:
    assert short in _merge(short, long).text.split("\n\n")[1:]


def test_texts_too_long_to_be_compared_are_for_a_person() -> None:
    one, other = (" ".join(f"The {what} of case {number} is fine." for number in range(201)) for what in ("arm", "leg"))
    merged = _merge(one, other)
    assert merged.conflicts == {"length": 1}
    assert merged.text == f"{one}\n\n{other}"


def test_a_contained_text_does_not_take_the_date_from_a_longer_one() -> None:
    """The merged memory has the earlier date: "yesterday" would be another day."""
    merged = _merge("It rained.", "It rained. Anna moved to Rome yesterday.", is_one_day=False)
    assert merged.text == "It rained. Anna moved to Rome yesterday. (2026-05-02)"


# What is kept of memories that become one, in exact values.

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
    assert merged_memory(memories, "new", "text", cohesion)[1].strength == pytest.approx(expected)


def test_category_and_source_stand_where_all_that_have_one_agree() -> None:
    agreeing = [_memory("a", category="fact", source="mail"), _memory("b"), _memory("c", category="fact")]
    record = merged_memory(agreeing, "new", "text", 1.0)[1]
    assert (record.category, record.source) == ("fact", "mail")
    record = merged_memory([*agreeing, _memory("d", category="context", source="chat")], "new", "text", 1.0)[1]
    assert (record.category, record.source) == ("", "")


def test_of_two_metadata_that_of_the_longer_text_counts() -> None:
    memories = [_memory("a", "short", metadata='{"x": 1, "y": 1}'), _memory("b", "longer", metadata='{"x": 2}')]
    assert merged_memory(memories, "new", "text", 1.0)[1].metadata == '{"x": 2, "y": 1}'


def test_a_merged_memory_is_active_new_and_in_no_vault() -> None:
    memories = [_memory("a", version=7, promoted_at=1.0, vault_path="vault/a.md"), _memory("b", is_forced=True)]
    record = merged_memory(memories, "new", "text", 1.0)[1]
    assert (record.status, record.version, record.promoted_at, record.vault_path) == ("active", 1, None, "")
    assert record.is_forced


def test_dates_are_as_seen_from_each_source() -> None:
    memories = [_memory("a", "It rained yesterday."), _memory("b", "It rained yesterday.", at=MAY_8 + DAY_S)]
    assert dates_of(memories) == ((MAY_8 - DAY_S, MAY_8), (MAY_8, MAY_8 + DAY_S))


def test_ids_are_uuids_that_stay() -> None:
    assert merged_id(["b", "a"]) == merged_id(["a", "b"]) == "1a5b284c-d71c-5edf-9b80-110aec2b211f"
    assert link_id("new", "a") == "f665dc4d-4eb0-51f8-a807-1f3d43bad969"
    assert link_id("new", "a") != link_id("a", "new")


# Which sentences contradict each other, and which only say it otherwise, or more.

FRIDAY = datetime(2026, 5, 8, 12, tzinfo=UTC)
SATURDAY = datetime(2026, 5, 9, 12, tzinfo=UTC)


def _found(one: str, other: str, at: datetime = FRIDAY, later: datetime = FRIDAY) -> Conflict | None:
    first, second = features_of(one, at), features_of(other, later)
    assert conflict(first, second) == conflict(second, first)
    return conflict(first, second)


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Anna likes green tea.", "Anna does not like green tea.", "negation"),
        ("Anna likes green tea.", "Anna doesn't like green tea.", "negation"),
        ("The cache is cleared without a restart.", "The cache is cleared with a restart.", "negation"),
        ("The cook eats meat.", "The cook never eats meat.", "negation"),
        ("Anna smokes at parties", "Anna stopped smoking at parties", "negation"),
        ("The API key rotates every 30 days.", "The API key rotates every 90 days.", "number"),
        ("The database runs on PostgreSQL 15.", "The database runs on PostgreSQL 16.", "number"),
        ("Retries are capped at five.", "Retries are capped at 3.", "number"),
        ("The meeting is at 10:30.", "The meeting is at 11:30.", "number"),
        ("The deploy is on Monday.", "The deploy is on Friday.", "time"),
        ("Melanie painted a lake in 2021.", "Melanie painted a lake in 2022.", "time"),
        ("The user lives in Berlin.", "The user lives in Munich.", "name"),
        ("Anna likes green tea.", "Bob likes green tea.", "word"),
        ("The meeting is in the blue room.", "The meeting is in the red room.", "word"),
        ("Lint before the tests run.", "Lint after the tests run.", "word"),
        ("A man is carrying a canoe with a dog.", "A dog is carrying a man in a canoe.", "order"),
        ("Anna trusts Bob blindly.", "Bob trusts Anna blindly.", "order"),
        ("The import runs on staging-2.", "The import runs on staging-3.", "number"),
        ("the worker queue lives on host db-a", "the worker queue lives on host db-b", "name"),
        ("Backups are kept for thirty days.", "Backups are kept for ninety days.", "number"),
        ("Her desk is on the second floor.", "Her desk is on the third floor.", "number"),
        ("The team meets on Thursdays.", "The team meets on Fridays.", "name"),
        ("Service A depends on service B.", "Service B depends on service A.", "order"),
        ("We moved from Redis to Memcached.", "We moved from Memcached to Redis.", "order"),
    ],
)
def test_other_values_in_otherwise_the_same_sentence_contradict(one: str, other: str, kind: Conflict) -> None:
    assert _found(one, other) == kind


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User prefers dark mode in the editor", "The user prefers dark mode for their editor"),
        ("The API key rotates every 30 days.", "API keys are rotated every 30 days."),
        ("Retries are capped at five with exponential backoff.", "Retries use exponential backoff, capped at 5."),
        ("Tom's birthday is on 3 March.", "Tom has his birthday on March 3rd."),
        ("On Monday the release is cut.", "The release is cut on Monday."),
        ("Use ruff for linting and mypy for types.", "Linting is done with ruff; type checks with mypy."),
        ("The build fails when the cache is stale.", "The build fails if the cache is stale."),
        ("A boy is at school taking a test.", "The boy is taking a test at school."),
        ("We moved from Redis to Memcached.", "We moved to Memcached from Redis."),
        ("The desk of Ada is in Berlin.", "Ada's desk is in Berlin."),
    ],
)
def test_saying_it_otherwise_contradicts_nothing(one: str, other: str) -> None:
    assert _found(one, other) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user lives in Berlin and works at Siemens.", "The user lives in Berlin."),
        ("The release is cut every Tuesday by Maria.", "The release is cut every Tuesday."),
        ("The meeting is in May 2026.", "The meeting is on 7 May 2026."),
        ("The server has 16 cores and 64 GB.", "The server has 16 cores."),
    ],
)
def test_saying_more_or_more_exactly_contradicts_nothing(one: str, other: str) -> None:
    assert _found(one, other) is None


def test_sentences_about_different_things_contradict_nothing() -> None:
    assert _found("Anna lives in Berlin.", "The database does not run on Friday.") is None


def test_a_day_told_by_its_own_date_is_another_day_later() -> None:
    assert _found("Anna went running yesterday.", "Anna went running yesterday.", FRIDAY, SATURDAY) == "time"


def test_the_same_day_told_in_two_ways_is_one_day() -> None:
    assert _found("Anna went running today.", "Anna went running yesterday.", FRIDAY, SATURDAY) is None
    assert _found("Anna went running on 7 May 2026.", "Anna went running yesterday.") is None


@pytest.mark.parametrize("text", ["", " ", "…", "💥", "\ud800", "12", "not", "Monday"])
def test_a_sentence_of_next_to_nothing_does_not_contradict_itself(text: str) -> None:
    assert _found(text, text) is None
