"""The program `commonplace`: its table of commands, the options that all commands share, errors and exit codes."""

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
from commonplace.cli.main import QUERY_COMMANDS
from commonplace.cli.output import notify, own_store_notice, print_json, progress_bars, say
from commonplace.cli.rows import Answer, emit
from commonplace.errors import CommonplaceError, ConfigError, UsageError
from commonplace.formats.escaping import harmless_line

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.settings import Settings


def _targets(targets: str) -> dict[str, str]:
    return {target.partition(":")[2].rstrip("_"): target for target in targets.split()}


SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Memories": _targets(
        "memory:remember search:recall memory:get memory:list_ memory:update memory:forget memory:memory"
    ),
    "Projects": _targets("store:init index:index search:search search:context search:why"),
    "Graph, consolidation and agents' knowledge": _targets(
        "graph:graph consolidate:consolidate ledger:ledger knowledge:knowledge spec:spec"
    ),
    "Store and settings": _targets("store:store settings:settings"),
    "Servers": _targets("mcp:mcp csp:csp serve:serve serve:ui serve:token"),
    "Try and measure": _targets("demo:demo benchmark:benchmark"),
}
"""The commands that help lists, by name, as `module:attribute` below `commonplace.cli`."""
SHORTCUTS: Final[Mapping[str, str]] = _targets(
    "memory:touch memory:review store:doctor store:health store:backup store:restore store:export store:import_ "
    "store:sync"
)
"""Commands of groups that also work without the group's name."""

HOOK_OPTION: Final = "--stdin-json"
"""Option of a client's hook. There the exit code of wrong use is avoided: it would reject the user's prompt."""
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
    """Return the invocation that a context and all its parents share."""
    root = context.find_root()
    if not isinstance(root.obj, Invocation):
        root.obj = Invocation()
    return root.obj


