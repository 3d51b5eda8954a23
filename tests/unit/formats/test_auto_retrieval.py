"""Auto-retrieval documents: what they ask for, and the place of each fault."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import ConfigError, NotFoundError
from commonplace.formats.auto_retrieval import load_schema, read_auto_retrieval, translate
from commonplace.settings import Overrides, Settings, load


def document(**parts: Any) -> dict[str, Any]:
    """Return the smallest document, with parts by their first-level name."""
    return {"version": "1.0.0", "artifact_index": {}, "retrieval_pipeline": {}, "agent_integration": {}, **parts}


def fault(changed: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        translate(changed)
    return caught.value


def test_schema_is_itself_valid() -> None:
    """A schema with a slip in it would accept anything."""
    from jsonschema import Draft202012Validator

    schema = load_schema()
    Draft202012Validator.check_schema(schema)
    assert not Draft202012Validator(schema).is_valid([])


def test_smallest_document_changes_no_setting() -> None:
    """What a document leaves out stays as the user has set it."""
    assert translate(document()) == {}


def test_options_of_index_and_pipeline_become_settings() -> None:
    """The names of the contract and ours differ; the values are the document's."""
    read = translate(
        document(
            artifact_index={
                "enabled": True,
                "indexable_paths": ["docs/**/*.md", "src/**/*.py"],
                "embedding_config": {"model": "static", "dimensions": 256, "chunk_size": 256, "chunk_overlap": 20},
                "storage": {"index_path": "out/index.json", "embeddings_path": "out/vectors/"},
            },
            retrieval_pipeline={
                "stage_1_keyword": {
                    "method": "bm25",
                    "top_k": 200,
                    "fields": ["summary", "tags", "content", "title"],
                    "bm25_params": {"k1": 1.2, "b": 0.75},
                },
                "stage_2_semantic": {"top_k": 5, "similarity_metric": "cosine"},
                "caching": {"candidate_cache": {"max_size": 1000, "ttl_minutes": 5}},
            },
        )
    )
    assert read == {
        "index.include": ("docs/**/*.md", "src/**/*.py"),
        "embedder.artifacts": "static",
        "index.chunk_tokens": 256,
        "index.chunk_overlap": 20,
        "index.export_path": "out/index.json",
        "index.export_embeddings": "out/vectors/",
        "index.enabled": "on",
        "search.fields": ("summary", "tags", "content", "title"),
        "search.candidate_cache": 1000,
        "search.candidate_cache_minutes": 5,
        "search.stage1_limit": 200,
        "search.limit": 5,
    }


def test_every_override_names_a_setting_with_the_value_in_range() -> None:
    """The translation and the settings live apart; a renamed setting must not be found out by a user."""
    from commonplace.formats import auto_retrieval
    from commonplace.settings import keys

    assert set(auto_retrieval._OVERRIDES.values()) <= {key.dotted for key in keys()}


def test_hyphen_and_underscore_name_the_same_agent() -> None:
    """`test-engineer` and `test_engineer` are one agent, which cannot have two strategies."""
    for name in ("test-engineer", "test_engineer"):
        read = translate(document(agent_integration={"agent_strategies": {name: {"top_k": 3}}}))
        assert read == {"agents.test-engineer.top_k": 3}
    both = {"test-engineer": {"top_k": 3}, "test_engineer": {"top_k": 4}}
    found = fault(document(agent_integration={"agent_strategies": both}))
    assert found.path == "agent_integration.agent_strategies.test_engineer"
    assert "another spelling" in str(found)


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"artifact_index": {"embeding_config": {}}}, "artifact_index.embeding_config"),
        ({"artifact_index": {"embedding_config": {"chunk_size": "big"}}}, "artifact_index.embedding_config.chunk_size"),
        ({"artifact_index": {"embedding_config": {"chunk_size": True}}}, "artifact_index.embedding_config.chunk_size"),
        ({"artifact_index": {"indexable_paths": ["a", 1]}}, "artifact_index.indexable_paths[1]"),
        ({"artifact_index": None}, "artifact_index"),
        ({"version": "1"}, "version"),
        ({"retrieval_pipeline": {"stage_1_keyword": {"top_k": 0}}}, "retrieval_pipeline.stage_1_keyword.top_k"),
        ({"retrieval_pipeline": {"stage_2_semantic": {"top_k": 9999}}}, "retrieval_pipeline.stage_2_semantic.top_k"),
        (
            {"agent_integration": {"agent_strategies": {"poet": {"threshold": 2}}}},
            "agent_integration.agent_strategies.poet.threshold",
        ),
        (
            {"agent_integration": {"agent_strategies": {"poet": {"threshold": float("nan")}}}},
            "agent_integration.agent_strategies.poet.threshold",
        ),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_fault_is_named_by_its_dotted_path(changed: dict[str, Any], path: str) -> None:
    """A document has hundreds of lines; the person needs the one."""
    found = fault(document(**changed))
    assert found.path == path
    assert path in str(found)


