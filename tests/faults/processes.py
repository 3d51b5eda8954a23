"""What the fault tests run in processes of their own; started as a script, never collected.

processes.py search STORE QUERY          search until standard input ends; print how many searches were answered
processes.py index STORE ROOT            index ROOT
processes.py count STORE ROOT            index ROOT, then print how many calls that took
processes.py die STORE ROOT CALL         index ROOT, and be killed (SIGKILL) at the CALLth call
"""

from __future__ import annotations

import os
import select
import signal
import sys
from types import FrameType
from typing import Any

import commonplace


class Calls:
    """Counts calls of Python and C functions, and ends the process without warning at one of them."""

    def __init__(self, last: int | None) -> None:
        self.made = 0
        self._last = last

    def __call__(self, _frame: FrameType, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            self.made += 1
            if self.made == self._last:
                os.kill(os.getpid(), signal.SIGKILL)


def search(store: str, query: str, path: str) -> None:
    answered = 0
    with commonplace.open(store) as book:
        while not select.select([sys.stdin], [], [], 0.02)[0]:
            result = book.search(query, min_score=0.0)
            found = [hit.path for hit in result.hits]
            if found[:1] != [path] or query not in result.hits[0].text:
                raise AssertionError(f"{query!r} found {found} after {answered} searches, {result.notices}")
            answered += 1
            if answered == 1:
                print("ready", flush=True)
    print(answered)


def index(store: str, root: str, last: int | None = None) -> int:
    calls = Calls(last)
    with commonplace.open(store) as book:
        sys.setprofile(calls)
        book.index(root)
        sys.setprofile(None)
    return calls.made


def main() -> None:
    match sys.argv[1:]:
        case ["search", store, query, path]:
            search(store, query, path)
        case ["index", store, root]:
            with commonplace.open(store) as book:
                book.index(root)
        case ["count", store, root]:
            print(index(store, root))
        case ["die", store, root, call]:
            index(store, root, int(call))


if __name__ == "__main__":
    main()
