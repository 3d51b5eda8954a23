"""Results of the agents, as the contract has them: an instance is valid exactly when the contract's schema accepts it.

The format `uuid` is an annotation, as in JSON Schema by default: ids given by callers are kept verbatim and need not be
UUIDs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from commonplace.types.ledger import Urgency

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Share = Annotated[float, Field(ge=0, le=1)]


class Result(BaseModel):
    """What one item came to.

    Attributes:
        beads_issue_id: the issue of the ledger about it, None where there is none.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    if TYPE_CHECKING:  # each model has it as its last field
        beads_issue_id: str | None = None


class DecayResult(Result):
    """What fading makes of a memory: its retention, 0–1, how urgent that is, and what is to be done."""

    memory_id: Id
    score: Share
    urgency: Urgency
    action: Literal["reinforce", "consolidate", "promote", "gc"]
    beads_issue_id: str | None = None


class ClusterResult(Result):
    """Memories that say alike. `cohesion` is their mean similarity in pairs, calibrated to 0–1."""

    cluster_id: Id
    memory_ids: Annotated[list[Id], Field(min_length=2)]
    cohesion: Share
    action: Literal["merge", "link", "ignore"]
    confidence: Share
    beads_issue_id: str | None = None


class MergeResult(Result):
    """A memory made of others, which are archived. `content_diff` is a unified diff of their texts and the new one."""

    new_memory_id: Id
    source_ids: Annotated[list[Id], Field(min_length=2)]
    relation_ids: list[Id]
    content_diff: str
    # A number without a fraction is an integer: to JSON Schema 3.0 is one.
    entities_preserved: Annotated[
        int, Field(ge=0), BeforeValidator(lambda n: int(n) if isinstance(n, float) and n.is_integer() else n)
    ]
    success: bool
    beads_issue_id: str | None = None


class PromotionResult(Result):
    """A memory that is kept for good, with the note in the vault, relative to the store's directory."""

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
