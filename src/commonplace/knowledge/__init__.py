"""Agents' knowledge: index knowledge maps, retrieve and re-rank them."""
