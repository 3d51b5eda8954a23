"""Which run an artifact belongs to, and when it leaves the store."""

from __future__ import annotations

import os
from pathlib import Path

from tests.unit.ingest.projects import LONG_AGO, Project, tokenize

from commonplace.ingest.artifacts import index_root
from commonplace.ingest.discover import Selection
from commonplace.ingest.passages import Destination
from commonplace.models.hashing import HashingEmbedder


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
