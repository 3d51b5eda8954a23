"""The cursor of a list."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from commonplace.errors import UsageError
from commonplace.server.routes import Cursor

FIRST, SECOND = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)


def test_the_next_page_begins_behind_the_last_memory_of_its_moment() -> None:
    place = Cursor(None, 0).after([FIRST, SECOND, SECOND])
    assert place == Cursor("2026-01-01T00:00:00.000001+00:00", 2)
    assert place.after([SECOND]) == Cursor("2026-01-01T00:00:00.000001+00:00", 3)


def test_a_cursor_comes_back_as_it_was() -> None:
    place = Cursor("2026-01-01T00:00:00.000001+00:00", 2)
    assert Cursor.read(place.write({"tags": ["a"]}), {"tags": ("a",)}) == place


@pytest.mark.parametrize("text", ["x", "", "é", "bnVsbA", "WzEsMiwzLDRd"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no cursor of this server"):
        Cursor.read(text, {})


def test_a_cursor_is_of_one_list() -> None:
    text = Cursor("2026-01-01T00:00:00+00:00", 1).write({"tags": ["a"]})
    with pytest.raises(UsageError, match="other filters"):
        Cursor.read(text, {"tags": ["b"]})


def test_a_cursor_of_yesterday_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Cursor("2026-01-01T00:00:00+00:00", 1).write({})
    monkeypatch.setattr("commonplace.server.routes.CURSOR_GOOD_FOR_S", 0.0)
    with pytest.raises(UsageError, match="older than a day"):
        Cursor.read(text, {})
