"""Backups, restores and imports in processes of their own, some of them killed; started as a script, never collected.

exchangers.py count NAME ARGUMENTS      do it, and print how many moments there were
exchangers.py NUMBER NAME ARGUMENTS     be killed (SIGKILL) before or after a call that reaches the disk, or at the end
exchangers.py wait NUMBER NAME ARGUMENTS  tell when that moment has come, and go on when standard input ends
exchangers.py write STORE               remember one after the other until standard input ends, and tell of each
exchangers.py hold STORE                have the store open until standard input ends

NAME and ARGUMENTS: backup STORE FILE, export STORE FILE, graph STORE FILE, restore FILE STORE, import STORE FILE.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from tests.faults.dying import Moments

import commonplace


def exchange(moments: Moments, name: str, first: str, second: str) -> None:
    """Do it, with the moments counted while it is done."""
    with ExitStack() as stack:
        act: Callable[[], object] = partial(commonplace.restore, first, second, replace=True)
        if name != "restore":
            book = stack.enter_context(commonplace.open(first))
            calls = {"backup": book.backup, "export": book.export, "graph": book.graph.export_graphiti}
            act = partial(calls.get(name, book.import_), second)
        with moments:
            act()


class Waiting(Moments):
    """Waits at one of the moments in place of ending the process."""

    def end(self) -> None:
        sys.setprofile(None)
        print("there", flush=True)
        sys.stdin.read()

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


def is_over() -> bool:
    """Return whether standard input has ended."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def write(store: str) -> None:
    with commonplace.open(store) as book:
        number = 0
        while not is_over():
            book.remember(f"Entry {number} of the writer stands by the lighthouse of marker{number}", id=f"w{number}")
            print(number, flush=True)
            number += 1


def main() -> None:
    match sys.argv[1:]:
        case ["write", store]:
            write(store)
        case ["hold", store]:
            with commonplace.open(store):
                print("open", flush=True)
                sys.stdin.read()
        case ["wait", number, *rest]:
            exchange(Waiting(int(number)), *rest)
        case ["count", *rest]:
            exchange(moments := Moments(None), *rest)
            print(moments.seen)
        case [number, *rest]:
            exchange(Moments(int(number)), *rest)


if __name__ == "__main__":
    main()
