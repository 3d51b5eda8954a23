"""What agents share: the memories of one namespace, the ledger, models and settings."""

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
    """What an agent works with.

    Attributes:
        directory: the store's.
        vault: the notes of what was promoted; None where the store has no directory.
        now, sleep: seconds since the epoch; waits for so many seconds.
        write_of: makes passages and vectors of a memory's words.
        stamp: the embedder of these vectors.
        calibrated: maps cosines of that embedder's vectors to similarity, 0–1.
        likeness: the similarity of each of some sentences to each, 0–1, by that embedder.
        actor: who acts, for the ledger.
        external: the ledger where another program keeps it, else None.
        progress: called with the agent at work, how many of its items are done, and of how many.
        after: lets Markdown and the index follow what was written.
        max_bytes: of a memory's content.
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
        """Return this: agents take it in place of an engine."""
        return self

    def memories(self, status: Status = "active", tiers: tuple[Tier, ...] = ()) -> list[StoredMemory]:
        """Return the live memories with a status, by id."""
        found = self.store.memories(self.namespace, Selection(tiers=tiers, statuses=(status,), order="id"))
        return [each for each in found if each.expired_at is None]

    def pace(self, rate_limit: int) -> RateLimiter:
        """Return what writes within a rate limit, in operations a minute."""
        return RateLimiter(self.store, self.namespace, self.now, self.sleep, rate_limit)

    @contextmanager
    def dry_run(self) -> Iterator[ConsolidationRuntime]:
        """Give a private copy of the memories and the ledger, until the block ends.

        What agents do on it is what they would do here: a prediction that followed rules of its own would err.
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
    """What agents are opened over: an engine, or what it gives them."""

    def consolidation_runtime(self) -> ConsolidationRuntime:
        """Return what agents work with."""


def runtime_of(book: Book | None) -> ConsolidationRuntime:
    """Return what agents of an engine, or of the default store, work with."""
    if book is None:
        return commonplace.open().consolidation_runtime()
    return book.consolidation_runtime()


Decision = Literal["auto", "log", "wait"]


@dataclass(frozen=True, slots=True)
class ConfidenceConfig:
    """Thresholds on confidence, 0–1.

    Attributes:
        auto_threshold: from here on an agent acts.
        log_threshold: from here on it acts and records the details; below, it files an issue and waits.

    Raises:
        UsageError: they are no numbers from 0 to 1, or out of order.
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
        """Return what to do at a confidence."""
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
    """File an issue and return its id; where an unfinished one of the same agent names the same memories, return that.

    Args:
        action: one word: what is to be done.
        extra_data: what the notes say besides; JSON.

    Raises:
        NotFoundError: a memory is not there.
        UsageError: there is no such agent or urgency, no memory is named, or what is added is no JSON.
    """
    return runtime_of(book).issues.create(agent, memory_ids, action, urgency, extra_data)


def query_consolidation_issues(
    agent: str | None = None, status: str = "open", urgency: str | None = None, *, book: Book | None = None
) -> list[dict[str, Any]]:
    """Return the issues that pass every filter, the oldest first: id, title, notes, labels, status and more.

    Raises:
        UsageError: there is no such agent, status or urgency.
    """
    return runtime_of(book).issues.query(agent, status, urgency)


def claim_issue(issue_id: str, *, book: Book | None = None) -> bool:
    """Take an open issue to work on; return False where others did, or it is blocked or closed.

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

    It is a line through knots, cosines and the similarities that they mean, both ascending; level outside of them.
    A similarity is the lower quartile of human judgements for sentence pairs with that cosine, not the mean: a wrong
    merge costs more than a missed one. The scales are fitted on STS-B by `scripts/ranking/fit_similarity.py`.
    """

    cosines: tuple[float, ...]
    similarities: tuple[float, ...]

    def __call__(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the similarities, 0–1, of cosines of any shape; what is not a number is like nothing."""
        known = np.where(np.isnan(cosines), -1.0, cosines)
        return np.interp(known, self.cosines, self.similarities).astype(np.float32)


KNOTS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 1.0)
"""Cosines at which scales are fitted: close together where merging is decided. Equal vectors are alike by 1."""

_MINILM: Final = Scale(KNOTS, (0.0, 0.0, 0.0, 0.08, 0.16, 0.24, 0.32, 0.45, 0.6, 0.68, 0.72, 0.76, 0.88, 1.0))
BY_EMBEDDER: Final[Mapping[str, Scale]] = {
    "static": Scale(KNOTS, (0.0, 0.0, 0.0, 0.04, 0.12, 0.2, 0.32, 0.44, 0.56, 0.64, 0.707, 0.76, 0.92, 1.0)),
    "minilm": _MINILM,
    # It counts the words that two texts share; nobody needs to be asked what that means.
    "hashing": Scale((0.0, 1.0), (0.0, 1.0)),
}


def scale_of(embedder: str) -> Scale:
    """Return the scale of an embedder; an unknown one is taken for a sentence transformer, as MiniLM is."""
    return BY_EMBEDDER.get(embedder, _MINILM)
