"""The call of an engine that changes the store's embedder: when to switch, not how vectors are made or kept."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.engine.runtime import Service
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
"""How long the switch waits for a process that writes the index, before it looks again for passages to embed."""
MAX_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """The result of a change of embedder.

    Attributes:
        before, embedder: the stamps of the old and the new vectors; `before` is "none yet" of a store without any.
        passages: got their new vector now.
        resumed: had it from an earlier run.
        given_up: the stamp of the change under way that ended with this one, "" for none.
    """

    before: str
    embedder: str
    passages: int
    resumed: int
    seconds: float
    given_up: str = ""


class EmbedderApi(Service):
    """Changes the embedder of the store, and examines it. Safe for threads."""

    def upgrade(self, embedder: str | Embedder, kinds: Sequence[EmbeddedKind] | None) -> UpgradeReport:
        begun, store = time.perf_counter(), self._store
        target = self._target(embedder, kinds)
        passages = resumed = 0
        with self._alone():
            before, under_way = store.embedding(), store.reembedding()
            is_other = under_way is not None and under_way.embedding != target.stamp
            given_up = under_way.embedding.described() if under_way is not None and is_other else ""
            if before == target.stamp:
                store.drop_reembedding()
            else:
                passages, resumed = self._embedded_and_switched(target)
                self._runtime.adopt(target)
                self._runtime.maintenance.project()
        was, now = ("none yet" if each is None else each.described() for each in (before, target.stamp))
        return UpgradeReport(was, now, passages, resumed, time.perf_counter() - begun, given_up)

    def examine_embedder(self, *, mend: bool) -> list[Problem]:
        """Return what is wrong with the store's embedder: it is missing, damaged, half changed or has no key."""
        findings = []
        for embedder in by_space(self._runtime.embedder):
            error = why_absent(embedder, self._settings.models)
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
            with self._alone():
                pass
        except StoreError:
            return findings  # somebody is at it, or nobody can be
        goal, present = under_way.embedding, self._runtime.embedder.stamp
        changed = {kind: owner for owner, kind in EMBEDDED_KIND_OF.items() if goal.of(owner) != present.of(owner)}
        is_part = len(changed) < len(set(EMBEDDED_KIND_OF.values()))
        some, owner = "".join(f" --for {kind}" for kind in changed) if is_part else "", next(iter(changed.values()))
        go_on, give_up = (upgrade_command(f"{each.of(owner).name}{some}") for each in (goal, present))
        interrupted = (
            f"the change of the embedder to {goal.described()} was interrupted: {under_way.done:,} of"
            f" {under_way.total:,} passages have their new vector; searches use the old ones"
        )
        return [*findings, Problem("embedder", interrupted, f"continue with {go_on}, or cancel with {give_up}")]

    def _target(self, asked: str | Embedder, kinds: Sequence[EmbeddedKind] | None) -> Embedder:
        """Return the new embedders: the one asked for, and the present ones for kinds that are not named."""
        embedder: Any = asked
        if isinstance(asked, str):
            try:
                embedder = self._runtime.open_embedder(asked, None)
            except (ModelError, ProviderError):
                # The present one embeds nothing here; what is under way can be given up for it all the same.
                if embedder_name(asked) != self._runtime.embedder.stamp.name:
                    raise
                embedder = self._runtime.embedder
        if not isinstance(getattr(embedder, "stamp", None), Embedding) or not callable(embedder.embed):
            remedy = "give a name, or an object with `embed` and a `stamp`, see commonplace.models.contract.Embedder"
            raise UsageError(f"the embedder is {embedder!r:.80}", remedy=remedy)
        if kinds is None:
            return embedder  # type: ignore[no-any-return] # it has what an embedder has
        known = tuple(dict.fromkeys(EMBEDDED_KIND_OF.values()))
        if isinstance(kinds, str) or not set(known).issuperset(kinds):
            raise UsageError(f"kinds is {kinds!r:.80}", remedy=f"name some of {', '.join(known)}")
        present = self._runtime.follow()
        return of_kinds(
            {kind: for_kind(embedder if kind in kinds else present, owner) for owner, kind in EMBEDDED_KIND_OF.items()}
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
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

    def _embedded_and_switched(self, target: Embedder) -> tuple[int, int]:
        """Embed until nothing is left, and switch; return how many got vectors now, and how many before."""
        store, index = self._store, self._runtime.index
        try:
            (made, resumed), tries = reembed(store, target, self._runtime.progress), 0
            while True:
                # Nobody may write an index of the old vectors while they become new ones.
                if index.claim(INDEX_WAIT_S):
                    try:
                        if store.finish_reembedding(target.stamp):
                            return made, resumed
                    finally:
                        index.release()
                elif (tries := tries + 1) == MAX_TRIES:
                    raise StoreBusyError(
                        f"the index was being written for {MAX_TRIES * INDEX_WAIT_S:g} s",
                        remedy="run it again: what was embedded is kept",
                    )
                made += reembed(store, target, self._runtime.progress)[0]
        except ProviderError as error:
            now = store.reembedding()
            how_far = f", {now.done:,} of {now.total:,} passages have their new vector" if now is not None else ""
            remedy = f"{error.remedy}; " if error.remedy else ""
            raise ProviderError(
                f"the embedder was not changed{how_far}: {error.args[0]}",
                status=error.status,
                remedy=f"{remedy}the same command continues",
            ) from error


def why_absent(embedder: Embedder, settings: ModelSettings) -> CommonplaceError | None:
    """Return why an embedder cannot be used, as far as is known without calling it."""
    if isinstance(embedder, AbsentEmbedder):
        return embedder.error
    if is_remote(embedder.stamp.name):
        from commonplace.models.providers import access, named

        try:
            access(named(embedder.stamp.name).provider, settings=settings)
        except CommonplaceError as error:
            return error
    return None
