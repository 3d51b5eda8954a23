"""Write the generated parts of the manual: reference pages, the map of the tree, the layers and `llms.txt`.

`--check` writes nothing and fails when a file is not what it would write.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

import commonplace
from commonplace import errors
from commonplace.cli.app import EXIT_CODES, SHORTCUTS, cli, exit_code
from commonplace.mcp.tools import tool_forms
from commonplace.server.problems import STATUSES
from commonplace.server.routes import OPERATIONS
from commonplace.settings import keys
from commonplace.settings.schema import section_description
from commonplace.store.schema import TABLES, VERSION

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PACKAGE = ROOT / "src" / "commonplace"
WIDTH = 100
STRATEGY = "agents."
FEW_ARGUMENTS = 3
EVERYDAY = ("recall", "why", "health", "index_status")
"""Short methods whose results are listed with their fields, too."""
NOT_PUBLIC = ("answers",)
"""Services of the engine that only the server uses."""
SHARED = (
    "Call each as `commonplace COMMAND`; `--help` adds an example. Each takes the options of `commonplace` and of its"
    " group, before or after its name. Results go to standard output; progress (on a terminal only), notices and errors"
    " go to standard error.\n"
)
COMMON = """\
## Options of several commands

A command that takes one of these names it after *Also*.
"""
ALSO = "Shortcuts, without the name of the group: "
COMPLETION = """\
## Shell completion

Add the line for your shell to its start-up file:

* Bash, in `~/.bashrc`: `eval "$(_COMMONPLACE_COMPLETE=bash_source commonplace)"`
* Zsh, in `~/.zshrc`: `eval "$(_COMMONPLACE_COMPLETE=zsh_source commonplace)"`
* fish, in `~/.config/fish/completions/commonplace.fish`: `_COMMONPLACE_COMPLETE=fish_source commonplace | source`
"""
HTTP = """\
`commonplace serve` answers these routes, all below `/v1`; see [Serve several machines](../serve.md). A call takes the
arguments of the [Python](python.md) method of that name: those in braces are part of the path, those of GET and DELETE
go in the query, all others in a JSON object. `/v1/openapi.json` describes requests and answers.

The scope is `read` unless given. Every route also takes `namespace` in the query, one of the token's; the default is
the first. A route whose scope is not `read` takes an `Idempotency-Key`. A memory has its version as `ETag`; `If-Match`
changes only that version.
"""
INSTALL = (
    "Install: `pip install commonplace` (Python 3.11 or newer). Start: `commonplace init`, `commonplace mcp --install"
    " claude-code`, or `commonplace.open()` in Python."
)
NOTE = "<!-- Written by scripts/generate_docs.py; change the code and run `make docs`. -->\n"


def command_line() -> str:
    """Return the page with the help of every command; what several commands take is printed once."""
    listed = list(commands(cli, ("commonplace",)))
    contexts = {path: _context(path, command) for path, command in listed}
    own_records: dict[tuple[str, ...], list[tuple[str, str]]] = {(): []}
    for path, context in contexts.items():
        inherited = [record for n in range(len(path)) for record in own_records[path[:n]]]
        records = (item.get_help_record(context) for item in context.command.params if isinstance(item, click.Option))
        own_records[path] = [record for record in records if record and record not in inherited]
    common = _common([record for path, records in own_records.items() if len(path) > 1 for record in records])
    names = ", ".join(f"`{name}`" for name in sorted(SHORTCUTS))
    parts = ["# Command line\n", NOTE, SHARED, f"{ALSO}{names}.\n", COMPLETION]
    for path, context in contexts.items():
        pieces = [] if isinstance(context.command, click.Group) else context.command.collect_usage_pieces(context)
        title = " ".join([*(path[1:] or path), *(piece for piece in pieces if piece != "[OPTIONS]")])
        parts.append(f"## {title}\n\n{_help(context, own_records[path], common)}")
        if context.command is cli:
            parts.append(f"{COMMON}\n{_options(context, list(common.values()))}")
    return "\n".join([*parts, exit_codes()])


def _context(path: tuple[str, ...], command: click.Command) -> click.Context:
    return click.Context(command, info_name=" ".join(path), terminal_width=WIDTH, max_content_width=WIDTH)


def _common(records: list[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the options that several commands have with the same help, by their flags, one for each."""
    by_flags: dict[str, tuple[str, str]] = {}
    for record, count in Counter(records).most_common():
        if count > 1:
            by_flags.setdefault(_flags(record), record)
    return dict(sorted(by_flags.items(), key=lambda item: item[0].lstrip("-")))


def _flags(record: tuple[str, str]) -> str:
    return ", ".join(part.split()[0] for part in record[0].split(", "))


