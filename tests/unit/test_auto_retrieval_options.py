"""Each option of the auto-retrieval contract: which setting it becomes, or why another value is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import ConfigError
from commonplace.formats.auto_retrieval import load_schema, translate
from commonplace.settings import Overrides, Settings, load

TYPES = ("requirement", "architecture", "code")
BECOME_SETTINGS = [
    ("artifact_index.indexable_paths", ["docs/**/*.md"], {"index.include": ("docs/**/*.md",)}),
    ("artifact_index.embedding_config.model", "static", {"embedder.artifacts": "static"}),
    ("artifact_index.embedding_config.chunk_size", 256, {"index.chunk_tokens": 256}),
    ("artifact_index.embedding_config.chunk_overlap", 20, {"index.chunk_overlap": 20}),
    ("artifact_index.storage.index_path", "out/index.json", {"index.export_path": "out/index.json"}),
    ("artifact_index.storage.embeddings_path", "out/vectors/", {"index.export_embeddings": "out/vectors/"}),
    ("retrieval_pipeline.stage_1_keyword.top_k", 200, {"search.stage1_limit": 200}),
    ("retrieval_pipeline.stage_2_semantic.top_k", 5, {"search.limit": 5}),
    ("artifact_index.enabled", False, {"index.enabled": "off"}),
    ("retrieval_pipeline.enabled", False, {"search.method": "bm25"}),
    ("retrieval_pipeline.stage_1_keyword.fields", ["title"], {"search.fields": ("title",)}),
    ("retrieval_pipeline.stage_2_semantic.batch_size", 8, {"models.batch_size": 8}),
    ("retrieval_pipeline.caching.candidate_cache.max_size", 10, {"search.candidate_cache": 10}),
    ("retrieval_pipeline.caching.candidate_cache.ttl_minutes", 0, {"search.candidate_cache_minutes": 0}),
    ("retrieval_pipeline.caching.embedding_cache.max_size", 10, {"models.embedding_cache": 10}),
    ("retrieval_pipeline.caching.embedding_cache.ttl_minutes", 1, {"models.embedding_cache_minutes": 1}),
    ("agent_integration.auto_retrieve_on_start", False, {"context.on_start": "off"}),
    ("agent_integration.context_injection.include_metadata", False, {"context.metadata": "off"}),
    ("agent_integration.context_injection.include_references", False, {"context.references": "off"}),
    ("agent_integration.context_injection.max_context_tokens", 900, {"context.max_tokens": 900}),
    ("agent_integration.agent_strategies.poet.context_types", ["code"], {"agents.poet.context_types": ("code",)}),
    ("agent_integration.agent_strategies.poet.top_k", 3, {"agents.poet.top_k": 3}),
    ("agent_integration.agent_strategies.default.threshold", 0.5, {"agents.default.threshold": 0.5}),
    ("agent_integration.agent_strategies.poet.phase_filter", ["any"], {"agents.poet.phase_filter": ("any",)}),
    ("agent_integration.agent_strategies.poet.tag_filter", [], {"agents.poet.tag_filter": ()}),
]
HAVE_ONE_VALUE: list[tuple[str, Any, Any]] = [
    ("artifact_index.embedding_config.dimensions", 256, 1536),
    ("retrieval_pipeline.stage_1_keyword.method", "bm25", "tf-idf"),
    ("retrieval_pipeline.stage_1_keyword.bm25_params.k1", 1.2, 2.0),
    ("retrieval_pipeline.stage_1_keyword.bm25_params.b", 0.75, 0.5),
    ("retrieval_pipeline.stage_2_semantic.method", "dense-embedding", "cross-encoder"),
    ("retrieval_pipeline.stage_2_semantic.similarity_metric", "cosine", "euclidean"),
    ("agent_integration.context_injection.format", "markdown", "xml"),
]
OUT_OF_RANGE: list[tuple[str, Any]] = [
    ("artifact_index.embedding_config.chunk_size", 15),
    ("retrieval_pipeline.stage_1_keyword.fields", []),
    ("retrieval_pipeline.stage_2_semantic.batch_size", 2049),
    ("retrieval_pipeline.caching.candidate_cache.max_size", -1),
    ("retrieval_pipeline.stage_1_keyword.top_k", 10_001),
    ("retrieval_pipeline.stage_2_semantic.top_k", 1_001),
    ("agent_integration.auto_retrieve_on_start", "yes"),
    ("agent_integration.context_injection.include_metadata", 1),
    ("agent_integration.context_injection.max_context_tokens", 63),
    ("agent_integration.context_injection.max_context_tokens", 1_000_001),
    ("agent_integration.agent_strategies.poet.top_k", 0),
    ("agent_integration.agent_strategies.poet.threshold", 1.01),
    ("agent_integration.agent_strategies.test_engineer.threshold", "high"),
    ("agent_integration.agent_strategies.two words", {}),
    ("agent_integration.agent_strategies.a.b", {}),
]
SAY_WHAT_IS_NOT_FOR_US = ("research_backing", "performance_comparison", "target_latency", "index_schema")


def stating(path: str, value: object) -> dict[str, Any]:
    """Return the smallest document that states one option; the last of its names may have a dot in it."""
    whole: dict[str, Any] = {
        "version": "1.0.0",
        "artifact_index": {},
        "retrieval_pipeline": {},
        "agent_integration": {},
    }
    place, names = whole, path.split(".", 2 if path.endswith("a.b") else -1)
    for name in names[:-1]:
        place = place.setdefault(name, {})
    place[names[-1]] = value
    return whole


def loaded(document: dict[str, Any], directory: Path) -> Settings:
    """Return the settings where a store keeps those of a document."""
    return load(
        {"store.path": str(directory / ".commonplace")},
        overrides=Overrides(translate(document), "retrieval.yaml"),
        environment={},
        user_file=directory / "none.toml",
    )


@pytest.mark.parametrize(("path", "value", "settings"), BECOME_SETTINGS)
def test_an_option_becomes_a_setting_that_takes_its_value(
    path: str, value: object, settings: dict[str, object], tmp_path: Path
) -> None:
    assert translate(stating(path, value)) == settings
    held = loaded(stating(path, value), tmp_path)
    (dotted,) = settings
    (key,) = [key for key in held.all_keys() if key.dotted == dotted]
    assert (held.value(key), held.origin(key)) == (settings[dotted], "retrieval.yaml")


@pytest.mark.parametrize(("path", "value", "other"), HAVE_ONE_VALUE)
def test_an_option_with_one_value_takes_it_and_refuses_every_other(path: str, value: object, other: object) -> None:
    """What is accepted and not done would be a lie."""
    assert translate(stating(path, value)) == {}
    with pytest.raises(ConfigError) as caught:
        translate(stating(path, other))
    assert caught.value.path == path
    assert path in str(caught.value)


@pytest.mark.parametrize(("path", "value"), OUT_OF_RANGE)
def test_a_value_out_of_range_is_refused_by_the_path_of_its_option(path: str, value: object) -> None:
    """A setting's own message would name the setting, which the document does not have."""
    with pytest.raises(ConfigError) as caught:
        translate(stating(path, value))
    assert caught.value.path == path


