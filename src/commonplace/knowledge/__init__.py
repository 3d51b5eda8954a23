"""An agent's knowledge: maps that are indexed, retrieved and re-ranked for it. It knows no memory and no file."""
