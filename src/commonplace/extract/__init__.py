"""What a text says, found without a model: names, dates and facts. It knows no store and no other text."""

from commonplace.extract.extracting import extract
from commonplace.extract.result import ENTITY_TYPES, RELATION_TYPES, Claim, Extraction, Found

__all__ = ["ENTITY_TYPES", "RELATION_TYPES", "Claim", "Extraction", "Found", "extract"]