def shared_option(attribute: str, *names: str, help: str, **kwargs: Any) -> click.Option:  # noqa: A002 - click's name
    """Return an option, before or after a command's name, that sets an invocation's attribute; the last one wins."""

    def set_value(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if isinstance(value, str):
            options.non_empty(context, parameter, value)
        if value is not None and value is not False:
            setattr(invocation_of(context), attribute, value)

    return click.Option(names, expose_value=False, callback=set_value, help=help, **kwargs)


class Command(click.Command):
    """A command with the shared options. The last line of its docstring may be `Example: …`.

    Args:
        makes_store: whether it creates a store if `--store` names a directory without one.
        only_asks: whether a running server of the store may answer it.
    """

    def __init__(self, *args: Any, makes_store: bool = False, only_asks: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        store_help = "A directory or postgresql://… [default: the nearest .commonplace, or else the user store]"
        server_help = "Do not use a running server of this store."
        self.params += [
            shared_option("store", "--store", metavar="DIRECTORY|URL", help=store_help),
            shared_option("namespace", "--namespace", metavar="NAME", help="Use this namespace of the store."),
            shared_option("as_json", "--json", is_flag=True, help="Print JSON instead of text."),
            shared_option(
                "is_verbose", "--verbose", "-v", is_flag=True, help="Log to standard error, with tracebacks."
            ),
            # Only accepted here: a command that reaches this parser runs in this process anyway.
            click.Option(["--no-server"], is_flag=True, expose_value=False, hidden=not only_asks, help=server_help),
        ]
        self.help, _, self.example = inspect.cleandoc(self.help or "").partition("\n\nExample: ")
        self._makes_store = makes_store

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the example, unwrapped."""
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"{'':>{formatter.current_indent}}{self.example}\n")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; its errors name the command's options instead of the library's parameters."""
        invocation_of(ctx).makes_store = self._makes_store
        try:
            return super().invoke(ctx)
        except CommonplaceError as error:
            names: dict[str, str] = {}
            for param in self.params:
                if isinstance(param, click.Option):
                    label = next((name for name in param.opts if name.startswith("--")), param.opts[0])
                else:
                    label = param.make_metavar(ctx).strip("[].")
                # Some options set a search setting, such as `--limit` for `search.limit`.
                names |= {param.name or "": label, f"search.{param.name}": label}
            error.rename(names)
            raise


class Group(Command, click.Group):
    """A group of commands; the outermost one runs a command and ends the process."""

    command_class = Command

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run with these arguments, or those of the process, and exit."""
        arguments, name = list(sys.argv[1:] if args is None else args), prog_name or "commonplace"
        # Read before parsing, so that an error in the arguments themselves is reported in the right form.
        invocation = Invocation(as_json="--json" in arguments, is_verbose="--verbose" in arguments or "-v" in arguments)
        self._main_shell_completion(extra, name)

        # Replaces click's own `main`, which prints a blank line for Ctrl-C and treats a closed pipe as a failure.
        def work() -> object:
            try:
                with self.make_context(name, list(arguments), obj=invocation, **extra) as context:
                    return self.invoke(context)
            except click.exceptions.Exit as exit_:
                return exit_.exit_code
            except click.UsageError as error:
                if HOOK_OPTION in arguments:
                    raise click.ClickException(error.format_message()) from error
                raise

        run_to_the_end(work, invocation)


def command(
    group: click.Group | None, *parameters: options.Decorator, name: str | None = None, **extra: Any
) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a command of a group, or of the program, from a function.

    Args:
        parameters: the arguments and options, in the order of the help; the function takes the invocation first.
    """
    cls = (group and group.command_class) or Command

    def decorate(function: Callable[..., Any]) -> Command:
        is_served = group is None and (name or function.__name__) in QUERY_COMMANDS
        decorated = options.group(*parameters)(pass_invocation(function))
        created: Command = click.command(name, cls=cls, only_asks=is_served, **extra)(decorated)  # type: ignore[assignment]
        if group is not None:
            group.add_command(created)
        return created

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
    """Return a decorator that makes a command from a function of the engine; its answer is printed as rows or JSON.

    Args:
        is_long: show progress on a terminal.
        creates: create the store if there is none.
        has_notices: whether the rows already contain the notices of the answer.
        fails: returns whether an answer sets the exit code to 1.
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
    """Open the engine, with progress bars for long work. If it may create a store, print which store is used or new."""
    loaded = loaded or invocation.settings()
    store_notices = own_store_notice(loaded) if create else ()
    if create and not store_notices and not invocation.has_store(loaded):
        store_notices = (f"there was no store here; one was made in {loaded.store.path}",)
    notices: tuple[str, ...] = ()
    try:
        with (
            progress_bars(invocation) if is_long else nullcontext() as progress,
            invocation.open(loaded, create=create, progress=progress) as engine,
        ):
            notices = store_notices  # the store exists from here on, even if the command fails
            yield engine
    finally:
        notify(notices, invocation)


_TARGETS: Final = {name: target for section in (*SECTIONS.values(), SHORTCUTS) for name, target in section.items()}


class Commands(Mapping[str, click.Command]):
    """All commands by name. A command's module is loaded on access."""

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = _TARGETS[name].partition(":")
        command: click.Command = getattr(import_module(f"commonplace.cli.{module}"), attribute)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_TARGETS)

    def __len__(self) -> int:
        return len(_TARGETS)


class Program(Group):
    """The program `commonplace`, whose help lists the commands under headings."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names that help and completion show, without shortcuts."""
        return [name for name in super().list_commands(ctx) if name not in SHORTCUTS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the commands under the headings of `SECTIONS`, and the shortcuts."""
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
        code: the exit code of the process; None derives it from the error.
    """
    is_stopped = isinstance(error, KeyboardInterrupt | click.Abort)
    is_click, is_ours = isinstance(error, click.ClickException), isinstance(error, CommonplaceError)
    kind, remedy = type(error).__name__, ""
    extra: dict[str, str] = {}
    if is_stopped:
        notes: Sequence[str] = getattr(error, "__notes__", ())
        kind, message, remedy = "Interrupted", "interrupted", "; ".join(notes)
        line = "\n".join([message, *notes])
    elif isinstance(error, CommonplaceError):
        message = str(error.args[0]) if error.args else Exception.__str__(error)
        line, remedy = str(error), error.remedy
        extra = {"path": error.path} if isinstance(error, ConfigError) else {}
    else:
        message = line = error.format_message() if isinstance(error, click.ClickException) else str(error)

    if invocation.as_json:
        form = {"type": kind, "message": message, "remedy": remedy, **extra}
        code = exit_code(error) if code is None else code
        print_json({"error": form, "exit_code": code}, indent=None, err=True)
    elif is_stopped or isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(line, err=True)
    else:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            say(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
        if not is_click and not is_ours:
            advice = "run it again with --verbose to see where"
            if invocation.log_handlers:
                logging.getLogger("commonplace.cli").error("unexpected error", exc_info=error)
                advice = "the store's log has the traceback, or run it again with --verbose"
            line = f"unexpected {f'{kind}: {message}'.rstrip(': ')}; {advice}"
        text = f"error: {harmless_line(line)}"
        if sys.stderr.isatty():
            width = get_terminal_size().columns - 3
            text = "\n   ".join(wrap(text, width, break_long_words=False, break_on_hyphens=False))
        say(text, err=True)
    if invocation.is_verbose and not is_click and not is_stopped:
        say("".join(traceback.format_exception(error)).rstrip(), err=True)
