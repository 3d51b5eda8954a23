"""Put values into a prompt. It knows the three ways of writing a placeholder, not what a prompt is for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def render(template: str, values: Mapping[str, Any]) -> str:
    """Replace `{k}`, `{{ k }}` and `{{ input.k }}` for every key there is, in one pass.

    What a value brings along is never read again, so that text from outside cannot ask for another value. Every
    other brace stays as it is, among them those of JSON written out in a prompt.
    """
    if not values:
        return template
    # The longest name first: of two keys that could match at one place, the shorter may be the other's beginning.
    names = "|".join(re.escape(name) for name in sorted(values, key=lambda name: (-len(name), name)))
    placeholder = re.compile(rf"\{{\{{ (?:input\.)?({names}) \}}\}}|\{{({names})\}}")
    return placeholder.sub(lambda found: written(values[found[1] if found[1] is not None else found[2]]), template)


def written(value: object) -> str:
    """Return a value as it stands in a prompt: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
