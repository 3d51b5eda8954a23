"""MemoryConfig: the contract's fields and defaults, in both spellings; what is false is not what is absent."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from commonplace.errors import ConfigError
from commonplace.knowledge.config import MemoryConfig

DEFAULTS = {
    "sqliteEnabled": True,
    "sqlitePath": "",
    "vectorEnabled": True,
    "rerankEnabled": True,
    "rerankModel": "gpt-4o-mini",
    "rerankTopK": 10,
    "retrievalFactor": 3,
    "useBatchRerank": True,
}
OTHERS = {
    "sqliteEnabled": False,
    "sqlitePath": "/path/to/memory.db",
    "vectorEnabled": False,
    "rerankEnabled": False,
    "rerankModel": "gpt-4",
    "rerankTopK": 5,
    "retrievalFactor": 2,
    "useBatchRerank": False,
}


def test_the_defaults_are_the_contracts() -> None:
    assert MemoryConfig().to_json() == DEFAULTS == MemoryConfig.from_json("{}").to_json()


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_each_field_is_read_by_itself_in_every_spelling(name: str) -> None:
    """What is false is false, and all else has its default."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    for written in (name, snake, name[0].upper() + name[1:], name.lower()):
        config = MemoryConfig.from_json(json.dumps({written: OTHERS[name]}))
        assert config.to_json() == {**DEFAULTS, name: OTHERS[name]}


def test_python_has_its_own_spelling() -> None:
    config = MemoryConfig(sqlite_enabled=False, rerank_top_k=5)
    assert (config.to_json()["sqliteEnabled"], config.to_json()["rerankTopK"]) == (False, 5)
    assert list(asdict(config)) == [
        "sqlite_enabled",
        "sqlite_path",
        "vector_enabled",
        "rerank_enabled",
        "rerank_model",
        "rerank_top_k",
        "retrieval_factor",
        "use_batch_rerank",
    ]


def test_what_is_written_is_read_again() -> None:
    config = MemoryConfig.from_json(OTHERS)
    assert MemoryConfig.from_json(json.dumps(config.to_json()).encode()) == config


def test_null_is_as_if_it_were_absent() -> None:
    """Other languages write it for a field without a value."""
    assert MemoryConfig.from_json(dict.fromkeys(DEFAULTS)) == MemoryConfig()


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ({"rerankTopk2": 1}, "rerankTopk2", "is unknown; known are sqliteEnabled, "),
        ({"rerankTopK": 1, "rerank_top_k": 1}, "rerank_top_k", "occurs twice; give one spelling"),
        ({"rerankEnabled": "false"}, "rerankEnabled", "is 'false'; give true or false"),
        ({"rerankEnabled": 0}, "rerankEnabled", "is 0; give true or false"),
        ({"rerankTopK": True}, "rerankTopK", "is True; give a whole number"),
        ({"rerankTopK": 0}, "rerankTopK", "is 0; give a whole number from 1 to 1,000"),
        ({"retrievalFactor": 101}, "retrievalFactor", "from 1 to 100"),
        ({"retrievalFactor": 1.5}, "retrievalFactor", "is 1.5; give a whole number"),
        ({"sqlitePath": 1}, "sqlitePath", "give a text"),
        ({"sqlitePath": "a\0b"}, "sqlitePath", "holds a null character"),
        ({"rerankModel": " "}, "rerankModel", "is empty"),
        ("[]", "", "give an object"),
        ("{", "", "is not JSON"),
        (f'{{"rerankTopK": {"9" * 5_000}}}', "", "a number has more than 4,300 digits; correct it"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(document: Any, path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        MemoryConfig.from_json(document)
    assert raised.value.path == path
