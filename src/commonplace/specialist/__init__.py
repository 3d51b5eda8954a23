"""The memory specialist: answers requests in the text protocol CSP/1."""

from commonplace.specialist.specialist import Specialist, refusal

__all__ = ["Specialist", "refusal"]
