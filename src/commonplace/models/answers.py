"""Find the JSON value in what a language model wrote. It knows text, not what the value should be."""

from __future__ import annotations

import json
import math
import re
from itertools import islice
from typing import Any, Final

from commonplace.errors import ProviderError

_FENCE: Final = re.compile(r"(?s)```[ \t]*[\w+-]*[ \t]*\r?\n?(.*?)(?:```|\Z)")
_START: Final = re.compile(r"[\[{]")
_MOST_STARTS: Final = 1_000
_MOST_READINGS: Final = 20
"""So many brackets of prose are tried as the beginning of a value, and so many times the answer's length is read in
all, so that no answer costs quadratic time."""


def json_of(text: str) -> Any:
    """Return the JSON value that a model's answer is or holds: whole, in a Markdown fence, or the first in prose.

    Of prose only an object or a list is taken, and nothing from inside a value that is cut short. NaN and the
    infinities, which JSON does not have, are refused.

    Raises:
        ProviderError: there is none.
    """
    for candidate in (text, *_fenced(text)):
        try:
            return _DECODER.decode(candidate.strip().removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            continue
    left = _MOST_READINGS * len(text)
    for start in islice(_START.finditer(text), _MOST_STARTS):
        if left <= 0:
            break
        end = len(text)
        try:
            return _DECODER.raw_decode(text, start.start())[0]
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                break
            end = error.pos
        except RecursionError:
            break
        except ValueError:
            pass
        left -= end - start.start()
    shown = " ".join(text.split())[:80]
    raise ProviderError(f"the model's answer holds no JSON: {shown!r}", remedy="try again, or choose another model")


def _fenced(text: str) -> list[str]:
    return [match.group(1) for match in _FENCE.finditer(text)]


def refuse_constant(constant: str) -> None:
    """Refuse NaN and the infinities where they are written out.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{constant} is no JSON")


def finite(written: str) -> float:
    """Return a number; one such as 1e999, which is beyond all numbers that JSON's readers hold, is refused.

    Raises:
        ValueError: it is.
    """
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{written} is too large a number")
    return number


_DECODER: Final = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite)
