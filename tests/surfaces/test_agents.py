"""An agent's strategy through Python and the command line: what it finds, and what wins over it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import commonplace
from commonplace.cli.app import cli
from commonplace.engine import Engine
from commonplace.errors import UsageError

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

ASKED = "how does a session expire"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    """Pages that say the same, of every type, of two phases and none; one with a tag; and a memory."""
    place = tmp_path / "pages"
    place.mkdir()
    for type_ in ("requirement", "architecture", "test", "code", "documentation", "research"):
        for phase in ("", "inception", "construction"):
            said = (
                f"---\ntype: {type_}\n{phase and f'phase: {phase}'}\n---\nA session expires, says {type_} of {phase}.\n"
            )
            (place / f"{type_} {phase}.md").write_text(said)
    (place / "tagged.md").write_text("---\ntype: code\ntags: [security]\n---\nA session expires after a while.\n")
    with commonplace.open(tmp_path / "store", embedder="hashing") as engine:
        engine.index(place)
        engine.remember("A session expires when nobody looks.", id="memory")
        yield engine


def found(book: Engine, agent: str | None, **options: Any) -> set[str]:
    hits = book.search(ASKED, agent=agent, **{"min_score": 0.0, **options}).hits
    return {Path(hit.path).stem if hit.path else hit.owner_id for hit in hits}


@pytest.mark.parametrize("spelling", ["test_engineer", "test-engineer"])
def test_a_strategy_chooses_types_and_phases_and_what_has_no_phase_stays(book: Engine, spelling: str) -> None:
    types = ("requirement", "architecture", "code")
    assert found(book, spelling) == {f"{type_} {phase}" for type_ in types for phase in ("", "construction")} | {
        "tagged"
    }


def test_a_strategy_chooses_by_tags_where_files_of_its_types_have_some(book: Engine) -> None:
    assert found(book, "security-auditor", types=["code"], tags=["security"]) == {"tagged"}
    (book.directory.parent / "pages" / "other.md").write_text("---\ntype: architecture\ntags: [ui]\n---\nA session.\n")
    book.index(book.directory.parent / "pages")
    assert found(book, "security-auditor") == {"tagged"}
    assert found(book, "security-auditor", types=["test"], tags=["security"]) == set()


def test_a_strategy_asks_no_tags_of_types_without_any_and_says_so(book: Engine) -> None:
    """Source code has no place for tags: a filter by them would leave out all of it."""
    result = book.search(ASKED, agent="security-auditor", min_score=0.0)
    assert found(book, "security-auditor") == {
        "tagged", "architecture ", "architecture inception", "architecture construction"
    }  # fmt: skip
    assert result.notices == ("no architecture has a tag, so agent security-auditor finds what has none",)


def test_an_index_without_the_types_of_a_strategy_is_not_silent(tmp_path: Path) -> None:
    """Most projects have neither requirements nor architecture in files of their own."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "sessions.md").write_text("# Sessions\n\nA session expires after thirty minutes.\n")
    with commonplace.open(tmp_path / "store", embedder="hashing") as engine:
        engine.index(tmp_path / "docs")
        result = engine.search(ASKED, agent="api-designer", min_score=0.0)
        assert [hit.type for hit in result.hits] == ["documentation"]
        assert result.notices == (
            "no requirement and no architecture is indexed, so agent api-designer finds documentation too",
        )
        assert not engine.search(ASKED, agent="api-designer", min_score=0.0, types=["requirement"]).hits
        (tmp_path / "docs" / "REQ-1.md").write_text("# REQ-1\n\nA session expires.\n")
        engine.index(tmp_path / "docs")
        result = engine.search(ASKED, agent="api-designer", min_score=0.0)
        assert result.notices == ("no architecture is indexed, so agent api-designer finds documentation too",)


