"""The manual's pages on CSP/1: what stands there as an example is read and printed as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.stubs.csp_client import format_request, parse_response

from commonplace.formats.csp import KEYS, format_response, parse_request

DOCS = Path(__file__).resolve().parents[3] / "docs"
FORMAT = (DOCS / "formats" / "csp.md").read_text("utf-8")
EXAMPLES = re.findall(r"```text\n(.*?)```", FORMAT + (DOCS / "specialist.md").read_text("utf-8"), re.DOTALL)
(GRAMMAR,) = re.findall(r"```abnf\n(.*?)```", FORMAT, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_manual_prints_as_it_was_read(example: str) -> None:
    if example.startswith("TASK "):
        assert format_request(parse_request(example)) == example
    else:
        assert format_response(parse_response(example)) == example


def test_every_rule_of_the_grammar_is_defined_and_used() -> None:
    rules = re.findall(r"^([a-zA-Z-]+) +=", GRAMMAR, re.MULTILINE)
    assert len(rules) == len(set(rules))
    bodies = re.sub(r'"[^"\n]*"|;.*|%[sx][0-9A-F.-]*', " ", re.sub(r"^[a-zA-Z-]+ +=", "", GRAMMAR, flags=re.MULTILINE))
    used = set(re.findall(r"[a-zA-Z][a-zA-Z-]*", bodies))
    core = {"WSP", "ALPHA", "DIGIT", "CR", "LF"}
    assert used - set(rules) - core == {"json-string", "json-object"}
    assert set(rules) - used == {"request", "response"}


def test_the_grammar_names_every_key_of_a_request() -> None:
    assert set(re.findall(r'%s"([A-Z_0-9]+)"', GRAMMAR)) >= set(KEYS)
