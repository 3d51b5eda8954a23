"""Parse untrusted YAML and front matter into plain values, with limits on size and depth."""

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
"""Digits of an integer. Python cannot write longer ones, as in a message, but does read them in hexadecimal."""
LONG_NUMBER: Final = f"a number has more than {MAX_DIGITS:,} digits"
_TOO_LARGE: Final = 10**MAX_DIGITS
MAX_DEPTH: Final = 64
"""Levels of lists and mappings; deeper ones are refused, since readers of nested values recurse once per level."""
TOO_DEEP: Final = f"nested too deeply, more than {MAX_DEPTH} levels"


def load_yaml(text: str, *, first_line: int = 1) -> tuple[object, str]:
    """Return the value of a YAML text and "", or None and why it cannot be read. Never raises.

    Aliases are refused: with them, a few lines can describe an endless value, or billions of values.

    Args:
        first_line: line number of the text's start in its file, for the message.
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
            if depth > MAX_DEPTH:
                return None, TOO_DEEP
        value = yaml.load(text, Loader=loader)  # noqa: S506 -- a safe loader, in C where there is one
        repr(value)  # raises a ValueError for an integer with more digits than Python writes
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + first_line}" if error.problem_mark else ""
        problem = error.problem or error.context or "not YAML"
        if "nesting depth" in problem:  # later releases of libyaml have their own limit, met while reading ahead
            return None, TOO_DEEP
        return None, f"{problem}{line}"
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return None, fault_of(error)
    return value, ""


def fault_of(error: Exception) -> str:
    """Return a message that says why YAML or JSON cannot be read, or a value cannot be written as such."""
    message = " ".join(str(error).split())
    # Python's own message names a function to call, which does not help the author of a document.
    return LONG_NUMBER if "integer string conversion" in message else message or "nested too deeply"


def is_long_number(value: object) -> bool:
    """Return whether a value is an integer of more than `MAX_DIGITS` digits."""
    return isinstance(value, int) and abs(value) >= _TOO_LARGE


def read_document(file: Path, max_bytes: int, kind: str) -> object:
    """Return the value of a YAML file.

    Args:
        kind: the kind of document, with its article, for messages.

    Raises:
        NotFoundError: the file does not exist.
        UsageError: it cannot be read, is too large, or `parse_document` refuses it.
    """
    try:
        data = read_file(file, max_bytes)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {file}", remedy="check the path") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse_document(data, str(file), max_bytes, kind)


def parse_document(data: bytes, name: str, max_bytes: int, kind: str) -> object:
    """Return the value of YAML in UTF-8. Aliases, deep nesting and duplicate keys are refused.

    Args:
        name: names the source in messages.

    Raises:
        UsageError: the data is too large, not UTF-8, or refused; the message says why.
    """
    if len(data) > max_bytes:
        raise UsageError(f"{name} has more than {max_bytes:,} bytes, the limit of {kind}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: {error.reason} at byte {error.start}") from None
    document, fault = load_yaml(text)
    if fault or (fault := _duplicate_key(text)):
        raise UsageError(f"{name} is not readable as YAML: {fault}")
    return document


def not_json(value: object, path: str = "", depth: int = 0, extra: tuple[type, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the dotted path of each value that JSON cannot hold, with the reason.

    Args:
        extra: further types to accept.
    """
    if depth > MAX_DEPTH:
        yield path, f"nested too deeply, more than {MAX_DEPTH} levels"
    elif is_long_number(value):
        yield path, LONG_NUMBER
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                reason = LONG_NUMBER if is_long_number(key) else f"the key {key!r} is not text; put it in quotes"
                yield path, reason
                continue
            yield from not_json(item, f"{path}.{key}" if path else key, depth + 1, extra)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from not_json(item, f"{path}[{index}]", depth + 1, extra)
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value} is not a number of JSON"
    elif value is not None and not isinstance(value, (str, int, float, *extra)):
        yield path, f"{value!r} is a {type(value).__name__}, which JSON does not have; put it in quotes"


def _duplicate_key(text: str) -> str:
    """Return a message about a duplicate key, or ""; YAML readers silently keep the last value."""
    import yaml

    root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    pending = [] if root is None else [root]
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.SequenceNode):
            pending.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
                if name in seen:
                    return f"the key {key.value!r} occurs twice, again in line {key.start_mark.line + 1}"
                seen.add(name) if name else None
                pending.append(value)
    return ""


MAX_LENGTH: Final = 16_384
"""Characters of front matter that are parsed; a longer block does not count as front matter."""

_MAX_BRACKETS: Final = 64


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter at the start of a text.

    Attributes:
        values: by lower-case key; empty if there is no front matter or it is broken.
        lines: number of its lines, both `---` included; 0 if there is none.
        fault: why it could not be read, or "".
    """

    values: Mapping[str, object] = field(default_factory=dict)
    lines: int = 0
    fault: str = ""


FAULT_PREFIX: Final = "front matter "
"""The start of every message about unusable front matter."""
ABSENT: Final = FrontMatter()


def parse_front_matter(text: str) -> FrontMatter:
    r"""Return the front matter of a text whose only line end is "\n". Never raises: see `FrontMatter.fault`."""
    if not text.startswith("---"):
        return ABSENT
    head = text[: MAX_LENGTH + 1].split("\n")
    count = front_matter_end(head)
    if not count:
        return ABSENT
    block = "\n".join(head[1 : count - 1])
    if not block.strip():
        return FrontMatter(lines=count)
    values: object = None
    if block.count("[") + block.count("{") > _MAX_BRACKETS:
        fault = f"more than {_MAX_BRACKETS} brackets"
    else:
        values, fault = load_yaml(block, first_line=2)
    if fault:
        return FrontMatter(lines=count, fault=f"{FAULT_PREFIX}cannot be read: {fault}")
    if not isinstance(values, dict):
        # A document may open with a thematic break; then the block is prose, and nothing is broken.
        return ABSENT if isinstance(values, str) else FrontMatter(lines=count, fault=f"{FAULT_PREFIX}is not a mapping")
    return FrontMatter({str(key).lower(): value for key, value in values.items()}, count)
