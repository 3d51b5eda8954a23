"""Commonplace: a memory engine for AI agents, in one local directory."""

__version__ = "0.1.0"
