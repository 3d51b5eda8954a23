"""The commands of the program by name. A module is loaded when one of its commands is used, or all are listed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

_PLACES = {
    "archive": "remembering:archive",
    "backup": "exchanging:backup",
    "benchmark": "benchmarking:benchmark",
    "consolidate": "consolidating:consolidate",
    "context": "informing:context",
    "csp": "specialising:csp",
    "demo": "demonstrating:demo",
    "doctor": "keeping:doctor",
    "export": "exchanging:export",
    "forget": "forgetting:forget",
    "forget-namespace": "forgetting:forget_namespace",
    "gc": "forgetting:gc",
    "get": "remembering:get",
    "graph": "graphing:graph",
    "health": "health_checking:health",
    "import": "exchanging:import_",
    "index": "indexing:index",
    "init": "keeping:init",
    "knowledge": "knowing:knowledge",
    "ledger": "ledgering:ledger",
    "link": "remembering:link",
    "list": "remembering:list_",
    "logs": "accounting:logs",
    "mcp": "serving:mcp",
    "recall": "recalling:recall",
    "remember": "remembering:remember",
    "restore": "exchanging:restore",
    "restore-memory": "remembering:restore_memory",
    "review": "remembering:review",
    "search": "searching:search",
    "settings": "showing:settings",
    "spec": "specifying:spec",
    "sync": "syncing:sync",
    "touch": "remembering:touch",
    "update": "remembering:update",
    "why": "recalling:why",
}
"""The module of each command below `commonplace.cli`, and its name there."""


class Commands(Mapping[str, "click.Command"]):
    """A mapping as click wants it, whose values are loaded when they are asked for."""

    def __init__(self) -> None:
        self._places = dict(_PLACES)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._places[name].partition(":")
            self._loaded[name] = getattr(import_module(f"commonplace.cli.{module}"), attribute)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
