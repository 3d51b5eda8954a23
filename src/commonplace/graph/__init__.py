"""What was true when: episodes, entities and facts through time, over a store."""
