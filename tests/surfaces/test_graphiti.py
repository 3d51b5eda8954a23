"""Graphiti as the outside backend, over HTTP, by a server made with the official SDK: asked first, told all, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.serving import PATIENCE_S
from tests.stubs.csp_client import parse_response
from tests.stubs.graphiti_server import GraphitiServer, State
from tests.stubs.wire import Wire

from commonplace.engine.engine import Engine
from commonplace.engine.open import open_engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.csp import Response
from commonplace.graph.graphiti.backend import GRACE_S, LOOK_S, MAX_REFUSALS, REST_S
from commonplace.settings import load

SAID = "auth.ts depends on token.ts."


@dataclass
class Clock:
    """Time that passes when it is told to."""

    at: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at


@dataclass
class Desk:
    """A store, a clock, and engines over the store with Graphiti at an address."""

    directory: Path
    clock: Clock

    @contextmanager
    def open(self, uri: str, namespace: str = "default", **chosen: Any) -> Iterator[Engine]:
        flags: dict[str, Any] = {"store.path": str(self.directory), "graph.backend": "graphiti-mcp"}
        flags.update({"graph.graph_uri": uri, "graph.timeout_s": PATIENCE_S})
        flags.update({f"graph.{name}": value for name, value in chosen.items()})
        settings = load(flags, environment={}, user_file=self.directory / "none.toml")
        with open_engine(self.directory, namespace, None, settings=settings, clock=self.clock) as engine:
            yield engine


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "store", Clock())


@pytest.fixture
def server() -> Iterator[GraphitiServer]:
    with GraphitiServer() as running:
        yield running


@pytest.fixture
def falkor() -> Iterator[GraphitiServer]:
    """Give a server over FalkorDB that was started as its manual says: with another database than our group."""
    with GraphitiServer(State(database="default_db")) as running:
        yield running


@pytest.fixture
def wire(server: GraphitiServer) -> Iterator[Wire]:
    with Wire(server.port) as between:
        yield between


def team(state: State) -> None:
    """Let Graphiti know a little of its own."""
    state.node("Ann", "Person", summary="Ann is an engineer")
    state.node("Acme", "Organization", summary="Acme makes anvils")
    state.node("Berlin", "Location", summary="Berlin is a city")
    state.fact("Ann", "WORKS_AT", "Acme", "Ann works at Acme", valid_at="2025-05-01T00:00:00Z")
    state.fact(
        "Ann",
        "LIVES_IN",
        "Berlin",
        "Ann lived in Berlin",
        valid_at="2020-01-01T00:00:00Z",
        invalid_at="2024-01-01T00:00:00Z",
        expired_at="2024-02-01T00:00:00Z",
    )


def test_what_is_added_is_told_with_a_mark_and_without_an_id(desk: Desk, server: GraphitiServer) -> None:
    """Graphiti takes an id for that of an episode it has, and loses the episode where it has none."""
    with desk.open(server.url) as book:
        added = book.graph.add_episode(SAID, name="review", source_description="a code review", group_id="web")
        assert added.episode is not None
        assert {each.name for each in added.entities} == {"auth.ts", "token.ts"}
        assert (added.degraded, added.notices) == (
            True,
            ("Graphiti reads it later: what it finds there is not counted here",),
        )
        [call] = server.state.called("add_memory")
        assert call == {
            "name": f"review [commonplace:{added.episode.uuid}]",
            "episode_body": SAID,
            "group_id": "web",
            "source": "text",
        }
        [episode] = book.graph.episodes(group_ids=["web"])
        assert (episode.uuid, episode.name, episode.group_id) == (added.episode.uuid, "review", "web")


def test_same_episode_is_told_once(desk: Desk, server: GraphitiServer) -> None:
    with desk.open(server.url) as book:
        for _ in range(3):
            book.graph.add_episode(SAID, uuid="one")
        assert len(server.state.episodes) == 1
        book.graph.add_episode("auth.ts depends on session.ts.", uuid="one")
        assert [each["content"] for each in server.state.episodes] == ["auth.ts depends on session.ts."]


def test_fact_that_is_given_goes_out_as_an_episode(desk: Desk, server: GraphitiServer) -> None:
    with desk.open(server.url) as book:
        added = book.graph.add_triplet("Ann", "USES", "Vim", fact="Ann swears by Vim")
        assert [each["content"] for each in server.state.episodes] == ["Ann swears by Vim"]
        assert added.relations[0].uuid in server.state.episodes[0]["name"]


def test_deleted_episode_is_deleted_there(desk: Desk, server: GraphitiServer) -> None:
    with desk.open(server.url) as book:
        for name in ("one", "two"):
            book.graph.add_episode(f"{SAID} {name}", uuid=name)
        gone = book.graph.delete_episode("one")
        assert (gone.episode, gone.degraded) == ("one", False)
        assert [each["content"] for each in server.state.episodes] == [f"{SAID} two"]


def test_graphiti_is_asked_first(desk: Desk, server: GraphitiServer) -> None:
    team(server.state)
    with desk.open(server.url) as book:
        found = book.graph.search_edges("where does Ann work")
        assert [(each.fact, each.source_name, each.target_name) for each in found] == [
            ("Ann works at Acme", "Ann", "Acme")
        ]
        assert (found.degraded, found.notices) == (False, ())
        assert found[0].to_dict()["valid_from"] == "2025-05-01T00:00:00Z"
        assert 0.0 < found[0].score <= 1.0
        entities = book.graph.search_entities("the engineer Ann")
        assert [(each.name, each.entity_type) for each in entities] == [("Ann", "person")]
        assert book.graph.search_entities("Berlin", entity_types=["place"])[0].name == "Berlin"


def test_what_has_nothing_to_do_with_the_question_is_left_out(desk: Desk, server: GraphitiServer) -> None:
    """Graphiti always answers something, and never how well it fits."""
    team(server.state)
    with desk.open(server.url) as book:
        assert len(book.graph.search_edges("quarterly tax forms")) == 0
        assert len(book.graph.search_entities("quarterly tax forms")) == 0


def test_time_is_asked_for_as_here(desk: Desk, server: GraphitiServer) -> None:
    team(server.state)
    with desk.open(server.url) as book:

        def facts(**times: Any) -> list[str]:
            return [each.fact for each in book.graph.search_edges("where Ann lived and works", **times)]

        assert facts() == ["Ann works at Acme"]
        assert facts(valid_at="2021-06-01") == ["Ann lived in Berlin"]
        assert sorted(facts(include_past=True)) == ["Ann lived in Berlin", "Ann works at Acme"]


def test_it_is_said_that_entities_have_no_times_there(desk: Desk, server: GraphitiServer) -> None:
    team(server.state)
    with desk.open(server.url) as book:
        found = book.graph.search_entities("the engineer Ann", valid_at="2021-06-01")
        assert ([each.name for each in found], found.degraded) == (["Ann"], True)
        assert found.notices[-1].startswith("Graphiti does not say when an entity was true")


def test_context_and_neighbourhood_come_from_graphiti(desk: Desk, server: GraphitiServer) -> None:
    team(server.state)
    server.state.node("anvils")
    server.state.fact("Acme", "MAKES", "anvils", "Acme makes anvils")
    with desk.open(server.url) as book:
        context = book.graph.build_context(["Ann", "Nobody"])
        assert [each.fact for each in context.facts] == ["Ann works at Acme"]
        assert (context.missing, context.degraded) == (("Nobody",), False)
        assert "Ann works at Acme" in context.text
        near = book.graph.neighbourhood("Ann", depth=2)
        assert [(each.name, each.distance) for each in near.entities] == [("Ann", 0), ("Acme", 1), ("anvils", 2)]
        assert {each.fact for each in near.relations} == {"Ann works at Acme", "Acme makes anvils"}
        assert (near.degraded, near.is_capped) == (False, False)


def test_entity_that_graphiti_answered_is_known_by_its_id(desk: Desk, server: GraphitiServer) -> None:
    """No tool of Graphiti's finds an entity by its id: taken for words, it finds nothing."""
    team(server.state)
    with desk.open(server.url) as book:
        [ann] = book.graph.search_entities("the engineer Ann")
        assert book.graph.entity(ann.uuid).name == "Ann"
        assert [each.fact for each in book.graph.neighbourhood(ann.uuid, 1).relations] == ["Ann works at Acme"]
        context = book.graph.build_context([ann.uuid])
        assert ([each.fact for each in context.facts], context.missing) == (["Ann works at Acme"], ())
        book.graph.search_edges("who works where", center_node_uuid=ann.uuid)
        assert server.state.called("search_memory_facts")[-1]["center_node_uuid"] == ann.uuid
        answer = parse_response(book.specialist.handle("TASK REQ:query_graph Ann IN:MEM OUT:SUMMARY\n"))
        assert (answer.status, [(each.source, each.target) for each in answer.links or ()]) == ("OK", [("Ann", "Acme")])