def test_top_k_wins_over_the_setting_and_filters_come_first(book: Engine) -> None:
    """Eight of the two types exist only where others do not take their places."""
    assert book.settings.search.limit == 10
    assert len(found(book, "integrator")) == 9
    assert len(found(book, "default")) == 10
    assert len(found(book, "test-engineer", phases=[])) == 10
    assert {each.split()[0] for each in found(book, "api-designer")} == {"requirement", "architecture"}


def test_what_the_call_says_wins_over_the_strategy(book: Engine) -> None:
    assert found(book, "security-auditor", tags=[], types=["test"]) == {"test ", "test inception", "test construction"}
    assert len(found(book, "security-auditor", tags=[], limit=2)) == 2
    assert "memory" in found(book, "default", types=[], limit=30)
    assert found(book, "test-engineer", phases=["inception"], types=["code"]) == {"code ", "code inception", "tagged"}


def test_the_threshold_of_a_strategy_is_a_plain_cut(book: Engine) -> None:
    ranked = book.search(ASKED, agent="integrator", min_score=0.0).hits
    kept = book.search(ASKED, agent="integrator").hits
    assert [hit.id for hit in kept] == [hit.id for hit in ranked if hit.score >= 0.65]


def test_the_result_names_the_agent_and_its_phases(book: Engine) -> None:
    told = book.search(ASKED, agent="test_engineer").to_dict()
    assert (told["agent_type"], told["phase"]) == ("test-engineer", "elaboration,construction")
    told = book.search(ASKED).to_dict()
    assert (told["agent_type"], told["phase"]) == (None, None)


def test_an_unknown_agent_is_told_and_is_no_failure(book: Engine) -> None:
    result = book.search(ASKED, agent="poet")
    assert (result.agent, result.degraded) == ("default", False)
    assert "no strategy for agent 'poet'" in result.notices[0]
    with pytest.raises(UsageError, match="agent is ''"):
        book.search(ASKED, agent="")


def test_the_command_line_names_the_strategy(program: Program) -> None:
    lines = program.run("search", ASKED, "--agent", "integrator").stdout.splitlines()
    assert lines[:3] == [
        f'Two-stage retrieval for: "{ASKED}"',
        "Agent strategy: integrator (types: architecture, test, documentation)",
        "",
    ]
    told = program.json("search", ASKED, "--agent", "test_engineer", "--type", "documentation")
    assert (told["agent_type"], [each["path"] for each in told["artifacts"]]) == ("test-engineer", ["docs/auth.md"])
    told = program.run("search", ASKED, "--agent", "poet")
    assert "there is no strategy for agent 'poet'" in told.stderr
    assert "Agent strategy: default (types: " in told.stdout
    assert program.error("search", ASKED, "--agent", "", code=2)


def test_limits_of_the_command_line_win_over_the_strategy_and_those_of_the_settings_do_not(program: Program) -> None:
    (program.project / "commonplace.toml").write_text(
        "[search]\nlimit = 1\nmin_score = 0.9999\n[agents.reader]\ncontext_types = []\nthreshold = 0.0\n"
    )
    assert len(program.json("search", ASKED)["hits"]) <= 1
    assert len(program.json("search", ASKED, "--agent", "reader")["hits"]) == 4
    assert len(program.json("search", ASKED, "--agent", "reader", "--limit", "2")["hits"]) == 2
    assert program.json("search", ASKED, "--agent", "reader", "--min-score", "0.9999")["hits"] == []


def test_strategies_of_a_document_hold_for_the_searches_after_its_build(program: Program) -> None:
    """They were checked and forgotten once."""
    (program.project / "retrieval.yaml").write_text(
        'version: "1.0.0"\nartifact_index: {}\nretrieval_pipeline: {}\n'
        "agent_integration: {agent_strategies: {code_reader: {context_types: [code], threshold: 0}}}\n"
    )
    program.run("index", "build", "--config", "retrieval.yaml")
    told = program.json("search", "password", "--agent", "code-reader")
    assert (told["agent_type"], {each["type"] for each in told["artifacts"]}) == ("code-reader", {"code"})
    program.run("index", "build", "--no-config")
    assert program.json("search", "password", "--agent", "code-reader")["agent_type"] == "default"


