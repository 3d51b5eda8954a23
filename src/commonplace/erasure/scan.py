"""Derive byte patterns from deleted texts, and search a store and its files for them.

A text contributes its lines and sentences in the encodings that files use: UTF-8, JSON-escaped, lower case. Long ones
are cut into pieces, since a database page or disk block may contain only a part.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from commonplace.dataclasses import dataclass, field
from commonplace.formats.escaping import strings
from commonplace.logs import query_hash
from commonplace.store.connection import file_blocks
from commonplace.store.schema import TABLES, Column
from commonplace.store.store import Store
from commonplace.text.tokens import possible_terms

CONTENT: Final = "words of it"
LABEL: Final = "a tag, name or source of it"
VECTOR: Final = "its vector"
TOKENS: Final = "its token ids"
DIGEST: Final = "a checksum of it"
ID: Final = "its id"

MIN_LENGTH: Final = 8
"""Bytes of the shortest pattern; shorter ones occur in every large file by chance."""
MIN_PART_LENGTH: Final = 12
"""Bytes of the shortest line or sentence that is searched for separately."""
PIECE: Final = 48
"""Largest pattern in bytes; longer data is searched for in pieces of this size."""
_MIN_VALUES = 5
"""Least distinct bytes of a piece of a vector or list of token ids that identifies a text."""

_OWN_TABLES: Final = ("notes", "mirror_blocks", "mirror_pages")
"""The tables of the store's own records, which may contain a term that was deleted elsewhere."""

_PARTS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+|(?<=[.!?。！？])\s+")
_ESCAPED = re.compile(r"[^ !#-\[\]-~]")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_PER_PATTERN = 64
_MIN_BITS, _MAX_BITS = 16, 24


def forms(text: str) -> list[bytes]:
    """Return the forms of a text in files: unchanged, in lower case, and as JSON, with non-ASCII escaped and not."""
    written = [text, text.lower()]
    if _ESCAPED.search(text):  # otherwise its JSON form is the same
        written += json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    return [form.encode("utf-8", "surrogatepass") for form in dict.fromkeys(written)]


def texts_in(column: Column, value: Any) -> Iterator[str]:
    """Yield the texts in a value of a column, including those inside JSON."""
    if isinstance(value, tuple):
        yield from value
    elif value:
        yield value
        if value.startswith(_KEY):
            yield value.removeprefix(_KEY)
            yield value.partition(":")[2]
        if column.role == "json" or value.startswith("{"):
            with suppress(ValueError):  # the text only begins like JSON
                yield from strings(json.JSONDecoder().raw_decode(value)[0])


def parts(text: str) -> list[str]:
    """Return the lines and sentences of a text that are long enough to be specific to it."""
    candidates = (part.strip() for part in _PARTS.split(text))
    return [part for part in candidates if len(part.encode("utf-8", "surrogatepass")) >= MIN_PART_LENGTH]


_KEY: Final = "\x1f"
"""First character of a key that was derived from a name; the name follows a colon."""
_TYPE_COLUMNS: Final = frozenset({"type", "phase", "status", "issue_type", "embedder", "recipe"})
"""Columns that classify a row and reveal nothing of its content."""
_LABEL_COLUMNS: Final = frozenset({"name", "source_description"})
"""Text columns that are treated as labels: a name of three letters does not count as a text too short to search."""


