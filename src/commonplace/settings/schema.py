"""All settings by section, with description, default and range, and the retrieval strategies of agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass, field, fields, is_dataclass
from commonplace.retention import CURVES, DAY_S, DEFAULT_HALF_LIVES
from commonplace.settings.agents import SECTION, STRATEGIES, ContextSettings, Strategy, strategy_keys
from commonplace.settings.keys import Key, choice, globs, names, number, path, score, switch, text, whole
from commonplace.types import METHODS, RERANK_MODES, SEARCH_FIELDS

MIB: Final = 1024 * 1024
_PROVIDERS: Final = ("openai:", "anthropic:", "ollama:")
_EMBEDDERS: Final = ("static", "minilm", "hashing")
_REMOTE_EMBEDDERS: Final = ("openai:", "ollama:", "text-embedding-")


def _half_life(category: str) -> float:
    days = DEFAULT_HALF_LIVES[category] / DAY_S
    return number(days, 0.001, 36_500.0, f"half-life of a {category}, in days")


def _embedder(default: str, description: str) -> str:
    return choice(default, _EMBEDDERS, description, prefixes=_REMOTE_EMBEDDERS)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Defaults of a search."""

    limit: int = whole(10, 1, 1000, "maximum number of hits")
    method: str = choice("two-stage", METHODS, "how candidates are found and ranked")
    min_score: float | None = score(None, "hits below this score are held back; 'auto' is a low floor, 0 keeps all")
    stage1_limit: int = whole(
        100, 1, 10_000, "maximum number of lexical and of dense candidates; 100 grows with the limit"
    )
    fields: tuple[str, ...] = names(
        tuple(SEARCH_FIELDS), "fields that lexical recall reads", choices=tuple(SEARCH_FIELDS)
    )
    candidate_cache: int = whole(1000, 0, 1_000_000, "maximum number of cached rankings; 0: none")
    candidate_cache_minutes: int = whole(5, 0, 10_080, "minutes until they expire")
    cache_bytes: int = whole(
        256 * 1024,
        0,
        1024 * MIB,
        "maximum bytes of that cache and of the one of embedded questions; a ranking takes some 20 kB",
    )
    retention_weight: float = number(0.0, 0.0, 10.0, "weight of retention in the order of memories; 0: none")


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Which files are indexed, and how they are cut."""

    enabled: str = switch(
        "on",
        "whether files are indexed; off: `index build` reads none, and a search finds indexed ones only if asked to",
    )
    include: tuple[str, ...] = globs((), "files to index; empty: the usual kinds of text")
    max_file_bytes: int = whole(MIB, 1, 1024 * MIB, "larger files are skipped and counted")
    chunk_tokens: int = whole(512, 16, 8192, "maximum tokens of a passage")
    chunk_overlap: int = whole(
        50, 0, 4096, "tokens shared by neighbouring passages of a section; less than half of chunk_tokens"
    )
    watch: str = switch("off", "whether `commonplace mcp` follows changes of the project's files", project=False)
    export_path: str = path("", "file below the project that `index export` writes; empty: standard output")
    export_embeddings: str = path("", "directory below the project for its vectors; empty: none")


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """Memories and their retention."""

    curve: str = choice("power_law", CURVES, "curve of retention")
    half_life_preference: float = _half_life("preference")
    half_life_decision: float = _half_life("decision")
    half_life_context: float = _half_life("context")
    half_life_fact: float = _half_life("fact")
    rise: str = switch("on", "whether three uses in seven days raise a memory's tier")
    mirror: str = switch("on", "whether Markdown pages are synchronized automatically; off: only by `commonplace sync`")
    max_bytes: int = whole(MIB, 1, 16 * MIB, "maximum bytes of a memory in UTF-8")
    gc_after: float = number(30.0, 0.0, 36_500.0, "days after which `gc` deletes archived memories")


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """The graph of entities and facts."""

    remember: str = switch("on", "whether memories feed the graph")
    entity_types: tuple[str, ...] = names((), "additional types of entities")
    relation_types: tuple[str, ...] = names((), "additional types of facts")
    single_valued: tuple[str, ...] = names(
        (), "additional types with one value at a time, so that a newer fact ends an older one"
    )
    extractor: str = choice(
        "rules",
        ("rules",),
        "what extracts facts from episodes: rules, or this language model",
        prefixes=_PROVIDERS,
        project=False,
    )
    backend: str = choice(
        "local",
        ("local", "graphiti-mcp"),
        "what answers graph queries: this store, or Graphiti's MCP server, which is sent what is added",
        project=False,
    )
    graph_uri: str = text(
        "",
        "address of Graphiti's MCP server, such as http://localhost:8000/mcp, or the command that starts it; with "
        "`server`, the address of its database",
        project=False,
        environment="COMMONPLACE_GRAPH_URI",
    )
    graph_user: str = text(
        "",
        "user name there; the password is COMMONPLACE_GRAPH_PASSWORD",
        project=False,
        environment="COMMONPLACE_GRAPH_USER",
    )
    server: str = text("", "command that starts Graphiti's MCP server, if graph_uri is its database", project=False)
    group: str = text("main", "Graphiti's group for what has no group here", project=False)
    embedder: str = text("", "embedder of a started server, such as openai; empty: its own setting", project=False)
    llm_provider: str = text("", "language model provider of a started server; empty: its own setting", project=False)
    timeout_s: float = number(
        5.0, 0.1, 600.0, "seconds to wait for Graphiti before the local graph answers", project=False
    )


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """The embedders of a new store; an existing store keeps its own."""

    name: str = choice("", ("", *_EMBEDDERS), "embedder of everything; empty: those below", prefixes=_REMOTE_EMBEDDERS)
    memories: str = _embedder("minilm", "embedder of memories")
    knowledge: str = _embedder("minilm", "embedder of agents' knowledge")
    graph: str = _embedder("minilm", "embedder of entities and facts")
    artifacts: str = _embedder("static", "embedder of files")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Language models and remote embedders. Keys come only from the environment."""

    generator: str = text(
        "", "language model, as openai:<model>, anthropic:<model> or ollama:<model>; empty: none", project=False
    )
    reranker: str = choice(
        "none", RERANK_MODES, "whether a model re-ranks hits, in a call for each or one for all", project=False
    )
    reranker_model: str = text("", "language model that re-ranks; empty: `generator`", project=False)
    openai_url: str = text(
        "", "address of OpenAI's API or a compatible one; empty: OPENAI_BASE_URL, or theirs", project=False
    )
    anthropic_url: str = text("", "address of Anthropic's API; empty: ANTHROPIC_BASE_URL, or theirs", project=False)
    ollama_url: str = text("", "address of Ollama; empty: OLLAMA_HOST, or this machine", project=False)
    timeout_s: float = number(60.0, 0.1, 3600.0, "seconds to wait for the next byte", project=False)
    total_timeout_s: float = number(
        120.0, 0.1, 3600.0, "seconds for a call with all retries, and for all calls of a re-ranking", project=False
    )
    retries: int = whole(3, 0, 10, "retries when the server is busy, fails or cannot be reached", project=False)
    batch_size: int = whole(32, 1, 2048, "texts in one request to a remote embedder")
    embedding_cache: int = whole(5000, 0, 1_000_000, "maximum number of cached question vectors; 0: none")
    embedding_cache_minutes: int = whole(30, 0, 10_080, "minutes until they expire")
    concurrency: int = whole(4, 1, 64, "simultaneous requests", project=False)
    max_calls: int = whole(
        0, 0, 1_000_000_000, "maximum requests of one run, retries included; 0: no limit", project=False
    )
    max_tokens: int = whole(
        0, 0, 1_000_000_000_000, "maximum tokens of one run, sent and received; 0: no limit", project=False
    )


