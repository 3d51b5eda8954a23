"""The engine: everything a library, the command line or a server asks of one store. It holds no rule of ranking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from commonplace.engine.consolidating import Consolidating
from commonplace.engine.exchanging import Exchanging
from commonplace.engine.finding import Finding
from commonplace.engine.forgetting import Forgetting
from commonplace.engine.graphing import Graphing
from commonplace.engine.knowing import Knowing
from commonplace.engine.ledgering import Ledgering
from commonplace.engine.mirroring import Mirroring
from commonplace.engine.reading import Reading
from commonplace.engine.relating import Relating
from commonplace.engine.remembering import Remembering
from commonplace.engine.specialising import Specialising
from commonplace.engine.upgrading import Upgrading
from commonplace.errors import UsageError
from commonplace.memories.intake import place, series
from commonplace.search.request import chosen
from commonplace.types import Document

if TYPE_CHECKING:
    from types import TracebackType

    from commonplace.engine.upkeep import DoctorReport, IndexStatus
    from commonplace.types import IndexReport


class Engine(
    Consolidating,
    Graphing,
    Knowing,
    Ledgering,
    Specialising,
    Finding,
    Reading,
    Remembering,
    Relating,
    Mirroring,
    Forgetting,
    Exchanging,
    Upgrading,
):
    """One store, seen from one namespace. Safe to call from several threads; made by `commonplace.open`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def index(
        self, root: str | Path = ".", include: Sequence[str] | None = None, *, force: bool = False
    ) -> IndexReport:
        """Bring the artifacts below a directory into the store: new, changed and removed files since the last time.

        Args:
            root: a directory or a single file.
            include: globs of the files to take, in place of the setting and the default list.
            force: read every file again, changed or not.

        Raises:
            NotFoundError: there is no such directory or file.
            UsageError: a glob is not valid.
        """
        from commonplace.ingest.artifacts import index_root
        from commonplace.ingest.discovery import Selection

        globs = chosen("include", include) or self.settings.index.include
        selection = Selection(
            project=self.project,
            root=place("root", root).expanduser().absolute(),
            include=globs or None,
            max_file_bytes=self.settings.index.max_file_bytes,
            excluded=(self.directory,),
        )
        report = index_root(self._destination(), selection, force=force, progress=self._progress)
        self._tokens.release()
        notices = self._upkeep.project()
        if report.removed and not report.added + report.changed + report.unchanged:
            notices = (f"no file of {root} was chosen, and the {report.removed} that were indexed are gone", *notices)
        return replace(report, notices=notices)

    def index_documents(self, documents: Iterable[Document]) -> IndexReport:
        """Bring texts that are not files into the store, each under its own id; a known id is replaced.

        Documents of one session are given in their order; a later call continues where the session ended.
        """
        from commonplace.ingest.documents import index_documents

        report = index_documents(self._destination(), _checked(documents), progress=self._progress)
        self._tokens.release()
        return replace(report, notices=self._upkeep.project())

    def index_status(self) -> IndexStatus:
        """Say what the store holds, what the index holds of it, and how large both are."""
        return self._upkeep.status(self.namespace)

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces of this store, sorted."""
        return [name for name in self._store.namespaces() if name]  # the notes of the store as a whole have none

    def export_index(self) -> dict[str, Any]:
        """Return the artifacts of this namespace in the form of the auto-retrieval contract's artifact index."""
        return self._upkeep.export(self.namespace)

    def doctor(self, *, mend: bool = True, secrets: bool = False) -> DoctorReport:
        """Check store, index and model data, and mend what can be mended: a faulty index is rebuilt.

        Args:
            secrets: also look for secrets in all that is stored, in every namespace, and in the Markdown pages; with
                `mend` they are replaced by placeholders, and no file of the store holds them any more. A run that was
                ended before it was through is done again, also where this is not asked for.
        """
        from commonplace.engine.opening import open_engine
        from commonplace.engine.secrets import PART, Secrets, was_cut_short

        def sync(namespace: str) -> None:
            if self._follows or self._store.blocks(namespace):
                beside = open_engine(
                    self.directory, namespace, self._embedder, settings=self.settings, clock=self._clock
                )
                with beside:
                    beside.sync()

        is_wanted = secrets or (mend and was_cut_short(self._store))
        found = Secrets(self._place(), self._destination, sync).examine(mend=mend) if is_wanted else []
        report = self._upkeep.examine(mend=mend, pages=self._mirror)
        checked = (*report.checked, "embedder", *([PART] if is_wanted else []))
        of_embedder = self._examine_embedder(mend=mend)
        return replace(report, checked=checked, findings=(*report.findings, *of_embedder, *found))


def _checked(documents: Iterable[Document]) -> Iterator[Document]:
    """Give documents one by one, and refuse what is none."""
    for number, document in enumerate(series("documents", documents), 1):
        if not isinstance(document, Document):
            raise UsageError(f"document {number} is {document!r:.80}", remedy="give a commonplace.Document")
        yield document
