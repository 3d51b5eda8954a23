"""Read JSON strictly: NaN, the infinities and numbers that no float can hold are refused, as the standard has it."""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn


def loads(text: str | bytes, **options: Any) -> Any:
    """Return the value of a JSON text.

    Args:
        options: as of `json.loads`.

    Raises:
        ValueError: it is none.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_constant=_refuse, parse_float=_finite, **options)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits:.20} is too large")
    return number


DECODER: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
