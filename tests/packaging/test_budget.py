"""Packages and functions stay as small as the build says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_budget.py"
REMEDY = "remove code, or raise the budget in pyproject.toml and say why in the commit"
HEAD = "[tool.ruff]\nline-length = 120\n\n[tool.commonplace.budget]\n"
TAIL = "\n[tool.importlinter]\nroot_package = 'commonplace'\n"


def check(root: Path, *options: str) -> tuple[str, int]:
    """Return what the script says of a tree, and its exit status."""
    command = [sys.executable, str(SCRIPT), *options, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr, done.returncode


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with ten lines of text, one at the top, and exactly the budgets that it needs."""
    package = tmp_path / "src" / "commonplace"
    (package / "text" / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("x = 1\n")
    (package / "text" / "__init__.py").write_text("x = 1\n" * 4)
    (package / "text" / "deep" / "tokens.py").write_text("x = 1\n" * 6)
    (package / "text" / "words.txt").write_text("word\n" * 1_000)
    (tmp_path / "pyproject.toml").write_text(f"{HEAD}files = 3\nlines = 11\ntext = 10\ntop = 1\n{TAIL}")
    return tmp_path


def test_tree_within_its_budgets_passes(tree: Path) -> None:
    """A budget is what may be there; lists of words do not count."""
    assert check(tree) == ("", 0)


@pytest.mark.parametrize(
    ("path", "sentences"),
    [
        (
            "text/deep/tokens.py",
            [
                "src/commonplace has 12 lines of Python, the budget is 11;",
                "src/commonplace/text has 11 lines of Python, the budget is 10;",
            ],
        ),
        (
            "__init__.py",
            [
                "src/commonplace has 12 lines of Python, the budget is 11;",
                "src/commonplace/*.py has 2 lines of Python, the budget is 1;",
            ],
        ),
    ],
)
def test_line_too_many_is_named_with_package_and_budget(tree: Path, path: str, sentences: list[str]) -> None:
    """Whoever adds a line learns where it is one too many and what to do."""
    with (tree / "src" / "commonplace" / path).open("a") as file:
        file.write("x = 1\n")
    assert check(tree) == ("".join(f"{sentence} {REMEDY}\n" for sentence in sentences), 1)


def test_file_too_many_is_named(tree: Path) -> None:
    """Fragments cost a reader more than lines do."""
    (tree / "src" / "commonplace" / "text" / "empty.py").touch()
    assert check(tree) == (f"src/commonplace has 4 files, the budget is 3; {REMEDY}\n", 1)


def test_package_without_a_budget_is_refused_until_it_has_one(tree: Path) -> None:
    """A new package says how much it may grow to."""
    (tree / "src" / "commonplace" / "text").rename(tree / "src" / "commonplace" / "words")
    said, code = check(tree)
    assert said == (
        "src/commonplace/words has 10 lines of Python and no budget;"
        " add one: python scripts/check_budget.py --tighten\n"
    )
    assert code == 1
    assert check(tree, "--tighten") == ("", 0)
    assert (tree / "pyproject.toml").read_text() == f"{HEAD}files = 3\nlines = 11\ntop = 1\nwords = 10\n{TAIL}"


def test_tightening_lowers_budgets_and_raises_none(tree: Path) -> None:
    """What was saved stays saved; what grew needs a reason."""
    (tree / "src" / "commonplace" / "text" / "__init__.py").write_text("")
    (tree / "src" / "commonplace" / "__init__.py").write_text("x = 1\n" * 3)
    said, code = check(tree, "--tighten")
    assert said == f"src/commonplace/*.py has 3 lines of Python, the budget is 1; {REMEDY}\n"
    assert code == 1
    assert (tree / "pyproject.toml").read_text() == f"{HEAD}files = 3\nlines = 9\ntext = 6\ntop = 1\n{TAIL}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n" * 4_000, ""),
        ("def long():\n" + "    x = 1\n" * 79, ""),
        ("def long():\n" + "    x = 1\n" * 80, "tests/module.py:1 long has 81 lines, the limit is 80; split it\n"),
        ('def told():\n    """Say.\n\n    More.\n    """\n' + "    x = 1\n" * 79, ""),
        (
            "class A:\n    async def long(self):\n" + "        x = 1\n" * 80,
            "tests/module.py:2 long has 81 lines, the limit is 80; split it\n",
        ),
    ],
)
def test_function_that_is_too_long_is_named_with_its_limit(tree: Path, text: str, told: str) -> None:
    """One engine class of thousands of lines begins with one line too many."""
    (tree / "tests").mkdir()
    (tree / "tests" / "module.py").write_text(text)
    assert check(tree) == (told, 1 if told else 0)
