"""Wherever the disk or the store fails in a run of the journal, the next one finishes it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.journal.book import Book, outcome, prepare, zone

from commonplace.errors import StoreError
from commonplace.journal import folder
from commonplace.journal.folder import Folder
from commonplace.memory.service import MemoryService
from commonplace.store.store import Store

DISK = (
    (folder, "write_draft"),
    (Folder, "keep"),
    (Folder, "sync_directories"),
    (Path, "replace"),
    (Path, "unlink"),
    (os, "fsync"),
)
STORE = (
    (Store, "change_memories"),
    *((MemoryService, name) for name in "remember update archive restore set_tier link unlink".split()),
)


class Failing:
    """Lets one call of a number of functions fail, before or after it has done its work."""

    def __init__(self, error: Exception, at: int, *, after: bool) -> None:
        self.calls = 0
        self._error, self._at, self._after = error, at, after

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            is_now = self.calls == self._at
            if is_now and not self._after:
                raise self._error
            result = function(*args, **kwargs)
            if is_now:
                raise self._error
            return result

        return wrapped


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("before")
    with zone("UTC"):
        prepare(place / "store")
    return place / "store"


@pytest.fixture(scope="module")
def expected(before: Path) -> dict[str, Any]:
    place = before.with_name("expected")
    shutil.copytree(before, place)
    with zone("UTC"):
        return outcome(place)


def sync_with(place: Path, failing: Failing, seams: tuple[tuple[Any, str], ...]) -> None:
    """Sync a store in which something fails."""
    book = Book(place)
    book.clock.at += 3600
    with pytest.MonkeyPatch.context() as patched:
        for owner, name in seams:
            patched.setattr(owner, name, failing.wrap(getattr(owner, name)))
        try:
            book.sync()
        except StoreError as error:
            assert error.args == ("the store fails",)
        finally:
            book.store.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("seams", "error"), [(DISK, OSError(5, "Input/output error")), (STORE, StoreError("the store fails"))]
)
def test_a_run_in_which_one_call_fails_is_finished_by_the_next_one(
    before: Path,
    expected: dict[str, Any],
    tmp_path: Path,
    seams: tuple[tuple[Any, str], ...],
    error: Exception,
    after: bool,
) -> None:
    with zone("UTC"):
        # Failing before every second call and after every second one leaves each state of the disk once.
        for number in range(1, 1_000, 2):
            place = tmp_path / str(number)
            shutil.copytree(before, place)
            failing = Failing(error, number, after=after)
            sync_with(place, failing, seams)
            assert outcome(place) == expected, number
            if failing.calls < number:
                break
    assert number > 10
