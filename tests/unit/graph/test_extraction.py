"""What an episode in JSON says where an object of it is itself a fact, and what one of several speakers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from commonplace.errors import UsageError
from commonplace.extract.model import Extraction
from commonplace.graph.extraction import understand
from commonplace.graph.kinds import Kinds
from commonplace.graph.text import statement


def facts(value: Any, kinds: Kinds | None = None) -> list[tuple[str, str, str, str]]:
    found = understand(json.dumps(value), "json", 1.7e9, kinds or Kinds())
    names = [each.name for each in found.entities]
    return [(names[each.source], each.type, names[each.target], each.fact) for each in found.claims]


STATED = {"source": "auth.ts", "target": "token.ts", "relation_type": "RELATED_TO", "fact": "session handling"}


def test_an_object_with_two_ends_and_a_sentence_is_a_fact() -> None:
    assert facts(STATED) == [("auth.ts", "RELATED_TO", "token.ts", "session handling")]
    assert facts({"facts": [STATED]}) == facts(STATED)
    found = understand(json.dumps(STATED), "json", 1.7e9, Kinds())
    assert [(each.name, each.type) for each in found.entities] == [("auth.ts", "file"), ("token.ts", "file")]


def test_what_the_sentence_says_of_both_is_more_than_that_they_are_related() -> None:
    sentence = "auth.ts depends on token.ts for JWT"
    assert facts(STATED | {"fact": sentence}) == [("auth.ts", "DEPENDS_ON", "token.ts", sentence)]
    assert facts({"source": "auth.ts", "target": "token.ts", "relation_type": "part of"}) == [
        ("auth.ts", "PART_OF", "token.ts", "auth.ts part of token.ts")
    ]


def test_the_sentence_says_of_what_type_the_two_are() -> None:
    """A bare name is a concept; that the sentence knows a person makes no second fact."""
    moved = facts({"source": "Ada Marsh", "target": "Faro", "fact": "Ada Marsh moved to Faro."})
    assert moved == [("Ada Marsh", "LIVES_IN", "Faro", "Ada Marsh moved to Faro.")]


def test_a_type_of_ones_own_is_kept_and_an_unknown_one_is_not() -> None:
    own = STATED | {"relation_type": "blocks"}
    assert facts(own, Kinds(relation_types=("BLOCKS",)))[0][1] == "BLOCKS"
    assert facts(own)[0][1] == "RELATED_TO"


@pytest.mark.parametrize(
    "value",
    [
        {"source": "web", "target": "prod"},
        {"source": "web", "target": 3, "fact": "x"},
        {"source": " ", "target": "prod", "fact": "x"},
        {"target": "prod", "fact": "x"},
    ],
)
def test_an_object_that_lacks_an_end_or_says_nothing_of_them_is_none(value: Any) -> None:
    """Many a configuration has a source and a target."""
    assert facts(value) == []


def test_a_statement_is_read_as_the_fact_that_it_was_made_of() -> None:
    assert facts(statement(" auth.ts", "token.ts ", "session handling ")) == facts(STATED)
    typed = statement("auth.ts", "token.ts", "for the refresh", relation_type="DEPENDS_ON")
    assert facts(typed) == [("auth.ts", "DEPENDS_ON", "token.ts", "for the refresh")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("", "b", "c"), "ENTITY1 is ''"),
        (("a", "b" * 201, "c"), "ENTITY2 is 'bbb"),
        (("a", " a ", "c"), "ENTITY1 and ENTITY2 both mean 'a'; name two entities"),
        (("a", "b", "  "), "CONTEXT is empty; state the relation in a few words"),
        ((3, "b", "c"), "ENTITY1 is 3"),
    ],
)
def test_a_statement_of_nothing_is_refused(given: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        statement(*given, labels=("ENTITY1", "ENTITY2", "CONTEXT"))


def test_what_an_assistant_tells_of_the_world_is_no_fact() -> None:
    """It is general knowledge, which fills a graph of a conversation many times over."""
    assert told("assistant: Paris is located in France. Kale contains calcium.").claims == ()
    assert [each.type for each in told("user: Paris is located in France.").claims] == ["LOCATED_IN"]
    found = told("assistant: auth.ts depends on token.ts. Anna Weber lives in Paris.").claims
    assert [each.type for each in found] == ["DEPENDS_ON", "LIVES_IN"]


def test_of_what_an_assistant_names_only_that_counts_which_it_states_a_fact_about() -> None:
    """It lists restaurants, artists and tips by the dozen, and nobody has anything to do with them."""
    said = "Anna Weber works for Globex. Try Osteria Francescana, Cafe Sol or the Alte Oper in Frankfurt."
    named = {by: [each.name for each in told(f"{by}: {said}").entities] for by in ("Assistant", "user")}
    assert named["Assistant"] == ["Anna Weber", "Globex"]
    assert {"Anna Weber", "Globex", "Osteria Francescana", "Cafe Sol"} < set(named["user"])
    [works] = told(f"user: Is Cafe Sol good?\nassistant: {said}").claims
    assert (works.source, works.target) == (1, 2)


def told(content: str) -> Extraction:
    return understand(content, "message", 1.7e9, Kinds())
