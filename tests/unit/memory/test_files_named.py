"""Files that a memory speaks of: which words are paths, and what became of the files since."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.memory.admission import MAX_BYTES, files_named, what_became

SUM_OF_ONE = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("src/auth/token.ts", "a.py", "docs/read me.md", "Makefile", ".env.local"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one")
    (tmp_path / "outside.py").write_text("one")
    (tmp_path / "project" / "link.py").symlink_to(tmp_path / "outside.py")
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("The bug is in src/auth/token.ts.", ["src/auth/token.ts"]),
        ("see `a.py`, a.py:10-12 and @src/auth/token.ts#login", ["a.py", "src/auth/token.ts"]),
        ("[the code](./a.py)", ["a.py"]),
        ("nothing.here is a file, nor is 1.5 or e.g. this", []),
        ("../outside.py /etc/passwd link.py http://a.py/a.py", []),
        ("", []),
    ],
)
def test_paths_of_files_that_are_there_are_known(project: Path, text: str, paths: list[str]) -> None:
    assert files_named([text], project) == tuple(f"{path}@sha256:{SUM_OF_ONE}" for path in paths)


def test_a_long_list_speaks_of_no_file(project: Path) -> None:
    for number in range(11):
        (project / f"f{number}.py").write_text("one")
    names = [f"f{number}.py" for number in range(11)]
    assert len(files_named([" ".join(names[:10])], project)) == 10
    assert files_named([" ".join(names)], project) == ()


def test_there_are_no_files_without_a_project() -> None:
    assert files_named(["a.py"], None) == ()


def test_a_file_is_the_same_changed_or_gone(project: Path) -> None:
    (reference,) = files_named(["a.py"], project)
    assert what_became(reference, project) == ""
    (project / "a.py").write_text("two")
    assert what_became(reference, project) == "a.py has changed"
    with (project / "a.py").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert (what_became(reference, project), files_named(["a.py"], project)) == ("a.py has changed", ())
    (project / "a.py").unlink()
    assert what_became(reference, project) == "a.py was deleted"


@pytest.mark.parametrize("reference", ["not one", "x@sha256:short", f"@sha256:{'0' * 64}"])
def test_of_what_refers_to_no_file_nothing_is_said(project: Path, reference: str) -> None:
    assert what_became(reference, project) == ""
