"""Results of the agents in the contract's form: an instance is valid exactly when the contract's schema accepts it.

The format `uuid` is only an annotation, as in JSON Schema by default: callers' ids are kept verbatim and need not be
UUIDs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from commonplace.types.ledger import Urgency

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Share = Annotated[float, Field(ge=0, le=1)]


class Result(BaseModel):
    """The result of one item.

    Attributes:
        beads_issue_id: id of its ledger issue, None if there is none.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    if TYPE_CHECKING:  # every model declares it as its last field
        beads_issue_id: str | None = None


class DecayResult(Result):
    """The result for a fading memory: its retention (`score`), 0–1, the urgency, and the action to take."""

    memory_id: Id
    score: Share
    urgency: Urgency
    action: Literal["reinforce", "consolidate", "promote", "gc"]
    beads_issue_id: str | None = None


class ClusterResult(Result):
    """A group of similar memories. `cohesion` is their mean pairwise similarity, calibrated to 0–1."""

    cluster_id: Id
    memory_ids: Annotated[list[Id], Field(min_length=2)]
    cohesion: Share
    action: Literal["merge", "link", "ignore"]
    confidence: Share
    beads_issue_id: str | None = None


class MergeResult(Result):
    """A memory merged from others, which are archived. `content_diff` is a unified diff from their texts to its own."""

    new_memory_id: Id
    source_ids: Annotated[list[Id], Field(min_length=2)]
    relation_ids: list[Id]
    content_diff: str
    # A float without a fraction is an integer, as in JSON Schema, where 3.0 is one.
    entities_preserved: Annotated[
        int, Field(ge=0), BeforeValidator(lambda n: int(n) if isinstance(n, float) and n.is_integer() else n)
    ]
    success: bool
    beads_issue_id: str | None = None


class PromotionResult(Result):
    """A memory promoted to long-term; `vault_path`, relative to the store's directory, is its note in the vault."""

    memory_id: Id
    vault_path: str = ""
    criteria_met: Annotated[list[str], Field(min_length=1)]
    success: bool
    beads_issue_id: str | None = None


class RelationResult(Result):
    """Two memories that are related, and why."""

    from_memory_id: Id
    to_memory_id: Id
    relation_id: Id
    strength: Share
    reasoning: str
    shared_entities: list[str] = []
    confidence: Share
    beads_issue_id: str | None = None
