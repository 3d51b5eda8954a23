"""Read a document that somebody else wrote: a small regular file of YAML or JSON. It does not know what it means."""

from __future__ import annotations

from pathlib import Path

from commonplace.errors import UsageError
from commonplace.files import read_file
from commonplace.formats.guarded_yaml import load_yaml


def read_document(file: Path, most_bytes: int, what: str) -> object:
    """Return the value that a file holds.

    Args:
        what: what it is to be, with its article, for messages.

    Raises:
        UsageError: it is no such file, too large, no UTF-8, or `parse_document` refuses it.
    """
    try:
        data = read_file(file, most_bytes)
    except FileNotFoundError:
        raise UsageError(f"there is no file {file}") from None
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
        raise UsageError(f"{name} is no UTF-8: {error.reason} at byte {error.start}") from None
    document, fault = load_yaml(text)
    fault = fault or _doubled(text)
    if fault:
        raise UsageError(f"{name} is not a YAML that can be read: {fault}")
    return document


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
