"""The tail's inverted index gives the scores of the reference formula."""

from __future__ import annotations

import numpy as np
import pytest

from commonplace.index.contract import LexicalStatistics
from commonplace.ranking.bm25 import score
from commonplace.search.delta import TailTerms
from commonplace.text.tokens import FIELDS, fields_of
from commonplace.types import IndexEntry

TEXTS = ["apple pear apple", "pear", "plum tart with apple", "", "Apple login-service"]
INDEX = LexicalStatistics(7, {"content": 4.0, "title": 1.0}, {"content": {"appl": 2}, "title": {"appl": 1}})


def entry(number: int, text: str) -> IndexEntry:
    title = "An apple a day" if number == 30 else ""
    return IndexEntry(number, number, "n", "memory", "", "", (), title, "", "", "", text, b"", b"")


ENTRIES = [entry(10 * place, text) for place, text in enumerate(TEXTS, start=1)]


def test_scores_are_those_of_bm25_over_index_and_tail_together() -> None:
    """A passage must not rank otherwise because the index does not hold it yet."""
    held = TailTerms()
    held.add(ENTRIES[:2])
    held.add(ENTRIES[2:])
    assert held.last == 50
    numbers = np.array([10, 30, 40, 50])
    scores, statistics = held.score(numbers, ["appl", "tart"], INDEX)
    assert statistics.documents == 11
    assert statistics.frequencies["content"] == {"appl": 5, "tart": 1}
    assert statistics.frequencies["title"] == {"appl": 2, "tart": 0}
    expected = [
        score(
            ["appl", "tart"],
            fields_of(ENTRIES[number // 10 - 1]),
            weights=FIELDS,
            documents=statistics.documents,
            mean_lengths=statistics.mean_lengths,
            frequencies=statistics.frequencies,
        )
        for number in numbers.tolist()
    ]
    assert scores == pytest.approx(expected, rel=1e-6)
    assert scores[2] == 0.0


def test_the_order_in_which_passages_were_taken_does_not_matter() -> None:
    """Passages of the past are read as they are asked for, not as they were written."""
    numbers = np.array([10, 20, 30, 40, 50])
    ordered, shuffled = TailTerms(), TailTerms()
    ordered.add(ENTRIES)
    for place in (3, 0, 4):
        shuffled.add([ENTRIES[place]])
    assert shuffled.missing(numbers).tolist() == [20, 30]
    shuffled.add([ENTRIES[2], ENTRIES[1]])
    assert shuffled.missing(numbers).tolist() == []
    assert len(shuffled) == 5
    for asked in (numbers, numbers[1:4]):
        expected, of_ordered = ordered.score(asked, ["appl", "tart"], INDEX)
        scores, statistics = shuffled.score(asked, ["appl", "tart"], INDEX)
        assert scores.tolist() == expected.tolist()
        assert statistics == of_ordered


def test_passages_that_are_not_held_and_terms_that_nobody_knows_score_nothing() -> None:
    """Another thread may read an older state of the store, in which a passage since deleted still stands."""
    held = TailTerms()
    assert held.last == 0
    scores, _ = held.score(np.array([], dtype=np.int64), ["appl"], INDEX)
    assert scores.tolist() == []
    held.add(ENTRIES[:2])
    scores, statistics = held.score(np.array([5, 10, 15]), ["appl", "unheard"], INDEX)
    assert scores[[0, 2]].tolist() == [0.0, 0.0]
    assert scores[1] > 0.0
    assert statistics.documents == 8
