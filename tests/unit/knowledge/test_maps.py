"""The text of a knowledge map: the contract's examples, and what they leave open."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.knowledge.travel import SEOUL, SEOUL_TEXT

import commonplace
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.knowledge.maps import STANDARD_FIELDS, AgentContext, text_of
from commonplace.knowledge.service import KnowledgeService


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"title": "T", "description": "D", "content": "C"}, "C D T"),
        ({"cityName": "Seoul", "country": "South Korea"}, "cityName: Seoul country: South Korea"),
        ({"name": "Test", "count": 42, "description": "Valid text"}, "Valid text Test"),
        (SEOUL, SEOUL_TEXT),
    ],
)
def test_the_contracts_examples_give_the_contracts_texts(values: dict[str, Any], text: str) -> None:
    assert text_of(values) == text


def test_standard_fields_stand_in_the_order_of_the_contract() -> None:
    """However the map is written."""
    values = {name: name.upper() for name in sorted(STANDARD_FIELDS)}
    assert text_of(values) == "CONTENT DESCRIPTION TITLE SUMMARY TEXT NAME"


@pytest.mark.parametrize("value", [None, 42, True, 1.5, [], {}, "", "  ", ["content"], {"a": "b"}])
def test_a_standard_field_that_is_no_text_does_not_count(value: Any) -> None:
    """Neither as text, nor to keep the others from counting."""
    assert text_of({"content": value, "title": "T"}) == "T"


def test_a_map_with_a_standard_field_gives_nothing_else() -> None:
    assert text_of({"name": "N", "secret": "not searched", "more": {"title": "T"}}) == "N"


def test_standard_fields_are_those_of_the_map_itself_in_their_own_case() -> None:
    """`Content` is another name, and a nested `title` has a key of its own."""
    assert text_of({"Content": "C", "page": {"title": "T"}}) == "Content: C page.title: T"


def test_other_texts_are_sorted_by_key() -> None:
    """The same map gives the same text, whoever wrote it down."""
    assert text_of({"b": "2", "a": "1", "c": "3"}) == text_of({"c": "3", "b": "2", "a": "1"}) == "a: 1 b: 2 c: 3"


def test_nested_texts_have_dotted_keys_and_those_of_a_list_its_key() -> None:
    values = {
        "z": "end",
        "places": [{"name": "Han", "kind": "river"}, "Namsan", ["deep"]],
        "geo": {"of": {"land": "KR"}},
    }
    assert text_of(values) == "geo.of.land: KR places: Namsan places: deep places.kind: river places.name: Han z: end"


@pytest.mark.parametrize("values", [{}, {"count": 42}, {"a": None, "b": [1, {"c": True}]}, {"title": " "}])
def test_a_map_without_texts_has_none(values: dict[str, Any]) -> None:
    assert text_of(values) == ""


# The context of an agent: its name is the key, a cursor, and anything else.


def test_what_is_set_is_got(book: Engine, knowledge: KnowledgeService) -> None:
    """Also by another process."""
    context = AgentContext("a", 42, {"topics": ["x", {"y": None}], "mood": "good"})
    assert knowledge.set_context(context) == context
    with commonplace.open(book.directory) as other:
        assert other.knowledge.get_context("a") == context
    assert context.to_dict() == {"name": "a", "last_cursor": 42, "metadata": context.metadata}


def test_setting_it_again_replaces_it_whole(knowledge: KnowledgeService) -> None:
    knowledge.set_context(AgentContext("a", 42, {"x": 1}))
    knowledge.set_context(AgentContext("b", 1))
    knowledge.set_context(AgentContext("a"))
    assert knowledge.get_context("a") == AgentContext("a", 0, {})
    assert knowledge.get_context("b") == AgentContext("b", 1)


def test_an_agent_without_one_has_none(knowledge: KnowledgeService) -> None:
    knowledge.index_knowledge("a", [{"text": "x"}])
    assert knowledge.get_context("a") is None


@pytest.mark.parametrize(
    "given",
    [
        {"name": "a", "last_cursor": 3, "mood": "good"},
        {"name": "a", "lastCursor": 3, "metadata": {"mood": "good"}},
        {"name": "a", "last_cursor": 3, "metadata": {}, "mood": "good"},
    ],
)
def test_a_mapping_will_do(knowledge: KnowledgeService, given: dict[str, Any]) -> None:
    """Whatever else it holds is free."""
    assert knowledge.set_context(given) == AgentContext("a", 3, {"mood": "good"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "a", "last_cursor": -1}, "last_cursor is -1; give a whole number from 0"),
        ({"name": "a", "last_cursor": 2**63}, "last_cursor is"),
        ({"name": "a", "last_cursor": True}, "last_cursor is True"),
        ({"name": "a", "last_cursor": "3"}, "last_cursor is '3'"),
        ({"last_cursor": 3}, "the name of the agent is None"),
        (AgentContext("", 3), "the name of the agent is ''"),
        ({"name": "a", "metadata": 3}, "the metadata of the context is 3"),
        ({"name": "a", "x": object()}, "metadata.x: <object"),
        ("a", "the context is 'a'"),
    ],
)
def test_what_is_none_is_refused(knowledge: KnowledgeService, given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        knowledge.set_context(given)
    assert knowledge.get_context("a") is None


def test_secrets_are_replaced(knowledge: KnowledgeService) -> None:
    kept = knowledge.set_context({"name": "a", "password": "hunter2trust"})
    assert kept.metadata == {"password": "[redacted: password]"}
    assert knowledge.get_context("a") == kept
