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


@pytest.fixture(scope="module", params=DATABASES)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    place = tmp_path_factory.mktemp("fuzz")
    # One of the calls indexes where it is.
    with new_store(request.param, place) as store, contextlib.chdir(place), serving(store) as client:
        client.post("/v1/memories", json={"content": "The kettle is red", "id": "known"})
        client.post("/v1/graph/episodes", json={"content": "auth.ts depends on token.ts", "uuid": "known"})
        yield client


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method.upper()} {each.path}")
def test_no_request_makes_the_server_fail(client: httpx.Client, operation: Any) -> None:
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


def test_the_document_names_every_route(client: httpx.Client) -> None:
    assert len(OPERATIONS) + 1 == sum(len(path) for path in client.get("/v1/openapi.json").json()["paths"].values())


def test_the_store_outlives_it(client: httpx.Client) -> None:
    assert client.get("/readyz").status_code == 200
