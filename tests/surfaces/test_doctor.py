"""What `doctor` tells when it cannot put right what it found."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import commonplace
from commonplace.engine import doctor
from commonplace.errors import ModelError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.conftest import Program


@pytest.fixture
def blocked(program: Program) -> Program:
    """A file lies where the index should be, so that it can neither be read nor written."""
    shutil.rmtree(program.project / ".commonplace" / "index")
    (program.project / ".commonplace" / "index").touch()
    return program


def findings(program: Program, *options: str) -> dict[str, Any]:
    return {finding["part"]: finding for finding in program.json("doctor", *options, code=1)["findings"]}


def test_doctor_reports_an_index_that_cannot_be_written(blocked: Program) -> None:
    """A mending that fails is one more finding to tell, not the end of the examination."""
    found = findings(blocked)["index"]
    assert found["mended"] is False
    assert "the index cannot be written" in found["remedy"]
    assert "Traceback" not in blocked.run("doctor", code=1).output


def test_doctor_tells_of_store_and_model_where_the_index_cannot_be_written(
    blocked: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is the least of somebody's troubles when the model data is damaged as well."""

    def damaged() -> None:
        raise ModelError("the model data is damaged")

    monkeypatch.setattr(doctor, "verify_data", damaged)
    assert sorted(findings(blocked)) == ["index", "model"]


def test_doctor_does_not_try_to_mend_where_the_store_is_read_only(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a store that is read-only nothing is written, and the reader hears why."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    shutil.rmtree(program.project / ".commonplace" / "index")
    monkeypatch.setattr(doctor, "bring_up_to_date", never)
    monkeypatch.setattr("commonplace.store.connection.can_be_written", lambda _: False)
    found = findings(program)["index"]
    assert found["mended"] is False
    assert "read-only" in found["remedy"]


def test_doctor_reports_an_index_that_cannot_be_read(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be said of what may not be opened, and nothing is thrown away for it."""

    def refused(_: object) -> None:
        raise StoreError("the index cannot be opened: Too many open files", remedy="close some")

    monkeypatch.setattr("commonplace.index.generations.Index.reader", refused)
    found = findings(program)["index"]
    assert (found["problem"], found["remedy"]) == ("the index cannot be opened: Too many open files", "close some")
    assert found["mended"] is False


BILLING = "We chose Postgres for billing."
OF_SESSIONS = "WHERE owner IN (SELECT owner FROM memories WHERE id = 'sessions')"
LONG = "\n\n".join(f"# Part {number}\n\n{'Builds run at night. ' * 40}" for number in range(12))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A store with memories of every kind, of which nothing is wrong."""
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        book.remember(BILLING, id="billing")
        book.remember("We chose Redis for sessions.", id="sessions")
        book.update("sessions", content="We chose Valkey for sessions.")
        book.remember(LONG, id="long")
        book.remember_many([{"content": f"Turn {at} of the talk.", "id": f"t{at}", "session": "s"} for at in range(3)])
        book.remember("The roof is grey.", id="old")
        book.archive("old")
        book.knowledge.create_agent({"name": "dba"})
        book.knowledge.index_knowledge("dba", [{"name": "indexes", "advice": "Build them at night."}])
        assert book.doctor().is_healthy
    return tmp_path / "store"


def spoil(directory: Path, statement: str) -> None:
    """Change stored bytes as a failing disk does."""
    with closing(sqlite3.connect(directory / "store.db", isolation_level=None)) as db:
        assert db.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE memories SET content = replace(content, 'Postgres', 'Postgras') WHERE id = 'billing'",
            "memory 'billing' has other words than it was written with",
        ),
        (
            f"UPDATE passage_vectors SET token_ids = x'0100' {OF_SESSIONS}",
            "memory 'sessions' is found by other words than it has",
        ),
        (
            "UPDATE memories SET digest = '0' WHERE id = 'billing'",
            "memory 'billing' has other words than it was written with",
        ),
        (
            "UPDATE memories SET content = replace(content, 'Turn 1', 'Turn 7') WHERE id = 't1'",
            "memory 't1' is found by other words than it has",
        ),
        (
            "UPDATE memories SET content = replace(content, 'Part 7', 'Past 7') WHERE id = 'long'",
            "memory 'long' has other words than it was written with",
        ),
        (
            "UPDATE passages SET place = place + 3 WHERE ordinal = 1",
            "memory 'long' is found by other words than it has",
        ),
    ],
)
def test_doctor_names_the_memory_of_which_a_byte_was_changed(stored: Path, statement: str, said: str) -> None:
    """A failing disk leaves the database whole for SQLite, and a memory that says what nobody said."""
    spoil(stored, statement)
    with commonplace.open(stored) as book:
        [finding] = book.doctor().findings
        assert (finding.part, finding.problem, finding.mended) == ("store", said, False)
        id_ = said.split("'")[1]
        assert finding.remedy == f"write it as it should be with `commonplace update {id_} TEXT`, or restore a backup"
        book.update(id_, content=LONG if id_ == "long" else "As it should be.")
        assert book.doctor().is_healthy


