"""The calls of an engine by which a store leaves as a whole and comes back. What they do is in `exchange`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from commonplace.engine.runtime import Runtime
from commonplace.memory.validate import labels, one_of, path_value
from commonplace.settings import Settings

if TYPE_CHECKING:
    from commonplace.exchange.backup import BackupReport
    from commonplace.exchange.export import ExportReport
    from commonplace.exchange.import_ import ImportReport, Rules
    from commonplace.exchange.records import Source


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


class ExchangeApi:
    """Backs up, exports and imports. Safe for threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._namespace = runtime.namespace

    def backup(self, target: str | Path) -> BackupReport:
        from commonplace.exchange.backup import back_up

        file = path_value("target", target)
        self._runtime.before()
        return back_up(
            self._store,
            self._runtime.directory,
            file,
            namespace=self._namespace,
            now=self._runtime.now(),
            progress=self._runtime.progress,
        )

    def export(self, target: str | Path | TextIO, *, kinds: Sequence[str] | None = None) -> ExportReport:
        from commonplace.exchange.export import EXPORTED, export

        chosen = [one_of("kinds", kind, EXPORTED) for kind in labels("kinds", kinds or ())]
        to = target if callable(getattr(target, "write", None)) else path_value("target", target)
        self._runtime.before()
        return export(
            self._store,
            self._namespace,
            to,  # type: ignore[arg-type] # a stream, or else a path
            directory=self._runtime.directory,
            kinds=chosen,
            progress=self._runtime.progress,
        )

    def import_(
        self,
        path: str | Path,
        *,
        format: str = "auto",  # noqa: A002 - the name of the option
        dry_run: bool = False,
        on_conflict: str = "refuse",
        skip_problems: bool = False,
    ) -> ImportReport:
        from commonplace.exchange.import_ import ON_CONFLICT, Rules
        from commonplace.exchange.read import OWN

        policy = one_of("on_conflict", on_conflict, ON_CONFLICT)
        rules = Rules(policy, skip_problems=skip_problems, is_dry_run=dry_run)  # type: ignore[arg-type] # one of them
        source = source_of_import(path, format, self._runtime.settings, self._runtime.now())
        return self.take_in(source, rules, has_graph=source.format == OWN)

    def take_in(self, source: Source, rules: Rules, *, has_graph: bool) -> ImportReport:
        from commonplace.exchange.import_ import ImportRuntime, import_items

        self._runtime.before()
        into = ImportRuntime(
            self._store,
            self._namespace,
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
    from commonplace.engine.graph_input import kinds_of_settings
    from commonplace.exchange.read import source_of

    kinds = kinds_of_settings(settings)
    max_bytes = settings.memory.max_bytes
    return source_of(path_value("path", path).expanduser(), format_, kinds=kinds, now=now, max_bytes=max_bytes)
