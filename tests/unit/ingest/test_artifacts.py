"""A store follows a directory: what is read, what is written, what is left alone."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.ingest.projects import LONG_AGO, CountingStore, Project, tokenize

from commonplace.errors import NotFoundError, RemovalError, StoreBusyError, UsageError
from commonplace.ingest import artifacts
from commonplace.ingest.artifacts import artifact_id, index_root, recipe
from commonplace.ingest.discover import Selection
from commonplace.ingest.passages import Destination, Limits
from commonplace.ingest.read import Refusal
from commonplace.logs import attach, detach
from commonplace.models.hashing import HashingEmbedder
from commonplace.types import FileStamp, Owner, OwnerWrite


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
    assert recipe(destination) == "2.2.1/512/50/hashing@1/64"
    assert recipe(other) == "2.2.1/512/50/hashing@1/32"


# Which run an artifact belongs to, and when it leaves the store.


def test_what_is_ignored_leaves_whichever_run_brought_it(project: Project) -> None:
    """After a build of the whole project nothing is found that the project ignores."""
    for name in ("docs/a.md", "docs/b.md", "docs/deep/c.md"):
        project.write(name)
    assert [project.index(root).added for root in (".", "docs", ".")] == [3, 0, 0]
    project.write("docs/new/d.md")
    project.write("docs/e.md")
    assert project.index("docs").added == 2
    project.write(".gitignore", "new/\nb.md\ne.md\n")
    assert (project.index().removed, list(project.owners())) == (3, ["docs/a.md", "docs/deep/c.md"])


def test_an_ignored_directory_that_was_named_stays_when_what_is_around_it_is_indexed(project: Project) -> None:
    """Someone wanted it, although the project ignores it."""
    project.write(".gitignore", "/.demo/\nnode_modules\n")
    for name in ("a.md", ".demo/tree/b.md", ".demo/tree/node_modules/c.md", "node_modules/pkg/d.js"):
        project.write(name)
    assert [project.index(root).added for root in (".", ".demo/tree", "node_modules/pkg")] == [1, 1, 1]
    report = project.index()
    assert (report.added, report.removed, report.unchanged) == (0, 0, 1)
    project.write(".demo/tree/.gitignore", "b.md\n")
    assert project.index().removed == 0
    assert project.index(".demo").removed == 1
    assert list(project.owners()) == ["a.md", "node_modules/pkg/d.js"]


def test_a_file_that_was_named_stays_while_it_exists(project: Project) -> None:
    """It was indexed against the globs and ignore rules of its directory; building that does not take it back."""
    project.write(".gitignore", "b.md\n")
    for name in ("a.md", "b.md", "page.html"):
        project.write(name)
    assert [project.index(root).added for root in (".", "b.md", "page.html", "a.md")] == [1, 1, 1, 0]
    assert project.index().removed == 0
    project.write(".gitignore", "*.md\n")
    (project.directory / "page.html").unlink()
    assert (project.index().removed, list(project.owners())) == (2, ["b.md"])


def test_an_artifact_belongs_to_the_last_directory_run_that_chose_it(project: Project) -> None:
    """Narrower globs take effect for all that the same directory's build chose before, whoever was first."""
    project.write("docs/a.md")
    project.write("docs/b.txt")
    project.index("docs")
    before = project.index().change
    assert {owner.root for owner in project.owners().values()} == {"."}
    assert project.store.change() == before
    assert (project.index(".", ("*.md",)).removed, list(project.owners())) == (1, ["docs/a.md"])


def test_text_that_grew_too_large_leaves_whichever_run_brought_it(project: Project) -> None:
    """What the store has of it is not what the file says."""
    project.write("docs/a.md")
    project.index("docs")
    project.write("docs/a.md", "x" * 2_000_000)
    assert (project.index().removed, project.owners()) == (1, {})


def test_without_a_project_all_paths_are_absolute(project: Project) -> None:
    """A store that belongs to no project can be used from anywhere."""
    path = os.path.realpath(project.write("docs/a.md"))
    destination = Destination(project.store, HashingEmbedder(), tokenize, "n")
    selection = Selection(None, project.directory / "docs")
    assert [index_root(destination, selection).added for _ in range(2)] == [1, 0]
    assert [(path_, owner.root) for path_, owner in project.owners().items()] == [(path, str(Path(path).parent))]
    Path(path).unlink()
    assert index_root(destination, selection).removed == 1


def test_artifacts_of_another_root_stay_unless_their_file_is_gone(project: Project) -> None:
    """Two people may index two parts of a project with different globs."""
    project.write("docs/a.html")
    gone = project.write("docs/b.html")
    project.write("c.md")
    project.index("docs", ("*.html",))
    gone.unlink()
    report = project.index()
    assert (report.removed, list(project.owners())) == (1, ["c.md", "docs/a.html"])
    assert project.index("docs", ("*.txt",)).removed == 1
    assert list(project.owners()) == ["c.md"]


