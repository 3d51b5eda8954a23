"""What the fault tests of `doctor --secrets` run in processes of their own; started as a script, never collected.

secret_menders.py count STORE          mend, then print how many moments there were
secret_menders.py die STORE MOMENT     mend, and be killed (SIGKILL) at the MOMENTth of them

A moment comes right before or after a call that reaches the disk.
"""

from __future__ import annotations

import sys

from tests.faults.dying import Moments

import commonplace


def main() -> None:
    _, store, *moment = sys.argv[1:]
    moments = Moments(int(moment[0]) if moment else None)
    with commonplace.open(store) as book:
        sys.setprofile(moments)
        book.doctor(secrets=True)
        sys.setprofile(None)
    print(moments.seen)


if __name__ == "__main__":
    main()
