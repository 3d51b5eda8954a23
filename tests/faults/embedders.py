"""A process that embeds what was stored before until it is killed; started as a script, never collected.

embedders.py STORE NUMBER    be killed (SIGKILL) at the NUMBERth moment: before or after a slice of vectors has reached
                             the disk; without that many, print how many there were
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import commonplace
from commonplace.models.hashing import HashingEmbedder
from commonplace.store.store import Store

MEMORIES = 70


class Slow(HashingEmbedder):
    """An embedder whose texts are stored first."""

    is_slow = True


def main() -> None:
    """Remember some things, in one call."""
    path, last = sys.argv[1], int(sys.argv[2])
    moments = 0
    fill = Store.fill_vectors

    def moment() -> None:
        nonlocal moments
        moments += 1
        if moments == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(*arguments: Any, **named: Any) -> Any:
        moment()
        result = fill(*arguments, **named)
        moment()
        return result

    Store.fill_vectors = watched  # type: ignore[method-assign]
    with commonplace.open(path, embedder=Slow()) as book:
        book.remember_many([{"content": f"ship number {number}", "id": f"m{number}"} for number in range(MEMORIES)])
    print(moments)


if __name__ == "__main__":
    main()