def test_id_of_graphiti_s_own_is_a_centre_also_where_nobody_knows_its_name(desk: Desk, server: GraphitiServer) -> None:
    team(server.state)
    ann = server.state.nodes[0]["uuid"]
    with desk.open(server.url) as book:
        found = book.graph.search_edges("Ann works at", center_node_uuid=ann)
        assert [each.fact for each in found] == ["Ann works at Acme"]
        assert server.state.called("search_memory_facts")[-1]["center_node_uuid"] == ann
        context = book.graph.build_context(center_node_uuid=ann, query="Ann works at")
        assert ([each.fact for each in context.facts], context.missing) == (["Ann works at Acme"], ())
    with desk.open(server.url) as book, pytest.raises(NotFoundError, match="by their names, not by ids"):
        book.graph.neighbourhood("00000000-0000-4000-8000-000000000000")
    with desk.open(server.url) as book, pytest.raises(NotFoundError):
        book.graph.search_edges("Ann works at", center_node_uuid="Nobody")


def test_namespaces_are_groups_apart(desk: Desk, server: GraphitiServer) -> None:
    """One server for all: what one namespace tells, no other finds."""
    with desk.open(server.url) as mine, desk.open(server.url, "Team Ä", group="facts") as theirs:
        mine.graph.add_episode("Ann lives in Berlin.", group_id="Team Ä")
        theirs.graph.add_episode("Ann lives in Munich.")
        groups = [each["group_id"] for each in server.state.episodes]
        assert len(set(groups)) == 2
        assert all(each.replace("_", "").isalnum() and each.isascii() for each in groups)
        assert [each.content for each in mine.graph.episodes()] == ["Ann lives in Berlin."]
        assert [each.content for each in theirs.graph.episodes()] == ["Ann lives in Munich."]


