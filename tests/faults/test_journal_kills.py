"""A run of the journal that is killed is finished by the next one: nothing is lost, nothing is there twice.

Started as a script it lives a run and is killed (SIGKILL) at a moment of it:
test_journal_kills.py DIRECTORY NUMBER    just before or after a call that reaches the disk, the NUMBERth; 0 is never
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.processes import run
from tests.unit.journal.book import YESTERDAY, Book, outcome, prepare, zone

POINTS, IN_SHORT = 200, 8
_REACHING = frozenset(
    "execute executemany open close write fsync rename replace unlink rmdir mkdir flock fchmod".split()
)


class Moments:
    """Counts what comes right before and right after calls that reach the disk, and ends the process at one of them."""

    def __init__(self, last: int) -> None:
        self.seen = 0
        self._last = last

    def __call__(self, _frame: FrameType, event: str, function: Any) -> None:
        if event not in ("c_call", "c_return") or function.__name__ not in _REACHING:
            return
        if not isinstance(function.__self__, str):
            self.seen += 1
            if self.seen == self._last:
                os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    directory, number = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    book = Book(Path(directory))
    book.clock.at += 3600
    moments = Moments(int(number))
    sys.setprofile(moments)
    book.sync()
    sys.setprofile(None)
    print(moments.seen)


def synced(directory: Path, number: int) -> subprocess.CompletedProcess[str]:
    """Run a process that brings pages and memories together until it is killed."""
    return run(__file__, directory, number, TZ="UTC")


@dataclass(frozen=True)
class Course:
    """A store before the run, what is there after it, and how many moments it has."""

    before: Path
    expected: dict[str, Any]
    moments: int


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    place = tmp_path_factory.mktemp("course")
    with zone("UTC"):
        prepare(place / "before")
        for name in ("here", "there"):
            copy(place / "before", place / name)
        counted = synced(place / "there", 0)
        assert counted.returncode == 0, counted.stderr
        expected = outcome(place / "here")
        assert outcome(place / "there") == expected
    return Course(place / "before", expected, int(counted.stdout))


def copy(source: Path, target: Path) -> None:
    """Copy a store with the times of its pages."""
    shutil.copytree(source, target, symlinks=True)


def test_the_run_that_is_killed_does_everything(course: Course) -> None:
    """So that what the other tests compare with is not empty."""
    contents = {content: (tier, status) for content, tier, status, *_ in course.expected["memories"]}
    assert contents == {
        "By hand: the 0. thing.\n\nAnd more.": ("short", "active"),
        "Of removed: the 1. thing.": ("short", "archived"),
        "Of moved: the 2. thing.": ("long", "active"),
        "In the store: the 3. thing.": ("short", "active"),
        "Of archived: the 4. thing.": ("short", "archived"),
        "In the store: the 5. thing.": ("short", "active"),
        "Of linked: the 6. thing.": ("short", "active"),
        "In the store: the 7. thing.": ("short", "active"),
        "Of raised: the 8. thing.": ("medium", "active"),
        "The key is [redacted: aws access key].": ("short", "active"),
        "For long: kept.": ("long", "active"),
        "For long: fallen.": ("short", "active"),
        "Of yesterday.": ("short", "active"),
        "Came later.": ("short", "active"),
        "New in the store.": ("short", "active"),
        "Of copied: the 0. thing\n\nOf edited: the 0. thing.": ("short", "active"),
        "Note\n\nA new note.": ("short", "active"),
        "An item": ("long", "active"),
        "Tomorrow": ("short", "active"),
    }
    assert course.expected["links"] == [("kept", "both"), ("linked", "edited")]
    [conflict] = [text for name, text in course.expected["files"].items() if "conflict" in name]
    assert "By hand: the 3. thing." in conflict
    assert f"memory/{YESTERDAY}" in course.expected["files"]


def points(moments: int, count: int) -> list[int]:
    return sorted(random.Random(23).sample(range(1, moments + 1), min(count, moments)))


def finished(course: Course, place: Path, number: int) -> dict[str, object]:
    """Kill a run at a moment, and return what the next one makes of it."""
    with zone("UTC"):
        copy(course.before, place)
        killed = synced(place, number)
        assert killed.returncode == -signal.SIGKILL, (number, killed.stderr)
        return outcome(place)


def test_a_killed_run_is_finished_by_the_next_one(course: Course, tmp_path: Path) -> None:
    for number in points(course.moments, IN_SHORT):
        assert finished(course, tmp_path / str(number), number) == course.expected, number


@pytest.mark.soak
def test_a_run_killed_at_many_more_moments_is_finished_by_the_next_one(course: Course, tmp_path: Path) -> None:
    for number in points(course.moments, POINTS):
        assert finished(course, tmp_path / str(number), number) == course.expected, number


if __name__ == "__main__":
    main()
