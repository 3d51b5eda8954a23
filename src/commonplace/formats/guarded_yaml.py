"""Read YAML that somebody else wrote: plain values, without the means to hold up the program. It knows no files."""

from __future__ import annotations

from typing import Final

MOST_BITS: Final = 14_000
"""Of a whole number, some 4,200 digits: Python writes none of more than 4,300, so nobody could be told of it. A number
in hexadecimal digits is read all the same."""
LONG_NUMBER: Final = "a number has more than 4,200 digits"
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
        value = yaml.load(text, Loader=loader)  # noqa: S506 -- a safe loader, in C where there is one
        return (None, LONG_NUMBER) if _holds_long_number(value) else (value, "")
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + first_line}" if error.problem_mark else ""
        return None, f"{error.problem or error.context or 'not YAML'}{line}"
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return None, fault_of(error)


def fault_of(error: Exception) -> str:
    """Return in words why YAML or JSON cannot be read, or a value not be written as such."""
    told = " ".join(str(error).split())
    # Python's own words name a function to call, which whoever wrote the document cannot.
    return LONG_NUMBER if "integer string conversion" in told else told or "nested too deeply"


def is_long_number(value: object) -> bool:
    """Tell whether a value is a whole number of too many digits."""
    return isinstance(value, int) and value.bit_length() > MOST_BITS


def _holds_long_number(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_long_number, value.keys())) or any(map(_holds_long_number, value.values()))
    if isinstance(value, list | tuple | set):
        return any(map(_holds_long_number, value))
    return is_long_number(value)
