"""A store follows a directory: what is read, what is written, what is left alone."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.ingest.projects import LONG_AGO, CountingStore, Project, tokenize

from commonplace.ingest import artifacts
from commonplace.ingest.artifacts import artifact_id, recipe
from commonplace.ingest.passages import Destination, Limits
from commonplace.models.hashing import HashingEmbedder


def test_a_file_becomes_an_artifact_with_its_metadata_and_passages(project: Project) -> None:
    """Everything the contract lists of an artifact is there after one run."""
    words = "word " * 60
    project.write(
        "docs/a.md", f"---\ntags: [security]\nphase: construction\n---\n# Login\n\n{words}\n\n# Logout\n\n{words}\n"
    )
    report = project.index()
    assert (report.added, report.changed, report.unchanged, report.removed, report.passages) == (1, 0, 0, 0, 2)
    owner = project.owners()["docs/a.md"]
    assert owner.id == artifact_id("n", "docs/a.md")
    assert (owner.type, owner.phase, owner.tags, owner.title) == (
        "documentation",
        "construction",
        ("security",),
        "Login",
    )
    assert (owner.root, owner.at) == (".", LONG_AGO / 1e9)
    first, second = project.entries()
    assert (first.heading, second.heading) == ("Login", "Logout")
    assert second.text.startswith("# Logout")
    assert np.frombuffer(second.token_ids, "<u2").tolist() == tokenize(f"Login\n{second.text}").tolist()
    assert len(second.vector) == 64


def test_an_unchanged_file_is_not_opened(project: Project, reads: list[str]) -> None:
    """Indexing again must cost no more than looking at the directory."""
    project.write("a.md")
    project.write("empty.md", "")
    assert project.index().added == 2
    reads.clear()
    report = project.index()
    assert (report.unchanged, report.added, report.changed, reads) == (2, 0, 0, [])


def test_a_file_whose_time_alone_changed_is_hashed_and_restamped(project: Project, reads: list[str]) -> None:
    """A checkout touches every file and changes few."""
    path = project.write("a.md")
    before = project.index().change
    os.utime(path, ns=(LONG_AGO + 5, LONG_AGO + 5))
    report = project.index()
    assert (report.unchanged, report.change, project.store.restamped) == (1, before, ["a.md"])
    reads.clear()
    project.index()
    assert reads == []


def test_a_file_written_just_now_is_hashed_again_next_time(project: Project, reads: list[str]) -> None:
    """It may change once more within the same tick of the clock, with the same size."""
    path = project.write("a.md", "one\n")
    project.index(now=LONG_AGO + 1_000_000_000)
    path.write_text("two\n")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    assert project.index().changed == 1
    reads.clear()
    project.index()
    assert reads == []


def test_a_changed_file_is_replaced_and_keeps_its_id(project: Project) -> None:
    """Receipts and links name artifacts by id."""
    project.write("a.md", "old words\n")
    project.index()
    old = project.owners()["a.md"].id
    project.write("a.md", "new words, more of them\n", LONG_AGO + 1)
    assert project.index().changed == 1
    assert [entry.text for entry in project.entries()] == ["new words, more of them"]
    assert project.owners()["a.md"].id == old


def test_the_same_files_give_the_same_ids_in_another_store(project: Project) -> None:
    """A store can be thrown away and built again."""
    project.write("a.md", "# A\n" + "word " * 900)
    project.index()
    numbers = [entry.number for entry in project.entries()]
    first = [passage.id for passage in project.store.passages("n", numbers).values()]
    project.store = CountingStore()
    project.index()
    assert [passage.id for passage in project.store.passages("n", numbers).values()] == first
    assert len(set(first)) == len(first) > 1


def test_force_reads_everything_again(project: Project, reads: list[str]) -> None:
    """It is the way out when the metadata rules themselves changed."""
    project.write("a.md")
    project.index()
    assert (project.index(force=True).changed, reads) == (1, ["a.md", "a.md"])


def test_removed_files_leave_the_store(project: Project) -> None:
    """A search must not find what is no longer there."""
    project.write("a.md").unlink()
    project.write("b.md")
    gone = project.write("c.md")
    project.index()
    gone.unlink()
    report = project.index()
    assert (report.removed, list(project.owners())) == (1, ["b.md"])


def test_files_that_are_ignored_or_became_binary_leave_the_store(project: Project) -> None:
    """They would not be indexed today."""
    project.write("a.md")
    project.write("b.md")
    project.index()
    project.write(".gitignore", "a.md\n")
    project.write("b.md", b"\0\1\2", LONG_AGO + 1)
    report = project.index()
    assert (report.removed, report.skipped["binary"], project.owners()) == (2, 1, {})


@pytest.mark.parametrize("limits", [Limits(chunk_tokens=64), Limits(chunk_overlap=10)])
def test_other_chunk_settings_cut_unchanged_files_again(project: Project, reads: list[str], limits: Limits) -> None:
    """Who changes a setting and builds wants every passage to follow it, not only those of edited files."""
    path = project.write("a.md", "word " * 900)
    before = project.index().passages
    project.limits = limits
    report = project.index()
    assert (report.changed, report.unchanged, report.passages != before) == (1, 0, limits.chunk_tokens == 64)
    project.limits = Limits()
    os.utime(path, ns=(LONG_AGO + 5, LONG_AGO + 5))
    assert project.index().changed == 1
    reads.clear()
    assert (project.index().unchanged, reads) == (1, [])


@pytest.mark.parametrize("name", ["CHUNKER", "RULES", "WORDING"])
def test_a_new_way_of_reading_reads_unchanged_files_again(
    project: Project, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that cuts better is of no use to a store that keeps the old passages."""
    project.write("a.md")
    project.index()
    monkeypatch.setattr(artifacts, name, 99)
    assert [(report.changed, report.unchanged) for report in (project.index(), project.index())] == [(1, 0), (0, 1)]


def test_another_embedder_reads_unchanged_files_again(project: Project) -> None:
    """Vectors of two embedders cannot be compared, even where they have the same length."""
    destination = Destination(project.store, HashingEmbedder(), tokenize, "n")
    other = replace(destination, embedder=HashingEmbedder(32))
    assert recipe(destination) == "1.2.1/512/50/hashing@1/64"
    assert recipe(other) == "1.2.1/512/50/hashing@1/32"