def held(book: Engine, agent: str | None, **options: Any) -> list[str]:
    hits = book.context(ASKED, agent=agent, **{"min_score": 0.0, **options}).hits
    return list(dict.fromkeys(Path(hit.path).stem if hit.path else hit.owner_id for hit in hits))


def test_a_context_has_the_artifacts_of_a_strategy_and_what_is_remembered(book: Engine) -> None:
    """A memory has no type, phase or tag of a project's files, and is not left out for that."""
    assert set(held(book, "security-auditor", tags=["security"])) == {"tagged"}
    assert {"tagged", "memory"} <= set(held(book, "security-auditor"))
    assert "memory" not in held(book, "security-auditor", kinds=["artifact"])
    assert set(held(book, "security-auditor", kinds=["memory"])) == {"memory"}
    found = held(book, "test-engineer")
    assert {each.split()[0] for each in found} == {"requirement", "architecture", "code", "tagged", "memory"}


def test_a_context_has_as_many_artifacts_and_memories_as_the_strategy_says(book: Engine) -> None:
    long = "# {0}\n\n" + "".join(f"A session {n} of {{0}} expires after {n} minutes. " for n in range(200))
    for number in range(3):
        (book.directory.parent / "pages" / f"long {number}.md").write_text(
            "---\ntype: test\n---\n" + long.format(number)
        )
    book.index(book.directory.parent / "pages")
    made = book.context(ASKED, agent="integrator", min_score=0.0)
    assert len({hit.owner_id for hit in made.hits}) == 12
    assert len(made.hits) > 12
    assert len(book.context(ASKED, agent="integrator", min_score=0.0, limit=5).hits) == 5


def test_a_context_names_its_agent_and_tells_of_one_without_a_strategy(book: Engine) -> None:
    assert book.context(ASKED, agent="test_engineer").to_dict()["agent_type"] == "test-engineer"
    assert book.context(ASKED).to_dict()["agent_type"] is None
    made = book.context(ASKED, agent="poet")
    assert (made.agent, len(made.notices)) == ("default", 1)
    assert book.context(agent="poet").notices == made.notices
    assert book.context(agent="security-auditor").hits[0].owner_id == "memory"
    for task in (ASKED, ""):
        with pytest.raises(UsageError, match="agent is 7"):
            book.context(task, agent=7)  # type: ignore[arg-type]


def test_the_settings_say_what_a_context_holds(program: Program) -> None:
    (program.project / "commonplace.toml").write_text(
        '[context]\nmax_tokens = 64\nreferences = "off"\nmetadata = "off"\n[agents.reader]\ncontext_types = ["code"]\n'
        "threshold = 0\n"
    )
    assert program.json("context", "password", "--agent", "reader")["left_out"] == 1
    told = program.json("context", "password", "--agent", "reader", "--max-tokens", "900")
    assert (told["agent_type"], told["references"]) == ("reader", ["@src/login.py:1-6"])
    assert 'label=""' in told["text"]
    assert "References:" not in told["text"]


def test_a_hook_says_nothing_where_the_settings_want_no_context_at_the_start(program: Program) -> None:
    event = json.dumps({"prompt": ASKED, "cwd": str(program.project)})
    hook = ["context", "--stdin-json", "--agent", "integrator"]
    told = CliRunner().invoke(cli, hook, input=event)
    assert "docs/auth.md" in told.stdout
    (program.project / "commonplace.toml").write_text('[context]\non_start = "off"\n')
    told = CliRunner().invoke(cli, hook, input=event)
    assert (told.exit_code, told.stdout, told.stderr) == (0, "", "")
    assert "A session expires after thirty minutes" in program.run("context", ASKED).stdout