def _help(context: click.Context, records: list[tuple[str, str]], common: Mapping[str, tuple[str, str]]) -> str:
    paragraphs = [" ".join(paragraph.split()) for paragraph in (context.command.help or "").split("\n\n")]
    written = [record for record in records if record not in common.values()]
    if written:
        paragraphs.append(_options(context, written).rstrip())
    if shared := [f"`{_flags(record)}`" for record in records if record not in written]:
        paragraphs.append(f"Also: {', '.join(shared)}")
    return "\n\n".join(paragraphs) + "\n"


def _options(context: click.Context, records: list[tuple[str, str]]) -> str:
    text = context.make_formatter()
    text.write_dl(records)
    return f"```text\n{text.getvalue().strip(chr(10))}\n```\n"


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that help shows with its full name, groups before their members."""
    yield path, command
    if isinstance(command, click.Group):
        for name, member in sorted(command.commands.items()):
            if not member.hidden and (command is not cli or name not in SHORTCUTS):
                yield from commands(member, (*path, name))


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["## Exit codes\n", "| code | meaning |", "|---|---|", *rows, ""])


def settings() -> str:
    """Return the page with every setting; those of agents once."""
    intro = (
        "Key, default and allowed values. The environment variable of `search.limit` is `COMMONPLACE_SEARCH_LIMIT`, and"
        " so on. A project's own file may not set the keys marked with †. See [Settings](../settings.md).\n"
    )
    parts = ["# Settings reference\n", NOTE, intro]
    section = ""
    for key in keys():
        if key.section.startswith(STRATEGY) and key.section != f"{STRATEGY}default":
            continue
        if key.section != section:
            section = key.section
            parts.append(f"\n## {section.replace('.default', '.NAME')}\n\n{section_description(section)}\n")
        name = f"`{key.dotted.replace('.default.', '.NAME.')}`" + ("" if key.rule.project else " †")
        allowed = re.sub(r"a (?:whole )?number from (\S+) to (\S+)", r"\1–\2", key.range.removeprefix("one of "))
        parts.append(f"* {name} ({_default(key.default)}; {allowed}): {key.rule.description}")
    return "\n".join([*parts, ""])


def strategies() -> str:
    """Return the table of the strategies that agents have from the beginning."""
    by_agent: dict[str, dict[str, str]] = {}
    for key in keys():
        if key.section.startswith(STRATEGY):
            option = key.dotted.rpartition(".")[2]
            by_agent.setdefault(key.section.removeprefix(STRATEGY), {})[option] = _default(key.default).replace(
                "empty", ""
            )
    options = list(by_agent["default"])
    rows = [[f"`{name}`", *(values[option] for option in options)] for name, values in by_agent.items()]
    head = ["agent", *(f"`{option}`" for option in options)]
    return "\n".join([_row(head), "|---" * len(head) + "|", *map(_row, rows)])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _default(value: object) -> str:
    if value is None:
        return "auto"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text or "empty"


def error_classes() -> str:
    """Return the page with the error tree: what to do about each class, and its exit code."""
    text = "Each class in `commonplace.errors` says what to do and has a `remedy`. The exit code is 1 unless given.\n"
    return "\n".join(["# Errors\n", NOTE, text, *_error_tree(errors.CommonplaceError, ""), ""])


def _error_tree(kind: type[errors.CommonplaceError], indent: str) -> Iterator[str]:
    code = exit_code(kind("", path="") if kind is errors.ConfigError else kind(""))
    yield f"{indent}* `{kind.__name__}`: {_first(kind)}" + (f" ({code})" if code != 1 else "")
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _error_tree(below, f"{indent}  ")


def tools() -> str:
    """Return the page with what the server of the Model Context Protocol offers."""
    parts = [
        "# Tools reference\n",
        NOTE,
        "The tools of `commonplace mcp`, as an agent reads them. `?`: may be absent. `openWorldHint` is false.\n",
    ]
    for form in tool_forms():
        hints = {name: str(value).lower() for name, value in form["annotations"].items() if name != "openWorldHint"}
        written = ", ".join(f"`{name}` {value}" for name, value in hints.items())
        parts.append(f"## {form['name']}\n\n{form['description']}\n\nHints: {written or 'none, so it may destroy'}.\n")
        parts += [_fields("Arguments", form["inputSchema"]), _fields("Result", form["outputSchema"])]
    return "\n".join(parts)


def _fields(title: str, schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", [])
    rows = [
        f"* `{name}`{'' if name in needed else '?'} ({_kind(field)}): {field.get('description', '')}".removesuffix(": ")
        for name, field in schema["properties"].items()
    ]
    return "\n".join([f"{title}:\n", *rows, ""])


def _kind(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(map(str, field["enum"]))
    bounds = [f"{field[key]:,}" for key in ("minimum", "maximum") if key in field]
    kind = str(field["type"]) + (f" {'–'.join(bounds) if len(bounds) == 2 else f'from {bounds[0]}'}" if bounds else "")
    if "properties" in field:
        return f"{kind} ({', '.join(field['properties'])})"
    return f"{kind} of {_kind(field['items'])}" if "items" in field else kind


def python() -> str:
    """Return the page of the Python interface: the package's functions, the engine, its services, what they return."""
    parts = ["# Python interface\n", NOTE]
    parts.append("Arguments after `*` are keyword-only. `help()` shows types, errors and more.\n\n## commonplace\n")
    functions = [commonplace.open, commonplace.restore, commonplace.run_spec]
    parts += [_callable(function.__name__, function) for function in functions]
    engine = _returned(commonplace.open)["Engine"]
    parts.append(f"## Engine\n\n{_first(engine)}\n")
    services: dict[str, type] = {}
    results: dict[str, Any] = {name: getattr(commonplace, name) for name in commonplace.__all__ if name[0].isupper()}
    short: list[str] = []
    for name, member in _members(engine):
        if callable(member):
            is_long = len(_entries(_doc(member))) > FEW_ARGUMENTS
            (parts if is_long else short).append(_callable(name, member) if is_long else _line(name, member))
            results |= _returned(member) if is_long or name in EVERYDAY else {}
        elif name not in NOT_PUBLIC:
            services[name] = next(iter(_returned(getattr(member, "func", None) or member.fget).values()))
    parts += ["### More methods\n", *short, ""]
    for name, kind in services.items():
        parts.append(f"## engine.{name}\n\n{_first(kind)}\n")
        parts += [
            f"* `{_call(key, member)}`: {_result_first(member)}" for key, member in _members(kind) if callable(member)
        ]
        parts.append("")
    parts.append(
        "## What is returned\n\nFrozen dataclasses; `to_dict()` is the JSON form, `help()` shows the others.\n"
    )
    parts += [_result(name, kind) for name, kind in sorted(results.items()) if _is_result(kind)]
    return "\n".join([*parts, ""])


