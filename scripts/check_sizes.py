"""Hold functions to a size that keeps them readable; prints what is too long and exits with 1.

A function's docstring does not count: what a public name promises should cost it nothing.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("src", "scripts", "tests")
FUNCTION_LINES = 80


def faults(text: str, name: str) -> Iterator[str]:
    """Yield one sentence for each function of a module that is too long."""
    for node in ast.walk(ast.parse(text, name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = length(node)
            if lines > FUNCTION_LINES:
                yield f"{name}:{node.lineno} {node.name} has {lines} lines, the limit is {FUNCTION_LINES}; name a part"


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function from `def` to its end, without its docstring."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is None:
        return total
    return total - ((first.end_lineno or first.lineno) - first.lineno + 1)


def main(root: Path = ROOT) -> int:
    """Check every module below a directory."""
    modules = [path for place in PLACES for path in sorted((root / place).rglob("*.py"))]
    found = [
        fault for path in modules for fault in faults(path.read_text(encoding="utf-8"), str(path.relative_to(root)))
    ]
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
