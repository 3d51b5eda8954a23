"""What the fault tests of work in other processes run in one of their own; started as a script, never collected.

apart.py loaded STORE        forget, and let another process index, then print the modules that this one has loaded
apart.py begin STORE ID      begin to forget ID in another process, print the id of that one, and wait to be killed
"""

from __future__ import annotations

import signal
import sys

from commonplace.engine import apart, upkeep
from commonplace.engine.opening import open_engine


def loaded(store: str) -> None:
    upkeep.APART_FROM = 20
    with open_engine(store, "default", None, stays_small=True) as book:
        for number in range(20):
            book.remember(f"Kettle {number} boils in {number + 2} minutes", id=f"{number}")
        book.search("kettle")
        assert book.forget("3").verified
        assert book._index.reader().documents == 19
    print(*sys.modules, sep="\n")


def begin(store: str, id_: str) -> None:
    start = apart._start

    def told(asked: bytes) -> object:
        process, answers = start(asked)
        print(process, flush=True)
        signal.pause()
        return answers

    apart._start = told  # type: ignore[assignment]
    with open_engine(store, "default", None, stays_small=True) as book:
        book.forget(id_)


if __name__ == "__main__":
    {"loaded": loaded, "begin": begin}[sys.argv[1]](*sys.argv[2:])
