"""A store whose vectors an earlier token table made: it answers by words, says what to do, and is made new."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.surfaces.conftest import Program

import commonplace
from commonplace.errors import EmbedderMismatchError
from commonplace.models.static import StaticEmbedder
from commonplace.types import Embedding

NOW = str(StaticEmbedder.load().stamp)
REMEDY = "index upgrade --embedder static"


class Earlier(StaticEmbedder):
    """The table under the stamp that the first version had."""

    def __init__(self) -> None:
        super().__init__()
        self.stamp = Embedding("static", "1", 256)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "old"
    with commonplace.open(path, embedder=Earlier()) as engine:
        engine.remember("Billing uses Postgres", id="m")
        engine.remember("Her sister hikes in the Alps", id="n")
    return path


def test_a_store_of_the_earlier_table_answers_by_words_and_says_what_to_do(store: Path) -> None:
    """Vectors of two tables must not be compared; nobody is left without an answer for that."""
    with commonplace.open(store) as engine:
        result = engine.search("Which database does billing use?", min_score=0.0)
        assert result.hits[0].owner_id == "m"
        assert [notice for notice in result.notices if "static@1/256" in notice and REMEDY in notice]
        assert [finding.remedy for finding in engine.doctor().findings if REMEDY in finding.remedy]
        with pytest.raises(EmbedderMismatchError, match=f"static@1/256, not {NOW}"):
            engine.remember("Invoices go out on Mondays")


def test_an_upgrade_makes_a_store_of_the_earlier_table_new(store: Path) -> None:
    """One command, the same name of embedder; afterwards it is written and searched by meaning again."""
    with commonplace.open(store) as engine:
        report = engine.index_upgrade("static")
        assert (report.before, report.embedder, report.resumed) == ("static@1/256", NOW, 0)
        engine.remember("Invoices go out on Mondays", id="o")
        result = engine.search("mountains", min_score=0.0, method="semantic")
        assert result.hits[0].owner_id == "n"
        assert result.notices == ()
    with commonplace.open(store) as engine:
        assert engine.index_status().embedder == NOW


def test_the_command_line_says_what_to_do_with_a_store_of_the_earlier_table(store: Path, bare: Program) -> None:
    """The sentence that the error ends with is the command that helps."""
    named = ("--store", str(store))
    refused = bare.run("remember", "Invoices go out on Mondays", *named, code=1)
    assert REMEDY in refused.stderr
    assert NOW in bare.run("index", "upgrade", "--embedder", "static", *named).stdout
    bare.run("remember", "Invoices go out on Mondays", *named)
