"""Read ignore files with the rules of git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from pathspec import RegexPattern

from commonplace.files import open_file
from commonplace.store.filters import pattern_of

IGNORE_FILES: Final = (".gitignore", ".commonplaceignore")

_MAX_BYTES: Final = 1_048_576
_UNHEARD_OF: Final = "\ue000"  # a file name that only a rule for every name can match

Rules: TypeAlias = "tuple[RegexPattern, ...]"
"""The strongest first."""


def rules_above(root: str, project: str | None) -> tuple[str, Rules]:
    """Return where a root is, and the rules from above it: from its repository's top, else the project around it.

    The first is what leads from there to the root, with a slash at its end; "" if the root is where the rules begin.
    The root was named, so rules that ignore it, or a directory around it, do not hold for that; both are real paths.
    """
    directory = Path(root)
    top = project if project and directory.is_relative_to(project) else root
    for candidate in (directory, *directory.parents):
        if os.path.lexists(candidate / ".git"):
            top = str(candidate)
            break
    inside = os.path.relpath(root, top).replace(os.sep, "/")
    prefix = "" if inside == "." else inside + "/"
    rules = with_rules((), [os.path.join(top, ".git", "info", "exclude")], "")  # noqa: PTH118
    around = [prefix[: place + 1] for place, sign in enumerate(prefix) if sign == "/"]
    for above in ["", *around[:-1]] if prefix else []:
        rules = with_rules(rules, (os.path.join(top, above, name) for name in IGNORE_FILES), above)  # noqa: PTH118
    # A rule that ignores the root, or a directory around it, and whatever is in it, such as `*`, is taken out.
    while True:
        everything = _decisive(prefix + _UNHEARD_OF, rules)
        if not everything or not everything.include or everything not in [_decisive(each, rules) for each in around]:
            return prefix, rules
        rules = tuple(rule for rule in rules if rule is not everything)


def with_rules(rules: Rules, locations: Iterable[str], directory: str) -> Rules:
    """Return rules with those of a directory's own ignore files, which are stronger; `directory` ends in a slash."""
    own: list[RegexPattern] = []
    for location in locations:
        try:
            with open_file(location) as stream:
                data = stream.read(_MAX_BYTES)
        except OSError:
            continue
        lines = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
        own.extend(rule for line in lines if (rule := _rule(line, directory)))
    return (*reversed(own), *rules)


def is_ignored(path: str, rules: Rules) -> bool:
    """Return whether rules ignore a path, a directory's with a slash at its end, where none above it is ignored."""
    rule = _decisive(path, rules)
    return rule is not None and rule.include is True


def _decisive(path: str, rules: Rules) -> RegexPattern | None:
    """Return the rule that decides about a path.

    Each directory on the way down was asked about, so a rule counts only where it matches the path itself: `!logs/`
    takes back the directory, not what other lines ignore in it. pathspec's own matching lets it take back both.
    """
    return next((rule for rule in rules if rule.regex and rule.regex.fullmatch(path)), None)


def _rule(line: str, directory: str) -> RegexPattern | None:
    """Return the pattern of a line as seen from where paths begin, None if it says nothing."""
    line = re.sub(r"(?<!\\) +$", "", line)
    if not line or line.startswith("#"):
        return None
    sign, line = ("!", line[1:]) if line.startswith("!") else ("", line)
    # To git `a/**` names what is in `a`, not `a`; and pathspec makes expressions for parts of a path of bare stars.
    line = re.sub(r"(?<![^/])\*\*+(?![^/])", "**", line)
    line = re.sub(r"(^|/)\*\*(/?)$", r"\1**/?*\2", line)
    line = re.sub(r"(^|/)\*(/?)$", r"\1?*\2", line)
    if directory and line.strip("/"):
        depth = "" if "/" in line.removesuffix("/") else "**/"
        line = "/" + re.sub(r"([\\*?\[])", r"\\\1", directory) + depth + line.removeprefix("/")
    return pattern_of(sign + line)
