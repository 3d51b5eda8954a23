"""Tell how much of a long work is done, as often as a person can see. It knows no work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commonplace.types import Progress

_TIMES = 200


def counter(progress: Progress | None, what: str, total: int) -> Callable[[int], None]:
    """Return what is to be called with how much more is done; it tells of every half per cent, and of the end."""
    done = told = 0

    def count(more: int) -> None:
        nonlocal done, told
        done += more
        if progress and (done >= total or done - told >= total / _TIMES):
            told = done
            progress(what, done, total)

    if progress:
        progress(what, 0, total)
    return count
