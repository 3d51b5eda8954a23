"""Read an auto-retrieval document into settings.

A document configures the index, the two-stage pipeline and the agents' strategies. Each value becomes the setting of
a dotted key; settings that the document omits keep their values.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from commonplace.errors import ConfigError, UsageError
from commonplace.files import stays_inside
from commonplace.formats.json_values import dotted_path, subpath
from commonplace.formats.yaml import not_json, read_document

MODEL = "static"
MODELS = {MODEL: 256, "text-embedding-3-small": 1536}
"""The dimensions of the vectors of each embedding model that a document may name."""
BM25_PARAMETERS: Mapping[str, float] = {"k1": 1.2, "b": 0.75}
"""The only allowed values of the BM25 parameters."""

_MAX_BYTES = 16 * 1024 * 1024

_INDEX, _PIPELINE = "artifact_index", "retrieval_pipeline"
_EMBEDDING = f"{_INDEX}.embedding_config"
_STAGE_1 = f"{_PIPELINE}.stage_1_keyword"
_CACHING = f"{_PIPELINE}.caching"
_AGENTS = "agent_integration"
_STRATEGIES = f"{_AGENTS}.agent_strategies"

_OVERRIDES = {
    f"{_INDEX}.enabled": "index.enabled",
    f"{_INDEX}.indexable_paths": "index.include",
    f"{_EMBEDDING}.model": "embedder.artifacts",
    f"{_EMBEDDING}.chunk_size": "index.chunk_tokens",
    f"{_EMBEDDING}.chunk_overlap": "index.chunk_overlap",
    f"{_INDEX}.storage.index_path": "index.export_path",
    f"{_INDEX}.storage.embeddings_path": "index.export_embeddings",
    f"{_STAGE_1}.top_k": "search.stage1_limit",
    f"{_STAGE_1}.fields": "search.fields",
    f"{_PIPELINE}.stage_2_semantic.batch_size": "models.batch_size",
    f"{_CACHING}.candidate_cache.max_size": "search.candidate_cache",
    f"{_CACHING}.candidate_cache.ttl_minutes": "search.candidate_cache_minutes",
    f"{_CACHING}.embedding_cache.max_size": "models.embedding_cache",
    f"{_CACHING}.embedding_cache.ttl_minutes": "models.embedding_cache_minutes",
    f"{_PIPELINE}.stage_2_semantic.top_k": "search.limit",
    f"{_AGENTS}.auto_retrieve_on_start": "context.on_start",
    f"{_AGENTS}.context_injection.include_metadata": "context.metadata",
    f"{_AGENTS}.context_injection.include_references": "context.references",
    f"{_AGENTS}.context_injection.max_context_tokens": "context.max_tokens",
}
"""Dotted path of an option in the document → key of the setting."""


def read_auto_retrieval(file: Path) -> dict[str, object]:
    """Read a YAML or JSON file (JSON is YAML) and return its settings by dotted key.

    Raises:
        NotFoundError: the file does not exist.
        ConfigError: the file cannot be read or breaks the schema; `path` locates the fault.
    """
    try:
        return translate(read_document(file, _MAX_BYTES, "a configuration"))
    except ConfigError:
        raise
    except UsageError as error:
        raise ConfigError(error.args[0], path="") from error


def translate(document: object) -> dict[str, object]:
    """Validate a document and return its settings by dotted key.

    Raises:
        ConfigError: the document breaks the schema or requests what Commonplace cannot do.
    """
    for path, problem in not_json(document):
        raise ConfigError(f"{path or 'the document'}: {problem}", path=path)
    schema = load_schema()
    if not isinstance(document, Mapping):
        description = "empty" if document is None else f"{document!r:.60}"
        parts = ", ".join(schema["required"])
        raise ConfigError(f"the document is {description}", path="", remedy=f"give it the parts {parts}")
    errors = Draft202012Validator(schema).iter_errors(document)
    if fault := min(errors, key=lambda error: list(map(str, error.absolute_path)), default=None):
        raise _fault(fault)
    values = dict(_leaves(document, ""))
    _refuse_impossible(values)
    settings = {_OVERRIDES[path]: _value(value) for path, value in values.items() if path in _OVERRIDES}
    if values.get(f"{_PIPELINE}.enabled") is False:
        settings["search.method"] = "bm25"
    agents: set[str] = set()
    for name, strategy in document[_AGENTS].get("agent_strategies", {}).items():
        agent = name.replace("_", "-")  # the spelling in settings
        if agent in agents:
            path = f"{_STRATEGIES}.{name}"
            _refuse(path, "names an agent that is already there under another spelling", "keep one of them")
        agents.add(agent)
        settings |= {f"agents.{agent}.{option}": _value(value) for option, value in strategy.items()}
    return settings


def load_schema() -> dict[str, Any]:
    """Return the JSON schema of the document."""
    text = files("commonplace.formats").joinpath("auto_retrieval.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _fault(error: ValidationError) -> ConfigError:
    """Return the error for a schema fault; the path of an unknown or missing option is its own, not its parent's."""
    path = dotted_path(error.absolute_path)
    instance: Any = error.instance
    schema: Any = error.schema
    if error.validator == "additionalProperties":
        options = list(schema["properties"])
        name = next(str(name) for name in instance if name not in options)
        close = difflib.get_close_matches(name, options, n=1) or options
        path, problem, remedy = subpath(path, name), "is no option", f"did you mean {' or '.join(close)}?"
    elif "propertyNames" in error.absolute_schema_path:
        path, problem = subpath(path, str(instance)), "is no name of an agent"
        remedy = "use letters, digits, - and _, up to 100"
    elif error.validator == "required":
        required: Any = error.validator_value
        name = next(str(name) for name in required if name not in instance)
        path, problem = subpath(path, name), "is missing"
        remedy = f"add it, a value of type {schema['properties'][name]['type']}"
    else:
        return ConfigError(f"{path or 'the document'}: {error.message}", path=path)
    return ConfigError(f"{path} {problem}", path=path, remedy=remedy)


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, subpath(path, name))
    else:
        yield path, value


