"""Rows: what a list says of its length, and how people write counts, tags and times."""

from __future__ import annotations

from datetime import UTC, datetime

from commonplace.cli.rows import Line, Row, counted, counts_text, listed, local_time, size_text, tagged


def row(name: str) -> Row:
    return Row(name, level=1)


def test_a_list_has_a_title_one_level_above_its_rows() -> None:
    assert list(listed(["a"], row, "Found:", "bold", level=1)) == [Line("Found:", "bold", 0), Row("a", level=2)]


def test_an_empty_list_is_one_line() -> None:
    assert list(listed((), row, "Found:", none="Nothing.")) == [Line("Nothing.")]


def test_the_items_that_are_not_shown_are_counted() -> None:
    shown = list(listed("abcdefghijklm", row, limit=10))
    assert shown[:10] == [row(name) for name in "abcdefghij"]
    assert shown[10:] == [Line("… 3 more; --json lists all", "dim", 1)]


def test_the_first_row_of_each_item_has_its_number() -> None:
    shown = list(listed("ab", lambda name: [Row(name), Line("more")], is_numbered=True))
    assert shown == [Row("a", before="1. "), Line("more"), Row("b", before="2. "), Line("more")]


def test_people_read_counts_tags_and_sizes() -> None:
    assert [counted(1, "fact"), counted(1200, "entity", "entities")] == ["1 fact", "1,200 entities"]
    assert counts_text({"open": 2, "closed": 0, "blocked": 1}) == "2 open, 1 blocked"
    assert tagged(("a", "b")) == "#a #b"
    assert size_text(2048) == "2.0 KiB"


def test_a_time_is_that_of_this_machine() -> None:
    moment = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
    assert local_time(moment) == local_time(moment.isoformat()) == moment.astimezone().strftime("%Y-%m-%d %H:%M")
    assert local_time(None) == ""
