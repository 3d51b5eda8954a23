"""What `doctor` tells when it cannot put right what it found."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from commonplace.engine import upkeep
from commonplace.errors import ModelError, StoreError

if TYPE_CHECKING:
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

    monkeypatch.setattr(upkeep, "verify_data", damaged)
    assert sorted(findings(blocked)) == ["index", "model"]


def test_doctor_does_not_try_to_mend_where_the_store_is_read_only(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a store that is read-only nothing is written, and the reader hears why."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    shutil.rmtree(program.project / ".commonplace" / "index")
    monkeypatch.setattr(upkeep, "bring_up_to_date", never)
    monkeypatch.setattr("commonplace.store.connections.can_be_written", lambda _: False)
    found = findings(program)["index"]
    assert found["mended"] is False
    assert "read-only" in found["remedy"]


def test_doctor_reports_an_index_that_cannot_be_read(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be said of what may not be opened, and nothing is thrown away for it."""

    def refused(_: object) -> None:
        raise StoreError("the index cannot be opened: Too many open files", remedy="close some")

    monkeypatch.setattr("commonplace.index.directory.Index.reader", refused)
    found = findings(program)["index"]
    assert (found["problem"], found["remedy"]) == ("the index cannot be opened: Too many open files", "close some")
    assert found["mended"] is False
