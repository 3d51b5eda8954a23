"""Measure whether the turns that answer a question are found in a long conversation.

Each conversation is one store, and each turn with its speaker is one memory. No answers are generated or judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from commonplace.benchmarks import harness, measures
from commonplace.benchmarks.data import Question, read_dialogues
from commonplace.dataclasses import astuple, dataclass
from commonplace.engine import Engine
from commonplace.types import METHODS, Method, Progress

CUTS = (1, 5, 10, 50)
ALL_AT = 5


@dataclass(frozen=True, slots=True)
class ConversationOptions:
    """Options of the benchmark.

    Attributes:
        format: one of `data.FORMATS`.
        limit_conversations: maximum number of conversations, from the start of the file; None is all.
    """

    file: Path
    format: str
    methods: tuple[str, ...] = METHODS
    embedder: str | None = None
    limit_conversations: int | None = None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The result of one question: distinct turns and distinct sessions, best first."""

    question: Question
    turns: Sequence[str]
    sessions: Sequence[str]
    ms: float


def run(options: ConversationOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Ask every question with evidence by every method, and return the figures as JSON."""
    methods = harness.check_methods(options.methods)
    outcomes: dict[Method, list[TurnOutcome]] = {method: [] for method in methods}
    builds: list[harness.Build] = []
    counts = Counter(without_evidence=0, evidence_repaired=0, evidence_unknown=0)
    embedder = ""
    dialogues = islice(read_dialogues(options.file, options.format), options.limit_conversations)
    for number, dialogue in enumerate(dialogues):
        if progress is not None:
            progress(f"conversations, now {dialogue.id}", number, options.limit_conversations or 0)
        questions = [question for question in dialogue.questions if question.turns or question.sessions]
        counts["without_evidence"] += len(dialogue.questions) - len(questions)
        counts["evidence_repaired"] += dialogue.repaired
        counts["evidence_unknown"] += dialogue.unknown
        if not questions:
            continue
        session_of = {turn.id: turn.session for turn in dialogue.turns}
        with harness.workspace(None) as directory:
            builds.append(
                harness.build(directory, harness.Metered(dialogue.turns), embedder=options.embedder, as_memories=True)
            )
            with harness.open_engine(directory, now=dialogue.asked_at) as engine:
                embedder = engine.index_status().embedder
                ask_all(outcomes, engine, questions, session_of)
    corpus = harness.Build(*map(sum, zip(*map(astuple, [harness.Build(), *builds]), strict=True)))
    reports: dict[Method, dict[str, Any]] = {}
    for method, results in outcomes.items():
        by_type: dict[str, list[TurnOutcome]] = {}
        for outcome in results:
            by_type.setdefault(outcome.question.type, []).append(outcome)
        types = {name: figures(by_type[name], is_of_type=True) for name in sorted(by_type)}
        reports[method] = {**figures(results), **harness.latency([outcome.ms for outcome in results]), "by_type": types}
    return {
        "benchmark": "conversations",
        "format": options.format,
        "machine": harness.describe(),
        "embedder": embedder,
        "corpus": {"conversations": len(builds), **corpus.to_dict()},
        "questions": {"asked": len(outcomes[methods[0]]), **counts},
        "methods": reports,
        "peak_memory_bytes": harness.peak_memory_bytes(),
    }


def ask_all(
    outcomes: dict[Method, list[TurnOutcome]], engine: Engine, questions: Sequence[Question], session_of: dict[str, str]
) -> None:
    """Ask the questions by each method, and append the results to `outcomes`."""
    for method, results in outcomes.items():
        answers = harness.ask(engine, [question.text for question in questions], method, harness.owner_of)
        for question, answer in zip(questions, answers, strict=True):
            # A session ranks where its best turn does.
            sessions = tuple(dict.fromkeys(session_of[turn] for turn in answer.ranking))
            results.append(TurnOutcome(question, answer.ranking, sessions, answer.ms))


def figures(outcomes: Sequence[TurnOutcome], *, is_of_type: bool = False) -> dict[str, float | int]:
    """Return means over questions with evidence; uncounted questions are included only in the figures of their type."""
    if not is_of_type:
        outcomes = [outcome for outcome in outcomes if outcome.question.is_counted]
    turns = [(o.turns, o.question.turns) for o in outcomes if o.question.turns]
    sessions = [(o.sessions, o.question.sessions) for o in outcomes if o.question.sessions]
    values = {
        **{f"recall@{k}": measures.mean([measures.recall(*pair, k) for pair in turns]) for k in CUTS},
        **{f"session_recall@{k}": measures.mean([measures.recall(*pair, k) for pair in sessions]) for k in CUTS},
        f"all_evidence@{ALL_AT}": measures.mean([measures.has_all(*pair, ALL_AT) for pair in turns]),
        f"all_sessions@{ALL_AT}": measures.mean([measures.has_all(*pair, ALL_AT) for pair in sessions]),
        "ndcg@10": measures.mean([measures.ndcg(ranked, dict.fromkeys(gold, 1.0), 10) for ranked, gold in turns]),
        "mrr": measures.mean([measures.reciprocal_rank(*pair) for pair in turns]),
    }
    return {"questions": len(outcomes), **{name: round(value, 4) for name, value in values.items()}}
