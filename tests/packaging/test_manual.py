"""The manual says what the code says, and its examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from commonplace.cli.app import SHORTCUTS, cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "llms.txt"])


def commands(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    found = [(name, command)]
    if isinstance(command, click.Group):
        for member in command.commands.values():
            found += commands(member, f"{name} {member.name}")
    return found


def test_generated_pages_are_up_to_date() -> None:
    """A page that lags behind the code misleads; `make docs` writes it anew."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate_docs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_command_is_documented_and_explains_itself() -> None:
    """Each command and each option says what it is for."""
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    for name, command in commands(cli, "commonplace"):
        is_listed = not command.hidden and name.removeprefix("commonplace ") not in SHORTCUTS
        assert not is_listed or re.search(rf"^## {name.removeprefix('commonplace ')}(?! [a-z])", page, re.MULTILINE)
        assert command.help, name
        # What a list of commands has room for on a terminal of 80 columns.
        assert name == "commonplace" or not command.get_short_help_str(limit=60).endswith("..."), name
        silent = [option.name for option in command.params if isinstance(option, click.Option) and not option.help]
        assert silent == [], name


def anchors(page: Path) -> set[str]:
    """Return what headings are linked to by, as GitHub does."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A manual is read by following its links."""
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8"))
    for link, anchor in links:
        if "://" in link:
            continue
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or target.suffix != ".md" or anchor in anchors(target), f"{link}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_in_examples_exist(page: Path) -> None:
    """An example that no longer runs is worse than none."""
    known = dict(commands(cli, "commonplace"))
    for line in re.findall(r"^(?:\$ )?(commonplace .*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        words = line.split("#")[0].split()
        name = next(" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in known)
        options = {text for option in known[name].params for text in (*option.opts, *option.secondary_opts)}
        used = {word.partition("=")[0] for word in words if re.fullmatch(r"--[a-z0-9-]+(=.*)?", word)}
        assert used - options - {"--help", "--version"} == set(), line


def test_the_worked_example_names_what_is_there() -> None:
    """Who follows it must find each symbol in its package."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Example")[2]
    rows = re.findall(r"^\| .+ \| (`.+`) \| `(\w+)` \|$", text, re.MULTILINE)
    assert len(rows) > 6
    for symbols, package in rows:
        source = "".join(path.read_text("utf-8") for path in (ROOT / "src" / "commonplace" / package).rglob("*.py"))
        for symbol in re.findall(r"`(\w+)`", symbols):
            assert re.search(rf"^\s*(?:def |class )?{symbol}\b", source, re.MULTILINE), (symbol, package)
