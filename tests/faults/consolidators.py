"""A process that consolidates a store until it is killed; started as a script, never collected.

consolidators.py STORE NUMBER    be killed (SIGKILL) just before or after a call that reaches the disk, the NUMBERth of
                                 the run; 0 is never: print how many there were
consolidators.py STORE wait      begin when a line comes on standard input, and print the report as JSON
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from tests.faults.dying import Moments

import commonplace
from commonplace.engine import Engine
from commonplace.retention import DAY_S

NOW = 1_750_000_000.0

FADED = tuple(f"Note {name} is of no use to anybody" for name in ("alpha", "beta", "gamma"))
TWINS = (
    (
        "The office in Lyon opens at eight in the morning.",
        "At eight in the morning the office in Lyon opens.",
        "In Lyon the office opens at eight in the morning.",
    ),
    ("Ravens nest in the old lighthouse of Skagen.", "In the old lighthouse of Skagen ravens nest."),
)
USED = (
    "We chose Postgres for billing, since it keeps invoices and ledgers together.",
    "Mira Okafor prefers green tea.",
)
RELATED = ("Mira Okafor works with Lena Brandt at Acme.", "Lena Brandt and Mira Okafor wrote the Acme handbook.")


def prepare(path: Path) -> None:
    """Make a store in which every agent finds something to do."""
    now = [NOW - 61 * DAY_S]
    with commonplace.open(path, embedder="static", clock=lambda: now[0]) as book:
        for number, text in enumerate(FADED):
            book.remember(text, id=f"faded {number}", force=True)
        now[0] = NOW - 2 * DAY_S
        for number, texts in enumerate(TWINS):
            for place, text in enumerate(texts):
                book.remember(text, id=f"twin {number}.{place}", force=True, tags=[f"twin{number}"])
        for number, text in enumerate(USED):
            book.remember(text, id=f"used {number}", force=True)
            for _ in range(6):
                book.touch(f"used {number}")
        for number, text in enumerate(RELATED):
            book.remember(text, id=f"related {number}", force=True, tags=["handbook", "acme"])


def opened(path: Path) -> Engine:
    """Open the store as it is run: at a time that stands still."""
    return commonplace.open(path, clock=lambda: NOW)


def main() -> None:
    path, what = Path(sys.argv[1]), sys.argv[2]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with opened(path) as book:
        if what == "wait":
            sys.stdin.readline()
            print(json.dumps(book.consolidate(rate_limit=0).to_dict()))
            return
        moments = Moments(int(what) or None)
        with moments:
            book.consolidate(rate_limit=0)
    print(moments.seen)


if __name__ == "__main__":
    main()
