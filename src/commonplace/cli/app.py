"""The command line `commonplace`: its table of commands, the options of all commands, errors and exit codes."""

from __future__ import annotations

import inspect
import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

import commonplace
from commonplace.cli import options
from commonplace.cli.invocation import Invocation, run_to_the_end
from commonplace.cli.main import ASKING
from commonplace.cli.output import notify, own_store_notice, print_json, progress_bars, say
from commonplace.cli.rows import Answer, emit
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
        "forget": "memory:forget",
        "memory": "memory:memory",
    },
    "Projects": {
        "init": "store:init",
        "index": "index:index",
        "search": "search:search",
        "context": "search:context",
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
    """Return an option that may precede or follow a command's name; the last one wins, and the invocation keeps it."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if isinstance(value, str):
            options.non_empty(context, parameter, value)
        if value is not None and value is not False:
            setattr(invocation_of(context), attribute, value)

    return click.Option(names, expose_value=False, callback=keep, help=help, **kwargs)


class Command(click.Command):
    """A command, which also takes the shared options. The last line of its docstring may be `Example: …`.

    Args:
        makes_store: it makes a store in a directory that `--store` names and that has none.
        only_asks: a running server of the store may answer it.
    """

    def __init__(self, *args: Any, makes_store: bool = False, only_asks: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        where = "A directory or postgresql://… [default: the nearest .commonplace, or else the user store]"
        alone = "Do not use a running server of this store."
        self.params += [
            shared_option("store", "--store", metavar="DIRECTORY|URL", help=where),
            shared_option("namespace", "--namespace", metavar="NAME", help="Use this namespace of the store."),
            shared_option("as_json", "--json", is_flag=True, help="Print JSON instead of text."),
            shared_option(
                "is_verbose", "--verbose", "-v", is_flag=True, help="Log to standard error, with tracebacks."
            ),
            # A command that is parsed here runs in this process anyway.
            click.Option(["--no-server"], is_flag=True, expose_value=False, hidden=not only_asks, help=alone),
        ]
        self.help, _, self.example = inspect.cleandoc(self.help or "").partition("\n\nExample: ")
        self._makes_store = makes_store

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the example, unwrapped."""
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"{'':>{formatter.current_indent}}{self.example}\n")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error names its options, not the parameters of the library that they are passed as."""
        invocation_of(ctx).makes_store = self._makes_store
        try:
            return super().invoke(ctx)
        except CommonplaceError as error:
            names: dict[str, str] = {}
            for each in self.params:
                if isinstance(each, click.Option):
                    shown = next((name for name in each.opts if name.startswith("--")), each.opts[0])
                else:
                    shown = each.make_metavar(ctx).strip("[].")
                # Some options stand for settings of the search, as `--limit` for `search.limit`.
                names |= {each.name or "": shown, f"search.{each.name}": shown}
            error.rename(names)
            raise


class Group(Command, click.Group):
    """A group of commands; the outermost one runs a command and ends the process."""

    command_class = Command

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run with the given arguments, or those of the process, and exit."""
        given, name = list(sys.argv[1:] if args is None else args), prog_name or "commonplace"
        # Known before parsing, so that an error in the arguments themselves is reported in the right form.
        invocation = Invocation(as_json="--json" in given, is_verbose="--verbose" in given or "-v" in given)
        self._main_shell_completion(extra, name)

        # Without click's own `main`, which prints a blank line for Ctrl-C and takes a closed pipe for a failure.
        def work() -> object:
            try:
                with self.make_context(name, list(given), obj=invocation, **extra) as context:
                    return self.invoke(context)
            except click.exceptions.Exit as asked:
                return asked.exit_code
            except click.UsageError as error:
                if HOOK_OPTION in given:
                    raise click.ClickException(error.format_message()) from error
                raise

        run_to_the_end(work, invocation)


