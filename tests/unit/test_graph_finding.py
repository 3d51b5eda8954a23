"""Finding in a graph: what becomes of the order in which a search brings texts."""

from __future__ import annotations

from pathlib import Path

import pytest

import commonplace
from commonplace.graph.query import GraphFinder, TextHits, Wanted
from commonplace.graph.views import Times

SAID = "auth.ts depends on token.ts. token.ts depends on clock.ts. clock.ts depends on zone.ts."


@pytest.mark.parametrize("is_reversed", [False, True])
def test_facts_of_one_score_keep_the_order_of_the_search(tmp_path: Path, is_reversed: bool) -> None:
    """A search gives what a worse rank must not overtake the score of that one: ids would shuffle them again."""
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        facts = sorted((each.uuid for each in book.graph.add_episode(SAID).relations), reverse=is_reversed)
        assert len(facts) == 3
        finder = GraphFinder(book._graph_ground(False), lambda *_: TextHits(dict.fromkeys(facts, 0.7)))
        found = finder.relations("what depends on what", 10, Wanted(Times(book._now())))
    assert list(found.ids) == facts
