"""The command line `commonplace`: its table of commands, the options of all commands, errors and exit codes."""

from __future__ import annotations

import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

import commonplace
from commonplace.cli import options
from commonplace.cli.invocation import Invocation, run_to_the_end
from commonplace.cli.output import Rows, emit, notify, own_store_notice, print_json, progress_bars, say
from commonplace.errors import CommonplaceError, ConfigError, UsageError
from commonplace.formats.escaping import harmless_line

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.settings import Settings

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Memories": {
        "remember": "memory:remember",
        "recall": "search:recall",
        "get": "memory:get",
        "list": "memory:list_",
        "update": "memory:update",
        "forget": "forget:forget",
        "memory": "memory:memory",
    },
    "Projects": {
        "init": "store:init",
        "index": "index:index",
        "search": "search:search",
        "context": "context:context",
        "why": "search:why",
    },
    "Graph, consolidation and agents' knowledge": {
        "graph": "graph:graph",
        "consolidate": "consolidate:consolidate",
        "ledger": "ledger:ledger",
        "knowledge": "knowledge:knowledge",
        "spec": "spec:spec",
    },
    "Store and settings": {"store": "store:store", "settings": "settings:settings"},
    "Servers": {"mcp": "mcp:mcp", "csp": "csp:csp", "serve": "serve:serve", "ui": "serve:ui", "token": "serve:token"},
    "Try and measure": {"demo": "demo:demo", "benchmark": "benchmark:benchmark"},
}
"""The commands that help lists: the module of each below `commonplace.cli`, and its name there."""
SHORTCUTS: Final[Mapping[str, str]] = {
    "touch": "memory:touch",
    "review": "memory:review",
    "doctor": "store:doctor",
    "health": "store:health",
    "backup": "store:backup",
    "restore": "store:restore",
    "export": "store:export",
    "import": "store:import_",
    "sync": "store:sync",
}
"""Commands of groups that can also be called without the group's name."""

HOOK_OPTION: Final = "--stdin-json"
"""Given where a client runs the program as a hook. The exit code of wrong use would refuse its user's prompt."""
HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

SUCCESS, FAILURE, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
EXIT_CODES: Final[Mapping[int, str]] = {
    SUCCESS: "success; a search without relevant results is one too",
    FAILURE: "failure; the message on standard error gives the reason and a remedy",
    WRONG_USE: "wrong use: an invalid option, settings file or configuration document",
    INTERRUPTED: "interrupted by Ctrl-C; everything that was acknowledged before is kept",
}

pass_invocation = click.make_pass_decorator(Invocation)


def invocation_of(context: click.Context) -> Invocation:
    """Return the one invocation that a context and all its parents share."""
    root = context.find_root()
    if not isinstance(root.obj, Invocation):
        root.obj = Invocation()
    return root.obj


def shared_option(attribute: str, *names: str, help: str, **kwargs: Any) -> click.Option:  # noqa: A002 - click's name
    """Return an option that stands before or after a command's name, kept in the invocation; the later one wins."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if isinstance(value, str):
            options.non_empty(context, parameter, value)
        if value is not None and value is not False:
            setattr(invocation_of(context), attribute, value)

    return click.Option(names, expose_value=False, callback=keep, help=help, **kwargs)


def shared_options() -> list[click.Parameter]:
    """Return the options that every command takes."""
    return [
        shared_option(
            "store", "--store", metavar="DIRECTORY", help="Use this store, not the nearest one upward from here."
        ),
        shared_option("namespace", "--namespace", metavar="NAME", help="Use this namespace of the store."),
        shared_option("as_json", "--json", is_flag=True, help="Print JSON instead of text."),
        shared_option("is_verbose", "--verbose", "-v", is_flag=True, help="Log to standard error; show tracebacks."),
        # Who is parsed here runs in this process in any case.
        click.Option(
            ["--no-server"], is_flag=True, expose_value=False, help="Ask no running server; do it in this process."
        ),
    ]


class _Shared(click.Command):
    """It also takes the shared options. The last line of its docstring may be `Example: …`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]
        self.help, _, self.example = inspect.cleandoc(self.help or "").partition("\n\nExample: ")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the example, unwrapped."""
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"{'':>{formatter.current_indent}}{self.example}\n")


class Command(_Shared):
    """A command.

    Args:
        makes_store: it makes a store in a directory that `--store` names and that has none.
    """

    def __init__(self, *args: Any, makes_store: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._makes_store = makes_store

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error names its options, not the parameters of the library that they are passed as."""
        invocation_of(ctx).makes_store = self._makes_store
        try:
            return super().invoke(ctx)
        except UsageError as error:
            error.rename({each.name: _shown_name(each, ctx) for each in self.params if each.name})
            raise


def _shown_name(parameter: click.Parameter, context: click.Context) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.make_metavar(context).strip("[].")


class Group(_Shared, click.Group):
    """A group of commands."""

    command_class = Command


