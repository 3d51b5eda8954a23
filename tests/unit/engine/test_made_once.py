"""Parts of an engine are made at first use, by one thread alone."""

from __future__ import annotations

import threading

from commonplace.engine.runtime import made_once


def test_threads_that_ask_at_once_get_one_part() -> None:
    begun, goes_on = threading.Event(), threading.Event()
    made: list[object] = []

    class Whole:
        @made_once
        def part(self) -> object:
            made.append(object())
            begun.set()
            assert goes_on.wait(60)
            return made[-1]

    whole, got = Whole(), list[object]()
    threads = [threading.Thread(target=lambda: got.append(whole.part)) for _ in range(8)]
    threads[0].start()
    assert begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    goes_on.set()
    for thread in threads:
        thread.join(60)
    assert got == made * 8


def test_the_class_has_the_property_itself() -> None:
    class Whole:
        @made_once
        def part(self) -> int:
            """Say one."""
            return 1

    assert Whole().part == 1
    assert Whole.part.__doc__ == "Say one."