class Collector:
    """Collects byte patterns, each with the first kind it was added with, and terms that reveal a text (`terms`)."""

    def __init__(self) -> None:
        self._kinds: dict[bytes, str] = {}
        self.terms: set[str] = set()
        self.too_short = 0

    def add_row(self, columns: Iterable[Column], row: Mapping[str, Any]) -> None:
        """Add the values of a row, by the roles of its columns.

        Of names, only the row's own id and session are added: others may name data that stays.
        """
        for column in columns:
            name, value = column.name, row[column.name]
            if not value or not column.is_erased or name in _TYPE_COLUMNS:
                continue
            if name == "id":
                self.add_id(value)
            elif column.role == "bytes":
                self.add_array(value, TOKENS if name == "token_ids" else VECTOR)
            elif column.role == "digest":
                self.add_digest(value)
            elif column.role == "text" and name not in _LABEL_COLUMNS:
                self.add_text(value)
            elif column.is_cleaned or name == "session":
                for text in texts_in(column, value):
                    self.add_label(text)

    def add_content(self, text: str) -> None:
        """Add a text as a whole, and its lines and sentences."""
        whole = text.strip()
        if len(whole.encode("utf-8", "surrogatepass")) < MIN_LENGTH:
            self.too_short += 1
        for part in dict.fromkeys((whole, *parts(text))):
            self._add_forms(part, CONTENT)

    def add_text(self, text: str) -> None:
        """Add a text that may have been a query: its content, its terms, and the hashes that logs use for queries."""
        if text.strip():
            self.add_content(text)
            self.terms |= possible_terms(text)
            for question in dict.fromkeys((text, text.strip(), *parts(text))):
                self.add_digest(query_hash(question))

    def add_label(self, text: str) -> None:
        """Add a tag, an entity, a source, or a value of the metadata."""
        self.terms |= possible_terms(text)
        for part in dict.fromkeys((text.strip(), *parts(text))):
            self._add_forms(part, LABEL)

    def add_array(self, data: bytes, kind: str) -> None:
        self._add((piece for piece in _pieces(data) if len(set(piece)) >= _MIN_VALUES), kind)

    def add_digest(self, digits: str) -> None:
        self._add((digits.encode(),), DIGEST)

    def add_id(self, id_: str) -> None:
        self._add(forms(id_), ID)

    def patterns(self) -> Patterns:
        return Patterns(self._kinds)

    def _add_forms(self, text: str, kind: str) -> None:
        self._add((piece for form in forms(text) for piece in _pieces(form)), kind)

    def _add(self, patterns: Iterable[bytes], kind: str) -> None:
        for pattern in patterns:
            if len(pattern) >= MIN_LENGTH:
                self._kinds.setdefault(pattern, kind)


class Patterns:
    """A set of patterns that is searched for in one pass, whatever its size.

    The anchor of a pattern is the eight bytes in its middle. A hash table filters the windows of eight bytes of the
    data that may be an anchor; the pattern itself is compared only where a window is one.
    """

    def __init__(self, kinds: Mapping[bytes, str]) -> None:
        self._kinds = dict(kinds)
        lengths: defaultdict[int, set[int]] = defaultdict(set)
        for pattern in self._kinds:
            begin = _anchor(len(pattern))
            lengths[int.from_bytes(pattern[begin : begin + 8], "little")].add(len(pattern))
        self._lengths = {anchor: tuple(sorted(sizes)) for anchor, sizes in lengths.items()}
        self._anchors = np.array(sorted(self._lengths), dtype=np.uint64)
        bits = min(_MAX_BITS, max(_MIN_BITS, (len(self._anchors) * _SLOTS_PER_PATTERN).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, dtype=np.bool_)
        self._table[(self._anchors * _MULTIPLIER) >> self._shift] = True
        self.longest = max(map(len, self._kinds), default=0)

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._kinds)

    def kind(self, pattern: bytes) -> str:
        """Return the kind of a pattern, such as `CONTENT`."""
        return self._kinds[pattern]

    def only(self, patterns: Iterable[bytes]) -> Patterns:
        return Patterns({pattern: self._kinds[pattern] for pattern in patterns})

    def of_kinds(self, *kinds: str, shortest: int = MIN_LENGTH) -> Patterns:
        """Return the patterns of these kinds with at least `shortest` bytes."""
        return Patterns({key: kind for key, kind in self._kinds.items() if kind in kinds and len(key) >= shortest})

    def matches(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, pattern) for every pattern in the data, in no order."""
        for begin in range(min(8, max(0, len(data) - 7))):
            windows = np.frombuffer(data, "<u8", (len(data) - begin) // 8, begin)
            # First the windows whose slot is occupied, then those that really are an anchor.
            matches = np.flatnonzero(self._table[(windows * _MULTIPLIER) >> self._shift])
            values = windows[matches]
            nearest = np.minimum(np.searchsorted(self._anchors, values), len(self._anchors) - 1)
            exact = self._anchors[nearest] == values
            for position, anchor in zip(matches[exact].tolist(), values[exact].tolist(), strict=True):
                middle = begin + 8 * position
                for length in self._lengths[anchor]:
                    start = middle - _anchor(length)
                    pattern = data[start : start + length] if start >= 0 else b""
                    if pattern in self._kinds:
                        yield start, pattern

    def offsets(self, data: bytes) -> Iterator[int]:
        """Yield the offsets of patterns in the data, in no order."""
        return (offset for offset, _ in self.matches(data))

    def find(self, data: bytes) -> set[bytes]:
        return {pattern for _, pattern in self.matches(data)}


def _anchor(length: int) -> int:
    """Return the offset of a pattern's anchor: in its middle, since many texts begin with the same words."""
    return (length - 8) // 2


