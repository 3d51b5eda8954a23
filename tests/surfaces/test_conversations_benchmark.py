"""The benchmark of conversations, asked again after agents of consolidation ran over their memories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.consolidated import Life, main, run
from click.testing import CliRunner

from commonplace.errors import UsageError

SPRING = (
    "Ben: I keep honey bees in the garden now.",
    "Ada: The moon pulls the sea and makes tides rise.",
)
AUTUMN = (
    "Ben: My violin string snapped at the concert.",
    "Ada: Do your honey bees still live in the garden?",
)


def entry(dates: tuple[str, ...]) -> dict[str, object]:
    sessions = {
        f"session_{number}": [
            {"speaker": said.split(": ")[0], "dia_id": f"D{number}:{place}", "text": said.split(": ")[1]}
            for place, said in enumerate(turns, start=1)
        ]
        for number, turns in enumerate((SPRING, AUTUMN), start=1)
    }
    times = {f"session_{number}_date_time": date for number, date in enumerate(dates, start=1)}
    questions = [
        {"question": "who keeps honey bees in the garden now", "evidence": ["D1:1"], "category": 4},
        {"question": "the moon pulls the sea", "evidence": ["D1:2"], "category": 4},
        {"question": "whose violin string snapped", "evidence": ["D2:1"], "category": 4},
    ]
    return {"sample_id": "conv-1", "conversation": sessions | times, "qa": questions}


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([entry(("1:01 pm on 1 May, 2023", "1:02 pm on 1 September, 2023"))]), "utf-8")
    return path


def consolidated(path: Path, life: Life) -> dict[str, object]:
    return run(path, "locomo", life, methods=("bm25",))


def recall_of(found: dict[str, object]) -> dict[str, float]:
    steps: dict[str, dict[str, dict[str, float]]] = found["recall"]  # type: ignore[assignment]
    return {step: methods["bm25"]["recall@5"] for step, methods in steps.items()}


def proposed_by_decay(found: dict[str, object]) -> int:
    """Return how many issues only decay filed, where nothing was done by any agent."""
    done: dict[str, dict[str, int]] = found["done"]  # type: ignore[assignment]
    assert {part for counts in done.values() for part in counts if part != "proposed" and counts[part]} == set()
    return done["all"]["proposed"] - done["all_but_decay"]["proposed"]


def test_turns_of_a_conversation_are_found_as_before_however_old_they_are(conversation: Path) -> None:
    """Both turns of spring are 124 days old in autumn, and a tier keeps them for 90: that is proposed, and not done."""
    found = consolidated(conversation, Life())
    assert recall_of(found) == {"before": 1.0, "all": 1.0, "all_but_decay": 1.0}
    assert proposed_by_decay(found) == 2


def test_a_turn_that_a_later_one_recalled_is_not_proposed_to_go(conversation: Path) -> None:
    """Somebody asks after the bees in autumn: with that they are as fresh as what is said then."""
    assert proposed_by_decay(consolidated(conversation, Life(recalls=True))) == 1


def test_the_agents_run_so_many_days_after_the_end(conversation: Path) -> None:
    found = consolidated(conversation, Life(days=90.0))
    assert found["days_later"] == 90.0
    assert proposed_by_decay(found) == 4


def test_a_conversation_without_times_and_days_below_0_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([entry(())]), "utf-8")
    with pytest.raises(UsageError, match="turns of conv-1 have no time; give conversations with times"):
        consolidated(path, Life())
    with pytest.raises(UsageError, match=r"the days are -1; give 0 to 36,500"):
        Life(days=-1)


def test_the_command_prints_what_is_found_before_and_after(conversation: Path) -> None:
    result = CliRunner().invoke(main, [str(conversation), "--format", "locomo", "--days-later", "2"])
    assert result.exit_code == 0, result.output
    assert "Recall, all but decay" in result.output
    assert "Done" in result.output