def test_server_that_is_down_is_told_later(desk: Desk) -> None:
    """What was acknowledged reaches Graphiti, once; until then the local graph answers, and says so."""
    with GraphitiServer() as gone:
        url, port = gone.url, gone.port
    with desk.open(url) as book:
        added = book.graph.add_episode(SAID)
        assert added.degraded
        assert any("cannot be reached" in each for each in added.notices)
        found = book.graph.search_edges("what does auth.ts depend on")
        assert [each.fact for each in found] == [SAID]
        assert found.degraded
        assert found.notices[0].startswith("Graphiti does not answer: ")
        assert found.notices[0].endswith("; the local graph did")
        assert book.graph.build_context(["auth.ts"]).degraded
        assert book.graph.neighbourhood("auth.ts").degraded
        assert len(book.graph.episodes()) == 1
        with GraphitiServer(port=port) as server:
            told = book.graph.sync()
            assert (told.backend, told.delivered, told.waiting) == ("graphiti-mcp", 1, 0)
            assert [each["content"] for each in server.state.episodes] == [SAID]
            assert book.graph.sync().delivered == 0
            assert len(server.state.called("add_memory")) == 1


def test_what_waits_is_told_with_the_next_call_when_it_has_rested(desk: Desk) -> None:
    with GraphitiServer() as gone:
        url, port = gone.url, gone.port
    with desk.open(url) as book:
        book.graph.add_episode(SAID)
        with GraphitiServer(port=port) as server:
            assert book.graph.search_edges("auth.ts").degraded
            assert server.state.calls == []
            desk.clock.at += REST_S
            found = book.graph.search_edges("auth.ts")
            assert (found.degraded, len(server.state.episodes)) == (False, 1)


