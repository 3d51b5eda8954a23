"""Find what a text refers to: @-mentions of paths, links to local files, imports; it opens no file.

A reference that names a file of the project becomes that file's path. What cannot be resolved stays as it is written,
but for modules of Python's standard library, of which every project has the same.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Collection, Iterator
from typing import Final

from commonplace.text.languages import PROSE, Language, language_of

MOST: Final = 100
"""References kept of one text, the first ones."""

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
_PYTHON_ENDINGS: Final = (".py", "/__init__.py", ".pyi")
_PROSE_ENDINGS: Final = ("", ".md", ".rst", ".txt", "/index.md", "/README.md", "/index.rst", "/index.txt")
_PYTHON_ROOTS: Final = ("src", "lib")


def find_references(text: str, path: str, language: Language, known: Collection[str]) -> tuple[str, ...]:
    """Return the references of a text in order of appearance, each once.

    Args:
        text: all of it.
        path: the artifact's own path; it is never its own reference.
        language: decides what is looked for.
        known: artifact paths that exist, fast to ask for membership.
    """
    found: dict[str, None] = {}
    for reference in _all(text, path, language, known):
        if reference and reference != path:
            found[reference] = None
            if len(found) == MOST:
                break
    return tuple(found)


def _all(text: str, path: str, language: Language, known: Collection[str]) -> Iterator[str]:
    directory = posixpath.dirname(path)
    if "@" in text:
        yield from _mentions(text, directory, known)
    if language in PROSE:
        yield from _links(text, directory, known)
    elif language == "python":
        yield from _python_imports(text, directory, known)
    elif language == "code":
        yield from _other_imports(text, path, directory, known)


def _above(directory: str) -> list[str]:
    """Return the directories around a file, from the project's root, "", inwards."""
    parts = directory.split("/") if directory else []
    return ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]


def _resolve(written: str, directory: str, endings: tuple[str, ...], known: Collection[str]) -> str:
    """Return the known path that `written` names from `directory` or from the project's root, or "".

    With a slash at its start it is sought from every directory around, since a site's root may be any of them.
    """
    bases = _above(directory) if written.startswith("/") else [directory, ""]
    for base in bases:
        candidate = posixpath.normpath(posixpath.join(base, written.lstrip("/")))
        for ending in endings:
            if candidate + ending in known:
                return candidate + ending
    return ""


def _mentions(text: str, directory: str, known: Collection[str]) -> Iterator[str]:
    for match in _MENTION.finditer(text):
        written = match[1].rstrip(".")
        resolved = _resolve(written, directory, ("",), known)
        if resolved:
            yield resolved
        elif "/" in written and language_of(posixpath.basename(written)):
            yield written


def _links(text: str, directory: str, known: Collection[str]) -> Iterator[str]:
    for mark, pattern in (("](", _LINK), (":`", _ROLE), ("include::", _DIRECTIVE)):
        if mark not in text:
            continue
        for match in pattern.finditer(text):
            written = match[1].partition("#")[0].partition("?")[0]
            if written and ":" not in written:
                yield _resolve(written, directory, _PROSE_ENDINGS, known) or written


def _python_imports(text: str, directory: str, known: Collection[str]) -> Iterator[str]:
    roots = [root + "/" if root else "" for root in _above(directory) if f"{root}/__init__.py" not in known]
    roots[1:1] = [f"{root}{name}/" for root in roots for name in _PYTHON_ROOTS]
    for match in _PYTHON.finditer(text):
        written: str = match[1] or match[2]
        name = written.lstrip(".")
        dots = len(written) - len(name)
        module = name.replace(".", "/")
        if dots:
            base = posixpath.normpath(posixpath.join(directory or ".", *[".."] * (dots - 1), module))
            yield next((base + ending for ending in _PYTHON_ENDINGS if base + ending in known), written)
            continue
        candidates = (root + module + ending for root in roots for ending in _PYTHON_ENDINGS)
        resolved = next((candidate for candidate in candidates if candidate in known), "")
        if resolved or name.partition(".")[0] not in sys.stdlib_module_names:
            yield resolved or written


def _other_imports(text: str, path: str, directory: str, known: Collection[str]) -> Iterator[str]:
    is_script = path.rpartition(".")[2].lower() in _SCRIPT_SUFFIXES
    for match in (_SCRIPT if is_script else _OTHER).finditer(text):
        written = match[1] or match[2]
        endings = _SCRIPT_ENDINGS if is_script else ("", ".h", ".rb", ".rs", ".php", ".lua")
        yield _resolve(written, directory, endings, known) or written
