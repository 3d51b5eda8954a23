"""A process that changes a store's embedder until it is killed; started as a script, never collected.

upgraders.py STORE NUMBER    be killed (SIGKILL) at the NUMBERth moment: before or after a step of it has reached the
                             disk; without that many, print how many there were
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import commonplace
from commonplace.index.generations import Index
from commonplace.store.store import Store

STEPS = (
    (Store, "begin_reembedding"),
    (Store, "put_reembedded"),
    (Store, "finish_reembedding"),
)


def main() -> None:
    """Upgrade to the hashing embedder."""
    path, last = sys.argv[1], int(sys.argv[2])
    moments = 0

    def moment() -> None:
        nonlocal moments
        moments += 1
        if moments == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            moment()
            result = step(*arguments, **named)
            moment()
            return result

        return call

    for kind, name in (*STEPS, (Index, "update")):
        setattr(kind, name, watched(getattr(kind, name)))
    with commonplace.open(path) as book:
        book.index_upgrade("hashing")
    print(moments)


if __name__ == "__main__":
    main()
