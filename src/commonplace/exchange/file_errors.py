"""Say what cannot be written, and why, when a file or a database that is made on the way cannot. It knows no store."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from commonplace.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MAKE_ROOM: Final = "make room, or name another place"
_OF_WHAT_IT_HOLDS: Final = (StoreBusyError, StoreDamagedError, StoreVersionError)


@contextmanager
def file_errors(what: str, *, remedy: str = "name another place") -> Iterator[None]:
    """Turn an error of a file into the store's.

    Args:
        what: what cannot be done, as in "cannot write /b.zip".
        remedy: what helps where it is not for want of room.
    """
    try:
        yield
    except OSError as error:
        helps = _MAKE_ROOM if error.errno in _NO_ROOM else remedy
        raise StoreError(f"{what}: {error.strerror or error}", remedy=helps) from error


@contextmanager
def database_errors(what: str, database: Path, shown: str) -> Iterator[None]:
    """Turn an error of a database that is made on the way, and whose name nobody knows, into one of what it is for.

    Args:
        shown: what to call it where the error is about what it holds.
    """
    try:
        yield
    except _OF_WHAT_IT_HOLDS as error:
        raise type(error)(error.args[0].replace(str(database), shown), remedy=error.remedy) from error
    except StoreError as error:
        cause = error.__cause__
        if cause is None:
            raise
        raise StoreError(f"{what}: {getattr(cause, 'strerror', None) or cause}", remedy=_MAKE_ROOM) from error
