"""Consolidation: five background agents that archive stale memories, merge duplicates, promote and link; the ledger
records each change.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from commonplace.consolidation.results import ClusterResult, DecayResult, MergeResult, PromotionResult, RelationResult
from commonplace.consolidation.runtime import ConfidenceConfig
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

_PLACES = {
    "commonplace.consolidation.base": "ConsolidationAgent PlannedAgent",
    "commonplace.consolidation.cluster": "ClusterDetector",
    "commonplace.consolidation.decay": "DecayAnalyzer",
    "commonplace.consolidation.issues": "create_consolidation_issue query_consolidation_issues claim_issue close_issue"
    " block_issue",
    "commonplace.consolidation.merge": "SemanticMerge",
    "commonplace.consolidation.promote": "LTMPromoter",
    "commonplace.consolidation.relations": "RelationshipDiscovery",
    "commonplace.consolidation.results": "ClusterResult DecayResult MergeResult PromotionResult RelationResult",
    "commonplace.consolidation.runtime": "ConfidenceConfig",
    "commonplace.errors": "NoRelation",
}

if TYPE_CHECKING:
    from commonplace.consolidation.base import ConsolidationAgent, PlannedAgent
    from commonplace.consolidation.cluster import ClusterDetector
    from commonplace.consolidation.decay import DecayAnalyzer
    from commonplace.consolidation.issues import (
        block_issue,
        claim_issue,
        close_issue,
        create_consolidation_issue,
        query_consolidation_issues,
    )
    from commonplace.consolidation.merge import SemanticMerge
    from commonplace.consolidation.promote import LTMPromoter
    from commonplace.consolidation.relations import RelationshipDiscovery
else:

    def __getattr__(name: str) -> object:
        """Load what is asked for: pydantic comes with it, which nothing else needs."""
        for place, names in _PLACES.items():
            if name in names.split():
                return getattr(import_module(place), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
