from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.stubs.csp_client import parse_response
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.formats.csp import Response

Ask = Callable[..., Response]


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    """An engine over an empty store, with the embedder that people have."""
    with commonplace.open(tmp_path / "store", clock=clock) as engine:
        yield engine


@pytest.fixture
def ask(book: Engine) -> Ask:
    """Ask the specialist: the verb with its words, then lines; the answer is read back from its text."""

    def asked(what: str, *lines: str, scope: str = "MEM") -> Response:
        text = book.specialist.handle("\n".join((f"TASK REQ:{what} IN:{scope} OUT:ANY", *lines)))
        assert text.endswith("\n\n")
        assert book.count_tokens(text) <= 2500
        return parse_response(text)

    return asked
