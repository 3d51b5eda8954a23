"""Change a store's embedder: when to switch, not how vectors are made or stored."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.engine.runtime import EngineApi
from commonplace.erasure.receipt import Problem
from commonplace.errors import CommonplaceError, ModelError, ProviderError, StoreBusyError, StoreError, UsageError
from commonplace.ingest.embeddings import reembed
from commonplace.models import cross_encoder, minilm
from commonplace.models.contract import Embedder
from commonplace.models.registry import AbsentEmbedder, by_space, embedder_name, for_kind, is_remote, of_kinds
from commonplace.settings import ModelSettings
from commonplace.settings.paths import UPGRADE_LOCK
from commonplace.store.validate import upgrade_command
from commonplace.types import EMBEDDED_KIND_OF, EmbeddedKind, Embedding

INDEX_WAIT_S: Final = 60.0
"""Seconds that the switch waits for a process that writes the index, before it looks again for passages to embed."""
MAX_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """The result of a change of embedder.

    Attributes:
        before, embedder: the stamps of the old and the new vectors; `before` is "none yet" for a store without any.
        passages: number of passages that got their new vector in this run.
        resumed: number of passages that had it from an earlier run.
        given_up: the stamp of an unfinished change that this one replaced, or "".
    """

    before: str
    embedder: str
    passages: int
    resumed: int
    seconds: float
    given_up: str = ""


class EmbedderApi(EngineApi):
    """Changes the embedder of the store, and examines it. Safe for threads."""

    def upgrade(self, embedder: str | Embedder, kinds: Sequence[EmbeddedKind] | None) -> UpgradeReport:
        started, store = time.perf_counter(), self._store
        target = self._target(embedder, kinds)
        passages = resumed = 0
        with self._exclusive():
            stored_stamp, unfinished = store.embedding(), store.reembedding()
            is_other = unfinished is not None and unfinished.embedding != target.stamp
            abandoned = unfinished.embedding.described() if unfinished is not None and is_other else ""
            if stored_stamp == target.stamp:
                store.drop_reembedding()
            else:
                passages, resumed = self._embed_and_switch(target)
                self._runtime.adopt(target)
                self._runtime.maintenance.update_index()
        old, new = ("none yet" if stamp is None else stamp.described() for stamp in (stored_stamp, target.stamp))
        return UpgradeReport(old, new, passages, resumed, time.perf_counter() - started, abandoned)

    def examine_embedder(self, *, mend: bool) -> list[Problem]:
        """Return what is wrong with the store's embedder: it is missing, damaged, half changed or has no key."""
        findings = []
        for embedder in by_space(self._runtime.embedder):
            error = embedder_error(embedder, self._settings.models)
            if isinstance(embedder, minilm.MinilmEmbedder):
                try:
                    minilm.verify(embedder.directory)
                    cross_encoder.verify(embedder.directory)
                except ModelError as damage:
                    error = damage
            if error is not None:
                findings.append(Problem("embedder", error.args[0], error.remedy))
        if mend:
            self._runtime.backlog.drain(self._runtime.progress)
        under_way = self._store.reembedding()
        if under_way is None:
            return findings
        try:
            with self._exclusive():
                pass
        except StoreError:
            return findings  # a change is running, or none can
        goal, present = under_way.embedding, self._runtime.embedder.stamp
        changed = {kind: owner for owner, kind in EMBEDDED_KIND_OF.items() if goal.of(owner) != present.of(owner)}
        is_part = len(changed) < len(set(EMBEDDED_KIND_OF.values()))
        options, owner = "".join(f" --for {kind}" for kind in changed) if is_part else "", next(iter(changed.values()))
        go_on, give_up = (upgrade_command(f"{stamp.of(owner).name}{options}") for stamp in (goal, present))
        interrupted = (
            f"the change of the embedder to {goal.described()} was interrupted: {under_way.done:,} of"
            f" {under_way.total:,} passages have their new vector; searches use the old ones"
        )
        return [*findings, Problem("embedder", interrupted, f"continue with {go_on}, or cancel with {give_up}")]

    def _target(self, model: str | Embedder, kinds: Sequence[EmbeddedKind] | None) -> Embedder:
        """Return the new embedders: the requested one, and the current ones for kinds that are not named."""
        embedder: Any = model
        if isinstance(model, str):
            try:
                embedder = self._runtime.open_embedder(model, None)
            except (ModelError, ProviderError):
                # The current embedder is unusable here, but an unfinished change can still be abandoned for it.
                if embedder_name(model) != self._runtime.embedder.stamp.name:
                    raise
                embedder = self._runtime.embedder
        if not isinstance(getattr(embedder, "stamp", None), Embedding) or not callable(embedder.embed):
            remedy = "give a name, or an object with `embed` and a `stamp`, see commonplace.models.contract.Embedder"
            raise UsageError(f"the embedder is {embedder!r:.80}", remedy=remedy)
        if kinds is None:
            return embedder  # type: ignore[no-any-return] # it has what an embedder has
        known_kinds = tuple(dict.fromkeys(EMBEDDED_KIND_OF.values()))
        if isinstance(kinds, str) or not set(known_kinds).issuperset(kinds):
            raise UsageError(f"kinds is {kinds!r:.80}", remedy=f"name some of {', '.join(known_kinds)}")
        present = self._runtime.follow()
        return of_kinds(
            {kind: for_kind(embedder if kind in kinds else present, owner) for owner, kind in EMBEDDED_KIND_OF.items()}
        )

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        lock = self._store.lock(self._runtime.directory / UPGRADE_LOCK)
        if not lock.acquire(0):
            raise StoreBusyError(
                "another process is changing the embedder of this store",
                remedy="wait for it; `commonplace index status` shows its progress",
            )
        try:
            yield
        finally:
            lock.release()

    def _embed_and_switch(self, target: Embedder) -> tuple[int, int]:
        """Embed until nothing is left, then switch; return how many got vectors in this run, and how many before."""
        store, index = self._store, self._runtime.index
        try:
            (count, resumed), tries = reembed(store, target, self._runtime.progress), 0
            while True:
                # No process may write an index of the old vectors during the switch.
                if index.claim(INDEX_WAIT_S):
                    try:
                        if store.finish_reembedding(target.stamp):
                            return count, resumed
                    finally:
                        index.release()
                elif (tries := tries + 1) == MAX_TRIES:
                    raise StoreBusyError(
                        f"the index was being written for {MAX_TRIES * INDEX_WAIT_S:g} s",
                        remedy="run it again: what was embedded is kept",
                    )
                count += reembed(store, target, self._runtime.progress)[0]
        except ProviderError as error:
            state = store.reembedding()
            how_far = f", {state.done:,} of {state.total:,} passages have their new vector" if state is not None else ""
            remedy = f"{error.remedy}; " if error.remedy else ""
            raise ProviderError(
                f"the embedder was not changed{how_far}: {error.args[0]}",
                status=error.status,
                remedy=f"{remedy}the same command continues",
            ) from error


def embedder_error(embedder: Embedder, settings: ModelSettings) -> CommonplaceError | None:
    """Return why an embedder cannot be used, as far as is known without calling it."""
    if isinstance(embedder, AbsentEmbedder):
        return embedder.error
    if is_remote(embedder.stamp.name):
        from commonplace.models.providers import access, parse_model_name

        try:
            access(parse_model_name(embedder.stamp.name).provider, settings=settings)
        except CommonplaceError as error:
            return error
    return None
