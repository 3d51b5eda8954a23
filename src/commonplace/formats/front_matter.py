"""Read the front matter of a text: a YAML block between `---` lines or a TOML block between `+++` lines at its start.

It knows no files and gives the values as they are written; what they mean is for others to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from commonplace.formats.guarded_yaml import load_yaml
from commonplace.text.sections import front_matter_end

LONGEST: Final = 16_384
"""Characters of front matter that are parsed; more of it is taken for something else."""

_MOST_BRACKETS: Final = 64


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stood at the start of a text.

    Attributes:
        values: by lower-case key; empty where there is no front matter or it is broken.
        lines: how many lines it takes, its marks included; 0 where there is none.
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
    if not text.startswith(("---", "+++")):
        return NONE
    head = text[: LONGEST + 1].split("\n")
    count = front_matter_end(head)
    if not count:
        return NONE
    block = "\n".join(head[1 : count - 1])
    if not block.strip():
        return FrontMatter(lines=count)
    values, fault = _toml(block) if head[0].startswith("+") else _yaml(block)
    if fault:
        return FrontMatter(lines=count, fault=f"{FAULT}cannot be read: {fault}")
    if not isinstance(values, dict):
        # A document may open with a thematic break; then the block is prose, and nothing is broken.
        return NONE if isinstance(values, str) else FrontMatter(lines=count, fault=f"{FAULT}is not a mapping")
    return FrontMatter({str(key).lower(): value for key, value in values.items()}, count)


def _toml(block: str) -> tuple[object, str]:
    import tomllib

    try:
        return tomllib.loads(block), ""
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return None, str(error) or "nested too deeply"


def _yaml(block: str) -> tuple[object, str]:
    if block.count("[") + block.count("{") > _MOST_BRACKETS:
        return None, f"more than {_MOST_BRACKETS} brackets"
    return load_yaml(block, first_line=2)
