"""A store whose embedder is behind an API: how it is built, read without the API, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.stubs.model_server import ModelServer, broken, embeddings

import commonplace
from commonplace.cli.app import cli
from commonplace.errors import EmbedderMismatchError, ProviderError, SettingsError
from commonplace.models.hashing import HashingEmbedder
from commonplace.settings import load

NAME = "openai:embedding-stub"
BILLING = "We chose Postgres for billing because the ledger needs transactions"
OTHERS = ["Lunch is at noon on Fridays", "The cat sleeps on the router"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A stub that the environment names, as OPENAI_BASE_URL and its key."""
    with ModelServer() as server:
        server.name_in(monkeypatch)
        monkeypatch.setenv("COMMONPLACE_MODELS_RETRIES", "0")
        yield server


def built(tmp_path: Path) -> Path:
    store = tmp_path / ".commonplace"
    with commonplace.open(store, embedder=NAME) as book:
        for text in [BILLING, *OTHERS]:
            book.remember(text)
        assert book.search("Postgres for billing").hits[0].text == BILLING
    return store


def test_a_store_remembers_its_remote_embedder(tmp_path: Path, server: ModelServer) -> None:
    """Nobody has to name it again."""
    store = built(tmp_path)
    with commonplace.open(store) as book:
        result = book.search("ledger transactions for billing")
    assert result.hits[0].text == BILLING
    assert not result.degraded
    assert result.hits[0].signals["dense"] > 0.5
    assert server.asked[-1].document["input"] == ["ledger transactions for billing"]


@pytest.mark.parametrize("method", ["two-stage", "semantic", "bm25"])
def test_a_search_goes_by_words_where_the_model_does_not_answer(
    tmp_path: Path, server: ModelServer, method: str
) -> None:
    """Models make things better and never make them fail; the result says what is missing."""
    store = built(tmp_path)
    server.rule = lambda asked: broken()
    with commonplace.open(store) as book:
        for _ in range(2):
            result = book.search("Postgres for billing", method=method)  # type: ignore[arg-type]
            assert [hit.text for hit in result.hits] == [BILLING]
            assert result.degraded
            (notice,) = result.notices
            assert notice.startswith("searched by words alone, for the query could not be embedded: openai at http://")
        server.rule = type(server)().rule
        assert not book.search("Postgres for billing").degraded


def test_a_store_can_be_read_forgotten_and_exported_without_the_key(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is one's own must not depend on an account."""
    store = built(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    with commonplace.open(store) as book:
        result = book.search("Postgres for billing")
        assert [hit.text for hit in result.hits] == [BILLING]
        assert "OPENAI_API_KEY is not set; set it to your key" in result.notices[0]
        with pytest.raises(ProviderError, match="OPENAI_API_KEY is not set"):
            book.remember("This cannot be embedded and is not half remembered")
        assert not any("half remembered" in hit.text for hit in book.search("half remembered", min_score=0).hits)
        (finding,) = book.doctor().findings
        assert (finding.part, finding.problem) == ("embedder", "OPENAI_API_KEY is not set")
        book.forget(result.hits[0].owner_id)
        assert not any(hit.text == BILLING for hit in book.search("Postgres for billing", min_score=0).hits)


def test_a_change_is_given_up_without_the_key_of_the_present_embedder(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`doctor` says that this is how: nothing is to be embedded for it."""
    store = built(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    with commonplace.open(store) as book:
        book._runtime.store.begin_reembedding(HashingEmbedder().stamp)
        report = book.index_upgrade(NAME)
        assert (report.given_up, report.passages) == (str(HashingEmbedder().stamp), 0)
        assert book.index_status().upgrade is None
        with pytest.raises(ProviderError, match="OPENAI_API_KEY is not set"):
            book.index_upgrade("openai:another")


def test_another_embedder_is_refused_by_name_and_without_asking_it(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors of two models must never be compared; the message says what to do."""
    store = built(tmp_path)
    with pytest.raises(EmbedderMismatchError, match=f"not static.*; open it with embedder '{NAME}'"):
        commonplace.open(store, embedder="static")
    other = tmp_path / "other"
    with commonplace.open(other, embedder="static") as book:
        book.remember(BILLING)
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(EmbedderMismatchError, match=r"built with embedder static.*, not openai:m; open it with"):
        commonplace.open(other, embedder="openai:m")


def test_a_new_store_with_a_remote_embedder_needs_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told at once, not when the first memory comes; the store can still get another embedder then."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ProviderError, match="OPENAI_API_KEY is not set"):
        commonplace.open(tmp_path / "store", embedder="text-embedding-3-small")
    with commonplace.open(tmp_path / "store") as book:
        book.remember(BILLING)


def test_a_projects_own_file_may_not_choose_a_remote_embedder(tmp_path: Path) -> None:
    """Whoever works in someone else's clone would send what they remember, and pay for it."""
    (tmp_path / ".commonplace").mkdir()
    (tmp_path / "commonplace.toml").write_text('[embedder]\nname = "openai:text-embedding-3-small"\n')
    with pytest.raises(
        SettingsError, match=r"sets embedder.name to 'openai:text-embedding-3-small', which a project's"
    ):
        load(environment={}, start=tmp_path, user_file=tmp_path / "none.toml")
    environment = {"COMMONPLACE_EMBEDDER_NAME": "openai:text-embedding-3-small"}
    (tmp_path / "commonplace.toml").write_text('[embedder]\nname = "hashing"\n')
    settings = load(environment=environment, start=tmp_path, user_file=tmp_path / "none.toml")
    assert settings.embedder.name == "openai:text-embedding-3-small"


def document(tmp_path: Path) -> str:
    (tmp_path / "a.md").write_text(f"# Billing\n\n{BILLING}\n")
    config = {
        "version": "1.0.0",
        "artifact_index": {"embedding_config": {"model": "text-embedding-3-small", "dimensions": 1536}},
        "retrieval_pipeline": {},
        "agent_integration": {},
    }
    (tmp_path / "retrieval.json").write_text(json.dumps(config))
    return str(tmp_path / "retrieval.json")


def run(tmp_path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--store", str(tmp_path / ".commonplace"), *arguments], catch_exceptions=False)


def test_a_documents_embedding_model_is_honoured_where_there_is_a_key(tmp_path: Path, server: ModelServer) -> None:
    """Contract; and later commands find the store's own embedder without the document."""
    server.rule = lambda asked: embeddings(asked, 1536)
    run(tmp_path, "init")
    done = run(tmp_path, "index", "build", "--config", document(tmp_path), str(tmp_path))
    assert done.exit_code == 0, done.output
    assert [asked.document["model"] for asked in server.asked] == ["text-embedding-3-small"]
    status = json.loads(run(tmp_path, "--json", "index", "status").stdout)
    assert status["embedder"].endswith("(artifacts: openai:text-embedding-3-small@1/1536)")
    assert "Postgres" in run(tmp_path, "search", "Postgres for billing").stdout


def test_a_documents_embedding_model_without_a_key_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contract."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    run(tmp_path, "init")
    done = run(tmp_path, "index", "build", "--config", document(tmp_path), str(tmp_path))
    assert done.exit_code == 1
    assert "OPENAI_API_KEY is not set; set it to your key" in done.stderr
