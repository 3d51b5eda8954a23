"""The table of figures: rows are data, and each says whether it reaches what is asked for, or why it does not tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks import figures
from benchmarks.figures import (
    ALONE,
    ASKED,
    SIZES,
    Bound,
    Figure,
    FigureOptions,
    Part,
    labelled_sets,
    parts,
    row,
    sheet,
)

from commonplace.errors import NotFoundError, UsageError

SET = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
SPEED = Figure("speed", "ms", ("some",), lambda told: float(told["p95"]), Bound("<", 150), Bound("<", 10))


def lay_down(directory: Path, *names: str) -> Path:
    directory.mkdir(parents=True)
    for name in names:
        (directory / name).touch()
    return directory


def quality(bm25: float, semantic: float, two_stage: float) -> dict[str, Any]:
    of = {"bm25": bm25, "semantic": semantic, "two-stage": two_stage}
    return {"methods": {name: {"ndcg@10": x, "precision@10": x, "recall@10": x} for name, x in of.items()}}


def test_what_is_asked_for_is_what_the_contracts_and_the_design_ask_for() -> None:
    """The targets are quoted: a slip here would let a figure pass."""
    found = {each.name: each for each in figures.figures(ASKED, ["s"])}
    asked = {
        what: tuple(bound and (bound.sign, bound.value) for bound in (each.contract, each.aim))
        for what, each in found.items()
        if each.contract or each.aim
    }
    assert asked == {
        "index build, 10,000 documents": (("<", 5), ("<", 3)),
        "store and index, 10,000 documents": (("<", 500), None),
        "the same, against the text": (None, ("<", 3)),
        "search p95, 10,000 passages": (("<", 150), ("<", 10)),
        "search p95, 100,000 passages": (None, ("<", 15)),
        "search p95, 1,000,000 passages": (None, ("<", 40)),
        "recall p95, 10,000 memories": (("<", 100), ("<", 25)),
        "store p95, durable, 10,000 memories": (("<", 50), ("<", 40)),
        "graph, depth 2, 100,000 nodes, 500,000 edges, p95": (("<", 200), ("<", 10)),
        "resident, MCP process, 10,000 memories, after 1,000 searches": (("<", 50), ("<", 50)),
        "MCP process, start to first answer": (None, ("<", 150)),
        "library, start of the process to first answer": (None, ("<", 150)),
        "everyday, paraphrase, R@5": (None, ("≥", 0.85)),
        "everyday, paraphrase, R@1": (None, ("≥", 0.55)),
        "everyday, keyword, R@5": (None, ("≥", 0.97)),
        "everyday, plain, R@5": (None, ("≥", 1.0)),
        "everyday, update, R@1": (None, ("≥", 0.70)),
        "everyday, update, newest above overtaken": (None, ("≥", 0.90)),
        "everyday among 1,000, paraphrase, R@5": (None, ("≥", 0.50)),
        "everyday among 1,000, keyword, R@5": (None, ("≥", 0.90)),
        "everyday among 1,000, update, R@1": (None, ("≥", 0.60)),
        "everyday, absent, nothing or weak alone": (None, ("≥", 0.60)),
        "everyday, with an answer, nothing": (None, ("≤", 0.05)),
        "everyday, keyword, likely or sure": (None, ("≥", 0.80)),
        "everyday, plain, likely or sure": (None, ("≥", 0.95)),
        "everyday, update, likely or sure": (None, ("≥", 0.85)),
        "everyday, paraphrase, likely or sure": (None, ("≥", 0.35)),
        "LongMemEval turns, R@5": (None, ("≥", 0.75)),
        "LongMemEval turns, R@10": (None, ("≥", 0.85)),
        "LongMemEval sessions, R@1": (None, ("≥", 0.90)),
        "LongMemEval sessions, all@5": (None, ("≥", 0.92)),
        "store and index of LongMemEval, against the text": (None, ("<", 5)),
        "LoCoMo turns, R@5 (categories 1–4)": (None, ("≥", 0.66)),
        "LoCoMo turns, R@10 (categories 1–4)": (None, ("≥", 0.77)),
        "nDCG@10 on s, gain over the better of bm25 and semantic": ((">", 0), None),
        "nDCG@10 on s, gain over bm25": (None, ("≥", 0)),
        "precision@10 on s": ((">", 0.8), None),
        "recall@10 on s": ((">", 0.7), None),
        "nDCG@10, mean gain over bm25": (None, ("≥", 10)),
    }
    assert not any(each.is_smaller for each in found.values())
    known = ("medquad", "cosqa-dev", "cranfield")
    least = {
        each.name: each.aim for each in figures.figures(ASKED, known) if each.name.removeprefix("nDCG@10 on ") in known
    }
    assert least == {f"nDCG@10 on {name}": Bound("≥", aim) for name, aim in zip(known, (0.60, 0.51, 0.40), strict=True)}


@pytest.mark.parametrize(
    ("measured", "shown", "contract", "aim"),
    [(9.94, "9.94 ms", "yes", "yes"), (10.0, "10 ms", "yes", "no"), (1234.0, "1,234 ms", "no", "no")],
)
def test_a_row_says_which_bounds_are_reached(measured: float, shown: str, contract: str, aim: str) -> None:
    """A bound that is met exactly is not below it."""
    told = row(SPEED, {"some": {"p95": measured}}, {})
    assert (told["contract"], told["aim"]) == ("< 150 ms", "< 10 ms")
    assert (told["measured"], told["contract_reached"], told["aim_reached"]) == (shown, contract, aim)
    assert told["value"] == measured


def test_a_smaller_size_reaches_nothing() -> None:
    """What a hundred passages take says nothing about ten thousand."""
    told = row(replace(SPEED, is_smaller=True), {"some": {"p95": 1.0}}, {})
    assert (told["contract_reached"], told["aim_reached"]) == ("smaller size", "smaller size")


@pytest.mark.parametrize(
    ("measured", "missing", "why"),
    [
        ({}, {"some": "it ended with 2"}, "not measured: it ended with 2"),
        ({"some": {}}, {}, "not measured: this system does not tell p95"),
    ],
)
def test_a_row_that_could_not_be_measured_says_why(
    measured: Mapping[str, Any], missing: Mapping[str, str], why: str
) -> None:
    told = row(SPEED, measured, missing)
    assert (told["measured"], told["value"], told["aim"]) == (why, None, "< 10 ms")
    assert (told["contract_reached"], told["aim_reached"]) == ("–", "–")


def test_gains_are_over_the_better_method_over_bm25_and_in_the_mean() -> None:
    """.55 is 10 % above .5 and 37.5 % above .4, and .45 is 10 % below .5: the mean of +37.5 and −10 is 13.75."""
    measured = {"retrieval a": quality(0.4, 0.5, 0.55), "retrieval b": quality(0.5, 0.3, 0.45)}
    rows = {each.name: row(each, measured, {}) for each in figures.figures(ASKED, ["a", "b"]) if "on " in each.name}
    shown = {what: (told["measured"], told["contract_reached"], told["aim_reached"]) for what, told in rows.items()}
    assert shown["nDCG@10 on a, gain over the better of bm25 and semantic"] == ("+10 %", "yes", "–")
    assert shown["nDCG@10 on a, gain over bm25"] == ("+37.5 %", "–", "yes")
    assert shown["nDCG@10 on b, gain over bm25"] == ("−10 %", "–", "no")
    assert shown["precision@10 on a"] == ("55 %", "no", "–")
    (mean,) = (each for each in figures.figures(ASKED, ["a", "b"]) if "mean" in each.name)
    assert row(mean, measured, {})["measured"] == "+13.8 %"


def test_a_newest_memory_that_is_not_found_is_not_above_an_overtaken_one() -> None:
    (newest,) = (each for each in figures.figures(ASKED, []) if each.name.endswith("newest above overtaken"))
    of_update = {"newest_first": 10, "overtaken_first": 38, "with_overtaken": 50}
    assert row(newest, {ALONE: {"styles": {"update": of_update}}}, {})["measured"] == "20 %"


def test_the_worst_start_counts_in_a_graph_and_large_neighbourhoods_do_not() -> None:
    near = {"entity, 50": {"p95_ms": 3.0}, "hub, 50": {"p95_ms": 9.0}, "hub, 500": {"p95_ms": 90.0}}
    (graph,) = (each for each in figures.figures(ASKED, []) if each.parts == ("graph",))
    assert graph.read({"neighbourhood": near}) == 9.0


def test_every_figure_names_parts_that_are_run_or_say_why_not(tmp_path: Path) -> None:
    """A row without its part would fail the whole table at the end of ten minutes."""
    directory = lay_down(tmp_path / "s", *SET)
    lay_down(tmp_path / "everyday", "memories.jsonl", "questions.jsonl")
    for name in ("locomo10.json", "longmemeval_dev.json"):
        (tmp_path / name).touch()
    for size, sizes in SIZES.items():
        options = FigureOptions(size, (tmp_path,))
        known = {part.name: part for part in parts(options, {"s": directory})}
        wanted = {name for each in figures.figures(sizes, ["s"]) for name in each.parts}
        assert wanted == set(known)
        assert all(bool(part.arguments) != bool(part.why_not) for part in known.values())
        not_run = [name for name, part in known.items() if part.why_not]
        assert (
            not_run
            == {
                "quick": ["recall among", "longmemeval"],
                "small": ["latency 1000000", "longmemeval"],
                "full": [],
            }[size]
        )


def test_labelled_sets_are_found_in_a_directory_or_are_one(tmp_path: Path) -> None:
    one = lay_down(tmp_path / "data" / "one", *SET)
    lay_down(tmp_path / "data" / "other", "corpus.jsonl")
    two = lay_down(tmp_path / "two", *SET)
    assert labelled_sets([tmp_path / "data", two]) == {"one": one, "two": two}
    assert labelled_sets([]) == {}


def test_the_table_is_text_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without data the rows about them say what to name; what fails costs its own rows alone."""

    def measured(part: Part) -> dict[str, Any]:
        if part.name == "memories":
            return {"store": {"p95_ms": 2.0}, "recall": {"p95_ms": 8.0}}
        raise ValueError("no room")

    monkeypatch.setattr(figures, "_measured", measured)
    result = figures.run(FigureOptions())
    assert json.loads(json.dumps(result)) == result
    table = sheet(result)
    cells = {cell[0]: cell[1:] for cell in table.rows}
    assert cells["recall p95, 10,000 memories"] == ("< 100 ms", "< 25 ms", "8 ms", "yes", "yes")
    assert cells["index build, 10,000 documents"] == ("< 5 s", "< 3 s", "not measured: no room", "–", "–")
    assert cells["search p95, 1,000,000 passages"][2] == "not measured: only with --size full"
    assert "--data" in cells["LoCoMo turns, R@10 (categories 1–4)"][2]
    assert {len(line) for line in table.rows} == {len(table.columns)}


def test_unknown_sizes_and_directories_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="size 'huge' is unknown; use one of quick, small, full"):
        FigureOptions("huge")
    with pytest.raises(NotFoundError, match="is not a directory"):
        FigureOptions(data=(tmp_path / "nowhere",))
