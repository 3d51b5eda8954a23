"""Extract names, dates and facts from a text by rules."""

from commonplace.extract.extract import extract
from commonplace.extract.model import Claim, ExtractedEntity, Extraction

__all__ = ["Claim", "ExtractedEntity", "Extraction", "extract"]