def test_doctor_names_a_memory_whose_text_has_another_length_too(stored: Path) -> None:
    """Then its bytes are counted wrong as well, which must not hide whose they are."""
    spoil(stored, "UPDATE memories SET content = 'We chose it.' WHERE id = 'billing'")
    with commonplace.open(stored) as book:
        counts, billing = book.doctor().findings
    assert counts.problem == "There are counts that do not fit the rows: 1."
    assert billing.problem == "memory 'billing' has other words than it was written with"


def test_doctor_names_an_archived_memory_that_cannot_be_read_any_more(stored: Path) -> None:
    """One byte may be enough for text that is not UTF-8; what else there is must still be looked at."""
    spoil(stored, "UPDATE memories SET content = CAST(x'54ff65' AS TEXT) WHERE id = 'old'")
    spoil(stored, "UPDATE memories SET content = replace(content, 'Postgres', 'Postgras') WHERE id = 'billing'")
    with commonplace.open(stored) as book:
        billing, old = sorted(book.doctor().findings, key=lambda each: each.problem)
    assert billing.problem.startswith("memory 'billing' has other words")
    assert old.problem.startswith("memory 'old' cannot be read (")
    assert old.remedy == "restore a backup"  # what is archived cannot be updated


def test_doctor_names_the_knowledge_of_which_a_byte_was_changed(stored: Path) -> None:
    spoil(stored, "UPDATE knowledge_items SET metadata = replace(metadata, 'night', 'eight')")
    with commonplace.open(stored) as book:
        [finding] = book.doctor().findings
    told = r"knowledge item \d+ of the agent 'dba' has another map than it was written with"
    assert re.fullmatch(told, finding.problem)
    assert finding.remedy == "index the knowledge of that agent again, or restore a backup"


def test_doctor_names_some_of_very_many_changed_memories(stored: Path) -> None:
    """Twenty tell what is the matter, and thousands hide it."""
    with commonplace.open(stored, namespace="team") as book:
        book.remember_many(
            [{"content": f"Service {at} has port {at * 7}.", "id": f"m{at:02}"} for at in range(30)], force=True
        )
    spoil(stored, "UPDATE memories SET content = 'Lost: ' || content WHERE id LIKE 'm%'")
    with commonplace.open(stored) as book:
        *shown, rest = book.doctor().findings
    assert len(shown) == 20
    assert shown[0].problem.startswith("memory 'm00' of the namespace 'team' has other words")
    assert rest.problem == "10 more texts differ like these"


def test_doctor_goes_on_where_a_byte_of_an_agent_s_knowledge_is_no_text_any_more(stored: Path) -> None:
    """One byte must not end the examination, and hide what else is wrong."""
    spoil(stored, "UPDATE knowledge_items SET metadata = CAST(replace(metadata, 'night', x'ff') AS TEXT)")
    spoil(stored, "UPDATE memories SET digest = '0' WHERE id = 'billing'")
    with commonplace.open(stored) as book:
        problems = [finding.problem for finding in book.doctor().findings]
    assert "memory 'billing' has other words than it was written with" in problems
    [knowledge] = [problem for problem in problems if "knowledge" in problem]
    assert re.fullmatch(r"knowledge item \d+ cannot be read \(.*Could not decode to UTF-8.*\)", knowledge)
