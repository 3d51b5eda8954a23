"""Which tasks a call runs, in which order: dependencies first, references followed. It runs none of them.

Only the direct dependencies of the called task run, as the Open Agent Spec has it; a task that is delegated to is
called, so its own direct dependencies run too. Circles are found before anything is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from commonplace.specs.document import Intelligence, Spec, Task, choose, understand
from commonplace.specs.faults import SpecError
from commonplace.specs.references import Library, Source

MAX_STEPS: Final = 100
"""Tasks that one call runs; a few specs could otherwise stand for millions of calls to a model."""


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
    """Plans one call, and counts its steps."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._steps = 0

    def plan(self, spec: Spec, source: Source, name: str | None) -> Step:
        """Return the step of a task, with all that runs before it.

        Raises:
            SpecError: a name leads nowhere, a reference cannot be followed, or either leads in a circle.
        """
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
        source, document = self._library.open(task.delegate, stack[-1], task.name)
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


def check_circles(spec: Spec, start: Task) -> None:
    """Refuse a task whose dependencies lead back to one of them; every task is visited once.

    Raises:
        SpecError: CHAIN_CYCLE_ERROR, or TASK_NOT_FOUND for a dependency that is no task.
    """
    done: set[str] = set()
    path: dict[str, None] = {start.name: None}
    waiting = [(start, iter(start.depends_on))]
    while waiting:
        task, names = waiting[-1]
        name = next(names, None)
        if name is None:
            waiting.pop()
            path.pop(task.name)
            done.add(task.name)
        elif name not in spec.tasks:
            message = f"{task.name!r} depends on {name!r}, which is no task of the spec"
            raise SpecError(message, "TASK_NOT_FOUND", "routing", name)
        elif name in path:
            circle = " → ".join([*list(path)[list(path).index(name) :], name])
            raise SpecError(f"tasks depend on each other: {circle}", "CHAIN_CYCLE_ERROR", "routing", task.name)
        elif name not in done:
            path[name] = None
            waiting.append((spec.tasks[name], iter(spec.tasks[name].depends_on)))
