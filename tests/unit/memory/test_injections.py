"""What hooks added to conversations, as it is told for a day."""

from __future__ import annotations

from pathlib import Path

import commonplace
from commonplace.memory.injections import TTL_S


def test_what_was_injected_is_told_for_a_day_the_latest_first(tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    with commonplace.open(tmp_path / "store", embedder="hashing", clock=lambda: now[0]) as book:
        book.remember("Ravens nest in the old lighthouse of Skagen", id="ravens", tier="long")
        assert book.injections() == []
        book.injection(conversation="first")
        now[0] += 10
        book.remember("The ferry to Aegina leaves at noon", id="ferry", tier="long")
        book.injection(conversation="first")
        book.injection(conversation="second")
        last, *others = book.injections()
        assert [each.at.timestamp() for each in (last, *others)] == [now[0], now[0], now[0] - 10]
        assert sorted(each.ids for each in (last, *others)) == [("ferry",), ("ferry", "ravens"), ("ravens",)]
        assert len({each.conversation for each in (last, *others)}) == 2
        assert "first" not in str(others)
        assert book.injections(1) == [last]
        book.forget(id="ravens")
        assert "ravens" not in str(book.injections())
        now[0] += TTL_S
        assert book.injections() == []
