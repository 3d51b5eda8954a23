"""The data files of a model: a manifest with their sizes and checksums, read in parts and never mapped."""

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
    """The files of one directory, opened when they are first read. Safe for threads: every read names its place.

    Args:
        parse: returns what the rest of the manifest's document says; a LookupError, TypeError or ValueError refuses it.

    Attributes:
        stated: size in bytes and sha256 by file name, as the manifest states them.

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
            OSError: this process has too many open files, which says nothing of these.
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
        # Not mapped: whole pages of the file would count as this process's memory, and one cut short would end it.
        data = os.pread(self._opened[name], count, offset)
        self._refuse_end(name, len(data), count, offset)
        return data

    def read_into(self, name: str, array: NDArray[Any], offset: int) -> None:
        """Fill an array with a part of a file: what is read often needs no new memory each time.

        Raises:
            ModelError: the file ends before it.
        """
        self._refuse_end(name, os.preadv(self._opened[name], [array.data], offset), array.nbytes, offset)

    def _refuse_end(self, name: str, read: int, count: int, offset: int) -> None:
        if read != count:
            raise ModelError(f"model data {name} ends before byte {offset + count}", remedy=_REMEDY)

    def verify(self) -> None:
        """Read every byte and compare it with what the manifest says.

        Raises:
            ModelError: something is missing or different; the message names every such file.
        """
        problems = [problem for name in self.stated if (problem := self._wrong_size(name) or self._wrong_bytes(name))]
        if problems:
            raise ModelError(", ".join(problems), remedy=_REMEDY)

    def _wrong_size(self, name: str) -> str:
        path, expected = self.directory / name, self.stated[name][0]
        try:
            found = path.stat().st_size
        except OSError:
            return f"model data {path} is missing"
        return "" if found == expected else f"model data {path} has {found} bytes, expected {expected}"

    def _wrong_bytes(self, name: str) -> str:
        # OpenSSL costs 3.6 MB of resident memory, and a process that only searches never verifies.
        import hashlib

        path, expected = self.directory / name, self.stated[name][1]
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            return str(error)
        return "" if found == expected else f"model data {path} has sha256 {found}, expected {expected}"


_loaded: weakref.WeakValueDictionary[tuple[object, Path], Any] = weakref.WeakValueDictionary()


def shared(kind: Callable[[Path], Model], directory: Path) -> Model:
    """Return the model of a class over a directory: while anyone in this process uses it, all others get the same."""
    key = (kind, directory)
    found: Model | None = _loaded.get(key)
    return _loaded.setdefault(key, kind(directory)) if found is None else found
