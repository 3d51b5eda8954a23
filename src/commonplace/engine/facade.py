"""The engine: everything a library, the command line or a server asks of one store. It holds no rule of ranking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from commonplace.engine.upkeep import DoctorReport, IndexStatus, Upkeep
from commonplace.errors import IndexFaultError
from commonplace.search.constants import ABSTAIN_BELOW, DEFAULT_MIN_SCORE
from commonplace.search.pipeline import Searcher
from commonplace.search.request import Request, chosen
from commonplace.types import Filter

if TYPE_CHECKING:
    from types import TracebackType

    from commonplace.index.directory import Index
    from commonplace.ingest.passages import Destination
    from commonplace.models.contract import Embedder
    from commonplace.models.static import StaticEmbedder
    from commonplace.search.result import SearchResult
    from commonplace.search.trace import Receipt
    from commonplace.settings import Settings
    from commonplace.store.contract import Store
    from commonplace.types import Document, IndexReport, Kind, Method, Progress


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine is made of.

    Attributes:
        directory: the store's directory.
        project: the directory that artifact paths are relative to; None makes them absolute.
        tokens: the static model, for token ids and late interaction, whatever embedder makes the vectors.
    """

    directory: Path
    project: Path | None
    namespace: str
    store: Store
    index: Index
    embedder: Embedder
    tokens: StaticEmbedder
    settings: Settings
    progress: Progress | None


class Engine:
    """One store, seen from one namespace. Safe to call from several threads; made by `commonplace.open`."""

    def __init__(self, parts: Parts) -> None:
        self.directory = parts.directory
        self.project = parts.project
        self.namespace = parts.namespace
        self.settings = parts.settings
        self._store = parts.store
        self._index = parts.index
        self._embedder = parts.embedder
        self._tokens = parts.tokens
        self._progress = parts.progress
        self._searcher = Searcher(parts.store, parts.index, parts.embedder, parts.tokens)
        self._upkeep = Upkeep(parts.directory, parts.store, parts.index, parts.progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release files and connections; calling twice is harmless."""
        self._index.close()
        self._store.close()

    # -- finding ------------------------------------------------------------------------------------------------

    def search(  # noqa: PLR0913 - the options of a facade
        self,
        query: str,
        limit: int | None = None,
        kinds: Sequence[Kind] | None = None,
        method: Method | None = None,
        *,
        min_score: float | None = None,
        types: Sequence[str] | None = None,
        phases: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        paths: Sequence[str] | None = None,
        stage1_limit: int | None = None,
        per_owner: int = 1,
    ) -> SearchResult:
        """Find the passages that answer a query, best first; nothing when nothing is relevant.

        Filters apply before the limit, so that ten hits are returned where ten exist.

        Args:
            query: words, a question, an identifier; never a query language.
            limit: how many hits at most, 1–1000; None is the setting, 10.
            kinds: only hits of these kinds; None is all.
            method: "two-stage" (lexical and dense recall, then late interaction), "bm25" or "semantic".
            min_score: drop hits below it, 0–1; 0 keeps all that was ranked. None is the setting, and where that is
                "auto": no hits at all unless the best one reaches 0.65, then all from 0.40 up.
            types: only artifacts of these types.
            phases: only owners of these phases, and those that have none.
            tags: only owners with one of these tags.
            paths: only artifacts whose path matches one of these globs.
            stage1_limit: candidates that lexical and dense recall bring each, 1–10,000; None is the setting, 100.
            per_owner: how many passages of one artifact or memory may be hits.

        Raises:
            UsageError: a value is out of its range.
        """
        settings = self.settings.search
        floor = settings.min_score if min_score is None else min_score
        # Request checks that kinds and method are what their types say.
        wanted = Filter(
            chosen("kinds", kinds),  # type: ignore[arg-type]
            chosen("types", types),
            chosen("phases", phases),
            chosen("tags", tags),
            chosen("paths", paths),
        )
        request = Request(
            query=query,
            namespace=self.namespace,
            limit=settings.limit if limit is None else limit,
            method=method or settings.method,  # type: ignore[arg-type]
            wanted=wanted,
            min_score=DEFAULT_MIN_SCORE if floor is None else floor,
            abstain_below=ABSTAIN_BELOW if floor is None else 0.0,
            stage1_limit=settings.stage1_limit if stage1_limit is None else stage1_limit,
            per_owner=per_owner,
        )
        return self._answer(request)

    def why(self, result: SearchResult, hit_id: str) -> Receipt:
        """Explain a hit of a result: each signal, what it added, which words matched, and what was rejected.

        Raises:
            NotFoundError: the result has no such hit.
        """
        from commonplace.engine.explaining import explain

        return explain(self._store, result, hit_id)

    # -- indexing -----------------------------------------------------------------------------------------------

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
            root=Path(root).expanduser().absolute(),
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

        report = index_documents(self._destination(), documents, progress=self._progress)
        self._tokens.release()
        return replace(report, notices=self._upkeep.project())

    def index_status(self) -> IndexStatus:
        """Say what the store holds, what the index holds of it, and how large both are."""
        return self._upkeep.status(self.namespace)

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces of this store, sorted."""
        return self._store.namespaces()

    def export_index(self) -> dict[str, Any]:
        """Return the artifacts of this namespace in the form of the auto-retrieval contract's artifact index."""
        return self._upkeep.export(self.namespace)

    def doctor(self, *, mend: bool = True) -> DoctorReport:
        """Check store, index and model data, and mend what can be mended: a faulty index is rebuilt."""
        return self._upkeep.examine(mend=mend)

    def _answer(self, request: Request) -> SearchResult:
        """Search, after mending a faulty index; once more if the fault shows only while it is read."""
        freshness = self._upkeep.freshen(self.namespace)
        generation = self._index.reader()
        try:
            return self._searcher.search(request, notices=freshness.notices, degraded=freshness.is_degraded)
        except IndexFaultError as fault:
            self._index.condemn(str(fault), generation)
        freshness = self._upkeep.freshen(self.namespace)
        return self._searcher.search(request, notices=freshness.notices, degraded=freshness.is_degraded)

    def _destination(self) -> Destination:
        from commonplace.ingest.passages import Destination, Limits

        self._store.set_embedding(self._embedder.stamp)
        limits = Limits(chunk_tokens=self.settings.index.chunk_tokens, chunk_overlap=self.settings.index.chunk_overlap)
        return Destination(
            self._store,
            self._embedder,
            self._tokens.tokenize,
            self.namespace,
            limits,
            after_batch=lambda: self._upkeep.keep_up(self.namespace),
        )