def _members(kind: type) -> list[tuple[str, Any]]:
    members = [(name, inspect.getattr_static(kind, name)) for name in sorted(dir(kind)) if not name.startswith("_")]
    return [(name, member) for name, member in members if inspect.getdoc(member)]


def _returned(function: Callable[..., Any]) -> dict[str, type]:
    """Return our classes in a function's return annotation, by their names as its module imports them."""
    module = sys.modules[function.__module__]
    origin = {
        name.asname or name.name: (node.module, name.name)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }
    kinds = {}
    for word in re.findall(r"[A-Z]\w+", str(function.__annotations__.get("return", ""))):
        module_name, name = origin.get(word, (module.__name__, word))
        kind = getattr(importlib.import_module(module_name), name, None)
        if inspect.isclass(kind) and kind.__module__.partition(".")[0] == "commonplace":
            kinds[word] = kind
    return kinds


def _callable(name: str, function: Any) -> str:
    arguments = "\n".join(f"* `{argument}`: {meaning}" for argument, meaning in _entries(_doc(function)))
    return f"### {name}\n\n`{_call(name, function)}`\n\n{_first(function)}\n\n{arguments}\n"


def _line(name: str, function: Any) -> str:
    arguments = "".join(f" `{argument}`: {meaning}" for argument, meaning in _entries(_doc(function)))
    return f"* `{_call(name, function)}`: {_result_first(function)}{arguments}"


def _call(name: str, function: Any) -> str:
    """Return how a function is called and what it returns, without the types of its arguments."""
    signature = inspect.signature(getattr(function, "__func__", function))
    empty = inspect.Parameter.empty
    bare = [item.replace(annotation=empty) for item in signature.parameters.values() if item.name != "self"]
    returns = signature.return_annotation
    returns = returns if isinstance(returns, str) else inspect.formatannotation(returns)
    arrow = "" if returns == "None" else f" -> {returns}"
    arrow = arrow.replace("views.", "")
    return f"{name}{signature.replace(parameters=bare, return_annotation=empty)}{arrow}"


def _first(documented: Any) -> str:
    return " ".join(_doc(documented).partition("\n\n")[0].split())


def _result_first(function: Any) -> str:
    """Return the first paragraph without the verb "Return", which the arrow before it says already."""
    text = _first(function)
    bare = text.removeprefix("Return ")
    return text if bare == text else bare[0].upper() + bare[1:]


def _doc(documented: Any) -> str:
    return inspect.getdoc(documented) or ""


def _entries(doc: str) -> list[tuple[str, str]]:
    """Return the arguments that a docstring explains, and how; `help()` shows the rest."""
    section = doc.partition("\n\nArgs:\n")[2].partition("\n\n")[0]
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?=    \S)", "\n" + section) if entry.strip()]
    return [(name, meaning) for name, _, meaning in (entry.partition(": ") for entry in entries)]


