"""A call of a tool: find it, check its arguments, run it, and tell a model what to do when it failed.

What a model can mend is a result that says so (`isError`); a protocol error is for what only a client can mend, a tool
that does not exist or a request that is none (specification 2025-11-25 and later, server/tools, error handling).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from commonplace.errors import CommonplaceError
from commonplace.formats.jsonrpc import INVALID_PARAMS, ProtocolError, shortened
from commonplace.mcp.registry import Context, Tool, ToolResult
from commonplace.mcp.schema import integers, problems

PROBLEMS_TOLD = 5


def call_tool(tools: Sequence[Tool], params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the result of `tools/call`.

    Raises:
        ProtocolError: there is no such tool, or the arguments are no object.
    """
    named = {tool.name: tool for tool in tools}
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or name not in named:
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name}; there are {', '.join(named)}")
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        raise ProtocolError(INVALID_PARAMS, "the arguments of a tool are an object")
    return _form(_run(named[name], arguments, context))


def _run(tool: Tool, arguments: Mapping[str, Any], context: Context) -> ToolResult:
    wrong = list(islice(problems(arguments, tool.input_schema), PROBLEMS_TOLD))
    if wrong:
        told = "".join(f"\n- {problem}" for problem in wrong)
        told = f"{tool.name} was not run:{told}\nCorrect this and call it again."
        return ToolResult(text=shortened(told), is_error=True)
    try:
        return tool.handler(integers(arguments, tool.input_schema), context)
    except CommonplaceError as error:
        return ToolResult(text=shortened(str(error)), is_error=True)
    except Exception as error:
        # The skin's outermost edge: the model learns that it is not to blame, the log learns what happened.
        report_defect(f"the tool {tool.name} failed", error)
        text = f"{tool.name} failed unexpectedly ({type(error).__name__}); other arguments or a later call may work"
        return ToolResult(text=text, is_error=True)


def report_defect(what: str, error: Exception) -> None:
    """Log a defect of ours with its traceback."""
    import logging

    logging.getLogger("commonplace.mcp").error(what, exc_info=error)


def _form(result: ToolResult) -> dict[str, Any]:
    """A result for machines is repeated as text, for the clients and versions that read only that."""
    text = result.text
    if text is None:
        text = json.dumps(result.structured, ensure_ascii=False, separators=(",", ":"))
    form: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if result.structured is not None:
        form["structuredContent"] = result.structured
    if result.is_error:
        form["isError"] = True
    return form
