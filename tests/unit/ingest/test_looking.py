"""What makes a look at a directory another one: what an indexing would see, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.ingest.projects import LONG_AGO, Project

from commonplace.errors import NotFoundError
from commonplace.ingest.discover import Look, Selection, look


@pytest.fixture
def seen(project: Project) -> Callable[[], Look]:
    project.write("a.md", "one\n", LONG_AGO)
    project.write("docs/b.md", "two\n", LONG_AGO)
    project.write("docs/old.md", "three\n", LONG_AGO)
    project.write("picture.png", "four\n", LONG_AGO)
    selection = Selection(project=project.directory, root=project.directory)
    return lambda: look(selection)


def test_a_directory_that_did_not_change_looks_the_same(seen: Callable[[], Look], project: Project) -> None:
    first = seen()
    status = project.directory.stat()
    assert first == seen()
    assert (first.files, first.devices, first.root) == (3, {status.st_dev}, (status.st_dev, status.st_ino))


@pytest.mark.parametrize(
    "change",
    [
        lambda project: project.write("a.md", "ONE\n", LONG_AGO + 1),
        lambda project: project.write("a.md", "longer\n", LONG_AGO),
        lambda project: project.write("c.md", "new\n", LONG_AGO),
        lambda project: (project.directory / "a.md").unlink(),
        lambda project: (project.directory / "a.md").rename(project.directory / "z.md"),
        lambda project: (project.directory / "docs").rename(project.directory / "texts"),
        lambda project: project.write(".gitignore", "old.md\n", LONG_AGO),
        lambda project: project.write("docs/.commonplaceignore", "*\n!b.md\n", LONG_AGO),
        lambda project: project.write("docs/CACHEDIR.TAG", "", LONG_AGO),
    ],
    ids="edited grown new deleted renamed directory-renamed ignored ignored-below cache".split(),
)
def test_what_an_indexing_would_see_makes_another_look(
    seen: Callable[[], Look], project: Project, change: Callable[[Project], object]
) -> None:
    before = seen()
    change(project)
    assert seen() != before


@pytest.mark.parametrize("length", range(1, 40))
def test_two_files_that_change_places_make_another_look(
    seen: Callable[[], Look], project: Project, length: int
) -> None:
    """The digest is a sum, of which each term is of one file and its own path; whatever their sizes are."""
    project.write("b.md", "x" * length + " longer than one\n", LONG_AGO)
    before = seen()
    a, b, aside = (project.directory / name for name in ("a.md", "b.md", "x.md"))
    for file, name in ((a, aside), (b, a), (aside, b)):
        file.rename(name)
    assert seen() != before


def test_what_no_indexing_takes_makes_no_other_look(seen: Callable[[], Look], project: Project) -> None:
    """A build that writes its products all day would else start runs all day."""
    before = seen()
    project.write("picture.png", "other\n", LONG_AGO + 1)
    project.write(".git/HEAD", "ref: refs/heads/other\n", LONG_AGO + 1)
    project.write("node_modules/a.md", "other\n", LONG_AGO + 1)
    assert seen() == before


def test_how_long_it_took_is_told_and_not_compared(project: Project) -> None:
    ticks = iter([1.0, 3.5])
    found = look(Selection(project=None, root=project.directory), lambda: next(ticks))
    assert found.seconds == 2.5
    assert found == replace(found, seconds=9.0)


def test_an_empty_directory_has_no_files_and_no_disks(project: Project) -> None:
    found = look(Selection(project=None, root=project.directory))
    assert (found.files, found.digest, found.devices) == (0, 0, frozenset())


def test_a_root_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no file or directory"):
        look(Selection(project=None, root=tmp_path / "gone"))
