"""Measure what consolidation does to what is found in a conversation.

Its turns are remembered at their own times. Then all agents run over a copy of that store, and all but decay over
another, and the same questions are asked of the three.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import click

import commonplace
from benchmarks.output import FILE, embedder_option, json_option, show
from commonplace.benchmarks.conversations import TurnOutcome, ask_all, figures
from commonplace.benchmarks.data import FORMATS, Dialogue, read_dialogues
from commonplace.benchmarks.harness import as_memory, check_methods, describe, open_engine, workspace
from commonplace.consolidation.cluster import RELATED
from commonplace.consolidation.results import MergeResult, PromotionResult
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.retention import DAY_S
from commonplace.types import METHODS, Method
from commonplace.types.ledger import AGENTS, Agent

BEFORE: Final = "before"
WAYS: Final[Mapping[str, tuple[Agent, ...]]] = {
    "all": AGENTS,
    "all_but_decay": tuple(agent for agent in AGENTS if agent != "decay"),
}
"""Which agents run."""

_MOST_DAYS: Final = 36_500


@dataclass(frozen=True, slots=True)
class Life:
    """How the memories of a conversation are lived with.

    Attributes:
        days: from the last turn to the time when the agents run and the questions are asked.
        recalls: whether each turn is recalled by before its session is remembered, as an agent does that looks for what
            it knows before it answers.

    Raises:
        UsageError: the days are below 0, or too many.
    """

    days: float = 1.0
    recalls: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.days <= _MOST_DAYS:
            raise UsageError(f"the days are {self.days}", remedy=f"give 0 to {_MOST_DAYS:,}")


def consolidated(
    directory: Path, dialogue: Dialogue, life: Life, embedder: str | None, ask: Callable[[str, Engine], None]
) -> dict[str, Counter[str]]:
    """Remember a conversation, run agents over copies of the store, let each be asked, and return what the agents did.

    Args:
        directory: where the stores are made.
        ask: is given "before" or one of `WAYS`, and the store with its clock at the time of the agents.

    Raises:
        UsageError: a turn has no time.
    """
    now = _remember(directory / BEFORE, dialogue, life, embedder)
    with open_engine(directory / BEFORE, embedder=embedder, now=now) as engine:
        ask(BEFORE, engine)
    changes = {}
    for strategy, agents in WAYS.items():
        shutil.copytree(directory / BEFORE, directory / strategy)
        with open_engine(directory / strategy, embedder=embedder, now=now) as engine:
            changes[strategy] = _run(engine, agents)
            ask(strategy, engine)
    return changes


def _remember(directory: Path, dialogue: Dialogue, life: Life, embedder: str | None) -> float:
    """Remember each turn at its time, and return when the agents run."""
    timed = [(turn.at, turn) for turn in dialogue.turns if turn.at is not None]
    if len(timed) < len(dialogue.turns):
        raise UsageError(f"turns of {dialogue.id} have no time", remedy="give conversations with times")
    clock = [0.0]
    with commonplace.open(directory, embedder=embedder, clock=lambda: clock[0]) as engine:
        for at, pairs in groupby(sorted(timed, key=itemgetter(0)), key=itemgetter(0)):
            clock[0] = at
            turns = [turn for _, turn in pairs]
            if life.recalls:
                for turn in turns:
                    engine.recall(turn.text)
            engine.remember_many([as_memory(turn) for turn in turns])
    return clock[0] + life.days * DAY_S


def _run(engine: Engine, agents: tuple[Agent, ...]) -> Counter[str]:
    """Let agents run without a limit, and count what came of it."""
    results = engine.consolidate(agents, rate_limit=0).results
    merged = [result for result in results["merge"] if isinstance(result, MergeResult) and result.success]
    promoted = [result for result in results["promote"] if isinstance(result, PromotionResult) and result.success]
    sources = sum(len(result.source_ids) for result in merged)
    return Counter(
        archived=engine.memory_counts().archived - sources,
        merged=sources,
        linked=sum(link.type == RELATED for link in engine.links()),
        promoted=len(promoted),
        proposed=len(engine.ledger.query()),
    )


def run(
    file: Path,
    form: str,
    life: Life,
    methods: tuple[str, ...] = METHODS,
    embedder: str | None = None,
    limit_conversations: int | None = None,
) -> dict[str, Any]:
    """Return the JSON form of what is found before and after, by method, and of what the agents did."""
    chosen = check_methods(methods)
    after: dict[str, dict[Method, list[TurnOutcome]]] = {}
    changes: dict[str, Counter[str]] = {strategy: Counter() for strategy in WAYS}
    for dialogue in islice(read_dialogues(file, form), limit_conversations):
        questions = [question for question in dialogue.questions if question.turns or question.sessions]
        session_of = {turn.id: turn.session for turn in dialogue.turns}

        def ask(step: str, engine: Engine) -> None:
            outcomes = after.setdefault(step, {method: [] for method in chosen})
            ask_all(outcomes, engine, questions, session_of)  # noqa: B023 - called before the next conversation

        with workspace(None) as directory:
            for strategy, counts in consolidated(directory, dialogue, life, embedder, ask).items():
                changes[strategy].update(counts)
    return {
        "machine": describe(),
        "days_later": life.days,
        "recalling": life.recalls,
        "done": {strategy: dict(counts) for strategy, counts in changes.items()},
        "recall": {
            step: {method: figures(answers) for method, answers in outcomes.items()} for step, outcomes in after.items()
        },
    }


@click.command()
@click.argument("file", type=FILE)
@click.option("--format", "form", type=click.Choice(tuple(FORMATS)), required=True, help="How FILE is laid out.")
@click.option("--methods", default=",".join(METHODS), show_default=True, help="Methods, separated by commas.")
@click.option("--limit-conversations", type=click.IntRange(min=1), metavar="N", help="Take only the first so many.")
@click.option("--days-later", type=float, default=1.0, show_default=True, metavar="N", help="Days after the end.")
@click.option("--recalling", is_flag=True, help="Recall by each turn before its session is remembered.")
@embedder_option
@json_option
def main(*, days_later: float, recalling: bool, methods: str, as_json: bool, **options: Any) -> None:
    """Measure what consolidation does to the evidence that is found in the conversations of FILE."""
    show(lambda: run(life=Life(days_later, recalling), methods=tuple(methods.split(",")), **options), as_json=as_json)


if __name__ == "__main__":
    main()
