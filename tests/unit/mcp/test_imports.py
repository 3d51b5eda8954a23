"""What a server costs before it serves: the protocol is written on little, so that a process a client is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import commonplace.mcp

HEAVY = (
    "asyncio anyio pydantic mcp jsonschema numpy sqlite3 tantivy logging click rich yaml socket ssl http email "
    "concurrent.futures multiprocessing urllib.parse commonplace.engine"
).split()
HERE = Path(commonplace.mcp.__file__).parent


def test_serving_loads_nothing_heavy() -> None:
    """Not at import and not for the handshake and a list; the SDK takes 55 MB and 600 ms for the same."""
    program = (
        "import io, sys\n"
        "from commonplace.mcp.protocol import Offer, Registry\n"
        "from commonplace.mcp.server import serve\n"
        "tool = Offer({'name': 't', 'inputSchema': {'type': 'object'}}, lambda arguments, context: None)\n"
        'said = b\'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\\n\'\n'
        'said += b\'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\\n\'\n'
        "out = io.BytesIO()\n"
        "serve(Registry('s', '1', 'S', tools=(tool,)), io.BytesIO(said), out)\n"
        "assert out.getvalue().count(b'result') == 2\n"
        "print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()).isdisjoint(HEAVY)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            is_package = node.module == "commonplace.mcp"
            yield from (f"{node.module}.{name.name}" for name in node.names) if is_package else [node.module]


def test_protocol_knows_nothing_of_memories() -> None:
    """It imports itself, the wire, our errors and the standard library; what is offered is told to it."""
    wire = {"commonplace.dataclasses", "commonplace.errors", "commonplace.formats.jsonrpc"}
    reached, left = set(), ["server"]
    while left:
        stem = left.pop()
        reached.add(stem)
        for name in imported(HERE / f"{stem}.py"):
            if name.startswith("commonplace.mcp."):
                inner = name.removeprefix("commonplace.mcp.")
                left += [inner] if inner not in reached else []
            else:
                assert name in wire or name.split(".")[0] in sys.stdlib_module_names, (stem, name)
    assert {"server", "protocol", "schema"} <= reached
