"""Derive an artifact's metadata from its path and text: type, phase, title, summary, tags, references.

Front matter takes precedence over content, content over names in the path, and a nearer directory over a farther one.

A reference to a file of the project becomes that file's path. Unresolved references are kept as written, except modules
of Python's standard library.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from commonplace.dataclasses import replace
from commonplace.formats.yaml import FAULT_PREFIX, FrontMatter, parse_front_matter
from commonplace.text.languages import PROSE, Language, language_of
from commonplace.text.markdown import plain_heading, plain_text
from commonplace.types import ARTIFACT_TYPES, PHASES, Owner

MAX_RESULTS: Final = 100
"""Maximum references of one text; the first ones are kept."""

_MENTION: Final = re.compile(r"(?<![\w@/.'\"`-])@((?:[\w.~-]+/)*[\w.~-]+)")
_LINK: Final = re.compile(r"(?<!!)\[[^\[\]\n]{0,200}\]\(<?([^()\s<>]{1,300})")
_ROLE: Final = re.compile(r":(?:doc|download|file):`(?:[^`<]{0,200}<)?([^`<>\s]{1,300})>?`")
_DIRECTIVE: Final = re.compile(r"^\.\. (?:literal)?include:: *(\S{1,300})", re.MULTILINE)
_PYTHON: Final = re.compile(r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import\b|import[ \t]+([\w.]+))", re.MULTILINE)
_SCRIPT: Final = re.compile(
    r"\b(?:from|import)\s{0,100}['\"]([^'\"\n]{1,300})['\"]|\b(?:require|import)\(\s{0,100}['\"]([^'\"\n]{1,300})['\"]"
)
_OTHER: Final = re.compile(
    r"^[ \t]*(?:#[ \t]*include[ \t]*\"([^\"\n]{1,300})\""
    r"|(?:import|use|using|require|require_relative|include|mod)[ \t]+(?:static[ \t]+)?['\"]?([\w./:\\@-]{2,200}))",
    re.MULTILINE,
)
_SCRIPT_SUFFIXES: Final = frozenset("ts tsx mts cts js jsx mjs cjs vue svelte".split())
_SCRIPT_ENDINGS: Final = ("", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".vue", ".svelte", "/index.ts", "/index.js")
_OTHER_ENDINGS: Final = ("", ".h", ".rb", ".rs", ".php", ".lua")
_PYTHON_ENDINGS: Final = (".py", "/__init__.py", ".pyi")
_PROSE_ENDINGS: Final = ("", ".md", ".rst", ".txt", "/index.md", "/README.md", "/index.rst", "/index.txt")
_PYTHON_ROOTS: Final = ("src", "lib")


def find_references(text: str, path: str, language: Language, known: Collection[str]) -> tuple[str, ...]:
    """Return the references of a text in order of appearance, each once."""
    references = dict.fromkeys(_references(text, path, language, known))
    return tuple(reference for reference in references if reference and reference != path)[:MAX_RESULTS]


def _references(text: str, path: str, language: Language, paths: Collection[str]) -> Iterator[str]:
    directory = posixpath.dirname(path)
    for match in _MENTION.finditer(text) if "@" in text else ():
        written = match[1].rstrip(".")
        resolved = _resolve(written, directory, ("",), paths)
        if resolved or ("/" in written and language_of(posixpath.basename(written))):
            yield resolved or written
    if language in PROSE:
        for mark, pattern in (("](", _LINK), (":`", _ROLE), ("include::", _DIRECTIVE)):
            for match in pattern.finditer(text) if mark in text else ():
                written = match[1].partition("#")[0].partition("?")[0]
                if written and ":" not in written:
                    yield _resolve(written, directory, _PROSE_ENDINGS, paths) or written
    elif language == "python":
        yield from _python_imports(text, directory, paths)
    elif language == "code":
        is_script = path.rpartition(".")[2].lower() in _SCRIPT_SUFFIXES
        endings = _SCRIPT_ENDINGS if is_script else _OTHER_ENDINGS
        for match in (_SCRIPT if is_script else _OTHER).finditer(text):
            written = match[1] or match[2]
            yield _resolve(written, directory, endings, paths) or written


def _above(directory: str) -> list[str]:
    parts = directory.split("/") if directory else []
    return ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]


def _resolve(written: str, directory: str, endings: tuple[str, ...], paths: Collection[str]) -> str:
    """Return the known path that `written` names from `directory` or from the project's root, or "".

    A path that starts with a slash is tried from every parent directory, since any of them may be a site's root.
    """
    bases = _above(directory) if written.startswith("/") else [directory, ""]
    for base in bases:
        candidate = posixpath.normpath(posixpath.join(base, written.lstrip("/")))
        for ending in endings:
            if candidate + ending in paths:
                return candidate + ending
    return ""


def _python_imports(text: str, directory: str, paths: Collection[str]) -> Iterator[str]:
    roots = [root + "/" if root else "" for root in _above(directory) if f"{root}/__init__.py" not in paths]
    roots[1:1] = [f"{root}{name}/" for root in roots for name in _PYTHON_ROOTS]
    for match in _PYTHON.finditer(text):
        written: str = match[1] or match[2]
        name = written.lstrip(".")
        dots = len(written) - len(name)
        module = name.replace(".", "/")
        if dots:
            base = posixpath.normpath(posixpath.join(directory or ".", *[".."] * (dots - 1), module))
            yield next((base + ending for ending in _PYTHON_ENDINGS if base + ending in paths), written)
            continue
        candidates = (root + module + ending for root in roots for ending in _PYTHON_ENDINGS)
        resolved = next((candidate for candidate in candidates if candidate in paths), "")
        if resolved or name.partition(".")[0] not in sys.stdlib_module_names:
            yield resolved or written


RULES: Final = 2
"""Version of these rules; raise it with every change that alters a file's metadata."""

