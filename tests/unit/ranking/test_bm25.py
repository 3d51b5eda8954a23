"""BM25 with values worked out by hand from the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.reference_store.bm25 import saturation, score

from commonplace.ranking.bm25 import NAMES, WEIGHTS, Statistics, TermRows, inverse_document_frequency, lengths_of, pack

NOTHING = Statistics(0, np.zeros(len(NAMES), np.int64), {})


def test_rarity_of_a_term_held_by_half_of_the_texts_is_ln_2() -> None:
    """ln(1 + (1000 - 500 + 0.5) / (500 + 0.5))."""
    assert inverse_document_frequency(1000, 500) == pytest.approx(math.log(2))


def test_rarity_is_never_negative_even_with_inconsistent_counts() -> None:
    """Tail and index are counted at different moments."""
    assert inverse_document_frequency(10, 10) == pytest.approx(math.log(1 + 0.5 / 10.5))
    assert inverse_document_frequency(3, 10) == pytest.approx(math.log(1 + 0.5 / 10.5))
    assert inverse_document_frequency(0, 0) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("count", "length", "mean", "value"),
    [
        (1, 10, 10.0, 1.0),  # 2.2 / (1 + 1.2)
        (2, 10, 10.0, 4.4 / 3.2),
        (1, 20, 10.0, 2.2 / 3.1),  # 1.2 * (0.25 + 0.75 * 2) = 2.1
        (1, 4, 3.5, 2.2 * 0.42944783),  # as Tantivy explains its own score
        (5, 7, 0.0, 11 / 6.2),
        (0, 7, 3.0, 0.0),
    ],
)
def test_saturation_of_a_term_in_a_field(count: int, length: int, mean: float, value: float) -> None:
    """k1 = 1.2 and b = 0.75."""
    assert saturation(count, length, mean) == pytest.approx(value)


def test_score_sums_fields_by_weight_with_one_rarity_and_counts_repeated_query_terms() -> None:
    """One term in title (weight 2, one of two texts) and content (both): it is as common as in the content, twice said.

    A heading inside an answer must not make a common word rare.
    """
    fields = {"title": ["a"], "content": ["a", "b"], "ignored": ["a"]}
    value = score(
        ["a", "a", "zzz"],
        fields,
        weights={"title": 2.0, "content": 1.0},
        statistics=Statistics(2, np.array([2, 4, 0, 0]), {"a": (1, 2, 0, 0)}),
    )
    assert value == pytest.approx(2 * (2 + 1) * math.log(1 + 0.5 / 2.5))


def test_a_text_without_the_terms_scores_zero() -> None:
    """Only passages that hold a term are lexical hits."""
    none = score(["x"], {"content": ["a"]}, weights={"content": 1.0}, statistics=NOTHING)
    assert none == 0.0


TEXTS = [
    {"title": ["appl"], "content": ["appl", "pear", "appl"]},
    {"content": ["pear"] * 90, "summary": ["appl", "tart"]},
    {},
    {"content": ["tart", "\ud800"], "tags": ["appl"]},
]


def test_scores_of_rows_are_those_of_the_formula() -> None:
    """There is one function of the score; the other one here is written out word by word."""
    matches = TermRows([pack(fields) for fields in TEXTS]).find(["appl", "tart", "unheard", "\ud800"])
    statistics = matches.statistics
    assert (statistics.documents, statistics.lengths.tolist()) == (4, [1, 95, 1, 2])
    assert statistics.frequencies == {
        "appl": (1, 1, 1, 1),
        "tart": (0, 1, 0, 1),
        "unheard": (0, 0, 0, 0),
        "\ud800": (0, 1, 0, 0),
    }
    for read in (NAMES, ("content", "tags")):
        weights = {name: WEIGHTS[name] for name in read}
        expected = [score(["appl", "tart", "tart"], text, weights=weights, statistics=statistics) for text in TEXTS]
        assert matches.scores({"appl": 1, "tart": 2}, statistics, read).tolist() == pytest.approx(expected)


def test_a_row_keeps_exact_lengths_and_counts_a_term_at_most_63_times() -> None:
    """More of a term adds less than a fiftieth to its score."""
    row = pack({"content": ["pear"] * 90 + ["appl"] * 63})
    assert lengths_of(row) == (0, 153, 0, 0)
    assert TermRows([row]).find(["pear", "appl"]).counts.tolist() == [63, 63]


def test_passages_that_are_not_here_have_no_part_in_scores() -> None:
    """What was deleted since has an empty row."""
    matches = TermRows([b"", pack(TEXTS[0]), b""]).find(["appl"])
    assert matches.rows.tolist() == [1, 1]
    assert TermRows([]).find(["appl"]).scores({"appl": 1}, NOTHING).tolist() == []


def test_statistics_of_parts_add_up_and_come_apart_again() -> None:
    """Whatever the index holds already, the whole is the same."""
    terms = ["appl", "tart"]
    whole, first, rest = (
        TermRows(list(map(pack, part))).find(terms).statistics for part in (TEXTS, TEXTS[:1], TEXTS[1:])
    )
    for found, expected in ((first + rest, whole), (whole - first, rest)):
        assert (found.documents, found.lengths.tolist()) == (expected.documents, expected.lengths.tolist())
        assert found.frequencies == expected.frequencies


def test_of_many_terms_the_rarest_that_are_held_are_kept() -> None:
    """A pasted page costs no more than a paragraph."""
    statistics = TermRows(list(map(pack, TEXTS))).find(["appl", "tart", "pear", "unheard"]).statistics
    assert statistics.rarest(["appl", "tart", "tart", "pear", "unheard"], 2) == {"pear": 1, "tart": 2}
