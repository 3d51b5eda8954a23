"""Find out what a file or folder is that somebody wants to import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.errors import NotFoundError, UsageError
from commonplace.exchange.foreign import items_of
from commonplace.exchange.items import Source
from commonplace.exchange.reading import is_export, read_export
from commonplace.formats.foreign.detect import READERS, detect
from commonplace.memories.intake import one_of

if TYPE_CHECKING:
    from commonplace.graph.kinds import Kinds

AUTO: Final = "auto"
OWN: Final = "commonplace"
FORMATS: Final = (AUTO, OWN, *READERS)


def source_of(path: Path, format_: str, *, kinds: Kinds, now: float, max_bytes: int) -> Source:
    """Return what stands at a path as something to import.

    Args:
        format_: one of `FORMATS`.
        kinds: the types of entities and facts that there are.
        now: from when on memories that name no time are known, seconds since the epoch.
        max_bytes: the most bytes of UTF-8 that the content of a memory may have.

    Raises:
        NotFoundError: nothing stands there.
        UsageError: it cannot be read, the format is unknown, or it is none that is known.
    """
    one_of("format", format_, FORMATS)
    if not _is_there(path):
        raise NotFoundError(f"there is nothing at {path}", remedy="name a file or folder to import")
    with _told(path):
        is_own = path.is_file() and is_export(path)
        if is_own and format_ in (AUTO, OWN):
            return Source(OWN, partial(read_export, path, max_bytes=max_bytes))
        if format_ == OWN:
            raise UsageError(
                f"{path} is no export of Commonplace", remedy="name a file that `commonplace export` wrote"
            )
        name = detect(path) if format_ == AUTO else format_
        foreign = READERS[name](path)
    return Source(name, partial(items_of, foreign, name, kinds=kinds, now=now, max_bytes=max_bytes))


def _is_there(path: Path) -> bool:
    with _told(path):
        return path.exists()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="make it readable") from error
