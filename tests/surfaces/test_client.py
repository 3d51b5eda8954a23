"""The Python client has the engine's methods, and `commonplace.aio` has those of both as coroutines."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.serving import DATABASES, new_store, serving

import commonplace
import commonplace.aio
from commonplace.client import Client
from commonplace.client.client import _OF_METHOD
from commonplace.engine import Engine
from commonplace.errors import AccessError, NotFoundError, ProviderError, StoreError, UsageError, VersionConflictError
from commonplace.formats.json_values import plain

OFFICE = "The Porto office moves to the fourth floor in May"


@pytest.fixture(params=DATABASES)
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    with (
        new_store(request.param, tmp_path) as store,
        serving(store) as http,
        commonplace.connect(str(http.base_url)) as client,
    ):
        yield client


def test_every_call_is_a_method_of_the_engine() -> None:
    """Code that has an engine must run with a client in its place."""
    for service, name in _OF_METHOD:
        if not service and name not in ("place_of_memory", "search_vector_store"):
            assert callable(getattr(Engine, name)), name


def test_a_memory_is_kept_found_explained_changed_and_forgotten(client: Client) -> None:
    memory = client.remember(OFFICE, tags=["move"], at="2026-05-01")
    result = client.recall("Porto office", touch=False)
    assert [hit.owner_id for hit in result.hits] == [memory.id]
    assert client.why(result, result.hits[0].id).rank == 1
    assert client.update(memory.id, f"{OFFICE}, 2026", if_version=1).version == 2
    with pytest.raises(VersionConflictError):
        client.update(memory.id, "x", if_version=1)
    assert [each.version for each in client.versions(memory.id)] == [1, 2]
    assert [each.id for each in client.list(tags=["move"])] == [memory.id]
    assert client.forget(memory.id, dry_run=True).dry_run
    assert client.forget([memory.id]).verified
    with pytest.raises(NotFoundError, match="no memory"):
        client.get(memory.id)


def test_a_hit_is_explained_as_it_was_searched_for(client: Client) -> None:
    """With the defaults of a search, the server would not find again what more results or kinds had found."""
    for number in range(30):
        client.remember(f"The Porto office has room {number}")
    result = client.recall("Porto office", 25, min_score=0.0, touch=False)
    assert client.why(result, result.hits[-1].id).rank == len(result.hits) == 25
    client.remember("It has a garden", at="2026-01-01", tags=["move"])
    for options in ({"valid_at": "2026-02-01"}, {"tags": ["move"]}):
        found = client.recall("Porto office room", min_score=0.0, touch=False, **options)
        [hit] = found.hits
        assert client.why(found, hit.id).rank == 1
    with pytest.raises(UsageError, match=r"result is 'Porto office'.*give what `search` returned"):
        client.why("Porto office", result.hits[0].id)  # type: ignore[arg-type] # what the test is about


def test_a_server_that_answers_with_less_is_older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path / "store") as http, commonplace.connect(str(http.base_url)) as client:
        client.graph.add_episode("Ann lives in Rome")
        request = client._request
        monkeypatch.setattr(client, "_request", lambda *args: {**request(*args), "relations": [{}]})
        monkeypatch.setattr("commonplace.client.client.__version__", "9.1.0")
        text = rf"no 'uuid': the server runs an older Commonplace, {commonplace.__version__}, than this 9\.1\.0"
        with pytest.raises(ProviderError, match=text):
            client.graph.search_edges("Ann")


def test_services_answer_likewise(client: Client) -> None:
    client.graph.add_episode("auth.ts depends on token.ts", reference_time="2026-05-01")
    assert client.graph.search_edges("auth.ts").relations
    client.knowledge.index_knowledge("TravelAgent", [{"cityName": "Seoul"}])
    assert client.knowledge.retrieve("TravelAgent", "Seoul", 3).hits
    assert client.ledger.query() == []
    assert "search_edges" in dir(client.graph)
    assert "recall" in dir(client)


@pytest.mark.parametrize(
    "ask",
    [
        lambda graph: graph.search_edges("where does Ann live", include_past=True),
        lambda graph: graph.search_entities("Ann"),
        lambda graph: graph.entity("Ann"),
        lambda graph: graph.timeline("Ann"),
        lambda graph: graph.neighbourhood("Ann"),
        lambda graph: graph.path("Ann", "Rome"),
        lambda graph: graph.build_context(["Ann"]),
        lambda graph: graph.history(graph.entity("Ann").uuid),
        lambda graph: graph.relation(graph.search_edges("Ann")[0].uuid),
        lambda graph: graph.episodes(),
        lambda graph: graph.communities(),
        lambda graph: graph.disputes(),
    ],
)
def test_the_graph_answers_with_the_values_of_the_engine(tmp_path: Path, ask: Callable[[Any], Any]) -> None:
    store = tmp_path / "store"
    with (
        commonplace.open(store, embedder="hashing") as book,
        serving(store) as http,
        commonplace.connect(str(http.base_url)) as client,
    ):
        added = client.graph.add_episode("Ann lives in Rome. Bo works for Acme.", reference_time="2026-05-01")
        book.graph.add_episode("Bo works for Globex.", reference_time="2026-05-01")
        book.graph.add_episode("Ann moved to Oslo.", reference_time="2026-06-01")
        assert (added.relations[0].valid_from, added.outcome) == (datetime(2026, 5, 1, tzinfo=UTC), "added")
        here, there = ask(book.graph), ask(client.graph)
        assert type(there) is type(here)
        assert len(plain(here)) > 0
        assert plain(there) == plain(here)


def test_namespaces_are_kept_apart(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as http:
        url = str(http.base_url)
        with commonplace.connect(url, namespace="one") as one, commonplace.connect(url, namespace="two") as two:
            one.remember(OFFICE)
            assert (len(one.list()), len(two.list())) == (1, 0)
            assert one.namespaces() == ["one"]


def test_a_namespace_that_is_forgotten_is_gone(client: Client) -> None:
    """An answer that is kept for its key would make it anew."""
    client.remember(OFFICE)
    assert client.namespaces() == ["default"]
    assert client.forget_namespace("default", confirm="default").verified
    assert client.namespaces() == []


def test_an_export_is_imported_elsewhere(client: Client, tmp_path: Path) -> None:
    memory = client.remember(OFFICE)
    target = tmp_path / "all.jsonl"
    end = client.export(target, kinds=["memory"])
    assert end.lines == len(target.read_text().splitlines()) - 1
    with pytest.raises(StoreError, match=r"cannot write .*all\.jsonl: File exists"):
        client.export(target)
    with pytest.raises(UsageError, match="kinds"):
        client.export(tmp_path / "other", kinds=["colour"])
    assert {path.name for path in tmp_path.iterdir()} <= {"all.jsonl", "store"}
    with serving(tmp_path / "second") as http, commonplace.connect(str(http.base_url)) as second:
        assert second.import_(target, dry_run=True).is_dry_run
        assert second.import_(target).memories.added == 1
        assert second.get(memory.id).content == OFFICE
        with pytest.raises(NotFoundError, match="none"):
            second.import_(tmp_path / "none")


def test_a_token_that_is_not_enough_is_an_error_of_its_own(tmp_path: Path) -> None:
    """Who calls can ask for another token, and need not take the server for broken."""
    with commonplace.open(tmp_path / "store") as book:
        token = book.tokens.create(["default"], ["read"]).secret
    with serving(tmp_path / "store") as http:
        url = str(http.base_url)
        with (
            commonplace.connect(url, token) as client,
            pytest.raises(AccessError, match="this token has no scope 'write'") as told,
        ):
            client.remember(OFFICE)
        assert told.value.status == 403
        with commonplace.connect(url, "cp_x_y") as client, pytest.raises(AccessError, match="is unknown") as told:
            client.recall("Porto")
        assert told.value.status == 401


@pytest.mark.parametrize("url", [5, "", "127.0.0.1:8765", "ftp://a", "http://", "http://a?b"])
def test_what_is_no_address_is_refused(url: Any) -> None:
    with pytest.raises(UsageError, match="no address of a server"):
        commonplace.connect(url)


def test_mistakes_are_named(client: Client) -> None:
    with pytest.raises(UsageError, match="colour"):
        client.recall("x", colour="red")
    with pytest.raises(UsageError, match="limit"):
        client.recall("x", limit=0)
    with pytest.raises(AttributeError, match="no call 'backup'"):
        client.backup("x")
    with pytest.raises(AttributeError, match="the answer has no 'hit'"):
        _ = client.recall("x").hit


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ProviderError, match=r"http://127\.0\.0\.1:9 did not answer"):
        commonplace.connect("http://127.0.0.1:9").recall("x")


def test_a_connection_that_the_server_closed_is_opened_again(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with serving(store) as http, commonplace.connect(str(http.base_url)) as client:
        client.remember(OFFICE)
        [idle] = client._idle
        idle.sock.shutdown(socket.SHUT_RDWR)
        assert client.recall("Porto office").hits


def test_calls_that_come_together_open_one_engine(tmp_path: Path) -> None:
    opened = []

    def open_() -> Engine:
        opened.append(commonplace.open(tmp_path / "store", embedder="hashing"))
        return opened[-1]

    async def use() -> None:
        async with commonplace.aio.Async(open_) as book:
            await asyncio.gather(*(book.namespaces() for _ in range(8)))
        lazy = commonplace.aio.Async(open_)
        await asyncio.gather(*(lazy.namespaces() for _ in range(8)))
        await lazy.close()

    asyncio.run(use())
    assert len(opened) == 2


def test_coroutines_of_a_client_and_of_an_engine(tmp_path: Path) -> None:
    async def use(url: str) -> None:
        async with commonplace.aio.connect(url) as remote:
            await asyncio.gather(*(remote.remember(f"Boat number {number} is blue") for number in range(4)))
            assert len((await remote.recall("blue boat", limit=4)).hits) == 4
            await remote.graph.add_episode("auth.ts depends on token.ts")
        async with commonplace.aio.open(tmp_path / "local", embedder="hashing") as book:
            memory = await book.remember(OFFICE)
            assert (await book.get(memory.id)).content == OFFICE
            assert (await book.graph.counts()).episodes >= 0
            assert await book.namespace() == "default"
            with pytest.raises(NotFoundError):
                await book.get("none")

    with serving(tmp_path / "store") as http:
        asyncio.run(use(str(http.base_url)))
