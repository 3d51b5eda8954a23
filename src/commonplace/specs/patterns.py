"""Check by a schema that has patterns in a process that can be ended: a pattern may take longer than anybody lives.

Python's patterns have no deadline, and let no other thread run meanwhile. It knows no spec.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from commonplace.specs.checking import Fault, faults_of

LONGEST_S: Final = 10.0
"""Seconds for a check, the start of its process with it."""
_PATTERNS: Final = frozenset({"pattern", "patternProperties"})
_CODE: Final = "from commonplace.specs.patterns import main; main()"


def foreign_faults_of(value: object, schema: Mapping[str, object]) -> list[Fault]:
    """Return what makes a value break a schema that somebody else wrote; see `faults_of`."""
    return _faults_apart(value, schema) if _has_patterns(schema) else faults_of(value, schema)


def _has_patterns(schema: object) -> bool:
    if isinstance(schema, Mapping):
        return not _PATTERNS.isdisjoint(schema) or any(map(_has_patterns, schema.values()))
    return isinstance(schema, list) and any(map(_has_patterns, schema))


def _faults_apart(value: object, schema: Mapping[str, object]) -> list[Fault]:
    import subprocess

    # The working directory, where anybody's modules may lie, is no place to import from.
    command = [sys.executable, "-I" if sys.flags.isolated else "-P", "-c", _CODE]
    try:
        done = subprocess.run(
            command, input=json.dumps([value, schema]), capture_output=True, text=True, timeout=LONGEST_S, check=True
        )
        # The last line: an environment may greet whoever starts.
        return [Fault(**told) for told in json.loads(done.stdout.splitlines()[-1])]
    except subprocess.TimeoutExpired:
        return [Fault("", f"the schema's patterns take more than {LONGEST_S:.0f} s")]
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError) as error:
        return [Fault("", f"the schema's patterns cannot be checked here: {type(error).__name__}")]


def main() -> None:
    """Answer what standard input asks, on standard output."""
    value, schema = json.load(sys.stdin)
    sys.stdout.write(f"\n{json.dumps([asdict(fault) for fault in faults_of(value, schema)])}\n")
