"""What the fault tests of forgetting run in processes of their own; started as a script, never collected.

forgetters.py read STORE               read one state of the store until a line comes on standard input
forgetters.py search STORE             search once, and again for every line that comes
forgetters.py stay STORE               be in the middle of a search until a line comes on standard input
forgetters.py count STORE WHAT         forget WHAT, then print how many moments there were
forgetters.py die STORE WHAT MOMENT    forget WHAT, and be killed (SIGKILL) at the MOMENTth of them, or at the end

WHAT is `tag:TAG` or `namespace:NAME`. A moment comes right
before or after a call that reaches the disk.
"""

from __future__ import annotations

import sys

from tests.faults.dying import Moments

import commonplace
from commonplace.engine import Engine


def forget(book: Engine, what: str) -> None:
    kind, _, name = what.partition(":")
    if kind == "tag":
        book.forget(tag=name)
    else:
        book.forget_namespace(name, confirm=name)


def watched(store: str, what: str, last: int | None = None) -> int:
    moments = Moments(last)
    with commonplace.open(store) as book, moments:
        forget(book, what)
    return moments.seen


def tell_hits(book: Engine) -> None:
    print(len(book.search("kettle", 100, method="bm25", min_score=0.0).hits), flush=True)


def main() -> None:
    match sys.argv[1:]:
        case ["read", store]:
            with commonplace.open(store) as book, book._runtime.store.snapshot():
                print(book._runtime.store.change(), flush=True)
                sys.stdin.readline()
        case ["search", store]:
            with commonplace.open(store) as book:
                tell_hits(book)
                for _ in sys.stdin:
                    tell_hits(book)
        case ["stay", store]:
            with commonplace.open(store) as book, book._runtime.index.reading() as generation:
                print(generation.documents, flush=True)
                sys.stdin.readline()
        case ["count", store, what]:
            print(watched(store, what))
        case ["die", store, what, moment]:
            watched(store, what, int(moment))


if __name__ == "__main__":
    main()
