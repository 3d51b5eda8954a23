"""Episodes that a language model reads, over a real connection: what is sent, when, and what stands where it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.stubs.model_server import (
    Asked,
    ModelServer,
    Reply,
    bad_json,
    broken,
    dropped,
    empty,
    fenced,
    good,
    hang,
    prose,
    refusal,
    truncated,
)

import commonplace
from commonplace.cli.app import cli
from commonplace.engine import Engine
from commonplace.errors import SettingsError, UsageError

TEXT = "We met Mira in May. Mira has been with the Fjord Bank since then."
ANSWER = json.dumps(
    {
        "entities": [
            {"name": "Mira", "type": "person", "aliases": []},
            {"name": "Fjord Bank", "type": "organization", "aliases": []},
        ],
        "facts": [
            {
                "source": "Mira",
                "type": "WORKS_FOR",
                "target": "Fjord Bank",
                "fact": "Mira works for the Fjord Bank.",
                "quote": "Mira has been with the Fjord Bank since then.",
                "valid_from": "2026-05-01",
                "valid_to": None,
                "ended": False,
            }
        ],
    }
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(rule=lambda _: good(ANSWER)) as server:
        server.name_in(monkeypatch)
        monkeypatch.setenv("COMMONPLACE_GRAPH_EXTRACTOR", "openai:stub")
        monkeypatch.setenv("COMMONPLACE_MODELS_RETRIES", "0")
        monkeypatch.setenv("COMMONPLACE_MODELS_TIMEOUT_S", "0.3")
        yield server


@pytest.fixture
def book(tmp_path: Path, server: ModelServer) -> Iterator[Engine]:
    with commonplace.open(tmp_path / ".commonplace") as book:
        yield book


def add(book: Engine, text: str = TEXT, **more: Any) -> Any:
    return book.graph.add_episode(text, reference_time="2026-06-03", **more)


def told(asked: Asked) -> dict[str, Any]:
    """Return the data that a prompt holds."""
    data: dict[str, Any] = json.loads(asked.document["messages"][1]["content"])
    return data


@pytest.mark.parametrize("reply", [good(ANSWER), fenced(ANSWER), prose(ANSWER)])
def test_a_model_reads_what_the_rules_would_not(book: Engine, server: ModelServer, reply: Reply) -> None:
    server.rule = lambda _: reply
    added = add(book)
    [fact] = added.relations
    assert (fact.source_name, fact.relation_type, fact.target_name) == ("Mira", "WORKS_FOR", "Fjord Bank")
    assert fact.to_dict()["valid_from"] == "2026-05-01T00:00:00Z"
    assert fact.fact == "Mira has been with the Fjord Bank since then."
    assert (added.degraded, added.notices, len(server.asked)) == (False, (), 1)
    assert told(server.asked[0])["text"] == TEXT
    assert told(server.asked[0])["written_at"] == "2026-06-03T00:00:00Z"


@pytest.mark.parametrize(
    ("reply", "calls"),
    [
        (good('{"people": []}'), 2),
        (good("I would rather not."), 2),
        (broken(), 1),
        (hang(), 1),
        (dropped(), 1),
        (empty(), 1),
        (bad_json(), 1),
        (truncated(ANSWER), 1),
        (refusal(401, "no such key"), 1),
    ],
)
def test_where_the_model_is_of_no_use_rules_read_and_the_answer_says_so(
    book: Engine, server: ModelServer, reply: Reply, calls: int
) -> None:
    server.rule = lambda _: reply
    added = add(book, "auth.ts depends on token.ts.")
    assert [each.relation_type for each in added.relations] == ["DEPENDS_ON"]
    assert added.degraded
    assert "read by the rules" in added.notices[0]
    assert len(server.asked) == calls
    assert [each.uuid for each in book.graph.search_edges("auth.ts token.ts")] == [added.relations[0].uuid]


def test_a_second_try_is_told_what_was_wrong_with_the_first(book: Engine, server: ModelServer) -> None:
    replies = iter([good('{"people": []}'), good(ANSWER)])
    server.rule = lambda _: next(replies)
    assert not add(book).degraded
    assert 'has no list "entities"' in server.asked[1].document["messages"][-1]["content"]


def test_a_known_episode_is_not_read_again(book: Engine, server: ModelServer) -> None:
    add(book, uuid="e1")
    assert add(book, uuid="e1").outcome == "unchanged"
    assert len(server.asked) == 1
    assert add(book, f"{TEXT} So it is.", uuid="e1").outcome == "replaced"
    assert len(server.asked) == 2


def test_the_store_is_free_while_a_model_thinks(book: Engine, server: ModelServer) -> None:
    """A model takes seconds, and a transaction stops every other writer."""

    def slow(_: Asked) -> Reply:
        with commonplace.open(book.directory) as other:
            other.remember("Another process writes meanwhile", id="meanwhile")
        return good(ANSWER)

    server.rule = slow
    assert not add(book).degraded
    assert book.get("meanwhile").content == "Another process writes meanwhile"


def test_remembering_json_and_the_protocol_ask_no_model(book: Engine, server: ModelServer) -> None:
    book.remember("Mira moved to Oslo in May")
    book.graph.add_episode({"name": "Ana", "employer": "Acme"}, source="json")
    book.graph.add_triplet("Mira", "WORKS_FOR", "Acme")
    answer = book.specialist.handle(
        "TASK REQ:link IN:MEM OUT:MEM_REFS\nENTITY1 auth.ts\nENTITY2 token.ts\nCONTEXT JWT handling\n"
    )
    assert "STATUS OK" in answer
    assert server.asked == []


def test_secrets_are_replaced_before_a_text_is_sent(book: Engine, server: ModelServer) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    add(book, f"{TEXT} The token is {secret}.")
    assert secret not in server.asked[0].prompt


def test_without_a_key_the_rules_read(tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    with commonplace.open(tmp_path / "store") as book:
        added = add(book, "auth.ts depends on token.ts.")
    assert added.degraded
    assert "OPENAI_API_KEY" in added.notices[0]
    assert len(added.relations) == 1


def test_a_model_is_named_by_the_user_and_by_no_project(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone may not have our texts sent anywhere."""
    monkeypatch.setenv("COMMONPLACE_GRAPH_EXTRACTOR", "gpt-4o")
    with pytest.raises(SettingsError, match=r"graph\.extractor is 'gpt-4o'"), commonplace.open(tmp_path / "a") as book:
        add(book)
    monkeypatch.delenv("COMMONPLACE_GRAPH_EXTRACTOR")
    (tmp_path / "commonplace.toml").write_text('[graph]\nextractor = "openai:theirs"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"graph\.extractor"), commonplace.open() as book:
        add(book)


def test_the_command_line_shows_that_rules_read(tmp_path: Path, server: ModelServer) -> None:
    server.rule = lambda _: broken()
    runner = CliRunner()
    commonplace.open(tmp_path / "s").close()
    arguments = ["graph", "add", "auth.ts depends on token.ts", "--store", str(tmp_path / "s"), "--json"]
    result = runner.invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["degraded"] is True
