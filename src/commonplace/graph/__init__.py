"""The temporal knowledge graph: episodes, entities and facts with the times at which they were true and known."""