@dataclass(frozen=True, slots=True)
class KnowledgeSettings:
    """Agents' knowledge; a MemoryConfig has the same options."""

    vector: str = switch("on", "whether to use vectors; off: words only")
    rerank: str = switch("on", "whether a language model re-ranks, if there is a key for it", project=False)
    rerank_model: str = text("gpt-4o-mini", "language model that re-ranks", project=False)
    batch_rerank: str = switch("on", "one call for all candidates; off: one for each")
    rerank_top_k: int = whole(10, 1, 1000, "number of texts if no limit is given")
    retrieval_factor: int = whole(3, 1, 100, "candidates for each text")


@dataclass(frozen=True, slots=True)
class SpecSettings:
    """Specs that another spec refers to by `oa://` or an http(s) address."""

    registry: str = path(
        "", "their directory, as namespace/name/version/spec.yaml or host/path; empty: none", project=False
    )
    network: str = switch("off", "whether missing ones are fetched", project=False)


@dataclass(frozen=True, slots=True)
class ConsolidationSettings:
    """Background agents."""

    auto_threshold: float = number(0.9, 0.0, 1.0, "confidence from which an agent acts")
    log_threshold: float = number(
        0.7, 0.0, 1.0, "confidence from which an agent acts and records details; below, an issue waits"
    )
    rate_limit: int = whole(100, 0, 1_000_000, "maximum changes and issues a minute, over all processes; 0: no limit")


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """The issues of consolidation."""

    backend: str = choice(
        "store", ("store", "bd"), "what keeps them: this store, or beads by its program `bd`", project=False
    )
    bd: str = text("bd", "name or path of that program", project=False)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The store and namespace."""

    path: str = text(
        "",
        "directory, or postgresql://…; empty: the nearest `.commonplace` upward from the working directory, else "
        "the one in the user's data directory",
        project=False,
        environment="COMMONPLACE_STORE",
    )
    namespace: str = text("default", "owner of what is stored and searched", environment="COMMONPLACE_NAMESPACE")
    server: str = switch("on", "whether reading commands ask a running server of the store, which is faster")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Files in the store's `logs` directory."""

    level: str = choice("warning", ("debug", "info", "warning", "error", "off"), "least severe message to log")
    queries: str = choice(
        "hash", ("hash", "text", "off"), "how searches are logged: with the query's hash, its text, or not at all"
    )
    max_bytes: int = whole(MIB, 4096, 1024 * MIB, "bytes at which a log file is rotated")
    keep: int = whole(3, 0, 100, "number of rotated log files to keep")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one run, with the origin of each. Made by `load`, which alone finds out which store is meant.

    `Settings()` holds the defaults and names no store: its `store.path` is "".

    Attributes:
        origins: by dotted key, where the value came from: a file's path, "environment variable X", "flag", or how the
            store was found; a key that is absent has its default.
        agents: the strategy of each agent, by name, those that there are without any setting among them.
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
        found: object = getattr(holder, key.name)
        return found

    def all_keys(self) -> tuple[Key, ...]:
        """Return every setting, those of the strategies of the user's own agents among them."""
        own = [key for agent in self.agents if agent not in STRATEGIES for key in strategy_keys(agent)]
        return (*keys(), *own)

    def origin(self, key: Key) -> str:
        """Say where the value of a setting came from."""
        return self.origins.get(key.dotted, "default")


_DEFAULTS: Final = Settings()
SECTIONS: Final[Mapping[str, type]] = {
    item.name: type(section) for item in fields(Settings) if is_dataclass(section := getattr(_DEFAULTS, item.name))
}


def keys() -> tuple[Key, ...]:
    """Return every setting, section by section, in the order of their declaration; of agents those that we name."""
    declared = [
        Key(section, item.name, item.default, item.metadata["rule"])
        for section, kind in SECTIONS.items()
        for item in fields(kind)
    ]
    return (*declared, *(key for agent in STRATEGIES for key in strategy_keys(agent)))


def section_description(section: str) -> str:
    """Return the sentence that says what a section is about."""
    kind = Strategy if section.startswith(f"{SECTION}.") else SECTIONS[section]
    return (kind.__doc__ or "").strip()
