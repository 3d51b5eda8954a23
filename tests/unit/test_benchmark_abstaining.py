"""What becomes of questions that nothing answers, and how far probabilities can be believed: exact values."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.benchmarks.abstaining import (
    curve,
    lost,
    read_unanswerable,
    reliability_json,
    word_salad,
    words_of,
)
from commonplace.benchmarks.measures import Bin, Judged, answered_with_nothing, reliability
from commonplace.errors import UsageError

ANSWERABLE = [Judged(((0.9, False), (0.8, True))), Judged(((0.6, True),)), Judged(((0.9, False),))]
UNANSWERABLE = [Judged(((0.75, False), (0.5, False))), Judged(((0.4, False),)), Judged(())]


def test_nothing_is_what_a_query_gets_whose_best_hit_is_below_the_threshold() -> None:
    """A query that found nothing at all was answered with nothing at every threshold."""
    shares = [answered_with_nothing(UNANSWERABLE, value) for value in (0.0, 0.4, 0.5, 0.75, 0.8)]
    assert shares == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3, 1.0])


def test_the_curve_has_both_sides_of_every_threshold() -> None:
    """Of the two queries that found something relevant one has it at 0.8, the other at 0.6."""
    found = curve(ANSWERABLE, UNANSWERABLE)
    assert [found[f"first@{value}"] for value in ("0.05", "0.6", "0.65", "0.8", "0.85")] == [1.0, 1.0, 0.5, 0.5, 0.0]
    assert [found[f"nothing@{value}"] for value in ("0.4", "0.45", "0.75", "0.8")] == [0.3333, 0.6667, 0.6667, 1.0]
    assert len(found) == 2 * 19


def test_lost_counts_the_queries_that_had_something_to_lose() -> None:
    assert lost(["a", "b", None, "d"], [("x", "a"), (), (), ("d",)]) == pytest.approx(1 / 3)
    assert lost([None], [()]) == 0.0


def test_reliability_has_bins_of_equal_mass_and_the_mean_distance_between_said_and_was() -> None:
    """|.2 − ½| and |.7 − ½| in halves of two hits each; (.01 + .49 + .36 + .04) / 4."""
    found = reliability([(0.1, False), (0.8, True), (0.3, True), (0.6, False)], bins=2)
    assert found.bins == (
        Bin(0.1, 0.3, 2, pytest.approx(0.2), 0.5),
        Bin(0.6, 0.8, 2, pytest.approx(0.7), 0.5),
    )
    assert found.ece == pytest.approx(0.25)
    assert found.brier == pytest.approx(0.225)
    assert found.constant == pytest.approx(0.25)


def test_reliability_of_few_hits_has_as_many_bins_and_of_none_is_zero() -> None:
    assert [each.hits for each in reliability([(0.5, True), (0.6, False)]).bins] == [1, 1]
    nothing = reliability([])
    assert (nothing.ece, nothing.brier, nothing.constant, nothing.bins) == (0.0, 0.0, 0.0, ())


def test_the_json_form_of_reliability_has_every_bin() -> None:
    assert reliability_json(reliability([(0.25, True)])) == {
        "hits": 1,
        "ece": 0.75,
        "brier": 0.5625,
        "brier_constant": 0.0,
        "bins": [{"from": 0.25, "to": 0.25, "hits": 1, "said": 0.25, "relevant": 1.0}],
    }


def test_word_salad_is_made_of_the_words_alone_and_the_same_for_the_same_seed() -> None:
    words = words_of(["Bees dance, x = 42 _private", "the Ärzte's BEES"])
    assert words == {"bees", "dance", "private", "the", "ärzte"}
    made = word_salad(words, 30, seed=7)
    assert made == word_salad(set(words), 30, seed=7) != word_salad(words, 30, seed=8)
    assert {word for question in made for word in question.split()} <= words
    assert {len(question.split()) for question in made} == set(range(4, 11))
    with pytest.raises(UsageError, match="there are no words"):
        word_salad(set(), 1, seed=0)


def test_questions_are_read_from_plain_lines_and_from_json(tmp_path: Path) -> None:
    file = tmp_path / "strange.txt"
    file.write_text('\ufeffwho won the cup\n\n{"query": "what is a boson", "id": 3}\n', "utf-8")
    assert read_unanswerable(file) == ["who won the cup", "what is a boson"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("\n \n", "holds no question"),
        ('ok\n{"query": ""}\n', r"strange\.txt:2 has `query` ''"),
        ('{"question": "x"}\n', r"strange\.txt:1 has `query` None"),
        ("{nonsense\n", r"strange\.txt:1 is not JSON"),
        (b"\xff\xfe", "is not UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_a_file_without_questions_is_refused_by_its_line(
    tmp_path: Path, text: str | bytes | None, complaint: str
) -> None:
    file = tmp_path / "strange.txt"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=complaint):
        read_unanswerable(file)