@pytest.mark.parametrize(
    ("part", "remedy"),
    [
        ("agent_integration", "add it, a value of type object"),
        ("version", "add it, a value of type string"),
    ],
)
def test_missing_part_is_named_with_what_may_stand_there(part: str, remedy: str) -> None:
    """The contract requires four parts; one of them is text, which is never an empty mapping."""
    incomplete = document()
    del incomplete[part]
    found = fault(incomplete)
    assert (found.path, found.remedy) == (part, remedy)


@pytest.mark.parametrize(("value", "told"), [(None, "empty"), ([], "[]"), ("text", "'text'"), (3, "3")])
def test_document_that_is_no_mapping_is_refused_with_what_belongs_there(value: object, told: str) -> None:
    """An empty file is `null` in YAML; whoever named the wrong file is told what the right one holds."""
    parts = "version, artifact_index, retrieval_pipeline, agent_integration"
    assert str(fault(value)) == f"the document is {told}; give it the parts {parts}"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"retrieval_pipeline": {"stage_1_keyword": {"bm25_params": {"k1": 2.0}}}}, "target_latency of <50ms"),
        ({"retrieval_pipeline": {"stage_1_keyword": {"bm25_params": {"b": 0.5}}}}, "contract's default, 0.75"),
        ({"artifact_index": {"embedding_config": {"model": "word2vec"}}}, "use one of static, text-embedding-3-small"),
        (
            {"artifact_index": {"embedding_config": {"model": "text-embedding-3-small", "dimensions": 256}}},
            "is 256, but the model 'text-embedding-3-small' has 1536",
        ),
        ({"artifact_index": {"embedding_config": {"dimensions": 1536}}}, "has 256"),
        ({"artifact_index": {"embedding_config": {"chunk_size": 64, "chunk_overlap": 32}}}, "give it at most 31"),
        ({"artifact_index": {"indexable_paths": ["../other/**"]}}, "outside the project"),
        ({"artifact_index": {"storage": {"index_path": "/etc/x.json"}}}, "outside the project"),
    ],
)
def test_what_commonplace_cannot_do_is_refused_with_reason_and_remedy(changed: dict[str, Any], told: str) -> None:
    """An option that is accepted and ignored is a lie."""
    found = fault(document(**changed))
    assert told in str(found)
    assert found.remedy


def test_yaml_and_json_files_read_alike(tmp_path: Path) -> None:
    """JSON is YAML; the file's name does not matter."""
    stated = document(artifact_index={"indexable_paths": ["a/*.md"]})
    (tmp_path / "a.json").write_text(json.dumps(stated))
    (tmp_path / "a.yaml").write_text(
        'version: "1.0.0"\nartifact_index:\n  indexable_paths: ["a/*.md"]\n'
        "retrieval_pipeline: {}\nagent_integration: {}\n"
    )
    assert read_auto_retrieval(tmp_path / "a.json") == read_auto_retrieval(tmp_path / "a.yaml")


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe\x00", b"1: 2", b"!!python/object:os.system x"])
def test_unreadable_file_is_a_config_error(tmp_path: Path, content: bytes) -> None:
    """Broken YAML, another encoding, keys that are no text, and YAML that would run code."""
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(ConfigError):
        read_auto_retrieval(tmp_path / "a.yaml")


def test_missing_file_is_not_found(tmp_path: Path) -> None:
    """The person mistyped a path; the message repeats it."""
    with pytest.raises(NotFoundError, match=r"nowhere\.yaml"):
        read_auto_retrieval(tmp_path / "nowhere.yaml")


BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &a [*a]\n", "aliases are not allowed"),
        (BOMB, "aliases are not allowed"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "nested too deeply"),
        ("".join(" " * n + "a:\n" for n in range(3000)), "nested too deeply"),
        ("- " * 20_000 + "a\n", "nested too deeply"),
    ],
)
def test_text_that_would_never_be_read_to_its_end_is_refused(tmp_path: Path, text: str, why: str) -> None:
    """A document comes from somebody else; neither a loop nor a bomb in it may hold up or break the program."""
    (tmp_path / "bomb.yaml").write_text(text)
    with pytest.raises(ConfigError, match=why):
        read_auto_retrieval(tmp_path / "bomb.yaml")


# Each option of the auto-retrieval contract: which setting it becomes, or why another value is refused.

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
