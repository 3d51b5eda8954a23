"""What a text says, found without a model: names, dates and facts."""

from commonplace.extract.extract import extract
from commonplace.extract.model import Claim, Extraction, Found

__all__ = ["Claim", "Extraction", "Found", "extract"]
