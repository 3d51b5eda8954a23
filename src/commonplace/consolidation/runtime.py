"""The runtime that agents share (one namespace's memories, ledger, models, settings), and the contract's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

import commonplace
from commonplace.consolidation.vault import Vault
from commonplace.dataclasses import dataclass, replace
from commonplace.errors import UsageError
from commonplace.ledger.ledger import Ledger
from commonplace.ledger.rate_limit import RateLimiter
from commonplace.memory.validate import fraction
from commonplace.retention import RetentionPolicy
from commonplace.store.store import Store
from commonplace.types import (
    Embedding,
    MemoryRecord,
    MemoryWrite,
    Owner,
    Progress,
    Selection,
    Status,
    StoredMemory,
    Tier,
)

if TYPE_CHECKING:
    from commonplace.consolidation.text_merge import Likeness


@dataclass(frozen=True, slots=True)
class ConsolidationRuntime:
    """The store, ledger, models and settings of an agent.

    Attributes:
        directory: the store's directory.
        vault: the notes of promoted memories; None if the store has no directory.
        now, sleep: returns seconds since the epoch; waits for a number of seconds.
        write_of: makes the passages and vectors of a memory's content.
        stamp: returns the embedder of these vectors.
        calibrated: maps cosines of that embedder's vectors to similarities, 0–1.
        likeness: returns the pairwise similarities, 0–1, of sentences, by that embedder.
        actor: who acts, for the ledger.
        external: the ledger if another program keeps it, else None.
        progress: called with the agent's name, the number of items processed and the total.
        after: called after a write, to update Markdown and the index.
        max_bytes: maximum size of a memory's content.
    """

    store: Store
    namespace: str
    directory: Path
    vault: Vault | None
    retention: RetentionPolicy
    confidence: ConfidenceConfig
    now: Callable[[], float]
    sleep: Callable[[float], None]
    write_of: Callable[[Owner, MemoryRecord], MemoryWrite]
    stamp: Callable[[], Embedding]
    calibrated: Callable[[NDArray[Any]], NDArray[Any]]
    likeness: Likeness
    actor: str
    issues: Ledger
    external: Ledger | None
    after: Callable[[], None]
    progress: Progress
    max_bytes: int

    def consolidation_runtime(self) -> ConsolidationRuntime:
        """Return self, so that a runtime can take an engine's place."""
        return self

    def memories(self, status: Status = "active", tiers: tuple[Tier, ...] = ()) -> list[StoredMemory]:
        """Return the live memories with a status, ordered by id."""
        rows = self.store.memories(self.namespace, Selection(tiers=tiers, statuses=(status,), order="id"))
        return [memory for memory in rows if memory.expired_at is None]

    def pace(self, rate_limit: int) -> RateLimiter:
        """Return a limiter of writes to `rate_limit` operations per minute."""
        return RateLimiter(self.store, self.namespace, self.now, self.sleep, rate_limit)

    @contextmanager
    def dry_run(self) -> Iterator[ConsolidationRuntime]:
        """Yield a runtime over a private copy of the memories and the ledger, for the duration of the block.

        Agents run on it with the same code as in a real run; a separate prediction could differ from it.
        """
        with self.store.scratch_copy() as store:
            if self.external is not None:
                with store.change_memories(self.namespace) as change:
                    for issue in self.external.selected():
                        change.ledger.put_issue(issue)
            yield replace(
                self,
                store=store,
                vault=self.vault and Vault(self.directory, self.namespace, is_dry=True),
                issues=Ledger(store, self.namespace, self.now, self.actor),
                external=None,
                after=lambda: None,
            )


class Book(Protocol):
    """An object that agents can be opened over: an engine, or a runtime."""

    def consolidation_runtime(self) -> ConsolidationRuntime:
        """Return the runtime for agents."""


def runtime_of(book: Book | None) -> ConsolidationRuntime:
    """Return the runtime of an engine, or of the default store if there is none."""
    if book is None:
        return commonplace.open().consolidation_runtime()
    return book.consolidation_runtime()


Decision = Literal["auto", "log", "wait"]