def test_files_outside_the_project_are_indexed_under_absolute_paths(project: Project) -> None:
    """A shared handbook belongs to no one project."""
    outside = project.directory.parent / "handbook"
    project.write("../handbook/a.md")
    project.index(str(outside))
    path = f"{os.path.realpath(outside)}/a.md"
    assert list(project.owners()) == [path]
    assert project.index().removed == 0
    (outside / "a.md").unlink()
    assert project.index(str(outside)).removed == 1


FIGURES = "".join(f"{number} {number * number}\n" for number in range(2000))


def test_what_is_indexed_does_not_depend_on_earlier_globs(project: Project) -> None:
    """Figures that only a request by name lets in leave with the next run without one, changed or not."""
    project.write("fig.txt", FIGURES)
    project.write("a.txt")
    assert project.index().skipped == {"data": 1}
    assert set(project.owners()) == {"a.txt"}
    report = project.index(include=("*.txt",))
    assert (report.added, report.unchanged) == (1, 1)
    report = project.index()
    assert (report.removed, report.unchanged, report.skipped) == (1, 1, {"data": 1})
    assert set(project.owners()) == {"a.txt"}


def test_what_was_asked_for_is_not_read_again_while_it_is_asked_for(project: Project, reads: list[str]) -> None:
    """Nor is an ordinary text read again because globs come or go."""
    path = project.write("fig.txt", FIGURES)
    project.write("a.txt")
    project.index(include=("*.txt",))
    os.utime(path, ns=(LONG_AGO + 1, LONG_AGO + 1))
    project.index(include=("*.txt",))
    reads.clear()
    assert (project.index(include=("*.txt",)).unchanged, reads) == (2, [])
    project.index()
    assert reads == ["fig.txt"]


def test_what_was_asked_for_of_another_directory_stays(project: Project) -> None:
    """The globs of one directory's indexing are not undone by that of the project around it."""
    project.write("data/fig.txt", FIGURES)
    project.index("data", ("*.txt",))
    before = project.owners()
    assert project.index().skipped == {"data": 1}
    assert project.index(force=True).skipped == {"data": 1}
    assert project.owners() == before
    assert project.index("data").removed == 1


def test_what_was_asked_for_and_became_text_is_like_any_other(project: Project) -> None:
    """Then nobody need ask for it any more."""
    project.write("data/fig.txt", FIGURES)
    project.index("data", ("*.txt",))
    project.write("data/fig.txt", "Words.\n", LONG_AGO + 1)
    assert project.index().changed == 1
    assert project.owners()["data/fig.txt"].root == "."
    assert project.index().unchanged == 1


# Files and runs that go wrong, and runs that are watched.


def test_an_unreadable_file_is_reported_and_its_old_text_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not gone, and one file's permissions are no reason to stop."""
    project.write("a.md")
    project.write("b.md")
    project.index()
    project.write("a.md", "changed\n", LONG_AGO + 1)

    def refuse(location: str, limit: int) -> tuple[bytes, FileStamp] | Refusal:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(artifacts, "read_bytes", refuse)
    report = project.index()
    assert (report.removed, report.unchanged, report.skipped) == (0, 1, {"unreadable": 1})
    assert [(problem.path, problem.reason) for problem in report.problems] == [
        ("a.md", "cannot be read: Permission denied")
    ]
    assert list(project.owners()) == ["a.md", "b.md"]


