"""Views: templates that are filled with what a command found."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commonplace.cli.rows import filled

SOURCE = Path(__file__).parents[3] / "src" / "commonplace"
FIELDS = re.compile(r"(?<!\{)\{([a-z_][\w.]*)[:}]")


@pytest.mark.parametrize(
    ("template", "thing", "text"),
    [
        ("{name} is {age}", {"name": "Ana", "age": 4}, "Ana is 4"),
        ("by {owner.name}", {"owner": {"name": "Ana"}}, "by Ana"),
        ("{score:.2f}", {"score": 0.5}, "0.50"),
        ("{facts:n fact}", {"facts": 1}, "1 fact"),
        ("{facts:n fact}", {"facts": ["a", "b"]}, "2 facts"),
        ("{kept:n entity|entities}", {"kept": 2}, "2 entities"),
        ("{tags:#}", {"tags": ("a", "b")}, "#a #b"),
        ("{size:bytes}", {"size": 2048}, "2.0 KiB"),
        ("done{reason:?: }", {"reason": "tired"}, "done: tired"),
        ("done{reason:?: }", {"reason": ""}, "done"),
        ("a{files:? and |n file}", {"files": 3}, "a and 3 files"),
        ("{stale:!0} stale", {"stale": 1200}, "1,200 stale"),
    ],
)
def test_a_template_says_what_is_known(template: str, thing: dict[str, Any], text: str) -> None:
    assert filled(template, thing) == text


@pytest.mark.parametrize("value", [None, "", (), 0])
def test_a_line_without_one_of_its_values_is_left_out(value: object) -> None:
    assert filled("{many:n fact} and {name}", {"many": value, "name": "Ana"}) == ""


def test_a_text_with_braces_is_no_template() -> None:
    """What a person wrote is filled in, and not read again."""
    assert filled("{text}", {"text": "{name} {"}) == "{name} {"


def test_a_time_is_that_of_this_machine() -> None:
    moment = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
    assert filled("{at:time}", {"at": moment}) == moment.astimezone().strftime("%Y-%m-%d %H:%M")


def test_every_field_of_a_template_is_the_name_of_something() -> None:
    """No type checker reads templates: a misspelt name would fail when a person sees that view."""
    named: set[str] = set()
    wanted: dict[str, str] = {}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                named.add(node.name)
            elif isinstance(node, ast.keyword) and node.arg:
                named.add(node.arg)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                named.add(node.target.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                named |= {node.value} if node.value.isidentifier() else set()
                fields = FIELDS.findall(node.value) if path.parent.name == "cli" else ()
                wanted |= {name: f"{path.name}:{node.lineno}" for field in fields for name in field.split(".")}
    assert len(wanted) > 80
    assert {name: place for name, place in wanted.items() if name not in named} == {}
