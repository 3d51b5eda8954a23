"""The receipt of a deletion, as callers see it and as it is stored. It holds no deleted content.

It holds no hash either: short texts can be guessed from a hash, salted or not, if the salt is stored beside it. Ids are
kept, so that a memory that returns from an old page is recognised as deleted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from commonplace.dataclasses import dataclass, field, replace
from commonplace.dates.time import iso
from commonplace.errors import CommonplaceError
from commonplace.formats.json_values import View
from commonplace.types import Note

RECEIPT = "receipt"
"""The kind of the notes that receipts are kept in."""
ELSEWHERE = "copies elsewhere: other machines, disk snapshots, output sent to clients and models"
"""Part of every receipt: copies that no deletion can reach."""
ON_SERVER = (
    "what the PostgreSQL server keeps: deleted rows until autovacuum, or a `VACUUM` by the tables' owner, has run; "
    "its write-ahead log, replicas and backups"
)
"""Part of the receipts of a store on a server."""
LEFT = "traces remain: review what was found, remove or edit those files, and delete again what a search still finds"
UNPROVED = (
    "the run was interrupted before it could scan the files; everything that could hold the content was rewritten"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that `doctor` finds wrong. `mended` is True once it has been repaired."""

    part: str
    problem: str
    remedy: str
    mended: bool = False

    @classmethod
    def of(cls, part: str, error: CommonplaceError) -> Problem:
        return cls(part, error.args[0], error.remedy)


@dataclass(frozen=True, slots=True)
class ForgetReceipt(View):
    """What was deleted, and whether the store was verified.

    Attributes:
        id: of the receipt; "" for a dry run, which leaves none.
        at: seconds since the epoch.
        ids: of the memories, artifacts, documents and parts of the graph that went; none where a whole namespace did.
        counts: how many went, or would: `memories`, `derived` (of these, made from another one), `versions`,
            `passages`, `links`, `owners` (artifacts and documents), `knowledge` (items), `contexts` (of agents),
            `blocks`, `pages` and `vault_notes` (Markdown), `log_lines`, `in_process`; of the graph `episodes`,
            `entities`, `relations`; of the ledger `issues` (that named or quoted one, and lost every word) and
            `reversals` (changes that cannot be undone any more).
        checked: every file of the store that was looked through, with its size in bytes.
        excluded_needles: pieces that were found and are also in what remains, so that they betray nothing.
        found: (file, what) that is still there, or (what is outside, what) that said it was deleted and is not;
            `notices` say what to do about files.
        waiting: what cannot be done yet, since another process reads the state before or a file cannot be written;
            `doctor` finishes it.
        outside: copies that nobody but their owner can delete.
        verified: everything was looked through, nothing was found, and nothing waits.
    """

    namespace: str
    at: float
    id: str = ""
    dry_run: bool = False
    ids: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    checked: tuple[tuple[str, int], ...] = ()
    excluded_needles: int = 0
    found: tuple[tuple[str, str], ...] = ()
    waiting: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    verified: bool = False
    notices: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; its time is ISO 8601."""
        return View.to_dict(self) | {"at": iso(self.at)}

    def counted(self, **more: int) -> ForgetReceipt:
        return replace(self, counts={**self.counts, **more})

    def note(self) -> Note:
        return Note(RECEIPT, self.id, self.at, json.dumps(self.to_dict(), sort_keys=True))


def receipt_of(note: Note) -> ForgetReceipt:
    return ForgetReceipt(**{**values_of(note), "at": note.at})


def values_of(note: Note) -> dict[str, Any]:
    """Return the fields that a note keeps as a JSON object, lists as tuples."""
    return {name: _tuples(value) for name, value in json.loads(note.body).items()}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
