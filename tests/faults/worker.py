"""What the fault tests of work in other processes run in one of their own; started as a script, never collected.

worker.py loaded STORE        forget, and let another process index, then print the modules that this one has loaded
worker.py begin STORE ID      begin to forget ID in another process, print the id of that one, and wait to be killed
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from commonplace.engine import maintenance, worker
from commonplace.engine.open import open_engine


def loaded(store: str) -> None:
    maintenance.MIN_FOR_WORKER = 20
    with open_engine(store, "default", None, low_memory=True) as book:
        for number in range(20):
            book.remember(f"Kettle {number} boils in {number + 2} minutes", id=f"{number}")
        book.search("kettle")
        assert book.forget("3").verified
        assert book._runtime.index.reader().documents == 19
    print(*sys.modules, sep="\n")


def begin(store: str, id_: str) -> None:
    start = worker._answers_of_child

    def pause(*given: Any) -> None:
        start(*given)
        print(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()[0], flush=True)
        signal.pause()

    worker._answers_of_child = pause
    with open_engine(store, "default", None, low_memory=True) as book:
        book.forget(id_)


if __name__ == "__main__":
    {"loaded": loaded, "begin": begin}[sys.argv[1]](*sys.argv[2:])
