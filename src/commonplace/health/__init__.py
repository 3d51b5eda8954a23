"""The health of a namespace: stale, duplicate, contradictory and orphaned memories."""
