"""The calls of an engine by which a store leaves as a whole and comes back. What they do is in `exchange`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from commonplace.engine.runtime import Workings
from commonplace.journal.report import SyncReport
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


class Exchanging(Workings):
    """The part of `Engine` that backs up, exports and imports."""

    def backup(self, target: str | Path) -> BackupReport:
        """Write a complete copy of the store to a new file while others read and write, and read it back.

        It holds every namespace, every version and the Markdown, but neither the index, which is built again, nor logs,
        settings and memories of the tier ultra. `commonplace.restore` makes a store of it. The store remembers where it
        is, so that a forgetting can name it: what is forgotten later is still in it.

        Args:
            target: the file; its directory must exist. The file is there only when it is complete and right.

        Raises:
            StoreDamagedError: the store is damaged, or what was written could not be read back.
            StoreError: the file exists already, or cannot be written.
        """
        from commonplace.exchange.backup import back_up

        file = path_value("target", target)
        self._before()
        return back_up(
            self._store,
            self.directory,
            file,
            namespace=self.namespace,
            now=self._now(),
            progress=self._progress,
        )

    def export(self, target: str | Path | TextIO, *, kinds: Sequence[str] | None = None) -> ExportReport:
        """Write what this namespace holds as JSON lines, from one state of the store, while others write.

        Memories come with every version and link, other owners with the passages they were cut into, the graph with its
        episodes, entities and facts and what happened to them. The same content gives the same bytes, whoever exports
        it and when.

        Args:
            target: a file that does not exist yet and is there only when it is complete, or a stream of text.
            kinds: "artifact", "memory", "knowledge", "graph", "ledger"; None is all.

        Raises:
            StoreError: the file exists already, or cannot be written.
            UsageError: a kind is unknown.
        """
        from commonplace.exchange.export import EXPORTED, export

        chosen = [one_of("kinds", kind, EXPORTED) for kind in labels("kinds", kinds or ())]
        to = target if callable(getattr(target, "write", None)) else path_value("target", target)
        self._before()
        return export(
            self._store,
            self.namespace,
            to,  # type: ignore[arg-type] # a stream, or else a path
            directory=self.directory,
            kinds=chosen,
            progress=self._progress,
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
        """Take in an export of Commonplace, or the files of another system, into this namespace.

        Everything is checked first, as `remember` checks it, and nothing is written if anything is refused. What is
        here already, the same words under the same id, stays as it is, with the use that was made of it since:
        importing twice changes nothing, and an import that was cut short is completed by importing again. So it is with
        an entity or a fact of which all that is imported is known here, and perhaps more. Ids, versions and times,
        places in sessions, tiers, status and use are kept. Passages and vectors are made anew, and secrets are
        replaced, so that what is exported from here again is the same up to placeholders. An export of Commonplace
        brings its graph along; what the memories of another system say goes into the graph, as by `remember`, and so do
        the relations that it kept between things, as by `graph.add_triplet`.

        Args:
            format: "commonplace", or another system's name; "auto" looks at the files.
            dry_run: check everything and report what would be done, but write nothing.
            on_conflict: what to do where there is something else under the same id: "refuse" the whole import, "skip"
                what is imported, or "replace" what is here; of a memory that writes a new version.
            skip_problems: leave out what cannot be kept and list it in the report, in place of refusing everything.

        Raises:
            NotFoundError: there is no such file.
            StoreVersionError: a newer Commonplace wrote the export.
            UsageError: the file is damaged, cut off or of an unknown format, something in it cannot be kept, or is here
                with other content. The message says which, and where. Nothing was written.
        """
        from commonplace.exchange.import_ import ON_CONFLICT, Rules
        from commonplace.exchange.read import OWN

        policy = one_of("on_conflict", on_conflict, ON_CONFLICT)
        rules = Rules(policy, skip_problems=skip_problems, is_dry_run=dry_run)  # type: ignore[arg-type] # one of them
        source = source_of_import(path, format, self.settings, self._now())
        return self._take_in(source, rules, has_graph=source.format == OWN)

    def _take_in(self, source: Source, rules: Rules, *, has_graph: bool) -> ImportReport:
        from commonplace.exchange.import_ import ImportRuntime, import_items

        self._before()
        into = ImportRuntime(
            self._store, self.namespace, self._destination, self._now(), self._graph_on, self._feed, has_graph=has_graph
        )
        report = import_items(source, into, rules, progress=self._progress)
        if not rules.is_dry_run:
            self._backlog.drain(self._progress)
            self._tokens.release()
            self._upkeep.project()
            self._after()
        return report


def source_of_import(path: str | Path, format_: str, settings: Settings, now: float) -> Source:
    """Return what stands at a path as something to import; see `exchange.sources.source_of`."""
    from commonplace.engine.graph_input import kinds_of_settings
    from commonplace.exchange.read import source_of

    kinds = kinds_of_settings(settings)
    max_bytes = settings.memory.max_bytes
    return source_of(path_value("path", path).expanduser(), format_, kinds=kinds, now=now, max_bytes=max_bytes)


class Mirroring(Workings):
    """The part of `Engine` that is about Markdown."""

    def sync(self, *, accept: str | Path | None = None) -> SyncReport:
        """Bring the Markdown of this namespace and its memories together now, in both directions.

        Short memories stand in `memory/YYYY-MM-DD.md`, long ones in `MEMORY.md`. What people changed there is taken in:
        an edit is a new version, a new note a new memory, a removed block archives its memory. What both sides changed
        is kept on both: the store's words on the page, the others in a file beside it. With the setting memory.mirror
        this happens by itself, at the next call and soon after a write; pages that somebody has just saved wait then.

        A page that looks damaged, because it holds NUL characters, breaks off, or lacks many entries at once, archives
        nothing: it is written again from the store, and what stood there is kept in a file beside it.

        Args:
            accept: a page that was changed so on purpose, or the file in which it was kept, relative to the store or
                to the working directory: it is taken in as it is.

        Raises:
            NotFoundError: `accept` names neither a page nor a damaged one that was kept.
            UsageError: the file that it names holds NUL characters.
            StoreBusyError: another process was at it for longer than a minute.
            StoreError: the store cannot be written.
        """
        return self._mirror.sync(accept)
