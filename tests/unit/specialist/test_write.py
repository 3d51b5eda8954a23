"""store, link, decay, promote and forget: what is stored, what is told of it, and that nothing is half done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from commonplace.formats.csp import Reference

if TYPE_CHECKING:
    from tests.unit.clock import Clock
    from tests.unit.specialist.conftest import Ask

    from commonplace.engine import Engine


def facts(answer: object) -> dict[str, str]:
    return dict(answer.facts)  # type: ignore[attr-defined]


def test_a_text_is_stored_as_it_was_written(book: Engine, ask: Ask) -> None:
    stored = ask("store", r'CONTENT "two lines\n\"quoted\""', "TIER medium", 'TAGS [billing,"a,b"]')
    assert stored.status == "OK"
    assert facts(stored) == {"TIER_WRITTEN": "medium"}
    [memory] = book.list()
    assert stored.data == (Reference("mem", memory.id),)
    assert (memory.content, memory.tier, memory.tags) == ('two lines\n"quoted"', "medium", ("billing", "a,b"))
    assert memory.origin == "agent"


def test_a_text_without_a_tier_is_short(ask: Ask) -> None:
    assert facts(ask("store", "CONTENT We chose Postgres.")) == {"TIER_WRITTEN": "short"}


@pytest.mark.parametrize("tier", ["ultra", "short", "medium", "long"])
def test_every_tier_of_the_contract_is_written(book: Engine, ask: Ask, tier: str) -> None:
    stored = ask("store", "CONTENT We chose Postgres.", f"TIER {tier}")
    assert facts(stored) == {"TIER_WRITTEN": tier}
    assert getattr(book.memory_counts(), tier) == 1
    assert ask("recall what did we choose").data == stored.data


def test_a_process_that_ends_with_the_request_takes_no_memory_that_ends_with_it(book: Engine) -> None:
    """OK would be the answer to a memory that is lost before anybody can ask for it."""
    text = "TASK REQ:store IN:MEM OUT:CONFIRM\nCONTENT We chose Postgres.\nTIER "
    refused = book.specialist.answer(f"{text}ultra", is_last=True)
    assert (refused.status, refused.error) == ("FAIL", "BAD_VALUE")
    assert refused.rationale.endswith("give short, medium or long, or send requests on standard input")
    assert book.list() == []
    assert book.specialist.answer(f"{text}short", is_last=True).status == "OK"


def test_more_of_a_memory_is_said_in_params(book: Engine, ask: Ask) -> None:
    params = {"category": "decision", "source": "standup", "entities": ["Postgres"], "at": "2026-01-29T12:00:00Z"}
    ask("store", "CONTENT We chose Postgres.", f"PARAMS {json.dumps(params)}")
    [memory] = book.list()
    assert (memory.category, memory.source, memory.entities) == ("decision", "standup", ("Postgres",))
    assert memory.at.isoformat() == "2026-01-29T12:00:00+00:00"


def test_what_was_said_before_or_replaced_is_told(book: Engine, ask: Ask) -> None:
    first = ask("store", "CONTENT We chose Postgres for billing.")
    again = ask("store", "CONTENT we chose postgres for billing")
    assert again.data == first.data
    assert again.rationale.startswith("this was remembered before, in nearly the same words")
    secret = ask("store", "CONTENT The key is AKIAIOSFODNN7EXAMPLE, keep it.")
    assert secret.status == "OK"
    assert secret.rationale.startswith("what looks like a secret was replaced")
    assert "AKIA" not in book.list()[0].content


@pytest.mark.parametrize(
    ("what", "lines", "code", "reason"),
    [
        ("store", (), "BAD_VALUE", "store has no CONTENT; add a line CONTENT <text>"),
        ("store", ('CONTENT ""',), "BAD_VALUE", "the content is empty"),
        ("store", (r'CONTENT "a\u0000b"',), "BAD_VALUE", "the content is binary"),
        ("store", ("CONTENT a", "TIER ultra|short|medium|long"), "BAD_VALUE", "tier is 'ultra|short|medium|long'"),
        ("store", ("CONTENT a", 'TIER ""'), "BAD_VALUE", "tier is ''"),
        ("store", ("CONTENT a", 'TAGS [""]'), "BAD_VALUE", "tags holds ''"),
        ("store this text", ("CONTENT a",), "BAD_REQUEST", "store takes no words ('this text')"),
        ("store", ("CONTENT a", 'PARAMS {"at": "blue"}'), "BAD_VALUE", "at is 'blue'"),
        ("store", ("CONTENT a", 'PARAMS {"tier": "long"}'), "BAD_REQUEST", "store takes no PARAMS 'tier'"),
        ("store", ("CONTENT a", "CONTEXT b"), "BAD_REQUEST", "store takes no CONTEXT"),
        ("link", ("ENTITY1 a", "CONTEXT c"), "BAD_VALUE", "link has no ENTITY2"),
        ("link", ("ENTITY1 a", "ENTITY2 b"), "BAD_VALUE", "link has no CONTEXT"),
        ("link", ("ENTITY1 a", "ENTITY2  a ", "CONTEXT c"), "BAD_VALUE", "ENTITY1 and ENTITY2 both mean 'a'"),
        ("link", ("ENTITY1 a", f"ENTITY2 {'b' * 201}", "CONTEXT c"), "BAD_VALUE", "ENTITY2 is 'bbb"),
        ("link", ("ENTITY1 a", "ENTITY2 b", 'CONTEXT " "'), "BAD_VALUE", "CONTEXT is empty"),
        ("decay", ('PARAMS {"threshold": 2}',), "BAD_VALUE", "threshold is 2"),
        ("decay", ('PARAMS {"scope": "long"}',), "BAD_VALUE", "memories of the tier 'long' do not fade by decay"),
        ("decay", ('PARAMS {"scope": ["short"]}',), "BAD_VALUE", "memories of the tier ['short'] do not fade"),
        ("promote", (), "BAD_VALUE", "promote needs the id of a memory; write TASK REQ:promote mem:<id>"),
        ("promote mem:nobody", (), "NOT_FOUND", "there is no memory 'nobody'"),
        ("promote entity:auth", (), "BAD_VALUE", "'auth' is named as entity; promote takes mem"),
        ("forget entity:auth", (), "BAD_VALUE", "'auth' is named as entity; forget takes mem, episode"),
        ("forget episode:nothing", (), "NOT_FOUND", "there is no episode 'nothing'"),
        ("promote mem:a,mem:b", (), "BAD_REQUEST", "REQ:promote continues where it should end"),
        ("forget mem:nobody", (), "NOT_FOUND", "there is no memory 'nobody'"),
        ("forget mem:a", ('PARAMS {"dry_run": 1}',), "BAD_VALUE", "dry_run is 1; give true or false"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_of_it_is_done(
    book: Engine, ask: Ask, what: str, lines: tuple[str, ...], code: str, reason: str
) -> None:
    answer = ask(what, *lines)
    assert (answer.status, answer.error) == ("FAIL", code)
    assert answer.rationale.startswith(reason)
    assert (answer.data, answer.facts) == (None, ())
    assert book.list(statuses=()) == []
    assert book.graph.counts().episodes == 0


def test_text_of_an_indexed_file_is_not_admitted(book: Engine, ask: Ask) -> None:
    from commonplace.types import Document

    text = "The session manager refreshes every session after thirty minutes of work."
    book.index_documents([Document("docs", text)])
    assert ask("store", f"CONTENT {text}").error == "NOT_ADMITTED"


LINKED = ("ENTITY1 auth.ts", "ENTITY2 token.ts", "CONTEXT session handling with token refresh")


def test_a_link_is_an_episode_that_states_a_fact(book: Engine, ask: Ask) -> None:
    """The example of the contract, with its counts."""
    linked = ask("link", *LINKED)
    [episode] = book.graph.episodes()
    assert (linked.status, linked.data) == ("OK", (Reference("episode", episode.uuid),))
    assert linked.facts == (("ENTITIES_EXTRACTED", "2"), ("RELATIONS_EXTRACTED", "1"))
    [fact] = book.graph.search_edges("session handling")
    assert (fact.source_name, fact.relation_type, fact.target_name) == ("auth.ts", "RELATED_TO", "token.ts")
    assert (fact.fact, fact.episodes) == ("session handling with token refresh", (episode.uuid,))
    assert (episode.name, book.list()) == ("auth.ts → token.ts", [])


def test_a_link_said_again_confirms_the_fact(book: Engine, ask: Ask) -> None:
    linked = [ask("link", *LINKED) for _ in range(2)]
    assert linked[0].facts == linked[1].facts
    assert linked[0].data != linked[1].data
    [fact] = book.graph.search_edges("session handling")
    assert len(fact.episodes) == 2


def test_the_words_of_a_link_may_say_more_than_that_two_are_related(book: Engine, ask: Ask) -> None:
    context = "auth.ts depends on token.ts and uses Redis"
    counts = facts(ask("link", "ENTITY1 auth.ts", "ENTITY2 token.ts", f"CONTEXT {context}"))
    found = book.graph.search_edges("auth.ts")
    assert {(each.relation_type, each.target_name) for each in found} == {("DEPENDS_ON", "token.ts"), ("USES", "Redis")}
    assert counts == {"ENTITIES_EXTRACTED": "3", "RELATIONS_EXTRACTED": "2"}


def test_names_of_one_thing_are_counted_as_one(book: Engine, ask: Ask) -> None:
    """Counts are of what was stored, not of what was asked for."""
    linked = ask("link", "ENTITY1 Postgres", "ENTITY2 PostgreSQL", "CONTEXT two names")
    assert facts(linked) == {"ENTITIES_EXTRACTED": "1", "RELATIONS_EXTRACTED": "0"}
    assert "to itself was skipped" in linked.rationale


def test_secrets_among_the_names_are_replaced(book: Engine, ask: Ask) -> None:
    linked = ask("link", "ENTITY1 AKIAIOSFODNN7EXAMPLE", "ENTITY2 billing", "CONTEXT the key of it")
    assert facts(linked) == {"ENTITIES_EXTRACTED": "2", "RELATIONS_EXTRACTED": "1"}
    assert "secret" in linked.rationale
    assert "AKIA" not in book.graph.episodes()[0].content


def test_an_episode_is_forgotten_with_what_only_it_supported(book: Engine, ask: Ask) -> None:
    linked = ask("link", *LINKED)
    assert linked.data is not None
    episode = f"episode:{linked.data[0].id}"
    assert facts(ask(f"forget {episode}", 'PARAMS {"dry_run": true}')) == {"ENTRIES_TO_DELETE": "1"}
    gone = ask(f"forget {episode}")
    assert (gone.status, gone.data, facts(gone)["ENTRIES_DELETED"]) == ("OK", linked.data, "1")
    assert ask("query_graph auth").data == ()
    assert ask(f"get {episode}").error == "NOT_FOUND"


def test_decay_counts_what_was_lowered_and_what_was_archived(book: Engine, ask: Ask, clock: Clock) -> None:
    """After seven days the curve is at 0.293, and at 0.391 after five."""
    old = book.remember("An old remark on the kitchen")
    clock.move(2)
    book.remember("A later one about the stairs")
    kept = book.remember("Stairs stay as they are", "long")
    clock.move(5)
    assert facts(ask("decay")) == {"ENTRIES_DECAYED": "2", "ENTRIES_DELETED": "1"}
    assert book.get(old.id).status == "archived"
    assert book.get(kept.id).status == "active"
    said = ask("decay", 'PARAMS {"threshold": 0.3, "scope": "short"}')
    assert facts(said) == {"ENTRIES_DECAYED": "0", "ENTRIES_DELETED": "0"}


def test_promotion_raises_the_tier_and_leaves_the_status_alone(book: Engine, ask: Ask) -> None:
    memory = book.remember("We chose Postgres.")
    raised = ask(f"promote mem:{memory.id}")
    assert (raised.data, facts(raised)) == ((Reference("mem", memory.id),), {"TIER_WRITTEN": "medium"})
    assert facts(ask(f"promote {memory.id}", "TIER long")) == {"TIER_WRITTEN": "long"}
    assert book.get(memory.id).status == "active"
    again = ask(f"promote {memory.id}")
    assert (again.status, again.error) == ("FAIL", "BAD_VALUE")


def test_forgetting_deletes_and_gives_a_receipt(book: Engine, ask: Ask) -> None:
    """What a memory said in the graph goes with it, and is no entry of its own."""
    memory = book.remember("We chose Postgres.")
    tried = ask(f"forget mem:{memory.id}", 'PARAMS {"dry_run": true}')
    assert facts(tried) == {"ENTRIES_TO_DELETE": "1"}
    gone = ask(f"forget mem:{memory.id}")
    [receipt] = book.receipts()
    assert gone.status == "OK"
    assert facts(gone) == {"ENTRIES_DELETED": "1", "RECEIPT": receipt.id}
    assert (receipt.counts["memories"], receipt.counts["episodes"], book.graph.counts().episodes) == (1, 1, 0)
    assert ask(f"get mem:{memory.id}").error == "NOT_FOUND"
    assert ask("recall what did we choose").data == ()


def test_the_specialist_of_memory_forgets_no_file(book: Engine, ask: Ask) -> None:
    from commonplace.types import Document

    book.index_documents([Document("notes", "A document that is no memory.")])
    assert ask("forget notes").error == "NOT_FOUND"
    assert book.search("document that is no memory").hits


def test_a_memory_of_this_process_is_forgotten_too(book: Engine, ask: Ask) -> None:
    memory = book.remember("For now only", "ultra")
    assert facts(ask(f"forget {memory.id}"))["ENTRIES_DELETED"] == "1"
    assert ask("recall for now only").data == ()
