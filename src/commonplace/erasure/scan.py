"""Derive byte patterns from deleted texts, and read what a store and its files hold to find them there.

A text contributes its lines and sentences in the encodings that files use: UTF-8, JSON-escaped, lower case. Long ones
are cut into pieces, since a database page or disk block may hold only a part.
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
"""Bytes of the shortest line or sentence that is looked for by itself."""
PIECE: Final = 48
"""What is longer than this many bytes is looked for in pieces of so many."""
_MIN_VALUES = 5
"""A vector or list of token ids with fewer distinct bytes is no mark of one text."""

_OF_ITSELF: Final = ("notes", "mirror_blocks", "mirror_pages")
"""The tables of the store's own records, which may contain a word that was deleted elsewhere."""

_PARTS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+|(?<=[.!?。！？])\s+")
_ESCAPED = re.compile(r"[^ !#-\[\]-~]")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_PER_PATTERN = 64
_MIN_BITS, _MAX_BITS = 16, 24


def forms(text: str) -> list[bytes]:
    """Return a text as files may hold it: as it is, in lower case, escaped in JSON with and without other alphabets."""
    written = [text, text.lower()]
    if _ESCAPED.search(text):  # else JSON holds it as it is
        written += json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    return [each.encode("utf-8", "surrogatepass") for each in dict.fromkeys(written)]


def texts_in(column: Column, value: Any) -> Iterator[str]:
    """Yield the texts in a value of a column, those in JSON too."""
    if isinstance(value, tuple):
        yield from value
    elif value:
        yield value
        if value.startswith(_KEY):
            yield value.removeprefix(_KEY)
            yield value.partition(":")[2]
        if column.role == "json" or value.startswith("{"):
            with suppress(ValueError):  # a text that begins like JSON
                yield from strings(json.JSONDecoder().raw_decode(value)[0])


def parts(text: str) -> list[str]:
    """Return the lines and sentences of a text that are long enough to be specific to it."""
    found = (part.strip() for part in _PARTS.split(text))
    return [part for part in found if len(part.encode("utf-8", "surrogatepass")) >= MIN_PART_LENGTH]


_KEY: Final = "\x1f"
"""The first character of a key that was derived from a name; the name follows a colon."""
_KINDS_OF_THINGS: Final = frozenset({"type", "phase", "status", "issue_type", "embedder", "recipe"})
"""Columns with the sort of a thing, which say nothing of its content."""
_SHORT_TEXTS: Final = frozenset({"name", "source_description"})
"""Columns of texts that are labels: a name of three letters is no text that is too short to search for."""


