"""Examine a store with its index, models and texts, and repair what can be repaired."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from commonplace.dataclasses import dataclass
from commonplace.engine.maintenance import MAX_WAIT_S
from commonplace.engine.open import open_engine
from commonplace.engine.runtime import EngineApi
from commonplace.engine.upgrade import EmbedderApi
from commonplace.erasure.copies import FORGETTING, LEFT_OF_DRAFT, finish_runs
from commonplace.erasure.receipt import Problem
from commonplace.erasure.secrets import PART, SecretScan, interrupted_run
from commonplace.errors import CommonplaceError, ModelError, StoreDamagedError
from commonplace.ingest.index_update import bring_up_to_date, disagreement
from commonplace.ingest.passages import passage_text
from commonplace.ingest.read import normalise
from commonplace.journal.folder import DEFAULT
from commonplace.knowledge.maps import digest_of
from commonplace.models.static import verify_data
from commonplace.store.check import COUNTS
from commonplace.store.drafts import clear_drafts
from commonplace.text.similarity import digest as digest_of_text
from commonplace.types import Chunk, Filter

if TYPE_CHECKING:
    from commonplace.engine.engine import Engine

_MAX_TEXTS: Final = 20
_UNREADABLE: Final = (StoreDamagedError, ValueError)  # raised for UTF-8, JSON or our own packing with one byte changed
_BACKUP: Final = "restore a backup"


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The result of `doctor`; `checked` names what was examined."""

    checked: tuple[str, ...]
    findings: tuple[Problem, ...]

    @property
    def is_healthy(self) -> bool:
        """True if nothing is wrong, or every problem has been mended."""
        return all(finding.mended for finding in self.findings)


