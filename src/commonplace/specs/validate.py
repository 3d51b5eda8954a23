"""Validate a spec without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.specs.check import Fault
from commonplace.specs.document import Spec, SpecError, faults_in, read_spec, understand
from commonplace.specs.plan import check_circles


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a spec is, and what is wrong with it.

    Attributes:
        faults: in the order of the document; empty for a spec that can be loaded.
        notes: what will not be run here, though the spec is valid.
    """

    name: str | None
    version: str | None
    tasks: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def validate(file: str | Path) -> Verdict:
    """Return what is wrong with the spec in a file; what it refers to is not followed."""
    try:
        document = read_spec(Path(file))
    except SpecError as error:
        return Verdict(None, None, (), (Fault("", str(error)),))
    faults = faults_in(document)
    if faults:
        return Verdict(_text(document, "agent", "name"), _text(document, "open_agent_spec"), (), tuple(faults))
    spec = understand(document, str(file))
    notes = tuple(Fault(f"tasks.{name}", task.refusal) for name, task in spec.tasks.items() if task.refusal)
    return Verdict(spec.name, spec.version, tuple(spec.tasks), tuple(_chain_faults(spec)), notes)


def _chain_faults(spec: Spec) -> Iterator[Fault]:
    for name, task in spec.tasks.items():
        try:
            check_circles(spec, task)
        except SpecError as error:
            yield Fault(f"tasks.{name}.depends_on", str(error))


def _text(document: Mapping[str, Any], *path: str) -> str | None:
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return str(value) if isinstance(value, str | int | float) else None
