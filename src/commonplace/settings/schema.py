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
    return number(days, 0.001, 36_500.0, f"days in which the retention of a {category} halves")


def _embedder(default: str, description: str) -> str:
    return choice(default, _EMBEDDERS, description, prefixes=_REMOTE_EMBEDDERS)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a search runs when the request does not say."""

    limit: int = whole(10, 1, 1000, "how many hits a search returns")
    method: str = choice("two-stage", METHODS, "how candidates are found and ranked")
    min_score: float | None = score(
        None, "hits below this score are held back; 'auto' is a low floor, 0 keeps everything that was ranked"
    )
    stage1_limit: int = whole(
        100,
        1,
        10_000,
        "how many lexical and dense candidates are taken into the second stage at most, each; 100 grows with the limit",
    )
    fields: tuple[str, ...] = names(
        tuple(SEARCH_FIELDS), "which fields of a passage lexical recall reads", choices=tuple(SEARCH_FIELDS)
    )
    candidate_cache: int = whole(1000, 0, 1_000_000, "how many ranked questions are remembered at most; 0: none")
    candidate_cache_minutes: int = whole(5, 0, 10_080, "minutes for which they are remembered")
    cache_bytes: int = whole(
        256 * 1024,
        0,
        1024 * MIB,
        "the most memory of that cache, and of the one of embedded questions; a ranking takes some 20 kB",
    )
    retention_weight: float = number(
        0.0, 0.0, 10.0, "how much the retention of memories weighs in their order; 0: not at all"
    )


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Which files are indexed, and how they are cut."""

    enabled: str = switch(
        "on",
        "whether files are indexed; off: `index build` reads none, and a search finds those there are only if asked to",
    )
    include: tuple[str, ...] = globs(
        (), "which files of a project are indexed; an empty list means the usual kinds of text"
    )
    max_file_bytes: int = whole(MIB, 1, 1024 * MIB, "larger files are skipped and counted")
    chunk_tokens: int = whole(
        512, 16, 8192, "the most tokens of a passage, counted with the vocabulary that is shipped"
    )
    chunk_overlap: int = whole(
        50, 0, 4096, "tokens that neighbouring passages of one section share; less than half of chunk_tokens"
    )
    watch: str = switch(
        "off", "whether `commonplace mcp` indexes its project again whenever files change", project=False
    )
    export_path: str = path("", "the file that `index export` writes, below the project; empty: standard output")
    export_embeddings: str = path(
        "", "the directory that `index export` writes vectors to, below the project; empty: none are written"
    )


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """What is remembered and how it fades."""

    curve: str = choice("power_law", CURVES, "the curve by which memories fade")
    half_life_preference: float = _half_life("preference")
    half_life_decision: float = _half_life("decision")
    half_life_context: float = _half_life("context")
    half_life_fact: float = _half_life("fact")
    rise: str = switch("on", "whether three uses in seven days move a memory to the next tier")
    mirror: str = switch(
        "on", "whether Markdown and memories follow each other by themselves; off: by `commonplace sync` alone"
    )
    max_bytes: int = whole(MIB, 1, 16 * MIB, "a content with more bytes of UTF-8 is refused")
    gc_after: float = number(30.0, 0.0, 36_500.0, "days after which `gc` deletes what was archived")


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """What the graph of entities and facts is made of."""

    remember: str = switch("on", "whether the graph takes entities and facts from memories too")
    entity_types: tuple[str, ...] = names((), "types of entities of your own, besides those that there are")
    relation_types: tuple[str, ...] = names((), "types of relations of your own, besides those that there are")
    single_valued: tuple[str, ...] = names(
        (),
        "types of relations of which an entity has one at a time, so that a newer fact ends an older one; LIVES_IN, "
        "LOCATED_IN, WORKS_FOR and DECIDED are so already",
    )
    extractor: str = choice(
        "rules",
        ("rules",),
        "who reads what episodes say: rules, without a model, or the language model of that name",
        prefixes=_PROVIDERS,
        project=False,
    )
    backend: str = choice(
        "local",
        ("local", "graphiti-mcp"),
        "which backend answers graph queries: this store, or Graphiti's MCP server, which is sent what is added",
        project=False,
    )
    graph_uri: str = text(
        "",
        "the address of Graphiti's MCP server, as http://localhost:8000/mcp, or the command that starts it; with "
        "`server`, the address of its database",
        project=False,
        environment="COMMONPLACE_GRAPH_URI",
    )
    graph_user: str = text(
        "",
        "the user that it knows us by; the password is COMMONPLACE_GRAPH_PASSWORD",
        project=False,
        environment="COMMONPLACE_GRAPH_USER",
    )
    server: str = text(
        "", "the command that starts Graphiti's MCP server, where graph_uri is its database", project=False
    )
    group: str = text("main", "the group at Graphiti's of what has no group here", project=False)
    embedder: str = text(
        "", "the embedder of a server that is started, as openai; empty: as it is set up", project=False
    )
    llm_provider: str = text(
        "", "the language model's provider of a server that is started; empty: as it is set up", project=False
    )
    timeout_s: float = number(
        5.0, 0.1, 600.0, "seconds to wait for an answer of Graphiti's, before the local graph answers", project=False
    )


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Which embedders make the vectors of a new store; a store that holds vectors keeps those that made them."""

    name: str = choice(
        "",
        ("", *_EMBEDDERS),
        "the embedder of everything in a store that is created; empty: those of the kinds below",
        prefixes=_REMOTE_EMBEDDERS,
    )
    memories: str = _embedder("minilm", "the embedder of memories")
    knowledge: str = _embedder("minilm", "the embedder of what agents know")
    graph: str = _embedder("minilm", "the embedder of entities and facts")
    artifacts: str = _embedder("static", "the embedder of indexed files")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which language models are asked, where, and at what cost; their keys come from the environment alone."""

    generator: str = text(
        "",
        "the language model, as openai:<model>, anthropic:<model> or ollama:<model>; empty: none",
        project=False,
    )
    reranker: str = choice(
        "none",
        RERANK_MODES,
        "how a search asks a model to re-rank its hits: not at all, by a call for each hit, or by one call for all",
        project=False,
    )
    reranker_model: str = text(
        "", "the language model that re-ranks; empty: the one that `generator` names", project=False
    )
    openai_url: str = text(
        "", "the address of OpenAI's API or of one like it; empty: OPENAI_BASE_URL, or theirs", project=False
    )
    anthropic_url: str = text("", "the address of Anthropic's API; empty: ANTHROPIC_BASE_URL, or theirs", project=False)
    ollama_url: str = text("", "the address of Ollama; empty: OLLAMA_HOST, or this machine", project=False)
    timeout_s: float = number(60.0, 0.1, 3600.0, "seconds to wait for the next byte of an answer", project=False)
    total_timeout_s: float = number(
        120.0,
        0.1,
        3600.0,
        "seconds that one call may take, with all its retries and waits, and all calls of one re-ranking",
        project=False,
    )
    retries: int = whole(
        3, 0, 10, "how often a request is sent again when the server is busy, fails or cannot be reached", project=False
    )
    batch_size: int = whole(32, 1, 2048, "texts in one request to an embedder behind an API")
    embedding_cache: int = whole(5000, 0, 1_000_000, "how many embedded questions are remembered at most; 0: none")
    embedding_cache_minutes: int = whole(30, 0, 10_080, "minutes for which they are remembered")
    concurrency: int = whole(4, 1, 64, "requests under way at the same time", project=False)
    max_calls: int = whole(
        0, 0, 1_000_000_000, "requests that one run may send, retries included; 0: no limit", project=False
    )
    max_tokens: int = whole(
        0,
        0,
        1_000_000_000_000,
        "tokens, sent and received, that one run may spend on models; 0: no limit",
        project=False,
    )


