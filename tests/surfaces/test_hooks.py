"""What a client's hook injects into a session: nothing without a question, nothing twice, and little at a time."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.unit.formats.test_hooks import CONTENTLESS

import commonplace
from commonplace.cli.app import cli
from commonplace.engine import Engine
from commonplace.errors import StoreBusyError
from commonplace.memory.injections import INJECTED

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

DAY_S = 86_400.0
BOSS = "Petra Holm is my boss and approves every holiday."
DEPLOY = "We deploy the shop on Thursdays after the standup."
ASKED = "Who approves my holiday, is it my boss Petra Holm?"


@pytest.fixture
def project(bare: Program) -> Path:
    bare.run("init")
    with commonplace.open(bare.project / ".commonplace") as book:
        book.remember(BOSS, id="boss-petra-holm")
        book.remember(DEPLOY, id="deploy-on-thursdays", tier="long")
    return bare.project


def told(project: Path, prompt: str | None = None, name: str = "UserPromptSubmit", **fields: object) -> str:
    event: dict[str, Any] = {"hook_event_name": name, "session_id": "s1", "cwd": str(project), **fields}
    if prompt is not None:
        event["prompt"] = prompt
    done = CliRunner().invoke(cli, ["context", "--stdin-json"], input=json.dumps(event).encode())
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def book_of(project: Path, now: float | None = None) -> Engine:
    return commonplace.open(project / ".commonplace", clock=None if now is None else lambda: now)


def noted(project: Path) -> list[str]:
    with sqlite3.connect(project / ".commonplace" / "store.db") as db:
        return [body for (body,) in db.execute("SELECT body FROM notes WHERE kind = ?", (INJECTED,))]


@pytest.mark.parametrize("prompt", CONTENTLESS)
def test_a_prompt_without_content_opens_nothing_and_prints_nothing(
    prompt: str, bare: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of what people say to an agent is of this kind, and each costs a process."""
    monkeypatch.setattr("commonplace.cli.invocation.Invocation.settings", None)
    assert told(bare.project, prompt) == ""
    assert told(Path("/there/is/none"), prompt) == ""


def test_what_was_injected_is_not_injected_again_in_the_same_session(project: Path) -> None:
    assert BOSS in told(project, ASKED)
    assert told(project, ASKED) == ""
    assert BOSS in told(project, ASKED, session_id="s2")
    assert DEPLOY in told(project, "On which day do we deploy the shop?")


def test_the_start_of_a_session_counts_as_injected(project: Path) -> None:
    start = told(project, name="SessionStart", source="startup")
    assert BOSS in start
    assert DEPLOY in start
    assert told(project, ASKED) == ""
    assert told(project, name="SessionStart", source="resume") == ""


@pytest.mark.parametrize(
    ("name", "source"),
    [("PreCompact", ""), ("PreCompress", ""), ("SessionStart", "compact"), ("SessionStart", "clear")],
)
def test_after_a_compaction_it_is_injected_again(project: Path, name: str, source: str) -> None:
    """What the conversation had was summed up; nobody knows whether a memory survived that."""
    told(project, ASKED)
    told(project, ASKED, session_id="s2")
    after = told(project, name=name, source=source)
    assert (BOSS in after) is (name == "SessionStart")
    assert (BOSS in told(project, ASKED)) is (name != "SessionStart")
    assert told(project, ASKED, session_id="s2") == ""


def test_a_compaction_of_a_session_that_was_told_nothing_writes_nothing(project: Path) -> None:
    with book_of(project) as book:
        before = book._runtime.store.change()
    assert told(project, name="PreCompact", trigger="auto") == ""
    with book_of(project) as book:
        assert book._runtime.store.change() == before


def test_a_subagent_reads_a_conversation_of_its_own(project: Path) -> None:
    told(project, name="SessionStart", source="startup")
    for agent in ("a1", "a2"):
        assert DEPLOY in told(project, name="SubagentStart", agent_id=agent)
    assert told(project, name="SubagentStart", agent_id="a1") == ""


def test_without_a_session_nothing_is_noted(project: Path) -> None:
    for session in (None, ""):
        assert BOSS in told(project, ASKED, session_id=session)
        assert BOSS in told(project, ASKED, session_id=session)
    assert noted(project) == []


def test_it_is_kept_for_a_day(project: Path) -> None:
    with book_of(project) as book:
        begun = book._runtime.now()
        assert [hit.owner_id for hit in book.injection(ASKED, conversation="s").hits] == ["boss-petra-holm"]
    for later, hits in ((0.9 * DAY_S, 0), (1.1 * DAY_S, 1)):
        with book_of(project, begun + later) as book:
            assert len(book.injection(ASKED, conversation="s").hits) == hits
    with book_of(project, begun + 3 * DAY_S) as book:
        book.injection("On which day do we deploy the shop?", conversation="other")
    assert len(noted(project)) == 1


def test_forgetting_a_memory_forgets_that_it_was_injected(project: Path) -> None:
    told(project, name="SessionStart", source="startup")
    told(project, ASKED, session_id="s2")
    with book_of(project) as book:
        receipt = book.forget("boss-petra-holm")
    assert (receipt.verified, receipt.found) == (True, ())
    (left,) = noted(project)
    assert list(json.loads(left)) == ["deploy-on-thursdays"]


def test_forgetting_a_namespace_forgets_its_sessions(project: Path) -> None:
    told(project, name="SessionStart", source="startup")
    assert len(noted(project)) == 1
    with book_of(project) as book:
        assert book.forget_namespace("default", confirm="default").verified
    assert noted(project) == []


def test_what_was_injected_is_not_exported(project: Path, tmp_path: Path) -> None:
    told(project, name="SessionStart", source="startup")
    with book_of(project) as book:
        book.export(tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert not [line for line in lines if INJECTED in json.dumps(line)]


def test_a_store_that_cannot_be_written_is_still_asked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said twice is better than not said: what was injected cannot be noted while another process writes."""

    def busy(*_: object) -> None:
        raise StoreBusyError("another process writes", remedy="try again")

    monkeypatch.setattr("commonplace.memory.injections.add_injected", busy)
    with book_of(project) as book:
        assert [hit.text for hit in book.injection(ASKED, conversation="s").hits] == [BOSS]


def test_a_prompt_gets_five_hundred_tokens_at_most(project: Path) -> None:
    with book_of(project) as book:
        for month in ("May", "June", "July"):
            stages = " ".join(f"On day {day} we walk from hut {day} to hut {day + 1}." for day in range(1, 25))
            book.remember(f"The trip to the Harz in {month} was planned with Ada. {stages}", force=True)
        made = book.injection("Which trip to the Harz was planned with Ada?", limit=40)
        assert 300 < made.tokens <= 500
        assert made.left_out > 0
        assert book.injection(limit=40).tokens > 500


def test_a_session_id_may_be_anything(project: Path) -> None:
    for session in ("\0", "\ud800", "x" * 1_000_000, "s/../../1", "🦆"):
        assert BOSS in told(project, ASKED, session_id=session)
        assert told(project, ASKED, session_id=session) == ""
