"""Work that is done again and again: when it begins, and when it ends."""

from __future__ import annotations

import os
import signal

import click
import pytest

from commonplace.cli.input import duration
from commonplace.cli.watch import repeat, until_stopped


@pytest.mark.parametrize(
    ("given", "seconds"), [("10s", 10.0), ("30m", 1800.0), ("1h", 3600.0), ("1.5 H", 5400.0), ("7d", 604_800.0)]
)
def test_durations_are_read_as_people_write_them(given: str, seconds: float) -> None:
    assert duration(click.Context(click.Command("a")), click.Option(["--every"]), given) == seconds


@pytest.mark.parametrize("given", ["", "1", "h", "9s", "367d", "1w", "-1h", "1e3h", "1h30m", "²h"])
def test_what_is_no_duration_is_refused(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is no duration from 10s to 366d"):
        duration(click.Context(click.Command("a")), click.Option(["--every"]), given)


def test_work_begins_every_so_often_and_what_took_too_long_is_not_made_up_for() -> None:
    now = [0.0]
    begun: list[float] = []
    taken = iter([10.0, 250.0, 0.0])

    def work() -> None:
        begun.append(now[0])
        now[0] += next(taken)

    def wait(seconds: float) -> bool:
        now[0] += seconds
        return len(begun) == 3

    repeat(work, 100.0, wait, lambda: now[0])
    assert begun == [0.0, 100.0, 350.0]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_and_is_handled_as_before_afterwards(sent: signal.Signals) -> None:
    before = signal.getsignal(sent)
    with until_stopped() as wait:
        os.kill(os.getpid(), sent)
        assert wait(60.0) is True
    assert signal.getsignal(sent) == before
