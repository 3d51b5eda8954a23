"""Run Open Agent Spec tasks: load, template, check, chain."""

from __future__ import annotations

from commonplace.specs.check import Fault
from commonplace.specs.document import CODES, REQUEST_CODES
from commonplace.specs.plan import Validation, validate
from commonplace.specs.run import run

__all__ = ["CODES", "REQUEST_CODES", "Fault", "Validation", "run", "validate"]
