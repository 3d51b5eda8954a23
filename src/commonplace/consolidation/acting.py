"""Change memories so that it can be undone: every act writes beside itself the step that takes it back.

A step is a JSON object. It names memories, and holds no words of theirs: those stand in their versions, so that whoever
forgets a memory finds it in one place. `undoing` plays the steps backwards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, Final

from commonplace.ledger.undone import ERASE
from commonplace.types import MemoryRecord

if TYPE_CHECKING:
    from commonplace.store.memory_contract import MemoryChange
    from commonplace.types import Link, MemoryWrite, StoredMemory

REVIVE: Final = "revive"
REVISE: Final = "revise"
UNLINK: Final = "unlink"
LINK: Final = "link"
PAGE: Final = "page"

_LISTS: Final = ("entities", "uses", "derived_from")


class Acts:
    """The acts of one change, in one transaction."""

    def __init__(self, change: MemoryChange, now: float) -> None:
        self.change = change
        self.now = now
        self._steps: list[dict[str, Any]] = []
        self._touched: set[str] = set()
        self._inactive: set[str] = set()

    @property
    def steps(self) -> str:
        """The steps that undo what was done, as JSON, in the order in which they undo."""
        return json.dumps(self._steps[::-1], sort_keys=True)

    @property
    def touched(self) -> tuple[str, ...]:
        """The ids of the memories that were changed, made or archived, sorted."""
        return tuple(sorted(self._touched))

    @property
    def inactive(self) -> tuple[str, ...]:
        """The ids of the memories that are not active any more, sorted: no agent works on them."""
        return tuple(sorted(self._inactive))

    def add(self, write: MemoryWrite) -> None:
        """Write a memory that is new."""
        self.change.add(write, created_at=self.now)
        self._did(write.owner.id, do=ERASE, version=write.record.version)

    def archive(self, memory: StoredMemory) -> None:
        """Take a live memory out of finding. It can be brought back as any archived memory."""
        record = replace(memory.record, status="archived")
        self.change.expire(memory.number, record, max(self.now, memory.created_at))
        self._inactive.add(memory.owner.id)
        self._did(memory.owner.id, do=REVIVE, record=packed(memory.record))

    def revise(self, memory: StoredMemory, record: MemoryRecord) -> None:
        """Set the record of a live memory, with the same words."""
        before, after = packed(memory.record), packed(record)
        changed = [name for name in before if before[name] != after[name]]
        self.change.revise(memory.number, record)
        if record.status != "active":
            self._inactive.add(memory.owner.id)
        pairs = {name: [before[name], after[name]] for name in changed}
        self._did(memory.owner.id, do=REVISE, version=memory.record.version, changed=pairs)

    def link(self, link: Link) -> None:
        """Link two memories, in the place of a link of the same type between them."""
        known = self._known(link)
        self.change.link(link)
        step: dict[str, Any] = {"source": link.source, "target": link.target, "type": link.type}
        if known is None:
            self._did(link.source, link.target, do=UNLINK, **step)
        else:
            self._did(link.source, link.target, do=LINK, **step, strength=known.strength, at=known.created_at)

    def page(self, id_: str, path: str, sha256: str) -> None:
        """Remember that a page of the vault was written for a memory: its place, and the sum of its bytes."""
        self._did(id_, do=PAGE, path=path, sha256=sha256)

    def _known(self, link: Link) -> Link | None:
        found = self.change.links([link.source])
        return next(
            (each for each in found if (each.source, each.target, each.type) == (link.source, link.target, link.type)),
            None,
        )

    def _did(self, *ids: str, **step: Any) -> None:
        self._touched.update(ids)
        self._steps.append({"id": ids[0], **step})


def packed(record: MemoryRecord) -> dict[str, Any]:
    """Return a record as JSON has it, without the words of the memory."""
    values = json.loads(json.dumps(asdict(record)))
    del values["content"]
    return dict(values)


def unpacked(values: Mapping[str, Any], known: MemoryRecord) -> MemoryRecord:
    """Return a record with the values that were packed, and the rest as it is known."""
    names = {field.name for field in fields(MemoryRecord)} - {"content"}
    kept: dict[str, Any] = {
        name: tuple(value) if name in _LISTS else value for name, value in values.items() if name in names
    }
    return replace(known, **kept)
