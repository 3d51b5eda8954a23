"""The commands of the program `commonplace` and how their arguments are parsed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

import commonplace
from commonplace.cli.commands import Commands
from commonplace.cli.invocation import Group
from commonplace.cli.running import Invocation, run_to_the_end

HOOK_OPTION = "--stdin-json"
"""Given where a client runs the program as a hook. The exit code of wrong use would refuse its user's prompt."""


class Program(Group):
    """The outermost group: runs a command and ends the process."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run with the given arguments, or those of the process, and exit."""
        given = list(sys.argv[1:] if args is None else args)
        # Known before parsing, so that an error in the arguments themselves is told in the right form.
        invocation = Invocation(as_json="--json" in given, is_verbose="--verbose" in given or "-v" in given)
        extra.update(standalone_mode=False, obj=invocation)

        def work() -> object:
            try:
                return super(Program, self).main(given, prog_name or "commonplace", **extra)
            except click.UsageError as error:
                if HOOK_OPTION in given:
                    raise click.ClickException(error.format_message()) from error
                raise

        run_to_the_end(work, invocation)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the arguments; an interruption ends it as below."""
        with _quietly():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was parsed."""
        with _quietly():
            return super().invoke(ctx)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep click from putting a blank line before our message, and from taking a closed pipe for a failure."""
    try:
        yield
    except BrokenPipeError:
        from commonplace.cli.failures import silence_output

        silence_output()
        raise click.exceptions.Exit(0) from None
    except KeyboardInterrupt as error:
        raise click.Abort from error


@click.group(
    cls=Program,
    commands=Commands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(commonplace.__version__, prog_name="commonplace")
def cli() -> None:
    """A memory engine for AI agents: index a project, and find the passages that matter.

    Everything is kept in one local directory; nothing needs a server, a key or a download.
    """
