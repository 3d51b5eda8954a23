"""All settings by section, with description, default and range, and the retrieval strategies of agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass, field, fields, is_dataclass
from commonplace.retention import CURVES, DAY_S, DEFAULT_HALF_LIVES
from commonplace.settings.agents import SECTION, STRATEGIES, Strategy, strategy_keys
from commonplace.settings.keys import Key, setting, switch, user_setting
from commonplace.types import METHODS, RERANK_MODES, SEARCH_FIELDS

MIB: Final = 1024 * 1024
_PROVIDERS: Final = ("openai:", "anthropic:", "ollama:")
_EMBEDDERS: Final = ("static", "minilm", "hashing")
_REMOTE: Final = ("openai:", "ollama:", "text-embedding-")


def _half_life(category: str) -> float:
    days = DEFAULT_HALF_LIVES[category] / DAY_S
    return setting(days, f"half-life of a {category}, in days", 0.001, 36_500.0)


def _embedder(default: str, description: str) -> str:
    return setting(default, description, choices=_EMBEDDERS, prefixes=_REMOTE)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Defaults of a search."""

    limit: int = setting(10, "maximum number of hits", 1, 1000)
    method: str = setting("two-stage", "how candidates are found and ranked", choices=METHODS)
    min_score: float | None = setting(
        None, "lowest score of a hit, 0: any; 'auto': a low floor", 0.0, 1.0, kind="score"
    )
    stage1_limit: int = setting(100, "maximum lexical and dense candidates; 100 grows with the limit", 1, 10_000)
    fields: tuple[str, ...] = setting(SEARCH_FIELDS, "fields that lexical recall reads", choices=SEARCH_FIELDS)
    candidate_cache: int = setting(1000, "maximum number of cached rankings; 0: none", 0, 1_000_000)
    candidate_cache_minutes: int = setting(5, "minutes until they expire", 0, 10_080)
    cache_bytes: int = setting(256 * 1024, "maximum bytes of each cache, of rankings and of questions", 0, 1024 * MIB)
    retention_weight: float = setting(0.0, "weight of retention in the order of memories; 0: none", 0.0, 10.0)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Which files are indexed, and how they are cut."""

    enabled: str = switch("on", "whether files are indexed; off: a search finds artifacts only by `kinds`")
    include: tuple[str, ...] = setting((), "files to index; empty: the usual kinds of text", kind="globs")
    max_file_bytes: int = setting(MIB, "larger files are skipped and counted", 1, 1024 * MIB)
    chunk_tokens: int = setting(512, "maximum tokens of a passage", 16, 8192)
    chunk_overlap: int = setting(50, "tokens shared by neighbours; less than half of chunk_tokens", 0, 4096)
    watch: str = switch("off", "whether `commonplace mcp` follows changes of the project's files", project=False)
    export_path: str = setting("", "file below the project for `index export`; empty: standard output", kind="path")
    export_embeddings: str = setting("", "directory below the project for its vectors; empty: none", kind="path")


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """Memories and their retention."""

    curve: str = setting("power_law", "curve of retention", choices=CURVES)
    half_life_preference: float = _half_life("preference")
    half_life_decision: float = _half_life("decision")
    half_life_context: float = _half_life("context")
    half_life_fact: float = _half_life("fact")
    mirror: str = switch("on", "whether Markdown pages are synchronized automatically; off: only by `commonplace sync`")
    max_bytes: int = setting(MIB, "maximum bytes of a memory in UTF-8", 1, 16 * MIB)
    gc_after: float = setting(30.0, "days after which `gc` deletes archived memories", 0.0, 36_500.0)


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """The graph of entities and facts."""

    remember: str = switch("on", "whether memories feed the graph")
    entity_types: tuple[str, ...] = setting((), "additional types of entities")
    relation_types: tuple[str, ...] = setting((), "additional types of facts")
    single_valued: tuple[str, ...] = setting(
        (), "further types with one value at a time: a newer fact ends an older one"
    )
    extractor: str = user_setting(
        "rules", "what extracts facts: rules, or this language model", choices=("rules",), prefixes=_PROVIDERS
    )
    backend: str = user_setting(
        "local", "what answers graph queries: this store, or Graphiti's MCP server", choices=("local", "graphiti-mcp")
    )
    graph_uri: str = user_setting(
        "",
        "address of Graphiti's MCP server, or its command; with `server`, of its database",
        environment="COMMONPLACE_GRAPH_URI",
    )
    graph_user: str = user_setting(
        "", "user name; its password: COMMONPLACE_GRAPH_PASSWORD", environment="COMMONPLACE_GRAPH_USER"
    )
    server: str = user_setting("", "command that starts Graphiti's MCP server, if graph_uri is its database")
    group: str = user_setting("main", "Graphiti's group for episodes without a group")
    embedder: str = user_setting("", "embedder of a started server; empty: its own")
    llm_provider: str = user_setting("", "language model provider of a started server; empty: its own")
    timeout_s: float = user_setting(5.0, "seconds to wait for Graphiti before the local graph answers", 0.1, 600.0)


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """The embedders of a new store; an existing store keeps its own."""

    name: str = setting("", "embedder of everything; empty: as below", choices=("", *_EMBEDDERS), prefixes=_REMOTE)
    memories: str = _embedder("minilm", "embedder of memories")
    knowledge: str = _embedder("minilm", "embedder of agents' knowledge")
    graph: str = _embedder("minilm", "embedder of entities and facts")
    artifacts: str = _embedder("static", "embedder of files")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Language models and remote embedders. Keys come only from the environment."""

    generator: str = user_setting(
        "", "language model: openai:<model>, anthropic:<model> or ollama:<model>; empty: none"
    )
    reranker: str = user_setting("none", "whether a model re-ranks hits, one by one or together", choices=RERANK_MODES)
    reranker_model: str = user_setting("", "language model that re-ranks; empty: `generator`")
    openai_url: str = user_setting(
        "", "address of OpenAI's API or a compatible one; empty: OPENAI_BASE_URL, else OpenAI"
    )
    anthropic_url: str = user_setting("", "address of Anthropic's API; empty: ANTHROPIC_BASE_URL, else Anthropic")
    ollama_url: str = user_setting("", "address of Ollama; empty: OLLAMA_HOST, or this machine")
    timeout_s: float = user_setting(60.0, "seconds to wait for the next byte", 0.1, 3600.0)
    total_timeout_s: float = user_setting(120.0, "seconds for a call with retries, and a re-ranking", 0.1, 3600.0)
    retries: int = user_setting(3, "retries when the server is busy, fails or cannot be reached", 0, 10)
    batch_size: int = setting(32, "texts in one request to a remote embedder", 1, 2048)
    embedding_cache: int = setting(5000, "maximum number of cached question vectors; 0: none", 0, 1_000_000)
    embedding_cache_minutes: int = setting(30, "minutes until they expire", 0, 10_080)
    concurrency: int = user_setting(4, "simultaneous requests", 1, 64)
    max_calls: int = user_setting(0, "maximum requests of one run, with retries; 0: no limit", 0, 1_000_000_000)
    max_tokens: int = user_setting(0, "maximum tokens of one run, sent and received; 0: no limit", 0, 1_000_000_000_000)


