"""The command `context`: what is worth knowing before a task, for a person, a prompt or a client's hook."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options
from commonplace.cli.app import FAILURE, SUCCESS, command, opened, report
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import notify, print_json, say
from commonplace.errors import CommonplaceError, StoreMissingError, UsageError

if TYPE_CHECKING:
    from commonplace.formats.hooks import HookEvent
    from commonplace.settings import Settings

_MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
_NOTHING: Final = "nothing stored is relevant to this task"
_NOTHING_YET: Final = "nothing is remembered yet; name a task to find what is indexed"


@command()
@click.argument("task", nargs=-1)
@click.option("--max-tokens", type=int, metavar="N", help="Token budget. [default: context.max_tokens, 50000]")
@click.option("--agent", metavar="NAME", callback=options.non_empty, help="Use the search strategy of this agent.")
@click.option("-n", "--limit", type=int, metavar="N", help="Maximum number of passages. [default: 30, or the agent's]")
@options.kinds
@options.tags
@options.min_trust
@click.option("--stdin-json", is_flag=True, help="Read a client's hook event, and print what to inject.")
def context(invocation: Invocation, /, task: tuple[str, ...], stdin_json: bool, **options: Any) -> int:
    """Print what is worth knowing before TASK.

    The text is fenced and labelled as data. Without a task it holds long memories, then the newest. With --agent, that
    agent's strategy chooses the artifacts.

    With --stdin-json it answers a client's hook: the prompt, working directory and agent come from the event on
    standard input. It prints at most 500 tokens of memories that are likely relevant and new to the session; artifacts
    with an agent or --kind. Nothing is printed if nothing is relevant, there is no store, or context.on_start is off.
    The exit code is never 2, which would stop the client.

    Example: commonplace context "write login tests" --max-tokens 4000
    """
    if stdin_json:
        return _answer_hook(invocation, task, options)
    with opened(invocation) as engine:
        made = engine.context(" ".join(task), **options)
        engine.log_retrieval(made, "context")
    notify(made.notices, invocation)
    if invocation.as_json:
        print_json(made.to_dict())
    elif made.text:
        say(made.text)
    elif made.left_out:
        notify(("nothing relevant fits in the token budget; raise --max-tokens",), invocation)
    else:
        notify((_NOTHING if made.task.strip() else _NOTHING_YET,), invocation)
    return SUCCESS


def _answer_hook(invocation: Invocation, task: tuple[str, ...], options: dict[str, Any]) -> int:
    from commonplace.formats.hooks import answer, has_content, parse_event

    try:
        if task:
            raise UsageError("a task and --stdin-json are given", remedy="give one; the event holds the task")
        event = parse_event(_read(invocation))
        # Before anything is opened: most of what people say to an agent is of this kind.
        if event.is_prompt and not has_content(event.prompt):
            return SUCCESS
        if event.directory:
            invocation.directory = _entered(invocation, event.directory)
        loaded = invocation.settings()
        if loaded.context.on_start == "off":
            return SUCCESS
        text = _injection(invocation, loaded, event, options)
    except StoreMissingError:
        return SUCCESS
    except (CommonplaceError, OSError) as error:
        report(error, invocation, FAILURE)
        return FAILURE

    if text and event.takes_text and not invocation.as_json:
        say(text)
    elif text:
        print_json(answer(event, text), indent=None)
    return SUCCESS


def _injection(invocation: Invocation, loaded: Settings, event: HookEvent, options: dict[str, Any]) -> str:
    from commonplace.settings.agents import strategy_name

    agent = options.pop("agent") or strategy_name(event.agent, loaded.agents)
    with invocation.open(loaded) as engine:
        if event.loses_context and event.conversation:
            engine.clear_injected(event.conversation)
        if event.is_compaction:
            return ""
        made = engine.injection(event.prompt, agent=agent, conversation=event.conversation, **options)
        engine.log_retrieval(made, "context")
    notify(made.notices, invocation)
    return made.text


def _read(invocation: Invocation) -> bytes:
    if invocation.caller is not None:
        return invocation.caller.stdin.encode(errors="surrogateescape")
    if sys.stdin.isatty():
        say("Reading the event of a hook; Ctrl-D ends it.", err=True)
    data = sys.stdin.buffer.read(_MAX_EVENT_BYTES + 1)
    if len(data) > _MAX_EVENT_BYTES:
        raise UsageError(f"the event has more than {_MAX_EVENT_BYTES:,} bytes", remedy="pass the client's own event")
    return data


def _entered(invocation: Invocation, directory: str) -> Path:
    """Return a directory that can be entered; a server, which does this for others, stays where it is."""
    found = (invocation.directory or Path.cwd()) / directory
    try:
        os.stat(f"{found}/.")  # noqa: PTH116 - a path would leave out the dot, which asks whether it can be entered
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no path"
        raise UsageError(
            f"the working directory of the event, {directory!r:.80}, cannot be entered: {why}",
            remedy="pass the event as the client wrote it, from a directory that is there",
        ) from error
    return found
