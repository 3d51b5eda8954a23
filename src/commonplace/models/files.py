"""The data files of a model: read in parts, never mapped, with a manifest of their sizes and checksums."""

from __future__ import annotations

import errno
import json
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from commonplace.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHIPPED: Final = Path(__file__).parent / "data"
_REMEDY: Final = "reinstall Commonplace"

Manifest = TypeVar("Manifest")
Model = TypeVar("Model")


class ModelFiles(Generic[Manifest]):
    """The model files of one directory; `open` opens them. Safe for threads: every read has an explicit offset.

    Args:
        parse: returns the model-specific part of the manifest; a LookupError, TypeError or ValueError rejects it.

    Attributes:
        stated: size in bytes and sha256 by file name, from the manifest.

    Raises:
        ModelError: the manifest is missing, not of this schema, or does not name every file.
    """

    def __init__(
        self, path: Path, schema: str, names: tuple[str, ...], parse: Callable[[dict[str, Any]], Manifest]
    ) -> None:
        self.directory = path.parent
        self._opened: dict[str, int] = {}
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["schema"] != schema:
                raise ModelError(f"{path} has schema {document['schema']!r}, expected {schema!r}", remedy=_REMEDY)
            files = document.get("files") or {names[0]: document}
            self.stated = {name: (files[name]["size"], str(files[name]["sha256"])) for name in names}
            self.manifest = parse(document)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ModelError(f"model data {path} cannot be read: {error!r}", remedy=_REMEDY) from error

    def open(self) -> None:
        """Open every file.

        Raises:
            ModelError: one is missing, may not be opened, or has another size than the manifest says.
            OSError: this process has too many open files; the model's files may be intact.
        """
        for name in self.stated:
            if problem := self._wrong_size(name):
                raise ModelError(problem, remedy=_REMEDY)
            try:
                self._opened[name] = os.open(self.directory / name, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise
                raise ModelError(f"model data {self.directory / name} cannot be opened: {error.strerror}") from error
            weakref.finalize(self, os.close, self._opened[name])

    def read(self, name: str, count: int, offset: int) -> bytes:
        """Return a part of a file."""
        # Not mapped: mapped pages would count as this process's memory, and a truncated file would crash it.
        data = os.pread(self._opened[name], count, offset)
        self._refuse_end(name, len(data), count, offset)
        return data

    def read_into(self, name: str, array: NDArray[Any], offset: int) -> None:
        """Fill an array with a part of a file, so that repeated reads allocate no memory.

        Raises:
            ModelError: the file is too short.
        """
        self._refuse_end(name, os.preadv(self._opened[name], [array.data], offset), array.nbytes, offset)

    def _refuse_end(self, name: str, read: int, count: int, offset: int) -> None:
        if read != count:
            raise ModelError(f"model data {name} ends before byte {offset + count}", remedy=_REMEDY)

    def verify(self) -> None:
        """Compare the size and checksum of every file with the manifest.

        Raises:
            ModelError: a file is missing or differs; the message names every such file.
        """
        problems = [problem for name in self.stated if (problem := self._wrong_size(name) or self._wrong_bytes(name))]
        if problems:
            raise ModelError(", ".join(problems), remedy=_REMEDY)

    def _wrong_size(self, name: str) -> str:
        path, expected = self.directory / name, self.stated[name][0]
        try:
            size = path.stat().st_size
        except OSError:
            return f"model data {path} is missing"
        return "" if size == expected else f"model data {path} has {size} bytes, expected {expected}"

    def _wrong_bytes(self, name: str) -> str:
        # OpenSSL costs 3.6 MB of resident memory, which a process that only searches does not need.
        import hashlib

        path, expected = self.directory / name, self.stated[name][1]
        try:
            with path.open("rb") as file:
                checksum = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            return str(error)
        return "" if checksum == expected else f"model data {path} has sha256 {checksum}, expected {expected}"


_loaded: weakref.WeakValueDictionary[tuple[object, Path], Any] = weakref.WeakValueDictionary()


def shared(kind: Callable[[Path], Model], directory: Path) -> Model:
    """Return the process-wide model of a class over a directory; it lives as long as anyone uses it."""
    key = (kind, directory)
    found: Model | None = _loaded.get(key)
    return _loaded.setdefault(key, kind(directory)) if found is None else found
