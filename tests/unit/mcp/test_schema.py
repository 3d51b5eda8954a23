"""The small validator says what jsonschema says, in words that tell a model what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from commonplace.mcp.schema import integers, problems, show
from commonplace.mcp.tools import tools_of

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "what to look for"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
        "tier": {"type": ["string", "null"], "enum": ["short", "long", None]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "since": {"type": "object", "properties": {"day": {"type": "number"}}, "additionalProperties": False},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"query": "ok"}, []),
        ({"query": "ok", "limit": 5.0, "tier": None, "tags": ["a"], "since": {"day": 1.5}}, []),
        ({}, ["query is missing (what to look for)"]),
        ({"query": 7}, ["query is 7; give a string"]),
        ({"query": None}, ["query is null; give a string"]),
        ({"query": "ok", "limit": "5"}, ['limit is "5"; give an integer']),
        ({"query": "ok", "limit": True}, ["limit is true; give an integer"]),
        ({"query": "ok", "limit": 2.5}, ["limit is 2.5; give an integer"]),
        ({"query": "ok", "limit": 0}, ["limit is 0; the minimum is 1"]),
        ({"query": "ok", "limit": 51}, ["limit is 51; the maximum is 50"]),
        ({"query": "ok", "tier": "x"}, ['tier is "x"; give one of "short", "long", null']),
        ({"query": "ok", "tier": 1}, ["tier is 1; give a string or null"]),
        (
            {"query": "ok", "tags": ["a", 2, "c"]},
            ["tags is a list of 3; the maximum is 2", "tags[1] is 2; give a string"],
        ),
        ({"query": "ok", "since": {"month": 1}}, ["since.month is not known here; there are day"]),
        ({"query": "ok", "k": 3}, ["k is not known here; there are query, limit, tier, tags, since"]),
        ([], ["the value is []; give an object"]),
        ({"query": "ok", "limit": "x" * 99}, ['limit is "' + "x" * 58 + "…; give an integer"]),
    ],
)
def test_each_problem_is_told_with_where_what_and_what_instead(value: Any, told: list[str]) -> None:
    assert list(problems(value, SEARCH)) == told


def test_nothing_can_be_given_where_nothing_is_known() -> None:
    schema = {"type": "object", "additionalProperties": False}
    assert list(problems({"a": 1}, schema)) == ["a is not known here; there are none"]


def test_whole_numbers_become_integers_only_where_integers_are_asked_for() -> None:
    schema = {
        "properties": {
            "limit": {"type": "integer"},
            "score": {"type": "number"},
            "lines": {"type": "array", "items": {"type": ["integer", "null"]}},
        }
    }
    given_value = {"limit": 5.0, "score": 1.0, "lines": [2.0, None], "other": 3.0}
    fitted = integers(given_value, schema)
    assert fitted == given_value
    assert [type(one) for one in (fitted["limit"], fitted["score"], fitted["lines"][0])] == [int, float, int]
    assert type(fitted["other"]) is float


CHECKED = set("type properties required additionalProperties enum minimum maximum items maxItems description".split())


def below(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all that it holds."""
    yield schema
    inner = [*schema.get("properties", {}).values(), schema.get("items")]
    for each in inner:
        if isinstance(each, Mapping):
            yield from below(each)


def test_the_tools_use_only_keywords_that_are_checked() -> None:
    """Otherwise a limit that a schema promises would be ignored in silence."""
    tools = tools_of(lambda _: pytest.fail("no tool is called"))
    assert len({tool.name for tool in tools}) == len(tools)
    for schema in (tool.form[name] for tool in tools for name in ("inputSchema", "outputSchema")):
        assert schema["type"] == "object"
        Draft202012Validator.check_schema(schema)
        assert {keyword for each in below(schema) for keyword in each} <= CHECKED
        assert all(isinstance(each.get("additionalProperties", True), bool) for each in below(schema))
        assert all(isinstance(word, str) for each in below(schema) for word in each.get("enum", ()))


def test_long_values_are_shown_shortened() -> None:
    assert len(show(list(range(100)))) == 60


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(-3, 3).map(lambda number: round(number, 1)),
    st.text("aé", max_size=3),
)
NAMES = st.sampled_from("abc")
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
TYPES = st.sampled_from("object array string integer number boolean null".split())
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(st.none() | st.text("aé", max_size=3), min_size=1, max_size=3),
        "minimum": st.integers(-2, 2),
        "maximum": st.floats(-2, 2),
        "maxItems": st.integers(0, 3),
        "required": st.lists(NAMES, max_size=2, unique=True),
    },
)


def larger(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas that hold others; those for values of one type are drawn often, so that what they hold is reached."""
    parts = st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "additionalProperties": st.booleans(),
            "items": inner,
        },
    )
    return st.builds(lambda own, other: {**own, **other}, LEAVES | st.just({}), parts)


@settings(max_examples=200, deadline=None)
@given(st.recursive(LEAVES, larger, max_leaves=4), VALUES)
def test_it_allows_what_jsonschema_allows(schema: dict[str, Any], value: Any) -> None:
    """The reference is too heavy to import in a server, and a second opinion here."""
    assert (not list(problems(value, schema))) == Draft202012Validator(schema).is_valid(value)


@given(st.recursive(LEAVES, larger, max_leaves=4), VALUES)
def test_whole_numbers_as_integers_still_fit(schema: dict[str, Any], value: Any) -> None:
    if not list(problems(value, schema)):
        assert not list(problems(integers(value, schema), schema))
        assert integers(value, schema) == value
