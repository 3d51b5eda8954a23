"""query_graph over the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commonplace.formats.csp import CspLink, Reference

if TYPE_CHECKING:
    from tests.unit.specialist.conftest import Ask

    from commonplace.engine import Engine


def linked(ask: Ask, source: str, target: str, context: str) -> None:
    ask("link", f"ENTITY1 {source}", f"ENTITY2 {target}", f"CONTEXT {context}")


def test_entities_are_followed_for_two_steps(ask: Ask) -> None:
    """As in the contract: auth leads to token, and token to session."""
    linked(ask, "auth", "token", "session handling with token refresh")
    linked(ask, "token", "session", "the token is kept there")
    linked(ask, "printer", "paper", "the large tray")
    found = ask("query_graph", "QUERY auth dependencies", "MAX_RESULTS 10")
    assert found.status == "OK"
    assert found.scope == ("auth", "token", "session")
    assert found.data == (Reference("entity", "auth"),)
    assert found.relevance is None
    assert found.links == (
        CspLink("auth", "token", is_directed=True),
        CspLink("token", "session", is_directed=True),
    )
    assert found.link_relevance is not None
    assert found.link_relevance == tuple(sorted(found.link_relevance, reverse=True))
    assert ask("query_graph auth dependencies") == found


def test_nothing_about_it_is_no_result(book: Engine, ask: Ask) -> None:
    linked(ask, "auth", "token", "session handling")
    text = book.specialist.handle("TASK REQ:query_graph IN:MEM OUT:GRAPH_DATA\nQUERY the weather in Lisbon")
    assert text == "STATUS OK\nSCOPE []\nDATA none\nRELEVANCE none\n\n"


@pytest.mark.parametrize("query", ["auth dependencies", "what does auth.ts depend on", "depends-on-auth"])
def test_a_fact_that_shares_only_the_name_of_its_type_answers_no_question_about_something_else(
    ask: Ask, query: str
) -> None:
    """Most facts of a project are of few types: whoever asks about auth would be shown all that depends on anything."""
    linked(ask, "auth.ts", "token.ts", "auth.ts depends on token.ts for refresh")
    linked(ask, "Orion", "budget", "the Orion project depends on the budget")
    found = ask("query_graph", f"QUERY {query}")
    assert found.links == (CspLink("auth.ts", "token.ts", is_directed=True),)
    assert "Orion" not in (found.scope or ())


def test_a_question_about_nothing_in_the_graph_finds_nothing(book: Engine, ask: Ask) -> None:
    """What a memory names together is no relation."""
    book.remember("Prefers tabs over spaces.", entities=["tabs", "spaces"])
    found = ask("query_graph what is IN:MEM for")
    assert (found.data, found.links) == ((), None)


def test_a_question_about_a_type_alone_finds_its_facts(ask: Ask) -> None:
    """Where nothing else is asked for, the type is the question."""
    linked(ask, "auth.ts", "token.ts", "auth.ts depends on token.ts for refresh")
    linked(ask, "Orion", "budget", "the Orion project depends on the budget")
    found = ask("query_graph what depends on what")
    assert {link.source for link in found.links or ()} == {"auth.ts", "Orion"}


def test_an_entity_that_hangs_on_nothing_has_its_own_relevance(book: Engine, ask: Ask) -> None:
    book.graph.add_triplet("Ada", "DECIDED", "refunds", valid_from="2020-01-01", valid_to="2021-01-01")
    found = ask("query_graph", "QUERY what does Ada decide")
    assert found.data == (Reference("entity", "Ada"),)
    assert found.links is None
    assert found.link_relevance is None
    assert found.relevance is not None
    assert found.relevance[0] > 0.5


def test_the_ending_of_a_file_names_no_entity(ask: Ask) -> None:
    """All files of a project end alike; a question about one is not about all."""
    linked(ask, "auth.ts", "token.ts", "session handling")
    linked(ask, "paper.ts", "printer.ts", "the large tray")
    found = ask("query_graph", "QUERY token.ts", 'PARAMS {"min_relevance": 1}')
    assert found.data == (Reference("entity", "token.ts"),)
    assert found.links == (CspLink("auth.ts", "token.ts", is_directed=True),)


def test_the_number_of_links_and_entities_is_bounded(book: Engine, ask: Ask) -> None:
    for number in range(20):
        linked(ask, "hub", f"spoke {number}", f"connection number {number}")
    found = ask("query_graph hub")
    assert len(found.links or ()) == 5
    assert len(ask("query_graph hub", "MAX_RESULTS 2").links or ()) == 2
    assert found.scope is not None
    assert len(found.scope) <= 10
    for number in range(10):
        linked(ask, "hub", f"hub {number} " + "京" * 150, "a long name")
    assert ask("query_graph hub", "MAX_RESULTS 100").status in ("OK", "PARTIAL")


def test_only_facts_that_hold_are_told(book: Engine, ask: Ask) -> None:
    book.graph.add_episode("Ada Marsh lives in Lisbon.", reference_time="2026-01-10T00:00Z")
    book.graph.add_episode("Ada Marsh lives in Porto.", reference_time="2026-02-14T00:00Z")
    found = ask("query_graph where does Ada live")
    assert found.links == (CspLink("Ada Marsh", "Porto", is_directed=True),)
    assert found.data == (Reference("entity", "Ada Marsh"),)