MAX_SUMMARY_LENGTH: Final = 500
MAX_TITLE_LENGTH: Final = 200
MAX_TAGS: Final = 50

_HEAD: Final = 8000  # characters in which title and summary are looked for
_NAMED: Final = {
    "requirement": "requirements",
    "architecture": "architecture adr adrs decisions",
    "research": "research",
    "documentation": "docs doc documentation",
    "test": "test tests __tests__ spec specs",
}
_DIRECTORIES: Final = {name: kind for kind, names in _NAMED.items() for name in names.split()}
_ONLY_CODE: Final = frozenset({"spec", "specs"})  # hold tests in code, and specifications in prose
_ABOVE: Final = frozenset({".aiwg", "docs", "doc"})  # below these, a directory's name types code files too
_TEST_FILE: Final = re.compile(
    r"(?:test_.*|.*_test|conftest|tests)\.pyi?$|.*_test\.\w+$|.*[.-](?:test|tests|spec|e2e)\.\w+$|.*_spec\.\w+$"
    r"|.*[a-z\d](?:Test|Tests|Spec|IT)\.(?:java|kt|cs|scala|swift|php|groovy|dart|cpp|cc)$"
)
_INSTRUCTIONS: Final = re.compile(
    r"(?:.*/)?\.[^/]+/(?:.*/)?(?:agents?|prompts?|chatmodes?|instructions?|commands?|rules|skills?)/"
    r"|.*\.(?:agent|prompt|chatmode|instructions)\.\w+$",
    re.IGNORECASE,
)
_PIP_FILE: Final = re.compile(r"(?:.*requirements.*|constraints.*)\.txt$|requirements/.*\.txt$")
_DECISION_FILE: Final = re.compile(r"adr[-_ ]?\d+", re.IGNORECASE)
_REQUIREMENT: Final = re.compile(r"(?:UC|REQ|NFR|FR|US)-\d+")
_DECISION: Final = re.compile(r"^#{1,3} (?:Decision|Decision Outcome)\s*$", re.MULTILINE)
_DECISION_FRAME: Final = re.compile(r"^#{1,3} (?:Context|Status|Context and Problem Statement)\s*$", re.MULTILINE)
_ATX: Final = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S.*?)(?:[ \t]+#+)?[ \t]*$", re.MULTILINE)
_UNDERLINED: Final = re.compile(r"^(\S.{0,200})\n([=\-~^\"*#+])\2{2,}[ \t]*$", re.MULTILINE)
_UNDERLINE_HINT: Final = re.compile(r"\n([=\-~^\"*#+])\1\1")
_PYTHON_DOCSTRING: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[rRuU]{0,2}(\"\"\"|''')(.*?)(?:\1|\Z)", re.DOTALL)
_COMMENT: Final = re.compile(
    r"/\*+(.*?)(?:\*/|\Z)|((?:^[ \t]*(?://|#|--|;;)[^\n]*(?:\n|\Z))+)", re.DOTALL | re.MULTILINE
)
_COMMENT_MARK: Final = re.compile(r"^[ \t]*(?:\*+|//[/!]*|#+!?|--+|;+)[ \t]?", re.MULTILINE)
_LEGAL: Final = re.compile(
    r"copyright|licen[sc]e|spdx|all rights reserved|-\*-|^!/|eslint|prettier|@ts-", re.IGNORECASE
)


def describe(owner: Owner, text: str, language: Language, known: Collection[str] = ()) -> tuple[Owner, tuple[str, ...]]:
    """Return an artifact with its metadata, and a sentence for each unusable value of its front matter.

    Args:
        owner: the artifact; its path is posix and relative to the project.
        known: the artifact paths that references may resolve to.
    """
    path = owner.path
    front = parse_front_matter(text) if language in PROSE else FrontMatter()
    faults = [front.fault] if front.fault else []
    values = front.values
    head = text[:_HEAD]
    if front.lines:
        head = head.split("\n", front.lines)[-1] if head.count("\n") >= front.lines else ""
    title = _line(values.get("title")) or _heading(head, language) or path.rpartition("/")[2]
    kind = _choice(values, "type", ARTIFACT_TYPES, faults) or _type(path, language, title, head)
    folders = (part.lower() for part in reversed(path.split("/")[:-1]))
    phase = _choice(values, "phase", PHASES, faults) or next((part for part in folders if part in PHASES), "")
    tags = values.get("tags", values.get("keywords"))
    if isinstance(tags, str):
        tags = tags.split("," if "," in tags else None)
    named = (_line(tag).lstrip("#")[:100] for tag in (tags if isinstance(tags, list) else ()))
    summary = _line(values.get("summary")) or _line(values.get("description")) or _first_paragraph(head, language)
    described = replace(
        owner,
        title=title[:MAX_TITLE_LENGTH],
        summary=shorten(summary, MAX_SUMMARY_LENGTH),
        tags=tuple(dict.fromkeys(filter(None, named)))[:MAX_TAGS],
        type=kind,
        phase=phase,
        references=find_references(text, path, language, known),
    )
    return described, tuple(faults)


def shorten(text: str, limit: int) -> str:
    """Return the text; if it exceeds `limit` characters, cut it after a word and append "…"."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    if not text[limit - 1].isspace():
        cut = cut.rpartition(" ")[0] or cut
    return cut.rstrip(" ,;:.") + "…"


def _line(value: object) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _choice(values: Mapping[str, object], key: str, allowed: tuple[str, ...], faults: list[str]) -> str:
    value = _line(values.get(key)).lower()
    if value and value not in allowed:
        faults.append(f"{FAULT_PREFIX}{key} {value[:60]!r} is not one of {', '.join(allowed)}; it is ignored")
        return ""
    return value


def _type(path: str, language: Language, title: str, head: str) -> str:
    *directories, name = path.split("/")
    is_prose = language in PROSE
    if _PIP_FILE.match(name) or _PIP_FILE.match("/".join([*directories[-1:], name])):
        return "code"
    if language == "config" and _INSTRUCTIONS.match(path):
        return "documentation"  # instructions for agents are prose in any format
    if is_prose:
        if _DECISION_FILE.match(name) or _DECISION_FILE.match(title):
            return "architecture"
        if _REQUIREMENT.match(name) or _REQUIREMENT.match(title):
            return "requirement"
        if _DECISION.search(head) and _DECISION_FRAME.search(head):
            return "architecture"
    elif _TEST_FILE.match(name):
        return "test"
    # The nearest directory whose name is a type
    for depth in range(len(directories) - 1, -1, -1):
        directory = directories[depth].lower()
        kind = _DIRECTORIES.get(directory, "")
        is_at_top = depth == 0 or (depth == 1 and directories[0] in _ABOVE)
        is_typed = is_prose or kind == "test" or (kind != "documentation" and is_at_top)
        if kind and is_typed and not (is_prose and directory in _ONLY_CODE):
            return kind
    return "documentation" if is_prose else "code"


def _heading(head: str, language: Language) -> str:
    match = None
    if language == "markdown":
        match = _ATX.search(head)
        underlined = _UNDERLINED.search(head) if "\n===" in head else None
        if underlined and (not match or underlined.start() < match.start()):
            match = underlined
    elif language == "restructuredtext" and _UNDERLINE_HINT.search(head):
        match = _UNDERLINED.search(head)
    return plain_heading(match[1]) if match else ""


def _first_paragraph(head: str, language: Language) -> str:
    if language in PROSE:
        blocks = re.split(r"\n[ \t]*\n", head)
        return next((plain for block in blocks if (plain := _plain_paragraph(block, language))), "")
    if language == "python" and (docstring := _PYTHON_DOCSTRING.match(head)):
        return " ".join(docstring[2].strip().partition("\n\n")[0].split())
    for comment in _COMMENT.finditer(head):
        if head.count("\n", 0, comment.start()) > 60:
            break
        body = _COMMENT_MARK.sub("", comment[1] or comment[2] or "").strip()
        for paragraph in re.split(r"\n[ \t]*\n", body):
            if len(paragraph) > 20 and not _LEGAL.search(paragraph):
                return " ".join(paragraph.split())
    return ""


def _plain_paragraph(block: str, language: Language) -> str:
    """Return the prose at the start of a block as one line, or "" if the block is not prose."""
    lines = block.strip("\n").split("\n")
    while lines and (lines[0].lstrip().startswith(("#", "=", "[![", "<", ".. ", "![")) or _is_rule(lines[0])):
        lines.pop(0)
    if len(lines) > 1 and _is_rule(lines[1]):
        lines = lines[2:]
    if not lines or lines[0].lstrip().startswith(("|", "```", "~~~", ":", "+-", "@", "{%")) or lines[0][:4] == "    ":
        return ""
    # A heading, fence or table ends a paragraph even without a blank line.
    end = len(lines)
    for number, line in enumerate(lines):
        if number and language == "markdown" and (_ATX.match(line) or line.lstrip().startswith(("```", "~~~", "|"))):
            end = number
        elif number > 1 and language in {"markdown", "restructuredtext"} and _is_rule(line):
            end = number - 1  # the line above is the title that it underlines
        if end < len(lines):
            break
    return plain_text(" ".join(lines[:end]))


def _is_rule(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and not bare.strip(bare[0]) and not bare[0].isalnum()
