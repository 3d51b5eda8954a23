"""Plan the tasks of a call, dependencies first, references resolved, cycles rejected; or say what is wrong with a spec.

Only direct dependencies of the called task run, as Open Agent Spec defines; a delegated task counts as called. Cycles
are rejected before anything runs.

A local reference must resolve inside the directory of its spec, links included.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError, UsageError
from commonplace.files import stays_inside
from commonplace.models.http import FAULTS, Patience, send
from commonplace.models.providers import address_of
from commonplace.specs.check import Fault
from commonplace.specs.document import (
    MAX_BYTES,
    Intelligence,
    Spec,
    SpecError,
    Task,
    choose,
    faults_in,
    read_spec,
    refused,
    understand,
)

REGISTRY_URL: Final = "https://openagentspec.dev/registry"
"""Where `oa://` leads on the network; a local registry has the same directories below it."""

_OA: Final = re.compile(r"oa://([\w.-]+)/([\w.-]+)(?:@([\w.+-]+))?")
_TIMEOUT_S: Final = 10.0
_TOTAL_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Source:
    """Where a spec came from.

    Attributes:
        name: its resolved path or its address; two sources with one name are the same.
        directory: where its local references lead; None if it has no directory.
    """

    name: str
    directory: Path | None = None


def source_of(file: Path) -> Source:
    resolved = file.resolve()
    return Source(str(resolved), resolved.parent)


def _check_inside(file: Path, directory: Path, reference: str) -> None:
    try:
        is_inside = file.resolve().is_relative_to(directory.resolve())
    except RuntimeError:  # what pathlib has for this before Python 3.13
        raise refused(f"{reference!r} is a link that leads in a circle") from None
    if not is_inside:
        raise refused(f"{reference!r} is a link that leaves {directory}")


def _fetched(address: str) -> bytes:
    """Return what an address holds. A registry that sends us elsewhere, perhaps into this network, is not followed."""
    headers = {"Accept": "application/yaml, text/yaml, text/plain", "User-Agent": "commonplace"}
    patience = Patience(_TIMEOUT_S, time.monotonic() + _TOTAL_S)
    try:
        answer = send(address_of(address), "", headers, None, patience, MAX_BYTES, "GET")
    except TimeoutError:
        raise refused(f"{address} did not send the spec in time") from None
    except FAULTS as fault:
        told = getattr(fault, "strerror", None) or type(fault).__name__
        raise refused(f"{address} could not be reached: {told}") from None
    except CommonplaceError as error:
        raise refused(f"{address} cannot be fetched: {error.args[0]}") from None
    if answer.status != 200:
        raise refused(f"{address} answered {answer.status}")
    return answer.body


MAX_STEPS: Final = 100
"""Tasks that one call runs; a few specs could otherwise cause millions of calls to a model."""


@dataclass(frozen=True, slots=True)
class Step:
    """One task that is run.

    Attributes:
        name: what it is called in the spec that was asked; `task` is the one that implements it.
        before: what runs before it and gives it its outputs, in this order.
        delegated_to: the source and the name of the task that implements it, where that is another's.
        refusal: why it cannot be run here, or "".
    """

    name: str
    task: Task
    intelligence: Intelligence
    before: tuple[Step, ...] = ()
    delegated_to: str | None = None
    refusal: str = ""

    def __iter__(self) -> Iterator[Step]:
        """Yield every step in the order in which they run."""
        for step in self.before:
            yield from step
        yield self


class Planner:
    """Plans one call, and counts its steps.

    Args:
        registry: a directory with `<namespace>/<name>/<version>/spec.yaml`, or `<host>/<path>` of an address; "" for
            none.
        network: whether what is not in it is fetched.
    """

    def __init__(self, registry: str, *, network: bool) -> None:
        self._registry = Path(registry) if registry else None
        self._network = network
        self._steps = 0
        if self._registry:
            with suppress(RuntimeError):  # the home of a user that there is not is left as it is written
                self._registry = self._registry.expanduser()

    def plan(self, spec: Spec, source: Source, name: str | None) -> Step:
        """Return the step of a task, with all that runs before it."""
        return self._called(spec, choose(spec, name), (source,))

    def _called(self, spec: Spec, task: Task, stack: tuple[Source, ...]) -> Step:
        check_circles(spec, task)
        before = tuple(self._implemented(spec, spec.tasks[name], stack, ()) for name in dict.fromkeys(task.depends_on))
        return self._implemented(spec, task, stack, before)

    def _implemented(self, spec: Spec, task: Task, stack: tuple[Source, ...], before: tuple[Step, ...]) -> Step:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise SpecError(f"more than {MAX_STEPS} tasks would run; split the spec", "RUN_ERROR", "routing", task.name)
        if task.delegate is None:
            return Step(task.name, task, spec.intelligence, before, refusal=task.refusal)
        source, document = self._open(task.delegate, stack[-1], task.name)
        if source.name in {visited.name for visited in stack}:
            message = f"{task.delegate!r} leads back to {source.name}, which delegates already"
            raise SpecError(message, "DELEGATION_CYCLE_ERROR", "delegation", task.name)
        other = understand(document, source.name)
        if task.target not in other.tasks:
            message = f"{task.delegate!r} has no task {task.target!r}; it has: {', '.join(other.tasks)}"
            raise SpecError(message, "TASK_NOT_FOUND", "delegation", task.name)
        found = self._called(other, other.tasks[task.target], (*stack, source))
        return Step(
            task.name,
            found.task,
            found.intelligence,
            before + found.before,
            f"{source.name}#{task.target}",
            task.refusal or found.refusal,
        )

    def _open(self, reference: str, caller: Source, task: str) -> tuple[Source, Mapping[str, Any]]:
        reference = reference.strip()
        try:
            if "://" in reference:
                return self._shared(reference)
            if caller.directory is None:
                raise refused(f"{reference!r} is a path, and {caller.name} has no directory to start from")
            if not stays_inside(reference) or "\0" in reference:
                raise refused(
                    f"{reference!r} leaves the directory of the spec that refers to it; keep the specs together"
                )
            file = caller.directory / reference
            _check_inside(file, caller.directory, reference)
            return source_of(file), read_spec(file.resolve())
        except SpecError as fault:
            raise refused(str(fault), "delegation", task) from None

    def _shared(self, reference: str) -> tuple[Source, Mapping[str, Any]]:
        """Return what an address or a registry's name leads to: the local registry's file, else the network's."""
        if not reference.startswith("oa:"):
            try:
                address = str(address_of(reference, "the reference"))
            except UsageError as error:
                raise refused(str(error)) from None
        elif found := _OA.fullmatch(reference):
            address = f"{REGISTRY_URL}/{found[1]}/{found[2]}/{found[3] or 'latest'}/spec.yaml"
        else:
            raise refused(f"{reference!r} is no reference; write oa://namespace/name or oa://namespace/name@version")
        if address.startswith(f"{REGISTRY_URL}/"):
            place = PurePosixPath(address.removeprefix(f"{REGISTRY_URL}/"))
        else:
            parts = urlsplit(address)
            place = PurePosixPath(parts.hostname or "") / parts.path.lstrip("/")
        if self._registry is not None and stays_inside(str(place)):
            file = self._registry / place
            with suppress(OSError):  # no system has a file of such a name
                if file.is_file():
                    _check_inside(file, self._registry, reference)
                    return Source(address), read_spec(file)
        if not self._network:
            where = f"the registry {self._registry}" if self._registry else "a registry, since none is set"
            raise refused(
                f"{reference} is not in {where}; put it there as {place} (setting specs.registry), "
                "or allow the network with specs.network"
            )
        return Source(address), read_spec(_fetched(address), address)


