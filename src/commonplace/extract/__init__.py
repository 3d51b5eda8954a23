"""Extract names, dates and facts from a text by rules."""

from commonplace.extract.extract import extract
from commonplace.extract.model import Claim, Extraction, Found

__all__ = ["Claim", "Extraction", "Found", "extract"]
