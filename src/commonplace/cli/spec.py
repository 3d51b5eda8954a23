"""The command group `spec`: validate documents of the Open Agent Spec and run their tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import commonplace
from commonplace.cli import options
from commonplace.cli.app import FAILURE, SUCCESS, WRONG_USE, Group, command
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import print_json, say
from commonplace.cli.rows import counted
from commonplace.errors import CommonplaceError
from commonplace.formats.escaping import harmless_line
from commonplace.formats.json_values import plain
from commonplace.formats.yaml import fault_of

MAX_INPUT_BYTES = 16 * 1024 * 1024


@click.group(cls=Group)
def spec() -> None:
    """Check and run tasks of the Open Agent Spec."""


@command(spec, click.argument("file", type=options.FILE))
def validate(invocation: Invocation, /, file: Path) -> int:
    """Check a spec and list every problem.

    Runs nothing and follows no reference. The exit code is 1 if there is a problem.

    Example: commonplace spec validate memory-retriever.oas.yaml
    """
    from commonplace.specs import validate as judge

    verdict = judge(file)
    if invocation.as_json:
        print_json({"valid": verdict.is_valid, **plain(verdict)})
    elif verdict.is_valid:
        tasks = counted(len(verdict.tasks), "task")
        title = f"{verdict.name} (Open Agent Spec {verdict.version})"
        say(harmless_line(f"{title} is valid, with {tasks}: {', '.join(verdict.tasks)}"))
        for note in verdict.notes:
            say(harmless_line(f"note: {note}"), err=True)
    else:
        for fault in verdict.faults:
            say(harmless_line(str(fault)))
        say(harmless_line(f"error: {file} has {counted(len(verdict.faults), 'fault')}"), err=True)
    return SUCCESS if verdict.is_valid else FAILURE


@command(spec)
@click.option("--spec", "file", required=True, metavar="FILE", help="The spec, in YAML or JSON.")
@click.option("--task", metavar="NAME", help="The task; without it, the first that can be run.")
@click.option("--input", "given", metavar="JSON|FILE", default="{}", help="A JSON object, a file of one, or - .")
@click.option("--quiet", "-q", is_flag=True, help="Print the output alone, without notes.")
def run(invocation: Invocation, /, file: str, task: str | None, given: str, quiet: bool) -> int:
    """Run a task and print its output.

    With --verbose also the prompt and the model's words; with --json the whole envelope. The exit code is 1 if the run
    failed or there is no spec, and 2 if the spec or the input is wrong.

    Example: commonplace spec run --spec memory-retriever.oas.yaml --task retrieve --input input.json
    """
    from commonplace.specs import REQUEST_CODES

    result = commonplace.run_spec(file, task, _input(given), settings=invocation.settings())
    code = result.get("code")
    if invocation.as_json:
        print_json(result)
    elif code is not None:
        location = f", task {result['task']}" if "task" in result else ""
        say(f"error: {harmless_line(result['error'])} ({code} at {result['stage']}{harmless_line(location)})", err=True)
    else:
        for task_run in () if quiet else (*result.get("chain", {}).values(), result):
            name = harmless_line(task_run["task"])
            if invocation.is_verbose:
                model = harmless_line(f"{task_run['engine']} {task_run['model']}")
                say(f"{name} on {model}, asked:\n{task_run['prompt']}\n", err=True)
                say(f"answered:\n{task_run['raw_output']}\n", err=True)
            if "degraded_reason" in task_run:
                reason = harmless_line(task_run["degraded_reason"])
                say(f"note: {name} ran on our own re-ranker, as {reason}", err=True)
        if isinstance(result["output"], str):
            say(result["output"])
        else:
            print_json(result["output"])
    if code is None:
        return SUCCESS
    return WRONG_USE if code in REQUEST_CODES and Path(file).exists() else FAILURE


def _input(source: str) -> dict[str, Any]:
    text, fault = source, ""
    if not source.lstrip().startswith(("{", "[")):
        try:
            name, data = options.read_bytes(source, MAX_INPUT_BYTES)
            text = "" if data is None else data.decode("utf-8-sig")
            fault = f"{name} has more than {MAX_INPUT_BYTES:,} bytes, the limit" if data is None else ""
        except UnicodeDecodeError as error:
            fault = f"{name} is not UTF-8: {error.reason} at byte {error.start}"
        except (CommonplaceError, ValueError) as error:
            fault = f"{source!r:.200} is neither a JSON object nor a file that can be read: {error.args[0]}"
    if not fault:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            fault = f"it is not JSON: {fault_of(error)}"
        else:
            if isinstance(value, dict):
                return value
            fault = f"it must be a JSON object, not {type(value).__name__}"
    raise click.BadParameter(fault, param_hint="--input")