class Doctor(EngineApi):
    """Examines one store in all its namespaces."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine._runtime)
        self._engine = engine

    def examine(self, *, mend: bool, secrets: bool) -> DoctorReport:
        """Check everything; with `mend`, rebuild a faulty index, and finish deletions that were left incomplete."""
        # Secrets first: replacing them rewrites rows and index, which are checked below.
        is_wanted = secrets or (mend and interrupted_run(self._store) is not None)
        of_secrets = self._secrets(mend) if is_wanted else []
        findings = self._rows(mend)
        # A text whose length has changed makes the byte counts wrong, too: such findings do not rule out this check.
        if all(finding.mended or COUNTS in finding.problem for finding in findings):
            findings += self._texts()
        try:
            verify_data()
        except ModelError as error:
            findings.append(Problem("model", str(error), "reinstall commonplace"))
        findings += self._index(mend)
        findings += [  # what killed backups, restores and exports left elsewhere
            Problem(
                "drafts",
                f"{draft.path} was {LEFT_OF_DRAFT}; it {draft.why or 'holds what the store held'}",
                draft.remedy or "run `commonplace doctor`",
                draft.state == "removed",
            )
            for draft in clear_drafts(self._runtime.directory, remove=mend)
            if draft.state != "live"
        ]
        try:  # what an interrupted forgetting left, or could not reach
            findings += finish_runs(self._engine._erasure_api.erasure_runtime(), mend=mend)
        except CommonplaceError as error:
            findings.append(Problem.of(FORGETTING, error))
        findings += EmbedderApi(self._runtime).examine_embedder(mend=mend)
        checked = ("store", "model", "index", "drafts", "forgetting", "embedder", *([PART] if is_wanted else []))
        return DoctorReport(checked, (*findings, *of_secrets))

    def _secrets(self, mend: bool) -> list[Problem]:
        engine, runtime = self._engine, self._runtime

        def sync(namespace: str) -> None:
            if runtime.keeps_journal or (self._store.blocks(namespace) and not self._store.is_on_server):
                options = {"settings": self._settings, "clock": runtime.clock}
                with open_engine(engine.directory, namespace, runtime.embedder, **options) as sidecar:  # type: ignore[arg-type]
                    sidecar.sync()

        return SecretScan(engine._erasure_api.erasure_runtime(), runtime.destination, sync).examine(mend=mend)

    def _rows(self, mend: bool) -> list[Problem]:
        """Return what is wrong with the stored data; only what a server's searches read is rebuilt, with `mend`."""
        problems = self._store.check()
        reader = self._store.postings
        stale = {problem for problem in problems if reader and any(claim in problem for claim, _ in reader.claims)}
        left, remedy = problems, "run `commonplace doctor` where the store can be written"
        if mend and reader and stale and not self._store.is_read_only:
            try:
                reader.rebuild()
                left = self._store.check()
            except CommonplaceError as error:
                remedy = str(error)
        return [
            Problem("store", problem, remedy if problem in stale else _BACKUP, problem not in left)
            for problem in dict.fromkeys((*problems, *left))
        ]

    def _texts(self) -> list[Problem]:
        """Return the memories and knowledge items whose text differs from what was written.

        A failing disk, or a program other than ours, changes a text but not its digest and its passages' tokens.
        """
        problems: list[Problem] = []
        for namespace in self._store.namespaces():
            scope = "" if namespace == DEFAULT else f" of the namespace {namespace!r:.80}"
            with self._store.snapshot():
                live = set(self._store.matching_owners(namespace, Filter(kinds=("memory",))))
                for number, id_, digest in self._store.memory_digests(namespace):
                    if wrong := _read(partial(self._wrong_memory, namespace, number, digest)):
                        update = f"write it as it should be with `commonplace update {shlex.quote(id_)} TEXT`, or "
                        remedy = (update if number in live else "") + _BACKUP
                        problems.append(Problem("store", f"memory {id_!r:.80}{scope} {wrong}", remedy))
                for number in self._store.matching_owners(namespace, Filter(kinds=("knowledge",))):
                    if wrong := _read(partial(self._wrong_item, namespace, number)):
                        remedy = f"index the knowledge of that agent again, or {_BACKUP}"
                        problems.append(Problem("store", f"knowledge item {number}{scope} {wrong}", remedy))
        if len(problems) > _MAX_TEXTS:
            remaining = len(problems) - _MAX_TEXTS
            problems[_MAX_TEXTS:] = [Problem("store", f"{remaining:,} more texts differ like these", _BACKUP)]
        return problems

    def _wrong_memory(self, namespace: str, number: int, digest: str) -> str:
        """Return what is wrong with the text of a memory, or "".

        Its passages must be cut from its text, cover all of it, and have the tokens of their own text.
        """
        memory = self._store.memory_records(namespace, [number]).get(number)
        if memory is None:
            return ""
        text, title = memory.record.content, memory.owner.title
        if digest and digest_of_text(text) != digest:
            return "has other words than it was written with"
        numbers = self._store.passages_of(namespace, [number])
        passages = self._store.passages(namespace, numbers).values()
        tokens, tokenize = self._store.tokens(namespace, numbers), self._runtime.tokens.tokenize
        if not _is_cut_from(normalise(text), [passage.chunk for passage in passages]) or any(
            tokenize(passage_text(title, passage.chunk.heading, passage.chunk.text)).astype("<u2", copy=False).tobytes()
            != tokens[passage.number].token_ids
            for passage in passages
        ):
            return "is found by other words than it has"
        return ""

    def _wrong_item(self, namespace: str, number: int) -> str:
        for item in self._store.knowledge(namespace).of_numbers([number]).values():
            if digest_of(item.record.agent, item.record.metadata) != item.record.digest:
                return f"of the agent {item.record.agent!r:.80} has another map than it was written with"
        return ""

    def _index(self, mend: bool) -> list[Problem]:
        """Return what is wrong with the index; failing to read or mend it is a finding too, not an error."""
        if self._store.is_on_server:
            return []
        remedy, is_mended = "rebuild it from the store", False
        try:
            problems = self._index_problems()
        except CommonplaceError as error:
            return [Problem.of("index", error)]
        if problems and mend and self._store.is_read_only:
            remedy = "make the store writable, it is read-only; then rebuild the index from it"
        elif problems and mend:
            try:
                options = {"timeout_s": MAX_WAIT_S, "progress": self._runtime.progress}
                report = bring_up_to_date(self._store, self._runtime.index, rebuild=True, **options)  # type: ignore[arg-type]
                is_mended = report is not None and not self._index_problems()
            except CommonplaceError as error:
                remedy = str(error)
        return [Problem("index", problem, remedy, is_mended) for problem in problems]

    def _index_problems(self) -> list[str]:
        generation = self._runtime.maintenance.reader()
        with self._store.snapshot():
            heads = self._store.heads()
            fault = (generation.fault if heads else "") or disagreement(self._store, generation, heads)
        if fault:
            return [] if self._runtime.maintenance.is_first(generation) else [f"the index {fault}"]
        problems = [f"the index {problem}" for problem in self._runtime.index.verify()] if generation.heads else []
        with self._store.snapshot():
            stored = self._store.counts()["passages"]
            is_held = generation.heads == self._store.heads()
            if not problems and is_held and generation.documents != stored:
                problems.append(f"the index holds {generation.documents} passages where the store has {stored}")
        return problems


def _is_cut_from(text: str, chunks: Sequence[Chunk]) -> bool:
    lines = text.split("\n")
    covered = {number for chunk in chunks for number in range(chunk.start_line, chunk.end_line + 1)}
    return all(number in covered for number, line in enumerate(lines, 1) if line.strip()) and all(
        chunk.text in "\n".join(lines[chunk.start_line - 1 : chunk.end_line]) for chunk in chunks
    )


def _read(check: Callable[[], str]) -> str:
    """Return the result of a check, or why its data cannot be read."""
    try:
        return check()
    except _UNREADABLE as error:
        return f"cannot be read ({error.args[0] if isinstance(error, CommonplaceError) else error})"