@dataclass(frozen=True, slots=True)
class ConfidenceConfig:
    """Thresholds on confidence, 0–1.

    Attributes:
        auto_threshold: confidence from which an agent acts.
        log_threshold: confidence from which it acts and records the details; below, it files an issue and waits.

    Raises:
        UsageError: a threshold is not a number from 0 to 1, or `log_threshold` is above `auto_threshold`.
    """

    auto_threshold: float = 0.9
    log_threshold: float = 0.7

    def __post_init__(self) -> None:
        for name, value in (("auto_threshold", self.auto_threshold), ("log_threshold", self.log_threshold)):
            fraction(name, value)
        if self.log_threshold > self.auto_threshold:
            raise UsageError(
                f"log_threshold is {self.log_threshold}, above auto_threshold, {self.auto_threshold}",
                remedy="give a log_threshold that is not above auto_threshold",
                parameters=("log_threshold", "auto_threshold"),
            )

    def decide(self, confidence: float) -> Decision:
        """Return the decision for a confidence."""
        if confidence >= self.auto_threshold:
            return "auto"
        return "log" if confidence >= self.log_threshold else "wait"


def create_consolidation_issue(
    agent: str,
    memory_ids: Sequence[str],
    action: str,
    urgency: str = "medium",
    extra_data: Mapping[str, Any] | None = None,
    *,
    book: Book | None = None,
) -> str:
    """File an issue and return its id; if an unfinished one of the same agent names the same memories, return that.

    Args:
        action: what to do, one word.
        extra_data: further JSON values for the notes.

    Raises:
        NotFoundError: a memory does not exist.
        UsageError: there is no such agent or urgency, no memory is named, or `extra_data` is not JSON.
    """
    return runtime_of(book).issues.create(agent, memory_ids, action, urgency, extra_data)


def query_consolidation_issues(
    agent: str | None = None, status: str = "open", urgency: str | None = None, *, book: Book | None = None
) -> list[dict[str, Any]]:
    """Return the issues that match every filter, oldest first: id, title, notes, labels, status and more.

    Raises:
        UsageError: there is no such agent, status or urgency.
    """
    return runtime_of(book).issues.query(agent, status, urgency)


def claim_issue(issue_id: str, *, book: Book | None = None) -> bool:
    """Claim an open issue; return False if others claimed it, or it is blocked or closed.

    Raises:
        NotFoundError: there is no such issue.
    """
    return runtime_of(book).issues.claim(issue_id)


def close_issue(issue_id: str, reason: str, *, book: Book | None = None) -> None:
    """Close an issue.

    Raises:
        NotFoundError: there is no such issue.
        UsageError: it is closed already, or no reason is given.
    """
    runtime_of(book).issues.close(issue_id, reason)


def block_issue(issue_id: str, error: str, *, book: Book | None = None) -> None:
    """Block an issue and append the error to its notes.

    Raises:
        NotFoundError: there is no such issue.
        UsageError: it is closed, or no error is given.
    """
    runtime_of(book).issues.block(issue_id, error)


@dataclass(frozen=True, slots=True)
class Scale:
    """Map the cosine of two stored vectors to a similarity, 0–1, that compares across embedders.

    The scale interpolates linearly between knots, pairs of a cosine and a similarity, both ascending, and is constant
    outside them. A similarity is the lower quartile, not the mean, of human judgements for sentence pairs with that
    cosine: a wrong merge costs more than a missed one. `scripts/ranking/fit_similarity.py` fits the scales on STS-B.
    """

    cosines: tuple[float, ...]
    similarities: tuple[float, ...]

    def __call__(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the similarities, 0–1, of cosines of any shape; NaN counts as cosine -1."""
        numbers = np.where(np.isnan(cosines), -1.0, cosines)
        return np.interp(numbers, self.cosines, self.similarities).astype(np.float32)


KNOTS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 1.0)
"""Cosines at which scales are fitted, densest where merging is decided. Equal vectors have similarity 1."""

_MINILM: Final = Scale(KNOTS, (0.0, 0.0, 0.0, 0.08, 0.16, 0.24, 0.32, 0.45, 0.6, 0.68, 0.72, 0.76, 0.88, 1.0))
BY_EMBEDDER: Final[Mapping[str, Scale]] = {
    "static": Scale(KNOTS, (0.0, 0.0, 0.0, 0.04, 0.12, 0.2, 0.32, 0.44, 0.56, 0.64, 0.707, 0.76, 0.92, 1.0)),
    "minilm": _MINILM,
    # Its cosine measures shared words directly, so it needs no human judgements.
    "hashing": Scale((0.0, 1.0), (0.0, 1.0)),
}


def scale_of(embedder: str) -> Scale:
    """Return the scale of an embedder; an unknown one is assumed to be a sentence transformer like MiniLM."""
    return BY_EMBEDDER.get(embedder, _MINILM)
