"""The table of commands, and what using one of them loads."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import click

import commonplace.cli
from commonplace.cli.app import Commands, cli
from commonplace.cli.consolidate import program


def test_each_command_stands_under_its_own_name() -> None:
    commands = Commands()
    assert {name: command.name for name, command in commands.items()} == {name: name for name in commands}


def test_no_command_is_left_out() -> None:
    """Whoever writes one and forgets the table would never be told."""
    made: dict[int, click.Command] = {}
    for module in pkgutil.iter_modules(commonplace.cli.__path__):
        values = vars(import_module(f"commonplace.cli.{module.name}")).values()
        commands = (each for each in values if isinstance(each, click.Command) and each not in (cli, program))
        made |= {id(each): each for each in commands}
    groups = [each for each in made.values() if isinstance(each, click.Group)]
    inner = {id(each) for group in groups for each in group.commands.values()}
    assert {each.name for key, each in made.items() if key not in inner} == set(Commands())


def test_a_command_loads_no_module_of_another() -> None:
    """A client starts one process after the other, and each start is felt."""
    program = (
        "import sys\nfrom commonplace.cli.app import cli\n"
        "assert cli.get_command(None, 'mcp').name == 'mcp'\nassert cli.get_command(None, 'dream') is None\n"
        "print(*(name for name in sys.modules if name.startswith('commonplace.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("commonplace.cli.") for name in done.stdout.split()}
    assert "mcp" in loaded
    assert loaded.isdisjoint({"search", "memory", "store", "forget", "benchmark", "index"})
