"""Say which paths a set of .gitignore-style lines names, nearest directory first; it reads no files.

Lines mean what they mean to git: the last line that matches decides, `!` takes a path back, a nested file is stronger
than the one above it, and nothing inside an ignored directory can be taken back. A rule is asked about each directory
on the way down, so it names a path only if it matches that path itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from commonplace.errors import UsageError

IGNORE_FILES: Final = (".gitignore", ".commonplaceignore")

_TOKEN: Final = re.compile(
    r"(?P<deep>(?:(?<=/)|^)\*\*+/)|(?P<rest>(?:(?<=/)|^)\*\*+$)|(?P<stars>\*+)|(?P<any>\?)"
    r"|\[(?P<class>[!^]?+\]?+(?:\[:[^\]]*:\]|\\.|[^\]\\])*)\]|\\(?P<escaped>.)|(?P<slash>/)|(?P<plain>[^\\\[])",
    re.DOTALL,
)
_CLASSES: Final = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "xdigit": "0-9a-fA-F",
    "space": r"\s",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "graph": "!-~",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
}
_CLASS_PART: Final = re.compile(r"(\[:[^\]]*:\])|\\(.)|(.)", re.DOTALL)
_NAME: Final = "(?=[^/])"  # a name comes next: what stands for anything does not stand for nothing
_UNHEARD_OF: Final = "\ue000"  # a file name that only a rule for every name can match


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: what it matches, and whether it names that or takes it back."""

    expression: re.Pattern[str]
    names: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """Compiled lines that hold for everything below one directory.

    Attributes:
        skip: how many characters of a path lead to that directory, slash included.
        rules: the strongest first.
    """

    skip: int
    rules: tuple[Rule, ...]

    def decisive(self, path: str) -> Rule | None:
        """Return the rule that decides about a path, None if all are silent.

        `path` is posix, relative to where the paths of all rules begin, and ends in a slash for a directory.
        """
        tail = path[self.skip :]
        if not tail:
            return None  # the directory of these lines, or one above it
        for rule in self.rules:
            if rule.expression.match(tail):
                return rule
        return None

    def verdict(self, path: str) -> bool | None:
        """Return True if the lines name the path, False if they take it back, None if they are silent."""
        rule = self.decisive(path)
        return rule.names if rule else None


def ignore_rules(lines: Iterable[str], *, skip: int = 0) -> Rules:
    """Compile .gitignore lines; a line that is no valid pattern is passed over, as git does."""
    compiled = [rule for line in lines if (rule := _compile(line, ends=(r"/?\Z", r"/\Z")))]
    return Rules(skip, tuple(reversed(compiled)))


def globs(lines: Sequence[str], *, skip: int = 0) -> Rules:
    """Compile the globs of a request, in the notation of .gitignore; one that names a directory names what is in it.

    Raises:
        UsageError: a glob is not valid, or there is none.
    """
    compiled: list[Rule] = []
    for line in lines:
        rule = _compile(line, ends=(r"(?:/|\Z)", "/"))
        if rule is None:
            raise UsageError(
                f"{line!r} is not a glob", remedy="write it as in .gitignore, for example 'docs/**/*.md' or '*.py'"
            )
        compiled.append(rule)
    if not compiled:
        raise UsageError("no glob was given", remedy="name at least one, for example '**/*.md'")
    return Rules(skip, tuple(reversed(compiled)))


def is_ignored(path: str, chain: Sequence[Rules]) -> bool:
    """Return what the nearest rules that speak of the path say; `chain` goes from the outermost inwards."""
    rule = _decisive(path, chain)
    return rule is not None and rule.names


def overruled(chain: Sequence[Rules], root: str) -> tuple[Rules, ...]:
    """Return the rules that hold below a directory which somebody named although it may be ignored itself.

    They are the same, but for rules that ignore the directory, or one above it, and whatever is in it: `*`, `build/**`.

    Args:
        chain: from the outermost inwards.
        root: the directory, relative to where the paths of the rules begin, with a slash at its end.
    """
    parts = root.split("/")[:-1]
    above = ["/".join(parts[: depth + 1]) + "/" for depth in range(len(parts))]
    kept = tuple(chain)
    while (everything := _decisive(root + _UNHEARD_OF, kept)) and everything.names:
        if everything not in [_decisive(directory, kept) for directory in above]:
            break
        kept = tuple(
            replace(level, rules=tuple(rule for rule in level.rules if rule is not everything)) for level in kept
        )
    return kept


def _decisive(path: str, chain: Sequence[Rules]) -> Rule | None:
    for level in reversed(chain):
        rule = level.decisive(path)
        if rule:
            return rule
    return None


def _compile(line: str, *, ends: tuple[str, str]) -> Rule | None:
    """Compile one line; `ends` are the ends of an expression for any path and for one that must be a directory."""
    line = re.sub(r"(?<!\\) +$", "", line)
    if line.startswith("#"):
        return None
    names = not line.startswith("!")
    pattern = line if names else line[1:]
    is_directory = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    is_anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    body = _expression(pattern, is_anchored=is_anchored)
    if not body:
        return None
    start = _NAME if is_anchored else "(?:.*/)?" + _NAME
    try:
        return Rule(re.compile(start + body + ends[is_directory], re.DOTALL), names)
    except re.error:
        return None


def _expression(pattern: str, *, is_anchored: bool) -> str:
    """Return a regular expression for a pattern without its outer slashes, "" if it can match nothing."""
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if not token:
            return ""  # a bracket that is not closed, a backslash at the end
        place = token.end()
        match token.lastgroup:
            case "deep":
                parts.append("(?:.*/)?" + _NAME)
            case "rest":
                parts.append(".+" if is_anchored else "[^/]+")
            case "stars":
                parts.append("[^/]*")
            case "slash":
                parts.append("/" + _NAME)
            case "any":
                parts.append("[^/]")
            case "class":
                bracket = _class(token["class"])
                if not bracket:
                    return ""
                parts.append(bracket)
            case _:
                parts.append(re.escape(token["escaped"] or token["plain"]))
    return "".join(parts)


def _class(written: str) -> str:
    """Return the regular expression of a bracket, "" if it names an unknown class; it never matches a slash."""
    negation = "^" if written[0] in "!^" else ""
    parts: list[str] = []
    for named, escaped, plain in _CLASS_PART.findall(written[len(negation) :]):
        if named:
            if named[2:-2] not in _CLASSES:
                return ""
            parts.append(_CLASSES[named[2:-2]])
        elif escaped:
            parts.append(re.escape(escaped))
        else:
            parts.append(plain if plain == "-" else re.escape(plain))
    return f"(?!/)[{negation}{''.join(parts)}]"
