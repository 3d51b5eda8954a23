"""What a remedy says to type can be typed: each command that the source names with "see" runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import commonplace
from commonplace.cli.app import HELP_OPTIONS, cli

SOURCE = Path(commonplace.__file__).parent
NAMED = re.compile(r"see `commonplace ([^`{]+)`")
SAID = sorted({said for file in SOURCE.rglob("*.py") for said in NAMED.findall(file.read_text(encoding="utf-8"))})


@pytest.mark.parametrize("said", SAID)
def test_a_command_that_a_remedy_names_runs_as_it_is_written(said: str) -> None:
    """Where something must be named besides, the remedy has a word in capitals for it."""
    command: click.Command = cli
    words = said.split()
    while isinstance(command, click.Group) and words:
        command = command.commands[words.pop(0)]
    assert command.parse_args(click.Context(command, info_name=said, **HELP_OPTIONS), words) == []


def test_remedies_that_name_commands_are_looked_through() -> None:
    assert "list" in SAID
