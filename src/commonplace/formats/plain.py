"""Results as plain values that JSON has."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """Return a result as JSON has it: by `to_dict` or the fields of a dataclass; paths as text, times as ISO 8601."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        from commonplace.dates.time import iso

        return iso(value)
    return str(value) if isinstance(value, Path) else value
