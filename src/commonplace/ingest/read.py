"""Read and decode a file, and reject binary, generated or oversized ones."""

from __future__ import annotations

import codecs
import errno
import os
import re
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.files import open_file
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.characters import storable
from commonplace.types import FileStamp

_BINARY_WINDOW: Final = 8192
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED: Final = lazy_pattern(rb"^(?:[^\n]*\n)?[ \t\f]*(?:#|//|/\*|<!--|;|--)[^\n]*?coding[:=][ \t]*([-\w.]+)")
_MAX_FOREIGN_SHARE: Final = 0.3
_GENERATED: Final = lazy_pattern(r"@generated\b|\bcode generated\b.*\bdo not edit\b", re.IGNORECASE)
_LONG_LINE: Final = 400
_SAMPLE: Final = 20_000
_MIN_LETTERS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file was rejected: `reason` is a key of the report's `skipped`, `detail` a sentence or ""."""

    reason: str
    detail: str = ""


def read_bytes(location: str, limit: int) -> tuple[bytes, FileStamp] | Refusal:
    """Read and stamp a file; the stamp's size and time are from before the read, its hash is of the bytes read."""
    try:
        with open_file(location) as file:
            status, data = os.fstat(file.fileno()), file.read(limit + 1)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EINVAL):  # replaced since discovery
            return Refusal("not a regular file")
        raise
    if len(data) > limit:
        return Refusal("too large")
    import hashlib  # loads OpenSSL, faster on whole files than the built-in functions

    return data, FileStamp(hashlib.sha256(data).hexdigest(), status.st_size, status.st_mtime_ns)


def to_text(data: bytes) -> tuple[str, str] | Refusal:
    """Return the text of a file's bytes and a note about its encoding.

    Tried in order: UTF-16 or UTF-32 by its byte order mark, UTF-8, the encoding declared in the first two lines, and
    Windows-1252 if at most 30 % of the bytes are outside ASCII, which tells text from binary data.
    """
    encoding = next(((mark, name) for mark, name in _BOMS if data.startswith(mark)), None)
    if encoding:
        try:
            return normalise(data[len(encoding[0]) :].decode(encoding[1])), ""
        except UnicodeDecodeError:
            return Refusal("unknown encoding", f"has the mark of {encoding[1]} and is not")
    if b"\0" in data[:_BINARY_WINDOW]:
        return Refusal("binary")
    try:
        return normalise(data.decode()), ""
    except UnicodeDecodeError:
        declared = _DECLARED.match(data[:1000])
    name = declared[1].decode("ascii", "replace") if declared else ""
    if name and "escape" not in name:  # Python's own notations, not file encodings
        try:
            return normalise(data.decode(name)), ""
        except (LookupError, UnicodeError):
            pass
    foreign = len(data.translate(None, bytes(range(128))))
    if foreign <= _MAX_FOREIGN_SHARE * len(data):
        try:
            return normalise(data.decode("cp1252")), "is not UTF-8; read as Windows-1252"
        except UnicodeDecodeError:
            pass
    return Refusal("unknown encoding", "is not UTF-8 and its encoding cannot be detected; save it as UTF-8")


def normalise(text: str) -> str:
    r"""Return the text with "\n" for "\r\n" and "\r", and U+FFFD for characters that no store can keep."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return storable(text)


def looks_generated(text: str) -> bool:
    """Return whether a source text is minified or says at its start that a program wrote it."""
    if _GENERATED.search(text, 0, 600):
        return True
    return len(text) > 10 * _LONG_LINE and len(text) > _LONG_LINE * (text.count("\n") + 1)


def looks_like_data(text: str) -> bool:
    """Return whether a long text is data, not prose: digits and signs with fewer than 10 % letters."""
    characters = "".join(text[:_SAMPLE].split())
    return len(characters) > _SAMPLE // 10 and sum(map(str.isalpha, characters)) < _MIN_LETTERS * len(characters)
