"""What may be given as a memory, and what is said about the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from commonplace.dates.time import iso, moment_in_words, seconds
from commonplace.errors import UsageError
from commonplace.memory.validate import validate_memory, without_secrets

GOOD = {"content": "a text"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "a memory has no content"),
        ({"content": b"bytes"}, "the content is bytes, not str"),
        ({"content": ""}, "the content is empty"),
        ({"content": " \t\n\u200b\ufeff"}, "the content is empty"),
        ({"content": "a\0b"}, "the content is binary: it holds NUL"),
        ({"content": "\x01\x02\x03ab"}, "the content is binary"),
        ({"content": "ü" * 600_000}, "the content has 1,200,000 bytes, the limit is 1,048,576"),
        ({**GOOD, "tier": "huge"}, "tier is 'huge'; give one of ultra, short, medium, long"),
        ({**GOOD, "tags": "decision"}, "tags is 'decision'; give a list of texts"),
        ({**GOOD, "tags": ["ok", " "]}, "tags holds ''; give texts of 1 to 200 characters"),
        ({**GOOD, "tags": ["x" * 201]}, "tags holds 'xxx"),
        ({**GOOD, "tags": [str(n) for n in range(101)]}, "there are 101 tags, the limit is 100"),
        ({**GOOD, "origin": "mars"}, "origin is 'mars'; give one of user, agent, tool, document, web"),
        ({**GOOD, "role": "system"}, "role is 'system'; give one of user, human, assistant"),
        ({**GOOD, "role": ["user"]}, r"role is \['user'\]; give one of user, human, assistant"),
        ({"content": [{"type": "image"}], "role": "user"}, "a message has parts that are no text"),
        ({"content": [{"type": "text", "text": None}], "role": "user"}, "a message has parts that are no text"),
        ({"content": None, "role": "user"}, "a memory has no content"),
        ({**GOOD, "trust": 1.5}, "trust is 1.5; give a number from 0 to 1"),
        ({**GOOD, "trust": float("nan")}, "trust is nan"),
        ({**GOOD, "metadata": ["x"]}, "metadata is .*; give a mapping"),
        ({**GOOD, "metadata": {"x": float("inf")}}, "metadata cannot be kept"),
        ({**GOOD, "metadata": {"x": "y" * 70_000}}, "metadata has 70,009 bytes of JSON, the limit is 65,536"),
        ({**GOOD, "at": "yesterday-ish"}, "at is 'yesterday-ish'; give an ISO 8601 time"),
        ({**GOOD, "at": float("inf")}, "at is inf"),
        ({**GOOD, "at": 1e15}, "of the years 1 to 9999"),
        ({**GOOD, "id": ""}, "the id is ''"),
        ({**GOOD, "id": 7}, "the id is 7"),
        ({**GOOD, "source": "s" * 1001}, "source is 's+.*; give a text of at most 1000 characters"),
        ({**GOOD, "colour": "red"}, "a memory has no 'colour'; it may have content, id, tier"),
    ],
)
def test_what_cannot_be_kept_is_named_with_limit_and_remedy(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        validate_memory(values)


def test_force_takes_what_looks_binary_and_nothing_else() -> None:
    assert validate_memory({"content": "a\0b"}, force=True).content == "a\ufffdb"
    with pytest.raises(UsageError, match="empty"):
        validate_memory({"content": "\0"}, force=True)


def test_none_is_as_if_it_were_absent_and_labels_are_each_once() -> None:
    new = validate_memory({**GOOD, "tags": [" b  c ", "a", "b c"], "tier": None, "category": " Decision "})
    assert (new.tags, new.tier, new.category) == (("b c", "a"), None, "decision")
    assert validate_memory({**GOOD, "tags": {"b", "a"}}).tags == ("a", "b")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-03-01", 1772323200.0),
        ("2026-03-01T01:00:00+01:00", 1772323200.0),
        (datetime(2026, 3, 1), 1772323200.0),  # noqa: DTZ001 - a naive time is UTC
        (1772323200, 1772323200.0),
        ("1970-01-01", 0.0),
        ("0001-01-01", -62135596800.0),
        ("9999-12-31T23:59:59Z", 253402300799.0),
        ("2026-03", 1772323200.0),
        (" 1970 ", 0.0),
    ],
)
def test_times_are_read_in_every_usual_form(given: Any, expected: float) -> None:
    assert seconds("at", given) == expected


def test_a_time_in_words_is_its_end_or_now_within_it() -> None:
    now = datetime(2026, 3, 9, 9, 0, tzinfo=UTC).timestamp()
    assert iso(moment_in_words("as_of", "last Tuesday", now)) == "2026-03-03T23:59:59.999000Z"
    assert moment_in_words("as_of", "today", now) == now
    assert moment_in_words("as_of", " Now", now) == now
    assert iso(moment_in_words("as_of", "an hour ago", now)) == "2026-03-09T08:00:00Z"
    assert iso(moment_in_words("as_of", "2026-02", now)) == "2026-02-28T23:59:59.999000Z"
    assert iso(moment_in_words("as_of", "2025", now)) == "2025-12-31T23:59:59.999000Z"
    assert moment_in_words("as_of", "2026-03", now) == moment_in_words("as_of", "2026-03-09", now) == now
    assert iso(moment_in_words("valid_at", "2026-12", now)) == "2026-12-31T23:59:59.999000Z"
    assert iso(moment_in_words("valid_at", "9999-12", now)) == "9999-12-31T23:59:59Z"
    for odd in ("2026-13", "0000", "blue", "quarter of an hour ago", "what Anna did yesterday", "yesterday or today"):
        with pytest.raises(UsageError, match=f"as_of is '{odd}'.*or words such as"):
            moment_in_words("as_of", odd, now)


def test_of_what_begins_the_beginning_is_meant() -> None:
    now = datetime(2026, 3, 9, 9, 0, tzinfo=UTC).timestamp()
    for given, expected in (
        ("last Tuesday", "2026-03-03T00:00:00Z"),
        ("last December", "2025-12-01T00:00:00Z"),
        ("2026-12", "2026-12-01T00:00:00Z"),
        ("2030", "2030-01-01T00:00:00Z"),
        ("2026-03-05", "2026-03-05T00:00:00Z"),
        ("an hour ago", "2026-03-09T08:00:00Z"),
        ("now", "2026-03-09T09:00:00Z"),
    ):
        assert iso(moment_in_words("valid_from", given, now, is_start=True)) == expected
    with pytest.raises(UsageError, match="valid_from is 'before 2020'"):
        moment_in_words("valid_from", "before 2020", now, is_start=True)


def test_an_error_names_a_parameter_as_a_surface_calls_it_and_leaves_the_value_alone() -> None:
    with pytest.raises(UsageError) as caught:
        seconds("at", "at noon")
    caught.value.rename({"at": "--at", "noon": "12"})
    assert str(caught.value).startswith("--at is 'at noon'; give an ISO 8601 time")


def test_a_key_of_the_metadata_may_tell_that_its_value_is_a_secret() -> None:
    token = "ghp_" + "a1B2" * 9
    given = {"password": "hunter2" + "x9!", "db": {"password": ["s3cr" + "et-Word"]}, "note": "plain", token: 1, "n": 5}
    cleaned = without_secrets(validate_memory({**GOOD, "metadata": given}))
    metadata = json.loads(cleaned.metadata)
    assert metadata["password"] == "[redacted: password]"
    assert metadata["db"] == {"password": ["[redacted: password]"]}
    assert (metadata["note"], metadata["n"]) == ("plain", 5)
    assert token not in cleaned.metadata
    assert 1 in metadata.values()
    assert "what looks like a secret was replaced" in cleaned.notices[0]


def test_keys_that_are_secrets_never_become_one() -> None:
    one, two = ("ghp_" + part * 9 for part in ("a1B2", "c3D4"))
    metadata = json.loads(without_secrets(validate_memory({**GOOD, "metadata": {one: 1, two: 2}})).metadata)
    assert sorted(metadata.values()) == [1, 2]
    assert all(key.startswith("[redacted: github token]") for key in metadata)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "user", "content": "A"}, ("A", "user", "")),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]},
            ("A\n\nB", "agent", ""),
        ),
        ({"role": "tool", "content": "A", "name": "grep"}, ("A", "tool", "grep")),
        ({"role": "user", "content": "A", "origin": "web", "source": "x", "name": "y"}, ("A", "web", "x")),
    ],
)
def test_a_chat_message_is_a_memory(message: dict[str, Any], expected: tuple[str, str, str]) -> None:
    """What people have is a list of messages; its roles say who spoke, unless the caller knows better."""
    new = validate_memory(message)
    assert (new.content, new.origin, new.source) == expected
