"""The three benchmarks from end to end, on data small enough to know every answer."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmarks import baselines
from benchmarks.significance import main as significance
from click.testing import CliRunner

import commonplace
from commonplace.benchmarks import conversations, latency, report, retrieval
from commonplace.benchmarks.conversations import ConversationOptions
from commonplace.benchmarks.latency import LatencyOptions
from commonplace.benchmarks.report import sheets
from commonplace.benchmarks.retrieval import RetrievalOptions
from commonplace.errors import MissingExtraError, UsageError
from commonplace.types import METHODS

TEXTS = {
    "bees": "Honey bees dance to tell each other where the nectar is.",
    "tides": "The moon pulls the sea and makes the tides rise and fall.",
    "bread": "Sourdough bread rises because wild yeast makes gas.",
    "steel": "Steel is iron with a little carbon, quenched and tempered.",
    "glass": "Window glass is melted from sand, soda and lime.",
    "violin": "A violin string vibrates when the bow sticks and slips.",
    "chess": "In chess the knight jumps over other pieces.",
    "volcano": "A volcano erupts when magma finds a way to the surface.",
    "penguin": "Emperor penguins keep their egg warm on their feet.",
    "compass": "The needle of a compass points to magnetic north.",
    "coffee": "Espresso is brewed by forcing hot water through ground coffee.",
    "clock": "A pendulum clock keeps time by the length of its pendulum.",
}
QUESTIONS = {
    "q1": ("where do honey bees find nectar", {"bees": 2}),
    "q2": ("moon and tides", {"tides": 1, "bread": 0}),
    "q3": ("pendulum clock or magnetic compass", {"clock": 1, "compass": 1}),
    "q4": ("unjudged question", {}),
}


@pytest.fixture
def labelled(tmp_path: Path) -> RetrievalOptions:
    corpus, queries, qrels = tmp_path / "corpus.jsonl", tmp_path / "queries.jsonl", tmp_path / "qrels.tsv"
    corpus.write_text("".join(json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in TEXTS.items()), "utf-8")
    queries.write_text(
        "".join(json.dumps({"_id": q, "text": text}) + "\n" for q, (text, _) in QUESTIONS.items()), "utf-8"
    )
    lines = [f"{q}\t{id_}\t{grade}\n" for q, (_, grades) in QUESTIONS.items() for id_, grade in grades.items()]
    qrels.write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), "utf-8")
    return RetrievalOptions(queries, corpus, qrels)


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """Return the store of a project with a page for each text."""
    project = tmp_path / "project"
    project.mkdir()
    for name, text in TEXTS.items():
        (project / f"{name}.md").write_text(f"# {name}\n\n{text}\n", "utf-8")
    with commonplace.open(project / ".commonplace") as book:
        book.index(project)
    return project / ".commonplace"


def test_judgements_of_another_corpus_are_refused(labelled: RetrievalOptions, tmp_path: Path) -> None:
    """Every figure would be 0, as if nothing were ever found."""
    other = tmp_path / "other.tsv"
    other.write_text("q1\tPLAIN-2\t1\nq2\tPLAIN-3\t1\n", "utf-8")
    with pytest.raises(UsageError, match=r"judges 'PLAIN-2' and 1 others relevant, and .*corpus\.jsonl has none"):
        retrieval.run(replace(labelled, qrels=other))


def test_retrieval_finds_every_relevant_document_by_words(labelled: RetrievalOptions) -> None:
    """Each answer shares words with its question alone, so BM25 must put it first and the figures must be perfect."""
    result = retrieval.run(labelled)
    assert list(result["methods"]) == list(METHODS)
    for method in ("bm25", "two-stage"):
        figures = result["methods"][method]
        assert (figures["ndcg@10"], figures["recall@10"], figures["recall@100"], figures["mrr"]) == (1.0, 1.0, 1.0, 1.0)
        assert figures["precision@10"] == pytest.approx((0.1 + 0.1 + 0.2) / 3, abs=1e-4)
    assert result["queries"] == {"asked": 3, "without_relevant": 1}
    assert result["corpus"]["documents"] == len(TEXTS)
    assert result["corpus"]["text_bytes"] == sum(len(text) for text in TEXTS.values())
    assert result["corpus"]["index_bytes"] > 0
    assert result["peak_memory_bytes"] > 0


def test_queries_alone_ask_the_current_index_for_paths(indexed: Path, tmp_path: Path) -> None:
    """A project's own questions are the only measure of how well its own files are found."""
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"query": "what makes bread rise", "relevant": ["./bread.md"]}\n', "utf-8")
    options = RetrievalOptions(queries, methods=("bm25",), store=indexed)
    result = retrieval.run(options)
    assert result["methods"]["bm25"]["mrr"] == 1.0
    assert "build_s" not in result["corpus"]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (
            '{"query": "bees", "relevant": ["bees.md", "wasps.md"]}\n\n{"query": "ants", "relevant": ["./ants.md"]}\n',
            "'bees' names wasps.md, 'ants' names ants.md",
        ),
        ('{"query": " ", "relevant": ["bees.md"]}\n', r"line 1 of .*queries\.jsonl has no query"),
    ],
)
def test_question_that_no_search_can_answer_is_refused_by_its_line(tmp_path: Path, lines: str, complaint: str) -> None:
    """A path with a slip in it would count as a miss of the search, and nobody would look for it."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "bees.md").write_text(f"# Bees\n\n{TEXTS['bees']}\n", "utf-8")
    with commonplace.open(project / ".commonplace") as book:
        book.index(project)
    queries = tmp_path / "queries.jsonl"
    queries.write_text(lines, "utf-8")
    with pytest.raises(UsageError, match=complaint):
        retrieval.run(RetrievalOptions(queries, methods=("bm25",), store=project / ".commonplace"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"methods": ("bm25", "magic")}, "method 'magic' is unknown; use some of bm25, semantic, two-stage"),
        ({"methods": ()}, "no method was named"),
        ({"qrels": None}, "a corpus needs judgements"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_built(
    labelled: RetrievalOptions, change: dict[str, Any], complaint: str
) -> None:
    """The remedy is in the message."""
    with pytest.raises(UsageError, match=complaint):
        retrieval.run(replace(labelled, **change))


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    names = list(TEXTS)
    sessions: dict[str, Any] = {
        f"session_{number}": [
            {"speaker": "Ada" if turn % 2 else "Ben", "dia_id": f"D{number}:{turn}", "text": TEXTS[name]}
            for turn, name in enumerate(names[(number - 1) * 6 : number * 6], start=1)
        ]
        for number in (1, 2)
    }
    dates = {f"session_{number}_date_time": f"1:0{number} pm on {number} May, 2023" for number in (1, 2)}
    questions = [
        {"question": "where do honey bees find nectar", "evidence": ["D1:1"], "category": 4},
        {"question": "pendulum clock or magnetic compass", "evidence": ["D2:6; D2:4"], "category": 1},
        {"question": "which volcano erupts", "evidence": ["D2:2", "D7:1"], "category": 5},
        {"question": "nobody knows", "evidence": [], "category": 3},
    ]
    path = tmp_path / "locomo.json"
    entry = {"sample_id": "conv-1", "conversation": sessions | dates, "qa": questions}
    path.write_text(json.dumps([entry]), "utf-8")
    return path


def test_conversations_find_the_evidence_by_turn_and_by_session(conversation: Path) -> None:
    """Two questions count, one with two turns of evidence: the first place can hold one of them, 0.75 in the mean."""
    result = conversations.run(ConversationOptions(conversation, "locomo", methods=("bm25",)))
    figures = result["methods"]["bm25"]
    assert figures["questions"] == 2
    assert figures["recall@1"] == 0.75
    assert (figures["recall@5"], figures["recall@10"], figures["recall@50"]) == (1.0, 1.0, 1.0)
    assert (figures["session_recall@1"], figures["session_recall@5"]) == (1.0, 1.0)
    assert (figures["all_evidence@5"], figures["all_sessions@5"], figures["mrr"]) == (1.0, 1.0, 1.0)
    assert {name: row["questions"] for name, row in figures["by_type"].items()} == {
        "adversarial": 1,
        "multi-hop": 1,
        "single-hop": 1,
    }
    assert result["questions"] == {
        "asked": 3,
        "without_evidence": 1,
        "evidence_repaired": 1,
        "evidence_unknown": 1,
    }
    assert result["corpus"]["conversations"] == 1
    assert result["corpus"]["documents"] == len(TEXTS)


def test_every_longmemeval_question_has_a_haystack_of_its_own(tmp_path: Path) -> None:
    """What one question's haystack holds must not help, or hide, another's answer."""
    names = list(TEXTS)
    entries = [
        {
            "question_id": f"q{number}",
            "question_type": "single-session-user",
            "question": "tell me about honey bees and nectar",
            "question_date": "2023/05/30 (Tue) 23:40",
            "answer_session_ids": ["s0"],
            "haystack_session_ids": ["s0", "s1"],
            "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
            "haystack_sessions": [
                [{"role": "user", "content": TEXTS[name], "has_answer": True}],
                [{"role": "assistant", "content": TEXTS[name]} for name in names[6:]],
            ],
        }
        for number, name in enumerate(["bees", "chess"])
    ]
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps(entries), "utf-8")
    result = conversations.run(ConversationOptions(path, "longmemeval", methods=("bm25",)))
    assert result["methods"]["bm25"]["recall@5"] == 0.5
    assert result["corpus"]["conversations"] == 2


def test_latency_reports_stages_processes_and_simpler_means() -> None:
    """The structure is what later runs are compared by; times are never asserted."""
    result = baselines.run(LatencyOptions(passages=200, queries=6, methods=("two-stage", "bm25")))
    times = {"p50_ms", "p95_ms", "max_ms"}
    assert result["corpus"]["documents"] == 200
    assert result["corpus"]["is_made"]
    assert set(result["methods"]) == {"two-stage", "bm25"}
    for figures in result["methods"].values():
        assert times <= set(figures)
        assert figures["stages"]
        assert all(set(stage) == times for stage in figures["stages"].values())
    process = result["process"]
    assert process["searches"] == 6
    assert process["resident_bytes"] > 5_000_000
    assert process["first_answer_ms"] > process["bare_python_ms"] > 0
    assert set(result["baselines"]) == {"tantivy", "fts5", "numpy"}
    assert {name: set(row) for name, row in result["ratios"].items()} == {
        "tantivy": {"build", "p50", "p95"},
        "fts5": {"build", "p50", "p95"},
        "numpy": {"p50", "p95"},
    }


def test_latency_takes_a_corpus_of_ones_own(labelled: RetrievalOptions) -> None:
    """Made text is a stand-in; real text is better where there is some."""
    result = latency.run(LatencyOptions(corpus=labelled.corpus, queries=3))
    assert result["corpus"]["documents"] == len(TEXTS)
    assert not result["corpus"]["is_made"]


def test_latency_refuses_what_it_cannot_measure(tmp_path: Path) -> None:
    """No passages, no questions, or a corpus without words."""
    with pytest.raises(UsageError, match="passages is 0"):
        LatencyOptions(passages=0)
    empty = tmp_path / "corpus.jsonl"
    empty.write_text('{"_id": "a", "text": "?"}\n', "utf-8")
    with pytest.raises(UsageError, match="holds no text to ask about"):
        latency.run(LatencyOptions(corpus=empty))


def test_every_result_can_be_shown_and_written_as_json(labelled: RetrievalOptions, conversation: Path) -> None:
    """Each table is rectangular, and nothing in a result is more than JSON can say."""
    results = [
        retrieval.run(labelled),
        conversations.run(ConversationOptions(conversation, "locomo", methods=("bm25", "two-stage"))),
        baselines.run(LatencyOptions(passages=50, queries=2)),
    ]
    for result in results:
        assert json.loads(json.dumps(result)) == result
        tables = sheets(result)
        assert tables
        for table in tables:
            assert table.rows
            assert {len(row) for row in table.rows} == {len(table.columns)}


def test_plot_without_matplotlib_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is optional; the command that installs it is in the message."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'commonplace\[plot\]'"):
        report.check_plot(tmp_path / "out.png")


def test_what_each_method_made_of_each_query_can_be_looked_at(labelled: RetrievalOptions, tmp_path: Path) -> None:
    """A mean hides which questions fail."""
    target = tmp_path / "queries.out.jsonl"
    result = retrieval.run(replace(labelled, methods=("bm25", "two-stage"), per_query=target))
    rows = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert [(row["id"], row["query"], row["relevant"]) for row in rows] == [
        (id_, *QUESTIONS[id_]) for id_ in ("q1", "q2", "q3")
    ]
    assert all(list(row["methods"]) == ["bm25", "two-stage"] for row in rows)
    found = rows[0]["methods"]["bm25"]
    assert (found["first_relevant"], found["ndcg@10"], found["recall@10"]) == (1, 1.0, 1.0)
    assert (found["hits"][0]["id"], found["hits"][0]["grade"]) == ("bees", 2)
    assert found["ms"] > 0.0
    for method, figures in result["methods"].items():
        mean = sum(row["methods"][method]["ndcg@10"] for row in rows) / len(rows)
        assert figures["ndcg@10"] == pytest.approx(mean, abs=1e-4)


def test_a_query_that_finds_nothing_has_no_rank(labelled: RetrievalOptions, tmp_path: Path) -> None:
    labelled.queries.write_text('{"_id": "q1", "text": "xyzzy"}\n', "utf-8")
    target = tmp_path / "out.jsonl"
    retrieval.run(replace(labelled, methods=("bm25",), per_query=target))
    found = json.loads(target.read_text("utf-8"))["methods"]["bm25"]
    assert (found["first_relevant"], found["ndcg@10"], found["hits"]) == (None, 0.0, [])


def test_a_file_for_queries_that_cannot_be_written_is_refused_first(labelled: RetrievalOptions, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        retrieval.run(replace(labelled, per_query=tmp_path / "nowhere" / "out.jsonl"))


def test_recall_is_a_curve_and_methods_are_compared_by_what_was_written(
    labelled: RetrievalOptions, tmp_path: Path
) -> None:
    target = tmp_path / "queries.out.jsonl"
    by_words = retrieval.run(replace(labelled, per_query=target))["curves"]["bm25"]
    assert list(by_words) == [f"recall@{k}" for k in (1, 2, 3, 5, 10, 20, 50, 100)]
    assert (by_words["recall@1"], by_words["recall@2"]) == (pytest.approx(2.5 / 3, abs=1e-4), 1.0)
    done = CliRunner().invoke(significance, [str(target), "--json"])
    assert done.exit_code == 0, done.output
    assert [(row["method"], row["against"], row["measure"]) for row in json.loads(done.stdout)["differences"]] == [
        (method, against, measure)
        for method, against in (("semantic", "bm25"), ("two-stage", "bm25"), ("two-stage", "semantic"))
        for measure in ("ndcg@10", "recall@10")
    ]


class Axes:
    """Notes what is drawn."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **_: self.drawn.append((name, given))


