"""The note that says what of a forgetting is still to be done: there as long as something is, and without any text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from commonplace.store.memory_contract import Note

FORGETTING: Final = "forgetting"
"""The kind of these notes."""


@dataclass(frozen=True, slots=True)
class Pending:
    """What is still to be done. It has the id of the receipt that it belongs to.

    Attributes:
        namespace: where something goes, or that goes itself.
        steps: those of `steps.STEPS` that are to be taken.
        ids: of the memories that go.
        firsts: (owner number, one of its passages) of artifacts and documents that go.
        is_namespace: the whole namespace goes.
        is_proved: every file was looked through; else the run was ended before it could.
        is_clean: and nothing was found that does not wait.
    """

    id: str
    at: float
    namespace: str
    steps: tuple[str, ...]
    ids: tuple[str, ...] = ()
    firsts: tuple[tuple[int, int], ...] = ()
    is_namespace: bool = False
    is_proved: bool = False
    is_clean: bool = False

    def note(self) -> Note:
        """Return the note that keeps it."""
        return Note(FORGETTING, self.id, self.at, json.dumps(asdict(self), sort_keys=True))


def pending_of(notes: Sequence[Note]) -> list[Pending]:
    """Return what notes of the kind `FORGETTING` keep, each once."""
    found = {}
    for note in notes:
        values = json.loads(note.body)
        values["steps"], values["ids"] = tuple(values["steps"]), tuple(values["ids"])
        values["firsts"] = tuple((owner, passage) for owner, passage in values["firsts"])
        found[note.id] = Pending(**values)
    return list(found.values())
