"""get and stats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.formats.csp import CspLink, Reference

if TYPE_CHECKING:
    from tests.unit.clock import Clock
    from tests.unit.specialist.conftest import Ask

    from commonplace.engine import Engine


def test_a_memory_is_shown_with_what_is_known_of_it(book: Engine, ask: Ask) -> None:
    memory = book.remember("We chose\nPostgres.", tags=["decision"], entities=["Postgres"])
    other = book.remember("The team knows it.")
    book.link(memory.id, other.id, "because", 0.75)
    shown = ask(f"get mem:{memory.id}")
    assert (shown.status, shown.scope) == ("OK", ("decision", "Postgres"))
    assert (shown.data, shown.relevance) == ((Reference("mem", memory.id),), (1.0,))
    assert shown.links == (CspLink(memory.id, other.id, is_directed=True, strength=0.75),)
    assert shown.facts == (
        ("TIER", "short"),
        ("STATE", "active"),
        ("AT", "2026-03-02T09:00:00Z"),
        ("ORIGIN", "agent"),
        ("TRUST", "0.80"),
        ("RETENTION", "1.00"),
    )
    assert shown.content == "We chose\nPostgres."
    assert ask(f"get {memory.id}") == shown
    assert ask(f"get mem:{memory.id}", 'PARAMS {"offset": 0}') == shown


def test_any_id_can_be_asked_for(book: Engine, ask: Ask) -> None:
    for number, (id_, written) in enumerate(
        [("a, b", 'mem:"a, b"'), ("two words", "two words"), ("mem:x", "mem:mem:x"), ("line\nend", r'"line\nend"')]
    ):
        book.remember(f"Matter number {number} of several", id=id_, force=True)
        assert ask(f"get {written}").content == f"Matter number {number} of several"


def test_a_long_text_is_read_in_parts_that_add_up(book: Engine, ask: Ask) -> None:
    """Never a whole large text at once, and none of it out of reach."""
    book.index_upgrade("static")  # a long text takes the transformer seconds
    text = " ".join(f"word{number}, and 東京 so on" for number in range(1_000))
    memory = book.remember(text)
    parts, offset = [], 0
    while True:
        shown = ask(f"get {memory.id}", f'PARAMS {{"offset": {offset}}}')
        parts.append(shown.content)
        following = dict(shown.facts).get("NEXT_OFFSET")
        if following is None:
            break
        assert shown.content[-1].isalnum() or shown.content[-1] in ",京"
        offset = int(following)
    assert "".join(parts) == text
    assert len(parts) > 2


def test_a_text_without_spaces_is_cut_as_well(book: Engine, ask: Ask) -> None:
    """To a model it is no single word: it has as many tokens as there are pieces in it."""
    memory = book.remember("x" * 100_000)
    shown = ask(f"get {memory.id}")
    assert 4_000 < len(shown.content) < 6_000
    assert dict(shown.facts)["NEXT_OFFSET"] == str(len(shown.content))


def test_a_version_is_shown_as_of_its_time(book: Engine, ask: Ask, clock: Clock) -> None:
    memory = book.remember("The office is in Madrid.")
    clock.move(10)
    book.update(memory.id, "The office is in Lisbon.")
    assert ask(f"get {memory.id}").content == "The office is in Lisbon."
    assert ask(f"get {memory.id}", 'PARAMS {"as_of": "2026-03-05"}').content == "The office is in Madrid."


def test_what_is_not_there_or_beyond_is_told(book: Engine, ask: Ask) -> None:
    assert ask("get mem:nobody").error == "NOT_FOUND"
    memory = book.remember("Short.")
    far = ask(f"get {memory.id}", 'PARAMS {"offset": 6}')
    assert (far.error, far.rationale) == ("BAD_VALUE", "offset is 6, the text has 6 characters; give a smaller one")
    assert ask(f"get {memory.id}", 'PARAMS {"offset": -1}').error == "BAD_VALUE"
    assert ask("get").rationale == "get needs the id of a memory; write TASK REQ:get mem:<id>"


def test_names_that_leave_no_room_give_way_to_the_text(book: Engine, ask: Ask) -> None:
    names = [f"{n}" + "京" * 58 for n in range(10)]
    memory = book.remember("Billing uses Postgres.", id="京" * 900, tags=names)
    ends = [book.remember(f"Other matter {n}", id=f"{n}" + "京" * 400, force=True).id for n in range(5)]
    for end in ends:
        book.link(memory.id, end)
    shown = ask(f"get {memory.id}")
    assert shown.status == "OK"
    assert shown.content


def test_statistics_count_what_is_live_by_tier(book: Engine, ask: Ask) -> None:
    for text, tier in [("first", "short"), ("second", "short"), ("third", "long"), ("fourth", "ultra")]:
        book.remember(f"{text} matter of its own", tier, force=True)
    archived = book.remember("fifth affair", "medium")
    book.archive(archived.id)
    assert dict(ask("stats").facts) == {
        "ENTRIES": "4",
        "ULTRA": "1",
        "SHORT": "2",
        "MEDIUM": "0",
        "LONG": "1",
        "ARCHIVED": "1",
        "MEMORY_LINKS": "0",
        "EPISODES": "0",
        "ENTITIES": "0",
        "RELATIONS": "0",
        "DISPUTED": "0",
    }
    assert ask("stats", "TIER long").error == "BAD_REQUEST"


def test_statistics_count_the_graph_and_the_links_of_memories(book: Engine, ask: Ask) -> None:
    for place in ("Lisbon", "Porto"):
        book.graph.add_episode(f"Ada Marsh lives in {place}.")
    first, second = (book.remember(text).id for text in ("The cache was too small.", "The shop was slow in March."))
    book.link(first, second)
    counts = dict(ask("stats").facts)
    assert [counts[key] for key in ("EPISODES", "ENTITIES", "RELATIONS", "DISPUTED", "MEMORY_LINKS")] == list("23221")


def test_what_a_response_names_of_the_graph_can_be_asked_for(book: Engine, ask: Ask) -> None:
    for place in ("Lisbon", "Porto"):
        added = book.graph.add_episode(f"Ada Marsh lives in {place}.", reference_time="2026-03-01T00:00Z")
    assert added.episode is not None
    episode = ask(f"get episode:{added.episode.uuid}")
    assert (episode.content, dict(episode.facts)["AT"]) == ("Ada Marsh lives in Porto.", "2026-03-01T00:00:00Z")
    entity = ask("get entity:Ada Marsh")
    assert (entity.scope, entity.data) == (("Ada Marsh",), (Reference("entity", "Ada Marsh"),))
    assert dict(entity.facts)["ENTITY_TYPE"] == "person"
    assert (
        dict(entity.facts)["DISPUTED"] == '"Ada Marsh→Porto,Ada Marsh→Lisbon"' or "→" in dict(entity.facts)["DISPUTED"]
    )
    assert {each.target for each in entity.links or ()} == {"Lisbon", "Porto"}
    fact = ask(f"get fact:{added.relations[0].uuid}")
    assert (fact.content, fact.links) == (
        "Ada Marsh lives in Porto.",
        (CspLink("Ada Marsh", "Porto", is_directed=True),),
    )
    assert fact.facts == (
        ("RELATION_TYPE", "LIVES_IN"),
        ("STATE", "disputed"),
        ("VALID_FROM", "2026-03-01T00:00:00Z"),
        ("TRUST", "0.80"),
    )
    for what in ("episode:nothing", "entity:Nobody", "fact:nothing"):
        assert ask(f"get {what}").error == "NOT_FOUND"