def test_a_file_that_breaks_our_own_code_is_reported_with_a_traceback(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One text in ten thousand must not cost the other 9,999, and the log says which it was."""
    project.write("a.md", "poison\n")
    project.write("b.md")
    real = artifacts.describe

    def describe(owner: Owner, text: str, *rest: object) -> object:
        if "poison" in text:
            raise ZeroDivisionError("division by zero")
        return real(owner, text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(artifacts, "describe", describe)
    handler = attach(tmp_path / "logs", level="error")
    report = project.index()
    detach(handler)
    assert (report.added, report.skipped) == (1, {"failed": 1})
    assert report.problems[0].reason == "cannot be indexed: ZeroDivisionError: division by zero; please report this"
    (line,) = (tmp_path / "logs" / "commonplace.jsonl").read_text().splitlines()
    assert json.loads(line)["fields"] == {"path": "a.md"}
    assert "ZeroDivisionError: division by zero" in json.loads(line)["traceback"]


def test_a_store_that_fails_stops_the_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no file can be written, and to report each of them would hide why."""

    def busy(namespace: str, writes: Sequence[OwnerWrite], **_: object) -> int:
        raise StoreBusyError("the store is busy")

    project.write("a.md")
    monkeypatch.setattr(project.store, "put_owners", busy)
    with pytest.raises(StoreBusyError):
        project.index()


def test_impossible_chunk_limits_stop_the_run(project: Project) -> None:
    """They are the caller's mistake, not the file's."""
    project.write("a.md")
    project.limits = Limits(chunk_tokens=10, chunk_overlap=10)
    with pytest.raises(UsageError):
        project.index()


def test_odd_files_are_counted_and_none_is_fatal(project: Project) -> None:
    """Real projects hold all of these."""
    project.write("latin.md", "caf\xe9 culture\n".encode("latin-1"))
    project.write("utf16.md", "\ufeffgrün\r\nblau\r\n".encode("utf-16-le"))
    project.write("broken.md", "---\ntitle: [\n---\nText.\n")
    project.write("type.md", "---\ntype: blog\n---\nText.\n")
    project.write("binary.py", b"\0" * 100)
    project.write("line.txt", "x" * 900_000)
    project.write("empty.md", "")
    project.write("generated.go", "// Code generated by x. DO NOT EDIT.\n")
    report = project.index()
    assert (report.added, report.skipped) == (6, {"binary": 1, "generated": 1})
    assert [problem.path for problem in report.problems] == ["broken.md", "latin.md", "type.md"]
    texts = {entry.path: entry.text for entry in project.entries()}
    assert texts["utf16.md"] == "grün\nblau"
    assert texts["latin.md"] == "café culture"
    assert "Text." in texts["broken.md"]
    assert "empty.md" not in texts


def test_writes_are_cut_into_small_transactions(project: Project) -> None:
    """A search in another process never waits for a whole build."""
    for number in range(7):
        project.write(f"{number}.md", f"text {number}\n")
    project.limits = Limits(batch_owners=3)
    project.index()
    assert project.store.batches == [3, 3, 1]
    project.limits = Limits(batch_bytes=1)
    project.index(force=True)
    assert project.store.batches[3:] == [1] * 7


def test_an_interruption_leaves_whole_files_and_the_next_run_completes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone always presses Ctrl-C."""
    for number in range(6):
        project.write(f"{number}.md", f"text {number}\n")
    project.limits = Limits(batch_owners=2)
    real = artifacts.describe

    def describe(owner: Owner, *rest: object) -> object:
        if owner.path == "5.md":
            raise KeyboardInterrupt
        return real(owner, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(artifacts, "describe", describe)
        project.index()
    assert (len(project.owners()), project.store.check()) == (4, [])
    report = project.index()
    assert (report.added, report.unchanged) == (2, 4)


def test_references_are_resolved_among_the_files_found(project: Project) -> None:
    """A reference that is a path can be opened."""
    project.write("docs/a.md", "See [b](b.md) and @src/c.ts and @src/gone.ts.\n")
    project.write("docs/b.md")
    project.write("src/c.ts", "import './d';\n")
    project.write("src/d.ts", "let x;\n")
    project.index()
    owners = project.owners()
    assert owners["docs/a.md"].references == ("src/c.ts", "src/gone.ts", "docs/b.md")
    assert owners["src/c.ts"].references == ("src/d.ts",)


def test_progress_begins_at_nothing_and_ends_at_all(project: Project) -> None:
    """A bar that stops at 97 % looks like a fault."""
    project.write("a.md")
    seen: list[tuple[str, int, int]] = []
    destination = Destination(project.store, HashingEmbedder(), tokenize, "n")
    index_root(destination, Selection(project.directory, project.directory), progress=lambda *step: seen.append(step))
    assert seen == [("Indexing files", 0, 1), ("Indexing files", 1, 1)]


def test_a_run_that_spares_all_does_not_take_an_empty_directory_for_deleted_files(project: Project) -> None:
    """A disk that is not mounted leaves one; whoever watches for days must not empty the store for that."""
    file = project.write("a.md")
    project.index(spares_all=True)
    file.unlink()
    with pytest.raises(NotFoundError, match="so nothing was removed from the store"):
        project.index(spares_all=True)
    assert list(project.owners()) == ["a.md"]
    assert project.index().removed == 1
    assert project.index(spares_all=True).removed == 0


def test_a_run_that_keeps_most_removes_no_more_than_half(project: Project) -> None:
    """A slip in a glob, or a disk that is not mounted, would cost hours of indexing."""
    files = [project.write(f"docs/{name}.md") for name in "abcde"]
    project.write("other/x.md")
    project.index("docs")
    project.index("other")
    with pytest.raises(RemovalError, match=r"3 of the 5 files that are indexed below .*docs") as caught:
        project.index("docs", ("[ab].md",), keep_most=True)
    assert (caught.value.removed, caught.value.indexed) == (3, 5)
    assert len(project.owners()) == 6
    assert project.index("docs", ("[abc].md",), keep_most=True).removed == 2
    for file in files[1:3]:
        file.unlink()
    with pytest.raises(RemovalError, match="2 of the 3"):
        project.index("docs", ("[abc].md",), keep_most=True)
    assert project.index("docs", ("[abc].md",)).removed == 2


def test_a_run_that_spares_all_removes_what_is_gone_where_there_is_more(project: Project) -> None:
    project.write("a.md")
    gone = project.write("b.md")
    project.index(spares_all=True)
    gone.unlink()
    assert project.index(spares_all=True).removed == 1
    assert list(project.owners()) == ["a.md"]
