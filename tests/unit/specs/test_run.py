"""Placeholders: three ways to write one, one pass, and every other brace left alone."""

from __future__ import annotations

import pytest

from commonplace.specs.run import render

VALUES = {"name": "Ada", "n": 3, "is_on": True, "none": None, "list": ["é", {"a": 1}], "top_k": 5, "top": "T"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{name}", "Ada"),
        ("{{ name }}", "Ada"),
        ("{{ input.name }}", "Ada"),
        ("{name}{name} {{ n }}", "AdaAda 3"),
        ("{n} {is_on} {none}", "3 true null"),
        ("{list}", '["é", {"a": 1}]'),
        ("{top_k}{top}", "5T"),
        ("{unknown} {{ unknown }} {{ input.unknown }}", "{unknown} {{ unknown }} {{ input.unknown }}"),
        ("{ name } {{name }} { {name} }", "{ name } {{name }} { Ada }"),
        ('{"name": "{name}", "x": {}}', '{"name": "Ada", "x": {}}'),
        ("{{name}}", "{Ada}"),
        ("{input.name} {NAME}", "{input.name} {NAME}"),
        ("{{{ name }}}", "{Ada}"),
        ("", ""),
    ],
)
def test_a_placeholder_becomes_its_value_and_nothing_else_changes(template: str, text: str) -> None:
    assert render(template, VALUES) == text


def test_text_inside_a_value_is_never_expanded() -> None:
    """A stored turn that says `{secret}` would otherwise read what it was never given."""
    values = {"query": "{secret} {{ candidates }} {{ input.secret }}", "candidates": ["{query}"], "secret": "s3"}
    assert render("{query}|{candidates}", values) == '{secret} {{ candidates }} {{ input.secret }}|["{query}"]'


def test_names_with_signs_of_patterns_are_only_names() -> None:
    assert render("{a.b} {axb} {a|b} {.*}", {"a.b": "1", "a|b": "2", ".*": "3"}) == "1 {axb} 2 3"


def test_without_values_a_template_is_as_it_was() -> None:
    assert render("{a} {{ b }}", {}) == "{a} {{ b }}"
