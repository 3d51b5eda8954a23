"""Consolidation: five background agents archive, merge, promote and link memories. The ledger records every change."""

from commonplace.consolidation.base import ConsolidationAgent, PlannedAgent
from commonplace.consolidation.cluster import ClusterDetector
from commonplace.consolidation.decay import DecayAnalyzer
from commonplace.consolidation.merge import SemanticMerge
from commonplace.consolidation.promote import LTMPromoter
from commonplace.consolidation.relations import RelationshipDiscovery
from commonplace.consolidation.results import ClusterResult, DecayResult, MergeResult, PromotionResult, RelationResult
from commonplace.consolidation.runtime import (
    ConfidenceConfig,
    block_issue,
    claim_issue,
    close_issue,
    create_consolidation_issue,
    query_consolidation_issues,
)
from commonplace.errors import NoRelation

__all__ = [
    "ClusterDetector",
    "ClusterResult",
    "ConfidenceConfig",
    "ConsolidationAgent",
    "DecayAnalyzer",
    "DecayResult",
    "LTMPromoter",
    "MergeResult",
    "NoRelation",
    "PlannedAgent",
    "PromotionResult",
    "RelationResult",
    "RelationshipDiscovery",
    "SemanticMerge",
    "block_issue",
    "claim_issue",
    "close_issue",
    "create_consolidation_issue",
    "query_consolidation_issues",
]
