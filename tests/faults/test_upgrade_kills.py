"""A change of embedder that is killed at any point loses nothing, answers all the same, and goes on when told to."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.processes import run

import commonplace
from commonplace.engine import Engine
from commonplace.types import Document

DOCUMENTS = 520
SWITCHED = 10
"""From this moment on: its begin and three batches come before."""
MOMENTS = 12
"""Before and after each, these, the switch and the new index."""


def upgrade(path: Path, number: int) -> subprocess.CompletedProcess[str]:
    return run(Path(__file__).with_name("upgraders.py"), path, number)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "store"
    with commonplace.open(path) as book:
        book.index_documents([Document(f"d{number}", f"Note {number} on the harbour") for number in range(DOCUMENTS)])
    return path


def finds(book: Engine) -> bool:
    return book.search("Note 7 on the harbour", min_score=0.0).hits[0].owner_id == "d7"


def test_there_are_as_many_moments_as_are_tried(template: Path, tmp_path: Path) -> None:
    """Else the test below would say less than it seems to."""
    shutil.copytree(template, tmp_path / "store")
    done = upgrade(tmp_path / "store", MOMENTS + 1)
    assert (done.returncode, done.stdout.strip()) == (0, str(MOMENTS)), done.stderr


@pytest.mark.parametrize("number", range(1, MOMENTS + 1))
def test_a_kill_loses_nothing(number: int, template: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(template, path)
    with commonplace.open(path) as other:
        assert finds(other)
        assert upgrade(path, number).returncode == -signal.SIGKILL
        assert finds(other)
        other.remember("A memory that came later", id="later")
        with commonplace.open(path) as fresh:
            assert finds(fresh)
            report = fresh.index_upgrade("hashing")
            is_switched = report.before == report.embedder
            assert is_switched == (number >= SWITCHED)
            assert report.passages + report.resumed == (0 if is_switched else DOCUMENTS + 1)
            assert report.resumed == (0 if is_switched else min(DOCUMENTS, 256 * max(0, (number - 2) // 2)))
            assert finds(fresh)
            assert fresh.doctor().is_healthy
            assert fresh.index_status().upgrade is None
        assert finds(other)
        assert other.search("A memory that came later").hits[0].owner_id == "later"
