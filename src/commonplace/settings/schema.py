"""All settings by section, with description, default and range."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from commonplace.retention import CURVES, DAY_S, DEFAULT_HALF_LIVES
from commonplace.settings.agents import SECTION, STRATEGIES, ContextSettings, Strategy, strategy_keys
from commonplace.settings.keys import Key, setting
from commonplace.types import METHODS, RERANK_MODES, SEARCH_FIELDS


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """What the graph of entities and facts is made of."""

    remember: str = setting(
        "on", "whether the graph takes entities and facts from memories too", "choice", choices=("on", "off")
    )
    entity_types: tuple[str, ...] = setting((), "types of entities of your own, besides those that there are", "names")
    relation_types: tuple[str, ...] = setting(
        (), "types of relations of your own, besides those that there are", "names"
    )
    single_valued: tuple[str, ...] = setting(
        (),
        "types of relations of which an entity has one at a time, so that a newer fact ends an older one; LIVES_IN, "
        "LOCATED_IN, WORKS_FOR and DECIDED are so already",
        "names",
    )
    extractor: str = setting(
        "rules",
        "who reads what episodes say: rules, without a model, or the language model of that name",
        "choice",
        choices=("rules",),
        prefixes=("openai:", "anthropic:", "ollama:"),
        project=False,
    )
    backend: str = setting(
        "local",
        "which backend answers graph queries: this store, or Graphiti's MCP server, which is sent what is added",
        "choice",
        choices=("local", "graphiti-mcp"),
        project=False,
    )
    graph_uri: str = setting(
        "",
        "the address of Graphiti's MCP server, as http://localhost:8000/mcp, or the command that starts it; with "
        "`server`, the address of its database",
        "text",
        project=False,
        environment="COMMONPLACE_GRAPH_URI",
    )
    graph_user: str = setting(
        "",
        "the user that it knows us by; the password is COMMONPLACE_GRAPH_PASSWORD",
        "text",
        project=False,
        environment="COMMONPLACE_GRAPH_USER",
    )
    server: str = setting(
        "", "the command that starts Graphiti's MCP server, where graph_uri is its database", "text", project=False
    )
    group: str = setting("main", "the group at Graphiti's of what has no group here", "text", project=False)
    embedder: str = setting(
        "", "the embedder of a server that is started, as openai; empty: as it is set up", "text", project=False
    )
    llm_provider: str = setting(
        "", "the language model's provider of a server that is started; empty: as it is set up", "text", project=False
    )
    timeout_s: float = setting(
        5.0,
        "seconds to wait for an answer of Graphiti's, before the local graph answers",
        "number",
        minimum=0.1,
        maximum=600.0,
        project=False,
    )


MIB = 1024 * 1024


def _half_life(category: str) -> float:
    days = DEFAULT_HALF_LIVES[category] / DAY_S
    return setting(
        days, f"days in which the retention of a {category} halves", "number", minimum=0.001, maximum=36_500.0
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a search runs when the request does not say."""

    limit: int = setting(10, "how many hits a search returns", "integer", minimum=1, maximum=1000)
    method: str = setting("two-stage", "how candidates are found and ranked", "choice", choices=METHODS)
    min_score: float | None = setting(
        None,
        "hits below this score are held back; 'auto' is a low floor, 0 keeps everything that was ranked",
        "score",
        minimum=0.0,
        maximum=1.0,
    )
    stage1_limit: int = setting(
        100,
        "how many lexical and dense candidates are taken into the second stage at most, each; 100 grows with the limit",
        "integer",
        minimum=1,
        maximum=10_000,
    )
    fields: tuple[str, ...] = setting(
        tuple(SEARCH_FIELDS), "which fields of a passage lexical recall reads", "names", choices=tuple(SEARCH_FIELDS)
    )
    candidate_cache: int = setting(
        1000, "how many ranked questions are remembered at most; 0: none", "integer", minimum=0, maximum=1_000_000
    )
    candidate_cache_minutes: int = setting(
        5, "minutes for which they are remembered", "integer", minimum=0, maximum=10_080
    )
    cache_bytes: int = setting(
        256 * 1024,
        "the most memory of that cache, and of the one of embedded questions; a ranking takes some 20 kB",
        "integer",
        minimum=0,
        maximum=1024 * MIB,
    )
    retention_weight: float = setting(
        0.0,
        "how much the retention of memories weighs in their order; 0: not at all",
        "number",
        minimum=0.0,
        maximum=10.0,
    )


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Which files are indexed, and how they are cut."""

    enabled: str = setting(
        "on",
        "whether files are indexed; off: `index build` reads none, and a search finds those there are only if asked to",
        "choice",
        choices=("on", "off"),
    )

    include: tuple[str, ...] = setting(
        (), "which files of a project are indexed; an empty list means the usual kinds of text", "globs"
    )
    max_file_bytes: int = setting(MIB, "larger files are skipped and counted", "integer", minimum=1, maximum=1024 * MIB)
    chunk_tokens: int = setting(
        512,
        "the most tokens of a passage, counted with the vocabulary that is shipped",
        "integer",
        minimum=16,
        maximum=8192,
    )
    chunk_overlap: int = setting(
        50,
        "tokens that neighbouring passages of one section share; less than half of chunk_tokens",
        "integer",
        minimum=0,
        maximum=4096,
    )
    watch: str = setting(
        "off",
        "whether `commonplace mcp` indexes its project again whenever files change",
        "choice",
        choices=("on", "off"),
        project=False,
    )
    export_path: str = setting(
        "", "the file that `index export` writes, below the project; empty: standard output", "path"
    )
    export_embeddings: str = setting(
        "", "the directory that `index export` writes vectors to, below the project; empty: none are written", "path"
    )


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """What is remembered and how it fades."""

    curve: str = setting("power_law", "the curve by which memories fade", "choice", choices=CURVES)
    half_life_preference: float = _half_life("preference")
    half_life_decision: float = _half_life("decision")
    half_life_context: float = _half_life("context")
    half_life_fact: float = _half_life("fact")
    rise: str = setting(
        "on", "whether three uses in seven days move a memory to the next tier", "choice", choices=("on", "off")
    )
    mirror: str = setting(
        "on",
        "whether Markdown and memories follow each other by themselves; off: by `commonplace sync` alone",
        "choice",
        choices=("on", "off"),
    )
    max_bytes: int = setting(
        MIB, "a content with more bytes of UTF-8 is refused", "integer", minimum=1, maximum=16 * MIB
    )
    gc_after: float = setting(
        30.0, "days after which `gc` deletes what was archived", "number", minimum=0.0, maximum=36_500.0
    )


_EMBEDDERS: Final = ("static", "minilm", "hashing")
_REMOTE_EMBEDDERS: Final = ("openai:", "ollama:", "text-embedding-")


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Which embedders make the vectors of a new store; a store that holds vectors keeps those that made them."""

    name: str = setting(
        "",
        "the embedder of everything in a store that is created; empty: those of the kinds below",
        "choice",
        choices=("", *_EMBEDDERS),
        prefixes=_REMOTE_EMBEDDERS,
    )
    memories: str = setting(
        "minilm", "the embedder of memories", "choice", choices=_EMBEDDERS, prefixes=_REMOTE_EMBEDDERS
    )
    knowledge: str = setting(
        "minilm", "the embedder of what agents know", "choice", choices=_EMBEDDERS, prefixes=_REMOTE_EMBEDDERS
    )
    graph: str = setting(
        "minilm", "the embedder of entities and facts", "choice", choices=_EMBEDDERS, prefixes=_REMOTE_EMBEDDERS
    )
    artifacts: str = setting(
        "static", "the embedder of indexed files", "choice", choices=_EMBEDDERS, prefixes=_REMOTE_EMBEDDERS
    )


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which language models are asked, where, and at what cost; their keys come from the environment alone."""

    generator: str = setting(
        "",
        "the language model, as openai:<model>, anthropic:<model> or ollama:<model>; empty: none",
        "text",
        project=False,
    )
    reranker: str = setting(
        "none",
        "how a search asks a model to re-rank its hits: not at all, by a call for each hit, or by one call for all",
        "choice",
        choices=RERANK_MODES,
        project=False,
    )
    reranker_model: str = setting(
        "", "the language model that re-ranks; empty: the one that `generator` names", "text", project=False
    )
    openai_url: str = setting(
        "", "the address of OpenAI's API or of one like it; empty: OPENAI_BASE_URL, or theirs", "text", project=False
    )
    anthropic_url: str = setting(
        "", "the address of Anthropic's API; empty: ANTHROPIC_BASE_URL, or theirs", "text", project=False
    )
    ollama_url: str = setting("", "the address of Ollama; empty: OLLAMA_HOST, or this machine", "text", project=False)
    timeout_s: float = setting(
        60.0, "seconds to wait for the next byte of an answer", "number", minimum=0.1, maximum=3600.0, project=False
    )
    total_timeout_s: float = setting(
        120.0,
        "seconds that one call may take, with all its retries and waits, and all calls of one re-ranking",
        "number",
        minimum=0.1,
        maximum=3600.0,
        project=False,
    )
    retries: int = setting(
        3,
        "how often a request is sent again when the server is busy, fails or cannot be reached",
        "integer",
        minimum=0,
        maximum=10,
        project=False,
    )
    batch_size: int = setting(
        32, "texts in one request to an embedder behind an API", "integer", minimum=1, maximum=2048
    )
    embedding_cache: int = setting(
        5000,
        "how many embedded questions are remembered at most; 0: none",
        "integer",
        minimum=0,
        maximum=1_000_000,
    )
    embedding_cache_minutes: int = setting(
        30, "minutes for which they are remembered", "integer", minimum=0, maximum=10_080
    )
    concurrency: int = setting(
        4, "requests under way at the same time", "integer", minimum=1, maximum=64, project=False
    )
    max_calls: int = setting(
        0,
        "requests that one run may send, retries included; 0: no limit",
        "integer",
        minimum=0,
        maximum=1_000_000_000,
        project=False,
    )
    max_tokens: int = setting(
        0,
        "tokens, sent and received, that one run may spend on models; 0: no limit",
        "integer",
        minimum=0,
        maximum=1_000_000_000_000,
        project=False,
    )


@dataclass(frozen=True, slots=True)
class KnowledgeSettings:
    """How the knowledge of agents is found and put into order; a MemoryConfig says the same to a service of its own."""

    vector: str = setting(
        "on",
        "whether vectors are made and used; off: knowledge is found by its words alone",
        "choice",
        choices=("on", "off"),
    )
    rerank: str = setting(
        "on",
        "whether a language model puts what was found into a better order, where there is a key for it",
        "choice",
        choices=("on", "off"),
        project=False,
    )
    rerank_model: str = setting("gpt-4o-mini", "the language model that does so", "text", project=False)
    batch_rerank: str = setting(
        "on", "whether it is asked once for all candidates; off: once for each", "choice", choices=("on", "off")
    )
    rerank_top_k: int = setting(
        10, "how many texts a retrieval returns that names no limit", "integer", minimum=1, maximum=1000
    )
    retrieval_factor: int = setting(
        3, "so many times more candidates than texts are found for re-ranking", "integer", minimum=1, maximum=100
    )


@dataclass(frozen=True, slots=True)
class SpecSettings:
    """Where the specs come from that another spec refers to by `oa://` or an http(s) address."""

    registry: str = setting(
        "",
        "the directory that holds them, as namespace/name/version/spec.yaml or host/path; empty: none",
        "path",
        project=False,
    )
    network: str = setting(
        "off",
        "whether those that it does not hold are fetched",
        "choice",
        choices=("on", "off"),
        project=False,
    )


@dataclass(frozen=True, slots=True)
class ConsolidationSettings:
    """When the agents of consolidation act by themselves, and how fast."""

    auto_threshold: float = setting(0.9, "the confidence from which an agent acts", "number", minimum=0.0, maximum=1.0)
    log_threshold: float = setting(
        0.7,
        "the confidence from which an agent acts and records the details; below it, it files an issue and waits",
        "number",
        minimum=0.0,
        maximum=1.0,
    )
    rate_limit: int = setting(
        100,
        "the most changes and issues a minute, over all processes; 0 is without limit",
        "integer",
        minimum=0,
        maximum=1_000_000,
    )


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Where the issues of consolidation are kept that people and programs file."""

    backend: str = setting(
        "store",
        "who keeps them: this store, or beads by its program `bd`",
        "choice",
        choices=("store", "bd"),
        project=False,
    )
    bd: str = setting("bd", "the program of beads, by its name or path", "text", project=False)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Which store and which part of it a command means."""

    path: str = setting(
        "",
        "the store's directory; empty: `.commonplace` found upward from the working directory, "
        "else the one in the user's data directory",
        "text",
        project=False,
        environment="COMMONPLACE_STORE",
    )
    namespace: str = setting(
        "default", "the owner of what is stored and searched", "text", environment="COMMONPLACE_NAMESPACE"
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is written to the store's `logs` directory."""

    level: str = setting(
        "warning",
        "the least severe message that is logged",
        "choice",
        choices=("debug", "info", "warning", "error", "off"),
    )
    queries: str = setting(
        "hash",
        "how a retrieval log line names its query: its hash, its text, or no line at all",
        "choice",
        choices=("hash", "text", "off"),
    )
    max_bytes: int = setting(
        MIB, "a log file that reaches this size is put aside", "integer", minimum=4096, maximum=1024 * MIB
    )
    keep: int = setting(3, "how many log files that were put aside are kept", "integer", minimum=0, maximum=100)


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


SECTIONS: Mapping[str, type] = {
    "search": SearchSettings,
    "index": IndexSettings,
    "memory": MemorySettings,
    "graph": GraphSettings,
    "embedder": EmbedderSettings,
    "models": ModelSettings,
    "knowledge": KnowledgeSettings,
    "specs": SpecSettings,
    "consolidation": ConsolidationSettings,
    "ledger": LedgerSettings,
    "store": StoreSettings,
    "log": LogSettings,
    "context": ContextSettings,
}


def keys() -> tuple[Key, ...]:
    """Return every setting, section by section, in the order of their declaration; of agents those that we name."""
    declared = [
        Key(section, item.name, item.default, item.metadata["rule"])
        for section, kind in SECTIONS.items()
        for item in dataclasses.fields(kind)
    ]
    return (*declared, *(key for agent in STRATEGIES for key in strategy_keys(agent)))


def section_description(section: str) -> str:
    """Return the sentence that says what a section is about."""
    kind = Strategy if section.startswith(f"{SECTION}.") else SECTIONS[section]
    return (kind.__doc__ or "").strip()
