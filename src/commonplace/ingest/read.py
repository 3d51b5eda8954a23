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
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
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
    """Why a file has no text: the reason is a key of the report's `skipped`, the detail a sentence or ""."""

    reason: str
    detail: str = ""


def read_bytes(location: str, limit: int) -> tuple[bytes, FileStamp] | Refusal:
    """Read a file and stamp it; the stamp's size and time are from before the reading, its hash is of what was read."""
    try:
        with open_file(location) as file:
            status, data = os.fstat(file.fileno()), file.read(limit + 1)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EINVAL):  # since it was found
            return Refusal("not a regular file")
        raise
    if len(data) > limit:
        return Refusal("too large")
    import hashlib  # loads OpenSSL, which is faster on whole files than the interpreter's own functions

    return data, FileStamp(hashlib.sha256(data).hexdigest(), status.st_size, status.st_mtime_ns)


def to_text(data: bytes) -> tuple[str, str] | Refusal:
    """Return the text of a file's bytes and a note about its encoding.

    UTF-8, and UTF-16 or UTF-32 with a byte order mark, are read as such; else what the file declares in its first two
    lines; else Windows-1252, if so few bytes are outside ASCII that the text can be told from binary data.
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
    if name and "escape" not in name:  # those are Python's own notations, no encodings of files
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
    r"""Return the text with "\n" for "\r\n" and "\r", and U+FFFD for what no store can keep."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return storable(text)


def looks_generated(text: str) -> bool:
    """Return whether a source text says at its start that a program wrote it, or is minified."""
    if _GENERATED.search(text, 0, 600):
        return True
    return len(text) > 10 * _LONG_LINE and len(text) > _LONG_LINE * (text.count("\n") + 1)


def looks_like_data(text: str) -> bool:
    """Return whether a long text is figures and signs with hardly a letter: data, not prose."""
    signs = "".join(text[:_SAMPLE].split())
    return len(signs) > _SAMPLE // 10 and sum(map(str.isalpha, signs)) < _MIN_LETTERS * len(signs)
