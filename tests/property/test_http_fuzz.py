"""Whatever is sent to the HTTP API that its own document allows or forbids, the server answers and never fails."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from tests.serving import DATABASES, new_store, serving

from commonplace.server.openapi import document

SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(document())))
LINES = "/v1/import"
"""Takes no JSON, so that no example can be made of it."""
OPERATIONS = [each.ok() for each in SCHEMA.get_all_operations() if isinstance(each, Ok) and each.ok().path != LINES]


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[httpx.Client]]:
    """A client of a server for each kind of store: to make a request takes longer than to answer it."""
    with contextlib.ExitStack() as stack:
        place = tmp_path_factory.mktemp("fuzz")
        stack.enter_context(contextlib.chdir(place))  # one of the calls indexes where it is
        stores = [stack.enter_context(new_store(database, place)) for database in DATABASES]
        clients = [stack.enter_context(serving(store)) for store in stores]
        for client in clients:
            client.post("/v1/memories", json={"content": "The kettle is red", "id": "known"})
            client.post("/v1/graph/episodes", json={"content": "auth.ts depends on token.ts", "uuid": "known"})
        yield clients


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method.upper()} {each.path}")
def test_no_request_makes_the_server_fail(clients: list[httpx.Client], operation: Any) -> None:
    @settings(
        max_examples=8,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
        case = data.draw(operation.as_strategy(generation_mode=mode))
        body = case.body if isinstance(case.body, dict | list) else None
        for client in clients:
            arguments = case.as_transport_kwargs(base_url=str(client.base_url))
            response = client.request(
                arguments["method"],
                arguments["url"],
                params=arguments.get("params"),
                content=json.dumps(body, default=str) if body is not None else b"",
                headers={"Content-Type": "application/json"},
            )
            assert response.status_code < 500, (arguments, response.text)
            assert (response.status_code == 200 and "/export" in arguments["url"]) or response.json()

    run()


def test_the_document_names_every_route(clients: list[httpx.Client]) -> None:
    client = clients[0]
    assert len(OPERATIONS) + 1 == sum(len(path) for path in client.get("/v1/openapi.json").json()["paths"].values())


def test_the_stores_outlive_it(clients: list[httpx.Client]) -> None:
    assert [client.get("/readyz").status_code for client in clients] == [200, 200]
