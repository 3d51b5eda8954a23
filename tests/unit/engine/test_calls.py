"""What happens around the calls of an engine, whichever call it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import commonplace
from commonplace.errors import NotFoundError


def test_markdown_and_vectors_follow_every_call_that_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes through a call that forgets it waits for a page until the next one."""
    with commonplace.open(tmp_path) as book:
        one, other = book.remember("Billing uses Postgres").id, book.remember("The kettle is red").id
        followed: list[str] = []
        monkeypatch.setattr(book._runtime, "after_write", lambda: followed.append("followed"))
        calls = (
            lambda: book.update(one, source="Ann"),
            lambda: book.update(one, tier="long"),
            lambda: book.touch(one),
            lambda: book.review(one),
            lambda: book.link(one, other),
            lambda: book.unlink(one, other),
            lambda: book.archive(one),
            lambda: book.restore_memory(one),
            lambda: book.decay("short"),
        )
        for number, call in enumerate(calls, 1):
            call()
            assert len(followed) == number
        with pytest.raises(NotFoundError):
            book.archive("nobody")
        assert len(followed) == len(calls)


def test_a_version_is_found_from_when_it_was_known(tmp_path: Path) -> None:
    now = [1_790_000_000.0]
    with commonplace.open(tmp_path, clock=lambda: now[0]) as book:
        id_ = book.remember("Billing uses Postgres").id
        now[0] += 100.0
        book.update(id_, "Billing uses SQLite")
        assert book.get(id_, as_of=now[0] - 50.0).content == "Billing uses Postgres"
        assert book.get(id_, as_of=now[0]).content == "Billing uses SQLite"
        with pytest.raises(NotFoundError, match="known at"):
            book.get(id_, as_of=now[0] - 101.0)


def test_an_episode_given_again_without_a_time_is_the_same(tmp_path: Path) -> None:
    now = [1_790_000_000.0]
    with commonplace.open(tmp_path, clock=lambda: now[0]) as book:
        first = book.graph.add_episode("Ann works for Acme.", uuid="e")
        now[0] += 1_000.0
        assert (first.outcome, book.graph.add_episode("Ann works for Acme.", uuid="e").outcome) == (
            "added",
            "unchanged",
        )
        assert book.graph.add_episode("Ann works for Acme.", uuid="e", reference_time=now[0]).outcome != "unchanged"