@dataclass(frozen=True, slots=True)
class KnowledgeSettings:
    """How the knowledge of agents is found and put into order; a MemoryConfig says the same to a service of its own."""

    vector: str = switch("on", "whether vectors are made and used; off: knowledge is found by its words alone")
    rerank: str = switch(
        "on",
        "whether a language model puts what was found into a better order, where there is a key for it",
        project=False,
    )
    rerank_model: str = text("gpt-4o-mini", "the language model that does so", project=False)
    batch_rerank: str = switch("on", "whether it is asked once for all candidates; off: once for each")
    rerank_top_k: int = whole(10, 1, 1000, "how many texts a retrieval returns that names no limit")
    retrieval_factor: int = whole(3, 1, 100, "so many times more candidates than texts are found for re-ranking")


@dataclass(frozen=True, slots=True)
class SpecSettings:
    """Where the specs come from that another spec refers to by `oa://` or an http(s) address."""

    registry: str = path(
        "",
        "the directory that holds them, as namespace/name/version/spec.yaml or host/path; empty: none",
        project=False,
    )
    network: str = switch("off", "whether those that it does not hold are fetched", project=False)


@dataclass(frozen=True, slots=True)
class ConsolidationSettings:
    """When the agents of consolidation act by themselves, and how fast."""

    auto_threshold: float = number(0.9, 0.0, 1.0, "the confidence from which an agent acts")
    log_threshold: float = number(
        0.7,
        0.0,
        1.0,
        "the confidence from which an agent acts and records the details; below it, it files an issue and waits",
    )
    rate_limit: int = whole(
        100, 0, 1_000_000, "the most changes and issues a minute, over all processes; 0 is without limit"
    )


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Where the issues of consolidation are kept that people and programs file."""

    backend: str = choice(
        "store", ("store", "bd"), "who keeps them: this store, or beads by its program `bd`", project=False
    )
    bd: str = text("bd", "the program of beads, by its name or path", project=False)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Which store and which part of it a command means."""

    path: str = text(
        "",
        "the store's directory, or postgresql://…; empty: `.commonplace` found upward from the working directory, "
        "else the one in the user's data directory",
        project=False,
        environment="COMMONPLACE_STORE",
    )
    namespace: str = text("default", "the owner of what is stored and searched", environment="COMMONPLACE_NAMESPACE")
    server: str = switch(
        "on", "whether commands that only ask have a running server of the store run them, which takes less time"
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is written to the store's `logs` directory."""

    level: str = choice(
        "warning", ("debug", "info", "warning", "error", "off"), "the least severe message that is logged"
    )
    queries: str = choice(
        "hash",
        ("hash", "text", "off"),
        "how a retrieval log line names its query: its hash, its text, or no line at all",
    )
    max_bytes: int = whole(MIB, 4096, 1024 * MIB, "a log file that reaches this size is put aside")
    keep: int = whole(3, 0, 100, "how many log files that were put aside are kept")


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