def _pieces(data: bytes) -> list[bytes]:
    if len(data) <= PIECE:
        return [data]
    return [*(data[begin : begin + PIECE] for begin in range(0, len(data) - PIECE, PIECE)), data[-PIECE:]]


_BLOCK = 1 << 23


@dataclass(slots=True)
class Scan:
    """The files that were searched and the patterns found. Names are relative to the directory, with `/`.

    Attributes:
        sizes: the number of bytes read, by file.
        hits: the patterns found, by file; files without any are absent.
        unread: (file, reason) of files that could not be read.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    hits: dict[str, set[bytes]] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)

    def all_hits(self) -> set[bytes]:
        return set().union(*self.hits.values())


def files_below(directory: Path) -> list[str]:
    """Return the names of all regular files below a directory, sorted; links are not followed."""
    paths = (Path(folder, name) for folder, _, names in os.walk(directory) for name in names)
    files = (path for path in paths if os.path.isfile(path) and not path.is_symlink())  # noqa: PTH113 - no error
    return sorted(path.relative_to(directory).as_posix() for path in files)


def scan(
    directory: Path,
    names: Iterable[str],
    patterns: Patterns,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Scan:
    """Search files for patterns; a file that vanishes meanwhile is skipped. `progress` counts files."""
    result, files, overlap = Scan(), list(names), max(0, patterns.longest - 1)
    for index, name in enumerate(files):
        if progress is not None:
            progress(index, len(files))
        size, hits, tail = 0, set[bytes](), b""
        try:
            for block in file_blocks(directory / name, _BLOCK):
                size += len(block)
                # Each window begins with the end of the last block, so that no pattern is cut in two.
                window = tail + block
                hits |= patterns.find(window)
                tail = window[-overlap:] if overlap else b""
        except FileNotFoundError:
            continue
        except OSError as error:
            result.unread.append((name, f"it cannot be read ({error.strerror})"))
            continue
        result.sizes[name] = size
        if hits:
            result.hits[name] = hits
    if progress is not None:
        progress(len(files), len(files))
    return result


def stored_bytes(store: Store) -> Iterator[bytes]:
    """Yield the values of all columns that verification searches, except the store's records about itself."""
    with store.snapshot():
        # One table at a time: a server would send all rows of all tables into memory at once.
        for table in TABLES:
            columns = [column for column in table.columns if column.is_erased and table.name not in _OWN_TABLES]
            previous: dict[str, Any] = {}
            for _, row in store.rows_of([(table, {})]) if columns else ():
                for column in columns:
                    value = row[column.name]
                    if value and value != previous.get(column.name):  # most rows have the same kind or tier
                        yield from [value] if column.role == "bytes" else forms_of(texts_in(column, value))
                        previous[column.name] = value


def forms_of(texts: Iterable[str]) -> Iterator[bytes]:
    return (form for text in texts for form in forms(text))