class Collector:
    """Collects byte patterns, of which the first kind counts, and words (`terms`) that reveal some texts."""

    def __init__(self) -> None:
        self._kinds: dict[bytes, str] = {}
        self.terms: set[str] = set()
        self.too_short = 0

    def add_row(self, columns: Iterable[Column], row: Mapping[str, Any]) -> None:
        """Take what a row holds, by the roles of its columns.

        Of names only the thing's own id and its session count: the others are of what may stay.
        """
        for column in columns:
            name, value = column.name, row[column.name]
            if not value or not column.is_erased or name in _KINDS_OF_THINGS:
                continue
            if name == "id":
                self.add_id(value)
            elif column.role == "bytes":
                self.add_array(value, TOKENS if name == "token_ids" else VECTOR)
            elif column.role == "digest":
                self.add_digest(value)
            elif column.role == "text" and name not in _SHORT_TEXTS:
                self.add_text(value)
            elif column.is_cleaned or name == "session":
                for text in texts_in(column, value):
                    self.add_label(text)

    def add_content(self, text: str) -> None:
        """Take a text as a whole and its lines and sentences."""
        whole = text.strip()
        if len(whole.encode("utf-8", "surrogatepass")) < MIN_LENGTH:
            self.too_short += 1
        for part in dict.fromkeys((whole, *parts(text))):
            self._add_forms(part, CONTENT)

    def add_text(self, text: str) -> None:
        """Add a text that may have been searched for: its words, and the hashes that logs use for queries."""
        if text.strip():
            self.add_content(text)
            self.terms |= possible_terms(text)
            for question in dict.fromkeys((text, text.strip(), *parts(text))):
                self.add_digest(query_hash(question))

    def add_label(self, text: str) -> None:
        """Take a tag, an entity, a source, or a value of the metadata."""
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
    """A set of patterns that is looked for in one pass, however many there are.

    Each pattern has an anchor, the eight bytes in its middle. A table says of every eight bytes of the data whether
    they may be an anchor; only where they are one is the pattern itself compared.
    """

    def __init__(self, kinds: Mapping[bytes, str]) -> None:
        self._kinds = dict(kinds)
        lengths: defaultdict[int, set[int]] = defaultdict(set)
        for pattern in self._kinds:
            begin = _anchor(len(pattern))
            lengths[int.from_bytes(pattern[begin : begin + 8], "little")].add(len(pattern))
        self._lengths = {anchor: tuple(sorted(each)) for anchor, each in lengths.items()}
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
        """Return what a pattern is of what was forgotten."""
        return self._kinds[pattern]

    def only(self, wanted: Iterable[bytes]) -> Patterns:
        return Patterns({pattern: self._kinds[pattern] for pattern in wanted})

    def of_kinds(self, *kinds: str, shortest: int = MIN_LENGTH) -> Patterns:
        """Return those of some kinds that have at least so many bytes."""
        return Patterns({each: kind for each, kind in self._kinds.items() if kind in kinds and len(each) >= shortest})

    def places(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, pattern) for every pattern in the data, in no order."""
        if not self._kinds:
            return
        for begin in range(min(8, max(0, len(data) - 7))):
            windows = np.frombuffer(data, "<u8", (len(data) - begin) // 8, begin)
            # The windows whose slot is taken, then those that are an anchor indeed.
            places = np.flatnonzero(self._table[(windows * _MULTIPLIER) >> self._shift])
            values = windows[places]
            nearest = np.minimum(np.searchsorted(self._anchors, values), len(self._anchors) - 1)
            exact = self._anchors[nearest] == values
            for place, anchor in zip(places[exact].tolist(), values[exact].tolist(), strict=True):
                middle = begin + 8 * place
                for length in self._lengths[anchor]:
                    start = middle - _anchor(length)
                    pattern = data[start : start + length] if start >= 0 else b""
                    if pattern in self._kinds:
                        yield start, pattern

    def offsets(self, data: bytes) -> Iterator[int]:
        """Yield the offsets of patterns in the data, in no order."""
        return (offset for offset, _ in self.places(data))

    def found(self, data: bytes) -> set[bytes]:
        return {pattern for _, pattern in self.places(data)}


def _anchor(length: int) -> int:
    """Return where the anchor of a pattern begins: in its middle, since many texts begin with the same words."""
    return (length - 8) // 2


def _pieces(data: bytes) -> list[bytes]:
    if len(data) <= PIECE:
        return [data]
    return [*(data[begin : begin + PIECE] for begin in range(0, len(data) - PIECE, PIECE)), data[-PIECE:]]


_BLOCK = 1 << 23


@dataclass(slots=True)
class Scan:
    """What was looked through and what was found. Names are relative to the directory, with `/`.

    Attributes:
        sizes: bytes that were read, by file.
        hits: the patterns that a file holds; files without any are absent.
        unread: (file, why) of files that could not be read.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    hits: dict[str, set[bytes]] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)

    def all_hits(self) -> set[bytes]:
        return set().union(*self.hits.values())


def files_below(directory: Path) -> list[str]:
    """Return the names of all regular files below a directory, sorted; links are not followed."""
    paths = (Path(place, name) for place, _, names in os.walk(directory) for name in names)
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
    result, listed, overlap = Scan(), list(names), max(0, patterns.longest - 1)
    for done, name in enumerate(listed):
        if progress is not None:
            progress(done, len(listed))
        size, hits, kept = 0, set[bytes](), b""
        try:
            for block in file_blocks(directory / name, _BLOCK):
                size += len(block)
                # Each block begins with the end of the last, so that no pattern is cut in two.
                whole = kept + block
                hits |= patterns.found(whole)
                kept = whole[-overlap:] if overlap else b""
        except FileNotFoundError:
            continue
        except OSError as error:
            result.unread.append((name, f"it cannot be read ({error.strerror})"))
            continue
        result.sizes[name] = size
        if hits:
            result.hits[name] = hits
    if progress is not None:
        progress(len(listed), len(listed))
    return result


def stored_bytes(store: Store) -> Iterator[bytes]:
    """Yield what each column that deletion looks at holds, but what the store notes of itself."""
    with store.snapshot():
        # Table by table: of a server, all rows of all tables would be in memory at once.
        for table in TABLES:
            columns = [column for column in table.columns if column.is_erased and table.name not in _OF_ITSELF]
            before: dict[str, Any] = {}
            for _, row in store.rows_of([(table, {})]) if columns else ():
                for column in columns:
                    value = row[column.name]
                    if value and value != before.get(column.name):  # of a kind or a tier, most rows have the same
                        yield from [value] if column.role == "bytes" else forms_of(texts_in(column, value))
                        before[column.name] = value


def forms_of(texts: Iterable[str]) -> Iterator[bytes]:
    return (form for text in texts for form in forms(text))