@dataclass(frozen=True, slots=True)
class KnowledgeSettings:
    """Agents' knowledge; a MemoryConfig has the same options."""

    vector: str = switch("on", "whether to use vectors; off: words only")
    rerank: str = switch("on", "whether a language model re-ranks, if there is a key for it", project=False)
    rerank_model: str = user_setting("gpt-4o-mini", "language model that re-ranks")
    batch_rerank: str = switch("on", "one call for all candidates; off: one for each")
    rerank_top_k: int = setting(10, "number of texts if no limit is given", 1, 1000)
    retrieval_factor: int = setting(3, "candidates for each text", 1, 100)


@dataclass(frozen=True, slots=True)
class SpecSettings:
    """Specs that another spec refers to by `oa://` or an http(s) address."""

    registry: str = user_setting(
        "", "directory of namespace/name/version/spec.yaml or host/path; empty: none", kind="path"
    )
    network: str = switch("off", "whether missing ones are fetched", project=False)


@dataclass(frozen=True, slots=True)
class ConsolidationSettings:
    """Background agents."""

    auto_threshold: float = setting(0.9, "confidence from which an agent acts", 0.0, 1.0)
    log_threshold: float = setting(0.7, "confidence to act and note details; below, an issue waits", 0.0, 1.0)
    rate_limit: int = setting(100, "maximum changes and issues a minute, all processes; 0: no limit", 0, 1_000_000)


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """The issues of consolidation."""

    backend: str = user_setting("store", "what keeps them: this store, or beads", choices=("store", "bd"))
    bd: str = user_setting("bd", "name or path of that program")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The store and namespace."""

    path: str = user_setting(
        "",
        "directory, or postgresql://…; empty: the nearest `.commonplace` upward from here, else yours",
        environment="COMMONPLACE_STORE",
    )
    namespace: str = setting("default", "owner of what is stored and searched", environment="COMMONPLACE_NAMESPACE")
    server: str = switch("on", "whether reading commands ask a running server of the store, which is faster")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Files in the store's `logs` directory."""

    level: str = setting("warning", "least severe message to log", choices=("debug", "info", "warning", "error", "off"))
    queries: str = setting(
        "hash", "how searches are logged: by hash, by text, or off, not at all", choices=("hash", "text", "off")
    )


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """Defaults of the context for a task."""

    max_tokens: int = setting(50_000, "maximum tokens", 64, 1_000_000)
    metadata: str = switch("on", "whether each text is labelled with its type, date, origin, trust, …")
    references: str = switch("on", "whether a last line lists its sources, to be mentioned by @")
    on_start: str = switch("on", "whether hooks and MCP prompts get a context")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one run, with the origin of each. Made by `load`, which also finds the store.

    `Settings()` holds the defaults and names no store: its `store.path` is "".

    Attributes:
        origins: by dotted key, where the value came from: a file's path, "environment variable X", "flag", or how the
            store was found; a key that is absent has its default.
        agents: the strategy of each agent, by name, including the built-in ones.
        project: the directory whose `commonplace.toml` was or would be read, None outside a project.
    """

    search: SearchSettings = field(default_factory=SearchSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    graph: GraphSettings = field(default_factory=GraphSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    knowledge: KnowledgeSettings = field(default_factory=KnowledgeSettings)
    specs: SpecSettings = field(default_factory=SpecSettings)
    consolidation: ConsolidationSettings = field(default_factory=ConsolidationSettings)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    log: LogSettings = field(default_factory=LogSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    agents: Mapping[str, Strategy] = field(default_factory=lambda: dict(STRATEGIES))
    origins: Mapping[str, str] = field(default_factory=dict)
    project: Path | None = None

    def value(self, key: Key) -> object:
        """Return the value of a setting."""
        section, _, agent = key.section.partition(".")
        holder = self.agents[agent] if agent else getattr(self, section)
        setting_value: object = getattr(holder, key.name)
        return setting_value

    def all_keys(self) -> tuple[Key, ...]:
        """Return every setting, including the strategies of the user's own agents."""
        agent_keys = [key for agent in self.agents if agent not in STRATEGIES for key in strategy_keys(agent)]
        return (*keys(), *agent_keys)

    def origin(self, key: Key) -> str:
        """Return where the value of a setting came from."""
        return self.origins.get(key.dotted, "default")


_DEFAULTS: Final = Settings()
SECTIONS: Final[Mapping[str, type]] = {
    item.name: type(section) for item in fields(Settings) if is_dataclass(section := getattr(_DEFAULTS, item.name))
}


def keys() -> tuple[Key, ...]:
    """Return every setting by section, in order of declaration; of agents only the built-in ones."""
    declared = [
        Key(section, item.name, item.default, item.metadata["rule"])
        for section, kind in SECTIONS.items()
        for item in fields(kind)
    ]
    return (*declared, *(key for agent in STRATEGIES for key in strategy_keys(agent)))


def section_description(section: str) -> str:
    """Return the sentence that describes a section."""
    kind = Strategy if section.startswith(f"{SECTION}.") else SECTIONS[section]
    return (kind.__doc__ or "").strip()
