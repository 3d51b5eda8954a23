"""The examples of the manual, in Python and on the command line, run as they stand."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [
    pytest.param(code, id=f"{page}-{number}")
    for page in (
        "README.md",
        "docs/agent.md",
        "docs/project.md",
        "docs/memories.md",
        "docs/forgetting.md",
        "docs/specialist.md",
        "docs/models.md",
        "docs/graph.md",
        "docs/graphiti.md",
        "docs/ledger.md",
        "docs/consolidation.md",
        "docs/specs.md",
    )
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL), 1)
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(program: Program, code: str) -> None:
    """Somebody copies it as the first thing they do."""
    exec(compile(code, "example", "exec"), {})
    assert program.json("index", "status")["counts"]["owners"] >= 4


def commands(page: str) -> list[str]:
    """Return what a page has people type to Commonplace, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    return re.findall(r"^commonplace (.*)$", re.sub(r"\\\n\s*", "", "\n".join(blocks)), re.MULTILINE)


PAGES = [
    "README.md",
    "docs/coding-agent.md",
    "docs/project.md",
    "docs/look-inside.md",
    "docs/search.md",
    "docs/memories.md",
    "docs/forgetting.md",
    "docs/specialist.md",
    "docs/graph.md",
    "docs/consolidation.md",
    "docs/health.md",
    "docs/ledger.md",
    "docs/models.md",
    "docs/knowledge.md",
    "docs/specs.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_run_in_their_order(bare: Program, page: str) -> None:
    """They are typed as they stand, into a project that has no store yet."""
    typed = commands(page)
    assert len(typed) >= 3
    shutil.copytree(ROOT / "examples", bare.project / "examples")
    if "init" not in typed:
        bare.run("init")
        bare.run("index", "build")
    for line in typed:
        bare.run(*shlex.split(line, comments=True))


def test_auto_retrieval_document_of_the_manual_is_accepted_and_rules_the_build(program: Program) -> None:
    """It is copied whole and then changed line by line."""
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/settings.md").read_text("utf-8"), re.DOTALL)
    (program.project.parent / "retrieval.yaml").write_text(example, "utf-8")
    program.run("index", "build", "--config", "../retrieval.yaml")
    shown = program.json("settings", "show")
    assert shown["index.include"]["value"] == ["docs/**/*.md", "src/**/*.py"]
    assert shown["index.chunk_tokens"]["value"] == 256
    assert (shown["search.stage1_limit"]["value"], shown["search.limit"]["value"]) == (200, 5)
