"""A process that is killed while it embeds loses no memory and no vector that was written, and the next one goes on."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.faults.embedders import MEMORIES, Slow
from tests.processes import run

import commonplace
from commonplace.ingest.embeddings import SLICE

MOMENTS = 2 * -(-MEMORIES // SLICE)
"""Before and after each slice."""


def embed(path: Path, number: int) -> subprocess.CompletedProcess[str]:
    return run(Path(__file__).with_name("embedders.py"), path, number)


def test_there_are_as_many_moments_as_are_tried(tmp_path: Path) -> None:
    """Else the test below would say less than it seems to."""
    done = embed(tmp_path / "store", MOMENTS + 1)
    assert (done.returncode, done.stdout.strip()) == (0, str(MOMENTS)), done.stderr


@pytest.mark.parametrize("number", range(1, MOMENTS + 1))
def test_the_next_process_embeds_what_is_left_and_no_more(number: int, tmp_path: Path) -> None:
    """The memories were acknowledged to nobody yet, but all of them are there: they were committed first."""
    path, written = tmp_path / "store", number // 2 * SLICE
    assert embed(path, number).returncode == -signal.SIGKILL
    with commonplace.open(path, embedder=Slow()) as book:
        assert book.index_status().unembedded == max(0, MEMORIES - written)
        assert book.index_status().counts["memories"] == MEMORIES
        assert book.doctor().is_healthy
        assert book.index_status().unembedded == 0
        assert book.search("ship number 69", method="semantic", min_score=0.0).hits[0].owner_id == "m69"
