"""Which words of a sentence say that a fact holds beside another one."""

from __future__ import annotations

import pytest

from commonplace.graph.kinds import is_added


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("She works for Acme, too.", True),
        ("She works for Acme too", True),
        ("Acme, too, employs her.", True),
        ("She also works for Acme.", True),
        ("We chose Postgres because SQLite was locked too often.", False),
        ("It is too slow for billing.", False),
        ("She works for Acme.", False),
    ],
)
def test_too_adds_where_it_ends_a_clause(sentence: str, expected: bool) -> None:
    """Before an adjective it says how much, and a newer decision must end the older one."""
    assert is_added(sentence) is expected
