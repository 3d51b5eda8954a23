"""The receipt of a deletion, as callers see it and as it is stored. It contains no deleted content.

It contains no hash either: short texts can be guessed from a hash, even a salted one if the salt is stored beside it.
It contains ids, so that a memory that returns from an old page is recognised as deleted.
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
"""The kind of the notes that store receipts."""
COPIES_ELSEWHERE = "copies elsewhere: other machines, disk snapshots, output sent to clients and models"
"""Entry of `outside` in every receipt: copies that no deletion can reach."""
COPIES_ON_SERVER = (
    "what the PostgreSQL server keeps: deleted rows until autovacuum, or a `VACUUM` by the tables' owner, has run; "
    "its write-ahead log, replicas and backups"
)
"""Entry of `outside` in the receipts of a store on a server."""
TRACES = "traces remain: review what was found, remove or edit those files, and delete again what a search still finds"
UNVERIFIED = (
    "the run was interrupted before it could scan the files; everything that could hold the content was rewritten"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that `doctor` found. `mended` is True once it has been repaired."""

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
        id: the id of the receipt; "" for a dry run, which stores no receipt.
        at: seconds since the epoch.
        ids: the deleted memories, artifacts, documents and parts of the graph; empty for a whole namespace.
        counts: how many were, or would be, deleted: `memories`, `derived` (those of them derived from others),
            `versions`, `passages`, `links`, `owners` (artifacts and documents), `knowledge` (items), `contexts` (of
            agents), `blocks`, `pages` and `vault_notes` (Markdown), `log_lines`, `in_process`; of the graph `episodes`,
            `entities`, `relations`; of the ledger `issues` (those that named or quoted a deleted memory and lost all
            their text) and `reversals` (changes that can no longer be undone).
        checked: every file of the store that was searched, with its size in bytes.
        excluded_needles: how many patterns were found that remaining data also contains, so that they reveal nothing.
        found: (file, what) of traces that remain, or (outside system, what) of copies that it reported as deleted but
            still has; `notices` say what to do about files.
        waiting: what cannot be done yet, because another process reads an older state or a file cannot be written;
            `doctor` finishes it.
        outside: copies that only their owner can delete.
        verified: everything was searched, nothing was found, and nothing is waiting.
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
    """Return the fields that a note stores as a JSON object, with lists as tuples."""
    return {name: _tuples(value) for name, value in json.loads(note.body).items()}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
