"""Cut source code into sections at functions, classes and their members; it knows lines, no tokens and no limits.

Python is read by its own parser. Every other language, and Python that does not parse, is read by its layout: a
declaration is a line with a known shape, at the left margin or at the first indentation inside a class-like block.
That is right for formatted code in nearly every language, and where it is wrong only the cut moves.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from commonplace.text.sections import Section, Start, sections_between

_MODIFIERS: Final = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|final|abstract|sealed|partial|async|"
    r"override|open|data|case|unsafe|pub(?:\([^)]*\))?|inline|virtual|extern|suspend|local|readonly|const)\s+)*"
)
_CONTAINER: Final = re.compile(
    _MODIFIERS + r"(?:class|interface|struct|enum|trait|module|namespace|protocol|extension|object|record|mod|"
    r"defmodule|contract)\s+([\w$.:]+)"
    r"|" + _MODIFIERS + r"impl(?:<[^>]*>)?\s+(?:[^{]*?\sfor\s+)?([\w:]+)"
    r"|(?:describe|context)(?:\.\w+)?\s*\(\s*['\"`]([^'\"`]{1,80})"
)
_FUNCTION: Final = re.compile(
    _MODIFIERS + r"(?:function\*?|func|fn|def|defp|defmacro|fun|sub|proc|type|macro|message|service|rpc)\s+"
    r"(?:\(\s*\w*\s*\*?(?P<receiver>\w+)[^)]*\)\s*)?(?P<name>[\w$.!?]+)"
    r"|(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+(?P<bound>[\w$]+)\s*(?::[^=]+)?="
    r"\s*(?:async\s*)?(?:function\b|\(|[\w$]+\s*=>|class\b)"
    r"|(?i:create)\s+(?i:or\s+replace\s+)?(?i:table|view|function|procedure|trigger|index)\s+"
    r"(?i:if\s+not\s+exists\s+)?(?P<table>[\w.\"]+)"
    r"|(?:it|test)(?:\.\w+)?\s*\(\s*['\"`](?P<test>[^'\"`]{1,80})"
)
_METHOD: Final = re.compile(r"(?:[\w$<>\[\],.?*&:~]+\s+)*[*&]*([\w$~:#]+)\s*(?:<[^<>()]*>)?\(")
_NOT_METHODS: Final = frozenset(
    {
        "if",
        "for",
        "foreach",
        "while",
        "switch",
        "catch",
        "return",
        "else",
        "do",
        "sizeof",
        "typeof",
        "await",
        "new",
        "throw",
        "super",
        "assert",
        "elif",
        "match",
        "when",
        "until",
        "unless",
        "require",
        "include",
        "import",
        "print",
        "using",
        "lock",
        "with",
        "yield",
        "case",
    }
)
_COMMENT: Final = ("//", "/*", "*", "#", "--", ";", "@", "[", "%")
_CLOSER: Final = re.compile(r"[}\])({]|end\b|else\b|elif\b|except\b|finally\b|catch\b|rescue\b|begin\b|then\b|do\b")
_LONGEST_SIGNATURE: Final = 300
_FILTERING: Final = threading.Lock()


def code_sections(text: str, lines: Sequence[str], *, is_python: bool) -> list[Section]:
    """Return the sections of a source text; a heading is the qualified name, as `LoginService.login`."""
    if is_python:
        tree = _parse(text)
        if tree is not None:
            return sections_between(_ascending(_python_starts(tree.body, "", 0, lines)), lines)
    return sections_between(_ascending(_layout_starts(lines)), lines)


def _ascending(starts: Iterator[Start]) -> Iterator[Start]:
    """Pass on the starts, dropping any that would go back behind the one before."""
    line = -1
    for start in starts:
        if start.line >= line:
            line = start.line
            yield start


def _parse(text: str) -> ast.Module | None:
    # The warnings' filters belong to the process: two threads that set and restore them at once would mix them up.
    with _FILTERING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _python_starts(body: Sequence[ast.stmt], prefix: str, level: int, lines: Sequence[str]) -> Iterator[Start]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        name = f"{prefix}.{node.name}" if prefix else node.name
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        yield Start(_with_comments(lines, first), name, level + 1)
        if isinstance(node, ast.ClassDef):
            yield from _python_starts(node.body, name, level + 1, lines)
        yield Start(node.end_lineno or node.lineno, prefix, level)


def _with_comments(lines: Sequence[str], line: int) -> int:
    """Return the first of the comment and annotation lines that stand directly above `line`, or `line`."""
    while line > 0 and lines[line - 1].lstrip().startswith(_COMMENT):
        line -= 1
    return line


@dataclass(slots=True)
class _Container:
    indent: int
    name: str
    body: int = -1  # indentation of its members, unknown until the first is seen


def _layout_starts(lines: Sequence[str]) -> Iterator[Start]:
    containers: list[_Container] = []
    declared = -1  # indentation of the declaration we are in, -1 outside any
    for number, line in enumerate(lines):
        bare = line.lstrip()
        if not bare or bare.startswith(_COMMENT):
            continue
        indent = len(line) - len(bare)
        is_closer = bool(_CLOSER.match(bare))
        while containers and indent <= containers[-1].indent and not is_closer:
            containers.pop()
        if is_closer:
            continue
        if containers and containers[-1].body < 0:
            containers[-1].body = indent
        if indent != (containers[-1].body if containers else 0):
            continue
        prefix = containers[-1].name if containers else ""
        following = lines[number + 1] if number + 1 < len(lines) else ""
        name, is_container = _declared_name(bare[:_LONGEST_SIGNATURE], following, in_container=bool(containers))
        if name:
            name = f"{prefix}.{name}" if prefix else name
            yield Start(_with_comments(lines, number), name, len(containers) + 1)
            declared = indent
            if is_container:
                containers.append(_Container(indent, name))
        elif declared >= 0 and indent <= declared:
            yield Start(_with_comments(lines, number), prefix, len(containers))
            declared = -1


def _declared_name(line: str, following: str, *, in_container: bool) -> tuple[str, bool]:
    """Return the name that a line declares, "" for none, and whether it may hold members."""
    container = _CONTAINER.match(line)
    if container:
        return next(filter(None, container.groups()), "").rstrip(":."), True
    function = _FUNCTION.match(line)
    if function:
        name = function["name"] or function["bound"] or function["table"] or function["test"]
        return f"{function['receiver']}.{name}" if function["receiver"] else name, False
    method = _METHOD.match(line)
    if method and method[1] not in _NOT_METHODS and line.split(maxsplit=1)[0] not in _NOT_METHODS:
        tail = line.rstrip()[-1:]
        if tail not in {";", ","} if in_container else tail == "{" or (tail == ")" and following.startswith("{")):
            return method[1], False
    return "", False
