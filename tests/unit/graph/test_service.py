"""The graph as `engine.graph` gives it: adding, giving, deleting, merging, settling."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.errors import AdmissionError, NotFoundError, UsageError
from commonplace.settings import Settings
from commonplace.settings.schema import GraphSettings

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def test_an_episode_brings_entities_and_facts_with_where_they_come_from(book: Engine) -> None:
    added = book.graph.add_episode(
        "The auth.ts file depends on token.ts for JWT refresh handling",
        source_description="Code review session",
        reference_time="2026-01-29T12:00:00Z",
    )
    [fact] = added.relations
    assert added.episode is not None
    assert (fact.source_name, fact.relation_type, fact.target_name) == ("auth.ts", "DEPENDS_ON", "token.ts")
    assert fact.to_dict()["valid_from"] == "2026-01-29T12:00:00Z"
    assert fact.to_dict()["created_at"] == "2026-03-02T09:00:00Z"
    assert fact.episodes == (added.episode.uuid,)
    assert {(each.name, each.entity_type) for each in added.entities} >= {("auth.ts", "file"), ("token.ts", "file")}
    assert book.graph.episode(added.episode.uuid).source_description == "Code review session"


def test_the_contract_names_the_fields_of_entities_and_facts(book: Engine) -> None:
    added = book.graph.add_episode("auth.ts depends on token.ts.").to_dict()
    entity = "uuid name entity_type summary created_at valid_from valid_to".split()
    relation = "uuid source_node_uuid target_node_uuid relation_type fact created_at valid_from valid_to expired_at"
    assert added["entities"][0].keys() >= set(entity)
    assert added["relations"][0].keys() >= set(relation.split())
    assert json.loads(json.dumps(added)) == added


def test_secrets_are_not_kept(book: Engine) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    added = book.graph.add_episode(f"The deploy token is {secret}. auth.ts depends on token.ts.", name=secret)
    assert added.episode is not None
    assert secret not in str(added.to_dict())
    assert added.notices == ("what looks like a secret was replaced: github token",)
    structured = book.graph.add_episode({"name": "Deploy", "token": secret}, source="json")
    assert secret not in str(structured.to_dict())


@pytest.mark.parametrize("content", ["", "  \n", "a\0b", "\x01\x02\x03abc", "x" * (1024 * 1024 + 1), 7, None])
def test_what_is_no_text_is_refused_and_nothing_is_stored(book: Engine, content: object) -> None:
    with pytest.raises(UsageError):
        book.graph.add_episode(content)  # type: ignore[arg-type]
    assert book.graph.counts().episodes == 0


def test_what_was_recalled_is_not_taken_in_again(book: Engine) -> None:
    book.graph.add_episode("auth.ts depends on token.ts.")
    recalled = book.graph.build_context(["auth.ts"]).text
    with pytest.raises(AdmissionError):
        book.graph.add_episode(recalled)
    added = book.graph.add_episode(f"Mira lives in Berlin.\n\n{recalled}")
    assert [fact.target_name for fact in added.relations] == ["Berlin"]


def test_the_same_episode_again_changes_nothing_and_another_content_takes_its_place(book: Engine) -> None:
    first = book.graph.add_episode("Mira lives in Berlin.", uuid="said")
    again = book.graph.add_episode("Mira lives in Berlin.", uuid="said")
    assert (again.outcome, again.relations) == ("unchanged", first.relations)
    other = book.graph.add_episode("Tom lives in Paris.", uuid="said")
    assert (other.outcome, book.graph.counts().episodes, book.graph.counts().relations) == ("replaced", 1, 1)
    with pytest.raises(NotFoundError):
        book.graph.entity("Mira")
    assert len(book.graph.search_edges("Mira lives in Berlin", include_past=True).relations) <= 1


def test_lines_of_a_conversation_are_their_speakers(book: Engine) -> None:
    added = book.graph.add_episode("Mira: I live in Berlin.\nTom: I work for Acme.", source="message")
    said = {(each.source_name, each.relation_type, each.target_name) for each in added.relations}
    assert said == {("Mira", "LIVES_IN", "Berlin"), ("Tom", "WORKS_FOR", "Acme")}


def test_json_gives_facts_by_its_keys(book: Engine) -> None:
    value = {
        "name": "Mira Okafor",
        "employer": "Acme",
        "city": "Berlin",
        "note": "Tom Chen lives in Paris.",
        "projects": [{"name": "Atlas", "depends_on": ["auth.ts", "Redis"]}],
    }
    added = book.graph.add_episode(value, source="json")
    said = {(each.source_name, each.relation_type, each.target_name) for each in added.relations}
    assert said >= {
        ("Mira Okafor", "WORKS_FOR", "Acme"),
        ("Mira Okafor", "LIVES_IN", "Berlin"),
        ("Tom Chen", "LIVES_IN", "Paris"),
        ("Atlas", "DEPENDS_ON", "auth.ts"),
        ("Atlas", "DEPENDS_ON", "Redis"),
    }
    with pytest.raises(UsageError, match="not JSON"):
        book.graph.add_episode("{", source="json")


def test_a_given_fact_ends_an_older_one(book: Engine) -> None:
    graph = book.graph
    graph.add_triplet("Mira", "LIVES_IN", "Berlin", valid_from="2020-01-01", reason="as she told")
    added = graph.add_triplet("Mira", "lives in", "Munich", valid_from="2024-05-01", fact="Mira went to Munich")
    assert added.episode is None
    assert [(each.fact, each.episodes) for each in added.relations] == [("Mira went to Munich", ())]
    assert [(each.target_name, str(each.valid_to)[:10]) for each in added.ended] == [("Berlin", "2024-05-01")]
    entries = graph.history(added.ended[0].uuid).entries
    assert (entries[0].what, entries[0].reason) == ("created", "as she told")
    assert graph.entity("Mira").entity_type == "person"


def test_a_relation_of_a_thing_with_itself_is_refused(book: Engine) -> None:
    with pytest.raises(UsageError, match="both mean"):
        book.graph.add_triplet("auth.ts", "DEPENDS_ON", "the auth.ts")
    assert book.graph.counts().entities == 0


@pytest.mark.parametrize(
    "values",
    [
        {"valid_from": "2024-01-01", "valid_to": "2023-01-01"},
        {"valid_from": "2024-01-01", "valid_to": "2024-01-01"},
        {"valid_from": "soon"},
        {"source_type": "planet"},
        {"fact": "x" * 2000},
    ],
)
def test_a_given_fact_with_a_wrong_value_is_refused(book: Engine, values: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        book.graph.add_triplet("Mira", "LIVES_IN", "Berlin", **values)  # type: ignore[arg-type]
    assert book.graph.counts().relations == 0


@pytest.mark.parametrize("name", ["", "\x00\x01", "x" * 10_000, None])
def test_a_name_that_is_none_is_refused(book: Engine, name: str) -> None:
    with pytest.raises(UsageError):
        book.graph.add_triplet(name, "USES", "Redis")


def test_control_characters_of_a_name_are_dropped(book: Engine) -> None:
    added = book.graph.add_triplet("Red\x00is\x1f  Cache\n", "USES", "Linux")
    assert added.entities[0].name == "Red is Cache"


def test_an_unknown_type_is_refused_with_those_that_there_are(book: Engine) -> None:
    with pytest.raises(UsageError, match="LIVES_IN"):
        book.graph.add_triplet("a", "LOVES", "b")


def test_unknown_ids_are_not_found(book: Engine) -> None:
    graph = book.graph
    book.graph.add_episode("Mira lives in Berlin.")
    for call in (
        lambda: graph.entity(UNKNOWN),
        lambda: graph.relation(UNKNOWN),
        lambda: graph.episode(UNKNOWN),
        lambda: graph.history(UNKNOWN),
        lambda: graph.neighbourhood(UNKNOWN),
        lambda: graph.path("Mira", UNKNOWN),
        lambda: graph.timeline(UNKNOWN),
        lambda: graph.delete_episode(UNKNOWN),
        lambda: graph.merge("Mira", UNKNOWN),
        lambda: graph.split(UNKNOWN),
        lambda: graph.settle(UNKNOWN),
        lambda: graph.search_edges("Mira", center_node_uuid=UNKNOWN),
        lambda: graph.add_triplet("Mira", "USES", UNKNOWN),
    ):
        with pytest.raises(NotFoundError):
            call()


def test_deleting_an_episode_takes_what_only_it_said_and_reopens_what_it_ended(book: Engine) -> None:
    graph = book.graph
    graph.add_episode("Mira lives in Berlin.", reference_time="2026-01-01")
    moved = graph.add_episode("Mira moved to Munich in February.", reference_time="2026-03-01")
    assert moved.episode is not None
    gone = graph.delete_episode(moved.episode.uuid)
    assert [each.fact for each in gone.reopened] == ["Mira lives in Berlin."]
    assert len(gone.relations) == len(gone.entities) == 1
    [fact] = graph.search_edges("Mira lives")
    assert (fact.target_name, fact.valid_to, fact.expired_at) == ("Berlin", None, None)
    with pytest.raises(NotFoundError):
        graph.entity("Munich")


def test_a_fact_of_two_episodes_outlives_one(book: Engine) -> None:
    graph = book.graph
    first = graph.add_episode("Mira lives in Berlin.", reference_time="2026-01-01")
    graph.add_episode("Mira lives in Berlin.", reference_time="2026-02-01")
    assert first.episode is not None
    gone = graph.delete_episode(first.episode.uuid)
    assert (gone.relations, gone.entities) == ((), ())
    [fact] = graph.search_edges("Mira lives in Berlin")
    assert (fact.uuid, str(fact.valid_from)[:10]) == (first.relations[0].uuid, "2026-02-01")


def test_a_given_fact_outlives_the_episode_that_said_it_too(book: Engine) -> None:
    graph = book.graph
    said = graph.add_episode("Mira lives in Berlin.")
    graph.add_triplet("Mira", "LIVES_IN", "Berlin")
    assert said.episode is not None
    assert graph.delete_episode(said.episode.uuid).relations == ()
    assert graph.entity("Berlin").name == "Berlin"


def test_settling_a_dispute_keeps_the_reason(book: Engine, clock: Clock) -> None:
    graph = book.graph
    for place in ("Berlin", "Munich"):
        graph.add_episode(f"Mira lives in {place}.", reference_time="2026-01-01")
        clock.move(days=1)
    [dispute] = graph.disputes()
    assert [each.target_name for each in dispute.relations] == ["Berlin", "Munich"]
    assert all(each.disputed for each in graph.search_edges("where Mira lives"))
    settled = graph.settle(dispute.relations[1].uuid, reason="she said so herself")
    assert (settled.relation.disputed, settled.relation.target_name) == (False, "Munich")
    assert [each.target_name for each in settled.retracted] == ["Berlin"]
    assert graph.disputes() == []
    assert [each.target_name for each in graph.search_edges("where Mira lives")] == ["Munich"]
    last = graph.history(dispute.relations[0].uuid).entries[-1]
    assert (last.what, last.reason) == ("retracted", "she said so herself")
    with pytest.raises(UsageError, match="not disputed"):
        graph.settle(dispute.relations[1].uuid)


def test_a_merge_moves_names_and_facts_and_a_split_brings_them_back(book: Engine) -> None:
    graph = book.graph
    graph.add_episode("Mira Okafor lives in Berlin.")
    graph.add_episode("Mimi works for Acme.")
    merged = graph.merge("Mira Okafor", "Mimi", reason="her nickname")
    assert [each.fact for each in merged.relations] == ["Mimi works for Acme."]
    assert (graph.entity("Mimi").name, graph.entity("Mimi").aliases) == ("Mira Okafor", ("Mimi",))
    assert graph.entity(merged.merged.uuid).uuid == merged.entity.uuid
    parted = graph.split("Mira Okafor")
    assert [each.uuid for each in parted.parted] == [merged.merged.uuid]
    assert graph.entity("Mimi").merged_into == ""
    assert [each.source_name for each in graph.search_edges("Acme")] == ["Mimi"]
    with pytest.raises(UsageError, match="nothing was merged"):
        graph.split("Mira Okafor")


def test_a_name_can_be_parted_with_what_was_said_under_it(book: Engine) -> None:
    graph = book.graph
    graph.add_episode("Mira Okafor lives in Berlin.")
    graph.add_episode("Mira works for Acme.")
    parted = graph.split("Mira Okafor", names=["Mira"], reason="another Mira")
    [mira] = parted.parted
    assert (mira.name, graph.entity("Mira Okafor").aliases) == ("Mira", ())
    assert [each.fact for each in parted.relations] == ["Mira works for Acme."]
    assert [each.fact for each in graph.neighbourhood("Mira Okafor").relations] == ["Mira Okafor lives in Berlin."]
    with pytest.raises(UsageError, match="has no name"):
        graph.split("Mira Okafor", names=["Tom"])
    with pytest.raises(UsageError, match="all names would leave"):
        graph.split("Mira Okafor", names=["Mira Okafor"])


def test_types_of_ones_own_are_known_by_the_settings(tmp_path: Path) -> None:
    own = GraphSettings(entity_types=("planet",), relation_types=("ORBITS",), single_valued=("ORBITS",))
    settings = Settings(graph=own)
    with commonplace.open(tmp_path, embedder="hashing", settings=settings) as book:
        added = book.graph.add_triplet("Io", "ORBITS", "Jupiter", source_type="planet", valid_from="2020-01-01")
        assert added.entities[0].entity_type == "planet"
        moved = book.graph.add_triplet("Io", "orbits", "Saturn", valid_from="2021-01-01")
        assert [each.target_name for each in moved.ended] == ["Jupiter"]


def test_threads_that_name_the_same_thing_make_one_entity(book: Engine) -> None:
    texts = [f"Mira Okafor uses tool_{number}.py." for number in range(8)]
    threads = [threading.Thread(target=book.graph.add_episode, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.name for each in book.graph.search_entities("Mira Okafor", entity_types=["person"])] == ["Mira Okafor"]
    assert book.graph.counts().episodes == 8


def test_a_million_names_do_not_become_aliases(book: Engine) -> None:
    graph = book.graph
    graph.add_triplet("Redis", "USES", "Linux")
    for number in range(20):
        graph.add_episode(f"Redis, also called cache{number}, uses Linux.")
    assert len(graph.entity("Redis").aliases) <= 200


def test_what_is_trusted_less_ends_nothing(book: Engine) -> None:
    book.graph.add_episode("Mira works for Acme.", reference_time="2026-01-01", origin="user")
    added = book.graph.add_episode("Mira works for Globex.", reference_time="2026-02-01", origin="web")
    assert (added.ended, {each.target_name for each in added.disputed}) == ((), {"Acme", "Globex"})
