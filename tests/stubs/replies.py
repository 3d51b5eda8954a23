"""What a model's server may answer, by name: everybody who asks one is tested with all of it.

A reply that holds an answer is made of that answer's text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.stubs.model_server import (
    Reply,
    bad_json,
    broken,
    busy,
    drip,
    drip_headers,
    dropped,
    dropped_half_way,
    empty,
    fenced,
    good,
    hang,
    huge,
    prose,
    refusal,
    truncated,
)

WRAPPED: Final[Mapping[str, Callable[[str], Reply]]] = {"good": good, "fenced": fenced, "prose": prose}
"""The answer is in it, and is taken."""

PASSING: Final[Mapping[str, Callable[[], Reply]]] = {
    "429 then good": lambda: busy("1"),
    "500 then good": broken,
    "dropped then good": dropped,
    "half then good": dropped_half_way,
}
"""The next try answers."""

LASTING: Final[Mapping[str, Callable[[], Reply]]] = {
    "empty": empty,
    "truncated": lambda: truncated('{"scores": [{"index": 0, "score": 1}], "history": [], "memory_count": 0}'),
    "429 forever": busy,
    "500 forever": broken,
    "401": lambda: refusal(401, "bad key"),
    "dropped": dropped,
    "half": dropped_half_way,
    "no JSON": bad_json,
    "hang": hang,
    "slow drip": drip,
    "slow drip of headers": drip_headers,
    "huge": huge,
}
"""Nothing that could be taken comes, however often it is asked."""

USELESS: Final[Mapping[str, str]] = {
    "words": "I would rather not.",
    "an empty list": "[]",
    "an empty list of scores": '{"scores": []}',
    "wrong schema": '{"colour": "blue"}',
    "a list of nothing": "[1, 2, 3]",
    "half a value": '{"scores": [{"index": 0, "sco',
    "a number beyond numbers": '{"score": 1e999}',
}
"""Texts that a model may answer with, and that answer nothing."""
