"""Hold each package to its budget in lines of Python, and each function to 80 lines; exit with 1 when one is over.

The budgets stand in `[tool.commonplace.budget]` of pyproject.toml. `--tighten` lowers them to what is there now, with
an entry for each new package and none for one that is gone; nothing but an edit by hand raises one. SQL, HTML, CSS,
JavaScript and word lists are not counted, nor is the docstring of a function.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("benchmarks", "scripts", "src", "tests")
SOURCE = Path("src", "commonplace")
MAX_FUNCTION_LINES = 80
TABLE = "[tool.commonplace.budget]"
TOP = "top"
REMEDY = "remove code, or raise the budget in pyproject.toml and say why in the commit"


def counts(root: Path) -> dict[str, int]:
    """Return the lines of each package, of the files beside them ("top"), of all, and the number of files."""
    lines: Counter[str] = Counter()
    modules = list((root / SOURCE).rglob("*.py"))
    for module in modules:
        package, *inside = module.relative_to(root / SOURCE).parts
        lines[package if inside else TOP] += module.read_text(encoding="utf-8").count("\n")
    return {"files": len(modules), "lines": lines.total(), **dict(sorted(lines.items()))}


def budgets(root: Path) -> dict[str, int]:
    """Return the budgets under the names of `counts`."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    limits: dict[str, int] = settings["tool"]["commonplace"]["budget"]
    return limits


def over_budget(present: Mapping[str, int], allowed: Mapping[str, int]) -> Iterator[str]:
    """Yield one sentence for each count that is over its budget, and for each package without one."""
    for name, count in present.items():
        path = "src/commonplace" if name in ("files", "lines") else f"src/commonplace/{'*.py' if name == TOP else name}"
        unit = "files" if name == "files" else "lines of Python"
        if name not in allowed:
            yield f"{path} has {count:,} {unit} and no budget; add one: python scripts/check_budget.py --tighten"
        elif count > allowed[name]:
            yield f"{path} has {count:,} {unit}, the budget is {allowed[name]:,}; {REMEDY}"


def tighten(root: Path) -> None:
    """Lower each budget to the present count."""
    path, present, allowed = root / "pyproject.toml", counts(root), budgets(root)
    rows = "".join(f"{name} = {min(count, allowed.get(name, count))}\n" for name, count in present.items())
    text = path.read_text(encoding="utf-8")
    path.write_text(
        re.sub(rf"(?m)(?<=^{re.escape(TABLE)}\n)(?:\w+ = .*\n)*", lambda _: rows, text, count=1), encoding="utf-8"
    )


def long_functions(root: Path) -> Iterator[str]:
    """Yield one sentence for each function that is too long."""
    for path in (path for folder in PLACES for path in sorted((root / folder).rglob("*.py"))):
        name = path.relative_to(root)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(name))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if (lines := length(node)) > MAX_FUNCTION_LINES:
                yield f"{name}:{node.lineno} {node.name} has {lines} lines, the limit is {MAX_FUNCTION_LINES}; split it"


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function from `def` to its end, without its docstring."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is None:
        return total
    return total - ((first.end_lineno or first.lineno) - first.lineno + 1)


def main(arguments: list[str]) -> int:
    """Check the tree below a directory, this one by default."""
    root = next((Path(argument) for argument in arguments if not argument.startswith("--")), ROOT)
    if "--tighten" in arguments:
        tighten(root)
    problems = [*over_budget(counts(root), budgets(root)), *long_functions(root)]
    for sentence in problems:
        print(sentence, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
