"""An agent's knowledge: maps that are indexed, retrieved and re-ranked for it."""
