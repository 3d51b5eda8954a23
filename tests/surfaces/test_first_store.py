"""What is refused of a first memory or fact is named, and an embedder that cannot be had leaves no store."""

from __future__ import annotations

import pytest
from tests.surfaces.conftest import Program

from commonplace.errors import ModelError
from commonplace.models.minilm import MinilmEmbedder


def stores(program: Program) -> int:
    """Return how many stores there are, in the project and in the user's data directory."""
    return len(list(program.project.parent.rglob("store.db")))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["graph", "add", "Ada lives in Lisbon.", "--at", "bogus"], "--at is 'bogus'"),
        (["graph", "add", "Ada lives in Lisbon.", "--trust", "7"], "--trust is 7.0"),
        (["graph", "add", "Ada lives in Lisbon.", "--uuid", "x" * 1001], "the id is 'xxx"),
        (["graph", "add", "{", "--source", "json"], "the content is not JSON"),
        (["graph", "add", " "], "the content is empty"),
        (["graph", "fact", "a", "NOPE", "b"], "TYPE is 'NOPE'"),
        (["graph", "fact", "a", "USES", ""], "TARGET is ''"),
        (["graph", "fact", "the a", "USES", "A"], "both mean 'the a'"),
        (["graph", "fact", "a", "USES", "b", "--source-type", "ghost"], "--source-type is 'ghost'"),
        (["graph", "fact", "a", "USES", "b", "--valid-from", "2026", "--valid-to", "2025"], "is not after"),
        (["graph", "fact", "a", "USES", "b", "--valid-to", "bogus"], "--valid-to is 'bogus'"),
        (["graph", "fact", "a", "USES", "b", "--reason", "x" * 1001], "--reason is 'xxx"),
        (["remember", "short answers", "--at", "bogus"], "bogus"),
    ],
    ids=lambda given: given if isinstance(given, str) else None,
)
def test_what_is_refused_is_named_as_the_option_is(bare: Program, arguments: list[str], told: str) -> None:
    """The store that was made for it stays, and what it will hold has yet to choose its embedder."""
    refused = bare.run(*arguments, code=2).stderr
    assert told in refused
    assert "your user store is used" in refused
    assert stores(bare) == 1
    assert "embedder  none yet" in bare.run("index", "status").stdout


@pytest.mark.parametrize(
    "arguments", [["import", "no.json"], ["graph", "import", "no.json"], ["remember", "", "--id", "a"]]
)
def test_where_a_store_was_made_is_said(bare: Program, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    (bare.project / "no.json").write_text("no JSON")
    place = bare.project / "here"
    monkeypatch.setenv("COMMONPLACE_STORE", str(place))
    refused = bare.run(*arguments, code=2).stderr
    assert f"there was no store here; one was made in {place}" in refused


@pytest.mark.parametrize(
    ("arguments", "code"), [(["remember", "--file", "none"], 1), (["graph", "add", "a", "--file", "b"], 2)]
)
def test_a_text_that_cannot_be_read_makes_none(bare: Program, arguments: list[str], code: int) -> None:
    """A text is read before the store is opened, for somebody may still be typing it."""
    bare.run(*arguments, code=code)
    assert stores(bare) == 0


def test_an_embedder_that_cannot_be_had_leaves_none_either(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> MinilmEmbedder:
        raise ModelError("the model is missing", remedy="reinstall Commonplace")

    monkeypatch.setattr(MinilmEmbedder, "load", missing)
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_NAME", "minilm")
    for arguments in (["remember", "short answers"], ["graph", "add", "Ada lives in Lisbon."]):
        assert "the model is missing; reinstall Commonplace" in bare.run(*arguments, code=1).stderr
    assert stores(bare) == 0


def test_for_what_is_taken_one_is_made(bare: Program) -> None:
    bare.run("graph", "fact", "auth.ts", "USES", "token.ts")
    assert stores(bare) == 1