def _is_result(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _result(name: str, kind: type) -> str:
    names = [field.name for field in dataclasses.fields(kind) if not field.name.startswith("_")]
    names += [member_name for member_name, member in _members(kind) if isinstance(member, property)]
    return f"* **{name}**: `{', '.join(names)}`"


def package_map() -> str:
    """Return the packages and top files of the source, from the top layer down, each with what it is for."""
    rows = []
    for name in [name for line in layer_lines() for name in line] + ["errors", "types"]:
        path = PACKAGE / name
        is_package = path.is_dir()
        source = path / "__init__.py" if is_package else path.with_suffix(".py")
        doc = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
        first = re.split(r"(?<=\.)\s", " ".join(doc.split()), maxsplit=1)[0]
        rows.append(f"| `{name}{'/' if is_package else '.py'}` | {first} |")
    return "\n".join(["| | |", "|---|---|", *rows])


def layer_lines() -> list[list[str]]:
    """Return the layers of the import contract, the top one first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = [entry for entry in settings["contracts"] if entry["type"] == "layers"]
    return [line.replace("(", "").replace(")", "").split(" | ") for line in contract["layers"]]


def http() -> str:
    """Return the page with the routes of the HTTP API and the problems that they answer."""
    parts = ["# HTTP API\n", NOTE, HTTP]
    for tag in dict.fromkeys(operation.tag for operation in OPERATIONS.values()):
        parts.append(f"## {tag}\n")
        for operation in OPERATIONS.values():
            if operation.tag == tag:
                call = f"`{operation.call}`" if isinstance(operation.call, str) else operation.summary.rstrip(".")
                scope = "" if operation.scope == "read" else f" ({operation.scope})"
                parts.append(f"* `{operation.verb} {operation.path}`{scope}: {call}")
        parts.append("")
    parts.append("## Problems\n")
    parts += [f"* {status} `{name}`: `{kind.__name__}`" for kind, (status, name) in STATUSES.items()]
    return "\n".join([*parts, ""])


def layers() -> str:
    """Return the layers as the manual shows them."""
    lines = [" | ".join(line) for line in layer_lines()]
    return "\n".join(["```text", *lines, "```"])


def stored_tables() -> str:
    """Return the schema version and every table with its columns, as the manual shows them."""
    listed = (f"**{item.name}** ({', '.join(column.name for column in item.columns)}): {item.about}" for item in TABLES)
    texts = [f"Schema version {VERSION}.", *listed]
    return "\n\n".join(textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) for text in texts)


def llms() -> str:
    """Return the index of the manual for language models, from the links of its first page."""
    title, _, remainder = (DOCS / "index.md").read_text(encoding="utf-8").partition("\n")
    summary = remainder.strip().partition("\n\n")[0].replace("\n", " ")
    parts = [title, "", f"> {summary}", "", INSTALL]
    for heading, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", remainder, re.MULTILINE | re.DOTALL):
        if links := re.findall(r"^\* \[(.+?)\]\((.+?)\): (.+?)(?=\n\*|\n\n|\Z)", body, re.MULTILINE | re.DOTALL):
            parts += ["", f"## {heading}", ""]
            parts += [f"- [{name}](docs/{page}): {' '.join(about.split())}" for name, page, about in links]
    return "\n".join([*parts, ""])


def with_block(path: Path, name: str, body: str) -> str:
    """Return a file with the text between its two marks of that name replaced."""
    begin, end = f"<!-- {name}: written by scripts/generate_docs.py -->\n", f"<!-- end of {name} -->"
    before, _, remainder = path.read_text(encoding="utf-8").partition(begin)
    _, end_mark, after = remainder.partition(end)
    if not end_mark:
        raise ValueError(f"{path} has no marks of {name!r}")
    return f"{before}{begin}{body}\n{end}{after}"


PAGES: Mapping[Path, Callable[[], str]] = {
    REFERENCE / "tools.md": tools,
    REFERENCE / "command-line.md": command_line,
    REFERENCE / "settings.md": settings,
    REFERENCE / "errors.md": error_classes,
    REFERENCE / "python.md": python,
    REFERENCE / "http.md": http,
    ROOT / "llms.txt": llms,
    DOCS / "search.md": lambda: with_block(DOCS / "search.md", "strategies", strategies()),
    DOCS / "design.md": lambda: with_block(DOCS / "design.md", "layers", layers()),
    DOCS / "formats" / "store.md": lambda: with_block(DOCS / "formats" / "store.md", "tables", stored_tables()),
    ROOT / "CONTRIBUTING.md": lambda: with_block(ROOT / "CONTRIBUTING.md", "map", package_map()),
}


def main(arguments: list[str]) -> int:
    """Write or check all pages."""
    is_check = "--check" in arguments
    stale = []
    for path, page in PAGES.items():
        text = page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not is_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if is_check and stale:
        print(f"stale: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