def test_another_process_tells_what_one_left(desk: Desk) -> None:
    with GraphitiServer() as gone:
        url, port = gone.url, gone.port
    with desk.open(url) as book:
        book.graph.add_episode(SAID)
        book.graph.add_triplet("Ann", "USES", "Vim")
        book.graph.add_episode("Never mind.", uuid="mistake")
        book.graph.delete_episode("mistake")
    with GraphitiServer(port=port) as server, desk.open(url) as book:
        assert book.graph.sync().delivered == 2
        assert [each["content"] for each in server.state.episodes] == [SAID, "Ann uses Vim"]


@pytest.mark.parametrize("manner", ["hang", "cut", "garbage", "huge", "fail"])
def test_server_that_fails_is_not_waited_for(desk: Desk, wire: Wire, server: GraphitiServer, manner: Any) -> None:
    """However it fails, the local graph answers, and the server rests."""
    team(server.state)
    with desk.open(wire.url) as book:
        book.graph.add_episode("Ann lives in Munich.")
        session = book.graph._backend.tools  # type: ignore[attr-defined]
        patient = session.timeout_s
        session.timeout_s, wire.manner = 0.3, manner
        found = book.graph.search_edges("where does Ann live")
        assert [each.fact for each in found] == ["Ann lives in Munich."]
        assert found.degraded
        seen = wire.seen
        assert book.graph.search_entities("Ann").degraded
        assert wire.seen == seen
        session.timeout_s, wire.manner = patient, "pass"
        desk.clock.at += REST_S
        assert [each.fact for each in book.graph.search_edges("where does Ann work")] == ["Ann works at Acme"]


def test_answer_that_is_lost_is_looked_for_before_it_is_told_again(
    desk: Desk, wire: Wire, server: GraphitiServer
) -> None:
    with desk.open(wire.url) as book:
        wire.manner = "lost"
        added = book.graph.add_episode(SAID)
        assert added.notices[-1].startswith("1 item queued")
        assert len(server.state.episodes) == 1
        wire.manner = "pass"
        told = book.graph.sync()
        assert (told.delivered, told.waiting) == (1, 0)
        assert (len(server.state.episodes), len(server.state.called("add_memory"))) == (1, 1)


def test_fact_whose_answer_is_lost_is_told_once(desk: Desk, wire: Wire, server: GraphitiServer) -> None:
    with desk.open(wire.url) as book:
        wire.manner = "lost"
        book.graph.add_triplet("Ann", "USES", "Vim")
        wire.manner = "pass"
        assert book.graph.sync().delivered == 1
        assert len(server.state.episodes) == 1


def test_what_may_be_at_work_there_is_not_told_again_by_itself(desk: Desk, wire: Wire, server: GraphitiServer) -> None:
    """Graphiti shows an episode only when its model is through with it."""
    server.state.works_at_once = False
    with desk.open(wire.url) as book:
        wire.manner = "lost"
        book.graph.add_episode(SAID)
        wire.manner = "pass"
        desk.clock.at += REST_S
        assert book.graph.search_edges("auth.ts").notices == ("1 item queued for Graphiti",)
        desk.clock.at += LOOK_S
        book.graph.counts()
        assert len(server.state.called("add_memory")) == 1
        server.state.work()
        desk.clock.at += LOOK_S
        book.graph.counts()
        assert (len(server.state.called("add_memory")), len(server.state.episodes)) == (1, 1)
        assert book.graph.sync().waiting == 0


def test_what_never_arrived_is_told_again_when_nobody_works_on_it_any_more(
    desk: Desk, wire: Wire, server: GraphitiServer
) -> None:
    with desk.open(wire.url) as book:
        wire.manner = "cut"
        book.graph.add_episode(SAID)
        wire.manner = "pass"
        desk.clock.at += GRACE_S
        book.graph.counts()
        assert len(server.state.episodes) == 1


