"""How much people find of their own memories, measured from end to end on a few whose answers are plain."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from commonplace.benchmarks import recall
from commonplace.benchmarks.data import PersonalQuestion
from commonplace.benchmarks.recall import RecallOptions, RecallOutcome, figures
from commonplace.benchmarks.report import sheets
from commonplace.errors import UsageError
from commonplace.search.result import is_likely
from commonplace.types import Hit

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

MEMORIES = (
    {"user": "ada", "id": "m1", "at": "2026-01-05T19:34:00", "content": "The badger burrow is at Long Copse."},
    {"user": "ada", "id": "m2", "at": "2026-03-05T19:34:00", "content": "The badger burrow moved to Mill Lane."},
    {"user": "ada", "id": "m3", "at": "2026-02-01T08:00:00", "content": "Trumpet lessons begin on Thursdays."},
    {"user": "bo", "id": "m1", "at": "2026-01-01T08:00:00", "content": "Bo roasts chestnuts in November."},
)
QUESTIONS: tuple[dict[str, Any], ...] = (
    {"user": "ada", "id": "q1", "question": "trumpet lessons Thursdays", "style": "keyword", "relevant": ["m3"]},
    {
        "user": "ada",
        "id": "q2",
        "question": "Where is the badger burrow?",
        "style": "update",
        "relevant": ["m2"],
        "stale": ["m1"],
    },
    {"user": "bo", "id": "q1", "question": "Which trumpet is sold?", "style": "absent", "relevant": [], "stale": []},
)


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def everyday(tmp_path: Path) -> RecallOptions:
    memories = write(tmp_path / "memories.jsonl", ({**row, "origin": "user"} for row in MEMORIES))
    return RecallOptions(memories, write(tmp_path / "questions.jsonl", QUESTIONS))


def outcome(ranking: str, relevant: str = "n", stale: str = "o", *, has_likely: bool = True) -> RecallOutcome:
    question = PersonalQuestion("q", "?", "update", tuple(relevant), tuple(stale))
    return RecallOutcome(question, tuple(ranking), relevant[-1:], has_likely, 1.0)


def test_each_person_finds_what_is_theirs(everyday: RecallOptions) -> None:
    """Bo has no trumpet: what another remembers must not answer."""
    result = recall.run(everyday)
    assert result["corpus"] | {"build_s": 0} == {"people": 2, "memories": 4, "others_each": 0, "build_s": 0}
    assert list(result["styles"]) == ["keyword", "update", "absent", "all with an answer"]
    keyword, absent = result["styles"]["keyword"], result["styles"]["absent"]
    assert (keyword["recall@1"], keyword["recall@5"], keyword["nothing"], keyword["likely_or_sure"]) == (1, 1, 0, 1)
    assert (absent["nothing_or_weak"], "recall@1" in absent) == (1, False)
    assert result["styles"]["all with an answer"]["questions"] == 2
    assert result["styles"]["update"]["with_overtaken"] == 1


def test_other_talk_is_stored_beside_without_times(
    everyday: RecallOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "DISTRACTORS", 10)
    turns = [{"speaker": "Cy", "text": f"Turn {number} is about kites.", "dia_id": f"D1:{number}"} for number in (1, 2)]
    talk = tmp_path / "locomo.json"
    talk.write_text(json.dumps([{"sample_id": "c", "conversation": {"session_1": turns}, "qa": []}]), "utf-8")
    lines = write(tmp_path / "talk.jsonl", [{"content": f"Line {number} is about kites."} for number in range(12)])
    for among, others in ((talk, 2), (lines, 10)):
        options = RecallOptions(everyday.memories, everyday.questions, among)
        result = recall.run(options)
        assert (result["corpus"]["others_each"], result["styles"]["keyword"]["recall@1"]) == (others, 1)
    (styles,) = (sheet for sheet in sheets(result) if sheet.title == "Styles")
    assert styles.columns[1:] == tuple(result["styles"])


def test_the_figures_are_shares_and_counts() -> None:
    """Of five questions: newest above, overtaken above, overtaken alone, neither, and nothing at all."""
    found = figures(
        [outcome("xno"), outcome("on"), outcome("o", has_likely=False), outcome("x"), outcome("", has_likely=False)]
    )
    assert found == {
        "questions": 5,
        "recall@1": 0.0,
        "recall@5": 0.4,
        "nothing": 0.2,
        "nothing_or_weak": 0.4,
        "likely_or_sure": 0.6,
        "with_overtaken": 5,
        "newest_first": 1,
        "overtaken_first": 2,
    }
    assert figures([outcome("xn", stale="")])["with_overtaken"] == 0


def test_the_newest_of_several_relevant_memories_counts() -> None:
    """An older one of two that are both true says nothing about the order."""
    assert not figures([outcome("aon", relevant="an")])["newest_first"]
    assert figures([outcome("ano", relevant="an")])["newest_first"]


@pytest.mark.parametrize(("word", "likely"), [("sure", True), ("likely", True), ("weak", False), (None, True)])
def test_a_hit_without_a_word_passed_the_cut(word: str | None, *, likely: bool) -> None:
    hit: Any = SimpleNamespace(confidence=word)
    assert is_likely(hit) is likely
    assert is_likely(Hit("i", "o", "memory", "text", 0.9, {}))


def test_the_command_prints_a_row_for_each_style(everyday: RecallOptions, bare: Program) -> None:
    files = (str(everyday.memories), str(everyday.questions))
    printed = bare.run("benchmark", "recall", *files).stdout
    (line,) = (line for line in printed.splitlines() if line.startswith("  questions"))
    assert line.split()[1:] == ["1", "1", "1", "2"]
    assert bare.json("benchmark", "recall", *files, "--embedder", "hashing")["embedder"].startswith("hashing")


def test_vectors_that_were_kept_give_the_same_figures(everyday: RecallOptions, bare: Program) -> None:
    files = (str(everyday.memories), str(everyday.questions), "--vectors-cache", "vectors")
    first, again = (bare.json("benchmark", "recall", *files) for _ in range(2))
    assert first["styles"] == again["styles"]
    with closing(sqlite3.connect(bare.project / "vectors" / "vectors.db")) as file:
        (kept,) = file.execute("SELECT count(*) FROM vectors").fetchone()
    assert kept >= len(MEMORIES) + len(QUESTIONS)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "holds no question"),
        ([{"user": "ada"}], ":1 has `question` None"),
        ([QUESTIONS[0] | {"relevant": ["m9"]}], ":1 has in `relevant` 'm9'; expected the id of a memory of the same"),
        ([QUESTIONS[0] | {"stale": "m1"}], ":1 has `stale` 'm1'; expected a list of ids"),
        ([QUESTIONS[0] | {"user": "cy"}], ":1 has in `relevant` 'm3'"),
    ],
)
def test_a_wrong_question_is_refused_by_its_line(
    everyday: RecallOptions, rows: list[dict[str, Any]], said: str
) -> None:
    write(everyday.questions, rows)
    with pytest.raises(UsageError) as caught:
        recall.run(everyday)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{", "is not JSON"),
        ("[]", "holds no list of entries"),
        ("[1]", "is not a locomo entry"),
        ('{"text": 7}', "`content`"),
    ],
)
def test_wrong_talk_is_refused(everyday: RecallOptions, tmp_path: Path, text: str, said: str) -> None:
    talk = tmp_path / "talk"
    talk.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=said):
        recall.run(RecallOptions(everyday.memories, everyday.questions, talk))
