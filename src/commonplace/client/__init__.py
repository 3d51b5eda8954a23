"""A client of a Commonplace server with the methods of the engine."""

from commonplace.client.client import Client

__all__ = ["Client"]
