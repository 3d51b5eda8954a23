"""Take an export of Commonplace's graph into graphiti-core and FalkorDB, and print what is there afterwards.

FALKORDB_URI=redis://… OPENAI_BASE_URL=http://… python graphiti_import.py FILE
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from graphiti_backends import DIMENSIONS
from graphiti_core.driver.falkordb_driver import FalkorDriver
from graphiti_core.edges import EntityEdge, EpisodicEdge
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.nodes import EntityNode, EpisodicNode
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk


async def main(file: Path) -> None:
    """Validate every record by graphiti-core's own models, write all of them, and read them back."""
    document = json.loads(file.read_text(encoding="utf-8"))

    def each(model: Any, name: str) -> list[Any]:
        return [model.model_validate(record) for record in document[name]]

    nodes, edges = each(EntityNode, "entity_nodes"), each(EntityEdge, "entity_edges")
    episodes, mentions = each(EpisodicNode, "episodic_nodes"), each(EpisodicEdge, "episodic_edges")
    uri = urlsplit(os.environ["FALKORDB_URI"])
    driver = FalkorDriver(host=uri.hostname or "", port=uri.port or 6379, database="import")
    await driver.build_indices_and_constraints()
    address = OpenAIEmbedderConfig(api_key="none", base_url=os.environ["OPENAI_BASE_URL"], embedding_dim=DIMENSIONS)
    await add_nodes_and_edges_bulk(driver, episodes, mentions, nodes, edges, OpenAIEmbedder(address))
    counts = {}
    for name, pattern in (
        ("episodes", "(n:Episodic)"),
        ("entities", "(n:Entity)"),
        ("relations", "()-[n:RELATES_TO]->()"),
        ("mentions", "()-[n:MENTIONS]->()"),
    ):
        records, _, _ = await driver.execute_query(f"MATCH {pattern} RETURN count(n) AS n")
        counts[name] = records[0]["n"]
    print(json.dumps(counts))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
