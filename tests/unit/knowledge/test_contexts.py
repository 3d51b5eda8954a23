"""The context of an agent: its name is the key, a cursor, and anything else."""

from __future__ import annotations

from typing import Any

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.knowledge.maps import AgentContext
from commonplace.knowledge.service import KnowledgeService


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
        ({"name": "a", "x": object()}, "metadata.x is <object"),
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
