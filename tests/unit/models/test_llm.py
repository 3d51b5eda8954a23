"""Finding the JSON value in what a model wrote."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.errors import ProviderError
from commonplace.models.llm import json_of

VALUE = {"history": [{"role": "user", "content": "what is `a[0]`?"}], "count": 1}
WRITTEN = '{"history": [{"role": "user", "content": "what is `a[0]`?"}], "count": 1}'


@pytest.mark.parametrize(
    "answer",
    [
        WRITTEN,
        f"\ufeff \n{WRITTEN}\n",
        f"```json\n{WRITTEN}\n```",
        f"```\n{WRITTEN}\n```",
        f"``` JSON\r\n{WRITTEN}\r\n```",
        f"```json{WRITTEN}```",
        f"```json\n{WRITTEN}",
        f"Here it is:\n\n```json\n{WRITTEN}\n```\nAnything else?",
        f"The answer [as asked] is {WRITTEN}, I think {{so}}.",
        f"```python\nprint(1)\n```\nand\n```json\n{WRITTEN}\n```",
    ],
)
def test_the_value_is_found_whole_in_a_fence_or_in_prose(answer: str) -> None:
    """Models wrap what they were asked for, whatever they were told."""
    assert json_of(answer) == VALUE


@pytest.mark.parametrize(("answer", "value"), [("7", 7), ("```\n7.5\n```", 7.5), ("null", None), ('"a"', "a")])
def test_a_bare_value_counts_where_it_is_the_whole_answer(answer: str, value: Any) -> None:
    """A number asked for comes as a number."""
    assert json_of(answer) == value


@pytest.mark.parametrize(
    "answer",
    [
        "",
        '{"history": [{"role": "user"}, {"ro',
        'Here: {"history": [{"role": "user"}, ',
        "```json\n[[1, 2], [3",
        "I cannot do that.",
        "I give it 7 of 10.",
        '{"history": [{"role": "user"',
        "[NaN",
        "{'a': 1}",
        "[[[[" * 50_000,
    ],
)
def test_an_answer_without_json_is_refused_with_its_beginning(answer: str) -> None:
    """Prose holds numbers that mean something else, so of prose only objects and lists count."""
    with pytest.raises(ProviderError, match=r"holds no JSON: .{2,82}; try again"):
        json_of(answer)


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", '{"score": 1e999}', "[-1e400]"])
def test_what_is_no_finite_number_is_no_json(text: str) -> None:
    """It would pass every comparison that a score goes through, or leave us as JSON that nobody reads."""
    with pytest.raises(ProviderError):
        json_of(text)


def test_of_a_deep_value_the_deepest_part_is_not_taken_for_the_answer() -> None:
    """A value that nests too deeply for the parser must not be answered with something inside it."""
    with pytest.raises(ProviderError):
        json_of("[" * 300_000 + "1" + "]" * 300_000)


def test_an_answer_is_read_a_bounded_number_of_times() -> None:
    """What is wrong far behind a thousand brackets would be reached from each of them."""
    wrong = "[" * 300 + "1," * 10_000 + "x"
    with pytest.raises(ProviderError):
        json_of(f"{wrong} and then {WRITTEN}")
    assert json_of(f"{'[' * 20}x and then {WRITTEN}") == VALUE
