"""What a text says, found without a model: names, dates and facts. It knows no store and no other text."""

from commonplace.extract.extracting import extract
from commonplace.extract.result import Claim, Extraction, Found

__all__ = ["Claim", "Extraction", "Found", "extract"]