def test_replacement_waits_for_the_deletion_of_what_it_replaces(desk: Desk, wire: Wire, server: GraphitiServer) -> None:
    """Both bear one mark: else the new one could be taken for the old."""
    server.state.works_at_once = False
    with desk.open(wire.url) as book:
        book.graph.add_episode(SAID, uuid="one")
        book.graph.add_episode("auth.ts depends on session.ts.", uuid="one")
        assert len(server.state.called("add_memory")) == 1
        server.state.works_at_once = True
        server.state.work()
        assert book.graph.sync().waiting == 0
        assert [each["content"] for each in server.state.episodes] == ["auth.ts depends on session.ts."]


def test_what_the_server_refuses_is_told_and_kept(desk: Desk, server: GraphitiServer) -> None:
    server.state.refuses.add("add_memory")
    with desk.open(server.url) as book:
        added = book.graph.add_episode(SAID, uuid="one")
        assert "Graphiti refused episode one: add_memory of" in added.notices[1]
        for _ in range(4):
            book.graph.counts()
        assert len(server.state.called("add_memory")) == 3
        server.state.refuses.clear()
        assert book.graph.sync().delivered == 1


def test_search_that_the_server_refuses_is_answered_here(desk: Desk, server: GraphitiServer) -> None:
    server.state.refuses.add("search_nodes")
    with desk.open(server.url) as book:
        book.graph.add_episode(SAID)
        found = book.graph.search_entities("auth.ts")
        assert (found[0].name, found.degraded) == ("auth.ts", True)
        assert "no database" in found.notices[0]


def test_server_that_is_started_anew_gets_a_new_session(desk: Desk, server: GraphitiServer) -> None:
    """A session that it knows no longer is opened again, and nothing is lost or told twice."""
    with Wire(server.port) as between, desk.open(between.url) as book:
        book.graph.add_episode(SAID)
        with GraphitiServer(State()) as other:
            between.server_port = other.port
            added = book.graph.add_episode("Ann lives in Berlin.")
            assert added.notices == ("Graphiti reads it later: what it finds there is not counted here",)
            assert [each["content"] for each in other.state.episodes] == ["Ann lives in Berlin."]


@pytest.mark.parametrize("json_response", [True, False])
def test_answers_come_as_json_or_as_events(desk: Desk, json_response: bool) -> None:
    with GraphitiServer(json_response=json_response) as server, desk.open(server.url) as book:
        team(server.state)
        assert [each.fact for each in book.graph.search_edges("where does Ann work")] == ["Ann works at Acme"]


def test_server_that_is_not_graphitis_is_refused(desk: Desk) -> None:
    with GraphitiServer(without=frozenset({"search_nodes"})) as server, desk.open(server.url) as book:
        found = book.graph.add_episode(SAID)
        assert any("has no tool search_nodes" in each for each in found.notices)
        assert server.state.calls == []


def test_garbled_records_are_not_taken_for_facts(desk: Desk, server: GraphitiServer) -> None:
    server.state.node("Ann")
    server.state.facts.append({"uuid": 5, "group_id": "main", "fact": "?"})
    with desk.open(server.url) as book:
        found = book.graph.search_edges("Ann")
        assert (len(found), found.degraded) == (0, True)
        assert "facts[0].uuid is 5" in found.notices[0]


def test_missing_server_is_told_when_the_graph_is_wanted(desk: Desk) -> None:
    with desk.open("") as book, pytest.raises(UsageError, match=r"set graph\.graph_uri"):
        book.graph.counts()
    with desk.open("bolt://localhost:7687") as book, pytest.raises(UsageError, match=r"graph\.server"):
        book.graph.counts()
    with desk.open("https://a:b@host/mcp") as book, pytest.raises(UsageError, match="user name"):
        book.graph.counts()


@pytest.mark.parametrize("path", ["/sse", "/sse/", "/a/sse"])
def test_address_of_the_older_transport_is_refused_with_what_to_do(desk: Desk, path: str) -> None:
    with desk.open(f"http://localhost:8000{path}") as book, pytest.raises(UsageError) as caught:
        book.graph.search_edges("auth.ts")
    assert str(caught.value).endswith(
        "uses a transport that MCP no longer has; start Graphiti's server with --transport http, and name its /mcp"
    )


