"""Patterns that are compiled late, beside those of `re`."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from itertools import chain

import pytest

import commonplace
from commonplace.lazy_regex import lazy_pattern


@pytest.mark.parametrize("source", ["(?P<word>b+)", b"(?P<word>b+)"])
def test_a_lazy_pattern_does_what_a_compiled_one_does(source: str | bytes) -> None:
    late, compiled = lazy_pattern(source, re.IGNORECASE), re.compile(source, re.IGNORECASE)
    text = "aBBcb" if isinstance(source, str) else b"aBBcb"
    for method in ("search", "match", "fullmatch", "findall", "split"):
        assert str(getattr(late, method)(text)) == str(getattr(compiled, method)(text))
    assert [each.span("word") for each in late.finditer(text, 1)] == [(1, 3), (4, 5)]
    assert late.sub(text[:1], text) == compiled.sub(text[:1], text)
    assert late.subn(text[:1], text) == compiled.subn(text[:1], text)
    for member in ("pattern", "flags", "groups", "groupindex"):
        assert getattr(late, member) == getattr(compiled, member)
    with pytest.raises(AttributeError, match="find"):
        late.find(text)


def test_every_lazy_pattern_compiles() -> None:
    """What is wrong with one shows when it is used, which may be seldom."""
    found = 0
    for module in pkgutil.walk_packages(commonplace.__path__, "commonplace."):
        if module.name.startswith(("commonplace.cli.", "commonplace.server")) or module.name.endswith("__main__"):
            continue
        for value in vars(import_module(module.name)).values():
            values = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
            parts = chain.from_iterable(each if isinstance(each, tuple) else [each] for each in values)
            for each in parts:
                if type(each).__name__ == "lazy_pattern":
                    assert each.groups >= 0
                    found += 1
    assert found > 100
