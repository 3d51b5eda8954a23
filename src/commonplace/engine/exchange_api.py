"""Import what an engine is given, and check what it would be given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.engine.graph_input import kinds_of_settings
from commonplace.engine.runtime import Service
from commonplace.memory.validate import path_value
from commonplace.settings import Settings

if TYPE_CHECKING:
    from commonplace.exchange.import_ import ImportReport, Rules
    from commonplace.exchange.items import Source


def refuse_unfit_import(
    path: str | Path, settings: Settings, *, format_: str = "auto", skip_problems: bool = False
) -> None:
    """Refuse what `Engine.import_` would refuse with nothing stored, so that no store need be made for it.

    Raises:
        NotFoundError: there is no such file.
        StoreVersionError: a newer Commonplace wrote the export.
        UsageError: the file is damaged, cut off or of an unknown format, or something in it cannot be kept.
    """
    from commonplace.exchange.import_ import Rules, refuse_unfit

    refuse_unfit(source_of_import(path, format_, settings, 0.0), Rules(skip_problems=skip_problems))


class ExchangeApi(Service):
    """Imports memories, and moves them to another store. Safe for threads."""

    def take_in(self, source: Source, rules: Rules, *, has_graph: bool) -> ImportReport:
        from commonplace.exchange.import_ import ImportRuntime, import_items

        self._runtime.before()
        into = ImportRuntime(
            self._runtime.store,
            self._runtime.namespace,
            self._runtime.destination,
            self._runtime.now(),
            self._runtime.graph_on,
            self._runtime.feed,
            has_graph=has_graph,
        )
        report = import_items(source, into, rules, progress=self._runtime.progress)
        if not rules.is_dry_run:
            self._runtime.backlog.drain(self._runtime.progress)
            self._runtime.tokens.release()
            self._runtime.maintenance.project()
            self._runtime.after()
        return report


def source_of_import(path: str | Path, format_: str, settings: Settings, now: float) -> Source:
    """Return what stands at a path as something to import; see `exchange.sources.source_of`."""
    from commonplace.exchange.read import source_of

    kinds = kinds_of_settings(settings)
    max_bytes = settings.memory.max_bytes
    return source_of(path_value("path", path).expanduser(), format_, kinds=kinds, now=now, max_bytes=max_bytes)