def test_specialist_tells_in_part_what_graphiti_does_not_tell(desk: Desk, wire: Wire) -> None:
    """`OK` would mean that what is counted is all there is (CSP/1, STATUS)."""

    def asked(book: Engine, *lines: str) -> Response:
        return parse_response(book.specialist.handle("\n".join((*lines, ""))))

    link = ("TASK REQ:link IN:MEM OUT:SUMMARY", "ENTITY1 auth.ts", "ENTITY2 token.ts", "CONTEXT depends on it")
    with desk.open(wire.url) as book:
        linked = asked(book, *link)
        assert linked.status == "PARTIAL"
        assert linked.rationale == "Graphiti reads it later: what it finds there is not counted here"
        assert dict(linked.facts)["RELATIONS_EXTRACTED"] == "1"
        assert asked(book, "TASK REQ:recall auth.ts IN:MEM OUT:SUMMARY").status == "OK"
        wire.manner = "cut"
        linked = asked(book, *link[:2], "ENTITY2 clock.ts", link[3])
        assert linked.status == "PARTIAL"
        assert "1 item queued for Graphiti; `commonplace graph sync` sends everything" in linked.rationale
        for question in ("recall auth.ts", "query_graph auth.ts"):
            answer = asked(book, f"TASK REQ:{question} IN:MEM OUT:SUMMARY")
            assert answer.status == "PARTIAL"
            assert "Graphiti does not answer" in answer.rationale


def test_nothing_is_sent_before_the_graph_is_used(desk: Desk, server: GraphitiServer, wire: Wire) -> None:
    wire.only = b"initialize"
    with desk.open(wire.url) as book:
        book.remember("We chose Postgres for billing")
        book.search("billing")
        assert wire.seen == 0
        book.graph.counts()
        assert wire.seen == 0
        book.graph.search_edges("billing")
        assert wire.seen == 2  # `initialize` and `notifications/initialized`


def test_episodes_that_the_server_does_not_list_are_those_here(desk: Desk, falkor: GraphitiServer) -> None:
    with desk.open(falkor.url) as book:
        book.graph.add_episode(SAID, uuid="one", name="review")
        assert len(falkor.state.episodes) == 1
        assert [(each.uuid, each.name) for each in book.graph.episodes()] == [("one", "review")]


def test_deletion_that_the_server_cannot_do_is_told_and_waits(desk: Desk, falkor: GraphitiServer) -> None:
    """It must not be taken for done: the episode stays, and is found."""
    with desk.open(falkor.url) as book:
        book.graph.add_episode(SAID, uuid="one")
        gone = book.graph.delete_episode("one")
        assert (gone.degraded, len(falkor.state.episodes)) == (True, 1)
        told = book.graph.sync()
        assert (told.delivered, told.waiting, told.refused) == (0, 1, 0)
        [notice] = told.notices
        assert "Graphiti lists no episode of its group main, so this one cannot be deleted there" in notice
        assert "FALKORDB_DATABASE=main" in notice
        assert book.graph.episodes() == []
        desk.clock.at += GRACE_S
        for _ in range(MAX_REFUSALS + 1):
            desk.clock.at += LOOK_S
            book.graph.counts()
        assert book.graph.sync().refused == 1
        falkor.state.database = "main"
        assert (book.graph.sync().delivered, falkor.state.episodes) == (1, [])


def test_deleted_episode_is_not_listed_while_graphiti_has_it(desk: Desk, server: GraphitiServer) -> None:
    with desk.open(server.url) as book:
        book.graph.add_episode(SAID, uuid="one")
        server.state.refuses.add("delete_episode")
        assert book.graph.delete_episode("one").degraded
        assert book.graph.episodes() == []


def test_replacement_goes_there_where_what_it_replaces_cannot_be_deleted(desk: Desk, falkor: GraphitiServer) -> None:
    with desk.open(falkor.url) as book:
        book.graph.add_episode(SAID, uuid="one")
        book.graph.add_episode("auth.ts depends on session.ts.", uuid="one")
        book.graph.sync()
        assert [each["content"] for each in falkor.state.episodes] == [SAID, "auth.ts depends on session.ts."]
