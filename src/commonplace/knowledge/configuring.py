"""How a knowledge service is configured: the contract's MemoryConfig, in both spellings. It opens nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from commonplace.errors import ConfigError
from commonplace.formats.guarded_yaml import fault_of

MAX_TOP_K: Final = 1000
MAX_FACTOR: Final = 100
_LIMITS: Final = {"rerank_top_k": MAX_TOP_K, "retrieval_factor": MAX_FACTOR}


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """What a knowledge service uses. In JSON a name is written `rerankTopK`, as in the contract, or `rerank_top_k`.

    Attributes:
        sqlite_enabled: False keeps everything in this process, and nothing on disk.
        sqlite_path: the store's directory, or the `store.db` in it; a name such as `memory.db` is the
            directory `memory` beside it. "" is the engine's own store.
        vector_enabled: False makes and uses no vectors: what is indexed is found by its words.
        rerank_enabled: whether a language model puts what was found into a better order.
        rerank_model: its name; without a provider it is OpenAI's.
        rerank_top_k: how many lines a retrieval returns that names no limit, 1–1000.
        retrieval_factor: so many times more candidates than lines are found for re-ranking, 1–100.
        use_batch_rerank: one call for all candidates, in place of one for each.

    Raises:
        ConfigError: a value is of the wrong kind or out of its range.
    """

    sqlite_enabled: bool = True
    sqlite_path: str = ""
    vector_enabled: bool = True
    rerank_enabled: bool = True
    rerank_model: str = "gpt-4o-mini"
    rerank_top_k: int = 10
    retrieval_factor: int = 3
    use_batch_rerank: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not type(field.default):
                remedy = f"give {_KINDS[type(field.default)]}"
                raise ConfigError(f"{_camel(field.name)} is {value!r:.80}", path=_camel(field.name), remedy=remedy)
        for name, most in _LIMITS.items():
            value = getattr(self, name)
            if not 1 <= value <= most:
                remedy = f"give a whole number from 1 to {most:,}"
                raise ConfigError(f"{_camel(name)} is {value}", path=_camel(name), remedy=remedy)
        if "\0" in self.sqlite_path:
            raise ConfigError("sqlitePath holds a null character", path="sqlitePath", remedy="name a directory")
        if self.rerank_enabled and not self.rerank_model.strip():
            raise ConfigError("rerankModel is empty", path="rerankModel", remedy="name a model, or set rerankEnabled")

    @classmethod
    def from_json(cls, document: object) -> MemoryConfig:
        """Return the configuration in a JSON object, or in one that was parsed already.

        What is absent, or null, has its default; what is false is false. Names are taken in camelCase and snake_case,
        in any case of letters.

        Raises:
            ConfigError: it is no JSON object, or a name is unknown or occurs in two spellings.
        """
        given = document
        if isinstance(given, str | bytes):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError) as error:
                told = f"the configuration is no JSON: {fault_of(error)}"
                raise ConfigError(told, path="", remedy="correct it") from error
        if not isinstance(given, Mapping):
            raise ConfigError(f"the configuration is {given!r:.80}", path="", remedy="give an object")
        known = {_plain(field.name): field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for written, value in given.items():
            name = known.get(_plain(str(written)))
            if name is None:
                names = ", ".join(_camel(field.name) for field in fields(cls))
                raise ConfigError(f"{written!r:.80} is unknown", path=str(written), remedy=f"known are {names}")
            if name in values:
                raise ConfigError(f"{written!r:.80} occurs twice", path=str(written), remedy="give one spelling of it")
            values[name] = value
        return cls(**{name: value for name, value in values.items() if value is not None})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, in the contract's spelling."""
        return {_camel(name): value for name, value in asdict(self).items()}


_KINDS: Final[Mapping[type, str]] = {bool: "true or false", str: "a text", int: "a whole number"}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
