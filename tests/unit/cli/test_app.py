"""The table of commands, and what using one of them loads."""

from __future__ import annotations

import os
import pkgutil
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import click
from click.testing import CliRunner

import commonplace.cli
from commonplace.cli.app import SECTIONS, SHORTCUTS, Command, Commands, cli
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
    assert {each.name for key, each in made.items() if key not in inner} == set(Commands()) - set(SHORTCUTS)


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


def every(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, member in command.commands.items():
            yield from every(member, (*path, name))


def test_each_command_has_an_example_that_is_one_of_it() -> None:
    """People copy the example before they read the options."""
    for path, command in every(cli):
        if not isinstance(command, click.Group):
            assert isinstance(command, Command)
            program, *words = shlex.split(command.example)
            group: click.Command = cli
            while isinstance(group, click.Group):
                group = group.commands[words.pop(0)]
            assert (program, group) == ("commonplace", command), path
            for name in words:
                if name.startswith("-") and name != "-":
                    assert name in {each for option in command.params for each in option.opts}, (path, name)


def test_help_lists_the_commands_by_what_they_are_for() -> None:
    shown = CliRunner().invoke(cli, ["-h"]).stdout
    assert [line[:-1] for line in shown.splitlines() if line[:-1] in SECTIONS] == list(SECTIONS)
    for names in SECTIONS.values():
        assert all(f"\n  {name} " in shown for name in names)
    assert not any(f"\n  {name} " in shown for name in SHORTCUTS)
    for path, _ in every(cli):
        assert CliRunner().invoke(cli, [*path, "-h"]).exit_code == 0


def test_a_shortcut_is_the_command_of_its_group() -> None:
    commands = Commands()
    for name in SHORTCUTS:
        groups = (commands[group] for group in ("memory", "store"))
        assert any(isinstance(group, click.Group) and group.commands.get(name) is commands[name] for group in groups)


def test_completion_names_commands_and_no_shortcut() -> None:
    environment = {"_COMMONPLACE_COMPLETE": "bash_complete", "COMP_WORDS": "commonplace ", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['commonplace']; from commonplace.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    assert set(done.stdout.split()) == {f"plain,{name}" for name in set(Commands()) - set(SHORTCUTS)}
