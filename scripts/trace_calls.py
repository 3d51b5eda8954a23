"""Count what a reader must know to follow one call: the functions, modules and packages that it runs.

    python scripts/trace_calls.py            the calls: search, remember, memory_search, one run of consolidation
    python scripts/trace_calls.py --tree     the source: lines, files, statements, imports, comments
    python scripts/trace_calls.py --json     either as JSON

Each call is made on a copy of a store of fifty memories, in a process of its own. "cold" is the first call with
the opening of the store and whatever runs while modules are imported, "warm" is the third call. Comprehensions, lambdas
and the bodies of modules and classes do not count.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, FrameType

import commonplace
from commonplace.engine import Engine

SOURCE = Path(commonplace.__file__).resolve().parent
MEMORIES = 50
TOPICS = ("the release", "the database", "the parser", "the office", "the budget")
QUERY = "who decided about the database"
Row = dict[str, int]


def statement(number: int) -> str:
    """Return the text of a memory; some share a topic and a name, so that agents find something to do."""
    topic = TOPICS[number % len(TOPICS)]
    return (
        f"Anna Berg of team {number % 7} decided on 2026-03-{number % 28 + 1:02d} that {topic} moves to step {number}."
    )


def search(engine: Engine) -> Callable[[], object]:
    """Return a call of `Engine.search`."""
    return lambda: engine.search(QUERY)


def remember(engine: Engine) -> Callable[[], object]:
    """Return a call of `Engine.remember`, of another sentence each time."""
    numbers = iter(range(MEMORIES, MEMORIES + 10))
    return lambda: engine.remember(statement(next(numbers)))


def memory_search(engine: Engine) -> Callable[[], object]:
    """Return a call of the tool of the MCP server, without its transport."""
    from commonplace.mcp.protocol import CallContext, Terms, call_tool
    from commonplace.mcp.registry import registry_of

    registry = registry_of(lambda _: engine)
    context = CallContext(Terms("2025-11-25"))
    return lambda: call_tool(registry, {"name": "memory_search", "arguments": {"query": QUERY}}, context)


def consolidate(engine: Engine) -> Callable[[], object]:
    """Return a run of all agents, which does not wait between its writes."""
    return lambda: engine.consolidate(rate_limit=10_000)


CALLS = (search, remember, memory_search, consolidate)


@contextmanager
def traced(codes: set[CodeType]) -> Iterator[None]:
    """Add the code of each function of ours that is called inside the block, by threads that it starts as well."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def figures(codes: set[CodeType]) -> Row:
    """Return how many functions, modules and packages some code is in."""
    own_code = {code for code in codes if Path(code.co_filename).is_relative_to(SOURCE) and is_function(code)}
    paths = {Path(code.co_filename).relative_to(SOURCE) for code in own_code}
    # A second run of one `def`, as of a decorator's wrapper, is no second function.
    functions = {(code.co_filename, code.co_firstlineno, code.co_name) for code in own_code}
    return {"functions": len(functions), "modules": len(paths), "packages": len({path.parts[0] for path in paths})}


def is_function(code: CodeType) -> bool:
    """Tell a function from the bodies of modules, classes, comprehensions and lambdas."""
    return not code.co_name.startswith("<") and bool(code.co_flags & 2)  # CO_NEWLOCALS: bodies of classes lack it


def measure(name: str, store: Path) -> dict[str, Row]:
    """Return the figures of the first and the third call."""
    (make,) = (function for function in CALLS if function.__name__ == name)
    cold: set[CodeType] = set()
    warm: set[CodeType] = set()
    with ExitStack() as stack:
        with traced(cold):
            engine = stack.enter_context(commonplace.open(store))
            call = make(engine)
            call()
        call()
        with traced(warm):
            call()
    return {"cold": figures(cold), "warm": figures(warm)}


def calls() -> dict[str, Row]:
    """Return the figures of every call."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        variables = {key: value for key, value in os.environ.items() if not key.startswith(("COMMONPLACE", "XDG"))}
        environment = {**variables, "HOME": folder}
        run = [sys.executable, __file__]
        subprocess.run([*run, "--make", str(home / "store")], env=environment, check=True, cwd=folder)
        for name in (call.__name__ for call in CALLS):
            shutil.copytree(home / "store", home / name)
            command = [*run, "--one", name, str(home / name)]
            process = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=folder)
            rows.update({f"{name}, {kind}": row for kind, row in json.loads(process.stdout).items()})
    return rows


def make_store(path: Path) -> None:
    """Fill the store that every call gets a copy of."""
    with commonplace.open(path) as engine:
        for number in range(MEMORIES):
            engine.remember(statement(number))
        engine.search(QUERY)


def tree() -> dict[str, float]:
    """Return the figures of the source below src/commonplace."""
    modules = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}
    counts: Counter[str] = Counter(files=len(modules))
    importers: dict[str, set[str]] = {name: set() for name in modules}
    comments = 0
    for name, path in modules.items():
        text = path.read_text(encoding="utf-8")
        parsed = ast.parse(text)
        nodes = list(ast.walk(parsed))
        counts["lines"] += text.count("\n")
        counts["packages"] += path.name == "__init__.py"
        counts["statements"] += sum(isinstance(node, ast.stmt) and not is_docstring(node) for node in nodes)
        counts["TYPE_CHECKING blocks"] += sum(isinstance(node, ast.If) and is_for_checkers(node) for node in nodes)
        counts["imports inside functions"] += len(inner_imports(nodes))
        with path.open("rb") as file:
            comments += sum(token.type == tokenize.COMMENT for token in tokenize.tokenize(file.readline))
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for imported in imports(nodes, package):
            if imported in importers and imported != name:
                importers[imported].add(name)
    counts["modules with one importer"] = sum(len(names) == 1 for names in importers.values())
    return {**counts, "comments in 100 lines": round(100 * comments / counts["lines"], 2)}


def module_name(path: Path) -> str:
    """Return the name by which a file is imported."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is a bare string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_for_checkers(node: ast.If) -> bool:
    """Return whether a block is read by type checkers alone."""
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def inner_imports(nodes: list[ast.AST]) -> set[ast.AST]:
    """Return the imports inside functions."""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inner = (inner_node for function in functions for inner_node in ast.walk(function))
    return {inner_node for inner_node in inner if isinstance(inner_node, ast.Import | ast.ImportFrom)}


def imports(nodes: list[ast.AST], package: str) -> Iterator[str]:
    """Yield the names of what a module imports; `from a import b` may mean a module `a.b`, else it means `a`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package.split(".")[: 1 - node.level or None], node.module or ""]).rstrip(".")
            origin = base if node.level else node.module or ""
            yield from (origin, *(f"{origin}.{alias.name}" for alias in node.names))


def main(arguments: list[str]) -> int:
    """Print a table, or JSON."""
    match arguments:
        case ["--make", path]:
            make_store(Path(path))
            return 0
        case ["--one", name, path]:
            print(json.dumps(measure(name, Path(path))))
            return 0
    if "--tree" in arguments:
        source = tree()
        rows = [f"{name:<28}{value:>10,}" for name, value in source.items()]
        print(json.dumps(source) if "--json" in arguments else "\n".join(rows))
        return 0
    table_rows = calls()
    head = f"{'':<22}{'functions':>11}{'modules':>11}{'packages':>11}"
    table = [f"{name:<22}" + "".join(f"{value:>11,}" for value in row.values()) for name, row in table_rows.items()]
    print(json.dumps(table_rows) if "--json" in arguments else "\n".join([head, *table]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