def command(
    group: click.Group | None, *parameters: options.Decorator, name: str | None = None, **extra: Any
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a group, or of the program, of a function that takes the invocation first.

    Args:
        parameters: the arguments and options, in the order in which help lists them.
    """
    cls = (group and group.command_class) or Command

    def decorate(function: Callable[..., Any]) -> Command:
        asks = group is None and (name or function.__name__) in ASKING
        decorated = options.group(*parameters)(pass_invocation(function))
        made: Command = click.command(name, cls=cls, only_asks=asks, **extra)(decorated)  # type: ignore[assignment]
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def ask(
    group: click.Group | None,
    *parameters: options.Decorator,
    is_long: bool = False,
    creates: bool = False,
    has_notices: bool = False,
    fails: Callable[[Any], bool] | None = None,
    **extra: Any,
) -> Callable[[Callable[..., Answer]], Command]:
    """Make a command of a function of the engine, whose answer is printed as rows or as JSON.

    Args:
        is_long: show progress on a terminal.
        creates: make the store if there is none.
        has_notices: the rows show the notices of the answer.
        fails: returns whether an answer makes the exit code 1.
    """

    def decorate(function: Callable[..., Answer]) -> Command:
        @wraps(function)
        def run(invocation: Invocation, /, **values: Any) -> int:
            with opened(invocation, create=creates, is_long=is_long) as engine:
                answer, rows = function(engine, **values)
            emit(invocation, answer, rows, has_notices=has_notices)
            return FAILURE if fails is not None and fails(answer) else SUCCESS

        return command(group, *parameters, **extra)(run)

    return decorate


@contextmanager
def opened(
    invocation: Invocation, loaded: Settings | None = None, *, create: bool = False, is_long: bool = False
) -> Iterator[Engine]:
    """Open the engine, with a progress bar where work is long; where it may make a store, say which it is or was."""
    loaded = loaded or invocation.settings()
    where = own_store_notice(loaded) if create else ()
    if create and not where and not invocation.has_store(loaded):
        where = (f"there was no store here; one was made in {loaded.store.path}",)
    notices: tuple[str, ...] = ()
    try:
        with (
            progress_bars(invocation) if is_long else nullcontext() as progress,
            invocation.open(loaded, create=create, progress=progress) as engine,
        ):
            notices = where  # a store that was made stays, even if what it was made for is refused
            yield engine
    finally:
        notify(notices, invocation)


_PLACES: Final = {name: place for section in (*SECTIONS.values(), SHORTCUTS) for name, place in section.items()}


class Commands(Mapping[str, click.Command]):
    """All commands by name. The module of one is loaded when the command is asked for."""

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = _PLACES[name].partition(":")
        command: click.Command = getattr(import_module(f"commonplace.cli.{module}"), attribute)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


class Program(Group):
    """The program `commonplace`, whose help lists the commands under headings."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names that help and completion show: shortcuts are left out."""
        return [name for name in super().list_commands(ctx) if name not in SHORTCUTS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the commands under the headings of the table."""
        width = max(map(len, self.commands))
        for title, names in SECTIONS.items():
            texts = {name: self.commands[name].get_short_help_str(formatter.width - width) for name in names}
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in texts.items()])
        with formatter.section("Shortcuts for commands of `memory` and `store`"):
            formatter.write_text(", ".join(SHORTCUTS))


@click.group(cls=Program, commands=Commands(), context_settings=HELP_OPTIONS)
@click.version_option(commonplace.__version__, prog_name="commonplace")
def cli() -> None:
    """A memory engine for AI agents: remember, index and search.

    By default, everything is kept in one local directory; no server, key or download is needed.

    Example: commonplace remember "We chose Postgres for billing" --tag decision
    """


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    return WRONG_USE if isinstance(error, UsageError | click.UsageError) else FAILURE


def report(error: BaseException, invocation: Invocation, code: int | None = None) -> None:
    """Print an error on standard error: one line, or one JSON value, with a traceback if --verbose is given.

    Args:
        code: with which the process ends; None is the one for the error.
    """
    is_stopped = isinstance(error, KeyboardInterrupt | click.Abort)
    is_click, is_ours = isinstance(error, click.ClickException), isinstance(error, CommonplaceError)
    kind, remedy = type(error).__name__, ""
    more: dict[str, str] = {}
    if is_stopped:
        notes: Sequence[str] = getattr(error, "__notes__", ())
        kind, message, remedy = "Interrupted", "interrupted", "; ".join(notes)
        line = "\n".join([message, *notes])
    elif isinstance(error, CommonplaceError):
        message = str(error.args[0]) if error.args else Exception.__str__(error)
        line, remedy = str(error), error.remedy
        more = {"path": error.path} if isinstance(error, ConfigError) else {}
    else:
        message = line = error.format_message() if isinstance(error, click.ClickException) else str(error)

    if invocation.as_json:
        described = {"type": kind, "message": message, "remedy": remedy, **more}
        code = exit_code(error) if code is None else code
        print_json({"error": described, "exit_code": code}, indent=None, err=True)
    elif is_stopped or isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(line, err=True)
    else:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            say(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
        if not is_click and not is_ours:
            where = "run it again with --verbose to see where"
            if invocation.log_handlers:
                logging.getLogger("commonplace.cli").error("unexpected error", exc_info=error)
                where = "the store's log has the traceback, or run it again with --verbose"
            line = f"unexpected {f'{kind}: {message}'.rstrip(': ')}; {where}"
        text = f"error: {harmless_line(line)}"
        if sys.stderr.isatty():
            width = get_terminal_size().columns - 3
            text = "\n   ".join(wrap(text, width, break_long_words=False, break_on_hyphens=False))
        say(text, err=True)
    if invocation.is_verbose and not is_click and not is_stopped:
        say("".join(traceback.format_exception(error)).rstrip(), err=True)
