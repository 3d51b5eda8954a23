"""Run Open Agent Spec tasks: load, template, check, chain. They know no store."""

from __future__ import annotations

from commonplace.specs.checking import Fault
from commonplace.specs.faults import CODES, REQUEST_CODES
from commonplace.specs.running import Call, run
from commonplace.specs.validating import Verdict, validate

__all__ = ["CODES", "REQUEST_CODES", "Call", "Fault", "Verdict", "run", "validate"]