def leaves(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path of every option of the schema, and what it says of it."""
    for name, inner in schema.get("properties", {}).items():
        own = f"{path}.{name}" if path else name
        if inner["type"] == "object" and "properties" in inner:
            yield from leaves(inner, own)
        else:
            yield own, inner


def test_no_option_of_the_schema_is_left_untried() -> None:
    """An option that is added joins one of the lists above, or is said to have no effect."""
    tried = {path for path, *_ in [*BECOME_SETTINGS, *HAVE_ONE_VALUE]} | {"version", "$schema"}
    options = {path for path, _ in leaves(load_schema())}
    untried = {path for path in options - tried if not any(f".{name}" in path for name in SAY_WHAT_IS_NOT_FOR_US)}
    assert {path for path in untried if ".agent_strategies." not in path} == set()


def test_the_defaults_of_the_schema_are_those_of_the_settings(tmp_path: Path) -> None:
    """A document that spells out every default asks for what everybody has."""
    whole: dict[str, Any] = {
        "version": "1.0.0",
        "artifact_index": {},
        "retrieval_pipeline": {},
        "agent_integration": {},
    }
    for path, option in leaves(load_schema()):
        if "default" in option:
            place, names = whole, path.split(".")
            for name in names[:-1]:
                place = place.setdefault(name, {})
            place[names[-1]] = option["default"]
    held, plain = loaded(whole, tmp_path), Settings()
    assert {key.dotted for key in held.all_keys() if held.value(key) != plain.value(key)} == {"store.path"}
    assert len([key for key in held.all_keys() if held.origin(key) == "retrieval.yaml"]) == 41


def test_the_defaults_are_those_of_the_contract() -> None:
    """Copied from the contract: embedder and paths are the only ones that were decided otherwise."""
    agents = Settings().agents
    assert {name: (s.context_types, s.top_k, s.threshold) for name, s in agents.items()} == {
        "test-engineer": (TYPES, 15, 0.65),
        "security-auditor": (("architecture", "code"), 10, 0.70),
        "api-designer": (("requirement", "architecture"), 8, 0.75),
        "integrator": (("architecture", "test", "documentation"), 12, 0.65),
        "default": ((*TYPES, "test"), 10, 0.70),
    }
    assert agents["test-engineer"].phase_filter == ("elaboration", "construction")
    assert agents["security-auditor"].tag_filter == ("security", "authentication", "authorization")
    others = [s for name, s in agents.items() if name != "test-engineer"]
    assert all(strategy.phase_filter == () for strategy in others)
    assert [name for name, strategy in agents.items() if strategy.tag_filter] == ["security-auditor"]
    context, search, index = Settings().context, Settings().search, Settings().index
    assert (context.max_tokens, context.metadata, context.references, context.on_start) == (50_000, "on", "on", "on")
    assert (search.stage1_limit, search.limit, index.chunk_tokens, index.chunk_overlap) == (100, 10, 512, 50)
