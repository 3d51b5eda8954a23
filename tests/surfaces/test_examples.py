"""The examples of the repository, run as somebody who found them would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests import postgres

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SQLITE, POSTGRES = (f"We chose {name} for billing because" for name in ("SQLite", "Postgres"))


def run(name: str, directory: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments], cwd=directory, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line.strip() for line in done.stdout.splitlines()]


def test_a_fact_changes_and_the_answer_with_it(tmp_path: Path) -> None:
    told = run("a_fact_changes.py", tmp_path, "graph.svg")
    questions = [place for place, line in enumerate(told) if line == "which database did we choose for billing?"]
    answers = [told[place + 1] for place in questions]
    assert [answer.startswith(fact) for answer, fact in zip(answers, (SQLITE, POSTGRES), strict=True)] == [True, True]
    assert told[told.index("… and in February?") + 1].startswith(SQLITE)
    ended = told.index("What the third episode ended, and why:")
    assert told[ended + 1].startswith(SQLITE)
    assert told[ended + 2] == "a newer fact began then, and only one of them can hold"
    assert sum(line.startswith("12 Mar  ended  We chose SQLite") for line in told) == 1
    assert told[-1] == "graph.svg (open it in a browser)"
    assert [path.name for path in tmp_path.iterdir()] == ["graph.svg"]
    drawn = ElementTree.parse(tmp_path / "graph.svg").getroot()
    words = " ".join(drawn.itertext())
    assert all(name in words for name in ("billing", "SQLite", "Postgres", "Stripe", "from 2026-01-12 to 2026-03-12"))


def test_the_drawing_is_printed_where_no_file_is_named(tmp_path: Path) -> None:
    told = run("a_fact_changes.py", tmp_path)
    assert "flowchart LR" in told
    assert list(tmp_path.iterdir()) == []


def test_a_week_of_work_is_remembered(tmp_path: Path) -> None:
    """It finds what is asked for in other words, tells the newer fact first, and says that nobody said it."""
    told = run("a_week_of_work.py", tmp_path)
    answers = {line.partition("  (")[0]: told[place + 1 :] for place, line in enumerate(told) if "  (" in line}
    assert answers["when does my kid go to class?"][0].startswith("My daughter Ines starts school")
    assert answers["on which day do we deploy?"][0].startswith("Deploys moved to Tuesdays")
    assert answers["on which day do we deploy?"][1].endswith("older]")
    assert answers["what is my blood type?"][0] == "nothing likely"
    assert told[told.index("which database does billing use?") + 1].startswith("The database for billing is SQLite")
    assert list(tmp_path.iterdir()) == []


def test_memories_are_merged_and_come_back(tmp_path: Path) -> None:
    told = run("a_merge_and_back.py", tmp_path)
    (diff,) = [place for place, line in enumerate(told) if line.startswith("What the agents would do: merge 3")]
    assert [line[0] for line in told[diff + 1 : diff + 5]] == ["@", "M", "-", "-"]
    done = told.index("Done. Now there are two:")
    assert told[done + 2] == "Mira prefers commit messages that are short and in the imperative."
    assert [line.split()[0] for line in told[told.index("In the ledger:") + 1 :][:4]] == [
        "created",
        "claimed",
        "applied",
        "closed",
    ]
    undone = told.index("Undone:")
    assert told[undone + 1 : undone + 5] == told[told.index("Four memories, three of them duplicates:") + 1 :][:4]
    assert told[-1] == "Changes undone: 1. Memories that differ from before: 0"
    assert list(tmp_path.iterdir()) == []


def test_what_people_say_in_ordinary_words_is_the_answer_from_then_on(tmp_path: Path) -> None:
    told = run("what_people_say.py", tmp_path)
    assert told == [
        "where do we live? Seattle (before: Boston, until 2026-06-01)",
        "who is my employer? Globex (before: Initech, until 2026-06-10)",
        "which editor do I use? Helix (before: vim, until 2026-06-10)",
        "what do the servers run on? Hetzner (before: AWS, until 2026-06-10)",
        "who leads the platform team? Benedikt (before: Anna, until 2026-06-10)",
        "when do deployments happen? Fridays (before: Thursdays, until 2026-06-10)",
        "Which is right? Dad's dose of ramipril is 5 mg. / Dad's dose of ramipril is 10 mg now.",
    ]


def test_two_machines_share_one_memory_in_postgresql(tmp_path: Path) -> None:
    told = run("two_machines.py", tmp_path, postgres.server())
    assert told[told.index("Here, before: where do invoices go?") + 1] == "nothing"
    assert told[told.index("Here, at once:") + 1] == "Billing sends invoices to Ines in accounting."
    assert told[told.index("In another namespace:") + 1] == "nothing"
    assert "verified: True" in told
    assert "No memory is about this." in told[-2:]
    assert postgres.run(postgres.server(), "SELECT FROM pg_database WHERE datname LIKE 'commonplace_demo%'") == []
    assert list(tmp_path.iterdir()) == []
