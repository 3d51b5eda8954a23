"""A namespace that is forgotten goes from Graphiti, too; what cannot be deleted there is told in the receipt."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from tests.stubs.graphiti_server import GraphitiServer, State
from tests.surfaces.test_graphiti import SAID, Desk, desk, server

from commonplace.erasure.receipt import COPIES_ELSEWHERE

if TYPE_CHECKING:
    from commonplace.erasure.receipt import ForgetReceipt

__all__ = ["desk", "server"]


def forgotten(desk: Desk, uri: str, name: str, **chosen: bool) -> ForgetReceipt:
    with desk.open(uri) as book:
        return book.forget_namespace(name, confirm=name, **chosen)


def test_groups_of_a_namespace_alone_are_cleared(desk: Desk, server: GraphitiServer) -> None:
    with desk.open(server.url, "team") as book:
        book.graph.add_episode(SAID)
        book.graph.add_episode("Ann lives in Berlin.", group_id="people")
        book.graph.add_triplet("Ann", "USES", "Vim")
    with desk.open(server.url) as other:
        other.graph.add_episode("Bo lives in Rome.")
    rehearsed = forgotten(desk, server.url, "team", dry_run=True)
    told = "data of this namespace sent to Graphiti, in its groups team__main, team__people: deletion is queued"
    assert rehearsed.outside == (told, COPIES_ELSEWHERE)
    assert server.state.called("clear_graph") == []
    receipt = forgotten(desk, server.url, "team")
    assert receipt.verified
    assert receipt.outside == (COPIES_ELSEWHERE,)
    assert receipt.notices == (
        "Graphiti has cleared its group team__main",
        "Graphiti has cleared its group team__people",
    )
    assert [each["content"] for each in server.state.episodes] == ["Bo lives in Rome."]
    assert server.state.facts == []
    with desk.open(server.url, "team") as book:
        assert book.receipts()[-1].to_dict() == receipt.to_dict()


def test_group_that_others_use_keeps_what_is_theirs(desk: Desk, server: GraphitiServer) -> None:
    """Another store may have a namespace of the same name, at the same server."""
    with desk.open(server.url, "team") as book:
        book.graph.add_episode(SAID)
    server.state.episodes.append({**server.state.episodes[0], "uuid": "x", "name": "theirs", "content": "Theirs."})
    receipt = forgotten(desk, server.url, "team")
    assert [each["content"] for each in server.state.episodes] == ["Theirs."]
    assert server.state.called("clear_graph") == []
    told = "data sent to Graphiti in its group team__main, which others share: 1 episode was deleted"
    assert receipt.outside == (f"{told} there; check for facts that it took from them", COPIES_ELSEWHERE)


def test_group_that_graphiti_itself_uses_is_never_cleared(desk: Desk, server: GraphitiServer) -> None:
    with desk.open(server.url) as book:
        book.graph.add_episode(SAID)
    receipt = forgotten(desk, server.url, "default")
    assert server.state.episodes == []
    assert server.state.called("clear_graph") == []
    assert "its group main, which others share: 1 episode was deleted there" in receipt.outside[0]


def test_group_that_the_server_does_not_clear_is_found_and_told(desk: Desk) -> None:
    """Over FalkorDB `clear_graph` works on one graph alone, and says that it cleared any: no receipt may repeat it."""
    with GraphitiServer(State(database="default_db")) as falkor:
        with desk.open(falkor.url, "team") as book:
            book.graph.add_episode(SAID)
        falkor.state.node("auth.ts", group="team__main")
        receipt = forgotten(desk, falkor.url, "team")
        assert falkor.state.called("clear_graph") == [{"group_ids": ["team__main"]}]
        assert len(falkor.state.episodes) == 1
        [(where, what)] = receipt.found
        assert (where, receipt.verified) == ("Graphiti, group team__main", False)
        assert "delete the graph team__main" in what
        assert receipt.notices == ()


def test_server_without_the_tool_has_the_episodes_deleted(desk: Desk) -> None:
    with GraphitiServer(without=frozenset({"clear_graph"})) as old:
        with desk.open(old.url, "team") as book:
            book.graph.add_episode(SAID)
        receipt = forgotten(desk, old.url, "team")
        assert old.state.episodes == []
        assert "1 episode was deleted there" in receipt.outside[0]


def test_a_fact_that_is_forgotten_goes_there_too(desk: Desk, server: GraphitiServer) -> None:
    """It was told as an episode, and bears its id; one that was never sent needs no deletion."""
    with desk.open(server.url, "team") as book:
        added = book.graph.add_triplet("Ann", "USES", "Vim")
        receipt = book.forget(added.relations[0].uuid)
        assert "`commonplace graph sync` deletes them" in receipt.outside[0]
        assert book.graph.sync().waiting == 0
        assert server.state.episodes == []
        assert len(server.state.called("delete_episode")) == 1


def test_what_is_still_being_read_there_is_told(desk: Desk, server: GraphitiServer) -> None:
    server.state.works_at_once = False
    with desk.open(server.url, "team") as book:
        book.graph.add_episode(SAID)
    receipt = forgotten(desk, server.url, "team")
    assert "not listed there (1 of 1): it may still process them, so check again" in receipt.outside[0]


def test_a_fact_that_is_still_being_read_there_is_told_and_hides_no_episode_that_is(
    desk: Desk, server: GraphitiServer
) -> None:
    """A fact goes out as an episode, which Graphiti only queues."""
    with desk.open(server.url, "team") as book:
        book.graph.add_triplet("Ann", "USES", "Vim")
        server.state.works_at_once = False
        book.graph.add_episode("Bo lives in Rome.")
    assert "not listed there (1 of 2): it may still process" in forgotten(desk, server.url, "team").outside[0]
    with desk.open(server.url, "crew") as book:
        book.graph.add_triplet("Ann", "USES", "Vim")
    assert "not listed there (1 of 1): it may still process" in forgotten(desk, server.url, "crew").outside[0]


def test_server_that_is_down_holds_no_forgetting_up(desk: Desk, server: GraphitiServer) -> None:
    with desk.open(server.url, "team") as book:
        book.graph.add_episode(SAID)
    with socket.create_server(("127.0.0.1", 0)) as free:
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
    receipt = forgotten(desk, nowhere, "team")
    assert receipt.verified
    assert receipt.outside[0].startswith(
        "data of this namespace sent to Graphiti, in its group team__main: delete it there. Graphiti does not answer: "
    )


@pytest.mark.parametrize("uri", ["", "http://127.0.0.1:1/sse"])
def test_settings_that_name_no_server_hold_no_forgetting_up(desk: Desk, server: GraphitiServer, uri: str) -> None:
    with desk.open(server.url, "team") as book:
        book.graph.add_episode(SAID)
    receipt = forgotten(desk, uri, "team")
    assert receipt.verified
    assert "in its group team__main: delete it there. " in receipt.outside[0]


def test_namespace_without_a_graph_asks_nobody(desk: Desk, server: GraphitiServer) -> None:
    with desk.open(server.url, "team") as book:
        book.remember("The kettle is broken")
    receipt = forgotten(desk, server.url, "team")
    assert receipt.outside == (COPIES_ELSEWHERE,)
    assert server.state.calls == []