def check_circles(spec: Spec, start: Task) -> None:
    """Refuse a task whose dependencies, or theirs, form a circle or are missing."""
    needed: dict[str, tuple[str, ...]] = {}
    waiting = [start]
    while waiting:
        task = waiting.pop()
        needed[task.name] = task.depends_on
        for name in task.depends_on:
            if name not in spec.tasks:
                message = f"{task.name!r} depends on {name!r}, which is no task of the spec"
                raise SpecError(message, "TASK_NOT_FOUND", "routing", name)
            if name not in needed:
                waiting.append(spec.tasks[name])
    try:
        TopologicalSorter(needed).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][:0:-1]  # it ends with its first task, and runs from dependency to dependent
        first = circle.index(start.name) if start.name in circle else 0
        shown = " → ".join([*circle[first:], *circle[:first], circle[first]])
        raise SpecError(f"tasks depend on each other: {shown}", "CHAIN_CYCLE_ERROR", "routing", start.name) from None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a spec is, and what is wrong with it.

    Attributes:
        name, version: None for one that cannot be loaded.
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
        return not self.faults


def validate(file: str | Path) -> Verdict:
    """Return what is wrong with the spec in a file; what it refers to is not followed."""
    try:
        document = read_spec(Path(file))
    except SpecError as error:
        return Verdict(None, None, (), (Fault("", str(error)),))
    if faults := faults_in(document):
        return Verdict(None, None, (), tuple(faults))
    spec = understand(document, str(file))
    notes = tuple(Fault(f"tasks.{name}", task.refusal) for name, task in spec.tasks.items() if task.refusal)
    for name, task in spec.tasks.items():
        try:
            check_circles(spec, task)
        except SpecError as error:
            faults.append(Fault(f"tasks.{name}.depends_on", str(error)))
    return Verdict(spec.name, spec.version, tuple(spec.tasks), tuple(faults), notes)