class Figure:
    """Stands for matplotlib's."""

    made: list[Figure]

    def __init__(self, **_: Any) -> None:
        self.made.append(self)
        self.axes: list[Axes] = []
        self.canvas = self
        self.saved: Path | None = None

    def get_supported_filetypes(self) -> dict[str, str]:
        return {"png": ""}

    def add_subplot(self) -> Axes:
        return self.subplots(1, 1)[0]

    def subplots(self, rows: int, columns: int) -> list[Axes]:
        self.axes = [Axes() for _ in range(rows * columns)]
        return self.axes

    def suptitle(self, text: str) -> None:
        assert text.startswith("benchmark ")

    def savefig(self, target: Path) -> None:
        self.saved = target


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    Figure.made = []
    module = ModuleType("matplotlib.figure")
    module.Figure = Figure  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "matplotlib", ModuleType("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", module)
    return Figure.made


def test_a_plot_of_retrieval_has_measures_curves_and_quality_against_latency(
    labelled: RetrievalOptions, tmp_path: Path, figures: list[Figure]
) -> None:
    result = retrieval.run(replace(labelled, methods=("bm25", "two-stage")))
    report.plot(result, tmp_path / "out.png")
    bars, curve, trade = figures[-1].axes
    assert figures[-1].saved == tmp_path / "out.png"
    assert [name for name, _ in bars.drawn].count("bar") == 2
    lines = [given for name, given in curve.drawn if name == "plot"]
    assert lines[0] == ([1, 2, 3, 5, 10, 20, 50, 100], list(result["curves"]["bm25"].values()))
    points = [given for name, given in trade.drawn if name == "errorbar"]
    assert points == [([row["p50_ms"]], [row["ndcg@10"]]) for row in result["methods"].values()]


def test_a_plot_of_latencies_has_bars_alone(tmp_path: Path, figures: list[Figure]) -> None:
    report.plot(latency.run(LatencyOptions(passages=50, queries=2)), tmp_path / "out.png")
    (bars,) = figures[-1].axes
    assert [given[1] for name, given in bars.drawn if name == "bar"]