def command(group: click.Group | None = None, name: str | None = None, **kwargs: Any) -> Callable[[Any], Command]:
    """Make a command of a group, or of the program, of a function that takes the invocation first."""
    cls = Command if group is None else group.command_class or Command

    def decorate(function: Callable[..., Any]) -> Any:
        made = click.command(name, cls=cls, **kwargs)(pass_invocation(function))
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def ask(
    group: click.Group | None,
    rows: Callable[[Any], Rows],
    name: str | None = None,
    *,
    is_long: bool = False,
    has_notices: bool = False,
    fails: Callable[[Any], bool] | None = None,
    value: Callable[[Any], Any] | None = None,
    **kwargs: Any,
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function of the engine, whose answer is printed as rows, or as JSON.

    Args:
        is_long: show progress on a terminal.
        has_notices: the rows show the notices of the answer.
        fails: returns whether an answer makes the exit code 1.
        value: returns what JSON has in place of the answer itself.
    """

    def decorate(function: Callable[..., Any]) -> Command:
        @wraps(function)
        def run(invocation: Invocation, /, **values: Any) -> int:
            with opened(invocation, is_long=is_long) as engine:
                answer = function(engine, **values)
            emit(invocation, answer, rows, value=None if value is None else value(answer), has_notices=has_notices)
            return FAILURE if fails is not None and fails(answer) else SUCCESS

        return command(group, name, **kwargs)(run)

    return decorate


@contextmanager
def opened(
    invocation: Invocation, loaded: Settings | None = None, *, create: bool = False, is_long: bool = False
) -> Iterator[Engine]:
    """Open the engine, with a progress bar where work is long; where it may make a store, say which it is or was."""
    loaded = loaded or invocation.settings()
    told = own_store_notice(loaded) if create else ()
    if create and not told and not invocation.has_store(loaded):
        told = (f"there was no store here; one was made in {loaded.store.path}",)
    with (
        progress_bars(invocation) if is_long else nullcontext() as progress,
        invocation.open(loaded, create=create, progress=progress) as engine,
    ):
        yield engine
    notify(told, invocation)


class Commands(Mapping[str, click.Command]):
    """All commands by name. The module of one is loaded when the command is asked for."""

    def __init__(self) -> None:
        self._places = {name: place for section in (*SECTIONS.values(), SHORTCUTS) for name, place in section.items()}
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


class Program(Group):
    """The outermost group: runs a command and ends the process."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run with the given arguments, or those of the process, and exit."""
        given = list(sys.argv[1:] if args is None else args)
        # Known before parsing, so that an error in the arguments themselves is reported in the right form.
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
        """Parse the arguments."""
        with _own_interruption():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was parsed."""
        with _own_interruption():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names that help and completion show: shortcuts are left out."""
        return [name for name in super().list_commands(ctx) if name not in SHORTCUTS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of the table."""
        if not isinstance(self.commands, Commands):
            super().format_commands(ctx, formatter)
            return
        width = max(map(len, self.commands))
        for title, names in SECTIONS.items():
            texts = {name: self.commands[name].get_short_help_str(formatter.width - width) for name in names}
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in texts.items()])


@contextmanager
def _own_interruption() -> Iterator[None]:
    """Keep click from putting a blank line before our message, and from taking a closed pipe for a failure."""
    try:
        yield
    except BrokenPipeError:
        silence_output()
        raise click.exceptions.Exit(0) from None
    except KeyboardInterrupt as error:
        raise click.Abort from error


@click.group(cls=Program, commands=Commands(), context_settings=HELP_OPTIONS)
@click.version_option(commonplace.__version__, prog_name="commonplace")
def cli() -> None:
    """A memory engine for AI agents: remember, index and search.

    Everything is kept in one local directory; nothing needs a server, a key or a download.

    Example: commonplace remember "We chose Postgres for billing" --tag decision
    """


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    if isinstance(error, UsageError | click.UsageError):
        return WRONG_USE
    return error.exit_code if isinstance(error, click.exceptions.Exit) else FAILURE


def report(error: BaseException, invocation: Invocation, code: int | None = None) -> None:
    """Print an error on standard error: one line, or one JSON value, with a traceback if --verbose is given.

    Args:
        code: with which the process ends; None is the one for the error.
    """
    if invocation.as_json:
        code = exit_code(error) if code is None else code
        print_json({"error": _described(error), "exit_code": code}, indent=None, err=True)
    elif isinstance(error, KeyboardInterrupt | click.Abort):
        # Ctrl-C passes click as an abortion, whose cause carries the notes.
        say("\n".join(["interrupted", *getattr(error.__cause__ or error, "__notes__", ())]), err=True)
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
        say("".join(traceback.format_exception(error)).rstrip(), err=True)


def _report_unexpected(error: BaseException, invocation: Invocation) -> None:
    """Report a defect of ours: the person gets one sentence, the log gets the rest."""
    where = "run it again with --verbose to see where"
    if invocation.log_handlers:
        logging.getLogger("commonplace.cli").error("unexpected error", exc_info=error)
        where = "the store's log has the traceback, or run it again with --verbose"
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    say(f"error: unexpected {harmless_line(text)}; {where}", err=True)


def _described(error: BaseException) -> dict[str, object]:
    if isinstance(error, CommonplaceError):
        message = Exception.__str__(error) if not error.args else str(error.args[0])
        path = {"path": error.path} if isinstance(error, ConfigError) else {}
        return {"type": type(error).__name__, "message": message, "remedy": error.remedy, **path}
    if isinstance(error, KeyboardInterrupt | click.Abort):
        notes = getattr(error.__cause__ or error, "__notes__", ())
        return {"type": "Interrupted", "message": "interrupted", "remedy": "; ".join(notes)}
    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    return {"type": type(error).__name__, "message": message, "remedy": ""}


def silence_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush meets no closed pipe."""
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - a device, not a path
        os.dup2(nothing.fileno(), sys.stdout.fileno())
