"""The settings of the graph, with their meanings, defaults and ranges. It does not know where values come from."""

from __future__ import annotations

from dataclasses import dataclass

from commonplace.settings.keys import setting


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
        "who answers questions about the graph: this store, or Graphiti's MCP server, which is told what is added",
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
