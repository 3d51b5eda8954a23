"""Write the lexical part of a new generation through Tantivy; knows its writer and files, and no store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import tantivy

from commonplace.errors import IndexFaultError, StoreError
from commonplace.index.lexical import NO_PHASE, faults, language_term, open_tantivy, raw_term
from commonplace.index.manifest import Manifest
from commonplace.text.analysis import FIELDS, fields_of, passage_language
from commonplace.text.stopwords import ENGLISH
from commonplace.types import IndexEntry

COPIED = ("meta.json", ".managed.json")
"""The files that Tantivy replaces; all others it only ever adds or removes."""

_SMALLEST_HEAP = 15_000_000
_REBUILD_HEAP = 60_000_000


class LexicalWriter:
    """Collects the changes of one update; `finish` commits them. Nothing of it stays in memory afterwards."""

    def __init__(self, directory: Path, manifest: Manifest, *, is_rebuild: bool) -> None:
        """Begin from the generation that `manifest` describes, whose files are already in `directory`.

        Raises:
            IndexFaultError: Tantivy cannot read them.
        """
        self._directory = directory
        self._counted = manifest.counted
        self._lengths = {field: manifest.mean_lengths.get(field, 0.0) * manifest.counted for field in FIELDS}
        with faults():
            # One thread: passages keep the order of their numbers, and memory stays small.
            self._writer = open_tantivy(directory).writer(_REBUILD_HEAP if is_rebuild else _SMALLEST_HEAP, 1)

    def delete(self, number: int) -> None:
        """Delete a passage, if it is held."""
        with faults():
            self._writer.delete_documents_by_term("number", number)

    def add(self, entry: IndexEntry, code: int, *, is_new: bool) -> None:
        """Add a passage; one that is not new replaces itself, and its lengths were counted before."""
        if not is_new:
            self.delete(entry.number)
        document = tantivy.Document()
        language = passage_language(entry)
        for field, terms in fields_of(entry, language).items():
            if terms:
                document.add_text(field, " ".join(terms))
                self._lengths[field] += len(terms) if is_new else 0
        self._counted += is_new
        document.add_integer("number", entry.number)
        document.add_integer("owner", entry.owner_number)
        document.add_integer("namespace", code)
        if language != ENGLISH:
            document.add_text("language", language_term(code, language))
        document.add_text("kind", entry.kind)
        document.add_text("type", raw_term(entry.type))
        document.add_text("phase", raw_term(entry.phase or NO_PHASE))
        for tag in entry.tags:
            document.add_text("tag", raw_term(tag))
        with faults():
            self._writer.add_document(document)

    def abandon(self) -> None:
        """Stop writing: Tantivy's threads would go on making files in a directory that is about to be removed."""
        with suppress(IndexFaultError, StoreError), faults():
            self._writer.wait_merging_threads()

    def finish(self) -> Mapping[str, float]:
        """Commit, wait for merges, leave only the files of live segments; return mean lengths by field."""
        with faults():
            self._writer.commit()
            self._writer.wait_merging_threads()
        _sweep(self._directory)
        counted = max(1, self._counted)
        return {field: length / counted for field, length in self._lengths.items()}


def _sweep(directory: Path) -> None:
    """Remove files that the commit no longer names, so that they are not carried into the next generation."""
    with faults():
        segments = json.loads((directory / "meta.json").read_bytes())["segments"]
    stems = {segment["segment_id"].replace("-", ""): segment["deletes"] for segment in segments}
    for path in directory.iterdir():
        stem, _, rest = path.name.partition(".")
        deletes = stems.get(stem)
        is_stale_delete = rest.endswith(".del") and (deletes is None or rest != f"{deletes['opstamp']}.del")
        if path.name not in COPIED and (stem not in stems or is_stale_delete):
            path.unlink()
