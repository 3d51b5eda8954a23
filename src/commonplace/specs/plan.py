"""Plan the tasks of a call: order dependencies, resolve references and reject cycles. Validate a spec without a call.

Only direct dependencies of the called task run, as Open Agent Spec defines; a delegated task counts as called. Cycles
are rejected before anything runs.

A local reference must resolve inside the directory of its spec, even through links.
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
from commonplace.models.http import FAULTS, Timeouts, send
from commonplace.models.providers import address_of
from commonplace.specs.check import Fault
from commonplace.specs.document import (
    MAX_BYTES,
    Intelligence,
    Spec,
    SpecError,
    Task,
    choose_task,
    faults_in,
    load_error,
    parse_spec,
    read_spec,
)

REGISTRY_URL: Final = "https://openagentspec.dev/registry"
"""Base address of `oa://` references; a local registry has the same directories."""

_OA: Final = re.compile(r"oa://([\w.-]+)/([\w.-]+)(?:@([\w.+-]+))?")
_TIMEOUT_S: Final = 10.0
_TOTAL_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class SpecSource:
    """Where a spec came from.

    Attributes:
        name: resolved path or address; sources with the same name are the same.
        directory: base of its local references; None if it has none.
    """

    name: str
    directory: Path | None = None


def source_of(file: Path) -> SpecSource:
    resolved = file.resolve()
    return SpecSource(str(resolved), resolved.parent)


def _check_inside(file: Path, directory: Path, reference: str) -> None:
    try:
        is_inside = file.resolve().is_relative_to(directory.resolve())
    except RuntimeError:  # raised by pathlib before Python 3.13
        raise load_error(f"{reference!r} is a link that leads in a circle") from None
    if not is_inside:
        raise load_error(f"{reference!r} is a link that leaves {directory}")


def _fetch(address: str) -> bytes:
    """Return the body at an address. Redirects are not followed: they could lead into the local network."""
    headers = {"Accept": "application/yaml, text/yaml, text/plain", "User-Agent": "commonplace"}
    timeouts = Timeouts(_TIMEOUT_S, time.monotonic() + _TOTAL_S)
    try:
        response = send(address_of(address), "", headers, None, timeouts, MAX_BYTES, "GET")
    except TimeoutError:
        raise load_error(f"{address} did not send the spec in time") from None
    except FAULTS as fault:
        reason = getattr(fault, "strerror", None) or type(fault).__name__
        raise load_error(f"{address} could not be reached: {reason}") from None
    except CommonplaceError as error:
        raise load_error(f"{address} cannot be fetched: {error.args[0]}") from None
    if response.status != 200:
        raise load_error(f"{address} answered {response.status}")
    return response.body


MAX_STEPS: Final = 100
"""Maximum tasks of one call; otherwise a few specs could cause millions of calls to a model."""


@dataclass(frozen=True, slots=True)
class Step:
    """One task to run.

    Attributes:
        name: its name in the called spec; `task` is the task that implements it.
        before: the steps that run before it and supply its inputs, in this order.
        delegated_to: source and name of the implementing task, if it is in another spec.
        refusal: why it cannot be run here, or "".
    """

    name: str
    task: Task
    intelligence: Intelligence
    before: tuple[Step, ...] = ()
    delegated_to: str | None = None
    refusal: str = ""

    def __iter__(self) -> Iterator[Step]:
        """Yield all steps in the order in which they run."""
        for step in self.before:
            yield from step
        yield self


class Planner:
    """Plan one call, and count its steps.

    Args:
        registry: directory with `<namespace>/<name>/<version>/spec.yaml`, or `<host>/<path>` for addresses; "" for
            none.
        network: whether specs that are not in it are fetched.
    """

    def __init__(self, registry: str, *, network: bool) -> None:
        self._registry = Path(registry) if registry else None
        self._network = network
        self._steps = 0
        if self._registry:
            with suppress(RuntimeError):  # leave the home of an unknown user unchanged
                self._registry = self._registry.expanduser()

    def plan(self, spec: Spec, source: SpecSource, name: str | None) -> Step:
        """Return the step of a task, with all steps that run before it."""
        return self._plan_call(spec, choose_task(spec, name), (source,))

    def _plan_call(self, spec: Spec, task: Task, stack: tuple[SpecSource, ...]) -> Step:
        check_cycles(spec, task)
        before = tuple(self._plan_step(spec, spec.tasks[name], stack, ()) for name in dict.fromkeys(task.depends_on))
        return self._plan_step(spec, task, stack, before)

    def _plan_step(self, spec: Spec, task: Task, stack: tuple[SpecSource, ...], before: tuple[Step, ...]) -> Step:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise SpecError(f"more than {MAX_STEPS} tasks would run; split the spec", "RUN_ERROR", "routing", task.name)
        if task.delegate is None:
            return Step(task.name, task, spec.intelligence, before, refusal=task.refusal)
        source, document = self._open(task.delegate, stack[-1], task.name)
        if source.name in {visited.name for visited in stack}:
            message = f"{task.delegate!r} leads back to {source.name}, which delegates already"
            raise SpecError(message, "DELEGATION_CYCLE_ERROR", "delegation", task.name)
        delegate_spec = parse_spec(document, source.name)
        if task.target not in delegate_spec.tasks:
            message = f"{task.delegate!r} has no task {task.target!r}; it has: {', '.join(delegate_spec.tasks)}"
            raise SpecError(message, "TASK_NOT_FOUND", "delegation", task.name)
        implementation = self._plan_call(delegate_spec, delegate_spec.tasks[task.target], (*stack, source))
        return Step(
            task.name,
            implementation.task,
            implementation.intelligence,
            before + implementation.before,
            f"{source.name}#{task.target}",
            task.refusal or implementation.refusal,
        )

    def _open(self, reference: str, caller: SpecSource, task: str) -> tuple[SpecSource, Mapping[str, Any]]:
        reference = reference.strip()
        try:
            if "://" in reference:
                return self._open_shared(reference)
            if caller.directory is None:
                raise load_error(f"{reference!r} is a path, and {caller.name} has no directory to start from")
            if not stays_inside(reference) or "\0" in reference:
                raise load_error(
                    f"{reference!r} leaves the directory of the spec that refers to it; keep the specs together"
                )
            file = caller.directory / reference
            _check_inside(file, caller.directory, reference)
            return source_of(file), read_spec(file.resolve())
        except SpecError as fault:
            raise load_error(str(fault), "delegation", task) from None

    def _open_shared(self, reference: str) -> tuple[SpecSource, Mapping[str, Any]]:
        """Resolve an address or a registry name: the local registry's file, else the one on the network."""
        if not reference.startswith("oa:"):
            try:
                address = str(address_of(reference, "the reference"))
            except UsageError as error:
                raise load_error(str(error)) from None
        elif match := _OA.fullmatch(reference):
            address = f"{REGISTRY_URL}/{match[1]}/{match[2]}/{match[3] or 'latest'}/spec.yaml"
        else:
            raise load_error(f"{reference!r} is no reference; write oa://namespace/name or oa://namespace/name@version")
        if address.startswith(f"{REGISTRY_URL}/"):
            registry_path = PurePosixPath(address.removeprefix(f"{REGISTRY_URL}/"))
        else:
            parts = urlsplit(address)
            registry_path = PurePosixPath(parts.hostname or "") / parts.path.lstrip("/")
        if self._registry is not None and stays_inside(str(registry_path)):
            file = self._registry / registry_path
            with suppress(OSError):  # the name is valid on no file system
                if file.is_file():
                    _check_inside(file, self._registry, reference)
                    return SpecSource(address), read_spec(file)
        if not self._network:
            registry = f"the registry {self._registry}" if self._registry else "a registry, since none is set"
            raise load_error(
                f"{reference} is not in {registry}; put it there as {registry_path} (setting specs.registry), "
                "or allow the network with specs.network"
            )
        return SpecSource(address), read_spec(_fetch(address), address)


