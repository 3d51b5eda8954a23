"""The call of an engine that changes the store's embedder: when to switch, not how vectors are made or kept."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.engine.doctor import Problem
from commonplace.engine.runtime import Service
from commonplace.errors import CommonplaceError, ModelError, ProviderError, StoreBusyError, StoreError, UsageError
from commonplace.ingest.embeddings import Reembedded, reembed
from commonplace.models import minilm
from commonplace.models.contract import Embedder
from commonplace.models.registry import AbsentEmbedder, MixedEmbedder, by_space, embedder_name, for_kind, is_remote
from commonplace.settings import ModelSettings
from commonplace.settings.paths import UPGRADE_LOCK
from commonplace.store.writes import upgrade_command
from commonplace.types import EMBEDDED_KIND_OF, EmbeddedKind, Embedding

INDEX_WAIT_S: Final = 60.0
"""How long the switch waits for a process that writes the index, before it looks again for passages to embed."""
MAX_TRIES: Final = 10
SETTLED_AT_ONCE: Final = 2_000
SETTLING_PAUSE_S: Final = 0.05
"""After the switch so many passages are put in order at a time, and others may write in between."""


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
        begun = time.perf_counter()
        target = self._target(embedder)
        if kinds is not None:
            target = self._with(target, kinds)
        with self._alone():
            before = self._runtime.store.embedding()
            under_way = self._runtime.store.reembedding()
            is_other = under_way is not None and under_way.embedding != target.stamp
            given_up = under_way.embedding.described() if under_way is not None and is_other else ""
            if before == target.stamp:
                self._runtime.store.drop_reembedding()
                return UpgradeReport(
                    target.stamp.described(), target.stamp.described(), 0, 0, time.perf_counter() - begun, given_up
                )
            try:
                done = self._embedded_and_switched(target)
            except ProviderError as error:
                raise self._unfinished(error) from error
            self._runtime.adopt(target)
            self._runtime.maintenance.project()
            self._settle()
        was = "none yet" if before is None else before.described()
        return UpgradeReport(
            was, target.stamp.described(), done.made, done.resumed, time.perf_counter() - begun, given_up
        )

    def _unfinished(self, error: ProviderError) -> ProviderError:
        """Return the error of a change that its embedder ended, with how far it came."""
        now = self._runtime.store.reembedding()
        how_far = f", {now.done:,} of {now.total:,} passages have their new vector" if now is not None else ""
        remedy = f"{error.remedy}; " if error.remedy else ""
        return ProviderError(
            f"the embedder was not changed{how_far}: {error.args[0]}",
            status=error.status,
            remedy=f"{remedy}the same command goes on where it was",
        )

    def examine_embedder(self, *, mend: bool) -> list[Problem]:
        """Return what is wrong with the store's embedder: it is missing, damaged, half changed or has no key."""
        findings = []
        for embedder in by_space(self._runtime.embedder):
            error = why_absent(embedder, self._settings.models)
            if isinstance(embedder, minilm.MinilmEmbedder):
                try:
                    minilm.verify(embedder.directory)
                except ModelError as damage:
                    error = damage
            if error is not None:
                findings.append(Problem("embedder", error.args[0], error.remedy))
        if mend:
            self._runtime.backlog.drain(self._runtime.progress)
        return findings + self._unfinished_upgrade(mend=mend)

    def _settle(self) -> None:
        """Put in order what the switch left, a part at a time: everything is found meanwhile."""
        while self._runtime.store.settle_reembedding(SETTLED_AT_ONCE):
            time.sleep(SETTLING_PAUSE_S)

    def _unfinished_upgrade(self, *, mend: bool) -> list[Problem]:
        under_way = self._runtime.store.reembedding()
        if under_way is None:
            if mend:
                self._settle()  # what a run left that was ended after its switch: nothing is wrong with it
            return []
        try:
            with self._alone():
                pass
        except StoreError:
            return []  # somebody is at it, or nobody can be
        goal, present = under_way.embedding, self._runtime.embedder.stamp
        kinds = [kind for owner, kind in EMBEDDED_KIND_OF.items() if goal.of(owner) != present.of(owner)]
        changed = next(owner for owner, kind in EMBEDDED_KIND_OF.items() if kind in kinds)
        is_part = len(set(kinds)) < len(set(EMBEDDED_KIND_OF.values()))
        some = "".join(f" --for {kind}" for kind in dict.fromkeys(kinds)) if is_part else ""
        go_on, give_up = (upgrade_command(f"{each.of(changed).name}{some}") for each in (goal, present))
        return [
            Problem(
                "embedder",
                f"the change of the embedder to {goal.described()} was ended: {under_way.done:,} of"
                f" {under_way.total:,} passages have their new vector; the old ones answer",
                f"go on with {go_on}, or give it up with {give_up}",
            )
        ]

    def _target(self, embedder: str | Embedder) -> Embedder:
        if isinstance(embedder, str):
            try:
                return self._runtime.open_embedder(embedder, None)
            except (ModelError, ProviderError):
                # The present one embeds nothing here; what is under way can be given up for it all the same.
                if embedder_name(embedder) != self._runtime.embedder.stamp.name:
                    raise
                return self._runtime.embedder
        if not isinstance(getattr(embedder, "stamp", None), Embedding) or not callable(embedder.embed):
            remedy = "give a name, or an object with `embed` and a `stamp`, see commonplace.models.contract.Embedder"
            raise UsageError(f"the embedder is {embedder!r:.80}", remedy=remedy)
        return embedder

    def _with(self, target: Embedder, kinds: Sequence[EmbeddedKind]) -> Embedder:
        """Return the present embedders with another one for some kinds."""
        unknown = [kind for kind in kinds if kind not in EMBEDDED_KIND_OF.values()]
        if unknown or isinstance(kinds, str):
            remedy = f"name some of {', '.join(dict.fromkeys(EMBEDDED_KIND_OF.values()))}"
            raise UsageError(f"kinds is {kinds!r:.80}", remedy=remedy)
        self._runtime.follow()
        by_kind = {
            kind: for_kind(target if kind in kinds else self._runtime.embedder, owner_kind)
            for owner_kind, kind in EMBEDDED_KIND_OF.items()
        }
        is_one = len({each.stamp for each in by_kind.values()}) == 1
        return by_kind["memories"] if is_one else MixedEmbedder(by_kind)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = self._runtime.store.lock(self._runtime.directory / UPGRADE_LOCK)
        if not lock.acquire(0):
            raise StoreBusyError(
                "another process is changing the embedder of this store",
                remedy="wait for it; `commonplace index status` tells how far it is",
            )
        try:
            yield
        finally:
            lock.release()

    def _embedded_and_switched(self, target: Embedder) -> Reembedded:
        """Embed until nothing is left, and switch before anything comes."""
        done = reembed(self._runtime.store, target, self._runtime.progress)
        made, tries = done.made, 0
        while True:
            # Nobody may write an index of the old vectors while they become new ones.
            if self._runtime.index.claim(INDEX_WAIT_S):
                try:
                    if self._runtime.store.finish_reembedding(target.stamp):
                        return Reembedded(made, done.resumed)
                finally:
                    self._runtime.index.release()
            elif (tries := tries + 1) == MAX_TRIES:
                raise StoreBusyError(
                    f"the index was being written for {MAX_TRIES * INDEX_WAIT_S:g} s",
                    remedy="run it again: what was embedded is kept",
                )
            made += reembed(self._runtime.store, target, self._runtime.progress).made


def why_absent(embedder: Embedder, settings: ModelSettings) -> CommonplaceError | None:
    """Return why an embedder can embed nothing here, as far as that can be told without asking it."""
    if isinstance(embedder, AbsentEmbedder):
        return embedder.error
    if is_remote(embedder.stamp.name):
        from commonplace.models.providers import access, named

        try:
            access(named(embedder.stamp.name).provider, settings=settings)
        except CommonplaceError as error:
            return error
    return None
