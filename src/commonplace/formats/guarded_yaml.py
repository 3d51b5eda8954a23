"""Read YAML that somebody else wrote: plain values, without the means to hold up the program. It knows no files."""

from __future__ import annotations

from typing import Final

DEEPEST: Final = 64
"""Levels of lists and mappings; more is refused, since readers of nested values call themselves once a level."""


def load_yaml(text: str, *, first_line: int = 1) -> tuple[object, str]:
    """Return the value of a YAML text and "", or None and why it cannot be read. Never raises.

    Aliases are refused: with them a few lines stand for a value without end, or for billions of values.

    Args:
        first_line: the number of the text's first line in its file, for the message.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                return None, "aliases are not allowed"
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                return None, f"nested too deeply, more than {DEEPEST} levels"
        return yaml.load(text, Loader=loader), ""  # noqa: S506 -- a safe loader, in C where there is one
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + first_line}" if error.problem_mark else ""
        return None, f"{error.problem or error.context or 'not YAML'}{line}"
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return None, " ".join(str(error).split()) or "nested too deeply"