def check_cycles(spec: Spec, start: Task) -> None:
    """Refuse a task whose direct or transitive dependencies form a cycle or are missing."""
    dependencies: dict[str, tuple[str, ...]] = {}
    pending = [start]
    while pending:
        task = pending.pop()
        dependencies[task.name] = task.depends_on
        for name in task.depends_on:
            if name not in spec.tasks:
                message = f"{task.name!r} depends on {name!r}, which is no task of the spec"
                raise SpecError(message, "TASK_NOT_FOUND", "routing", name)
            if name not in dependencies:
                pending.append(spec.tasks[name])
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][:0:-1]  # ends with its first task, and goes from dependency to dependent
        first = cycle.index(start.name) if start.name in cycle else 0
        chain = " → ".join([*cycle[first:], *cycle[:first], cycle[first]])
        raise SpecError(f"tasks depend on each other: {chain}", "CHAIN_CYCLE_ERROR", "routing", start.name) from None


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of a validation.

    Attributes:
        name, version: None for a spec that cannot be loaded.
        faults: in document order; empty for a spec that can be loaded.
        notes: tasks that cannot be run here, although the spec is valid.
    """

    name: str | None
    version: str | None
    tasks: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()

    @property
    def is_valid(self) -> bool:
        return not self.faults


def validate(file: str | Path) -> Validation:
    """Validate the spec in a file, without following its references."""
    try:
        document = read_spec(Path(file))
    except SpecError as error:
        return Validation(None, None, (), (Fault("", str(error)),))
    if faults := faults_in(document):
        return Validation(None, None, (), tuple(faults))
    spec = parse_spec(document, str(file))
    notes = tuple(Fault(f"tasks.{name}", task.refusal) for name, task in spec.tasks.items() if task.refusal)
    for name, task in spec.tasks.items():
        try:
            check_cycles(spec, task)
        except SpecError as error:
            faults.append(Fault(f"tasks.{name}.depends_on", str(error)))
    return Validation(spec.name, spec.version, tuple(spec.tasks), tuple(faults), notes)
