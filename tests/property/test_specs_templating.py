"""Whatever the values hold, they stand in the prompt as they are."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from commonplace.specs.run import render

NAMES = ("query", "candidates", "top_k", "q")
HOSTILE = st.lists(st.sampled_from(["{", "}", "{{ ", " }}", "input.", "\\1", *NAMES, "x"]), max_size=12).map("".join)
PLAIN = st.none() | st.booleans() | st.integers() | HOSTILE
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3), max_leaves=6
)
PLACEHOLDERS = ("{%s}", "{{ %s }}", "{{ input.%s }}")
BETWEEN = st.text(alphabet="ab \n\"'[]:,.", max_size=6)


@given(
    st.dictionaries(st.sampled_from(NAMES), VALUES, min_size=1),
    st.lists(st.tuples(BETWEEN, st.sampled_from(NAMES), st.sampled_from(PLACEHOLDERS)), max_size=6),
    BETWEEN,
)
def test_a_value_stands_in_the_prompt_exactly_and_is_not_read_again(
    values: dict[str, Any], parts: list[tuple[str, str, str]], end: str
) -> None:
    """The expected text is put together beside the renderer, value by value."""
    template = "".join(before + form % name for before, name, form in parts) + end
    expected = ""
    for before, name, form in parts:
        value = values.get(name)
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        expected += before + (written if name in values else form % name)
    assert render(template, values) == expected + end


@given(st.text(alphabet="{} abinput.\n", max_size=40), HOSTILE)
def test_a_template_that_names_no_value_is_left_as_it_is(template: str, value: str) -> None:
    assert render(template, {"query": value}) == template


@given(st.dictionaries(st.text(max_size=6), HOSTILE, max_size=4), HOSTILE)
def test_any_template_renders_without_failing(values: dict[str, str], template: str) -> None:
    assert isinstance(render(template, values), str)
