"""The command line `commonplace`: options of all commands, the table of commands, errors and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

import click

import commonplace
from commonplace.cli.input import filled
from commonplace.cli.main import Invocation, run_to_the_end
from commonplace.cli.output import print_json, say
from commonplace.errors import CommonplaceError, ConfigError, UsageError
from commonplace.text.escaping import harmless_line


def _remember(attribute: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if isinstance(value, str):
            filled(context, parameter, value)
        if value:
            setattr(invocation_of(context), attribute, value)

    return callback


def invocation_of(context: click.Context) -> Invocation:
    """Return the one invocation that a context and all its parents share."""
    root = context.find_root()
    if not isinstance(root.obj, Invocation):
        root.obj = Invocation()
    return root.obj


pass_invocation = click.make_pass_decorator(Invocation)


def _shown(parameter: click.Parameter, context: click.Context) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.make_metavar(context).strip("[].")


def shared_options() -> list[click.Parameter]:
    """Return the options that every command takes, before or after its name; the later one wins."""
    return [
        click.Option(
            ["--store"],
            metavar="DIRECTORY",
            expose_value=False,
            callback=_remember("store"),
            help="Use this store instead of the one found upward from here.",
        ),
        click.Option(
            ["--namespace"],
            metavar="NAME",
            expose_value=False,
            callback=_remember("namespace"),
            help="Use this namespace of the store.",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_remember("as_json"),
            help="Print one JSON value instead of text.",
        ),
        click.Option(
            ["--verbose", "-v"],
            is_flag=True,
            expose_value=False,
            callback=_remember("is_verbose"),
            help="Tell on standard error what is done, and show the traceback of an error.",
        ),
    ]


class Command(click.Command):
    """A command that also takes the shared options.

    Args:
        makes_store: it makes a store in a directory that `--store` names and that has none.
    """

    def __init__(self, *args: Any, makes_store: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]
        self._makes_store = makes_store

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error names its options, not the parameters of the library that they are passed as."""
        invocation_of(ctx).makes_store = self._makes_store
        try:
            return super().invoke(ctx)
        except UsageError as error:
            error.rename({each.name: _shown(each, ctx) for each in self.params if each.name})
            raise


class Group(click.Group):
    """A group that also takes the shared options, as do its commands."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]


SUCCESS, FAILURE, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

EXIT_CODES: Mapping[int, str] = {
    SUCCESS: "the command did what was asked; a search that found nothing relevant belongs here",
    FAILURE: "the command could not do it; the message on standard error says why and what to do",
    WRONG_USE: "the request itself is wrong: an option, a settings file or a configuration document",
    INTERRUPTED: "interrupted by Ctrl-C; what was acknowledged before is kept",
}


def exit_code(error: BaseException) -> int:
    """Return the exit code that an error stands for."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    if isinstance(error, UsageError | click.UsageError):
        return WRONG_USE
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    return FAILURE


def report(error: BaseException, invocation: Invocation, code: int | None = None) -> None:
    """Print an error on standard error: one line, or one JSON value, with a traceback where that was asked for.

    Args:
        code: with which the process ends; None is the one that the error stands for.
    """
    if invocation.as_json:
        told = exit_code(error) if code is None else code
        print_json({"error": _described(error), "exit_code": told}, indent=None, err=True)
    elif isinstance(error, KeyboardInterrupt | click.Abort):
        stopped = error.__cause__ or error  # Ctrl-C passes click as an abortion; what was told of it is on the cause
        say("\n".join(["interrupted", *getattr(stopped, "__notes__", ())]), err=True)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(error.format_message(), err=True)
    elif isinstance(error, click.ClickException):
        if isinstance(error, click.UsageError) and error.ctx is not None:
            say(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
        say(f"error: {harmless_line(error.format_message())}", err=True)
    elif isinstance(error, CommonplaceError):
        say(f"error: {harmless_line(str(error))}", err=True)
    else:
        _report_unexpected(error, invocation)
    if invocation.is_verbose and not isinstance(error, click.ClickException | click.Abort | KeyboardInterrupt):
        import traceback

        say("".join(traceback.format_exception(error)).rstrip(), err=True)


def _report_unexpected(error: BaseException, invocation: Invocation) -> None:
    """A defect of ours: the person gets one sentence, the log gets the rest."""
    where = "run it again with --verbose to see where"
    if invocation.log_handlers:
        import logging

        logging.getLogger("commonplace.cli").error("unexpected error", exc_info=error)
        where = "the store's log has the traceback, or run it again with --verbose"
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    say(f"error: unexpected {harmless_line(text)}; {where}", err=True)


def _described(error: BaseException) -> dict[str, object]:
    if isinstance(error, CommonplaceError):
        described: dict[str, object] = {
            "type": type(error).__name__,
            "message": Exception.__str__(error) if not error.args else str(error.args[0]),
            "remedy": error.remedy,
        }
        return {**described, "path": error.path} if isinstance(error, ConfigError) else described
    if isinstance(error, KeyboardInterrupt | click.Abort):
        notes = getattr(error.__cause__ or error, "__notes__", ())
        return {"type": "Interrupted", "message": "interrupted", "remedy": "; ".join(notes)}
    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    return {"type": type(error).__name__, "message": message, "remedy": ""}


def silence_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush meets no closed pipe."""
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - a device, not a path
        os.dup2(nothing.fileno(), sys.stdout.fileno())


_PLACES = {
    "archive": "memory:archive",
    "backup": "store:backup",
    "benchmark": "benchmark:benchmark",
    "consolidate": "consolidate:consolidate",
    "context": "context:context",
    "csp": "csp:csp",
    "demo": "demo:demo",
    "doctor": "store:doctor",
    "export": "store:export",
    "forget": "forget:forget",
    "forget-namespace": "forget:forget_namespace",
    "gc": "forget:gc",
    "get": "memory:get",
    "graph": "graph:graph",
    "health": "health:health",
    "import": "store:import_",
    "index": "index:index",
    "init": "store:init",
    "knowledge": "knowledge:knowledge",
    "ledger": "ledger:ledger",
    "link": "memory:link",
    "list": "memory:list_",
    "logs": "store:logs",
    "mcp": "mcp:mcp",
    "recall": "search:recall",
    "remember": "memory:remember",
    "restore": "store:restore",
    "restore-memory": "memory:restore_memory",
    "review": "memory:review",
    "search": "search:search",
    "settings": "settings:settings",
    "spec": "spec:spec",
    "sync": "store:sync",
    "touch": "memory:touch",
    "update": "memory:update",
    "why": "search:why",
}
"""The module of each command below `commonplace.cli`, and its name there."""


class Commands(Mapping[str, "click.Command"]):
    """A mapping as click wants it, whose values are loaded when they are asked for."""

    def __init__(self) -> None:
        self._places = dict(_PLACES)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._places[name].partition(":")
            self._loaded[name] = getattr(import_module(f"commonplace.cli.{module}"), attribute)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


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