def _refuse_impossible(values: Mapping[str, object]) -> None:
    """Refuse values that the schema allows but Commonplace does not support."""
    model = str(values.get(f"{_EMBEDDING}.model", MODEL))
    if model not in MODELS:
        remedy = f"use one of {', '.join(MODELS)}; {MODEL!r} needs no key and no download"
        _refuse(f"{_EMBEDDING}.model", f"is {model!r}, which a document cannot ask for", remedy)
    dimensions = values.get(f"{_EMBEDDING}.dimensions", MODELS[model])
    if dimensions != MODELS[model]:
        message = f"is {dimensions}, but the model {model!r} has {MODELS[model]}"
        _refuse(f"{_EMBEDDING}.dimensions", message, f"use {MODELS[model]} or leave it out")
    for name, allowed in BM25_PARAMETERS.items():
        path = f"{_STAGE_1}.bm25_params.{name}"
        if values.get(path, allowed) != allowed:
            reason = (
                f"is {values[path]}; stage 1 meets its target_latency of <50ms by scores that the index computes, "
                f"always with the contract's default, {allowed}, by which the thresholds of agent_strategies are set"
            )
            _refuse(path, reason, "leave it out")
    for path in (f"{_INDEX}.indexable_paths", f"{_INDEX}.storage.index_path", f"{_INDEX}.storage.embeddings_path"):
        paths = values.get(path, [])
        for item in paths if isinstance(paths, list) else [paths]:
            if not stays_inside(str(item)):
                _refuse(path, f"holds {item!r}, which lies outside the project", "name something below the project")
    size, overlap = values.get(f"{_EMBEDDING}.chunk_size", 512), values.get(f"{_EMBEDDING}.chunk_overlap", 50)
    if isinstance(size, int | float) and isinstance(overlap, int | float) and overlap * 2 >= size:
        message = f"is {overlap} with a chunk_size of {size}"
        _refuse(f"{_EMBEDDING}.chunk_overlap", message, f"give it at most {math.ceil(size / 2) - 1:.0f}")


def _refuse(path: str, problem: str, remedy: str) -> None:
    raise ConfigError(f"{path} {problem}", path=path, remedy=remedy)


def _value(value: object) -> object:
    """Convert a value to the form of settings: lists to tuples, whole floats to integers, booleans to "on" or "off"."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
