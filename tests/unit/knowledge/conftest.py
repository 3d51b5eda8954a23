from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.knowledge.service import KnowledgeService


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have a key; nothing is to be sent anywhere."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    """An engine over an empty store, with the embedder that people have."""
    with commonplace.open(tmp_path / "store", clock=clock) as engine:
        yield engine


@pytest.fixture
def knowledge(book: Engine) -> KnowledgeService:
    return book.knowledge
