"""The facade: one object through which libraries, command line and servers use a store."""

from commonplace.engine.facade import Engine

__all__ = ["Engine"]
