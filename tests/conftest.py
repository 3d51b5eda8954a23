"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commonplace.ingest.embeddings import EmbeddingBacklog

_START = EmbeddingBacklog.start


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write the answers of tests/golden anew")


@pytest.fixture(scope="session", autouse=True)
def _vectors_in_turn() -> Iterator[None]:
    """Make vectors that come later before the call returns: what a test sees does not depend on a thread's pace."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddingBacklog, "start", lambda self: self.drain())
        yield


@pytest.fixture
def embedding_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make vectors that come later in their thread, as the program does."""
    monkeypatch.setattr(EmbeddingBacklog, "start", _START)
