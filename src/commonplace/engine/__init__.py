"""The facade: one object through which libraries, command line and servers use a store."""

from commonplace.engine.engine import Engine

__all__ = ["Engine"]
