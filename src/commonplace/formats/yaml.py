"""Parse untrusted YAML and front matter into plain values, with limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass, field
from commonplace.errors import NotFoundError, UsageError
from commonplace.files import read_file
from commonplace.text.markdown import front_matter_end

MAX_DIGITS: Final = 4_300
"""Of a whole number. Python writes none with more, so no message could show it, but reads one in hexadecimal digits."""
LONG_NUMBER: Final = f"a number has more than {MAX_DIGITS:,} digits"
_TOO_LARGE: Final = 10**MAX_DIGITS
DEEPEST: Final = 64
"""Levels of lists and mappings; more is refused, since readers of nested values call themselves once a level."""
TOO_DEEP: Final = f"nested too deeply, more than {DEEPEST} levels"


def load_yaml(text: str, *, first_line: int = 1) -> tuple[object, str]:
    """Return the value of a YAML text and "", or None and why it cannot be read. Never raises.

    Aliases are refused: with them a few lines can describe an endless value, or billions of values.

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
                return None, TOO_DEEP
        value = yaml.load(text, Loader=loader)  # noqa: S506 -- a safe loader, in C where there is one
        repr(value)  # raises a ValueError for a number with more digits than Python writes
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + first_line}" if error.problem_mark else ""
        problem = error.problem or error.context or "not YAML"
        if "nesting depth" in problem:  # later releases of libyaml have a limit of their own, met while it reads ahead
            return None, TOO_DEEP
        return None, f"{problem}{line}"
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return None, fault_of(error)
    return value, ""


def fault_of(error: Exception) -> str:
    """Return in words why YAML or JSON cannot be read, or a value not be written as such."""
    told = " ".join(str(error).split())
    # Python's own message names a function to call, which does not help the author of a document.
    return LONG_NUMBER if "integer string conversion" in told else told or "nested too deeply"


def is_long_number(value: object) -> bool:
    """Return whether a value is a whole number of too many digits."""
    return isinstance(value, int) and abs(value) >= _TOO_LARGE


def read_document(file: Path, most_bytes: int, what: str) -> object:
    """Return the value that a file holds.

    Args:
        what: what it is to be, with its article, for messages.

    Raises:
        NotFoundError: there is no such file.
        UsageError: it is too large, no UTF-8, or `parse_document` refuses it.
    """
    try:
        data = read_file(file, most_bytes)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {file}", remedy="check the path") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse_document(data, str(file), most_bytes, what)


def parse_document(data: bytes, name: str, most_bytes: int, what: str) -> object:
    """Return the value that some bytes hold. Aliases, deep nesting and keys that occur twice are refused.

    Args:
        name: where they come from, for messages.

    Raises:
        UsageError: naming what is wrong.
    """
    if len(data) > most_bytes:
        raise UsageError(f"{name} has more than {most_bytes:,} bytes, the limit of {what}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: {error.reason} at byte {error.start}") from None
    document, fault = load_yaml(text)
    if fault or (fault := _doubled(text)):
        raise UsageError(f"{name} is not readable as YAML: {fault}")
    return document


def not_json(value: object, path: str = "", depth: int = 0, beside: tuple[type, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the dotted path of what JSON could not hold, with the reason.

    Args:
        beside: types that are taken as well.
    """
    if depth > DEEPEST:
        yield path, f"nested too deeply, more than {DEEPEST} levels"
    elif is_long_number(value):
        yield path, LONG_NUMBER
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                shown = LONG_NUMBER if is_long_number(key) else f"the key {key!r} is not text; put it in quotes"
                yield path, shown
                continue
            yield from not_json(item, f"{path}.{key}" if path else key, depth + 1, beside)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from not_json(item, f"{path}[{place}]", depth + 1, beside)
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value} is not a number of JSON"
    elif value is not None and not isinstance(value, (str, int, float, *beside)):
        yield path, f"{value!r} is a {type(value).__name__}, which JSON does not have; put it in quotes"


def _doubled(text: str) -> str:
    """Say where a mapping has a key twice; YAML's readers keep the last one silently."""
    import yaml

    root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    waiting = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
                if name in seen:
                    return f"the key {key.value!r} occurs twice, again in line {key.start_mark.line + 1}"
                seen.add(name) if name else None
                waiting.append(value)
    return ""


MAX_LENGTH: Final = 16_384
"""Characters of front matter that are parsed; more of it is taken for something else."""

_MAX_BRACKETS: Final = 64


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What is at the start of a text.

    Attributes:
        values: by lower-case key; empty where there is no front matter or it is broken.
        lines: how many lines it takes, its marks included; 0 if there is none.
        fault: why it could not be read, or "".
    """

    values: Mapping[str, object] = field(default_factory=dict)
    lines: int = 0
    fault: str = ""


FAULT: Final = "front matter "
"""How each sentence about one that cannot be used begins."""
NONE: Final = FrontMatter()


def parse_front_matter(text: str) -> FrontMatter:
    r"""Return the front matter of a text whose only line end is "\n". Never raises: what is broken has a `fault`."""
    if not text.startswith("---"):
        return NONE
    head = text[: MAX_LENGTH + 1].split("\n")
    count = front_matter_end(head)
    if not count:
        return NONE
    block = "\n".join(head[1 : count - 1])
    if not block.strip():
        return FrontMatter(lines=count)
    values: object = None
    if block.count("[") + block.count("{") > _MAX_BRACKETS:
        fault = f"more than {_MAX_BRACKETS} brackets"
    else:
        values, fault = load_yaml(block, first_line=2)
    if fault:
        return FrontMatter(lines=count, fault=f"{FAULT}cannot be read: {fault}")
    if not isinstance(values, dict):
        # A document may open with a thematic break; then the block is prose, and nothing is broken.
        return NONE if isinstance(values, str) else FrontMatter(lines=count, fault=f"{FAULT}is not a mapping")
    return FrontMatter({str(key).lower(): value for key, value in values.items()}, count)
