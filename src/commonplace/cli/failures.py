"""Turn whatever ends a command into one message and one exit code. It does not know what the command was about."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import click

from commonplace.cli.invocation import Invocation
from commonplace.cli.screen import print_json, say
from commonplace.errors import CommonplaceError, ConfigError, UsageError
from commonplace.text.escaping import harmless_line

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
